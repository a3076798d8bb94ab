//! Times to the first token, apart by what they tell about: the start burst, restarts, a cold cache (method §5).

use std::collections::BTreeMap;

use super::{
    decode::DecodeInput,
    request::{is_failed, ttft_secs},
    window::Window,
};
use crate::{plan::Load, trace::RequestTrace, units::Nanos};

/// Times to the first token in seconds, each group in the order of its requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FirstTokens {
    /// First arrival in ramp or window.
    pub all: Vec<f64>,
    /// Of these, the first request of each slot.
    pub burst: Vec<f64>,
    /// Later requests of a slot whose first arrival falls in the window.
    pub steady: Vec<f64>,
    /// The requests that filled the prompt cache.
    pub cold: Vec<f64>,
}

impl FirstTokens {
    /// Those of a decode cell; requests that failed are in none.
    pub fn of(input: &DecodeInput<'_>) -> Self {
        let ramp_and_window = Window { start: input.ramp_start, end: input.window.end };
        let mut firsts: BTreeMap<u32, Nanos> = BTreeMap::new();
        for (slot, sent) in input.traces.iter().filter_map(|trace| Some((trace.slot, trace.send_started?))) {
            firsts.entry(slot).and_modify(|first| *first = sent.min(*first)).or_insert(sent);
        }
        // In an open loop every request has a slot of its own, and none is part of a start burst.
        let in_burst = !matches!(input.load, Load::Open(_));
        let is_first = |trace: &RequestTrace| in_burst && firsts.get(&trace.slot).copied() == trace.send_started;
        let told = |trace: &RequestTrace| Some((trace.first_arrival()?, is_first(trace), ttft_secs(trace)?));
        let mut groups = Self::default();
        for (at, first, secs) in input.good().filter_map(told) {
            if ramp_and_window.contains(at) {
                groups.all.push(secs);
                if first {
                    groups.burst.push(secs);
                }
            }
            if !first && input.window.contains(at) {
                groups.steady.push(secs);
            }
        }
        groups.cold = input.scouts.iter().filter(|trace| !is_failed(trace)).filter_map(ttft_secs).collect();
        groups
    }
}
