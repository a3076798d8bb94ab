//! Servers found on this machine, with real listeners on port 0. Only the test's own ports are asked: others belong to
//! tests that run beside it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use axum::http::StatusCode;
use speedmatrix_agent::nearby::{Nearby, Scope};
use speedmatrix_shared::{
    api::path,
    found::{Access, FoundServer, FoundServers, Looked},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::server::agent;

fn at(found: &[FoundServer], port: u16) -> Option<&FoundServer> {
    found.iter().find(|server| server.port == port)
}

/// Answers every request with the same, and closes; counts them.
async fn answering(answer: &'static str) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::<AtomicU32>::default();
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut head = [0; 4_096];
            drop(socket.read(&mut head).await);
            drop(socket.write_all(answer.as_bytes()).await);
        }
    });
    (port, asked)
}

#[tokio::test]
async fn servers_of_this_machine_are_found_and_nothing_else() {
    let agent = agent().await;
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<p>x";
    let (site, asked) = answering(page).await;
    let (mail, _) = answering("220 mail.example.org ESMTP\r\n").await;
    let locked = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let (locked, _) = answering(locked).await;
    let simulator = agent.plan().target;
    let port: u16 = simulator.rsplit(':').next().unwrap().parse().unwrap();
    let nearby = Nearby::new(Scope::Among(BTreeSet::from([port, site, mail, locked])));

    let found = nearby.look().await.unwrap();
    let server = at(&found, port).expect("the simulator listens");
    assert_eq!((server.url.as_str(), server.access), (simulator.as_str(), Access::Open));
    assert!(server.engine.is_some() && server.model.is_some(), "{server:?}");
    assert_eq!(at(&found, locked).map(|server| server.access), Some(Access::WantsKey));
    assert_eq!((at(&found, site), at(&found, mail)), (None, None));
    assert!(found.is_sorted_by_key(|server| server.port));

    // What is no model server is not asked again at once, and what is known needs no question.
    assert_eq!(nearby.look().await.unwrap(), found);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(nearby.known(), found);
}

#[tokio::test]
async fn nobody_is_asked_while_a_run_is_measured() {
    let agent = agent().await;
    let run = agent.start(agent.plan()).await;
    let answer = agent.get(path::SERVERS).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let wanted = FoundServers { servers: Vec::new(), looked: Looked::NotWhileMeasuring };
    assert_eq!(answer.json::<FoundServers>(), wanted);
    agent.runs.stop(&run).await.unwrap();
    agent.runs.ended(&run).await;
}
