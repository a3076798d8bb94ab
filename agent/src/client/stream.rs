//! THE HOT PATH: one request and its stream. Between the first byte and the last it touches the socket, the clock, its
//! own memory and relaxed counters: no lock, no channel to another task, no log.

use std::{sync::Arc, time::Instant};

use speedmatrix_shared::trace::RequestFailure;
use tokio_util::sync::CancellationToken;

use super::{
    Ask, ClientError, Outcome, SlotCounters, SlotState, Target,
    exchange::{Exchange, Heard},
    failure::Failures,
    link::{Address, Link},
    patience::Patience,
    record::Record,
    settle::{self, Closing, Try},
};
use crate::clock::Clock;

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
        let text = attempt.record.text.take();
        let model = attempt.record.model.as_deref().map(|model| self.failures.name(model));
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
                record: Record::new(self.clock, ask.keep_text, counters, ask.body.max_output_tokens()),
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
            Ok((link, age)) => {
                let sending = self.address.request(ask.path, &ask.body, &tried.request_id);
                let patience = Patience::new(cut, tried.attempt.record.real(ask.idle_limit));
                let exchange = Exchange::new(link, sending, &mut tried.attempt, counters, &self.failures);
                let (kept, told) = exchange.run(patience, ask.idle_limit).await;
                self.link = kept;
                tried.retry_after = told.retry_after;
                if age == Age::Kept && told.heard == Heard::Nothing {
                    tried.again = Again::OnFreshConnection;
                }
            }
            Err(failure) => tried.attempt.closing = Closing::Broken(failure),
        }
        tried.attempt.ended = Instant::now();
        tried
    }
}

/// The kept connection if it is still good, else a fresh one.
async fn free(kept: &mut Option<Link>, address: &Address, failures: &Failures) -> Result<(Link, Age), RequestFailure> {
    if let Some(mut link) = kept.take()
        && link.is_quiet().await
    {
        return Ok((link, Age::Kept));
    }
    Ok((address.connect(failures).await?, Age::Fresh))
}
