//! A record as bytes: small enough to keep every arrival of every run.
//!
//! ```text
//! byte 0      the format's version
//! the rest    zlib (RFC 1950: deflate, with a checksum of what comes out), and in it six parts,
//!             each with its length before it:
//!               record   JSON, with empty lists of arrivals
//!               counts   arrivals of each request, first those of the cell, then the scouts'
//!               at       steps from arrival to arrival; the first from when its request was due
//!               tokens   steps of the server's token count; 0: it did not count
//!               events   events with text
//!               late     how late this process read, nanoseconds
//! ```
//! An arrival's columns hold one kind of number each: most of their bytes are alike, and deflate's Huffman codes make
//! little of them. What stays are the random digits of times, which no packing makes smaller. Everything else of a cell
//! is some hundred requests, where JSON costs little and may grow by fields like all stored formats here.
//!
//! Measured on 112,500 arrivals with jittered times (8.9 bytes each before packing): deflate 5.7 bytes, zstandard's
//! fastest level (the only one `ruzstd` has) 6.3, lz4 6.9. Deflate's levels from 1 to 9 differ by 0.2 % there.
//! With the requests around them it is 6.0 bytes: 0.7 MB for a cell of 128 streams and 30 s (the agent's bench `store`).

use std::num::NonZeroU32;

use miniz_oxide::{
    deflate::compress_to_vec_zlib,
    inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit},
};

use super::{
    Course, Engine, RawCell,
    varint::{Reader, put, put_step},
};
use crate::{
    trace::{Arrival, RequestTrace},
    units::Nanos,
};

/// The format that is written here.
const FORMAT: u8 = 1;
/// Deflate's level: the requests' JSON is worth looking for repeats, the arrivals are not.
const LEVEL: u8 = 6;
/// Most bytes of a record before packing: 30 million arrivals, which are an hour of 1,024 requests at once.
const MAX_PLAIN_BYTES: usize = 256 * 1_024 * 1_024;
/// Most bytes of a packed record.
pub const MAX_BYTES: usize = 192 * 1_024 * 1_024;

/// Why bytes are no record, or a record can't become bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    /// There is nothing.
    #[error("there are no bytes")]
    Empty,
    /// A later version wrote it.
    #[error("its format is {found} and this version reads {FORMAT}: update Speedmatrix")]
    Format {
        /// The first byte.
        found: u8,
    },
    /// The packing is broken: cut short, changed, or never was one.
    #[error("it can't be unpacked: {0}")]
    Packing(&'static str),
    /// It is larger than any real one.
    #[error("it is larger than the {MAX_PLAIN_BYTES} bytes allowed")]
    Huge,
    /// A part ends too early.
    #[error("a part of it ends too early")]
    Short,
    /// A part has more than it should.
    #[error("a part of it has bytes left over")]
    Long,
    /// A number is out of its range.
    #[error("a number in it is out of range")]
    TooLarge,
    /// The part in JSON can't be read or written.
    #[error("its JSON can't be read: {0}")]
    Record(String),
    /// JSON has no word for it.
    #[error("the engine or a GPU told a number that is none")]
    NotFinite,
}

/// A record as bytes. It is taken whole, so that its arrivals need not be copied.
pub fn encode(mut raw: RawCell) -> Result<Vec<u8>, RawError> {
    if !is_finite(&raw.course) || raw.gpus.as_ref().is_some_and(|gpus| !gpus.is_finite()) {
        return Err(RawError::NotFinite);
    }
    let mut columns = Columns::default();
    for trace in requests(&mut raw) {
        columns.add(trace.scheduled, &std::mem::take(&mut trace.arrivals));
    }
    let record = serde_json::to_vec(&raw).map_err(|e| RawError::Record(e.to_string()))?;
    drop(raw);
    let Columns { counts, at, tokens, events, late } = columns;
    let parts = [record, counts, at, tokens, events, late];
    let mut plain = Vec::with_capacity(parts.iter().map(|part| part.len() + 10).sum());
    for part in parts {
        put(&mut plain, part.len() as u64);
        plain.extend_from_slice(&part);
    }
    if plain.len() > MAX_PLAIN_BYTES {
        return Err(RawError::Huge);
    }
    let mut bytes = compress_to_vec_zlib(&plain, LEVEL);
    bytes.insert(0, FORMAT);
    if bytes.len() > MAX_BYTES { Err(RawError::Huge) } else { Ok(bytes) }
}

