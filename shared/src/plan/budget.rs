//! The best use of a limited time: which cells of a matrix tell most, and which are left out. Times are guesses, as in
//! `eta`.

use std::collections::BTreeSet;

use super::{LeaveOut, RunPlan, eta};
use crate::{
    feasible::Feasible,
    id::{CellId, Phase},
    target::Limits,
    units::{Concurrency, Context},
};

/// A choice of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What is left out of the whole matrix.
    pub leave_out: LeaveOut,
    /// The same in the order in which it was given up.
    pub given_up: Vec<CellId>,
    /// Cells of the matrix that stay.
    pub kept: usize,
    /// About how long the plan takes with them, seconds.
    pub secs: f64,
}

/// Not even one cell fits.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("not even one cell can be measured in that time")]
pub struct TooShort {
    /// About how long the plan takes with its shortest cell alone, seconds.
    pub least_s: f64,
}

/// What a cell tells about the whole matrix; ordered, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Its neighbours tell nearly the same.
    Between,
    /// One of the diagonal, which has every context and every level once.
    Diagonal,
    /// An end of both axes.
    Corner,
}

/// Chooses from the whole matrix of `plan`, whatever it leaves out now, so that it takes about `budget_s` seconds at most.
/// The longest cells are given up first; the diagonal is given up only after all others, and the corners last. Cells that
/// the server can't run take no time and stay.
pub fn best_use(plan: &RunPlan, limits: Limits, budget_s: f64) -> Result<Choice, TooShort> {
    let whole = RunPlan { leave_out: LeaveOut::default(), ..plan.clone() };
    let is_able = |cell: &CellId| !matches!(Feasible::of(*cell, &whole, limits), Feasible::CantRun { .. });
    let (decode, prefill): (Vec<CellId>, Vec<CellId>) =
        whole.cells().into_iter().partition(|cell| cell.phase == Phase::Decode);
    let secs = |cell: &CellId| eta::usual_secs(&whole, *cell);
    let fixed_s: f64 = prefill.iter().filter(|cell| is_able(cell)).map(secs).sum();
    let (able, unable): (Vec<CellId>, Vec<CellId>) = decode.into_iter().partition(is_able);
    let axes = Axes::of(&able);
    let mut order: Vec<(Weight, f64, CellId)> =
        able.iter().map(|cell| (axes.weight(*cell), secs(cell), *cell)).collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)));
    // What is left after the first `n` are given up.
    let left = |n: usize| fixed_s + order.iter().skip(n).map(|(_, secs, _)| secs).sum::<f64>();
    let gone = (0..order.len()).find(|n| left(*n) <= budget_s);
    let Some(gone) = gone else {
        let least = order.iter().map(|(_, secs, _)| *secs).min_by(f64::total_cmp).unwrap_or(0.0);
        return Err(TooShort { least_s: fixed_s + least });
    };
    let given_up: Vec<CellId> = order.iter().take(gone).map(|(_, _, cell)| *cell).collect();
    let leave_out = given_up.iter().map(|cell| (cell.context, cell.concurrency)).collect();
    Ok(Choice { leave_out, kept: order.len() - gone + unable.len(), secs: left(gone), given_up })
}

/// Contexts and levels at which something can be measured, ascending.
#[derive(Debug)]
struct Axes {
    contexts: Vec<Context>,
    levels: Vec<Concurrency>,
    diagonal: BTreeSet<(Context, Concurrency)>,
}

impl Axes {
    fn of(cells: &[CellId]) -> Self {
        let contexts: BTreeSet<Context> = cells.iter().map(|cell| cell.context).collect();
        let levels: BTreeSet<Concurrency> = cells.iter().map(|cell| cell.concurrency).collect();
        let (contexts, levels): (Vec<_>, Vec<_>) = (contexts.into_iter().collect(), levels.into_iter().collect());
        let steps = contexts.len().max(levels.len());
        let place = |step: usize, length: usize| (step * length.saturating_sub(1)).div_ceil((steps - 1).max(1));
        let spread = (0..steps).filter_map(|step| {
            Some((*contexts.get(place(step, contexts.len()))?, *levels.get(place(step, levels.len()))?))
        });
        let diagonal = spread.collect();
        Self { contexts, levels, diagonal }
    }

