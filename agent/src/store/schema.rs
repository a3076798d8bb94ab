//! The tables, and how a file of an older version becomes one of this version.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    Access,
    error::{StoreError, explain},
};

/// Marks the file as ours: "SpMx".
const APPLICATION_ID: i64 = 0x5370_4d78;

/// The schema of this version.
pub(super) const KNOWN: i64 = 5;

/// Step n makes schema n + 1 out of schema n. A step that was released is never edited.
const STEPS: [&str; KNOWN as usize] = [
    "
    CREATE TABLE runs (
        id              TEXT    PRIMARY KEY,
        started_unix_ms INTEGER NOT NULL,
        ended           INTEGER NOT NULL,
        summary         TEXT    NOT NULL,
        damage          TEXT
    ) STRICT;
    CREATE INDEX runs_in_list_order ON runs (ended, started_unix_ms DESC, id DESC);
    CREATE TABLE events (
        run  TEXT    NOT NULL REFERENCES runs (id),
        seq  INTEGER NOT NULL,
        at   INTEGER NOT NULL,
        json TEXT    NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT;
    CREATE TABLE cells (
        run                   TEXT    NOT NULL REFERENCES runs (id),
        cell                  TEXT    NOT NULL,
        context_tokens        INTEGER NOT NULL,
        concurrency           INTEGER NOT NULL,
        status                TEXT    NOT NULL,
        total_tok_s           REAL,
        per_request_tok_s     REAL,
        ttft_s                REAL,
        time_between_tokens_s REAL,
        PRIMARY KEY (run, cell)
    ) STRICT;
    ",
    // Records of finished cells, as `shared::raw::codec` packs them: `rules` made the result that event `seq` tells. The
    // bytes come last, so that who asks for the rest does not read through them.
    "
    CREATE TABLE raw (
        run   TEXT    NOT NULL REFERENCES runs (id),
        cell  TEXT    NOT NULL,
        seq   INTEGER NOT NULL,
        rules INTEGER,
        bytes BLOB    NOT NULL,
        PRIMARY KEY (run, cell)
    ) STRICT;
    ",
    // What people added to a run, as `shared::label` writes it, and when it was deleted. Lines of the list tell more than
    // before: old ones are made again when they are first asked for.
    "
    CREATE TABLE labels (
        run             TEXT    PRIMARY KEY REFERENCES runs (id),
        json            TEXT    NOT NULL,
        deleted_unix_ms INTEGER
    ) STRICT;
    UPDATE runs SET summary = '{}';
    ",
    // A cell that is measured again keeps the record of each measurement.
    "
    ALTER TABLE raw RENAME TO raw_of_last;
    CREATE TABLE raw (
        run   TEXT    NOT NULL REFERENCES runs (id),
        cell  TEXT    NOT NULL,
        seq   INTEGER NOT NULL,
        rules INTEGER,
        bytes BLOB    NOT NULL,
        PRIMARY KEY (run, cell, seq)
    ) STRICT;
    INSERT INTO raw SELECT run, cell, seq, rules, bytes FROM raw_of_last;
    DROP TABLE raw_of_last;
    ",
    // Who may use the agent, each known by the SHA-256 of a random token. Numbers are never given twice.
    "
    CREATE TABLE passes (
        number          INTEGER PRIMARY KEY AUTOINCREMENT,
        digest          BLOB    NOT NULL,
        role            TEXT    NOT NULL,
        run             TEXT,
        name            TEXT    NOT NULL,
        created_unix_ms INTEGER NOT NULL,
        until_unix_ms   INTEGER
    ) STRICT;
    ",
];

/// The schema of a file that is ours and that this version understands. Nothing is written.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|e| explain(path, e));
    let found = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    Ok(found)
}

/// Checks that the file is ours and brings it to this version's schema. Before the checks have passed nothing is
/// written.
pub(super) fn prepare(connection: &mut Connection, path: &Path, access: Access) -> Result<(), StoreError> {
    let explain = |e| explain(path, e);
    let found = version(connection, path)?;
    if access == Access::Read {
        if found < KNOWN {
            return Err(StoreError::Older { path: path.to_owned(), found, known: KNOWN });
        }
        return Ok(());
    }
    if connection.is_readonly("main").map_err(explain)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
        .map_err(explain)?;
    migrate(connection).map_err(explain)
}

/// An empty store that lives in memory: what a file that is not there looks like.
pub(super) fn empty() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    // Another process may be at the same work: who comes second finds it done.
    let change = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let found: usize = change.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))?.try_into().unwrap_or(0);
    for step in STEPS.iter().skip(found) {
        change.execute_batch(step)?;
    }
    if found < STEPS.len() {
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.pragma_update(None, "user_version", KNOWN)?;
    }
    change.commit()
}
