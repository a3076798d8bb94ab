//! What engines say, whatever way it came: a piece of an answer (one dialect, one file), a page of metrics, and what is
//! known about each engine beforehand. Pure.

pub mod exposition;
pub mod gauges;
mod json;
pub mod known;
mod openai_chat;

use std::borrow::Cow;

pub use self::openai_chat::decode;

/// What a data event is.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, on the stack; a box would allocate per token")]
pub enum Decoded<'a> {
    /// A chunk of the answer.
    Delta(Delta<'a>),
    /// The end mark, `[DONE]`.
    Done,
    /// Not a JSON object.
    NotJson,
}

/// One chunk of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delta<'a> {
    /// Text that a reader sees.
    pub content: Cow<'a, str>,
    /// Text that the model thinks, from either reasoning field.
    pub reasoning: Cow<'a, str>,
    /// Pieces of tool calls.
    pub tools: Vec<ToolFragment<'a>>,
    /// The server's count so far.
    pub usage: Option<UsageReport>,
    /// `stop`, `length`, `tool_calls`, `abort` …
    pub finish_reason: Option<Cow<'a, str>>,
    /// An error object.
    pub error: Option<ServerError>,
    /// The answering model's name.
    pub model: Option<Cow<'a, str>>,
}

impl Delta<'_> {
    /// Whether something was generated: content, reasoning, or a tool call's name or arguments. White space is text.
    pub fn has_text(&self) -> bool {
        self.has_content() || !self.reasoning.is_empty()
    }

    /// Whether something was generated that is not reasoning.
    pub fn has_content(&self) -> bool {
        !self.content.is_empty() || self.tools.iter().any(ToolFragment::has_text)
    }
}

/// A piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFragment<'a> {
    /// Which call of the answer it belongs to; absent: the last one, or a new one if it has a name.
    pub index: Option<u64>,
    /// A piece of the function's name.
    pub name: Cow<'a, str>,
    /// A piece of the arguments.
    pub arguments: Cow<'a, str>,
}

impl ToolFragment<'_> {
    fn has_text(&self) -> bool {
        !self.name.is_empty() || !self.arguments.is_empty()
    }
}

/// Tokens as the server says them, before any check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// Prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    pub completion_tokens: Option<u64>,
    /// Part of the output that is reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Part of the prompt that came from the cache.
    pub cached_tokens: Option<u64>,
}

/// An error that the server put into an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// Its words.
    pub message: String,
    /// Its own class, where it gives one (`context_length_exceeded`, `exceed_context_size_error` …).
    pub class: Option<String>,
}
