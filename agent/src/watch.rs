//! `watch`: another agent's run in this terminal, by the messages that its page gets, through the same fold.

use std::{path::Path, time::Duration};

use futures_util::StreamExt as _;
use speedmatrix_shared::{
    api::{ENTER_MARK, PROTOCOL, RunSummary, ServerMessage, path},
    id::RunId,
    plan::{TargetUrl, draft::parse_target},
};
use tokio::time::timeout;
use tokio_tungstenite::{
    Connector, connect_async_tls_with_config,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::{HeaderValue, header},
    },
};

use crate::{
    client::{
        Target,
        http::{AskError, Http, tls_provider},
        trust::{Trust, TrustError},
    },
    secret::Secret,
    terminal::{LiveTable, Terminal},
};

/// Silence that means a lost connection: an agent says at least every 5 seconds how many watch.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Pauses before the tries to get a lost connection back.
const PAUSES_SECS: [u64; 6] = [1, 2, 4, 8, 16, 30];

/// Why a run can't be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Not an address of an agent or a run.
    #[error("{0}")]
    Address(String),
    /// The agent does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Something else answers.
    #[error("{url} answered {status}: give the address of a Speedmatrix agent, as its first line prints it")]
    NoAgent {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// It does not know who asks.
    #[error(
        "the agent at {url} asks for a token: give the link that its operator gave you, or its token by --token-env"
    )]
    Token {
        /// The agent.
        url: String,
    },
    /// It has no run.
    #[error("the agent at {url} has no run yet: start one there")]
    NoRun {
        /// The agent.
        url: String,
    },
    /// The live socket does not open.
    #[error("the run {run} at {url} can't be watched ({reason}): check its id, and that the agent is up")]
    Socket {
        /// The agent.
        url: String,
        /// Which run.
        run: RunId,
        /// What came.
        reason: String,
    },
    /// It speaks otherwise.
    #[error("the agent at {url} speaks version {theirs} and this program version {PROTOCOL}: update the older one")]
    Protocol {
        /// The agent.
        url: String,
        /// Its version.
        theirs: u32,
    },
    /// The certificate to trust is none.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The terminal is gone.
    #[error("{0}")]
    Output(#[from] std::io::Error),
}

/// An agent and, if they were named, one of its runs and the token of a link.
#[derive(Debug)]
struct Watched {
    agent: TargetUrl,
    run: Option<RunId>,
    token: Option<Secret>,
}

/// Reads the address of an agent, of a run's page or of a run's path in the interface; also as a link that lets in.
fn read_address(text: &str) -> Result<Watched, WatchError> {
    let (text, token) = text
        .split_once('#')
        .map_or((text, None), |(text, mark)| (text, mark.strip_prefix(ENTER_MARK).and_then(Secret::new)));
    let (agent, run) = match text.split_once("/runs/") {
        Some((agent, rest)) => {
            let id = rest.split(['/', '?', '#']).next().unwrap_or_default();
            (agent, Some(id.parse().map_err(|e| WatchError::Address(format!("{e}")))?))
        }
        None => (text, None),
    };
    let agent = agent.trim_end_matches('/');
    let agent = agent.strip_suffix("/api/v1").unwrap_or(agent);
    let agent = parse_target(agent).map_err(WatchError::Address)?;
    Ok(Watched { agent, run, token })
}

/// Prints a run until it is over. A lost connection is tried again for a minute. An agent that asks for a token gets
/// `token`, or that of the address, if it is a link. `trusted` is a file of certificates to trust beside the system's.
pub async fn watch(
    url: &str,
    token: Option<Secret>,
    trusted: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), WatchError> {
    let trust = Trust::read(trusted)?;
    tls_provider();
    let Watched { agent, run, token: of_link } = read_address(url)?;
    let agent = Target { url: agent, key: token.or(of_link) };
    let run = match run {
        Some(run) => run,
        None => latest_run(&agent, &trust).await?,
    };
    let mut table = LiveTable::default();
    let mut pauses = PAUSES_SECS.iter();
    loop {
        let lost = match listen(&agent, &trust, &run, &mut table, terminal).await {
            Ok(()) => return Ok(()),
            Err(lost @ WatchError::Socket { .. }) if table.has_begun() => lost,
            Err(error) => return Err(error),
        };
        let Some(secs) = pauses.next() else { return Err(lost) };
        terminal.hint(&format!("connection lost; trying again in {secs} s"));
        tokio::time::sleep(Duration::from_secs(*secs)).await;
    }
}

