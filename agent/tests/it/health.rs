//! What an operator's tools ask an agent: whether it lives, whether it can work, and its own figures.

use axum::http::{StatusCode, header};
use futures_util::StreamExt as _;
use rusqlite::Connection;
use speedmatrix_shared::api::{Problem, path};
use tokio_tungstenite::connect_async;

use crate::server::{Agent, agent};

/// The figures, without those that no two runs share, the values of each in the order of their labels.
async fn figures(agent: &Agent) -> String {
    let answer = agent.get(path::METRICS).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    assert_eq!(answer.header(header::CONTENT_TYPE), "text/plain; version=0.0.4; charset=utf-8");
    let of_its_own =
        ["uptime_seconds ", "resident_memory_bytes ", "store_free_bytes "].map(|name| format!("speedmatrix_{name}"));
    let lines = answer.body.lines().map(|line| {
        let own = of_its_own.iter().find(|name| line.starts_with(name.as_str()));
        own.map_or_else(|| line.to_owned(), |name| format!("{name}…"))
    });
    let mut lines: Vec<String> = lines.collect();
    let is_text = |line: &String| line.starts_with('#');
    lines.chunk_by_mut(|a, b| is_text(a) == is_text(b)).filter(|lines| !is_text(&lines[0])).for_each(<[_]>::sort);
    lines.join("\n")
}

fn value(figures: &str, name: &str) -> u64 {
    let found = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    found.unwrap_or_else(|| panic!("{name} is not in\n{figures}"))
}

