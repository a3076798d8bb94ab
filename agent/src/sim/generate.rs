//! A generation request from its body to its last byte: refused, or handed to the engine and waited for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Shared;
use super::clock::{Stamp, unix_secs};
use super::config::UsageStyle;
use super::delivery::{Delivery, Form, Reply, Then, Written};
use super::engine::Command;
use super::http::{Answer, Connection, Head, Unread, client_left};
use super::log::RequestRecord;
use super::metrics::Finish;
use super::prompt::{self, Asked, AskedUsage, Asking, Endpoint, Length, Refused};
use super::render::Shape;
use super::script::{Behaviour, Misbehaviour};
use super::sequence::Order;
use super::text::{Purpose, Writer, log_normal, seeded};
use super::wire::Wire;

/// Bodies above this are parsed away from the engine's thread: a million tokens take milliseconds.
const BIG_BODY_BYTES: usize = 256 << 10;

/// Scatter of the outputs' lengths (σ of the logarithm).
pub(super) const LENGTH_SIGMA: f64 = 0.6;

/// Serves one generation request. Returns the connection when it can be used again.
pub(super) async fn generate(
    shared: &Arc<Shared>,
    mut connection: Connection,
    head: &Head,
    endpoint: Endpoint,
) -> Option<Connection> {
    let body = match connection.body(head).await {
        Ok(body) => body,
        Err(Unread::Gone) => return None,
        Err(Unread::Bad(answer)) => {
            connection.answer(&answer).await.ok();
            return None;
        }
    };
    let received = shared.clock.stamp();
    let number = shared.next_request();
    let behaviour = shared.config.script.behaviour(number, shared.config.seed);
    let id = head.request_id.clone().unwrap_or_else(|| format!("sim-{number}"));
    for misbehaviour in behaviour.all() {
        match *misbehaviour {
            Misbehaviour::NeverAnswer => {
                client_left(&mut connection.read, &mut connection.buffer).await;
                return None;
            }
            Misbehaviour::SlowHeader { millis } => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            _ => {}
        }
    }
    let asked = match refusal(&behaviour) {
        Some(answer) => Err(answer),
        None => understand(shared, body, endpoint).await.map_err(|refused| refused_answer(&refused)),
    };
    match asked {
        Ok(asked) => {
            let request = Request { number, id, received, endpoint, behaviour };
            serve(shared, connection, request, asked).await
        }
        Err(answer) => {
            let answer = Answer { request_id: Some(id), ..answer };
            connection.answer(&answer).await.ok().map(|()| connection)
        }
    }
}

/// What is known of a request beside its body.
struct Request {
    number: u64,
    id: String,
    received: Stamp,
    endpoint: Endpoint,
    behaviour: Behaviour,
}

async fn understand(shared: &Arc<Shared>, body: Vec<u8>, endpoint: Endpoint) -> Result<Asked, Refused> {
    if body.len() < BIG_BODY_BYTES {
        return prompt::read(&body, endpoint, &shared.config);
    }
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || prompt::read(&body, endpoint, &shared.config))
        .await
        .expect("reading a prompt never panics, and nobody cancels it")
}

async fn serve(shared: &Arc<Shared>, mut connection: Connection, request: Request, asked: Asked) -> Option<Connection> {
    let streaming = match asked.delivery {
        Asking::Stream(usage) => Some(capable(usage, shared.config.usage)),
        Asking::Whole => None,
    };
    if streaming.is_some() {
        connection.begin_stream(&request.id).await.ok()?;
    }
    let Connection { mut read, write, mut buffer } = connection;
    let engine_id = request.number;
    let (sender, mut reply) = oneshot::channel();
    let job = job(shared, request, asked, Way { wire: Wire::new(write), streaming, sender })?;
    shared.commands.send(Command::Submit(Box::new(job))).await.ok()?;
    let Reply { half, pending, then } = tokio::select! {
        biased;
        reply = &mut reply => reply.ok()?,
        () = client_left(&mut read, &mut buffer) => {
            shared.commands.send(Command::Abort(engine_id)).await.ok();
            return None;
        }
    };
    let mut connection = Connection { read, write: half, buffer };
    connection.write_all(&pending).await.ok()?;
    match then {
        Then::KeepAlive => Some(connection),
        Then::Close => None,
        Then::Reset => {
            // With a zero linger time the last close sends a reset; a dropped half would say an orderly end before that.
            connection.write.as_ref().set_zero_linger().ok();
            connection.write.forget();
            None
        }
    }
}

