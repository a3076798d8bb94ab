//! A first request that was slow alone: the engine compiled, tuned or loaded something for it.

use super::summary::Summary;

/// The first value must be above this many times the largest of the others …
const OUTLIER_FROM: f64 = 2.0;
/// … of which there must be at least this many.
const MIN_OTHERS: u64 = 2;

/// A first value far above all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowFirst {
    /// The first value.
    pub first: f64,
    /// The others.
    pub others: Summary,
}

impl SlowFirst {
    /// Looks at values in the order in which they were measured; `None` if the first is one of them.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (first, others) = values.split_first()?;
        let others = Summary::of(others.iter().copied()).filter(|others| others.n >= MIN_OTHERS)?;
        (*first > OUTLIER_FROM * others.max).then_some(Self { first: *first, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_far_above_all_others_is_slow() {
        let check = |values: &[f64], wanted: Option<f64>| {
            assert_eq!(SlowFirst::of(values).map(|slow| slow.first), wanted, "{values:?}");
        };
        check(&[4.8, 0.205, 0.198, 0.207], Some(4.8));
        check(&[0.205, 4.8, 0.198], None);
        check(&[0.4, 0.2, 0.2], None);
        check(&[4.8, 0.2], None);
        check(&[], None);
    }
}
