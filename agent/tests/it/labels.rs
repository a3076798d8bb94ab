//! Labels, deletion and import over HTTP: what people do on the list of runs.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use speedmatrix_shared::{
    api::{Imported, Problem, RunSummary, StartRun, Started, path},
    export::json,
    id::RunId,
    label::Labels,
    sample,
    state::RunState,
    typed::{TypedFact, TypedFacts},
};

use crate::server::{Agent, Answer, agent};

async fn patch(agent: &Agent, run: &str, json: &str) -> Answer {
    let request = Request::patch(format!("/api/v1/runs/{run}")).header(header::CONTENT_TYPE, "application/json");
    agent.ask(request.body(Body::from(json.to_owned())).unwrap()).await
}

async fn delete(agent: &Agent, run: &str) -> Answer {
    agent.ask(Request::delete(format!("/api/v1/runs/{run}")).body(Body::empty()).unwrap()).await
}

async fn restore(agent: &Agent, run: &str) -> Answer {
    agent.post(&format!("/api/v1/runs/{run}/restore"), "").await
}

async fn import(agent: &Agent, name: &str, bytes: impl Into<Body>) -> Answer {
    agent.ask(Request::post(format!("{}?name={name}", path::IMPORT)).body(bytes.into()).unwrap()).await
}

async fn listed(agent: &Agent) -> Vec<String> {
    let runs: Vec<RunSummary> = agent.get(path::RUNS).await.json();
    runs.iter().map(|run| format!("{} {}", run.id, run.name())).collect()
}

/// The sample under another id, as a file.
fn exported(id: &str) -> String {
    json::render(&RunState { id: id.parse().unwrap(), ..sample::reference() })
}

const TITLE: &str = "DeepSeek-V4-Flash-DSpark on H200 NVL 141GB ×2";