/// The record in some bytes, whoever wrote them. What is held in memory is bounded by a multiple of their length.
pub fn decode(bytes: &[u8]) -> Result<RawCell, RawError> {
    let (&found, packed) = bytes.split_first().ok_or(RawError::Empty)?;
    if found != FORMAT {
        return Err(RawError::Format { found });
    }
    let plain = decompress_to_vec_zlib_with_limit(packed, MAX_PLAIN_BYTES).map_err(|error| match error.status {
        TINFLStatus::HasMoreOutput => RawError::Huge,
        TINFLStatus::FailedCannotMakeProgress => RawError::Packing("it ends too early"),
        TINFLStatus::Adler32Mismatch => RawError::Packing("its checksum is wrong"),
        _ => RawError::Packing("it is damaged"),
    })?;
    let mut parts = Reader::new(&plain);
    let mut raw: RawCell = serde_json::from_slice(parts.section()?).map_err(|e| RawError::Record(e.to_string()))?;
    let mut part = || parts.section().map(Reader::new);
    let mut columns = Reading { counts: part()?, at: part()?, tokens: part()?, events: part()?, late: part()? };
    parts.end()?;
    for trace in requests(&mut raw) {
        trace.arrivals = columns.next(trace.scheduled)?;
    }
    columns.end()?;
    Ok(raw)
}

/// Every request of a record, in the order of the columns.
fn requests(raw: &mut RawCell) -> impl Iterator<Item = &mut RequestTrace> {
    let scouts = match &mut raw.course {
        Course::Decode(decode) => decode.scouts.as_mut_slice(),
        Course::Prefill | Course::GivenUp { .. } | Course::NotDrained { .. } => &mut [],
    };
    raw.traces.iter_mut().chain(scouts)
}

fn is_finite(course: &Course) -> bool {
    match course {
        Course::Decode(decode) => {
            let Engine { running, waiting, kv_usage, preemptions, output_tokens, .. } = &decode.engine;
            let Engine { drafts, draft_tokens, accepted_tokens, accept_length, gen_throughput, .. } = &decode.engine;
            let load = [running, waiting, kv_usage, preemptions, output_tokens];
            let speculation = [drafts, draft_tokens, accepted_tokens, accept_length, gen_throughput];
            load.into_iter().chain(speculation).flatten().all(|(_, value)| value.is_finite())
        }
        Course::NotDrained { running, waiting } => running.is_finite() && waiting.is_finite(),
        Course::Prefill | Course::GivenUp { .. } => true,
    }
}

/// Arrivals, one kind of number per column.
#[derive(Debug, Default)]
struct Columns {
    counts: Vec<u8>,
    at: Vec<u8>,
    tokens: Vec<u8>,
    events: Vec<u8>,
    late: Vec<u8>,
}

impl Columns {
    fn add(&mut self, due: Nanos, arrivals: &[Arrival]) {
        put(&mut self.counts, arrivals.len() as u64);
        let (mut at, mut tokens) = (due.0, 0);
        for arrival in arrivals {
            put_step(&mut self.at, at, arrival.at.0);
            let counted = arrival.usage_tokens.map_or(0, |count| u64::from(count.get()));
            put_step(&mut self.tokens, tokens, counted);
            put(&mut self.events, u64::from(arrival.text_events));
            put(&mut self.late, u64::from(arrival.late_ns));
            (at, tokens) = (arrival.at.0, counted);
        }
    }
}

/// The columns while they are read.
#[derive(Debug)]
struct Reading<'a> {
    counts: Reader<'a>,
    at: Reader<'a>,
    tokens: Reader<'a>,
    events: Reader<'a>,
    late: Reader<'a>,
}

impl Reading<'_> {
    /// The arrivals of the next request.
    fn next(&mut self, due: Nanos) -> Result<Vec<Arrival>, RawError> {
        let count: usize = self.counts.take_small()?;
        // Each number has a byte at least: what is told beyond that never comes, so no room is made for it.
        if count > self.events.left() {
            return Err(RawError::Short);
        }
        let mut arrivals = Vec::with_capacity(count);
        let (mut at, mut tokens) = (due.0, 0);
        for _ in 0..count {
            at = self.at.take_step(at)?;
            tokens = self.tokens.take_step(tokens)?;
            let counted = u32::try_from(tokens).map_err(|_out_of_range| RawError::TooLarge)?;
            arrivals.push(Arrival {
                at: Nanos(at),
                usage_tokens: NonZeroU32::new(counted),
                text_events: self.events.take_small()?,
                late_ns: self.late.take_small()?,
            });
        }
        Ok(arrivals)
    }

    fn end(&self) -> Result<(), RawError> {
        [&self.counts, &self.at, &self.tokens, &self.events, &self.late].into_iter().try_for_each(Reader::end)
    }
}
