//! A proxy that tells by a header who asks: whose header is believed, and what it opens.

use std::net::SocketAddr;

use axum::{
    body::Body,
    http::{HeaderName, Request, header},
};
use speedmatrix_agent::{
    secret::Token,
    server::{Door, Peer, Reached, TrustedProxy},
    store::KeptPass,
};
use speedmatrix_shared::api::{Info, Pass, Role, path};
use tokio_tungstenite::{connect_async, tungstenite::client::IntoClientRequest as _};

use crate::{
    cli::{err, finish},
    server::{Agent, agent_reached},
};

const HEADER: &str = "x-remote-user";

fn believing(from: &[&str], role: Role) -> Reached {
    let from = from.iter().map(|from| from.parse().unwrap()).collect();
    let proxy = TrustedProxy::new(from).naming(HeaderName::from_static(HEADER), role).unwrap();
    Reached { proxy: Some(proxy), ..Reached::default() }
}

/// Which role the agent gives to a request from `peer` with these headers.
async fn role(agent: &Agent, peer: Option<&str>, headers: &[(&str, &str)]) -> Option<Role> {
    let mut request = Request::get(path::INFO);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    if let Some(peer) = peer {
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    }
    agent.ask(request).await.json::<Info>().role
}

/// The cookie that a browser gets at `peer`, with a right token and these headers.
async fn cookie(agent: &Agent, peer: &str, headers: &[(&str, &str)]) -> String {
    let token = Token::new().unwrap();
    agent.runs.store().add_pass(KeptPass { digest: token.digest(), pass: pass(Role::Viewer) }, 0).await.unwrap();
    let mut request = Request::post(path::ENTER).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::from(format!("{{\"token\":\"{}\"}}", token.expose()))).unwrap();
    request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    agent.ask(request).await.header(header::SET_COOKIE).to_owned()
}

/// Names and values.
type Headers = &'static [(&'static str, &'static str)];

fn pass(role: Role) -> Pass {
    Pass { number: 0, role, run: None, name: String::new(), created_unix_ms: 0, until_unix_ms: None }
}

#[tokio::test]
async fn a_cookie_is_secure_where_the_proxy_itself_says_https() {
    const PROTO: &str = "x-forwarded-proto";
    let proxy = TrustedProxy::new(vec!["192.0.2.1".parse().unwrap()]);
    let agent = agent_reached(Door::Guarded, Reached { proxy: Some(proxy), ..Reached::default() }).await;
    let cases: &[(&str, Headers, bool)] = &[
        ("192.0.2.1", &[(PROTO, "https")], true),
        ("::ffff:192.0.2.1", &[(PROTO, "HTTPS")], true),
        ("192.0.2.1", &[(PROTO, "http")], false),
        ("192.0.2.1", &[], false),
        ("192.0.2.1", &[(PROTO, "https"), (PROTO, "http")], false),
        ("192.0.2.1", &[(PROTO, "https, http")], false),
        ("192.0.2.2", &[(PROTO, "https")], false),
        ("127.0.0.1", &[(PROTO, "https"), ("x-forwarded-for", "192.0.2.1")], false),
    ];
    for (peer, headers, wanted) in cases {
        let cookie = cookie(&agent, peer, headers).await;
        assert!(cookie.contains("HttpOnly"), "{cookie}");
        assert_eq!(cookie.contains("; Secure"), *wanted, "{peer} {headers:?}: {cookie}");
    }
    // Such a proxy says nothing of who asks.
    assert_eq!(role(&agent, Some("192.0.2.1"), &[(HEADER, "ann")]).await, None);
    let unasked = agent_reached(Door::Guarded, Reached::default()).await;
    assert!(!cookie(&unasked, "192.0.2.1", &[(PROTO, "https")]).await.contains("Secure"));
}

/// Who asks, with which headers, and what they may do then.
type Case<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], Option<Role>);

#[tokio::test]
async fn a_header_is_believed_from_the_proxy_only() {
    let viewer = agent_reached(Door::Guarded, believing(&["192.0.2.1", "10.0.0.0/8"], Role::Viewer)).await;
    let old_cookie = format!("speedmatrix_pass_{}=old", viewer.address.port());
    let cases: &[Case] = &[
        (Some("192.0.2.1"), &[(HEADER, "ann")], Some(Role::Viewer)),
        (Some("192.0.2.1"), &[("X-Remote-User", "ann@example.org")], Some(Role::Viewer)),
        (Some("10.200.3.4"), &[(HEADER, "ann")], Some(Role::Viewer)),
        (Some("192.0.2.2"), &[(HEADER, "ann")], None),
        (Some("127.0.0.1"), &[(HEADER, "ann")], None),
        (Some("::1"), &[(HEADER, "ann")], None),
        (None, &[(HEADER, "ann")], None),
        (Some("192.0.2.1"), &[], None),
        (Some("192.0.2.1"), &[(HEADER, "")], None),
        (Some("192.0.2.1"), &[(HEADER, "  ")], None),
        (Some("192.0.2.1"), &[(HEADER, "eve"), (HEADER, "ann")], None),
        (Some("192.0.2.1"), &[("x-remote-users", "ann")], None),
        (Some("192.0.2.1"), &[("x_remote_user", "ann")], None),
        (Some("192.0.2.2"), &[(HEADER, "ann"), ("x-forwarded-for", "192.0.2.1")], None),
        (Some("192.0.2.2"), &[(HEADER, "ann"), ("forwarded", "for=192.0.2.1")], None),
        // A token that opens nothing takes nothing away.
        (Some("192.0.2.1"), &[(HEADER, "ann"), ("cookie", &old_cookie)], Some(Role::Viewer)),
        (Some("192.0.2.2"), &[(HEADER, "ann"), ("cookie", &old_cookie)], None),
    ];
    for (peer, headers, wanted) in cases {
        assert_eq!(role(&viewer, *peer, headers).await, *wanted, "{peer:?} {headers:?}");
    }
    let operator = agent_reached(Door::Guarded, believing(&["192.0.2.1"], Role::Operator)).await;
    assert_eq!(role(&operator, Some("192.0.2.1"), &[(HEADER, "ann")]).await, Some(Role::Operator));
    assert_eq!(role(&operator, Some("192.0.2.2"), &[(HEADER, "ann")]).await, None);
}

