//! Order statistics of a sample: type 7 quantiles, plain and weighted.

use serde::{Deserialize, Serialize};

/// Fewest values for a 90th percentile: below it would be the largest value's guess.
const P90_FROM: u64 = 10;
/// Fewest values for a 99th percentile.
const P99_FROM: u64 = 100;

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

/// A value that counts several times, or a fraction of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// The value.
    pub value: f64,
    /// How many times it counts; 0 or less: not at all.
    pub weight: f64,
}

impl Summary {
    /// The summary of `values`; `None` if there is none. Values that are not finite are no measurements.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len() as u64;
        let mean = sorted.iter().sum::<f64>() / n as f64;
        Self::from_parts(n, mean, |q| quantile_sorted(&sorted, q))
    }

    /// The summary of a sample in which each value counts `weight` times: for whole weights the same as of the
    /// sample written out. n is the sum of the weights, rounded.
    pub fn of_weighted(values: impl IntoIterator<Item = Weighted>) -> Option<Self> {
        let counts = |v: &Weighted| v.value.is_finite() && v.weight > 0.0 && v.weight.is_finite();
        let mut sorted: Vec<Weighted> = values.into_iter().filter(counts).collect();
        sorted.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
        let mean = sorted.iter().map(|v| v.value * v.weight).sum::<f64>();
        // From here on each weight is the sum up to and with its value.
        let mut total = 0.0;
        for v in &mut sorted {
            total += v.weight;
            v.weight = total;
        }
        let n = if sorted.is_empty() { 0 } else { (total.round() as u64).max(1) };
        Self::from_parts(n, mean / total, |q| quantile_cumulated(&sorted, q))
    }

    /// A value without its sample, as imported pages give it: n is 1 because it must be something, and what
    /// shows n leaves it out for imported runs ([`crate::metric::Metric::n`]).
    pub const fn point(value: f64) -> Self {
        Self { n: 1, min: value, mean: value, p50: value, p90: None, p99: None, max: value }
    }

    fn from_parts(n: u64, mean: f64, quantile: impl Fn(f64) -> Option<f64>) -> Option<Self> {
        let (min, p50, max) = (quantile(0.0)?, quantile(0.5)?, quantile(1.0)?);
        // A mean of equal values may be off by rounding: it still lies between them.
        let mean = mean.clamp(min, max);
        let hidden_below = |fewest: u64, q: f64| if n >= fewest { quantile(q) } else { None };
        Some(Self { n, min, mean, p50, p90: hidden_below(P90_FROM, 0.9), p99: hidden_below(P99_FROM, 0.99), max })
    }
}

/// The quantile `q` (0–1) of ascending values by linear interpolation between order statistics: type 7 of
/// Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996). `None` without values.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    interpolate(last as f64, q, |position| sorted.get(position as usize).copied())
}

/// The same over values that come with the sum of all weights up to and with them.
fn quantile_cumulated(cumulated: &[Weighted], q: f64) -> Option<f64> {
    let last = cumulated.last()?;
    interpolate((last.weight - 1.0).max(0.0), q, |position| {
        let index = cumulated.partition_point(|v| v.weight <= position);
        Some(cumulated.get(index).unwrap_or(last).value)
    })
}

fn interpolate(last_position: f64, q: f64, value_at: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let position = last_position * q.clamp(0.0, 1.0);
    let below = value_at(position.floor())?;
    let above = value_at(position.ceil())?;
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn summaries_of_known_samples() {
        let check = |values: &[f64], wanted: Option<(u64, f64, f64, f64)>| {
            let got = Summary::of(values.iter().copied());
            assert_eq!(got.map(|s| (s.n, s.min, s.p50, s.max)), wanted);
        };
        check(&[], None);
        check(&[f64::NAN], None);
        check(&[3.0], Some((1, 3.0, 3.0, 3.0)));
        check(&[4.0, 1.0, f64::INFINITY, 2.0, 3.0], Some((4, 1.0, 2.5, 4.0)));
    }

    #[test]
    fn percentiles_need_enough_values() {
        let check = |n: u32, p90: Option<f64>, p99: Option<f64>| {
            let got = Summary::of((1..=n).map(f64::from)).map(|s| (s.p90, s.p99));
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                (a, b) => a == b,
            };
            assert!(got.is_some_and(|(a, b)| near(a, p90) && near(b, p99)), "{n}: {got:?}");
        };
        check(9, None, None);
        check(10, Some(9.1), None);
        check(99, Some(89.2), None);
        check(200, Some(180.1), Some(198.01));
    }

    proptest! {
        #[test]
        fn quantiles_never_fall(mut values in prop::collection::vec(-1e6..1e6, 1..60), a in 0.0..1.0, b in 0.0..1.0) {
            values.sort_unstable_by(f64::total_cmp);
            let (low, high) = (f64::min(a, b), f64::max(a, b));
            prop_assert!(quantile_sorted(&values, low) <= quantile_sorted(&values, high));
        }

        #[test]
        fn a_weight_is_a_value_written_several_times(pairs in prop::collection::vec((0.0..10.0, 0_u8..6), 0..40)) {
            let weighted = pairs.iter().map(|&(value, times)| Weighted { value, weight: f64::from(times) });
            let expanded = pairs.iter().flat_map(|&(value, times)| std::iter::repeat_n(value, usize::from(times)));
            match (Summary::of_weighted(weighted), Summary::of(expanded)) {
                (Some(a), Some(b)) => {
                    prop_assert_eq!((a.n, a.min, a.max), (b.n, b.min, b.max));
                    prop_assert!((a.mean - b.mean).abs() < 1e-9);
                    for (a, b) in [(Some(a.p50), Some(b.p50)), (a.p90, b.p90), (a.p99, b.p99)] {
                        prop_assert_eq!(a.is_some(), b.is_some());
                        prop_assert!((a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-9);
                    }
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}
