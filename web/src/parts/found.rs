//! Servers to choose from: those that the agent found on its own machine, and those that earlier runs measured.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, RunSummary, SavedTarget},
    found::{FoundServer, FoundServers, Looked},
    plan::Field,
};

use super::{
    field::Form,
    icon::{Icon, icon},
    probe::{Probe, look},
};
use crate::fetch;

/// Servers of earlier runs that are listed, the latest first.
const USED_LISTED: usize = 5;

/// What a look at the agent's machine brought.
#[derive(Debug, Clone, PartialEq)]
enum Search {
    Looking,
    Found(FoundServers),
    Failed(String),
}

/// Servers on the agent's machine, and those used before.
#[component]
pub fn FoundHere(
    /// The form.
    form: Form,
    /// The key for the server.
    api_key: RwSignal<String>,
    /// What a look at the chosen one brings.
    probe: RwSignal<Probe>,
    /// Servers that are listed elsewhere.
    saved: RwSignal<Vec<SavedTarget>>,
    /// The runs, the latest first.
    runs: RwSignal<Vec<RunSummary>>,
) -> impl IntoView {
    let search = RwSignal::new(Search::Looking);
    let again = move || {
        search.set(Search::Looking);
        leptos::task::spawn_local(async move {
            let answer = fetch::get::<FoundServers>(api::path::SERVERS).await;
            // The page may have been left meanwhile; then nobody waits for the answer.
            drop(search.try_set(answer.map_or_else(|error| Search::Failed(error.to_string()), Search::Found)));
        });
    };
    again();
    let choose = Callback::new(move |url: String| {
        form.set(Field::Target, url);
        look(form, api_key, probe);
    });
    let listed = move || {
        let saved = saved.get();
        match search.get() {
            Search::Found(found) => not_saved(found.servers, &saved),
            Search::Looking | Search::Failed(_) => Vec::new(),
        }
    };
    let used = Memo::new(move |_| runs.with(|runs| used_before(runs)));
    view! {
        <div class="nearby" data-testid="found-here">
            <div class="nearby-head">
                <h3 id="found-here">"On this host"</h3>
                <button
                    type="button"
                    class="btn ghost"
                    data-testid="find-again"
                    disabled=move || search.with(|search| *search == Search::Looking)
                    on:click=move |_| again()
                >
                    {icon(Icon::Again)}
                    "Look again"
                </button>
            </div>
            // The row has its height before anything is found, so that what stands below never moves under a pointer.
            <div class="steady">
                <div class="chips" role="group" aria-labelledby="found-here">
                    {move || listed().into_iter().map(|server| server_chip(form, choose, server.url.clone(), server.label())).collect_view()}
                </div>
                <p class="hint" class:sr=move || !listed().is_empty() role="status" data-testid="found-state">
                    {move || search.with(|search| words(search, listed().len()))}
                </p>
            </div>
        </div>
        <div class="nearby" data-testid="used-before">
            <h3 id="used-before">"Used before"</h3>
            <div class="steady">
                <div class="chips" role="group" aria-labelledby="used-before">
                    {move || used.get().into_iter().map(|used| server_chip(form, choose, used.url.clone(), used.label)).collect_view()}
                </div>
                {move || used.with(Vec::is_empty).then(|| view! { <p class="hint">"Servers of earlier runs stand here."</p> })}
            </div>
        </div>
    }
}

fn server_chip(form: Form, choose: Callback<String>, url: String, label: String) -> impl IntoView {
    let (title, chosen, own) = (url.clone(), url.clone(), url.clone());
    let pressed = move || (form.text(Field::Target) == chosen).to_string();
    view! {
        <button type="button" class="chip" data-testid="server" data-url=own title=title aria-pressed=pressed on:click=move |_| choose.run(url.clone())>
            <bdi>{label}</bdi>
        </button>
    }
}

/// Where the search stands, in a sentence.
fn words(search: &Search, listed: usize) -> String {
    match search {
        Search::Looking => "Looking at the ports of the agent's host…".to_owned(),
        Search::Failed(error) => format!("The agent's host could not be looked at: {error}."),
        Search::Found(FoundServers { looked: Looked::NotWhileMeasuring, .. }) => {
            "Not looked for while a run is measured, as questions would disturb it.".to_owned()
        }
        Search::Found(_) if listed == 0 => {
            "No other model server answers on the agent's host: start one and look again, or type an address."
                .to_owned()
        }
        Search::Found(_) => "Model servers that answer on the agent's host.".to_owned(),
    }
}

/// Those that are not listed as known ones.
fn not_saved(servers: Vec<FoundServer>, saved: &[SavedTarget]) -> Vec<FoundServer> {
    servers.into_iter().filter(|server| saved.iter().all(|saved| saved.url != server.url)).collect()
}

/// A server of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    url: String,
    label: String,
}

/// The servers of earlier runs, each once and the latest first.
fn used_before(runs: &[RunSummary]) -> Vec<Used> {
    let mut used: Vec<Used> = Vec::new();
    for run in runs {
        let Some(url) = run.target.clone() else { continue };
        let is_known = used.iter().any(|one| one.url == url);
        if !is_known && used.len() < USED_LISTED {
            let place = url.split_once("://").map_or(url.as_str(), |(_, place)| place).to_owned();
            let label = run.model.as_ref().map_or_else(|| place.clone(), |model| format!("{place} · {model}"));
            used.push(Used { url, label });
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{facts, found::Access, sample};

    use super::*;

    fn server(port: u16) -> FoundServer {
        FoundServer { url: format!("http://127.0.0.1:{port}"), port, engine: None, model: None, access: Access::Open }
    }

    #[test]
    fn earlier_servers_are_listed_once() {
        let run = |port: u16, model: Option<&str>| RunSummary {
            target: Some(format!("http://127.0.0.1:{port}")),
            model: model.map(ToOwned::to_owned),
            ..facts::summary(&sample::reference())
        };
        let elsewhere = RunSummary { target: None, ..run(1, None) };
        let runs = [elsewhere, run(8_000, Some("m")), run(8_000, None), run(8_001, None)];
        let labels: Vec<String> = used_before(&runs).into_iter().map(|used| used.label).collect();
        assert_eq!(labels, ["127.0.0.1:8000 · m", "127.0.0.1:8001"]);
    }

    #[test]
    fn a_known_server_is_not_found_again() {
        let saved = SavedTarget { name: "demo".into(), url: "http://127.0.0.1:9000".into(), demo_plan: None };
        assert_eq!(not_saved(vec![server(9_000), server(9_001)], &[saved]), [server(9_001)]);
    }

    #[test]
    fn each_state_of_the_search_is_said() {
        let found = |looked| Search::Found(FoundServers { servers: Vec::new(), looked });
        assert!(words(&Search::Looking, 0).contains("Looking"));
        assert!(words(&found(Looked::Now), 0).contains("look again"));
        assert!(words(&found(Looked::NotWhileMeasuring), 0).contains("while a run is measured"));
        assert!(words(&Search::Failed("not shown".into()), 0).contains("not shown"));
    }
}
