//! A change against a baseline that may be zero or missing. Zero is a value, missing is none: neither gives a percentage
//! that is infinite or no number.

use super::FARTHEST_RATIO;

/// The change from a base to a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delta {
    /// The base was not measured.
    NoBaseline,
    /// The candidate was not measured.
    NotMeasured,
    /// The base is 0, or as good as 0 beside the candidate, which is not: there is a difference, and no share of it.
    FromZero {
        /// Candidate − base.
        absolute: f64,
    },
    /// Both are there.
    Change {
        /// Candidate − base.
        absolute: f64,
        /// (Candidate − base) ÷ base: 0.1 is 10 % more.
        share: f64,
    },
}

impl Delta {
    /// The change from `base` to `candidate`; values that are not finite were not measured.
    pub fn new(base: Option<f64>, candidate: Option<f64>) -> Self {
        let Some(base) = base.filter(|value| value.is_finite()) else { return Self::NoBaseline };
        let Some(candidate) = candidate.filter(|value| value.is_finite()) else { return Self::NotMeasured };
        let absolute = candidate - base;
        let share = if absolute.abs() > 0.0 { absolute / base } else { 0.0 };
        if share.abs() <= FARTHEST_RATIO { Self::Change { absolute, share } } else { Self::FromZero { absolute } }
    }

    /// Candidate − base.
    pub const fn absolute(self) -> Option<f64> {
        match self {
            Self::NoBaseline | Self::NotMeasured => None,
            Self::FromZero { absolute } | Self::Change { absolute, .. } => Some(absolute),
        }
    }

    /// The change as a share of the base.
    pub const fn share(self) -> Option<f64> {
        match self {
            Self::Change { share, .. } => Some(share),
            Self::NoBaseline | Self::NotMeasured | Self::FromZero { .. } => None,
        }
    }

    /// Why there is no difference to show, in words.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::NoBaseline => Some("no baseline"),
            Self::NotMeasured => Some("not measured"),
            Self::FromZero { .. } | Self::Change { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zero_and_missing_are_two_things() {
        let check = |base, candidate, wanted: Delta| assert_eq!(Delta::new(base, candidate), wanted);
        check(Some(0.0), Some(12.5), Delta::FromZero { absolute: 12.5 });
        check(None, Some(12.5), Delta::NoBaseline);
        check(None, None, Delta::NoBaseline);
        check(Some(0.0), Some(0.0), Delta::Change { absolute: 0.0, share: 0.0 });
        check(Some(50.0), None, Delta::NotMeasured);
        check(Some(50.0), Some(f64::INFINITY), Delta::NotMeasured);
        check(Some(50.0), Some(0.0), Delta::Change { absolute: -50.0, share: -1.0 });
        check(Some(50.0), Some(55.0), Delta::Change { absolute: 5.0, share: 0.1 });
    }

    proptest! {
        #[test]
        fn no_change_is_infinite(base in prop::option::of(any::<f32>()), candidate in prop::option::of(any::<f32>())) {
            let delta = Delta::new(base.map(f64::from), candidate.map(f64::from));
            prop_assert!(delta.absolute().is_none_or(f64::is_finite));
            prop_assert!(delta.share().is_none_or(f64::is_finite));
            prop_assert_eq!(delta.absolute().is_none(), delta.reason().is_some());
        }
    }
}
