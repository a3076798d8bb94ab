//! Confidence intervals of a rate (method §6).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::{stats::window::Window, units::Nanos};

/// Numbers of blocks to try, from fine to coarse; the last is the fewest an interval may rest on. Not finer: more than
/// some 16 blocks hardly narrow an interval (Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", 1982),
/// but they are short, and what varies slowly, as the text of a request does, hides between them.
const BLOCK_COUNTS: [u32; 4] = [16, 12, 10, 8];
/// Blocks whose neighbours are correlated more than this are too short to count as independent.
const MAX_LAG1: f64 = 0.2;
/// Fewest repeats for an interval between repeats.
const MIN_REPEATS: usize = 3;
/// Both tails of a 95 % interval leave 2.5 %.
const UPPER_TAIL: f64 = 0.975;

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalKind {
    /// Batch means inside one window: no run-to-run variation in it.
    Blocks,
    /// Repeats of the whole cell.
    Repeats,
}

impl IntervalKind {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Blocks => "within one window, without run-to-run variation",
            Self::Repeats => "between repeats",
        }
    }
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

impl Interval {
    /// The interval of the mean rate in a window by batch means (Law, "Simulation Modeling and Analysis", §9.5.3):
    /// the largest blocks' number whose neighbours are nearly uncorrelated. `None` if even 8 blocks are correlated,
    /// or if nothing arrived.
    pub fn of_blocks(window: Window, arrivals: &[(Nanos, f64)]) -> Option<Self> {
        if window.secs() <= 0.0 || !arrivals.iter().any(|(at, _)| window.contains(*at)) {
            return None;
        }
        BLOCK_COUNTS.into_iter().find_map(|blocks| {
            let sums = window.blocks(blocks, arrivals);
            let lag1 = lag1_autocorrelation(&sums);
            if lag1 >= MAX_LAG1 {
                return None;
            }
            let block_secs = window.secs() / f64::from(blocks);
            let rates: Vec<f64> = sums.into_iter().map(|sum| sum / block_secs).collect();
            let half_width = half_width(&rates)? * widening(lag1, blocks);
            Some(Self { half_width, n: blocks, kind: IntervalKind::Blocks })
        })
    }

    /// The interval over repeats of the whole cell; `None` below 3 of them.
    pub fn of_repeats(rates: &[f64]) -> Option<Self> {
        if rates.len() < MIN_REPEATS {
            return None;
        }
        let n = u32::try_from(rates.len()).ok()?;
        Some(Self { half_width: half_width(rates)?, n, kind: IntervalKind::Repeats })
    }
}

/// How much wider the interval of a mean is because neighbours are alike: √((1 + ρ) ÷ (1 − ρ)), as for a first-order
/// autoregression (Law, §4.4). The ρ of few blocks comes out too low by (1 + 4ρ) ÷ n (Marriott and Pope, "Bias in the
/// Estimation of Autocorrelations", 1954), and the number of blocks was chosen because it did; so it is corrected first.
/// Neighbours that are unlike don't make it narrower: that would trust their regularity.
fn widening(lag1: f64, blocks: u32) -> f64 {
    let corrected = lag1 + (1.0 + 4.0 * lag1.max(0.0)) / f64::from(blocks);
    let rho = corrected.max(0.0);
    ((1.0 + rho) / (1.0 - rho)).sqrt()
}

/// Student's t: t(0.975, n − 1) · s ÷ √n.
fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t_quantile(n - 1.0)? * (variance / n).sqrt();
    half.is_finite().then_some(half)
}

fn t_quantile(degrees_of_freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).ok().map(|t| t.inverse_cdf(UPPER_TAIL))
}

/// Correlation of neighbours; 0 for a constant series, whose blocks can't be too short.
fn lag1_autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let neighbours = values.iter().zip(values.iter().skip(1));
    let covariance: f64 = neighbours.map(|(a, b)| (a - mean) * (b - mean)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of 0–1 that look random (SplitMix64).
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        (1..).map(move |n: u64| {
            let mut z = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        })
    }

    /// 3,000 arrivals, one each 10 ms; `memory` of each amount stays in the next.
    fn arrivals(seed: u64, memory: f64) -> Vec<(Nanos, f64)> {
        let mut level = 0.0;
        let amounts = noise(seed).map(move |x| {
            level = memory * level + (x - 0.5);
            10.0 + level
        });
        amounts.take(3_000).zip(0..).map(|(amount, n)| (Nanos::from_millis(10 * n), amount)).collect()
    }

    const WINDOW: Window = Window { start: Nanos(0), end: Nanos::from_secs(30) };

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        let check = |df: f64, wanted: f64| assert!(t_quantile(df).is_some_and(|t| (t - wanted).abs() < 1e-4), "{df}");
        check(2.0, 4.302_65);
        check(7.0, 2.364_62);
        check(9.0, 2.262_16);
        check(63.0, 1.998_34);
        check(199.0, 1.971_96);
    }

    #[test]
    fn repeats_need_three() {
        assert_eq!(Interval::of_repeats(&[1.0, 2.0]), None);
        let got = Interval::of_repeats(&[1.0, 2.0, 3.0]).map(|i| (i.half_width * 1e4).round());
        assert_eq!(got, Some(24_841.0), "4.30265 ÷ √3");
    }

    #[test]
    fn intervals_hold_the_true_rate_about_as_often_as_they_say() {
        let check = |memory: f64, at_least: usize| {
            let holds = |seed: &u64| {
                let arrivals = arrivals(*seed, memory);
                let rate = arrivals.iter().map(|(_, amount)| amount).sum::<f64>() / 30.0;
                Interval::of_blocks(WINDOW, &arrivals).is_some_and(|i| (rate - 1_000.0).abs() <= i.half_width)
            };
            let held = (0..200).map(|seed| seed * 7_919).filter(holds).count();
            assert!(held >= at_least, "memory {memory}: {held} of 200");
        };
        check(0.0, 186);
        check(0.9, 186);
        check(0.98, 182);
    }

    #[test]
    fn a_drift_has_no_interval() {
        let drift: Vec<(Nanos, f64)> = (0..3_000).map(|n| (Nanos::from_millis(10 * n), n as f64)).collect();
        assert_eq!(Interval::of_blocks(WINDOW, &drift), None);
        assert_eq!(Interval::of_blocks(WINDOW, &[]), None);
        let steady: Vec<(Nanos, f64)> = (0..3_000).map(|n| (Nanos::from_millis(10 * n), 1.0)).collect();
        assert!(Interval::of_blocks(WINDOW, &steady).is_some_and(|i| i.half_width < 1.0));
    }
}
