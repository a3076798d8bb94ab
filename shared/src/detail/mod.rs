//! A cell looked at closely: what its record tells beyond its numbers, small enough for a page. A pure function of the
//! record, so that who measures never pays for it.

pub mod distribution;
pub mod evidence;
pub mod gpu;
pub mod requests;
pub mod timeline;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::{
    distribution::{Distribution, Kind, Values},
    gpu::GpuLines,
    timeline::{EngineLines, Timeline},
};
use crate::{
    plan::Load,
    raw::{Course, Decode, RawCell},
    stats::{
        cell::FailureGroup,
        decode::slot_speeds,
        first_tokens::FirstTokens,
        request::{self, Counted},
        verdict::{self, RampEnd},
    },
    trace::RequestTrace,
    units::Nanos,
};

/// A cell looked at closely. Times are seconds from `zero` on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellDetail {
    /// The moment, on the run's clock, from which the times here count: the begin of the ramp, or the first request.
    pub zero: Nanos,
    /// Until the last request was over.
    pub span_s: f64,
    /// How requests came.
    pub load: Load,
    /// Ramp and window; `None` where none was measured.
    pub stages: Option<Stages>,
    /// What the client saw over time.
    pub timeline: Timeline,
    /// What the engine told over time.
    pub engine: EngineLines,
    /// What the server's GPUs did over time, if they are on the machine that measured.
    #[serde(default, skip_serializing_if = "GpuLines::is_silent")]
    pub gpu: GpuLines,
    /// How values spread; only those that were measured.
    pub distributions: Vec<Distribution>,
    /// Requests that failed, by what they said, most frequent first; at most 10.
    pub failures: Vec<FailureGroup>,
    /// Requests of the record.
    pub requests: u64,
}

/// Ramp and window of a decode cell: from and to, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// From the first send until the window opened.
    pub ramp: (f64, f64),
    /// How the ramp ended.
    pub ramp_end: RampEnd,
    /// What the numbers are of.
    pub window: (f64, f64),
}

/// Where the times of a cell begin and end, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Their zero.
    pub zero: Nanos,
    /// The end of the last request.
    pub end: Nanos,
}

impl Extent {
    /// The extent of a record; both ends are 0 where nothing was sent.
    pub fn of(raw: &RawCell) -> Self {
        let ramp = raw.decode().map(|decode| decode.ramp_start);
        let first = raw.traces.iter().map(|trace| trace.scheduled).chain(ramp).min().unwrap_or_default();
        let window = raw.decode().map(|decode| decode.window.end);
        let last = raw.traces.iter().map(|trace| trace.ended).chain(window).max().unwrap_or_default();
        Self { zero: first, end: last.max(first) }
    }

    /// A moment as seconds from zero on.
    pub fn secs(self, at: Nanos) -> f64 {
        at.since(self.zero).as_secs_f64()
    }
}

impl RawCell {
    /// The circumstances of a decode cell.
    pub fn decode(&self) -> Option<&Decode> {
        match &self.course {
            Course::Decode(decode) => Some(decode),
            Course::Prefill | Course::GivenUp { .. } | Course::NotDrained { .. } => None,
        }
    }
}

impl CellDetail {
    /// Looks at a record.
    pub fn of(raw: &RawCell) -> Self {
        let extent = Extent::of(raw);
        let good: Vec<&RequestTrace> = raw.traces.iter().filter(|trace| !request::is_failed(trace)).collect();
        let pooled = request::pooled_ratio(good.iter().copied());
        let counted: Vec<Counted<'_>> = good.iter().map(|trace| Counted::new(trace, pooled)).collect();
        let distributions = match &raw.course {
            Course::Decode(decode) => of_decode(raw, decode, &counted),
            Course::Prefill => {
                let cold = good.iter().filter_map(|trace| request::ttft_secs(trace));
                Distribution::of(Kind::TtftCold, Values::each(cold)).into_iter().collect()
            }
            Course::GivenUp { .. } | Course::NotDrained { .. } => Vec::new(),
        };
        Self {
            zero: extent.zero,
            span_s: extent.secs(extent.end),
            load: raw.asked.load,
            stages: raw.decode().map(|decode| Stages::of(decode, extent)),
            timeline: Timeline::of(&raw.traces, &counted, extent),
            engine: raw.decode().map(|decode| EngineLines::of(&decode.engine, extent)).unwrap_or_default(),
            gpu: raw.gpus.as_ref().map(|record| GpuLines::of(record, extent)).unwrap_or_default(),
            distributions,
            failures: verdict::failures(&raw.traces),
            requests: raw.traces.len() as u64,
        }
    }
}

impl Stages {
    fn of(decode: &Decode, extent: Extent) -> Self {
        let window = decode.window;
        Self {
            ramp: (extent.secs(decode.ramp_start), extent.secs(window.start)),
            ramp_end: decode.ramp,
            window: (extent.secs(window.start), extent.secs(window.end)),
        }
    }
}

fn of_decode(raw: &RawCell, decode: &Decode, counted: &[Counted<'_>]) -> Vec<Distribution> {
    let window = decode.window;
    let firsts = FirstTokens::of(&decode.input(&raw.traces, raw.asked));
    let groups = [
        (Kind::TtftBurst, Values::each(firsts.burst)),
        (Kind::TtftSteady, Values::each(firsts.steady)),
        (Kind::TtftCold, Values::each(firsts.cold)),
        (Kind::TokenGap, Values::weighted(counted.iter().flat_map(|c| c.itl(window)))),
        (Kind::SlotRate, Values::each(slot_speeds(window, counted))),
    ];
    groups.into_iter().filter_map(|(kind, values)| Distribution::of(kind, values)).collect()
}
