//! The log of the program as people and programs get it.

use std::fs::{self, File};

use reqwest::{Client, header};
use serde_json::Value;
use speedmatrix_agent::client::http::tls_provider;
use speedmatrix_shared::api::{ENTER_MARK, path};

use crate::cli::{Running, err, finish, out, program};

/// What a command says on standard error that asks for a server where none is.
fn log_of(more: &[&str]) -> String {
    let mut program = program();
    program.args(["probe", "http://127.0.0.1:1"]).args(more).env("SPEEDMATRIX_LOG", "trace");
    err(&program.output().unwrap())
}

#[test]
fn each_line_of_the_log_is_an_object_for_programs() {
    let text = log_of(&["--log-format", "json"]);
    // What is said to people is no line of the log.
    let (log, said): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('{'));
    let objects: Vec<Value> = log.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(objects.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()), "{text}");
    assert!(!objects.is_empty() && said.iter().all(|line| line.starts_with("error: ")), "{text}");
}

#[test]
fn people_get_lines_of_text() {
    let text = log_of(&["--log-format", "human"]);
    assert!(text.contains("TRACE") && !text.lines().any(|line| line.starts_with('{')), "{text}");
    let unknown = log_of(&["--log-format", "xml"]);
    assert!(unknown.contains("xml"), "{unknown}");
}

/// A log is kept, and read by others than who may enter.
#[tokio::test]
async fn the_log_of_an_agent_holds_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let store = folder.path().join("runs.sqlite3");
    let mut program = program();
    program.args(["serve", "--require-token", "--listen", "127.0.0.1:0", "--store"]).arg(&store);
    let mut agent = Running::of(program.env("SPEEDMATRIX_LOG", "trace").stderr(File::create(&log).unwrap()));
    let link = out(&finish(&folder, &["link", "--operator", "--page", agent.url()]));
    let (_, token) = link.trim().split_once(ENTER_MARK).unwrap();
    tls_provider();
    let client = Client::builder().no_proxy().build().unwrap();
    let enter = client.post(format!("{}{}", agent.url(), path::ENTER)).header(header::CONTENT_TYPE, "application/json");
    assert_eq!(enter.body(format!("{{\"token\":\"{token}\"}}")).send().await.unwrap().status(), 204);
    let look = client.get(format!("{}{}", agent.url(), path::RUNS));
    assert_eq!(look.bearer_auth(token).send().await.unwrap().status(), 200);
    agent.interrupt();
    assert_eq!(agent.exit_status(), 0);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("`speedmatrix link --operator` makes") && log.contains("stopping"), "{log}");
    assert!(!log.contains(ENTER_MARK) && !log.contains(token), "{log}");
}
