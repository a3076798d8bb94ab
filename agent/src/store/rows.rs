//! A run's rows: its line in the list, its events, and a line of each cell.

use rusqlite::{Connection, Row, Transaction, params};
use speedmatrix_shared::{
    event::{Envelope, RunEvent},
    facts::summary as summary_of,
    id::{CellId, RunId},
    state::{Cell, RunState, RunStatus},
    stats::{cell::CellResult, summary::Summary},
    units::Nanos,
};

use super::{
    MAX_EVENT_BYTES,
    error::{StoreError, damaged},
    raw,
};

/// An event to be written, and what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) envelope: &'a Envelope,
    /// The event as it is stored.
    pub(super) json: &'a str,
    /// Beside a finished cell: what its result was computed from.
    pub(super) raw: Option<&'a [u8]>,
}

/// The run's line in the list.
pub(super) fn write_run(change: &Transaction<'_>, state: &RunState) -> rusqlite::Result<()> {
    let summary = summary_of(state);
    let summary = serde_json::to_string(&summary).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    let ended = i64::from(state.status != RunStatus::Running);
    change
        .prepare_cached(
            "INSERT INTO runs (id, started_unix_ms, ended, summary) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, summary = excluded.summary",
        )?
        .execute(params![state.id.as_str(), whole(state.started_unix_ms), ended, summary])
        .map(drop)
}

/// An event of a run that is `state` after it, and of a finished cell what all its repeats found.
pub(super) fn write_event(change: &Transaction<'_>, state: &RunState, entry: Entry<'_>) -> rusqlite::Result<()> {
    let Entry { envelope, json, raw } = entry;
    let run = state.id.as_str();
    change.prepare_cached("INSERT INTO events (run, seq, at, json) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        run,
        whole(envelope.seq),
        whole(envelope.at.0),
        json
    ])?;
    if let RunEvent::CellFinished { cell, result } = &envelope.event {
        let of_all = state.cell(*cell).and_then(Cell::result).unwrap_or(result);
        write_cell(change, run, *cell, of_all)?;
        if let Some(bytes) = raw {
            raw::write(change, raw::Row { run, cell: *cell, seq: envelope.seq, rules: result.rules, bytes })?;
        }
    }
    Ok(())
}

fn write_cell(change: &Transaction<'_>, run: &str, cell: CellId, result: &CellResult) -> rusqlite::Result<()> {
    let stats = &result.stats;
    let median = |summary: &Option<Summary>| summary.as_ref().map(|s| s.p50);
    change
        .prepare_cached("INSERT OR REPLACE INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            run,
            cell.to_string(),
            whole(cell.context.tokens()),
            cell.concurrency.get(),
            result.status.label(),
            stats.total_tok_s,
            median(&stats.per_request_tok_s),
            median(&stats.ttft_s),
            median(&stats.time_between_tokens_s),
        ])
        .map(drop)
}

/// An event as it is stored: its number, its time and its JSON, unless that is too large.
pub(super) type EventRow = (i64, i64, Option<String>);

/// A run's events from number `from_seq` on, as they are stored.
pub(super) fn rows_of(connection: &Connection, run: &RunId, from_seq: u64) -> rusqlite::Result<Vec<EventRow>> {
    let sql = "SELECT seq, at, CASE WHEN length(json) <= ?3 THEN json END FROM events \
               WHERE run = ?1 AND seq >= ?2 ORDER BY seq";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map(params![run.as_str(), whole(from_seq), whole(MAX_EVENT_BYTES as u64)], read)?.collect()
}

pub(super) fn envelope(run: &RunId, (seq, at, json): EventRow) -> Result<Envelope, StoreError> {
    let json = json.ok_or_else(|| damaged(run, format!("event {seq} is larger than {MAX_EVENT_BYTES} bytes")))?;
    let event = serde_json::from_str(&json).map_err(|e| damaged(run, format!("event {seq}: {e}")))?;
    let positive = |number: i64| {
        u64::try_from(number).map_err(|_below_zero| damaged(run, format!("event {seq} has the number {number}")))
    };
    Ok(Envelope { seq: positive(seq)?, at: Nanos(positive(at)?), event })
}

/// A number as SQLite holds it. Numbers, sizes and times of runs stay far below 2^63.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
