//! Plain HTTP questions to a target, for all that isn't measured: short, bounded in size and time, never through a proxy
//! when the target is this machine.

use std::{collections::BTreeSet, error::Error as _, sync::OnceLock, time::Duration};

use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde_json::Value;
use speedmatrix_shared::plan::TargetUrl;

use super::{Target, trust::Trust};
use crate::secret::redact_short;

/// Longest wait for a connection, and for a whole answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// See [`CONNECT_LIMIT`].
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const BODY_LIMIT_BYTES: usize = 8 << 20;
/// Most of a foreign text that is repeated in an error.
const EXCERPT_CHARS: usize = 200;

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("nothing answers at {url} (connection refused): check that the server has started and the port is right")]
    Refused {
        /// What was asked.
        url: String,
    },
    /// The name is not known.
    #[error("the name in {url} could not be found: check its spelling, or use the address in numbers")]
    Dns {
        /// What was asked.
        url: String,
    },
    /// No route, reset, broken HTTP …
    #[error("asking {url} failed ({reason}): check the address and what stands between here and the server")]
    Transport {
        /// What was asked.
        url: String,
        /// What the network said.
        reason: String,
    },
    /// The TLS handshake failed.
    #[error(
        "no secure connection to {url} ({reason}): use http:// if the server has no certificate, or install its \
         certificate on this machine"
    )]
    Tls {
        /// What was asked.
        url: String,
        /// What the TLS library said.
        reason: String,
    },
    /// Nothing came in time.
    #[error("{url} did not answer within {limit:?}: check that the server is up and not still loading its model")]
    Timeout {
        /// What was asked.
        url: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The answer is larger than anything expected.
    #[error("{url} answered with more than {mib} MiB: check that it is the address of a model server")]
    TooLarge {
        /// What was asked.
        url: String,
        /// The limit, MiB.
        mib: usize,
    },
    /// The key can't be sent, or the address can't be asked.
    #[error("{url} can't be asked ({reason}): check the address and the key")]
    Unaskable {
        /// What was to be asked.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

/// An answer with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content type, lower case, without parameters; empty if none was given.
    pub content_type: String,
    /// Where a redirect points to.
    pub location: Option<String>,
    /// The `Server` header.
    pub server: Option<String>,
    /// The names of all headers, lower case.
    pub headers: BTreeSet<String>,
    /// The body, what is not UTF-8 replaced.
    pub body: String,
}

impl Answer {
    /// The body as JSON, if it is that and holds at most `most_values` values: a small object takes 100 times its text.
    pub fn json(&self, most_values: usize) -> Option<Value> {
        // A value follows on each of these. Those within texts count too: in doubt it is too much.
        let values = self.body.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        if values > most_values {
            return None;
        }
        serde_json::from_str(&self.body).ok()
    }
}

/// Asks one target. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    target: Target,
}

/// Installs the process-wide TLS provider; any number of calls, the first one counts.
pub fn tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // An error means that one is installed already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
}

impl Http {
    /// For questions to `target`.
    pub fn new(target: &Target) -> Result<Self, AskError> {
        Self::trusting(target, &Trust::default())
    }

