//! The store's file, looked after: what is damaged, a smaller file, a copy of one moment.

use std::{fs, os::unix::fs::PermissionsExt as _};

use rusqlite::Connection;
use speedmatrix_agent::store::{Access, Damage, Store, StoreError, backup, check, vacuum};
use speedmatrix_shared::state::RunStatus;

use crate::{
    cli::{err, finish, out, serve},
    store::{events, put, run},
};

/// A store with a finished run `a` and a running one `b`.
async fn filled(path: &std::path::Path) -> Store {
    let store = Store::open(path, Access::Measure).await.unwrap();
    put(&store, "a", events(1)).await;
    put(&store, "b", events(2).into_iter().take(12).collect()).await;
    store
}

#[tokio::test]
async fn a_check_finds_what_is_damaged_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = filled(&path).await;
    let before = fs::read(&path).unwrap();
    let health = check(&path).unwrap();
    assert_eq!((health.schema, health.runs, health.damage.as_slice()), (5, Some(2), [].as_slice()));
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(store);
    let tool = Connection::open(&path).unwrap();
    tool.execute_batch(
        "PRAGMA foreign_keys = OFF; DELETE FROM events WHERE run = 'a' AND seq = 3;
         INSERT INTO events VALUES ('none', 0, 0, '{}');
         INSERT INTO runs VALUES ('Not a name', 3, 1, '{}', NULL), ('empty', 4, 1, '{}', NULL);",
    )
    .unwrap();
    let found: Vec<String> = check(&path).unwrap().damage.iter().map(|damage| format!("{damage:?}")).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    Orphans { table: "events", rows: 1 }
    Run { run: "a", detail: "event 4 came where 3 was due" }
    Run { run: "Not a name", detail: "\"Not a name\" is not a run id: expected 1 to 64 lower-case letters, digits and dashes" }
    Run { run: "empty", detail: "it has no events" }
    "#);
}

#[tokio::test]
async fn damaged_pages_are_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    drop(filled(&path).await);
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let whole = fs::read(&path).unwrap();
    // From the first page after the schema; all of the middle; a file that was cut.
    let mut bytes = whole.clone();
    bytes[3 * 4_096..].fill(0xa5);
    for damaged in [bytes, whole[..whole.len() / 2].to_vec()] {
        fs::write(&path, &damaged).unwrap();
        let told = finish(&folder, &["db", "check"]);
        assert_eq!(told.status.code(), Some(1), "{}{}", out(&told), err(&told));
        let said = format!("{}{}", out(&told), err(&told));
        assert!(said.contains("damaged") && said.contains("put a backup in its place"), "{said}");
        assert!(matches!(vacuum(&path), Err(StoreError::Damaged { .. })));
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, "no database at all, and longer than the hundred bytes of a header".repeat(9)).unwrap();
    let told = finish(&folder, &["db", "check"]);
    assert_eq!(told.status.code(), Some(1), "{}", err(&told));
}

