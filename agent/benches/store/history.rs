//! A long history: the same run under many ids, without its raw arrivals, which a list never reads.

use std::path::Path;

use rusqlite::{Connection, params};
use speedmatrix_shared::id::RunId;

/// Copies a run until the store holds `runs` of them. Through the store itself it would take minutes, as each event is a
/// transaction of its own there.
pub(crate) fn copy(path: &Path, run: &RunId, runs: u32) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    let change = connection.transaction()?;
    for number in 1..runs {
        let id = format!("{run}-{number}");
        change.execute(
            "INSERT INTO runs SELECT ?2, started_unix_ms - ?3, ended, replace(summary, ?1, ?2), damage FROM runs \
             WHERE id = ?1",
            params![run.as_str(), id, number],
        )?;
        change.execute(
            "INSERT INTO events SELECT ?2, seq, at, json FROM events WHERE run = ?1",
            params![run.as_str(), id],
        )?;
        change.execute(
            "INSERT INTO cells SELECT ?2, cell, context_tokens, concurrency, status, total_tok_s, per_request_tok_s, \
             ttft_s, time_between_tokens_s FROM cells WHERE run = ?1",
            params![run.as_str(), id],
        )?;
    }
    change.commit()
}
