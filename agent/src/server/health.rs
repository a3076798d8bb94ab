//! Whether this agent lives, and whether it can do its work. Anybody may ask, so no answer holds anything of a run, and
//! asking often costs no more than asking now and then.

use std::time::{Duration, Instant};

use axum::{extract::State, http::StatusCode};
use tokio::sync::Mutex;

use super::{AppState, error::Refusal};
use crate::store::Store;

/// How long the store may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// How long an answer is given again: each look at the store writes to the disk.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The latest look at the store. Who comes during one waits for its answer.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Instant, Result<(), &'static str>)>>);

impl Readiness {
    /// Why the agent can't work, if it can't.
    async fn look(&self, store: &Store) -> Result<(), &'static str> {
        let mut latest = self.0.lock().await;
        if let Some((at, answer)) = *latest
            && at.elapsed() < KEPT_FOR
        {
            return answer;
        }
        let answer = match tokio::time::timeout(ANSWER_LIMIT, store.prove_writable()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::warn!("not ready: {error}");
                Err(error.plain())
            }
            Err(_) => {
                Err("the store did not answer within two seconds: look for programs that hold it, or a slow disk")
            }
        };
        *latest = Some((Instant::now(), answer));
        answer
    }
}

/// Answers as long as this process does.
pub(super) async fn alive() -> &'static str {
    "alive\n"
}

/// Whether the store answers and takes what is written, and took all that was measured.
pub(super) async fn ready(State(app): State<AppState>) -> Result<&'static str, Refusal> {
    let looked = app.readiness.look(app.runs.store()).await;
    match looked.and(app.runs.lost().map_or(Ok(()), Err)) {
        Ok(()) => Ok("ready\n"),
        Err(reason) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Access;

    #[tokio::test]
    async fn the_store_is_looked_at_anew_only_after_some_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
        let now = Instant::now();
        let said_at = |at: Instant| Readiness(Mutex::new(Some((at, Err("what was said before")))));
        assert_eq!(said_at(now).look(&store).await, Err("what was said before"));
        let ago = now.checked_sub(KEPT_FOR).expect("this machine runs longer than that");
        assert_eq!(said_at(ago).look(&store).await, Ok(()));
    }
}
