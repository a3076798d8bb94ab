//! The numbers of a sustained-decode cell from its traces (method §5).

use std::collections::BTreeMap;

use super::{
    cell::{CellStats, GaugeSummary, RequestCounts, SlotSpread},
    first_tokens::FirstTokens,
    interval::Interval,
    mixed::Beside,
    request::{self, Counted},
    summary::Summary,
    window::Window,
};
use crate::{
    plan::{Load, Slo},
    trace::{RequestEnd, RequestTrace, StampSource, TokenSource},
    trust::ClientWatch,
    units::{Concurrency, Nanos},
};

/// A slot tells its speed from this much time of flowing text on …
const SLOT_FROM: Nanos = Nanos::from_secs(2);
/// … or from this many tokens on.
const SLOT_FROM_TOKENS: f64 = 32.0;

/// What the engine told about itself: times and values, in order of time; empty where it does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineSeries<'a> {
    /// Running requests.
    pub running: &'a [(Nanos, f64)],
    /// Waiting requests.
    pub waiting: &'a [(Nanos, f64)],
    /// Use of the KV cache, 0–1.
    pub kv_usage: &'a [(Nanos, f64)],
}

/// All that was recorded of a decode cell.
#[derive(Debug, Clone, Copy)]
pub struct DecodeInput<'a> {
    /// All requests of ramp and window, also those cut at the end.
    pub traces: &'a [RequestTrace],
    /// Cold requests that filled the prompt cache before.
    pub scouts: &'a [RequestTrace],
    /// First send of the ramp.
    pub ramp_start: Nanos,
    /// The measuring window.
    pub window: Window,
    /// Requests at once that were asked for: C.
    pub concurrency: Concurrency,
    /// What the engine told.
    pub engine: EngineSeries<'a>,
    /// What is known of this client meanwhile.
    pub client: ClientWatch,
    /// How requests came.
    pub load: Load,
    /// What a request must keep to count as good.
    pub slo: Option<Slo>,
    /// The cold prompts of a mixed cell.
    pub beside: Beside<'a>,
}

impl<'a> DecodeInput<'a> {
    /// Requests that did not fail.
    pub fn good(&self) -> impl Iterator<Item = &'a RequestTrace> {
        self.traces.iter().filter(|trace| !request::is_failed(trace))
    }
}

/// When each request that was sent was in flight.
pub(super) fn in_flight(traces: &[RequestTrace]) -> impl Iterator<Item = (Nanos, Nanos)> {
    traces.iter().filter_map(|trace| Some((trace.send_started?, trace.ended)))
}

impl CellStats {
    /// The numbers of a decode cell. Failed requests count only as failed and as in flight.
    pub fn decode(input: &DecodeInput<'_>) -> Self {
        let good: Vec<&RequestTrace> = input.good().collect();
        let pooled = request::pooled_ratio(good.iter().copied());
        let counted: Vec<Counted<'_>> = good.iter().map(|trace| Counted::new(trace, pooled)).collect();
        let window = input.window;
        let decoding = input.traces.iter().filter_map(|trace| Some((trace.first_arrival()?, trace.ended)));
        let mut cell = Self {
            requests: Some(count_requests(input)),
            active_requests: window.mean_open(in_flight(input.traces)),
            decoding_requests: window.mean_open(decoding),
            measured_for_s: Some(window.secs()).filter(|secs| *secs > 0.0),
            engine_running: gauge(input.engine.running, window),
            engine_waiting: gauge(input.engine.waiting, window),
            engine_kv_usage: gauge(input.engine.kv_usage, window),
            ..Self::default()
        };
        cell.fill_speed(input, &counted);
        cell.fill_first_tokens(input);
        cell.fill_gaps(window, &counted);
        cell.fill_goodput(input, &counted);
        cell.fill_prompt(&good);
        cell.fill_client(&good, window);
        cell.fill_trust(input.client);
        cell
    }

