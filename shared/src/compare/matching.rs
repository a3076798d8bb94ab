//! Which cell of one run is which of the other.

use std::collections::BTreeSet;

use crate::{
    id::CellId,
    state::{Cell, RunState},
    stats::compare::conditions::PROMPT_TOLERANCE,
};

/// A cell of both matrices, or of one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matched<'a> {
    pub(super) a: Option<&'a Cell>,
    pub(super) b: Option<&'a Cell>,
}

impl Matched<'_> {
    /// The cell's name in A, or in B where only B has it.
    pub(super) fn id(&self) -> CellId {
        self.a.or(self.b).map(|cell| cell.id).expect("a matched cell is of at least one run")
    }
}

/// The union of both matrices, by phase, context and requests at once. Cells of one name belong together; of the others
/// those whose prompts really had nearly the same length, the nearest first.
pub(super) fn matched<'a>(a: &'a RunState, b: &'a RunState) -> Vec<Matched<'a>> {
    let mut found = Vec::new();
    let (mut only_a, mut only_b) = (Vec::new(), Vec::new());
    for cell in &a.cells {
        match b.cell(cell.id) {
            Some(other) => found.push(Matched { a: Some(cell), b: Some(other) }),
            None => only_a.push(cell),
        }
    }
    only_b.extend(b.cells.iter().filter(|cell| a.cell(cell.id).is_none()));
    let mut taken = BTreeSet::new();
    for (one, other) in near(&only_a, &only_b) {
        if !taken.contains(&(0, one.id)) && !taken.contains(&(1, other.id)) {
            taken.extend([(0, one.id), (1, other.id)]);
            found.push(Matched { a: Some(one), b: Some(other) });
        }
    }
    let is_free = |side: u8, cell: &&Cell| !taken.contains(&(side, cell.id));
    found.extend(only_a.into_iter().filter(|cell| is_free(0, cell)).map(|cell| Matched { a: Some(cell), b: None }));
    found.extend(only_b.into_iter().filter(|cell| is_free(1, cell)).map(|cell| Matched { a: None, b: Some(cell) }));
    found.sort_by_key(Matched::id);
    found
}

/// Pairs within the tolerance, the nearest first. Equally near ones in an order that does not know which side is which.
fn near<'a>(a: &[&'a Cell], b: &[&'a Cell]) -> Vec<(&'a Cell, &'a Cell)> {
    let mut pairs: Vec<(f64, &Cell, &Cell)> = Vec::new();
    for &one in a {
        for &other in b {
            let alike = one.id.phase == other.id.phase && one.id.concurrency == other.id.concurrency;
            let apart = (length(one).ln() - length(other).ln()).abs();
            if alike && apart <= PROMPT_TOLERANCE.ln_1p() {
                pairs.push((apart, one, other));
            }
        }
    }
    let unordered = |one: &Cell, other: &Cell| (one.id.min(other.id), one.id.max(other.id));
    pairs.sort_by(|first, second| {
        let by_names = || unordered(first.1, first.2).cmp(&unordered(second.1, second.2));
        first.0.total_cmp(&second.0).then_with(by_names)
    });
    pairs.into_iter().map(|(_, one, other)| (one, other)).collect()
}

/// Real tokens of a prompt, or as many as were asked for.
fn length(cell: &Cell) -> f64 {
    let real = cell.result().and_then(|result| result.stats.prompt_tokens).filter(|tokens| *tokens > 0);
    real.unwrap_or_else(|| cell.id.context.tokens()) as f64
}
