//! Recorded kinds of streams, replayed over framing and engine at several cuts: what they say must not depend on where
//! the reads fell.

use std::{fmt::Write as _, fs, path::Path};

use speedmatrix_agent::{
    engine::{self, Decoded, Delta},
    framing::{Event, Sse},
};

/// All that a stream says, as a few lines.
fn told(pieces: &[&[u8]]) -> String {
    let (mut sse, mut told) = (Sse::default(), Told::default());
    for piece in pieces {
        let mut events = sse.push(piece);
        while let Some(event) = events.next_event() {
            told.event(event.expect("no bound is broken"));
        }
    }
    while let Some(event) = sse.finish() {
        told.event(event);
    }
    told.summary()
}

#[derive(Default)]
struct Told {
    events: usize,
    text_events: usize,
    lines: String,
    done: bool,
}

impl Told {
    fn event(&mut self, event: Event<'_>) {
        if self.done {
            return;
        }
        self.events += 1;
        let mut scratch = String::new();
        let line = match event {
            Event::Error(data) => format!("error event {:?}", String::from_utf8_lossy(data)),
            Event::Data(data) | Event::Stray(data) => match engine::decode(data, &mut scratch) {
                Decoded::Done => {
                    self.done = true;
                    "done".to_owned()
                }
                Decoded::NotJson => format!("not json {:?}", String::from_utf8_lossy(data)),
                Decoded::Delta(delta) => {
                    self.text_events += usize::from(delta.has_text());
                    said(&delta)
                }
            },
        };
        if !line.is_empty() {
            writeln!(self.lines, "  {line}").expect("a string takes everything");
        }
    }

    fn summary(&self) -> String {
        format!("{} events, {} with text\n{}", self.events, self.text_events, self.lines)
    }
}

/// What a chunk says, without what it leaves out.
fn said(delta: &Delta<'_>) -> String {
    let mut words = Vec::new();
    let mut text = |name: &str, text: &str| {
        if !text.is_empty() {
            words.push(format!("{name} {text:?}"));
        }
    };
    text("content", &delta.content);
    text("reasoning", &delta.reasoning);
    text("finish", delta.finish_reason.as_deref().unwrap_or_default());
    text("error", delta.error.as_ref().map_or("", |error| error.message.as_str()));
    for tool in &delta.tools {
        words.push(format!("tool {:?} {:?} {:?}", tool.index, tool.name, tool.arguments));
    }
    if let Some(usage) = delta.usage {
        let parts = [usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens];
        let parts = parts.map(|part| part.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()));
        words.push(format!("usage {}", parts.join(" ")));
    }
    words.join(", ")
}

#[test]
fn captures_say_the_same_however_they_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/captures");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut all = String::new();
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let whole = told(&[&bytes]);
        for cut in [1, 2, 3, 7, 64, 100] {
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            assert_eq!(told(&pieces), whole, "{} in pieces of {cut}", path.display());
        }
        writeln!(all, "{}: {whole}", path.file_stem().unwrap().display()).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_event_of_a_mebibyte_is_legal() {
    let echo = "x".repeat(1 << 20);
    let stream = format!("data: {{\"echo\":\"{echo}\",\"choices\":[{{\"delta\":{{\"content\":\"done\"}}}}]}}\n\n");
    let pieces: Vec<&[u8]> = stream.as_bytes().chunks(8 << 10).collect();
    assert_eq!(told(&pieces), "1 events, 1 with text\n  content \"done\"\n");
}
