//! What people do with runs that are stored: name, tag and pin them, write notes, delete them, bring files.

use std::{sync::Arc, time::Duration};

use speedmatrix_shared::{
    api::{Imported, UNDO_SECS},
    id::RunId,
    import::{Import, events},
    label::{ImportNote, LabelPatch, Labels},
    state::RunState,
};

use super::{Runs, unix_ms};
use crate::{
    secret,
    store::{Foreign, Prune, Retention, Store, StoreError},
};

/// How long after the time for taking a deletion back the run is removed: who presses in the last moment is heard.
const UNDO_GRACE: Duration = Duration::from_secs(2);

/// Between two looks for runs that are no longer kept.
const PRUNE_PERIOD: Duration = Duration::from_hours(1);

impl Runs {
    /// Where everything is kept.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// What people added to a run.
    pub async fn labels(&self, run: &RunId) -> Result<Labels, StoreError> {
        match self.store.labels(run).await {
            // A run that is only here is worth more than its notes.
            Err(_) if self.is_lost(run) => Ok(Labels::default()),
            labels => labels,
        }
    }

    /// Changes what people added to a run, unless somebody else did so since the patch was made.
    pub async fn relabel(&self, run: &RunId, mut patch: LabelPatch) -> Result<Labels, StoreError> {
        // A launch command is pasted with its keys in it.
        for text in patch.typed.iter_mut().flat_map(|typed| typed.values_mut()) {
            *text = without_secrets(text);
        }
        self.store.relabel(run, patch).await
    }

    /// Deletes a run that is over. It is hidden at once and can be restored for [`UNDO_SECS`].
    pub async fn delete(&self, run: &RunId) -> Result<(), StoreError> {
        let at_unix_ms = unix_ms();
        self.store.delete(run, at_unix_ms).await?;
        self.remove_later(at_unix_ms);
        Ok(())
    }

    /// Removes what was deleted until now when nobody can take that back any more.
    fn remove_later(&self, at_unix_ms: u64) {
        let store = self.store.clone();
        // It may end with the agent: the next one removes what was deleted before it began.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(UNDO_SECS.into()) + UNDO_GRACE).await;
            if let Err(error) = store.remove_deleted(at_unix_ms).await {
                tracing::warn!("a deleted run could not be removed from the store: {error}");
            }
        });
    }

    /// Deletes what a rule no longer keeps, now and again each hour as long as this process serves.
    pub fn keep_to(self: &Arc<Self>, rule: Retention) {
        if rule.keeps_all() {
            return;
        }
        let runs = Arc::clone(self);
        tokio::spawn(async move {
            let mut hours = tokio::time::interval(PRUNE_PERIOD);
            loop {
                hours.tick().await;
                if let Err(error) = runs.prune(rule).await {
                    tracing::warn!("runs that are no longer kept could not be deleted: {error}");
                }
            }
        });
    }

    async fn prune(&self, rule: Retention) -> Result<(), StoreError> {
        let now = unix_ms();
        let pruned = self.store.prune(rule, now, Prune::Hide).await?;
        for run in &pruned.runs {
            tracing::info!("run {run} is deleted: it is no longer kept by the rules that serve was given");
        }
        for run in &pruned.without_raw {
            tracing::info!("the raw arrivals of run {run} are deleted: its numbers stay");
        }
        if !pruned.runs.is_empty() {
            self.remove_later(now);
        }
        Ok(())
    }

    /// Takes a deletion back.
    pub async fn restore(&self, run: &RunId) -> Result<(), StoreError> {
        self.store.restore(run).await
    }

    /// Stores a run that was made elsewhere, under its own id where that is free. `known` are runs that are here without
    /// being stored.
    pub async fn import(
        &self,
        import: Import,
        file: Option<String>,
        known: &[&RunState],
    ) -> Result<Imported, StoreError> {
        let Import { run, labels } = import;
        let events = events(&run);
        let folded = RunState::fold(run.id.clone(), &events).ok().flatten();
        let mut state = folded.ok_or_else(|| StoreError::Refused {
            run: run.id.clone(),
            detail: "its events do not follow on each other".into(),
        })?;
        let labels = Labels { imported: Some(ImportNote { at_unix_ms: unix_ms(), file }), ..labels };
        let name = labels.title.clone().unwrap_or_else(|| state.title());
        if self.is_here(&run, known).await {
            return Ok(Imported { id: run.id, name, known: true });
        }
        let is_reserved = run.id.as_str() == RunId::REFERENCE;
        if !is_reserved {
            let foreign = Foreign { state: state.clone(), events: events.clone(), labels: labels.clone() };
            match self.store.import(foreign).await {
                Ok(()) => return Ok(Imported { id: run.id, name, known: false }),
                Err(StoreError::Taken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        state.id = uuid::Uuid::now_v7().to_string().parse().expect("a UUID is lower-case letters, digits and dashes");
        let id = state.id.clone();
        self.store.import(Foreign { state, events, labels }).await?;
        Ok(Imported { id, name, known: false })
    }

    /// Whether this very run is here. Numbers of events may differ: a file does not keep all of them.
    async fn is_here(&self, run: &RunState, known: &[&RunState]) -> bool {
        let same = |here: &RunState| RunState { next_seq: run.next_seq, ..here.clone() } == *run;
        if known.iter().any(|here| same(here)) {
            return true;
        }
        self.state(&run.id).await.is_ok_and(|here| same(&here))
    }
}

/// A line as it may be stored: what looks like a secret in it is replaced. Only blanks part its words, so that a key in
/// quotes is found too.
fn without_secrets(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    secret::argv(&words).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_launch_command_keeps_no_key() {
        let check = |line: &str, wanted: &str| assert_eq!(without_secrets(line), wanted);
        check("vllm serve m --api-key s3cret-key --port 8000", "vllm serve m --api-key <redacted> --port 8000");
        check("vllm serve m --api-key=s3cret-key", "vllm serve m --api-key=<redacted>");
        check("H200  NVL", "H200 NVL");
    }
}
