//! One request as it was seen on the wire: when it was sent, when text arrived, how it ended.
//! Times are [`Nanos`] since the run began. Nothing here is a statistic yet.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One read of the socket that completed at least one event with generated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// When the bytes reached this machine (kernel stamp where there is one).
    pub at: Nanos,
    /// The server's cumulative count of output tokens after this arrival, where its chunks carry usage.
    pub usage_tokens: Option<NonZeroU32>,
    /// Events with generated text that this read completed, at least 1.
    pub text_events: u16,
    /// How much later than `at` this process read the bytes, in nanoseconds (saturates at 4.29 s).
    pub late_ns: u32,
}

/// Who stamped the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// The kernel, when the packet came in: the client's own lateness drops out.
    Kernel,
    /// This process, when it read the bytes: includes its own scheduling delay.
    Process,
}

impl StampSource {
    /// Plain words for tables and tooltips.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Kernel => "stamped by kernel",
            Self::Process => "stamped by process",
        }
    }
}

/// Where a request's token count comes from; never silently mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server counts in every chunk (cumulative usage).
    ServerPerChunk,
    /// The server counts once, at the end of the request.
    ServerPerRequest,
    /// No count from the server: events with text are counted. A lower bound where chunks carry several tokens.
    Chunks,
}

impl TokenSource {
    /// Plain words for tables and tooltips.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ServerPerChunk => "counted by server per chunk",
            Self::ServerPerRequest => "counted by server per request",
            Self::Chunks => "chunks",
        }
    }
}

/// What the server said about a request's tokens. Zeros that can't be true were dropped: absent is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Real prompt tokens, template included.
    pub prompt_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    pub completion_tokens: Option<u64>,
    /// Part of the output that is reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Part of the prompt that the server took from its prefix cache (0 is a real value).
    pub cached_tokens: Option<u64>,
}

/// Why a request failed; the words of the error bodies are in [`RequestFailure::text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection: refused, no route, name not found, TLS refused.
    Connect,
    /// 401 or 403.
    Auth,
    /// 404: wrong path or unknown model.
    NotFound,
    /// 429.
    RateLimited,
    /// The prompt and the answer do not fit the model's context.
    ContextOverflow,
    /// Another 4xx.
    BadRequest,
    /// 5xx.
    ServerError,
    /// The stream began and then carried an error object.
    ErrorInStream,
    /// The stream ended with neither a finish reason nor `[DONE]`.
    TruncatedStream,
    /// The connection was reset.
    ConnectionReset,
    /// Nothing came for longer than the idle limit.
    Stalled,
    /// The answer ended properly but held no generated text.
    EmptyOutput,
    /// The engine says that it gave the request up (`finish_reason` abort or error).
    ServerAbort,
    /// HTML, or anything else that is not an event stream.
    NotAStream,
    /// A content encoding that was not asked for and can't be read.
    UnsupportedEncoding,
    /// 3xx: the address moved.
    Redirect,
    /// Bytes that break a bound (event of over 16 MiB, endless header) or the HTTP protocol.
    Protocol,
    /// The file that the request was read from does not tell why it failed.
    NotTold,
}

impl FailureKind {
    /// Plain words, lower case.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connect => "could not connect",
            Self::Auth => "key refused",
            Self::NotFound => "not found",
            Self::RateLimited => "rate limited",
            Self::ContextOverflow => "context too long",
            Self::BadRequest => "request refused",
            Self::ServerError => "server error",
            Self::ErrorInStream => "error in the stream",
            Self::TruncatedStream => "stream cut short",
            Self::ConnectionReset => "connection reset",
            Self::Stalled => "stream stalled",
            Self::EmptyOutput => "empty answer",
            Self::ServerAbort => "given up by the server",
            Self::NotAStream => "not an event stream",
            Self::UnsupportedEncoding => "unreadable encoding",
            Self::Redirect => "address moved",
            Self::Protocol => "broken protocol",
            Self::NotTold => "reason not told",
        }
    }
}

