//! Where measuring and telling meet: starts runs, stops them, and gives each listener its feed.

mod error;
mod labels;
mod measure;
mod pair;
mod resume;
mod unstored;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use speedmatrix_shared::{
    event::Origin,
    id::RunId,
    plan::{PlanDraft, RunPlan},
    state::{Cell, CellState, RunState, RunStatus},
    steer::Steer,
    target::TargetFacts,
    units::Nanos,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    bench::steer::Steering,
    client::{
        Target,
        probe::{ProbeError, Probed, probe},
    },
    clock::Clock,
    host::{self, Described, gpu::Watched},
    hub::{Follower, Hub, Presence, Subscription},
    secret::Secret,
    store::{Store, StoreError},
};
pub use error::{StartError, StopError};
pub use pair::Opponent;

/// How long a stop may take until the agent ends without it; the run's record then says that it was interrupted.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How often a run that another process measures is looked up in the store.
const FOLLOW_PERIOD: Duration = Duration::from_millis(500);

/// All runs of this agent.
#[derive(Debug)]
pub struct Runs {
    store: Store,
    presence: Arc<Presence>,
    slot: Mutex<Slot>,
    followed: Mutex<BTreeMap<RunId, Weak<Hub>>>,
    lost: Mutex<VecDeque<Arc<Hub>>>,
}

/// The place for the one run that is being measured, or for two that take turns.
#[derive(Debug)]
enum Slot {
    Free,
    /// Its target is being looked at.
    Starting,
    Taken(Vec<Active>),
    /// Nothing starts any more.
    Closed,
}

impl Slot {
    fn take(&mut self, run: Active) {
        match self {
            Self::Taken(runs) => runs.push(run),
            Self::Free | Self::Starting | Self::Closed => *self = Self::Taken(vec![run]),
        }
    }

    /// After a run's end; the place is free when the last one has left.
    fn leave(&mut self, run: &RunId) {
        let Self::Taken(runs) = self else { return };
        runs.retain(|active| active.hub.id() != run);
        if runs.is_empty() {
            *self = Self::Free;
        }
    }
}

/// A run that is being measured.
#[derive(Debug, Clone)]
struct Active {
    hub: Arc<Hub>,
    stop: CancellationToken,
    steering: watch::Sender<Steering>,
    ended: watch::Receiver<()>,
}

impl Active {
    /// Until its last event is told.
    async fn end(mut self) {
        // The sender is never used: it is dropped at the end.
        while self.ended.changed().await.is_ok() {}
    }
}

/// The place is kept while this lives, and free again after it unless a run took it.
struct Reserved(Arc<Runs>);

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut slot = self.0.slot();
        if matches!(*slot, Slot::Starting) {
            *slot = Slot::Free;
        }
    }
}

