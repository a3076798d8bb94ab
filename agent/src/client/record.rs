//! What one request's stream said, noted event by event while it runs: own memory and relaxed counters only. `settle`
//! judges it after the last byte.

use std::{num::NonZeroU32, time::Instant};

use speedmatrix_shared::{
    trace::{Arrival, StampSource},
    units::Nanos,
};

use super::{
    KeepText, SlotCounters, SlotState, Text, ToolCall, failure,
    stamped::{LATE, Read},
};
use crate::{
    clock::Clock,
    engine::{self, Decoded, Delta, ToolFragment, UsageReport},
    framing::Event,
};

/// Room for arrivals before the first byte: a short answer never grows it.
const FIRST_ARRIVALS: usize = 64;

/// A request is given up after so many events with text per token that it asked for: a token may come in several pieces …
const EVENTS_PER_TOKEN: u64 = 4;
/// … and so many more: a model may think before it looks at its limit, and 4,096 arrivals are 100 KB.
const SPARE_EVENTS: u64 = 4_096;
/// Most of a request's text that is kept, bytes: 200,000 tokens of prose.
const MOST_TEXT_BYTES: usize = 1 << 20;
/// Longest name of a model or of a reason that is kept, bytes; others are none.
const NAME_LIMIT_BYTES: usize = 4 << 10;

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More may come.
    Running,
    /// The end mark came: nothing after it matters.
    Done,
    /// An error came: nothing after it matters.
    Error,
    /// More text came than could be an answer to what was asked: nothing after it matters.
    TooMuch,
}

/// Everything noted about one try of one request.
#[derive(Debug)]
pub(super) struct Record {
    clock: Clock,
    pub(super) arrivals: Vec<Arrival>,
    /// The read that the last arrival came with.
    arrival_read: u64,
    pub(super) text_events: u64,
    pub(super) first_content_at: Option<Nanos>,
    pub(super) usage: Option<UsageReport>,
    pub(super) finish_reason: Option<String>,
    pub(super) error: Option<String>,
    pub(super) model: Option<String>,
    pub(super) skipped_events: u32,
    pub(super) coalesced_reads: u32,
    pub(super) stamps: Option<StampSource>,
    pub(super) progress: Progress,
    pub(super) saw: Saw,
    /// When the last event came that meant something.
    pub(super) last_event_at: Option<Nanos>,
    pub(super) text: Option<Text>,
    /// Bytes of text that may still be kept.
    text_room: usize,
    pub(super) tokens_before: u64,
    max_output_tokens: u32,
    reported_tokens: u32,
}

/// What kinds of text a request generated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Saw {
    pub(super) reasoning: Seen,
    pub(super) content: Seen,
    /// The whole answer in one document.
    pub(super) document: Seen,
}

/// Whether something came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not yet.
    #[default]
    No,
    /// Yes.
    Yes,
}

impl Record {
    /// A record of a request for at most so many output tokens, about to be sent in a slot with these counters.
    pub(super) fn new(clock: Clock, keep_text: KeepText, counters: &SlotCounters, max_output_tokens: u32) -> Self {
        Self {
            clock,
            arrivals: Vec::with_capacity(FIRST_ARRIVALS),
            arrival_read: 0,
            text_events: 0,
            first_content_at: None,
            usage: None,
            finish_reason: None,
            error: None,
            model: None,
            skipped_events: 0,
            coalesced_reads: 0,
            stamps: None,
            progress: Progress::Running,
            saw: Saw::default(),
            last_event_at: None,
            text: (keep_text == KeepText::Yes).then(Text::default),
            text_room: MOST_TEXT_BYTES,
            tokens_before: counters.tokens(),
            max_output_tokens,
            reported_tokens: 0,
        }
    }

    /// Notes an event that `read` completed.
    pub(super) fn event(&mut self, event: Event<'_>, read: Read, counters: &SlotCounters) {
        if self.progress != Progress::Running {
            return;
        }
        let mut scratch = String::new();
        match event {
            Event::Data(data) => match engine::decode(data, &mut scratch) {
                Decoded::Delta(delta) => self.delta(delta, read, counters),
                Decoded::Done => {
                    self.progress = Progress::Done;
                    self.last_event_at = Some(self.clock.at(read.at));
                }
                Decoded::NotJson if data.is_empty() => {}
                Decoded::NotJson => self.skipped_events = self.skipped_events.saturating_add(1),
            },
            Event::Error(data) => self.fail(failure::words(data).0),
            Event::Stray(text) => match engine::decode(text, &mut scratch) {
                Decoded::Delta(Delta { error: Some(error), .. }) => self.fail(error.message),
                _ => self.skipped_events = self.skipped_events.saturating_add(1),
            },
        }
    }

