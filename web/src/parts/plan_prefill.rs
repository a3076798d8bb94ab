//! The prefill column beside the grid: for which contexts the reading of prompts is measured. A press takes a row in or
//! leaves it out, which makes the rows cold requests of their own.

use std::collections::BTreeSet;

use leptos::prelude::*;
use speedmatrix_shared::{
    id::{CellId, Phase},
    plan::{Field, RunPlan},
    target::Limits,
    units::{Concurrency, Context},
};

use super::{
    feasible::{class, judged, mark, words},
    field::Form,
    plan_grid::{Pointed, ROWS_DRAWN},
};

/// The column of the form's plan.
#[component]
pub fn PrefillColumn(
    /// The form.
    form: Form,
    /// What is known of the server, once it was looked at.
    limits: Memo<Option<Limits>>,
    /// The cell whose reason is shown.
    pointed: Pointed,
) -> impl IntoView {
    let rows = Memo::new(move |_| form.plan.with(|plan| plan.as_ref().map(rows).unwrap_or_default()));
    let row = move |context: Context| {
        view! {
            <tr>
                <th scope="row">{context.to_string()}</th>
                <PrefillCell form limits pointed context/>
            </tr>
        }
    };
    move || {
        let rows = rows.get();
        (!rows.is_empty()).then(|| {
            view! {
                <div class="matrix-scroll" data-testid="prefill-column">
                    <table class="matrix small single paint" aria-label="Prefill rows to measure">
                        <colgroup><col class="heads"/></colgroup>
                        <thead>
                            <tr><th scope="col" class="axis">"Context"</th><th scope="col">"Prefill"</th></tr>
                        </thead>
                        <tbody>{rows.into_iter().map(row).collect_view()}</tbody>
                    </table>
                </div>
            }
        })
    }
}

#[component]
fn PrefillCell(form: Form, limits: Memo<Option<Limits>>, pointed: Pointed, context: Context) -> impl IntoView {
    let cell = CellId { phase: Phase::Prefill, context, concurrency: Concurrency::ONE };
    // `None`: it is not measured.
    let verdict = Memo::new(move |_| {
        let limits = limits.get();
        form.plan.with(|plan| judged(plan.as_ref().ok()?, cell, limits))
    });
    let says = move || verdict.with(|verdict| verdict.as_ref().map_or_else(|| "left out".to_owned(), words));
    let press = move |_| {
        let text = form.plan.with_untracked(|plan| plan.as_ref().ok().map(|plan| toggled(plan, context)));
        if let Some(text) = text {
            form.set(Field::PrefillContexts, text);
        }
    };
    let point = move || pointed.set(Some(cell));
    view! {
        <td class=move || verdict.with(|verdict| verdict.as_ref().map_or("out", class))>
            <button
                type="button"
                data-cell=cell.to_string()
                aria-pressed=move || verdict.with(Option::is_some).to_string()
                aria-label=move || format!("Prefill of {context}: {}", says())
                title=says
                on:click=press
                on:focus=move |_| point()
                on:pointerenter=move |_| point()
            >
                <span class="v" aria-hidden="true">{move || verdict.with(|verdict| verdict.as_ref().map_or("–", mark))}</span>
            </button>
        </td>
    }
}

/// The contexts of the column: those of the matrix, and those of prefill rows of their own.
fn rows(plan: &RunPlan) -> Vec<Context> {
    let all: BTreeSet<Context> = plan.contexts().iter().copied().chain(plan.prefill_contexts()).collect();
    all.into_iter().take(ROWS_DRAWN).collect()
}

/// The field's text after a press on a row.
fn toggled(plan: &RunPlan, context: Context) -> String {
    let mut contexts: BTreeSet<Context> = plan.prefill_contexts().into_iter().collect();
    if !contexts.remove(&context) {
        contexts.insert(context);
    }
    if contexts.is_empty() {
        // A plan of prefill rows only keeps its last one.
        return if plan.contexts().is_empty() { context.to_string() } else { "none".to_owned() };
    }
    contexts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::PlanDraft;

    use super::*;

    #[test]
    fn a_press_takes_a_row_in_or_leaves_it_out() {
        let check = |contexts: &str, prefill: &str, press: &str, wanted: &str| {
            let concurrency = if contexts.is_empty() { "" } else { "1" };
            let draft = PlanDraft {
                target: "host".into(),
                contexts: contexts.into(),
                concurrency: concurrency.into(),
                prefill_contexts: prefill.into(),
                ..PlanDraft::default()
            };
            let plan = RunPlan::try_from(draft).unwrap();
            assert_eq!(toggled(&plan, press.parse().unwrap()), wanted);
        };
        check("8K,16K", "", "8K", "16K");
        check("8K,16K", "16K", "8K", "8K,16K");
        check("8K,16K", "16K", "16K", "none");
        check("8K,16K", "none", "16K", "16K");
        check("", "8K", "8K", "8K");
        check("8K", "32K", "8K", "8K,32K");
    }
}
