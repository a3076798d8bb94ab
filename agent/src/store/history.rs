//! One cell in other runs, from the table of cells.

use rusqlite::{Row, params};
use speedmatrix_shared::{
    api::{CellInRun, MOST_OTHER_RUNS},
    id::{CellId, RunId},
    stats::cell::CellStatus,
};

use super::{
    database::Database,
    error::{StoreError, explain},
    list::Stored,
};

/// What a run found in the cell, as it is stored: status, total and per-request speed, TTFT, time between tokens.
type Found = (String, [Option<f64>; 4]);

impl Database {
    /// What runs other than `run` measured in a cell: those of `model` first, each time newest first.
    pub(super) fn cell_in_others(
        &self,
        run: &RunId,
        cell: CellId,
        model: Option<&str>,
    ) -> Result<Vec<CellInRun>, StoreError> {
        // From each run to its cell, which is one look into the cells' own order: there is no order by cell alone.
        let sql = format!(
            "SELECT {}, status, total_tok_s, per_request_tok_s, ttft_s, time_between_tokens_s \
             FROM runs CROSS JOIN cells ON cells.run = runs.id AND cells.cell = ?1 \
             LEFT JOIN labels ON labels.run = runs.id \
             WHERE runs.id <> ?2 AND damage IS NULL AND deleted_unix_ms IS NULL \
             ORDER BY CASE WHEN json_valid(summary) THEN json_extract(summary, '$.model') IS ?3 ELSE 0 END DESC, \
             started_unix_ms DESC, runs.id DESC LIMIT ?4",
            Stored::COLUMNS
        );
        let rows: Vec<(Stored, Found)> = self
            .connection()
            .prepare_cached(&sql)
            .and_then(|mut statement| {
                let asked = params![cell.to_string(), run.as_str(), model, MOST_OTHER_RUNS];
                statement.query_map(asked, |row| Ok((Stored::read(row)?, found(row)?)))?.collect()
            })
            .map_err(|e| explain(self.path(), e))?;
        Ok(rows.into_iter().filter_map(|(stored, found)| self.told(stored, found)).collect())
    }

    fn told(&self, stored: Stored, (status, values): Found) -> Option<CellInRun> {
        let line = self.line(stored)?;
        // What a failed cell measured stands for nothing.
        let [total_tok_s, per_request_tok_s, ttft_s, time_between_tokens_s] =
            if CellStatus::is_failed_label(&status) { [None; 4] } else { values };
        Some(CellInRun {
            name: line.name().to_owned(),
            run: line.id,
            started_unix_ms: line.started_unix_ms,
            origin: line.origin,
            model: line.model,
            engine: line.engine,
            status,
            total_tok_s,
            per_request_tok_s,
            ttft_s,
            time_between_tokens_s,
        })
    }
}

fn found(row: &Row<'_>) -> rusqlite::Result<Found> {
    let number = |column| row.get(column);
    let numbers =
        [number("total_tok_s")?, number("per_request_tok_s")?, number("ttft_s")?, number("time_between_tokens_s")?];
    Ok((row.get("status")?, numbers))
}
