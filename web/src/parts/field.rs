//! A field of the set-up form: label, input, hint, and what is wrong with it.

use std::{collections::BTreeSet, time::Duration};

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::plan::{Field, FieldError, PlanDraft, RunPlan};

use super::icon::{Icon, icon};
use crate::query;

/// Longer than a press on a button takes.
const AFTER_A_PRESS: Duration = Duration::from_millis(250);

/// The set-up form: a plan as typed, and what is wrong with it.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// As typed.
    pub draft: RwSignal<PlanDraft>,
    /// The plan, or every error.
    pub plan: Memo<Result<RunPlan, Vec<FieldError>>>,
    /// Fields whose errors are shown: those a person has left, or all after a try to start.
    touched: RwSignal<BTreeSet<Field>>,
    /// What the agent found wrong; gone with the next change.
    refused: RwSignal<Vec<FieldError>>,
}

impl Form {
    /// A form that holds `draft`.
    pub fn of(draft: PlanDraft) -> Self {
        let draft = RwSignal::new(draft);
        let plan = Memo::new(move |_| RunPlan::try_from(draft.get()).map_err(|errors| errors.0));
        Self { draft, plan, touched: RwSignal::new(BTreeSet::new()), refused: RwSignal::new(Vec::new()) }
    }

    /// What a field holds.
    pub fn text(&self, field: Field) -> String {
        self.draft.with(|draft| {
            draft.fields().into_iter().find(|(one, _)| *one == field).map_or("", |(_, text)| text).to_owned()
        })
    }

    /// Writes a field.
    pub fn set(&self, field: Field, text: String) {
        self.refused.update(Vec::clear);
        self.draft.update(|draft| *draft.field_mut(field) = text);
    }

    /// Takes another plan, as from a preset; nothing is wrong with it until a person has looked.
    pub fn fill(&self, draft: PlanDraft) {
        self.refused.update(Vec::clear);
        self.touched.update(BTreeSet::clear);
        self.draft.set(draft);
    }

    /// From now on the field's errors are shown.
    pub fn touch(&self, field: Field) {
        self.touched.update(|touched| {
            touched.insert(field);
        });
    }

    /// The same when the reader leaves the field, a moment later: leaving it by a press on a button must not move the
    /// button away from under the pointer before the press is over.
    fn left(self, field: Field) {
        set_timeout(move || self.touch(field), AFTER_A_PRESS);
    }

    /// From now on all errors are shown; says which field is the first with one.
    pub fn touch_all(&self) -> Option<Field> {
        self.touched.set(PlanDraft::default().fields().into_iter().map(|(field, _)| field).collect());
        self.problems().first().map(|error| error.field)
    }

    /// Takes the agent's verdict; says which field is the first with an error.
    pub fn refuse(&self, errors: Vec<FieldError>) -> Option<Field> {
        self.refused.set(errors);
        self.touch_all()
    }

    /// Every error, whether shown at its field or not.
    pub fn problems(&self) -> Vec<FieldError> {
        let own = self.plan.with(|plan| plan.as_ref().err().cloned().unwrap_or_default());
        if own.is_empty() { self.refused.get() } else { own }
    }

    /// The errors to show at a field.
    fn shown(&self, field: Field) -> Vec<String> {
        if !self.touched.with(|touched| touched.contains(&field)) {
            return Vec::new();
        }
        self.problems().into_iter().filter(|error| error.field == field).map(|error| error.message).collect()
    }

    /// All errors that are shown somewhere.
    pub fn shown_problems(&self) -> Vec<FieldError> {
        let touched = self.touched.get();
        self.problems().into_iter().filter(|error| touched.contains(&error.field)).collect()
    }
}

/// Id of a field's input.
pub fn input_id(field: Field) -> String {
    format!("field-{}", query::field_key(field))
}

/// Id of a field's hint and errors.
pub fn note_id(field: Field) -> String {
    format!("note-{}", query::field_key(field))
}

/// A field with one line of text.
#[component]
pub fn TextField(
    /// The form.
    form: Form,
    /// Which field.
    field: Field,
    /// Its words.
    label: &'static str,
    /// What stands in it while it is empty: the default.
    #[prop(default = "")]
    placeholder: &'static str,
    /// One sentence on it.
    #[prop(default = "")]
    hint: &'static str,
    /// Id of a list of suggestions.
    #[prop(optional)]
    list: Option<&'static str>,
    /// A button beside the input.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let errors = Memo::new(move |_| form.shown(field));
    let class = if children.is_some() { "with-button" } else { "" };
    view! {
        <div class="field">
            <label for=input_id(field)>{label}</label>
            <div class=class>
                <input
                    class="input"
                    type="text"
                    id=input_id(field)
                    name=query::field_key(field)
                    data-testid=format!("field-{}", query::field_key(field))
                    placeholder=placeholder
                    list=list
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    prop:value=move || form.text(field)
                    on:input=move |event: Event| form.set(field, event_target_value(&event))
                    on:change=move |_| form.left(field)
                    aria-invalid=move || (!errors.with(Vec::is_empty)).then_some("true")
                    aria-describedby=note_id(field)
                />
                {children.map(|children| children())}
            </div>
            <FieldNote field hint errors/>
        </div>
    }
}

/// A field's hint and errors, for its `aria-describedby`.
#[component]
pub fn FieldNote(
    /// Which field.
    field: Field,
    /// One sentence on it.
    hint: &'static str,
    /// What is wrong.
    errors: Memo<Vec<String>>,
) -> impl IntoView {
    let error = move |text: String| {
        view! {
            <p class="error" data-error-for=query::field_key(field)>{icon(Icon::Warning)}<span>{capitalised(&text)}</span></p>
        }
    };
    view! {
        <div id=note_id(field)>
            {move || errors.get().into_iter().map(error).collect_view()}
            {(!hint.is_empty()).then(|| view! { <p class="hint">{hint}</p> })}
        </div>
    }
}

/// A message of the shared checks, which begin in lower case, as a sentence of its own.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// One of a few: a radio button with its sentence.
#[component]
pub fn Choice(
    /// Name of its group.
    group: &'static str,
    /// What it stands for.
    value: &'static str,
    /// Its word.
    word: &'static str,
    /// Its sentence.
    says: &'static str,
    /// Whether it is the chosen one.
    #[prop(into)]
    chosen: Signal<bool>,
    /// What choosing it does.
    #[prop(into)]
    choose: Callback<()>,
) -> impl IntoView {
    view! {
        <label class="choice">
            <input
                type="radio"
                name=group
                value=value
                data-testid=format!("{group}-{value}")
                prop:checked=move || chosen.get()
                on:change=move |_| choose.run(())
            />
            <span><b>{word}</b>": "{says}</span>
        </label>
    }
}

impl Form {
    /// The errors of a field, as its note shows them.
    pub fn errors_of(self, field: Field) -> Memo<Vec<String>> {
        Memo::new(move |_| self.shown(field))
    }
}
