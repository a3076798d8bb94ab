//! How a run tells what becomes known, and why it may not go on.

use speedmatrix_shared::{
    event::{LogLevel, RunEvent},
    units::Nanos,
};
use tokio::sync::mpsc;

use super::Fact;
use crate::clock::Clock;

/// Why a run can't go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// Nobody listens any more.
    Unheard,
    /// A person asked for the end.
    Asked,
    /// The target can't be measured.
    Fatal(String),
}

/// Tells facts.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    pub(super) facts: mpsc::Sender<Fact>,
    pub(super) clock: Clock,
}

impl Teller {
    /// Until the facts of a whole cell have room: no cell waits in its middle for a store that takes nothing for a while.
    pub(super) async fn room(&self) -> Result<(), Halt> {
        let half = self.facts.max_capacity() / 2;
        self.facts.reserve_many(half).await.map(drop).map_err(|_closed| Halt::Unheard)
    }

    pub(super) async fn tell(&self, event: RunEvent) -> Result<(), Halt> {
        self.tell_at(self.clock.now(), event).await
    }

    pub(super) async fn tell_at(&self, at: Nanos, event: RunEvent) -> Result<(), Halt> {
        self.send(Fact { at, event, raw: None }).await
    }

    pub(super) async fn send(&self, fact: Fact) -> Result<(), Halt> {
        self.facts.send(fact).await.map_err(|_closed| Halt::Unheard)
    }

    pub(super) async fn log(&self, level: LogLevel, text: String) -> Result<(), Halt> {
        self.tell(RunEvent::Log { level, text }).await
    }
}
