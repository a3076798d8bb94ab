//! The simulated engine without its sockets: a queue, a prefill, a batch and their events in simulated time.
//!
//! Every event has an absolute due time computed from the one before, so processing an event late shifts nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use rand_chacha::ChaCha8Rng;

use super::cache::{BLOCK_TOKENS, KvMemory, Release};
use super::clock::SimTime;
use super::config::SimConfig;
use super::physics::{Acceptance, BatchPhysics, Physics, Speculation};
use super::sequence::{Happening, Load, More, Order, Sequence, State, What};
use super::text::{Purpose, log_normal, seeded};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(u64),
    Prefilled(u64),
    /// A step of one request (fixed physics).
    Step(u64),
    /// A step of the batch.
    BatchStep,
}

#[derive(Debug)]
pub(super) struct Scheduler {
    physics: Physics,
    speculation: Option<Speculation>,
    max_sequences: usize,
    memory: KvMemory,
    sequences: BTreeMap<u64, Sequence>,
    /// Events by due time; the number keeps equal times in order of their making.
    events: BinaryHeap<Reverse<(SimTime, u64, Event)>>,
    next_event: u64,
    waiting: VecDeque<u64>,
    admitted: usize,
    /// The request whose prefill runs, with its computed tokens (batch physics).
    prefilling: Option<(u64, u64)>,
    /// Requests of the current batch step, and those that wait for the next one.
    batch: Vec<u64>,
    joining: Vec<u64>,
    /// Whether a batch step is among the events.
    stepping: bool,
    /// Prompt tails and generated tokens of admitted requests.
    private_tokens: u64,
    step_noise: ChaCha8Rng,
}

/// The limits and laws of a scheduler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laws {
    pub(super) physics: Physics,
    pub(super) speculation: Option<Speculation>,
    pub(super) max_sequences: usize,
    pub(super) kv_tokens: u64,
    pub(super) seed: u64,
}

impl Laws {
    pub(super) fn of(config: &SimConfig) -> Self {
        Self {
            physics: config.physics,
            speculation: config.speculation,
            max_sequences: config.max_sequences,
            kv_tokens: config.kv_tokens,
            seed: config.seed,
        }
    }
}

impl Scheduler {
    pub(super) fn new(laws: &Laws) -> Self {
        Self {
            physics: laws.physics,
            speculation: laws.speculation,
            max_sequences: laws.max_sequences,
            memory: KvMemory::new(laws.kv_tokens),
            sequences: BTreeMap::new(),
            events: BinaryHeap::new(),
            next_event: 0,
            waiting: VecDeque::new(),
            admitted: 0,
            prefilling: None,
            batch: Vec::new(),
            joining: Vec::new(),
            stepping: false,
            private_tokens: 0,
            step_noise: seeded([laws.seed, 0, 0, Purpose::Engine as u64]),
        }
    }

    /// Takes a request; what comes of it is told by [`Self::advance`].
    pub(super) fn submit(&mut self, mut order: Order) {
        let arrival = match &self.physics {
            Physics::Fixed { .. } => order.received,
            Physics::Batch(batch) => order.received.after(batch.frontend()),
        };
        let acceptance = self.speculation.map(|speculation| Acceptance::draw(&speculation, &mut order.rng));
        self.plan(arrival, Event::Arrive(order.id));
        self.sequences.insert(order.id, Sequence { order, state: State::Arriving, acceptance, emitted: 0 });
    }

    /// Ends a request at `now` wherever it is; its slot and memory are free at once.
    pub(super) fn abort(&mut self, id: u64, now: SimTime, out: &mut VecDeque<Happening>) {
        self.remove(id);
        self.admit(now, out);
    }

    /// When the next event is due.
    pub(super) fn next_due(&self) -> Option<SimTime> {
        self.events.peek().map(|Reverse((due, _, _))| *due)
    }

    /// Processes the events that are due by `now`, and stops early once `out` holds `enough` (a batch step is one event
    /// and may overshoot).
    pub(super) fn advance(&mut self, now: SimTime, enough: usize, out: &mut VecDeque<Happening>) {
        while out.len() < enough && self.next_due().is_some_and(|due| due <= now) {
            let Some(Reverse((due, _, event))) = self.events.pop() else {
                return;
            };
            match event {
                Event::Arrive(id) => self.arrive(id, due, out),
                Event::Prefilled(id) => self.prefilled(id, due, out),
                Event::Step(id) => self.step(id, due, out),
                Event::BatchStep => self.batch_step(due, out),
            }
        }
    }

    pub(super) fn load(&self) -> Load {
        Load {
            running: self.admitted as u64,
            waiting: self.waiting.len() as u64,
            kv_tokens: self.memory.held_tokens() + self.private_tokens,
        }
    }

    fn plan(&mut self, due: SimTime, event: Event) {
        self.events.push(Reverse((due, self.next_event, event)));
        self.next_event += 1;
    }

