//! Requests on lines, one line for each slot: which is where, and how one gets from one to the next. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use speedmatrix_shared::{
    detail::requests::{Row, RowEnd},
    plan::Load,
};

use super::scale::Range;

/// A request on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Its place in the list of requests.
    pub row: usize,
    /// When it was due.
    pub due_s: f64,
    /// When it was sent.
    pub sent_s: f64,
    /// When its first text came; its end, where none came.
    pub first_s: f64,
    /// When it was over.
    pub ended_s: f64,
    /// Whether it failed.
    pub failed: bool,
}

impl Bar {
    fn of(row: usize, request: &Row) -> Self {
        let ended_s = request.ended_s;
        let sent_s = request.sent_s.unwrap_or(ended_s);
        Self {
            row,
            due_s: request.due_s,
            sent_s,
            first_s: request.first_s.unwrap_or(ended_s),
            ended_s,
            failed: matches!(request.end, RowEnd::Failed(_)),
        }
    }
}

/// The lines with their requests, each in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lanes(Vec<Vec<Bar>>);

impl Lanes {
    /// A line for each slot. In an open loop each request has a slot of its own: there a line takes the next request as
    /// soon as it is free, so that lines are as many as requests were in flight.
    pub fn of(requests: &[Row], load: Load) -> Self {
        let mut bars: Vec<(u32, Bar)> =
            requests.iter().enumerate().map(|(row, request)| (request.slot, Bar::of(row, request))).collect();
        bars.sort_by(|(_, a), (_, b)| a.due_s.total_cmp(&b.due_s));
        if matches!(load, Load::Open(_)) {
            return packed(bars.into_iter().map(|(_, bar)| bar));
        }
        let mut slots: Vec<u32> = bars.iter().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut lanes = vec![Vec::new(); slots.len()];
        for (slot, bar) in bars {
            if let Some(lane) = slots.binary_search(&slot).ok().and_then(|lane| lanes.get_mut(lane)) {
                lane.push(bar);
            }
        }
        Self(lanes)
    }

    /// The lines `from` up to and without `to`.
    pub fn between(&self, from: usize, to: usize) -> &[Vec<Bar>] {
        self.0.get(from..to).unwrap_or_default()
    }

    /// How many lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The request at a share of the height and a moment: on that line, the one that is there or the nearest.
    pub fn at(&self, share_down: f64, at_s: f64) -> Option<usize> {
        let lane = ((share_down.clamp(0.0, 1.0) * self.count() as f64) as usize).min(self.count().checked_sub(1)?);
        nearest(self.0.get(lane)?, at_s)
    }

    /// Where a key leads from a request: along its line, or to the neighbouring line at the same moment.
    pub fn step(&self, from: Option<usize>, way: Way) -> Option<usize> {
        let Some((lane, place)) = from.and_then(|row| self.find(row)) else {
            return self.0.first()?.first().map(|bar| bar.row);
        };
        let bars = self.0.get(lane)?;
        let here = bars.get(place)?;
        let on = |place: Option<usize>| place.and_then(|place| bars.get(place)).map(|bar| bar.row);
        let beside = |lane: Option<usize>| nearest(self.0.get(lane?)?, here.due_s);
        let next = match way {
            Way::Earlier => on(place.checked_sub(1)),
            Way::Later => on(place.checked_add(1)),
            Way::First => on(Some(0)),
            Way::Last => on(bars.len().checked_sub(1)),
            Way::Up => beside(lane.checked_sub(1)),
            Way::Down => beside(lane.checked_add(1)),
        };
        next.or(from)
    }

    /// On which line a request is, counted from 0.
    pub fn lane_of(&self, row: usize) -> Option<usize> {
        self.find(row).map(|(lane, _)| lane)
    }

    fn find(&self, row: usize) -> Option<(usize, usize)> {
        let place = |bars: &Vec<Bar>| bars.iter().position(|bar| bar.row == row);
        self.0.iter().enumerate().find_map(|(lane, bars)| Some((lane, place(bars)?)))
    }
}

