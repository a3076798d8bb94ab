//! Upkeep of the file: what is damaged in it, giving room back, a copy of it.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use nix::sys::statvfs::statvfs;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Transaction};
use speedmatrix_shared::{id::RunId, state::RunState};

use super::{
    database::BUSY_TIMEOUT,
    error::{StoreError, explain},
    lock::{self, Lock},
    rows::{envelope, rows_of},
    schema,
};

/// Most sentences of SQLite's about a damaged file that are passed on.
const MAX_SENTENCES: usize = 20;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Which file.
    pub path: PathBuf,
    /// Its schema.
    pub schema: i64,
    /// Its size with its log, bytes.
    pub bytes: u64,
    /// Runs in it, also deleted ones that are not removed yet; `None` where they can't be listed.
    pub runs: Option<u64>,
    /// All that is wrong.
    pub damage: Vec<Damage>,
}

/// Something that is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// The file's pages or indexes, in SQLite's words.
    File(String),
    /// Rows that belong to no run.
    Orphans {
        /// In which table.
        table: String,
        /// How many.
        rows: u64,
    },
    /// A run whose record can't be read.
    Run {
        /// What the file calls it.
        run: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// What a vacuum did, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrunk {
    /// The file with its log before.
    pub before: u64,
    /// And after.
    pub after: u64,
}

/// Reads the whole file, as it is at one moment, and folds every run. Works beside an agent; nothing is written.
pub fn check(path: &Path) -> Result<Health, StoreError> {
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let schema = schema::version(&connection, path)?;
    let moment = connection.transaction().map_err(|e| explain(path, e))?;
    let mut damage = Vec::new();
    match sentences(&moment) {
        Ok(sentences) => damage.extend(sentences.into_iter().map(Damage::File)),
        Err(error) => damage.push(of_file(path, error)?),
    }
    // A file without tables is a store that nobody wrote to yet.
    let mut runs = Some(0);
    if schema > 0 {
        match orphans(&moment) {
            Ok(found) => damage.extend(found),
            Err(error) => damage.push(of_file(path, error)?),
        }
        match names(&moment) {
            Ok(names) => {
                runs = Some(names.len() as u64);
                damage.extend(names.into_iter().filter_map(|name| damage_of(&moment, name)));
            }
            Err(error) => {
                runs = None;
                damage.push(of_file(path, error)?);
            }
        }
    }
    Ok(Health { path: path.to_owned(), schema, bytes: size(path), runs, damage })
}

/// Gives unused room back to the disk. Not beside an agent nor during a run, which would wait for too long.
pub fn vacuum(path: &Path) -> Result<Shrunk, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    schema::version(&connection, path)?;
    let unlocked = |source| StoreError::Open { path: path.to_owned(), source };
    let lock = Lock::take(lock::of_store(path)).map_err(unlocked)?;
    let _alone = lock.ok_or_else(|| StoreError::InUse { path: path.to_owned() })?;
    let health = check(path)?;
    if let Some(Damage::File(detail)) = health.damage.first() {
        return Err(StoreError::Damaged { path: path.to_owned(), detail: detail.clone() });
    }
    if connection.is_readonly("main").map_err(|e| explain(path, e))? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    if health.schema > 0 {
        nobody_measures(&connection, path)?;
    }
    let rewritten = connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
    rewritten.map_err(|e| explain(path, e))?;
    Ok(Shrunk { before: health.bytes, after: size(path) })
}

/// Copies the store, as it is at one moment, to a file that must not exist yet, and checks the copy. Works beside an
/// agent and during a run.
pub fn backup(path: &Path, to: &Path) -> Result<Health, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    schema::version(&connection, path)?;
    // Tokens are in it, if only their digests: nobody else may read it. SQLite takes an empty file for a new one.
    let made = File::options().write(true).create_new(true).mode(0o600).open(to);
    let file = made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists { path: to.to_owned() },
        _ => StoreError::NoCopy { path: to.to_owned(), source },
    })?;
    let copied = copy(&connection, path, to).and_then(|()| {
        kept(&file, to).map_err(|source| StoreError::NoCopy { path: to.to_owned(), source })?;
        check(to)
    });
    if copied.is_err() {
        // A part of a copy is none.
        drop(fs::remove_file(to));
    }
    copied
}

