//! Asks a target for its metrics page: bounded in size and time, and never again where there is none. What stands on the
//! page is read in `engine`.

use std::time::Duration;

use super::http::{AskError, Http};
pub use crate::engine::{
    exposition::Page,
    gauges::{EngineGauges, KvTokens},
    known::EngineKind,
};

/// Where engines keep the page; TensorRT-LLM has something else at the first.
const METRICS_PATHS: [&str; 2] = ["/metrics", "/prometheus/metrics"];
/// Longest wait for it, to its last byte.
const SCRAPE_LIMIT: Duration = Duration::from_secs(5);

/// Why a target has no gauges.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeError {
    /// No answer.
    #[error(transparent)]
    Ask(AskError),
    /// 404 or 501: there is no such page, or it is switched off.
    #[error(
        "{url} answered {status} ({excerpt}): queue and cache of the engine stay unknown; start it with its metrics on to \
         see them (--metrics for llama.cpp, --enable-metrics for sglang)"
    )]
    Off {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        excerpt: String,
    },
    /// Another status than 200.
    #[error("{url} answered {status} ({excerpt}): queue and cache of the engine stay unknown; look at its log")]
    Status {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        excerpt: String,
    },
    /// A web page.
    #[error(
        "{url} answered with a web page: queue and cache of the engine stay unknown; give the engine's own address"
    )]
    WebPage {
        /// What was asked.
        url: String,
    },
    /// A page without any known engine's names.
    #[error("{url} has no gauges of a known engine: its queue and cache stay unknown")]
    Unknown {
        /// What was asked.
        url: String,
    },
    /// More than can be read once a second.
    #[error(
        "{url} answered with more than {mib} MiB: that is too much to read each second, so queue and cache stay unknown"
    )]
    TooLarge {
        /// What was asked.
        url: String,
        /// The limit, MiB.
        mib: usize,
    },
    /// Nothing, or not all of it, came in time.
    #[error("{url} did not answer within {limit:?}: queue and cache of the engine stay unknown")]
    Slow {
        /// What was asked.
        url: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

impl From<AskError> for ScrapeError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::TooLarge { url, mib } => Self::TooLarge { url, mib },
            AskError::Timeout { url, limit } => Self::Slow { url, limit },
            other => Self::Ask(other),
        }
    }
}

/// Finds the target's gauges: the path of its metrics page, and what that tells now.
pub async fn find(http: &Http) -> Result<(&'static str, EngineGauges), ScrapeError> {
    let [first, second] = METRICS_PATHS;
    let error = match scrape(http, first).await {
        Ok(gauges) => return Ok((first, gauges)),
        Err(error) => error,
    };
    let elsewhere = matches!(error, ScrapeError::Off { status: 404, .. } | ScrapeError::Unknown { .. });
    if !elsewhere {
        return Err(error);
    }
    // What the first path says is the news if the second has nothing either.
    scrape(http, second).await.map(|gauges| (second, gauges)).map_err(|_nothing_there_too| error)
}

/// Reads the target's gauges once, at a path that [`find`] found.
pub async fn scrape(http: &Http, path: &'static str) -> Result<EngineGauges, ScrapeError> {
    scrape_within(http, path, SCRAPE_LIMIT).await
}

async fn scrape_within(http: &Http, path: &'static str, limit: Duration) -> Result<EngineGauges, ScrapeError> {
    let url = || format!("{}{path}", http.target().url.as_str());
    let answer = http.get_within(path, limit).await?;
    match answer.status {
        200 => {}
        status @ (404 | 501) => {
            return Err(ScrapeError::Off { url: url(), status, excerpt: http.excerpt(&answer.body) });
        }
        status => return Err(ScrapeError::Status { url: url(), status, excerpt: http.excerpt(&answer.body) }),
    }
    if answer.content_type == "text/html" || answer.body.trim_start().starts_with('<') {
        return Err(ScrapeError::WebPage { url: url() });
    }
    EngineGauges::of(&Page::read(&answer.body)).ok_or_else(|| ScrapeError::Unknown { url: url() })
}

#[cfg(test)]
#[path = "prometheus_tests.rs"]
mod tests;
