//! Two runs against each other: what differs in how they were measured, and what differs in what came out. A is the base
//! and B is what is judged: every ratio is B ÷ A, and swapping the runs turns everything around.

pub mod cell;
pub mod command;
pub mod condition;
pub mod export;
pub mod gate;
mod matching;
pub mod ranked;
pub mod repeats;
pub mod tally;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::{
    event::Origin,
    facts, format,
    id::RunId,
    state::{RunState, RunStatus},
};

pub use cell::{CellSide, CellVerdict, ComparedCell};
pub use command::{Argument, ArgumentChange};
pub use condition::{Group, RunCondition, Severity};
pub use ranked::{NotRanked, Ranked};
pub use tally::Counts;

/// One of the two runs, as far as a reader needs it to know which is which.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSide {
    /// Which run.
    pub id: RunId,
    /// Its name.
    pub title: String,
    /// Wall time of its start, milliseconds since 1970 UTC; 0 where it is not known.
    pub started_unix_ms: u64,
    /// Where its numbers come from.
    pub origin: Option<Origin>,
    /// Whether it is over.
    pub status: RunStatus,
    /// Cells that need no more work.
    pub cells_done: usize,
    /// All its cells.
    pub cells: usize,
}

impl RunSide {
    fn of(state: &RunState) -> Self {
        let (cells_done, cells) = state.progress();
        Self {
            id: state.id.clone(),
            title: state.title(),
            started_unix_ms: state.started_unix_ms,
            origin: state.origin,
            status: state.status.clone(),
            cells_done,
            cells,
        }
    }
}

/// Two runs, compared by one number of their cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The base.
    pub a: RunSide,
    /// What is judged.
    pub b: RunSide,
    /// The number that is compared.
    pub metric: Ranked,
    /// Ratios within this share of 1 are no difference.
    pub margin: f64,
    /// How the runs were made, as far as one side tells: what is the same and what is not.
    pub conditions: Vec<RunCondition>,
    /// The arguments of both launch commands; empty unless both are known.
    pub command: Vec<Argument>,
    /// Every cell of both matrices that can have the number, by phase, context and requests at once.
    pub cells: Vec<ComparedCell>,
    /// Cells by verdict.
    pub counts: Counts,
    /// What a reader must know beside the verdicts, in sentences.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Compares `b` with `a`. Never fails: what can't be compared says why.
    pub fn of(a: &RunState, b: &RunState, metric: Ranked, margin: f64) -> Self {
        let cells = cell::compared(a, b, metric, margin);
        let both = facts::launch_command(a).zip(facts::launch_command(b));
        Self {
            a: RunSide::of(a),
            b: RunSide::of(b),
            metric,
            margin,
            conditions: condition::conditions(a, b),
            command: both.map(|(a, b)| command::arguments(a, b)).unwrap_or_default(),
            counts: Counts::of(&cells),
            cells,
            notes: notes(a, b),
        }
    }

    /// What came out, in one sentence.
    pub fn sentence(&self) -> String {
        tally::sentence(&self.cells, self.metric)
    }

    /// The conditions that differ, the most severe first; the same severity keeps its order.
    pub fn differences(&self) -> Vec<&RunCondition> {
        let mut found: Vec<&RunCondition> = self.conditions.iter().filter(|it| it.severity.is_some()).collect();
        found.sort_by_key(|it| it.severity);
        found
    }

    /// The `most` biggest changes: proven ones first, then what the data can't tell; the larger ratio first.
    pub fn biggest(&self, most: usize) -> Vec<&ComparedCell> {
        let mut found: Vec<(bool, f64, &ComparedCell)> = self.cells.iter().filter_map(ranked_change).collect();
        found.sort_by(|(a_open, a_size, _), (b_open, b_size, _)| a_open.cmp(b_open).then(b_size.total_cmp(a_size)));
        found.into_iter().map(|(_, _, cell)| cell).take(most).collect()
    }
}

/// Whether the change is unproven, its size on the log scale, and the cell; nothing where there is no change to rank.
fn ranked_change(cell: &ComparedCell) -> Option<(bool, f64, &ComparedCell)> {
    let is_open = match cell.verdict {
        CellVerdict::Faster | CellVerdict::Slower => false,
        CellVerdict::Inconclusive => true,
        _ => return None,
    };
    let size = cell.ratio()?.ln().abs();
    (size > 0.0).then_some((is_open, size, cell))
}

fn notes(a: &RunState, b: &RunState) -> Vec<String> {
    let mut notes = Vec::new();
    if a.id == b.id {
        notes.push("A and B are the same run: nothing can have changed.".to_owned());
    }
    for (name, state) in [("A", a), ("B", b)] {
        let (done, cells) = state.progress();
        if state.status == RunStatus::Running {
            notes.push(format!("{name} is still running: {done} of its {cells} cells are done."));
        }
    }
    if a.id != b.id && [a, b].iter().any(|run| cell::is_foreign(run)) {
        let beyond = format::percent(Some(cell::UNSURE_BEYOND));
        notes.push(format!(
            "A file of another tool tells no interval: where there is none, a change of a speed by more than {beyond} is \
             likely, a smaller one inconclusive."
        ));
    }
    if a.is_simulated() != b.is_simulated() {
        let name = if a.is_simulated() { "A" } else { "B" };
        notes.push(format!("{name} was measured against the simulator, the other one was not."));
    }
    notes
}
