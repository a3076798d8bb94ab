//! Requests that keep the bounds of a plan.

use super::{
    arrival,
    cell::{input, near},
    cut, failed, ms, request,
};
use crate::{
    plan::{Arrivals, Load},
    stats::{cell::CellStats, goodput::SloCount},
    trace::{FailureKind, RequestTrace},
};

/// Sent at `sent_ms`, its first token `ttft_ms` later, then three more, 20 ms apart.
fn answer(slot: u32, sent_ms: u64, ttft_ms: u64) -> RequestTrace {
    let first = sent_ms + ttft_ms;
    request(slot, sent_ms, (0..4).map(|n| arrival(first + 20 * n, n as u32 + 1)).collect())
}

fn judged(traces: &[RequestTrace], load: Load, slo: &str) -> CellStats {
    let mut input = input(traces, 4);
    (input.load, input.slo) = (load, slo.parse().ok());
    CellStats::decode(&input)
}

#[test]
fn requests_that_end_in_the_window_are_judged() {
    let traces = [
        answer(0, 1_000, 100), // over before the window
        answer(0, 3_000, 100),
        answer(1, 3_000, 200),
        failed(answer(2, 3_000, 100), FailureKind::ServerError),
        cut(answer(3, 11_900, 50), 12_000), // nobody knows how long it would have taken
    ];
    let check = |slo: &str, met: u64| {
        let cell = judged(&traces, Load::Sustained, slo);
        assert_eq!(cell.slo, Some(SloCount { met, judged: 3 }), "{slo}");
        near(cell.goodput, met as f64 / 10.0);
    };
    check("ttft:100ms", 1);
    check("ttft:200ms", 2);
    check("tpot:20ms", 2);
    check("tpot:19ms", 0);
    check("ttft:1s,e2e:200ms", 1);
    let cell = judged(&traces, Load::Sustained, "");
    assert_eq!((cell.slo, cell.goodput), (None, None), "without bounds nothing is judged");
}

#[test]
fn an_open_loop_judges_from_when_requests_were_due() {
    let late = |mut trace: RequestTrace, due_ms: u64| {
        trace.scheduled = ms(due_ms);
        trace
    };
    let traces = [
        late(answer(0, 3_000, 100), 3_000),
        late(answer(1, 3_000, 100), 2_900),
        late(answer(2, 11_900, 100), 11_900), // it ends after the window, and was due in it
        late(cut(answer(3, 11_950, 900), 12_500), 11_950),
        late(answer(4, 12_000, 100), 12_000),
    ];
    let cell = judged(&traces, Load::Open(Arrivals::Constant), "ttft:100ms");
    assert_eq!(cell.slo, Some(SloCount { met: 2, judged: 4 }));
}
