//! Raw arrivals: every finished cell keeps them, and a run can be analysed again from them.

use std::path::PathBuf;

use rusqlite::Connection;
use speedmatrix_agent::{
    runs::Runs,
    sim::SimThread,
    store::{Access, Store, Which},
};
use speedmatrix_shared::{
    event::{LogLevel, RunOutcome},
    id::{CellId, RunId},
    plan::PlanDraft,
    raw::codec,
    state::{RunState, RunStatus},
    stats::RULES_VERSION,
};
use tempfile::TempDir;

use crate::{
    cli::{err, finish, out},
    rig::{draft, exact, simulator},
};

/// A store with one small run against the simulator.
struct Kept {
    folder: TempDir,
    run: RunId,
}

impl Kept {
    /// `prepare` is done to the empty store before the run.
    async fn measured(prepare: &str) -> Self {
        Self::measured_by(prepare, PlanDraft::default()).await
    }

    /// As [`Self::measured`], with the repeats of `manner`.
    async fn measured_by(prepare: &str, manner: PlanDraft) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
        let kept = Self { folder, run: "none".parse().unwrap() };
        kept.tool().execute_batch(prepare).unwrap();
        let sim: SimThread = tokio::task::spawn_blocking(|| simulator(exact(20.0))).await.unwrap();
        let runs = Runs::new(store);
        let PlanDraft { repeats, order, .. } = manner;
        let small = draft("1K", "1,2", "1s", "32");
        let plan = PlanDraft { target: sim.base_url(), name: "small".into(), repeats, order, ..small };
        let run = runs.start(plan, None).await.unwrap();
        runs.ended(&run).await;
        Self { run, ..kept }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("runs.sqlite3")
    }

    /// What somebody could do to the file.
    fn tool(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    async fn store(&self) -> Store {
        Store::open(&self.path(), Access::Read).await.unwrap()
    }

    async fn state(&self, run: &RunId) -> RunState {
        self.store().await.load(run).await.unwrap()
    }

    /// Status, output and complaints of `reanalyse`; `more` are its other arguments.
    fn reanalyse(&self, run: &str, more: &[&str]) -> (i32, String, String) {
        let output = finish(&self.folder, &[&["reanalyse", run], more].concat());
        (output.status.code().unwrap(), out(&output), err(&output))
    }

    /// The run that `reanalyse --save` says it stored.
    fn saved(&self) -> RunId {
        let (status, _, said) = self.reanalyse(self.run.as_str(), &["--save"]);
        assert_eq!(status, 0, "{said}");
        let words = said.lines().last().and_then(|line| line.strip_prefix("stored as "));
        words.and_then(|words| words.split(':').next()).unwrap().parse().unwrap()
    }
}

fn cell(id: &str) -> CellId {
    id.parse().unwrap()
}

#[tokio::test]
async fn the_raw_arrivals_of_every_finished_cell_give_its_very_result() {
    let kept = Kept::measured("").await;
    let (store, state) = (kept.store().await, kept.state(&kept.run).await);
    assert_eq!(state.cells.len(), 3);
    for cell in &state.cells {
        let bytes = store.raw(&kept.run, cell.id, Which::Last).await.unwrap().expect("it is stored with the cell");
        let result = codec::decode(&bytes).unwrap().result();
        assert_eq!((Some(&result), result.rules), (cell.result(), Some(RULES_VERSION)), "{}", cell.id);
    }
    assert_eq!(
        kept.reanalyse(kept.run.as_str(), &[]),
        (0, format!("3 of 3 analysed cells unchanged under rules {RULES_VERSION}\n"), String::new())
    );
}

#[tokio::test]
async fn each_measurement_of_a_repeated_cell_is_analysed_again() {
    let manner = PlanDraft { repeats: "2".into(), order: "interleaved".into(), ..PlanDraft::default() };
    let kept = Kept::measured_by("", manner).await;
    let all = format!("5 of 5 analysed cells unchanged under rules {RULES_VERSION}\n");
    assert_eq!(kept.reanalyse(kept.run.as_str(), &[]), (0, all.clone(), String::new()));
    let new = kept.saved();
    let of = |state: RunState| state.cells.into_iter().map(|cell| (cell.state, cell.repeats)).collect::<Vec<_>>();
    assert_eq!(of(kept.state(&new).await), of(kept.state(&kept.run).await));
    assert_eq!(kept.reanalyse(new.as_str(), &[]).1, all);
    // The first measurement alone is damaged.
    kept.tool()
        .execute_batch(
            "UPDATE raw SET bytes = x'00' WHERE cell = 'decode-1K-2' AND seq = \
             (SELECT min(first.seq) FROM raw AS first WHERE first.run = raw.run AND first.cell = raw.cell)",
        )
        .unwrap();
    assert_eq!(kept.reanalyse(new.as_str(), &[]).1, all.replace("5 of 5", "4 of 4"));
}

