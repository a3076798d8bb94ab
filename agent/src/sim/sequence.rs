//! The words between engine and scheduler: what is ordered, what happens to it, and how far it is.

use rand_chacha::ChaCha8Rng;

use super::cache::BLOCK_TOKENS;
use super::clock::SimTime;
use super::physics::Acceptance;

/// What the engine needs to know about a request.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) id: u64,
    pub(super) received: SimTime,
    pub(super) prompt_tokens: u64,
    /// Hashes of the prompt's full blocks.
    pub(super) blocks: Vec<u64>,
    /// Tokens that it will generate, at least 1.
    pub(super) output_tokens: u64,
    /// Draws the accepted draft tokens.
    pub(super) rng: ChaCha8Rng,
}

/// Something that happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Happening {
    pub(super) id: u64,
    /// When it happened, on the schedule.
    pub(super) due: SimTime,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It left the queue; its prefill began.
    Admitted { cached_tokens: u64 },
    /// Its prompt is computed; `took_ns` of simulated time for `computed_tokens`.
    Prefilled { took_ns: u64, computed_tokens: u64 },
    /// One step brought it `tokens`.
    Tokens { tokens: u64, drafted: u32, accepted: u32, more: More },
}

/// Whether further tokens come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Yes,
    No,
}

/// What the engine's gauges show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load {
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) kv_tokens: u64,
}

/// A request inside of the scheduler.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) order: Order,
    pub(super) state: State,
    pub(super) acceptance: Option<Acceptance>,
    /// Tokens generated so far.
    pub(super) emitted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Arriving,
    Waiting,
    Prefilling { cached_blocks: usize, took_ns: u64 },
    Decoding { cached_blocks: usize },
}

impl Order {
    /// Prompt tokens outside of full blocks.
    pub(super) fn tail_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_sub(self.blocks.len() as u64 * BLOCK_TOKENS)
    }
}

impl Sequence {
    /// Memory set aside at admission: the whole output, so that a running request never has to be preempted.
    pub(super) fn reserve_tokens(&self) -> u64 {
        self.order.tail_tokens() + self.order.output_tokens
    }

    pub(super) fn context_tokens(&self) -> u64 {
        self.order.prompt_tokens + self.emitted
    }
}
