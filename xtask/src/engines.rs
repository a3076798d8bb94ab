//! Measures every engine that can be started here, and writes down what was found: `docs/ENGINES.md`.
//!
//! An engine is a script `start-<name>.sh FOLDER` that starts it in the background, prints its address and leaves its
//! process id in `FOLDER/<name>.pid`. They lie beside the repository; where there are none, there is nothing to do.

use crate::{
    build::{AGENT, BINARY},
    layout::Layout,
    step::{Result, output, run, say, step},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A small matrix: two contexts that every engine takes, and more requests than some run at once.
const PLAN: [&str; 8] = ["--contexts", "512,1K", "--concurrency", "1,4,8", "--duration", "4s", "--max-output", "256"];
const PAGE: &str = "docs/ENGINES.md";

/// What was found of an engine.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    /// What the probe says, by its word.
    probed: Vec<(String, String)>,
    /// Phase, context, requests at once, status and speed of each cell.
    cells: Vec<[String; 5]>,
}

/// Probes and measures each engine. The first argument is the folder in which they are kept, default `target/engines`;
/// `--release` measures with the program that people get.
pub(crate) fn check(layout: &Layout, args: &[String]) -> Result {
    let beside = layout.root.join("../shared");
    let shared = env::var_os("SPEEDMATRIX_SHARED").map_or(beside, |given| layout.root.join(given));
    let scripts = scripts(&shared.join("engines"));
    if scripts.is_empty() {
        say(&format!("no start-*.sh in {}: no engine to measure", shared.join("engines").display()));
        return Ok(());
    }
    let profile = if args.iter().any(|arg| arg == "--release") { Profile::Release } else { Profile::Debug };
    let kept = args.iter().find(|arg| !arg.starts_with('-'));
    let kept = kept.map_or_else(|| layout.target.join("engines"), |folder| layout.root.join(folder));
    let binary = step("agent", || build(layout, profile))?;
    let mut rows = Vec::new();
    for (name, script) in scripts {
        rows.push(step(&name, || measure(layout, &binary, (&name, &script), &kept))?);
    }
    fs::write(PAGE, page(&rows)).map_err(|e| format!("cannot write {PAGE}: {e}"))?;
    say(&format!("  {PAGE} tells what was found"));
    Ok(())
}

/// The scripts of a folder by the engine's name, sorted.
fn scripts(folder: &Path) -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut scripts: Vec<(String, PathBuf)> = files
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix("start-")?.strip_suffix(".sh")?.to_owned();
            Some((name, path))
        })
        .collect();
    scripts.sort();
    scripts
}

fn build(layout: &Layout, profile: Profile) -> Result<PathBuf> {
    let mut cargo = layout.cargo(["build", "--locked", "-p", AGENT, "--bin", BINARY]);
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    run(&mut cargo)?;
    Ok(layout.target.join(profile.folder()).join(BINARY))
}

/// How the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Profile {
    Debug,
    Release,
}

impl Profile {
    const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

fn measure(layout: &Layout, binary: &Path, (name, script): (&str, &Path), kept: &Path) -> Result<Row> {
    fs::create_dir_all(kept).map_err(|e| format!("cannot make {}: {e}", kept.display()))?;
    let started = output(layout.program("bash").arg(script).arg(kept));
    let url = started.and_then(|told| told.lines().last().map(ToOwned::to_owned));
    let url = url.ok_or_else(|| format!("{} did not start its engine: look at what it says", script.display()))?;
    let found = look_and_run(layout, binary, (name, &url));
    stop(&kept.join(format!("{name}.pid")));
    found
}

fn look_and_run(layout: &Layout, binary: &Path, (name, url): (&str, &str)) -> Result<Row> {
    let store = layout.target.join("engines-runs.sqlite3");
    let program = || layout.program(&binary.to_string_lossy());
    let probe = output(program().args(["probe", url])).ok_or_else(|| format!("{url} could not be probed"))?;
    run(program().args(["run", "--target", url, "--name", name]).args(PLAN).arg("--store").arg(&store))?;
    let runs = output(program().args(["runs", "--store"]).arg(&store)).unwrap_or_default();
    // Newest first.
    let id = runs.split_whitespace().next().ok_or("the run was not stored")?;
    let csv = output(program().args(["export", id, "--format", "csv", "--store"]).arg(&store));
    let csv = csv.ok_or_else(|| format!("run {id} could not be exported"))?;
    Ok(Row { name: name.to_owned(), probed: probed(&probe), cells: cells(&csv) })
}

/// Ends the engine that a script started, by the id that it left.
fn stop(pid: &Path) {
    if let Some(id) = fs::read_to_string(pid).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
        // It may have ended by itself.
        output(Command::new("kill").arg(id.to_string()));
    }
}

