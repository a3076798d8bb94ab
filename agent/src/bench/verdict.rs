//! From what was seen of a decode cell to its result: numbers and verdict are `shared`'s.

use speedmatrix_shared::{
    finding::rules::Asked,
    id::CellId,
    stats::{
        cell::CellResult,
        decode::{DecodeInput, EngineSeries},
        verdict::{Proof, RampEnd},
    },
    trace::RequestTrace,
    units::Nanos,
};

use super::{
    cell::{Measured, Opened},
    gauges::Look,
};
use crate::client::prometheus::EngineGauges;

/// A decode cell. `cold` are the requests that filled its cache.
pub(super) fn decode(
    cell: CellId,
    asked: Asked,
    measured: &Measured,
    cold: &[RequestTrace],
    proof: Proof,
) -> CellResult {
    let (window, ramp) = match &measured.opened {
        Opened::Ready(window) => (*window, RampEnd::Ready),
        Opened::Anyway(window) => (*window, RampEnd::BudgetSpent),
        Opened::Never(failure) => return CellResult::given_up(failure, &measured.traces),
    };
    let series = |of: fn(&EngineGauges) -> Option<f64>| points(&measured.looks, of);
    let (running, waiting, kv_usage) = (series(|g| g.running), series(|g| g.waiting), series(|g| g.kv_usage));
    let input = DecodeInput {
        traces: &measured.traces,
        scouts: cold,
        ramp_start: measured.ramp_start,
        window,
        concurrency: cell.concurrency,
        engine: EngineSeries { running: &running, waiting: &waiting, kv_usage: &kv_usage },
    };
    CellResult::decode(&input, ramp, asked).with_proof(proof)
}

fn points(looks: &[Look], of: fn(&EngineGauges) -> Option<f64>) -> Vec<(Nanos, f64)> {
    looks.iter().filter_map(|(at, gauges)| Some((*at, of(gauges.as_ref()?)?))).collect()
}
