//! Servers whose metrics page is not one: each is given up in time, with a sentence.

use speedmatrix_shared::plan::draft::parse_target;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::client::Target;

/// What a server does with every question.
#[derive(Debug, Clone, Copy)]
enum Server {
    Says(&'static str, &'static str),
    /// So many MiB of good lines.
    Mebibytes(usize),
    Endless,
    /// Its head, and then nothing.
    Silent,
}

impl Server {
    async fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 2_048];
                    if socket.read(&mut head).await.is_ok() {
                        // The client goes when it has seen enough.
                        self.answer(&mut socket).await.ok();
                    }
                });
            }
        });
        address
    }

    async fn answer(self, socket: &mut tokio::net::TcpStream) -> std::io::Result<()> {
        let line = b"vllm:num_requests_running{engine=\"0\",model_name=\"a model\"} 1.0\n";
        let block = line.repeat((1 << 20) / line.len());
        match self {
            Self::Says(head, body) => {
                let length = body.len();
                let text = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                socket.write_all(text.as_bytes()).await
            }
            Self::Mebibytes(count) => {
                socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await?;
                for _ in 0..count {
                    socket.write_all(&block).await?;
                }
                Ok(())
            }
            Self::Endless => {
                socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await?;
                loop {
                    socket.write_all(&block).await?;
                }
            }
            Self::Silent => {
                socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await?;
                std::future::pending().await
            }
        }
    }
}

fn http(address: &str) -> Http {
    Http::new(&Target { url: parse_target(address).unwrap(), key: None }).unwrap()
}

/// What is said about it, the address replaced.
async fn check(server: Server) -> String {
    let address = server.start().await;
    match find(&http(&address)).await {
        Ok((path, gauges)) => format!("{path}: {:?} of {} running", gauges.running, gauges.engine.name()),
        Err(error) => error.to_string().replace(&address, "HOST"),
    }
}

#[tokio::test]
async fn pages_that_are_none_have_a_sentence_each() {
    let cases = [
        Server::Says("404 Not Found", "no such path"),
        Server::Says("501 Not Implemented", "{\"error\":{\"message\":\"start with --metrics\"}}"),
        Server::Says("401 Unauthorized", "no key"),
        Server::Says("200 OK\r\ncontent-type: text/html", "<p>a site"),
        Server::Says("200 OK", " <!doctype html>"),
        Server::Says("200 OK\r\ncontent-type: application/json", "[{\"iter\":7,\"numActiveRequests\":1}]"),
        Server::Says("200 OK", "python_gc_objects_collected_total{generation=\"0\"} 300\n"),
        Server::Mebibytes(7),
        Server::Mebibytes(50),
        Server::Endless,
    ];
    let mut said = Vec::new();
    for case in cases {
        said.push(check(case).await);
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    http://HOST/metrics answered 404 (no such path): queue and cache of the engine stay unknown; start it with its metrics on to see them (--metrics for llama.cpp, --enable-metrics for sglang)
    http://HOST/metrics answered 501 ({"error":{"message":"start with --metrics"}}): queue and cache of the engine stay unknown; start it with its metrics on to see them (--metrics for llama.cpp, --enable-metrics for sglang)
    http://HOST/metrics answered 401 (no key): queue and cache of the engine stay unknown; look at its log
    http://HOST/metrics answered with a web page: queue and cache of the engine stay unknown; give the engine's own address
    http://HOST/metrics answered with a web page: queue and cache of the engine stay unknown; give the engine's own address
    http://HOST/metrics has no gauges of a known engine: its queue and cache stay unknown
    http://HOST/metrics has no gauges of a known engine: its queue and cache stay unknown
    /metrics: Some(1.0) of vllm running
    http://HOST/metrics answered with more than 8 MiB: that is too much to read each second, so queue and cache stay unknown
    http://HOST/metrics answered with more than 8 MiB: that is too much to read each second, so queue and cache stay unknown
    "#);
}

#[tokio::test]
async fn a_page_that_does_not_come_is_not_waited_for() {
    let address = Server::Silent.start().await;
    let error = scrape_within(&http(&address), "/metrics", Duration::from_millis(50)).await.unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&address, "HOST"), @"http://HOST/metrics did not answer within 50ms: queue and cache of the engine stay unknown");
}