/// Opens a file that is there.
fn open(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(|e| explain(path, e))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|e| explain(path, e))?;
    Ok(connection)
}

/// An error as damage, if it means that.
fn of_file(path: &Path, error: rusqlite::Error) -> Result<Damage, StoreError> {
    match explain(path, error) {
        StoreError::Damaged { detail, .. } => Ok(Damage::File(detail)),
        other => Err(other),
    }
}

/// What SQLite says is wrong with pages and indexes.
fn sentences(moment: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let mut statement = moment.prepare(&format!("PRAGMA integrity_check({MAX_SENTENCES})"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let lines = rows.iter().flat_map(|row| row.lines()).map(str::trim);
    let said = lines.filter(|line| *line != "ok" && !line.is_empty() && !line.starts_with("***"));
    Ok(said.take(MAX_SENTENCES).map(str::to_owned).collect())
}

fn orphans(moment: &Transaction<'_>) -> rusqlite::Result<Vec<Damage>> {
    let sql = "SELECT \"table\", count(*) FROM pragma_foreign_key_check GROUP BY 1";
    let read = |row: &Row<'_>| {
        let rows: i64 = row.get(1)?;
        Ok(Damage::Orphans { table: row.get(0)?, rows: u64::try_from(rows).unwrap_or_default() })
    };
    moment.prepare(sql)?.query_map([], read)?.collect()
}

/// What the file calls its runs.
fn names(moment: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let read = |row: &Row<'_>| Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned());
    moment.prepare("SELECT id FROM runs ORDER BY started_unix_ms, id")?.query_map([], read)?.collect()
}

/// What is wrong with a run's record.
fn damage_of(moment: &Transaction<'_>, name: String) -> Option<Damage> {
    let detail = match name.parse::<RunId>() {
        Ok(run) => folds(moment, &run).err(),
        Err(error) => Some(error.to_string()),
    };
    detail.map(|detail| Damage::Run { run: name, detail })
}

fn folds(moment: &Transaction<'_>, run: &RunId) -> Result<(), String> {
    let rows = rows_of(moment, run, 0).map_err(|e| e.to_string())?;
    let events = rows.into_iter().map(|row| envelope(run, row)).collect::<Result<Vec<_>, _>>();
    let events = events.map_err(|error| match error {
        StoreError::DamagedRun { detail, .. } => detail,
        other => other.to_string(),
    })?;
    match RunState::fold(run.clone(), &events) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("it has no events".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Refuses while a process lives that adds to a run.
fn nobody_measures(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let open: Vec<String> = connection
        .prepare("SELECT id FROM runs WHERE ended = 0")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(|e| explain(path, e))?;
    for run in open.iter().filter_map(|id| id.parse::<RunId>().ok()) {
        let lock = Lock::take(lock::of_run(path, &run));
        let lock = lock.map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        let Some(lock) = lock else { return Err(StoreError::Measuring { path: path.to_owned(), run }) };
        lock.finish();
    }
    Ok(())
}

fn copy(connection: &Connection, path: &Path, to: &Path) -> Result<(), StoreError> {
    let unwritten = |source| StoreError::NoCopy { path: to.to_owned(), source };
    let name = to.to_str().ok_or_else(|| unwritten(io::Error::other("its name is not in UTF-8")))?;
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    copied.map(drop).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::DatabaseBusy) => explain(path, error),
        _ => unwritten(io::Error::other(error)),
    })
}

/// Returns when the copy would survive a loss of power.
fn kept(file: &File, to: &Path) -> io::Result<()> {
    file.sync_all()?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Room on the disk that holds a file, bytes.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let disk = statvfs(path).ok()?;
    disk.blocks_available().checked_mul(disk.fragment_size())
}

/// The file with its log, bytes.
fn size(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let length = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    length(path) + length(Path::new(&log))
}
