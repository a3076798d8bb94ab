//! Order statistics of a sample.

use serde::{Deserialize, Serialize};

/// A sample in seven numbers. Percentiles that too few values support are absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Values, at least 1.
    pub n: u64,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile; absent below n = 10.
    pub p90: Option<f64>,
    /// 99th percentile; absent below n = 100.
    pub p99: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// A value without its sample, as imported pages give it: n is 1 because it must be something, and what
    /// shows n leaves it out for imported runs ([`crate::metric::Metric::n`]).
    pub const fn point(value: f64) -> Self {
        Self { n: 1, min: value, mean: value, p50: value, p90: None, p99: None, max: value }
    }
}
