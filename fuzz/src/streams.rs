//! What a server under test sends: streams, their chunks, its pages of metrics, and texts that may hold a key.

use speedmatrix_agent::{
    client::http1::{After, HeadReader, Piece},
    engine::{self, exposition::Page, gauges::EngineGauges},
    framing::{Event, FramingError, Sse},
    secret::{self, Secret},
};

/// An event on its own.
#[derive(Debug, PartialEq)]
enum Whole {
    Data(Vec<u8>),
    Error(Vec<u8>),
    Stray(Vec<u8>),
    TooLarge(FramingError),
}

impl From<Event<'_>> for Whole {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Data(bytes) => Self::Data(bytes.to_vec()),
            Event::Error(bytes) => Self::Error(bytes.to_vec()),
            Event::Stray(bytes) => Self::Stray(bytes.to_vec()),
        }
    }
}

fn events(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<Whole> {
    let (mut sse, mut events) = (Sse::default(), Vec::new());
    for piece in pieces {
        let mut completed = sse.push(piece.as_ref());
        while let Some(event) = completed.next_event() {
            match event {
                Ok(event) => events.push(event.into()),
                Err(error) => {
                    events.push(Whole::TooLarge(error));
                    return events;
                }
            }
        }
    }
    while let Some(event) = sse.finish() {
        events.push(event.into());
    }
    events
}

/// A stream is cut into the same events wherever reads cut it.
pub(crate) fn sse(bytes: &[u8]) {
    let whole = events(std::iter::once(bytes));
    let size = bytes.first().map_or(1, |byte| usize::from(byte % 7) + 1);
    assert_eq!(whole, events(bytes.chunks(size)), "in pieces of {size}");
    for event in &whole {
        if let Whole::Data(data) | Whole::Error(data) | Whole::Stray(data) = event {
            decode(data);
        }
    }
}

/// An answer as far as it was read.
#[derive(Debug, PartialEq)]
enum Answer {
    /// Its head is not whole.
    Begun,
    /// Its status, content, whether its body is whole, and what becomes of the connection.
    Read(u16, Vec<u8>, bool, After),
    /// It is none, in words.
    Bad(String),
}

fn answer<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Answer {
    let (mut reader, mut read) = (HeadReader::default(), None);
    for mut piece in pieces {
        if read.is_none() {
            match reader.push(piece) {
                Ok(Some((head, rest))) => {
                    piece = rest;
                    read = Some((head, Vec::new()));
                }
                Ok(None) => continue,
                Err(error) => return Answer::Bad(error.to_string()),
            }
        }
        let Some((head, content)) = &mut read else { continue };
        loop {
            match head.body.next(&mut piece) {
                Ok(Piece::Data(data)) => content.extend_from_slice(data),
                Ok(Piece::More | Piece::End) => break,
                Err(error) => return Answer::Bad(error.to_string()),
            }
        }
    }
    match read {
        Some((head, content)) => Answer::Read(head.status.as_u16(), content, head.body.is_over(), head.after),
        None => Answer::Begun,
    }
}

/// Most reads that bring an answer: its head is looked at with each of them.
const MOST_READS: usize = 64;

/// An answer is the same wherever reads cut it, and holds no more than came.
pub(crate) fn http1(bytes: &[u8]) {
    let whole = answer(std::iter::once(bytes));
    let size = bytes.first().map_or(1, |byte| usize::from(byte % 7) + 1).max(bytes.len() / MOST_READS);
    assert_eq!(whole, answer(bytes.chunks(size)), "in pieces of {size}");
    if let Answer::Read(status, content, ..) = whole {
        assert!(content.len() < bytes.len() && !(100..200).contains(&status), "{status}: {} bytes", content.len());
    }
}

/// Whatever a chunk holds, decoding it ends and says something.
pub(crate) fn decode(bytes: &[u8]) {
    let mut scratch = String::new();
    if let engine::Decoded::Delta(delta) = engine::decode(bytes, &mut scratch) {
        assert!(delta.has_text() || !delta.has_content(), "content is text");
    }
}

/// What a page of metrics does not tell is unknown, never "not a number".
pub(crate) fn prometheus(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let page = Page::read(&text);
    if let Some(gauges) = EngineGauges::of(&page) {
        let told = format!("{gauges:?}");
        assert!(!told.contains("NaN") && !told.contains("inf"), "{told}");
        assert!(!gauges.words().is_empty() || !gauges.speculates(), "{told}");
    }
}

/// Taking keys out of texts ends, and a known key is not in what comes out.
pub(crate) fn secrets(bytes: &[u8]) {
    const KEY: &str = "sk-0123456789abcdef0123456789abcdef";
    let text = String::from_utf8_lossy(bytes);
    let known = Secret::new(KEY);
    assert!(!secret::redact(&text, known.as_ref()).contains(KEY));
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(secret::argv(&words).len(), words.len());
    if let Some((name, value)) = text.split_once('=') {
        secret::environment(name, value);
        secret::header(name, value);
    }
}
