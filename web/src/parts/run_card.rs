//! A run in the list.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::RunSummary,
    format,
    id::RunId,
    metric::{self, Metric},
    state::RunStatus,
};

use super::badge::{flagged_badge, origin_badge, status_badge};
use crate::chart::mini::Mini;

/// A run in the list. The whole card is its link.
pub fn run_card(run: &RunSummary) -> impl IntoView + use<> {
    let running = run.status == RunStatus::Running;
    let started = match run.started_unix_ms {
        0 => "date not known".to_owned(),
        unix_ms => format::wall_time(unix_ms),
    };
    let engine = if run.engine.is_empty() { "engine not known".to_owned() } else { run.engine.clone() };
    view! {
        <article class="run-card panel" data-testid="run-card" data-run=run.id.to_string()>
            <Mini rows=run.mini.clone()/>
            <div>
                <h2 class="name"><a href=address(&run.id)>{run.title.clone()}</a></h2>
                <p class="meta">
                    {status_badge(&run.status)}
                    {origin_badge(run.origin)}
                    {flagged_badge(run.flagged)}
                    <span>{engine}</span>
                    <span class="muted">{started}</span>
                </p>
            </div>
            <dl class="numbers">{headline(run)}</dl>
            {running.then(|| progress(run))}
        </article>
    }
}

/// The address of a run's page.
pub fn address(id: &RunId) -> String {
    format!("/runs/{id}")
}

fn headline(run: &RunSummary) -> impl IntoView + use<> {
    let numbers = [
        ("Highest total", "total_tok_s", run.headline.best_total_tok_s),
        ("Fastest prefill", "total_tok_s", run.headline.best_prefill_tok_s),
        ("Shortest TTFT", "ttft", run.headline.shortest_ttft_s),
    ];
    let number = |(label, key, value): (&'static str, &str, Option<f64>)| {
        let text = metric::by_key(key).map_or_else(|| format::MISSING.to_owned(), |metric| (metric.show)(value));
        let unit = metric::by_key(key).filter(|metric| shows_unit_apart(metric, value)).map(|metric| metric.unit);
        view! {
            <div>
                <dt>{label}</dt>
                <dd>{text}" "<small>{unit}</small></dd>
            </div>
        }
    };
    numbers.map(number).collect_view()
}

fn shows_unit_apart(metric: &Metric, value: Option<f64>) -> bool {
    value.is_some() && !(metric.show)(value).ends_with(metric.unit)
}

fn progress(run: &RunSummary) -> impl IntoView + use<> {
    let words = format!("{} of {} cells", run.cells_done, run.cells);
    let done = share(run.cells_done, run.cells);
    view! {
        <div class="running">
            <div
                class="progress"
                role="progressbar"
                aria-label="Cells done"
                aria-valuetext=words.clone()
                aria-valuenow=run.cells_done
                aria-valuemax=run.cells
            >
                <i style=("--done", done)></i>
            </div>
            <span>{words}</span>
        </div>
    }
}

/// A share as a length of a bar: `37.5%`.
pub fn share(part: usize, whole: usize) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}
