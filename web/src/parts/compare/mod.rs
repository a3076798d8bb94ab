//! Two runs against each other: all words and verdicts come from the shared crate, and this draws them.

pub mod cell;
pub mod choose;
pub mod conditions;
pub mod curves;
pub mod head;
pub mod heat;
pub mod load;
pub mod maps;
pub mod matrix;
pub mod others;
pub mod pick;
pub mod table;
pub mod verdict;

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{Comparison, Ranked},
    id::CellId,
    state::RunState,
    stats::compare::MARGIN,
};

use self::load::Runs;
use crate::{compare_view::CompareView, live::LiveRun};

/// Two runs on this page, and what comparing them says. It follows both while they run.
#[derive(Debug, Clone, Copy)]
pub struct Compared {
    /// The base and what is judged, before they were swapped.
    sides: [LiveRun; 2],
    is_swapped: Memo<bool>,
    /// What the page shows.
    pub view: RwSignal<CompareView>,
    /// What came out. It is made anew only where a run or the number has changed.
    pub comparison: Memo<Comparison>,
    /// The cell under the pointer or the focus: what shows it elsewhere marks it.
    pub read: RwSignal<Option<CellId>>,
}

impl Compared {
    /// Compares two runs, the one called `first` and another one.
    pub fn of(sides: [LiveRun; 2], first: String, view: RwSignal<CompareView>, runs: Runs) -> Self {
        let is_swapped = Memo::new(move |_| view.with(|view| view.a != first));
        let metric = Memo::new(move |_| view.with(|view| view.metric));
        let comparison = Memo::new(move |_| {
            let [a, b] = in_order(sides, is_swapped);
            let mut compared = a.state.with(|a| b.state.with(|b| compare(a, b, metric.get())));
            for side in [&mut compared.a, &mut compared.b] {
                if let Some(name) = runs.name(&side.id) {
                    side.title = name;
                }
            }
            compared
        });
        Self { sides, is_swapped, view, comparison, read: RwSignal::new(None) }
    }

    /// A and B.
    pub fn sides(self) -> [LiveRun; 2] {
        in_order(self.sides, self.is_swapped)
    }
}

fn compare(a: &RunState, b: &RunState, metric: Ranked) -> Comparison {
    Comparison::of(a, b, metric, MARGIN)
}

fn in_order([one, other]: [LiveRun; 2], is_swapped: Memo<bool>) -> [LiveRun; 2] {
    if is_swapped.get() { [other, one] } else { [one, other] }
}
