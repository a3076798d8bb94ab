//! Files that become runs: chosen with a button, or dropped anywhere on the page.

use leptos::{
    ev::{self, DragEvent, Event},
    html,
    prelude::*,
};
use speedmatrix_shared::api::Imported;

use super::{
    icon::{Icon, icon},
    notice::{Notice, Weight},
    run_card::address,
    run_list::RunList,
};
use crate::{base::at, labels};

/// Files that are taken at once.
const MAX_FILES: u32 = 50;

/// What became of a file.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    file: String,
    result: Result<Vec<Imported>, String>,
}

/// The files of this page.
#[derive(Debug, Clone, Copy)]
pub struct Import {
    list: RunList,
    outcomes: RwSignal<Vec<Outcome>>,
    /// Files that are still being read.
    open: RwSignal<usize>,
    dragging: RwSignal<bool>,
}

impl Import {
    /// Takes files that are dropped on the page.
    pub fn on_page(list: RunList) -> Self {
        let import =
            Self { list, outcomes: RwSignal::new(Vec::new()), open: RwSignal::new(0), dragging: RwSignal::new(false) };
        let over = window_event_listener(ev::dragover, move |event| {
            if has_files(&event) {
                event.prevent_default();
                import.dragging.set(true);
            }
        });
        // Only who leaves the window comes from nowhere.
        let left = window_event_listener(ev::dragleave, move |event| {
            if event.related_target().is_none() {
                import.dragging.set(false);
            }
        });
        let dropped = window_event_listener(ev::drop, move |event| {
            if !has_files(&event) {
                return;
            }
            event.prevent_default();
            import.dragging.set(false);
            import.take(event.data_transfer().and_then(|transfer| transfer.files()));
        });
        on_cleanup(move || [over, left, dropped].into_iter().for_each(WindowListenerHandle::remove));
        import
    }

    fn take(self, files: Option<web_sys::FileList>) {
        let Some(files) = files else { return };
        let files: Vec<web_sys::File> = (0..files.length().min(MAX_FILES)).filter_map(|at| files.get(at)).collect();
        self.outcomes.update(Vec::clear);
        self.open.update(|open| *open += files.len());
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            for file in files {
                let outcome = Outcome { file: file.name(), result: labels::import(file).await };
                self.outcomes.update(|outcomes| outcomes.push(outcome));
                self.open.update(|open| *open = open.saturating_sub(1));
                // What went wrong with the list is said above it.
                self.list.look().await.ok();
            }
        });
    }
}

fn has_files(event: &DragEvent) -> bool {
    let types = event.data_transfer().map(|transfer| transfer.types());
    types.is_some_and(|types| types.iter().any(|kind| kind.as_string().as_deref() == Some("Files")))
}

/// The button that opens the system's choice of files.
#[component]
pub fn ImportButton(
    /// The files of this page.
    import: Import,
) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let chosen = move |_: Event| {
        if let Some(input) = input.get_untracked() {
            import.take(input.files());
            // The same file can be chosen again.
            input.set_value("");
        }
    };
    let choose = move |_| {
        if let Some(input) = input.get_untracked() {
            input.click();
        }
    };
    view! {
        <input
            type="file"
            class="sr"
            multiple
            accept=".json,.jsonl,application/json"
            tabindex="-1"
            aria-label="Files to import"
            data-testid="import-files"
            node_ref=input
            on:change=chosen
        />
        <button type="button" class="btn" data-testid="import" on:click=choose>{icon(Icon::Import)}"Import"</button>
    }
}

/// What became of the files, and the sign that they may be dropped here.
#[component]
pub fn ImportReport(
    /// The files of this page.
    import: Import,
) -> impl IntoView {
    let waiting = move || (import.open.get() > 0).then(|| view! { <p class="loading">"Reading the file…"</p> });
    let close = move |_| import.outcomes.update(Vec::clear);
    let is_told = Memo::new(move |_| import.outcomes.with(|outcomes| !outcomes.is_empty()));
    view! {
        <div class="imports" role="status" aria-live="polite" data-testid="imports">
            {waiting}
            {move || import.outcomes.get().into_iter().map(told).collect_view()}
            {move || {
                is_told.get().then(|| view! { <button type="button" class="btn ghost" on:click=close>"Close"</button> })
            }}
        </div>
        <div class="drop-veil" hidden=move || !import.dragging.get() data-testid="drop-veil">
            <p>{icon(Icon::Import)}"Drop the result of a run to import it"</p>
        </div>
    }
}

fn told(outcome: Outcome) -> impl IntoView {
    let Outcome { file, result } = outcome;
    match result {
        Ok(runs) => runs.into_iter().map(came).collect_view().into_any(),
        Err(error) => {
            let text = format!("{file} was not imported: {error}.");
            view! { <Notice weight=Weight::Bad text/> }.into_any()
        }
    }
}

fn came(run: Imported) -> impl IntoView {
    let Imported { id, name, known } = run;
    let text = if known { format!("{name} is here already.") } else { format!("{name} is imported.") };
    let address = address(&id);
    view! { <Notice weight=Weight::Info text><a class="btn" href=at(&address)>"Open it"</a></Notice> }
}
