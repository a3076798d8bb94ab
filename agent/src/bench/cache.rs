//! Fills the prefix cache before a decode cell and proves that it is filled (method §3).

use bytes::Bytes;
use speedmatrix_shared::{
    event::LogLevel,
    id::CellId,
    plan::PromptMode,
    stats::verdict::Proof,
    trace::{RequestFailure, RequestTrace},
    units::Context,
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
/// A request hit the cache if at least this share of what should be cached came from it.
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
    pub(super) proof: Proof,
}

/// Why a cell could not be prepared.
#[derive(Debug)]
pub(super) enum Unprepared {
    /// The run can't go on.
    Halt(Halt),
    /// A scout or probe failed: so would the cell's requests.
    Request(RequestFailure),
}

impl From<Halt> for Unprepared {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl Bench {
    /// Prepares the prompts of `cell`. `warm_up` is the request that filled the cache for the prefill row, if one just did.
    pub(super) async fn prepare_cache(
        &mut self,
        cell: CellId,
        warm_up: Option<RequestTrace>,
    ) -> Result<Prepared, Unprepared> {
        let slots = u64::from(cell.concurrency.get());
        let documents = match self.plan.prompts() {
            PromptMode::Cold => return Ok(self.fresh_prompts(cell, slots).await?),
            PromptMode::Shared | PromptMode::Mixed(_) => 1,
            PromptMode::Unique => slots,
        };
        let scouts = self.scout(cell.context, documents).await?;
        if let Some(failed) = scouts.traces.iter().find_map(failure) {
            return Err(Unprepared::Request(failed.clone()));
        }
        let (hits, misses): (Vec<_>, Vec<_>) =
            scouts.traces.iter().cloned().partition(|trace| self.is_hit(cell.context, trace));
        let mut cold: Vec<RequestTrace> = warm_up.into_iter().collect();
        self.note(cell.context, &misses, &hits);
        let proven = misses.is_empty() || self.prove(cell.context, &scouts).await?;
        cold.extend(misses);
        let recipe = self.recipe(cell.context, self.plan.max_output_tokens()).await?;
        let first = scouts.documents.first().expect("every mode but cold has a document");
        let supplies = if let PromptMode::Mixed(_) = self.plan.prompts() {
            self.fresh_supplies(&recipe, &self.shared_part(first), slots)
        } else {
            let document = |slot: u64| scouts.documents.get(slot as usize).unwrap_or(first).clone();
            (0..slots).map(|slot| Supply::kept(recipe.clone(), slot, document(slot))).collect()
        };
        let proof = if proven { Proof::Shown } else { Proof::Missing };
        Ok(Prepared { supplies, cold, proof })
    }

    async fn fresh_prompts(&mut self, cell: CellId, slots: u64) -> Result<Prepared, Halt> {
        let recipe = self.recipe(cell.context, self.plan.max_output_tokens()).await?;
        let supplies = self.fresh_supplies(&recipe, &Bytes::new(), slots);
        Ok(Prepared { supplies, cold: Vec::new(), proof: Proof::NotWanted })
    }

    pub(super) fn fresh_supplies(&mut self, recipe: &Recipe, shared: &Bytes, slots: u64) -> Vec<Supply> {
        let first = self.fresh_used;
        self.fresh_used += slots << 20;
        let fresh = |slot| Supply::fresh(recipe.clone(), slot, shared.clone(), first, self.serving.clone());
        (0..slots).map(fresh).collect()
    }

    /// The beginning of a document that a mixed cell's requests share.
    fn shared_part(&self, document: &Document) -> Bytes {
        let chars = document.bytes.len() as f64 * self.plan.prompts().cached_share();
        document.beginning(chars.round() as usize)
    }

