//! Confidence intervals of a rate (method §6).

use serde::{Deserialize, Serialize};

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalKind {
    /// Batch means inside one window: no run-to-run variation in it.
    Blocks,
    /// Repeats of the whole cell.
    Repeats,
}

/// A two-sided 95 % interval, symmetric around its estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Half of its width, in the unit of the estimate.
    pub half_width: f64,
    /// Blocks or repeats that it rests on.
    pub n: u32,
    /// How it was made.
    pub kind: IntervalKind,
}
