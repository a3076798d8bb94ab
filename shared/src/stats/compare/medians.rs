//! Two lists of samples by their medians. One outlier moves a mean and blows up its error, and neither the median nor its
//! band; so a median is never judged by a mean's error.

use statrs::distribution::{ContinuousCDF as _, Normal};
use statrs::function::beta::beta_reg;

use super::{Basis, Effect, Scatter};
use crate::stats::summary::quantile_sorted;

/// Fewest samples on a side: below it the band would reach from the smallest to the largest of three or four.
const MIN_SAMPLES: usize = 5;

impl Effect {
    /// The ratio of the medians, with the band of Price and Bonett, "Distribution-free confidence intervals for difference
    /// and ratio of medians" (2002): the error of each log median comes from two order statistics around it. `None`
    /// below 5 samples on a side, or if one is not above 0.
    pub fn of_medians(base: &[f64], candidate: &[f64]) -> Option<Self> {
        let (base, candidate) = (LogMedian::new(base)?, LogMedian::new(candidate)?);
        let difference = candidate.median - base.median;
        let error = base.error.hypot(candidate.error);
        let scatter = Scatter::around(difference, error, f64::INFINITY);
        Some(Self { ratio: difference.exp(), scatter, basis: Basis::Samples })
    }
}

/// The median of logarithms with its standard error.
struct LogMedian {
    median: f64,
    error: f64,
}

impl LogMedian {
    fn new(values: &[f64]) -> Option<Self> {
        if values.len() < MIN_SAMPLES || !values.iter().all(|value| value.is_finite() && *value > 0.0) {
            return None;
        }
        let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        logs.sort_unstable_by(f64::total_cmp);
        let n = logs.len() as f64;
        // The order statistics number c from below and from above.
        let c = (f64::midpoint(n, 1.0) - n.sqrt()).round().max(1.0);
        let (low, high) = (logs.get(c as usize - 1)?, logs.get(logs.len() - c as usize)?);
        // The chance that fewer than c of n values lie below the median: P(Binomial(n, ½) ≤ c − 1).
        let tail = beta_reg(n - c + 1.0, c, 0.5);
        let z = Normal::standard().inverse_cdf(1.0 - tail);
        Some(Self { median: quantile_sorted(&logs, 0.5)?, error: (high - low) / (2.0 * z) })
    }
}

/// The median absolute deviation from the median, unscaled; `None` without values.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let median_of = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        quantile_sorted(&values, 0.5)
    };
    let median = median_of(values.to_vec())?;
    median_of(values.iter().map(|value| (value - median).abs()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::compare::{Direction, MARGIN, Verdict};

    #[test]
    fn an_outlier_does_not_hide_a_change_of_the_median() {
        let base = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0];
        let effect = Effect::of_medians(&base, &[1.2; 10]).unwrap();
        assert!((effect.ratio - 1.2).abs() < 1e-12);
        let p = effect.scatter.unwrap().p;
        assert_eq!(Verdict::of(&effect, p, Direction::LowerIsFaster, MARGIN), Verdict::Slower);
        assert_eq!(median_absolute_deviation(&base), Some(0.0));
    }

    #[test]
    fn the_band_is_that_of_the_paper() {
        // n = 16: c = round(8.5 − 4) = 5 (4.5 away from zero), P(Binomial(16, ½) ≤ 4) = 0.0384, z = 1.7697; logs
        // 1 … 16 have the 5th and the 12th 7 apart.
        let values: Vec<f64> = (1..=16).map(|n| f64::from(n).exp()).collect();
        let median = LogMedian::new(&values).unwrap();
        assert!((median.median - 8.5).abs() < 1e-9);
        assert!((median.error - 7.0 / (2.0 * 1.7697)).abs() < 1e-3, "{}", median.error);
    }

    #[test]
    fn too_few_or_not_positive_samples_give_no_effect() {
        assert_eq!(Effect::of_medians(&[1.0; 4], &[1.0; 9]), None);
        assert_eq!(Effect::of_medians(&[1.0; 9], &[0.0; 9]), None);
        assert_eq!(median_absolute_deviation(&[]), None);
        assert_eq!(median_absolute_deviation(&[1.0, 2.0, 4.0, 9.0]), Some(1.5));
    }
}