#[tokio::test]
async fn a_token_goes_before_the_word_of_a_proxy() {
    let agent = agent_reached(Door::Guarded, believing(&["192.0.2.1"], Role::Viewer)).await;
    let token = Token::new().unwrap();
    agent.runs.store().add_pass(KeptPass { digest: token.digest(), pass: pass(Role::Operator) }, 0).await.unwrap();
    let bearer = format!("Bearer {}", token.expose());
    let headers = [(HEADER, "ann"), ("authorization", bearer.as_str())];
    assert_eq!(role(&agent, Some("192.0.2.1"), &headers).await, Some(Role::Operator));
}

#[tokio::test]
async fn a_viewer_by_header_watches_and_changes_nothing() {
    // Through sockets, so that the address is the connection's own.
    let agent = agent_reached(Door::Guarded, believing(&["127.0.0.1"], Role::Viewer)).await;
    let mut request = agent.live("reference").into_client_request().unwrap();
    assert!(connect_async(request.clone()).await.is_err());
    request.headers_mut().insert(HEADER, "ann".parse().unwrap());
    assert!(connect_async(request).await.is_ok());
    let client = reqwest_client();
    let stop = |header: &'static str| {
        client.post(format!("http://{}/api/v1/runs/reference/stop", agent.address)).header(header, "ann").send()
    };
    assert_eq!(stop(HEADER).await.unwrap().status(), 403);
    assert_eq!(stop("x-other").await.unwrap().status(), 401);
    let elsewhere = agent_reached(Door::Guarded, believing(&["192.0.2.1"], Role::Viewer)).await;
    let mut request = elsewhere.live("reference").into_client_request().unwrap();
    request.headers_mut().insert(HEADER, "ann".parse().unwrap());
    assert!(connect_async(request).await.is_err());
}

fn reqwest_client() -> reqwest::Client {
    speedmatrix_agent::client::http::tls_provider();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[test]
fn what_can_not_be_believed_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let said = [
        "--trust-header X-Remote-User",
        "--trust-role operator --trust-proxy 127.0.0.1",
        "--trust-header X-Remote-User --trust-proxy example.org",
        "--trust-header X-Remote-User --trust-proxy 10.0.0.0/33",
        "--trust-header Cookie --trust-proxy 127.0.0.1",
        "--trust-header X-Remote-User --trust-proxy 127.0.0.1 --trust-role king",
    ];
    let said = said.map(|arguments| {
        let more: Vec<&str> = arguments.split_whitespace().collect();
        let output = finish(&folder, &[&["serve", "--listen", "127.0.0.1:0"][..], &more].concat());
        let words = err(&output).lines().next().unwrap_or_default().to_owned();
        format!("{} {words}", output.status.code().unwrap())
    });
    insta::assert_snapshot!(said.join("\n"), @r#"
    64 error: the following required arguments were not provided:
    64 error: the following required arguments were not provided:
    64 error: invalid value 'example.org' for '--trust-proxy <ADDR>': "example.org" is no address: write 127.0.0.1, ::1, or a network as 10.0.0.0/8
    64 error: invalid value '10.0.0.0/33' for '--trust-proxy <ADDR>': "10.0.0.0/33" is no address: write 127.0.0.1, ::1, or a network as 10.0.0.0/8
    64 error: --trust-header: cookie is sent by everybody: give the header that your proxy sets after it knows who asks
    64 error: invalid value 'king' for '--trust-role <ROLE>': a role is viewer or operator
    "#);
}

#[tokio::test]
async fn an_agent_that_believes_a_header_asks_who_you_are_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--trust-header", HEADER, "--trust-proxy", "127.0.0.1"];
    let agent = crate::cli::serve(&folder.path().join("runs.sqlite3"), &more);
    let address: SocketAddr = agent.url().trim_start_matches("http://").parse().unwrap();
    let ask = |header: &'static str| {
        reqwest_client().get(format!("http://{address}{}", path::RUNS)).header(header, "ann").send()
    };
    assert_eq!(ask("x-other").await.unwrap().status(), 401);
    assert_eq!(ask(HEADER).await.unwrap().status(), 200);
}
