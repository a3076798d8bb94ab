//! Server-sent events as they are really sent: every line end, comments, several data lines, and the dialects that
//! leave blank lines out or write an error between the events.
//!
//! The rules are those of the HTML standard ("9.2.6 Interpreting an event stream"), with three liberties, each seen in
//! the wild: an event that the end of the stream cuts off before its blank line still counts; data lines that are each a
//! whole JSON document are events of their own; and lines that are no field but form JSON are handed out as stray text.

use serde::de::IgnoredAny;

use super::FramingError;

/// Most bytes until an event ends, its own or of lines that are none. The largest that an honest server has to send is the
/// prompt again: a million tokens of a script outside ASCII, escaped, are some 9 MB; the log probabilities of a token are KBs.
const EVENT_LIMIT_BYTES: usize = 16 << 20;
/// Largest text between events that is kept: an error object, not a document.
const STRAY_LIMIT_BYTES: usize = 64 << 10;
/// How often such a text is looked at whether it is whole, in one event: an error object has one or two likely ends.
const STRAY_LOOKS: u8 = 16;
/// Buffers above this size are given back after their event.
const KEEP_BYTES: usize = 16 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A data event; its data lines are joined with newlines.
    Data(&'a [u8]),
    /// The data of an `event: error`.
    Error(&'a [u8]),
    /// Lines outside any field.
    Stray(&'a [u8]),
}

/// A decoder of one stream: [`Sse::push`] bytes as they come, [`Sse::finish`] at the end.
#[derive(Debug, Default)]
pub struct Sse {
    /// The last line, as far as it has come.
    line: Vec<u8>,
    data: Vec<u8>,
    data_lines: usize,
    kind: Kind,
    stray: Vec<u8>,
    /// How often `stray` was looked at.
    stray_looks: u8,
    start: Start,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    dialect: Dialect,
    /// Bytes of whole lines since the last event.
    since_event: usize,
    /// What the last event handed out lives in.
    handed_out: Option<Buffer>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[default]
    Message,
    Error,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Start {
    #[default]
    Unseen,
    Seen,
}

/// Whether blank lines end events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    #[default]
    BlankLines,
    /// Each data line is an event.
    LinePerEvent,
}

#[derive(Debug, Clone, Copy)]
enum Buffer {
    Data,
    Stray,
}

/// The events that some bytes complete. Dropping it early loses the rest of those bytes.
#[derive(Debug)]
pub struct Events<'d, 'b> {
    decoder: &'d mut Sse,
    bytes: &'b [u8],
}

impl Sse {
    /// Takes the next bytes; read the events they complete from the answer.
    pub fn push<'d, 'b>(&'d mut self, bytes: &'b [u8]) -> Events<'d, 'b> {
        Events { decoder: self, bytes }
    }

    /// The stream is over: hands out what its end cut off, once; call it until it gives `None`.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        self.clear_handed_out();
        let line = std::mem::take(&mut self.line);
        if self.line_per_event(&line) {
            self.line = line;
            return Some(self.hand_out(Buffer::Data));
        }
        // The bound was checked as the line grew; an empty line would end the event, as the end does.
        if !line.is_empty()
            && let Ok(Some(buffer)) = self.take_line(&line)
        {
            return Some(self.hand_out(buffer));
        }
        let buffer = self.complete()?;
        Some(self.hand_out(buffer))
    }

    fn is_between_events(&self) -> bool {
        self.line.is_empty()
            && self.data_lines == 0
            && self.kind == Kind::Message
            && self.stray.is_empty()
            && !self.after_return
            && self.dialect == Dialect::BlankLines
    }

    fn without_bom<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        match self.start {
            Start::Unseen => line.strip_prefix(BOM).unwrap_or(line),
            Start::Seen => line,
        }
    }

    fn hand_out(&mut self, buffer: Buffer) -> Event<'_> {
        self.handed_out = Some(buffer);
        match (buffer, self.kind) {
            (Buffer::Stray, _) => Event::Stray(&self.stray),
            (Buffer::Data, Kind::Message) => Event::Data(&self.data),
            (Buffer::Data, Kind::Error) => Event::Error(&self.data),
        }
    }

    fn clear_handed_out(&mut self) {
        let Some(buffer) = self.handed_out.take() else { return };
        self.since_event = 0;
        match buffer {
            Buffer::Data => {
                empty(&mut self.data);
                self.data_lines = 0;
                // In the dialect without blank lines, what follows an error is of no interest either.
                self.kind = Kind::Message;
            }
            Buffer::Stray => {
                empty(&mut self.stray);
                self.stray_looks = 0;
            }
        }
    }

    /// A blank line or the end: the pending event; stray text waits for the next one.
    fn complete(&mut self) -> Option<Buffer> {
        if self.data_lines > 0 {
            return Some(Buffer::Data);
        }
        self.kind = Kind::Message;
        (!self.stray.is_empty()).then_some(Buffer::Stray)
    }

    /// Takes one whole line, without its end. Gives the buffer that holds an event which this line completes; `Err`:
    /// the bound was broken.
    fn take_line(&mut self, line: &[u8]) -> Result<Option<Buffer>, FramingError> {
        self.since_event += line.len() + 1;
        if self.since_event > EVENT_LIMIT_BYTES {
            return Err(FramingError::EventTooLarge { limit_bytes: EVENT_LIMIT_BYTES });
        }
        if line.is_empty() {
            return Ok(self.complete());
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], line.get(colon + 1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => Ok(self.take_data(value)),
            b"event" => {
                self.kind = if value == b"error" { Kind::Error } else { Kind::Message };
                Ok(None)
            }
            b"" | b"id" | b"retry" => Ok(None),
            _ => Ok(self.take_stray(line)),
        }
    }

    fn take_data(&mut self, value: &[u8]) -> Option<Buffer> {
        if self.data_lines > 0 {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.data_lines += 1;
        let whole_line = self.dialect == Dialect::LinePerEvent && self.data_lines == 1 && is_whole(&self.data);
        whole_line.then_some(Buffer::Data)
    }

    /// Whether a data line is about to follow one that was an event by itself. Only the first line of an event is
    /// looked at: if that is not a document, the event is one of several lines, not of the dialect.
    fn line_per_event(&mut self, next_line: &[u8]) -> bool {
        // By its whole name: one that only begins like it would be looked at again and again.
        let is_data = matches!(next_line.strip_prefix(b"data"), Some([] | [b':', ..]));
        let dialect = self.data_lines == 1 && is_data && is_whole(&self.data);
        if dialect {
            self.dialect = Dialect::LinePerEvent;
        }
        dialect
    }

    fn take_stray(&mut self, line: &[u8]) -> Option<Buffer> {
        if self.stray.is_empty() && !line.trim_ascii_start().starts_with(b"{") {
            return None; // an unknown field, to be ignored
        }
        if self.stray.len() + line.len() < STRAY_LIMIT_BYTES {
            self.stray.extend_from_slice(line);
            self.stray.push(b'\n');
        }
        // At its likely ends only, and not at endless ones: a hostile server must not make this quadratic.
        let likely_end = line == b"}" || (line.first() == Some(&b'{') && line.trim_ascii_end().last() == Some(&b'}'));
        if !likely_end || self.stray_looks == STRAY_LOOKS {
            return None;
        }
        self.stray_looks += 1;
        is_whole(&self.stray).then_some(Buffer::Stray)
    }
}

