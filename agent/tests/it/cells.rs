//! A finished cell looked at closely, over HTTP: what its record tells, and what is said where there is none.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use speedmatrix_agent::store::Which;
use speedmatrix_shared::{
    api::{Problem, path},
    detail::{CellDetail, requests::Columns},
    id::{CellId, RunId},
    plan::PlanDraft,
    raw::codec,
    state::RunState,
};
use tower::ServiceExt as _;

use crate::server::{Agent, agent};

fn cell(id: &str) -> CellId {
    id.parse().unwrap()
}

/// An agent with a small run that is over. Contexts above the model's length are skipped.
async fn measured() -> (Agent, RunId) {
    let agent = agent().await;
    let plan = PlanDraft { contexts: "1K,16384K".into(), concurrency: "2".into(), ..agent.plan() };
    let run = agent.start(plan).await;
    agent.runs.ended(&run).await;
    (agent, run)
}

#[tokio::test]
async fn a_cell_tells_what_its_result_was_computed_from() {
    let (agent, run) = measured().await;
    let (decode, prefill) = (cell("decode-1K-2"), cell("prefill-1K-1"));
    let state: RunState = agent.get(&path::of(path::RUN, &run)).await.json();
    let result = state.cell(decode).unwrap().result().unwrap();
    let detail: CellDetail = agent.get(&path::of_cell(path::CELL, &run, decode)).await.json();
    let started = result.stats.requests.unwrap().started;
    assert_eq!(detail.requests, started);
    let stages = detail.stages.expect("it has a window");
    assert!((stages.window.1 - stages.window.0 - result.stats.measured_for_s.unwrap()).abs() < 1e-6, "{stages:?}");
    assert!(detail.timeline.tok_s.iter().any(|rate| *rate > 0.0) && !detail.engine.is_silent());
    assert!(detail.distributions.len() >= 3, "{:?}", detail.distributions);

    let requests: Columns = agent.get(&path::of_cell(path::REQUESTS, &run, decode)).await.json();
    assert_eq!((requests.total, requests.rows().len() as u64), (started, started));
    let cold: CellDetail = agent.get(&path::of_cell(path::CELL, &run, prefill)).await.json();
    assert_eq!((cold.stages, cold.distributions.len()), (None, 1));
}

#[tokio::test]
async fn each_measurement_of_a_repeated_cell_can_be_looked_at() {
    let agent = agent().await;
    let plan = PlanDraft {
        contexts: "1K".into(),
        concurrency: "2".into(),
        prefill_contexts: "none".into(),
        repeats: "2".into(),
        ..agent.plan()
    };
    let run = agent.start(plan).await;
    agent.runs.ended(&run).await;
    let state: RunState = agent.get(&path::of(path::RUN, &run)).await.json();
    let decode = cell("decode-1K-2");
    let (record, requests) = (path::of_cell(path::CELL, &run, decode), path::of_cell(path::REQUESTS, &run, decode));
    let mut details: Vec<CellDetail> = Vec::new();
    for (n, result) in (1..).zip(&state.cell(decode).unwrap().repeats) {
        let detail: CellDetail = agent.get(&format!("{record}?repeat={n}")).await.json();
        let columns: Columns = agent.get(&format!("{requests}?repeat={n}")).await.json();
        let started = result.stats.requests.unwrap().started;
        assert_eq!((detail.requests, columns.total), (started, started));
        details.push(detail);
    }
    assert_eq!(details.len(), 2);
    assert_ne!(details[0], details[1]);
    assert_eq!(details[1], agent.get(&record).await.json::<CellDetail>());
    let mut said = Vec::new();
    for n in ["0", "3", "last"] {
        let problem: Problem = agent.get(&format!("{record}?repeat={n}")).await.json();
        said.push(format!("{} {}: {}", problem.status, problem.code, problem.detail));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    404 no_such_repeat: decode-1K-2 was measured 2 times: there is no measurement "0"
    404 no_such_repeat: decode-1K-2 was measured 2 times: there is no measurement "3"
    404 no_such_repeat: decode-1K-2 was measured 2 times: there is no measurement "last"
    "#);
}

#[tokio::test]
async fn what_was_sent_is_what_was_kept_and_it_is_packed() {
    let (agent, run) = measured().await;
    let decode = cell("decode-1K-2");
    let kept = codec::decode(&agent.runs.store().raw(&run, decode, Which::Last).await.unwrap().unwrap()).unwrap();
    let path = path::of_cell(path::CELL, &run, decode);
    assert_eq!(agent.get(&path).await.json::<CellDetail>(), CellDetail::of(&kept));
    let request = Request::get(&path).header(header::HOST, "localhost").header(header::ACCEPT_ENCODING, "br, gzip");
    let answer = agent.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let encoding = answer.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
    assert_eq!((answer.status(), encoding), (StatusCode::OK, Some("gzip")));
}

#[tokio::test]
async fn where_there_is_no_record_it_is_said_why() {
    let (agent, run) = measured().await;
    let (run, sample) = (run.as_str(), RunId::REFERENCE);
    let mut said = Vec::new();
    for (run, cell) in [
        (run, "decode-16384K-2"),
        (run, "decode-3K-1"),
        (run, "nonsense"),
        ("no-such-run", "decode-1K-2"),
        (sample, "decode-8K-1"),
    ] {
        for what in ["", "/requests"] {
            let answer = agent.get(&format!("/api/v1/runs/{run}/cells/{cell}{what}")).await;
            let problem: Problem = answer.json();
            assert_eq!(answer.status.as_u16(), problem.status);
            if what.is_empty() {
                said.push(format!("{} {}: {}", problem.status, problem.code, problem.detail));
            }
        }
    }
    insta::assert_snapshot!(said.join("\n").replace(run, "RUN"), @r#"
    409 cell_not_measured: decode-16384K-2 was skipped, so there are no requests to look at: a prompt of 16384K and an answer of 64 tokens are more than the 1024K tokens that the model takes
    404 no_such_cell: run RUN has no cell decode-3K-1: open the run to see its cells
    404 not_found: "nonsense" is not a cell id: expected for example decode-8K-16
    404 not_found: there is no run "no-such-run" in the store
    404 record_not_kept: the requests of decode-8K-1 were not kept: its run was imported from a page that tells only numbers. Measure the cell again to look at them
    "#);
}
