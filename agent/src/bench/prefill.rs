//! Prefill rows: cold requests of one output token, either of their own or the scouts that warm up the decode cells.

use speedmatrix_shared::{
    event::RunEvent,
    gauge::CellPhase,
    id::{CellId, Phase},
    plan::PromptMode,
    trace::RequestTrace,
    units::{Concurrency, Context, Nanos},
};

use super::{
    Bench, Halt, record,
    single::{failure, is_hopeless},
};
use crate::prompt::text::Purpose;

/// Cold requests per context, at least.
const LEAST_REQUESTS: usize = 2;
/// And at most, while …
const MOST_REQUESTS: usize = 5;
/// … they have taken less than this together.
const MORE_WITHIN: Nanos = Nanos::from_secs(10);
/// Failed requests after which the row is given up.
const MOST_FAILED: usize = 3;

impl Bench {
    /// Measures one prefill cell with cold requests of its own.
    pub(super) async fn prefill_cell(&mut self, cell: CellId) -> Result<(), Halt> {
        if self.skipped(cell).await? {
            return Ok(());
        }
        self.teller.tell(RunEvent::CellStarted { cell }).await?;
        self.gpus.begin();
        let asked = self.asked(cell);
        if let Some(load) = self.drained(cell).await {
            return self.finish(cell, record::not_drained(asked, load)).await;
        }
        self.show(cell, CellPhase::Cache, &Self::no_slots());
        let start = self.clock.now();
        let mut traces: Vec<RequestTrace> = Vec::new();
        let mut failed = 0;
        while traces.len() < LEAST_REQUESTS
            || (traces.len() < MOST_REQUESTS && self.clock.now().since(start) < MORE_WITHIN)
        {
            let recipe = self.recipe(cell.context, 1).await?;
            // A fresh document each, also of those that were sent again for their length.
            let number = self.edition(cell.context) + traces.len() as u64;
            let trace = self.send_one(&recipe, recipe.mark(Purpose::Prefill, number), 0).await?;
            if self.counted(cell.context, &trace).await? {
                continue;
            }
            let useless = failure(&trace).map(|failure| is_hopeless(failure.kind));
            traces.push(trace);
            failed += usize::from(useless.is_some());
            if useless == Some(true) || failed == MOST_FAILED {
                break;
            }
        }
        self.note(cell.context, &traces, &[]);
        self.finish(cell, record::prefill(asked, traces)).await
    }

    /// Fills the prefix cache for the decode cells of `context` and tells the prefill row from that one cold request.
    /// Returns it, if it was of use.
    pub(super) async fn prefill_from_warm_up(&mut self, context: Context) -> Result<Option<RequestTrace>, Halt> {
        let cell = CellId { phase: Phase::Prefill, context, concurrency: Concurrency::new(1).expect("1 is in range") };
        if self.skipped(cell).await? {
            return Ok(None);
        }
        self.teller.tell(RunEvent::CellStarted { cell }).await?;
        self.gpus.begin();
        let asked = self.asked(cell);
        if let Some(load) = self.drained(cell).await {
            self.finish(cell, record::not_drained(asked, load)).await?;
            return Ok(None);
        }
        self.show(cell, CellPhase::Cache, &Self::no_slots());
        let trace = match self.plan.prompts() {
            PromptMode::Shared | PromptMode::Unique | PromptMode::Mixed(_) => {
                self.scout(context, 1).await?.traces.into_iter().next()
            }
            PromptMode::Cold => {
                let recipe = self.recipe(context, 1).await?;
                Some(self.send_one(&recipe, recipe.mark(Purpose::Prefill, 0), 0).await?)
            }
        };
        let traces: Vec<RequestTrace> = trace.into_iter().collect();
        self.note(context, &traces, &[]);
        // One request of one token: the record keeps it, and so does the decode cell that it was a scout for.
        let warm_up = traces.first().filter(|trace| failure(trace).is_none()).cloned();
        self.finish(cell, record::prefill(asked, traces)).await?;
        Ok(warm_up)
    }
}
