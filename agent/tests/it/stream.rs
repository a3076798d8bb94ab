//! The client against the simulator: exact counts, times no shorter than the truth, every failure by its name.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use serde_json::json;
use speedmatrix_agent::{
    client::{Ask, Body, Connection, KeepText, Outcome, SlotCounters, SlotState, Target},
    clock::Clock,
    secret::Secret,
    sim::{ApiKey, End, SimConfig, SimThread},
};
use speedmatrix_shared::{
    plan::draft::parse_target,
    trace::{FailureKind, RequestEnd, StreamNote, TokenSource},
    units::Nanos,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::rig::{exact, simulator};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn connect(url: &str, key: &str) -> Connection {
    let target = Target { url: parse_target(url).expect("an address"), key: Secret::new(key) };
    Connection::new(&target, Clock::start()).expect("a plain target")
}

/// A request for exactly this many tokens.
fn ask(tokens: u32) -> Ask {
    let document = json!({
        "model": "exact",
        "messages": [{"role": "user", "content": "Tell me of the sea."}],
        "stream": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
        "max_tokens": tokens,
        "ignore_eos": true,
    });
    Ask {
        slot: 3,
        scheduled: Nanos(0),
        path: "/v1/chat/completions",
        body: Body::new([Bytes::from(document.to_string())], tokens),
        keep_text: KeepText::Yes,
        idle_limit: Nanos::from_secs(10),
    }
}

/// One request to a fresh simulator.
fn one(config: SimConfig, ask: Ask) -> (Outcome, SimThread) {
    let sim = simulator(config);
    let mut connection = connect(&sim.base_url(), "");
    let outcome = runtime().block_on(connection.stream(ask, &SlotCounters::default(), &CancellationToken::new()));
    (outcome, sim)
}

fn scripted(script: &str) -> SimConfig {
    SimConfig { script: script.parse().expect("a script"), ..exact(1.0) }
}

#[test]
fn counts_are_the_servers_and_times_no_shorter() {
    let (outcome, sim) = one(exact(1.0), ask(20));
    let (trace, truth) = (&outcome.trace, sim.log().record(&outcome.request_id).unwrap());
    assert_eq!(trace.end, RequestEnd::Completed { finish_reason: Some("length".into()) });
    assert_eq!(trace.output_tokens(), (20, TokenSource::ServerPerChunk));
    assert_eq!((trace.text_events(), truth.output_tokens, truth.chunks), (20, 20, 20));
    assert_eq!(trace.usage.unwrap().prompt_tokens, Some(truth.prompt_tokens));
    // The server reads later than we send, and we read later than it writes: our span holds the server's.
    let span = |first: speedmatrix_agent::sim::Stamp| first.monotonic_ns - truth.received.monotonic_ns;
    let ours = |at: Option<Nanos>| at.unwrap().since(trace.send_started.unwrap()).0;
    assert!(ours(trace.first_arrival()) >= span(truth.first_token.unwrap()));
    assert!(ours(trace.last_arrival()) >= span(truth.last_token.unwrap()));
    let moments = [trace.send_started, trace.headers_at, trace.first_arrival(), Some(trace.ended)];
    assert!(moments.is_sorted(), "{moments:?}");
    assert!(trace.send_started <= trace.send_finished);
    assert_eq!(trace.first_content_at, trace.first_arrival());
    assert_eq!(outcome.model.as_deref(), Some("exact"));
}

#[test]
fn oddities_are_understood() {
    let check = |script: &str, tokens: u64, source: TokenSource, notes: &[StreamNote]| {
        let (outcome, _sim) = one(scripted(script), ask(12));
        let trace = &outcome.trace;
        assert!(matches!(trace.end, RequestEnd::Completed { .. }), "{script}: {:?}", trace.end);
        assert_eq!((trace.output_tokens(), trace.notes.as_slice()), ((tokens, source), notes), "{script}");
        outcome
    };
    let (per_chunk, chunks) = (TokenSource::ServerPerChunk, TokenSource::Chunks);
    check("no-done", 12, per_chunk, &[]);
    check("comments", 12, per_chunk, &[]);
    check("split", 12, per_chunk, &[]);
    check("early-role", 12, per_chunk, &[]);
    check("slow-header:100", 12, per_chunk, &[]);
    check("zero-usage", 12, chunks, &[StreamNote::UsageMissing]);
    let glued = check("glue:4", 12, per_chunk, &[]);
    assert!(glued.trace.arrivals.len() < 12, "one write of several events is one arrival");
    let reasoned = check("reasoning:5", 12, per_chunk, &[]);
    assert!(reasoned.trace.first_content_at > reasoned.trace.first_arrival());
    assert!(!reasoned.text.unwrap().reasoning.is_empty());
    let called = check("tool-calls", 12, per_chunk, &[]);
    assert_eq!(called.text.unwrap().tool_calls.len(), 1);
}

#[test]
fn failures_have_names() {
    let check = |script: &str, kind: FailureKind, text_events: u64| {
        let (outcome, _sim) = one(scripted(script), Ask { idle_limit: Nanos::from_millis(400), ..ask(12) });
        let RequestEnd::Failed(failure) = &outcome.trace.end else { panic!("{script}: {:?}", outcome.trace.end) };
        assert_eq!((failure.kind, outcome.trace.text_events()), (kind, text_events), "{script}: {failure:?}");
        outcome
    };
    let refused = check("429:3", FailureKind::RateLimited, 0);
    assert_eq!(refused.retry_after, Some(Nanos::from_secs(3)));
    check("503", FailureKind::ServerError, 0);
    check("html", FailureKind::NotAStream, 0);
    check("never-answer", FailureKind::Stalled, 0);
    check("stall-after:3", FailureKind::Stalled, 3);
    check("close-after:3", FailureKind::TruncatedStream, 3);
    check("error-after:3", FailureKind::ErrorInStream, 3);
    let (reset, _sim) = one(scripted("reset-after:3"), ask(12));
    let RequestEnd::Failed(failure) = &reset.trace.end else { panic!("{:?}", reset.trace.end) };
    assert_eq!(failure.kind, FailureKind::ConnectionReset, "{failure:?}");
}

#[test]
fn refusals_have_names() {
    let kind = |outcome: &Outcome| match &outcome.trace.end {
        RequestEnd::Failed(failure) => failure.kind,
        end => panic!("{end:?}"),
    };
    let (locked, _sim) = one(SimConfig { api_key: Some(ApiKey::new("sk-0123456789")), ..exact(1.0) }, ask(2));
    assert_eq!(kind(&locked), FailureKind::Auth);
    let (short, _sim) = one(SimConfig { max_model_len: 100, ..exact(1.0) }, ask(200));
    assert_eq!(kind(&short), FailureKind::ContextOverflow);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut connection = connect(&format!("http://{free}"), "");
    let runtime = runtime();
    let nobody = runtime.block_on(connection.stream(ask(2), &SlotCounters::default(), &CancellationToken::new()));
    assert_eq!((kind(&nobody), nobody.trace.send_started), (FailureKind::Connect, None));
    assert_eq!(runtime.block_on(connection.open()).unwrap_err().kind, FailureKind::Connect);
}

#[test]
fn a_cut_closes_the_connection_and_keeps_what_came() {
    let sim = simulator(exact(1.0));
    let mut connection = connect(&sim.base_url(), "");
    let (counters, cut) = (SlotCounters::default(), CancellationToken::new());
    let outcome = runtime().block_on(async {
        let when_decoding = async {
            while counters.tokens() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(counters.state(), SlotState::Decoding);
            cut.cancel();
        };
        tokio::join!(connection.stream(ask(10_000), &counters, &cut), when_decoding).0
    });
    assert_eq!(outcome.trace.end, RequestEnd::Cut);
    assert!(outcome.trace.output_tokens().0 >= 3);
    assert_eq!((counters.state(), counters.tokens()), (SlotState::Idle, outcome.trace.output_tokens().0));
    // The simulator notices at its next write.
    while sim.log().record(&outcome.request_id).unwrap().end.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(sim.log().record(&outcome.request_id).unwrap().end, Some(End::ClientLeft));
}

#[test]
fn a_cut_before_the_request_sends_nothing() {
    let sim = simulator(exact(1.0));
    let mut connection = connect(&sim.base_url(), "");
    let cut = CancellationToken::new();
    cut.cancel();
    let outcome = runtime().block_on(connection.stream(ask(5), &SlotCounters::default(), &cut));
    assert_eq!((outcome.trace.end, outcome.trace.send_started), (RequestEnd::Cut, None));
    assert_eq!(sim.log().totals().requests, 0);
}

/// What a canned server does after each answer.
#[derive(Clone, Copy)]
enum After {
    Keep,
    Close,
}

/// Answers every request alike; gives the number of connections when its clients have gone.
fn canned(after: After, requests: usize) -> io::Result<(String, JoinHandle<io::Result<usize>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = std::thread::spawn(move || {
        let (mut connections, mut answered) = (0, 0);
        while answered < requests {
            let (mut io, _) = listener.accept()?;
            connections += 1;
            answered += answer(&mut io, after, requests - answered)?;
        }
        Ok(connections)
    });
    Ok((url, server))
}

/// Answers up to `requests` of one connection; gives how many.
fn answer(io: &mut TcpStream, after: After, requests: usize) -> io::Result<usize> {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 120\r\n\r\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"aye\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (mut seen, mut piece, mut answered) = (Vec::new(), [0; 4_096], 0);
    while let Ok(n @ 1..) = io.read(&mut piece) {
        seen.extend_from_slice(&piece[..n]);
        // The last byte of every body here.
        if !seen.ends_with(b"}") {
            continue;
        }
        seen.clear();
        io.write_all(ANSWER.as_bytes())?;
        answered += 1;
        if matches!(after, After::Close) || answered == requests {
            break;
        }
    }
    Ok(answered)
}

#[test]
fn connections_are_kept_and_stale_ones_replaced() {
    let check = |after: After, connections: usize| {
        let (url, server) = canned(after, 3).unwrap();
        let mut connection = connect(&url, "");
        let (done, ended) = mpsc::sync_channel(3);
        runtime().block_on(async {
            for _ in 0..3 {
                let outcome = connection.stream(ask(1), &SlotCounters::default(), &CancellationToken::new()).await;
                done.send(outcome.trace.end).unwrap();
            }
        });
        drop(done);
        let completed = RequestEnd::Completed { finish_reason: Some("stop".into()) };
        assert_eq!(ended.iter().collect::<Vec<_>>(), vec![completed; 3]);
        assert_eq!(server.join().unwrap().unwrap(), connections);
    };
    check(After::Keep, 1);
    check(After::Close, 3);
}
