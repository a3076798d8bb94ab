//! Plays one case: as often, as much at once and with such pauses as its text asks for.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::json;
use speedmatrix_agent::{
    client::{Ask, Body, Connection, KeepText, Outcome, SlotCounters},
    clock::Clock,
};
use speedmatrix_shared::{
    trace::{FailureKind, RequestEnd},
    units::Nanos,
};
use tokio_util::sync::CancellationToken;

use super::{Verdict, compare, given::Case, replay::Replay};

/// Bounds given for an idle machine may be missed on a busy one; a wrong client misses them each time.
const TRIES: usize = 3;
const IDLE_LIMIT_MS: u64 = 20_000;

/// Plays a case and judges it.
pub(crate) async fn play(replay: &Replay, case: &Case) -> Verdict {
    match case.id.as_str() {
        "D19" => return refused_field(replay, case).await,
        "D07" => return sequence(replay, case).await,
        _ => {}
    }
    let mut reasons = Vec::new();
    for _ in 0..TRIES {
        reasons = plays(replay, case).await;
        if reasons.is_empty() {
            return Verdict::Ok(compare::left_to_others(case));
        }
    }
    Verdict::Failed(reasons)
}

async fn plays(replay: &Replay, case: &Case) -> Vec<String> {
    replay.reset(&case.id).await;
    let mut connection = connection(replay, case);
    let mut reasons = compare::outcome(case, &request(&mut connection, case).await);
    match case.id.as_str() {
        // "Play the case 50 times and at 64 parallel streams."
        "A01" => {
            let outcomes = parallel(replay, case, 64).await;
            reasons.extend(outcomes.iter().flat_map(|outcome| compare::meaning(case, outcome)));
        }
        // "50 requests in a row with pauses of 0..100 ms."
        "D22" => {
            for number in 0..50_u64 {
                tokio::time::sleep(Duration::from_millis(number * 2)).await;
                reasons.extend(compare::meaning(case, &request(&mut connection, case).await));
            }
        }
        // "100 of 100 plays."
        "D14" => {
            for _ in 0..100 {
                reasons.extend(compare::meaning(case, &request(&mut connection, case).await));
            }
        }
        // The connection was really closed.
        "C05" | "D15" => reasons.extend(gone(replay, case).await),
        _ => {}
    }
    reasons.dedup();
    reasons
}

async fn parallel(replay: &Replay, case: &Case, streams: usize) -> Vec<Outcome> {
    let case = Arc::new(settings(case));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..streams {
        let (mut connection, case) = (self::connection_of(replay, &case.id), Arc::clone(&case));
        tasks.spawn(async move { send(&mut connection, &case).await });
    }
    tasks.join_all().await
}

/// The server sees us go within 100 ms; polled, since it looks only now and then.
async fn gone(replay: &Replay, case: &Case) -> Option<String> {
    for _ in 0..20 {
        if replay.gone_early(&case.id).await == 1 {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some("the connection was not closed".to_owned())
}

async fn sequence(replay: &Replay, case: &Case) -> Verdict {
    replay.reset(&case.id).await;
    let mut connection = connection(replay, case);
    let mut reasons = Vec::new();
    for expected in case.texts("sequence") {
        let outcome = request(&mut connection, case).await;
        if expected == "ok" {
            reasons.extend(compare::outcome(case, &outcome));
        } else {
            let word = compare::end_word(&outcome.trace.end);
            if word != expected {
                reasons.push(format!("{word} instead of {expected}"));
            }
            if outcome.retry_after != Some(Nanos::from_secs(1)) {
                reasons.push(format!("retry after {:?}", outcome.retry_after));
            }
        }
    }
    if reasons.is_empty() { Verdict::Ok("8 requests".to_owned()) } else { Verdict::Failed(reasons) }
}

/// The client sends what it is given; it must tell the refusal and the field so that the run can change its request.
async fn refused_field(replay: &Replay, case: &Case) -> Verdict {
    replay.reset(&case.id).await;
    let outcome = request(&mut connection(replay, case), case).await;
    match &outcome.trace.end {
        RequestEnd::Failed(failure)
            if failure.kind == FailureKind::BadRequest && failure.text.contains("max_completion_tokens") =>
        {
            Verdict::NotApplicable("the field is chosen where requests are built; the refusal is told with its words")
        }
        end => Verdict::Failed(vec![format!("the refusal was told as {end:?}")]),
    }
}

fn connection(replay: &Replay, case: &Case) -> Connection {
    connection_of(replay, &case.id)
}

fn connection_of(replay: &Replay, id: &str) -> Connection {
    let mut connection = Connection::new(&replay.target(id), Clock::start()).expect("a loop-back address");
    connection.expect_model(Some("replay-model".into()));
    connection
}

async fn request(connection: &mut Connection, case: &Case) -> Outcome {
    send(connection, &settings(case)).await
}

/// What of a case makes its request.
pub(crate) struct Asked {
    /// The case.
    pub(crate) id: String,
    /// Output limit.
    pub(crate) max_tokens: u32,
    /// Longest silence.
    pub(crate) idle_limit: Nanos,
    /// When we go.
    pub(crate) cancel_after: Option<Duration>,
}

async fn send(connection: &mut Connection, asked: &Asked) -> Outcome {
    let document = json!({
        "model": "replay-model",
        "messages": [{"role": "user", "content": "Go on."}],
        "stream": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
        "max_tokens": asked.max_tokens,
    });
    let ask = Ask {
        slot: 0,
        scheduled: Nanos(0),
        path: "/v1/chat/completions",
        body: Body::new([Bytes::from(document.to_string())], asked.max_tokens),
        keep_text: KeepText::Yes,
        idle_limit: asked.idle_limit,
    };
    let cut = CancellationToken::new();
    let counters = SlotCounters::default();
    let stream = connection.stream(ask, &counters, &cut);
    match asked.cancel_after {
        None => stream.await,
        Some(after) => {
            let cancel = async {
                tokio::time::sleep(after).await;
                cut.cancel();
            };
            tokio::join!(stream, cancel).0
        }
    }
}

/// The request's settings, or what a run takes where the case says nothing.
pub(crate) fn settings(case: &Case) -> Asked {
    Asked {
        id: case.id.clone(),
        max_tokens: case.request.max_tokens.unwrap_or(4_096),
        idle_limit: Nanos::from_millis(case.request.idle_timeout_ms.unwrap_or(IDLE_LIMIT_MS)),
        cancel_after: case.request.client_cancels_after_ms.map(Duration::from_millis),
    }
}
