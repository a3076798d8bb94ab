//! THE HOT PATH: one request and its stream. Between the first byte and the last it touches the socket, the clock, its
//! own memory and relaxed counters: no lock, no channel to another task, no log.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::{
    HeaderMap, Response, StatusCode,
    body::{Body as _, Incoming},
    header,
};
use speedmatrix_shared::trace::{FailureKind, RequestFailure};
use tokio_util::sync::CancellationToken;

use super::{
    Ask, ClientError, Outcome, SlotCounters, SlotState, Target,
    answer::Answer,
    failure::{Failures, retry_after},
    link::{Address, Link, is_stale},
    quiet::{Interrupt, Patience},
    record::{Progress, Record},
    settle::{self, Closing, Try},
};
use crate::clock::Clock;

/// How long the rest of a finished answer may take, for the connection to be kept (real time).
const REST_LIMIT: Duration = Duration::from_millis(20);

/// A kept connection to a target; one request at a time.
#[derive(Debug)]
pub struct Connection {
    address: Address,
    failures: Failures,
    clock: Clock,
    link: Option<Link>,
    expected_model: Option<Arc<str>>,
    id_prefix: String,
    requests: u64,
}

/// Whether a connection may have been closed by the server meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Fresh,
    Kept,
}

/// A try, and what else its answer told.
struct Tried {
    attempt: Try,
    retry_after: Option<speedmatrix_shared::units::Nanos>,
    request_id: String,
    again: Again,
}

/// Whether the request was lost with a stale connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    OnFreshConnection,
}

impl Connection {
    /// A connection to `target`, not opened yet; times are those of `clock`.
    pub fn new(target: &Target, clock: Clock) -> Result<Self, ClientError> {
        Ok(Self {
            address: Address::new(target)?,
            failures: Failures::new(target.key.clone()),
            clock,
            link: None,
            expected_model: None,
            id_prefix: uuid::Uuid::now_v7().simple().to_string(),
            requests: 0,
        })
    }

    /// The model that the bodies ask for: an answer by another name gets a note.
    pub fn expect_model(&mut self, model: Option<Arc<str>>) {
        self.expected_model = model;
    }

    /// Opens it ahead of the first request, so that the request itself is all that is measured.
    pub async fn open(&mut self) -> Result<(), RequestFailure> {
        if self.link.is_none() {
            self.link = Some(self.address.connect(&self.failures).await?);
        }
        Ok(())
    }

    /// Sends `ask` and reads its stream to the end, or until `cut` is cancelled, which closes the connection at once.
    /// A request that is lost with a stale connection before any byte of its answer is sent once more on a fresh one,
    /// and its clock starts again.
    pub async fn stream(&mut self, ask: Ask, counters: &SlotCounters, cut: &CancellationToken) -> Outcome {
        let mut tried = self.attempt(&ask, counters, cut).await;
        if tried.again == Again::OnFreshConnection {
            tried = self.attempt(&ask, counters, cut).await;
        }
        let Tried { mut attempt, retry_after, request_id, .. } = tried;
        let (text, model) = (attempt.record.text.take(), attempt.record.model.clone());
        let tokens_before = attempt.record.tokens_before;
        let trace = settle::trace(attempt, &ask, self.expected_model.as_deref(), &self.failures);
        counters.set_tokens(counters.tokens().max(tokens_before + trace.output_tokens().0));
        counters.set_state(SlotState::Idle);
        Outcome { trace, text, retry_after, request_id, model }
    }

    async fn attempt(&mut self, ask: &Ask, counters: &SlotCounters, cut: &CancellationToken) -> Tried {
        self.requests += 1;
        let request_id = format!("{}-{}", self.id_prefix, self.requests);
        let mut tried = Tried {
            attempt: Try {
                record: Record::new(self.clock, ask.keep_text, counters),
                send_started: None,
                send_finished: None,
                headers_at: None,
                status: None,
                closing: Closing::Cut,
                ended: Instant::now(),
            },
            retry_after: None,
            request_id,
            again: Again::No,
        };
        if cut.is_cancelled() {
            return tried;
        }
        counters.set_state(SlotState::Sent);
        let freed = tokio::select! {
            biased;
            () = cut.cancelled() => return tried,
            freed = free(&mut self.link, &self.address, &self.failures) => freed,
        };
        match freed {
            Ok((mut link, age)) => {
                let mut exchange = Exchange { ask, counters, failures: &self.failures, age };
                let fate = exchange.run(&self.address, &mut link, cut, &mut tried).await;
                self.link = (fate == Fate::Keep).then_some(link);
            }
            Err(failure) => tried.attempt.closing = Closing::Broken(failure),
        }
        tried.attempt.ended = Instant::now();
        tried
    }
}

/// The kept connection if it is still good, else a fresh one.
async fn free(kept: &mut Option<Link>, address: &Address, failures: &Failures) -> Result<(Link, Age), RequestFailure> {
    if let Some(mut link) = kept.take() {
        let freed = tokio::time::timeout(REST_LIMIT, std::future::poll_fn(|cx| link.poll_free(cx))).await;
        if matches!(freed, Ok(Ok(()))) {
            return Ok((link, Age::Kept));
        }
    }
    let mut link = address.connect(failures).await?;
    std::future::poll_fn(|cx| link.poll_free(cx)).await.map_err(|error| failures.transport(&error))?;
    Ok((link, Age::Fresh))
}

