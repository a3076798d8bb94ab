//! When the window may open (method §3): a pure rule over what the slots do, polled by the cell.

use speedmatrix_shared::units::Nanos;

use crate::client::SlotState;

/// How long every slot must have had a token, apart from restarts.
const HOLD: Nanos = Nanos::from_secs(3);
/// Slots that may be between two requests while the others hold, of all; at least one, because with fewer than 20
/// slots 5 % would allow no restart at all.
const RESTARTS_SHARE: f64 = 0.05;
/// Shortest budget of a ramp.
const LEAST_BUDGET: Nanos = Nanos::from_secs(60);
/// A slot's first token extends the budget by at least this much.
const LEAST_EXTENSION: Nanos = Nanos::from_secs(20);
/// Times the cached-admission time: for the budget with all slots, for an extension with one.
const ADMISSIONS: u64 = 3;
/// Requests that every slot has ended by when the load has surely turned over. Outputs shorter than the hold never hold;
/// then this opens the window instead.
const TURNOVERS: u32 = 2;

/// Where a ramp stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampState {
    /// Not yet.
    Going,
    /// The window may open.
    Ready,
    /// The budget is used up: the window opens anyway, and the cell says so.
    Expired,
}

/// The rule with its memory.
#[derive(Debug)]
pub struct Ramp {
    hold: Nanos,
    slots: Vec<Slot>,
    held_since: Option<Nanos>,
    deadline: Nanos,
    extension: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    had_token: bool,
    ended_requests: u32,
}

impl Ramp {
    /// A ramp of `slots` that starts at `start`, before a window of length `window`. `admission` is how long one cached
    /// request took to its first token, if that was measured.
    pub fn new(start: Nanos, slots: usize, window: Nanos, admission: Option<Nanos>) -> Self {
        let admissions = |count: u64| Nanos(admission.map_or(0, |one| one.0.saturating_mul(ADMISSIONS * count)));
        Self {
            // A short window is preceded by a short hold: else a 1 s cell would spend most of its time waiting.
            hold: HOLD.min(Nanos(window.0 / 2)),
            slots: vec![Slot::default(); slots],
            held_since: None,
            deadline: start + LEAST_BUDGET.max(admissions(slots as u64)),
            extension: LEAST_EXTENSION.max(admissions(1)),
        }
    }

    /// A request of `slot` is over.
    pub fn ended(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.ended_requests += 1;
        }
    }

    /// Looks at the slots at `now`. `waiting` is the engine's own queue, if it tells.
    pub fn poll(&mut self, now: Nanos, states: impl Iterator<Item = SlotState>, waiting: Option<f64>) -> RampState {
        let mut idle = 0;
        for (slot, state) in self.slots.iter_mut().zip(states) {
            if state != SlotState::Decoding {
                idle += 1;
            } else if !slot.had_token {
                slot.had_token = true;
                self.deadline = self.deadline.max(now + self.extension);
            }
        }
        let pending = self.slots.iter().any(|slot| !slot.had_token);
        let restarts_allowed = ((self.slots.len() as f64 * RESTARTS_SHARE) as usize).max(1);
        if pending || idle > restarts_allowed {
            self.held_since = None;
        } else if idle == 0 {
            self.held_since.get_or_insert(now);
        }
        let held = self.held_since.is_some_and(|since| now.since(since) >= self.hold);
        let turned_over = !pending && self.slots.iter().all(|slot| slot.ended_requests >= TURNOVERS);
        if (held || turned_over) && waiting.is_none_or(|waiting| waiting <= 0.0) {
            RampState::Ready
        } else if now >= self.deadline {
            RampState::Expired
        } else {
            RampState::Going
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: SlotState = SlotState::Decoding;
    const S: SlotState = SlotState::Sent;

    fn secs(secs: f64) -> Nanos {
        Nanos::from_secs_f64(secs)
    }

    /// Polls at the given seconds; all but the last must be going.
    fn check(ramp: &mut Ramp, polls: &[(f64, &[SlotState])], last: RampState) {
        for (n, (at, states)) in polls.iter().enumerate() {
            let state = ramp.poll(secs(*at), states.iter().copied(), None);
            let want = if n + 1 == polls.len() { last } else { RampState::Going };
            assert_eq!(state, want, "at {at} s");
        }
    }

    fn ramp(slots: usize) -> Ramp {
        Ramp::new(Nanos(0), slots, Nanos::from_secs(30), None)
    }

    #[test]
    fn ready_when_all_have_a_token_for_three_seconds() {
        check(&mut ramp(2), &[(0.1, &[S, S]), (1.0, &[D, S]), (2.0, &[D, D]), (5.0, &[D, D])], RampState::Ready);
        check(&mut ramp(2), &[(2.0, &[D, D]), (4.9, &[D, D])], RampState::Going);
    }

    #[test]
    fn one_restart_at_a_time_does_not_matter_but_two_do() {
        check(&mut ramp(4), &[(1.0, &[D; 4]), (2.0, &[D, S, D, D]), (4.0, &[D; 4])], RampState::Ready);
        check(&mut ramp(4), &[(1.0, &[D; 4]), (2.0, &[D, S, S, D]), (4.0, &[D; 4])], RampState::Going);
    }

    #[test]
    fn a_slot_that_never_had_a_token_is_no_restart() {
        check(&mut ramp(2), &[(1.0, &[D, S]), (59.0, &[D, S]), (60.0, &[D, S])], RampState::Expired);
    }

    #[test]
    fn first_tokens_extend_the_budget() {
        let polls: &[(f64, &[SlotState])] =
            &[(1.0, &[D, S, S]), (59.0, &[D, D, S]), (78.9, &[D, D, S]), (79.0, &[D, D, S])];
        check(&mut ramp(3), polls, RampState::Expired);
        let mut slow = Ramp::new(Nanos(0), 2, Nanos::from_secs(30), Some(Nanos::from_secs(50)));
        check(&mut slow, &[(299.0, &[S, S]), (300.0, &[S, S])], RampState::Expired);
    }

    #[test]
    fn the_engines_queue_keeps_it_going() {
        let mut ramp = ramp(1);
        assert_eq!(ramp.poll(secs(1.0), [D].into_iter(), Some(0.0)), RampState::Going);
        assert_eq!(ramp.poll(secs(5.0), [D].into_iter(), Some(2.0)), RampState::Going);
        assert_eq!(ramp.poll(secs(6.0), [D].into_iter(), Some(0.0)), RampState::Ready);
    }

    #[test]
    fn a_short_window_has_a_short_hold() {
        let mut short = Ramp::new(Nanos(0), 1, Nanos::from_secs(1), None);
        check(&mut short, &[(0.1, &[D]), (0.6, &[D])], RampState::Ready);
    }

    #[test]
    fn short_outputs_open_the_window_by_turning_over() {
        let mut ramp = ramp(2);
        check(&mut ramp, &[(0.1, &[D, D]), (0.2, &[S, S]), (0.3, &[D, D])], RampState::Going);
        for slot in [0, 1, 0] {
            ramp.ended(slot);
        }
        check(&mut ramp, &[(0.4, &[S, S])], RampState::Going);
        ramp.ended(1);
        check(&mut ramp, &[(0.5, &[S, D])], RampState::Ready);
    }
}
