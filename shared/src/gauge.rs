//! What a running cell shows from moment to moment. Gauges are never facts: the latest wins, any may be lost.

use serde::{Deserialize, Serialize};

use crate::{id::CellId, units::Nanos};

/// What a running cell is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellPhase {
    /// Waiting until the engine is idle.
    Drain,
    /// Filling the prefix cache (scout requests) or sending cold prefill requests.
    Cache,
    /// All requests are being sent; waiting until each has a token.
    Ramp,
    /// Inside the measuring window.
    Measure,
    /// Closing the requests.
    Stop,
}

impl CellPhase {
    /// One plain word.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Cache => "cache",
            Self::Ramp => "ramp",
            Self::Measure => "measure",
            Self::Stop => "stop",
        }
    }
}

/// The running cell, now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// When.
    pub at: Nanos,
    /// Which cell.
    pub cell: CellId,
    /// What it is doing.
    pub phase: CellPhase,
    /// Seconds since that phase began.
    pub phase_for_s: f64,
    /// Output tokens per second over the last second, all slots.
    pub tok_s: Option<f64>,
    /// Requests sent and not ended.
    pub in_flight: u32,
    /// Of these, requests that have a token.
    pub decoding: u32,
    /// The engine's own count of waiting requests.
    pub waiting: Option<u32>,
    /// Tokens so far in the window ÷ time so far in it; `None` outside the window.
    pub window_tok_s: Option<f64>,
}
