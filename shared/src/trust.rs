//! How far the client itself can be trusted (method §2.2 and §7).

use serde::{Deserialize, Serialize};

use crate::trace::StampSource;

/// The client measured against the built-in simulator's own stamps, on this machine, before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCheck {
    /// Streams at once.
    pub streams: u32,
    /// Events with text per second that came.
    pub events_per_s: f64,
    /// Our time of the first token − the simulator's, median, seconds.
    pub ttft_bias_s: f64,
    /// The same without its sign, 99th percentile (maximum below 100 requests), seconds.
    pub ttft_error_p99_s: f64,
    /// Standard deviation of our gap − the simulator's mean gap over a request, seconds.
    pub gap_sigma_s: Option<f64>,
    /// Processor time of the measuring threads per event, seconds; `None` where the system doesn't tell.
    pub cpu_per_event_s: Option<f64>,
    /// Who stamped.
    pub stamps: StampSource,
}

/// What is known of the client while a cell was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientWatch {
    /// [`ClientCheck::ttft_bias_s`] of the run.
    pub ttft_bias_s: Option<f64>,
    /// Processor time of the measuring threads in the window ÷ what they could have had (0–1).
    pub cpu_share: Option<f64>,
    /// Lateness of a timer on the measuring threads in the window, 99th percentile, seconds of real time.
    pub timer_lag_p99_s: Option<f64>,
}
