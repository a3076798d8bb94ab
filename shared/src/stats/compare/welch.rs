//! Ratio of two positive quantities by Welch's test on their logarithms.
//!
//! Welch, "The generalization of Student's problem when several different population variances are involved" (1947), with
//! Satterthwaite's degrees of freedom (1946). Logarithms, because run-to-run effects of speeds are factors, and so that
//! swapping the sides only turns the sign.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use super::{Basis, Effect, FARTHEST_RATIO, RatioInterval, Scatter, can_be_told};
use crate::stats::{cell::SlotSpread, interval::Interval};

/// Fewest repeats of which a scatter can be told.
const MIN_REPEATS: usize = 2;
/// Both tails of a 95 % interval leave 2.5 %.
const UPPER_TAIL: f64 = 0.975;
/// The smallest effect that can be seen is one that four of five tries see: Cohen, "Statistical Power Analysis for the
/// Behavioral Sciences" (1988), §2.4.
pub(super) const POWER: f64 = 0.8;

/// The mean logarithm of one side, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMean {
    mean: f64,
    error: Option<Error>,
    basis: Basis,
}

/// What one window tells about its own error: how its time varies, and how its slots do. Both are needed: blocks of time
/// don't show that every slot kept to one text, and slots don't show what slows all of them at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inside {
    /// Interval between blocks of the window's time.
    pub blocks: Interval,
    /// Differences between its slots.
    pub slots: SlotSpread,
}

/// A standard error with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Error {
    variance: f64,
    freedom: f64,
}

impl LogMean {
    /// One side: its repeats, and what is known inside the window, which counts only where there is one repeat. `None`
    /// without values, or if one is not above 0: it has no logarithm.
    pub fn new(values: &[f64], inside: Option<Inside>) -> Option<Self> {
        let measured = |value: &f64| value.is_finite() && *value > 0.0;
        if values.is_empty() || !values.iter().all(measured) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / n;
        if values.len() >= MIN_REPEATS {
            let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
            let error = Error { variance: squares / (n - 1.0) / n, freedom: n - 1.0 };
            return Some(Self { mean, error: Some(error), basis: Basis::Repeats });
        }
        let error = inside.and_then(|inside| Error::inside(inside, mean.exp()));
        Some(Self { mean, error, basis: Basis::OneWindow })
    }
}

impl Error {
    /// The sum of both errors. From an interval of the value itself: the delta method, var(ln x) ≈ var(x) ÷ x² (Oehlert,
    /// "A Note on the Delta Method", 1992); of a sum over slots: their variation ÷ √slots.
    fn inside(Inside { blocks, slots }: Inside, value: f64) -> Option<Self> {
        let freedom = f64::from(blocks.n) - 1.0;
        let standard = blocks.half_width / quantile(freedom, UPPER_TAIL)? / value;
        let count = f64::from(slots.slots);
        let by_blocks = Self { variance: standard * standard, freedom };
        let by_slots = Self { variance: slots.variation * slots.variation / count, freedom: count - 1.0 };
        let both = by_blocks.plus(by_slots);
        both.variance.is_finite().then_some(both)
    }

    /// The error of a sum, with Satterthwaite's degrees of freedom.
    fn plus(self, other: Self) -> Self {
        let variance = self.variance + other.variance;
        let weighted = |error: Self| error.variance * error.variance / error.freedom;
        let satterthwaite = variance * variance / (weighted(self) + weighted(other));
        // Without any scatter the formula has nothing to weigh by.
        let freedom = if satterthwaite.is_finite() { satterthwaite } else { self.freedom + other.freedom };
        Self { variance, freedom }
    }
}

impl Effect {
    /// Candidate ÷ base.
    pub fn of_means(base: LogMean, candidate: LogMean) -> Self {
        let difference = candidate.mean - base.mean;
        let basis = match (base.basis, candidate.basis) {
            (Basis::Repeats, Basis::Repeats) => Basis::Repeats,
            _ => Basis::OneWindow,
        };
        let scatter = base.error.zip(candidate.error).and_then(|(base, candidate)| {
            let both = base.plus(candidate);
            Scatter::around(difference, both.variance.sqrt(), both.freedom)
        });
        Self { ratio: difference.exp(), scatter, basis }
    }
}

