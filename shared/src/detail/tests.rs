//! What a page is told about a cell agrees with the cell's result, and stays small.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::{
    distribution::Scale,
    evidence::{evidence, meaning},
    requests::{Columns, MOST_REQUESTS, RowEnd},
    *,
};
use crate::{
    finding::rules::Asked,
    plan::PromptMode,
    raw::{Course, Engine, Prompts},
    stats::{
        cell::CellResult,
        summary::{Summary, Weighted},
        verdict::Proof,
        window::Window,
    },
    trace::{Arrival, FailureKind, RequestEnd, RequestFailure, StampSource, Usage},
    trust::ClientWatch,
    units::{Concurrency, Context},
};

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// A request whose text comes each `gap_ms`, beginning after `ttft_ms`.
fn request(slot: u32, sent_ms: u64, ttft_ms: u64, gap_ms: u64, tokens: u32) -> RequestTrace {
    let arrivals: Vec<Arrival> = (0..tokens)
        .map(|n| Arrival {
            at: ms(sent_ms + ttft_ms + u64::from(n) * gap_ms),
            usage_tokens: NonZeroU32::new(n + 1),
            text_events: 1,
            late_ns: 9_000,
        })
        .collect();
    RequestTrace {
        slot,
        scheduled: ms(sent_ms),
        send_started: Some(ms(sent_ms) + Nanos(40_000)),
        send_finished: Some(ms(sent_ms) + Nanos(90_000)),
        headers_at: None,
        first_content_at: None,
        ended: arrivals.last().map_or(ms(sent_ms + ttft_ms), |last| last.at) + ms(1),
        arrivals,
        usage: Some(Usage { completion_tokens: Some(u64::from(tokens)), ..Usage::default() }),
        usage_raw_completion_tokens: None,
        coalesced_reads: 0,
        skipped_events: 0,
        stamps: StampSource::Kernel,
        notes: Vec::new(),
        end: RequestEnd::Completed { finish_reason: None },
    }
}

fn failed(mut trace: RequestTrace, text: &str) -> RequestTrace {
    let failure = RequestFailure { kind: FailureKind::ServerError, http_status: Some(503), text: text.into() };
    trace.end = RequestEnd::Failed(failure);
    trace
}

fn decode(concurrency: u32, scouts: Vec<RequestTrace>) -> Course {
    Course::Decode(Box::new(Decode {
        concurrency: Concurrency::new(concurrency).unwrap(),
        scouts,
        proof: Proof::NotWanted,
        ramp_start: ms(5_000),
        ramp: RampEnd::Ready,
        window: Window::new(ms(6_000), Nanos::from_secs(4)),
        engine: Engine {
            running: vec![(ms(4_000), 9.0), (ms(6_500), 2.0), (ms(7_500), f64::NAN), (ms(8_500), 1.0)],
            ..Engine::default()
        },
        client: ClientWatch::default(),
        prompts: Prompts::default(),
    }))
}

fn cell(traces: Vec<RequestTrace>, course: Course) -> RawCell {
    RawCell { asked: Asked::new(Context::new(8_192).unwrap(), PromptMode::Shared), traces, course, gpus: None }
}

/// Two slots: each a request of the start burst and a restart; one failure; a cold request before.
fn small() -> RawCell {
    let traces = vec![
        request(0, 5_000, 400, 20, 100),
        request(1, 5_000, 500, 20, 120),
        request(0, 7_401, 90, 25, 80),
        request(1, 7_901, 80, 25, 60),
        failed(request(1, 9_500, 100, 20, 3), "overloaded"),
    ];
    cell(traces, decode(2, vec![request(0, 100, 2_000, 20, 1)]))
}

fn summary_of(detail: &CellDetail, kind: Kind) -> Option<Summary> {
    detail.distributions.iter().find(|it| it.kind == kind).map(|it| it.summary)
}

#[test]
fn distributions_are_those_of_the_result() {
    let raw = small();
    let (detail, CellResult { stats, .. }) = (CellDetail::of(&raw), raw.result());
    let check = |kind, wanted: Option<Summary>| {
        let got = summary_of(&detail, kind);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let same =
            |a: Summary, b: Summary| a.n == b.n && near(a.p50, b.p50) && near(a.min, b.min) && near(a.max, b.max);
        assert!(got.zip(wanted).is_some_and(|(a, b)| same(a, b)), "{kind:?}: {got:?} and {wanted:?}");
    };
    check(Kind::TtftBurst, stats.ttft_burst_s);
    check(Kind::TtftSteady, stats.ttft_steady_s);
    check(Kind::TtftCold, stats.ttft_cold_s);
    check(Kind::TokenGap, stats.itl_s);
    check(Kind::SlotRate, stats.per_request_tok_s);
}

