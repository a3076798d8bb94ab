//! A run on this page: its state, and what the live socket adds to it.

pub mod pause;
pub mod series;
pub mod socket;
mod turns;

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{PROTOCOL, ServerMessage},
    event::{Envelope, Origin, RunEvent},
    gauge::Gauge,
    id::CellId,
    state::{Applied, Cell, RunState, RunStatus},
    units::Nanos,
};

use self::{series::GaugeSeries, turns::Turns};
use crate::shell::Shell;

/// A run on this page. Facts are folded by the same state machine as in the agent; the latest gauge wins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveRun {
    /// Everything that happened. What weighs all cells looks at it by [`Self::report`], what shows one by [`Self::cell`]: a
    /// run of 1,000 cells may change ten times a second.
    pub state: RwSignal<RunState>,
    /// The running cell, now.
    pub gauge: RwSignal<Option<Gauge>>,
    /// The run's clock as far as it is known here.
    pub now: RwSignal<Nanos>,
    /// The gauges of the last minutes.
    pub series: RwSignal<GaugeSeries>,
    /// The cell that was measured last, as far as this page saw it.
    pub latest_done: RwSignal<Option<CellId>>,
    /// Why what happened last is not stored, and so not shown yet.
    pub unstored: RwSignal<Option<String>>,
    /// One for each cell, in the order of the run's.
    cells: StoredValue<Vec<ArcTrigger>>,
    turns: Turns,
}

/// What to do after a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read on.
    GoOn,
    /// An event is missing: connect again, which brings a snapshot.
    Resync,
    /// The agent speaks another version.
    Outdated {
        /// The agent's version.
        agent: String,
    },
}

/// Seconds of the run's clock in a real one.
const fn clock_factor(state: &RunState) -> f64 {
    match state.origin {
        Some(Origin::Simulated { clock_factor }) => clock_factor,
        Some(Origin::Measured | Origin::Imported) | None => 1.0,
    }
}

impl LiveRun {
    /// A run as it was fetched.
    pub fn new(state: RunState) -> Self {
        let cells = StoredValue::new(state.cells.iter().map(|_| ArcTrigger::new()).collect());
        Self {
            now: RwSignal::new(state.at),
            series: RwSignal::new(GaugeSeries::new(clock_factor(&state))),
            state: RwSignal::new(state),
            gauge: RwSignal::new(None),
            latest_done: RwSignal::new(None),
            unstored: RwSignal::new(None),
            cells,
            turns: Turns::new(),
        }
    }

    /// What a part of the report makes of the run: again within two seconds after a change, and at once when the run ends.
    pub fn report<T: PartialEq + Send + Sync + 'static>(
        &self,
        look: impl Fn(&RunState) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        let (state, turn) = (self.state, self.turns.give());
        Memo::new(move |_| {
            turn.track();
            state.with_untracked(&look)
        })
    }

    /// What `look` makes of the cell at this place; whoever asks is told of events about that cell alone.
    pub fn cell<T>(&self, place: usize, look: impl FnOnce(&RunState, &Cell) -> T) -> Option<T> {
        self.cells.with_value(|cells| cells.get(place).map(Track::track));
        self.state.with_untracked(|state| state.cells.get(place).map(|cell| look(state, cell)))
    }

    /// What is shown of this cell depends on others, and they have changed.
    pub fn look_again_at(&self, id: CellId) {
        let place = self.state.with_untracked(|state| state.cells.iter().position(|cell| cell.id == id));
        self.cells.with_value(|cells| {
            if let Some(cell) = place.and_then(|place| cells.get(place)) {
                cell.notify();
            }
        });
    }

    /// Takes a message of the live socket.
    pub fn take(&self, message: ServerMessage, shell: Shell) -> Next {
        match message {
            ServerMessage::Hello { protocol, version } if protocol != PROTOCOL => {
                return Next::Outdated { agent: version };
            }
            ServerMessage::Hello { version, .. } => shell.meet(version),
            ServerMessage::Snapshot { state, now_ns } => {
                self.state.set(*state);
                self.gauge.set(None);
                self.now.set(Nanos(now_ns));
                self.all_changed();
            }
            ServerMessage::Event { envelope } => return self.apply(&envelope),
            ServerMessage::Gauge { gauge } => {
                self.pass(gauge.at);
                self.series.update(|series| series.push(gauge.clone()));
                self.gauge.set(Some(gauge));
            }
            ServerMessage::Presence { watching, now_ns, unstored } => {
                self.unstored.maybe_update(|now| {
                    let is_news = *now != unstored;
                    *now = unstored;
                    is_news
                });
                shell.watching.set(Some(watching));
                self.pass(Nanos(now_ns));
            }
        }
        Next::GoOn
    }

    fn apply(&self, envelope: &Envelope) -> Next {
        let mut next = Next::GoOn;
        self.state.maybe_update(|state| match state.apply(envelope) {
            Ok(applied) => applied == Applied::New,
            Err(_missing_or_misplaced) => {
                next = Next::Resync;
                false
            }
        });
        self.pass(envelope.at);
        if next == Next::GoOn {
            self.note(&envelope.event);
        }
        next
    }

    fn note(&self, event: &RunEvent) {
        match event {
            RunEvent::CellFinished { cell, .. } => {
                self.latest_done.set(Some(*cell));
                self.cell_changed(*cell);
            }
            RunEvent::CellStarted { cell } | RunEvent::CellSkipped { cell, .. } => self.cell_changed(*cell),
            // Only now is it known how fast the run's clock is; nothing was measured before.
            RunEvent::Probed { .. } => {
                self.series.set(GaugeSeries::new(self.state.with_untracked(clock_factor)));
                self.all_changed();
            }
            RunEvent::RunResumed { .. } | RunEvent::RunFinished { .. } => self.all_changed(),
            _ => self.turns.changed(),
        }
    }

    fn cell_changed(&self, id: CellId) {
        self.look_again_at(id);
        self.turns.changed();
    }

    fn all_changed(&self) {
        self.cells.with_value(|cells| cells.iter().for_each(Notify::notify));
        self.turns.all();
    }

    /// The clock never runs backwards; after the end it stands at the last event.
    fn pass(&self, at: Nanos) {
        let running = self.state.with_untracked(|state| matches!(state.status, RunStatus::Running));
        let latest = if running { at } else { self.state.with_untracked(|state| state.at) };
        if latest > self.now.get_untracked() || !running {
            self.now.set(latest);
        }
    }
}
