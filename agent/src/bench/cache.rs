//! Fills the prefix cache before a decode cell and proves that it is filled (method §3).

use speedmatrix_shared::{
    finding::{Finding, Severity},
    id::CellId,
    plan::PromptMode,
    trace::{RequestFailure, RequestTrace},
    units::{Context, Nanos},
};
use tokio::task::JoinSet;

use super::{
    Bench, Halt,
    single::{failure, prompt_tokens, ttft},
    supply::{Recipe, Supply},
};
use crate::prompt::text::{Document, Purpose};

/// Scouts at once.
const SCOUTS_AT_ONCE: usize = 4;
/// A request hit the cache if at least this share of its prompt came from it.
const HIT_SHARE: f64 = 0.5;
/// Or, where the server doesn't tell, if its first token took at most this share of the cold one's time.
const HIT_TTFT_SHARE: f64 = 0.25;
/// Scouts and probes ask with questions that no measured request uses.
const SCOUT_QUESTION: u64 = 1 << 32;
const PROBE_QUESTION: u64 = SCOUT_QUESTION + 1;

/// A cell's prompts with their cache.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The bodies of each slot.
    pub(super) supplies: Vec<Supply>,
    /// Requests that found a cold cache.
    pub(super) cold: Vec<RequestTrace>,
    pub(super) findings: Vec<Finding>,
}

impl Bench {
    /// Prepares the prompts of `cell`. `warm_up` is the request that filled the cache for the prefill row, if one just did.
    /// The inner error is the failure of a scout.
    pub(super) async fn prepare_cache(
        &mut self,
        cell: CellId,
        warm_up: Option<RequestTrace>,
    ) -> Result<Result<Prepared, RequestFailure>, Halt> {
        let slots = u64::from(cell.concurrency.get());
        let max_output_tokens = self.plan.max_output_tokens();
        let mut cold: Vec<RequestTrace> = warm_up.into_iter().collect();
        let documents = match self.plan.prompts() {
            PromptMode::Cold => {
                let recipe = self.recipe(cell.context, max_output_tokens).await?;
                let first = self.fresh_used;
                self.fresh_used += slots << 20;
                let fresh = |slot| Supply::fresh(recipe.clone(), slot, first, self.serving.clone());
                return Ok(Ok(Prepared { supplies: (0..slots).map(fresh).collect(), cold, findings: Vec::new() }));
            }
            PromptMode::Shared => 1,
            PromptMode::Unique => slots,
        };
        let scouts = match self.scout(cell.context, documents).await? {
            Ok(scouts) => scouts,
            Err(failure) => return Ok(Err(failure)),
        };
        let recipe = self.recipe(cell.context, max_output_tokens).await?;
        let mut hits = scouts.traces.iter().map(|trace| self.is_hit(cell.context, trace));
        let mut proven = hits.all(|hit| hit);
        if !proven {
            let missed = scouts.traces.iter().filter(|trace| !self.is_hit(cell.context, trace));
            cold.extend(missed.cloned());
            self.note_cold(cell.context, &cold);
            proven = match self.prove(cell.context, &scouts).await? {
                Ok(proven) => proven,
                Err(failure) => return Ok(Err(failure)),
            };
        }
        let findings = if proven { Vec::new() } else { vec![not_proven()] };
        let kept = |slot: u64| {
            let document = scouts.documents.get(slot as usize).or(scouts.documents.first());
            Supply::kept(recipe.clone(), slot, document.expect("there is at least one document").clone())
        };
        Ok(Ok(Prepared { supplies: (0..slots).map(kept).collect(), cold, findings }))
    }

    /// The cold request behind a prefill row that comes from warm-up: the first scout of its context.
    pub(super) async fn cold_scout(&mut self, context: Context) -> Result<Vec<RequestTrace>, Halt> {
        if self.plan.prompts() == PromptMode::Cold {
            let recipe = self.recipe(context, 1).await?;
            let mark = recipe.mark(Purpose::Prefill, self.edition(context));
            let trace = self.send_one(&recipe, mark, 0).await?;
            self.counted(context, &trace).await?;
            return Ok(vec![trace]);
        }
        self.scout(context, 1).await.map(|scouts| match scouts {
            Ok(scouts) => scouts.traces,
            Err(failed) => vec![failed_trace(failed)],
        })
    }