    fn weight(&self, cell: CellId) -> Weight {
        let context = [self.contexts.first(), self.contexts.last()].contains(&Some(&cell.context));
        let level = [self.levels.first(), self.levels.last()].contains(&Some(&cell.concurrency));
        if context && level {
            Weight::Corner
        } else if self.diagonal.contains(&(cell.context, cell.concurrency)) {
            Weight::Diagonal
        } else {
            Weight::Between
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::PlanDraft;

    fn plan(contexts: &str, concurrency: &str, leave_out: &str) -> RunPlan {
        let draft = PlanDraft {
            target: "127.0.0.1:1".into(),
            contexts: contexts.into(),
            concurrency: concurrency.into(),
            leave_out: leave_out.into(),
            ..PlanDraft::default()
        };
        draft.try_into().unwrap()
    }

    /// The matrix after a choice: what is kept has a mark.
    fn picture(plan: &RunPlan, choice: &Choice) -> String {
        let mark = |context, level| if choice.leave_out.has(context, level) { '.' } else { '#' };
        let row = |&context| plan.concurrency().iter().map(|&level| mark(context, level)).collect::<String>();
        plan.contexts().iter().map(row).collect::<Vec<_>>().join("\n")
    }

    fn check(minutes: f64, limits: Limits) -> String {
        let plan = plan("8K,16K,32K,64K,128K", "1,2,4,8,16,32", "8Kx1");
        match best_use(&plan, limits, minutes * 60.0) {
            Ok(choice) => format!("{} kept\n{}", choice.kept, picture(&plan, &choice)),
            Err(TooShort { least_s }) => format!("at least {least_s:.0} s"),
        }
    }

    #[test]
    fn the_longest_go_first_and_corners_last() {
        let unknown = Limits::default();
        assert_eq!(check(60.0, unknown), "30 kept\n######\n######\n######\n######\n######");
        insta::assert_snapshot!(check(12.0, unknown), @r"
        18 kept
        ######
        ######
        #.#...
        ...#..
        #...##
        ");
        insta::assert_snapshot!(check(6.0, unknown), @r"
        8 kept
        #....#
        .#....
        ..#...
        ...#..
        #...##
        ");
        insta::assert_snapshot!(check(3.0, unknown), @r"
        4 kept
        #....#
        ......
        ......
        ......
        #....#
        ");
        insta::assert_snapshot!(check(0.2, unknown), @"at least 36 s");
        // The corners are those of what can be measured, and what can't takes no time.
        let short = Limits { max_model_len: Some(40_960), ..Limits::default() };
        insta::assert_snapshot!(check(6.0, short), @r"
        21 kept
        ##...#
        .##...
        #..###
        ######
        ######
        ");
    }

    proptest! {
        #[test]
        fn a_choice_keeps_to_its_time_and_grows_with_it(
            rows in 1..7_usize, columns in 1..7_usize, budget_s in 0.0..20_000.0_f64, more_s in 0.0..5_000.0_f64
        ) {
            let contexts = ["8K", "16K", "32K", "64K", "128K", "256K"][..rows.min(6)].join(",");
            let levels = ["1", "2", "4", "8", "16", "32"][..columns.min(6)].join(",");
            let plan = plan(&contexts, &levels, "");
            let all = plan.contexts().len() * plan.concurrency().len();
            match best_use(&plan, Limits::default(), budget_s) {
                Ok(choice) => {
                    prop_assert!(choice.secs <= budget_s);
                    prop_assert_eq!(choice.kept + choice.given_up.len(), all);
                    prop_assert!(choice.kept > 0);
                    let larger = best_use(&plan, Limits::default(), budget_s + more_s).unwrap();
                    prop_assert!(larger.leave_out.cells().all(|(context, level)| choice.leave_out.has(context, level)));
                    let draft = PlanDraft { leave_out: choice.leave_out.to_string(), ..plan.into() };
                    let chosen = RunPlan::try_from(draft).unwrap();
                    prop_assert_eq!(chosen.leave_out(), &choice.leave_out);
                }
                Err(TooShort { least_s }) => {
                    prop_assert!(least_s > budget_s);
                    prop_assert!(best_use(&plan, Limits::default(), least_s * 1.000_1).is_ok() || all > 1);
                }
            }
        }
    }
}
