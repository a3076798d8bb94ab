//! Plays the collection of misbehaving servers through the real client and compares all that was asked for.
//!
//! The collection lies beside the repository (`../shared/cases/given`, or `SPEEDMATRIX_CASES`); without it there is
//! nothing to do. Run with `cargo test --test cases`; words after `--` choose cases by the start of their id.

mod calc;
mod compare;
mod given;
mod hardware;
mod import;
mod metrics;
mod play;
#[path = "../recorded/mod.rs"]
mod recorded;
mod replay;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use given::Case;
use replay::Replay;

/// What became of a case.
enum Verdict {
    Ok(String),
    NotApplicable(&'static str),
    Failed(Vec<String>),
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match run(&wanted) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("the cases could not be played: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> io::Result<ExitCode> {
    let root = root();
    let script = root.join("../replay.py");
    if !root.join("stream").is_dir() || !script.is_file() {
        say(&format!("no cases at {}: nothing to play (SPEEDMATRIX_CASES names another place)", root.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let replay = Replay::start(&script, &root)?;
    let (mut ok, mut failed, mut other) = (0, 0, 0);
    for id in ids(&root)? {
        if !wanted.is_empty() && !wanted.iter().any(|start| id.name.starts_with(start.as_str())) {
            continue;
        }
        let verdict = match id.kind.as_str() {
            "stream" => runtime.block_on(play::play(&replay, &Case::read(&id.path)?)),
            "calc" => calc::check(&id.path)?,
            "metrics" => runtime.block_on(metrics::check(&replay, &id.path, &id.name))?,
            "hardware" => hardware::check(&id.name, &id.path)?,
            "import" => import::check(&id.name, &id.path)?,
            "scenario" | "ui" => scenario(&id.name),
            _ => Verdict::NotApplicable("no stream"),
        };
        match verdict {
            Verdict::Ok(remark) => {
                ok += 1;
                say(format!("{}  ok  {remark}", id.name).trim_end());
            }
            Verdict::NotApplicable(reason) => {
                other += 1;
                say(&format!("{}  not applicable: {reason}", id.name));
            }
            Verdict::Failed(reasons) => {
                failed += 1;
                say(&format!("{}  FAILED: {}", id.name, reasons.join("; ")));
            }
        }
    }
    say(&format!("{ok} ok, {failed} failed, {other} not applicable"));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn root() -> PathBuf {
    std::env::var_os("SPEEDMATRIX_CASES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases/given"), PathBuf::from)
}

struct Id {
    name: String,
    kind: String,
    path: PathBuf,
}

/// All cases, each once, by name.
fn ids(root: &Path) -> io::Result<Vec<Id>> {
    let mut ids = Vec::new();
    for folder in std::fs::read_dir(root)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder.path())? {
            let file = file?;
            let name = file.file_name().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
            ids.push(Id { name, kind: folder.file_name().to_string_lossy().into_owned(), path: file.path() });
        }
    }
    ids.sort_by(|a, b| a.name.cmp(&b.name));
    ids.dedup_by(|a, b| a.name == b.name);
    Ok(ids)
}

/// Who plays the steps of a scenario, or of a case for a browser.
fn scenario(name: &str) -> Verdict {
    Verdict::NotApplicable(match name {
        "C09" => "covered by test it::scenarios::a_first_request_after_idleness_stays_out_of_the_cell",
        "D24" => "covered by test it::scenarios::loopback_never_goes_through_a_proxy",
        "E16" => "covered by test it::engines::no_question_names_a_model_that_is_not_loaded",
        "F03" => "covered by test it::scenarios::no_cold_cell_is_served_from_an_earlier_one",
        "G06" => "covered by test it::scenarios::all_streams_are_open_at_once, but for the busy machine",
        "I16" => "covered by tests it::exports::hostile_names_stay_text_and_make_no_paths and export::csv",
        "J01" => "covered by tests server::guard::only_known_names_are_answered and only_the_own_page_acts_and_listens",
        "J03" => "covered by test it::door::a_live_socket_needs_a_token_and_ends_with_it",
        "J04" => "covered by tests it::door::a_link_lets_in_until_it_is_taken_back and browser::door",
        "J05" => {
            "covered by tests browser::report::odd_runs_open_and_fit and browser::runs::notes_with_markup_are_text"
        }
        "J07" => "covered by tests it::secrecy and secret::tests",
        "J09" => "covered by test browser::run::a_browser_whose_clock_is_a_day_off_shows_the_run_s_time",
        "J10" => "covered by test browser::live::a_page_hears_an_agent_that_comes_back",
        "J12" => "covered by test state::the_log_keeps_its_latest_lines; the page draws 200 of them",
        "J14" => "covered by test it::trouble::a_stop_in_the_middle_keeps_what_is_finished",
        _ => "no stream; steps for a person",
    })
}

fn say(line: &str) {
    // A closed pipe ends the talking, not the play.
    let _closed = writeln!(io::stdout().lock(), "{line}");
}
