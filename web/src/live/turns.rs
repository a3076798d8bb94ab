//! When the parts of a report look at a run again. A part weighs all cells, and of a run of 1,000 that costs more than a
//! frame has: each part has its turn, one after the other, and no part has two within two seconds.

use std::time::Duration;

use leptos::prelude::*;

/// Turns until all parts had one.
const TURNS: usize = 20;
/// From one turn to the next.
const TURN: Duration = Duration::from_millis(100);

/// The turns of a run's page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turns(StoredValue<Clock>);

#[derive(Debug)]
struct Clock {
    turns: [ArcTrigger; TURNS],
    /// Parts that have asked for a turn.
    given: usize,
    /// Turns that are still to come until every part has seen the latest; `None` while the clock stands.
    left: Option<usize>,
}

impl Turns {
    pub(super) fn new() -> Self {
        let turns = std::array::from_fn(|_| ArcTrigger::new());
        Self(StoredValue::new(Clock { turns, given: 0, left: None }))
    }

    /// A turn for a part.
    pub(super) fn give(self) -> ArcTrigger {
        let turn = self.0.try_update_value(|clock| {
            clock.given += 1;
            clock.turns[clock.given % TURNS].clone()
        });
        // A page that has gone has no turns to give.
        turn.unwrap_or_default()
    }

    /// Something changed: every part has a turn within two seconds.
    pub(super) fn changed(self) {
        let stood = self.0.try_update_value(|clock| clock.left.replace(TURNS).is_none());
        if stood == Some(true) {
            self.after(0);
        }
    }

    /// All parts look again at once.
    pub(super) fn all(self) {
        let turns = self.0.try_update_value(|clock| {
            clock.left = clock.left.map(|_| 0);
            clock.turns.clone()
        });
        for turn in turns.iter().flatten() {
            turn.notify();
        }
    }

    fn after(self, place: usize) {
        set_timeout(move || self.take(place), TURN);
    }

    /// The turn at this place; the clock stands when nothing is left, and ends with the page.
    fn take(self, place: usize) {
        let turn = self.0.try_update_value(|clock| {
            clock.left = clock.left.and_then(|left| left.checked_sub(1));
            clock.left.is_some().then(|| clock.turns[place].clone())
        });
        if let Some(turn) = turn.flatten() {
            turn.notify();
            self.after((place + 1) % TURNS);
        }
    }
}
