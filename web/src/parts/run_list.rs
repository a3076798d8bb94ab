//! What is known about the list of runs: asked for again and again while the page is seen, and changed at once by what
//! people do on it.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, RunSummary},
    id::RunId,
    label::Labels,
};

use crate::{
    browser,
    fetch::{self, FetchError},
    filter::arranged,
    labels::Bin,
    shell::{Conn, Shell},
};

/// Milliseconds between two looks at the list.
const POLL_MS: u32 = 2_000;

/// The list. After a failure the last one stays on the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// The runs in the order in which they are shown.
    pub runs: Option<Vec<RunSummary>>,
    /// Why the latest look failed.
    pub error: Option<FetchError>,
}

/// The list of this page.
#[derive(Debug, Clone, Copy)]
pub struct RunList {
    /// What is known.
    pub listing: RwSignal<Listing>,
    /// What a screen reader says about the latest change.
    pub said: RwSignal<String>,
    /// Why something was not done.
    pub trouble: RwSignal<Option<String>>,
    /// One more at each change from this page: answers that were asked for before it are old.
    changes: StoredValue<u32>,
    /// The agent's tag of the list that is shown.
    tag: StoredValue<Option<String>>,
    /// What was deleted a moment ago.
    pub bin: Bin,
    shell: Shell,
}

impl RunList {
    /// An empty list that fills itself.
    pub fn follow() -> Self {
        let list = Self {
            listing: RwSignal::new(Listing::default()),
            said: RwSignal::new(String::new()),
            trouble: RwSignal::new(None),
            changes: StoredValue::new(0),
            tag: StoredValue::new(None),
            bin: Bin::of_app(),
            shell: Shell::of_app(),
        };
        leptos::task::spawn_local_scoped_with_cancellation(list.poll());
        list
    }

    async fn poll(self) {
        let mut seen = browser::local_time();
        let mut attempts = 0;
        loop {
            if !browser::is_hidden() {
                match self.look().await {
                    Err(FetchError::Unreachable) => {
                        attempts += 1;
                        let retry_in_s = POLL_MS / 1_000;
                        self.shell.conn.set(Conn::Lost { since: seen.clone(), attempts, retry_in_s });
                    }
                    Err(_) => {}
                    Ok(()) => (attempts, seen) = (0, browser::local_time()),
                }
            }
            TimeoutFuture::new(POLL_MS).await;
        }
    }

    /// Asks for the list now.
    pub async fn look(self) -> Result<(), FetchError> {
        let asked = self.changes.get_value();
        let known = self.tag.get_value();
        match fetch::get_unless::<Vec<RunSummary>>(api::path::RUNS, known.as_deref()).await {
            Ok(news) => {
                self.shell.conn.set(Conn::Connected);
                match news {
                    Some(news) if self.changes.get_value() == asked => {
                        self.tag.set_value(news.tag);
                        self.listing.set(Listing { runs: Some(arranged(news.answer)), error: None });
                    }
                    None if self.listing.with_untracked(|listing| listing.error.is_some()) => {
                        self.listing.update(|listing| listing.error = None);
                    }
                    // The same list, or one that was asked for before a change: the next look will see it.
                    Some(_) | None => {}
                }
                Ok(())
            }
            Err(error) => {
                self.listing.update(|listing| listing.error = Some(error.clone()));
                Err(error)
            }
        }
    }

    /// Takes over what the agent saved.
    pub fn relabelled(self, id: &RunId, labels: Labels) {
        self.changes.update_value(|changes| *changes += 1);
        // What is shown from now on never came as a whole.
        self.tag.set_value(None);
        self.listing.update(|listing| {
            let runs = listing.runs.take().map(|mut runs| {
                if let Some(run) = runs.iter_mut().find(|run| run.id == *id) {
                    run.labels = labels;
                }
                arranged(runs)
            });
            listing.runs = runs;
        });
    }

    /// The runs without those that were deleted a moment ago.
    pub fn present(self) -> Vec<RunSummary> {
        let gone = self.bin.gone.get();
        let is_gone = |run: &RunSummary| gone.iter().any(|gone| gone.id == run.id);
        self.listing.with(|listing| listing.runs.iter().flatten().filter(|run| !is_gone(run)).cloned().collect())
    }

    /// A run of the list.
    pub fn run(self, id: &RunId) -> Option<RunSummary> {
        self.listing.with(|listing| listing.runs.iter().flatten().find(|run| run.id == *id).cloned())
    }
}
