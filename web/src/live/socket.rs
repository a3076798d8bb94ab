//! The live socket: connects, listens, notices silence, and comes back. It only tells; commands are HTTP.

use futures_util::{
    StreamExt as _,
    future::{Either, select},
    pin_mut,
};
use gloo_net::websocket::{Message, futures::WebSocket};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, ServerMessage},
    id::RunId,
};

use super::{LiveRun, Next, pause::pause_ms};
use crate::{
    browser,
    shell::{Conn, Shell},
};

/// The agent says something at least every 5 seconds: after this long a silent socket is a lost one. A socket whose
/// network has gone does not close by itself.
const SILENCE_MS: u32 = 12_000;

/// How a connection ended.
enum End {
    /// It broke; the number of messages that had come.
    Lost { messages: usize },
    /// The agent speaks another version.
    Outdated { agent: String },
}

/// Follows a run for as long as its page is open, over any number of connections.
pub async fn follow(run: LiveRun, id: RunId, shell: Shell) {
    let mut attempts = 0;
    let mut since = browser::local_time();
    loop {
        match listen(&run, &id, shell).await {
            End::Outdated { agent } => {
                shell.conn.set(Conn::Outdated { agent });
                return;
            }
            End::Lost { messages: 0 } => attempts += 1,
            End::Lost { .. } => {
                attempts = 0;
                since = browser::local_time();
            }
        }
        run.series.update(super::series::GaugeSeries::interrupt);
        shell.watching.set(None);
        wait(shell, &since, attempts).await;
    }
}

/// Waits before the next attempt and shows how long it still is.
async fn wait(shell: Shell, since: &str, attempts: u32) {
    let mut left_ms = pause_ms(attempts, browser::chance());
    while left_ms > 0 {
        shell.conn.set(Conn::Lost { since: since.to_owned(), attempts, retry_in_s: left_ms.div_ceil(1_000) });
        let step_ms = left_ms.min(1_000);
        TimeoutFuture::new(step_ms).await;
        left_ms -= step_ms;
    }
}

async fn listen(run: &LiveRun, id: &RunId, shell: Shell) -> End {
    let mut messages = 0;
    let address = browser::socket_address(&api::path::of(api::path::LIVE, id));
    let Some(Ok(mut socket)) = address.map(|address| WebSocket::open(&address)) else { return End::Lost { messages } };
    loop {
        let silence = TimeoutFuture::new(SILENCE_MS);
        pin_mut!(silence);
        let Either::Left((Some(Ok(Message::Text(text))), _)) = select(socket.next(), silence).await else {
            return End::Lost { messages };
        };
        // A message that can't be read is from an agent that is newer than its own greeting says.
        let Ok(message) = serde_json::from_str::<ServerMessage>(&text) else {
            return End::Outdated { agent: "unknown".into() };
        };
        match run.take(message, shell) {
            Next::GoOn => {}
            Next::Resync => return End::Lost { messages },
            Next::Outdated { agent } => return End::Outdated { agent },
        }
        messages += 1;
        if messages == 1 {
            shell.conn.set(Conn::Connected);
        }
    }
}
