//! Makes a run happen: calibrates the prompts, then measures cell after cell and tells what it found. It runs on a
//! measuring runtime of its own; whatever is not measured goes to the serving runtime.

mod abort;
mod cache;
mod cell;
mod certify;
pub mod client_watch;
pub mod drain;
mod gauges;
mod gpus;
mod load;
mod mixed;
mod open_loop;
mod prefill;
pub mod ramp;
mod record;
mod rounds;
mod single;
mod skip;
pub mod steer;
mod supply;
mod tally;
mod teller;
mod tune;
pub mod turns;
mod warm_up;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use speedmatrix_shared::{
    event::{LogLevel, RunEvent, RunOutcome},
    gauge::{CellPhase, Gauge},
    id::{CellId, Phase, RunId},
    plan::{CellOrder, RunPlan, Side},
    raw::RawCell,
    stats::cell::{CellResult, CellStatus},
    target::TargetFacts,
    trace::FailureKind,
    units::{Context, Nanos},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

use self::{
    abort::known_engine,
    client_watch::Lateness,
    gauges::{Scene, Scraper, Sights},
    gpus::Gpus,
    steer::Steering,
    tally::Tally,
    teller::{Halt, Teller},
    tune::Lengths,
    turns::{Place, Seat, Wish},
};
use crate::{
    client::{SlotCounters, Target},
    clock::Clock,
    host::gpu::Watched,
    prompt::{
        corpus::Corpus,
        request::{Dialect, Requests},
        text::Library,
    },
};

/// Cells in a row that can't connect, after which the run is given up.
const MOST_UNREACHABLE: u32 = 3;

/// A run to make.
#[derive(Debug)]
pub struct Job {
    /// What to measure.
    pub plan: RunPlan,
    /// Cells of it that are measured or skipped already, each with its results.
    pub settled: Vec<(CellId, Vec<CellResult>)>,
    /// Part of every prompt; no two starts of a run share it, or the second would be served from the server's cache.
    pub run: RunId,
    /// The server.
    pub target: Target,
    /// What the probe found.
    pub facts: TargetFacts,
    /// The name that requests ask for, to the letter; none: the plan's.
    pub model: Option<String>,
    /// The run's clock.
    pub clock: Clock,
    /// The text of its prompts, if the plan names one.
    pub corpus: Option<Corpus>,
    /// How long to wait for a silent or busy server.
    pub patience: Patience,
    /// The serving runtime: scrapes and live gauges run there.
    pub serving: Handle,
    /// The server's GPUs, if they are on this machine.
    pub gpus: Option<Watched>,
    /// Where it waits for its turn, if another run is made in turns with it.
    pub seat: Seat,
}

/// How long to wait, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Longest silence of a stream. Cells whose queue is expected to take longer wait longer.
    pub idle: Nanos,
    /// Longest wait for an idle engine before a cell.
    pub drain: Nanos,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: Nanos::from_secs(600), drain: Nanos::from_secs(300) }
    }
}

/// A fact on its way to the store.
#[derive(Debug)]
pub struct Fact {
    /// When it happened.
    pub at: Nanos,
    /// What happened.
    pub event: RunEvent,
    /// Beside a finished cell: what its result was computed from. It is packed by who stores it, never while measuring.
    pub raw: Option<Box<RawCell>>,
}

/// Where a run tells, and is told to stop.
#[derive(Debug)]
pub struct Outlets {
    /// What becomes known. A closed channel stops the run.
    pub facts: mpsc::Sender<Fact>,
    /// The live gauge; `None` between cells.
    pub gauge: watch::Sender<Option<Gauge>>,
    /// Stops the run within a second; the running cell is dropped.
    pub stop: CancellationToken,
    /// What else people ask.
    pub steering: watch::Receiver<Steering>,
}

