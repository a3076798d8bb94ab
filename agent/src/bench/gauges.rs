//! What a running cell shows: the live gauge at 10 Hz, and the engine's own numbers as a series. Both run on the serving
//! runtime, so that they never delay a stamp.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use speedmatrix_shared::{
    gauge::{CellPhase, Gauge, GpuGauge},
    id::CellId,
    units::Nanos,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::MissedTickBehavior,
};
use tokio_util::task::AbortOnDropHandle;

use super::client_watch::Lateness;
use crate::{
    client::{
        SlotCounters, SlotState, Target,
        http::{AskError, Http},
        prometheus::{self, EngineGauges, ScrapeError},
    },
    clock::Clock,
};

/// Real time between two live gauges.
const LIVE_EVERY: Duration = Duration::from_millis(100);
/// The rate shown live is that of the last second.
const RATE_OVER: Nanos = Nanos::from_secs(1);
/// The engine is asked at least this often inside a window.
const SERIES_EVERY: Nanos = Nanos::from_secs(1);
/// A window holds at least this many scrapes, if [`FASTEST_SERIES`] allows it.
const SERIES_LEAST: u64 = 10;
/// Real time between two scrapes, at least: an engine's page costs it some work.
const FASTEST_SERIES: Duration = Duration::from_millis(50);

/// Longest wait (real time) for the look at the end of a window: the load goes on meanwhile.
const LAST_LOOK_LIMIT: Duration = Duration::from_secs(1);

/// What the live gauge is made of: set by the cell, read by [`live`].
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) cell: CellId,
    pub(super) phase: CellPhase,
    pub(super) since: Nanos,
    pub(super) slots: Arc<[SlotCounters]>,
}

/// What the live gauge looks at.
#[derive(Debug)]
pub(super) struct Sights {
    pub(super) scene: watch::Receiver<Option<Scene>>,
    pub(super) engine: watch::Receiver<Option<EngineGauges>>,
    pub(super) gpus: watch::Receiver<Option<GpuGauge>>,
    pub(super) lateness: Lateness,
}

