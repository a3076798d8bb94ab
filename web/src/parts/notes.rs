//! What people added to the run of a report: its name in the head, and its notes, shown as the text that they are.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{
    api,
    id::RunId,
    label::{LabelPatch, Labels},
    state::RunState,
    typed::TypedFacts,
};

use super::{
    badge::import_badge,
    field::capitalised,
    notice::{Notice, Weight},
    operator::ForOperator,
};
use crate::{
    browser, fetch,
    labels::{self, SaveError},
};

/// Id of the field in which notes are written.
const FIELD: &str = "notes-field";
/// Id of the button that opens it.
const EDIT: &str = "notes-edit";

/// The labels of the run of this page, once they are known.
#[derive(Debug, Clone, Copy)]
pub struct RunLabels {
    /// Which run.
    pub(super) id: StoredValue<RunId>,
    /// They; `None` until they are known.
    pub(super) labels: RwSignal<Option<Labels>>,
}

impl RunLabels {
    /// Asks for the labels of a run, for all parts of its page.
    pub fn provide(id: RunId) -> Self {
        let labels = RwSignal::new(None);
        let of_page = Self { id: StoredValue::new(id.clone()), labels };
        provide_context(of_page);
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            // Without them the report is still whole: it bears its own title.
            if let Ok(found) = fetch::get::<Labels>(&api::path::of(api::path::LABELS, &id)).await {
                labels.set(Some(found));
            }
        });
        of_page
    }

    /// What people typed about the server.
    pub fn typed(self) -> TypedFacts {
        self.labels.with(|labels| labels.as_ref().map(|labels| labels.typed.clone()).unwrap_or_default())
    }

    /// All of them, as far as they are known by now.
    pub fn now_untracked(self) -> Labels {
        self.labels.with_untracked(|labels| labels.clone().unwrap_or_default())
    }

    /// Whether the run came in a file; `None` until that is known.
    pub fn is_imported(self) -> Option<bool> {
        self.labels.with(|labels| labels.as_ref().map(|labels| labels.imported.is_some()))
    }

    /// The name that people gave the run, or its own title.
    pub fn name(self, state: &RunState) -> String {
        let given = self.labels.with(|labels| labels.as_ref().and_then(|labels| labels.title.clone()));
        given.unwrap_or_else(|| state.title())
    }
}

/// Tags and the sign of an imported run, for the head of its page.
#[component]
pub fn HeadLabels() -> impl IntoView {
    let RunLabels { labels, .. } = expect_context();
    move || {
        let labels = labels.get().unwrap_or_default();
        let tags = labels.tags.into_iter().map(|tag| view! { <span class="badge tag"><bdi>{tag}</bdi></span> });
        view! { {import_badge(labels.imported.as_ref())} {tags.collect_view()} }
    }
}

/// How writing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Writing {
    No,
    Open,
    Sent,
    Changed(Box<Labels>),
    Failed(String),
}

/// The notes of people, and the way to write them. The sample run takes none.
#[component]
pub fn OwnNotes() -> impl IntoView {
    let RunLabels { id, labels } = expect_context();
    let is_own = id.with_value(|id| id.as_str() != RunId::REFERENCE);
    let notes = Memo::new(move |_| labels.with(|labels| labels.as_ref().map(|labels| labels.notes.clone())));
    let writing = RwSignal::new(Writing::No);
    let text = RwSignal::new(String::new());
    let editor = Editor { id, labels, writing, text };
    let shown = move || {
        let notes = notes.get()?;
        let is_empty = notes.is_empty();
        let words = if is_empty { "Add notes" } else { "Edit notes" };
        let shown = if is_empty {
            view! { <p class="muted">"Nobody has written about this run yet."</p> }.into_any()
        } else {
            view! { <p class="notes-text" dir="auto" data-testid="notes-text">{notes}</p> }.into_any()
        };
        Some(view! {
            {shown}
            <ForOperator>
                <div class="btns">
                    <button type="button" class="btn" id=EDIT data-testid="notes-edit" on:click=move |_| editor.open()>{words}</button>
                </div>
            </ForOperator>
        })
    };
    // How saving goes must not draw the field anew: that would break off the saving.
    let is_closed = Memo::new(move |_| writing.with(|writing| *writing == Writing::No));
    let body = move || {
        if is_closed.get() { shown().into_any() } else { view! { <Write editor/> }.into_any() }
    };
    is_own.then(|| view! { <div class="panel pad own-notes" data-testid="own-notes">{body}</div> })
}

