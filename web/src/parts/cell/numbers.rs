//! Every number of a cell with its interval, what it rests on, and how it comes about.

use leptos::prelude::*;
use speedmatrix_shared::{
    event::Origin,
    format,
    id::CellId,
    metric::{METRICS, Metric},
    state::{Cell, RunState},
    stats::cell::CellResult,
};

use crate::{chart::cell::with_unit, parts::decode::metric_help};

/// The numbers that stand first, large.
const FIRST: [&str; 4] = ["total_tok_s", "per_request_tok_s", "ttft", "time_between_tokens"];

/// A number as it is shown.
#[derive(Debug, Clone, Copy)]
struct Number {
    metric: &'static Metric,
}

impl Number {
    fn name(self) -> String {
        let Metric { label, standard, .. } = *self.metric;
        if standard.is_empty() { label.to_owned() } else { format!("{label} ({standard})") }
    }

    /// `223.5 ± 4.1, between repeats`.
    fn interval(self, result: &CellResult) -> Option<String> {
        let interval = self.metric.interval(result)?;
        let whole = format::interval((self.metric.get)(result), Some(interval.half_width));
        Some(format!("{whole}, {}", interval.kind.label()))
    }
}

fn numbers(id: CellId) -> impl Iterator<Item = Number> {
    METRICS.iter().filter(move |metric| metric.applies_to(id.phase)).map(|metric| Number { metric })
}

/// What of the run the numbers need.
type Told = (CellResult, Option<Origin>);

fn told(state: &RunState, id: CellId) -> Option<Told> {
    Some((state.cell(id).and_then(Cell::result)?.clone(), state.origin))
}

/// The four numbers that people look for first.
#[component]
pub fn FirstNumbers(
    /// The run.
    run: RwSignal<RunState>,
    /// Which cell.
    id: CellId,
) -> impl IntoView {
    let told = Memo::new(move |_| run.with(|state| told(state, id)));
    move || {
        told.get().map(|(result, origin)| {
            let first = numbers(id).filter(|number| FIRST.contains(&number.metric.key));
            let tile = |number: Number| {
                let half = number.metric.interval(&result).map(|interval| interval.half_width);
                let value = match half {
                    Some(half) => format::interval((number.metric.get)(&result), Some(half)),
                    None => number.metric.text(&result),
                };
                let unit = number.metric.unit;
                let unit = if value == format::MISSING || value.ends_with(unit) { "" } else { unit };
                let n = number.metric.n(&result, origin);
                let n = n.map(|n| format!("n {}", format::count(Some(n)))).unwrap_or_default();
                view! {
                    <div>
                        <dt>{number.metric.column}</dt>
                        <dd class="value">{value}" "<small>{unit}</small></dd>
                        <dd class="at">{n}</dd>
                    </div>
                }
            };
            view! { <dl class="kpis" data-testid="first-numbers">{first.map(tile).collect_view()}</dl> }
        })
    }
}

/// The table of all numbers.
#[component]
pub fn AllNumbers(
    /// The run.
    run: RwSignal<RunState>,
    /// Which cell.
    id: CellId,
) -> impl IntoView {
    let told = Memo::new(move |_| run.with(|state| told(state, id)));
    move || {
        told.get().map(|(result, origin)| {
            let row = |number: Number| {
                let n = number.metric.n(&result, origin);
                view! {
                    <tr data-metric=number.metric.key>
                        <th scope="row" class="text">
                            <details class="help">
                                <summary>{number.name()}</summary>
                                {metric_help(number.metric)}
                            </details>
                        </th>
                        <td>
                            <b>{with_unit(number.metric, (number.metric.get)(&result))}</b>
                            {number.interval(&result).map(|interval| view! { <small>{interval}</small> })}
                        </td>
                        <td>{format::count(n)}</td>
                    </tr>
                }
            };
            view! {
                <section class="part" aria-labelledby="numbers-title" data-testid="numbers">
                    <header>
                        <h2 id="numbers-title">"All numbers"</h2>
                        <p>"— means not measured, or not told. n is what a number rests on. Open a name to read how it comes about."</p>
                    </header>
                    <div class="table-scroll" tabindex="0" role="region" aria-label="Table of all numbers of the cell">
                        <table class="table numbers">
                            <thead>
                                <tr>
                                    <th scope="col" class="text">"Number"</th>
                                    <th scope="col">"Value, 95 % interval"</th>
                                    <th scope="col">"n"</th>
                                </tr>
                            </thead>
                            <tbody>{numbers(id).map(row).collect_view()}</tbody>
                        </table>
                    </div>
                </section>
            }
        })
    }
}