impl<'b> Events<'_, 'b> {
    /// The next event; `None` when all bytes are taken.
    pub fn next_event(&mut self) -> Option<Result<Event<'_>, FramingError>> {
        self.decoder.clear_handed_out();
        if let Some(data) = self.whole_event() {
            return Some(Ok(Event::Data(data)));
        }
        if let Some(buffer) = self.decoder_progress().transpose() {
            return Some(buffer.map(|buffer| self.decoder.hand_out(buffer)));
        }
        None
    }

    /// The usual case, without a copy: nothing is held, and the bytes begin with one data line and its blank line.
    fn whole_event(&mut self) -> Option<&'b [u8]> {
        let decoder = &mut *self.decoder;
        if !decoder.is_between_events() {
            return None;
        }
        let bytes: &'b [u8] = self.bytes;
        let value = bytes.strip_prefix(b"data: ")?;
        let end = memchr::memchr2(b'\n', b'\r', value)?;
        let (data, after) = value.split_at(end);
        self.bytes = [&b"\n\n"[..], b"\r\n\r\n"].iter().find_map(|blank| after.strip_prefix(*blank))?;
        (decoder.start, decoder.since_event) = (Start::Seen, 0);
        Some(data)
    }

    fn decoder_progress(&mut self) -> Result<Option<Buffer>, FramingError> {
        let decoder = &mut *self.decoder;
        while !self.bytes.is_empty() {
            if std::mem::take(&mut decoder.after_return)
                && let Some(rest) = self.bytes.strip_prefix(b"\n")
            {
                self.bytes = rest;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', self.bytes) else {
                if decoder.line.len() + self.bytes.len() > EVENT_LIMIT_BYTES {
                    return Err(FramingError::EventTooLarge { limit_bytes: EVENT_LIMIT_BYTES });
                }
                decoder.line.extend_from_slice(self.bytes);
                self.bytes = &[];
                return Ok(None);
            };
            let (piece, rest) = self.bytes.split_at(end);
            let held = std::mem::take(&mut decoder.line);
            let joined;
            let line = if held.is_empty() {
                piece
            } else {
                joined = [held.as_slice(), piece].concat();
                joined.as_slice()
            };
            let line = decoder.without_bom(line);
            // The event before it ends here, and the line waits for the next call.
            if decoder.line_per_event(line) {
                decoder.line = held;
                return Ok(Some(Buffer::Data));
            }
            decoder.after_return = rest.first() == Some(&b'\r');
            self.bytes = rest.get(1..).unwrap_or_default();
            decoder.start = Start::Seen;
            let done = decoder.take_line(line)?;
            if done.is_some() {
                return Ok(done);
            }
        }
        Ok(None)
    }
}

/// A whole JSON object, or the end mark.
fn is_whole(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text == b"[DONE]"
        || (text.first() == Some(&b'{')
            && text.last() == Some(&b'}')
            && serde_json::from_slice::<IgnoredAny>(text).is_ok())
}

/// Empties a buffer, and gives a large one back.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP_BYTES {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