/// A request that failed: data, not an error of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFailure {
    /// The class.
    pub kind: FailureKind,
    /// The HTTP status, if an answer came.
    pub http_status: Option<u16>,
    /// What came, in words: at most 300 bytes, secrets removed.
    pub text: String,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum RequestEnd {
    /// The server finished it.
    Completed {
        /// `stop`, `length`, `tool_calls` …
        finish_reason: Option<String>,
    },
    /// We closed it: the window was over, or the run was stopped. No failure.
    Cut,
    /// It failed.
    Failed(RequestFailure),
}

/// Notes about a stream that was understood although it was not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamNote {
    /// No usage came at all.
    UsageMissing,
    /// The server's token count can't be true (below the number of text events, or zero with text).
    UsageImplausible,
    /// Chunks carried several tokens each.
    MultiTokenChunks,
    /// Data events that were not JSON were skipped.
    MalformedEventSkipped,
    /// The whole answer came at once although it was asked for as a stream.
    BufferedStream,
    /// The server ignored `stream: true` and sent one document.
    NotStreamed,
    /// Text was generated, but nothing a reader would see (all reasoning).
    NoVisibleAnswer,
    /// Most of the prompt came from the server's cache.
    PromptCached,
    /// The answering model's name is not the one asked for.
    ModelMismatch,
    /// The text repeats itself.
    LoopingText,
}

/// One POST and its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTrace {
    /// The place (0 … C − 1) that held it.
    pub slot: u32,
    /// When it was due; closed loop: when its slot became free.
    pub scheduled: Nanos,
    /// First byte handed to the kernel. `None`: never sent (no connection).
    pub send_started: Option<Nanos>,
    /// Last byte handed to the kernel.
    pub send_finished: Option<Nanos>,
    /// The answer's header came.
    pub headers_at: Option<Nanos>,
    /// Reads that completed generated text, in order of time.
    pub arrivals: Vec<Arrival>,
    /// The first arrival with visible content (not reasoning).
    pub first_content_at: Option<Nanos>,
    /// When it was over.
    pub ended: Nanos,
    /// The server's final word on tokens, made plausible.
    pub usage: Option<Usage>,
    /// Output tokens as the server said them, before the plausibility check.
    pub usage_raw_completion_tokens: Option<u64>,
    /// Reads that completed more than one event while this process was late: their stamps are shared.
    pub coalesced_reads: u32,
    /// Data events that could not be read as JSON.
    pub skipped_events: u32,
    /// Who stamped.
    pub stamps: StampSource,
    /// What was odd about the stream.
    pub notes: Vec<StreamNote>,
    /// How it ended.
    pub end: RequestEnd,
}

impl RequestTrace {
    /// Events with generated text.
    pub fn text_events(&self) -> u64 {
        self.arrivals.iter().map(|a| u64::from(a.text_events)).sum()
    }

    /// Output tokens and where the count comes from (method §5): the server's count where it is
    /// plausible, else events with text.
    pub fn output_tokens(&self) -> (u64, TokenSource) {
        // The count is cumulative: one that shrinks can't be true, so the highest holds.
        let per_chunk = self.arrivals.iter().filter_map(|a| a.usage_tokens).max();
        let total = self.usage.and_then(|u| u.completion_tokens);
        match (per_chunk, total) {
            (Some(highest), total) => (total.unwrap_or(0).max(u64::from(highest.get())), TokenSource::ServerPerChunk),
            (None, Some(total)) => (total, TokenSource::ServerPerRequest),
            (None, None) => (self.text_events(), TokenSource::Chunks),
        }
    }

    /// First arrival of generated text.
    pub fn first_arrival(&self) -> Option<Nanos> {
        self.arrivals.first().map(|a| a.at)
    }

    /// Last arrival of generated text.
    pub fn last_arrival(&self) -> Option<Nanos> {
        self.arrivals.last().map(|a| a.at)
    }
}
