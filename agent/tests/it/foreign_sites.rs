//! Pages of other sites, and names that were made to point here.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use speedmatrix_shared::{
    api::{Problem, path},
    id::RunId,
};
use tokio::net::TcpStream;

use crate::server::agent;

#[tokio::test]
async fn foreign_names_and_origins_reach_nothing() {
    let agent = agent().await;
    let paths =
        ["/", "/index.html", "/runs/reference", path::INFO, path::RUNS, "/api/v1/runs/reference/export?format=md"];
    let ask = async |builder: axum::http::request::Builder, host: &str| {
        agent.ask(builder.header(header::HOST, host).body(Body::empty()).unwrap()).await
    };
    for path in paths {
        let answer = ask(Request::get(path), "evil.example:7878").await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert_eq!(answer.json::<Problem>().code, "host_not_allowed");
        for host in ["127.0.0.1:7878", "localhost:7878", "[::1]:7878", "LOCALHOST:7878", "bench.example.org"] {
            assert_eq!(ask(Request::get(path), host).await.status, StatusCode::OK, "{path} under {host}");
        }
    }
    for path in [path::RUNS, path::PROBE, "/api/v1/runs/reference/stop"] {
        assert_eq!(ask(Request::post(path), "evil.example").await.status, StatusCode::MISDIRECTED_REQUEST);
        let foreign = Request::post(path).header(header::ORIGIN, "http://evil.example");
        assert_eq!(ask(foreign, "localhost:7878").await.status, StatusCode::FORBIDDEN);
    }
    // Not even a look, which may cost: browsers say which page asks. The page itself may be led to.
    let of_site = async |path: &str, site: &str| {
        ask(Request::get(path).header("sec-fetch-site", site), "localhost:7878").await.status
    };
    let tells = [path::METRICS, path::INFO, path::RUNS, path::SERVERS, "/api/v1/runs/reference/export?format=md"];
    for site in ["cross-site", "same-site"] {
        for path in tells {
            assert_eq!(of_site(path, site).await, StatusCode::FORBIDDEN, "{path} from {site}");
        }
        for path in ["/", "/runs/reference", path::HEALTH] {
            assert_eq!(of_site(path, site).await, StatusCode::OK, "{path} from {site}");
        }
    }
    for site in ["same-origin", "none"] {
        for path in tells.iter().filter(|path| **path != path::SERVERS) {
            assert_eq!(of_site(path, site).await, StatusCode::OK, "{path} from {site}");
        }
    }
    // A real socket, since an upgrade needs a connection.
    let live = path::of(path::LIVE, &RunId::REFERENCE.parse().unwrap());
    let upgrade = async |host: &str, origin: &str| {
        let stream = TcpStream::connect(agent.address).await.unwrap();
        let request = Request::get(format!("ws://{}{live}", agent.address))
            .header(header::HOST, host)
            .header(header::ORIGIN, origin)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, tokio_tungstenite::tungstenite::handshake::client::generate_key());
        match tokio_tungstenite::client_async(request.body(()).unwrap(), stream).await {
            Ok(_) => 101,
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => answer.status().as_u16(),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(upgrade("evil.example:7878", "http://evil.example:7878").await, 421);
    assert_eq!(upgrade("localhost:7878", "http://evil.example").await, 403);
    assert_eq!(upgrade("localhost:7878", "http://localhost:7878").await, 101);
}
