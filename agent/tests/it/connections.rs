//! Clients that hold connections: slow ones, silent ones, many. All against the server's own loop, with short limits.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, routing::post};
use futures_util::StreamExt as _;
use speedmatrix_agent::server::{Door, Limits, Manner, serve};
use speedmatrix_shared::{api::path, id::RunId};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_tungstenite::connect_async;
use tokio_util::sync::CancellationToken;

use crate::server::{Agent, agent_behind};

const SHORT: Duration = Duration::from_millis(300);

/// A server with its limits, the app of a whole agent behind it.
struct Server {
    agent: Agent,
    address: SocketAddr,
    closing: CancellationToken,
    ended: JoinHandle<()>,
}

async fn listen(app: Router, limits: Limits) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = CancellationToken::new();
    let ended = tokio::spawn(serve(listener, app, Manner { limits, ..Manner::default() }, closing.clone()));
    (address, closing, ended)
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let agent = agent_behind(Door::Open).await;
        let (address, closing, ended) = listen(agent.app.clone(), limits).await;
        Self { agent, address, closing, ended }
    }

    /// Sends bytes and gives all that comes until the server closes.
    async fn told(&self, bytes: &[u8]) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // A server that has read enough may be gone before all is sent.
        drop(socket.write_all(bytes).await);
        rest(&mut socket).await
    }
}

/// All that comes until the server closes.
async fn rest(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A close that meets unread bytes comes as a reset, which is a close all the same.
    drop(socket.read_to_end(&mut all).await);
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn half_a_head_and_no_head_are_closed() {
    let server = Server::start(Limits { head: SHORT, ..Limits::default() }).await;
    assert_eq!(server.told(b"").await, "");
    assert_eq!(server.told(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await, "");
    // One byte now and then gains no time.
    let mut dripping = TcpStream::connect(server.address).await.unwrap();
    let (mut reading, mut writing) = dripping.split();
    let drip = async {
        while writing.write_all(b"G").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    let mut all = Vec::new();
    tokio::select! {
        () = drip => {}
        _closed = reading.read_to_end(&mut all) => {}
    }
    // A connection that asks for nothing more is closed too, after its answer.
    let kept = server.told(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(kept.starts_with("HTTP/1.1 200 OK"), "{kept}");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = Server::start(Limits { head: SHORT, ..Limits::default() }).await;
    let long = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(200_000));
    let answer = server.told(long.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many = "X-Many: 1\r\n".repeat(1_000);
    let answer = server.told(format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert!(server.told(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_body_that_stops_is_answered_and_closed() {
    let server = Server::start(Limits { body_pause: SHORT, ..Limits::default() }).await;
    for path in [path::RUNS, path::IMPORT] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        );
        let answer = server.told(head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("\"code\":\"body_slow\"") && answer.contains("too slowly"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_drips_is_ended_too() {
    let read = Router::new().route("/", post(|body: String| async move { body }));
    let limits = Limits { body: SHORT, body_pause: SHORT * 100, ..Limits::default() };
    let (address, ..) = listen(read, limits).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n").await.unwrap();
    let (mut reading, mut writing) = socket.split();
    let drip = async {
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
        std::future::pending::<()>().await;
    };
    let mut first = [0; 12];
    tokio::select! {
        () = drip => {}
        read = reading.read_exact(&mut first) => assert_eq!(read.ok(), Some(12)),
    }
    assert!(first.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&first));
}

#[tokio::test]
async fn who_does_not_read_an_answer_is_let_go() {
    let large = Router::new().fallback(|| async { "x".repeat(64 << 20) });
    let (address, closing, ended) = listen(large, Limits { answer_pause: SHORT, ..Limits::default() }).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 1];
    socket.read_exact(&mut first).await.unwrap();
    closing.cancel();
    // The end waits for answers: this one is given up, although its client stays connected.
    ended.await.unwrap();
    drop(socket);
}

#[tokio::test]
async fn connections_are_counted_and_sockets_among_them() {
    let server = Server::start(Limits { connections: 2, ..Limits::default() }).await;
    let live = path::of(path::LIVE, &RunId::REFERENCE.parse().unwrap());
    let watch = async || connect_async(format!("ws://{}{live}", server.address)).await;
    let (mut one, _) = watch().await.unwrap();
    let (other, _) = watch().await.unwrap();
    assert!(one.next().await.is_some_and(|message| message.is_ok()));
    let refused = server.told(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("\"code\":\"too_many_connections\"") && refused.contains("close pages"), "{refused}");
    drop(other);
    // Its place is free as soon as the server has seen that.
    while watch().await.is_err() {}
    assert!(server.agent.get("/healthz").await.status.is_success());
}

#[tokio::test]
async fn the_end_does_not_wait_for_those_who_only_listen() {
    let server = Server::start(Limits::default()).await;
    let live = path::of(path::LIVE, &RunId::REFERENCE.parse().unwrap());
    let (mut socket, _) = connect_async(format!("ws://{}{live}", server.address)).await.unwrap();
    assert!(socket.next().await.is_some_and(|message| message.is_ok()));
    server.closing.cancel();
    server.ended.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