/// Tells the live gauge ten times a second until the handle is dropped.
pub(super) fn live(
    serving: &Handle,
    clock: Clock,
    mut sights: Sights,
    gauge: watch::Sender<Option<Gauge>>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(serving.spawn(async move {
        let mut tick = tokio::time::interval(LIVE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut rate = Rate::default();
        loop {
            tick.tick().await;
            let scene = sights.scene.borrow_and_update().clone();
            let (engine, gpu) = (*sights.engine.borrow(), *sights.gpus.borrow());
            let lateness_s = sights.lateness.take();
            gauge.send_replace(scene.map(|scene| {
                let seen = rate.gauge(clock.now(), &scene, engine.as_ref());
                Gauge { gpu, lateness_s, ..seen }
            }));
        }
    }))
}

/// Token counts of the last second, and where the window began.
#[derive(Debug, Default)]
struct Rate {
    /// The slots and phase that the counts belong to.
    of: Option<(Arc<[SlotCounters]>, CellPhase)>,
    counts: VecDeque<(Nanos, u64)>,
    window: Option<(Nanos, u64)>,
}

impl Rate {
    fn gauge(&mut self, now: Nanos, scene: &Scene, engine: Option<&EngineGauges>) -> Gauge {
        let tokens = scene.slots.iter().map(SlotCounters::tokens).sum();
        let count = |wanted: fn(SlotState) -> bool| {
            u32::try_from(scene.slots.iter().filter(|slot| wanted(slot.state())).count()).unwrap_or(u32::MAX)
        };
        self.enter(now, scene, tokens);
        // From the youngest count that is a second old, or the oldest one if all are younger.
        while self.counts.get(1).is_some_and(|(at, _)| now.since(*at) >= RATE_OVER) {
            self.counts.pop_front();
        }
        let tok_s = self.counts.front().and_then(|first| per_second(*first, (now, tokens)));
        self.counts.push_back((now, tokens));
        Gauge {
            at: now,
            cell: scene.cell,
            phase: scene.phase,
            phase_for_s: now.since(scene.since).as_secs_f64(),
            tok_s,
            in_flight: count(|state| state != SlotState::Idle),
            decoding: count(|state| state == SlotState::Decoding),
            waiting: engine.and_then(|engine| engine.waiting).map(|waiting| waiting as u32),
            window_tok_s: self.window.and_then(|start| per_second(start, (now, tokens))),
            running: engine.and_then(|engine| engine.running).map(|running| running as u32),
            kv_usage: engine.and_then(|engine| engine.kv_usage).filter(|share| share.is_finite()),
            gpu: None,
            lateness_s: None,
        }
    }

    fn enter(&mut self, now: Nanos, scene: &Scene, tokens: u64) {
        let same_slots = self.of.as_ref().is_some_and(|(slots, _)| Arc::ptr_eq(slots, &scene.slots));
        if !same_slots {
            self.counts.clear();
        }
        let measuring = scene.phase == CellPhase::Measure;
        let was_measuring = same_slots && matches!(self.of, Some((_, CellPhase::Measure)));
        if !measuring {
            self.window = None;
        } else if !was_measuring {
            self.window = Some((now, tokens));
        }
        self.of = Some((Arc::clone(&scene.slots), scene.phase));
    }
}

fn per_second(from: (Nanos, u64), to: (Nanos, u64)) -> Option<f64> {
    let secs = to.0.since(from.0).as_secs_f64();
    (secs > 0.0).then(|| to.1.saturating_sub(from.1) as f64 / secs)
}

/// One look at the engine: `None` where it did not answer.
pub(super) type Look = (Nanos, Option<EngineGauges>);

/// Asks the engine for its own numbers.
#[derive(Debug, Clone)]
pub(super) struct Scraper {
    http: Http,
    clock: Clock,
    serving: Handle,
    latest: watch::Sender<Option<EngineGauges>>,
    /// Where the page is, once it was found.
    path: Arc<OnceLock<&'static str>>,
}

impl Scraper {
    pub(super) fn new(target: &Target, clock: Clock, serving: Handle) -> Result<Self, AskError> {
        Ok(Self { http: Http::new(target)?, clock, serving, latest: watch::Sender::new(None), path: Arc::default() })
    }

    /// Follows the latest numbers.
    pub(super) fn follow(&self) -> watch::Receiver<Option<EngineGauges>> {
        self.latest.subscribe()
    }

    /// The numbers now.
    pub(super) async fn look(&self) -> Result<EngineGauges, ScrapeError> {
        let me = self.clone();
        let asked = AbortOnDropHandle::new(self.serving.spawn(async move { me.scrape().await }));
        asked.await.unwrap_or_else(|gone| {
            let url = self.http.target().url.as_str().to_owned();
            Err(AskError::Transport { url, reason: gone.to_string() }.into())
        })
    }

    /// Asks again and again until the series ends or is dropped; it has its first look already when this returns.
    /// `window` is the length of the window to come.
    pub(super) async fn series(&self, window: Nanos) -> Series {
        let looks = Arc::new(Mutex::new(vec![self.timed().await]));
        let wanted = Arc::new(Notify::new());
        let (me, kept, now) = (self.clone(), Arc::clone(&looks), Arc::clone(&wanted));
        let every = self.clock.real(SERIES_EVERY.min(Nanos(window.0 / SERIES_LEAST))).max(FASTEST_SERIES);
        let task = self.serving.spawn(async move {
            let mut tick = tokio::time::interval(every);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tick.tick().await;
            loop {
                tokio::select! {
                    _ = tick.tick() => {}
                    () = now.notified() => {}
                }
                let look = me.asked().await;
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(look);
            }
        });
        Series { looks, wanted, scraper: self.clone(), task: AbortOnDropHandle::new(task) }
    }

    /// A look from the measuring runtime.
    async fn timed(&self) -> Look {
        let me = self.clone();
        let asked = AbortOnDropHandle::new(self.serving.spawn(async move { me.asked().await }));
        asked.await.unwrap_or_else(|_shutting_down| (self.clock.now(), None))
    }

    /// A look: what the engine says was so at some time between question and answer.
    async fn asked(&self) -> Look {
        let before = self.clock.now();
        let look = self.scrape().await.ok();
        (before + Nanos(self.clock.now().since(before).0 / 2), look)
    }

    async fn scrape(&self) -> Result<EngineGauges, ScrapeError> {
        let result = match self.path.get() {
            Some(path) => prometheus::scrape(&self.http, path).await,
            None => prometheus::find(&self.http).await.map(|(path, gauges)| {
                self.path.get_or_init(|| path);
                gauges
            }),
        };
        self.latest.send_replace(result.as_ref().ok().copied());
        result
    }
}

/// A series being recorded.
#[derive(Debug)]
pub(super) struct Series {
    looks: Arc<Mutex<Vec<Look>>>,
    wanted: Arc<Notify>,
    scraper: Scraper,
    task: AbortOnDropHandle<()>,
}

impl Series {
    /// Asks for a look as soon as possible, without waiting for it: an edge of the window is here.
    pub(super) fn mark(&self) {
        self.wanted.notify_one();
    }

    /// Ends the recording with a last look, so that counters are known to the end of the window.
    pub(super) async fn end(self) -> Vec<Look> {
        let Self { looks, scraper, task, .. } = self;
        drop(task);
        let last = tokio::time::timeout(LAST_LOOK_LIMIT, scraper.timed()).await;
        let mut looks = std::mem::take(&mut *looks.lock().unwrap_or_else(PoisonError::into_inner));
        looks.extend(last.ok());
        looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(slots: &Arc<[SlotCounters]>, phase: CellPhase) -> Scene {
        Scene { cell: "decode-8K-2".parse().unwrap(), phase, since: Nanos(0), slots: Arc::clone(slots) }
    }

    #[test]
    fn the_live_rate_is_that_of_the_last_second() {
        let slots: Arc<[SlotCounters]> = [SlotCounters::default(), SlotCounters::default()].into();
        let mut rate = Rate::default();
        let mut check = |ms: u64, tokens: u64, phase: CellPhase, want: Option<f64>, window: Option<f64>| {
            slots[0].set_tokens(tokens);
            let gauge = rate.gauge(Nanos::from_millis(ms), &scene(&slots, phase), None);
            assert_eq!((gauge.tok_s, gauge.window_tok_s), (want, window), "at {ms} ms");
        };
        check(0, 0, CellPhase::Ramp, None, None);
        check(500, 50, CellPhase::Ramp, Some(100.0), None);
        check(1_000, 50, CellPhase::Measure, Some(50.0), None);
        check(1_500, 150, CellPhase::Measure, Some(100.0), Some(200.0));
        check(3_000, 150, CellPhase::Measure, Some(0.0), Some(50.0));
        check(3_100, 150, CellPhase::Stop, Some(0.0), None);
    }

    #[test]
    fn slots_of_another_cell_start_anew() {
        let first: Arc<[SlotCounters]> = [SlotCounters::default()].into();
        first[0].set_tokens(1_000);
        let second: Arc<[SlotCounters]> = [SlotCounters::default()].into();
        let mut rate = Rate::default();
        rate.gauge(Nanos::from_secs(1), &scene(&first, CellPhase::Measure), None);
        let page = "vllm:num_requests_running 2\nvllm:num_requests_waiting 3\nvllm:kv_cache_usage_perc 0.25\n";
        let engine = EngineGauges::of(&prometheus::Page::read(page));
        let gauge = rate.gauge(Nanos::from_secs(2), &scene(&second, CellPhase::Drain), engine.as_ref());
        assert_eq!((gauge.tok_s, gauge.in_flight), (None, 0));
        assert_eq!((gauge.running, gauge.waiting, gauge.kv_usage), (Some(2), Some(3), Some(0.25)));
    }
}
