//! The hot path: one request and its stream.

use speedmatrix_shared::trace::{FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource};
use tokio_util::sync::CancellationToken;

use super::{Ask, ClientError, Outcome, SlotCounters, Target};
use crate::clock::Clock;

/// A kept connection to a target; one request at a time.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    clock: Clock,
}

impl Connection {
    /// A connection to `target`, not opened yet; times are those of `clock`.
    pub fn new(target: &Target, clock: Clock) -> Result<Self, ClientError> {
        Ok(Self { target: target.clone(), clock })
    }

    /// Opens it ahead of the first request.
    pub async fn open(&mut self) -> Result<(), RequestFailure> {
        std::future::ready(Err(self.no_connection())).await
    }

    /// Sends `ask` and reads its stream to the end, or until `cut` is cancelled, which closes the connection at once.
    pub async fn stream(&mut self, ask: Ask, counters: &SlotCounters, cut: &CancellationToken) -> Outcome {
        let failure = self.open().await.err().unwrap_or_else(|| self.no_connection());
        let end = if cut.is_cancelled() { RequestEnd::Cut } else { RequestEnd::Failed(failure) };
        counters.set_state(super::SlotState::Idle);
        let trace = RequestTrace {
            slot: ask.slot,
            scheduled: ask.scheduled,
            send_started: None,
            send_finished: None,
            headers_at: None,
            arrivals: Vec::new(),
            first_content_at: None,
            ended: self.clock.now(),
            usage: None,
            usage_raw_completion_tokens: None,
            coalesced_reads: 0,
            skipped_events: 0,
            stamps: StampSource::Process,
            notes: Vec::new(),
            end,
        };
        Outcome { trace, text: None, retry_after: None, request_id: String::new(), model: None }
    }

    fn no_connection(&self) -> RequestFailure {
        let text = format!("could not connect to {}", self.target.url.as_str());
        RequestFailure { kind: FailureKind::Connect, http_status: None, text }
    }
}
