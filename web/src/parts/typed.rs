//! Facts about a server that nobody here can see, typed by hand: on the set-up page, and later on the run's own.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{
    id::RunId,
    label::{LabelPatch, Labels},
    typed::{TypedFact, TypedFacts},
};

use super::{
    field::capitalised,
    icon::{Icon, icon},
    notes::RunLabels,
};
use crate::labels::{self, SaveError};

/// A field for each fact.
#[component]
pub fn TypedFields(
    /// What is typed.
    typed: RwSignal<TypedFacts>,
) -> impl IntoView {
    let field = move |fact: TypedFact| {
        let id = format!("typed-{}", fact.key());
        let value = move || typed.with(|typed| typed.get(&fact).cloned().unwrap_or_default());
        let write = move |event: Event| {
            let text = event_target_value(&event);
            typed.update(|typed| {
                if text.is_empty() {
                    typed.remove(&fact)
                } else {
                    typed.insert(fact, text)
                };
            });
        };
        view! {
            <div class="field">
                <label for=id.clone()>{fact.label()}</label>
                <input
                    class="input"
                    type="text"
                    id=id.clone()
                    data-testid=id
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    placeholder="unknown"
                    prop:value=value
                    on:input=write
                />
            </div>
        }
    };
    let (lines, rest): (Vec<TypedFact>, Vec<TypedFact>) =
        TypedFact::ALL.into_iter().partition(|fact| *fact == TypedFact::LaunchCommand);
    view! {
        <div class="typed-fields">{rest.into_iter().map(field).collect_view()}</div>
        {lines.into_iter().map(field).collect_view()}
    }
}

/// The fields on the set-up page, behind a line that opens them.
#[component]
pub fn TypedFold(
    /// What is typed.
    typed: RwSignal<TypedFacts>,
) -> impl IntoView {
    view! {
        <details class="more" data-testid="typed-facts">
            <summary>"Tell what this page can't see"</summary>
            <p class="hint">
                "For a server on another host. Each fills what is not known otherwise, and is marked as typed by hand wherever it is shown."
            </p>
            <TypedFields typed/>
        </details>
    }
}

/// How saving goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Saving {
    NotYet,
    Sent,
    Done,
    Failed(String),
}

/// The fields on the page of a run. The sample run takes none.
#[component]
pub fn TypedOfRun() -> impl IntoView {
    let of_page: Option<RunLabels> = use_context();
    of_page.filter(|labels| labels.id.with_value(|id| id.as_str() != RunId::REFERENCE)).map(|of_page| {
        let typed = RwSignal::new(TypedFacts::new());
        // What somebody else saved comes in; what is being typed here stays only until then.
        Effect::new(move |_| {
            let stored = of_page.labels.with(|labels| labels.as_ref().map(|labels| labels.typed.clone()));
            if let Some(stored) = stored {
                typed.set(stored);
            }
        });
        let saving = RwSignal::new(Saving::NotYet);
        let said = move || match saving.get() {
            Saving::NotYet => ().into_any(),
            Saving::Sent => "Saving…".into_any(),
            Saving::Done => "Saved".into_any(),
            Saving::Failed(error) => {
                view! { <span class="field"><span class="error">{icon(Icon::Warning)}<span>{error}</span></span></span> }.into_any()
            }
        };
        view! {
            <details class="panel more typed-of-run" data-testid="typed-facts">
                <summary>"Type what could not be seen"</summary>
                <TypedFields typed/>
                <div class="btns">
                    <button
                        type="button"
                        class="btn"
                        data-testid="typed-save"
                        disabled=move || saving.with(|saving| *saving == Saving::Sent)
                        on:click=move |_| save(of_page, typed, saving)
                    >
                        "Save"
                    </button>
                    <span role="status" data-testid="typed-said">{said}</span>
                </div>
            </details>
        }
    })
}

fn save(of_page: RunLabels, typed: RwSignal<TypedFacts>, saving: RwSignal<Saving>) {
    let revision = of_page.labels.with_untracked(|labels| labels.as_ref().map_or(0, |labels| labels.revision));
    let patch = LabelPatch { revision, typed: Some(typed.get_untracked()), ..LabelPatch::default() };
    if let Err(error) = Labels::default().changed(&patch) {
        saving.set(Saving::Failed(capitalised(&error.to_string())));
        return;
    }
    saving.set(Saving::Sent);
    let id = of_page.id.get_value();
    leptos::task::spawn_local(async move {
        let (saved, now) = match labels::save(&id, &patch).await {
            Ok(now) => (Saving::Done, Some(now)),
            Err(SaveError::Changed(now)) => {
                let text = "Somebody else changed this run meanwhile: look at what is there now, then type again.";
                (Saving::Failed(text.to_owned()), Some(*now))
            }
            Err(SaveError::Other(error)) => (Saving::Failed(capitalised(&error)), None),
        };
        // The page may have been left meanwhile; then nobody reads this.
        drop(saving.try_set(saved));
        if let Some(now) = now {
            drop(of_page.labels.try_set(Some(now)));
        }
    });
}
