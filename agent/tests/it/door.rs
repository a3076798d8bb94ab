//! Who may do what: every route, by every kind of token.

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use speedmatrix_agent::{
    client::{Target, http::Http},
    secret::{Secret, Token},
    server::{Door, RULES},
    store::KeptPass,
};
use speedmatrix_shared::{
    api::{Info, NewPass, Pass, Problem, Role, RunSummary, Shared, path},
    export::json,
    id::RunId,
    plan::draft::parse_target,
    sample,
};

use futures_util::StreamExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, client::IntoClientRequest as _},
};

use crate::{
    cli::{err, finish, out, serve},
    server::{Agent, Answer, agent, agent_behind},
};

/// Which token a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    Wrong,
    RunOut,
    /// An operator's that was taken back.
    TakenBack,
    Operator,
    Viewer,
    /// Only of the run `abc`.
    ViewerOfRun,
    /// Only of another run.
    ViewerOfOther,
}

impl Who {
    const ALL: [Self; 8] = [
        Self::Nobody,
        Self::Wrong,
        Self::RunOut,
        Self::TakenBack,
        Self::Operator,
        Self::Viewer,
        Self::ViewerOfRun,
        Self::ViewerOfOther,
    ];
}

struct Guarded {
    agent: Agent,
    tokens: Vec<(Who, Option<String>)>,
}

impl Guarded {
    /// With a stored run `abc`, and one token of each kind.
    async fn start() -> Self {
        let agent = agent_behind(Door::Guarded).await;
        let mut tokens = Vec::new();
        for who in Who::ALL {
            tokens.push((who, token(&agent, who).await));
        }
        let guarded = Self { agent, tokens };
        let file = json::render(&sample::reference()).replacen("\"reference\"", "\"abc\"", 1);
        let imported = guarded.ask(Who::Operator, "POST", path::IMPORT, file).await;
        assert_eq!(imported.status, StatusCode::CREATED, "{}", imported.body);
        guarded
    }

    fn token(&self, who: Who) -> Option<&str> {
        self.tokens.iter().find(|(of, _)| *of == who).and_then(|(_, token)| token.as_deref())
    }

    async fn ask(&self, who: Who, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = self.token(who) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.agent.ask(request.body(body.into()).unwrap()).await
    }

    async fn get(&self, who: Who, path: &str) -> Answer {
        self.ask(who, "GET", path, "").await
    }
}

async fn token(agent: &Agent, who: Who) -> Option<String> {
    let (role, run, until_unix_ms) = match who {
        Who::Nobody => return None,
        Who::Wrong => return Some(Token::new().unwrap().expose().to_owned()),
        Who::RunOut => (Role::Operator, None, Some(1)),
        Who::TakenBack | Who::Operator => (Role::Operator, None, None),
        Who::Viewer => (Role::Viewer, None, None),
        Who::ViewerOfRun => (Role::Viewer, Some("abc"), None),
        Who::ViewerOfOther => (Role::Viewer, Some("abd"), None),
    };
    let token = Token::new().unwrap();
    let run = run.map(|run| run.parse().unwrap());
    let pass = Pass { number: 0, role, run, name: format!("{who:?}"), created_unix_ms: 0, until_unix_ms };
    let pass = agent.runs.store().add_pass(KeptPass { digest: token.digest(), pass }, 0).await.unwrap();
    if who == Who::TakenBack {
        assert!(agent.runs.store().revoke_pass(pass.number).await.unwrap());
    }
    Some(token.expose().to_owned())
}

/// What a refusal is called; empty where the route itself answered, whatever it said to an empty body.
fn refused(answer: &Answer) -> String {
    const OF_DOOR: [&str; 6] =
        ["token_missing", "token_invalid", "too_many_failures", "viewer_only", "other_run", "method_not_allowed"];
    let problem: Option<Problem> = serde_json::from_str(&answer.body).ok();
    problem.map(|problem| problem.code).filter(|code| OF_DOOR.contains(&code.as_str())).unwrap_or_default()
}

