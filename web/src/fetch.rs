//! Requests to the agent. Commands are HTTP; what went wrong comes back as a [`Problem`].

use gloo_net::http::{Request, RequestBuilder, Response};
use serde::{Serialize, de::DeserializeOwned};
use speedmatrix_shared::api::Problem;

use crate::base::at;

/// Says which answer is known already, by its [`ETAG`].
const IF_NONE_MATCH: &str = "if-none-match";
/// Says by what an answer is known again.
const ETAG: &str = "etag";
/// Status of an answer that is known already.
const NOT_MODIFIED: u16 = 304;

/// Why a request brought no answer to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No answer came.
    #[error("the agent does not answer; check that it still runs on its host")]
    Unreachable,
    /// The agent said no.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// An answer that this page does not understand.
    #[error("the agent's answer ({status}) is not what this page expects: reload it to get the agent's own version")]
    Unreadable {
        /// HTTP status.
        status: u16,
    },
}

impl FetchError {
    /// Whether the thing asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.status == 404)
    }
}

/// GET `path`.
pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, FetchError> {
    let answer = Request::get(&at(path)).send().await;
    read(answer.map_err(|_no_answer| FetchError::Unreachable)?).await
}

/// An answer, and the tag by which it is known again.
#[derive(Debug)]
pub struct Tagged<T> {
    /// The answer.
    pub answer: T,
    /// The agent's tag of it.
    pub tag: Option<String>,
}

/// GET `path`; `None`: it is still the answer that had the tag `known`.
pub async fn get_unless<T: DeserializeOwned>(path: &str, known: Option<&str>) -> Result<Option<Tagged<T>>, FetchError> {
    let request = Request::get(&at(path));
    let request = match known {
        Some(tag) => request.header(IF_NONE_MATCH, tag),
        None => request,
    };
    let answer = request.send().await.map_err(|_no_answer| FetchError::Unreachable)?;
    if known.is_some() && answer.status() == NOT_MODIFIED {
        return Ok(None);
    }
    let tag = answer.headers().get(ETAG);
    read(answer).await.map(|answer| Some(Tagged { answer, tag }))
}

/// POST `body` to `path`.
pub async fn post<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> Result<T, FetchError> {
    read(send(path, body).await?).await
}

/// POST to `path` without a body, for commands whose answer holds nothing new.
pub async fn command(path: &str) -> Result<(), FetchError> {
    order(path, &serde_json::Map::new()).await
}

/// POST `body` to `path`, where the answer holds nothing new.
pub async fn order(path: &str, body: &impl Serialize) -> Result<(), FetchError> {
    let answer = send(path, body).await?;
    if answer.ok() { Ok(()) } else { Err(refusal(answer).await) }
}

/// PATCH `body` to `path`.
pub async fn patch<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> Result<T, FetchError> {
    sent(with_json(Request::patch(&at(path)), body)).await
}

/// DELETE `path`.
pub async fn delete(path: &str) -> Result<(), FetchError> {
    let answer = Request::delete(&at(path)).send().await.map_err(|_no_answer| FetchError::Unreachable)?;
    if answer.ok() { Ok(()) } else { Err(refusal(answer).await) }
}

/// Sends a request and reads its answer.
pub async fn sent<T: DeserializeOwned>(request: Request) -> Result<T, FetchError> {
    read(request.send().await.map_err(|_no_answer| FetchError::Unreachable)?).await
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Request {
    let text = serde_json::to_string(body).expect("bodies of the API are plain data");
    request.header("content-type", "application/json").body(text).expect("a text is a valid body")
}

async fn send(path: &str, body: &impl Serialize) -> Result<Response, FetchError> {
    with_json(Request::post(&at(path)), body).send().await.map_err(|_no_answer| FetchError::Unreachable)
}

async fn read<T: DeserializeOwned>(answer: Response) -> Result<T, FetchError> {
    if !answer.ok() {
        return Err(refusal(answer).await);
    }
    let status = answer.status();
    let text = answer.text().await.map_err(|_cut_off| FetchError::Unreachable)?;
    serde_json::from_str(&text).map_err(|_another_shape| FetchError::Unreadable { status })
}

async fn refusal(answer: Response) -> FetchError {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    serde_json::from_str(&text).map_or(FetchError::Unreadable { status }, FetchError::Refused)
}