impl Scatter {
    /// Around a difference of logarithms with this standard error; infinite freedom is the normal distribution.
    pub(super) fn around(difference: f64, standard_error: f64, freedom: f64) -> Option<Self> {
        let half = quantile(freedom, UPPER_TAIL)? * standard_error;
        let interval = RatioInterval { low: (difference - half).exp(), high: (difference + half).exp() };
        let p = if standard_error > 0.0 {
            2.0 * upper_tail(freedom, difference.abs() / standard_error)?
        } else if difference.abs() > 0.0 {
            0.0
        } else {
            1.0
        };
        let smallest_seen = smallest_seen(standard_error, freedom)?;
        let is_told = [interval.low, interval.high].into_iter().all(can_be_told) && smallest_seen <= FARTHEST_RATIO;
        is_told.then_some(Self { interval, p: p.min(1.0), smallest_seen })
    }
}

/// The change, as a share, that a standard error of the log ratio lets see: (t(0.975) + t(power)) · error (Cohen 1988;
/// Julious, "Sample sizes for clinical trials with Normal data", 2004, §3).
pub(super) fn smallest_seen(standard_error: f64, freedom: f64) -> Option<f64> {
    let times = quantile(freedom, UPPER_TAIL)? + quantile(freedom, POWER)?;
    Some((times * standard_error).exp_m1())
}

/// Student's t; normal where the freedom is infinite, for which the crate's own quantile never returns.
fn quantile(freedom: f64, q: f64) -> Option<f64> {
    if freedom.is_infinite() {
        return Some(Normal::standard().inverse_cdf(q));
    }
    StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.inverse_cdf(q))
}

fn upper_tail(freedom: f64, x: f64) -> Option<f64> {
    if freedom.is_infinite() {
        return Some(Normal::standard().sf(x));
    }
    StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.sf(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(base: &[f64], candidate: &[f64]) -> Effect {
        Effect::of_means(LogMean::new(base, None).unwrap(), LogMean::new(candidate, None).unwrap())
    }

    #[test]
    fn welch_agrees_with_the_textbook() {
        // Worked by hand on logarithms 1 2 3 against 2 4 6 8: difference 3, error √(1/3 + 5/3) = √2; freedom
        // 2² ÷ ((1/3)²/2 + (5/3)²/3) = 4.0755. R: t.test gives t = 2.1213, p = 0.0997.
        let logs = |logs: &[f64]| logs.iter().map(|log| log.exp()).collect::<Vec<f64>>();
        let got = effect(&logs(&[1.0, 2.0, 3.0]), &logs(&[2.0, 4.0, 6.0, 8.0]));
        let scatter = got.scatter.unwrap();
        assert!((got.ratio.ln() - 3.0).abs() < 1e-12);
        assert!((scatter.p - 0.0997).abs() < 2e-3, "{}", scatter.p);
        let half = (scatter.interval.high.ln() - scatter.interval.low.ln()) / 2.0;
        assert!((half / 2_f64.sqrt() - 2.7527).abs() < 0.02, "{half}");
        assert_eq!(got.basis, Basis::Repeats);
    }

    #[test]
    fn quantiles_of_infinite_freedom_are_normal() {
        assert!((quantile(f64::INFINITY, UPPER_TAIL).unwrap() - 1.959_964).abs() < 1e-4);
        assert!((quantile(4.5, UPPER_TAIL).unwrap() - 2.66).abs() < 0.01);
    }

    #[test]
    fn what_has_no_logarithm_has_no_mean() {
        for values in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN]] {
            assert_eq!(LogMean::new(values, None), None);
        }
        assert_eq!(LogMean::new(&[5.0], None).map(|mean| mean.error), Some(None));
    }
}
