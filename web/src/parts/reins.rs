//! What an operator does with a running run: pause, go on, leave the running cell out, stop.

use leptos::{either::Either, prelude::*};
use speedmatrix_shared::{
    api,
    id::CellId,
    state::{CellState, RunState},
    steer::{Next, Steer},
};

use super::{
    icon::{Icon, icon},
    notice::{Notice, Weight},
};
use crate::{fetch, live::LiveRun};

/// What is being asked of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Asking {
    #[default]
    Nothing,
    /// Whether to really leave out a cell, or stop.
    Sure(Drastic),
    /// The stop is sent.
    Stopping,
    Failed(String),
}

/// What loses a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drastic {
    Skip(CellId),
    Stop,
}

impl Drastic {
    fn question(self) -> String {
        match self {
            Self::Skip(cell) => format!("Leave out {cell}? What is measured of it in this window is lost."),
            Self::Stop => "Stop now? Measured cells are kept, the running one is lost.".to_owned(),
        }
    }

    const fn yes(self) -> &'static str {
        match self {
            Self::Skip(_) => "Leave it out",
            Self::Stop => "Stop the run",
        }
    }

    const fn testid(self) -> &'static str {
        match self {
            Self::Skip(_) => "skip-confirm",
            Self::Stop => "stop-confirm",
        }
    }
}

/// Sends wishes and remembers how that went.
#[derive(Clone, Copy)]
struct Agent {
    stop: StoredValue<String>,
    steer: StoredValue<String>,
    asking: RwSignal<Asking>,
}

/// A request outlives the button that was pressed: that one is drawn anew at once, and would take the request with it.
impl Agent {
    fn wish(self, wish: Steer) {
        self.asking.set(Asking::Nothing);
        leptos::task::spawn_local(async move {
            if let Err(error) = fetch::order(&self.steer.get_value(), &wish).await {
                self.asking.set(Asking::Failed(error.to_string()));
            }
        });
    }

    fn stop(self) {
        self.asking.set(Asking::Stopping);
        leptos::task::spawn_local(async move {
            if let Err(error) = fetch::command(&self.stop.get_value()).await {
                self.asking.set(Asking::Failed(error.to_string()));
            }
        });
    }

    fn do_it(self, drastic: Drastic) {
        match drastic {
            Drastic::Skip(cell) => self.wish(Steer::Skip { cell }),
            Drastic::Stop => self.stop(),
        }
    }
}

fn running(state: &RunState) -> Option<CellId> {
    state.running_cell().map(|cell| cell.id)
}

/// Whether more cells wait: after the last one there is nothing to pause before.
fn has_more(state: &RunState) -> bool {
    state.cells.iter().any(|cell| cell.state == CellState::Planned)
}

/// The buttons. What loses a measurement is asked twice.
#[component]
pub fn Reins(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let path = |template| run.state.with_untracked(|state| StoredValue::new(api::path::of(template, &state.id)));
    let asking = RwSignal::new(Asking::Nothing);
    let agent = Agent { stop: path(api::path::STOP), steer: path(api::path::STEER), asking };
    let sure = move || match asking.get() {
        Asking::Sure(drastic) => Some(drastic),
        _ => None,
    };
    let failed = move || match asking.get() {
        Asking::Failed(text) => Some(view! { <Notice weight=Weight::Bad text/> }),
        _ => None,
    };
    view! {
        <div class="btns" role="group" aria-label="Run controls">
            {move || match sure() {
                Some(drastic) => Either::Left(view! { <Sure agent drastic/> }),
                None => Either::Right(view! { <Buttons run agent/> }),
            }}
            {failed}
        </div>
    }
}

#[component]
fn Sure(agent: Agent, drastic: Drastic) -> impl IntoView {
    view! {
        <span class="now">{drastic.question()}</span>
        <button type="button" class="btn danger" data-testid=drastic.testid() on:click=move |_| agent.do_it(drastic)>
            {drastic.yes()}
        </button>
        <button type="button" class="btn" data-testid="sure-back" on:click=move |_| agent.asking.set(Asking::Nothing)>
            "Keep running"
        </button>
    }
}

#[component]
fn Buttons(run: LiveRun, agent: Agent) -> impl IntoView {
    let next = Memo::new(move |_| run.state.with(|state| state.next));
    let cell = Memo::new(move |_| run.state.with(running));
    let more = Memo::new(move |_| run.state.with(has_more));
    let stopping = move || agent.asking.with(|asking| *asking == Asking::Stopping);
    let ask = move |drastic| agent.asking.set(Asking::Sure(drastic));
    let button = move |wished: Next, words: &'static str, testid: &'static str| {
        view! {
            <button type="button" class="btn" data-testid=testid on:click=move |_| agent.wish(Steer::Next { next: wished })>
                {words}
            </button>
        }
    };
    // What was asked for and has not come yet is said, and taken back by the same place.
    let pause = move || match (next.get(), cell.get()) {
        (Next::Go, _) => more.get().then(|| button(Next::Pause, "Pause after this cell", "pause")),
        (Next::Pause, None) => Some(button(Next::Go, "Go on", "resume")),
        (Next::Pause, Some(_)) => Some(button(Next::Go, "Don't pause", "resume")),
        (Next::Stop, _) => Some(button(Next::Go, "Don't stop", "resume")),
    };
    let said = move || match (next.get(), cell.get()) {
        (Next::Go, _) => None,
        (Next::Pause, None) => Some("Paused."),
        (Next::Pause, Some(_)) => Some("Pauses after this cell."),
        (Next::Stop, _) => Some("Stops after this cell."),
    };
    let after = move || {
        (more.get() && next.get() == Next::Go && cell.get().is_some())
            .then(|| button(Next::Stop, "Stop after this cell", "stop-after"))
    };
    let skip = move || {
        cell.get().map(|cell| {
            view! {
                <button type="button" class="btn" data-testid="skip" on:click=move |_| ask(Drastic::Skip(cell))>
                    "Skip cell"
                </button>
            }
        })
    };
    view! {
        <span class="now" data-testid="next" aria-live="polite">{said}</span>
        {pause}
        {skip}
        {after}
        <button
            type="button"
            class="btn danger"
            data-testid="stop"
            disabled=stopping
            on:click=move |_| ask(Drastic::Stop)
        >
            {icon(Icon::Stop)}
            {move || if stopping() { "Stopping…" } else { "Stop" }}
        </button>
    }
}
