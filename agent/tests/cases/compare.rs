//! Compares what came out with what a case expects.

use serde_json::{Value, json};
use speedmatrix_agent::{
    client::{Outcome, Text},
    engine::{self, Decoded},
    framing::{Event, Sse},
};
use speedmatrix_shared::{
    trace::{FailureKind, RequestEnd, RequestTrace, StreamNote, TokenSource},
    units::Nanos,
};

use super::given::Case;

/// Warnings that need more than one stream to be known: the cell says them.
const OF_THE_CELL: [&str; 2] = ["early_stop", "prompt_truncated"];

/// All differences, times included.
pub(crate) fn outcome(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut wrong = meaning(case, outcome);
    if end_is_ok(&outcome.trace.end) {
        times(case, &outcome.trace, &mut wrong);
        chunks(case, &outcome.trace, &mut wrong);
    }
    wrong
}

/// All differences but those of time.
pub(crate) fn meaning(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let trace = &outcome.trace;
    let ok = end_is_ok(&trace.end);
    let word = if ok { "ok" } else { "error" };
    if case.text("outcome") != Some(word) && !case.texts("accept_outcomes").contains(&word) {
        return vec![format!("it ended as {:?}", trace.end)];
    }
    match &trace.end {
        RequestEnd::Failed(failure) => {
            differ(&mut wrong, "error_kind", case.expect.get("error_kind"), &json!(kind_word(failure.kind)));
            let text = failure.text.to_lowercase();
            let words = case.text("error_text_contains").map(str::to_owned);
            let numbers = ["context_limit", "requested"].iter().filter_map(|key| case.expect.get(*key)?.as_u64());
            for part in words.into_iter().chain(numbers.map(|number| number.to_string())) {
                if !text.contains(&part) {
                    wrong.push(format!("{part:?} is not in {text:?}"));
                }
            }
            differ(&mut wrong, "partial_tokens", case.expect.get("partial_tokens"), &json!(trace.text_events()));
        }
        end => {
            counts(case, trace, &mut wrong);
            texts(case, outcome.text.as_ref(), &mut wrong);
            let reason = match end {
                RequestEnd::Completed { finish_reason } => json!(finish_reason),
                _ => Value::Null,
            };
            differ(&mut wrong, "finish_reason", case.expect.get("finish_reason"), &reason);
            warnings(case, trace, &mut wrong);
        }
    }
    wrong
}

/// What of a case is for others to check, in words; empty if nothing.
pub(crate) fn left_to_others(case: &Case) -> String {
    let left: Vec<&str> = case.texts("warn").into_iter().filter(|word| OF_THE_CELL.contains(word)).collect();
    if left.is_empty() { String::new() } else { format!("(said by the cell, not the stream: {})", left.join(", ")) }
}

/// An end in the cases' words.
pub(crate) fn end_word(end: &RequestEnd) -> &'static str {
    match end {
        RequestEnd::Failed(failure) => kind_word(failure.kind),
        _ => "ok",
    }
}

fn end_is_ok(end: &RequestEnd) -> bool {
    !matches!(end, RequestEnd::Failed(_))
}

fn kind_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Connect => "connect",
        FailureKind::Auth => "auth",
        FailureKind::NotFound => "not_found",
        FailureKind::RateLimited => "rate_limited",
        FailureKind::ContextOverflow => "context_overflow",
        FailureKind::BadRequest => "http_4xx",
        FailureKind::ServerError => "http_5xx",
        FailureKind::ErrorInStream => "server_error_in_stream",
        FailureKind::TruncatedStream => "truncated_stream",
        FailureKind::ConnectionReset => "connection_reset",
        FailureKind::Stalled => "stalled",
        FailureKind::EmptyOutput => "empty_output",
        FailureKind::ServerAbort => "server_abort",
        FailureKind::NotAStream => "not_a_stream",
        FailureKind::UnsupportedEncoding => "unsupported_encoding",
        FailureKind::Redirect => "redirect",
        FailureKind::Protocol => "protocol",
        FailureKind::NotTold => "not_told",
    }
}

fn note_word(note: StreamNote) -> &'static str {
    match note {
        StreamNote::UsageMissing => "usage_missing",
        StreamNote::UsageImplausible => "usage_implausible",
        StreamNote::MultiTokenChunks => "multi_token_chunks",
        StreamNote::MalformedEventSkipped => "malformed_event_skipped",
        StreamNote::BufferedStream => "buffered_stream",
        StreamNote::NotStreamed => "not_streamed",
        StreamNote::NoVisibleAnswer => "no_visible_answer",
        StreamNote::PromptCached => "prompt_cached",
        StreamNote::ModelMismatch => "model_mismatch",
        StreamNote::LoopingText => "looping_output",
    }
}

fn differ(wrong: &mut Vec<String>, what: &str, expected: Option<&Value>, got: &Value) {
    if let Some(expected) = expected.filter(|expected| *expected != got) {
        wrong.push(format!("{what} is {got}, not {expected}"));
    }
}