#[tokio::test]
async fn what_can_not_be_looked_after_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let copy = folder.path().join("copy.sqlite3");
    let mut said = Vec::new();
    let mut ask = |arguments: &[&str]| {
        let told = finish(&folder, &[&["db"], arguments].concat());
        let sentence = err(&told).replace(&*folder.path().to_string_lossy(), "FOLDER");
        said.push(format!("{} {}: {}", arguments[0], told.status.code().unwrap(), sentence.trim_end()));
    };
    let to = copy.to_str().unwrap();
    for arguments in [&["check"][..], &["vacuum"], &["backup", to]] {
        ask(arguments);
    }
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA application_id = 1399868792; PRAGMA user_version = 99")
        .unwrap();
    for arguments in [&["check"][..], &["vacuum"], &["backup", to]] {
        ask(arguments);
    }
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute("CREATE TABLE customers (name TEXT)", []).unwrap();
    ask(&["check"]);
    fs::remove_file(&path).unwrap();
    drop(filled(&path).await);
    fs::write(&copy, "precious").unwrap();
    ask(&["backup", to]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), "precious");
    ask(&["backup", folder.path().join("none/copy").to_str().unwrap()]);
    insta::assert_snapshot!(said.join("\n"), @"
    check 74: error: there is no store FOLDER/runs.sqlite3: check the path, or give the right one with --store
    vacuum 74: error: there is no store FOLDER/runs.sqlite3: check the path, or give the right one with --store
    backup 74: error: there is no store FOLDER/runs.sqlite3: check the path, or give the right one with --store
    check 74: error: the store FOLDER/runs.sqlite3 was made by a newer Speedmatrix (schema 99, this one knows 5): update Speedmatrix, or choose another file with --store
    vacuum 74: error: the store FOLDER/runs.sqlite3 was made by a newer Speedmatrix (schema 99, this one knows 5): update Speedmatrix, or choose another file with --store
    backup 74: error: the store FOLDER/runs.sqlite3 was made by a newer Speedmatrix (schema 99, this one knows 5): update Speedmatrix, or choose another file with --store
    check 74: error: FOLDER/runs.sqlite3 is the database of another program: choose another file with --store
    backup 74: error: FOLDER/copy.sqlite3 is there already and was left as it is: give the copy another name
    backup 74: error: the copy FOLDER/none/copy can't be written (No such file or directory (os error 2)): choose another file on a disk with room
    ");
}

#[tokio::test]
async fn a_copy_is_made_and_the_room_given_back_at_the_right_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let measuring = filled(&path).await;
    let copy = folder.path().join("copy.sqlite3");
    // While a run is being measured a copy is made, and nothing is rewritten.
    assert_eq!(backup(&path, &copy).unwrap().damage, []);
    assert!(matches!(vacuum(&path), Err(StoreError::Measuring { run, .. }) if run.as_str() == "b"));
    put(&measuring, "b", events(2).into_iter().skip(12).collect()).await;
    drop(measuring);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let restored = Store::open(&copy, Access::Serve).await.unwrap();
    assert_eq!(restored.load(&run("a")).await.unwrap().next_seq, events(1).len() as u64);
    assert_ne!(restored.load(&run("b")).await.unwrap().status, RunStatus::Running);
    assert!(matches!(vacuum(&copy), Err(StoreError::InUse { .. })));
    restored.delete(&run("a"), 1).await.unwrap();
    restored.remove_deleted(1).await.unwrap();
    drop(restored);
    let shrunk = vacuum(&path).unwrap();
    assert!(shrunk.after <= shrunk.before, "{shrunk:?}");
    assert_eq!(check(&path).unwrap().damage, Vec::<Damage>::new());
}

#[tokio::test]
async fn a_copy_is_made_beside_an_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    drop(filled(&path).await);
    let agent = serve(&path, &[]);
    let made = finish(&folder, &["db", "backup"]);
    assert_eq!(made.status.code(), Some(0), "{}{}", out(&made), err(&made));
    let name = out(&made).lines().next().unwrap().strip_prefix("copied to ").unwrap().to_owned();
    assert_eq!(check(name.as_ref()).unwrap().damage, []);
    let checked = finish(&folder, &["db", "check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", err(&checked));
    let refused = finish(&folder, &["db", "vacuum"]);
    assert_eq!(refused.status.code(), Some(74));
    assert!(err(&refused).contains("another agent serves the store"), "{}", err(&refused));
    drop(agent);
}

#[tokio::test]
async fn a_store_of_an_older_version_is_checked_and_copied_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    drop(filled(&path).await);
    Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TABLE labels; DROP TABLE passes; DROP TABLE raw; PRAGMA user_version = 1")
        .unwrap();
    let copy = folder.path().join("copy.sqlite3");
    let health = backup(&path, &copy).unwrap();
    assert_eq!((health.schema, health.runs, health.damage.len()), (1, Some(2), 0));
    assert_eq!(check(&path).unwrap().schema, 1);
}
