//! A field of the set-up form that is one of a few texts.

use leptos::prelude::*;
use speedmatrix_shared::plan::Field;

use super::field::{Choice, FieldNote, Form, input_id};

/// What a field can be: its text, its word, its sentence; the first is what an empty field means.
pub type Options = &'static [(&'static str, &'static str, &'static str)];

/// One of a few texts for a field.
#[component]
pub fn Pick(
    /// The form.
    form: Form,
    /// Which field.
    field: Field,
    /// Name that its choices share.
    group: &'static str,
    /// Its words.
    legend: &'static str,
    /// What it can be.
    options: Options,
) -> impl IntoView {
    let first = options.first().map_or("", |option| option.0);
    let choice = move |&(value, word, says): &(&'static str, &'static str, &'static str)| {
        let chosen = Signal::derive(move || {
            let text = form.text(field);
            text.trim() == value || (text.trim().is_empty() && value == first)
        });
        let choose = Callback::new(move |()| form.set(field, value.to_owned()));
        view! { <Choice group value word says chosen choose/> }
    };
    view! {
        <fieldset class="field" id=input_id(field) tabindex="-1">
            <legend>{legend}</legend>
            {options.iter().map(choice).collect_view()}
            <FieldNote field hint="" errors=form.errors_of(field)/>
        </fieldset>
    }
}