fn counts(case: &Case, trace: &RequestTrace, wrong: &mut Vec<String>) {
    let (tokens, source) = trace.output_tokens();
    let source = if source == TokenSource::Chunks { "chunks" } else { "usage" };
    let usage = trace.usage.unwrap_or_default();
    let mut check = |key: &str, got: Value| differ(wrong, key, case.expect.get(key), &got);
    check("output_tokens", json!(tokens));
    check("token_source", json!(source));
    check("prompt_tokens", json!(usage.prompt_tokens));
    check("cached_tokens", json!(usage.cached_tokens));
    check("reasoning_tokens", json!(usage.reasoning_tokens));
    let cumulative: Vec<u32> =
        trace.arrivals.iter().map(|a| a.usage_tokens.map_or(0, std::num::NonZeroU32::get)).collect();
    let each: Vec<u32> = cumulative.iter().scan(0, |before, now| Some(now - std::mem::replace(before, *now))).collect();
    check("tokens_per_text_event", json!(each));
}

fn texts(case: &Case, text: Option<&Text>, wrong: &mut Vec<String>) {
    let Some(text) = text else {
        wrong.push("no text was kept".to_owned());
        return;
    };
    if !case.texts("accept_content_text").contains(&text.content.as_str()) {
        differ(wrong, "content_text", case.expect.get("content_text"), &json!(text.content));
    }
    differ(wrong, "reasoning_text", case.expect.get("reasoning_text"), &json!(text.reasoning));
    let calls: Vec<Value> =
        text.tool_calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
    differ(wrong, "tool_calls", case.expect.get("tool_calls"), &json!(calls));
}

fn warnings(case: &Case, trace: &RequestTrace, wrong: &mut Vec<String>) {
    let said: Vec<&str> = trace.notes.iter().copied().map(note_word).collect();
    let due: Vec<&str> = case.texts("warn").into_iter().filter(|word| !OF_THE_CELL.contains(word)).collect();
    for word in due.iter().filter(|word| !said.contains(word)) {
        wrong.push(format!("{word} was not said"));
    }
    for word in said.iter().filter(|word| !due.contains(word) && **word != "multi_token_chunks") {
        wrong.push(format!("{word} was said"));
    }
}

fn times(case: &Case, trace: &RequestTrace, wrong: &mut Vec<String>) {
    let millis = |later: Option<Nanos>, earlier: Option<Nanos>| Some(later?.since(earlier?).as_secs_f64() * 1e3);
    let (first, last) = (trace.first_arrival(), trace.last_arrival());
    let gaps = trace.output_tokens().0.saturating_sub(1);
    let completed = matches!(trace.end, RequestEnd::Completed { .. });
    within(case, "ttft_ms", millis(first, trace.send_started), wrong);
    let itl = millis(last, first).filter(|_| gaps > 0).map(|all| all / gaps as f64);
    within(case, "itl_ms", itl, wrong);
    within(case, "latency_ms", millis(last, trace.send_started).filter(|_| completed), wrong);
}

fn within(case: &Case, key: &str, got: Option<f64>, wrong: &mut Vec<String>) {
    let ok = match (case.expect.get(key), got) {
        (None, _) | (Some(Value::Null), None) => true,
        (Some(Value::Array(range)), Some(got)) => match range.as_slice() {
            [low, high] => low.as_f64().is_some_and(|low| low <= got) && high.as_f64().is_some_and(|high| got <= high),
            _ => false,
        },
        _ => false,
    };
    if !ok {
        wrong.push(format!("{key} is {got:?}, not {:?}", case.expect.get(key)));
    }
}

/// Which pieces complete events with text: by the decoder alone, and no earlier on the clock than they were sent.
fn chunks(case: &Case, trace: &RequestTrace, wrong: &mut Vec<String>) {
    let (all, content) = text_chunks(case);
    let places = [
        ("first_token_chunk_index", all.first(), trace.first_arrival()),
        ("last_token_chunk_index", all.last(), trace.last_arrival()),
        ("first_content_chunk_index", content.first(), trace.first_content_at),
    ];
    for (key, index, at) in places {
        let accepted = case.expect.get(&format!("accept_{key}")).and_then(Value::as_array);
        let got = json!(index.filter(|_| at.is_some()));
        if accepted.is_none_or(|accepted| !accepted.contains(&got)) {
            differ(wrong, key, case.expect.get(key), &got);
        }
        if let (Some(index), Some(at), Some(sent)) = (index, at, trace.send_started) {
            let due = Nanos::from_millis(case.due_ms(*index));
            if at.since(sent) < due {
                wrong.push(format!("piece {index} came after {:?}, before it was sent", at.since(sent)));
            }
        }
    }
}

fn text_chunks(case: &Case) -> (Vec<usize>, Vec<usize>) {
    let (mut all, mut content) = (Vec::new(), Vec::new());
    let mut sse = Sse::default();
    'pieces: for (index, chunk) in case.chunks.iter().enumerate() {
        let bytes = chunk.bytes();
        let mut events = sse.push(&bytes);
        while let Some(event) = events.next_event() {
            let Ok(Event::Data(data)) = event else { continue };
            match engine::decode(data, &mut String::new()) {
                Decoded::Done => break 'pieces,
                Decoded::Delta(delta) => {
                    all.extend(delta.has_text().then_some(index));
                    content.extend(delta.has_content().then_some(index));
                }
                Decoded::NotJson => {}
            }
        }
    }
    (all, content)
}
