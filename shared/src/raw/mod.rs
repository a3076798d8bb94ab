//! What was recorded of a cell: everything that its result is computed from, kept to look closer and to compute it again
//! under later rules. [`RawCell::result`] is the only way from a record to a result, also while a run is measured.

pub mod codec;
mod varint;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{
    finding::rules::Asked,
    gpu::GpuRecord,
    stats::{
        cell::CellResult,
        counter::{self, EngineRises},
        decode::{DecodeInput, EngineSeries},
        gpu::{GpuStats, Work},
        mixed::Beside,
        speculation::Speculation,
        verdict::{Proof, RampEnd},
        window::Window,
    },
    trace::{RequestEnd, RequestFailure, RequestTrace},
    trust::ClientWatch,
    units::{Concurrency, Nanos},
};

/// The record of one finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawCell {
    /// What the plan asked.
    pub asked: Asked,
    /// The requests that count: of ramp and window, or the cold ones of a prefill cell.
    pub traces: Vec<RequestTrace>,
    /// What became of the cell.
    pub course: Course,
    /// What the GPUs told, if the server's are on the machine that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Box<GpuRecord>>,
}

/// How a cell went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "went")]
pub enum Course {
    /// Cold requests, one after the other.
    Prefill,
    /// A window was measured.
    Decode(Box<Decode>),
    /// It was given up: no request would succeed.
    GivenUp {
        /// Why.
        failure: RequestFailure,
    },
    /// It could not begin because the engine would not become idle.
    NotDrained {
        /// Requests being worked on at the end of the wait.
        running: f64,
        /// Requests that waited then.
        waiting: f64,
    },
}

/// The circumstances of a decode cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decode {
    /// Requests at once that were asked for: C.
    pub concurrency: Concurrency,
    /// Cold requests that filled the prompt cache before.
    pub scouts: Vec<RequestTrace>,
    /// Whether the cache is known to have been filled.
    pub proof: Proof,
    /// First send of the ramp.
    pub ramp_start: Nanos,
    /// How the ramp ended.
    pub ramp: RampEnd,
    /// The measuring window.
    pub window: Window,
    /// What the engine told about itself.
    pub engine: Engine,
    /// What is known of this client meanwhile.
    #[serde(default)]
    pub client: ClientWatch,
    /// The cold prompts of a mixed cell.
    #[serde(default, skip_serializing_if = "Prompts::is_empty")]
    pub prompts: Prompts,
}

/// Cold prompts of a mixed cell: requests of one output token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompts {
    /// Sent to the idle server before.
    pub alone: Vec<RequestTrace>,
    /// Sent while the background decoded, one after the other.
    pub arriving: Vec<RequestTrace>,
}

impl Prompts {
    /// Whether there is none: the cell is no mixed one.
    pub const fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.arriving.is_empty()
    }
}

/// What the engine told about itself: times and values, in order of time; empty where it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Running requests.
    pub running: Vec<(Nanos, f64)>,
    /// Waiting requests.
    pub waiting: Vec<(Nanos, f64)>,
    /// Use of the KV cache, 0–1.
    pub kv_usage: Vec<(Nanos, f64)>,
    /// Requests thrown out and started again, since the engine started.
    #[serde(default)]
    pub preemptions: Vec<(Nanos, f64)>,
    /// Output tokens for all its users, since the engine started.
    #[serde(default)]
    pub output_tokens: Vec<(Nanos, f64)>,
    /// When its counters of tokens move.
    #[serde(default)]
    pub counting: Counting,
    /// Speculation: drafts that were verified, since the engine started.
    #[serde(default)]
    pub drafts: Vec<(Nanos, f64)>,
    /// Speculation: tokens in them.
    #[serde(default)]
    pub draft_tokens: Vec<(Nanos, f64)>,
    /// Speculation: of these, accepted.
    #[serde(default)]
    pub accepted_tokens: Vec<(Nanos, f64)>,
    /// Speculation: tokens per step of late, for engines without such counters.
    #[serde(default)]
    pub accept_length: Vec<(Nanos, f64)>,
    /// Output tokens per second of late, for engines that tell it.
    #[serde(default)]
    pub gen_throughput: Vec<(Nanos, f64)>,
}

/// When an engine's counters of tokens move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// With each of its steps.
    #[default]
    EachStep,
    /// By a whole request when that ends: over a window they tell ratios, but not how much was made in it.
    RequestEnd,
}

impl RawCell {
    /// The result under the rules of this version.
    pub fn result(&self) -> CellResult {
        let result = match &self.course {
            Course::Prefill => CellResult::prefill(&self.traces, self.asked),
            Course::Decode(decode) => {
                let input = decode.input(&self.traces, self.asked);
                let mut result = CellResult::decode(&input, decode.ramp, self.asked).with_proof(decode.proof);
                result.stats = result.stats.with_speculation(Speculation::of(&decode.engine, decode.window));
                result.checked_by(decode.rises()).with_prompts(&decode.prompts.arriving)
            }
            Course::GivenUp { failure } => CellResult::given_up(failure, &self.traces),
            Course::NotDrained { running, waiting } => CellResult::not_drained(*running, *waiting),
        };
        let gpus = self.gpus.as_ref().and_then(|record| self.gpu_stats(record, &result));
        result.on_gpus(gpus)
    }

    fn gpu_stats(&self, record: &GpuRecord, result: &CellResult) -> Option<GpuStats> {
        match &self.course {
            Course::Decode(decode) => {
                let (window, tokens) = (decode.window, result.stats.output_tokens);
                GpuStats::of(record, Work { window, spans: &[window], tokens })
            }
            Course::Prefill => {
                let good = self.traces.iter().filter(|trace| !matches!(trace.end, RequestEnd::Failed(_)));
                let span = |trace: &RequestTrace| Some(Window { start: trace.send_started?, end: trace.ended });
                let spans: Vec<Window> = good.clone().filter_map(span).collect();
                let start = spans.iter().map(|span| span.start).min()?;
                let window = Window { start, end: spans.iter().map(|span| span.end).max()? };
                // Only prompts that were really computed, and counted by the server.
                let tokens = good.map(|trace| trace.usage?.prompt_tokens).sum::<Option<u64>>();
                let tokens = tokens.filter(|_| result.stats.total_tok_s.is_some());
                GpuStats::of(record, Work { window, spans: &spans, tokens })
            }
            Course::GivenUp { .. } | Course::NotDrained { .. } => None,
        }
    }
}

impl Decode {
    fn rises(&self) -> EngineRises {
        EngineRises {
            preemptions: counter::increase(&self.engine.preemptions, self.window),
            output_tokens: match self.engine.counting {
                Counting::EachStep => counter::least_increase(&self.engine.output_tokens, self.window),
                Counting::RequestEnd => None,
            },
            restarted: counter::falls(&self.engine.output_tokens, self.window),
        }
    }

    /// What its numbers are computed from.
    pub(crate) fn input<'a>(&'a self, traces: &'a [RequestTrace], asked: Asked) -> DecodeInput<'a> {
        let Engine { running, waiting, kv_usage, .. } = &self.engine;
        DecodeInput {
            traces,
            scouts: &self.scouts,
            ramp_start: self.ramp_start,
            window: self.window,
            concurrency: self.concurrency,
            engine: EngineSeries { running, waiting, kv_usage },
            client: self.client,
            load: asked.load,
            slo: asked.slo,
            beside: Beside { alone: &self.prompts.alone, arriving: &self.prompts.arriving },
        }
    }
}
