//! Why a target can't be measured, in sentences that the page and the terminal show as they are.

use crate::client::http::AskError;

/// Most model names that an error lists.
const MODELS_LISTED: usize = 10;

/// The probe found no server to measure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No answer at all.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// 401 or 403 without a key.
    #[error("{url} answered {status}: it wants a key, and none was given: enter the server's api key")]
    KeyMissing {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// 401 or 403 with a key.
    #[error("{url} answered {status}: it refuses the key that was given: check the server's api key")]
    KeyRefused {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// 404.
    #[error("{url} answered 404: no model list there: check the address and its base path (without /v1)")]
    NotFound {
        /// What was asked.
        url: String,
    },
    /// 3xx.
    #[error("{url} answered {status} and points to {location}: give that address instead")]
    Moved {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// Where it points to.
        location: String,
    },
    /// Another status.
    #[error("{url} answered {status} ({excerpt}): wait until the server is ready, or look at its log")]
    Status {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        excerpt: String,
    },
    /// A web page.
    #[error("{url} answered with a web page (\"{title}\"): that is a site or a proxy, give the model server's address")]
    WebPage {
        /// What was asked.
        url: String,
        /// Its title.
        title: String,
    },
    /// Not JSON, or JSON that is no model list.
    #[error("{url} answered with something that is no model list ({excerpt}): check that it is an openai-style server")]
    NotAModelList {
        /// What was asked.
        url: String,
        /// How it begins.
        excerpt: String,
    },
    /// An empty model list.
    #[error("{url} offers no model: load one on the server first")]
    NoModels {
        /// What was asked.
        url: String,
    },
    /// The wanted model is not on offer.
    #[error("the server at {url} has no model \"{wanted}\": it offers {}", listed(.offered))]
    NoSuchModel {
        /// The server's address.
        url: String,
        /// The model that was wanted.
        wanted: String,
        /// The models on offer.
        offered: Vec<String>,
    },
}

fn listed(models: &[String]) -> String {
    let names = models.iter().take(MODELS_LISTED).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    match models.len().saturating_sub(MODELS_LISTED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
