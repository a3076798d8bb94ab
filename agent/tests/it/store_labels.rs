//! What people add to stored runs, and what they delete: kept, refused, taken back, removed for good.

use rusqlite::Connection;
use speedmatrix_agent::store::{Access, Foreign, Store, StoreError};
use speedmatrix_shared::{
    facts,
    import::events as events_of,
    label::{LabelPatch, Labels},
    sample,
    state::RunState,
};

use crate::store::{after_power_loss, events, put, run};

async fn names(store: &Store) -> Vec<String> {
    store.list().await.unwrap().iter().map(|line| format!("{}: {}", line.id, line.name())).collect()
}

fn renamed(revision: u64, title: &str) -> LabelPatch {
    LabelPatch { revision, title: Some(title.into()), ..LabelPatch::default() }
}

#[tokio::test]
async fn labels_are_kept_and_the_slower_of_two_changes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    put(&store, "a", events(1)).await;
    put(&store, "running", events(2).into_iter().take(9).collect()).await;
    assert_eq!(store.labels(&run("a")).await.unwrap(), Labels::default());
    let mine = store.relabel(&run("a"), renamed(0, "Night run")).await.unwrap();
    assert_eq!((mine.revision, mine.title.as_deref()), (1, Some("Night run")));
    // Made from what was there before.
    match store.relabel(&run("a"), renamed(0, "Theirs")).await.unwrap_err() {
        StoreError::LabelsChanged { now, .. } => assert_eq!(*now, mine),
        other => panic!("{other}"),
    }
    let wish =
        LabelPatch { revision: 1, tags: Some(vec!["night".into()]), pinned: Some(true), ..LabelPatch::default() };
    let both = store.relabel(&run("a"), wish).await.unwrap();
    assert_eq!((both.revision, both.pinned, both.title.as_deref()), (2, true, Some("Night run")));
    let too_long = renamed(2, &"x".repeat(10_001));
    assert!(matches!(store.relabel(&run("a"), too_long).await, Err(StoreError::Label(_))));
    assert!(matches!(store.relabel(&run("none"), renamed(0, "x")).await, Err(StoreError::NoSuchRun(_))));
    // A run that is being measured can have a name, too, and the run's next events keep it.
    store.relabel(&run("running"), renamed(0, "Still going")).await.unwrap();
    store.append(&run("running"), events(2)[9].clone()).await.unwrap();
    drop(store);
    let again = Store::open(&path, Access::Read).await.unwrap();
    assert_eq!(names(&again).await, ["running: Still going", "a: Night run"]);
    assert_eq!(again.list().await.unwrap()[1].labels, both);
}

#[tokio::test]
async fn a_deleted_run_is_hidden_can_come_back_and_is_removed_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    for id in ["a", "b", "c"] {
        put(&store, id, events(1)).await;
    }
    put(&store, "running", events(2).into_iter().take(9).collect()).await;
    assert!(matches!(store.delete(&run("running"), 10).await, Err(StoreError::Running(_))));
    store.relabel(&run("a"), renamed(0, "Mine")).await.unwrap();
    store.delete(&run("a"), 10).await.unwrap();
    store.delete(&run("b"), 20).await.unwrap();
    assert_eq!(names(&store).await.len(), 2);
    for gone in [store.load(&run("a")).await.err(), store.labels(&run("a")).await.err()] {
        assert!(matches!(gone, Some(StoreError::NoSuchRun(_))));
    }
    assert!(matches!(store.delete(&run("a"), 30).await, Err(StoreError::NoSuchRun(_))));

    store.restore(&run("a")).await.unwrap();
    assert_eq!(store.load(&run("a")).await.unwrap(), RunState::fold(run("a"), &events(1)).unwrap().unwrap());
    assert_eq!(store.labels(&run("a")).await.unwrap().title.as_deref(), Some("Mine"));

    assert_eq!(store.remove_deleted(19).await.unwrap(), 0);
    assert_eq!(store.remove_deleted(20).await.unwrap(), 1);
    assert!(matches!(store.restore(&run("b")).await, Err(StoreError::NoSuchRun(_))));
    let left = |table: &str, run: &str| {
        let sql = format!("SELECT count(*) FROM {table} WHERE {run} = 'b'");
        Connection::open(&path).unwrap().query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!([left("runs", "id"), left("events", "run"), left("cells", "run"), left("labels", "run")], [0; 4]);
    // What was deleted before the agent began can't be brought back any more.
    store.delete(&run("c"), 30).await.unwrap();
    let again = Store::open(&after_power_loss(&path, &folder), Access::Serve).await.unwrap();
    assert!(matches!(again.restore(&run("c")).await, Err(StoreError::NoSuchRun(_))));
    assert_eq!(again.load(&run("a")).await.unwrap().cells.len(), 73);
}

#[tokio::test]
async fn a_damaged_run_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Serve).await.unwrap();
    put(&store, "a", events(1)).await;
    Connection::open(&path).unwrap().execute("DELETE FROM events WHERE seq = 3", []).unwrap();
    assert!(store.load(&run("a")).await.is_err());
    store.delete(&run("a"), 1).await.unwrap();
    assert_eq!(store.remove_deleted(1).await.unwrap(), 1);
    assert!(store.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_list_of_a_store_of_schema_2_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = Store::open(&path, Access::Measure).await.unwrap();
    put(&store, "a", events(1)).await;
    drop(store);
    let old = "DROP TABLE labels; DROP TABLE passes; UPDATE runs SET summary = replace(summary, '\"model\"', '\"old\"'); PRAGMA user_version = 2";
    Connection::open(&path).unwrap().execute_batch(old).unwrap();
    let store = Store::open(&path, Access::Serve).await.unwrap();
    let wanted = facts::summary(&RunState::fold(run("a"), &events(1)).unwrap().unwrap());
    assert!(wanted.model.is_some());
    assert_eq!(store.list().await.unwrap(), [wanted]);
    let kept: String =
        Connection::open(&path).unwrap().query_row("SELECT summary FROM runs", [], |row| row.get(0)).unwrap();
    assert!(kept.contains("\"model\""), "{kept}");
}

#[tokio::test]
async fn an_imported_run_is_stored_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
    let sample = sample::reference();
    let foreign = |id: &str| Foreign {
        state: RunState { id: run(id), ..sample.clone() },
        events: events_of(&sample),
        labels: Labels { notes: "from elsewhere".into(), ..Labels::default() },
    };
    store.import(foreign("a")).await.unwrap();
    assert_eq!(store.load(&run("a")).await.unwrap(), RunState { id: run("a"), ..sample.clone() });
    assert_eq!(store.labels(&run("a")).await.unwrap().notes, "from elsewhere");
    assert!(matches!(store.import(foreign("a")).await, Err(StoreError::Taken(_))));
    // An id stays taken as long as its deletion can be taken back.
    store.delete(&run("a"), 1).await.unwrap();
    assert!(matches!(store.import(foreign("a")).await, Err(StoreError::Taken(_))));
    let mut twice = foreign("b");
    twice.events.push(twice.events[1].clone());
    assert!(store.import(twice).await.is_err());
    assert!(store.list().await.unwrap().is_empty());
}
