//! The HTTP interface, the live socket and the page, with real clients on port 0 against the simulator.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use speedmatrix_agent::{
    runs::Runs,
    server::{AllowedHosts, AppState, Door, Manner, Reached, app, serve},
    sim::{Sim, SimConfig, SimThread},
    store::{Access, Store},
};
use speedmatrix_shared::{
    api::{Info, Problem, RunSummary, SavedTarget, ServerMessage, StartRun, Started, path},
    event::{RunEvent, RunOutcome},
    id::RunId,
    plan::PlanDraft,
    state::{Applied, CellState, RunState, RunStatus},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const REFERENCE_ROW: &str =
    "| Sustained decode | 8K | 1 | Valid | 223.5 | 222.3 | 92 ms | 4.5 ms | 1.0 | 1 | 6,702 | 30.0 s |";

/// An agent with a simulated server beside it.
pub(crate) struct Agent {
    pub(crate) app: Router,
    pub(crate) runs: Arc<Runs>,
    pub(crate) address: SocketAddr,
    simulator: SimThread,
    _folder: TempDir,
}

pub(crate) async fn agent() -> Agent {
    agent_behind(Door::Open).await
}

/// An agent that lets in whom its door says.
pub(crate) async fn agent_behind(door: Door) -> Agent {
    agent_reached(door, Reached::default()).await
}

/// An agent that lets in whom its door says, reached in that way.
pub(crate) async fn agent_reached(door: Door, reached: Reached) -> Agent {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
    let simulator = tokio::task::spawn_blocking(|| {
        let config = SimConfig { clock_factor: 20.0, ..SimConfig::preset("exact").unwrap() };
        Sim::start_on_thread(config, "127.0.0.1:0".parse().unwrap()).unwrap()
    });
    let simulator = simulator.await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let runs = Runs::new(store);
    let targets = vec![SavedTarget { name: "simulated".into(), url: simulator.base_url(), demo_plan: None }];
    let hosts = AllowedHosts::new(address, ["bench.example.org".to_owned()]);
    let app = app(AppState::new(Arc::clone(&runs), targets, hosts, door).reached(reached));
    tokio::spawn(serve(listener, app.clone(), Manner::default(), CancellationToken::new()));
    Agent { app, runs, address, simulator, _folder: folder }
}

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: axum::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Agent {
    pub(crate) async fn ask(&self, mut request: Request<Body>) -> Answer {
        request.headers_mut().entry(header::HOST).or_insert(header::HeaderValue::from_static("localhost:7878"));
        let (head, body) = self.app.clone().oneshot(request).await.unwrap().into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        Answer { status: head.status, headers: head.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, json: impl Into<String>) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.ask(request.body(Body::from(json.into())).unwrap()).await
    }

    pub(crate) fn plan(&self) -> PlanDraft {
        PlanDraft {
            target: self.simulator.base_url(),
            contexts: "1K,2K".into(),
            concurrency: "1,2".into(),
            duration: "2s".into(),
            max_output: "64".into(),
            ..PlanDraft::default()
        }
    }

    pub(crate) async fn start(&self, plan: PlanDraft) -> RunId {
        let body = serde_json::to_string(&StartRun { plan, ..StartRun::default() }).unwrap();
        let answer = self.post(path::RUNS, body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        answer.json::<Started>().id
    }

    pub(crate) async fn state(&self, run: &RunId) -> RunState {
        self.get(&path::of(path::RUN, run)).await.json()
    }

    /// Address of a run's live socket.
    pub(crate) fn live(&self, run: &str) -> String {
        format!("ws://{}{}", self.address, path::LIVE.replace("{id}", run))
    }

    async fn viewer(&self, run: &RunId) -> Viewer {
        let url = self.live(run.as_str());
        let mut viewer = Viewer { socket: connect_async(url).await.unwrap().0, state: None, most_watching: 0 };
        assert!(matches!(viewer.next().await, ServerMessage::Hello { .. }));
        assert!(matches!(viewer.next().await, ServerMessage::Snapshot { .. }));
        viewer
    }
}

/// A page that folds what its socket tells.
struct Viewer {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    state: Option<RunState>,
    most_watching: u32,
}

impl Viewer {
    async fn next(&mut self) -> ServerMessage {
        let text = loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => break text,
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        };
        let message: ServerMessage = serde_json::from_str(&text).unwrap();
        match &message {
            ServerMessage::Snapshot { state, .. } => self.state = Some(state.as_ref().clone()),
            ServerMessage::Event { envelope } => {
                assert_eq!(self.state.as_mut().unwrap().apply(envelope), Ok(Applied::New));
            }
            ServerMessage::Presence { watching, .. } => self.most_watching = self.most_watching.max(*watching),
            ServerMessage::Hello { .. } | ServerMessage::Gauge { .. } => {}
        }
        message
    }

    async fn until(&mut self, wanted: impl Fn(&RunState) -> bool) -> &RunState {
        while !wanted(self.state.as_ref().unwrap()) {
            self.next().await;
        }
        self.state.as_ref().unwrap()
    }
}

fn is_over(state: &RunState) -> bool {
    state.status != RunStatus::Running
}

fn has_a_result(state: &RunState) -> bool {
    state.cells.iter().any(|cell| cell.result().is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_seen_alike_by_all_whenever_they_join() {
    let agent = agent().await;
    let run = agent.start(agent.plan()).await;
    let mut first = agent.viewer(&run).await;
    first.until(has_a_result).await;
    let mut second = agent.viewer(&run).await;
    let seen = second.until(is_over).await.clone();
    assert_eq!(first.until(is_over).await, &seen);
    assert_eq!(agent.state(&run).await, seen);
    assert_eq!(seen.status, RunStatus::Ended { outcome: RunOutcome::Finished });
    assert!(seen.is_simulated());
    assert!(seen.cells.iter().all(|cell| cell.result().is_some()), "{seen:?}");
    // After the end the sockets stay and say who watches; who comes now sees the same.
    let mut late = agent.viewer(&run).await;
    assert_eq!(late.state.as_ref(), Some(&seen));
    while late.most_watching < 3 {
        assert!(matches!(late.next().await, ServerMessage::Presence { .. }));
    }
    agent.runs.ended(&run).await;
    let listed: Vec<RunSummary> = agent.get(path::RUNS).await.json();
    let sample = speedmatrix_shared::sample::reference();
    assert_eq!(listed, [&seen, &sample].map(speedmatrix_shared::facts::summary));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_run_keeps_what_was_measured() {
    let agent = agent().await;
    let run = agent.start(PlanDraft { contexts: "1K,2K,3K,4K,5K,6K,7K,8K".into(), ..agent.plan() }).await;
    let mut viewer = agent.viewer(&run).await;
    viewer.until(has_a_result).await;
    let busy =
        agent.post(path::RUNS, serde_json::to_string(&StartRun { plan: agent.plan(), ..StartRun::default() }).unwrap());
    let busy: Problem = busy.await.json();
    assert_eq!((busy.status, busy.code.as_str()), (409, "busy"));
    assert_eq!(agent.post(&path::of(path::STOP, &run), "").await.status, StatusCode::ACCEPTED);
    let state = viewer.until(is_over).await.clone();
    assert_eq!(state.status, RunStatus::Ended { outcome: RunOutcome::Cancelled });
    assert!(has_a_result(&state));
    assert!(state.cells.iter().any(|cell| cell.state == CellState::NotReached));
    agent.runs.ended(&run).await;
    assert_eq!(agent.state(&run).await, state);
    let again: Problem = agent.post(&path::of(path::STOP, &run), "").await.json();
    assert_eq!(again.code, "run_over");
    // The place is free again.
    let next = agent.start(agent.plan()).await;
    agent.runs.shutdown().await;
    assert_eq!(agent.state(&next).await.status, RunStatus::Ended { outcome: RunOutcome::Cancelled });
    let stopping: Problem = agent
        .post(path::RUNS, serde_json::to_string(&StartRun { plan: agent.plan(), ..StartRun::default() }).unwrap())
        .await
        .json();
    assert_eq!(stopping.code, "stopping");
}

#[tokio::test]
async fn what_is_wrong_is_said_as_a_problem() {
    let agent = agent().await;
    let mut said = Vec::new();
    let mut note = |what: &str, answer: Answer| {
        assert_eq!(answer.header(header::CONTENT_TYPE), "application/problem+json", "{what}: {}", answer.body);
        let problem: Problem = answer.json();
        assert_eq!(problem.status, answer.status.as_u16());
        said.push(format!("{what}: {} {}: {}", problem.status, problem.code, problem.detail));
        said.extend(problem.fields.iter().map(|e| format!("    {:?}: {}", e.field, e.message)));
    };
    let plan = |plan: &str| format!("{{\"plan\":{plan}}}");
    note("no json", agent.post(path::RUNS, "nonsense").await);
    note("not json", agent.ask(Request::post(path::RUNS).body(Body::from("plan=1")).unwrap()).await);
    note("unknown key", agent.post(path::RUNS, plan("{\"colour\":\"red\"}")).await);
    note("empty plan", agent.post(path::RUNS, plan("{}")).await);
    note(
        "bad plan",
        agent.post(path::RUNS, plan("{\"target\":\"ftp://x\",\"contexts\":\"8Q\",\"concurrency\":\"1\"}")).await,
    );
    note("too large", agent.post(path::RUNS, "x".repeat(300 * 1_024)).await);
    note("nobody there", agent.post(path::PROBE, "{\"target\":\"http://127.0.0.1:1\"}").await);
    note("unknown run", agent.get("/api/v1/runs/0123-abc").await);
    note("no run id", agent.get("/api/v1/runs/..%2Fetc").await);
    note("stop unknown", agent.post("/api/v1/runs/abc/stop", "").await);
    note("stop sample", agent.post("/api/v1/runs/reference/stop", "").await);
    note("no socket", agent.get("/api/v1/runs/reference/live").await);
    note("no format", agent.get("/api/v1/runs/reference/export").await);
    note("bad format", agent.get("/api/v1/runs/reference/export?format=pdf").await);
    note("no such path", agent.get("/api/v1/nothing").await);
    note("wrong method", agent.ask(Request::delete(path::RUNS).body(Body::empty()).unwrap()).await);
    insta::assert_snapshot!(said.join("\n"), @r#"
    no json: 400 body_invalid: the body was not understood (Failed to parse the request body as JSON: expected ident at line 1 column 2): send JSON of that kind
    not json: 415 body_invalid: the body was not understood (Expected request with `Content-Type: application/json`): send JSON of that kind
    unknown key: 422 body_invalid: the body was not understood (Failed to deserialize the JSON body into the target type: plan.colour: unknown field `colour`, expected one of `target`, `model`, `name`, `contexts`, `concurrency`, `leave_out`, `prefill_contexts`, `duration`, `max_output`, `prompts`, `load`, `slo`, `corpus`, `questions`, `temperature`, `top_p`, `end_of_text`, `min_output`, `order`, `repeats`, `client_check`, `seed` at line 1 column 17): send JSON of that kind
    empty plan: 422 plan_invalid: --target: give the address of the server, for example http://127.0.0.1:8000; --contexts: give at least one context length, for example 8K,16K; --concurrency: give at least one number of requests at once, for example 1,2,4
        Target: give the address of the server, for example http://127.0.0.1:8000
        Contexts: give at least one context length, for example 8K,16K
        Concurrency: give at least one number of requests at once, for example 1,2,4
    bad plan: 422 plan_invalid: --target: "ftp" can't be measured: the address starts with http:// or https://; --contexts: "8Q" is not a size: write tokens as 8K, 1019K, 1M or 8192
        Target: "ftp" can't be measured: the address starts with http:// or https://
        Contexts: "8Q" is not a size: write tokens as 8K, 1019K, 1M or 8192
    too large: 413 body_invalid: the body was not understood (Failed to buffer the request body: length limit exceeded): send JSON of that kind
    nobody there: 502 target_unreachable: nothing answers at http://127.0.0.1:1/v1/models (connection refused): check that the server has started and the port is right
    unknown run: 404 not_found: there is no run "0123-abc" in the store
    no run id: 404 not_found: "../etc" is not a run id: expected 1 to 64 lower-case letters, digits and dashes
    stop unknown: 404 not_found: there is no run "abc" in the store
    stop sample: 409 run_over: the sample run can't be stopped or changed: it is a finished page
    no socket: 400 websocket_expected: Connection header did not include 'upgrade'
    no format: 400 format_unknown: say ?format=md, html, csv or json
    bad format: 400 format_unknown: say ?format=md, html, csv or json
    no such path: 404 not_found: there is nothing at /api/v1/nothing: check its spelling
    wrong method: 405 method_not_allowed: this path does not know that method
    "#);
}

#[tokio::test]
async fn the_page_stands_at_all_its_addresses_and_guards_itself() {
    let agent = agent().await;
    for path in ["/", "/runs/reference?m=ttft", "/compare"] {
        let answer = agent.get(path).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.header(header::CONTENT_TYPE).starts_with("text/html"));
        let policy = answer.header(header::CONTENT_SECURITY_POLICY);
        assert!(policy.contains("default-src 'none'") && !policy.contains("script-src 'unsafe-inline'"), "{policy}");
        assert_eq!(answer.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(answer.header(header::REFERRER_POLICY), "no-referrer");
    }
    // Nothing is framed, neither the page nor what is told.
    for path in ["/", "/compare", path::INFO, "/api/v1/runs/reference/export?format=html", "/api/v1/nothing"] {
        let answer = agent.get(path).await;
        assert_eq!(answer.header(header::X_FRAME_OPTIONS), "DENY", "{path}");
        assert!(answer.header(header::CONTENT_SECURITY_POLICY).contains("frame-ancestors 'none'"), "{path}");
    }
    assert_eq!(agent.get("/missing.wasm").await.status, StatusCode::NOT_FOUND);
    let info: Info = agent.get(path::INFO).await.json();
    assert_eq!(info.targets[0].url, agent.simulator.base_url());
}

#[tokio::test]
async fn the_sample_run_is_there_from_the_start() {
    let agent = agent().await;
    let export = async |format: &str| agent.get(&format!("/api/v1/runs/reference/export?format={format}")).await;
    let markdown = export("md").await;
    assert!(markdown.body.contains(REFERENCE_ROW), "{}", markdown.body);
    assert_eq!(markdown.header(header::CONTENT_TYPE), "text/markdown; charset=utf-8");
    let name = markdown.header(header::CONTENT_DISPOSITION);
    let name =
        name.strip_prefix("attachment; filename=\"speedmatrix-").and_then(|rest| rest.strip_suffix("-reference.md\""));
    assert!(name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')), "{name:?}");
    assert!(export("csv").await.body.lines().count() > 70);
    assert!(serde_json::from_str::<serde_json::Value>(&export("json").await.body).is_ok());
    let state: RunState = agent.get("/api/v1/runs/reference").await.json();
    assert_eq!(state, speedmatrix_shared::sample::reference());
    let viewer = agent.viewer(&RunId::REFERENCE.parse().unwrap()).await;
    assert_eq!(viewer.state.as_ref(), Some(&state));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_another_process_is_followed_live() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite3");
    let serving = Runs::new(Store::open(&path, Access::Serve).await.unwrap());
    let measuring = Store::open(&path, Access::Measure).await.unwrap();
    let events = speedmatrix_shared::sample::reference_events();
    let run: RunId = "elsewhere".parse().unwrap();
    measuring.append(&run, events[0].clone()).await.unwrap();
    let mut subscription = serving.subscribe(&run).await.unwrap();
    let ServerMessage::Snapshot { state, .. } = subscription.next().await else { panic!("a snapshot comes first") };
    let mut state = *state;
    assert!(serving.stop(&run).await.is_err());
    for envelope in &events[1..] {
        measuring.append(&run, envelope.clone()).await.unwrap();
    }
    assert!(matches!(events.last().unwrap().event, RunEvent::RunFinished { .. }));
    while !subscription.is_over() {
        if let ServerMessage::Event { envelope } = subscription.next().await {
            assert_eq!(state.apply(&envelope), Ok(Applied::New));
        }
    }
    assert_eq!(state, serving.state(&run).await.unwrap());
}
