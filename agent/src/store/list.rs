//! The list of runs: a line of each, made once and kept beside the events.

use rusqlite::{Row, params};
use speedmatrix_shared::{
    api::{Headline, RunSummary},
    event::RunOutcome,
    facts,
    id::RunId,
    label::Labels,
    state::RunStatus,
};

use super::{
    Access,
    database::Database,
    error::{StoreError, explain},
    labels,
};

/// A line as it is stored.
#[derive(Debug)]
pub(super) struct Stored {
    id: String,
    started: i64,
    summary: String,
    damage: Option<String>,
    labels: Option<String>,
}

impl Stored {
    /// The columns that a query for it begins with.
    pub(super) const COLUMNS: &str = "runs.id, started_unix_ms, summary, damage, labels.json";

    /// From a row of such a query.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            started: row.get(1)?,
            summary: row.get(2)?,
            damage: row.get(3)?,
            labels: row.get(4)?,
        })
    }
}

impl Database {
    pub(super) fn list(&mut self) -> Result<Vec<RunSummary>, StoreError> {
        let unended = self.end_dead_runs()?;
        let sql = format!(
            "SELECT {} FROM runs LEFT JOIN labels ON run = id \
             WHERE deleted_unix_ms IS NULL ORDER BY ended, started_unix_ms DESC, id DESC",
            Stored::COLUMNS
        );
        let rows: Vec<_> = self
            .connection()
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_map([], Stored::read)?.collect())
            .map_err(|e| explain(self.path(), e))?;
        let mut lines: Vec<RunSummary> = rows.into_iter().filter_map(|row| self.line(row)).collect();
        for (run, error) in unended {
            if let Some(line) = lines.iter_mut().find(|line| line.id == run) {
                line.status = RunStatus::Ended { outcome: RunOutcome::Interrupted };
                line.unstored = Some(format!("That it was interrupted is not stored yet: {}", error.plain()));
            }
        }
        Ok(lines)
    }

    /// A line of the list. A summary that can't be read, as one of an older version, is made again from the events.
    pub(super) fn line(&self, stored: Stored) -> Option<RunSummary> {
        // A name that is none can't be asked for either, so the run is not shown.
        let id: RunId = stored.id.parse().ok()?;
        let started_unix_ms = u64::try_from(stored.started).unwrap_or(0);
        let line = match (stored.damage, serde_json::from_str(&stored.summary)) {
            (Some(detail), _) => damaged_line(id, started_unix_ms, detail),
            (None, Ok(summary)) => summary,
            (None, Err(_)) => self.made_again(id, started_unix_ms),
        };
        let labels = stored.labels.as_deref().map(labels::read).unwrap_or_default();
        Some(RunSummary { labels, ..line })
    }

    fn made_again(&self, id: RunId, started_unix_ms: u64) -> RunSummary {
        let summary = match self.load(&id) {
            Ok(state) => facts::summary(&state),
            Err(error) => return damaged_line(id, started_unix_ms, error.to_string()),
        };
        if self.access() == Access::Serve
            && let Ok(json) = serde_json::to_string(&summary)
            && let Err(error) =
                self.connection().execute("UPDATE runs SET summary = ?2 WHERE id = ?1", params![id.as_str(), json])
        {
            tracing::warn!("the line of run {id} in the list could not be stored and is made again each time: {error}");
        }
        summary
    }
}

/// The line of a run that can't be read.
fn damaged_line(id: RunId, started_unix_ms: u64, detail: String) -> RunSummary {
    RunSummary {
        id,
        title: "Damaged record".into(),
        engine: String::new(),
        started_unix_ms,
        elapsed_s: 0.0,
        status: RunStatus::Ended { outcome: RunOutcome::Failed { reason: detail } },
        origin: None,
        cells_done: 0,
        cells: 0,
        flagged: 0,
        headline: Headline::default(),
        mini: Vec::new(),
        model: None,
        gpu: None,
        engine_name: None,
        target: None,
        labels: Labels::default(),
        unstored: None,
    }
}
