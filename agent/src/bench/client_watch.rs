//! What the client itself costs and how punctual it is while it measures (method §7): processor time of the measuring
//! threads, and a timer on them.

use std::time::{Duration, Instant};

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
