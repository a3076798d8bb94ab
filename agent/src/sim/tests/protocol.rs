//! What the endpoints answer.

use super::*;

#[tokio::test]
async fn a_stream_has_vllms_order_of_events() {
    let sim = start(fast()).await;
    let response = post(&sim, "/v1/chat/completions", "a1", &chat("hello", 2)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["x-request-id"], "a1");
    let body = response.text().await.unwrap();
    let created = events(&body)[0]["created"].to_string();
    insta::assert_snapshot!(body.replace(&created, "0"), @r#"
    data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":0,"model":"exact","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":136,"total_tokens":136,"completion_tokens":0}}

    data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":0,"model":"exact","choices":[{"index":0,"delta":{"content":" sori"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":136,"total_tokens":137,"completion_tokens":1}}

    data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":0,"model":"exact","choices":[{"index":0,"delta":{"content":" fini"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":136,"total_tokens":138,"completion_tokens":2}}

    data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":0,"model":"exact","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":136,"total_tokens":138,"completion_tokens":2}}

    data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":0,"model":"exact","choices":[],"usage":{"prompt_tokens":136,"total_tokens":138,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}

    data: [DONE]
    "#);
    sim.stop().await;
}

#[tokio::test]
async fn usage_is_given_as_asked_and_as_able() {
    let final_only = json!({"include_usage": true});
    let every = json!({"include_usage": true, "continuous_usage_stats": true});
    // (capability, asked, events with a usage out of role + 3 tokens + finish, final usage present)
    let cases = [
        (UsageStyle::EveryChunk, Some(&every), 5, 1),
        (UsageStyle::EveryChunk, Some(&final_only), 0, 1),
        (UsageStyle::EveryChunk, None, 0, 0),
        (UsageStyle::FinalOnly, Some(&every), 0, 1),
        (UsageStyle::None, Some(&every), 0, 0),
    ];
    for (usage, asked, inside, at_end) in cases {
        let sim = start(SimConfig { usage, ..fast() }).await;
        let mut body = chat("hello", 3);
        body["stream_options"] = asked.cloned().unwrap_or_default();
        let with_usage: Vec<_> = events(&streamed(&sim, "u", &body).await)
            .into_iter()
            .filter(|event| event.get("usage").is_some())
            .collect();
        let last = with_usage.iter().filter(|event| event["choices"] == json!([])).count();
        assert_eq!((with_usage.len() - last, last), (inside, at_end), "{usage:?} {asked:?}");
        sim.stop().await;
    }
}

#[tokio::test]
async fn a_whole_answer_and_a_completion_have_the_same_truth() {
    let sim = start(fast()).await;
    let mut body = chat("hello", 4);
    body["stream"] = json!(false);
    let answer: Value = serde_json::from_str(&streamed(&sim, "w", &body).await).unwrap();
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 136, "completion_tokens": 4, "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 0}})
    );
    assert_eq!(answer["choices"][0]["message"]["content"], text(&streamed(&sim, "s", &chat("hello", 4)).await));
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(sim.log().record("w").unwrap().output_tokens, 4);

    let body = json!({"prompt": "once upon a time", "max_tokens": 3, "ignore_eos": true, "stream": true});
    let streamed = post(&sim, "/v1/completions", "c", &body).await.text().await.unwrap();
    let texts = events(&streamed).iter().filter(|event| event["choices"][0]["text"] != "").count();
    assert_eq!(texts, 3);
    assert!(streamed.ends_with("data: [DONE]\n\n"));
    sim.stop().await;
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let sim = start(fast()).await;
    let mut stream = connect(&sim, &raw("k1", &chat("one", 2))).await;
    read_until(&mut stream, "0\r\n\r\n").await;
    stream.write_all(&raw("k2", &chat("two", 2))).await.unwrap();
    read_until(&mut stream, "0\r\n\r\n").await;
    stream.write_all(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{rest}");
    assert_eq!(sim.log().totals().completed, 2);
    sim.stop().await;
}

#[tokio::test]
async fn a_request_sent_ahead_is_served_next() {
    let sim = start(fast()).await;
    let both = [raw("p1", &chat("one", 2)), raw("p2", &chat("two", 2))].concat();
    let mut stream = connect(&sim, &both).await;
    let seen = read_until(&mut stream, "x-request-id: p2").await;
    assert!(seen.contains("x-request-id: p1"));
    sim.stop().await;
}