/// The run that is being measured, else the newest one.
async fn latest_run(agent: &Target, trust: &Trust) -> Result<RunId, WatchError> {
    let url = agent.url.as_str().to_owned();
    let answer = Http::trusting(agent, trust)?.get(path::RUNS).await?;
    let runs: Vec<RunSummary> = match (answer.status, serde_json::from_str(&answer.body)) {
        (200, Ok(runs)) => runs,
        (401, _) => return Err(WatchError::Token { url }),
        (status, _) => return Err(WatchError::NoAgent { url, status }),
    };
    // The sample is in every list, and nothing happens in it.
    let own = runs.into_iter().map(|run| run.id).find(|id| id.as_str() != RunId::REFERENCE);
    own.ok_or(WatchError::NoRun { url })
}

/// Prints what one connection tells; `Ok` once the run is over.
async fn listen(
    agent: &Target,
    trust: &Trust,
    run: &RunId,
    table: &mut LiveTable,
    terminal: &mut Terminal,
) -> Result<(), WatchError> {
    let url = agent.url.as_str();
    let failed = |reason: String| WatchError::Socket { url: url.to_owned(), run: run.clone(), reason };
    let address = format!("{}{}", url.replacen("http", "ws", 1), path::of(path::LIVE, run));
    let mut request = address.into_client_request().map_err(|e| failed(e.to_string()))?;
    if let Some(token) = &agent.key {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
        request.headers_mut().insert(header::AUTHORIZATION, value.map_err(|e| failed(e.to_string()))?);
    }
    let tls = trust.config().map_err(failed)?.map(Connector::Rustls);
    let connected = timeout(CONNECT_LIMIT, connect_async_tls_with_config(request, None, false, tls)).await;
    let connected = connected.map_err(|_elapsed| failed("no answer in time".into()))?;
    let (mut socket, _) = connected.map_err(|error| match error {
        tungstenite::Error::Http(answer) if answer.status() == 401 => WatchError::Token { url: url.to_owned() },
        error => failed(error.to_string()),
    })?;
    while !table.is_over() {
        let next = timeout(SILENCE_LIMIT, socket.next()).await.map_err(|_elapsed| failed("silence".into()))?;
        let text = match next {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => return Err(failed("closed".into())),
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(failed(error.to_string())),
        };
        match serde_json::from_str(&text).map_err(|e| failed(e.to_string()))? {
            ServerMessage::Hello { protocol, .. } if protocol != PROTOCOL => {
                return Err(WatchError::Protocol { url: url.to_owned(), theirs: protocol });
            }
            message => table.take(message, terminal)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_run_names_it() {
        let check = |text: &str, agent: &str, run: Option<&str>| {
            let watched = read_address(text).unwrap();
            assert_eq!((watched.agent.as_str(), watched.run.as_ref().map(RunId::as_str)), (agent, run), "{text}");
        };
        check("127.0.0.1:7878", "http://127.0.0.1:7878", None);
        check("http://gpu:7878/", "http://gpu:7878", None);
        check("http://gpu:7878/runs/018f-a?m=ttft", "http://gpu:7878", Some("018f-a"));
        check("http://gpu:7878/api/v1/runs/reference/live", "http://gpu:7878", Some("reference"));
        check("http://gpu/base/runs/a#x", "http://gpu/base", Some("a"));
        let link = read_address("http://gpu:7878/runs/a#enter=abc").unwrap();
        assert_eq!(link.token.as_ref().map(Secret::expose), Some("abc"));
        check("https://gpu:7878/speedmatrix/runs/a", "https://gpu:7878/speedmatrix", Some("a"));
        for wrong in ["", "ftp://gpu", "http://gpu/runs/A B"] {
            assert!(read_address(wrong).is_err(), "{wrong}");
        }
    }
}
