//! Where a running run's events are numbered, stored, folded and told, in this order.
//!
//! Joining late needs one thing only: under one lock, take the receiver *and* the state. What came before is in the
//! state, what comes after is in the receiver, and nothing is in both.

mod presence;
mod subscription;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome},
    gauge::Gauge,
    id::RunId,
    state::{ApplyError, CellState, RunState, RunStatus},
    units::Nanos,
};
use tokio::sync::{broadcast, watch};

pub use presence::{Presence, Watching};
pub use subscription::Subscription;

use crate::{
    clock::Clock,
    store::{RawKept, Store, StoreError},
};

/// Events that a listener may be behind before it gets a new snapshot instead.
const EVENTS_KEPT: usize = 256;

/// Between two attempts to store an event.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// A running run, for all who listen.
#[derive(Debug)]
pub struct Hub {
    id: RunId,
    clock: Clock,
    state: Mutex<RunState>,
    events: broadcast::Sender<Arc<Envelope>>,
    gauge: watch::Sender<Option<Gauge>>,
    outage: watch::Sender<Outage>,
}

impl Hub {
    fn new(state: RunState, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            id: state.id.clone(),
            clock,
            state: Mutex::new(state),
            events: broadcast::Sender::new(EVENTS_KEPT),
            gauge: watch::Sender::new(None),
            outage: watch::Sender::default(),
        })
    }

    /// Whose run it is.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// All that happened so far.
    pub fn state(&self) -> RunState {
        self.lock().clone()
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.lock().status != RunStatus::Running
    }

    /// How many of its cells are being measured.
    pub fn running_cells(&self) -> usize {
        self.lock().cells.iter().filter(|cell| matches!(cell.state, CellState::Running { .. })).count()
    }

    /// Notes how measuring ended, which is told when all before it is stored.
    pub fn measured(&self, outcome: RunOutcome) {
        self.outage.send_modify(|outage| outage.outcome = Some(outcome));
    }

    /// What is known of the run and not stored.
    pub fn outage(&self) -> Outage {
        self.outage.borrow().clone()
    }

    /// Why the store will never take what is known of the run, if so.
    pub fn lost(&self) -> Option<&'static str> {
        let outage = self.outage.borrow();
        outage.reason.filter(|_| outage.is_final)
    }

    /// Where the latest gauge is put.
    pub fn gauge(&self) -> watch::Sender<Option<Gauge>> {
        self.gauge.clone()
    }

    /// All that happened so far, and all that comes after it.
    fn join(&self) -> (RunState, broadcast::Receiver<Arc<Envelope>>) {
        let state = self.lock();
        (state.clone(), self.events.subscribe())
    }

    /// Folds and tells an event that is stored.
    fn tell(&self, envelope: Envelope) -> Result<(), ApplyError> {
        let mut state = self.lock();
        state.apply(&envelope)?;
        // Nobody listening is no error.
        drop(self.events.send(Arc::new(envelope)));
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RunState> {
        // `apply` either changes the state whole or not at all, so a panic elsewhere leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an event was not told.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// It could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It does not follow on the others.
    #[error(transparent)]
    Order(#[from] ApplyError),
}

/// What is known of a run while the store takes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outage {
    /// Why the next event is not stored yet; `None`: the store takes what comes.
    pub reason: Option<&'static str>,
    /// How measuring ended, if it has.
    pub outcome: Option<RunOutcome>,
    /// The store never will: waiting does not mend it.
    pub is_final: bool,
}

impl Outage {
    /// What is so and what to do, in sentences; `None` where nothing waits.
    pub fn words(&self) -> Option<String> {
        let reason = self.reason?;
        if self.is_final {
            return Some(format!(
                "What was measured last is not stored, as {reason}. It is kept in the agent's memory until the agent \
                 ends: export it before"
            ));
        }
        let what = match self.outcome {
            None => "What was measured last is not stored yet",
            Some(_) => "Measuring is over, and not all of it is stored yet",
        };
        let pause = RETRY_PAUSE.as_secs();
        Some(format!(
            "{what}: {reason}. Until then it is kept in the agent's memory and tried again every {pause} seconds"
        ))
    }
}

/// The one who adds a run's events. There is one per run, so numbers have no gaps.
#[derive(Debug)]
pub struct Teller {
    hub: Arc<Hub>,
    store: Store,
    next_seq: u64,
}

impl Teller {
    /// Begins a run: `first` is its start event.
    pub async fn begin(store: Store, id: RunId, first: RunEvent, clock: Clock) -> Result<Self, TellError> {
        let envelope = Envelope { seq: 0, at: Nanos(0), event: first };
        let state = RunState::start(id.clone(), &envelope)?;
        store.append(&id, envelope).await?;
        let hub = Hub::new(state, clock);
        Ok(Self { hub, store, next_seq: 1 })
    }

    /// Goes on with an ended run: `again` is the event that says so, and `clock` counts from where it ended.
    pub async fn go_on(store: Store, mut state: RunState, again: RunEvent, clock: Clock) -> Result<Self, TellError> {
        let envelope = Envelope { seq: state.next_seq, at: state.at, event: again };
        state.apply(&envelope)?;
        store.append(&state.id, envelope).await?;
        let next_seq = state.next_seq;
        Ok(Self { hub: Hub::new(state, clock), store, next_seq })
    }

    /// The run for those who listen.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Numbers, stores, folds and tells an event. Where the store fails for a reason that may pass, it is tried again until
    /// it is stored: who tells waits. Where it never will, this and all that follows is told from memory, and
    /// [`Hub::lost`] says so.
    pub async fn tell(&mut self, at: Nanos, event: RunEvent) -> Result<(), TellError> {
        let envelope = Envelope { seq: self.next_seq, at, event };
        while self.hub.lost().is_none() {
            match self.store.append(&self.hub.id, envelope.clone()).await {
                Ok(()) => return self.stored(envelope),
                Err(error) => self.outlast(error).await?,
            }
        }
        self.pass_on(envelope)
    }

    /// As [`Teller::tell`], for a finished cell with what its result was computed from, packed.
    pub async fn tell_cell(&mut self, at: Nanos, event: RunEvent, raw: Vec<u8>) -> Result<RawKept, TellError> {
        let envelope = Envelope { seq: self.next_seq, at, event };
        let raw: Arc<[u8]> = raw.into();
        while self.hub.lost().is_none() {
            match self.store.append_cell(&self.hub.id, envelope.clone(), Arc::clone(&raw)).await {
                Ok(kept) => return self.stored(envelope).map(|()| kept),
                Err(error) => self.outlast(error).await?,
            }
        }
        // That nothing is stored is said already, of the raw arrivals too.
        self.pass_on(envelope).map(|()| RawKept::Kept)
    }

    fn pass_on(&mut self, envelope: Envelope) -> Result<(), TellError> {
        self.next_seq += 1;
        Ok(self.hub.tell(envelope)?)
    }

    fn stored(&mut self, envelope: Envelope) -> Result<(), TellError> {
        self.pass_on(envelope)?;
        if self.hub.outage.send_if_modified(|outage| outage.reason.take().is_some()) {
            tracing::warn!("run {} is stored again", self.hub.id);
        }
        Ok(())
    }

    /// Waits a moment if the same work can be tried again; notes it if it can't. An event that no store would take is an
    /// error.
    async fn outlast(&self, error: StoreError) -> Result<(), StoreError> {
        if matches!(error, StoreError::Refused { .. }) {
            return Err(error);
        }
        if !error.may_pass() {
            tracing::error!("run {} can't be stored any more and is kept in memory: {error}", self.hub.id);
            let reason = Some(error.plain());
            self.hub.outage.send_modify(|outage| *outage = Outage { reason, is_final: true, ..outage.clone() });
            return Ok(());
        }
        let reason = Some(error.plain());
        if self.hub.outage.send_if_modified(|outage| std::mem::replace(&mut outage.reason, reason) != reason) {
            let pause = RETRY_PAUSE.as_secs();
            tracing::error!("run {} is kept in memory and tried again every {pause} seconds: {error}", self.hub.id);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
        Ok(())
    }

    /// Now, on the run's clock.
    pub fn now(&self) -> Nanos {
        self.hub.clock.now()
    }
}

/// Passes on a run that another process measures: what that process stores is told here.
#[derive(Debug)]
pub struct Follower {
    hub: Arc<Hub>,
    store: Store,
}

impl Follower {
    /// Follows on from a loaded state.
    pub fn new(store: Store, state: RunState, clock: Clock) -> Self {
        Self { hub: Hub::new(state, clock), store }
    }

    /// The run for those who listen.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Tells what was stored since the last call.
    pub async fn catch_up(&self) -> Result<(), TellError> {
        let next_seq = self.hub.lock().next_seq;
        for envelope in self.store.events_from(&self.hub.id, next_seq).await? {
            self.hub.tell(envelope)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
