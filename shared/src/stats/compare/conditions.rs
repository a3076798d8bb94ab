//! What must be the same before two cells may be compared. A difference is named, with both sides, instead of a
//! percentage; what is unknown on one side is no difference.

use std::fmt;

use crate::{
    format,
    id::Phase,
    plan::{Load, PromptMode, RunPlan, Sampling},
    stats::cell::{CellResult, CellStatus},
    trace::TokenSource,
};

/// Real prompt tokens may differ by this share.
pub const PROMPT_TOLERANCE: f64 = 0.02;

/// What was asked of a cell, as far as it bears on its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// What was measured.
    pub phase: Phase,
    /// How requests came.
    pub load: Load,
    /// How prompts relate to each other.
    pub prompts: PromptMode,
    /// How outputs were sampled.
    pub sampling: Sampling,
    /// Most output tokens per request.
    pub max_output_tokens: u32,
}

impl Conditions {
    /// What a plan asks of its cells of a phase.
    pub fn of(plan: &RunPlan, phase: Phase) -> Self {
        let sampling = plan.sampling();
        match phase {
            Phase::Decode => {
                let (load, prompts, max_output_tokens) = (plan.load(), plan.prompts(), plan.max_output_tokens());
                Self { phase, load, prompts, sampling, max_output_tokens }
            }
            // Prefill requests are always cold and ask for one token.
            Phase::Prefill => {
                let (load, prompts) = (Load::Sustained, PromptMode::Cold);
                Self { phase, load, prompts, sampling, max_output_tokens: 1 }
            }
        }
    }
}

/// What can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// There is no number on one side.
    Measured,
    /// Sustained decode is not prefill, nor a burst.
    Phase,
    /// The verdicts on the cells differ, or one has no numbers to stand on.
    Status,
    /// The client could not keep up: its limit, not the server's, was measured.
    ClientLimited,
    /// Tokens were counted in different ways.
    TokenSource,
    /// Prompts related to each other in different ways.
    PromptMode,
    /// Outputs were sampled in different ways.
    Sampling,
    /// Outputs had different limits.
    MaxOutput,
    /// Prompts really had different lengths.
    PromptTokens,
}

impl Condition {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Phase => "phase",
            Self::Status => "status",
            Self::ClientLimited => "client limited",
            Self::TokenSource => "token source",
            Self::PromptMode => "prompt mode",
            Self::Sampling => "sampling",
            Self::MaxOutput => "max output",
            Self::PromptTokens => "real prompt tokens",
        }
    }
}

/// A condition that differs, with both sides in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub condition: Condition,
    /// What it is in the base.
    pub base: String,
    /// What it is in the candidate.
    pub candidate: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} and {}", self.condition.label(), self.base, self.candidate)
    }
}

/// One side of a comparison: the repeats of one cell.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What was asked of it.
    pub conditions: Conditions,
    /// What came out, at least once to be comparable.
    pub repeats: &'a [&'a CellResult],
}

impl Side<'_> {
    /// The most severe of the repeats' verdicts.
    fn status(&self) -> Option<CellStatus> {
        self.repeats.iter().map(|result| result.status).min()
    }

    /// The least exact of the repeats' sources.
    fn token_source(&self) -> Option<TokenSource> {
        self.repeats.iter().filter_map(|result| result.stats.token_source).max()
    }

    /// Smallest and largest real length of a prompt.
    fn prompt_tokens(&self) -> Option<(u64, u64)> {
        let all = || self.repeats.iter().filter_map(|result| result.stats.prompt_tokens);
        all().min().zip(all().max())
    }

    fn is_client_limited(&self) -> bool {
        self.repeats.iter().any(|result| result.status == CellStatus::ClientLimited)
    }
}

/// All that keeps two sides from being compared; empty if nothing does.
pub fn differences(base: &Side<'_>, candidate: &Side<'_>) -> Vec<Difference> {
    let (a, b) = (base.conditions, candidate.conditions);
    let named = |condition, base: String, candidate: String| Some(Difference { condition, base, candidate });
    let differ = |condition, base: &str, candidate: &str| {
        if base == candidate { None } else { named(condition, base.to_owned(), candidate.to_owned()) }
    };
    let status = |side: &Side<'_>| side.status().map_or_else(|| "none".to_owned(), CellStatus::label);
    let failed = |side: &Side<'_>| side.status().is_none_or(CellStatus::is_failed);
    let limited = |side: &Side<'_>| if side.is_client_limited() { "yes" } else { "no" };
    let sources = base.token_source().zip(candidate.token_source());
    let count = |tokens: u64| format::count(Some(tokens));
    let found = [
        differ(Condition::Phase, &phase(&a), &phase(&b)),
        if failed(base) || failed(candidate) {
            named(Condition::Status, status(base), status(candidate))
        } else {
            differ(Condition::Status, &status(base), &status(candidate))
        },
        if base.is_client_limited() || candidate.is_client_limited() {
            named(Condition::ClientLimited, limited(base).to_owned(), limited(candidate).to_owned())
        } else {
            None
        },
        sources.and_then(|(a, b)| differ(Condition::TokenSource, a.label(), b.label())),
        differ(Condition::PromptMode, &a.prompts.to_string(), &b.prompts.to_string()),
        differ(Condition::Sampling, &a.sampling.words(), &b.sampling.words()),
        differ(Condition::MaxOutput, &count(u64::from(a.max_output_tokens)), &count(u64::from(b.max_output_tokens))),
        prompts_apart(base, candidate)
            .and_then(|(base, candidate)| named(Condition::PromptTokens, count(base), count(candidate))),
    ];
    found.into_iter().flatten().collect()
}

/// The two lengths that lie furthest apart, if that is too far.
fn prompts_apart(base: &Side<'_>, candidate: &Side<'_>) -> Option<(u64, u64)> {
    let ((a_low, a_high), (b_low, b_high)) = base.prompt_tokens().zip(candidate.prompt_tokens())?;
    let furthest = if a_high.abs_diff(b_low) > b_high.abs_diff(a_low) { (a_high, b_low) } else { (a_low, b_high) };
    let (low, high) = (furthest.0.min(furthest.1), furthest.0.max(furthest.1));
    ((high - low) as f64 > PROMPT_TOLERANCE * low as f64).then_some(furthest)
}

fn phase(conditions: &Conditions) -> String {
    match (conditions.phase, conditions.load) {
        (Phase::Prefill, _) => "prefill".to_owned(),
        (Phase::Decode, Load::Sustained) => "sustained decode".to_owned(),
        (Phase::Decode, load) => load.to_string(),
    }
}
