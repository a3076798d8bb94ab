//! Secrets in every spelling, through the whole program: they are in the server's words and variables and in all that it
//! answers, and must be in nothing that the program prints, logs, exports or stores.

use std::process::Output;

use speedmatrix_agent::store::{Access, Store, Which};
use speedmatrix_shared::raw::codec;

use crate::{
    cli::program,
    host::{REPEATED, Server},
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
    let key = Spelling::secret(99);
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
    let mut failures = 0;
    for summary in &runs {
        for format in ["md", "csv", "json"] {
            found.extend(search(format, &run(&["export", summary.id.as_str(), "--format", format])));
        }
        let state = listed.load(&summary.id).await.unwrap();
        for cell in state.cells.iter().map(|cell| cell.id) {
            // Packed, so that a search in the file would not see it.
            let Some(bytes) = listed.raw(&summary.id, cell, Which::Last).await.unwrap() else { continue };
            let raw = format!("{:?}", codec::decode(&bytes).unwrap());
            failures += raw.matches("Failed(RequestFailure").count();
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
    assert!(!cfg!(target_os = "linux") || shown.contains("--api-key '<redacted>'"), "{shown}");
}