/// The lines of a probe, each a word and what it says.
fn probed(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        // Names fill 12 places.
        let (name, value) = line.split_at_checked(12)?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Of a table as CSV: phase, context, requests at once, status and total speed of each row.
fn cells(csv: &str) -> Vec<[String; 5]> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let columns = ["phase", "context_tokens", "requests_at_once", "status", "total_tok_s"];
    let places = columns.map(|column| head.iter().position(|name| *name == column));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field =
            |place: Option<usize>| place.and_then(|place| fields.get(place)).map_or("", |field| field).to_owned();
        (fields.len() > 1).then(|| {
            let mut row = places.map(field);
            let [.., speed] = &mut row;
            if let Ok(tok_s) = speed.parse::<f64>() {
                *speed = format!("{tok_s:.0}");
            }
            row
        })
    };
    lines.filter_map(row).collect()
}

/// The page.
fn page(rows: &[Row]) -> String {
    let mut page = "# Engines\n\nWritten by `cargo xtask engines`: every engine that could be started was probed and measured \
                    over a small matrix, with more requests at once than some of them run. Where the engine is a tiny model on \
                    a few cores, the speeds say nothing about it: what counts is that limits, gauges and statuses are right.\n"
        .to_owned();
    let told = |row: &Row, name: &str| {
        let value = row.probed.iter().find(|(word, _)| word == name).map(|(_, value)| value.as_str());
        value.unwrap_or("—").replace('|', "/")
    };
    page.push_str("\n| | engine | context | at once | KV cache | gauges | cells |\n|---|---|---|---|---|---|---|\n");
    for row in rows {
        let words = ["engine", "context", "at once", "kv cache", "tells"].map(|word| told(row, word));
        let measured = row.cells.iter().filter(|[.., speed]| !speed.is_empty()).count();
        let line = format!("| {} | {} | {measured} of {} |\n", row.name, words.join(" | "), row.cells.len());
        page.push_str(&line);
    }
    for row in rows {
        page.extend(["\n## ", &row.name, "\n\n"]);
        for (_, beware) in row.probed.iter().filter(|(word, _)| word == "beware") {
            page.extend(["- ", beware, "\n"]);
        }
        page.push_str("\n| phase | context | at once | status | tok/s |\n|---|---|---|---|---|\n");
        for cell in &row.cells {
            page.extend(["| ", &cell.join(" | "), " |\n"]);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_is_read() {
        let probe = "address      http://127.0.0.1:1\nengine       llama.cpp · F16 (from /v1/models)\nx\n";
        let read = probed(probe);
        assert_eq!(read[1], ("engine".to_owned(), "llama.cpp · F16 (from /v1/models)".to_owned()));
        assert_eq!(read.len(), 2);
        let csv = "run,title,phase,context_tokens,requests_at_once,status,total_tok_s,x\r\n\
                   a,b,Decode,1024,4,Valid,81.6,\r\na,b,Decode,1024,8,Skipped: x,,\r\n";
        let wanted = [["Decode", "1024", "4", "Valid", "82"], ["Decode", "1024", "8", "Skipped: x", ""]]
            .map(|row| row.map(String::from));
        assert_eq!(cells(csv), wanted);
        let row = Row { name: "llama-server".to_owned(), probed: read, cells: cells(csv) };
        let page = page(&[row]);
        assert!(
            page.contains("| llama-server | llama.cpp · F16 (from /v1/models) | — | — | — | — | 1 of 2 |"),
            "{page}"
        );
        assert!(page.contains("| Decode | 1024 | 4 | Valid | 82 |"), "{page}");
    }
}
