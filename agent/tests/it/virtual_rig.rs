//! A cell on the simulator's scheduler in simulated time: the real rule opens its window, the real statistics judge it.

use speedmatrix_agent::{
    bench::ramp::{Ramp, RampState},
    client::SlotState,
    sim::{SimConfig, VirtualLoad, VirtualPlan, VirtualRecord},
};
use speedmatrix_shared::{
    finding::rules::Asked,
    plan::Load,
    plan::PromptMode,
    stats::{
        cell::{CellResult, CellStats},
        decode::{DecodeInput, EngineSeries},
        mixed::Beside,
        request,
        verdict::RampEnd,
        window::Window,
    },
    trust::ClientWatch,
    units::Nanos,
};

/// As the cell looks at its slots.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// A measured cell.
pub(crate) struct VirtualCell {
    pub(crate) result: CellResult,
    pub(crate) record: VirtualRecord,
    pub(crate) window: Window,
}

impl VirtualCell {
    pub(crate) fn stats(&self) -> &CellStats {
        &self.result.stats
    }

    pub(crate) fn total_tok_s(&self) -> f64 {
        self.stats().total_tok_s.unwrap()
    }
}

/// Measures a cell over a window of `length`.
pub(crate) fn measure(config: &SimConfig, plan: VirtualPlan, length: Nanos) -> VirtualCell {
    let mut load = VirtualLoad::start(config, plan);
    let slots = plan.concurrency.get() as usize;
    let start = load.now();
    // As the cell does: the time of one admission is known from the prefill row or the probe before.
    let admission = (plan.prompts != PromptMode::Cold).then(|| one_admission(config, plan));
    let mut ramp = Ramp::new(start, slots, length, admission);
    let mut seen = vec![0; slots];
    let state = loop {
        load.advance_to(load.now() + LOOK_EVERY);
        for (slot, (seen, ended)) in (0..).zip(seen.iter_mut().zip(load.ended())) {
            (*seen..ended).for_each(|_| ramp.ended(slot));
            *seen = ended;
        }
        let states = load.decoding().map(|has| if has { SlotState::Decoding } else { SlotState::Sent });
        let state = ramp.poll(load.now(), states, Some(load.waiting() as f64));
        if state != RampState::Going {
            break state;
        }
    };
    let window = Window::new(load.now(), length);
    load.advance_to(window.end);
    let record = load.finish();
    let input = DecodeInput {
        traces: &record.traces,
        scouts: &record.scouts,
        ramp_start: record.ramp_start,
        window,
        concurrency: plan.concurrency,
        engine: EngineSeries { running: &record.running, waiting: &record.waiting, kv_usage: &record.kv_usage },
        client: ClientWatch::default(),
        load: Load::Sustained,
        slo: None,
        beside: Beside::default(),
    };
    let end = if state == RampState::Ready { RampEnd::Ready } else { RampEnd::BudgetSpent };
    let result = CellResult::decode(&input, end, Asked::new(plan.context, plan.prompts));
    VirtualCell { result, record, window }
}

/// The TTFT of one request of the plan alone, its cache filled.
fn one_admission(config: &SimConfig, plan: VirtualPlan) -> Nanos {
    let alone = VirtualPlan { concurrency: speedmatrix_shared::units::Concurrency::ONE, foreign: 0, ..plan };
    let mut load = VirtualLoad::start(config, alone);
    while !load.decoding().all(|has| has) {
        load.advance_to(load.now() + LOOK_EVERY);
    }
    let record = load.finish();
    Nanos::from_secs_f64(record.traces.iter().find_map(request::ttft_secs).unwrap())
}
