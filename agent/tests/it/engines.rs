//! Engines as they answer: recorded or written by their documentation, played back by a server, and told as what the probe
//! makes of them.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::IntoResponse,
};
use serde::Deserialize;
use serde_json::Value;
use speedmatrix_shared::{
    format,
    target::{FactName, TargetFacts},
};

use crate::rig::Rig;

/// An engine's answers.
#[derive(Debug, Deserialize)]
struct Fixture {
    about: String,
    routes: BTreeMap<String, Route>,
}

/// One answer; a path that is not there is 404.
#[derive(Debug, Clone, Deserialize)]
struct Route {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    text: Option<String>,
}

const fn ok() -> u16 {
    200
}

fn fixtures() -> Vec<(String, Fixture)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/engines");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let fixture = serde_json::from_slice(&fs::read(path).unwrap());
        (name, fixture.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    paths.iter().map(read).collect()
}

/// Plays a fixture on a thread of its own until the test ends. Gives its address and the questions that come.
fn serve(fixture: Fixture) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (questions, routes) = (Arc::clone(&asked), Arc::new(fixture.routes));
    let answer = move |request: Request| {
        let path = request.uri().path().to_owned();
        questions.lock().unwrap().push(request.uri().to_string());
        let route = routes.get(&path).cloned();
        async move { route.map_or_else(|| StatusCode::NOT_FOUND.into_response(), Route::into_response) }
    };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, Router::new().fallback(answer)).await.unwrap();
        });
    });
    (format!("http://{}", told.recv().unwrap()), asked)
}

impl IntoResponse for Route {
    fn into_response(self) -> axum::response::Response {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
        }
        let body = self.text.unwrap_or_else(|| self.body.to_string());
        (StatusCode::from_u16(self.status).unwrap(), headers, body).into_response()
    }
}

/// What was found, a line each, with the source where there is one.
fn told(facts: &TargetFacts) -> String {
    let source = |fact| {
        let source = facts.source(fact);
        source.map_or_else(String::new, |source| format!("  ← {}, {}", source.endpoint, source.sureness.label()))
    };
    let engine = &facts.engine;
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| format::MISSING.to_owned());
    let rows = [
        (FactName::Engine, text(&engine.engine)),
        (FactName::Version, text(&engine.version)),
        (FactName::Build, text(&engine.build)),
        (FactName::Quantization, text(&engine.quantization)),
        (FactName::Model, text(&facts.model)),
        (FactName::MaxModelLen, format::count(facts.limits.max_model_len)),
        (FactName::MaxSequences, format::count(facts.limits.max_sequences.map(u64::from))),
        (FactName::KvTokens, format::count(facts.limits.kv_tokens)),
    ];
    let mut told = String::new();
    for (fact, text) in rows.into_iter().filter(|(_, text)| text != format::MISSING) {
        writeln!(told, "  {}: {text}{}", fact.label(), source(fact)).unwrap();
    }
    writeln!(told, "  Gauges: {}", facts.gauges.join(", ")).unwrap();
    for warning in &facts.warnings {
        writeln!(told, "  ! {warning}").unwrap();
    }
    told
}

#[test]
fn every_engine_is_recognised_and_told() {
    let mut all = String::new();
    for (name, fixture) in fixtures() {
        let about = fixture.about.clone();
        let (url, _) = serve(fixture);
        let wanted = (name == "lm-studio").then_some("qwen/qwen3.5-9b");
        let facts = Rig::new(&url).probe(wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
        let stored = serde_json::to_string(&facts).unwrap();
        assert!(!stored.contains("sk-clear-text-key"), "{name}: {stored}");
        assert_eq!(serde_json::from_str::<TargetFacts>(&stored).unwrap(), facts, "{name}");
        writeln!(all, "{name} ({about})\n{}", told(&facts).replace(&url, "HOST")).unwrap();
    }
    insta::assert_snapshot!(all);
}

/// A router loads what it is asked about, and throws out what is in use.
#[test]
fn no_question_names_a_model_that_is_not_loaded() {
    let (_, fixture) = fixtures().into_iter().find(|(name, _)| name == "llama-cpp-router").unwrap();
    let (url, asked) = serve(fixture);
    let facts = Rig::new(&url).probe(None).unwrap();
    assert_eq!(facts.served_model.as_deref(), Some("model-a"));
    let asked = asked.lock().unwrap();
    assert!(asked.len() > 5, "{asked:?}");
    assert!(asked.iter().all(|question| !question.contains("model-b") && !question.contains('?')), "{asked:?}");
}
