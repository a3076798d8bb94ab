//! The plan as a grid, with what is known about each cell before it is measured, and its sum beside the form.

use leptos::prelude::*;
use speedmatrix_shared::{
    format,
    id::{CellId, Phase},
    plan::{FieldError, RunPlan, command::command, eta::eta},
    target::Limits,
};

use super::{
    copy::CopyButton,
    field::{Form, capitalised, input_id},
    icon::{Icon, icon},
    plan_grid::{COLUMNS_DRAWN, PlanGrid, ROWS_DRAWN},
    probe::Probe,
};
use crate::{browser, chart::line::roughly};

/// What is known about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It can be measured.
    Fits,
    /// Prompt and answer are longer than the model's context.
    TooLong,
    /// The KV cache can't hold one such request.
    NoRoom,
    /// More requests than the server decodes at once.
    Queues,
    /// The server was not looked at, or does not tell.
    Unknown,
}

impl Verdict {
    /// What is known about a cell of `plan` on a server with these limits.
    pub fn of(plan: &RunPlan, id: CellId, limits: Limits) -> Self {
        if plan.fits_model_length(id, limits) == Some(false) {
            return Self::TooLong;
        }
        let Some(kv_tokens) = limits.kv_tokens else {
            return if limits.max_model_len.is_some() { Self::Fits } else { Self::Unknown };
        };
        if id.context.tokens() > kv_tokens {
            return Self::NoRoom;
        }
        let over_sequences = limits.max_sequences.is_some_and(|most| id.concurrency.get() > most);
        if over_sequences { Self::Queues } else { Self::Fits }
    }

    /// Its class in the grid.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::TooLong | Self::NoRoom => "none",
            Self::Queues | Self::Unknown => "unknown",
        }
    }

    /// Its mark in the grid.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Fits => "✓",
            Self::TooLong | Self::NoRoom => "✕",
            Self::Queues => "≋",
            Self::Unknown => "?",
        }
    }

    /// Plain words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::TooLong => "prompt and answer are longer than the model's context: it will be skipped",
            Self::NoRoom => "the KV cache can't hold even one such request: it will be skipped",
            Self::Queues => "more requests than the server decodes at once: some will queue",
            Self::Unknown => "not known before a look at the server",
        }
    }
}

/// The plan as a grid.
#[component]
pub fn Preview(
    /// The form.
    form: Form,
    /// What a look at the server brought.
    probe: RwSignal<Probe>,
) -> impl IntoView {
    let limits = Memo::new(move |_| probe.with(|probe| probe.facts().map(|facts| facts.limits).unwrap_or_default()));
    let missing = move || {
        form.plan.with(|plan| match plan {
            Ok(plan) if plan.contexts().is_empty() => Some("This plan has prefill rows only."),
            Ok(_) => None,
            Err(_) => Some("The grid appears when the plan is complete."),
        })
    };
    let cut = move || form.plan.with(|plan| plan.as_ref().ok().and_then(not_drawn));
    view! {
        <PlanGrid form limits/>
        {move || missing().map(|text| view! { <p class="muted">{text}</p> })}
        {cut}
        {move || missing().is_none().then(legend)}
    }
}

fn legend() -> impl IntoView {
    view! {
        <p class="legend">
            <span class="key">"✓ fits"</span>
            <span class="key">"≋ some requests will queue"</span>
            <span class="key">"✕ will be skipped"</span>
            <span class="key">"? not known before a look at the server"</span>
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

/// The sum of the plan, its problems, and the way to start it.
#[component]
pub fn Summary(
    /// The form.
    form: Form,
    /// Start button and what goes with it.
    children: Children,
) -> impl IntoView {
    let sums = move || form.plan.with(|plan| sums(plan.as_ref().ok()));
    let row = |(label, text): (&'static str, String)| view! { <div><dt>{label}</dt><dd>{text}</dd></div> };
    let command = Signal::derive(move || form.plan.with(|plan| plan.as_ref().ok().map(command)));
    view! {
        <aside class="panel summary" aria-labelledby="summary-title" data-testid="summary">
            <div class="inner">
                <h2 id="summary-title">"Plan"</h2>
                <dl>{move || sums().into_iter().map(row).collect_view()}</dl>
                <Problems form/>
                {children()}
                <CopyButton label="Copy as command" text=command testid="copy-command"/>
            </div>
        </aside>
    }
}

fn sums(plan: Option<&RunPlan>) -> Vec<(&'static str, String)> {
    let missing = || format::MISSING.to_owned();
    let cells = plan.map(RunPlan::cells);
    let count = |phase| cells.as_ref().map(|cells| cells.iter().filter(|cell| cell.phase == phase).count() as u64);
    let time = plan.map_or_else(missing, |plan| {
        let eta = eta(plan);
        format!("{} to {}", roughly(eta.low_s), roughly(eta.high_s))
    });
    vec![
        ("Decode cells", format::count(count(Phase::Decode))),
        ("Prefill rows", format::count(count(Phase::Prefill))),
        (
            "Time per cell",
            plan.map_or_else(missing, |plan| format::duration_words(Some(plan.duration().as_secs_f64()))),
        ),
        ("Takes about", time),
    ]
}

/// What is wrong, each a way to its field.
#[component]
fn Problems(form: Form) -> impl IntoView {
    let problem = |error: FieldError| {
        let go = move |_| browser::focus(&input_id(error.field));
        view! { <li><button type="button" on:click=go>{capitalised(&error.message)}</button></li> }
    };
    move || {
        let problems = form.shown_problems();
        (!problems.is_empty()).then(|| {
            view! {
                <div role="alert" data-testid="problems">
                    <h3>{icon(Icon::Warning)}" To put right"</h3>
                    <ul class="problems">{problems.into_iter().map(problem).collect_view()}</ul>
                </div>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::PlanDraft;

    use super::*;

    #[test]
    fn cells_are_judged_by_what_is_known() {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "8K,64K,128K".into(),
            concurrency: "1,8".into(),
            ..PlanDraft::default()
        };
        let plan = RunPlan::try_from(draft).unwrap();
        let check = |cell: &str, limits, verdict| {
            assert_eq!(Verdict::of(&plan, cell.parse().unwrap(), limits), verdict, "{cell}");
        };
        let limits = Limits { max_model_len: Some(131_072), max_sequences: Some(4), kv_tokens: Some(60_000) };
        check("decode-8K-1", limits, Verdict::Fits);
        check("decode-8K-8", limits, Verdict::Queues);
        check("decode-64K-1", limits, Verdict::NoRoom);
        check("decode-128K-1", limits, Verdict::TooLong);
        check("decode-8K-1", Limits::default(), Verdict::Unknown);
    }
}