impl Runs {
    /// Runs that are kept in `store`.
    pub fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            store,
            presence: Arc::default(),
            slot: Mutex::new(Slot::Free),
            followed: Mutex::default(),
            lost: Mutex::default(),
        })
    }

    /// Checks the plan, looks at its target and starts to measure it. The run goes on by itself.
    pub async fn start(self: &Arc<Self>, draft: PlanDraft, key: Option<Secret>) -> Result<RunId, StartError> {
        let plan = RunPlan::try_from(draft)?;
        let reserved = self.reserve()?;
        let (target, looked) = met(&plan, key).await?;
        let runs = Arc::clone(self);
        to_its_end(async move {
            let begun = measure::begin(&runs, &reserved, plan, target, looked).await?;
            let run = begun.job.run.clone();
            measure::launch(&runs, begun);
            Ok(run)
        })
        .await
    }

    fn reserve(self: &Arc<Self>) -> Result<Reserved, StartError> {
        let mut slot = self.slot();
        match &*slot {
            Slot::Free => *slot = Slot::Starting,
            Slot::Starting => return Err(StartError::Busy(None)),
            Slot::Taken(active) => return Err(taken(active)),
            Slot::Closed => return Err(StartError::Stopping),
        }
        Ok(Reserved(Arc::clone(self)))
    }

    /// Asks a run to stop; what is measured stays. Its end is told like everything else.
    pub async fn stop(&self, run: &RunId) -> Result<(), StopError> {
        if let Some(active) = self.active(run) {
            active.stop.cancel();
            return Ok(());
        }
        Err(self.not_ours(run).await)
    }

    /// Says what is to happen next in a run, or which cell is to be left out.
    pub async fn steer(&self, run: &RunId, wish: Steer) -> Result<(), StopError> {
        let Some(active) = self.active(run) else {
            return Err(self.not_ours(run).await);
        };
        match wish {
            Steer::Next { next } => active.steering.send_modify(|steering| steering.next = next),
            Steer::Skip { cell } => {
                let open = |cell: &Cell| matches!(cell.state, CellState::Planned | CellState::Running { .. });
                if !active.hub.state().cell(cell).is_some_and(open) {
                    return Err(StopError::NotOpen(cell));
                }
                active.steering.send_modify(|steering| {
                    steering.skips.insert(cell);
                });
            }
        }
        Ok(())
    }

    /// Why a run that this process does not measure can't be stopped or steered.
    async fn not_ours(&self, run: &RunId) -> StopError {
        if self.hub(run).is_some() {
            return StopError::Over(run.clone());
        }
        match self.store.load(run).await.map(|state| state.status) {
            Ok(RunStatus::Running) => StopError::Elsewhere(run.clone()),
            Ok(RunStatus::Ended { .. }) => StopError::Over(run.clone()),
            Err(error) => StopError::Store(error),
        }
    }

    /// Waits for the end of a run that this process measures.
    pub async fn ended(&self, run: &RunId) {
        if let Some(active) = self.active(run) {
            active.end().await;
        }
    }

    /// Starts nothing more, stops the run that is being measured and finishes its record; gives up after ten seconds.
    pub async fn shutdown(&self) {
        let all = match &*self.slot() {
            Slot::Taken(active) => active.clone(),
            _ => Vec::new(),
        };
        for active in &all {
            active.stop.cancel();
        }
        for active in all {
            let run = active.hub.id().clone();
            let hub = Arc::clone(&active.hub);
            if tokio::time::timeout(STOP_LIMIT, active.end()).await.is_err() {
                if let Some(reason) = hub.outage().reason {
                    tracing::error!("what run {run} did not store yet is lost: {reason}");
                } else {
                    tracing::warn!("run {run} did not stop in time");
                }
            }
        }
        *self.slot() = Slot::Closed;
    }

    /// Whether a run is being measured here, or its target is just being looked at.
    pub fn is_measuring(&self) -> bool {
        matches!(*self.slot(), Slot::Starting | Slot::Taken(_))
    }

    /// How many cells this process measures now.
    pub fn running_cells(&self) -> usize {
        match &*self.slot() {
            Slot::Taken(runs) => runs.iter().map(|active| active.hub.running_cells()).sum(),
            _ => 0,
        }
    }

    /// How many listen, all runs together.
    pub fn viewers(&self) -> u32 {
        self.presence.total()
    }

    /// A run as it is now.
    pub async fn state(&self, run: &RunId) -> Result<RunState, StoreError> {
        match self.hub(run) {
            Some(hub) => Ok(hub.state()),
            None => self.store.load(run).await,
        }
    }

    /// A feed of a run, running or not.
    pub async fn subscribe(&self, run: &RunId) -> Result<Subscription, StoreError> {
        if let Some(hub) = self.hub(run) {
            return Ok(Subscription::live(hub, &self.presence));
        }
        let state = self.store.load(run).await?;
        Ok(match state.status {
            RunStatus::Running => Subscription::live(self.follow(state), &self.presence),
            RunStatus::Ended { .. } => self.show(state),
        })
    }

    /// Whether this process measures the run now, which may have been over before.
    pub fn is_going_on(&self, run: &RunId) -> bool {
        self.active(run).is_some_and(|active| !active.hub.is_over())
    }

    /// A feed of a run that is over.
    pub fn show(&self, state: RunState) -> Subscription {
        Subscription::still(state, &self.presence)
    }

    /// Follows a run that another process measures, as long as anybody listens.
    fn follow(&self, state: RunState) -> Arc<Hub> {
        let mut hubs = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        hubs.retain(|_, hub| hub.strong_count() > 0);
        if let Some(hub) = hubs.get(&state.id).and_then(Weak::upgrade) {
            return hub;
        }
        let (id, clock) = (state.id.clone(), clock_of(&state));
        let follower = Follower::new(self.store.clone(), state, clock);
        let hub = Arc::clone(follower.hub());
        hubs.insert(id, Arc::downgrade(&hub));
        tokio::spawn(keep_up(follower));
        hub
    }

    fn active(&self, run: &RunId) -> Option<Active> {
        match &*self.slot() {
            Slot::Taken(runs) => runs.iter().find(|active| active.hub.id() == run).cloned(),
            _ => None,
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why nothing starts while these have the place.
fn taken(active: &[Active]) -> StartError {
    let waiting = active.iter().find_map(|active| {
        let outage = active.hub.outage();
        outage.outcome.and(outage.reason).map(|reason| (active.hub.id().clone(), reason))
    });
    match waiting {
        Some((run, reason)) => StartError::Unstored { run, reason },
        None => StartError::Busy(active.first().map(|run| run.hub.id().clone())),
    }
}

async fn keep_up(follower: Follower) {
    let mut period = tokio::time::interval(FOLLOW_PERIOD);
    // One reference is the follower's own: the others listen.
    while Arc::strong_count(follower.hub()) > 1 && !follower.hub().is_over() {
        period.tick().await;
        if let Err(error) = follower.catch_up().await {
            tracing::warn!("run {} is not followed any more: {error}", follower.hub().id());
            return;
        }
    }
}

/// The clock of a run that another process of this machine measures, from the wall time at which it began.
fn clock_of(state: &RunState) -> Clock {
    let factor = match state.origin {
        Some(Origin::Simulated { clock_factor }) => clock_factor,
        _ => 1.0,
    };
    let clock = Clock::start().with_factor(factor);
    let so_far = Duration::from_millis(unix_ms().saturating_sub(state.started_unix_ms));
    clock.starting_at(Nanos(clock.length(so_far).0.max(state.at.0)))
}

/// What is known of a target before it is measured.
#[derive(Debug)]
pub struct Looked {
    /// All that may be kept and shown.
    pub facts: TargetFacts,
    /// Its GPUs, if they are on this machine.
    pub gpus: Option<Watched>,
    /// The name that requests ask for, to the letter.
    pub model: Option<String>,
}

/// The server of a plan, and what is known of it.
async fn met(plan: &RunPlan, key: Option<Secret>) -> Result<(Target, Looked), StartError> {
    let target = Target { url: plan.target().clone(), key };
    let looked = look(&target, plan.model()).await?;
    Ok((target, looked))
}

/// Makes runs exist: what began so goes on even if who asked for it has gone.
fn to_its_end<T: Send + 'static>(
    beginning: impl Future<Output = Result<T, StartError>> + Send + 'static,
) -> impl Future<Output = Result<T, StartError>> {
    let begun = tokio::spawn(beginning);
    async { begun.await.unwrap_or_else(|_the_runtime_ends| Err(StartError::Stopping)) }
}

/// Looks at a target without measuring it: what it tells itself, and what this machine tells if it runs here.
pub async fn look(target: &Target, model: Option<&str>) -> Result<Looked, ProbeError> {
    let Probed { facts, model } = probe(target, model).await?;
    let Described { facts, gpus } = host::describe(facts, &target.url).await;
    Ok(Looked { facts, gpus, model })
}

/// Wall time, milliseconds since 1970 UTC.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
