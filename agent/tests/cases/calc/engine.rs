//! Cases about what the engine tells of itself.

use serde_json::Value;
use speedmatrix_agent::{
    bench::drain::{Drained, Watch},
    client::prometheus::{EngineGauges, EngineKind},
};
use speedmatrix_shared::{
    plan::Load,
    stats::{
        cell::{CellResult, CellStatus},
        counter::{EngineRises, increase},
        decode::{DecodeInput, EngineSeries},
        mixed::Beside,
        queue::engine_queued_share,
        window::Window,
    },
    trace::RequestTrace,
    trust::ClientWatch,
    units::{Concurrency, Nanos},
};

use super::{Case, Wrong, numbers, pairs, requests};

/// As a run looks at the engine while it waits.
const LOOK_EVERY: Nanos = Nanos::from_millis(200);

fn each_second(values: &[f64]) -> Vec<(Nanos, f64)> {
    (0..).zip(values).map(|(second, value)| (Nanos::from_secs(second), *value)).collect()
}

/// G01: 8 of 32 streams run, the others wait.
pub(super) fn effective_concurrency(case: &Case, wrong: &mut Wrong) -> &'static str {
    let asked = case.given("asked").as_u64().unwrap_or_default() as u32;
    let (running, waiting) = (numbers(case.given("running")), numbers(case.given("waiting")));
    let length = Nanos::from_secs(running.len() as u64);
    let runs = running.first().copied().unwrap_or_default() as u32;
    let traces: Vec<RequestTrace> =
        (0..asked).map(|slot| requests::stream(slot, if slot < runs { 400 } else { 0 }, length, length)).collect();
    let (running, waiting) = (each_second(&running), each_second(&waiting));
    let engine = EngineSeries { running: &running, waiting: &waiting, kv_usage: &[] };
    let result = requests::cell(&traces, asked, length, engine);
    let concurrency = Concurrency::new(asked).expect("the case asks for few");
    let window = Window::new(Nanos(0), length);
    let (client, load) = (ClientWatch::default(), Load::Sustained);
    let input = DecodeInput {
        traces: &traces,
        scouts: &[],
        ramp_start: Nanos(0),
        window,
        concurrency,
        engine,
        client,
        load,
        slo: None,
        beside: Beside::default(),
    };
    wrong.number("running", result.stats.effective_concurrency(), case.expect("effective_concurrency"));
    wrong.same("under-filled", result.stats.is_underfilled(concurrency), case.expect("underfilled"));
    wrong.number("queue fraction", engine_queued_share(&input), case.expect("queue_fraction"));
    wrong.same("label", result.stats.occupancy(concurrency), case.expect("label"));
    wrong.must((result.status == CellStatus::RequestsQueued).then_some(()), "the cell is not marked as queued");
    "the status is \"Requests queued\", the more severe word"
}

/// G03: the rise of the counter, not its value.
pub(super) fn preemptions(case: &Case, wrong: &mut Wrong) -> &'static str {
    let length = Nanos::from_secs(30);
    let number = |key: &str| case.given(key).as_f64().unwrap_or_default();
    let looks = [(Nanos(0), number("preemptions_start")), (length, number("preemptions_end"))];
    let rise = increase(&looks, Window::new(Nanos(0), length));
    wrong.number("preemptions", rise, case.expect("preemptions_in_window"));
    let result = requests::cell(&[requests::stream(0, 3_000, length, length)], 1, length, EngineSeries::default());
    let checked = result.checked_by(EngineRises { preemptions: rise, ..EngineRises::default() });
    wrong.same("flag", checked.status.label().to_lowercase(), case.expect("flag"));
    ""
}

/// G04: the next cell waits for an idle engine, and fails if there is none in time.
pub(super) fn drained(case: &Case, wrong: &mut Wrong) -> &'static str {
    let limit = Nanos::from_secs(case.given("drain_limit_s").as_u64().unwrap_or_default());
    let (at, end) = watch(&pairs(case.given("samples_ok")), limit);
    let ok = case.expect("ok");
    wrong.same("next cell starts", end == Drained::Idle, &ok["next_cell_starts"]);
    // Idle must last half a second before it is believed.
    wrong.same("drained after", at.0 / Nanos::from_secs(1).0, &ok["drained_after_s"]);
    let (_, end) = watch(&pairs(case.given("samples_stuck")), limit);
    let stuck = case.expect("stuck");
    let running = match end {
        Drained::Busy { running, .. } => Some(running),
        Drained::Idle | Drained::Unknown => None,
    };
    wrong.same("next cell starts after all", end == Drained::Idle, &stuck["next_cell_starts"]);
    wrong.number("running", running, &stuck["running"]);
    let status = serde_json::to_value(CellResult::not_drained(1.0, 0.0).status).unwrap_or_default();
    wrong.same("error kind", status["status"].clone(), &stuck["error_kind"]);
    "believed after half a second more of idleness"
}

/// Looks at an engine that shows each sample for a second; when and how the waiting ended.
fn watch(samples: &[(f64, f64)], limit: Nanos) -> (Nanos, Drained) {
    let mut watch = Watch::new(Nanos(0), limit);
    let mut now = Nanos(0);
    loop {
        let index = (now.0 / Nanos::from_secs(1).0) as usize;
        let sample = samples.get(index).or(samples.last()).copied();
        let gauges = sample.map(|(running, waiting)| EngineGauges {
            running: Some(running),
            waiting: Some(waiting),
            ..EngineGauges::unknown(EngineKind::Vllm)
        });
        if let Some(end) = watch.look(now, gauges.as_ref()) {
            return (now, end);
        }
        now = now + LOOK_EVERY;
    }
}

/// G08: another user's tokens are not ours.
pub(super) fn own_tokens(case: &Case, wrong: &mut Wrong) -> &'static str {
    let length = Nanos::from_secs(case.given("window_s").as_u64().unwrap_or_default());
    let part = |part: &Value| {
        let own = part["own_tokens"].as_u64().unwrap_or_default() as u32;
        let result = requests::cell(&[requests::stream(0, own, length, length)], 1, length, EngineSeries::default());
        result.checked_by(EngineRises { output_tokens: part["server_tokens"].as_f64(), ..EngineRises::default() })
    };
    let (nothing, expected) = (part(case.given("part1")), case.expect("part1"));
    let outcome = if nothing.status.is_failed() { "error" } else { "ok" };
    wrong.same("outcome", outcome, &expected["outcome"]);
    wrong.number("speed without own tokens", nothing.stats.total_tok_s, &Value::from(0.0));
    let (shared, expected) = (part(case.given("part2")), case.expect("part2"));
    wrong.number("tok/s", shared.stats.total_tok_s, &expected["tok_per_s"]);
    wrong.same("server shared", shared.status == CellStatus::Contaminated, &expected["server_shared"]);
    "no_output is said as a failed cell, a shared server as \"Contaminated\""
}
