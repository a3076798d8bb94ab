//! Many comparisons on one page: with 64 cells, three would differ by chance alone at 5 %.

/// Adjusted p values after Benjamini and Hochberg, "Controlling the False Discovery Rate" (1995), in the step-up form of
/// Yekutieli and Benjamini (1999): those ≤ q are the ones that a false discovery rate of q lets through. In the order
/// of the input; what is not a number stays one, and does not count.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    let p = |index: usize| p_values.get(index).copied().unwrap_or(f64::NAN);
    order.retain(|index| !p(*index).is_nan());
    order.sort_by(|a, b| p(*a).total_cmp(&p(*b)));
    let count = order.len() as f64;
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut smallest = 1.0_f64;
    for (rank, index) in order.into_iter().enumerate().rev() {
        smallest = smallest.min(p(index) * count / (rank + 1) as f64);
        if let Some(place) = adjusted.get_mut(index) {
            *place = smallest;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        let check = |p_values: &[f64], wanted: &[f64]| {
            let got: Vec<f64> = adjusted(p_values).iter().map(|p| (p * 1e4).round() / 1e4).collect();
            assert_eq!(got, wanted);
        };
        check(&[], &[]);
        check(&[0.03], &[0.03]);
        // As R's p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.5), "BH").
        check(&[0.5, 0.01, 0.04, 0.02, 0.03], &[0.5, 0.05, 0.05, 0.05, 0.05]);
        check(&[0.001, 0.008, 0.039, 0.041, 0.9], &[0.005, 0.02, 0.0513, 0.0513, 0.9]);
        let with_unknown = adjusted(&[0.02, f64::NAN, 0.04]);
        assert!(with_unknown[1].is_nan() && (with_unknown[0] - 0.04).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn smaller_p_values_stay_smaller(p_values in prop::collection::vec(0.0..=1.0_f64, 1..40)) {
            let adjusted = adjusted(&p_values);
            for (p, q) in p_values.iter().zip(&adjusted) {
                // Times the count and divided by it again may lose the last bit.
                prop_assert!(*p <= q * (1.0 + 1e-12) && *q <= 1.0);
                for (other_p, other_q) in p_values.iter().zip(&adjusted) {
                    prop_assert!(p > other_p || q <= other_q);
                }
            }
        }

        #[test]
        fn one_more_proof_never_hurts(p_values in prop::collection::vec(0.0..=1.0_f64, 1..40), place in 0_usize..40) {
            let before = adjusted(&p_values);
            let mut lowered = p_values.clone();
            let place = place % lowered.len();
            lowered[place] /= 2.0;
            let after = adjusted(&lowered);
            prop_assert!(after.iter().zip(&before).all(|(after, before)| after <= before));
        }
    }
}
