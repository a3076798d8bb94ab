//! Runs that the store does not take: for a while, or never.

use std::sync::{Arc, PoisonError};

use speedmatrix_shared::{api::RunSummary, id::RunId, state::RunStatus};

use super::{Runs, Slot};
use crate::{hub::Hub, store::StoreError};

/// Runs that the store never took whole and that are kept in memory after their end, at most: those of a pair.
const LOST_KEPT: usize = 2;

impl Runs {
    /// All stored runs: running ones first, then newest first. Of one that the store does not take, what is known.
    pub async fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let mut lines = self.store.list().await?;
        for hub in self.in_memory() {
            let outage = hub.outage();
            let line = lines.iter_mut().find(|line| line.id == *hub.id());
            let (Some(words), Some(line)) = (outage.words(), line) else { continue };
            line.unstored = Some(words);
            match (hub.state().status, outage.outcome) {
                (ended @ RunStatus::Ended { .. }, _) => line.status = ended,
                (RunStatus::Running, Some(outcome)) => line.status = RunStatus::Ended { outcome },
                (RunStatus::Running, None) => {}
            }
        }
        Ok(lines)
    }

    /// Why the store never took the latest run whole, if so.
    pub fn lost(&self) -> Option<&'static str> {
        self.in_memory().iter().find_map(|hub| hub.lost())
    }

    /// Whether the store never took a run whole.
    pub(super) fn is_lost(&self, run: &RunId) -> bool {
        self.hub(run).is_some_and(|hub| hub.lost().is_some())
    }

    /// A run that is known better here than in the store.
    pub(super) fn hub(&self, run: &RunId) -> Option<Arc<Hub>> {
        self.in_memory().into_iter().find(|hub| hub.id() == run)
    }

    /// Runs that are measured, then those that the store never took whole.
    fn in_memory(&self) -> Vec<Arc<Hub>> {
        let mut hubs = match &*self.slot() {
            Slot::Taken(active) => active.iter().map(|active| Arc::clone(&active.hub)).collect(),
            Slot::Free | Slot::Starting | Slot::Closed => Vec::new(),
        };
        hubs.extend(self.lost.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        hubs
    }

    /// Keeps a run after its end if the store never took it whole.
    pub(super) fn keep_if_lost(&self, hub: Arc<Hub>) {
        if hub.lost().is_none() {
            return;
        }
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.push_back(hub);
        while lost.len() > LOST_KEPT {
            lost.pop_front();
        }
    }
}
