//! The cards of a report: hardware, engine, run, launch command; and what to know before reading the numbers.

use leptos::{either::Either, prelude::*};
use speedmatrix_shared::{
    facts::{self, Fact},
    finding::{Severity, run_findings},
    format,
    state::RunState,
};

use super::{
    copy::CopyButton,
    icon::{Icon, icon},
    notice::{Notice, Weight},
};
use crate::live::LiveRun;

/// What secrets are replaced with in launch commands.
const REDACTED: &str = "<redacted>";

/// Findings about the whole run.
#[component]
pub fn Findings(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let findings = Memo::new(move |_| run.state.with(run_findings));
    move || {
        let findings = findings.get();
        let one = |finding: speedmatrix_shared::finding::Finding| {
            let weight = if finding.severity == Severity::Warning { Weight::Warning } else { Weight::Info };
            view! { <div data-testid="finding" data-code=finding.code><Notice weight text=finding.text/></div> }
        };
        (!findings.is_empty()).then(|| {
            view! {
                <h2 class="sr">"What to know before you read the numbers"</h2>
                <div class="finds">{findings.into_iter().map(one).collect_view()}</div>
            }
        })
    }
}

/// Hardware, engine and run side by side, then the launch command.
#[component]
pub fn Cards(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let command = Memo::new(move |_| run.state.with(|state| facts::launch_command(state).map(ToOwned::to_owned)));
    view! {
        <div class="cards">
            <Card run title="Hardware" told=facts::hardware_facts/>
            <Card run title="Engine" told=facts::engine_facts/>
            <Card run title="Run" told=facts::run_facts/>
        </div>
        {move || command.get().map(|command| view! { <LaunchCommand command/> })}
    }
}

#[component]
fn Card(run: LiveRun, title: &'static str, told: fn(&RunState) -> Vec<Fact>) -> impl IntoView {
    let told = Memo::new(move |_| run.state.with(told));
    view! {
        <div class="panel card" data-testid=format!("facts-{}", title.to_lowercase())>
            <h3>{title}</h3>
            <FactList told/>
        </div>
    }
}

/// Labels and texts; links where a text is an address.
#[component]
pub fn FactList(
    /// The facts.
    #[prop(into)]
    told: Signal<Vec<Fact>>,
) -> impl IntoView {
    let row = |(label, text): Fact| {
        let known = text != format::MISSING;
        view! {
            <div>
                <dt>{label}</dt>
                <dd class=(!known).then_some("muted")>{linked(text)}</dd>
            </div>
        }
    };
    view! { <dl class="facts-list">{move || told.get().into_iter().map(row).collect_view()}</dl> }
}

/// An `https` address becomes a link; anything else stays text.
fn linked(text: String) -> impl IntoView {
    match text.strip_prefix("https://") {
        Some(short) => Either::Left(view! { <a href=text.clone() rel="external noreferrer">{short.to_owned()}</a> }),
        None => Either::Right(text),
    }
}

#[component]
fn LaunchCommand(command: String) -> impl IntoView {
    let secrets = command.matches(REDACTED).count();
    let noun = if secrets == 1 { "secret" } else { "secrets" };
    let parts = words(&command).into_iter().map(word).collect_view();
    view! {
        <div class="panel command" data-testid="launch-command">
            <header>
                <h3>"Launch command"</h3>
                {(secrets > 0)
                    .then(|| view! { <span class="badge">{icon(Icon::Lock)}{format!("{secrets} {noun} removed")}</span> })}
                <CopyButton label="Copy" text=Some(command)/>
            </header>
            <pre>{parts}</pre>
        </div>
    }
}

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// A flag's name.
    Flag(String),
    /// A removed secret.
    Secret,
    /// Anything else.
    Plain(String),
}

/// A command line cut at its spaces. It is only coloured, never run, so quotes are left alone.
fn words(command: &str) -> Vec<Word> {
    let word = |text: &str| {
        if text == REDACTED {
            Word::Secret
        } else if text.starts_with("--") {
            Word::Flag(text.to_owned())
        } else {
            Word::Plain(text.to_owned())
        }
    };
    command.split(' ').map(word).collect()
}

fn word(word: Word) -> AnyView {
    match word {
        Word::Flag(text) => view! { <b>{text}</b>" " }.into_any(),
        Word::Secret => view! { <mark>{REDACTED}</mark>" " }.into_any(),
        Word::Plain(text) => format!("{text} ").into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_into_flags_and_secrets() {
        assert_eq!(
            words("serve --api-key <redacted>"),
            [Word::Plain("serve".into()), Word::Flag("--api-key".into()), Word::Secret]
        );
    }
}