/// The way back to the client.
struct Way {
    wire: Wire,
    streaming: Option<AskedUsage>,
    sender: oneshot::Sender<Reply>,
}

/// Draws what the request will be, and opens its record.
fn job(shared: &Shared, request: Request, asked: Asked, way: Way) -> Option<(Order, Delivery)> {
    let config = &shared.config;
    let Request { number, id, received, endpoint, behaviour } = request;
    // Without a seed of the client's every request is another one, as it is with a real engine.
    let seed = asked.seed.unwrap_or(number ^ 0x5eed_0000_0000_0000);
    let random = |purpose: Purpose| seeded([config.seed, seed, asked.prompt.hash, purpose as u64]);
    let drawn = log_normal(config.mean_output_tokens as f64, LENGTH_SIGMA, &mut random(Purpose::Length)) as u64;
    let wanted = match asked.length {
        Length::Limit => asked.limit_tokens,
        Length::Model => drawn.max(asked.min_tokens).clamp(1, asked.limit_tokens),
    };
    let finish = if wanted < asked.limit_tokens { Finish::Stop } else { Finish::Length };
    let record = RequestRecord::new(id, received, asked.prompt.tokens);
    let order = Order {
        id: number,
        received: received.simulated,
        prompt_tokens: asked.prompt.tokens,
        output_tokens: wanted,
        rng: random(Purpose::Steps),
        blocks: asked.prompt.blocks,
    };
    let mut delivery = Delivery {
        serial: shared.log.open(record.clone()),
        log: shared.log.clone(),
        recording: config.recording,
        shape: Shape::new(endpoint, &record.id, unix_secs(), &config.model),
        record,
        text: Writer::new(random(Purpose::Text)),
        usage: way.streaming.unwrap_or(AskedUsage::None),
        finish,
        wire: way.wire,
        form: if way.streaming.is_some() { Form::Stream } else { Form::Whole(Vec::new()) },
        reply: way.sender,
        state: Written::default(),
        behaviour,
    };
    if way.streaming.is_some() && delivery.behaviour.has(Misbehaviour::EarlyRole) {
        delivery.early_role(&shared.clock).ok()?;
    }
    Some((order, delivery))
}

/// What the server can give of what was asked for.
fn capable(asked: AskedUsage, style: UsageStyle) -> AskedUsage {
    match (asked, style) {
        (AskedUsage::None, _) | (_, UsageStyle::None) => AskedUsage::None,
        (AskedUsage::EveryChunk, UsageStyle::EveryChunk) => AskedUsage::EveryChunk,
        _ => AskedUsage::Final,
    }
}

/// The answer that the script gives instead of a generation.
fn refusal(behaviour: &Behaviour) -> Option<Answer> {
    behaviour.all().iter().find_map(|misbehaviour| match *misbehaviour {
        Misbehaviour::TooManyRequests { retry_after_secs } => Some(Answer {
            retry_after_secs: Some(retry_after_secs),
            ..Answer::error(429, "RateLimitError", "too many requests (simulated)")
        }),
        Misbehaviour::Unavailable => Some(Answer::error(503, "ServiceUnavailable", "the model is loading (simulated)")),
        Misbehaviour::Html => {
            let page = b"<!doctype html><title>Sign in</title><p>Please sign in to this network.</p>";
            Some(Answer::bytes(200, "text/html; charset=utf-8", page.to_vec()))
        }
        _ => None,
    })
}

/// A refused request in vLLM's shape.
pub(super) fn refused_answer(refused: &Refused) -> Answer {
    let message = refused.to_string();
    match refused {
        Refused::UnknownModel(_) => Answer::error(404, "NotFoundError", &message),
        Refused::Json(_) | Refused::TooLong { .. } | Refused::Invalid(_) => {
            Answer::error(400, "BadRequestError", &message)
        }
    }
}
