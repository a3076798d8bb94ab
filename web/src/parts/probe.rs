//! Looking at a server before measuring it.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, ProbeRequest},
    facts::Fact,
    format,
    plan::Field,
    target::TargetFacts,
};

use super::{
    facts::FactList,
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
    let target = form.draft.with_untracked(|draft| draft.target.clone());
    let key = api_key.get_untracked();
    let request = ProbeRequest { target: target.clone(), api_key: (!key.is_empty()).then_some(key) };
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
            <FactList told=Signal::stored(told(facts))/>
            {(!facts.warnings.is_empty()).then(|| view! { <ul class="warnings">{warnings}</ul> })}
        </div>
    }
}

/// What the card lists; only the limits are listed also when unknown, as they decide what fits.
fn told(facts: &TargetFacts) -> Vec<Fact> {
    let known = |label: &'static str, text: Option<&String>| text.map(|text| (label, text.clone()));
    let engine = &facts.engine;
    let models = (!facts.models.is_empty()).then(|| facts.models.join(", "));
    let gpu = facts.hardware.gpu.as_ref().map(|gpu| match facts.hardware.gpu_count {
        Some(count) => format!("{gpu} ×{count}"),
        None => gpu.clone(),
    });
    let mut told: Vec<Fact> = [
        known("Engine", engine.engine.as_ref()),
        known("Version", engine.version.as_ref()),
        known("Quantization", engine.quantization.as_ref()),
        known("Models", models.as_ref()),
        known("GPU", gpu.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    told.push(("Longest context", format::size(facts.limits.max_model_len)));
    told.push(("KV cache holds", format::tokens(facts.limits.kv_tokens)));
    told.push(("Decodes at once", format::count(facts.limits.max_sequences.map(u64::from))));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_limits_are_listed_as_unknown() {
        let told = told(&TargetFacts::default());
        assert_eq!(told.len(), 3);
        assert!(told.iter().all(|(_, text)| text == format::MISSING));
    }
}
