//! The truth about every request, as the simulator itself saw it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::clock::{SimTime, Stamp};

/// Most requests that the log remembers; the oldest are forgotten.
const CAPACITY: usize = 100_000;

/// What the simulator did for one request. All stamps are taken right before the write to the socket.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRecord {
    /// The client's `x-request-id`, or one that the simulator made up (and sent back in the same header).
    pub id: String,
    /// When the last byte of the request had been read.
    pub received: Stamp,
    /// When it left the queue and its prefill began, simulated time.
    pub admitted: Option<SimTime>,
    /// Simulated nanoseconds from received to admitted (includes the latency before the queue).
    pub queue_ns: Option<u64>,
    /// The write of the first chunk with a token.
    pub first_token: Option<Stamp>,
    /// The write of the latest chunk with a token.
    pub last_token: Option<Stamp>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Of these, found in the prefix cache.
    pub cached_tokens: u64,
    /// Tokens written to the client.
    pub output_tokens: u64,
    /// Chunks with tokens written to the client.
    pub chunks: u64,
    /// Real nanoseconds by which the latest of its chunks was written after it was due.
    pub max_lateness_ns: u64,
    /// How it ended; `None` while it runs.
    pub end: Option<End>,
    /// Each chunk, with [`super::Recording::EveryChunk`].
    pub chunk_log: Vec<ChunkRecord>,
}

/// One chunk with tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChunkRecord {
    /// When the schedule had it.
    pub due: SimTime,
    /// When it was written.
    pub sent: Stamp,
    /// Tokens in it.
    pub tokens: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of its tokens were written.
    Completed,
    /// The client closed the connection.
    ClientLeft,
    /// The client read so slowly that the simulator gave up on it.
    ClientTooSlow,
    /// The script broke it off.
    Scripted,
    /// The simulator was stopped.
    Stopped,
}

/// Sums over all remembered requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Requests that reached the engine.
    pub requests: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Chunks written.
    pub chunks: u64,
}

/// Shared access to the log. A request's record appears when it is received and is up to date at its first token, and
/// before the bytes that end its stream are written: a client that saw the end finds the whole truth here.
#[derive(Debug, Clone, Default)]
pub struct SimLog(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    records: VecDeque<RequestRecord>,
    /// Serial number of the first of `records`.
    first: u64,
    by_id: HashMap<String, u64>,
}

impl SimLog {
    /// The newest request with this `x-request-id`.
    pub fn record(&self, id: &str) -> Option<RequestRecord> {
        let book = self.book();
        let serial = *book.by_id.get(id)?;
        book.at(serial).cloned()
    }

    /// All remembered requests in the order in which they were received.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.book().records.iter().cloned().collect()
    }

    /// Sums over all remembered requests.
    pub fn totals(&self) -> Totals {
        self.book().records.iter().fold(Totals::default(), |sum, record| Totals {
            requests: sum.requests + 1,
            completed: sum.completed + u64::from(record.end == Some(End::Completed)),
            output_tokens: sum.output_tokens + record.output_tokens,
            chunks: sum.chunks + record.chunks,
        })
    }

    /// Forgets all requests; those that still run are not written again.
    pub fn clear(&self) {
        let mut book = self.book();
        book.first += book.records.len() as u64;
        book.records.clear();
        book.by_id.clear();
    }

    /// Opens a record and returns its serial number.
    pub(super) fn open(&self, record: RequestRecord) -> u64 {
        let mut book = self.book();
        if book.records.len() >= CAPACITY
            && let Some(oldest) = book.records.pop_front()
        {
            if book.by_id.get(&oldest.id) == Some(&book.first) {
                book.by_id.remove(&oldest.id);
            }
            book.first += 1;
        }
        let serial = book.first + book.records.len() as u64;
        book.by_id.insert(record.id.clone(), serial);
        book.records.push_back(record);
        serial
    }

    /// Replaces the record `serial`, unless it was forgotten.
    pub(super) fn update(&self, serial: u64, record: RequestRecord) {
        let mut book = self.book();
        if let Some(place) = book.place(serial)
            && let Some(old) = book.records.get_mut(place)
        {
            *old = record;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn place(&self, serial: u64) -> Option<usize> {
        serial.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())
    }

    fn at(&self, serial: u64) -> Option<&RequestRecord> {
        self.records.get(self.place(serial)?)
    }
}

impl RequestRecord {
    pub(super) fn new(id: String, received: Stamp, prompt_tokens: u64) -> Self {
        Self {
            id,
            received,
            admitted: None,
            queue_ns: None,
            first_token: None,
            last_token: None,
            prompt_tokens,
            cached_tokens: 0,
            output_tokens: 0,
            chunks: 0,
            max_lateness_ns: 0,
            end: None,
            chunk_log: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str) -> RequestRecord {
        let received = Stamp { realtime_ns: 1, monotonic_ns: 2, simulated: SimTime::from_nanos(3) };
        RequestRecord::new(id.to_owned(), received, 10)
    }

    #[test]
    fn records_are_found_by_the_clients_id_newest_first() {
        let log = SimLog::default();
        let first = log.open(record("a"));
        let second = log.open(RequestRecord { prompt_tokens: 20, ..record("a") });
        assert_eq!(log.record("a").unwrap().prompt_tokens, 20);
        log.update(first, RequestRecord { output_tokens: 1, ..record("a") });
        log.update(second, RequestRecord { output_tokens: 2, end: Some(End::Completed), ..record("a") });
        assert_eq!(log.totals(), Totals { requests: 2, completed: 1, output_tokens: 3, chunks: 0 });
        assert_eq!(log.record("b"), None);
    }

    #[test]
    fn a_cleared_log_ignores_what_was_running() {
        let log = SimLog::default();
        let serial = log.open(record("a"));
        log.clear();
        log.open(record("b"));
        log.update(serial, record("a"));
        assert_eq!(log.records(), [record("b")]);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let log = SimLog::default();
        for number in 0..=CAPACITY {
            log.open(record(&number.to_string()));
        }
        assert_eq!(log.record("0"), None);
        assert_eq!(log.records().len(), CAPACITY);
        assert!(log.record("1").is_some());
    }
}
