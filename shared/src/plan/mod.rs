//! What is to be measured. A [`RunPlan`] can't be wrong: it is only made from a [`PlanDraft`] that
//! passed every check, and it is stored and sent as that draft.

pub mod budget;
pub mod command;
pub mod draft;
pub mod eta;
pub mod field;
pub mod leave_out;
pub mod load;
mod manner;
pub mod options;
pub mod presets;
pub mod prompts;
mod range;
pub mod sampling;
pub mod slo;
pub mod turns;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use draft::PlanDraft;
pub use field::{Field, FieldError, PlanErrors};
pub use leave_out::LeaveOut;
pub use load::{Arrivals, Load};
pub use options::{CellOrder, CheckClient, Repeats};
pub use prompts::{CorpusName, PromptMode, Questions};
pub use sampling::Sampling;
pub use slo::Slo;
pub use turns::Side;

use manner::Manner;

use crate::{
    id::{CellId, Phase},
    target::Limits,
    units::{Concurrency, Context, Nanos},
};

/// Most cells of one plan: the largest matrix the page is built for.
pub const MAX_CELLS: usize = 1_024;

/// Where the prefill rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefill {
    /// From the cold scout request that fills the cache for each decode context (one sample each).
    FromWarmUp,
    /// From cold requests of their own at these contexts, ascending.
    Cold(Vec<Context>),
    /// No prefill rows.
    None,
}

/// The address of the server under test: scheme, host, port and base path, without `/v1`, a trailing slash,
/// credentials, query or fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetUrl(String);

impl TargetUrl {
    /// The address as text, for example `http://127.0.0.1:8000`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A valid plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlanDraft", into = "PlanDraft")]
pub struct RunPlan {
    target: TargetUrl,
    model: Option<String>,
    name: Option<String>,
    contexts: Vec<Context>,
    concurrency: Vec<Concurrency>,
    leave_out: LeaveOut,
    prefill: Prefill,
    duration: Nanos,
    max_output_tokens: u32,
    manner: Box<Manner>,
    seed: u64,
}

impl RunPlan {
    /// The server.
    pub const fn target(&self) -> &TargetUrl {
        &self.target
    }

    /// The model to ask for; `None`: the first one the server offers.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The run's name, if one was given.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Decode contexts, ascending, without repeats.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Decode concurrency levels, ascending, without repeats.
    pub fn concurrency(&self) -> &[Concurrency] {
        &self.concurrency
    }

    /// Decode cells of the matrix that are not measured.
    pub const fn leave_out(&self) -> &LeaveOut {
        &self.leave_out
    }

    /// Where prefill rows come from.
    pub const fn prefill(&self) -> &Prefill {
        &self.prefill
    }

    /// Length D of each decode window.
    pub const fn duration(&self) -> Nanos {
        self.duration
    }

    /// Most output tokens per request.
    pub const fn max_output_tokens(&self) -> u32 {
        self.max_output_tokens
    }

    /// How prompts relate to each other.
    pub fn prompts(&self) -> PromptMode {
        self.manner.prompts
    }

    /// Whether requests ask the same.
    pub fn questions(&self) -> Questions {
        self.manner.questions
    }

    /// In which order decode cells are measured.
    pub fn order(&self) -> CellOrder {
        self.manner.order
    }

    /// How often each decode cell is measured.
    pub fn repeats(&self) -> Repeats {
        self.manner.repeats
    }

    /// What the matrix's cells are loaded with.
    pub fn load(&self) -> Load {
        self.manner.load
    }

    /// What a request must keep to count as good, if the plan says so.
    pub fn slo(&self) -> Option<Slo> {
        self.manner.slo
    }

    /// The file that the prompts' text comes from; `None`: seeded text.
    pub fn corpus(&self) -> Option<&CorpusName> {
        self.manner.corpus.as_ref()
    }

    /// How answers are drawn and where they end.
    pub fn sampling(&self) -> Sampling {
        self.manner.sampling
    }

    /// Whether the client is checked before the run.
    pub fn check_client(&self) -> CheckClient {
        self.manner.check_client
    }

    /// Seed of all prompts, of sampling, of the order and of random arrivals.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Contexts of the prefill rows, ascending.
    pub fn prefill_contexts(&self) -> Vec<Context> {
        match &self.prefill {
            Prefill::FromWarmUp => {
                let is_measured = |context: &&Context| self.concurrency.iter().any(|&level| self.has(**context, level));
                self.contexts.iter().filter(is_measured).copied().collect()
            }
            Prefill::Cold(contexts) => contexts.clone(),
            Prefill::None => Vec::new(),
        }
    }

    fn has(&self, context: Context, concurrency: Concurrency) -> bool {
        !self.leave_out.has(context, concurrency)
    }

    /// All cells in run order (method §2): prefill ascending; then decode: the lowest concurrency for every
    /// context, the rest of the first row, then row by row. Prefill rows that come from warm-up finish with the first
    /// decode cell of their context.
    pub fn cells(&self) -> Vec<CellId> {
        let mut cells: Vec<CellId> = self
            .prefill_contexts()
            .into_iter()
            .map(|context| CellId { phase: Phase::Prefill, context, concurrency: Concurrency::ONE })
            .collect();
        let decode = |context, concurrency| CellId { phase: Phase::Decode, context, concurrency };
        let Some((&first, rest)) = self.concurrency.split_first() else { return cells };
        cells.extend(self.contexts.iter().map(|&context| decode(context, first)));
        for &context in &self.contexts {
            cells.extend(rest.iter().map(|&concurrency| decode(context, concurrency)));
        }
        cells.retain(|cell| cell.phase == Phase::Prefill || self.has(cell.context, cell.concurrency));
        cells
    }

    /// All cells in the order of this round of measuring (0, 1 …): prefill first and as planned, then decode cells as
    /// [`CellOrder`] says.
    pub fn round(&self, round: u32) -> Vec<CellId> {
        let mut cells = self.cells();
        if self.order() != CellOrder::Rows {
            let decode_from = cells.iter().position(|cell| cell.phase == Phase::Decode).unwrap_or(cells.len());
            let places = (decode_from..).zip(cells.split_off(decode_from));
            let mut drawn: Vec<(u64, CellId)> =
                places.map(|(place, cell)| (options::scattered(self.seed, round, place), cell)).collect();
            drawn.sort_by_key(|(number, _)| *number);
            cells.extend(drawn.into_iter().map(|(_, cell)| cell));
        }
        cells
    }

    /// Whether a cell fits the model's context: prompt + answer ≤ the limit; `None` if the limit is unknown.
    /// Prefill requests ask for one token.
    pub fn fits_model_length(&self, cell: CellId, limits: Limits) -> Option<bool> {
        let answer = match cell.phase {
            Phase::Prefill => 1,
            Phase::Decode => u64::from(self.max_output_tokens),
        };
        limits.max_model_len.map(|limit| cell.context.tokens() + answer <= limit)
    }
}
