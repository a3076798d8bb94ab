//! Each misbehaviour as a client sees it.

use super::*;

/// Everything that a raw connection gives until it is closed.
async fn until_closed(sim: &Sim, id: &str, tokens: u64) -> (String, io::Result<usize>) {
    let mut stream = connect(sim, &raw(id, &chat("hello", tokens))).await;
    let mut seen = Vec::new();
    let end = stream.read_to_end(&mut seen).await;
    (String::from_utf8(seen).unwrap(), end)
}

fn content_chunks(body: &str) -> usize {
    body.matches("\"content\":\" ").count()
}

#[tokio::test]
async fn a_stalled_stream_stays_open_and_silent() {
    let sim = start(scripted("stall-after:3,nth:2")).await;
    assert_eq!(content_chunks(&streamed(&sim, "fine", &chat("hello", 5)).await), 5);
    let mut stream = connect(&sim, &raw("stalled", &chat("hello", 5))).await;
    // To the end of the third one's HTTP chunk: reads end anywhere.
    let mut seen = Vec::new();
    let is_whole = |seen: &[u8]| {
        let text = String::from_utf8_lossy(seen);
        content_chunks(&text) >= 3 && text.ends_with("}\n\n\r\n")
    };
    while !is_whole(&seen) {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "closed after {}", String::from_utf8_lossy(&seen));
    }
    // Later requests pass it; it gets nothing more.
    streamed(&sim, "fine2", &chat("hello", 50)).await;
    let mut byte = [0];
    assert_eq!(stream.try_read(&mut byte).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(sim.log().record("stalled").unwrap().end, None);
    drop(stream);
    eventually(|| sim.log().record("stalled").unwrap().end == Some(End::ClientLeft)).await;
    assert_eq!(sim.log().record("stalled").unwrap().output_tokens, 3);
    sim.stop().await;
}

#[tokio::test]
async fn a_reset_is_a_reset() {
    let sim = start(scripted("reset-after:2")).await;
    let (_, end) = until_closed(&sim, "r", 5).await;
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let record = sim.log().record("r").unwrap();
    assert_eq!((record.output_tokens, record.end), (2, Some(End::Scripted)));
    sim.stop().await;
}

#[tokio::test]
async fn a_closed_stream_ends_in_the_middle_of_the_body() {
    let sim = start(scripted("close-after:2")).await;
    let (body, end) = until_closed(&sim, "c", 5).await;
    end.unwrap();
    assert_eq!(content_chunks(&body), 2);
    assert!(!body.contains("[DONE]") && !body.ends_with("0\r\n\r\n"));
    sim.stop().await;
}

#[tokio::test]
async fn an_error_comes_as_an_event() {
    let sim = start(scripted("error-after:2")).await;
    let body = streamed(&sim, "e", &chat("hello", 5)).await;
    let events = events(&body);
    assert_eq!(events.last().unwrap()["error"]["code"], 500);
    assert_eq!(content_chunks(&body), 2);
    let mut whole = chat("hello", 5);
    whole["stream"] = json!(false);
    assert_eq!(post(&sim, "/v1/chat/completions", "w", &whole).await.status(), 500);
    sim.stop().await;
}

#[tokio::test]
async fn done_can_be_missing() {
    let sim = start(scripted("no-done")).await;
    let body = streamed(&sim, "n", &chat("hello", 2)).await;
    assert!(!body.contains("[DONE]"));
    assert_eq!(events(&body).last().unwrap()["usage"]["completion_tokens"], 2);
    sim.stop().await;
}

