//! The best use of some minutes: picks the cells of the matrix that tell most in that time.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{
    format,
    id::CellId,
    plan::{Field, RunPlan, budget},
    target::Limits,
};

use super::{
    icon::{Icon, icon},
    probe::Probe,
};
use crate::{chart::line::roughly, parts::field::Form};

/// Id of the field.
const FIELD: &str = "field-minutes";
/// Longest time, minutes: a week.
const MOST_MINUTES: f64 = 10_080.0;
/// Cells that are named as left out.
const NAMED: usize = 3;

/// The field and its button.
#[component]
pub fn Budget(
    /// The form.
    form: Form,
    /// What a look at the server brought.
    probe: RwSignal<Probe>,
) -> impl IntoView {
    let minutes = RwSignal::new("20".to_owned());
    let said = RwSignal::new(None::<Result<String, String>>);
    let pick = move |_| {
        let limits = probe.with_untracked(|probe| probe.facts().map(|facts| facts.limits).unwrap_or_default());
        let picked = form.plan.with_untracked(|plan| {
            let plan = plan.as_ref().map_err(|_at_their_fields| "Complete the plan first.".to_owned())?;
            picked(plan, limits, &minutes.get_untracked())
        });
        said.set(Some(picked.map(|(leave_out, words)| {
            form.set(Field::LeaveOut, leave_out);
            words
        })));
    };
    let error = move || said.with(|said| said.as_ref().and_then(|said| said.as_ref().err().cloned()));
    let words = move || said.with(|said| said.as_ref().and_then(|said| said.as_ref().ok().cloned()));
    view! {
        <div class="field" data-testid="budget">
            <label for=FIELD>"Best use of so many minutes"</label>
            <div class="budget">
                <input
                    class="input"
                    type="text"
                    inputmode="decimal"
                    id=FIELD
                    data-testid=FIELD
                    autocomplete="off"
                    prop:value=move || minutes.get()
                    on:input=move |event: Event| minutes.set(event_target_value(&event))
                    aria-invalid=move || error().is_some().then_some("true")
                    aria-describedby="note-minutes"
                />
                <button type="button" class="btn" data-testid="pick-cells" on:click=pick>
                    {icon(Icon::Check)}
                    "Pick cells"
                </button>
            </div>
            <div id="note-minutes" aria-live="polite">
                {move || error().map(|text| view! { <p class="error">{icon(Icon::Warning)}<span>{text}</span></p> })}
                {move || words().map(|text| view! { <p class="budget-said" data-testid="budget-said">{text}</p> })}
                <p class="hint">
                    "Picks anew from the whole matrix: the longest cells go first, the diagonal stays longer, the corners longest."
                </p>
            </div>
        </div>
    }
}

/// The field's text after picking, and what was done.
fn picked(plan: &RunPlan, limits: Limits, minutes: &str) -> Result<(String, String), String> {
    let number = minutes.trim().replace(',', ".").parse::<f64>().ok();
    let minutes = number.filter(|minutes| *minutes > 0.0 && *minutes <= MOST_MINUTES);
    let minutes =
        minutes.ok_or_else(|| format!("Write minutes as a number, at most {}.", format::whole(Some(MOST_MINUTES))))?;
    if plan.contexts().is_empty() {
        return Err("This plan has prefill rows only: there is no matrix to pick from.".to_owned());
    }
    let choice = budget::best_use(plan, limits, minutes * 60.0)
        .map_err(|short| format!("Not even one cell fits: the shortest takes about {}.", roughly(short.least_s)))?;
    Ok((choice.leave_out.to_string(), words(&choice)))
}

fn words(choice: &budget::Choice) -> String {
    let (kept, takes) = (choice.kept, roughly(choice.secs));
    let cells = |n: usize| if n == 1 { "1 cell".to_owned() } else { format!("{n} cells") };
    match choice.given_up.len() {
        0 => format!("The whole matrix fits: {}, about {takes}.", cells(kept)),
        gone => format!("{} in about {takes}. Left out: {}.", cells(kept), named(&choice.given_up, gone)),
    }
}

fn named(given_up: &[CellId], gone: usize) -> String {
    let name = |cell: &CellId| format!("{} × {}", cell.context, cell.concurrency);
    let names: Vec<String> = given_up.iter().take(NAMED).map(name).collect();
    match gone.saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::PlanDraft;

    use super::*;

    #[test]
    fn what_was_picked_is_said() {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "8K,128K".into(),
            concurrency: "1,2,4".into(),
            ..PlanDraft::default()
        };
        let plan = RunPlan::try_from(draft).unwrap();
        let said =
            |minutes: &str| picked(&plan, Limits::default(), minutes).map_or_else(|error| error, |(_, words)| words);
        assert!(said("600").starts_with("The whole matrix fits: 6 cells, about "), "{}", said("600"));
        assert!(said("3").contains("Left out: 8K × 2, 128K × 2"), "{}", said("3"));
        assert!(said("0,1").starts_with("Not even one cell fits"), "{}", said("0,1"));
        assert!(said("soon").contains("Write minutes as a number, at most 10,080"), "{}", said("soon"));
        assert!(said("NaN").contains("Write minutes"), "{}", said("NaN"));
    }
}