#[tokio::test]
async fn each_route_opens_to_whom_it_should() {
    let guarded = Guarded::start().await;
    let mut table = Vec::new();
    for (method, template, _) in RULES {
        let path =
            path::of(template, &"abc".parse().unwrap()).replace("{cell}", "decode-8K-1").replace("{pass}", "999");
        let mut row = format!("{method} {template}:");
        for who in Who::ALL {
            let answer = guarded.ask(who, method.as_str(), &path, "").await;
            assert_ne!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{row} {who:?}: {}", answer.body);
            let said = refused(&answer);
            // The sixth of a kind is told like the first.
            write!(row, " {who:?}={}", if said.is_empty() { "yes" } else { &said }).unwrap();
        }
        table.push(row.replace("too_many_failures", "token_invalid"));
    }
    insta::assert_snapshot!(table.join("\n"), @"
GET /healthz: Nobody=yes Wrong=yes RunOut=yes TakenBack=yes Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
GET /readyz: Nobody=yes Wrong=yes RunOut=yes TakenBack=yes Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
GET /metrics: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=other_run ViewerOfOther=other_run
GET /api/v1/info: Nobody=yes Wrong=yes RunOut=yes TakenBack=yes Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
POST /api/v1/enter: Nobody=yes Wrong=yes RunOut=yes TakenBack=yes Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
DELETE /api/v1/enter: Nobody=yes Wrong=yes RunOut=yes TakenBack=yes Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
GET /api/v1/runs: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=yes
POST /api/v1/runs: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
GET /api/v1/runs/{id}: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
PATCH /api/v1/runs/{id}: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
DELETE /api/v1/runs/{id}: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
GET /api/v1/runs/{id}/live: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
POST /api/v1/runs/{id}/stop: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
POST /api/v1/runs/{id}/steer: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
POST /api/v1/runs/{id}/resume: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
GET /api/v1/runs/{id}/export: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
GET /api/v1/runs/{id}/cells/{cell}: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
GET /api/v1/runs/{id}/cells/{cell}/requests: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
GET /api/v1/runs/{id}/cells/{cell}/history: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=other_run ViewerOfOther=other_run
GET /api/v1/runs/{id}/labels: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=yes ViewerOfRun=yes ViewerOfOther=other_run
POST /api/v1/runs/{id}/restore: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
POST /api/v1/probe: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
POST /api/v1/import: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
GET /api/v1/servers: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
GET /api/v1/passes: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
POST /api/v1/passes: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
DELETE /api/v1/passes/{pass}: Nobody=token_missing Wrong=token_invalid RunOut=token_invalid TakenBack=token_invalid Operator=yes Viewer=viewer_only ViewerOfRun=viewer_only ViewerOfOther=viewer_only
");
}

/// A new route fails this until it has a rule, and by that a row in the table above.
#[test]
fn every_route_of_the_router_has_a_rule() {
    let source = include_str!("../../src/server/mod.rs");
    let routes = source.lines().filter_map(|line| line.trim().strip_prefix(".route(path::"));
    let handlers: usize = routes
        .map(|route| {
            ["get(", "post(", "patch(", "put(", "delete("].map(|by| route.matches(by).count()).iter().sum::<usize>()
        })
        .sum();
    assert_eq!(handlers, RULES.len(), "each method of each route in server/mod.rs has one row in RULES");
}

#[tokio::test]
async fn what_is_told_depends_on_who_asks() {
    let guarded = Guarded::start().await;
    let mut told = Vec::new();
    for who in Who::ALL {
        let info: Info = guarded.get(who, path::INFO).await.json();
        let list = guarded.get(who, path::RUNS).await;
        let runs: Vec<String> = match list.status {
            StatusCode::OK => list.json::<Vec<RunSummary>>().iter().map(|run| run.id.to_string()).collect(),
            _ => Vec::new(),
        };
        told.push(format!("{who:?}: {:?} {:?} {} targets, runs {runs:?}", info.role, info.run, info.targets.len()));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
Nobody: None None 0 targets, runs []
Wrong: None None 0 targets, runs []
RunOut: None None 0 targets, runs []
TakenBack: None None 0 targets, runs []
Operator: Some(Operator) None 1 targets, runs ["abc", "reference"]
Viewer: Some(Viewer) None 0 targets, runs ["abc", "reference"]
ViewerOfRun: Some(Viewer) Some(RunId("abc")) 0 targets, runs ["abc"]
ViewerOfOther: Some(Viewer) Some(RunId("abd")) 0 targets, runs []
"#);
    let open: Info = agent().await.get(path::INFO).await.json();
    assert_eq!((open.role, open.is_guarded, open.targets.len()), (Some(Role::Operator), false, 1));
}

#[tokio::test]
async fn a_link_lets_in_until_it_is_taken_back() {
    let guarded = Guarded::start().await;
    let asked = NewPass { role: Role::Viewer, run: Some("abc".parse().unwrap()), name: "Ann".into(), hours: Some(1) };
    let body = serde_json::to_string(&asked).unwrap();
    let given = guarded.ask(Who::Operator, "POST", path::PASSES, body).await;
    assert_eq!(given.status, StatusCode::CREATED, "{}", given.body);
    let Shared { token, pass } = given.json();
    assert_eq!(
        (pass.role, pass.run.as_ref().map(RunId::as_str), pass.name.as_str()),
        (Role::Viewer, Some("abc"), "Ann")
    );

    // A browser trades it for a cookie that scripts can't read and other sites can't send.
    let enter = guarded.ask(Who::Nobody, "POST", path::ENTER, format!("{{\"token\":\"{token}\"}}")).await;
    assert_eq!(enter.status, StatusCode::NO_CONTENT, "{}", enter.body);
    let cookie = enter.header(header::SET_COOKIE).to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    // Another agent on this host has another cookie.
    let name = format!("speedmatrix_pass_{}=", guarded.agent.address.port());
    assert!(cookie.starts_with(&name), "{cookie}");
    let with_cookie = async |path: &str| {
        let request = Request::get(path).header(header::COOKIE, cookie.split(';').next().unwrap());
        guarded.agent.ask(request.body(Body::empty()).unwrap()).await.status
    };
    assert_eq!(with_cookie("/api/v1/runs/abc").await, StatusCode::OK);
    assert_eq!(with_cookie("/api/v1/runs/reference").await, StatusCode::FORBIDDEN);

    let listed: Vec<Pass> = guarded.get(Who::Operator, path::PASSES).await.json();
    assert!(listed.contains(&pass) && listed.iter().all(|pass| pass.name != "RunOut"));
    let gone = format!("/api/v1/passes/{}", pass.number);
    assert_eq!(guarded.ask(Who::Operator, "DELETE", &gone, "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(with_cookie("/api/v1/runs/abc").await, StatusCode::UNAUTHORIZED);
    assert_eq!(guarded.ask(Who::Operator, "DELETE", &gone, "").await.status, StatusCode::NOT_FOUND);
    // What was given away is nowhere in the store.
    let store = std::fs::read(guarded.agent.runs.store().path()).unwrap();
    assert!(!store.windows(token.len()).any(|part| part == token.as_bytes()));
}

/// The live socket of the run `abc`, for who has a token.
async fn watch(guarded: &Guarded, token: &str) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, Error> {
    let mut request = guarded.agent.live("abc").into_client_request()?;
    let value = format!("Bearer {token}").parse().expect("a token is a header's value");
    request.headers_mut().insert(header::AUTHORIZATION, value);
    connect_async(request).await.map(|(socket, _)| socket)
}

#[tokio::test]
async fn a_live_socket_needs_a_token_and_ends_with_it() {
    let guarded = Guarded::start().await;
    for who in [Who::Nobody, Who::Wrong, Who::ViewerOfOther] {
        let refused = watch(&guarded, guarded.token(who).unwrap_or("none")).await.unwrap_err();
        assert!(matches!(&refused, Error::Http(answer) if [401, 403].contains(&answer.status().as_u16())), "{refused}");
    }
    let mut socket = watch(&guarded, guarded.token(Who::ViewerOfRun).unwrap()).await.unwrap();
    let first = socket.next().await.unwrap().unwrap();
    assert!(first.to_text().unwrap().contains("hello"), "{first}");
    let passes: Vec<Pass> = guarded.get(Who::Operator, path::PASSES).await.json();
    let number = passes.iter().find(|pass| pass.name == "ViewerOfRun").unwrap().number;
    let gone = guarded.ask(Who::Operator, "DELETE", &format!("/api/v1/passes/{number}"), "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    // What comes before the next look at the token is still told.
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() {
            break;
        }
    }
}

#[tokio::test]
async fn guessing_is_told_to_wait_and_a_right_token_still_opens() {
    let guarded = Guarded::start().await;
    let mut last = String::new();
    for _ in 0..30 {
        last = refused(&guarded.ask(Who::Nobody, "POST", path::ENTER, "{\"token\":\"guess\"}").await);
    }
    assert_eq!(last, "too_many_failures");
    assert_eq!(guarded.get(Who::Viewer, path::RUNS).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_link_that_can_not_be_is_refused() {
    let guarded = Guarded::start().await;
    let mut said = Vec::new();
    for body in [
        "{\"role\":\"viewer\",\"hours\":0}".to_owned(),
        "{\"role\":\"king\"}".to_owned(),
        "{\"role\":\"viewer\",\"run\":\"none\"}".to_owned(),
        format!("{{\"role\":\"viewer\",\"name\":\"{}\"}}", "x".repeat(101)),
    ] {
        let answer = guarded.ask(Who::Operator, "POST", path::PASSES, body).await;
        let problem: Problem = answer.json();
        said.push(format!("{} {}: {}", problem.status, problem.code, problem.detail));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
422 pass_invalid: a link is valid for 1 to 87840 hours
422 body_invalid: the body was not understood (Failed to deserialize the JSON body into the target type: role: unknown variant `king`, expected `viewer` or `operator` at line 1 column 14): send JSON of that kind
404 not_found: there is no run "none" in the store
422 pass_invalid: a link's name has at most 100 characters
"#);
}

#[tokio::test]
async fn an_agent_that_asks_for_links_opens_to_those_that_were_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.sqlite3");
    let agent = serve(&store, &["--require-token"]);
    let ask = async |token: &str| {
        let target = Target { url: parse_target(agent.url()).unwrap(), key: Secret::new(token) };
        Http::new(&target).unwrap().get(path::RUNS).await.unwrap().status
    };
    assert_eq!((ask("").await, ask("abc").await), (401, 401));
    finish(&folder, &["link", "--operator"]);
    let made = finish(&folder, &["link", "--hours", "1", "--name", "Ann", "--page", agent.url()]);
    let link = out(&made);
    let token = link.trim().strip_prefix(&format!("{}/#enter=", agent.url())).expect("the link is the only line");
    assert_eq!(ask(token).await, 200);
    let listed = out(&finish(&folder, &["link", "--list"]));
    let numbers: Vec<&str> = listed.lines().filter_map(|line| line.split(':').next()?.strip_prefix("link ")).collect();
    assert!(listed.contains("operator, all runs") && listed.contains("(Ann)") && numbers.len() == 2, "{listed}");
    assert!(!listed.contains(token));
    let gone = finish(&folder, &["link", "--revoke", numbers.last().unwrap()]);
    assert_eq!(gone.status.code(), Some(0), "{}", err(&gone));
    assert_eq!(ask(token).await, 401);
    assert_eq!(finish(&folder, &["link", "--revoke", "99"]).status.code(), Some(64));
}
