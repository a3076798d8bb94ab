//! A button that copies a text and says so.

use leptos::prelude::*;

use super::icon::{Icon, icon};
use crate::browser;

/// How copying went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    NotYet,
    Done,
    Refused,
}

/// Milliseconds that "Copied" stays.
const SHOWN_MS: u32 = 2_000;

/// A button that copies what `text` gives at that moment.
#[component]
pub fn CopyButton(
    /// Its words.
    label: &'static str,
    /// What is copied; `None` disables the button.
    #[prop(into)]
    text: Signal<Option<String>>,
    /// Stable name for tests.
    #[prop(default = "copy")]
    testid: &'static str,
) -> impl IntoView {
    let copied = RwSignal::new(Copied::NotYet);
    let copy = move |_| {
        let Some(text) = text.get_untracked() else { return };
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            copied.set(if browser::copy(text).await { Copied::Done } else { Copied::Refused });
            gloo_timers::future::TimeoutFuture::new(SHOWN_MS).await;
            copied.set(Copied::NotYet);
        });
    };
    let words = move || match copied.get() {
        Copied::NotYet => label,
        Copied::Done => "Copied",
        Copied::Refused => "Select and copy by hand",
    };
    view! {
        <button type="button" class="btn ghost" data-testid=testid disabled=move || text.with(Option::is_none) on:click=copy>
            {move || icon(if copied.get() == Copied::Done { Icon::Check } else { Icon::Copy })}
            <span aria-live="polite">{words}</span>
        </button>
    }
}