#[tokio::test]
async fn new_results_are_a_new_run_beside_the_old_one() {
    let kept = Kept::measured("").await;
    // As if the rules of then had said something else.
    kept.tool()
        .execute_batch(
            "UPDATE events SET json = json_set(json, '$.result.rules', 0, '$.result.status.status', 'preempted') \
             WHERE json LIKE '{\"type\":\"cell_finished\",\"cell\":\"decode-1K-2\"%'",
        )
        .unwrap();
    let (old, decode) = (kept.state(&kept.run).await, cell("decode-1K-2"));
    assert_eq!(old.cell(decode).unwrap().status_label(), "Preempted");
    let (_, table, _) = kept.reanalyse(kept.run.as_str(), &[]);
    let words: Vec<&str> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    // Of a busy machine the cell may be under-filled, so what today's rules say is not sure: only that it is not the old.
    assert!(
        matches!(words[..], ["decode-1K-2", then, now, "Preempted", .., "0", "2", "status"] if then == now),
        "{table}"
    );
    assert!(table.ends_with("2 of 3 analysed cells unchanged under rules 2\n"), "{table}");

    let new = kept.saved();
    let (state, store) = (kept.state(&new).await, kept.store().await);
    assert_eq!(kept.state(&kept.run).await, old);
    assert_ne!(state.cell(decode).unwrap().status_label(), "Preempted");
    assert_eq!(state.cell(decode).unwrap().result().unwrap().rules, Some(RULES_VERSION));
    assert_eq!(state.title(), "small (analysed again, rules 2)");
    assert_eq!((state.started_unix_ms, &state.facts, &state.status), (old.started_unix_ms, &old.facts, &old.status));
    let said = format!("analysed again from run {} by speedmatrix", kept.run);
    assert!(state.log.iter().any(|line| line.text.starts_with(&said)), "{:?}", state.log);
    for cell in &state.cells {
        let of = async |run: &RunId| store.raw(run, cell.id, Which::Last).await.unwrap().unwrap();
        assert_eq!(of(&new).await, of(&kept.run).await);
    }
    let (status, again, _) = kept.reanalyse(new.as_str(), &[]);
    assert_eq!((status, again.as_str()), (0, "3 of 3 analysed cells unchanged under rules 2\n"));
}

#[tokio::test]
async fn what_can_not_be_analysed_is_one_sentence() {
    let kept = Kept::measured("").await;
    let run = kept.run.to_string();
    kept.tool()
        .execute_batch(
            "UPDATE raw SET bytes = substr(bytes, 1, length(bytes) - 9) WHERE cell = 'decode-1K-1';
             DELETE FROM raw WHERE cell = 'prefill-1K-1'",
        )
        .unwrap();
    let broken = kept.reanalyse(&run, &[]);
    assert_eq!((broken.0, broken.1.as_str()), (1, "1 of 1 analysed cells unchanged under rules 2\n"));
    kept.tool().execute_batch("DELETE FROM raw").unwrap();
    let none = kept.reanalyse(&run, &["--save"]);
    let unknown = kept.reanalyse("abc", &["--save"]);
    assert_eq!((none.0, unknown.0), (64, 64));
    insta::assert_snapshot!([broken.2, none.2, unknown.2].concat().replace(&run, "RUN"), @r#"
    without raw arrivals, so their numbers stay as they were stored: prefill-1K-1
    error: the record of raw arrivals of decode-1K-1 in run RUN is damaged (it can't be unpacked: it ends too early): the cell's stored numbers are not affected
    error: run RUN has no raw arrivals, so it can't be analysed again: no cell was finished, or it was measured before they were kept
    error: there is no run "abc" in the store
    "#);
    assert_eq!(kept.store().await.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_cell_whose_raw_arrivals_can_not_be_stored_keeps_its_numbers() {
    let refusing = "CREATE TRIGGER full BEFORE INSERT ON raw WHEN NEW.cell LIKE 'decode%' \
                    BEGIN SELECT RAISE(ABORT, 'no room'); END";
    let kept = Kept::measured(refusing).await;
    let state = kept.state(&kept.run).await;
    assert_eq!(state.status, RunStatus::Ended { outcome: RunOutcome::Finished });
    assert!(state.cells.iter().all(|cell| cell.result().is_some()));
    let warnings: Vec<&str> = state
        .log
        .iter()
        .filter(|line| line.level == LogLevel::Warning && line.text.contains("no room"))
        .map(|line| line.text.split(',').next().unwrap())
        .collect();
    assert_eq!(
        warnings,
        ["the raw arrivals of decode-1K-1 were not kept", "the raw arrivals of decode-1K-2 were not kept"]
    );
    let (status, _, said) = kept.reanalyse(kept.run.as_str(), &[]);
    let wanted = "without raw arrivals, so their numbers stay as they were stored: decode-1K-1, decode-1K-2\n";
    assert_eq!((status, said.as_str()), (0, wanted));
}
