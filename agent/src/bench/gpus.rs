//! Looks at the server's GPUs while a cell is measured. Drivers take their time, so every look is made on a thread of the
//! serving runtime that may wait, and never delays a stamp.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use speedmatrix_shared::{
    gauge::GpuGauge,
    gpu::{GpuReading, GpuRecord, GpuSeries, GpuState},
    units::Nanos,
};
use tokio::{runtime::Handle, sync::watch, time::MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;

use crate::{clock::Clock, host::gpu::Watched};

/// Looks that are kept of each GPU: an hour at the fastest pace. A cell's window is at its end, so the oldest go first.
const MOST_SAMPLES: usize = 14_400;

/// The GPUs of a run; `watched` is `None` where there are none to look at.
#[derive(Debug)]
pub(super) struct Gpus {
    watched: Option<Arc<Watched>>,
    clock: Clock,
    serving: Handle,
    idle_power_w: Option<f64>,
    running: Option<Running>,
    latest: watch::Sender<Option<GpuGauge>>,
}

/// A series being recorded.
#[derive(Debug)]
struct Running {
    kept: Arc<Mutex<Kept>>,
    _looking: [AbortOnDropHandle<()>; 2],
}

/// What was seen of each GPU.
type Kept = BTreeMap<u32, GpuSeries>;

impl Gpus {
    pub(super) fn new(watched: Option<Watched>, clock: Clock, serving: Handle) -> Self {
        Self {
            watched: watched.map(Arc::new),
            clock,
            serving,
            idle_power_w: None,
            running: None,
            latest: watch::Sender::new(None),
        }
    }

    /// Follows what they do now; `None` while nobody looks.
    pub(super) fn follow(&self) -> watch::Receiver<Option<GpuGauge>> {
        self.latest.subscribe()
    }

    /// Begins to look; what was seen before is dropped.
    pub(super) fn begin(&mut self) {
        let Some(watched) = self.watched.clone() else { return };
        let series = |gpu: &GpuReading| GpuSeries {
            index: gpu.index,
            power_limit_w: gpu.power_limit_w,
            max_clock_mhz: gpu.max_clock_mhz,
            ..GpuSeries::default()
        };
        let kept: Kept = watched.gpus.iter().map(|gpu| (gpu.index, series(gpu))).collect();
        let kept = Arc::new(Mutex::new(kept));
        let (clock, for_task, latest) = (self.clock, Arc::clone(&kept), self.latest.clone());
        let (watched_links, for_links) = (Arc::clone(&watched), Arc::clone(&kept));
        let looking = self.serving.spawn(async move {
            let mut tick = pace(watched.every());
            loop {
                tick.tick().await;
                latest.send_replace(look(&watched, clock, &for_task).await);
            }
        });
        let looking_at_links = self.serving.spawn(async move {
            let mut tick = pace(Watched::links_every());
            tick.tick().await;
            while look_at_links(&watched_links, clock, &for_links).await == Links::Told {
                tick.tick().await;
            }
        });
        self.running = Some(Running { kept, _looking: [looking, looking_at_links].map(AbortOnDropHandle::new) });
    }

    /// Looks once more, so that the series reaches over all of the window, and gives what was seen.
    pub(super) async fn end(&mut self) -> Option<Box<GpuRecord>> {
        let (running, watched) = (self.running.take()?, self.watched.clone()?);
        let (clock, kept) = (self.clock, Arc::clone(&running.kept));
        drop(running);
        self.latest.send_replace(None);
        let looked = self.serving.spawn(async move {
            let have_links = lock(&kept).values().any(|gpu| !gpu.fabric.is_empty());
            let links = async {
                if have_links {
                    look_at_links(&watched, clock, &kept).await;
                }
            };
            tokio::join!(look(&watched, clock, &kept), links);
            std::mem::take(&mut *lock(&kept))
        });
        // It only fails while the serving runtime shuts down, and the run with it.
        let mut gpus: Vec<GpuSeries> = AbortOnDropHandle::new(looked).await.ok()?.into_values().collect();
        // A look that was under way when the task ended may have come in beside the last one.
        for gpu in &mut gpus {
            gpu.samples.sort_by_key(|sample| sample.at);
            gpu.fabric.sort_by_key(|(at, _)| *at);
        }
        Some(Box::new(GpuRecord { gpus, idle_power_w: self.idle_power_w }))
    }

    /// Ends a time in which the server had nothing to do: what it drew is the baseline.
    pub(super) async fn end_idle(&mut self) {
        let record = self.end().await;
        self.idle_power_w = record.and_then(|record| record.gpus.iter().map(median_power).sum());
    }
}

/// Looks once, keeps what was seen, and gives it in short.
async fn look(watched: &Arc<Watched>, clock: Clock, kept: &Arc<Mutex<Kept>>) -> Option<GpuGauge> {
    let (watched, kept) = (Arc::clone(watched), Arc::clone(kept));
    let looking = tokio::task::spawn_blocking(move || {
        let (at, seen) = halfway(clock, || watched.look());
        note(&mut lock(&kept), &seen, at);
        GpuGauge::of(&seen)
    });
    // A fault in a driver's wrapper leaves a gap in the series.
    looking.await.ok().flatten()
}

/// Whether anybody tells of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    Told,
    Silent,
}

