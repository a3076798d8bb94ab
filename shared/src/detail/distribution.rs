//! How values spread, in few numbers: bins for a histogram, and points of the cumulative share (ECDF).

use serde::{Deserialize, Serialize};

use crate::stats::summary::{Summary, Weighted};

/// Most bins of a histogram: more are thinner than a finger on a telephone.
const MOST_BINS: usize = 40;
/// Fewest bins, where values differ.
const FEWEST_BINS: usize = 5;
/// Most points of a cumulative share.
const MOST_POINTS: usize = 200;
/// From this ratio of largest to smallest on, bins are of equal ratio: else the long tail takes all the width.
const LOG_FROM_RATIO: f64 = 20.0;

/// What is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Time to first token of the ramp's simultaneous requests, seconds.
    TtftBurst,
    /// Time to first token of restarts in the window, seconds.
    TtftSteady,
    /// Time to first token with a cold prompt cache, seconds.
    TtftCold,
    /// Gap per token in the window, seconds.
    TokenGap,
    /// Tokens per second of each slot while text flows.
    SlotRate,
}

impl Kind {
    /// Plain words, for a heading.
    pub const fn label(self) -> &'static str {
        match self {
            Self::TtftBurst => "Time to first token, start burst",
            Self::TtftSteady => "Time to first token, restarts in the window",
            Self::TtftCold => "Time to first token, cold cache",
            Self::TokenGap => "Gap per token",
            Self::SlotRate => "Speed of each slot",
        }
    }

    /// The values, counted: `requests`, `tokens`, `slots`.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::TtftBurst | Self::TtftSteady | Self::TtftCold => "requests",
            Self::TokenGap => "tokens",
            Self::SlotRate => "slots",
        }
    }
}

/// How the bins run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Bins of equal width.
    Linear,
    /// Bins of equal ratio.
    Log,
}

/// How values spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Of what.
    pub kind: Kind,
    /// In seven numbers; the same as in the cell's result.
    pub summary: Summary,
    /// How the bins run from the smallest to the largest value.
    pub scale: Scale,
    /// What falls into each bin; each reaches to the begin of the next, the last one includes the largest value.
    pub bins: Vec<f64>,
    /// Values, ascending, and the share (0–1) of all that is not larger; the last share is 1.
    pub ecdf: Vec<(f64, f64)>,
}

/// Values to be distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct Values(Vec<Weighted>);

impl Values {
    /// Values that count once.
    pub fn each(values: impl IntoIterator<Item = f64>) -> Self {
        Self::weighted(values.into_iter().map(|value| Weighted { value, weight: 1.0 }))
    }

    /// Values that count by their weight. What is not finite is no measurement.
    pub fn weighted(values: impl IntoIterator<Item = Weighted>) -> Self {
        let counts = |v: &Weighted| v.value.is_finite() && v.weight.is_finite() && v.weight > 0.0;
        let mut values: Vec<Weighted> = values.into_iter().filter(counts).collect();
        values.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
        Self(values)
    }
}

impl Distribution {
    /// The distribution of `values`; `None` if there is none.
    pub fn of(kind: Kind, Values(values): Values) -> Option<Self> {
        let summary = Summary::of_weighted(values.iter().copied())?;
        let scale =
            if summary.min > 0.0 && summary.max / summary.min >= LOG_FROM_RATIO { Scale::Log } else { Scale::Linear };
        Some(Self { kind, summary, scale, bins: bins(&values, summary, scale), ecdf: ecdf(&values) })
    }

    /// Where each bin begins and ends.
    pub fn edges(&self) -> Vec<(f64, f64)> {
        let (lo, hi, n) = (self.summary.min, self.summary.max, self.bins.len() as f64);
        let edge = |i: usize| {
            let share = i as f64 / n;
            match self.scale {
                // The ends are exact: a largest value must not fall out of the last bin by rounding.
                _ if i == 0 => lo,
                _ if i == self.bins.len() => hi,
                Scale::Linear => lo + (hi - lo) * share,
                Scale::Log => lo * (hi / lo).powf(share),
            }
        };
        (0..self.bins.len()).map(|i| (edge(i), edge(i + 1))).collect()
    }
}

/// Twice the cube root of n bins (the Rice rule): it needs no guess about the shape.
fn bins(values: &[Weighted], Summary { n, min, max, .. }: Summary, scale: Scale) -> Vec<f64> {
    if max <= min {
        return vec![values.iter().map(|v| v.weight).sum()];
    }
    let count = ((2.0 * (n as f64).cbrt()).ceil() as usize).clamp(FEWEST_BINS, MOST_BINS);
    let mut sums = vec![0.0; count];
    for v in values {
        let share = match scale {
            Scale::Linear => (v.value - min) / (max - min),
            Scale::Log => (v.value / min).ln() / (max / min).ln(),
        };
        let bin = ((share * count as f64) as usize).min(count - 1);
        if let Some(sum) = sums.get_mut(bin) {
            *sum += v.weight;
        }
    }
    sums
}

/// A point for each value where there are few, else for evenly spaced shares; first and last always.
fn ecdf(sorted: &[Weighted]) -> Vec<(f64, f64)> {
    let total: f64 = sorted.iter().map(|v| v.weight).sum();
    let step = if sorted.len() <= MOST_POINTS { 0.0 } else { 1.0 / (MOST_POINTS - 2) as f64 };
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(sorted.len().min(MOST_POINTS));
    let (mut sum, mut due) = (0.0, 0.0);
    for (n, v) in sorted.iter().enumerate() {
        sum += v.weight;
        let is_last = n + 1 == sorted.len();
        let share = if is_last { 1.0 } else { (sum / total).min(1.0) };
        match points.last_mut() {
            // The share of a value counts all that is equal to it.
            Some(last) if last.0.total_cmp(&v.value).is_eq() => last.1 = share,
            _ if is_last || share >= due => {
                points.push((v.value, share));
                due = share + step;
            }
            _ => {}
        }
    }
    points
}
