//! What people added to the runs, and what they deleted. A deleted run is hidden at once and removed for good later, so
//! that the deletion can be taken back in between.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use speedmatrix_shared::{
    id::RunId,
    label::{LabelPatch, Labels},
};

use super::{
    database::Database,
    error::{StoreError, explain},
    rows::whole,
};

/// A run as deletions see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    running: bool,
    deleted: bool,
}

impl Database {
    /// What people added to a run.
    pub(super) fn labels(&self, run: &RunId) -> Result<Labels, StoreError> {
        self.shown(run)?;
        let stored: Option<String> = self
            .connection()
            .prepare_cached("SELECT json FROM labels WHERE run = ?1")
            .and_then(|mut statement| statement.query_row([run.as_str()], |row| row.get(0)).optional())
            .map_err(|e| explain(self.path(), e))?;
        Ok(stored.map_or_else(Labels::default, |json| read(&json)))
    }

    /// Changes what people added to a run, unless somebody else did so since the patch was made.
    pub(super) fn relabel(&mut self, run: &RunId, patch: &LabelPatch) -> Result<Labels, StoreError> {
        let now = self.labels(run)?;
        if now.revision != patch.revision {
            return Err(StoreError::LabelsChanged { run: run.clone(), now: Box::new(now) });
        }
        let next = now.changed(patch)?;
        if next != now {
            self.change(|change| write(change, run, &next))?;
        }
        Ok(next)
    }

    /// Hides a run; it is removed by a later [`Database::remove_deleted`].
    pub(super) fn delete(&mut self, run: &RunId, at_unix_ms: u64) -> Result<(), StoreError> {
        if self.shown(run)?.running {
            return Err(StoreError::Running(run.clone()));
        }
        let labels = self.labels(run)?;
        self.change(|change| {
            write(change, run, &labels)?;
            change
                .execute(
                    "UPDATE labels SET deleted_unix_ms = ?2 WHERE run = ?1",
                    params![run.as_str(), whole(at_unix_ms)],
                )
                .map(drop)
        })
    }

    /// Takes a deletion back; a run that is not deleted stays as it is.
    pub(super) fn restore(&mut self, run: &RunId) -> Result<(), StoreError> {
        if self.standing(run)?.is_none() {
            return Err(StoreError::NoSuchRun(run.clone()));
        }
        self.change(|change| {
            change.execute("UPDATE labels SET deleted_unix_ms = NULL WHERE run = ?1", [run.as_str()]).map(drop)
        })
    }

    /// Removes for good what was deleted at `until_unix_ms` or before; says how many runs that were.
    pub(super) fn remove_deleted(&mut self, until_unix_ms: u64) -> Result<usize, StoreError> {
        let gone: Vec<String> = self
            .connection()
            .prepare_cached("SELECT run FROM labels WHERE deleted_unix_ms <= ?1")
            .and_then(|mut statement| statement.query_map([whole(until_unix_ms)], |row| row.get(0))?.collect())
            .map_err(|e| explain(self.path(), e))?;
        if gone.is_empty() {
            return Ok(0);
        }
        self.change(|change| gone.iter().try_for_each(|run| remove(change, run)))?;
        Ok(gone.len())
    }

    /// A run that is there and not deleted.
    fn shown(&self, run: &RunId) -> Result<Standing, StoreError> {
        let standing = self.standing(run)?.filter(|standing| !standing.deleted);
        standing.ok_or_else(|| StoreError::NoSuchRun(run.clone()))
    }

    fn standing(&self, run: &RunId) -> Result<Option<Standing>, StoreError> {
        let sql = "SELECT ended = 0 AND damage IS NULL, deleted_unix_ms IS NOT NULL \
                   FROM runs LEFT JOIN labels ON run = id WHERE id = ?1";
        let read = |row: &Row<'_>| Ok(Standing { running: row.get(0)?, deleted: row.get(1)? });
        self.connection()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([run.as_str()], read).optional())
            .map_err(|e| explain(self.path(), e))
    }

    /// Whether a run is there and not deleted.
    pub(super) fn is_shown(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.standing(run)?.is_some_and(|standing| !standing.deleted))
    }

    /// Whether a run is there, deleted or not.
    pub(super) fn is_taken(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.standing(run)?.is_some())
    }
}

/// Labels as they are stored. What can't be read is as good as none: a name or a tag is no reason to hide a run.
pub(super) fn read(json: &str) -> Labels {
    serde_json::from_str(json).unwrap_or_default()
}

/// Removes a run for good.
pub(super) fn remove(change: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    for table in ["raw", "cells", "events", "labels"] {
        change.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?1"))?.execute([run])?;
    }
    change.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([run]).map(drop)
}

pub(super) fn write(change: &Transaction<'_>, run: &RunId, labels: &Labels) -> rusqlite::Result<()> {
    let json = serde_json::to_string(labels).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    change
        .prepare_cached(
            "INSERT INTO labels (run, json) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET json = excluded.json",
        )?
        .execute(params![run.as_str(), json])
        .map(drop)
}
