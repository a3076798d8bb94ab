//! Rules of how long runs are kept: what they delete, and what they never do.

use speedmatrix_agent::{
    runs::{Runs, unix_ms},
    store::{Access, Prune, Retention, Store, Which, check},
};
use speedmatrix_shared::{
    api::RunSummary,
    event::RunEvent,
    import::Import,
    label::{LabelPatch, Labels},
    sample,
    state::RunState,
};

use crate::{
    cli::{err, finish, out},
    store::{events, put, run},
};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A store with runs of so many days ago: `old` is pinned, `running` has no end.
async fn filled(path: &std::path::Path) -> Store {
    let store = Store::open(path, Access::Measure).await.unwrap();
    let ago = |days: u64| unix_ms() - days * DAY_MS;
    for (id, days) in [("new", 1), ("middle", 50), ("ancient", 200), ("old", 300)] {
        put(&store, id, events(ago(days))).await;
    }
    put(&store, "running", events(ago(400)).into_iter().take(12).collect()).await;
    let pinned = LabelPatch { pinned: Some(true), ..LabelPatch::default() };
    store.relabel(&run("old"), pinned).await.unwrap();
    store
}

fn names(runs: &[RunSummary]) -> Vec<&str> {
    runs.iter().map(|run| run.id.as_str()).collect()
}

#[tokio::test]
async fn pinned_and_running_runs_outlive_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("runs.sqlite3")).await;
    let rule = Retention { runs: Some(0), days: Some(0), raw_days: Some(0) };
    let pruned = store.prune(rule, unix_ms(), Prune::Remove).await.unwrap();
    assert_eq!(pruned.runs, [run("new"), run("middle"), run("ancient")]);
    assert_eq!(names(&store.list().await.unwrap()), ["running", "old"]);
    assert_eq!(check(store.path()).unwrap().damage, []);
}

#[tokio::test]
async fn raw_arrivals_go_before_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("runs.sqlite3")).await;
    // A cell of its own with a record, as a run that is measured stores it.
    let mut log = events(unix_ms() - 50 * DAY_MS);
    let place = log.iter().position(|envelope| matches!(envelope.event, RunEvent::CellFinished { .. })).unwrap();
    let rest = log.split_off(place + 1);
    let finished = log.pop().unwrap();
    let RunEvent::CellFinished { cell, .. } = finished.event else { panic!("it is one") };
    put(&store, "kept", log).await;
    drop(store.append_cell(&run("kept"), finished, vec![7; 100].into()).await.unwrap());
    put(&store, "kept", rest).await;
    let before = store.load(&run("kept")).await.unwrap();
    let rule = Retention { raw_days: Some(30), ..Retention::default() };
    let pruned = store.prune(rule, unix_ms(), Prune::Remove).await.unwrap();
    assert_eq!((pruned.runs.len(), pruned.without_raw, pruned.raw_bytes), (0, vec![run("kept")], 100));
    assert_eq!(store.raw(&run("kept"), cell, Which::Last).await.unwrap(), None);
    assert_eq!(store.load(&run("kept")).await.unwrap(), before);
}

#[tokio::test]
async fn what_a_person_asks_to_prune_is_named_first_and_then_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let _measuring = filled(&path).await;
    let prune = |more: &[&str]| {
        let told = finish(&folder, &[&["db", "prune"], more].concat());
        assert_eq!(told.status.code(), Some(0), "{}", err(&told));
        // Between word and cells there are times.
        let line = |line: &str| {
            let mut words = line.splitn(2, "  ");
            words.next().map(ToOwned::to_owned)
        };
        out(&told).lines().filter_map(line).collect::<Vec<_>>()
    };
    let gone = |word: &str| {
        [
            format!("{word}: middle"),
            format!("{word}: ancient"),
            format!("{word}: 2 runs, and 0 bytes of raw arrivals of 0 other runs"),
        ]
    };
    assert_eq!(prune(&["--older-than", "40d", "--dry-run"]), gone("would remove"));
    assert_eq!(prune(&["--older-than", "5w"]), gone("removed"));
    let listed = out(&finish(&folder, &["runs"]));
    let left: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(left, ["running", "new", "old"]);
    let refusals = [&[][..], &["--older-than", "90"], &["--older-than", "-1d"]].map(|arguments| {
        let told = finish(&folder, &[&["db", "prune"], arguments].concat());
        format!("{} {}", told.status.code().unwrap(), err(&told).lines().next().unwrap_or_default())
    });
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    64 error: the following required arguments were not provided:
    64 error: invalid value '90' for '--older-than <AGE>': `90` is no age: write 90d for days or 12w for weeks
    64 error: unexpected argument '-1' found
    "#);
}

#[tokio::test]
async fn an_agent_deletes_what_is_no_longer_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let measuring = filled(&path).await;
    let runs = Runs::new(Store::open(&path, Access::Serve).await.unwrap());
    runs.keep_to(Retention { runs: Some(1), ..Retention::default() });
    while runs.list().await.unwrap().len() > 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(names(&runs.list().await.unwrap()), ["running", "new", "old"]);
    drop(measuring);
}

#[tokio::test]
async fn a_file_that_tells_of_the_future_ages_from_its_import() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::new(Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap());
    let started_unix_ms = unix_ms() + 1_000 * DAY_MS;
    let state = RunState { id: run("dated"), started_unix_ms, ..sample::reference() };
    runs.import(Import { run: state, labels: Labels::default() }, None, &[]).await.unwrap();
    let gone_after = async |days: u64| {
        let rule = Retention { days: Some(30), ..Retention::default() };
        runs.store().prune(rule, unix_ms() + days * DAY_MS, Prune::Look).await.unwrap().runs
    };
    assert_eq!(gone_after(29).await, []);
    assert_eq!(gone_after(31).await, [run("dated")]);
}