    /// Notes an answer that came as one document.
    pub(super) fn document(&mut self, document: &[u8], read: Read) {
        let mut scratch = String::new();
        let Decoded::Delta(delta) = engine::decode(document, &mut scratch) else {
            self.skipped_events = 1;
            return;
        };
        if let Some(error) = delta.error {
            return self.fail(error.message);
        }
        self.saw.document = Seen::Yes;
        self.last_event_at = Some(self.clock.at(read.at));
        self.usage = delta.usage;
        self.model = delta.model.as_deref().map(name);
        self.finish_reason = delta.finish_reason.as_deref().map(name);
        self.see(&delta);
        self.keep(&delta);
        self.progress = Progress::Done;
    }

    fn fail(&mut self, words: String) {
        self.error = Some(words);
        self.progress = Progress::Error;
    }

    fn delta(&mut self, delta: Delta<'_>, read: Read, counters: &SlotCounters) {
        if let Some(error) = delta.error {
            return self.fail(error.message);
        }
        let at = self.clock.at(read.at);
        self.last_event_at = Some(at);
        if delta.usage.is_some() {
            self.usage = delta.usage;
        }
        if self.model.is_none() {
            self.model = delta.model.as_deref().map(name);
        }
        if self.finish_reason.is_none() {
            self.finish_reason = delta.finish_reason.as_deref().map(name);
        }
        if !delta.has_text() {
            return;
        }
        self.see(&delta);
        if self.text.is_some() {
            self.keep(&delta);
        }
        if delta.has_content() && self.first_content_at.is_none() {
            self.first_content_at = Some(at);
        }
        if self.arrivals.is_empty() {
            counters.set_state(SlotState::Decoding);
        }
        let reported = delta.usage.and_then(|usage| usage.completion_tokens);
        self.arrival(at, read, reported.and_then(|tokens| u32::try_from(tokens).ok()).and_then(NonZeroU32::new));
        counters.set_tokens(self.tokens_before + self.text_events.max(u64::from(self.reported_tokens)));
        if self.text_events > EVENTS_PER_TOKEN * u64::from(self.max_output_tokens) + SPARE_EVENTS {
            self.progress = Progress::TooMuch;
        }
    }

    /// What to say when too much came.
    pub(super) fn too_much(&self) -> String {
        format!(
            "{} events with text came for a request of at most {} output tokens, and it was given up: check that the \
             server, or what stands before it, keeps to max_tokens",
            self.text_events, self.max_output_tokens
        )
    }

    fn arrival(&mut self, at: Nanos, read: Read, reported: Option<NonZeroU32>) {
        self.text_events += 1;
        self.reported_tokens = self.reported_tokens.max(reported.map_or(0, NonZeroU32::get));
        match self.arrivals.last_mut() {
            Some(arrival) if self.arrival_read == read.number => {
                if arrival.text_events == 1 && read.late > LATE {
                    self.coalesced_reads = self.coalesced_reads.saturating_add(1);
                }
                arrival.text_events = arrival.text_events.saturating_add(1);
                arrival.usage_tokens = reported.or(arrival.usage_tokens);
            }
            previous => {
                // Stamps come from the wall clock: one that was set back must not turn time around.
                let at = previous.map_or(at, |previous| previous.at.max(at));
                let late_ns = u32::try_from(self.clock.length(read.late).0).unwrap_or(u32::MAX);
                self.arrivals.push(Arrival { at, usage_tokens: reported, text_events: 1, late_ns });
                self.arrival_read = read.number;
            }
        }
        self.stamps = match (self.stamps, read.by) {
            (Some(StampSource::Process), _) | (_, StampSource::Process) => Some(StampSource::Process),
            _ => Some(StampSource::Kernel),
        };
    }

    fn see(&mut self, delta: &Delta<'_>) {
        if !delta.reasoning.is_empty() {
            self.saw.reasoning = Seen::Yes;
        }
        if delta.has_content() {
            self.saw.content = Seen::Yes;
        }
    }

    fn keep(&mut self, delta: &Delta<'_>) {
        let Some(text) = &mut self.text else { return };
        let room = &mut self.text_room;
        add(&mut text.content, &delta.content, room);
        add(&mut text.reasoning, &delta.reasoning, room);
        for fragment in &delta.tools {
            add_fragment(&mut text.tool_calls, fragment, room);
        }
    }

