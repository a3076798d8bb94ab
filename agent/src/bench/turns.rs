//! Two runs on two servers take turns (method §6): whoever has no turn leaves its server alone. A turn is given when both
//! wait for one: to who is behind in the plan, and at the same place to who was drawn first. So the two go through the
//! plan side by side, and a run that gives a cell up, or ends, never holds up the other.

use std::sync::Arc;

use speedmatrix_shared::{
    event::LogLevel,
    id::CellId,
    plan::{CellOrder, Side},
};
use tokio::sync::watch;

use super::{
    Bench, Halt,
    drain::{Drained, drain},
};

/// How far a run is. Both runs have the same places, in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Time that the plan's cells are gone through, from 0.
    pub(super) round: u32,
    /// Number of the cell in its round, from 1.
    pub(super) number: u32,
    /// Time that the cell is measured in this round, from 0.
    pub(super) repeat: u32,
}

impl Place {
    /// Before the first cell: calibration and warm-up.
    pub(super) const START: Self = Self { round: 0, number: 0, repeat: 0 };
}

/// What a run wants at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// To measure.
    Measure,
    /// It knows enough of the cell, and measures it again only if the other one does: pairs stay pairs.
    Enough,
}

/// A run's place at the table. Dropped, the other run no longer waits for it.
#[derive(Debug)]
pub struct Seat {
    table: Option<(Arc<watch::Sender<Table>>, Side)>,
}

/// The right to use the server, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    table: Option<Arc<watch::Sender<Table>>>,
}

/// What both know.
#[derive(Debug)]
struct Table {
    chairs: [Chair; 2],
    is_taken: bool,
    /// Where both measure, once one of them wanted to.
    agreed: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chair {
    /// It has a turn, or is between two.
    Away,
    Waiting(Place, Wish),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Measure,
    Enough,
}

impl Seat {
    /// A run that no other one is made in turns with.
    pub const fn alone() -> Self {
        Self { table: None }
    }

    /// Seats for A and for B.
    pub fn pair() -> [Self; 2] {
        let table = Arc::new(watch::Sender::new(Table::new()));
        Side::BOTH.map(|side| Self { table: Some((Arc::clone(&table), side)) })
    }