#[derive(Debug, Clone, Copy)]
struct Editor {
    id: StoredValue<RunId>,
    labels: RwSignal<Option<Labels>>,
    writing: RwSignal<Writing>,
    text: RwSignal<String>,
}

impl Editor {
    fn open(self) {
        self.text
            .set(self.labels.with_untracked(|labels| labels.as_ref().map(|l| l.notes.clone()).unwrap_or_default()));
        self.writing.set(Writing::Open);
        request_animation_frame(|| browser::focus(FIELD));
    }

    fn close(self) {
        self.writing.set(Writing::No);
        request_animation_frame(|| browser::focus(EDIT));
    }

    fn save(self) {
        let revision = self.labels.with_untracked(|labels| labels.as_ref().map_or(0, |labels| labels.revision));
        let patch = LabelPatch { revision, notes: Some(self.text.get_untracked()), ..LabelPatch::default() };
        if let Err(error) = Labels::default().changed(&patch) {
            self.writing.set(Writing::Failed(error.to_string()));
            return;
        }
        self.writing.set(Writing::Sent);
        let id = self.id.get_value();
        leptos::task::spawn_local(async move {
            match labels::save(&id, &patch).await {
                Ok(saved) => {
                    self.labels.set(Some(saved));
                    self.close();
                }
                Err(SaveError::Changed(now)) => self.writing.set(Writing::Changed(now)),
                Err(SaveError::Other(text)) => self.writing.set(Writing::Failed(text)),
            }
        });
    }

    /// What somebody else saved becomes the ground to save on; what is written here stays, theirs above it if theirs
    /// are notes at all.
    fn join(self, now: &Labels) {
        self.labels.set(Some(now.clone()));
        let mine = self.text.get_untracked();
        if !now.notes.is_empty() && now.notes != mine {
            self.text.set(format!("{}\n\n{mine}", now.notes));
        }
        self.writing.set(Writing::Open);
    }
}

#[component]
fn Write(editor: Editor) -> impl IntoView {
    let Editor { writing, text, .. } = editor;
    let trouble = move || match writing.get() {
        Writing::Changed(now) => {
            let text = "Somebody else changed this run while you wrote. Put their notes above yours, then save again.";
            view! {
                <Notice weight=Weight::Bad text>
                    <button type="button" class="btn" data-testid="notes-join" on:click=move |_| editor.join(&now)>"Put both together"</button>
                </Notice>
            }
            .into_any()
        }
        Writing::Failed(error) => {
            let text = format!("{}.", capitalised(&error));
            view! { <Notice weight=Weight::Bad text/> }.into_any()
        }
        _ => ().into_any(),
    };
    let sent = move || writing.with(|writing| *writing == Writing::Sent);
    view! {
        <div class="field">
            <label for=FIELD>"Your notes on this run"</label>
            <textarea
                class="input"
                dir="auto"
                rows="6"
                id=FIELD
                data-testid="notes-field"
                prop:value=move || text.get()
                on:input=move |event: Event| text.set(event_target_value(&event))
            ></textarea>
        </div>
        {trouble}
        <div class="btns">
            <button type="button" class="btn primary" data-testid="notes-save" disabled=sent on:click=move |_| editor.save()>
                {move || if sent() { "Saving…" } else { "Save notes" }}
            </button>
            <button type="button" class="btn" on:click=move |_| editor.close()>"Cancel"</button>
        </div>
    }
}