    /// For questions to a `target` whose certificate may be one of `trust`.
    pub fn trusting(target: &Target, trust: &Trust) -> Result<Self, AskError> {
        tls_provider();
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("speedmatrix/", env!("CARGO_PKG_VERSION")));
        let builder = trust.put(builder);
        // A company proxy can't reach this machine's own loopback.
        let builder = if is_loopback(&target.url) { builder.no_proxy() } else { builder };
        let client = builder
            .build()
            .map_err(|e| AskError::Unaskable { url: target.url.as_str().to_owned(), reason: innermost(&e) })?;
        Ok(Self { client, target: target.clone() })
    }

    /// GET `path` below the target's address.
    pub async fn get(&self, path: &str) -> Result<Answer, AskError> {
        self.get_within(path, ANSWER_LIMIT).await
    }

    /// GET `path`, waiting at most `limit`.
    pub async fn get_within(&self, path: &str, limit: Duration) -> Result<Answer, AskError> {
        let url = format!("{}{path}", self.target.url.as_str());
        self.ask(self.client.get(&url), url, limit).await
    }

    /// POST a JSON document to `path` below the target's address.
    pub async fn post(&self, path: &str, json: String) -> Result<Answer, AskError> {
        let url = format!("{}{path}", self.target.url.as_str());
        let request = self.client.post(&url).header(CONTENT_TYPE, "application/json").body(json);
        self.ask(request, url, ANSWER_LIMIT).await
    }

    /// The target that is asked.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// A foreign text as it may be shown: one line, short, without secrets.
    pub fn excerpt(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        redact_short(&line, self.target.key.as_ref(), EXCERPT_CHARS)
    }

    async fn ask(&self, request: reqwest::RequestBuilder, url: String, limit: Duration) -> Result<Answer, AskError> {
        let request = match &self.target.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let mut response = request.timeout(limit).send().await.map_err(|e| explain(&e, &url, limit))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        let mut answer = Answer {
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE.as_str()).as_deref().map(plain_type).unwrap_or_default(),
            location: header(LOCATION.as_str()),
            server: header("server"),
            headers: response.headers().keys().map(ToString::to_string).collect(),
            body: String::new(),
        };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| explain(&e, &url, limit))? {
            if body.len() + chunk.len() > BODY_LIMIT_BYTES {
                return Err(AskError::TooLarge { url, mib: BODY_LIMIT_BYTES >> 20 });
            }
            body.extend_from_slice(&chunk);
        }
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Ok(answer)
    }
}

fn plain_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether the address is this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`.
pub fn is_loopback(url: &TargetUrl) -> bool {
    let Ok(url) = url::Url::parse(url.as_str()) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn explain(error: &reqwest::Error, url: &str, limit: Duration) -> AskError {
    let url = url.to_owned();
    if error.is_timeout() {
        let limit = if error.is_connect() { CONNECT_LIMIT.min(limit) } else { limit };
        return AskError::Timeout { url, limit };
    }
    if error.is_dns() {
        return AskError::Dns { url };
    }
    if error.is_builder() {
        return AskError::Unaskable { url, reason: innermost(error) };
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(reason) = tls_reason(cause) {
            return AskError::Tls { url, reason };
        }
        let io = cause.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return AskError::Refused { url };
        }
        source = cause.source();
    }
    AskError::Transport { url, reason: innermost(error) }
}

/// What the TLS library says, if `error` is its error or wraps it. An I/O error's own source skips what it wraps.
fn tls_reason(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(tls.to_string());
    }
    tls_reason(error.downcast_ref::<std::io::Error>()?.get_ref()?)
}

/// The last error of the chain: the one that says what happened.
fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::draft::parse_target;

    use super::*;

    #[test]
    fn an_answer_of_too_many_values_is_not_read() {
        let check = |body: &str, read: bool| {
            let answer = Answer {
                status: 200,
                content_type: String::new(),
                location: None,
                server: None,
                headers: BTreeSet::new(),
                body: body.to_owned(),
            };
            assert_eq!(answer.json(8).is_some(), read, "{body}");
        };
        check("{\"a\":[1,2,{\"b\":3}]}", true);
        check("[{},{},{},{}]", true);
        check("[{},{},{},{},{}]", false);
        check("no json", false);
    }

    #[test]
    fn loopback_is_this_machine_only() {
        let check = |url: &str, loopback: bool| {
            assert_eq!(is_loopback(&parse_target(url).unwrap()), loopback, "{url}");
        };
        check("http://localhost:8000", true);
        check("127.0.0.1:8000", true);
        check("127.3.2.1", true);
        check("http://[::1]:8000/v1", true);
        check("http://10.0.0.1:8000", false);
        check("http://localhost.example.com", false);
        check("https://api.example.com/v1", false);
    }
}
