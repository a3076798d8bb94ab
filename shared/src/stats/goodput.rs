//! Requests that kept every bound of the plan (method §4): goodput and the share of good ones.

use serde::{Deserialize, Serialize};

use super::{cell::CellStats, decode::DecodeInput, request::Counted, window::Window};
use crate::{
    plan::{Load, slo::Latencies},
    trace::{RequestEnd, RequestTrace},
    units::Nanos,
};

/// All of a request's time.
const ALWAYS: Window = Window { start: Nanos(0), end: Nanos(u64::MAX) };

/// How many requests kept every bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SloCount {
    /// Requests that did.
    pub met: u64,
    /// All that were judged.
    pub judged: u64,
}

impl SloCount {
    /// The share (0–1) that did; `None` if none was judged.
    pub fn share(self) -> Option<f64> {
        (self.judged > 0).then(|| self.met as f64 / self.judged as f64)
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { met: self.met + other.met, judged: self.judged + other.judged }
    }
}

impl CellStats {
    /// Judges the requests that ended in the window; in an open loop all that were due in it, also those that were still
    /// running when the cell was closed: they came too late for any bound. A failed request is not good.
    pub(super) fn fill_goodput(&mut self, input: &DecodeInput<'_>, counted: &[Counted<'_>]) {
        let (Some(slo), Some(secs)) = (input.slo, self.measured_for_s) else { return };
        let open = matches!(input.load, Load::Open(_));
        let is_judged = |trace: &RequestTrace| match &trace.end {
            _ if open => input.window.contains(trace.scheduled),
            RequestEnd::Completed { .. } | RequestEnd::Failed(_) => input.window.contains(trace.ended),
            RequestEnd::Cut => false,
        };
        let since = |trace: &RequestTrace| if open { Some(trace.scheduled) } else { trace.send_started };
        let met = counted.iter().filter(|one| is_judged(one.trace)).filter(|one| {
            since(one.trace).and_then(|since| latencies(one, since)).is_some_and(|seen| slo.is_met(seen))
        });
        let met = met.count() as u64;
        let judged = input.traces.iter().filter(|trace| is_judged(trace)).count() as u64;
        self.slo = Some(SloCount { met, judged });
        self.goodput = Some(met as f64 / secs);
    }
}

/// The latencies of a completed request from `since` on; `None` if it was not completed.
fn latencies(one: &Counted<'_>, since: Nanos) -> Option<Latencies> {
    let completed = matches!(one.trace.end, RequestEnd::Completed { .. });
    let (first, last) = (one.trace.first_arrival()?, one.trace.last_arrival()?);
    let tpot = one.tpot_secs(ALWAYS).map(Nanos::from_secs_f64);
    completed.then(|| Latencies { ttft: first.since(since), tpot, e2e: last.since(since) })
}
