//! A simulator, two runtimes and a run between them: what the tests of measuring share.

use std::{net::SocketAddr, sync::Mutex};

use speedmatrix_agent::{
    bench::{self, Fact, Job, Outlets, Patience, steer::Steering, turns::Seat},
    client::{
        Target,
        probe::{ProbeError, Probed, probe},
    },
    clock::Clock,
    host::gpu::Watched,
    prompt::corpus::Corpus,
    secret::Secret,
    sim::{Sim, SimConfig, SimLog, SimThread},
};
use speedmatrix_shared::{
    event::{RunEvent, RunOutcome, SkipReason},
    gauge::Gauge,
    id::CellId,
    plan::{PlanDraft, RunPlan},
    raw::{RawCell, codec},
    stats::cell::CellResult,
    target::TargetFacts,
    units::Nanos,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

/// A server under test and everything that a run needs.
pub(crate) struct Rig {
    pub(crate) target: Target,
    pub(crate) patience: Patience,
    /// Id of the runs.
    pub(crate) id: &'static str,
    /// Told what the probe found, before the run starts.
    pub(crate) adjust: fn(&mut TargetFacts),
    corpus: Option<Corpus>,
    /// What the next run takes for the server's GPUs.
    pub(crate) gpus: Mutex<Option<Watched>>,
    serving: Runtime,
    measuring: Runtime,
}

/// What stops and steers a run.
pub(crate) struct Reins {
    pub(crate) stop: CancellationToken,
    pub(crate) steering: watch::Sender<Steering>,
}

/// What a run told.
pub(crate) struct Seen {
    pub(crate) outcome: RunOutcome,
    pub(crate) events: Vec<(Nanos, RunEvent)>,
    pub(crate) clock: Clock,
    pub(crate) gauges: Vec<Gauge>,
}

/// Starts a simulator.
pub(crate) fn simulator(config: SimConfig) -> SimThread {
    Sim::start_on_thread(config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// The preset of exact times, every chunk logged, `factor` times faster than real time.
pub(crate) fn exact(factor: f64) -> SimConfig {
    let preset = SimConfig::preset("exact").unwrap();
    SimConfig { clock_factor: factor, recording: speedmatrix_agent::sim::Recording::EveryChunk, ..preset }
}

/// A draft of a short matrix.
pub(crate) fn draft(contexts: &str, concurrency: &str, duration: &str, max_output: &str) -> PlanDraft {
    PlanDraft {
        target: "filled in by the rig".into(),
        contexts: contexts.into(),
        concurrency: concurrency.into(),
        duration: duration.into(),
        max_output: max_output.into(),
        ..PlanDraft::default()
    }
}

impl Rig {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = |threads| Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
        let target = Target { url: speedmatrix_shared::plan::draft::parse_target(url).unwrap(), key: None };
        Self {
            target,
            patience: Patience::default(),
            corpus: None,
            id: "0198-test",
            adjust: |_| {},
            gpus: Mutex::default(),
            serving: runtime(1),
            measuring: runtime(2),
        }
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.target.key = Secret::new(key);
        self
    }

    pub(crate) fn with_corpus(self, corpus: Corpus) -> Self {
        Self { corpus: Some(corpus), ..self }
    }

    pub(crate) fn probe(&self, model: Option<&str>) -> Result<TargetFacts, ProbeError> {
        self.probed(model).map(|found| found.facts)
    }

    fn probed(&self, model: Option<&str>) -> Result<Probed, ProbeError> {
        self.serving.block_on(probe(&self.target, model))
    }

    /// Probes the server and makes a run to its end.
    pub(crate) fn run(&self, draft: PlanDraft) -> Seen {
        self.run_until(draft, |_, _| {})
    }

    /// As [`Rig::run`]; `watch` sees every fact when it is told and may stop or steer the run.
    pub(crate) fn run_until(
        &self,
        draft: PlanDraft,
        mut watch_facts: impl FnMut(&RunEvent, &Reins) + Send + 'static,
    ) -> Seen {
        let Probed { mut facts, model } = self.probed(None).unwrap_or_default();
        (self.adjust)(&mut facts);
        let factor = facts.simulated.as_ref().map_or(1.0, |simulated| simulated.clock_factor);
        let clock = Clock::start().with_factor(factor);
        let plan: RunPlan = PlanDraft { target: self.target.url.as_str().to_owned(), ..draft }.try_into().unwrap();
        let (tell, mut told) = mpsc::channel(64);
        let (gauge, mut gauges) = watch::channel(None);
        let (stop, steering) = (CancellationToken::new(), watch::Sender::default());
        let steered = steering.subscribe();
        let job = Job {
            settled: Vec::new(),
            corpus: self.corpus.clone(),
            plan,
            run: self.id.parse().unwrap(),
            target: self.target.clone(),
            facts,
            model,
            clock,
            patience: self.patience,
            serving: self.serving.handle().clone(),
            gpus: self.gpus.lock().unwrap().take(),
            seat: Seat::alone(),
        };
        let reins = Reins { stop: stop.clone(), steering };
        let listening = self.serving.spawn(async move {
            let mut events = Vec::new();
            while let Some(Fact { at, event, raw }) = told.recv().await {
                watch_facts(&event, &reins);
                if let RunEvent::CellFinished { cell, result } = &event {
                    check_record(*cell, result, *raw.expect("a finished cell comes with its record"));
                }
                events.push((at, event));
            }
            events
        });
        let looking = self.serving.spawn(async move {
            let mut seen = Vec::new();
            while gauges.changed().await.is_ok() {
                seen.extend(gauges.borrow_and_update().clone());
            }
            seen
        });
        let running = self.measuring.spawn(bench::run(job, Outlets { facts: tell, gauge, stop, steering: steered }));
        let outcome = self.measuring.block_on(running).unwrap();
        let events = self.serving.block_on(listening).unwrap();
        let gauges = self.serving.block_on(looking).unwrap();
        Seen { outcome, events, clock, gauges }
    }
}

/// In every test that measures: what a result was computed from, packed and unpacked, gives this very result.
fn check_record(cell: CellId, result: &CellResult, raw: RawCell) {
    let again = codec::decode(&codec::encode(raw).unwrap()).unwrap();
    assert_eq!(again.asked.context, cell.context);
    assert_eq!(&again.result(), result, "{cell}");
}

impl Seen {
    pub(crate) fn result(&self, cell: &str) -> &CellResult {
        let wanted: CellId = cell.parse().unwrap();
        let result = self.events.iter().find_map(|(_, event)| match event {
            RunEvent::CellFinished { cell, result } if *cell == wanted => Some(result.as_ref()),
            _ => None,
        });
        result.unwrap_or_else(|| panic!("{cell} has no result: {:#?}", self.events))
    }

    pub(crate) fn skipped(&self, cell: &str) -> Option<(SkipReason, &str)> {
        let wanted: CellId = cell.parse().unwrap();
        self.events.iter().find_map(|(_, event)| match event {
            RunEvent::CellSkipped { cell, reason, text } if *cell == wanted => Some((*reason, text.as_str())),
            _ => None,
        })
    }

    /// When a cell finished.
    pub(crate) fn finished(&self, cell: &str) -> Nanos {
        let wanted: CellId = cell.parse().unwrap();
        let finished = self.events.iter().find_map(|(at, event)| match event {
            RunEvent::CellFinished { cell, .. } if *cell == wanted => Some(*at),
            _ => None,
        });
        finished.unwrap_or_else(|| panic!("{cell} did not finish: {:#?}", self.events))
    }

    /// Start of the ramp and start of the window of a decode cell.
    pub(crate) fn opened(&self, cell: &str) -> (Nanos, Nanos) {
        let wanted: CellId = cell.parse().unwrap();
        let opened = self.events.iter().find_map(|(at, event)| match event {
            RunEvent::RampDone { cell, ramp_s } if *cell == wanted => Some((*at - Nanos::from_secs_f64(*ramp_s), *at)),
            _ => None,
        });
        opened.unwrap_or_else(|| panic!("{cell} had no window: {:#?}", self.events))
    }

    pub(crate) fn logged(&self, text: &str) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, RunEvent::Log { text: line, .. } if line.contains(text)))
    }
}

/// The monotonic clock's nanoseconds at a time of the run's clock.
pub(crate) fn monotonic_ns(clock: Clock, time: Nanos) -> u64 {
    use nix::time::{ClockId, clock_gettime};
    // Both clocks are read twice around each other; on Linux they are the same one.
    let instant = std::time::Instant::now();
    let now = std::time::Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
    let ago = instant.saturating_duration_since(clock.instant(time));
    u64::try_from(now.saturating_sub(ago).as_nanos()).unwrap()
}

/// The requests that the simulator received from `from` on and before `to`, monotonic nanoseconds.
pub(crate) fn received(log: &SimLog, from: u64, to: u64) -> Vec<speedmatrix_agent::sim::RequestRecord> {
    let mut records = log.records();
    records.retain(|record| (from..to).contains(&record.received.monotonic_ns));
    records
}
