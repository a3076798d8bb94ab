//! What was seen of a cell as its record, from which `shared` computes the result.

use speedmatrix_shared::{
    finding::rules::Asked,
    raw::{Course, Decode, Engine, RawCell},
    stats::verdict::{Proof, RampEnd},
    trace::{RequestFailure, RequestTrace},
    units::{Concurrency, Nanos},
};

use super::{
    cell::{Measured, Opened},
    gauges::Look,
};
use crate::client::prometheus::EngineGauges;

/// A cell before which the engine would not become idle.
pub(super) const fn not_drained(asked: Asked, (running, waiting): (f64, f64)) -> RawCell {
    RawCell { asked, traces: Vec::new(), course: Course::NotDrained { running, waiting }, gpus: None }
}

/// A cell whose requests can't succeed.
pub(super) const fn given_up(asked: Asked, failure: RequestFailure, traces: Vec<RequestTrace>) -> RawCell {
    RawCell { asked, traces, course: Course::GivenUp { failure }, gpus: None }
}

/// A prefill cell.
pub(super) const fn prefill(asked: Asked, traces: Vec<RequestTrace>) -> RawCell {
    RawCell { asked, traces, course: Course::Prefill, gpus: None }
}

/// A decode cell. `scouts` are the requests that filled its cache.
pub(super) fn decode(
    asked: Asked,
    concurrency: Concurrency,
    measured: Measured,
    (scouts, proof): (Vec<RequestTrace>, Proof),
) -> RawCell {
    let Measured { traces, ramp_start, opened, looks, client } = measured;
    let (window, ramp) = match opened {
        Opened::Ready(window) => (window, RampEnd::Ready),
        Opened::Anyway(window) => (window, RampEnd::BudgetSpent),
        Opened::Never(failure) => return given_up(asked, failure, traces),
    };
    let series = |of: fn(&EngineGauges) -> Option<f64>| points(&looks, of);
    let engine = Engine {
        running: series(|gauges| gauges.running),
        waiting: series(|gauges| gauges.waiting),
        kv_usage: series(|gauges| gauges.kv_usage),
        preemptions: series(|gauges| gauges.preemptions),
        output_tokens: series(|gauges| gauges.generation_tokens),
    };
    let decode = Decode { concurrency, scouts, proof, ramp_start, ramp, window, engine, client };
    RawCell { asked, traces, course: Course::Decode(Box::new(decode)), gpus: None }
}

fn points(looks: &[Look], of: fn(&EngineGauges) -> Option<f64>) -> Vec<(Nanos, f64)> {
    looks.iter().filter_map(|(at, gauges)| Some((*at, of(gauges.as_ref()?)?))).collect()
}
