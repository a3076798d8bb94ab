//! What the simulator does is what its log and its laws say.

use super::*;

#[tokio::test]
async fn the_log_has_the_truth_when_the_client_has_the_end() {
    let sim = start(fast()).await;
    let body = streamed(&sim, "t1", &chat("hello", 20)).await;
    let record = sim.log().record("t1").unwrap();
    assert_eq!(record.end, Some(End::Completed));
    assert_eq!((record.output_tokens, record.chunks, record.prompt_tokens), (20, 20, 136));
    assert_eq!(text(&body).len(), 100);
    let received = record.received.simulated;
    for (step, chunk) in record.chunk_log.iter().enumerate() {
        assert_eq!(chunk.due, received.after(Duration::from_millis(50 + 10 * step as u64)));
        assert!(chunk.sent.simulated >= chunk.due, "chunk {step} was early");
    }
    assert_eq!(record.first_token, Some(record.chunk_log[0].sent));
    assert_eq!(record.last_token, Some(record.chunk_log[19].sent));
    sim.stop().await;
}

#[tokio::test]
async fn several_tokens_per_chunk_add_up_to_the_usage() {
    let config = SimConfig { preset: "fast".to_owned(), ..SimConfig::preset("exact-speculative").unwrap() };
    let sim = start(SimConfig { clock_factor: 50.0, ..config }).await;
    let body = streamed(&sim, "s", &chat("hello", 200)).await;
    let usages: Vec<u64> = events(&body)
        .iter()
        .filter_map(|event| event.pointer("/usage/completion_tokens").and_then(Value::as_u64))
        .collect();
    assert!(usages.is_sorted());
    assert_eq!(usages.last(), Some(&200));
    let record = sim.log().record("s").unwrap();
    assert_eq!(record.output_tokens, 200);
    assert!(record.chunks < 120, "{} chunks", record.chunks);
    // Role, finish and the final usage carry one too.
    assert_eq!(record.chunks + 3, usages.len() as u64);
    let metrics = get(&sim, "/metrics").await;
    let drafts =
        format!("vllm:spec_decode_num_drafts_total{{engine=\"0\",model_name=\"exact\"}} {}\n", record.chunks - 1);
    assert!(metrics.contains(&drafts), "{metrics}");
    sim.stop().await;
}

#[tokio::test]
async fn equal_seeds_give_equal_streams() {
    let config = SimConfig { clock_factor: 200.0, ..SimConfig::preset("reference").unwrap() };
    let mut chunks = Vec::new();
    for seed in [1, 1, 2] {
        let sim = start(SimConfig { seed, ..config.clone() }).await;
        let mut body = chat("hello", 60);
        let deltas = |body: &str| -> Vec<Value> {
            events(body).iter().filter_map(|event| event.pointer("/choices/0/delta/content").cloned()).collect()
        };
        let first = deltas(&streamed(&sim, "d", &body).await);
        let again = deltas(&streamed(&sim, "d", &body).await);
        assert_eq!(first, again, "the same request to the same simulator");
        body["seed"] = json!(8);
        assert_ne!(first, deltas(&streamed(&sim, "d", &body).await));
        chunks.push(first);
        sim.stop().await;
    }
    assert_eq!(chunks[0], chunks[1]);
    assert_ne!(chunks[0], chunks[2]);
}

#[tokio::test]
async fn the_model_ends_its_text_when_it_likes() {
    let sim = start(SimConfig { clock_factor: 500.0, mean_output_tokens: 40, ..fast() }).await;
    let mut lengths = Vec::new();
    for seed in 0..8 {
        let mut body = chat("hello", 60);
        body["ignore_eos"] = json!(false);
        body["seed"] = json!(seed);
        let answer = streamed(&sim, &format!("m{seed}"), &body).await;
        let length = sim.log().record(&format!("m{seed}")).unwrap().output_tokens;
        let reason = if length < 60 { "\"finish_reason\":\"stop\"" } else { "\"finish_reason\":\"length\"" };
        assert!(answer.contains(reason), "{length} {answer}");
        lengths.push(length);
    }
    assert!(lengths.iter().all(|length| (1..=60).contains(length)));
    assert!(lengths.iter().any(|length| *length != lengths[0]));
    sim.stop().await;
}

#[tokio::test]
async fn a_second_request_of_a_document_hits_the_cache() {
    let sim = start(fast()).await;
    let document = "word ".repeat(1_000);
    for (id, question, cached) in [("c1", "who?", 0), ("c2", "why?", 768)] {
        let body = streamed(&sim, id, &chat(&format!("{document}{question}"), 2)).await;
        let last = events(&body).pop().unwrap();
        assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], cached, "{id}");
        assert_eq!(sim.log().record(id).unwrap().cached_tokens, cached, "{id}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_full_server_queues() {
    let sim = start(SimConfig { max_sequences: 1, ..fast() }).await;
    let (one, two) = (chat("one", 20), chat("two", 20));
    tokio::join!(streamed(&sim, "q1", &one), streamed(&sim, "q2", &two));
    let mut records = [sim.log().record("q1").unwrap(), sim.log().record("q2").unwrap()];
    records.sort_by_key(|record| record.admitted);
    let last_due = records[0].chunk_log.last().unwrap().due;
    assert_eq!(records[1].admitted, Some(last_due), "the slot passes on at once");
    assert!(records[1].queue_ns > records[0].queue_ns);
    sim.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot() {
    let sim = start(SimConfig { max_sequences: 1, ..fast() }).await;
    let mut stream = connect(&sim, &raw("gone", &chat("hello", 1_000_000))).await;
    read_until(&mut stream, "\"content\":\" ").await;
    drop(stream);
    let body = streamed(&sim, "next", &chat("hello", 3)).await;
    assert!(body.ends_with("data: [DONE]\n\n"));
    eventually(|| sim.log().record("gone").unwrap().end == Some(End::ClientLeft)).await;
    assert!(get(&sim, "/metrics").await.contains("finished_reason=\"abort\"} 1\n"));
    sim.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let mut config = SimConfig { clock_factor: 100_000.0, recording: Recording::FirstAndLast, ..fast() };
    config.max_sequences = 1;
    let sim = start(config).await;
    let stream = connect(&sim, &raw("slow", &chat("hello", 1_000_000))).await;
    eventually(|| sim.log().record("slow").is_some_and(|record| record.end == Some(End::ClientTooSlow))).await;
    drop(stream);
    sim.stop().await;
}

#[tokio::test]
async fn stopping_closes_the_books() {
    let sim = start(fast()).await;
    let mut stream = connect(&sim, &raw("s", &chat("hello", 1_000_000))).await;
    read_until(&mut stream, "\"content\":\" ").await;
    let log = sim.log();
    sim.stop().await;
    assert_eq!(log.record("s").unwrap().end, Some(End::Stopped));
}
