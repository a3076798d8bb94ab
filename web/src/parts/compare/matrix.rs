//! Where the compared cells of a phase lie: the rows and columns of both runs together. Pure.

use std::collections::{BTreeMap, BTreeSet};

use speedmatrix_shared::{
    compare::ComparedCell,
    id::{CellId, Phase},
    units::{Concurrency, Context},
};

/// A grid of compared cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Heads of its rows.
    pub rows: Vec<String>,
    /// Heads of its columns.
    pub columns: Vec<String>,
    /// For each row and column: the cell's place among those of the comparison.
    places: Vec<Vec<Option<usize>>>,
}

impl Matrix {
    /// Contexts down, requests at once across.
    pub fn decode(cells: &[ComparedCell]) -> Self {
        let at = places(cells, Phase::Decode);
        let (contexts, levels) = axes(&at);
        let place = |context, level| at.get(&(context, level)).copied();
        Self {
            rows: contexts.iter().map(Context::to_string).collect(),
            columns: levels.iter().map(Concurrency::to_string).collect(),
            places: contexts.iter().map(|c| levels.iter().map(|n| place(*c, *n)).collect()).collect(),
        }
    }

    /// One row of contexts, or one for each number of prompts at once.
    pub fn prefill(cells: &[ComparedCell]) -> Self {
        let at = places(cells, Phase::Prefill);
        let (contexts, levels) = axes(&at);
        let place = |context, level| at.get(&(context, level)).copied();
        let head = |level: &Concurrency| if levels.len() == 1 { "Prefill".to_owned() } else { format!("× {level}") };
        Self {
            rows: levels.iter().map(head).collect(),
            columns: contexts.iter().map(Context::to_string).collect(),
            places: levels.iter().map(|n| contexts.iter().map(|c| place(*c, *n)).collect()).collect(),
        }
    }

    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The place of a cell among those of the comparison.
    pub fn place(&self, row: usize, column: usize) -> Option<usize> {
        self.places.get(row)?.get(column).copied().flatten()
    }
}

type Places = BTreeMap<(Context, Concurrency), usize>;

fn places(cells: &[ComparedCell], phase: Phase) -> Places {
    let of_phase = cells.iter().enumerate().filter(|(_, cell)| cell.id.phase == phase);
    of_phase
        .map(|(place, ComparedCell { id: CellId { context, concurrency, .. }, .. })| ((*context, *concurrency), place))
        .collect()
}

fn axes(at: &Places) -> (Vec<Context>, Vec<Concurrency>) {
    let contexts: BTreeSet<Context> = at.keys().map(|(context, _)| *context).collect();
    let levels: BTreeSet<Concurrency> = at.keys().map(|(_, level)| *level).collect();
    (contexts.into_iter().collect(), levels.into_iter().collect())
}

/// The contexts and the requests at once of all decode cells.
pub fn decode_axes(cells: &[ComparedCell]) -> (Vec<Context>, Vec<Concurrency>) {
    axes(&places(cells, Phase::Decode))
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{
        compare::{Comparison, Ranked},
        sample,
        stats::compare::MARGIN,
    };

    use super::*;

    #[test]
    fn cells_lie_by_context_and_requests_at_once() {
        let state = sample::reference();
        let same = Comparison::of(&state, &state, Ranked::total_speed(), MARGIN);
        let (decode, prefill) = (Matrix::decode(&same.cells), Matrix::prefill(&same.cells));
        assert_eq!((decode.rows.len(), decode.columns.len()), (8, 8));
        assert_eq!((prefill.rows.as_slice(), prefill.columns.len()), (&["Prefill".to_owned()][..], 9));
        let name = |place: Option<usize>| place.map(|place| same.cells[place].id.to_string());
        assert_eq!(name(decode.place(1, 2)).as_deref(), Some("decode-16K-4"));
        assert_eq!(name(prefill.place(0, 0)).as_deref(), Some("prefill-8K-1"));
        assert_eq!(decode.place(8, 0), None);
        assert!(Matrix::decode(&[]).is_empty());
    }
}
