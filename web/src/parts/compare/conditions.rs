//! How the runs were made: what differs by how much it weighs, what is the same, and the launch command by argument.

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{Argument, ArgumentChange, RunCondition, Severity},
    format,
};

use super::Compared;

/// The section.
#[component]
pub fn ConditionsSection(
    /// The runs.
    compared: Compared,
) -> impl IntoView {
    let Compared { comparison, .. } = compared;
    let differing =
        Memo::new(move |_| comparison.with(|it| it.differences().into_iter().cloned().collect::<Vec<RunCondition>>()));
    let same = Memo::new(move |_| {
        comparison.with(|it| it.conditions.iter().filter(|it| it.severity.is_none()).cloned().collect::<Vec<_>>())
    });
    let command = Memo::new(move |_| comparison.with(|it| it.command.clone()));
    let differences = move || {
        let rows = differing.get();
        if rows.is_empty() {
            view! { <p class="pad muted">"All that both runs tell of how they were made is the same."</p> }.into_any()
        } else {
            view! { <ul class="conds" data-testid="differences">{rows.into_iter().map(differs).collect_view()}</ul> }
                .into_any()
        }
    };
    let alike = move || {
        let rows = same.get();
        (!rows.is_empty()).then(|| {
            let words = format!("Same in both: {}", format::count(Some(rows.len() as u64)));
            view! {
                <details class="how same">
                    <summary>{words}</summary>
                    <dl data-testid="same">{rows.into_iter().map(is_same).collect_view()}</dl>
                </details>
            }
        })
    };
    view! {
        <section id="conditions" aria-labelledby="conditions-title">
            <div class="section-head"><h2 id="conditions-title">"Conditions"</h2></div>
            <div class="panel">
                {differences}
                {alike}
                {move || launch(&command.get())}
            </div>
        </section>
    }
}

fn weight(severity: Severity) -> &'static str {
    match severity {
        Severity::Breaks => "badge bad",
        Severity::Matters => "badge warn",
        Severity::Noted => "badge",
    }
}

fn told(side: Option<String>) -> String {
    side.filter(|text| !text.is_empty()).unwrap_or_else(|| format::MISSING.to_owned())
}

fn differs(it: RunCondition) -> impl IntoView {
    let badge = it.severity.map(|severity| view! { <span class=weight(severity)>{severity.label()}</span> });
    view! {
        <li>
            <p class="what"><b>{it.label}</b><span class="muted">{it.group.label()}</span>{badge}</p>
            {both(told(it.a), told(it.b))}
        </li>
    }
}

fn both(a: String, b: String) -> impl IntoView {
    view! {
        <p class="of"><b class="letter">"A"</b><span class="sr">": "</span><bdi>{a}</bdi></p>
        <p class="of"><b class="letter">"B"</b><span class="sr">": "</span><bdi>{b}</bdi></p>
    }
}

fn is_same(it: RunCondition) -> impl IntoView {
    view! { <dt>{it.label}</dt><dd><bdi>{told(it.a)}</bdi></dd> }
}

/// The launch command by argument; nothing unless both runs tell theirs.
fn launch(arguments: &[Argument]) -> impl IntoView + use<> {
    let (same, differing): (Vec<Argument>, Vec<Argument>) =
        arguments.iter().cloned().partition(|it| it.change == ArgumentChange::Same);
    let value = |it: Option<String>| match it {
        None => "not given".to_owned(),
        Some(value) if value.is_empty() => "given".to_owned(),
        Some(value) => value,
    };
    let row = move |it: Argument| {
        view! {
            <li>
                <p class="what"><code>{it.name}</code><span class="muted">{it.change.label()}</span></p>
                {both(value(it.a), value(it.b))}
            </li>
        }
    };
    let kept = same.iter().map(|it| it.name.clone()).collect::<Vec<_>>().join(" ");
    let none =
        differing.is_empty().then(|| view! { <p class="pad muted">"Both commands have the same arguments."</p> });
    (!arguments.is_empty()).then(|| {
        view! {
            <h3 class="launch">"Launch command, by argument"</h3>
            {none}
            <ul class="conds mono" data-testid="command">{differing.into_iter().map(row).collect_view()}</ul>
            {(!kept.is_empty()).then(|| view! {
                <details class="how same">
                    <summary>{format!("Same in both: {}", format::count(Some(same.len() as u64)))}</summary>
                    <p class="mono kept">{kept}</p>
                </details>
            })}
        }
    })
}
