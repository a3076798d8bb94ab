//! What was deleted a moment ago, with the way back: for ten seconds, on whatever page one is.

use leptos::{ev, prelude::*};
use speedmatrix_shared::{api::UNDO_SECS, id::RunId};

use super::{
    icon::{Icon, icon},
    keys::is_typing,
    notice::{Notice, Weight},
};
use crate::{
    browser,
    labels::{Bin, Gone},
};

fn button_id(run: &RunId) -> String {
    format!("undo-{run}")
}

/// The bar at the foot of the window.
#[component]
pub fn UndoBar() -> impl IntoView {
    let bin = Bin::of_app();
    let restore = move |id: RunId| leptos::task::spawn_local(bin.restore(id));
    let handle = window_event_listener(ev::keydown, move |event| {
        let is_undo = (event.ctrl_key() || event.meta_key()) && !event.shift_key() && event.key() == "z";
        let latest = bin.gone.with_untracked(|gone| gone.last().cloned());
        if let Some(latest) = latest.filter(|_| is_undo && !is_typing(&event)) {
            event.prevent_default();
            restore(latest.id);
        }
    });
    on_cleanup(move || handle.remove());
    // The latest deletion takes the focus, as the menu that held it is gone with its card.
    Effect::new(move |before: Option<Vec<Gone>>| {
        let gone = bin.gone.get();
        let before = before.unwrap_or_default();
        if let Some(latest) = gone.last().filter(|latest| !before.contains(latest)) {
            let id = button_id(&latest.id);
            request_animation_frame(move || browser::focus(&id));
        } else if gone.len() < before.len() {
            // The time is over; a focus that stood there goes back to the page.
            request_animation_frame(browser::rescue_focus);
        }
        gone
    });
    let trouble = move || {
        bin.trouble.get().map(|text| {
            let close = move |_| bin.trouble.set(None);
            view! {
                <div class="toast"><Notice weight=Weight::Bad text>
                    <button type="button" class="btn" on:click=close>"Close"</button>
                </Notice></div>
            }
        })
    };
    let one = move |run: Gone| {
        let id = run.id.clone();
        view! {
            <div class="toast panel" data-testid="toast">
                <p><b><bdi>{run.name.clone()}</bdi></b>" is deleted. "<span class="muted">{format!("It can be brought back for {UNDO_SECS} seconds.")}</span></p>
                <button
                    type="button"
                    class="btn"
                    id=button_id(&run.id)
                    data-testid="undo"
                    aria-label=format!("Undo: bring {} back", run.name)
                    on:click=move |_| restore(id.clone())
                >
                    {icon(Icon::Undo)}
                    "Undo"
                </button>
                <i class="left" style=("--secs", format!("{UNDO_SECS}s")) aria-hidden="true"></i>
            </div>
        }
    };
    view! {
        <div class="toasts" role="status" aria-live="polite">
            {trouble}
            <For each=move || bin.gone.get() key=|run| run.id.clone() children=one/>
        </div>
    }
}
