//! A run that ended too early goes on with the cells that are missing.

use std::{io::ErrorKind, net::TcpListener};

use axum::http::StatusCode;
use serde_json::Value;
use speedmatrix_agent::store::Which;
use speedmatrix_shared::{
    api::{Imported, Problem, ServerMessage, path},
    event::{Envelope, RunEvent, RunOutcome},
    id::{CellId, Phase, RunId},
    plan::PlanDraft,
    raw::codec,
    state::{Cell, RunState, RunStatus},
    stats::cell::CellResult,
};

use crate::server::{Agent, agent};

fn results(state: &RunState) -> Vec<(CellId, Vec<CellResult>)> {
    let of = |cell: &Cell| match &cell.repeats {
        repeats if repeats.is_empty() => cell.result().into_iter().cloned().collect(),
        repeats => repeats.clone(),
    };
    state.cells.iter().map(|cell| (cell.id, of(cell))).collect()
}

/// A run that was stopped after its first measurement of a decode cell.
async fn stopped(agent: &Agent, plan: PlanDraft) -> RunId {
    let run = agent.start(plan).await;
    let mut feed = agent.runs.subscribe(&run).await.unwrap();
    loop {
        let message = feed.next().await;
        if let ServerMessage::Event { envelope: Envelope { event: RunEvent::CellFinished { cell, .. }, .. } } = message
            && cell.phase == Phase::Decode
        {
            break;
        }
    }
    agent.post(&path::of(path::STOP, &run), "{}").await;
    agent.runs.ended(&run).await;
    run
}

async fn goes_on(plan: impl FnOnce(PlanDraft) -> PlanDraft) {
    let agent = agent().await;
    let run = stopped(&agent, plan(PlanDraft { client_check: "skip".into(), ..agent.plan() })).await;
    let before = agent.state(&run).await;
    assert!(before.can_go_on(), "{:?}", before.status);
    let answer = agent.post(&path::of(path::RESUME, &run), "{}").await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.body);
    agent.runs.ended(&run).await;
    let after = agent.state(&run).await;
    assert_eq!(after.status, RunStatus::Ended { outcome: RunOutcome::Finished });
    assert!(after.at > before.at && after.started_unix_ms == before.started_unix_ms);
    let repeats = usize::try_from(after.plan.repeats().most()).unwrap();
    for ((cell, then), (_, now)) in results(&before).into_iter().zip(results(&after)) {
        assert_eq!(now.get(..then.len()), Some(then.as_slice()), "{cell} was measured again");
        let wanted = if cell.phase == Phase::Decode { repeats } else { 1 };
        assert_eq!(now.len(), wanted, "{cell}");
        // Records and events share one line of time: a curve of the second go must not lie at the run's beginning.
        if then.is_empty() {
            let raw = codec::decode(&agent.runs.store().raw(&run, cell, Which::Last).await.unwrap().unwrap()).unwrap();
            assert!(!raw.traces.is_empty() && raw.traces.iter().all(|trace| trace.scheduled >= before.at), "{cell}");
        }
    }
    // What was stored in two goes is one run for whoever opens it later.
    let events = agent.runs.store().events_from(&run, 0).await.unwrap();
    assert!(events.is_sorted_by_key(|envelope| envelope.at));
    assert_eq!(RunState::fold(run.clone(), &events).unwrap().unwrap(), after);
    let again = agent.post(&path::of(path::RESUME, &run), "{}").await;
    assert_eq!((again.status, again.json::<Problem>().code.as_str()), (StatusCode::CONFLICT, "run_over"));
}

#[tokio::test]
async fn a_stopped_run_gets_the_cells_that_are_missing() {
    goes_on(|plan| plan).await;
}

#[tokio::test]
async fn a_stopped_run_gets_the_repeats_that_are_missing() {
    goes_on(|plan| PlanDraft { repeats: "2".into(), order: "interleaved".into(), contexts: "1K".into(), ..plan }).await;
}

#[tokio::test]
async fn what_can_not_go_on_says_why() {
    let agent = agent().await;
    let mut said = Vec::new();
    for run in ["none", "reference"] {
        let answer = agent.post(&path::RESUME.replace("{id}", run), "{}").await;
        let problem: Problem = answer.json();
        said.push(format!("{} {}: {}", problem.status, problem.code, problem.detail));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
404 not_found: there is no run "none" in the store
409 run_over: the sample run can't be stopped or changed: it is a finished page
"#);
}

/// Whoever wrote a file would choose whom this agent asks.
#[tokio::test]
async fn an_imported_run_asks_nobody() {
    let agent = agent().await;
    let run = stopped(&agent, PlanDraft { client_check: "skip".into(), ..agent.plan() }).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut file: Value = agent.get(&format!("{}?format=json", path::of(path::EXPORT, &run))).await.json();
    file["run"]["id"] = "brought".into();
    file["run"]["plan"]["target"] = format!("http://{}", listener.local_addr().unwrap()).into();
    let imported = agent.post(path::IMPORT, file.to_string()).await;
    assert_eq!(imported.status, StatusCode::CREATED, "{}", imported.body);
    let brought = imported.json::<Vec<Imported>>().remove(0).id;
    assert!(agent.state(&brought).await.can_go_on());
    let refused: Problem = agent.post(&path::of(path::RESUME, &brought), "{}").await.json();
    insta::assert_snapshot!(
        format!("{} {}: {}", refused.status, refused.code, refused.detail),
        @"409 run_imported: run brought can't go on: it was imported, so its file says which server it is of. Start a new run with its plan"
    );
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}
