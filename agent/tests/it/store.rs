//! The store as its users see it: what is kept, what is refused, and that nothing is overwritten.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use rusqlite::Connection;
use speedmatrix_agent::store::{Access, Store, StoreError, Which};
use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome},
    id::RunId,
    sample,
    state::{RunState, RunStatus},
};
use tempfile::TempDir;

pub(crate) fn run(id: &str) -> RunId {
    id.parse().unwrap()
}

/// The sample run's events, begun at another time.
pub(crate) fn events(started: u64) -> Vec<Envelope> {
    let mut events = sample::reference_events();
    if let RunEvent::RunStarted { started_unix_ms, .. } = &mut events[0].event {
        *started_unix_ms = started;
    }
    events
}

pub(crate) async fn put(store: &Store, id: &str, events: Vec<Envelope>) {
    for envelope in events {
        store.append(&run(id), envelope).await.unwrap();
    }
}

/// The files as they would be found if the power had gone now.
pub(crate) fn after_power_loss(path: &Path, folder: &TempDir) -> std::path::PathBuf {
    let copy = folder.path().join("copy.sqlite3");
    for ending in ["", "-wal"] {
        let name = |path: &Path| format!("{}{ending}", path.display());
        fs::copy(name(path), name(&copy)).unwrap();
    }
    copy
}

#[tokio::test]
async fn what_was_appended_is_listed_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    assert!(store.list().await.unwrap().is_empty());
    put(&store, "old", events(1_000)).await;
    put(&store, "new", events(2_000)).await;
    put(&store, "running", events(500).into_iter().take(9).collect()).await;
    let listed: Vec<String> = store.list().await.unwrap().iter().map(|run| run.id.to_string()).collect();
    assert_eq!(listed, ["running", "new", "old"]);
    let state = store.load(&run("old")).await.unwrap();
    assert_eq!(Some(state), RunState::fold(run("old"), &events(1_000)).unwrap());
    assert_eq!(store.events_from(&run("old"), 5).await.unwrap(), events(1_000)[5..]);
    assert!(matches!(store.load(&run("none")).await, Err(StoreError::NoSuchRun(_))));
}

#[tokio::test]
async fn events_out_of_order_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
    let events = events(1);
    put(&store, "a", events[..4].to_vec()).await;
    for wrong in [3, 0, 5] {
        assert!(matches!(store.append(&run("a"), events[wrong].clone()).await, Err(StoreError::Refused { .. })));
    }
    assert!(store.append(&run("b"), events[1].clone()).await.is_err());
    store.append(&run("a"), events[4].clone()).await.unwrap();
    assert_eq!(store.load(&run("a")).await.unwrap().next_seq, 5);
    assert_eq!(store.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_run_whose_process_died_is_interrupted_and_keeps_its_cells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    put(&store, "a", events(1).into_iter().take(20).collect()).await;
    let before = store.load(&run("a")).await.unwrap();
    let copy = after_power_loss(&path, &folder);
    // Who only looks or measures does not judge.
    for access in [Access::Read, Access::Measure] {
        let other = Store::open(&copy, access).await.unwrap();
        assert_eq!(other.load(&run("a")).await.unwrap().status, RunStatus::Running);
    }
    let again = Store::open(&copy, Access::Serve).await.unwrap();
    let after = again.load(&run("a")).await.unwrap();
    assert_eq!(after.status, RunStatus::Ended { outcome: RunOutcome::Interrupted });
    let results = |state: &RunState| state.cells.iter().filter_map(|cell| cell.result().cloned()).collect::<Vec<_>>();
    assert_eq!(results(&after), results(&before));
    assert!(!results(&after).is_empty());
}

#[tokio::test]
async fn one_agent_serves_while_others_look_and_measure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let serving = Store::open(&path, Access::Serve).await.unwrap();
    let second = Store::open(&path, Access::Serve).await;
    assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
    let measuring = Store::open(&path, Access::Measure).await.unwrap();
    let all = events(1);
    put(&measuring, "a", all[..12].to_vec()).await;
    // The serving agent sees that the run's process lives.
    let seen = |runs: Vec<speedmatrix_shared::api::RunSummary>| runs[0].status.clone();
    assert_eq!(seen(serving.list().await.unwrap()), RunStatus::Running);
    let looking = Store::open(&path, Access::Read).await.unwrap();
    assert_eq!(seen(looking.list().await.unwrap()), RunStatus::Running);
    assert!(serving.append(&run("a"), all[12].clone()).await.is_err());
    put(&measuring, "a", all[12..].to_vec()).await;
    assert_ne!(seen(serving.list().await.unwrap()), RunStatus::Running);
    let locks = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let locks: Vec<String> = locks.filter(|name| name.contains("lock")).collect();
    assert_eq!(locks, ["runs.sqlite3.lock"]);
}

