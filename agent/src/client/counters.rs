//! What a running request tells while it runs: relaxed counters, one writer, read by the measuring loop.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// No request in flight.
    Idle,
    /// A request is in flight and has no token yet.
    Sent,
    /// Its first token has come.
    Decoding,
}

/// Counters of one slot, over all its requests. They are written by the slot's worker only.
#[derive(Debug, Default)]
pub struct SlotCounters {
    tokens: AtomicU64,
    state: AtomicU8,
}

impl SlotCounters {
    /// What the slot is doing.
    pub fn state(&self) -> SlotState {
        match self.state.load(Relaxed) {
            0 => SlotState::Idle,
            1 => SlotState::Sent,
            _ => SlotState::Decoding,
        }
    }

    /// Tokens so far over all requests of the slot, an estimate that never falls: the server's count where its chunks
    /// carry one, else events with text.
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Relaxed)
    }

    pub(crate) fn set_state(&self, state: SlotState) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn set_tokens(&self, tokens: u64) {
        self.tokens.store(tokens, Relaxed);
    }
}
