//! What the store counts of its own work.

use prometheus_client::metrics::counter::Counter;

/// Counted since the file was opened; clones share the numbers.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Transactions of events, imports, labels, links, deletions and proofs that are on disk.
    pub written: Counter,
    /// Such transactions that failed.
    pub failed: Counter,
    /// Facts of finished cells that were tried again without their raw arrivals.
    pub retried: Counter,
}

impl Counts {
    /// Counts a transaction by its end.
    pub(super) fn note<T, E>(&self, done: Result<T, E>) -> Result<T, E> {
        let counter = if done.is_ok() { &self.written } else { &self.failed };
        counter.inc();
        done
    }
}