#[test]
fn the_time_line_holds_all_tokens_and_the_stages() {
    let detail = CellDetail::of(&small());
    assert_eq!((detail.zero, detail.requests), (ms(5_000), 5));
    let tokens: f64 = detail.timeline.tok_s.iter().map(|rate| rate * detail.timeline.block_s).sum();
    assert!((tokens - 360.0).abs() < 1e-6, "{tokens}");
    assert_eq!(detail.stages.map(|stages| (stages.ramp, stages.window)), Some(((0.0, 1.0), (1.0, 5.0))));
    assert_eq!(detail.engine.running, [(1.5, 2.0), (3.5, 1.0)]);
    assert_eq!(
        detail.failures.iter().map(|group| (group.text.as_str(), group.count)).collect::<Vec<_>>(),
        [("overloaded", 1)]
    );
}

#[test]
fn cells_without_a_window_have_a_detail_too() {
    let cold = CellDetail::of(&cell(vec![request(0, 100, 800, 0, 1), request(0, 1_000, 900, 0, 1)], Course::Prefill));
    assert_eq!((cold.stages, summary_of(&cold, Kind::TtftCold).map(|summary| summary.n)), (None, Some(2)));
    let nothing = CellDetail::of(&cell(Vec::new(), Course::NotDrained { running: 1.0, waiting: 0.0 }));
    assert_eq!((nothing.span_s, nothing.requests, nothing.distributions.len()), (0.0, 0, 0));
    assert!(nothing.engine.is_silent() && nothing.timeline.tok_s.is_empty());
}

