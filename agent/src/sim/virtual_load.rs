//! A closed loop of C slots on the simulator's scheduler, in simulated time: no sockets, no clock, no waiting, so that
//! hundreds of cells pass in seconds. It tells what a perfect client would have seen; what is measured from that can be
//! compared with the laws of the physics.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use speedmatrix_shared::plan::PromptMode;
use speedmatrix_shared::trace::{Arrival, FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource, Usage};
use speedmatrix_shared::units::{Concurrency, Context, Nanos};

use super::cache::BLOCK_TOKENS;
use super::clock::SimTime;
use super::config::{SimConfig, UsageStyle};
use super::generate::LENGTH_SIGMA;
use super::schedule::{Laws, Scheduler};
use super::sequence::{Happening, More, Order, What};
use super::text::{Purpose, log_normal, seeded};

/// Tokens of the question at the end of each prompt: no cache block holds them.
const QUESTION_TOKENS: u64 = 40;
/// Prompt of somebody else's requests, tokens.
const FOREIGN_PROMPT_TOKENS: u64 = 300;
/// From one look at the engine's gauges to the next.
const SCRAPE_EVERY: Nanos = Nanos::from_secs(1);
/// Pause of a slot after a request that failed.
const FAILURE_PAUSE: Nanos = Nanos::from_secs(1);
/// Documents of single requests are numbered from here on, those of slots below.
const FIRST_FRESH_DOCUMENT: u64 = 1 << 20;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualPlan {
    /// Slots.
    pub concurrency: Concurrency,
    /// Tokens of each prompt.
    pub context: Context,
    /// How prompts relate to each other.
    pub prompts: PromptMode,
    /// How long answers are.
    pub outputs: Outputs,
    /// Short requests of somebody else that run beside ours all the time.
    pub foreign: u32,
    /// Which requests break off.
    pub breaks: Option<Breaks>,
    /// How late the client reads, nanoseconds, if it stamps its reads itself; `None`: the kernel stamps.
    pub process_lag_ns: Option<u32>,
}

/// How long answers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// Always this many tokens.
    Exactly(u64),
    /// As the model's texts end, within a limit.
    Drawn {
        /// Most tokens.
        at_most: u64,
    },
}

/// Requests whose connection is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaks {
    /// Every how many of our requests.
    pub every: u64,
    /// After how many tokens.
    pub after_tokens: u64,
}

impl VirtualPlan {
    /// A plan of well-behaved requests on a shared document.
    pub const fn new(concurrency: Concurrency, context: Context, outputs: Outputs) -> Self {
        let prompts = PromptMode::Shared;
        Self { concurrency, context, prompts, outputs, foreign: 0, breaks: None, process_lag_ns: None }
    }
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct VirtualRecord {
    /// All requests of ours from the first send on; those that were not over were cut.
    pub traces: Vec<RequestTrace>,
    /// The requests that filled the cache before.
    pub scouts: Vec<RequestTrace>,
    /// First send.
    pub ramp_start: Nanos,
    /// The engine's running requests, once a second.
    pub running: Vec<(Nanos, f64)>,
    /// The engine's waiting requests.
    pub waiting: Vec<(Nanos, f64)>,
    /// The used share of its memory.
    pub kv_usage: Vec<(Nanos, f64)>,
}

/// A load that runs: advance it, look at its slots, finish it.
#[derive(Debug)]
pub struct VirtualLoad {
    scheduler: Scheduler,
    config: SimConfig,
    plan: VirtualPlan,
    now: Nanos,
    next_id: u64,
    happenings: VecDeque<Happening>,
    flights: BTreeMap<u64, Flight>,
    /// Slots whose next request is sent at these times, in order of time.
    pauses: VecDeque<(Nanos, u32)>,
    slots: Vec<Slot>,
    next_scrape: Nanos,
    record: VirtualRecord,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    has_token: HasToken,
    ended: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HasToken {
    #[default]
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Scout,
    Slot(u32),
    Foreign,
}

#[derive(Debug)]
struct Flight {
    owner: Owner,
    sent: Nanos,
    prompt_tokens: u64,
    cached_tokens: u64,
    tokens: u64,
    breaks_after: Option<u64>,
    arrivals: Vec<Arrival>,
}

impl VirtualLoad {
    /// Fills the cache as the prompts ask for, then sends all requests together.
    pub fn start(config: &SimConfig, plan: VirtualPlan) -> Self {
        let record = VirtualRecord {
            traces: Vec::new(),
            scouts: Vec::new(),
            ramp_start: Nanos(0),
            running: Vec::new(),
            waiting: Vec::new(),
            kv_usage: Vec::new(),
        };
        let mut load = Self {
            scheduler: Scheduler::new(&Laws::of(config)),
            config: config.clone(),
            plan,
            now: Nanos(0),
            next_id: 1,
            happenings: VecDeque::new(),
            flights: BTreeMap::new(),
            pauses: VecDeque::new(),
            slots: vec![Slot::default(); plan.concurrency.get() as usize],
            next_scrape: Nanos(u64::MAX),
            record,
        };
        let documents = match plan.prompts {
            PromptMode::Shared | PromptMode::Mixed(_) => 1,
            PromptMode::Unique => plan.concurrency.get(),
            PromptMode::Cold => 0,
        };
        for document in 0..documents {
            load.send(Owner::Scout, u64::from(document));
            while let Some(due) = load.scheduler.next_due() {
                load.step(Nanos(due.as_nanos()));
            }
        }
        load.record.ramp_start = load.now;
        load.next_scrape = load.now;
        for slot in 0..plan.concurrency.get() {
            load.send_slot(slot);
        }
        for _ in 0..plan.foreign {
            load.send(Owner::Foreign, FIRST_FRESH_DOCUMENT);
        }
        load
    }

