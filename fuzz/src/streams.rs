//! What a server under test sends: streams, their chunks, its pages of metrics, and texts that may hold a key.

use speedmatrix_agent::{
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
