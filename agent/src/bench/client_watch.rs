//! What the client itself costs and how punctual it is while it measures (method §7): processor time of the measuring
//! threads, and a timer on them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use speedmatrix_shared::{stats::summary::Summary, trust::ClientWatch};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// Name of the measuring runtime's threads, by which their processor time is found.
pub const THREAD_NAME: &str = "measure";
/// Time between two looks of the timer.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of the measuring threads so far; `None` where the system doesn't tell (`/proc/self/task/*/schedstat`,
/// Linux) or there are none by that name.
pub(super) fn processor_time() -> Option<Duration> {
    let mut sum = None;
    for task in std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok) {
        // A thread that ends meanwhile is none of ours: those live as long as the run.
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).ok();
        if read("comm").is_none_or(|name| name.trim() != THREAD_NAME) {
            continue;
        }
        let nanos = read("schedstat")?.split(' ').next()?.parse().ok()?;
        *sum.get_or_insert(Duration::ZERO) += Duration::from_nanos(nanos);
    }
    sum
}

/// How late a timer on the measuring threads wakes up, for who looks now and then. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Lateness {
    /// Nanoseconds, at most since the last look; [`NOTHING_SEEN`] if the timer did not wake since.
    most_ns: Arc<AtomicU64>,
    _timer: AbortOnDropHandle<()>,
}

/// Stands for no wake-up at all: no timer is late by centuries.
const NOTHING_SEEN: u64 = u64::MAX;

impl Lateness {
    /// Begins on the runtime that it is called on.
    pub(super) fn begin() -> Self {
        let most_ns = Arc::new(AtomicU64::new(NOTHING_SEEN));
        let told = Arc::clone(&most_ns);
        let timer = tokio::spawn(async move {
            loop {
                let due = tokio::time::Instant::now() + TICK;
                tokio::time::sleep_until(due).await;
                let late = u64::try_from(due.elapsed().as_nanos()).unwrap_or(NOTHING_SEEN - 1);
                let later = |seen: u64| Some(if seen == NOTHING_SEEN { late } else { seen.max(late) });
                // It always has a new value, so it never fails.
                told.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).ok();
            }
        });
        Self { most_ns, _timer: AbortOnDropHandle::new(timer) }
    }

    /// The latest wake-up since the last look, seconds; `None` if there was none.
    pub(super) fn take(&self) -> Option<f64> {
        let most = self.most_ns.swap(NOTHING_SEEN, Ordering::Relaxed);
        (most != NOTHING_SEEN).then(|| Duration::from_nanos(most).as_secs_f64())
    }
}

/// A watch over one window.
#[derive(Debug)]
pub(super) struct Watch {
    began: Instant,
    processor: Option<Duration>,
    timer: AbortOnDropHandle<()>,
    lags: tokio::sync::watch::Receiver<Vec<f64>>,
}

impl Watch {
    /// Begins now, on the runtime that it is called on.
    pub(super) fn begin() -> Self {
        let (told, lags) = tokio::sync::watch::channel(Vec::new());
        let timer: JoinHandle<()> = tokio::spawn(async move {
            loop {
                let due = tokio::time::Instant::now() + TICK;
                tokio::time::sleep_until(due).await;
                told.send_modify(|lags| lags.push(due.elapsed().as_secs_f64()));
            }
        });
        Self { began: Instant::now(), processor: processor_time(), timer: AbortOnDropHandle::new(timer), lags }
    }

    /// Ends now.
    pub(super) fn end(self, ttft_bias_s: Option<f64>) -> ClientWatch {
        let workers = tokio::runtime::Handle::current().metrics().num_workers();
        drop(self.timer);
        let used = self.processor.zip(processor_time()).map(|(before, after)| after.saturating_sub(before));
        let had = self.began.elapsed().as_secs_f64() * workers as f64;
        let cpu_share = used.filter(|_| had > 0.0).map(|used| (used.as_secs_f64() / had).min(1.0));
        let lag = Summary::of(self.lags.borrow().iter().copied());
        ClientWatch { ttft_bias_s, cpu_share, timer_lag_p99_s: lag.map(|lag| lag.p99.unwrap_or(lag.max)) }
    }
}