    fn arrive(&mut self, id: u64, due: SimTime, out: &mut VecDeque<Happening>) {
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.state = State::Waiting;
            self.waiting.push_back(id);
            self.admit(due, out);
        }
    }

    /// Admits from the head of the queue while slots, memory and (in a batch) the prefill are free: first in, first out.
    fn admit(&mut self, at: SimTime, out: &mut VecDeque<Happening>) {
        while self.admitted < self.max_sequences && self.prefilling.is_none() {
            let Some(id) = self.waiting.front().copied() else {
                return;
            };
            let sequence = self.sequences.get_mut(&id).expect("the queue holds living requests");
            let reserve = sequence.reserve_tokens();
            let Some(cached_blocks) = self.memory.admit(&sequence.order.blocks, reserve) else {
                return;
            };
            self.waiting.pop_front();
            self.admitted += 1;
            self.private_tokens += sequence.order.tail_tokens();
            // The last prompt token is always computed: its output is the first token.
            let cached_tokens = (cached_blocks as u64 * BLOCK_TOKENS).min(sequence.order.prompt_tokens - 1);
            let prompt_tokens = sequence.order.prompt_tokens;
            let took = match &self.physics {
                Physics::Fixed { first_token, .. } => *first_token,
                Physics::Batch(batch) => {
                    self.prefilling = Some((id, batch.computed_tokens(prompt_tokens, cached_tokens)));
                    batch.prefill_time(prompt_tokens, cached_tokens)
                }
            };
            let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            sequence.state = State::Prefilling { cached_blocks, took_ns };
            // A request may arrive late at a free slot, but never before it was received.
            let start = at.max(sequence.order.received);
            out.push_back(Happening { id, due: start, what: What::Admitted { cached_tokens } });
            self.plan(start.after(took), Event::Prefilled(id));
        }
    }

    fn prefilled(&mut self, id: u64, due: SimTime, out: &mut VecDeque<Happening>) {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return;
        };
        let State::Prefilling { cached_blocks, took_ns } = sequence.state else {
            return;
        };
        sequence.state = State::Decoding { cached_blocks };
        let cached_tokens = cached_blocks as u64 * BLOCK_TOKENS;
        let computed_tokens = sequence.order.prompt_tokens.saturating_sub(cached_tokens).max(1);
        out.push_back(Happening { id, due, what: What::Prefilled { took_ns, computed_tokens } });
        let more = self.emit(id, due, out);
        match self.physics {
            Physics::Fixed { step, .. } => {
                if more == More::Yes {
                    self.plan(due.after(step), Event::Step(id));
                }
            }
            Physics::Batch(physics) => {
                self.prefilling = None;
                if more == More::Yes {
                    self.joining.push(id);
                }
                self.admit(due, out);
                if !self.stepping {
                    self.begin_step(&physics, due);
                }
            }
        }
    }

    fn step(&mut self, id: u64, due: SimTime, out: &mut VecDeque<Happening>) {
        let Physics::Fixed { step, .. } = self.physics else {
            return;
        };
        if self.sequences.contains_key(&id) && self.emit(id, due, out) == More::Yes {
            self.plan(due.after(step), Event::Step(id));
        }
    }

    fn batch_step(&mut self, due: SimTime, out: &mut VecDeque<Happening>) {
        let Physics::Batch(physics) = self.physics else {
            return;
        };
        self.stepping = false;
        for id in std::mem::take(&mut self.batch) {
            if self.sequences.contains_key(&id) && self.emit(id, due, out) == More::Yes {
                self.batch.push(id);
            }
        }
        self.admit(due, out);
        self.begin_step(&physics, due);
    }

    /// Begins a step of all decoding requests at `at`, if there are any.
    fn begin_step(&mut self, physics: &BatchPhysics, at: SimTime) {
        self.batch.append(&mut self.joining);
        let sequences = &self.sequences;
        self.batch.retain(|id| sequences.contains_key(id));
        if self.batch.is_empty() {
            return;
        }
        let context: u64 = self.batch.iter().filter_map(|id| sequences.get(id)).map(Sequence::context_tokens).sum();
        let length = self.speculation.map_or(1.0, |speculation| speculation.mean_length);
        let slower =
            if self.prefilling.is_some_and(|(_, computed)| computed > 0) { physics.prefill_slowdown } else { 1.0 };
        let noise = match physics.step_sigma {
            0.0 => 1.0,
            sigma => log_normal(1.0, sigma, &mut self.step_noise),
        };
        let time = physics.token_time(self.batch.len(), context).mul_f64(length * slower * noise);
        self.stepping = true;
        self.plan(at.after(time), Event::BatchStep);
    }

    /// Gives a decoding request one step's tokens and ends it after its last one.
    fn emit(&mut self, id: u64, due: SimTime, out: &mut VecDeque<Happening>) -> More {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return More::No;
        };
        let left = sequence.order.output_tokens - sequence.emitted;
        // The prefill's own token comes without a draft.
        let (drafted, accepted) = match &sequence.acceptance {
            Some(acceptance) if sequence.emitted > 0 => {
                let kept = u64::from(acceptance.step(&mut sequence.order.rng)).min(left - 1);
                (acceptance.draft_tokens(), kept as u32)
            }
            _ => (0, 0),
        };
        let tokens = 1 + u64::from(accepted);
        sequence.emitted += tokens;
        self.private_tokens += tokens;
        let more = if tokens < left { More::Yes } else { More::No };
        out.push_back(Happening { id, due, what: What::Tokens { tokens, drafted, accepted, more } });
        if more == More::No {
            self.remove(id);
            if matches!(self.physics, Physics::Fixed { .. }) {
                self.admit(due, out);
            }
        }
        more
    }

    fn remove(&mut self, id: u64) {
        let Some(sequence) = self.sequences.remove(&id) else {
            return;
        };
        let (cached_blocks, release) = match sequence.state {
            State::Arriving => return,
            State::Waiting => {
                self.waiting.retain(|waiting| *waiting != id);
                return;
            }
            State::Prefilling { cached_blocks, .. } => (cached_blocks, Release::Forget),
            State::Decoding { cached_blocks } => (cached_blocks, Release::Keep),
        };
        if self.prefilling.is_some_and(|(prefilling, _)| prefilling == id) {
            self.prefilling = None;
        }
        self.admitted -= 1;
        self.private_tokens -= sequence.order.tail_tokens() + sequence.emitted;
        self.memory.release(&sequence.order.blocks, cached_blocks, sequence.reserve_tokens(), release);
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
