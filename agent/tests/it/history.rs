//! One cell in other runs: what is told of it, in which order, and to whom.

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use speedmatrix_agent::store::{Access, Store};
use speedmatrix_shared::{
    api::{CellInRun, MOST_OTHER_RUNS, Problem, path},
    event::{Envelope, RunEvent},
    export::json,
    id::CellId,
    plan::{PlanDraft, RunPlan},
    sample,
    state::{Cell, RunState},
    stats::cell::{CellResult, CellStats, CellStatus},
    trace::FailureKind,
    units::Nanos,
};

use crate::{
    server::{Agent, agent},
    store::{events, put, run},
};

const CELL: &str = "decode-8K-1";

fn cell() -> CellId {
    CELL.parse().unwrap()
}

/// Brings the sample under another id, start and model.
async fn bring(agent: &Agent, id: &str, started_unix_ms: u64, model: &str) {
    let mut state = RunState { id: id.parse().unwrap(), started_unix_ms, ..sample::reference() };
    if let Some(facts) = &mut state.facts {
        facts.model = Some(model.to_owned());
    }
    let file = Request::post(format!("{}?name={id}.json", path::IMPORT)).body(Body::from(json::render(&state)));
    let answer = agent.ask(file.unwrap()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
}

async fn history(agent: &Agent, run: &str) -> Vec<CellInRun> {
    agent.get(&path::of_cell(path::HISTORY, &run.parse().unwrap(), cell())).await.json()
}

fn names(found: &[CellInRun]) -> Vec<&str> {
    found.iter().map(|it| it.run.as_str()).collect()
}

#[tokio::test]
async fn other_runs_are_told_the_same_model_first_and_deleted_ones_not() {
    let agent = agent().await;
    for (id, started, model) in [("old", 1_000, "m"), ("new", 3_000, "m"), ("this", 2_000, "m"), ("other", 9_000, "n")]
    {
        bring(&agent, id, started, model).await;
    }
    let found = history(&agent, "this").await;
    assert_eq!(names(&found), ["new", "old", "other"]);
    assert_eq!(names(&history(&agent, "other").await), ["new", "this", "old"]);
    let sample = sample::reference();
    let result = sample.cell(cell()).and_then(Cell::result).unwrap();
    let first = &found[0];
    assert_eq!((first.total_tok_s, first.status.as_str()), (result.stats.total_tok_s, "Valid"));
    assert_eq!(first.ttft_s, result.stats.ttft_s.as_ref().map(|ttft| ttft.p50));
    assert_eq!((first.model.as_deref(), first.started_unix_ms), (Some("m"), 3_000));

    let gone = agent.ask(Request::delete("/api/v1/runs/new").body(Body::empty()).unwrap()).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(names(&history(&agent, "this").await), ["old", "other"]);
    // The sample is no stored run, but its cells can be followed.
    assert_eq!(names(&history(&agent, "reference").await), ["other", "this", "old"]);
    for wrong in ["this/cells/decode-3K-1", "this/cells/nonsense", "gone/cells/decode-8K-1"] {
        let problem: Problem = agent.get(&format!("/api/v1/runs/{wrong}/history")).await.json();
        assert_eq!(problem.status, 404, "{}", problem.detail);
    }
}

/// A run whose one cell was measured with these results, one after the other.
fn measured(started_unix_ms: u64, results: Vec<CellResult>) -> Vec<Envelope> {
    let draft = PlanDraft {
        target: "host".into(),
        contexts: "8K".into(),
        concurrency: "1".into(),
        prefill_contexts: "none".into(),
        repeats: results.len().to_string(),
        ..PlanDraft::default()
    };
    let plan = RunPlan::try_from(draft).unwrap();
    let start = RunEvent::RunStarted { plan, started_unix_ms, tool: "speedmatrix 1".into() };
    let finished = results.into_iter().map(|result| RunEvent::CellFinished { cell: cell(), result: Box::new(result) });
    let log = (0..).zip([start].into_iter().chain(finished));
    log.map(|(seq, event)| Envelope { seq, at: Nanos(seq), event }).collect()
}

fn result(status: CellStatus, speed: f64) -> CellResult {
    let numbers = CellStats { total_tok_s: Some(speed), ..CellStats::default() };
    CellResult { status, stats: numbers, findings: Vec::new(), failures: Vec::new(), rules: Some(2) }
}

#[tokio::test]
async fn repeats_count_together_and_failed_cells_have_no_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
    let repeats = [100.0, 110.0, 90.0].map(|speed| result(CellStatus::Valid, speed)).to_vec();
    put(&store, "repeated", measured(2_000, repeats)).await;
    put(&store, "failed", measured(1_000, vec![result(CellStatus::Failed(FailureKind::ServerError), 5.0)])).await;
    let found = store.cell_in_others(&run("this"), cell(), None).await.unwrap();
    assert_eq!(names(&found), ["repeated", "failed"]);
    let state = store.load(&run("repeated")).await.unwrap();
    let whole = state.cell(cell()).and_then(Cell::result).unwrap().stats.total_tok_s;
    assert_eq!(found[0].total_tok_s, whole);
    assert_ne!(whole, Some(90.0), "the repeats' mean is the last of them: the test shows nothing");
    assert!(found[1].total_tok_s.is_none() && found[1].status.starts_with("Failed"), "{:?}", found[1]);
}

#[tokio::test]
async fn not_more_runs_are_told_than_are_promised() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
    let most = u64::from(MOST_OTHER_RUNS);
    for n in 0..most + 2 {
        put(&store, &format!("run-{n}"), measured(1_000 + n, vec![result(CellStatus::Valid, 10.0)])).await;
    }
    let found = store.cell_in_others(&run("run-0"), cell(), None).await.unwrap();
    assert_eq!(found.len() as u64, most);
    assert_eq!(found[0].run.as_str(), format!("run-{}", most + 1));
    // A run that never had the cell is in no list.
    put(&store, "sample", events(1)).await;
    let elsewhere = store.cell_in_others(&run("run-0"), "decode-3K-7".parse().unwrap(), None).await.unwrap();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}
