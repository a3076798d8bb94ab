//! The numbers of whole cells.

use super::{Pace, arrival, cut, failed, request, slot, with_usage};
use crate::{
    plan::Load,
    stats::{
        cell::{CellStats, RequestCounts},
        decode::{DecodeInput, EngineSeries},
        mixed::Beside,
        summary::Summary,
        window::Window,
    },
    trace::{FailureKind, RequestTrace, TokenSource},
    trust::ClientWatch,
    units::{Concurrency, Context, Nanos},
};

const WINDOW: Window = Window { start: Nanos::from_secs(2), end: Nanos::from_secs(12) };

pub(super) fn input(traces: &[RequestTrace], concurrency: u32) -> DecodeInput<'_> {
    DecodeInput {
        traces,
        scouts: &[],
        ramp_start: Nanos(0),
        window: WINDOW,
        concurrency: Concurrency::new(concurrency).unwrap(),
        engine: EngineSeries::default(),
        client: ClientWatch::default(),
        load: Load::Sustained,
        slo: None,
        beside: Beside::default(),
    }
}

pub(super) fn near(value: Option<f64>, wanted: f64) {
    assert!(value.is_some_and(|v| (v - wanted).abs() < 1e-9), "{value:?} is not {wanted}");
}

fn median(summary: Option<Summary>) -> Option<f64> {
    summary.map(|s| s.p50)
}

#[test]
fn two_steady_streams() {
    // 100 ms to the first token, then a token each 10 ms; 300 tokens per request, restarts need 200 ms.
    let pace = Pace { ttft_ms: 100, restart_ttft_ms: 200, gap_ms: 10, tokens: 300 };
    let traces: Vec<RequestTrace> = (0..2).flat_map(|number| slot(number, pace, 12_000)).collect();
    let cell = CellStats::decode(&input(&traces, 2));
    // Each slot is silent for 3 restarts of 200 ms, less the 10 ms its last token still lasts.
    let per_slot = WINDOW_TOKENS;
    assert_eq!(cell.output_tokens, Some(2 * per_slot));
    near(cell.total_tok_s, 2.0 * per_slot as f64 / 10.0);
    near(cell.per_user_tok_s, per_slot as f64 / 10.0);
    // The gap before a window's first token is cut by its start, so the speed is off by up to one token in 940.
    let speed = median(cell.per_request_tok_s).unwrap();
    assert!((100.0..100.2).contains(&speed), "{speed}");
    near(median(cell.time_between_tokens_s), 0.01);
    near(median(cell.itl_s), 0.01);
    near(median(cell.chunk_gap_s), 0.01);
    near(median(cell.ttft_burst_s), 0.1);
    near(median(cell.ttft_steady_s), 0.2);
    assert_eq!(cell.ttft_s.map(|s| s.n), Some(8));
    assert_eq!(cell.requests.map(|r| (r.started, r.completed, r.cut, r.failed)), Some((8, 6, 2, 0)));
    assert_eq!(cell.measured_for_s, Some(10.0));
    assert_eq!(cell.token_source, Some(TokenSource::ServerPerChunk));
    near(cell.tokens_per_chunk, 1.0);
    near(cell.active_requests, 2.0 - 6.0 * 0.009 / 10.0);
    near(cell.decoding_requests, 2.0 - 6.0 * 0.209 / 10.0);
    near(median(cell.e2e_latency_s), 0.2 + 2.99);
    near(median(cell.upload_s), 0.001);
}

/// Tokens of one slot of [`two_steady_streams`] in its window: 110 + 300 + 300 of the first three requests (restarts
/// at 3.1, 6.3 and 9.5 s) and 230 of the one that is cut at 12 s.
const WINDOW_TOKENS: u64 = 110 + 300 + 300 + 230;

#[test]
fn failed_requests_are_in_no_number() {
    let good =
        |number: u32| with_usage(request(number, 2_100, (0..11).map(|n| arrival(2_200 + n * 100, 0)).collect()), 11);
    let mut traces: Vec<RequestTrace> = (0..6).map(good).collect();
    let alone = CellStats::decode(&input(&traces, 6));
    for number in 6..9 {
        traces.push(failed(request(number, 2_100, vec![arrival(2_102, 0)]), FailureKind::RateLimited));
    }
    traces.push(failed(request(9, 2_100, vec![arrival(11_000, 0)]), FailureKind::Stalled));
    let with_failed = CellStats::decode(&input(&traces, 6));
    assert_eq!(with_failed.requests.map(|r| (r.started, r.failed)), Some((10, 4)));
    assert_eq!((with_failed.ttft_s, with_failed.e2e_latency_s), (alone.ttft_s, alone.e2e_latency_s));
    assert_eq!((with_failed.total_tok_s, with_failed.itl_s), (alone.total_tok_s, alone.itl_s));
    near(median(alone.ttft_s), 0.1);
}

#[test]
fn nothing_measured_is_nothing() {
    let check = |traces: &[RequestTrace], total: Option<f64>| {
        let cell = CellStats::decode(&input(traces, 1));
        assert_eq!(cell.total_tok_s, total);
        assert_eq!(cell.per_request_tok_s.or(cell.ttft_steady_s).or(cell.itl_s), None);
    };
    check(&[], None);
    check(&[failed(request(0, 2_500, vec![]), FailureKind::Connect)], None);
    // A request that only waited was measured: it gave 0 tokens.
    check(&[cut(request(0, 1_000, vec![]), 12_000)], Some(0.0));
    let mut no_time = input(&[], 1);
    no_time.window.end = no_time.window.start;
    assert_eq!(
        CellStats::decode(&no_time),
        CellStats { requests: Some(RequestCounts::default()), ..CellStats::default() }
    );
}

#[test]
fn tokens_at_the_borders_of_the_window() {
    let check = |at_ms: u64, inside: u64| {
        let trace = cut(request(0, 1_000, vec![arrival(1_500, 1), arrival(at_ms, 5)]), 20_000);
        assert_eq!(CellStats::decode(&input(&[trace], 1)).output_tokens, Some(inside), "{at_ms}");
    };
    check(1_999, 0);
    check(2_000, 4);
    check(11_999, 4);
    check(12_000, 0);
}

#[test]
fn prefill_speed_is_of_real_and_cold_prompts() {
    let cold = |ttft_ms: u64, cached: Option<u64>| {
        let mut trace = with_usage(request(0, 0, vec![arrival(ttft_ms, 0)]), 1);
        trace.usage = trace.usage.map(|usage| crate::trace::Usage { cached_tokens: cached, ..usage });
        trace
    };
    let check = |traces: &[RequestTrace], speed: Option<f64>, completed: u64| {
        let cell = CellStats::prefill(traces, Context::new(8_000).unwrap());
        assert_eq!(cell.total_tok_s, speed);
        assert_eq!(cell.requests.map(|r| r.completed), Some(completed));
    };
    check(&[cold(1_000, None), cold(2_000, None), cold(4_000, None)], Some(4_096.0), 3);
    check(&[cold(1_000, Some(819))], Some(8_192.0), 1);
    check(&[cold(1_000, Some(820))], None, 1);
    check(&[request(0, 0, vec![arrival(1_000, 0)])], Some(8_000.0), 1);
    check(&[failed(cold(1_000, None), FailureKind::ServerError)], None, 0);
    check(&[], None, 0);
}