    /// Waits for a turn; `None`: the cell is known well enough. `first` goes first if both are at this place.
    pub(super) async fn ask(&self, place: Place, first: Side, wish: Wish) -> Option<Turn> {
        let Some((table, side)) = &self.table else {
            return (wish == Wish::Measure).then_some(Turn { table: None });
        };
        let mut changes = table.subscribe();
        table.send_modify(|table| table.set(*side, Chair::Waiting(place, wish)));
        loop {
            changes.mark_unchanged();
            let mut answer = None;
            table.send_if_modified(|table| {
                answer = table.answer(*side, first);
                answer.is_some()
            });
            match answer {
                Some(Answer::Measure) => return Some(Turn { table: Some(Arc::clone(table)) }),
                Some(Answer::Enough) => return None,
                None => changes.changed().await.expect("this seat holds a sender"),
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((table, side)) = &self.table {
            table.send_modify(|table| table.set(*side, Chair::Gone));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            table.send_modify(|table| table.is_taken = false);
        }
    }
}

impl Table {
    const fn new() -> Self {
        Self { chairs: [Chair::Away; 2], is_taken: false, agreed: None }
    }

    const fn chair(&self, side: Side) -> Chair {
        let [a, b] = self.chairs;
        match side {
            Side::A => a,
            Side::B => b,
        }
    }

    const fn set(&mut self, side: Side, chair: Chair) {
        let [a, b] = &mut self.chairs;
        match side {
            Side::A => *a = chair,
            Side::B => *b = chair,
        }
    }

    /// What `side`, which waits, does now; `None`: it waits on.
    fn answer(&mut self, side: Side, first: Side) -> Option<Answer> {
        let Chair::Waiting(place, wish) = self.chair(side) else { return None };
        if self.is_taken {
            return None;
        }
        let has_agreed = self.agreed == Some(place);
        let measures = match self.chair(side.other()) {
            Chair::Away => return None,
            Chair::Waiting(other, _) if other < place => return None,
            Chair::Waiting(other, their_wish) if other == place => {
                let measures = has_agreed || [wish, their_wish].contains(&Wish::Measure);
                if measures && side != first {
                    return None;
                }
                measures
            }
            Chair::Waiting(..) | Chair::Gone => has_agreed || wish == Wish::Measure,
        };
        self.set(side, Chair::Away);
        if !measures {
            return Some(Answer::Enough);
        }
        self.is_taken = true;
        self.agreed = Some(place);
        Some(Answer::Measure)
    }
}

impl Bench {
    /// Waits until this run may use its server for a cell; `None` if the cell needs no more of it.
    pub(super) async fn turn(&self, cell: CellId, place: Place, wish: Wish) -> Option<Turn> {
        let repeat = match self.plan.order() {
            CellOrder::Interleaved => place.round,
            CellOrder::Rows | CellOrder::Shuffled => place.repeat,
        };
        self.seat.ask(place, self.plan.goes_first(cell, repeat), wish).await
    }

    /// Ends a turn; where another run waits for it, not before this server is idle.
    pub(super) async fn hand_over(&self, turn: Turn) -> Result<(), Halt> {
        if turn.table.is_some() {
            let left = drain(self.scraper(), self.clock, self.patience.drain).await;
            if let Drained::Busy { running, waiting } = left {
                let text = format!(
                    "the server still had {running} running and {waiting} waiting requests when the other server's turn came"
                );
                self.teller.log(LogLevel::Warning, text).await?;
            }
        }
        self.scene.send_replace(None);
        drop(turn);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn place(number: u32, repeat: u32) -> Place {
        Place { round: 0, number, repeat }
    }

    /// Goes through the places with the wish that A and B have at each of them (`m`, `e`, or `-`: it gave the cell up), B
    /// first wherever both measure; tells who measured.
    fn check(wishes: &[(&str, Place)], wanted: &str) {
        let mut table = Table::new();
        let mut left: [Vec<(Place, Wish)>; 2] = [0, 1].map(|side| {
            let own = wishes.iter().filter_map(|(letters, place)| match letters.as_bytes()[side] {
                b'm' => Some((*place, Wish::Measure)),
                b'e' => Some((*place, Wish::Enough)),
                _ => None,
            });
            own.rev().collect()
        });
        let mut told = String::new();
        // Nobody hangs: each look seats both, and one of them gets an answer.
        while table.chairs != [Chair::Gone; 2] {
            for (side, left) in Side::BOTH.into_iter().zip(&mut left) {
                if table.chair(side) == Chair::Away {
                    table.set(side, left.pop().map_or(Chair::Gone, |(place, wish)| Chair::Waiting(place, wish)));
                }
            }
            let answers = Side::BOTH.map(|side| table.answer(side, Side::B));
            assert!(!answers.iter().all(|it| *it == Some(Answer::Measure)), "both at once: {told}");
            assert!(answers.iter().any(Option::is_some) || table.chairs == [Chair::Gone; 2], "stuck after {told}");
            for (side, _) in Side::BOTH.iter().zip(answers).filter(|(_, it)| *it == Some(Answer::Measure)) {
                told.push_str(side.label());
            }
            table.is_taken = false;
        }
        assert_eq!(told, wanted, "{wishes:?}");
    }

    #[test]
    fn who_is_behind_goes_first_and_pairs_stay_pairs() {
        check(&[("mm", Place::START), ("mm", place(1, 0)), ("mm", place(1, 1))], "BABABA");
        // Enough for both is enough; enough for one is not.
        check(&[("mm", place(1, 0)), ("ee", place(1, 1)), ("mm", place(2, 0))], "BABA");
        check(&[("mm", place(1, 0)), ("em", place(1, 1)), ("me", place(1, 2))], "BABABA");
        // A gave the cell up, or ended: B measures what B wants to.
        check(&[("mm", place(1, 0)), ("-m", place(1, 1)), ("-e", place(1, 2)), ("mm", place(2, 0))], "BABBA");
        check(&[("mm", place(1, 0)), ("-m", place(1, 1)), ("-m", place(2, 0))], "BABB");
        check(&[("-m", place(1, 0)), ("-e", place(1, 1))], "B");
    }

    #[tokio::test]
    async fn a_run_alone_never_waits_and_one_that_ends_is_not_waited_for() {
        let alone = Seat::alone();
        assert!(alone.ask(place(1, 0), Side::A, Wish::Measure).await.is_some());
        assert!(alone.ask(place(1, 0), Side::A, Wish::Enough).await.is_none());
        let [a, b] = Seat::pair();
        let waiting = tokio::spawn(async move { a.ask(place(1, 0), Side::B, Wish::Measure).await.is_some() });
        let turn = b.ask(place(1, 0), Side::B, Wish::Measure).await;
        assert!(turn.is_some());
        drop((turn, b));
        assert!(waiting.await.unwrap());
    }
}
