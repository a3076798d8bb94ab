//! Every request of a cell as a line of a table, sent column by column: names once instead of 100,000 times, and small
//! numbers, as each time counts from the one before it. 100,000 requests are some 4 MB of JSON, and packed less than half.

use serde::{Deserialize, Serialize};

use super::Extent;
use crate::{
    raw::RawCell,
    stats::request::{self, Counted},
    trace::{FailureKind, RequestEnd, RequestFailure, RequestTrace},
    units::Nanos,
};

/// Most requests that are sent; of more, the first ones in order of time.
pub const MOST_REQUESTS: usize = 100_000;
/// Most different failures; further ones are told as one of their kind.
const MOST_FAILURES: usize = 64;
/// Code of a completed request in [`Columns::end`].
const COMPLETED: u16 = 0;
/// Code of a request that was closed by us.
const CUT: u16 = 1;
/// The code of the first failure.
const FAILED_FROM: u16 = 2;

/// The requests of a cell, column by column, in the order in which they were due. All times are whole microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    /// How many the record has; the columns hold at most [`MOST_REQUESTS`].
    pub total: u64,
    /// The place that held it.
    pub slot: Vec<u32>,
    /// When it was due, after the one before it; the first: after the cell's zero.
    pub due: Vec<u64>,
    /// First byte sent, after it was due; null: never sent.
    pub sent: Vec<Option<u64>>,
    /// First text, after the first byte was sent.
    pub first: Vec<Option<u64>>,
    /// Last text, after the first one.
    pub last: Vec<Option<u64>>,
    /// When it was over, after it was due.
    pub ended: Vec<u64>,
    /// 0: completed; 1: closed by us; from 2 on: failed, with the failure of that number less 2.
    pub end: Vec<u16>,
    /// Output tokens, rounded.
    pub tokens: Vec<u64>,
    /// Failures that `end` points to.
    pub failures: Vec<RequestFailure>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The server finished it.
    Completed,
    /// We closed it.
    Cut,
    /// It failed; its number among [`Columns::failures`].
    Failed(usize),
}

impl RowEnd {
    /// One word for tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cut => "closed at the end",
            Self::Failed(_) => "failed",
        }
    }
}

/// One request; times are seconds from the cell's zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The place that held it.
    pub slot: u32,
    /// When it was due.
    pub due_s: f64,
    /// First byte sent.
    pub sent_s: Option<f64>,
    /// First text.
    pub first_s: Option<f64>,
    /// Last text.
    pub last_s: Option<f64>,
    /// When it was over.
    pub ended_s: f64,
    /// How it ended.
    pub end: RowEnd,
    /// Output tokens.
    pub tokens: u64,
}

impl Row {
    /// Time to first token, seconds.
    pub fn ttft_s(&self) -> Option<f64> {
        Some(self.first_s? - self.sent_s?)
    }

    /// Tokens per second while text flowed: those after the first ÷ (last − first).
    pub fn tok_s(&self) -> Option<f64> {
        let secs = self.last_s? - self.first_s?;
        (secs >= request::SHORTEST_SPAN.as_secs_f64() && self.tokens > 1).then(|| (self.tokens - 1) as f64 / secs)
    }
}

impl Columns {
    /// The requests of a record.
    pub fn of(raw: &RawCell) -> Self {
        let extent = Extent::of(raw);
        let good = raw.traces.iter().filter(|trace| !request::is_failed(trace));
        let pooled = request::pooled_ratio(good);
        let mut traces: Vec<&RequestTrace> = raw.traces.iter().collect();
        traces.sort_by_key(|trace| (trace.scheduled, trace.slot));
        traces.truncate(MOST_REQUESTS);
        let mut columns = Self { total: raw.traces.len() as u64, ..Self::default() };
        let mut before = extent.zero;
        for trace in traces {
            columns.push(trace, before, pooled);
            before = trace.scheduled;
        }
        columns
    }

    fn push(&mut self, trace: &RequestTrace, before: Nanos, pooled: Option<f64>) {
        let due = trace.scheduled;
        let (sent, first) = (trace.send_started, trace.first_arrival());
        let step = |from: Option<Nanos>, to: Option<Nanos>| Some(micros(to?.since(from?)));
        self.slot.push(trace.slot);
        self.due.push(micros(due.since(before)));
        self.sent.push(step(Some(due), sent));
        self.first.push(step(sent, first));
        self.last.push(step(first, trace.last_arrival()));
        self.ended.push(micros(trace.ended.since(due)));
        self.tokens.push(Counted::new(trace, pooled).tokens().iter().sum::<f64>().round() as u64);
        let end = match &trace.end {
            RequestEnd::Completed { .. } => COMPLETED,
            RequestEnd::Cut => CUT,
            RequestEnd::Failed(failure) => self.failure(failure),
        };
        self.end.push(end);
    }

    /// The code of a failure.
    fn failure(&mut self, failure: &RequestFailure) -> u16 {
        let known = self.failures.iter().position(|known| known == failure);
        let of_kind = |kind: FailureKind| move |known: &RequestFailure| known.kind == kind;
        let full = self.failures.len() >= MOST_FAILURES;
        let place = known.or_else(|| self.failures.iter().position(of_kind(failure.kind)).filter(|_| full));
        let place = place.unwrap_or_else(|| {
            self.failures.push(failure.clone());
            self.failures.len() - 1
        });
        FAILED_FROM + place as u16
    }

    /// The requests, one by one. Columns that end early end the list.
    pub fn rows(&self) -> Vec<Row> {
        let mut due = 0_u64;
        let times = self.due.iter().zip(&self.sent).zip(&self.first).zip(&self.last).zip(&self.ended);
        let rest = self.slot.iter().zip(&self.end).zip(&self.tokens);
        let row = |(((((&step, &sent), &first), &last), &ended), ((&slot, &end), &tokens))| {
            due = due.saturating_add(step);
            let after = |from: Option<u64>, step: Option<u64>| Some(from?.saturating_add(step?));
            let sent = after(Some(due), sent);
            let first = after(sent, first);
            let last = after(first, last);
            Row {
                slot,
                due_s: secs(due),
                sent_s: sent.map(secs),
                first_s: first.map(secs),
                last_s: last.map(secs),
                ended_s: secs(due.saturating_add(ended)),
                end: match end {
                    COMPLETED => RowEnd::Completed,
                    CUT => RowEnd::Cut,
                    failed => RowEnd::Failed(usize::from(failed - FAILED_FROM)),
                },
                tokens,
            }
        };
        times.zip(rest).take(MOST_REQUESTS).map(row).collect()
    }

    /// What a failed request said, in words.
    pub fn failure_words(&self, end: RowEnd) -> Option<String> {
        let RowEnd::Failed(place) = end else { return None };
        let failure = self.failures.get(place)?;
        let code = failure.http_status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
        Some(format!("{}{code}: {}", failure.kind.label(), failure.text))
    }
}

/// Rounded to whole microseconds.
const fn micros(time: Nanos) -> u64 {
    time.0.saturating_add(500) / 1_000
}

fn secs(micros: u64) -> f64 {
    micros as f64 / 1e6
}
