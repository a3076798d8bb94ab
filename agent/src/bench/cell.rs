//! A sustained-decode cell (method §3): drain, cache, ramp, window, stop.

use std::{sync::Arc, time::Duration};

use speedmatrix_shared::{
    event::RunEvent,
    finding::rules::Asked,
    gauge::CellPhase,
    id::{CellId, Phase},
    plan::{self, PromptMode},
    stats::{looping::is_looping, window::Window},
    trace::{RequestEnd, RequestFailure, RequestTrace, StreamNote},
    trust::ClientWatch,
    units::Nanos,
};
use tokio::{runtime::Handle, time::MissedTickBehavior};

use super::{
    Bench, Halt,
    cache::{Prepared, Unprepared},
    client_watch::Watch,
    drain::{Drained, drain},
    gauges::{Look, Series},
    load::{Ended, Load, Quota, Slot, closed_loop},
    mixed::ColdPrompts,
    ramp::{Ramp, RampState},
    record,
    single::is_hopeless,
    supply::Supply,
};

/// Time between two looks at the slots during the ramp, on the run's clock …
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// … and at least this much real time.
const FASTEST_LOOK: Duration = Duration::from_millis(2);
/// Real time between the end of the window and the cut: bytes that arrived inside the window may still wait to be read
/// when this machine is busy. They are counted by their stamps.
const LATE_READS: Duration = Duration::from_millis(50);
/// Longest wait (real time) for the workers to end after the cut.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Requests in a row without a token, in units of C, after which a cell is given up.
const MOST_FAILED_ROUNDS: usize = 2;
/// And at least this many.
const LEAST_FAILED: usize = 3;
/// Requests of an open loop that are still running this long after the last one was due are cut (or as long as the window,
/// if that is longer).
const STRAGGLER_LIMIT: Nanos = Nanos::from_secs(60);
/// Most text of a cell that is kept to be looked at, bytes: seven minutes of 32 slots at 1,000 tokens/s each.
const MOST_TEXT_BYTES: usize = 64 << 20;
/// A cold or cached queue of C requests may take this many times C times one admission.
const QUEUE_MARGIN: u64 = 3;

/// What was seen in a cell.
#[derive(Debug)]
pub(super) struct Measured {
    /// All requests of ramp and window.
    pub(super) traces: Vec<RequestTrace>,
    /// First send.
    pub(super) ramp_start: Nanos,
    /// How the window came about.
    pub(super) opened: Opened,
    /// Looks at the engine from the first send on.
    pub(super) looks: Vec<Look>,
    /// How this client did in the window.
    pub(super) client: ClientWatch,
}

/// How the window opened.
#[derive(Debug)]
pub(super) enum Opened {
    /// All slots had a token.
    Ready(Window),
    /// The ramp's budget was used up.
    Anyway(Window),
    /// The cell was given up: no request would succeed.
    Never(RequestFailure),
}

impl Bench {
    /// Measures one decode cell. `warm_up` is the request that filled its cache for a prefill row, if one just did.
    pub(super) async fn decode_cell(&mut self, cell: CellId, warm_up: Option<RequestTrace>) -> Result<(), Halt> {
        if self.skipped(cell).await? {
            return Ok(());
        }
        self.teller.tell(RunEvent::CellStarted { cell }).await?;
        self.gpus.begin();
        let asked = self.asked(cell);
        if let Some(load) = self.drained(cell).await {
            return self.finish(cell, record::not_drained(asked, load)).await;
        }
        self.show(cell, CellPhase::Cache, &Self::no_slots());
        let mut beside = self.cold_prompts(cell).await?;
        if let Some(failure) = beside.as_ref().and_then(ColdPrompts::failure) {
            return self.finish(cell, record::given_up(asked, failure.clone(), Vec::new())).await;
        }
        let slots = CellId { context: self.slot_context(cell), ..cell };
        let prepared = match self.prepare_cache(slots, warm_up.filter(|_| slots == cell)).await {
            Ok(prepared) => prepared,
            Err(Unprepared::Halt(halt)) => return Err(halt),
            Err(Unprepared::Request(failure)) => {
                return self.finish(cell, record::given_up(asked, failure, Vec::new())).await;
            }
        };
        let Prepared { supplies, cold, proof } = prepared;
        let series = match self.scraper() {
            Some(scraper) => Some(scraper.series(self.plan.duration()).await),
            None => None,
        };
        let load = match self.plan.load() {
            plan::Load::Open(arrivals) => self.open_loop(cell, arrivals, supplies)?,
            plan::Load::Sustained | plan::Load::Mixed { .. } => {
                self.closed_loop(cell, supplies, Quota::Endless).await?
            }
            plan::Load::Burst { requests } => self.closed_loop(cell, supplies, Quota::of(requests)).await?,
        };
        let measured = self.measure(cell, load, beside.as_mut(), series).await?;
        self.finish(cell, record::decode(asked, cell.concurrency, measured, (cold, proof), beside)).await
    }

