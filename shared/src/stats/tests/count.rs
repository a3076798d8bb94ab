//! Tokens per arrival and gaps per token.

use proptest::prelude::*;

use super::{arrival, cut, ms, request, with_usage};
use crate::{
    stats::{
        request::{Counted, pooled_ratio},
        window::Window,
    },
    trace::{RequestTrace, TokenSource},
    units::Nanos,
};

const ALWAYS: Window = Window { start: Nanos(0), end: Nanos(u64::MAX) };

fn by_usage(usages: &[u32]) -> RequestTrace {
    let arrivals = usages.iter().zip(1..).map(|(usage, n)| arrival(n * 10, *usage)).collect();
    request(0, 0, arrivals)
}

#[test]
fn every_arrival_gets_its_tokens() {
    let check = |trace: &RequestTrace, pooled: Option<f64>, tokens: &[f64], source: TokenSource| {
        let counted = Counted::new(trace, pooled);
        assert_eq!((counted.tokens(), counted.source), (tokens, source), "{:?}", trace.arrivals);
    };
    check(&by_usage(&[2, 4, 7]), None, &[2.0, 2.0, 3.0], TokenSource::ServerPerChunk);
    // Usage that comes with a later chunk, that shrinks, and that the final one raises.
    check(&by_usage(&[0, 3, 0, 6]), None, &[0.0, 3.0, 0.0, 3.0], TokenSource::ServerPerChunk);
    check(&by_usage(&[3, 2, 5]), None, &[3.0, 0.0, 2.0], TokenSource::ServerPerChunk);
    check(&with_usage(by_usage(&[2, 4]), 9), None, &[2.0, 7.0], TokenSource::ServerPerChunk);
    check(&with_usage(by_usage(&[2, 4]), 3), None, &[2.0, 2.0], TokenSource::ServerPerChunk);
    // Only at the end; and without any, by the cell's ratio or by chunks.
    check(&with_usage(by_usage(&[0, 0, 0]), 6), Some(9.0), &[2.0, 2.0, 2.0], TokenSource::ServerPerRequest);
    check(&by_usage(&[0, 0]), Some(1.5), &[1.5, 1.5], TokenSource::ServerPerRequest);
    check(&by_usage(&[0, 0]), None, &[1.0, 1.0], TokenSource::Chunks);
    check(&by_usage(&[]), None, &[], TokenSource::Chunks);
}

#[test]
fn the_pooled_ratio_is_of_counted_requests() {
    let counted = with_usage(by_usage(&[0, 0, 0, 0]), 6);
    let running = cut(by_usage(&[0, 0]), 25);
    assert_eq!(pooled_ratio([&counted, &running]), Some(1.5));
    assert_eq!(pooled_ratio([&running]), None);
}

#[test]
fn one_buffered_answer_has_no_speed() {
    let mut trace = by_usage(&[50, 100]);
    for (arrival, at) in trace.arrivals.iter_mut().zip([1_000_000_000, 1_000_000_001]) {
        arrival.at = Nanos(at);
    }
    let counted = Counted::new(&trace, None);
    assert_eq!(counted.tpot_secs(ALWAYS), None);
    assert_eq!(counted.itl(ALWAYS).count(), 0);
    assert_eq!(counted.tokens().iter().sum::<f64>().round() as u64, 100);
}

fn traces() -> impl Strategy<Value = RequestTrace> {
    let chunk = (1_u64..200, 0_u32..40, 1_u16..5);
    let total = prop::option::of(1_u64..300);
    (prop::collection::vec(chunk, 0..30), total).prop_map(|(chunks, total)| {
        let mut at = 0;
        let arrivals = chunks.into_iter().map(|(gap, usage, events)| {
            at += gap;
            crate::trace::Arrival { text_events: events, ..arrival(at, usage) }
        });
        let trace = request(0, 0, arrivals.collect());
        total.map_or(trace.clone(), |total| with_usage(trace, total))
    })
}

proptest! {
    #[test]
    fn tokens_sum_up_to_the_total(trace in traces()) {
        let counted = Counted::new(&trace, None);
        let total = if trace.arrivals.is_empty() { 0 } else { trace.output_tokens().0 };
        prop_assert!((counted.tokens().iter().sum::<f64>() - total as f64).abs() < 1e-9);
        prop_assert!(counted.tokens().iter().all(|tokens| *tokens >= 0.0));
    }

    #[test]
    fn gaps_per_token_sum_up_to_last_minus_first(trace in traces(), pooled in prop::option::of(0.5..8.0)) {
        let counted = Counted::new(&trace, pooled);
        let sum: f64 = counted.itl(ALWAYS).map(|itl| itl.value * itl.weight).sum();
        let span = counted.span().map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
        prop_assert!((sum - span).abs() < 1e-9, "{sum} and {span}");
    }

    #[test]
    fn windows_side_by_side_share_no_token(trace in traces(), cut_ms in 0_u64..3_000) {
        let counted = Counted::new(&trace, None);
        let flow = |start, end| counted.flow_in(Window { start, end });
        let (left, right) = (flow(Nanos(0), ms(cut_ms)), flow(ms(cut_ms), Nanos(u64::MAX)));
        let whole = flow(Nanos(0), Nanos(u64::MAX));
        prop_assert!((left.0 + right.0 - whole.0).abs() < 1e-9);
        prop_assert_eq!(left.1 + right.1, whole.1);
    }
}