#[tokio::test]
async fn a_run_is_renamed_deleted_and_restored() {
    let agent = agent().await;
    assert_eq!(import(&agent, "a.json", exported("abc")).await.status, StatusCode::CREATED);
    let answer = patch(&agent, "abc", "{\"revision\":0,\"title\":\"Mine\",\"tags\":[\"x\"],\"notes\":\"<b>\"}").await;
    let labels: Labels = answer.json();
    assert_eq!((labels.revision, labels.notes.as_str()), (1, "<b>"));
    assert_eq!(agent.get("/api/v1/runs/abc/labels").await.json::<Labels>(), labels);
    let late = patch(&agent, "abc", "{\"revision\":0,\"title\":\"Theirs\"}").await;
    let problem: Problem = late.json();
    assert_eq!((problem.status, problem.code.as_str()), (409, "labels_changed"));
    assert_eq!(problem.labels.as_deref(), Some(&labels));
    assert_eq!(listed(&agent).await, ["abc Mine".to_owned(), format!("reference {TITLE}")]);
    let export = agent.get("/api/v1/runs/abc/export?format=md").await;
    assert!(
        export.body.starts_with("# Mine\n") && export.body.contains("## Notes\n\n```\n<b>\n```"),
        "{}",
        export.body
    );
    assert!(export.header(header::CONTENT_DISPOSITION).contains("speedmatrix-mine-abc.md"));

    assert_eq!(delete(&agent, "abc").await.status, StatusCode::NO_CONTENT);
    assert_eq!(listed(&agent).await, [format!("reference {TITLE}")]);
    assert_eq!(agent.get("/api/v1/runs/abc").await.status, StatusCode::NOT_FOUND);
    assert_eq!(restore(&agent, "abc").await.status, StatusCode::NO_CONTENT);
    assert_eq!(listed(&agent).await[0], "abc Mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_run_is_not_deleted() {
    let agent = agent().await;
    let run = agent.start(agent.plan()).await;
    let problem: Problem = delete(&agent, run.as_str()).await.json();
    assert_eq!((problem.status, problem.code.as_str()), (409, "run_running"));
    assert_eq!(patch(&agent, run.as_str(), "{\"revision\":0,\"title\":\"Going\"}").await.status, StatusCode::OK);
    agent.runs.shutdown().await;
    agent.runs.ended(&run).await;
    assert_eq!(listed(&agent).await[0], format!("{run} Going"));
    assert_eq!(delete(&agent, run.as_str()).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_file_becomes_a_run_that_says_where_it_came_from() {
    let agent = agent().await;
    let [first]: [Imported; 1] = import(&agent, "night%20run.json", exported("abc")).await.json();
    assert_eq!((first.id.as_str(), first.name.as_str(), first.known), ("abc", TITLE, false));
    let runs: Vec<RunSummary> = agent.get(path::RUNS).await.json();
    let note = runs[0].labels.imported.clone().unwrap();
    assert_eq!(note.file.as_deref(), Some("night run.json"));
    // The very same again is no second run.
    let second = import(&agent, "b.json", exported("abc")).await;
    assert_eq!((second.status, second.json::<Vec<Imported>>()[0].known), (StatusCode::OK, true));
    let [sample]: [Imported; 1] = import(&agent, "c.json", json::render(&sample::reference())).await.json();
    assert_eq!((sample.id.as_str(), sample.known), (RunId::REFERENCE, true));
    // Another run of that id gets one of its own.
    let other = RunState { id: "abc".parse().unwrap(), started_unix_ms: 77, ..sample::reference() };
    let [other]: [Imported; 1] = import(&agent, "d.json", json::render(&other)).await.json();
    assert!(!other.known && other.id.as_str() != "abc");
    let state: RunState = agent.get(&path::of(path::RUN, &other.id)).await.json();
    assert_eq!((state.started_unix_ms, state.cells.len()), (77, 73));
    // What was exported here comes back with its labels.
    patch(&agent, "abc", "{\"revision\":0,\"title\":\"Mine\",\"tags\":[\"night\"]}").await;
    let file = agent.get("/api/v1/runs/abc/export?format=json").await.body.replace("\"abc\"", "\"abd\"");
    let [back]: [Imported; 1] = import(&agent, "e.json", file).await.json();
    let labels: Labels = agent.get(&path::of(path::LABELS, &back.id)).await.json();
    assert_eq!((labels.title.as_deref(), labels.tags.as_slice()), (Some("Mine"), &["night".to_owned()][..]));
}

#[tokio::test]
async fn what_is_wrong_with_labels_and_files_is_a_problem() {
    let agent = agent().await;
    import(&agent, "a.json", exported("abc")).await;
    let mut said = Vec::new();
    let mut note = |what: &str, answer: Answer| {
        assert_eq!(answer.header(header::CONTENT_TYPE), "application/problem+json", "{what}: {}", answer.body);
        let problem: Problem = answer.json();
        assert_eq!(problem.status, answer.status.as_u16());
        said.push(format!("{what}: {} {}: {}", problem.status, problem.code, problem.detail));
    };
    note("sample renamed", patch(&agent, "reference", "{\"revision\":0,\"title\":\"x\"}").await);
    note("sample deleted", delete(&agent, "reference").await);
    note("unknown run", patch(&agent, "none", "{\"revision\":0}").await);
    note("unknown key", patch(&agent, "abc", "{\"revision\":0,\"colour\":1}").await);
    note("no revision", patch(&agent, "abc", "{\"title\":\"x\"}").await);
    note("long name", patch(&agent, "abc", &format!("{{\"revision\":0,\"title\":\"{}\"}}", "x".repeat(10_001))).await);
    note("unknown deleted", delete(&agent, "none").await);
    note("unknown restored", restore(&agent, "none").await);
    note("foreign file", import(&agent, "x.json", "{\"benchmarks\":[]}").await);
    note("no json", import(&agent, "x.json", "model,tok/s").await);
    note("cut file", import(&agent, "x.json", exported("abd")[..1_000].to_owned()).await);
    note("newer file", import(&agent, "x.json", exported("abd").replacen("\"version\": 1", "\"version\": 9", 1)).await);
    note("huge file", import(&agent, "x.json", vec![b' '; 33 * 1_024 * 1_024]).await);
    insta::assert_snapshot!(said.join("\n"), @r#"
    sample renamed: 409 run_read_only: the sample run can't be changed: it is a published page and belongs to the program
    sample deleted: 409 run_read_only: the sample run can't be changed: it is a published page and belongs to the program
    unknown run: 404 not_found: there is no run "none" in the store
    unknown key: 422 body_invalid: the body was not understood (Failed to deserialize the JSON body into the target type: colour: unknown field `colour`, expected one of `revision`, `title`, `tags`, `notes`, `typed`, `pinned` at line 1 column 22): send JSON of that kind
    no revision: 422 body_invalid: the body was not understood (Failed to deserialize the JSON body into the target type: missing field `revision` at line 1 column 13): send JSON of that kind
    long name: 422 label_invalid: the name has 10001 characters and 10000 are allowed: shorten it
    unknown deleted: 404 not_found: there is no run "none" in the store
    unknown restored: 404 not_found: there is no run "none" in the store
    foreign file: 422 file_foreign: the file is JSON, but neither a run of Speedmatrix nor a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm: choose one of those
    no json: 422 file_broken: the file is not JSON (expected value at line 1 column 1): choose a run's JSON file, or a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm
    cut file: 422 file_broken: the file ends in the middle (EOF while parsing a string at line 37 column 11): it was cut short, so copy or export it again
    newer file: 422 file_newer: the file was written by a newer Speedmatrix (layout 9, this one reads 1): update Speedmatrix
    huge file: 413 file_too_large: the file has more than 32 MB and is not read: export runs one by one
    "#);
}

#[tokio::test]
async fn what_is_typed_about_a_server_is_kept_with_its_run_and_marked() {
    let agent = agent().await;
    let typed = TypedFacts::from([
        (TypedFact::Os, "plan9 ".to_owned()),
        (TypedFact::Gpu, "another".to_owned()),
        (TypedFact::LaunchCommand, "serve m --api-key s3cret-key".to_owned()),
    ]);
    let start = |typed| serde_json::to_string(&StartRun { plan: agent.plan(), typed, api_key: None }).unwrap();
    let long = TypedFacts::from([(TypedFact::Os, "x".repeat(201))]);
    let refused = agent.post(path::RUNS, start(long)).await;
    assert_eq!((refused.status, agent.runs.list().await.unwrap().len()), (StatusCode::UNPROCESSABLE_ENTITY, 0));

    let run = agent.post(path::RUNS, start(typed)).await.json::<Started>().id;
    agent.runs.stop(&run).await.unwrap();
    agent.runs.ended(&run).await;
    let labels: Labels = agent.get(&path::of(path::LABELS, &run)).await.json();
    assert_eq!(labels.typed[&TypedFact::Os], "plan9");
    let file = agent.get(&format!("{}?format=md", path::of(path::EXPORT, &run))).await.body;
    assert!(file.contains("| OS | plan9 (typed by hand) |"), "{file}");
    assert!(!file.contains("another"), "what the server tells stays: {file}");
    assert!(file.contains("## Launch command (typed by hand)"), "{file}");
    assert!(file.contains("--api-key <redacted>") && !file.contains("s3cret"), "{file}");
}

#[tokio::test]
async fn the_list_is_sent_again_when_it_is_another() {
    let agent = agent().await;
    let look = async |tag: &str| {
        let request = Request::get(path::RUNS).header(header::IF_NONE_MATCH, tag);
        agent.ask(request.body(Body::empty()).unwrap()).await
    };
    let tag = look("").await.header(header::ETAG).to_owned();
    assert_eq!(look(&tag).await.status, StatusCode::NOT_MODIFIED);
    assert_eq!(import(&agent, "a.json", exported("abc")).await.status, StatusCode::CREATED);
    assert_eq!(look(&tag).await.status, StatusCode::OK);
    assert_eq!(delete(&agent, "abc").await.status, StatusCode::NO_CONTENT);
    assert_eq!(look(&tag).await.status, StatusCode::NOT_MODIFIED);
}
