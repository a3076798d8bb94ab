//! What a comparison needs from the agent: both runs, followed while they run, and the names of all.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, RunSummary},
    id::RunId,
    state::{RunState, RunStatus},
};

use crate::{
    fetch::{self, FetchError},
    live::{LiveRun, socket},
    shell::{Conn, Shell},
};

/// What is known about one of the two runs.
#[derive(Debug, Clone)]
pub enum Load {
    /// It was asked for.
    Asking,
    /// There is no such run.
    NotFound,
    /// It did not come; a sentence says why.
    Failed(String),
    /// It is here.
    Here(LiveRun),
}

/// Asks for the run of that name, and follows it for as long as the page is open if it is still running.
pub fn open(id: &str) -> RwSignal<Load> {
    let load = RwSignal::new(Load::Asking);
    let shell = Shell::of_app();
    match id.parse::<RunId>() {
        Ok(id) => leptos::task::spawn_local_scoped_with_cancellation(follow(id, load, shell)),
        Err(_not_an_id) => load.set(Load::NotFound),
    }
    load
}

async fn follow(id: RunId, load: RwSignal<Load>, shell: Shell) {
    match fetch::get::<RunState>(&api::path::of(api::path::RUN, &id)).await {
        Ok(state) => {
            let is_running = state.status == RunStatus::Running;
            let run = LiveRun::new(state);
            load.set(Load::Here(run));
            if is_running {
                socket::follow(run, id, shell).await;
            }
        }
        Err(error) if error.is_not_found() => load.set(Load::NotFound),
        Err(error) => {
            if error == FetchError::Unreachable {
                shell.conn.set(Conn::offline());
            }
            load.set(Load::Failed(error.to_string()));
        }
    }
}

/// All runs of the agent, to choose from and for their names.
#[derive(Debug, Clone, Copy)]
pub struct Runs {
    /// They; `None` until they are known.
    pub all: RwSignal<Option<Vec<RunSummary>>>,
    /// Why they are not.
    pub trouble: RwSignal<Option<String>>,
}

impl Runs {
    /// Asks for them.
    pub fn ask() -> Self {
        let runs = Self { all: RwSignal::new(None), trouble: RwSignal::new(None) };
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            match fetch::get::<Vec<RunSummary>>(api::path::RUNS).await {
                Ok(found) => runs.all.set(Some(found)),
                Err(error) => runs.trouble.set(Some(error.to_string())),
            }
        });
        runs
    }

    /// The name of a run, once it is known.
    pub fn name(self, id: &RunId) -> Option<String> {
        self.all.with(|all| all.iter().flatten().find(|run| run.id == *id).map(|run| run.name().to_owned()))
    }
}
