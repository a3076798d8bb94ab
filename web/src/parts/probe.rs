//! Looking at a server before measuring it.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, ProbeRequest},
    format,
    plan::Field,
    target::{FactName, FactSource, TargetFacts},
};

use super::{
    field::Form,
    icon::{Icon, icon},
    notice::{Notice, Weight},
};
use crate::fetch;

/// What a look at the server brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// Nobody looked yet, or the address has changed since.
    NotYet,
    /// Looking.
    Looking,
    /// What was found.
    Found(Box<TargetFacts>),
    /// Why nothing was found.
    Failed(String),
}

impl Probe {
    /// What was found.
    pub fn facts(&self) -> Option<&TargetFacts> {
        match self {
            Self::Found(facts) => Some(facts),
            _ => None,
        }
    }
}

/// Looks at the target of the form.
pub fn look(form: Form, api_key: RwSignal<String>, probe: RwSignal<Probe>) {
    let (target, model) = form.draft.with_untracked(|draft| (draft.target.clone(), draft.model.trim().to_owned()));
    let key = api_key.get_untracked();
    let request = ProbeRequest {
        target: target.clone(),
        model: (!model.is_empty()).then_some(model),
        api_key: (!key.is_empty()).then_some(key),
    };
    probe.set(Probe::Looking);
    leptos::task::spawn_local_scoped_with_cancellation(async move {
        let answer = fetch::post::<TargetFacts>(api::path::PROBE, &request).await;
        // The address may have changed, or the page been left, while the answer was on its way.
        if form.draft.try_with_untracked(|draft| draft.target == target) == Some(true) {
            probe.set(match answer {
                Ok(facts) => Probe::Found(Box::new(facts)),
                Err(error) => Probe::Failed(error.to_string()),
            });
        }
    });
}

/// The button that looks.
#[component]
pub fn LookButton(
    /// The form.
    form: Form,
    /// The key for the server.
    api_key: RwSignal<String>,
    /// What it brings.
    probe: RwSignal<Probe>,
) -> impl IntoView {
    let looking = move || probe.with(|probe| *probe == Probe::Looking);
    let press = move |_| {
        form.touch(Field::Target);
        look(form, api_key, probe);
    };
    view! {
        <button type="button" class="btn" data-testid="look" disabled=looking on:click=press>
            {icon(Icon::Look)}
            {move || if looking() { "Looking…" } else { "Look at it" }}
        </button>
    }
}

/// What was found, or why nothing was.
#[component]
pub fn ProbeCard(
    /// What a look brought.
    probe: RwSignal<Probe>,
) -> impl IntoView {
    let card = move || match probe.get() {
        Probe::NotYet | Probe::Looking => None,
        Probe::Failed(text) => {
            let text = format!("Nothing to measure was found there: {text}.");
            Some(view! { <div data-testid="probe-error"><Notice weight=Weight::Bad text/></div> }.into_any())
        }
        Probe::Found(facts) => Some(found(&facts).into_any()),
    };
    view! { <div aria-live="polite">{card}</div> }
}

fn found(facts: &TargetFacts) -> impl IntoView + use<> {
    let warnings = facts.warnings.iter().map(|text| view! { <li>{icon(Icon::Warning)}" "{text.clone()}</li> });
    let warnings = warnings.collect_view();
    let simulated = facts.simulated.as_ref().map(|simulated| {
        let factor = format::whole(Some(simulated.clock_factor));
        view! {
            <p class="pad">
                <span class="badge warn">{icon(Icon::Simulated)}"Simulated"</span>
                {format!(" This is the built-in simulator. Its clock runs {factor} times as fast as the one on the wall.")}
            </p>
        }
    });
    view! {
        <div class="probe" data-testid="probe">
            <h3>"What was found"</h3>
            {simulated}
            <dl class="facts-list">{told(facts).into_iter().map(row).collect_view()}</dl>
            {(!facts.warnings.is_empty()).then(|| view! { <ul class="warnings">{warnings}</ul> })}
        </div>
    }
}

/// A row of the card.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    label: &'static str,
    text: String,
    /// How that is known, where it is worth telling.
    source: Option<String>,
}

fn row(Row { label, text, source }: Row) -> impl IntoView {
    let known = text != format::MISSING;
    view! {
        <div>
            <dt>{label}</dt>
            <dd class=(!known).then_some("muted")>
                {text}
                {source.map(|source| view! { <small class="muted">{format!(" {source}")}</small> })}
            </dd>
        </div>
    }
}

/// What the card lists; only the limits are listed also when unknown, as they decide what fits.
fn told(facts: &TargetFacts) -> Vec<Row> {
    let sourced = |fact: FactName, text: String| {
        let source = facts.source(fact).map(FactSource::words);
        Row { label: fact.label(), text, source }
    };
    let known = |fact: FactName, text: Option<&String>| text.map(|text| sourced(fact, text.clone()));
    let plain = |label: &'static str, text: Option<String>| text.map(|text| Row { label, text, source: None });
    let engine = &facts.engine;
    let gpu = facts.hardware.gpu.as_ref().map(|gpu| match facts.hardware.gpu_count {
        Some(count) => format!("{gpu} ×{count}"),
        None => gpu.clone(),
    });
    let list = |words: &[String]| (!words.is_empty()).then(|| words.join(", "));
    let mut told: Vec<Row> = [
        known(FactName::Engine, engine.engine.as_ref()),
        known(FactName::Version, engine.version.as_ref()),
        known(FactName::Build, engine.build.as_ref()),
        known(FactName::Quantization, engine.quantization.as_ref()),
        plain("Models", list(&facts.models)),
        plain("GPU", gpu),
    ]
    .into_iter()
    .flatten()
    .collect();
    let limits = facts.limits;
    told.push(sourced(FactName::MaxModelLen, format::size(limits.max_model_len)));
    told.push(sourced(FactName::KvTokens, format::tokens(limits.kv_tokens)));
    told.push(sourced(FactName::MaxSequences, format::count(limits.max_sequences.map(u64::from))));
    told.extend(plain("Tells as it works", list(&facts.gauges)));
    told
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::target::{Limits, Sureness};

    use super::*;

    #[test]
    fn unknown_limits_are_listed_as_unknown() {
        let told = told(&TargetFacts::default());
        assert_eq!(told.len(), 3);
        assert!(told.iter().all(|row| row.text == format::MISSING && row.source.is_none()));
    }

    #[test]
    fn sources_stand_beside_what_they_told() {
        let source = |fact, endpoint: &str, sureness| FactSource { fact, endpoint: endpoint.to_owned(), sureness };
        let facts = TargetFacts {
            limits: Limits { max_model_len: Some(32_768), kv_tokens: Some(640_000), max_sequences: None },
            sources: vec![
                source(FactName::MaxModelLen, "/v1/models", Sureness::Certain),
                source(FactName::KvTokens, "/metrics", Sureness::Guess),
            ],
            gauges: vec!["running".to_owned(), "kv use".to_owned()],
            ..TargetFacts::default()
        };
        let line = |row: &Row| format!("{}: {} {}", row.label, row.text, row.source.as_deref().unwrap_or_default());
        let told: Vec<String> = told(&facts).iter().map(line).collect();
        let wanted = [
            "Longest context: 32K from /v1/models",
            "KV cache holds: 640,000 tokens a guess from /metrics",
            "Decodes at once: — ",
            "Tells as it works: running, kv use ",
        ];
        assert_eq!(told, wanted);
    }
}
