//! Ends cut requests inside the engine too, where a closed connection does not: they would go on beside the next cell.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use speedmatrix_shared::target::TargetFacts;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::Bench;
use crate::{
    client::http::Http,
    engine::known::{Engine, EngineKind},
};

/// Questions that are put at once.
const AT_ONCE: usize = 32;
/// Longest time (real) for all of them: the drain before the next cell waits for what is left.
const LIMIT: Duration = Duration::from_secs(10);

/// What is known about the engine of a target.
pub(super) fn known_engine(facts: &TargetFacts) -> &'static Engine {
    EngineKind::named(facts.engine.engine.as_deref().unwrap_or_default()).engine()
}

impl Bench {
    /// Tells the engine to end these requests, if it is one that must be told.
    pub(super) async fn end_in_engine(&self, rids: Vec<Arc<str>>) {
        let Some(path) = known_engine(&self.facts).abort.filter(|_| !rids.is_empty()) else { return };
        let Ok(http) = Http::new(&self.target) else { return };
        let told = self.serving.spawn(async move {
            let mut asking = JoinSet::new();
            for rid in rids {
                if asking.len() >= AT_ONCE {
                    asking.join_next().await;
                }
                let http = http.clone();
                asking.spawn(async move {
                    // A refusal is no finding: whether the engine is idle is seen before the next cell.
                    if let Err(error) = http.post(path, json!({"rid": *rid}).to_string()).await {
                        tracing::debug!(%error, "the engine was not told to end a request");
                    }
                });
            }
            asking.join_all().await;
        });
        tokio::time::timeout(LIMIT, AbortOnDropHandle::new(told)).await.ok();
    }
}
