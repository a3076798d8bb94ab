//! Tests of the simulator through real sockets, and their small client.

mod misbehaviour;
mod protocol;
mod truth;

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The exact preset, twenty times as fast.
fn fast() -> SimConfig {
    SimConfig { clock_factor: 20.0, recording: Recording::EveryChunk, ..SimConfig::preset("exact").unwrap() }
}

fn scripted(script: &str) -> SimConfig {
    SimConfig { script: script.parse().unwrap(), ..fast() }
}

async fn start(config: SimConfig) -> Sim {
    Sim::start(config, LOCAL).await.unwrap()
}

fn client() -> reqwest::Client {
    // Another test may have installed it already.
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// A streaming chat request for `tokens` tokens.
fn chat(content: &str, tokens: u64) -> Value {
    json!({
        "messages": [{"role": "user", "content": content}], "max_tokens": tokens, "ignore_eos": true, "seed": 7,
        "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true},
    })
}

async fn post(sim: &Sim, path: &str, id: &str, body: &Value) -> reqwest::Response {
    let request = client().post(format!("{}{path}", sim.base_url())).header("x-request-id", id);
    request.body(body.to_string()).send().await.unwrap()
}

async fn get(sim: &Sim, path: &str) -> String {
    client().get(format!("{}{path}", sim.base_url())).send().await.unwrap().text().await.unwrap()
}

/// The streamed chat's body.
async fn streamed(sim: &Sim, id: &str, body: &Value) -> String {
    post(sim, "/v1/chat/completions", id, body).await.text().await.unwrap()
}

/// The JSON events of a stream's body, without comments and `[DONE]`.
fn events(body: &str) -> Vec<Value> {
    let data = body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn text(body: &str) -> String {
    let deltas = events(body)
        .into_iter()
        .filter_map(|event| event.pointer("/choices/0/delta/content").and_then(Value::as_str).map(ToOwned::to_owned));
    deltas.collect()
}

/// A request as bytes, for tests that look at the connection itself.
fn raw(id: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

async fn connect(sim: &Sim, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(sim.address()).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

/// Reads until `end` was seen.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(end) {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "closed after {}", String::from_utf8_lossy(&seen));
    }
    String::from_utf8(seen).unwrap()
}

/// Waits for a state that follows from something asynchronous.
async fn eventually(mut reached: impl FnMut() -> bool) {
    while !reached() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