    /// Simulated time.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// For each slot, whether its current request has a token.
    pub fn decoding(&self) -> impl Iterator<Item = bool> {
        self.slots.iter().map(|slot| slot.has_token == HasToken::Yes)
    }

    /// For each slot, how many of its requests are over.
    pub fn ended(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().map(|slot| slot.ended)
    }

    /// Requests that wait in the engine.
    pub fn waiting(&self) -> u64 {
        self.scheduler.load().waiting
    }

    /// Lets time pass.
    pub fn advance_to(&mut self, until: Nanos) {
        loop {
            let engine = self.scheduler.next_due().map(|due| Nanos(due.as_nanos()));
            let pause = self.pauses.front().map(|(at, _)| *at);
            let next = [engine, pause, Some(self.next_scrape)].into_iter().flatten().min();
            match next {
                Some(at) if at <= until => self.step(at),
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    /// Cuts what still runs, and tells all.
    pub fn finish(mut self) -> VirtualRecord {
        for flight in std::mem::take(&mut self.flights).into_values() {
            self.close(flight, self.now, RequestEnd::Cut);
        }
        self.record
    }

    fn step(&mut self, at: Nanos) {
        self.now = at;
        self.scheduler.advance(SimTime::from_nanos(at.0), usize::MAX, &mut self.happenings);
        while let Some(happening) = self.happenings.pop_front() {
            self.happen(happening);
        }
        while let Some((_, slot)) = self.pauses.pop_front_if(|(due, _)| *due <= at) {
            self.send_slot(slot);
        }
        if self.next_scrape <= at {
            let load = self.scheduler.load();
            self.record.running.push((at, load.running as f64));
            self.record.waiting.push((at, load.waiting as f64));
            self.record.kv_usage.push((at, load.kv_tokens as f64 / self.config.kv_tokens as f64));
            self.next_scrape = at + SCRAPE_EVERY;
        }
    }

    fn happen(&mut self, Happening { id, due, what }: Happening) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let at = Nanos(due.as_nanos());
        let (tokens, more) = match what {
            What::Admitted { cached_tokens } => {
                flight.cached_tokens = cached_tokens;
                return;
            }
            What::Prefilled { .. } => return,
            What::Tokens { tokens, more, .. } => (tokens, more),
        };
        flight.tokens += tokens;
        let told = (self.config.usage == UsageStyle::EveryChunk).then_some(flight.tokens);
        flight.arrivals.push(Arrival {
            at,
            usage_tokens: told.and_then(|tokens| NonZeroU32::new(u32::try_from(tokens).ok()?)),
            text_events: 1,
            late_ns: self.plan.process_lag_ns.unwrap_or(0),
        });
        let broken = flight.breaks_after.is_some_and(|after| flight.tokens >= after);
        if let Owner::Slot(slot) = flight.owner
            && let Some(slot) = self.slots.get_mut(slot as usize)
        {
            slot.has_token = HasToken::Yes;
        }
        if broken {
            self.scheduler.abort(id, due, &mut self.happenings);
            let text = "the connection was reset (simulated)".to_owned();
            let failure = RequestFailure { kind: FailureKind::ConnectionReset, http_status: Some(200), text };
            self.end(id, at, RequestEnd::Failed(failure));
        } else if more == More::No {
            self.end(id, at, RequestEnd::Completed { finish_reason: Some("length".to_owned()) });
        }
    }

    /// A request is over, and its owner sends the next one: at once, or after a pause if it failed.
    fn end(&mut self, id: u64, at: Nanos, end: RequestEnd) {
        let Some(flight) = self.flights.remove(&id) else { return };
        let owner = flight.owner;
        let failed = matches!(end, RequestEnd::Failed(_));
        self.close(flight, at, end);
        match owner {
            Owner::Scout => {}
            Owner::Foreign => self.send(Owner::Foreign, FIRST_FRESH_DOCUMENT),
            Owner::Slot(slot) => {
                if let Some(slot) = self.slots.get_mut(slot as usize) {
                    slot.has_token = HasToken::No;
                    slot.ended += 1;
                }
                if failed {
                    self.pauses.push_back((at + FAILURE_PAUSE, slot));
                } else {
                    self.send_slot(slot);
                }
            }
        }
    }

    fn send_slot(&mut self, slot: u32) {
        let document = match self.plan.prompts {
            PromptMode::Shared => 0,
            PromptMode::Unique => u64::from(slot),
            PromptMode::Cold | PromptMode::Mixed(_) => FIRST_FRESH_DOCUMENT + self.next_id,
        };
        self.send(Owner::Slot(slot), document);
    }

    fn send(&mut self, owner: Owner, document: u64) {
        let id = self.next_id;
        self.next_id += 1;
        let prompt_tokens = if owner == Owner::Foreign { FOREIGN_PROMPT_TOKENS } else { self.plan.context.tokens() };
        let random = |purpose: Purpose| seeded([self.config.seed, id, document, purpose as u64]);
        let drawn =
            log_normal(self.config.mean_output_tokens as f64, LENGTH_SIGMA, &mut random(Purpose::Length)) as u64;
        let output_tokens = match (owner, self.plan.outputs) {
            (Owner::Scout, _) => 1,
            (_, Outputs::Exactly(tokens)) => tokens.max(1),
            (_, Outputs::Drawn { at_most }) => drawn.clamp(1, at_most.max(1)),
        };
        let full_blocks = prompt_tokens.saturating_sub(QUESTION_TOKENS) / BLOCK_TOKENS;
        let shared_blocks = match self.plan.prompts {
            PromptMode::Mixed(shared) => (full_blocks as f64 * shared.share()) as u64,
            _ => 0,
        };
        let block = |number: u64| if number < shared_blocks { number } else { document << 32 | number };
        self.scheduler.submit(Order {
            id,
            received: SimTime::from_nanos(self.now.0),
            prompt_tokens,
            blocks: (0..full_blocks).map(block).collect(),
            output_tokens,
            rng: random(Purpose::Steps),
        });
        let breaks =
            self.plan.breaks.filter(|breaks| matches!(owner, Owner::Slot(_)) && id.is_multiple_of(breaks.every));
        let flight = Flight {
            owner,
            sent: self.now,
            prompt_tokens,
            cached_tokens: 0,
            tokens: 0,
            breaks_after: breaks.map(|breaks| breaks.after_tokens),
            arrivals: Vec::new(),
        };
        self.flights.insert(id, flight);
    }

    /// Writes down what the client knows of a request that is over.
    fn close(&mut self, flight: Flight, ended: Nanos, end: RequestEnd) {
        let (slot, book) = match flight.owner {
            Owner::Scout => (0, &mut self.record.scouts),
            Owner::Slot(slot) => (slot, &mut self.record.traces),
            Owner::Foreign => return,
        };
        let completed = matches!(end, RequestEnd::Completed { .. });
        let final_usage = Usage {
            prompt_tokens: Some(flight.prompt_tokens),
            completion_tokens: Some(flight.tokens),
            reasoning_tokens: None,
            // Chunks don't carry it, the final usage does.
            cached_tokens: Some(flight.cached_tokens).filter(|_| completed),
        };
        let usage = match self.config.usage {
            UsageStyle::EveryChunk => Some(final_usage).filter(|_| flight.tokens > 0),
            UsageStyle::FinalOnly => Some(final_usage).filter(|_| completed),
            UsageStyle::None => None,
        };
        let by_process = self.plan.process_lag_ns.is_some();
        book.push(RequestTrace {
            slot,
            scheduled: flight.sent,
            send_started: Some(flight.sent),
            send_finished: Some(flight.sent),
            headers_at: Some(flight.sent),
            first_content_at: flight.arrivals.first().map(|arrival| arrival.at),
            arrivals: flight.arrivals,
            ended,
            usage,
            usage_raw_completion_tokens: usage.and_then(|usage| usage.completion_tokens),
            coalesced_reads: 0,
            skipped_events: 0,
            stamps: if by_process { StampSource::Process } else { StampSource::Kernel },
            notes: Vec::new(),
            end,
        });
    }
}
