//! The cards of a report: hardware, engine, run, launch command; and what to know before reading the numbers.

use leptos::{either::Either, prelude::*};
use speedmatrix_shared::{
    facts::{self, Fact},
    finding::{Finding, Severity, run::run_findings},
    format,
    state::RunState,
    typed::{self, TypedFact, TypedFacts},
};

use super::{
    copy::CopyButton,
    icon::{Icon, icon},
    notes::RunLabels,
    notice::{Notice, Weight},
    operator::ForOperator,
    typed::TypedOfRun,
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
    let findings = run.report(run_findings);
    move || {
        let findings = findings.get();
        let one = |finding: Finding| {
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
    let typed = typed_of_page();
    let command = run.report(move |state| {
        let told = facts::launch_command(state).map(ToOwned::to_owned);
        let by_hand = typed.with(|typed| typed.get(&TypedFact::LaunchCommand).cloned());
        told.map(|line| (line, Known::Seen)).or(by_hand.map(|line| (line, Known::ByHand)))
    });
    view! {
        <h2 class="sr">"Conditions"</h2>
        <div class="cards">
            <Card run title="Hardware" told=facts::hardware_facts/>
            <Card run title="Engine" told=facts::engine_facts/>
            <Card run title="Run" told=facts::run_facts/>
        </div>
        {move || command.get().map(|(command, known)| view! { <LaunchCommand command known/> })}
        <ForOperator><TypedOfRun/></ForOperator>
    }
}

#[component]
fn Card(run: LiveRun, title: &'static str, told: fn(&RunState) -> Vec<Fact>) -> impl IntoView {
    let by_hand = typed_of_page();
    let told = run.report(move |state| by_hand.with(|by_hand| typed::filled(told(state), by_hand)));
    view! {
        <div class="panel card" data-testid=format!("facts-{}", title.to_lowercase())>
            <h3>{title}</h3>
            <FactList told/>
        </div>
    }
}

/// Whence a launch command is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Seen,
    ByHand,
}

/// What people typed about the server of this page's run.
fn typed_of_page() -> Memo<TypedFacts> {
    let labels: Option<RunLabels> = use_context();
    Memo::new(move |_| labels.map(RunLabels::typed).unwrap_or_default())
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

/// An address becomes a link; anything else stays text.
fn linked(text: String) -> impl IntoView {
    match address(&text) {
        Some(address) => {
            let short = address.trim_start_matches("https://").to_owned();
            Either::Left(view! { <a href=address rel="external noreferrer">{short}</a> })
        }
        None => Either::Right(text),
    }
}

/// The address that a text is: with its scheme, or on one of the hosts where engines live.
fn address(text: &str) -> Option<String> {
    if text.starts_with("https://") {
        return Some(text.to_owned());
    }
    let known = ["github.com/", "gitlab.com/", "huggingface.co/"].iter().any(|host| text.starts_with(host));
    known.then(|| format!("https://{text}"))
}

#[component]
fn LaunchCommand(command: String, known: Known) -> impl IntoView {
    let secrets = command.matches(REDACTED).count();
    let noun = if secrets == 1 { "secret" } else { "secrets" };
    let parts = arguments(&command).into_iter().map(argument).collect_view();
    view! {
        <div class="panel command" data-testid="launch-command">
            <header>
                <h3>"Launch command"</h3>
                {(known == Known::ByHand).then(|| view! { <span class="badge info">"typed by hand"</span> })}
                {(secrets > 0)
                    .then(|| view! { <span class="badge">{icon(Icon::Lock)}{format!("{secrets} {noun} removed")}</span> })}
                <CopyButton label="Copy" text=Some(command)/>
            </header>
            <pre>{parts}</pre>
        </div>
    }
}

/// A program or a flag with the words that belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Argument {
    /// The flag, or the whole program with its subcommand.
    name: String,
    /// What follows it.
    values: Vec<String>,
}

/// A command line cut before its flags. It is only laid out, never run, so quotes are left alone.
fn arguments(command: &str) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    for word in command.split_whitespace() {
        match arguments.last_mut() {
            Some(argument) if !word.starts_with("--") => {
                if argument.name.starts_with("--") {
                    argument.values.push(word.to_owned());
                } else {
                    argument.name = format!("{} {word}", argument.name);
                }
            }
            _ => arguments.push(Argument { name: word.to_owned(), values: Vec::new() }),
        }
    }
    arguments
}

fn argument(argument: Argument) -> impl IntoView {
    let value = |value: String| match value.as_str() {
        REDACTED => view! { " "<mark>{REDACTED}</mark> }.into_any(),
        _ => format!(" {value}").into_any(),
    };
    view! {
        <span class="arg"><b>{argument.name}</b>{argument.values.into_iter().map(value).collect_view()}</span>
        " "
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_before_its_flags() {
        let pieces: Vec<_> = arguments("vllm serve model --trust --api-key <redacted>")
            .into_iter()
            .map(|argument| (argument.name, argument.values.join("|")))
            .collect();
        let wanted = [("vllm serve model", ""), ("--trust", ""), ("--api-key", "<redacted>")];
        assert_eq!(pieces, wanted.map(|(name, values)| (name.to_owned(), values.to_owned())));
    }

    #[test]
    fn only_addresses_become_links() {
        assert_eq!(address("github.com/vllm-project/vllm").as_deref(), Some("https://github.com/vllm-project/vllm"));
        assert_eq!(address("https://example.org/x").as_deref(), Some("https://example.org/x"));
        assert_eq!(address("javascript:alert(1)"), None);
        assert_eq!(address("cuda-13.2"), None);
    }
}