#[tokio::test]
async fn a_long_prompt_is_read_after_100_continue() {
    let sim = start(fast()).await;
    let body = chat(&"word ".repeat(1_000_000), 1).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nx-request-id: big\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(&sim, head.as_bytes()).await;
    read_until(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n").await;
    stream.write_all(body.as_bytes()).await.unwrap();
    read_until(&mut stream, "data: [DONE]").await;
    assert_eq!(sim.log().record("big").unwrap().prompt_tokens, 1_000_135);
    sim.stop().await;
}

#[tokio::test]
async fn facts_are_told() {
    let sim = start(SimConfig { max_sequences: 9, ..fast() }).await;
    let models: Value = serde_json::from_str(&get(&sim, "/v1/models").await).unwrap();
    assert_eq!(models["data"][0]["max_model_len"], 1_048_576);
    assert_eq!(models["data"][0]["owned_by"], "vllm");
    assert_eq!(get(&sim, "/version").await, r#"{"version":"0.25.0-sim"}"#);
    assert_eq!(get(&sim, "/health").await, "");
    let info: Value = serde_json::from_str(&get(&sim, "/sim/info").await).unwrap();
    assert_eq!(info["simulated"], true);
    assert_eq!((&info["clock_factor"], &info["max_sequences"]), (&json!(20.0), &json!(9)));

    let generated = text(&streamed(&sim, "t", &chat("hello", 12)).await);
    let counted = post(&sim, "/tokenize", "n", &json!({"prompt": generated})).await.text().await.unwrap();
    assert_eq!(counted, r#"{"count":12,"max_model_len":1048576}"#);
    let log: Value = serde_json::from_str(&get(&sim, "/sim/log?id=t").await).unwrap();
    assert_eq!((&log["requests"][0]["output_tokens"], &log["requests"][0]["end"]), (&json!(12), &json!("completed")));
    let metrics = get(&sim, "/metrics").await;
    assert!(metrics.contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"exact\"} 12\n"), "{metrics}");
    assert!(
        metrics
            .contains("vllm:request_success_total{engine=\"0\",model_name=\"exact\",finished_reason=\"length\"} 1\n")
    );
    sim.stop().await;
}

#[tokio::test]
async fn refusals_have_vllms_shape() {
    let sim = start(SimConfig { api_key: Some(ApiKey::new("k")), ..fast() }).await;
    let mut seen = Vec::new();
    let mut ask = async |method: &str, path: &str, key: &str, body: &str| {
        let request = client().request(method.parse().unwrap(), format!("{}{path}", sim.base_url()));
        let response = request.bearer_auth(key).body(body.to_owned()).send().await.unwrap();
        seen.push(format!("{} {}", response.status().as_u16(), response.text().await.unwrap()));
    };
    let chat = "/v1/chat/completions";
    ask("POST", chat, "wrong", "{}").await;
    ask("POST", chat, "k", "{").await;
    ask("POST", chat, "k", r#"{"model": "gpt", "messages": []}"#).await;
    ask("POST", chat, "k", r#"{"messages": [{"role": "user", "content": "x"}], "max_tokens": 2000000}"#).await;
    ask("GET", chat, "k", "").await;
    ask("GET", "/v2", "k", "").await;
    insta::assert_snapshot!(seen.join("\n"), @r#"
    401 {"error":"Unauthorized"}
    400 {"error":{"code":400,"message":"the body is not a request: EOF while parsing an object at line 1 column 1","param":null,"type":"BadRequestError"}}
    404 {"error":{"code":404,"message":"The model `gpt` does not exist.","param":null,"type":"NotFoundError"}}
    400 {"error":{"code":400,"message":"This model's maximum context length is 1048576 tokens. However, you requested 2000136 tokens (136 in the messages, 2000000 in the completion). Please reduce the length of the messages or completion.","param":null,"type":"BadRequestError"}}
    405 {"detail":"Method Not Allowed"}
    404 {"detail":"Not Found"}
    "#);
    sim.stop().await;
}

#[tokio::test]
async fn a_bad_configuration_does_not_start() {
    let error = Sim::start(SimConfig { clock_factor: 0.0, ..fast() }, LOCAL).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_simulator_runs_on_a_thread_of_its_own() {
    let sim = Sim::start_on_thread(fast(), LOCAL).unwrap();
    assert!(std::net::TcpStream::connect(sim.address()).is_ok());
    let address = sim.address();
    sim.stop();
    assert!(std::net::TcpStream::connect(address).is_err());
}
