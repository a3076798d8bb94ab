//! Secrets in every spelling, through the whole program: they are in the server's words and variables and in all that it
//! answers, and must be in nothing that the program prints, logs, exports or stores.

use std::process::Output;

use futures_util::StreamExt as _;
use speedmatrix_agent::store::{Access, Store, Which};
use speedmatrix_shared::{
    api::{ProbeRequest, StartRun, Started, path},
    plan::PlanDraft,
    raw::codec,
};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::{
    cli::program,
    host::{OWN_KEY, REPEATED, Server},
    server::agent,
    spellings::{Spelling, leaks, spellings},
};

/// The target's own key.
const KEY: &str = "SPEEDMATRIX_TEST_KEY";
/// Runs: one whose requests are refused in its cells, one that is refused at once.
const RUNS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_left_anywhere() {
    let all = spellings();
    assert!(all.len() >= 60);
    let of = |rooms: &'static [&'static str]| all.iter().filter(move |spelling| rooms.contains(&spelling.room));
    let words: Vec<String> = of(&["argv", "url", "text"]).flat_map(|spelling| spelling.words.clone()).collect();
    let variables: Vec<(String, String)> =
        of(&["env"]).map(|spelling| (spelling.words[0].clone(), spelling.words[1].clone())).collect();
    let server = Server::start(&words, &variables);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let store = path.to_str().unwrap();
    let key = Spelling::secret(OWN_KEY);
    let run = |arguments: &[&str]| {
        let mut program = program();
        program.args(arguments).args(["--store", store]).env("SPEEDMATRIX_LOG", "trace").env(KEY, &key);
        program.output().unwrap()
    };
    let search = |what: &str, output: &Output| {
        let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        [leaks(&format!("{what}, out"), &out), leaks(&format!("{what}, log"), &log)].concat()
    };
    let mut probe = program();
    let probe = probe.args(["probe", &server.url, "--api-key-env", KEY]).env("SPEEDMATRIX_LOG", "trace").env(KEY, &key);
    let probed = probe.output().unwrap();
    let shown = String::from_utf8_lossy(&probed.stdout).into_owned();
    let mut found = search("probe", &probed);
    for _ in 0..RUNS {
        let plan = ["--contexts", "1K", "--concurrency", "1,2,4", "--prompts", "cold", "--duration", "1s", "--json"];
        let target = ["run", "--target", server.url.as_str(), "--api-key-env", KEY];
        found.extend(search("run", &run(&[target.as_slice(), plan.as_slice()].concat())));
    }
    let listed = Store::open(&path, Access::Read).await.unwrap();
    let runs = listed.list().await.unwrap();
    assert_eq!(runs.len(), RUNS);
    let (mut failures, mut names) = (0, 0);
    for summary in &runs {
        for format in ["md", "html", "csv", "json"] {
            found.extend(search(format, &run(&["export", summary.id.as_str(), "--format", format])));
        }
        let state = listed.load(&summary.id).await.unwrap();
        for cell in state.cells.iter().map(|cell| cell.id) {
            // Packed, so that a search in the file would not see it.
            let Some(bytes) = listed.raw(&summary.id, cell, Which::Last).await.unwrap() else { continue };
            let raw = format!("{:?}", codec::decode(&bytes).unwrap());
            failures += raw.matches("Failed(RequestFailure").count();
            names += raw.matches("stop <redacted>").count();
            found.extend(leaks("raw", &raw));
        }
    }
    drop(listed);
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
        found.extend(leaks(&file.file_name().to_string_lossy(), &text));
    }
    assert!(found.is_empty(), "{} leaks:\n{}", found.len(), found.join("\n"));
    // The search looked at something: refusals with all spellings were stored, and the command line is known where it can
    // be.
    assert!(failures * REPEATED >= all.len(), "{failures} refusals");
    assert!(names > 0, "no reason was kept");
    assert!(!cfg!(target_os = "linux") || shown.contains("--api-key '<redacted>'"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_told_over_http_or_the_live_socket() {
    let server = Server::start(&[], &[]);
    let agent = agent().await;
    let key = Spelling::secret(OWN_KEY);
    let plan = PlanDraft {
        target: server.url.clone(),
        contexts: "1K".into(),
        concurrency: "1,4".into(),
        prompts: "cold".into(),
        duration: "1s".into(),
        ..PlanDraft::default()
    };
    let start = StartRun { plan, api_key: Some(key.clone()), ..StartRun::default() };
    let started = agent.post(path::RUNS, serde_json::to_string(&start).unwrap()).await;
    let mut found = leaks("start", &started.body);
    let run = started.json::<Started>().id;
    let (mut socket, _) = connect_async(agent.live(run.as_str())).await.unwrap();
    let mut told = String::new();
    while !told.contains("\"run_finished\"") {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        told = text.to_string();
        found.extend(leaks("live", &told));
    }
    agent.runs.ended(&run).await;
    let probe = ProbeRequest { target: server.url.clone(), model: None, api_key: Some(key) };
    let probed = agent.post(path::PROBE, serde_json::to_string(&probe).unwrap()).await.body;
    let named = "model-<redacted>";
    assert!(probed.contains(named) && probed.contains("1.0+<redacted>"), "{probed}");
    found.extend(leaks("probe", &probed));
    let state = agent.state(&run).await;
    let of_run = [path::RUN, path::LABELS].map(|template| path::of(template, &run));
    let exports =
        ["md", "html", "csv", "json"].map(|format| format!("{}?format={format}", path::of(path::EXPORT, &run)));
    let of_cells = state
        .cells
        .iter()
        .flat_map(|cell| [path::CELL, path::REQUESTS].map(|template| path::of_cell(template, &run, cell.id)));
    let all = [path::RUNS, path::INFO, path::METRICS].map(ToOwned::to_owned);
    let mut said = 0;
    for address in all.into_iter().chain(of_run).chain(exports).chain(of_cells) {
        let answer = agent.get(&address).await;
        assert!(answer.status.is_success() || answer.status == 404, "{address}: {} {}", answer.status, answer.body);
        said += answer.body.matches("&lt;redacted&gt;").count() + answer.body.matches("<redacted>").count();
        found.extend(leaks(&address, &answer.body));
    }
    assert!(found.is_empty(), "{} leaks:\n{}", found.len(), found.join("\n"));
    assert!(said > 0, "nothing of the server was told");
}