    /// Time on the run's clock.
    pub(super) fn time(&self, instant: Instant) -> Nanos {
        self.clock.at(instant)
    }

    /// A length on the run's clock as a real one.
    pub(super) fn real(&self, length: Nanos) -> std::time::Duration {
        self.clock.real(length)
    }
}

/// A name to keep.
fn name(text: &str) -> String {
    if text.len() <= NAME_LIMIT_BYTES { text.to_owned() } else { format!("over {NAME_LIMIT_BYTES} bytes") }
}

/// As much of `more` as there is room for.
fn add(text: &mut String, more: &str, room: &mut usize) {
    let more = &more[..more.floor_char_boundary(*room)];
    text.push_str(more);
    *room -= more.len();
}

/// Fragments are joined by the index that the server gives; without one, a name begins a new call.
fn add_fragment(calls: &mut Vec<ToolCall>, fragment: &ToolFragment<'_>, room: &mut usize) {
    /// More calls than any model makes: an index beyond is a hostile server's.
    const MOST_CALLS: usize = 1_024;
    let place = match fragment.index.map(usize::try_from) {
        Some(Ok(index)) => index,
        Some(Err(_beyond)) => return,
        None if fragment.name.is_empty() => calls.len().saturating_sub(1),
        None => calls.len(),
    };
    if place >= MOST_CALLS {
        return;
    }
    if place >= calls.len() {
        calls.resize_with(place + 1, ToolCall::default);
    }
    if let Some(call) = calls.get_mut(place) {
        add(&mut call.name, &fragment.name, room);
        add(&mut call.arguments, &fragment.arguments, room);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::framing::Sse;

    /// Events as engines send them, and some as they should not.
    const EVENTS: [&str; 9] = [
        r#"data: {"choices":[{"delta":{"role":"assistant"}}],"model":"m"}"#,
        r#"data: {"choices":[{"delta":{"content":"für"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
        r#"data: {"choices":[{"delta":{"content":" you"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}"#,
        r#"data: {"choices":[{"delta":{"reasoning_content":"so"}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}"#,
        "data: not a document",
        ": still here",
    ];

    /// The record of a stream in pieces; the piece of each index belongs to the read that `number` names.
    fn record(pieces: &[&[u8]], number: fn(u64) -> u64) -> Record {
        let counters = SlotCounters::default();
        let clock = Clock::start();
        let mut record = Record::new(clock, KeepText::Yes, &counters, 8);
        let mut sse = Sse::default();
        for (index, piece) in (0..).zip(pieces) {
            let number = number(index);
            let at = clock.instant(Nanos::from_millis(number));
            let read = Read { number, at, late: Duration::ZERO, by: StampSource::Kernel };
            let mut events = sse.push(piece);
            while let Some(event) = events.next_event() {
                record.event(event.unwrap(), read, &counters);
            }
        }
        record
    }

    fn cut<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
    }

    /// All that a record says but when.
    fn meaning(record: &Record) -> impl PartialEq + std::fmt::Debug {
        let last_usage = record.arrivals.iter().filter_map(|arrival| arrival.usage_tokens).next_back();
        let events: u64 = record.arrivals.iter().map(|arrival| u64::from(arrival.text_events)).sum();
        let said = (record.text.clone(), record.usage, record.finish_reason.clone(), record.model.clone());
        (last_usage, events, record.text_events, said, record.skipped_events, record.saw, record.progress)
    }

    proptest! {
        #[test]
        fn cuts_of_the_bytes_do_not_change_the_trace(
            events in prop::collection::vec(prop::sample::select(&EVENTS[..]), 0..14),
            cuts in prop::collection::vec(0_usize..4_000, 0..12),
        ) {
            let stream: String = events.iter().flat_map(|event| [*event, "\n\n"]).chain(["data: [DONE]\n\n"]).collect();
            let pieces = cut(stream.as_bytes(), &cuts);
            // Pieces of one read: the very same arrivals, whatever the pieces are.
            let (whole, same_read) = (record(&[stream.as_bytes()], |_| 1), record(&pieces, |_| 1));
            prop_assert_eq!(&whole.arrivals, &same_read.arrivals);
            prop_assert_eq!(meaning(&whole), meaning(&same_read));
            // Reads of their own: the same text and counts, spread over arrivals in order of time.
            let reads = record(&pieces, |index| index + 1);
            prop_assert_eq!(meaning(&whole), meaning(&reads));
            prop_assert!(reads.arrivals.is_sorted_by_key(|arrival| arrival.at));
            prop_assert!(reads.arrivals.len() >= whole.arrivals.len());
        }
    }
}