#[test]
fn what_goes_over_the_wire_is_pinned() {
    let detail = CellDetail {
        timeline: Timeline { block_s: 0.25, tok_s: vec![8.0], in_flight: vec![1.0], decoding: vec![0.5] },
        distributions: Distribution::of(Kind::TtftCold, Values::each([2.0])).into_iter().collect(),
        ..CellDetail::of(&small())
    };
    insta::assert_snapshot!(serde_json::to_string(&detail).unwrap(), @r#"{"zero":5000000000,"span_s":5.0,"load":"sustained","stages":{"ramp":[0.0,1.0],"ramp_end":"ready","window":[1.0,5.0]},"timeline":{"block_s":0.25,"tok_s":[8.0],"in_flight":[1.0],"decoding":[0.5]},"engine":{"running":[[1.5,2.0],[3.5,1.0]],"waiting":[],"kv_usage":[]},"distributions":[{"kind":"ttft_cold","summary":{"n":1,"min":2.0,"mean":2.0,"p50":2.0,"p90":null,"p99":null,"max":2.0},"scale":"linear","bins":[1.0],"ecdf":[[2.0,1.0]]}],"failures":[{"kind":"server_error","text":"overloaded","count":1}],"requests":5}"#);
    insta::assert_snapshot!(serde_json::to_string(&Columns::of(&small())).unwrap(), @r#"{"total":5,"slot":[0,1,0,1,1],"due":[0,0,2401000,500000,1599000],"sent":[40,40,40,40,40],"first":[399960,499960,89960,79960,99960],"last":[1980000,2380000,1975000,1475000,40000],"ended":[2381000,2881000,2066000,1556000,141000],"end":[0,0,0,0,2],"tokens":[100,120,80,60,3],"failures":[{"kind":"server_error","http_status":503,"text":"overloaded"}]}"#);
}

#[test]
fn requests_read_back() {
    let raw = small();
    let rows = Columns::of(&raw).rows();
    assert_eq!(rows.len(), 5);
    let near = |got: Option<f64>, wanted: f64| {
        assert!(got.is_some_and(|got| (got - wanted).abs() < 1e-6), "{got:?}, {wanted}");
    };
    let third = rows[2];
    assert_eq!((third.slot, third.tokens, third.end), (0, 80, RowEnd::Completed));
    near(Some(third.due_s), 2.401);
    near(third.ttft_s(), 0.08996);
    near(third.tok_s(), 40.0);
    assert_eq!(rows[4].end, RowEnd::Failed(0));
    assert_eq!(Columns::of(&raw).failure_words(rows[4].end).as_deref(), Some("server error (HTTP 503): overloaded"));
    // Columns of a stranger may be of any length.
    assert!(Columns { slot: vec![1, 2], due: vec![1], ..Columns::default() }.rows().is_empty());
}

#[test]
fn ever_new_failures_stay_few() {
    let traces = (0..500).map(|n| failed(request(0, 5_000 + n, 1, 1, 1), &format!("request {n} is lost"))).collect();
    let columns = Columns::of(&cell(traces, decode(1, Vec::new())));
    assert_eq!((columns.failures.len(), columns.rows().len()), (64, 500));
    assert!(columns.rows().iter().all(|row| columns.failure_words(row.end).is_some()));
}

/// What 100,000 requests weigh; the numbers stand in [`Columns`]' room.
#[test]
fn a_hundred_thousand_requests_are_a_few_megabytes() {
    let jitter = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let traces = (0..120_000_u64).map(|n| {
        let mut trace = request((n % 128) as u32, 5_000 + n / 128 * 30, 4 + jitter(n) % 9, 3, 8);
        trace.scheduled = trace.scheduled + Nanos(jitter(n));
        // The digits of times are what no packing makes smaller.
        for (arrival, nth) in trace.arrivals.iter_mut().zip(8 * n..) {
            arrival.at = arrival.at + Nanos(jitter(nth) % 900_000);
        }
        trace
    });
    let columns = Columns::of(&cell(traces.collect(), decode(128, Vec::new())));
    assert_eq!((columns.total, columns.slot.len()), (120_000, MOST_REQUESTS));
    let json = serde_json::to_vec(&columns).unwrap();
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&json, 6);
    assert!(json.len() < 6_000_000 && packed.len() < 2_000_000, "{} and {} bytes", json.len(), packed.len());
}

#[test]
fn a_status_says_what_it_means_and_why() {
    let result = small().result();
    let lines = evidence("decode-8K-2".parse().unwrap(), Load::Sustained, &result).join("\n");
    insta::assert_snapshot!(format!("{}\n{lines}", meaning(result.status)), @r"
    Too many requests failed, or a slot gave nothing for too long: there is no number to stand on.
    5 requests sent: 4 completed in the window, 1 failed.
    1.7 of 2 requests decoded on average (84 %).
    Tokens: counted by server per chunk.
    Times: stamped by kernel.
    ");
    let sample = crate::sample::reference();
    let first = sample.cells_of(crate::id::Phase::Decode).next().unwrap();
    let lines = evidence(first.id, Load::Sustained, first.result().unwrap()).join("\n");
    insta::assert_snapshot!(lines, @"1 request completed in the window.");
}

fn values() -> impl Strategy<Value = Vec<Weighted>> {
    prop::collection::vec((1e-3..1e3, 0.1..4.0).prop_map(|(value, weight)| Weighted { value, weight }), 1..700)
}

proptest! {
    #[test]
    fn bins_and_shares_lose_nothing(values in values()) {
        let total: f64 = values.iter().map(|v| v.weight).sum();
        let spread = Distribution::of(Kind::TokenGap, Values::weighted(values.iter().copied())).unwrap();
        prop_assert!(spread.bins.len() <= 40 && spread.ecdf.len() <= 202, "{} points", spread.ecdf.len());
        prop_assert!((spread.bins.iter().sum::<f64>() - total).abs() < 1e-6 * total);
        prop_assert!(spread.ecdf.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        prop_assert_eq!(spread.ecdf.last().map(|point| point.1), Some(1.0));
        let edges = spread.edges();
        prop_assert_eq!(edges.first().map(|edge| edge.0), Some(spread.summary.min));
        prop_assert_eq!(edges.last().map(|edge| edge.1), Some(spread.summary.max));
        prop_assert!(edges.windows(2).all(|pair| pair[0].1.total_cmp(&pair[1].0).is_eq()));
        prop_assert_eq!(spread.scale == Scale::Log, spread.summary.max / spread.summary.min >= 20.0);
    }

    #[test]
    fn every_point_of_the_shares_is_true(values in values()) {
        let total: f64 = values.iter().map(|v| v.weight).sum();
        let spread = Distribution::of(Kind::TokenGap, Values::weighted(values.iter().copied())).unwrap();
        for (value, share) in spread.ecdf {
            let below: f64 = values.iter().filter(|v| v.value <= value).map(|v| v.weight).sum();
            prop_assert!((below / total - share).abs() < 1e-9);
        }
    }
}