#[tokio::test]
async fn an_agent_that_did_nothing_yet_counts_nothing() {
    insta::assert_snapshot!(figures(&agent().await).await, @r#"
    # HELP speedmatrix_build_info The program's version.
    # TYPE speedmatrix_build_info gauge
    speedmatrix_build_info{version="0.1.0"} 1
    # HELP speedmatrix_runs Stored runs as the list shows them; a damaged record counts as failed.
    # TYPE speedmatrix_runs gauge
    speedmatrix_runs{status="cancelled"} 0
    speedmatrix_runs{status="failed"} 0
    speedmatrix_runs{status="finished"} 0
    speedmatrix_runs{status="interrupted"} 0
    speedmatrix_runs{status="running"} 0
    # HELP speedmatrix_uptime_seconds Since this process began to serve.
    # TYPE speedmatrix_uptime_seconds gauge
    speedmatrix_uptime_seconds …
    # HELP speedmatrix_cells_running Cells that this process measures now.
    # TYPE speedmatrix_cells_running gauge
    speedmatrix_cells_running 0
    # HELP speedmatrix_live_viewers Open live sockets.
    # TYPE speedmatrix_live_viewers gauge
    speedmatrix_live_viewers 0
    # HELP speedmatrix_store_free_bytes Room on the disk that holds the store.
    # TYPE speedmatrix_store_free_bytes gauge
    speedmatrix_store_free_bytes …
    # HELP speedmatrix_resident_memory_bytes Memory of this process that is in RAM.
    # TYPE speedmatrix_resident_memory_bytes gauge
    speedmatrix_resident_memory_bytes …
    # HELP speedmatrix_http_requests_total Answered requests, by class of status.
    # TYPE speedmatrix_http_requests_total counter
    speedmatrix_http_requests_total{class="1xx"} 0
    speedmatrix_http_requests_total{class="2xx"} 0
    speedmatrix_http_requests_total{class="3xx"} 0
    speedmatrix_http_requests_total{class="4xx"} 0
    speedmatrix_http_requests_total{class="5xx"} 0
    # HELP speedmatrix_live_messages_sent_total Messages that went out to live sockets, by kind.
    # TYPE speedmatrix_live_messages_sent_total counter
    speedmatrix_live_messages_sent_total{kind="event"} 0
    speedmatrix_live_messages_sent_total{kind="gauge"} 0
    speedmatrix_live_messages_sent_total{kind="hello"} 0
    speedmatrix_live_messages_sent_total{kind="presence"} 0
    speedmatrix_live_messages_sent_total{kind="snapshot"} 0
    # HELP speedmatrix_live_events_skipped_total Events that live sockets were too slow for; they got a snapshot instead.
    # TYPE speedmatrix_live_events_skipped_total counter
    speedmatrix_live_events_skipped_total 0
    # HELP speedmatrix_live_viewers_let_go_total Live sockets that were closed as too slow or silent.
    # TYPE speedmatrix_live_viewers_let_go_total counter
    speedmatrix_live_viewers_let_go_total 0
    # HELP speedmatrix_tokens_rejected_total Tokens that opened nothing.
    # TYPE speedmatrix_tokens_rejected_total counter
    speedmatrix_tokens_rejected_total 0
    # HELP speedmatrix_store_writes_total Transactions that are on disk.
    # TYPE speedmatrix_store_writes_total counter
    speedmatrix_store_writes_total 0
    # HELP speedmatrix_store_write_failures_total Transactions that failed.
    # TYPE speedmatrix_store_write_failures_total counter
    speedmatrix_store_write_failures_total 0
    # HELP speedmatrix_store_write_retries_total Facts of finished cells that were tried again without their raw arrivals.
    # TYPE speedmatrix_store_write_retries_total counter
    speedmatrix_store_write_retries_total 0
    "#);
}

#[tokio::test]
async fn what_happens_is_counted() {
    let agent = agent().await;
    assert_eq!(agent.get(path::READY).await.status, StatusCode::OK);
    assert_eq!(agent.get("/api/v1/nothing").await.status, StatusCode::NOT_FOUND);
    assert_eq!(agent.post(path::ENTER, "{\"token\":\"guess\"}").await.status, StatusCode::UNAUTHORIZED);
    let run = agent.start(agent.plan()).await;
    let mut socket = connect_async(agent.live(run.as_str())).await.unwrap().0;
    for _ in ["hello", "snapshot", "what comes then"] {
        socket.next().await.unwrap().unwrap();
    }
    let during = figures(&agent).await;
    assert_eq!(value(&during, "speedmatrix_live_viewers"), 1, "{during}");
    assert_eq!(value(&during, "speedmatrix_runs{status=\"running\"}"), 1, "{during}");
    agent.runs.ended(&run).await;
    let after = figures(&agent).await;
    let told = ["hello", "snapshot"].map(|kind| format!("speedmatrix_live_messages_sent_total{{kind=\"{kind}\"}}"));
    for name in told {
        assert_eq!(value(&after, &name), 1, "{after}");
    }
    for name in [
        "speedmatrix_tokens_rejected_total",
        "speedmatrix_http_requests_total{class=\"1xx\"}",
        "speedmatrix_runs{status=\"finished\"}",
    ] {
        assert_eq!(value(&after, name), 1, "{name}: {after}");
    }
    assert_eq!(value(&after, "speedmatrix_http_requests_total{class=\"4xx\"}"), 2, "{after}");
    assert_eq!(value(&after, "speedmatrix_cells_running"), 0, "{after}");
    // Each event is one transaction, and so is the proof of readiness.
    let events = agent.state(&run).await.next_seq;
    assert_eq!(value(&after, "speedmatrix_store_writes_total"), events + 1, "{after}");
    assert_eq!(value(&after, "speedmatrix_store_write_failures_total"), 0, "{after}");
}

#[tokio::test]
async fn an_agent_whose_store_fails_lives_and_is_not_ready() {
    let agent = agent().await;
    let store = Connection::open(agent.runs.store().path()).unwrap();
    store
        .execute_batch("DROP TABLE events; DROP TABLE cells; DROP TABLE raw; DROP TABLE labels; DROP TABLE runs")
        .unwrap();
    assert_eq!(agent.get(path::HEALTH).await.status, StatusCode::OK);
    let answer = agent.get(path::READY).await;
    let problem: Problem = answer.json();
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    insta::assert_snapshot!(format!("{}: {}", problem.code, problem.detail), @"not_ready: the store did not do its work: the agent's log says why, and `speedmatrix db check` looks for damage");
    let figures = figures(&agent).await;
    assert_eq!(value(&figures, "speedmatrix_store_write_failures_total"), 1, "{figures}");
    assert!(!figures.contains("speedmatrix_runs"), "{figures}");
}

#[tokio::test]
async fn a_store_that_others_hold_makes_an_agent_not_ready() {
    let agent = agent().await;
    let other = Connection::open(agent.runs.store().path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = agent.get(path::READY).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.body.contains("did not answer within two seconds"), "{}", answer.body);
}