    async fn closed_loop(&self, cell: CellId, supplies: Vec<Supply>, quota: Quota) -> Result<Load, Halt> {
        let mut slots = Vec::new();
        for supply in supplies {
            slots.push(Slot { connection: self.connection()?, supply });
        }
        Ok(closed_loop(slots, self.clock, self.idle_limit(cell), quota).await)
    }

    /// What the plan asks of a cell.
    pub(super) fn asked(&self, cell: CellId) -> Asked {
        let asked = Asked::new(cell.context, self.plan.prompts());
        match cell.phase {
            Phase::Prefill => asked,
            Phase::Decode => Asked { load: self.plan.load(), slo: self.plan.slo(), ..asked },
        }
    }

    /// Waits for an idle engine; the load that would not go away, if it didn't become idle.
    pub(super) async fn drained(&self, cell: CellId) -> Option<(f64, f64)> {
        self.show(cell, CellPhase::Drain, &Self::no_slots());
        match drain(self.scraper(), self.clock, self.patience.drain).await {
            Drained::Idle | Drained::Unknown => None,
            Drained::Busy { running, waiting } => Some((running, waiting)),
        }
    }

    async fn measure(
        &self,
        cell: CellId,
        load: Load,
        beside: Option<&mut ColdPrompts>,
        series: Option<Series>,
    ) -> Result<Measured, Halt> {
        let mut book = Book::new(load);
        let ramp_start = book.load.start();
        let (opened, client) = match self.plan.load() {
            plan::Load::Sustained | plan::Load::Mixed { .. } => {
                self.sustained(cell, ramp_start, &mut book, (beside, series.as_ref())).await?
            }
            plan::Load::Burst { .. } | plan::Load::Open(_) => self.all_of_them(cell, ramp_start, &mut book).await,
        };
        let looks = match series {
            Some(series) => series.end().await,
            None => Vec::new(),
        };
        self.show(cell, CellPhase::Stop, &book.load.slots);
        let (traces, cut) = book.close(&self.serving).await;
        self.end_in_engine(cut).await;
        Ok(Measured { traces, ramp_start, opened, looks, client })
    }

    /// A window over requests that are always in flight.
    async fn sustained(
        &self,
        cell: CellId,
        ramp_start: Nanos,
        book: &mut Book,
        (beside, series): (Option<&mut ColdPrompts>, Option<&Series>),
    ) -> Result<(Opened, ClientWatch), Halt> {
        self.show(cell, CellPhase::Ramp, &book.load.slots);
        let ramp = Ramp::new(ramp_start, book.load.slots.len(), self.plan.duration(), self.one_admission(cell));
        let state = match self.ramp(ramp, book).await {
            Err(failure) => return Ok((Opened::Never(failure), ClientWatch::default())),
            Ok(state) => state,
        };
        let mut window = Window::new(self.clock.now(), self.plan.duration());
        if let Some(series) = series {
            series.mark();
        }
        let ramp_s = window.start.since(ramp_start).as_secs_f64();
        self.teller.tell_at(window.start, RunEvent::RampDone { cell, ramp_s }).await?;
        self.show(cell, CellPhase::Measure, &book.load.slots);
        let watch = Watch::begin();
        let measured = match beside {
            None => self.window(window, book).await,
            Some(prompts) => self.window_with(&mut window, prompts, book).await,
        };
        let client = watch.end(self.ttft_bias_s);
        let opened = match measured {
            Err(failure) => Opened::Never(failure),
            Ok(()) if state == RampState::Ready => Opened::Ready(window),
            Ok(()) => Opened::Anyway(window),
        };
        Ok((opened, client))
    }

    /// A fixed number of requests, all waited for. Of a burst the window is all of their time; of an open loop it is that
    /// in which they were due.
    async fn all_of_them(&self, cell: CellId, start: Nanos, book: &mut Book) -> (Opened, ClientWatch) {
        self.show(cell, CellPhase::Measure, &book.load.slots);
        let watch = Watch::begin();
        let due = Window::new(start, self.plan.duration());
        let limit = due.end + self.plan.duration().max(STRAGGLER_LIMIT);
        let open = matches!(self.plan.load(), plan::Load::Open(_));
        let mut over = std::pin::pin!(self.clock.sleep_until(limit));
        let ended = loop {
            tokio::select! {
                // A burst takes as long as it takes.
                () = &mut over, if open => break Ok(()),
                ended = book.load.ended.recv() => match ended.map(|ended| book.note(ended)) {
                    None => break Ok(()),
                    Some(Err(failure)) => break Err(failure),
                    Some(Ok(())) => {}
                }
            }
        };
        let client = watch.end(self.ttft_bias_s);
        let opened = match ended {
            Err(failure) => Opened::Never(failure),
            Ok(()) if open => Opened::Ready(due),
            Ok(()) => {
                let last = book.traces.iter().map(|trace| trace.ended).max().unwrap_or(start);
                // Half-open: the last byte belongs to it.
                Opened::Ready(Window { start, end: last + Nanos(1) })
            }
        };
        (opened, client)
    }

