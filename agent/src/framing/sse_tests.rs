//! Every dialect, cut anywhere, and streams that mean harm.

use proptest::prelude::*;

use super::*;

/// All events of a stream that comes in these pieces, one line each.
fn decode(pieces: &[&[u8]]) -> String {
    let mut sse = Sse::default();
    let mut out = String::new();
    let mut note = |event: Event<'_>| {
        let (name, text) = match event {
            Event::Data(text) => ("data", text),
            Event::Error(text) => ("error", text),
            Event::Stray(text) => ("stray", text),
        };
        let shown = String::from_utf8_lossy(text);
        out.extend([name, " ", &shown.escape_debug().to_string(), "\n"]);
    };
    for piece in pieces {
        let mut events = sse.push(piece);
        while let Some(event) = events.next_event() {
            note(event.unwrap());
        }
    }
    while let Some(event) = sse.finish() {
        note(event);
    }
    out
}

#[test]
fn every_dialect() {
    let check = |stream: &str, events: &str| assert_eq!(decode(&[stream.as_bytes()]), events, "{stream:?}");
    check("data: a\n\ndata: b\n\n", "data a\ndata b\n");
    check("data:a\r\n\r\ndata:b\r\n\r\n", "data a\ndata b\n");
    check("data:a\r\rdata:  b\r\r", "data a\ndata  b\n");
    check("\u{feff}data: a\n\n", "data a\n");
    check(": ping\n\n:\n\ndata: a\n\n", "data a\n");
    check("id: 1\nretry: 3\nevent: message\ndata: a\ndata: b\n\n", "data a\\nb\n");
    check("event: error\ndata: no\n\ndata: a\n\n", "error no\ndata a\n");
    check("event: error\n\ndata: a\n\n", "data a\n");
    check("data\n\n", "data \n");
    check("data: cut off", "data cut off\n");
    check("strange: field\ndata: a\n\n", "data a\n");
}

#[test]
fn lines_that_are_events_of_their_own() {
    let check = |stream: &str, events: &str| assert_eq!(decode(&[stream.as_bytes()]), events, "{stream:?}");
    check("data: {}\ndata: {}\ndata: [DONE]\n", "data {}\ndata {}\ndata [DONE]\n");
    check("data: {}\ndata: [DONE]", "data {}\ndata [DONE]\n");
    check("data: {\ndata: \"a\": {}\ndata: }\n\n", "data {\\n\\\"a\\\": {}\\n}\n");
}

#[test]
fn text_between_events() {
    let check = |stream: &str, events: &str| assert_eq!(decode(&[stream.as_bytes()]), events, "{stream:?}");
    check("data: a\n\n{\n \"error\": {}\n}\n", "data a\nstray {\\n \\\"error\\\": {}\\n}\\n\n");
    check("{\"error\":1}\ndata: a\n\n", "stray {\\\"error\\\":1}\\n\ndata a\n");
    check("{ not json\n\ndata: a\n\n", "stray { not json\\n\ndata a\n");
}

#[test]
fn an_object_is_looked_at_a_bounded_number_of_times() {
    let mut sse = Sse::default();
    let first = |sse: &mut Sse, text: &str| {
        sse.push(text.as_bytes()).next_event().is_some_and(|event| matches!(event, Ok(Event::Stray(_))))
    };
    assert!(first(&mut sse, "{\"a\":{\n}\n}\n"), "whole at its second likely end");
    assert!(!first(&mut sse, &format!("{{\"a\":\"{}\n", "x".repeat(60_000))));
    assert!(!first(&mut sse, &"}\n".repeat(100_000)));
    assert_eq!(sse.stray_looks, STRAY_LOOKS);
    // Its event ends like any other, and the next one is looked at again.
    assert!(first(&mut sse, "\n"));
    assert!(first(&mut sse, "{\"b\":1}\n"));
}

#[test]
fn a_field_that_begins_like_data_is_none() {
    let stream = "data: {\"a\":1}\ndatax: b\ndata: {\"c\":2}\n\n";
    assert_eq!(decode(&[stream.as_bytes()]), "data {\\\"a\\\":1}\ndata {\\\"c\\\":2}\n");
}

#[test]
fn an_endless_event_is_refused() {
    let mut sse = Sse::default();
    let piece = vec![b'x'; 1 << 20];
    let refused = (0..17).find_map(|_| sse.push(&piece).next_event().and_then(Result::err));
    assert_eq!(refused, Some(FramingError::EventTooLarge { limit_bytes: EVENT_LIMIT_BYTES }));
    let mut sse = Sse::default();
    let piece = format!(": {}\n", "x".repeat(1_021)).repeat(1 << 10);
    let comment = |sse: &mut Sse| sse.push(piece.as_bytes()).next_event().and_then(Result::err);
    assert_eq!((0..10).find_map(|_| comment(&mut sse)), None);
    assert_eq!(sse.push(b"data: a\n\n").next_event(), Some(Ok(Event::Data(b"a"))));
    let refused = (1..=17).find_map(|n| comment(&mut sse).map(|error| (n, error)));
    assert_eq!(refused, Some((17, FramingError::EventTooLarge { limit_bytes: EVENT_LIMIT_BYTES })));
}

proptest! {
    #[test]
    fn cuts_do_not_matter(
        lines in prop::collection::vec("(data: ?[{}a-c]{0,4}|data: \\{\\}|: c|event: error|\\{\"error\":1\\}|é|)(\n|\r\n|\r|\n\n)", 0..12),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let stream = lines.concat();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(decode(&pieces), decode(&[bytes]));
    }
}
