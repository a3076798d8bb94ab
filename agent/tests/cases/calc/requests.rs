//! Cases about what single requests add up to.

use std::num::NonZeroU32;

use serde_json::Value;
use speedmatrix_shared::{
    finding::rules::Asked,
    plan::{Load, PromptMode},
    stats::{
        cell::CellResult,
        decode::{DecodeInput, EngineSeries},
        first::SlowFirst,
        mixed::Beside,
        summary::Summary,
        verdict::RampEnd,
        window::Window,
    },
    trace::{Arrival, FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource},
    trust::ClientWatch,
    units::{Concurrency, Context, Nanos},
};

use super::{Case, Wrong, numbers};

/// A request of a slot, sent at 0, with these arrivals: when, and how many tokens so far.
pub(super) fn request(slot: u32, arrivals: &[(Nanos, u32)], ended: Nanos, end: RequestEnd) -> RequestTrace {
    let arrival = |&(at, tokens): &(Nanos, u32)| Arrival {
        at,
        usage_tokens: NonZeroU32::new(tokens),
        text_events: 1,
        late_ns: 0,
    };
    RequestTrace {
        slot,
        scheduled: Nanos(0),
        send_started: Some(Nanos(0)),
        send_finished: Some(Nanos(0)),
        headers_at: None,
        arrivals: arrivals.iter().map(arrival).collect(),
        first_content_at: None,
        ended,
        usage: None,
        usage_raw_completion_tokens: None,
        coalesced_reads: 0,
        skipped_events: 0,
        stamps: StampSource::Kernel,
        notes: Vec::new(),
        end,
    }
}

/// A stream of `tokens`, one each, evenly over [0, length), cut at `ended`.
pub(super) fn stream(slot: u32, tokens: u32, length: Nanos, ended: Nanos) -> RequestTrace {
    let at = |n: u32| Nanos(length.0 / u64::from(tokens.max(1)) * u64::from(n));
    let arrivals: Vec<(Nanos, u32)> = (0..tokens).map(|n| (at(n), n + 1)).collect();
    request(slot, &arrivals, ended, RequestEnd::Cut)
}

pub(super) fn completed() -> RequestEnd {
    RequestEnd::Completed { finish_reason: Some("stop".to_owned()) }
}

/// The cell of these requests, whose window begins with their sending.
pub(super) fn cell(traces: &[RequestTrace], slots: u32, length: Nanos, engine: EngineSeries<'_>) -> CellResult {
    let input = DecodeInput {
        traces,
        scouts: &[],
        ramp_start: Nanos(0),
        window: Window::new(Nanos(0), length),
        concurrency: Concurrency::new(slots).expect("the cases ask for few slots"),
        engine,
        client: ClientWatch::default(),
        load: Load::Sustained,
        slo: None,
        beside: Beside::default(),
    };
    let context = Context::new(8_192).expect("a context");
    CellResult::decode(&input, RampEnd::Ready, Asked::new(context, PromptMode::Cold))
}

pub(super) fn millis(value: &Value) -> Nanos {
    Nanos::from_secs_f64(value.as_f64().unwrap_or_default() / 1e3)
}

/// C07: what comes after the window, and how long the end takes, is not in the rate.
pub(super) fn window_ends_at_its_end(case: &Case, wrong: &mut Wrong) -> &'static str {
    let length = millis(case.given("duration_ms"));
    let tokens = case.given("tokens_counted_until_window_end").as_u64().unwrap_or_default() as u32;
    let ended = length + millis(case.given("cancel_and_scrape_took_ms"));
    let trace = stream(0, tokens, length, ended);
    wrong.number(
        "tok_per_s",
        cell(&[trace], 1, length, EngineSeries::default()).stats.total_tok_s,
        case.expect("tok_per_s"),
    );
    ""
}

/// C08: a slow first request is told apart, and 10 values have no 99th percentile.
pub(super) fn cold_first_request(case: &Case, wrong: &mut Wrong) -> &'static str {
    let values = numbers(case.given("ttft_ms"));
    let summary = Summary::of(values.iter().copied());
    wrong.number("median", summary.map(|s| s.p50), case.expect("median_ms"));
    wrong.number("mean", summary.map(|s| s.mean), case.expect("mean_ms"));
    wrong.number("max", summary.map(|s| s.max), case.expect("max_ms"));
    wrong.same("p99 shown", summary.is_some_and(|s| s.p99.is_some()), case.expect("p99_shown"));
    wrong.same("outlier", SlowFirst::of(&values).map(|_| 0), case.expect("outlier_index"));
    ""
}

/// K05: failed requests are in no latency, and fail the cell.
pub(super) fn failed_requests(case: &Case, wrong: &mut Wrong) -> &'static str {
    let given = case.given("requests").as_array().cloned().unwrap_or_default();
    let traces: Vec<RequestTrace> = (0..).zip(&given).map(|(slot, row)| answered(slot, row)).collect();
    let result = cell(&traces, given.len() as u32, Nanos::from_secs(90), EngineSeries::default());
    let (latency, counts) = (result.stats.e2e_latency_s, result.stats.requests.unwrap_or_default());
    wrong.number("p50", latency.map(|s| s.p50 * 1e3), case.expect("p50_ms"));
    wrong.number("max", latency.map(|s| s.max * 1e3), case.expect("max_ms"));
    wrong.same("ok", counts.completed, case.expect("ok"));
    wrong.same("failed", counts.failed, case.expect("failed"));
    wrong.number("failed share", Some(counts.failed as f64 / counts.started as f64), case.expect("failed_share"));
    for (kind, word) in [(FailureKind::RateLimited, "rate_limited"), (FailureKind::Stalled, "stalled")] {
        let count: u64 = result.failures.iter().filter(|group| group.kind == kind).map(|group| group.count).sum();
        wrong.same(word, count, &case.expect("by_kind")[word]);
    }
    wrong.same("cell valid", !result.status.is_failed(), case.expect("cell_valid"));
    ""
}

fn answered(slot: u32, row: &Value) -> RequestTrace {
    let at = millis(&row["latency_ms"]);
    let end = match row["kind"].as_str() {
        None => completed(),
        Some(word) => {
            let kind = if word == "stalled" { FailureKind::Stalled } else { FailureKind::RateLimited };
            RequestEnd::Failed(RequestFailure { kind, http_status: None, text: word.to_owned() })
        }
    };
    let text: &[(Nanos, u32)] = if row["ok"] == true { &[(at, 1)] } else { &[] };
    request(slot, text, at, end)
}

/// K10: all tokens at the same instant have no speed of their own; the window's stays.
pub(super) fn tiny_interval(case: &Case, wrong: &mut Wrong) -> &'static str {
    let tokens = case.given("tokens").as_u64().unwrap_or_default() as u32;
    let (first, last) = (millis(case.given("first_ms")), millis(case.given("last_ms")));
    let trace = request(0, &[(first, 1), (last, tokens)], last, completed());
    let length = Nanos::from_secs_f64(case.given("window_s").as_f64().unwrap_or_default());
    let stats = cell(&[trace], 1, length, EngineSeries::default()).stats;
    wrong.number("tok/s per user", stats.per_request_tok_s.map(|s| s.p50), case.expect("tok_s_per_user"));
    wrong.number("itl", stats.itl_s.map(|s| s.p50 * 1e3), case.expect("itl_ms"));
    wrong.number("aggregate", stats.total_tok_s, case.expect("aggregate_tok_s"));
    ""
}
