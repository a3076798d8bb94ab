//! Single requests outside of load: calibration, scouts, probes of the cache, cold prefill.

use speedmatrix_shared::{
    trace::{FailureKind, RequestEnd, RequestFailure, RequestTrace},
    units::Nanos,
};
use tokio_util::sync::CancellationToken;

use super::{Bench, Halt, supply::Recipe};
use crate::{
    client::{Ask, Body, Connection, KeepText, SlotCounters},
    clock::Clock,
    prompt::{request::CHAT_PATH, text::Shelfmark},
};

/// Pauses before a request that a busy server refused is sent again.
const PAUSES_SECS: [u64; 3] = [1, 2, 4];

/// Sends single requests on one kept connection.
#[derive(Debug)]
pub(super) struct Single {
    connection: Connection,
    clock: Clock,
    idle_limit: Nanos,
}

impl Single {
    /// Sends `body` and reads its stream to the end. `slot` is only noted.
    pub(super) async fn send(&mut self, slot: u32, body: Body) -> RequestTrace {
        // Opened before the clock of the request starts; what fails here fails again with the request, as data.
        self.connection.open().await.ok();
        let ask = Ask {
            slot,
            scheduled: self.clock.now(),
            path: CHAT_PATH,
            body,
            keep_text: KeepText::No,
            idle_limit: self.idle_limit,
        };
        self.connection.stream(ask, &SlotCounters::default(), &CancellationToken::new()).await.trace
    }
}

impl Single {
    /// The run's clock.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// With another longest silence.
    pub(super) fn with_idle_limit(self, idle_limit: Nanos) -> Self {
        Self { idle_limit, ..self }
    }

    /// As [`Single::send`], again after a pause while the server only seems busy for the moment.
    pub(super) async fn send_patiently(&mut self, slot: u32, body: Body) -> RequestTrace {
        for pause_secs in PAUSES_SECS {
            let trace = self.send(slot, body.clone()).await;
            if !failure(&trace).is_some_and(|failure| may_pass(failure.kind)) {
                return trace;
            }
            self.clock.sleep(Nanos::from_secs(pause_secs)).await;
        }
        self.send(slot, body).await
    }
}

impl Bench {
    /// A connection for single requests.
    pub(super) fn single(&self) -> Result<Single, Halt> {
        Ok(Single { connection: self.connection()?, clock: self.clock, idle_limit: self.patience.idle })
    }

    /// A connection, not opened yet.
    pub(super) fn connection(&self) -> Result<Connection, Halt> {
        let mut connection = Connection::new(&self.target, self.clock).map_err(|e| Halt::Fatal(e.to_string()))?;
        connection.expect_model(self.model.clone());
        Ok(connection)
    }

    /// A one-token request on the document at `mark`, sent patiently.
    pub(super) async fn send_one(&self, recipe: &Recipe, mark: Shelfmark, restart: u64) -> Result<RequestTrace, Halt> {
        let body = recipe.body(&recipe.document(mark), mark, restart);
        Ok(self.single()?.send_patiently(0, body).await)
    }
}

/// Time from the first byte sent to the first token.
pub(super) fn ttft(trace: &RequestTrace) -> Option<Nanos> {
    Some(trace.first_arrival()?.since(trace.send_started?))
}

/// Why a one-token request was of no use. An empty answer is no such reason: the prompt was read.
pub(super) fn failure(trace: &RequestTrace) -> Option<&RequestFailure> {
    match &trace.end {
        RequestEnd::Failed(failure) if failure.kind != FailureKind::EmptyOutput => Some(failure),
        RequestEnd::Failed(_) | RequestEnd::Completed { .. } | RequestEnd::Cut => None,
    }
}

/// Prompt tokens as the server counted them.
pub(super) fn prompt_tokens(trace: &RequestTrace) -> Option<u64> {
    trace.usage.and_then(|usage| usage.prompt_tokens)
}

/// Whether the same request would fail again, however often it is sent.
pub(super) const fn is_hopeless(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::ContextOverflow
            | FailureKind::Auth
            | FailureKind::NotFound
            | FailureKind::BadRequest
            | FailureKind::Redirect
            | FailureKind::NotAStream
            | FailureKind::UnsupportedEncoding
    )
}

/// Whether the same request may succeed a little later.
const fn may_pass(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::RateLimited
            | FailureKind::ServerError
            | FailureKind::ErrorInStream
            | FailureKind::TruncatedStream
            | FailureKind::ConnectionReset
            | FailureKind::ServerAbort
    )
}
