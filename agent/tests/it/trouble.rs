//! Targets that are missing, refuse, break or fall silent: each ends as data or as one clear sentence.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse as _,
    routing::post,
};
use speedmatrix_agent::sim::{ApiKey, SimConfig};
use speedmatrix_shared::{
    event::{RunEvent, RunOutcome, SkipReason},
    plan::PlanDraft,
    stats::cell::CellStatus,
    target::Limits,
    trace::FailureKind,
    units::Nanos,
};

use crate::rig::{Rig, Seen, draft, exact, simulator};

fn reason(seen: &Seen) -> &str {
    match &seen.outcome {
        RunOutcome::Failed { reason } => reason,
        other => panic!("{other:?} is not a failed run: {:#?}", seen.events),
    }
}

fn with_script(script: &str) -> SimConfig {
    SimConfig { script: script.parse().unwrap(), ..exact(4.0) }
}

#[test]
fn a_missing_key_or_model_is_told_by_the_probe() {
    let sim = simulator(SimConfig { api_key: Some(ApiKey::new("the-key")), ..exact(1.0) });
    let say = |rig: Rig, model| {
        let error = rig.probe(model).unwrap_err().to_string();
        error.replace(&sim.base_url(), "URL")
    };
    insta::assert_snapshot!(say(Rig::new(&sim.base_url()), None), @"URL/v1/models answered 401: it wants a key, and none was given: enter the server's api key");
    insta::assert_snapshot!(say(Rig::new(&sim.base_url()).with_key("other"), None), @"URL/v1/models answered 401: it refuses the key that was given: check the server's api key");
    insta::assert_snapshot!(say(Rig::new(&sim.base_url()).with_key("the-key"), Some("gpt-9")), @r#"the server at URL has no model "gpt-9": it offers "exact""#);
    let facts = Rig::new(&sim.base_url()).with_key("the-key").probe(None).unwrap();
    assert_eq!(facts.served_model.as_deref(), Some("exact"));
    assert_eq!(facts.simulated.unwrap().preset, "exact");
}

#[test]
fn a_refused_key_fails_the_run() {
    let sim = simulator(SimConfig { api_key: Some(ApiKey::new("the-key")), ..exact(1.0) });
    let seen = Rig::new(&sim.base_url()).with_key("wrong-key").run(draft("1K", "1", "1s", "16"));
    let reason = reason(&seen);
    assert!(reason.contains("key refused") && reason.contains("check the server's api key"), "{reason}");
    assert!(!reason.contains("wrong-key"));
}

#[test]
fn nobody_there_fails_the_run() {
    let sim = simulator(exact(1.0));
    let url = sim.base_url();
    sim.stop();
    let seen = Rig::new(&url).run(draft("1K", "1", "1s", "16"));
    let reason = reason(&seen);
    assert!(reason.contains("could not connect") && reason.contains(&url), "{reason}");
}

#[test]
fn a_server_that_goes_away_fails_its_cells_and_then_the_run() {
    let sim = Arc::new(Mutex::new(Some(simulator(exact(4.0)))));
    let rig = Rig::new(&sim.lock().unwrap().as_ref().unwrap().base_url());
    let plan = PlanDraft { prefill_contexts: "none".into(), ..draft("1K", "1,2,3,4,5", "1s", "64") };
    let seen = rig.run_until(plan, move |event, _| {
        if matches!(event, RunEvent::CellFinished { .. }) {
            // Stopping waits for the simulator's thread, not for anything of ours.
            drop(sim.lock().unwrap().take());
        }
    });
    assert!(!seen.result("decode-1K-1").status.is_failed());
    for cell in ["decode-1K-2", "decode-1K-3", "decode-1K-4"] {
        assert_eq!(seen.result(cell).status, CellStatus::Failed(FailureKind::Connect));
    }
    assert!(reason(&seen).contains("3 cells in a row"), "{}", reason(&seen));
}

#[test]
fn contexts_over_the_limit_are_skipped() {
    let sim = simulator(SimConfig { max_model_len: 4_096, ..exact(4.0) });
    let seen = Rig::new(&sim.base_url()).run(draft("1K,4K", "1", "1s", "64"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    assert!(!seen.result("decode-1K-1").status.is_failed());
    let (reason, text) = seen.skipped("decode-4K-1").unwrap();
    assert_eq!(reason, SkipReason::ModelLength);
    insta::assert_snapshot!(text, @"a prompt of 4K and an answer of 64 tokens are more than the 4K tokens that the model takes");
    assert_eq!(seen.skipped("prefill-4K-1").unwrap().0, SkipReason::ModelLength);
}

#[test]
fn a_limit_that_nobody_told_is_learnt_from_the_refusal() {
    let sim = simulator(SimConfig { max_model_len: 4_096, ..exact(4.0) });
    let mut rig = Rig::new(&sim.base_url());
    rig.adjust = |facts| facts.limits = Limits::default();
    let plan = PlanDraft { prefill_contexts: "none".into(), ..draft("1K,4000,8K", "1,2", "1s", "256") };
    let seen = rig.run(plan);
    assert_eq!(seen.outcome, RunOutcome::Finished);
    assert!(!seen.result("decode-1K-2").status.is_failed());
    // 4,000 tokens and one of output fit; 4,000 and 256 don't.
    assert_eq!(seen.result("decode-4000-1").status, CellStatus::Failed(FailureKind::ContextOverflow));
    for cell in ["decode-4000-2", "decode-8K-1", "decode-8K-2"] {
        assert_eq!(seen.skipped(cell).map(|(reason, _)| reason), Some(SkipReason::ContextRefused), "{cell}");
    }
}

#[test]
fn streams_that_die_fail_the_cell_and_keep_their_words() {
    let sim = simulator(with_script("reset-after:5"));
    let seen = Rig::new(&sim.base_url()).run(draft("1K", "2", "1s", "64"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let result = seen.result("decode-1K-2");
    assert_eq!(result.status, CellStatus::Failed(FailureKind::ConnectionReset), "{result:#?}");
    assert!(!result.failures.is_empty());
}

#[test]
fn streams_that_fall_silent_are_given_up_after_the_idle_limit() {
    let sim = simulator(with_script("stall-after:5"));
    let mut rig = Rig::new(&sim.base_url());
    rig.patience.idle = Nanos::from_millis(400);
    let seen = rig.run(draft("1K", "2", "2s", "64"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let result = seen.result("decode-1K-2");
    assert_eq!(result.status, CellStatus::Failed(FailureKind::Stalled), "{result:#?}");
}

#[test]
fn a_scout_that_a_busy_server_refuses_is_sent_again() {
    // The first request is the calibration's, the second the scout.
    let sim = simulator(with_script("503,at:2"));
    let plan = PlanDraft { prefill_contexts: "none".into(), ..draft("1K", "1", "1s", "256") };
    let seen = Rig::new(&sim.base_url()).run(plan);
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let result = seen.result("decode-1K-1");
    assert!(!result.status.is_failed(), "{result:#?}");
    assert_eq!(result.stats.requests.unwrap().failed, 0);
}

#[test]
fn a_server_that_never_answers_fails_the_run() {
    let sim = simulator(with_script("never-answer"));
    let mut rig = Rig::new(&sim.base_url());
    rig.patience.idle = Nanos::from_secs(1);
    let seen = rig.run(draft("1K", "1", "1s", "64"));
    assert!(reason(&seen).contains("stream stalled"), "{}", reason(&seen));
}

#[test]
fn a_stop_in_the_middle_keeps_what_is_finished() {
    let sim = simulator(exact(1.0));
    let stopped: Arc<Mutex<Option<Instant>>> = Arc::default();
    let note = Arc::clone(&stopped);
    let plan = PlanDraft { prefill_contexts: "none".into(), ..draft("1K", "1,2,3", "1s", "4096") };
    let seen = Rig::new(&sim.base_url()).run_until(plan, move |event, reins| {
        if matches!(event, RunEvent::RampDone { cell, .. } if cell.concurrency.get() == 2) {
            *note.lock().unwrap() = Some(Instant::now());
            reins.stop.cancel();
        }
    });
    assert!(stopped.lock().unwrap().unwrap().elapsed() < Duration::from_secs(1));
    assert_eq!(seen.outcome, RunOutcome::Cancelled);
    assert!(!seen.result("decode-1K-1").status.is_failed());
    let finished = seen.events.iter().filter(|(_, event)| matches!(event, RunEvent::CellFinished { .. }));
    assert_eq!(finished.count(), 1);
}

#[test]
fn a_field_that_the_server_refuses_is_changed_once() {
    let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&bodies);
    let answer = move |body: Bytes| async move {
        let body = String::from_utf8(body.to_vec()).unwrap();
        kept.lock().unwrap().push(body.clone());
        if body.contains("\"max_tokens\"") {
            let error =
                r#"{"error":{"message":"Parameter 'max_tokens' is not supported, use 'max_completion_tokens'."}}"#;
            return (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], error.to_owned()).into_response();
        }
        let event = |delta: &str, end: &str| {
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":{end}}}]}}\n\n")
        };
        let stream = [
            event("\"content\":\"a\"", "null"),
            event("", "\"length\""),
            format!(
                "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":1}}}}\n\n",
                body.len() / 5
            ),
            "data: [DONE]\n\n".to_owned(),
        ];
        (StatusCode::OK, [(CONTENT_TYPE, "text/event-stream")], stream.concat()).into_response()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/v1/chat/completions", post(answer));
    runtime.spawn(async move { axum::serve(listener, app).await });
    let plan = PlanDraft { prefill_contexts: "1K".into(), model: "m".into(), ..draft("", "", "1s", "") };
    let seen = Rig::new(&url).run(plan);
    assert_eq!(seen.outcome, RunOutcome::Finished);
    assert!(seen.logged("sending max_completion_tokens instead"));
    assert_eq!(seen.result("prefill-1K-1").status, CellStatus::Valid);
    let bodies = bodies.lock().unwrap();
    assert_eq!(bodies.iter().filter(|body| body.contains("\"max_tokens\"")).count(), 1);
    assert!(bodies.iter().skip(1).all(|body| body.contains("\"max_completion_tokens\"")));
}