/// Looks once at the links between them.
async fn look_at_links(watched: &Arc<Watched>, clock: Clock, kept: &Arc<Mutex<Kept>>) -> Links {
    let (watched, kept) = (Arc::clone(watched), Arc::clone(kept));
    let looking = tokio::task::spawn_blocking(move || {
        let (at, seen) = halfway(clock, || watched.look_at_links());
        let mut kept = lock(&kept);
        for (index, traffic) in &seen {
            if let Some(series) = kept.get_mut(index) {
                keep(&mut series.fabric, (at, *traffic));
            }
        }
        if seen.is_empty() { Links::Silent } else { Links::Told }
    });
    looking.await.unwrap_or(Links::Silent)
}

/// What a driver or a program answers, and when: somewhere within the time that it took.
fn halfway<T>(clock: Clock, ask: impl FnOnce() -> T) -> (Nanos, T) {
    let before = clock.now();
    let answer = ask();
    (before + Nanos(clock.now().since(before).0 / 2), answer)
}

fn pace(every: Duration) -> tokio::time::Interval {
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

/// Adds to a series; one that has grown too long loses its older half.
fn keep<T>(series: &mut Vec<T>, look: T) {
    if series.len() >= MOST_SAMPLES {
        series.drain(..MOST_SAMPLES / 2);
    }
    series.push(look);
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(kept: &mut Kept, seen: &[GpuReading], at: Nanos) {
    for (index, series) in kept.iter_mut() {
        match seen.iter().find(|gpu| gpu.index == *index) {
            Some(gpu) if gpu.state == GpuState::Present => {
                keep(&mut series.samples, gpu.sample(at));
                if let Some(traffic) = gpu.fabric {
                    keep(&mut series.fabric, (at, traffic));
                }
            }
            // Nobody answered at all: that is a gap, not a loss.
            None if seen.is_empty() => {}
            _ => {
                series.lost_at.get_or_insert(at);
            }
        }
    }
}

fn median_power(gpu: &GpuSeries) -> Option<f64> {
    let mut powers: Vec<f64> = gpu.samples.iter().filter_map(|sample| sample.power_w).collect();
    powers.sort_by(f64::total_cmp);
    powers.get(powers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_answers_no_more_is_lost_from_then_on() {
        let gpu = |index, state| GpuReading { index, state, power_w: Some(100.0), ..GpuReading::default() };
        let mut kept: Kept = [4, 5].map(|index| (index, GpuSeries { index, ..GpuSeries::default() })).into();
        note(&mut kept, &[gpu(4, GpuState::Present), gpu(5, GpuState::Present)], Nanos(1));
        note(&mut kept, &[], Nanos(2));
        note(&mut kept, &[gpu(4, GpuState::Present)], Nanos(3));
        note(&mut kept, &[gpu(4, GpuState::Present), gpu(5, GpuState::Lost)], Nanos(4));
        let seen: Vec<_> = kept.values().map(|gpu| (gpu.samples.len(), gpu.lost_at)).collect();
        assert_eq!(seen, [(3, None), (1, Some(Nanos(3)))]);
    }

    #[test]
    fn long_series_lose_their_oldest_half() {
        let gpu = GpuReading { index: 0, ..GpuReading::default() };
        let mut kept: Kept = [(0, GpuSeries::default())].into();
        (0..=MOST_SAMPLES as u64).for_each(|at| note(&mut kept, std::slice::from_ref(&gpu), Nanos(at)));
        let samples = &kept[&0].samples;
        assert_eq!((samples.len(), samples[0].at), (MOST_SAMPLES / 2 + 1, Nanos(MOST_SAMPLES as u64 / 2)));
    }
}
