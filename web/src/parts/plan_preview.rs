//! The plan as a grid with its prefill column, and what may be expected of each cell before it is measured.

use leptos::prelude::*;
use speedmatrix_shared::{
    id::{CellId, Phase},
    plan::RunPlan,
    target::Limits,
};

use super::{
    feasible::{judged, name, words},
    field::Form,
    plan_grid::{COLUMNS_DRAWN, PlanGrid, Pointed, ROWS_DRAWN},
    plan_prefill::PrefillColumn,
    probe::Probe,
};

/// The plan as a grid.
#[component]
pub fn Preview(
    /// The form.
    form: Form,
    /// What a look at the server brought.
    probe: RwSignal<Probe>,
) -> impl IntoView {
    let limits = Memo::new(move |_| probe.with(|probe| probe.facts().map(|facts| facts.limits)));
    let pointed: Pointed = RwSignal::new(None);
    let missing = move || {
        form.plan.with(|plan| match plan {
            Ok(plan) if plan.contexts().is_empty() => Some("This plan has prefill rows only."),
            Ok(_) => None,
            Err(_) => Some("The grid appears when the plan is complete."),
        })
    };
    let cut = move || form.plan.with(|plan| plan.as_ref().ok().and_then(not_drawn));
    view! {
        <div class="beside">
            <PrefillColumn form limits pointed/>
            <PlanGrid form limits pointed/>
        </div>
        {move || missing().map(|text| view! { <p class="muted">{text}</p> })}
        {cut}
        {move || form.plan.with(Result::is_ok).then(|| view! { <Reason form limits pointed/> {legend()} })}
    }
}

/// What is said about the cell that the pointer or the focus is on. The cell's own name says it to screen readers.
#[component]
fn Reason(form: Form, limits: Memo<Option<Limits>>, pointed: Pointed) -> impl IntoView {
    let said = move || {
        let cell = pointed.get()?;
        let limits = limits.get();
        let judged = form.plan.with(|plan| {
            let plan = plan.as_ref().ok().filter(|plan| has_place(plan, cell))?;
            Some(judged(plan, cell, limits))
        })?;
        Some((name(cell), judged.map_or_else(|| "left out".to_owned(), |feasible| words(&feasible))))
    };
    let said = move || match said() {
        Some((name, words)) => view! { <b>{name}</b>": "{words} }.into_any(),
        None => "Point at a cell, or move to it with the arrow keys, to read what may be expected of it.".into_any(),
    };
    view! { <p class="reason" data-testid="cell-reason" aria-hidden="true">{said}</p> }
}

/// Whether a cell is drawn: the plan may have changed since somebody pointed at it.
fn has_place(plan: &RunPlan, cell: CellId) -> bool {
    let in_matrix = plan.contexts().contains(&cell.context);
    match cell.phase {
        Phase::Prefill => in_matrix || plan.prefill_contexts().contains(&cell.context),
        Phase::Decode => in_matrix && plan.concurrency().contains(&cell.concurrency),
    }
}

fn legend() -> impl IntoView {
    view! {
        <p class="legend">
            <span class="key">"✓ fits"</span>
            <span class="key">"≋ some requests will queue"</span>
            <span class="key">"✕ can't run: will be skipped"</span>
            <span class="key">"? unknown"</span>
            <span class="key">"– left out: click, drag, or press a head to change"</span>
        </p>
    }
}

fn not_drawn(plan: &RunPlan) -> Option<impl IntoView + use<>> {
    let (rows, columns) = (plan.contexts().len(), plan.concurrency().len());
    let cut = rows > ROWS_DRAWN || columns > COLUMNS_DRAWN;
    let words = format!("Not all is drawn: the plan has {rows} contexts and {columns} concurrency levels.");
    cut.then(|| view! { <p class="hint pad">{words}</p> })
}
