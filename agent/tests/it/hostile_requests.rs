//! Requests that mean harm to the agent itself: paths that climb, lines within headers, sizes without measure, markup in
//! every text.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use speedmatrix_agent::server::{AllowedHosts, Manner, RULES, Tls, serve};
use speedmatrix_shared::{
    api::{Problem, StartRun, path},
    plan::PlanDraft,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{connect_async, tungstenite::Message};
use tokio_util::sync::CancellationToken;

use crate::server::{Agent, agent};

/// What no client library would send, and all that is answered.
async fn raw(address: std::net::SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A close that meets unread bytes comes as a reset.
    drop(socket.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn paths_that_climb_find_nothing() {
    let agent = agent().await;
    let page = agent.get("/").await.body;
    let paths = [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/fonts/../../../etc/passwd",
        "/fonts/..%5c..%5c..%5cetc%5cpasswd",
        "//etc/passwd",
        "/%00/etc/passwd",
        "/etc/passwd%00.html",
        "/runs.sqlite3",
        "/../runs.sqlite3",
        "/.git/config",
        "/api/v1/../../etc/passwd",
        "/api/v1/runs/../../../etc/passwd",
    ];
    for path in paths {
        let answer = raw(agent.address, &get(path)).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        // An address of the page is the page, whatever it is called.
        let is_page = head.starts_with("HTTP/1.1 200") && body == page;
        let is_nothing = ["HTTP/1.1 404", "HTTP/1.1 400"].iter().any(|status| head.starts_with(status));
        assert!(is_page || is_nothing, "{path}: {answer}");
    }
    for (method, template, _) in RULES.iter().filter(|(_, template, _)| template.contains("{id}")) {
        for id in ["..%2f..%2fetc", "%2e%2e", "a%00b", "A_B", "%27%20OR%201=1", &"x".repeat(300)] {
            let path = template.replace("{id}", id).replace("{cell}", "decode-8K-1");
            let request = Request::builder().method(method).uri(&path).header(header::CONTENT_TYPE, "application/json");
            let answer = agent.ask(request.body(Body::from("{}")).unwrap()).await;
            assert!(answer.status.is_client_error(), "{method} {path}: {} {}", answer.status, answer.body);
        }
    }
    let plan = PlanDraft { corpus: "../../etc/passwd".into(), ..agent.plan() };
    let asked = serde_json::to_string(&StartRun { plan, ..StartRun::default() }).unwrap();
    let refused: Problem = agent.post(path::RUNS, asked).await.json();
    assert_eq!(refused.code, "plan_invalid", "{}", refused.detail);
}

#[tokio::test]
async fn lines_within_a_request_make_no_headers() {
    const MARK: &str = "%0d%0aset-cookie:%20planted=1";
    let agent = agent().await;
    bring(&agent, |file| {
        file["run"]["id"] = json!("lines");
        file["run"]["plan"]["name"] = json!("a\r\nset-cookie: planted=1\r\n\r\n<b>");
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let tls = Tls::self_made(folder.path(), &names).unwrap().tls;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sealed = listener.local_addr().unwrap();
    let hosts = Some(Arc::new(AllowedHosts::new(sealed, names)));
    let manner = Manner { tls: Some(tls), hosts, ..Manner::default() };
    tokio::spawn(serve(listener, agent.app.clone(), manner, CancellationToken::new()));
    let cases = [
        (agent.address, get(&format!("/{MARK}"))),
        (agent.address, get(&format!("/api/v1/runs/{MARK}"))),
        (agent.address, get(&format!("/api/v1/runs/lines/export?format={MARK}"))),
        (agent.address, get("/api/v1/runs/lines/export?format=md")),
        (agent.address, get("/\nset-cookie: planted=1")),
        (agent.address, get("/").replace("localhost", &format!("localhost{MARK}"))),
        (agent.address, get("/").replace("localhost", "localhost\nset-cookie: planted=1")),
        // The redirect repeats host and path.
        (sealed, get(&format!("/{MARK}"))),
        (sealed, get("/").replace("localhost", &format!("localhost{MARK}"))),
        (sealed, get("/").replace("localhost", "localhost\r\nHost: evil.example")),
    ];
    for (address, request) in cases {
        let answer = raw(address, &request).await;
        let (head, _) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let is_planted = |line: &str| line.to_ascii_lowercase().starts_with("set-cookie");
        assert!(!head.lines().any(is_planted), "{request}\n{answer}");
        assert!(!head.lines().any(|line| line.starts_with("location: https://evil")), "{request}\n{answer}");
    }
}

#[tokio::test]
async fn whatever_is_too_large_is_refused() {
    let agent = agent().await;
    let mut said = Vec::new();
    for (method, template, _) in RULES.iter().filter(|(method, ..)| *method != Method::GET) {
        let path = template.replace("{id}", "abc").replace("{pass}", "999");
        let size = if *template == path::IMPORT { 33 << 20 } else { 300 << 10 };
        let request = Request::builder().method(method).uri(&path).header(header::CONTENT_TYPE, "application/json");
        let answer = agent.ask(request.body(Body::from(vec![b'['; size])).unwrap()).await;
        said.push(format!("{method} {template}: {}", answer.status.as_u16()));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    POST /api/v1/enter: 413
    DELETE /api/v1/enter: 204
    POST /api/v1/runs: 413
    PATCH /api/v1/runs/{id}: 413
    DELETE /api/v1/runs/{id}: 404
    POST /api/v1/runs/{id}/stop: 404
    POST /api/v1/runs/{id}/steer: 413
    POST /api/v1/runs/{id}/resume: 413
    POST /api/v1/runs/{id}/restore: 404
    POST /api/v1/probe: 413
    POST /api/v1/import: 413
    POST /api/v1/passes: 413
    DELETE /api/v1/passes/{pass}: 404
    "#);
    let long = "x".repeat(70 << 10);
    for request in [get(&format!("/{long}")), get(&format!("/api/v1/runs?{long}"))] {
        let answer = raw(agent.address, &request).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    // Nobody has that much to say on a live socket.
    let mut socket = connect_async(agent.live("reference")).await.unwrap().0;
    drop(socket.send(Message::text("x".repeat(8 << 10))).await);
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() {
            break;
        }
    }
    // It still serves.
    assert_eq!(agent.get(path::RUNS).await.status, StatusCode::OK);
}

/// The sample as another run.
async fn bring(agent: &Agent, change: impl FnOnce(&mut Value)) -> bool {
    let mut file: Value = agent.get("/api/v1/runs/reference/export?format=json").await.json();
    change(&mut file);
    agent.post(&format!("{}?name=x.json", path::IMPORT), file.to_string()).await.status.is_success()
}

/// The places of all texts in a document, as JSON pointers. Of a list's members the first two stand for all.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().take(2).enumerate().for_each(|(n, item)| texts(item, &format!("{at}/{n}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| texts(field, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_script_in_any_text_of_a_file_stays_text() {
    const SCRIPT: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'";
    let agent = agent().await;
    let sample: Value = agent.get("/api/v1/runs/reference/export?format=json").await.json();
    let mut places = Vec::new();
    texts(&sample["run"], "/run", &mut places);
    assert!(places.len() > 30, "{places:?}");
    let mut taken = Vec::new();
    for (number, place) in places.iter().filter(|place| *place != "/run/id").enumerate() {
        let id = format!("texts-{number}");
        let is_taken = bring(&agent, |file| {
            file["run"]["id"] = json!(id);
            *file.pointer_mut(place).unwrap() = json!(SCRIPT);
        });
        // Where only some words may stand, the file is refused.
        if is_taken.await {
            taken.push(place.as_str());
            is_text_everywhere(&agent, &id, place).await;
        }
    }
    let labels = json!({"revision": 0, "title": SCRIPT, "tags": [SCRIPT], "notes": SCRIPT, "typed": {"gpu": SCRIPT}});
    let change = Request::patch("/api/v1/runs/texts-0").header(header::CONTENT_TYPE, "application/json");
    bring(&agent, |file| file["run"]["id"] = json!("texts-0")).await;
    let labelled = agent.ask(change.body(Body::from(labels.to_string())).unwrap()).await;
    assert!(labelled.status.is_success(), "{}", labelled.body);
    is_text_everywhere(&agent, "texts-0", "labels").await;
    insta::assert_snapshot!(taken.join("\n"), @r#"
    /run/facts/base_url
    /run/facts/engine/backend
    /run/facts/engine/build
    /run/facts/engine/engine
    /run/facts/engine/quantization
    /run/facts/engine/repository
    /run/facts/engine/version
    /run/facts/hardware/gpu
    /run/facts/hardware/kind
    /run/facts/hardware/os
    /run/facts/launch_command
    /run/facts/model
    /run/facts/models/0
    /run/facts/published/Decode test
    /run/facts/published/Prefill mode
    /run/facts/revision
    /run/facts/served_model
    /run/plan/model
    /run/plan/name
    /run/tool
    "#);
}

async fn is_text_everywhere(agent: &Agent, run: &str, place: &str) {
    for format in ["html", "md"] {
        let file = agent.get(&format!("/api/v1/runs/{run}/export?format={format}")).await;
        assert_eq!(file.status, StatusCode::OK, "{place}: {}", file.body);
        // In a block of code all is text.
        let outside = file.body.split("\n```").step_by(2).collect::<String>();
        let is_markup = ["<script>alert", "<img src=x"].iter().any(|tag| outside.contains(tag));
        assert!(!is_markup, "{place} in {format}");
    }
    // What is told as JSON is never taken for a page.
    for path in [format!("/api/v1/runs/{run}"), path::RUNS.to_owned()] {
        let answer = agent.get(&path).await;
        assert_eq!(answer.header(header::CONTENT_TYPE), "application/json");
        assert_eq!(answer.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    }
}