/// Makes the run. Tells `Certified`, `Calibrated`, `CellSkipped`, `CellStarted`, `RampDone`, `CellFinished` and `Log`; start, probe and
/// end of the run are the caller's to tell.
pub async fn run(job: Job, outlets: Outlets) -> RunOutcome {
    let Outlets { facts, gauge, stop, steering } = outlets;
    let serving = job.serving.clone();
    let clock = job.clock;
    let changes = steer::tell_changes(steering.clone(), Teller { facts: facts.clone(), clock });
    let mut bench = match Bench::new(job, facts, steering) {
        Ok(bench) => bench,
        Err(reason) => return RunOutcome::Failed { reason },
    };
    let sights = Sights {
        scene: bench.scene.subscribe(),
        engine: bench.engine.follow(),
        gpus: bench.gpus.follow(),
        lateness: Lateness::begin(),
    };
    let live = gauges::live(&serving, clock, sights, gauge.clone());
    // Dropping the bench's future closes all its connections and ends its tasks.
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => RunOutcome::Cancelled,
        done = bench.whole() => match done {
            Ok(()) => RunOutcome::Finished,
            Err(Halt::Unheard | Halt::Asked) => RunOutcome::Cancelled,
            Err(Halt::Fatal(reason)) => RunOutcome::Failed { reason },
        },
        _unheard = changes => RunOutcome::Cancelled,
    };
    drop(live);
    gauge.send_replace(None);
    outcome
}

/// How long one request of a context took to its first token.
#[derive(Debug, Clone, Copy, Default)]
struct Admission {
    cold: Option<Nanos>,
    cached: Option<Nanos>,
}

/// A run in the making.
#[derive(Debug)]
struct Bench {
    plan: RunPlan,
    target: Target,
    facts: TargetFacts,
    /// The name that requests ask for, if the server told it.
    model: Option<Arc<str>>,
    clock: Clock,
    patience: Patience,
    serving: Handle,
    teller: Teller,
    scene: watch::Sender<Option<Scene>>,
    steering: watch::Receiver<Steering>,
    /// Asks the engine; used only while `engine_tells`.
    engine: Scraper,
    engine_tells: bool,
    /// Looked at from the start of each cell to its end.
    gpus: Gpus,
    library: Arc<Library>,
    requests: Arc<Requests>,
    lengths: Lengths,
    admissions: BTreeMap<Context, Admission>,
    /// Contexts whose first prompt is in the log.
    prompts_told: BTreeSet<Context>,
    refused: skip::Refused,
    /// Contexts whose prefill row waits for their first decode cell.
    from_warm_up: BTreeSet<Context>,
    tallies: BTreeMap<CellId, Tally>,
    /// What the check of the client found.
    ttft_bias_s: Option<f64>,
    /// Numbers of fresh documents that are used up.
    fresh_used: u64,
    unreachable_in_a_row: u32,
    seat: Seat,
}

impl Bench {
    fn new(job: Job, facts: mpsc::Sender<Fact>, steering: watch::Receiver<Steering>) -> Result<Self, String> {
        let Job { plan, settled, run, target, facts: known, model, corpus, clock, patience, serving, gpus, seat } = job;
        let name = model.as_deref().or(plan.model()).unwrap_or_default();
        let requests = Requests::new(name, plan.sampling(), Dialect::default());
        let requests = Arc::new(if known_engine(&known).abort.is_some() { requests.with_rids() } else { requests });
        let tallies = settled.iter().map(|(cell, results)| (*cell, Tally::of(results))).collect();
        Ok(Self {
            engine: Scraper::new(&target, clock, serving.clone()).map_err(|e| e.to_string())?,
            engine_tells: false,
            gpus: Gpus::new(gpus, clock, serving.clone()),
            library: Arc::new(Library::new(plan.seed(), run).with_corpus(corpus)),
            requests,
            lengths: Lengths::default(),
            admissions: BTreeMap::new(),
            prompts_told: BTreeSet::new(),
            refused: skip::Refused::default(),
            from_warm_up: BTreeSet::new(),
            tallies,
            ttft_bias_s: None,
            fresh_used: 0,
            unreachable_in_a_row: 0,
            seat,
            teller: Teller { facts, clock },
            scene: watch::Sender::new(None),
            steering,
            plan,
            target,
            facts: known,
            model: model.map(Into::into),
            clock,
            patience,
            serving,
        })
    }

