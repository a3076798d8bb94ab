//! What an agent tells those who watch a run.

use serde::{Deserialize, Serialize};

use crate::{event::Envelope, gauge::Gauge, state::RunState};

/// What the live socket tells. First `Hello`, then `Snapshot`, then events after it and gauges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ServerMessage {
    /// The first message.
    Hello {
        /// [`PROTOCOL`](super::PROTOCOL) of the agent.
        protocol: u32,
        /// Version of the agent.
        version: String,
    },
    /// All that happened so far.
    Snapshot {
        /// The state to go on from.
        state: Box<RunState>,
        /// Time on the run's clock at which this was sent, nanoseconds.
        now_ns: u64,
    },
    /// One more fact.
    Event {
        /// The fact.
        envelope: Envelope,
    },
    /// The running cell, now; also a sign of life.
    Gauge {
        /// The latest values.
        gauge: Gauge,
    },
    /// How many watch; sent at least every 5 seconds, so that silence means a lost connection.
    Presence {
        /// Live sockets on this run.
        watching: u32,
        /// Time on the run's clock, nanoseconds.
        now_ns: u64,
        /// Why what happened last is not stored, and so not told yet, in a sentence; `None`: all is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unstored: Option<String>,
    },
}
