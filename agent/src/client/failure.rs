//! What went wrong with a request, as a class and in the server's words: never more than 300 bytes of them, never a
//! secret, never markup.

use std::io;

use http::{HeaderMap, StatusCode, header};
use speedmatrix_shared::{
    trace::{FailureKind, RequestFailure},
    units::Nanos,
};

use crate::{
    engine::{self, Decoded, ServerError},
    secret::{Secret, redact, redact_short},
};

/// Longest failure text, in bytes.
const TEXT_LIMIT_BYTES: usize = 300;
/// How much of a text is looked at. It is cut only after secrets were removed, so that none is cut in half and missed.
const READ_LIMIT_CHARS: usize = 4_096;

/// How much of an error's body is looked at, bytes: its first words are what counts.
pub(super) const ERROR_LIMIT_BYTES: usize = 64 << 10;
/// Longest name of a model or of a reason, characters.
const NAME_LIMIT_CHARS: usize = 100;

/// Makes failures whose texts hold no secret.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    key: Option<Secret>,
}

impl Failures {
    /// Failures of a target with this key.
    pub(crate) fn new(key: Option<Secret>) -> Self {
        Self { key }
    }

    /// A failure of this kind with this text, cleaned.
    pub(crate) fn of(&self, kind: FailureKind, http_status: Option<StatusCode>, text: &str) -> RequestFailure {
        let clean: String = text.chars().take(READ_LIMIT_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut text = redact(clean.trim(), self.key.as_ref());
        if text.len() > TEXT_LIMIT_BYTES {
            text.truncate(text.floor_char_boundary(TEXT_LIMIT_BYTES));
        }
        RequestFailure { kind, http_status: http_status.map(|status| status.as_u16()), text }
    }

    /// A name that an answer gave to something, without secrets and short.
    pub(crate) fn name(&self, text: &str) -> String {
        redact_short(text, self.key.as_ref(), NAME_LIMIT_CHARS)
    }

    /// No connection.
    pub(crate) fn connect(&self, text: &str) -> RequestFailure {
        self.of(FailureKind::Connect, None, text)
    }

    /// The connection broke.
    pub(crate) fn socket(&self, error: &io::Error) -> RequestFailure {
        self.of(FailureKind::ConnectionReset, None, &format!("the connection broke: {error}"))
    }

    /// An answer that is no success, with as much of its body as was read.
    pub(crate) fn status(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> RequestFailure {
        if status.is_redirection() {
            let to = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("no new address");
            let text = format!("the server says {status} and names {to}: use that address");
            return self.of(FailureKind::Redirect, Some(status), &text);
        }
        let (text, class) = words(body);
        let kind = match status.as_u16() {
            401 | 403 => FailureKind::Auth,
            404 => FailureKind::NotFound,
            429 => FailureKind::RateLimited,
            400..=599 if says_context_overflow(&text, class.as_deref()) => FailureKind::ContextOverflow,
            400..=499 => FailureKind::BadRequest,
            500..=599 => FailureKind::ServerError,
            _ => FailureKind::NotAStream,
        };
        let text = if text.is_empty() { format!("the server says {status} and nothing else") } else { text };
        self.of(kind, Some(status), &text)
    }

    /// A web page where a stream should be.
    pub(crate) fn page(&self, status: StatusCode, body: &[u8]) -> RequestFailure {
        self.of(FailureKind::NotAStream, Some(status), &page_words(&String::from_utf8_lossy(body)))
    }
}

/// How long the server asks to wait, where it says so in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Nanos> {
    let secs = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Nanos::from_secs(secs))
}

/// The words of an error body and the class it gives itself.
pub(crate) fn words(body: &[u8]) -> (String, Option<String>) {
    let mut scratch = String::new();
    if let Decoded::Delta(delta) = engine::decode(body, &mut scratch)
        && let Some(ServerError { message, class }) = delta.error
        && !message.is_empty()
    {
        return (message, class);
    }
    // What is read takes many times the memory of its text.
    let text = String::from_utf8_lossy(body.get(..ERROR_LIMIT_BYTES).unwrap_or(body));
    if looks_like_page(&text) {
        return (page_words(&text), None);
    }
    // FastAPI and others: {"detail": "…"} or {"message": "…"}.
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) {
        let word = ["detail", "message"].iter().find_map(|key| json.get(key)?.as_str());
        if let Some(word) = word {
            return (word.to_owned(), None);
        }
    }
    (text.trim().to_owned(), None)
}

