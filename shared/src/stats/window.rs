//! The measuring window: what falls into it, exact time integrals over it, and its blocks.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The half-open time [start, end) in which a cell is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// First instant inside.
    pub start: Nanos,
    /// First instant after it.
    pub end: Nanos,
}

impl Window {
    /// The window of `length` from `start`.
    pub fn new(start: Nanos, length: Nanos) -> Self {
        Self { start, end: start + length }
    }

    /// D in seconds.
    pub fn secs(self) -> f64 {
        self.end.since(self.start).as_secs_f64()
    }

    /// Whether an instant falls inside.
    pub fn contains(self, at: Nanos) -> bool {
        self.start <= at && at < self.end
    }

    /// The part of [from, to) that falls inside.
    pub fn overlap(self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end).since(from.max(self.start))
    }

    /// How many of the spans [from, to) were open on average: their time integral over the window ÷ D.
    /// `None` for a window without length.
    pub fn mean_open(self, spans: impl IntoIterator<Item = (Nanos, Nanos)>) -> Option<f64> {
        let length = self.end.since(self.start).0;
        // 1,024 slots over a day are below 10^17 ns: whole nanoseconds add up exactly.
        let open: u64 = spans.into_iter().map(|(from, to)| self.overlap(from, to).0).sum();
        (length > 0).then(|| open as f64 / length as f64)
    }

    /// How much of the window at least one of the spans [from, to) covers.
    pub fn covered(self, spans: impl IntoIterator<Item = (Nanos, Nanos)>) -> Nanos {
        let mut sorted: Vec<(Nanos, Nanos)> = spans.into_iter().collect();
        sorted.sort_unstable();
        let mut covered = Nanos(0);
        let mut done = self.start;
        for (from, to) in sorted {
            covered = covered + self.overlap(from.max(done), to);
            done = done.max(to);
        }
        covered
    }

    /// What arrived in each of `blocks` equally long parts of the window.
    pub fn blocks(self, blocks: u32, arrivals: &[(Nanos, f64)]) -> Vec<f64> {
        let mut sums = vec![0.0; blocks as usize];
        let length = u128::from(self.end.since(self.start).0);
        for &(at, amount) in arrivals.iter().filter(|(at, _)| self.contains(*at)) {
            let index = u128::from(at.since(self.start).0) * u128::from(blocks) / length;
            if let Some(sum) = sums.get_mut(index as usize) {
                *sum += amount;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN: Window = Window { start: Nanos(10), end: Nanos(20) };

    fn spans() -> impl Strategy<Value = Vec<(Nanos, Nanos)>> {
        let span = (0_u64..30, 0_u64..15).prop_map(|(from, length)| (Nanos(from), Nanos(from + length)));
        prop::collection::vec(span, 0..12)
    }

    #[test]
    fn the_end_is_outside() {
        let check = |at: u64, inside: bool| assert_eq!(TEN.contains(Nanos(at)), inside, "{at}");
        check(9, false);
        check(10, true);
        check(19, true);
        check(20, false);
        assert_eq!(TEN.blocks(2, &[(Nanos(14), 1.0), (Nanos(15), 2.0), (Nanos(20), 4.0)]), [1.0, 2.0]);
        assert_eq!(Window { start: Nanos(5), end: Nanos(5) }.mean_open([(Nanos(0), Nanos(9))]), None);
    }

    proptest! {
        #[test]
        fn integrals_are_sums_over_instants(spans in spans()) {
            let open_at = |t: u64| spans.iter().filter(|(from, to)| (from.0..to.0).contains(&t)).count();
            let total: usize = (10..20).map(open_at).sum();
            prop_assert_eq!(TEN.mean_open(spans.iter().copied()), Some(total as f64 / 10.0));
            let covered = (10..20).filter(|&t| open_at(t) > 0).count() as u64;
            prop_assert_eq!(TEN.covered(spans.iter().copied()), Nanos(covered));
        }

        #[test]
        fn blocks_lose_nothing(times in prop::collection::vec(0_u64..30, 0..50), blocks in 1_u32..13) {
            let arrivals: Vec<(Nanos, f64)> = times.iter().map(|&t| (Nanos(t), 1.0)).collect();
            let inside = times.iter().filter(|t| (10..20).contains(*t)).count();
            let sum: f64 = TEN.blocks(blocks, &arrivals).iter().sum();
            prop_assert_eq!(sum.round() as usize, inside);
        }
    }
}
