//! What a running cell shows from moment to moment. Gauges are never facts: the latest wins, any may be lost.

use serde::{Deserialize, Serialize};

use crate::{
    gpu::{GpuReading, Throttle, total_power},
    id::CellId,
    units::Nanos,
};

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
    /// The engine's own count of running requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Used share (0–1) of the engine's KV cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_usage: Option<f64>,
    /// What the server's GPUs do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuGauge>,
    /// How late a timer on the measuring threads woke up since the last gauge, at most; seconds of real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_s: Option<f64>,
}

/// The server's GPUs together, now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuGauge {
    /// Power of all, watts; `None` if one does not tell.
    pub power_w: Option<f64>,
    /// Temperature of the hottest, °C.
    pub temperature_c: Option<f64>,
    /// What holds the clock of any of them back; `None` if none tells.
    pub throttle: Option<Throttle>,
}

impl GpuGauge {
    /// What several GPUs tell together; `None` if nothing.
    pub fn of(gpus: &[GpuReading]) -> Option<Self> {
        let power = total_power(gpus);
        let gauge = Self {
            power_w: power.watts.filter(|_| power.missing == 0),
            temperature_c: gpus.iter().filter_map(|gpu| gpu.temperature_c).reduce(f64::max),
            throttle: gpus.iter().filter_map(|gpu| gpu.throttle).reduce(|a, b| Throttle(a.0 | b.0)),
        };
        (gauge != Self::default()).then_some(gauge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_told_of_together() {
        let gpu = |power_w, temperature_c, bits| GpuReading {
            power_w,
            temperature_c: Some(temperature_c),
            throttle: Some(Throttle(bits)),
            ..GpuReading::default()
        };
        let both = GpuGauge::of(&[gpu(Some(300.0), 61.0, 0), gpu(Some(200.0), 70.0, 4)]);
        let wanted = GpuGauge { power_w: Some(500.0), temperature_c: Some(70.0), throttle: Some(Throttle(4)) };
        assert_eq!(both, Some(wanted));
        // The power of some is not that of all.
        let silent = GpuGauge::of(&[gpu(Some(300.0), 61.0, 0), gpu(None, 70.0, 4)]);
        assert_eq!(silent.and_then(|gauge| gauge.power_w), None);
        assert_eq!(GpuGauge::of(&[GpuReading::default()]), None);
    }

    #[test]
    fn gauges_of_an_agent_that_knew_less_are_read() {
        let old = r#"{"at":1,"cell":"decode-8K-1","phase":"ramp","phase_for_s":1.0,"tok_s":null,"in_flight":1,
            "decoding":0,"waiting":null,"window_tok_s":null}"#;
        let gauge: Gauge = serde_json::from_str(old).unwrap();
        assert_eq!((gauge.running, gauge.gpu, gauge.lateness_s), (None, None, None));
    }
}
