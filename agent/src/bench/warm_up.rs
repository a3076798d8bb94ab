//! Before the first cell (method §2.4): requests whose results are thrown away, so that the engine has compiled its kernels
//! and recorded its graphs for one request and for as many as will run at once.

use speedmatrix_shared::{event::LogLevel, gauge::CellPhase, id::Phase, units::Context};
use tokio::task::JoinSet;

use super::{Bench, Halt, single::failure};
use crate::prompt::text::Purpose;

/// Output tokens of each request: enough for the decoding path, too few to take long.
const OUTPUT_TOKENS: u32 = 16;
/// Number of the documents that only warm up.
const WARM_UP_DOCUMENT: u64 = 1 << 40;

impl Bench {
    /// Sends one request, and then as many at once as the largest cell that can run, on the shortest context.
    pub(super) async fn warm_up(&mut self) -> Result<(), Halt> {
        let decode = self.plan.cells().into_iter().filter(|cell| cell.phase == Phase::Decode);
        let Some(largest) = decode.max_by_key(|cell| (cell.concurrency, std::cmp::Reverse(cell.context))) else {
            return Ok(());
        };
        self.show(largest, CellPhase::Cache, &Self::no_slots());
        let limit = self.facts.limits.max_sequences.unwrap_or(u32::MAX);
        let at_once = largest.concurrency.get().min(limit);
        for requests in [1, at_once] {
            let failed = self.warm_up_with(largest.context, requests).await?;
            if failed > 0 {
                let text = format!("{failed} of {requests} requests that should only warm the engine up failed");
                self.teller.log(LogLevel::Warning, text).await?;
            }
        }
        self.scene.send_replace(None);
        Ok(())
    }

    /// How many of `requests` at once failed.
    async fn warm_up_with(&mut self, context: Context, requests: u32) -> Result<u32, Halt> {
        let recipe = self.recipe(context, OUTPUT_TOKENS).await?;
        // One document: its prefill is not what is to be warmed up, and would take long.
        let mark = recipe.mark(Purpose::Calibration, WARM_UP_DOCUMENT);
        let document = recipe.document(mark);
        let mut running = JoinSet::new();
        for request in 0..requests {
            let (mut single, body) = (self.single()?, recipe.body(&document, mark, u64::from(request)));
            running.spawn(async move { single.send(request, body).await });
        }
        let mut failed = 0;
        while let Some(trace) = running.join_next().await {
            failed += u32::from(trace.is_ok_and(|trace| failure(&trace).is_some()));
        }
        Ok(failed)
    }
}