/// vLLM, OpenAI, SGLang, llama.cpp, TGI and LiteLLM word it differently; all name the limit.
fn says_context_overflow(text: &str, class: Option<&str>) -> bool {
    let classes = ["context_length_exceeded", "exceed_context_size_error", "ContextWindowExceededError"];
    if class.is_some_and(|class| classes.contains(&class)) {
        return true;
    }
    let text = text.to_ascii_lowercase();
    [
        "context_length_exceeded",
        "maximum context length",
        "context length is",
        "exceeds the available context size",
        "longer than the model's context length",
        "exceeds the model's context length",
        "exceeds the maximum context",
        "context window",
        "max_model_len",
        "`inputs` tokens + `max_new_tokens` must be",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Whether a body is HTML.
pub(crate) fn looks_like_page(text: &str) -> bool {
    let start = text.trim_start();
    let start = start.get(..15).unwrap_or(start).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<head")
}

fn page_words(text: &str) -> String {
    // ASCII lower case keeps every byte's place.
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|open| {
        let start = open + lower[open..].find('>')? + 1;
        let end = start + lower[start..].find('<')?;
        Some(text[start..end].trim())
    });
    match title {
        Some(title) if !title.is_empty() => format!("an html page came instead of a stream, titled \"{title}\""),
        _ => "an html page came instead of a stream".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_no_success() {
        let failures = Failures::new(Secret::new("my-key-1234"));
        let check = |status: u16, body: &str, kind: FailureKind, text: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = failures.status(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!((failure.kind, failure.text.as_str()), (kind, text), "{status} {body}");
        };
        let vllm = r#"{"object":"error","message":"This model's maximum context length is 4 tokens.","code":400}"#;
        check(400, vllm, FailureKind::ContextOverflow, "This model's maximum context length is 4 tokens.");
        let llama = r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#;
        check(400, llama, FailureKind::ContextOverflow, "too long");
        let openai = r#"{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        check(400, openai, FailureKind::ContextOverflow, "no");
        check(401, r#"{"error":{"message":"bad key my-key-1234"}}"#, FailureKind::Auth, "bad key <redacted>");
        check(404, r#"{"detail":"Not Found"}"#, FailureKind::NotFound, "Not Found");
        check(429, "", FailureKind::RateLimited, "the server says 429 Too Many Requests and nothing else");
        check(422, r#"{"error":"no such field"}"#, FailureKind::BadRequest, "no such field");
        check(
            502,
            "<html><title>Bad\ngateway</title>",
            FailureKind::ServerError,
            "an html page came instead of a stream, titled \"Bad gateway\"",
        );
        check(500, &"é".repeat(200), FailureKind::ServerError, &"é".repeat(150));
        assert_eq!(failures.name(&format!("my-key-1234{}", "é".repeat(200))), format!("<redacted>{}", "é".repeat(90)));
    }

    #[test]
    fn a_redirect_names_the_new_address() {
        let headers = HeaderMap::from_iter([(header::LOCATION, "/v2".parse().unwrap())]);
        let failure = Failures::new(None).status(StatusCode::TEMPORARY_REDIRECT, &headers, b"{}");
        assert_eq!(failure.kind, FailureKind::Redirect);
        insta::assert_snapshot!(failure.text, @"the server says 307 Temporary Redirect and names /v2: use that address");
    }

    #[test]
    fn waits_are_read_in_seconds() {
        let check = |text: &str, wait: Option<u64>| {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers), wait.map(Nanos::from_secs), "{text}");
        };
        check("1", Some(1));
        check("Wed, 21 Oct 2026 07:28:00 GMT", None);
    }
}