/// What becomes of a connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Close,
}

/// One request on one connection.
struct Exchange<'a> {
    ask: &'a Ask,
    counters: &'a SlotCounters,
    failures: &'a Failures,
    age: Age,
}

impl Exchange<'_> {
    async fn run(&mut self, address: &Address, link: &mut Link, cut: &CancellationToken, tried: &mut Tried) -> Fate {
        let request = match address.request(self.ask.path, &self.ask.body, &tried.request_id) {
            Ok(request) => request,
            Err(error) => {
                let failure = self.failures.of(FailureKind::BadRequest, None, &format!("no request to send: {error}"));
                tried.attempt.closing = Closing::Broken(failure);
                return Fate::Keep;
            }
        };
        let mut patience = Patience::new(cut, tried.attempt.record.real(self.ask.idle_limit));
        let notes = Arc::clone(&link.notes);
        let reads_before = notes.reads();
        let head = {
            let mut response = pin!(link.send(request));
            patience
                .wait(&notes, |cx| {
                    link.poll_io(cx);
                    response.as_mut().poll(cx)
                })
                .await
        };
        tried.attempt.send_started = notes.first_write();
        let fate = match head {
            Ok(Ok(response)) => self.answer(response, link, &mut patience, tried).await,
            Ok(Err(error)) => {
                if self.age == Age::Kept && notes.reads() == reads_before && is_stale(&error) {
                    tried.again = Again::OnFreshConnection;
                }
                tried.attempt.closing = Closing::Broken(self.failures.transport(&error));
                Fate::Close
            }
            Err(interrupt) => {
                tried.attempt.closing = self.interrupted(interrupt);
                Fate::Close
            }
        };
        tried.attempt.send_finished = notes.last_write();
        fate
    }

    async fn answer(
        &mut self,
        response: Response<Incoming>,
        link: &mut Link,
        patience: &mut Patience,
        tried: &mut Tried,
    ) -> Fate {
        let (head, mut body) = response.into_parts();
        tried.attempt.headers_at = Some(link.notes.last_read().at);
        tried.attempt.status = Some(head.status);
        tried.retry_after = retry_after(&head.headers);
        if let Some(failure) = self.unreadable(head.status, &head.headers) {
            tried.attempt.closing = Closing::Broken(failure);
            return Fate::Close;
        }
        let mut answer = Answer::new(head.status, &head.headers, self.failures);
        let notes = Arc::clone(&link.notes);
        let closing = loop {
            let frame = patience
                .wait(&notes, |cx| {
                    link.poll_io(cx);
                    Pin::new(&mut body).poll_frame(cx)
                })
                .await;
            match frame {
                Ok(Some(Ok(frame))) => {
                    let Some(bytes) = frame.data_ref() else { continue };
                    let record = &mut tried.attempt.record;
                    if let Err(failure) = answer.take(bytes, notes.last_read(), record, self.counters) {
                        break Closing::Broken(failure);
                    }
                    if record.progress != Progress::Running {
                        break Closing::Whole;
                    }
                }
                Ok(None) => break Closing::Whole,
                Ok(Some(Err(error))) => break Closing::Broken(self.failures.transport(&error)),
                Err(interrupt) => break self.interrupted(interrupt),
            }
        };
        let whole = closing == Closing::Whole;
        tried.attempt.closing = answer.finish(closing, notes.last_read(), &mut tried.attempt.record, self.counters);
        if whole && tried.attempt.record.error.is_none() { rest(link, &mut body).await } else { Fate::Close }
    }

    fn interrupted(&self, interrupt: Interrupt) -> Closing {
        match interrupt {
            Interrupt::Cut => Closing::Cut,
            Interrupt::Silent => Closing::Silent { limit: self.ask.idle_limit },
        }
    }

    fn unreadable(&self, status: StatusCode, headers: &HeaderMap) -> Option<RequestFailure> {
        let encoding = headers.get(header::CONTENT_ENCODING)?;
        let encoding = encoding.to_str().unwrap_or("an unreadable name");
        (!encoding.eq_ignore_ascii_case("identity")).then(|| {
            let text = format!("the answer is encoded as {encoding} although only identity was accepted");
            self.failures.of(FailureKind::UnsupportedEncoding, Some(status), &text)
        })
    }
}

/// Reads what still belongs to a finished answer, so that the connection is free for the next request.
async fn rest(link: &mut Link, body: &mut Incoming) -> Fate {
    let ended = tokio::time::timeout(
        REST_LIMIT,
        std::future::poll_fn(|cx| {
            link.poll_io(cx);
            Pin::new(&mut *body).poll_frame(cx)
        }),
    );
    // The end of the body is all that may still come: more of it means that the server goes on.
    match ended.await {
        Ok(None) => Fate::Keep,
        _ => Fate::Close,
    }
}
