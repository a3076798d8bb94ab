//! Two runs on the command line: the comparison as a file, and the gate's exit status.

use std::path::PathBuf;

use speedmatrix_shared::{
    event::{Envelope, Origin, RunEvent, RunOutcome},
    export::json,
    id::CellId,
    plan::{PlanDraft, RunPlan},
    state::RunState,
    stats::cell::{CellResult, CellStats, CellStatus},
    target::TargetFacts,
    units::Nanos,
};
use tempfile::TempDir;

use crate::cli::{err, finish, out};

/// Writes a run of one cell, measured as often as there are speeds.
fn file(folder: &TempDir, name: &str, speeds: &[f64]) -> String {
    let draft = PlanDraft {
        target: "host".into(),
        name: name.into(),
        contexts: "8K".into(),
        concurrency: "4".into(),
        prefill_contexts: "none".into(),
        repeats: speeds.len().max(1).to_string(),
        ..PlanDraft::default()
    };
    let cell: CellId = "decode-8K-4".parse().unwrap();
    let finished = speeds.iter().map(|speed| RunEvent::CellFinished {
        cell,
        result: Box::new(CellResult {
            status: CellStatus::Valid,
            stats: CellStats { total_tok_s: Some(*speed), ..CellStats::default() },
            findings: Vec::new(),
            failures: Vec::new(),
            rules: Some(2),
        }),
    });
    let start = RunEvent::RunStarted {
        plan: RunPlan::try_from(draft).unwrap(),
        started_unix_ms: 1_796_160_600_000,
        tool: "speedmatrix 1".into(),
    };
    let facts = Box::new(TargetFacts { base_url: "http://host".into(), ..TargetFacts::default() });
    let events = [start, RunEvent::Probed { facts, origin: Origin::Measured }].into_iter().chain(finished);
    let events = events.chain([RunEvent::RunFinished { outcome: RunOutcome::Finished }]);
    let log: Vec<Envelope> = (0..).zip(events).map(|(seq, event)| Envelope { seq, at: Nanos(seq), event }).collect();
    let run = RunState::fold(name.parse().unwrap(), &log).unwrap().unwrap();
    let path = folder.path().join(format!("{name}.json"));
    std::fs::write(&path, json::render(&run)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn check_gate(baseline: &[f64], run: &[f64], more: &[&str], status: i32, said: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (file(&folder, "a", baseline), file(&folder, "b", run));
    let output = finish(&folder, &[&["gate", "--baseline", &a, "--run", &b], more].concat());
    assert_eq!(output.status.code(), Some(status), "{}{}", out(&output), err(&output));
    assert_eq!(out(&output).trim_end(), said);
}

#[test]
fn the_gate_answers_by_its_status() {
    let base = &[100.0, 101.0, 99.0];
    check_gate(base, base, &[], 0, "passed: B is in no cell faster or slower: no difference in 1 cell.");
    check_gate(base, &[120.0, 121.0, 119.0], &[], 0, "passed: B is faster in 1 cell.");
    check_gate(base, &[80.0, 81.0, 79.0], &["--inconclusive", "pass"], 1, "regressed: B is slower in 1 cell.");
    let open = "B is in no cell faster or slower: inconclusive in 1 cell.";
    let wide = &[80.0, 100.0, 121.0];
    check_gate(base, wide, &[], 2, &format!("inconclusive: {open}"));
    check_gate(base, wide, &["--inconclusive", "pass"], 0, &format!("passed: {open}"));
    check_gate(base, wide, &["--inconclusive", "fail"], 1, &format!("regressed: {open}"));
    check_gate(base, &[], &[], 3, "not comparable: No cell can be compared: not comparable in 1 cell.");
}

#[test]
fn what_the_gate_can_not_follow_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let run = file(&folder, "a", &[100.0]);
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "[1]").unwrap();
    let check = |arguments: &[&str], status: i32, said: &str| {
        let output = finish(&folder, &[&["gate"], arguments].concat());
        assert_eq!(output.status.code(), Some(status), "{}", err(&output));
        assert!(err(&output).contains(said), "{}", err(&output));
    };
    check(&["--baseline", &run], 64, "--run <B>");
    check(&["--baseline", &run, "--run", "./none.json"], 64, "./none.json can't be read (No such file or directory");
    check(&["--baseline", &run, "--run", broken.to_str().unwrap()], 3, "the file is JSON");
    check(&["--baseline", &run, "--run", &run, "--metric", "speed"], 64, "is no number to compare by");
    check(&["--baseline", &run, "--run", &run, "--margin", "99"], 64, "between 0.1 and 50 percent");
    check(&["--baseline", &run, "--run", &run, "--inconclusive", "maybe"], 64, "choose tell, pass or fail");
}

#[test]
fn a_build_gets_its_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (file(&folder, "a", &[100.0, 101.0, 99.0]), file(&folder, "b", &[80.0, 81.0, 79.0]));
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (xml, markdown) = (path("gate.xml"), path("gate.md"));
    let reports = ["--junit", &xml, "--markdown", &markdown];
    for _again in 0..2 {
        let output = finish(&folder, &[&["gate", "--baseline", &a, "--run", &b], &reports[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    }
    let read = |path: &str| std::fs::read_to_string(PathBuf::from(path)).unwrap();
    assert!(read(&xml).contains("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{}", read(&xml));
    let row = "| Sustained decode, 8K × 4 | 100.0 | 80.0 | −20.0 % | ";
    assert!(read(&markdown).lines().any(|line| line.starts_with(row)), "{}", read(&markdown));
}

#[test]
fn two_runs_are_compared_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (file(&folder, "a", &[100.0, 101.0, 99.0]), file(&folder, "b", &[80.0, 81.0, 79.0]));
    let check = |format: &str, begin: &str| {
        let output = finish(&folder, &["compare", &a, &b, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(out(&output).starts_with(begin), "{}", out(&output));
    };
    check("md", "# Total speed: B against A\n\n**B is slower in 1 cell.**\n");
    check("csv", "phase,context_tokens,requests_at_once,metric,");
    check("json", "{\n");
    check("junit", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let itself = finish(&folder, &["compare", "reference", "reference", "--metric", "ttft"]);
    assert!(out(&itself).contains("A and B are the same run"), "{}", out(&itself));
    let plan = finish(&folder, &["plan-repeats", &a, &b, "--see", "5"]);
    assert_eq!(plan.status.code(), Some(0), "{}", err(&plan));
    assert!(out(&plan).contains("repeats on each side see a change of 5 % in four of five tries"), "{}", out(&plan));
}
