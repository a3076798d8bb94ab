//! What people do with stored runs: name, tag and pin them, write notes, delete them and bring files.

use gloo_net::http::Request;
use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, Imported, UNDO_SECS},
    id::RunId,
    import::{ImportError, MAX_BYTES},
    label::{LabelPatch, Labels},
};

use crate::{
    base::at,
    fetch::{self, FetchError},
    query,
};

/// Why labels were not saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveError {
    /// Somebody else was faster; this is there now.
    Changed(Box<Labels>),
    /// A sentence.
    Other(String),
}

impl From<FetchError> for SaveError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Refused(problem) if problem.code == "labels_changed" && problem.labels.is_some() => {
                problem.labels.map_or_else(|| Self::Other(problem.detail), Self::Changed)
            }
            other => Self::Other(other.to_string()),
        }
    }
}

/// Saves a change.
pub async fn save(run: &RunId, patch: &LabelPatch) -> Result<Labels, SaveError> {
    Ok(fetch::patch(&api::path::of(api::path::RUN, run), patch).await?)
}

/// Pins a run or takes its pin out, whatever else was changed meanwhile: no two people mean different things by it.
pub async fn pin(run: &RunId, now: &Labels) -> Result<Labels, SaveError> {
    let patch = LabelPatch { revision: now.revision, pinned: Some(!now.pinned), ..LabelPatch::default() };
    match save(run, &patch).await {
        Err(SaveError::Changed(now)) => save(run, &LabelPatch { revision: now.revision, ..patch }).await,
        saved => saved,
    }
}

/// Sends a file; it may hold several runs.
pub async fn import(file: web_sys::File) -> Result<Vec<Imported>, String> {
    if file.size() > MAX_BYTES as f64 {
        return Err(ImportError::TooLarge.to_string());
    }
    let path = format!("{}{}", api::path::IMPORT, query::joined(&[("name", &file.name())]));
    let request = Request::post(&at(&path)).header("content-type", "application/octet-stream").body(file);
    let request = request.expect("a file is a valid body");
    fetch::sent(request).await.map_err(|error| error.to_string())
}

/// A run that was deleted and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub id: RunId,
    /// Its name.
    pub name: String,
}

/// What was deleted in this tab in the last seconds; all pages share it.
#[derive(Debug, Clone, Copy)]
pub struct Bin {
    /// The deleted runs, the latest last.
    pub gone: RwSignal<Vec<Gone>>,
    /// The run that was brought back last.
    pub restored: RwSignal<Option<RunId>>,
    /// Why something could not be brought back.
    pub trouble: RwSignal<Option<String>>,
}

impl Bin {
    /// An empty one.
    pub fn new() -> Self {
        Self { gone: RwSignal::new(Vec::new()), restored: RwSignal::new(None), trouble: RwSignal::new(None) }
    }

    /// The bin of this app.
    pub fn of_app() -> Self {
        expect_context()
    }

    /// Deletes a run; it can be brought back for [`UNDO_SECS`].
    pub async fn delete(self, run: Gone) -> Result<(), FetchError> {
        fetch::delete(&api::path::of(api::path::RUN, &run.id)).await?;
        self.trouble.set(None);
        let id = run.id.clone();
        self.gone.update(|gone| gone.push(run));
        leptos::task::spawn_local(async move {
            gloo_timers::future::TimeoutFuture::new(UNDO_SECS * 1_000).await;
            self.forget(&id);
        });
        Ok(())
    }

    /// Brings a run back.
    pub async fn restore(self, id: RunId) {
        match fetch::command(&api::path::of(api::path::RESTORE, &id)).await {
            Ok(()) => {
                self.forget(&id);
                self.restored.set(Some(id));
            }
            Err(error) => self.trouble.set(Some(format!("The run was not brought back: {error}."))),
        }
    }

    fn forget(self, id: &RunId) {
        self.gone.update(|gone| gone.retain(|run| run.id != *id));
    }
}

impl Default for Bin {
    fn default() -> Self {
        Self::new()
    }
}