    async fn ramp(&self, mut ramp: Ramp, book: &mut Book) -> Result<RampState, RequestFailure> {
        let engine = self.engine.follow();
        let mut look = tokio::time::interval(self.clock.real(LOOK_EVERY).max(FASTEST_LOOK));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(ended) = book.load.ended.recv() => {
                    ramp.ended(ended.trace.slot);
                    book.note(ended)?;
                }
                _ = look.tick() => {
                    let waiting = engine.borrow().filter(|_| self.engine_tells).and_then(|gauges| gauges.waiting);
                    let states = book.load.slots.iter().map(crate::client::SlotCounters::state);
                    let state = ramp.poll(self.clock.now(), states, waiting);
                    if state != RampState::Going {
                        return Ok(state);
                    }
                }
            }
        }
    }

    pub(super) async fn window(&self, window: Window, book: &mut Book) -> Result<(), RequestFailure> {
        let mut end = std::pin::pin!(self.clock.sleep_until(window.end));
        loop {
            tokio::select! {
                () = &mut end => break,
                Some(ended) = book.load.ended.recv() => book.note(ended)?,
            }
        }
        tokio::time::sleep(LATE_READS).await;
        Ok(())
    }

    /// How long one request of the cell takes to be admitted alone, if that was measured.
    fn one_admission(&self, cell: CellId) -> Option<Nanos> {
        let known = self.admission(self.slot_context(cell));
        match self.plan.prompts() {
            PromptMode::Cold | PromptMode::Mixed(_) => known.cold,
            PromptMode::Shared | PromptMode::Unique => known.cached,
        }
    }

    /// The longest silence that may be a place in the queue.
    pub(super) fn idle_limit(&self, cell: CellId) -> Nanos {
        let known = self.admission(cell.context);
        let one = known.cold.max(known.cached).unwrap_or_default().0;
        Nanos(one.saturating_mul(QUEUE_MARGIN * u64::from(cell.concurrency.get()))).max(self.patience.idle)
    }
}

/// A load and the requests that it has ended.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) load: Load,
    traces: Vec<RequestTrace>,
    /// Texts of some of them, with their places among the traces.
    texts: Vec<(usize, String)>,
    /// Bytes of them.
    text_bytes: usize,
    /// Ids of requests that were cut, where requests have one.
    cut: Vec<Arc<str>>,
    /// Requests in a row, over all slots, that failed before any token.
    useless_in_a_row: usize,
}

impl Book {
    const fn new(load: Load) -> Self {
        Self { load, traces: Vec::new(), texts: Vec::new(), text_bytes: 0, cut: Vec::new(), useless_in_a_row: 0 }
    }

    fn keep(&mut self, Ended { trace, text, rid }: Ended) {
        self.cut.extend(rid.filter(|_| trace.end == RequestEnd::Cut));
        let room = MOST_TEXT_BYTES - self.text_bytes;
        if let Some(text) = text.filter(|text| text.len() <= room) {
            self.text_bytes += text.len();
            self.texts.push((self.traces.len(), text));
        }
        self.traces.push(trace);
    }

    /// Keeps a request. An error says that going on makes no sense, and why.
    pub(super) fn note(&mut self, ended: Ended) -> Result<(), RequestFailure> {
        let trace = &ended.trace;
        let failure = match &trace.end {
            RequestEnd::Failed(failure) if trace.arrivals.is_empty() => Some(failure.clone()),
            _ => None,
        };
        self.keep(ended);
        let Some(failure) = failure else {
            self.useless_in_a_row = 0;
            return Ok(());
        };
        self.useless_in_a_row += 1;
        let most = LEAST_FAILED.max(MOST_FAILED_ROUNDS * self.load.slots.len());
        if is_hopeless(failure.kind) || self.useless_in_a_row >= most { Err(failure) } else { Ok(()) }
    }

    /// Closes all requests, waits for their traces, and looks at their texts on the serving runtime. Also gives the ids of
    /// those that were cut.
    async fn close(mut self, serving: &Handle) -> (Vec<RequestTrace>, Vec<Arc<str>>) {
        self.load.cut();
        let rest = async {
            while let Some(ended) = self.load.ended.recv().await {
                // What the cut overtook was never a request.
                if ended.trace.send_started.is_some() || ended.trace.end != RequestEnd::Cut {
                    self.keep(ended);
                }
            }
        };
        // What does not end in time is dropped with its connection; its trace is lost.
        tokio::time::timeout(STOP_LIMIT, rest).await.ok();
        let texts = std::mem::take(&mut self.texts);
        let looked = serving.spawn_blocking(move || {
            texts.into_iter().filter(|(_, text)| is_looping(text)).map(|(place, _)| place).collect::<Vec<_>>()
        });
        // The serving runtime only fails to when it shuts down, and the run with it.
        for place in looked.await.unwrap_or_default() {
            if let Some(trace) = self.traces.get_mut(place) {
                trace.notes.push(StreamNote::LoopingText);
            }
        }
        (self.traces, self.cut)
    }
}
