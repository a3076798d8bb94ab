//! What was seen of a cell as its record, from which `shared` computes the result.

use speedmatrix_shared::{
    finding::rules::Asked,
    raw::{Counting, Course, Decode, Engine, RawCell},
    stats::verdict::{Proof, RampEnd},
    trace::{RequestFailure, RequestTrace},
    units::{Concurrency, Nanos},
};

use super::{
    cell::{Measured, Opened},
    gauges::Look,
    mixed::ColdPrompts,
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
    beside: Option<ColdPrompts>,
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
        // The fullest replica is the first to run out.
        kv_usage: series(|gauges| gauges.kv_usage_max),
        preemptions: series(|gauges| gauges.preemptions),
        output_tokens: series(|gauges| gauges.generation_tokens),
        counting: counting(&looks),
        drafts: series(|gauges| gauges.drafts),
        draft_tokens: series(|gauges| gauges.draft_tokens),
        accepted_tokens: series(|gauges| gauges.accepted_tokens),
        accept_length: series(|gauges| gauges.accept_length),
        gen_throughput: series(|gauges| gauges.gen_throughput),
    };
    let prompts = beside.map(|beside| beside.seen).unwrap_or_default();
    let decode = Decode { concurrency, scouts, proof, ramp_start, ramp, window, engine, client, prompts };
    RawCell { asked, traces, course: Course::Decode(Box::new(decode)), gpus: None }
}

/// One number of all looks. A look at fewer replicas than there are is a gap: its sums would seem to fall.
fn points(looks: &[Look], of: fn(&EngineGauges) -> Option<f64>) -> Vec<(Nanos, f64)> {
    let told = || looks.iter().filter_map(|(at, gauges)| Some((*at, gauges.as_ref()?)));
    let all = told().map(|(_, gauges)| gauges.replicas).max();
    let whole = told().filter(|(_, gauges)| Some(gauges.replicas) == all);
    whole.filter_map(|(at, gauges)| Some((at, of(gauges)?))).collect()
}

fn counting(looks: &[Look]) -> Counting {
    let gauges = looks.iter().find_map(|(_, gauges)| *gauges);
    gauges.map(|gauges| gauges.engine.engine().counting).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::prometheus::EngineKind;

    #[test]
    fn a_look_at_some_replicas_is_a_gap() {
        let look = |secs, replicas, tokens| {
            let gauges = EngineGauges {
                replicas,
                generation_tokens: Some(tokens),
                ..EngineGauges::unknown(EngineKind::LlamaCpp)
            };
            (Nanos::from_secs(secs), Some(gauges))
        };
        let looks = [look(1, 2, 100.0), look(2, 1, 60.0), (Nanos::from_secs(3), None), look(4, 2, 140.0)];
        let wanted = [(Nanos::from_secs(1), 100.0), (Nanos::from_secs(4), 140.0)];
        assert_eq!(points(&looks, |gauges| gauges.generation_tokens), wanted);
        assert_eq!(counting(&looks), Counting::RequestEnd);
        assert_eq!(counting(&[]), Counting::EachStep);
    }
}
