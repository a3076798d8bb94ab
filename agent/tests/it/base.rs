//! An agent below a path of its host, asked directly: with the path on what comes, and with it taken off.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use speedmatrix_agent::server::{Door, Reached};
use speedmatrix_shared::api::path;

use crate::{
    cli::{err, finish},
    server::agent_reached,
};

#[tokio::test]
async fn everything_stands_below_the_path_and_at_the_root() {
    let reached = Reached { base: "/speedmatrix".parse().unwrap(), ..Reached::default() };
    let agent = agent_reached(Door::Open, reached).await;
    for before in ["/speedmatrix", ""] {
        assert_eq!(agent.get(&format!("{before}{}", path::HEALTH)).await.status, StatusCode::OK);
        let export = agent.get(&format!("{before}/api/v1/runs/reference/export?format=md")).await;
        assert!(export.status.is_success() && export.body.contains("Sustained decode"), "{}", export.body);
        for page in ["/", "/runs/reference?m=ttft", "/index.html"] {
            let page = agent.get(&format!("{before}{page}")).await;
            assert_eq!(page.status, StatusCode::OK);
            assert!(page.header(header::CONTENT_TYPE).starts_with("text/html"));
            assert!(page.header(header::CONTENT_SECURITY_POLICY).contains("default-src 'none'"));
            assert!(!page.body.contains("=\"/\"") && !page.body.contains("'/speedmatrix-web"), "{}", page.body);
        }
        assert_eq!(agent.get(&format!("{before}/missing.wasm")).await.status, StatusCode::NOT_FOUND);
        assert_eq!(agent.get(&format!("{before}/api/v1/nothing")).await.status, StatusCode::NOT_FOUND);
    }
    let bare = agent.get("/speedmatrix?m=ttft").await;
    assert_eq!((bare.status, bare.header(header::LOCATION)), (StatusCode::PERMANENT_REDIRECT, "/speedmatrix/?m=ttft"));
    // A name that only begins alike is another path.
    assert!(agent.get("/speedmatrixes/api/v1/info").await.header(header::CONTENT_TYPE).starts_with("text/html"));
    let leave = Request::delete("/speedmatrix/api/v1/enter").body(Body::empty()).unwrap();
    let cookie = agent.ask(leave).await.header(header::SET_COOKIE).to_owned();
    assert!(cookie.contains("; Path=/speedmatrix/;"), "{cookie}");
    let absolute = Request::get("http://evil.example/speedmatrix/api/v1/info").header(header::HOST, "localhost");
    let absolute = agent.ask(absolute.body(Body::empty()).unwrap()).await;
    assert_eq!(absolute.status, StatusCode::MISDIRECTED_REQUEST);
    // Who may not ask may not ask here either.
    let foreign = Request::get("/speedmatrix/api/v1/info").header(header::HOST, "evil.example");
    assert_eq!(agent.ask(foreign.body(Body::empty()).unwrap()).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[test]
fn what_can_be_no_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["speedmatrix", "/a b", "/../a", "/a\"b"] {
        let output = finish(&folder, &["serve", "--listen", "127.0.0.1:0", "--base-path", path]);
        assert_eq!(output.status.code(), Some(64), "{path}");
        assert!(err(&output).contains("is no path: write it as /speedmatrix"), "{}", err(&output));
    }
}
