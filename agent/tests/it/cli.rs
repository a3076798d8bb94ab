//! The program as people start it: its manual, its sentences and its exit statuses.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use speedmatrix_agent::store::{Access, Store};
use speedmatrix_shared::{
    api::RunSummary,
    event::{Envelope, RunEvent, RunOutcome},
    id::RunId,
    state::{RunState, RunStatus},
};
use tempfile::TempDir;

pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_speedmatrix"));
    program.stdin(Stdio::null()).env_remove("SPEEDMATRIX_KEY");
    program
}

/// A program that runs until it is dropped.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    first_line: String,
}

impl Running {
    fn start(arguments: &[&str], log: Stdio) -> Self {
        Self::of(program().args(arguments).stderr(log))
    }

    pub(crate) fn of(program: &mut Command) -> Self {
        let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        out.read_line(&mut first_line).unwrap();
        Self { child, out, first_line: first_line.trim_end().to_owned() }
    }

    fn simulator() -> Self {
        Self::start(&["sim", "--preset", "exact", "--clock-factor", "20"], Stdio::null())
    }

    /// The address that the first line names.
    pub(crate) fn url(&self) -> &str {
        self.first_line.strip_prefix("listening on ").unwrap_or(&self.first_line)
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn exit_status(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the program to its end, with its store in `folder`.
pub(crate) fn finish(folder: &TempDir, arguments: &[&str]) -> Output {
    let store = folder.path().join("runs.sqlite3");
    let needs_store = !matches!(arguments.first(), Some(&("sim" | "watch" | "--help" | "--version")));
    let mut program = program();
    program.args(arguments);
    if needs_store && !arguments.contains(&"--help") {
        program.arg("--store").arg(store);
    }
    program.output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_manual_reads_like_one() {
    let folder = tempfile::tempdir().unwrap();
    let manual = ["", "serve", "run", "ab", "sim", "export", "reanalyse"].map(|command| {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let output = finish(&folder, &arguments);
        assert_eq!(output.status.code(), Some(0));
        out(&output)
    });
    // clap leaves spaces on empty lines.
    let manual = manual.join("\n----\n").lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("manual", manual);
    let version = finish(&folder, &["--version"]);
    assert_eq!(out(&version), concat!("speedmatrix ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// A server that answers everything alike.
fn answering(status: &'static str, kind: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    format!("http://{address}")
}

#[test]
fn what_is_wrong_is_one_sentence_and_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let unknown_key = file("unknown.json", "{\"target\": \"x\", \"colour\": \"red\"}");
    let (broken, exists) = (file("broken.json", "{"), file("exists.md", "mine"));
    let hundred = (1..=100).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let cases = [
        "no such flag| run --colour red",
        "no such command| measure",
        "listen nowhere| serve --listen nowhere",
        "nothing given| run",
        "wrong scheme| run --target ftp://h --contexts 1K --concurrency 1",
        &format!("10,000 cells| run --target h --contexts {hundred} --concurrency {hundred}"),
        "no cells| run --target h --contexts , --concurrency ,",
        "no such plan| run --plan no-such-file.json",
        &format!("broken plan| run --plan {broken}"),
        &format!("unknown key in plan| run --plan {unknown_key}"),
        "no key in variable| run --target h --contexts 1K --concurrency 1 --api-key-env SPEEDMATRIX_KEY",
        "no such preset| sim --preset none",
        "no such script| sim --script dance",
        "no such run| export abc",
        "no run id| export A_B",
        "no such format| export reference --format pdf",
        &format!("not over a file| export reference --output {exists}"),
    ];
    let said = cases.map(|case| complaint(&folder, case)).join("\n");
    insta::assert_snapshot!(said.replace(folder.path().to_str().unwrap(), "FOLDER"), @r#"
    no such flag: 64 error: unexpected argument '--colour' found
    no such command: 64 error: unrecognized subcommand 'measure'
    listen nowhere: 64 error: invalid value 'nowhere' for '--listen <ADDR:PORT>': invalid socket address syntax
    nothing given: 64 error: --target: give the address of the server, for example http://127.0.0.1:8000; --contexts: give at least one context length, for example 8K,16K; --concurrency: give at least one number of requests at once, for example 1,2,4
    wrong scheme: 64 error: --target: "ftp" can't be measured: the address starts with http:// or https://
    10,000 cells: 64 error: --contexts: 10100 cells are more than one run holds (1024): take fewer contexts or levels
    no cells: 64 error: --contexts: give at least one context length, for example 8K,16K; --concurrency: give at least one number of requests at once, for example 1,2,4
    no such plan: 64 error: --plan no-such-file.json: No such file or directory (os error 2)
    broken plan: 64 error: --plan FOLDER/broken.json: EOF while parsing an object at line 1 column 1
    unknown key in plan: 64 error: --plan FOLDER/unknown.json: unknown field `colour`, expected one of `target`, `model`, `name`, `contexts`, `concurrency`, `leave_out`, `prefill_contexts`, `duration`, `max_output`, `prompts`, `load`, `slo`, `corpus`, `questions`, `temperature`, `top_p`, `end_of_text`, `min_output`, `order`, `repeats`, `client_check`, `seed` at line 1 column 24
    no key in variable: 64 error: --api-key-env: the variable SPEEDMATRIX_KEY is not set to a text
    no such preset: 64 error: --preset: there is no simulator preset `none`; use one of: reference, exact, exact-speculative, small
    no such script: 64 error: --script: `dance` is no misbehaviour; use one of: stall-after:K, reset-after:K, close-after:K, error-after:K, no-done, 429[:S], 503, html, slow-header:MS, never-answer, comments, split, glue:N, early-role, zero-usage, reasoning:K, tool-calls
    no such run: 64 error: there is no run "abc" in the store
    no run id: 64 error: "A_B" is not a run id: expected 1 to 64 lower-case letters, digits and dashes
    no such format: 64 error: invalid value 'pdf' for '--format <FORMAT>': "pdf" is not an export format: choose md, html, csv or json
    not over a file: 74 error: FOLDER/exists.md can't be written (File exists (os error 17)): choose another file with --output
    "#);
    assert_eq!(std::fs::read_to_string(exists).unwrap(), "mine");
}

#[test]
fn who_does_not_answer_rightly_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let simulator = Running::simulator();
    let places = [
        (answering("401 Unauthorized", "text/plain", "no"), "http://NO-KEY"),
        (answering("404 Not Found", "text/plain", "no"), "http://NOTHING"),
        (answering("200 OK", "text/html", "<html><title>Welcome</title></html>"), "http://PAGE"),
        (format!("http://{}", taken.local_addr().unwrap()), "http://TAKEN"),
        (simulator.url().to_owned(), "http://SIM"),
    ];
    let cases = [
        "nobody there| run --contexts 1K --concurrency 1 --target http://127.0.0.1:1",
        "no key| run --contexts 1K --concurrency 1 --target http://NO-KEY",
        "nothing there| run --contexts 1K --concurrency 1 --target http://NOTHING",
        "a page| run --contexts 1K --concurrency 1 --target http://PAGE",
        "no such model| run --contexts 1K --concurrency 1 --model none --target http://SIM",
        "probe nobody| probe http://127.0.0.1:1",
        "watch nobody| watch http://127.0.0.1:1",
        "watch no agent| watch http://NOTHING",
    ];
    let mut said = Vec::new();
    for case in cases {
        let case = places.iter().fold(case.to_owned(), |case, (address, name)| case.replace(name, address));
        said.push(complaint(&folder, &case));
    }
    let address = places[3].0.trim_start_matches("http://");
    said.push(complaint(&folder, &format!("port in use| serve --listen {address}")));
    let said = places.iter().fold(said.join("\n"), |said, (address, name)| {
        said.replace(address, name).replace(address.trim_start_matches("http://"), name.trim_start_matches("http://"))
    });
    insta::assert_snapshot!(said, @r#"
    nobody there: 69 error: nothing answers at http://127.0.0.1:1/v1/models (connection refused): check that the server has started and the port is right
    no key: 69 error: http://NO-KEY/v1/models answered 401: it wants a key, and none was given: enter the server's api key
    nothing there: 69 error: http://NOTHING/v1/models answered 404: no model list there: check the address and its base path (without /v1)
    a page: 69 error: http://PAGE/v1/models answered with a web page ("Welcome"): that is a site or a proxy, give the model server's address
    no such model: 69 error: the server at http://SIM has no model "none": it offers "exact"
    probe nobody: 69 error: nothing answers at http://127.0.0.1:1/v1/models (connection refused): check that the server has started and the port is right
    watch nobody: 69 error: nothing answers at http://127.0.0.1:1/api/v1/runs (connection refused): check that the server has started and the port is right
    watch no agent: 69 error: http://NOTHING answered 404: give the address of a Speedmatrix agent, as its first line prints it
    port in use: 74 error: TAKEN is in use: stop the program that listens there, or choose another port with --listen 127.0.0.1:0
    "#);
}

/// Status and first line of what is said about `name| arguments`; no results are printed.
fn complaint(folder: &TempDir, case: &str) -> String {
    let (name, arguments) = case.split_once('|').unwrap();
    let output = finish(folder, &arguments.split_whitespace().collect::<Vec<_>>());
    assert_eq!(out(&output), "", "{name}");
    format!("{name}: {} {}", output.status.code().unwrap(), err(&output).lines().next().unwrap_or_default())
}

#[test]
fn the_sample_run_is_exported_without_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let row = "| Sustained decode | 8K | 1 | Valid | 223.5 | 222.3 | 92 ms | 4.5 ms | 1.0 | 1 | 6,702 | 30.0 s |";
    let output = finish(&folder, &["export", "reference", "--format", "md"]);
    assert!(out(&output).lines().any(|line| line == row), "{}", out(&output));
    let path = folder.path().join("new.csv");
    let output = finish(&folder, &["export", "reference", "--format", "csv", "--output", path.to_str().unwrap()]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(0), ""));
    assert!(std::fs::read_to_string(path).unwrap().lines().count() > 70);
    // Into a folder, twice: two files, and nothing outside of it.
    let into = folder.path().join("files");
    std::fs::create_dir(&into).unwrap();
    for _ in 0..2 {
        let output = finish(&folder, &["export", "reference", "--format", "html", "--output", into.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    }
    let mut names: Vec<String> =
        into.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let stem = "speedmatrix-deepseek-v4-flash-dspark-on-h200-nvl-141gb-2-reference";
    assert_eq!(names, [format!("{stem}-2.html"), format!("{stem}.html")]);
    assert!(std::fs::read_to_string(into.join(&names[0])).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn a_run_is_measured_stored_listed_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = Running::simulator();
    let grid = ["--contexts", "1K", "--concurrency", "1,2", "--duration", "1s", "--max-output", "64"];
    let run = |more: &[&str]| finish(&folder, &[&["run", "--target", simulator.url()], &grid[..], more].concat());
    let table = run(&["--name", "mine\u{1b}[2J"]);
    assert_eq!(table.status.code(), Some(0), "{}", err(&table));
    let rows =
        out(&table).lines().filter(|line| line.starts_with("Sustained decode") && line.contains("1.0 s")).count();
    assert_eq!(rows, 2, "{}", out(&table));
    assert!(err(&table).contains("simulated: mine [2J"), "{}", err(&table));

    let json = run(&["--json"]);
    let envelopes: Vec<Envelope> = out(&json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let state = RunState::fold("a".parse().unwrap(), &envelopes).unwrap().unwrap();
    assert_eq!(state.status, RunStatus::Ended { outcome: RunOutcome::Finished });

    let listed = out(&finish(&folder, &["runs"]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let id: RunId = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let exported = out(&finish(&folder, &["export", id.as_str()]));
    assert!(exported.contains("| Sustained decode | 1K | 2 |"), "{exported}");
    let summaries = out(&finish(&folder, &["runs", "--json"]));
    assert!(summaries.lines().all(|line| serde_json::from_str::<RunSummary>(line).is_ok()));
}

#[tokio::test]
async fn ctrl_c_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.sqlite3");
    let simulator = Running::simulator();
    let grid = ["--contexts", "1K,2K,3K,4K", "--concurrency", "1,2,4,8", "--duration", "4s", "--max-output", "64"];
    let more = ["--store", store.to_str().unwrap()];
    let mut run =
        Running::start(&[&["run", "--json", "--target", simulator.url()], &grid[..], &more].concat(), Stdio::null());
    let mut line = String::new();
    while !line.contains("\"cell_finished\"") {
        line.clear();
        assert_ne!(run.out.read_line(&mut line).unwrap(), 0);
    }
    run.interrupt();
    let mut rest = String::new();
    run.out.read_to_string(&mut rest).unwrap();
    assert_eq!(run.exit_status(), 2);
    let last: Envelope = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last.event, RunEvent::RunFinished { outcome: RunOutcome::Cancelled });
    let store = Store::open(&store, Access::Read).await.unwrap();
    let run = &store.list().await.unwrap()[0];
    assert_eq!(run.status, RunStatus::Ended { outcome: RunOutcome::Cancelled });
    assert!(run.cells_done > 0 && store.load(&run.id).await.unwrap().cells.iter().any(|cell| cell.result().is_some()));
}

pub(crate) fn serve(store: &Path, more: &[&str]) -> Running {
    serve_logging(store, more, Stdio::null())
}

pub(crate) fn serve_logging(store: &Path, more: &[&str], log: Stdio) -> Running {
    let store = store.to_str().unwrap();
    let agent = Running::start(&[&["serve", "--listen", "127.0.0.1:0", "--store", store], more].concat(), log);
    assert!(agent.url().starts_with("http"), "{}", agent.first_line);
    agent
}

#[tokio::test]
async fn another_agents_run_is_watched_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let agent = serve(&folder.path().join("runs.sqlite3"), &[]);
    let url = format!("{}/runs/reference", agent.url());
    let watched = tokio::task::spawn_blocking(move || program().args(["watch", &url]).output().unwrap()).await.unwrap();
    assert_eq!(watched.status.code(), Some(0), "{}", err(&watched));
    assert_eq!(out(&watched).lines().filter(|line| line.starts_with("Sustained decode")).count(), 64);
    let none = format!("{}/runs/none", agent.url());
    let none = tokio::task::spawn_blocking(move || program().args(["watch", &none]).output().unwrap()).await.unwrap();
    assert_eq!(none.status.code(), Some(69));
}

#[test]
fn a_reader_who_leaves_ends_the_output_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let mut export = program()
        .args(["export", "reference", "--format", "json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}
