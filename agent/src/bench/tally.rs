//! What the measurements of a cell came to, as far as it says whether it needs another one.

use speedmatrix_shared::stats::cell::CellResult;

/// What is known of a cell so far.
#[derive(Debug)]
pub(super) enum Tally {
    /// Its total speed, each time it was measured.
    Speeds(Vec<f64>),
    /// It is not measured (again).
    GivenUp,
}

impl Tally {
    /// After these measurements; without any the cell was left out.
    pub(super) fn of(results: &[CellResult]) -> Self {
        let mut tally = if results.is_empty() { Self::GivenUp } else { Self::Speeds(Vec::new()) };
        for result in results {
            tally.add(result);
        }
        tally
    }

    /// A cell that failed as a whole is not measured again: it would only fail again.
    pub(super) fn add(&mut self, result: &CellResult) {
        match (&mut *self, result.stats.total_tok_s.filter(|_| !result.status.is_failed())) {
            (Self::Speeds(speeds), Some(speed)) => speeds.push(speed),
            _ => *self = Self::GivenUp,
        }
    }
}