    fn fill_speed(&mut self, input: &DecodeInput<'_>, counted: &[Counted<'_>]) {
        let window = input.window;
        let Some(secs) = self.measured_for_s else { return };
        // Without one good request in the window nothing was measured; with one, 0 tokens are a result.
        if !counted.iter().any(|c| c.trace.send_started.is_some_and(|sent| window.overlap(sent, c.trace.ended).0 > 0)) {
            return;
        }
        let arrivals: Vec<(Nanos, f64)> = counted.iter().flat_map(Counted::arrivals).collect();
        let tokens: f64 = arrivals.iter().filter(|(at, _)| window.contains(*at)).map(|(_, tokens)| tokens).sum();
        let total = tokens / secs;
        self.total_tok_s = Some(total);
        self.fill_mixed(input, &arrivals);
        if input.load.is_sustained() {
            // A burst swells and ebbs, and an open loop follows its arrivals: their blocks are no repeats of each other.
            self.total_tok_s_interval = Interval::of_blocks(window, &arrivals);
        }
        if !matches!(input.load, Load::Open(_)) {
            self.per_user_tok_s = Some(total / f64::from(input.concurrency.get()));
        }
        if input.load.is_sustained() {
            self.slot_spread = SlotSpread::of(&slot_tokens(input, counted));
        }
        self.output_tokens = Some(tokens.round() as u64);
        self.per_request_tok_s = Summary::of(slot_speeds(window, counted));
        self.token_source = counted.iter().filter(|c| !c.tokens().is_empty()).map(|c| c.source).max();
        let events: u64 = counted
            .iter()
            .flat_map(|c| &c.trace.arrivals)
            .filter(|arrival| window.contains(arrival.at))
            .map(|arrival| u64::from(arrival.text_events))
            .sum();
        let told_by_server = self.token_source.is_some_and(|source| source != TokenSource::Chunks);
        self.tokens_per_chunk = (told_by_server && events > 0).then(|| tokens / events as f64);
    }

    fn fill_first_tokens(&mut self, input: &DecodeInput<'_>) {
        let window = input.window;
        let firsts = FirstTokens::of(input);
        self.ttft_s = Summary::of(firsts.all);
        self.ttft_burst_s = Summary::of(firsts.burst);
        self.ttft_steady_s = Summary::of(firsts.steady);
        self.ttft_cold_s = Summary::of(firsts.cold);
        if let Load::Open(_) = input.load {
            let due = || input.good().filter(|trace| window.contains(trace.scheduled));
            let waited = |trace: &RequestTrace| Some(trace.first_arrival()?.since(trace.scheduled).as_secs_f64());
            self.ttft_scheduled_s = Summary::of(due().filter_map(waited));
            let whole = |trace: &RequestTrace| {
                let completed = matches!(trace.end, RequestEnd::Completed { .. });
                Some(trace.last_arrival().filter(|_| completed)?.since(trace.scheduled).as_secs_f64())
            };
            self.e2e_scheduled_s = Summary::of(due().filter_map(whole));
        }
        let completed = self.requests.map(|counts| counts.completed as f64);
        self.request_rate = completed.zip(self.measured_for_s).map(|(completed, secs)| completed / secs);
    }

    fn fill_gaps(&mut self, window: Window, counted: &[Counted<'_>]) {
        self.time_between_tokens_s = Summary::of(counted.iter().filter_map(|c| c.tpot_secs(window)));
        self.itl_s = Summary::of_weighted(counted.iter().flat_map(|c| c.itl(window)));
        let gaps = counted.iter().flat_map(|c| {
            let times = c.trace.arrivals.iter().map(|arrival| arrival.at);
            let pairs = times.clone().zip(times.skip(1));
            pairs.filter(|(_, at)| window.contains(*at)).map(|(before, at)| at.since(before).as_secs_f64())
        });
        self.chunk_gap_s = Summary::of(gaps);
        let done = counted.iter().map(|c| c.trace).filter(|trace| window.contains(trace.ended));
        self.e2e_latency_s = Summary::of(done.filter_map(request::e2e_secs));
    }

    pub(super) fn fill_prompt(&mut self, good: &[&RequestTrace]) {
        self.upload_s = Summary::of(good.iter().filter_map(|trace| request::upload_secs(trace)));
        let usages = || good.iter().filter_map(|trace| trace.usage);
        let prompts = usages().filter_map(|usage| usage.prompt_tokens);
        self.prompt_tokens = Summary::of(prompts.map(|tokens| tokens as f64)).map(|s| s.p50.round() as u64);
        let both = usages().filter_map(|usage| Some((usage.cached_tokens?, usage.prompt_tokens?)));
        let (cached, all) = both.fold((0, 0), |(c, p), (cached, prompt)| (c + cached, p + prompt));
        self.cached_share = (all > 0).then(|| cached as f64 / all as f64);
    }

    pub(super) fn fill_client(&mut self, good: &[&RequestTrace], window: Window) {
        let arrivals = good.iter().flat_map(|trace| &trace.arrivals).filter(|arrival| window.contains(arrival.at));
        self.client_lag_s = Summary::of(arrivals.map(|arrival| f64::from(arrival.late_ns) / 1e9));
        let reads: usize = good.iter().map(|trace| trace.arrivals.len()).sum();
        let coalesced: u64 = good.iter().map(|trace| u64::from(trace.coalesced_reads)).sum();
        self.coalesced_share = (reads > 0).then(|| coalesced as f64 / reads as f64);
        let by_process = good.iter().any(|trace| trace.stamps == StampSource::Process);
        let source = if by_process { StampSource::Process } else { StampSource::Kernel };
        self.stamps = (reads > 0).then_some(source);
    }
}