    /// One scout per document, sent again with a corrected length if that was off.
    async fn scout(&mut self, context: Context, documents: u64) -> Result<Result<Scouts, RequestFailure>, Halt> {
        loop {
            let recipe = self.recipe(context, 1).await?;
            let edition = self.edition(context);
            let mut scouts = Scouts { documents: Vec::new(), traces: Vec::new() };
            let mut running = JoinSet::new();
            for slot in 0..documents {
                let document = recipe.document(recipe.mark(Purpose::Decode, edition + slot));
                scouts.documents.push(document.clone());
                if running.len() == SCOUTS_AT_ONCE {
                    scouts.traces.extend(running.join_next().await.and_then(Result::ok));
                }
                let mut single = self.single()?;
                let body = recipe.body(&document, recipe.mark(Purpose::Decode, slot), SCOUT_QUESTION);
                running.spawn(async move { single.send(u32::try_from(slot).unwrap_or(u32::MAX), body).await });
            }
            while let Some(trace) = running.join_next().await {
                scouts.traces.extend(trace.ok());
            }
            if let Some(failed) = scouts.traces.iter().find_map(failure) {
                return Ok(Err(failed.clone()));
            }
            let Some(first) = scouts.traces.iter().find(|trace| trace.slot == 0) else { return Ok(Ok(scouts)) };
            if !self.counted(context, first).await? {
                return Ok(Ok(scouts));
            }
        }
    }

    /// One more request on the first document: it must hit. Its time to the first token is that of a cached admission.
    async fn prove(&mut self, context: Context, scouts: &Scouts) -> Result<Result<bool, RequestFailure>, Halt> {
        let recipe: Recipe = self.recipe(context, 1).await?;
        let Some(document) = scouts.documents.first() else { return Ok(Ok(false)) };
        let hits_before = self.prefix_hits().await;
        let body = recipe.body(document, recipe.mark(Purpose::Decode, 0), PROBE_QUESTION);
        let probe = self.single()?.send(0, body).await;
        if let Some(failed) = failure(&probe) {
            return Ok(Err(failed.clone()));
        }
        let counters = hits_before.zip(self.prefix_hits().await).zip(prompt_tokens(&probe));
        let by_counters = counters.is_some_and(|((before, after), prompt)| after - before >= prompt as f64 * HIT_SHARE);
        Ok(Ok(self.is_hit(context, &probe) || by_counters))
    }

    async fn prefix_hits(&self) -> Option<f64> {
        self.scraper()?.look().await.ok()?.prefix_hits
    }

    /// Whether a request found its prompt in the cache. Remembers how long such a request takes.
    fn is_hit(&self, context: Context, trace: &RequestTrace) -> bool {
        let usage = trace.usage.unwrap_or_default();
        if let (Some(cached), Some(prompt)) = (usage.cached_tokens, usage.prompt_tokens) {
            return cached as f64 >= prompt as f64 * HIT_SHARE;
        }
        let cold = self.admission(context).cold;
        ttft(trace).zip(cold).is_some_and(|(ttft, cold)| ttft.0 as f64 <= cold.0 as f64 * HIT_TTFT_SHARE)
    }

    /// Remembers how long a cold request of `context` takes.
    pub(super) fn note_cold(&mut self, context: Context, cold: &[RequestTrace]) {
        if let Some(longest) = cold.iter().filter_map(ttft).max() {
            self.admissions.entry(context).or_default().cold.get_or_insert(longest);
        }
    }
}

/// The documents of a cell and the requests that filled the cache with them.
#[derive(Debug)]
struct Scouts {
    documents: Vec<Document>,
    traces: Vec<RequestTrace>,
}

fn not_proven() -> Finding {
    Finding {
        code: "cache_not_proven".to_owned(),
        severity: Severity::Warning,
        text: "the prompt cache was filled before the cell, but a probe request showed no hit: ttft may be that of cold prompts"
            .to_owned(),
    }
}
