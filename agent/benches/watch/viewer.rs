//! Those who watch a run: one that notes when each message came, one that only reads, one that does not even that.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use tokio_util::sync::CancellationToken;

use super::Outcome;

/// Room for what a viewer has not read yet, bytes: with the agent's own it is full after some seconds.
const SMALL_BUFFER: u32 = 4_096;
/// One who does not read comes again after this: the agent has let them go by then.
const COME_AGAIN: Duration = Duration::from_secs(25);

/// Times of one message: on the run's clock, and since the bench began; nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamps {
    pub(crate) run: u64,
    pub(crate) here: u64,
}

/// What a viewer saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When each event was made, and came.
    pub(crate) events: Vec<Stamps>,
    /// The same of gauges.
    pub(crate) gauges: Vec<Stamps>,
    /// The agent's clock at the moment of sending, and when that came.
    pub(crate) clocks: Vec<Stamps>,
}

/// Of a message only what is needed here: to read all of it would keep a core busy.
#[derive(Deserialize)]
struct Told {
    now_ns: Option<u64>,
    envelope: Option<At>,
    gauge: Option<At>,
}

#[derive(Deserialize)]
struct At {
    at: u64,
}

/// Opens a live socket.
pub(crate) async fn open(url: &str) -> Outcome<WebSocketStream<TcpStream>> {
    connect(url, None).await
}

async fn connect(url: &str, buffer: Option<u32>) -> Outcome<WebSocketStream<TcpStream>> {
    let host = url.trim_start_matches("ws://").split('/').next().unwrap_or_default();
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    let stream = socket.connect(host.parse()?).await?;
    Ok(client_async(url, stream).await?.0)
}

/// Notes what comes until `end`.
pub(crate) async fn note(url: String, begin: Instant, end: CancellationToken) -> Outcome<Seen> {
    let mut socket = open(&url).await?;
    let mut seen = Seen::default();
    while let Some(message) = end.run_until_cancelled(socket.next()).await {
        let here = begin.elapsed().as_nanos() as u64;
        let Message::Text(text) = message.ok_or("the agent closed a viewer's socket")?? else { continue };
        let told: Told = serde_json::from_str(&text)?;
        let lists = [(told.now_ns, &mut seen.clocks), (told.envelope.map(|at| at.at), &mut seen.events)];
        for (run, list) in lists.into_iter().chain([(told.gauge.map(|at| at.at), &mut seen.gauges)]) {
            list.extend(run.map(|run| Stamps { run, here }));
        }
    }
    Ok(seen)
}

/// Reads until `end`.
pub(crate) async fn read(url: String, end: CancellationToken) -> Outcome<()> {
    let mut socket = open(&url).await?;
    while let Some(message) = end.run_until_cancelled(socket.next()).await {
        message.ok_or("the agent closed a viewer's socket")??;
    }
    Ok(())
}

/// Opens sockets and reads nothing of them, until `end`.
pub(crate) async fn ignore(url: String, end: CancellationToken) -> Outcome<()> {
    loop {
        let _unread = connect(&url, Some(SMALL_BUFFER)).await?;
        if end.run_until_cancelled(tokio::time::sleep(COME_AGAIN)).await.is_none() {
            return Ok(());
        }
    }
}