#[tokio::test]
async fn refusals_are_scripted() {
    let sim = start(scripted("429:7,at:1; 503,at:2; html,at:3; slow-header:5,at:4")).await;
    let busy = post(&sim, "/v1/chat/completions", "1", &chat("hello", 2)).await;
    assert_eq!((busy.status().as_u16(), busy.headers()["retry-after"].to_str().unwrap()), (429, "7"));
    assert_eq!(post(&sim, "/v1/chat/completions", "2", &chat("hello", 2)).await.status(), 503);
    let page = post(&sim, "/v1/chat/completions", "3", &chat("hello", 2)).await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let asked = std::time::Instant::now();
    assert_eq!(post(&sim, "/v1/chat/completions", "4", &chat("hello", 2)).await.status(), 200);
    assert!(asked.elapsed() >= Duration::from_millis(5));
    assert_eq!(sim.log().totals().requests, 1, "only the fourth reached the engine");
    sim.stop().await;
}

#[tokio::test]
async fn an_answer_can_fail_to_come() {
    let sim = start(scripted("never-answer,at:1")).await;
    let mut stream = connect(&sim, &raw("never", &chat("hello", 1))).await;
    streamed(&sim, "fine", &chat("hello", 2)).await;
    let mut byte = [0];
    assert_eq!(stream.try_read(&mut byte).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut byte).await.unwrap(), 0);
    sim.stop().await;
}

#[tokio::test]
async fn comments_splits_and_glue_leave_the_text_alone() {
    let plain = start(fast()).await;
    let want = text(&streamed(&plain, "p", &chat("hello", 9)).await);
    plain.stop().await;
    for script in ["comments", "split", "glue:4", "comments; split; glue:3", "early-role"] {
        let sim = start(scripted(script)).await;
        let body = streamed(&sim, "x", &chat("hello", 9)).await;
        assert_eq!(text(&body), want, "{script}");
        assert_eq!(body.contains(": keep-alive\n\n"), script.contains("comments"), "{script}");
        let record = sim.log().record("x").unwrap();
        assert_eq!((record.output_tokens, record.chunks), (9, 9), "{script}");
        sim.stop().await;
    }
}

#[tokio::test]
async fn glued_events_share_a_write() {
    let sim = start(scripted("glue:4")).await;
    streamed(&sim, "g", &chat("hello", 9)).await;
    let sent: Vec<_> = sim.log().record("g").unwrap().chunk_log.iter().map(|chunk| chunk.sent).collect();
    assert_eq!(sent[0], sent[3]);
    assert_eq!(sent[4], sent[7]);
    assert_ne!(sent[3], sent[4]);
    sim.stop().await;
}

#[tokio::test]
async fn the_role_can_come_long_before_the_first_token() {
    let sim =
        start(SimConfig { clock_factor: 1.0, max_sequences: 1, ..scripted("stall-after:0,at:1; early-role,at:2") })
            .await;
    let _stalled = connect(&sim, &raw("first", &chat("hello", 1_000_000))).await;
    eventually(|| sim.log().record("first").is_some()).await;
    let mut stream = connect(&sim, &raw("second", &chat("hello", 5))).await;
    read_until(&mut stream, "\"role\":\"assistant\"").await;
    assert_eq!(sim.log().record("second").unwrap().first_token, None);
    sim.stop().await;
}

#[tokio::test]
async fn text_can_be_reasoning_or_a_tool_call() {
    let sim = start(scripted("reasoning:3,at:1; tool-calls,at:2; zero-usage,at:3")).await;
    let reasoning = streamed(&sim, "1", &chat("hello", 5)).await;
    assert_eq!((reasoning.matches("\"reasoning_content\":").count(), content_chunks(&reasoning)), (3, 2));
    let calls = streamed(&sim, "2", &chat("hello", 5)).await;
    assert_eq!((calls.matches("\"arguments\":\" ").count(), calls.matches("\"name\":").count()), (5, 1));
    assert!(calls.contains("\"finish_reason\":\"tool_calls\""));
    let zero = streamed(&sim, "3", &chat("hello", 5)).await;
    assert!(events(&zero).iter().all(|event| event["usage"]["total_tokens"] == 0));
    assert_eq!(sim.log().record("3").unwrap().output_tokens, 5);
    sim.stop().await;
}
