//! What the results of finished cells were computed from: one packed record per measurement.

use rusqlite::{OptionalExtension as _, Transaction, params};
use speedmatrix_shared::{
    id::{CellId, RunId},
    raw::codec::MAX_BYTES,
};

use super::{
    database::Database,
    error::{StoreError, explain},
    rows::whole,
};

/// What became of the record of a finished cell.
#[derive(Debug)]
#[must_use]
pub enum RawKept {
    /// It is stored beside the cell's fact.
    Kept,
    /// Only the fact is stored, for this reason.
    Lost(StoreError),
}

/// Which measurement of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The latest that was kept.
    Last,
    /// The one whose result the event of this number tells.
    ToldBy(u64),
}

impl Database {
    /// The record of a measurement of a cell; `None` if there is none.
    pub(super) fn raw(&self, run: &RunId, cell: CellId, which: Which) -> Result<Option<Vec<u8>>, StoreError> {
        let (from, to) = match which {
            Which::Last => (0, i64::MAX),
            Which::ToldBy(seq) => (whole(seq), whole(seq)),
        };
        let sql = "SELECT CASE WHEN length(bytes) <= ?3 THEN bytes END FROM raw \
                   WHERE run = ?1 AND cell = ?2 AND seq BETWEEN ?4 AND ?5 ORDER BY seq DESC LIMIT 1";
        let found: Option<Option<Vec<u8>>> = self
            .connection()
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let of_cell = params![run.as_str(), cell.to_string(), whole(MAX_BYTES as u64), from, to];
                statement.query_row(of_cell, |row| row.get(0)).optional()
            })
            .map_err(|e| explain(self.path(), e))?;
        let too_large = || StoreError::DamagedRaw {
            run: run.clone(),
            cell,
            detail: format!("it is larger than {MAX_BYTES} bytes"),
        };
        found.map(|bytes| bytes.ok_or_else(too_large)).transpose()
    }
}

/// The record of the cell that event `seq` finishes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) run: &'a str,
    pub(super) cell: CellId,
    pub(super) seq: u64,
    pub(super) rules: Option<u32>,
    pub(super) bytes: &'a [u8],
}

pub(super) fn write(change: &Transaction<'_>, row: Row<'_>) -> rusqlite::Result<()> {
    change
        .prepare_cached("INSERT OR REPLACE INTO raw (run, cell, seq, rules, bytes) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![row.run, row.cell.to_string(), whole(row.seq), row.rules, row.bytes])
        .map(drop)
}
