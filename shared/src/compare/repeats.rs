//! How many repeats a comparison needs, from runs that were made already.

use super::ranked::Ranked;
use crate::{
    state::RunState,
    stats::compare::repeats::{Spread, repeats_to_see},
};

/// What earlier runs say about the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepeatPlan {
    /// The change that is to be seen, as a share.
    pub share: f64,
    /// How much repeats of one cell scatter.
    pub spread: Spread,
    /// Repeats of each cell on both sides with which four of five comparisons of one cell see it; `None`: more than 1,000.
    pub repeats: Option<u32>,
}

impl RepeatPlan {
    /// From all cells of these runs that were repeated; `None` if none was.
    pub fn of(runs: &[&RunState], metric: Ranked, share: f64) -> Option<Self> {
        let get = metric.metric().get;
        let groups: Vec<Vec<f64>> = runs
            .iter()
            .flat_map(|run| &run.cells)
            .map(|cell| cell.repeats.iter().filter_map(get).filter(|value| *value > 0.0).collect())
            .collect();
        let groups: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
        let spread = Spread::of_repeats(&groups)?;
        Some(Self { share, spread, repeats: repeats_to_see(share, spread) })
    }
}