#[tokio::test]
async fn a_damaged_record_is_listed_as_such_and_the_others_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    for id in ["fine", "broken", "huge", "gap"] {
        put(&store, id, events(1)).await;
    }
    let tool = Connection::open(&path).unwrap();
    tool.execute("UPDATE events SET json = '{\"type\":' WHERE run = 'broken' AND seq = 3", []).unwrap();
    tool.execute("UPDATE events SET json = hex(zeroblob(3000000)) WHERE run = 'huge' AND seq = 3", []).unwrap();
    tool.execute("DELETE FROM events WHERE run = 'gap' AND seq = 3", []).unwrap();
    for id in ["broken", "huge", "gap"] {
        let error = store.load(&run(id)).await.unwrap_err();
        assert!(matches!(error, StoreError::DamagedRun { .. }), "{error}");
    }
    assert!(store.load(&run("fine")).await.is_ok());
    let lines = store.list().await.unwrap().into_iter().map(|run| match run.status {
        RunStatus::Ended { outcome: RunOutcome::Failed { reason } } => format!("{}: {reason}", run.id),
        _ => format!("{}: {}", run.id, run.cells_done),
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
    huge: event 3 is larger than 4194304 bytes
    gap: event 4 came where 3 was due
    fine: 73
    broken: event 3: EOF while parsing a value at line 1 column 8
    ");
}

#[tokio::test]
async fn a_file_that_is_none_of_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let refused = async |access| {
        let before = fs::read(&path).unwrap();
        let error = Store::open(&path, access).await.unwrap_err().to_string();
        assert_eq!(fs::read(&path).unwrap(), before, "{error}");
        error.replace(&*folder.path().to_string_lossy(), "FOLDER")
    };
    let mut sentences = Vec::new();
    fs::write(&path, "this is no database, and it is longer than a header of one hundred bytes".repeat(20)).unwrap();
    sentences.push(refused(Access::Serve).await);
    assert_eq!(refused(Access::Read).await, sentences[0]);
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute("CREATE TABLE customers (name TEXT)", []).unwrap();
    sentences.push(refused(Access::Measure).await);
    fs::remove_file(&path).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA application_id = 1399868792; PRAGMA user_version = 99")
        .unwrap();
    sentences.push(refused(Access::Serve).await);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Store::open(&path, Access::Serve).await.unwrap_err().to_string();
    sentences.push(error.replace(&*folder.path().to_string_lossy(), "FOLDER"));
    insta::assert_snapshot!(sentences.join("\n"), @"
    the store FOLDER/runs.sqlite3 is damaged (file is not a database) and was left as it is: move it away, or choose another file with --store
    FOLDER/runs.sqlite3 is the database of another program: choose another file with --store
    the store FOLDER/runs.sqlite3 was made by a newer Speedmatrix (schema 99, this one knows 5): update Speedmatrix, or choose another file with --store
    the store FOLDER/runs.sqlite3 can't be opened (unable to open database file: FOLDER/runs.sqlite3): check the folder, or choose another file with --store
    ");
}

#[tokio::test]
async fn a_store_of_an_older_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Measure).await.unwrap();
    put(&store, "a", events(1)).await;
    drop(store);
    Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TABLE labels; DROP TABLE passes; DROP TABLE raw; PRAGMA user_version = 1")
        .unwrap();
    let error = Store::open(&path, Access::Read).await.unwrap_err();
    assert!(matches!(error, StoreError::Older { found: 1, known: 5, .. }), "{error}");
    for access in [Access::Serve, Access::Read] {
        let store = Store::open(&path, access).await.unwrap();
        let state = store.load(&run("a")).await.unwrap();
        assert_eq!(store.raw(&run("a"), state.cells[0].id, Which::Last).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_file_whose_middle_is_damaged_does_not_take_the_agent_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    put(&store, "a", events(1)).await;
    let copy = after_power_loss(&path, &folder);
    Connection::open(&copy).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = fs::read(&copy).unwrap();
    bytes[4_096..].fill(0xa5);
    fs::write(&copy, &bytes).unwrap();
    let error = match Store::open(&copy, Access::Serve).await {
        Ok(store) => store.list().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn looking_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/runs.sqlite3");
    let store = Store::open(&path, Access::Read).await.unwrap();
    assert!(store.list().await.unwrap().is_empty());
    assert!(!path.parent().unwrap().exists());
}

/// Whatever the umask says, and although the folder may be open to all.
#[tokio::test]
async fn a_new_store_is_for_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Measure).await.unwrap();
    put(&store, "a", events(1).into_iter().take(2).collect()).await;
    let mode = |ending: &str| {
        let file = format!("{}{ending}", path.display());
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(["", "-wal", "-shm"].map(mode), [0o600; 3]);
    drop(store);
    // What somebody decided later stays.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    drop(Store::open(&path, Access::Measure).await.unwrap());
    assert_eq!(mode(""), 0o640);
}
