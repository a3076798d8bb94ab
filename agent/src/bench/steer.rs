//! What people ask of a run while it runs: the run looks before each cell, and a running cell can be left.

use std::collections::BTreeSet;

use speedmatrix_shared::{
    event::{RunEvent, SkipReason},
    id::CellId,
    steer::Next,
};
use tokio::sync::watch;

use super::{Bench, Halt, Tally, Teller};

/// Why a cell that a person skipped is not measured.
const SKIPPED: &str = "skipped by a person";

/// All wishes so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steering {
    /// What happens when the running cell is over.
    pub next: Next,
    /// Cells to leave out.
    pub skips: BTreeSet<CellId>,
}

/// Tells when what happens next is changed. Never ends.
pub(super) async fn tell_changes(mut steering: watch::Receiver<Steering>, teller: Teller) -> Halt {
    let mut told = steering.borrow_and_update().next;
    while steering.changed().await.is_ok() {
        let next = steering.borrow_and_update().next;
        if next != told {
            told = next;
            if let Err(halt) = teller.tell(RunEvent::Steered { next }).await {
                return halt;
            }
        }
    }
    // Nobody steers any more: the run goes on as it was asked last.
    std::future::pending().await
}

/// Waits until `cell` is to be left out. Never ends if nobody steers.
pub(super) async fn skip_of(mut steering: watch::Receiver<Steering>, cell: CellId) {
    if steering.wait_for(|steering| steering.skips.contains(&cell)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Bench {
    /// Waits while the run is paused.
    pub(super) async fn may_go_on(&mut self) -> Result<(), Halt> {
        let go_on = self.steering.wait_for(|steering| steering.next != Next::Pause).await.map(|steering| steering.next);
        // Without anybody to steer there is nobody to end a pause.
        if go_on.unwrap_or_default() == Next::Stop { Err(Halt::Asked) } else { Ok(()) }
    }

    /// Leaves a cell that was being measured.
    pub(super) async fn leave(&mut self, cell: CellId) -> Result<(), Halt> {
        self.scene.send_replace(None);
        self.tallies.insert(cell, Tally::GivenUp);
        let (reason, text) = (SkipReason::User, SKIPPED.to_owned());
        self.teller.tell(RunEvent::CellSkipped { cell, reason, text }).await
    }
}
