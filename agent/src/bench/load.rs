//! Closed-loop load: C workers, each with a connection of its own, replace a finished request at once. Everything is
//! prepared before the start; a trace leaves its worker after the last byte.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use speedmatrix_shared::{
    stats::looping::LOOKED_AT_SLOTS,
    trace::{RequestEnd, RequestTrace},
    units::Nanos,
};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::supply::Supply;
use crate::{
    client::{Ask, Connection, KeepText, Outcome, SlotCounters},
    clock::Clock,
    prompt::request::CHAT_PATH,
};

/// Connections that are opened at once: a server's queue of new connections may be short.
const OPENING_AT_ONCE: usize = 64;
/// Longest pause after a failed request, seconds.
const LONGEST_PAUSE_SECS: u64 = 5;

/// One place that holds a request in flight.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Connection,
    pub(super) supply: Supply,
}

/// A request that is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) trace: RequestTrace,
    /// Its text, if it is one of those that are looked at.
    pub(super) text: Option<String>,
    /// The id that its body gave it.
    pub(super) rid: Option<Arc<str>>,
}

/// How many requests all workers send together.
#[derive(Debug, Clone)]
pub(super) enum Quota {
    /// As many as there is time for.
    Endless,
    /// As many as are left.
    Left(Arc<AtomicU64>),
}

impl Quota {
    /// So many.
    pub(super) fn of(requests: u32) -> Self {
        Self::Left(Arc::new(AtomicU64::new(u64::from(requests))))
    }

    /// Takes one request off, if there is one.
    fn take(&self) -> Option<()> {
        match self {
            Self::Endless => Some(()),
            Self::Left(left) => left.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok().map(drop),
        }
    }
}

/// What all workers share.
#[derive(Debug, Clone)]
struct Line {
    clock: Clock,
    idle_limit: Nanos,
    opening: Arc<Semaphore>,
    slots: Arc<[SlotCounters]>,
    ready: mpsc::Sender<()>,
    start: watch::Receiver<Option<Nanos>>,
    ended: mpsc::Sender<Ended>,
    cut: CancellationToken,
    quota: Quota,
}

/// A prepared or running load. Dropping it closes all its connections.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) clock: Clock,
    // Aborts the workers when dropped.
    pub(super) _workers: JoinSet<()>,
    pub(super) start: watch::Sender<Option<Nanos>>,
    pub(super) cut: CancellationToken,
    /// The counters of all slots.
    pub(super) slots: Arc<[SlotCounters]>,
    /// Requests that are over. Ends when every worker has ended: after [`Load::cut`], or with the last request.
    pub(super) ended: mpsc::Receiver<Ended>,
}

/// Prepares a worker per slot: connections opened, first bodies built. Returns when all wait for the start.
pub(super) async fn closed_loop(slots: Vec<Slot>, clock: Clock, idle_limit: Nanos, quota: Quota) -> Load {
    let count = slots.len();
    let (ready, mut all_ready) = mpsc::channel(count.max(1));
    let (start, started) = watch::channel(None);
    let (ended, finished) = mpsc::channel(4 * count.max(16));
    let cut = CancellationToken::new();
    let line = Line {
        clock,
        idle_limit,
        opening: Arc::new(Semaphore::new(OPENING_AT_ONCE)),
        slots: (0..count).map(|_| SlotCounters::default()).collect(),
        ready,
        start: started,
        ended,
        cut: cut.clone(),
        quota,
    };
    let counters = Arc::clone(&line.slots);
    let mut workers = JoinSet::new();
    for (number, slot) in slots.into_iter().enumerate() {
        workers.spawn(work(u32::try_from(number).unwrap_or(u32::MAX), slot, line.clone()));
    }
    drop(line);
    for _ in 0..count {
        all_ready.recv().await;
    }
    Load { clock, _workers: workers, start, cut, slots: counters, ended: finished }
}

impl Load {
    /// Sends all requests together. Returns when that was.
    pub(super) fn start(&self) -> Nanos {
        let now = self.clock.now();
        self.start.send_replace(Some(now));
        now
    }

    /// Closes all requests; no new ones are sent.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }
}

async fn work(number: u32, mut slot: Slot, mut line: Line) {
    {
        let _place = line.opening.acquire().await;
        // A connection that can't be opened now is tried again with the request, and fails there as data.
        slot.connection.open().await.ok();
    }
    let mut body = slot.supply.next().await;
    line.ready.send(()).await.ok();
    let Some(mut scheduled) = line.start.wait_for(Option::is_some).await.ok().and_then(|start| *start) else { return };
    let Some(counters) = line.slots.get(number as usize) else { return };
    let mut failures_in_a_row = 0;
    let keep_text = if number < LOOKED_AT_SLOTS { KeepText::Yes } else { KeepText::No };
    while line.quota.take().is_some() {
        let rid = body.rid().cloned();
        let ask = Ask { slot: number, scheduled, path: CHAT_PATH, body, keep_text, idle_limit: line.idle_limit };
        let outcome = slot.connection.stream(ask, counters, &line.cut).await;
        let pause = pause_after(&outcome, &mut failures_in_a_row);
        let text = outcome.text.map(|text| text.reasoning + &text.content);
        if line.ended.send(Ended { trace: outcome.trace, text, rid }).await.is_err() || line.cut.is_cancelled() {
            return;
        }
        if let Some(pause) = pause {
            tokio::select! {
                () = line.cut.cancelled() => return,
                () = line.clock.sleep(pause) => {}
            }
        }
        body = slot.supply.next().await;
        scheduled = line.clock.now();
    }
}

/// 1, 2, 4 … s after failures in a row, or what the server asks for; never more than 5 s.
fn pause_after(outcome: &Outcome, failures_in_a_row: &mut u32) -> Option<Nanos> {
    if !matches!(outcome.trace.end, RequestEnd::Failed(_)) {
        *failures_in_a_row = 0;
        return None;
    }
    let secs = 1_u64 << (*failures_in_a_row).min(3);
    *failures_in_a_row += 1;
    let asked = outcome.retry_after.unwrap_or_default();
    Some(Nanos::from_secs(secs).max(asked).min(Nanos::from_secs(LONGEST_PAUSE_SECS)))
}
