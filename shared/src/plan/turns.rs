//! Two servers measured in turns (method §6): which of them goes first.

use super::{RunPlan, options::scattered};
use crate::id::CellId;

/// Keeps these draws apart from those of the order of cells.
const DRAW: u32 = u32::MAX;

/// One of two runs that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The base.
    A,
    /// What is judged.
    B,
}

impl Side {
    /// Both, the base first.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The one that is not this.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Its letter.
    pub const fn label(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

impl RunPlan {
    /// Who is measured first when this cell is measured for the `repeat`th time (0, 1 …). Of each two repeats the first is
    /// drawn by the seed and the second goes the other way round, so that what drifts falls on both sides alike
    /// (randomised blocks: Box, Hunter and Hunter, "Statistics for Experimenters", §4.2).
    pub fn goes_first(&self, cell: CellId, repeat: u32) -> Side {
        let place = self.cells().iter().position(|known| *known == cell).unwrap_or_default();
        let drawn = scattered(scattered(self.seed(), DRAW, 0), repeat / 2, place);
        if (drawn ^ u64::from(repeat)) & 1 == 0 { Side::A } else { Side::B }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanDraft;

    /// Who goes first in four repeats of each cell.
    fn order(seed: &str) -> String {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "1K,2K".into(),
            concurrency: "1,2".into(),
            prefill_contexts: "none".into(),
            seed: seed.into(),
            ..PlanDraft::default()
        };
        let plan = RunPlan::try_from(draft).unwrap();
        let of_cell = |cell: CellId| (0..4).map(|repeat| plan.goes_first(cell, repeat).label()).collect::<String>();
        plan.cells().into_iter().map(of_cell).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_seed_draws_who_goes_first() {
        assert_eq!(order("1"), order("1"));
        let orders: Vec<String> = (0..8).map(|seed| order(&seed.to_string())).collect();
        assert!(
            orders.iter().any(|it| it.starts_with('A')) && orders.iter().any(|it| it.starts_with('B')),
            "{orders:?}"
        );
        assert!(orders.iter().any(|it| *it != orders[0]), "{orders:?}");
    }

    #[test]
    fn each_two_repeats_go_both_ways() {
        for seed in 0..32 {
            let order = order(&seed.to_string());
            let pairs: Vec<&str> = order.split(' ').flat_map(|cell| [&cell[..2], &cell[2..]]).collect();
            assert!(pairs.iter().all(|pair| *pair == "AB" || *pair == "BA"), "{order}");
        }
    }
}