    async fn whole(&mut self) -> Result<(), Halt> {
        self.meet_engine().await?;
        let turn = self.seat.ask(Place::START, Side::A, Wish::Measure).await;
        // While the client is checked the server has nothing to do.
        self.gpus.begin();
        self.certify().await?;
        self.gpus.end_idle().await;
        self.calibrate().await?;
        self.warm_up().await?;
        if let Some(turn) = turn {
            self.hand_over(turn).await?;
        }
        let repeats = self.plan.repeats();
        let rounds = if self.plan.order() == CellOrder::Interleaved { repeats.most() } else { 1 };
        for round in 0..rounds {
            for (number, cell) in (1..).zip(self.plan.round(round)) {
                self.teller.room().await?;
                self.may_go_on().await?;
                let place = Place { round, number, repeat: 0 };
                match cell.phase {
                    Phase::Prefill if round == 0 => self.first_prefill(cell, place).await?,
                    Phase::Prefill => {}
                    Phase::Decode => self.decode_round(cell, place).await?,
                }
                self.scene.send_replace(None);
            }
        }
        Ok(())
    }

    async fn meet_engine(&mut self) -> Result<(), Halt> {
        match self.engine.look().await {
            Ok(_) => {
                self.engine_tells = true;
                Ok(())
            }
            // Asked once only: servers without metrics are not asked again and again.
            Err(error) => self.teller.log(LogLevel::Info, error.to_string()).await,
        }
    }

    /// The engine's gauges, if it has any.
    fn scraper(&self) -> Option<&Scraper> {
        self.engine_tells.then_some(&self.engine)
    }

    fn show(&self, cell: CellId, phase: CellPhase, slots: &Arc<[SlotCounters]>) {
        let scene = Scene { cell, phase, since: self.clock.now(), slots: Arc::clone(slots) };
        self.scene.send_replace(Some(scene));
    }

    /// Skips a cell that can't be measured; whether it was skipped.
    async fn skipped(&mut self, cell: CellId) -> Result<bool, Halt> {
        let Some((reason, text)) = skip::skip(cell, &self.plan, self.facts.limits, &self.refused) else {
            return Ok(false);
        };
        // What was measured before a refusal stays.
        if !self.tallies.contains_key(&cell) {
            self.teller.tell(RunEvent::CellSkipped { cell, reason, text }).await?;
        }
        self.tallies.insert(cell, Tally::GivenUp);
        Ok(true)
    }

    async fn finish(&mut self, cell: CellId, raw: RawCell) -> Result<(), Halt> {
        let raw = RawCell { gpus: self.gpus.end().await, ..raw };
        let result = raw.result();
        self.tallies.entry(cell).or_insert_with(|| Tally::Speeds(Vec::new())).add(&result);
        match result.status {
            CellStatus::Failed(FailureKind::ContextOverflow) => {
                let said = result.failures.first().map(|group| group.text.clone()).unwrap_or_default();
                self.refused.note(cell, said);
            }
            CellStatus::Failed(FailureKind::Connect) => self.unreachable_in_a_row += 1,
            _ => self.unreachable_in_a_row = 0,
        }
        let event = RunEvent::CellFinished { cell, result: Box::new(result) };
        self.teller.send(Fact { at: self.clock.now(), event, raw: Some(Box::new(raw)) }).await?;
        if self.unreachable_in_a_row < MOST_UNREACHABLE {
            return Ok(());
        }
        Err(Halt::Fatal(format!(
            "{MOST_UNREACHABLE} cells in a row could not connect to {}: check that the server still runs, then start again",
            self.target.url.as_str()
        )))
    }

    fn admission(&self, context: Context) -> Admission {
        self.admissions.get(&context).copied().unwrap_or_default()
    }

    fn no_slots() -> Arc<[SlotCounters]> {
        Arc::new([])
    }
}
