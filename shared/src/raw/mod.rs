//! What was recorded of a cell: everything that its result is computed from, kept to look closer and to compute it again
//! under later rules. [`RawCell::result`] is the only way from a record to a result, also while a run is measured.

pub mod codec;
mod varint;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{
    finding::rules::Asked,
    plan::Load,
    stats::{
        cell::CellResult,
        counter::{self, EngineRises},
        decode::{DecodeInput, EngineSeries},
        verdict::{Proof, RampEnd},
        window::Window,
    },
    trace::{RequestFailure, RequestTrace},
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
}

impl RawCell {
    /// The result under the rules of this version.
    pub fn result(&self) -> CellResult {
        match &self.course {
            Course::Prefill => CellResult::prefill(&self.traces, self.asked),
            Course::Decode(decode) => {
                let input = decode.input(&self.traces, self.asked.load);
                let result = CellResult::decode(&input, decode.ramp, self.asked).with_proof(decode.proof);
                result.checked_by(decode.rises())
            }
            Course::GivenUp { failure } => CellResult::given_up(failure, &self.traces),
            Course::NotDrained { running, waiting } => CellResult::not_drained(*running, *waiting),
        }
    }
}

impl Decode {
    fn rises(&self) -> EngineRises {
        EngineRises {
            preemptions: counter::increase(&self.engine.preemptions, self.window),
            output_tokens: counter::increase(&self.engine.output_tokens, self.window),
        }
    }

    /// What its numbers are computed from.
    pub(crate) fn input<'a>(&'a self, traces: &'a [RequestTrace], load: Load) -> DecodeInput<'a> {
        let Engine { running, waiting, kv_usage, .. } = &self.engine;
        DecodeInput {
            traces,
            scouts: &self.scouts,
            ramp_start: self.ramp_start,
            window: self.window,
            concurrency: self.concurrency,
            engine: EngineSeries { running, waiting, kv_usage },
            client: self.client,
            load,
        }
    }
}
