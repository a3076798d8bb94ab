//! Facts of a run: numbered without gaps, stored before they are told, never dropped.

use serde::{Deserialize, Serialize};

use crate::{id::CellId, plan::RunPlan, stats::cell::CellResult, target::TargetFacts, units::Nanos};

/// Where a run's numbers come from. Shown wherever the run is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Origin {
    /// Measured against a real server.
    Measured,
    /// Measured against the simulator; times and rates are on its clock.
    Simulated {
        /// Simulated seconds per real second.
        clock_factor: f64,
    },
    /// Read from a published page or a file.
    Imported,
}

/// Why a planned cell was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Prompt and answer are longer than the model's context.
    ModelLength,
    /// The KV cache can't hold even one such request.
    KvCapacity,
    /// A shorter context was already refused as too long.
    ContextRefused,
    /// The user skipped it.
    User,
}

impl SkipReason {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ModelLength => "longer than the model's context",
            Self::KvCapacity => "does not fit the KV cache",
            Self::ContextRefused => "a shorter context was already refused",
            Self::User => "skipped by the user",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RunOutcome {
    /// Every planned cell has a row.
    Finished,
    /// Stopped by a person or by Ctrl-C; finished cells are kept.
    Cancelled,
    /// It could not be measured at all.
    Failed {
        /// What was tried, what came, what to do.
        reason: String,
    },
    /// The agent ended in the middle; written when it next starts.
    Interrupted,
}

/// How a log line weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Progress.
    Info,
    /// Something to look at.
    Warning,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RunEvent {
    /// The first fact.
    RunStarted {
        /// What is to be measured.
        plan: RunPlan,
        /// Wall time, milliseconds since 1970 UTC: the only wall time of a run.
        started_unix_ms: u64,
        /// Name and version of the measuring program.
        tool: String,
    },
    /// What the target is.
    Probed {
        /// Everything found.
        facts: Box<TargetFacts>,
        /// Real server or simulator.
        origin: Origin,
    },
    /// A prompt length was adjusted to the target's tokenizer.
    Calibrated {
        /// Tokens asked for.
        context_tokens: u64,
        /// Tokens the server really counted; `None` if it does not tell.
        real_tokens: Option<u64>,
    },
    /// A planned cell will not be measured.
    CellSkipped {
        /// Which.
        cell: CellId,
        /// Why.
        reason: SkipReason,
        /// The reason with its numbers.
        text: String,
    },
    /// A cell began.
    CellStarted {
        /// Which.
        cell: CellId,
    },
    /// The ramp of the running cell is over and its window opens.
    RampDone {
        /// Which.
        cell: CellId,
        /// First send to window, seconds.
        ramp_s: f64,
    },
    /// A cell is measured.
    CellFinished {
        /// Which.
        cell: CellId,
        /// Its numbers.
        result: Box<CellResult>,
    },
    /// A line for the log.
    Log {
        /// Weight.
        level: LogLevel,
        /// One sentence.
        text: String,
    },
    /// The last fact.
    RunFinished {
        /// How it ended.
        outcome: RunOutcome,
    },
}

/// A fact with its number and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// 0, 1, 2 … without gaps.
    pub seq: u64,
    /// When, since the run began.
    pub at: Nanos,
    /// What.
    pub event: RunEvent,
}
