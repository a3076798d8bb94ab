//! How many watch each run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use speedmatrix_shared::id::RunId;
use tokio::sync::watch;

/// The counts of all runs that anybody watches.
#[derive(Debug, Default)]
pub struct Presence {
    counts: Mutex<BTreeMap<RunId, watch::Sender<u32>>>,
}

impl Presence {
    /// Counts one more until the answer is dropped.
    pub fn join(self: &Arc<Self>, run: &RunId) -> Watching {
        let mut counts = self.lock();
        let count = counts.entry(run.clone()).or_insert_with(|| watch::Sender::new(0));
        count.send_modify(|n| *n += 1);
        Watching { count: count.subscribe(), run: run.clone(), presence: Arc::clone(self) }
    }

    /// How many watch, all runs together.
    pub fn total(&self) -> u32 {
        self.lock().values().map(|count| *count.borrow()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Sender<u32>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who watches a run.
#[derive(Debug)]
pub struct Watching {
    count: watch::Receiver<u32>,
    run: RunId,
    presence: Arc<Presence>,
}

impl Watching {
    /// How many watch, this one included.
    pub fn count(&mut self) -> u32 {
        *self.count.borrow_and_update()
    }

    /// Until the count changes.
    pub(super) async fn changed(&mut self) {
        if self.count.changed().await.is_err() {
            // The count lives as long as this does.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut counts = self.presence.lock();
        let Some(count) = counts.get(&self.run) else { return };
        count.send_modify(|n| *n = n.saturating_sub(1));
        if *count.borrow() == 0 {
            counts.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_come_and_go_are_counted() {
        let presence = Arc::new(Presence::default());
        let run: RunId = "a".parse().unwrap();
        let mut first = presence.join(&run);
        let second = presence.join(&run);
        let other = presence.join(&"b".parse().unwrap());
        assert_eq!((first.count(), presence.total()), (2, 3));
        drop(other);
        drop(second);
        assert_eq!(first.count(), 1);
        drop(first);
        assert!(presence.lock().is_empty());
    }
}