/// A way from one request to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The one before it on its line.
    Earlier,
    /// The one after it.
    Later,
    /// The first one of its line.
    First,
    /// The last one.
    Last,
    /// The line above.
    Up,
    /// The line below.
    Down,
}

/// Puts each request, in order of time, on the first line that is free by then.
fn packed(bars: impl Iterator<Item = Bar>) -> Lanes {
    let mut lanes: Vec<Vec<Bar>> = Vec::new();
    // Lines by when they become free; the lowest number first among those that are free.
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    // Whole microseconds order like the times and can be keys.
    let micros = |secs: f64| (secs * 1e6).round() as u64;
    for bar in bars {
        while let Some(Reverse((_, lane))) = busy.peek().copied().filter(|it| it.0.0 <= micros(bar.due_s)) {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(lanes.len());
        busy.push(Reverse((micros(bar.ended_s), lane)));
        match lanes.get_mut(lane) {
            Some(bars) => bars.push(bar),
            None => lanes.push(vec![bar]),
        }
    }
    Lanes(lanes)
}

/// The requests of a line that a range of time touches.
pub fn visible(lane: &[Bar], range: Range) -> impl Iterator<Item = &Bar> {
    let from = lane.partition_point(|bar| bar.ended_s < range.lo);
    lane.iter().skip(from).take_while(move |bar| bar.due_s <= range.hi)
}

fn nearest(lane: &[Bar], at_s: f64) -> Option<usize> {
    let after = lane.partition_point(|bar| bar.ended_s < at_s);
    let away = |bar: &&Bar| (bar.due_s - at_s).max(at_s - bar.ended_s).max(0.0);
    let candidates = lane.get(after.saturating_sub(1)..).unwrap_or_default().iter().take(2);
    candidates.min_by(|a, b| away(a).total_cmp(&away(b))).map(|bar| bar.row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slot: u32, [due_s, sent_s, first_s, ended_s]: [f64; 4], end: RowEnd) -> Row {
        let (sent_s, first_s) = (Some(sent_s), Some(first_s));
        Row { slot, due_s, sent_s, first_s, last_s: Some(ended_s), ended_s, end, tokens: 9 }
    }

    fn done(slot: u32, times: [f64; 4]) -> Row {
        row(slot, times, RowEnd::Completed)
    }

    fn small() -> Vec<Row> {
        vec![
            done(7, [0.0, 1.0, 3.0, 6.0]),
            row(2, [1.0, 1.0, 2.0, 4.0], RowEnd::Failed(0)),
            done(7, [6.0, 6.0, 7.0, 10.0]),
        ]
    }

    #[test]
    fn an_open_loop_takes_as_many_lines_as_were_in_flight() {
        let rows: Vec<Row> = (0..50)
            .map(|n| {
                let due = f64::from(n);
                done(n, [due, due, due + 0.5, due + 2.5])
            })
            .collect();
        assert_eq!(Lanes::of(&rows, "open".parse().unwrap()).count(), 3);
        assert_eq!(Lanes::of(&rows, Load::Sustained).count(), 50);
    }

    #[test]
    fn pointers_and_keys_find_requests() {
        let lanes = Lanes::of(&small(), Load::Sustained);
        assert_eq!((lanes.at(0.2, 9.0), lanes.at(0.9, 5.0), lanes.at(0.9, 9.0)), (Some(1), Some(0), Some(2)));
        let check = |from, way, wanted| assert_eq!(lanes.step(from, way), wanted, "{way:?}");
        check(None, Way::Later, Some(1));
        check(Some(0), Way::Later, Some(2));
        check(Some(2), Way::Later, Some(2));
        check(Some(2), Way::First, Some(0));
        check(Some(2), Way::Up, Some(1));
        check(Some(1), Way::Down, Some(0));
        assert_eq!((lanes.lane_of(1), lanes.lane_of(2), Lanes::default().at(0.5, 1.0)), (Some(0), Some(1), None));
    }
}
