//! Open-loop load (method §4): requests leave when they are due, whatever the server does, and their latency counts from
//! then. Nothing waits for an answer before the next request, so a slow server can't hide its slowness.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use speedmatrix_shared::{
    id::CellId,
    plan::Arrivals,
    stats::looping::LOOKED_AT_SLOTS,
    units::{Concurrency, Nanos},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Bench, Halt,
    load::{Ended, Load},
    supply::Supply,
};
use crate::{
    client::{Ask, Connection, KeepText, SlotCounters},
    clock::Clock,
    prompt::request::CHAT_PATH,
};

/// Connections that are opened ahead: a handshake is not what a request waits for as long as there are free ones.
const OPENED_AHEAD: usize = 64;
/// Requests that have ended and wait to be taken in.
const WAITING: usize = 1_024;
const NANOS_PER_MINUTE: f64 = 60e9;

impl Bench {
    /// A prepared open loop: it begins with [`Load::start`] and ends with its last request.
    pub(super) fn open_loop(&self, cell: CellId, arrivals: Arrivals, supplies: Vec<Supply>) -> Result<Load, Halt> {
        let due = due_times(arrivals, cell.concurrency, self.plan.duration(), self.plan.seed());
        let slots: Arc<[SlotCounters]> = due.iter().map(|_| SlotCounters::default()).collect();
        let connections = (0..due.len()).map(|_| self.connection()).collect::<Result<Vec<_>, Halt>>()?;
        let (start, started) = watch::channel(None);
        let (sender, ended) = mpsc::channel(WAITING);
        let cut = CancellationToken::new();
        let line = Line {
            clock: self.clock,
            idle_limit: self.idle_limit(cell),
            pool: Pool::default(),
            slots: Arc::clone(&slots),
            ended: sender,
            cut: cut.clone(),
        };
        let mut workers = JoinSet::new();
        workers.spawn(dispatch(line, started, due, supplies, connections));
        Ok(Load { clock: self.clock, _workers: workers, start, cut, slots, ended })
    }
}

/// What all requests share.
#[derive(Debug, Clone)]
struct Line {
    clock: Clock,
    idle_limit: Nanos,
    pool: Pool,
    slots: Arc<[SlotCounters]>,
    ended: mpsc::Sender<Ended>,
    cut: CancellationToken,
}

/// Connections that no request uses. Taken and given back between requests only.
#[derive(Debug, Clone, Default)]
struct Pool(Arc<Mutex<Vec<Connection>>>);

impl Pool {
    fn take(&self) -> Option<Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give(&self, connection: Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// Sends each request when it is due; `connections` are fresh ones, as many as there are requests.
async fn dispatch(
    line: Line,
    mut started: watch::Receiver<Option<Nanos>>,
    due: Vec<Nanos>,
    mut supplies: Vec<Supply>,
    mut connections: Vec<Connection>,
) {
    for _ in 0..OPENED_AHEAD {
        let Some(mut connection) = connections.pop() else { break };
        // One that can't be opened now is tried again with its request, and fails there as data.
        connection.open().await.ok();
        line.pool.give(connection);
    }
    let Some(start) = started.wait_for(Option::is_some).await.ok().and_then(|start| *start) else { return };
    let mut running = JoinSet::new();
    let slots = supplies.len().max(1);
    for (number, due) in due.into_iter().enumerate() {
        // Built while the one before is on its way: it only has to leave when it is due.
        let Some(supply) = supplies.get_mut(number % slots) else { return };
        let body = supply.next().await;
        let scheduled = start + due;
        tokio::select! {
            () = line.cut.cancelled() => break,
            () = line.clock.sleep_until(scheduled) => {}
        }
        let Some(connection) = line.pool.take().or_else(|| connections.pop()) else { return };
        running.spawn(send(line.clone(), connection, number, scheduled, body));
        while running.try_join_next().is_some() {}
    }
    drop(line);
    while running.join_next().await.is_some() {}
}

async fn send(line: Line, mut connection: Connection, number: usize, scheduled: Nanos, body: crate::client::Body) {
    let Some(counters) = line.slots.get(number) else { return };
    let slot = u32::try_from(number).unwrap_or(u32::MAX);
    let keep_text = if slot < LOOKED_AT_SLOTS { KeepText::Yes } else { KeepText::No };
    let rid = body.rid().cloned();
    let ask = Ask { slot, scheduled, path: CHAT_PATH, body, keep_text, idle_limit: line.idle_limit };
    let outcome = connection.stream(ask, counters, &line.cut).await;
    line.pool.give(connection);
    let text = outcome.text.map(|text| text.reasoning + &text.content);
    line.ended.send(Ended { trace: outcome.trace, text, rid }).await.ok();
}

/// When requests are due, from the start on, in order: `per_minute` of them on average over `length`, at least one.
fn due_times(arrivals: Arrivals, per_minute: Concurrency, length: Nanos, seed: u64) -> Vec<Nanos> {
    let gap_ns = NANOS_PER_MINUTE / f64::from(per_minute.get());
    let length_ns = length.0 as f64;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut at_ns = 0.0;
    let times = (0_u32..).map(|number| match arrivals {
        Arrivals::Constant => f64::from(number) * gap_ns,
        Arrivals::Poisson => {
            // Gaps of a Poisson process are exponential: −ln(1 − u) times their mean.
            let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            at_ns -= gap_ns * (1.0 - uniform).ln();
            at_ns
        }
        // The rate rises as 2t ÷ length: request number n is due when t² ÷ (length · gap) = n + ½.
        Arrivals::Ramp => ((f64::from(number) + 0.5) * gap_ns * length_ns).sqrt(),
    });
    let mut due: Vec<Nanos> = times.take_while(|at| *at < length_ns).map(|at| Nanos(at as u64)).collect();
    if due.is_empty() {
        due.push(Nanos(length.0 / 2));
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(arrivals: Arrivals, per_minute: u32, secs: u64) -> Vec<f64> {
        let times = due_times(arrivals, Concurrency::new(per_minute).unwrap(), Nanos::from_secs(secs), 7);
        times.into_iter().map(Nanos::as_secs_f64).collect()
    }

    #[test]
    fn constant_requests_come_at_equal_distances() {
        assert_eq!(due(Arrivals::Constant, 30, 7), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(due(Arrivals::Ramp, 1, 1), [0.5], "at least one");
    }

    #[test]
    fn random_requests_have_the_rate_and_its_scatter() {
        let times = due(Arrivals::Poisson, 600, 1_000);
        assert!((9_700..10_300).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted() && times.iter().all(|at| *at < 1_000.0));
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The standard deviation of an exponential is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{} and {mean}", variance.sqrt());
        assert_eq!(times, due(Arrivals::Poisson, 600, 1_000), "the same seed, the same times");
    }

    #[test]
    fn rising_requests_reach_twice_the_rate() {
        let times = due(Arrivals::Ramp, 60, 100);
        assert_eq!(times.len(), 100);
        let within = |from: f64, to: f64| times.iter().filter(|at| (from..to).contains(*at)).count();
        assert_eq!((within(0.0, 50.0), within(50.0, 100.0)), (25, 75));
    }
}
