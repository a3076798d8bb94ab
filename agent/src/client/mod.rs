//! Talking to the target. `stream` is the hot path: one request and its stream, written and read by `exchange` over
//! `http1`, stamped by the kernel in `stamped`, noted by `record`. Everything that isn't measured goes through reqwest in `probe`.

mod answer;
mod body;
mod counters;
mod exchange;
mod failure;
pub mod http;
pub mod http1;
mod link;
mod patience;
pub mod probe;
pub mod prometheus;
mod record;
mod settle;
mod stamped;
mod stream;
mod tls;
pub mod tokenize;
pub mod trust;

use speedmatrix_shared::{plan::TargetUrl, trace::RequestTrace, units::Nanos};

use crate::secret::Secret;

pub use self::{
    body::Body,
    counters::{SlotCounters, SlotState},
    stream::Connection,
};

/// A server and the key for it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its address.
    pub url: TargetUrl,
    /// Its bearer key, if it needs one.
    pub key: Option<Secret>,
}

/// Whether the generated text is kept in memory, beside its arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepText {
    /// Keep it: the outcome carries it.
    Yes,
    /// Count it only.
    No,
}

/// One request, fully prepared.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The place (0 … C − 1) that holds it.
    pub slot: u32,
    /// When it was due on the run's clock.
    pub scheduled: Nanos,
    /// Below the target's address, for example `/v1/chat/completions`.
    pub path: &'static str,
    /// The JSON document.
    pub body: Body,
    /// Whether the answer's text is wanted.
    pub keep_text: KeepText,
    /// Longest silence between two signs of life, on the run's clock. There is no limit on the whole.
    pub idle_limit: Nanos,
}

/// Generated text of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// What a reader sees.
    pub content: String,
    /// What the model thought, from either reasoning field.
    pub reasoning: String,
    /// Tool calls, their fragments joined.
    pub tool_calls: Vec<ToolCall>,
}

/// One tool call of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The function's name.
    pub name: String,
    /// Its arguments as the model wrote them (JSON text, if the model is good).
    pub arguments: String,
}

/// A request that is over.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was seen on the wire.
    pub trace: RequestTrace,
    /// The generated text, if [`KeepText::Yes`] was asked for.
    pub text: Option<Text>,
    /// How long a 429 or 503 asks to wait.
    pub retry_after: Option<Nanos>,
    /// The `x-request-id` that was sent (of the last try): joins this record with the server's log.
    pub request_id: String,
    /// The model's name as the answer gives it.
    pub model: Option<String>,
}

/// Why no connection object can be made for a target.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address has no host, or a scheme that can't be measured.
    #[error("\"{url}\" names no http or https host: write for example http://127.0.0.1:8000")]
    Address {
        /// The address as given.
        url: String,
    },
    /// The key has characters that no header may carry.
    #[error("the key for {host} has characters that a header can't carry: paste it again without line ends")]
    Key {
        /// The host it is for.
        host: String,
    },
    /// TLS could not be set up.
    #[error("tls for {host} could not be set up: {reason}: install the system's certificates or use http")]
    Tls {
        /// The host it is for.
        host: String,
        /// What the library says.
        reason: String,
    },
}
