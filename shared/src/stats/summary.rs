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