impl CellStats {
    /// The bound of the client's error of a TTFT (method §7): what the check before the run found, and what may be wrong
    /// beside: with stamps of this process its lateness, with stamps of the kernel an event for each shared stamp.
    fn fill_trust(&mut self, client: ClientWatch) {
        self.client_cpu_share = client.cpu_share;
        self.timer_lag_p99_s = client.timer_lag_p99_s;
        let beside = match self.stamps {
            Some(StampSource::Process) => self.client_lag_s.map(|lag| lag.p99.unwrap_or(lag.max)),
            Some(StampSource::Kernel) => self.coalesced_share.zip(self.chunk_gap_s).map(|(share, gap)| share * gap.p50),
            None => None,
        };
        self.ttft_error_bound_s = client.ttft_bias_s.zip(beside).map(|(bias, beside)| bias.abs() + beside);
    }
}

/// Tokens in the window, one value per slot, 0 for a slot without any.
fn slot_tokens(input: &DecodeInput<'_>, counted: &[Counted<'_>]) -> Vec<f64> {
    let mut slots = vec![0.0; input.concurrency.get() as usize];
    for one in counted {
        if let Some(slot) = slots.get_mut(one.trace.slot as usize) {
            let inside = one.arrivals().filter(|(at, _)| input.window.contains(*at));
            *slot += inside.map(|(_, tokens)| tokens).sum::<f64>();
        }
    }
    slots
}

/// Tokens per second while text flows, one value per slot that tells enough.
pub(crate) fn slot_speeds(window: Window, counted: &[Counted<'_>]) -> Vec<f64> {
    let mut slots: BTreeMap<u32, (f64, Nanos)> = BTreeMap::new();
    for c in counted {
        let (tokens, time) = c.flow_in(window);
        let slot = slots.entry(c.trace.slot).or_default();
        *slot = (slot.0 + tokens, slot.1 + time);
    }
    let tells = |(tokens, time): &(f64, Nanos)| {
        *time >= request::SHORTEST_SPAN && (*time >= SLOT_FROM || *tokens >= SLOT_FROM_TOKENS)
    };
    slots.into_values().filter(tells).map(|(tokens, time)| tokens / time.as_secs_f64()).collect()
}

fn count_requests(input: &DecodeInput<'_>) -> RequestCounts {
    let mut counts = RequestCounts { started: input.traces.len() as u64, ..RequestCounts::default() };
    for trace in input.traces {
        match trace.end {
            RequestEnd::Completed { .. } if input.window.contains(trace.ended) => counts.completed += 1,
            RequestEnd::Completed { .. } => {}
            RequestEnd::Cut => counts.cut += 1,
            RequestEnd::Failed(_) => counts.failed += 1,
        }
    }
    counts
}

fn gauge(series: &[(Nanos, f64)], window: Window) -> Option<GaugeSummary> {
    let inside = series.iter().filter(|(at, _)| window.contains(*at)).map(|(_, value)| *value);
    let summary = Summary::of(inside)?;
    Some(GaugeSummary { n: summary.n as u32, mean: summary.mean, max: summary.max })
}
