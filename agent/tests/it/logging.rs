//! The log of the program as people and programs get it.

use serde_json::Value;

use crate::cli::{err, program};

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
