//! How many repeats a comparison needs.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use super::welch::smallest_seen;

/// More repeats than this on each side are no plan.
const MOST: u32 = 1_000;
/// A scatter known from few repeats may be larger than it looks: it is taken at its upper bound of this confidence, after
/// Browne, "On the use of a pilot sample for sample size determination" (1995).
const CONFIDENCE: f64 = 0.8;

/// Run-to-run scatter of a quantity: the standard deviation of its logarithm, with the degrees of freedom of that estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard deviation of the logarithm: about the scatter as a share.
    pub log_sd: f64,
    /// Degrees of freedom; infinite where it is known.
    pub freedom: f64,
}

impl Spread {
    /// Pooled over groups of repeats of the same thing each. `None` if no group has two, or a value is not above 0.
    pub fn of_repeats(groups: &[&[f64]]) -> Option<Self> {
        if !groups.iter().flat_map(|group| group.iter()).all(|value| value.is_finite() && *value > 0.0) {
            return None;
        }
        let squares = |group: &&[f64]| {
            let mean = group.iter().map(|value| value.ln()).sum::<f64>() / group.len() as f64;
            group.iter().map(|value| (value.ln() - mean).powi(2)).sum::<f64>()
        };
        let freedom: usize = groups.iter().map(|group| group.len().saturating_sub(1)).sum();
        let freedom = freedom as f64;
        let variance = groups.iter().filter(|group| !group.is_empty()).map(squares).sum::<f64>() / freedom;
        (freedom > 0.0).then(|| Self { log_sd: variance.sqrt(), freedom })
    }

    /// The upper bound to plan with.
    fn cautious(self) -> Option<f64> {
        if self.freedom.is_infinite() {
            return Some(self.log_sd);
        }
        let chi_squared = ChiSquared::new(self.freedom).ok()?.inverse_cdf(1.0 - CONFIDENCE);
        Some(self.log_sd * (self.freedom / chi_squared).sqrt()).filter(|sd| sd.is_finite())
    }
}

/// Repeats on each side, at least 2, with which four of five comparisons see a change of `share` (0.05 is 5 %); `None` if
/// even 1,000 are too few, or the change is none.
pub fn repeats_to_see(share: f64, spread: Spread) -> Option<u32> {
    let log_sd = spread.cautious()?;
    let sees = |n: &u32| {
        let n = f64::from(*n);
        smallest_seen(log_sd * (2.0 / n).sqrt(), 2.0 * n - 2.0).is_some_and(|smallest| smallest <= share)
    };
    if share > 0.0 { (2..=MOST).find(sees) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(log_sd: f64) -> Spread {
        Spread { log_sd, freedom: f64::INFINITY }
    }

    #[test]
    fn plans_agree_with_the_tables() {
        // R: power.t.test(delta = log(1.05), sd = s, power = 0.8) gives 17.4, 6.2 and 3.0 per side for s of 5, 2.8 and 1.6 %.
        let check = |log_sd: f64, wanted: u32| {
            let got = repeats_to_see(0.05, known(log_sd)).unwrap();
            assert!(got.abs_diff(wanted) <= 1, "{log_sd}: {got}");
        };
        check(0.05, 18);
        check(0.028, 7);
        check(0.016, 4);
        assert_eq!(repeats_to_see(0.05, known(0.0)), Some(2));
        assert_eq!(repeats_to_see(0.0, known(0.01)), None);
        assert_eq!(repeats_to_see(0.001, known(0.5)), None);
    }

    #[test]
    fn few_pilots_ask_for_more_repeats() {
        let pilot = Spread::of_repeats(&[&[100.0, 103.0, 98.0, 101.0], &[50.0, 51.0]]).unwrap();
        assert_eq!(pilot.freedom.round() as u32, 4);
        assert!(repeats_to_see(0.05, pilot) > repeats_to_see(0.05, known(pilot.log_sd)));
        assert_eq!(Spread::of_repeats(&[&[1.0], &[2.0]]), None);
        assert_eq!(Spread::of_repeats(&[&[1.0, 0.0]]), None);
    }

    proptest! {
        #[test]
        fn smaller_changes_and_larger_scatters_need_more(share in 0.01..0.5_f64, log_sd in 0.001..0.2_f64) {
            let needed = |share, log_sd| repeats_to_see(share, known(log_sd)).unwrap_or(u32::MAX);
            prop_assert!(needed(share / 2.0, log_sd) >= needed(share, log_sd));
            prop_assert!(needed(share, log_sd * 2.0) >= needed(share, log_sd));
        }
    }
}