    /// One scout per document, sent again with a corrected length if that was off. The first one's trace comes first.
    pub(super) async fn scout(&mut self, context: Context, documents: u64) -> Result<Scouts, Halt> {
        loop {
            let recipe = self.recipe(context, 1).await?;
            let edition = self.edition(context);
            let mut scouts = Scouts { documents: Vec::new(), traces: Vec::new() };
            let mut running = JoinSet::new();
            for slot in 0..documents {
                let document = recipe.document(recipe.mark(Purpose::Decode, edition + slot));
                if running.len() == SCOUTS_AT_ONCE {
                    scouts.traces.extend(running.join_next().await.and_then(Result::ok));
                }
                let mut single = self.single()?;
                let body = recipe.body(&document, recipe.mark(Purpose::Decode, slot), SCOUT_QUESTION);
                running
                    .spawn(async move { single.send_patiently(u32::try_from(slot).unwrap_or(u32::MAX), body).await });
                scouts.documents.push(document);
            }
            while let Some(trace) = running.join_next().await {
                scouts.traces.extend(trace.ok());
            }
            scouts.traces.sort_by_key(|trace| trace.slot);
            let Some(first) = scouts.traces.first().filter(|first| failure(first).is_none()) else { return Ok(scouts) };
            if self.counted(context, first).await? {
                continue;
            }
            if let Some(document) = scouts.documents.first().filter(|_| self.prompts_told.insert(context)) {
                let (chars, sha256) = (document.bytes.len(), &document.sha256);
                let text = format!("the first prompt of {context} has {chars} characters, sha-256 {sha256}");
                self.teller.log(LogLevel::Info, text).await?;
            }
            return Ok(scouts);
        }
    }

    /// One more request on the first document: it must hit. Its time to the first token is that of a cached admission.
    async fn prove(&mut self, context: Context, scouts: &Scouts) -> Result<bool, Unprepared> {
        let recipe = self.recipe(context, 1).await?;
        let Some(document) = scouts.documents.first() else { return Ok(false) };
        let hits_before = self.prefix_hits().await;
        let body = match self.plan.prompts() {
            // The same document would hit as a whole: its shared part is to be proven.
            PromptMode::Mixed(_) => {
                let shared = self.shared_part(document);
                let mut probes = self.fresh_supplies(&recipe, &shared, 1);
                match probes.pop() {
                    Some(mut probe) => probe.next().await,
                    None => return Ok(false),
                }
            }
            _ => recipe.body(document, recipe.mark(Purpose::Decode, 0), PROBE_QUESTION),
        };
        let probe = self.single()?.send_patiently(0, body).await;
        if let Some(failed) = failure(&probe) {
            return Err(Unprepared::Request(failed.clone()));
        }
        let prompt = prompt_tokens(&probe).unwrap_or(context.tokens());
        let counters = hits_before.zip(self.prefix_hits().await);
        let by_counters = counters.is_some_and(|(before, after)| after - before >= prompt as f64 * self.hit_share());
        let proven = by_counters || self.is_hit(context, &probe);
        if proven {
            self.note(context, &[], &[probe]);
        }
        Ok(proven)
    }

    async fn prefix_hits(&self) -> Option<f64> {
        self.scraper()?.look().await.ok()?.prefix_hits
    }

    /// The share of a prompt from which on it counts as hit: of what should be cached.
    fn hit_share(&self) -> f64 {
        HIT_SHARE * self.plan.prompts().cached_share()
    }

    /// Whether a request found its prompt in the cache.
    fn is_hit(&self, context: Context, trace: &RequestTrace) -> bool {
        let usage = trace.usage.unwrap_or_default();
        if let (Some(cached), Some(prompt)) = (usage.cached_tokens, usage.prompt_tokens) {
            return cached as f64 >= prompt as f64 * self.hit_share();
        }
        if self.plan.prompts().cached_share() < 1.0 {
            return false; // a fresh part takes its time, hit or not
        }
        let cold = self.admission(context).cold;
        ttft(trace).zip(cold).is_some_and(|(ttft, cold)| ttft.0 as f64 <= cold.0 as f64 * HIT_TTFT_SHARE)
    }

    /// Remembers how long cold and cached requests of `context` take to their first token.
    pub(super) fn note(&mut self, context: Context, cold: &[RequestTrace], cached: &[RequestTrace]) {
        let known = self.admissions.entry(context).or_default();
        known.cold = cold.iter().filter_map(ttft).max().or(known.cold);
        known.cached = cached.iter().filter_map(ttft).max().or(known.cached);
    }
}

/// The documents of a cell and the requests that filled the cache with them.
#[derive(Debug)]
pub(super) struct Scouts {
    pub(super) documents: Vec<Document>,
    pub(super) traces: Vec<RequestTrace>,
}
