//! The endpoints, and the life of a connection.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Shared;
use super::clock::unix_secs;
use super::config::SimConfig;
use super::generate::{generate, refused_answer};
use super::http::{After, Answer, Connection, Head, Unread};
use super::metrics::Labels;
use super::prompt::{self, Endpoint};
use super::sequence::Load;

/// The version that `/version` tells.
const VERSION: &str = "0.25.0-sim";

/// Concurrency at which the simulated GPUs draw half of what load adds; made up.
const HALF_POWER_STREAMS: f64 = 4.0;

impl Shared {
    /// Numbers generation requests from 1.
    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Relaxed) + 1
    }

    fn metrics_page(&self) -> String {
        self.metrics.render(Labels {
            model: &self.config.model,
            kv_capacity_tokens: self.config.kv_tokens,
            draft_tokens: self.config.speculation.map_or(0, |speculation| speculation.draft_tokens),
        })
    }
}

/// Serves one connection until it ends.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    loop {
        let head = match connection.head().await {
            Ok(head) => head,
            Err(Unread::Gone) => return,
            Err(Unread::Bad(answer)) => {
                connection.answer(&answer).await.ok();
                return;
            }
        };
        let next = match generation(&shared, &head) {
            Some(endpoint) => generate(&shared, connection, &head, endpoint).await,
            None => plain(&shared, connection, &head).await,
        };
        match next {
            Some(next) if head.after == After::KeepAlive => connection = next,
            _ => return,
        }
    }
}

/// Which generation endpoint this is, if the client may use it.
fn generation(shared: &Shared, head: &Head) -> Option<Endpoint> {
    let endpoint = match head.path.as_str() {
        "/v1/chat/completions" => Endpoint::Chat,
        "/v1/completions" => Endpoint::Completions,
        _ => return None,
    };
    (head.method == "POST" && authorized(shared, head)).then_some(endpoint)
}

/// The key guards `/v1` only, as in vLLM.
fn authorized(shared: &Shared, head: &Head) -> bool {
    let key = shared.config.api_key.as_ref().filter(|_| head.path.starts_with("/v1"));
    key.is_none_or(|key| key.opens(head.authorization.as_deref()))
}

async fn plain(shared: &Shared, mut connection: Connection, head: &Head) -> Option<Connection> {
    let (answer, reusable) = match connection.body(head).await {
        Ok(body) => (answer(shared, head, &body), true),
        Err(Unread::Gone) => return None,
        Err(Unread::Bad(answer)) => (answer, false),
    };
    let answer = Answer { request_id: head.request_id.clone(), ..answer };
    connection.answer(&answer).await.ok().filter(|()| reusable).map(|()| connection)
}

fn answer(shared: &Shared, head: &Head, body: &[u8]) -> Answer {
    if !authorized(shared, head) {
        return Answer::json(401, &json!({"error": "Unauthorized"}));
    }
    let config = &shared.config;
    match (head.method.as_str(), head.path.as_str()) {
        ("GET", "/health") => Answer::bytes(200, "text/plain; charset=utf-8", Vec::new()),
        ("GET", "/version") => Answer::json(200, &json!({"version": VERSION})),
        ("GET", "/v1/models") => Answer::json(200, &models(config)),
        ("GET", "/metrics") => {
            Answer::bytes(200, "text/plain; version=0.0.4; charset=utf-8", shared.metrics_page().into_bytes())
        }
        ("POST", "/tokenize") => match prompt::count(body, config) {
            Ok(count) => Answer::json(200, &json!({"count": count, "max_model_len": config.max_model_len})),
            Err(refused) => refused_answer(&refused),
        },
        ("GET", "/sim/info") => Answer::json(200, &info(config, shared.metrics.load())),
        ("GET", "/sim/log") => Answer::json(200, &log(shared, &head.query)),
        (
            _,
            "/health"
            | "/version"
            | "/v1/models"
            | "/metrics"
            | "/tokenize"
            | "/sim/info"
            | "/sim/log"
            | "/v1/chat/completions"
            | "/v1/completions",
        ) => Answer::json(405, &json!({"detail": "Method Not Allowed"})),
        _ => Answer::json(404, &json!({"detail": "Not Found"})),
    }
}

fn models(config: &SimConfig) -> Value {
    json!({"object": "list", "data": [{
        "id": config.model, "object": "model", "created": unix_secs(), "owned_by": "vllm", "root": config.model,
        "parent": null, "max_model_len": config.max_model_len,
    }]})
}

/// `/sim/info`: how a client knows that nothing here is real, and by which factor the clock runs.
fn info(config: &SimConfig, load: Load) -> Value {
    let hardware = &config.hardware;
    let busy = load.running as f64 / (load.running as f64 + HALF_POWER_STREAMS);
    json!({
        "simulated": true,
        "preset": config.preset,
        "seed": config.seed,
        "clock_factor": config.clock_factor,
        "max_sequences": config.max_sequences,
        "max_model_len": config.max_model_len,
        "kv_tokens": config.kv_tokens,
        "hardware": hardware,
        "power_watts_each": hardware.idle_watts + busy * (hardware.limit_watts - hardware.idle_watts),
    })
}

/// `/sim/log`: all records, or those of `?id=`.
fn log(shared: &Shared, query: &str) -> Value {
    let wanted = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "id");
    let records = match wanted {
        Some((_, id)) => shared.log.record(&id).into_iter().collect(),
        None => shared.log.records(),
    };
    json!({"requests": records, "totals": shared.log.totals()})
}
