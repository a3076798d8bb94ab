//! The live socket of a run: `Hello`, `Snapshot`, then what the subscription hears.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension,
    extract::{
        Path, State, WebSocketUpgrade,
        ws::{Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    http::HeaderMap,
    response::Response,
};
use bytes::Bytes;
use speedmatrix_shared::{
    api::{PROTOCOL, ServerMessage},
    id::RunId,
};

use super::{AppState, door::Visit, error::Refusal, figures::Figures, listen::Peer};
use crate::hub::Subscription;

/// A client that takes longer for one message is let go; it comes back for a snapshot.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// A client that answers no ping for so long has gone without a word, as when its network did.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Clients have nothing to say here, so nothing large is read from them.
const MAX_INCOMING_BYTES: usize = 4 * 1_024;

pub(super) async fn upgrade(
    State(app): State<AppState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    peer: Option<Extension<Peer>>,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let id: RunId = id.parse()?;
    let socket = socket.map_err(|e| Refusal::new(e.status(), "websocket_expected", e.body_text()))?;
    let subscription = if id.as_str() == RunId::REFERENCE {
        app.runs.show(app.reference.as_ref().clone())
    } else {
        app.runs.subscribe(&id).await?
    };
    let socket = socket.max_message_size(MAX_INCOMING_BYTES).max_frame_size(MAX_INCOMING_BYTES);
    let visit = Visit::of(&app, &headers, peer.map(|Extension(peer)| peer));
    let runs = Arc::clone(&app.runs);
    let is_again_measured = move || runs.is_going_on(&id);
    Ok(socket.on_upgrade(move |socket| tell(socket, subscription, visit, is_again_measured, app.figures)))
}

/// Tells until the client goes, is too slow, or may look no more. Whoever sees a run that was over and is measured again is
/// let go, too: it comes back and follows the run.
async fn tell(
    mut socket: WebSocket,
    mut subscription: Subscription,
    visit: Visit,
    is_again_measured: impl Fn() -> bool,
    figures: Arc<Figures>,
) {
    let hello = ServerMessage::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").into() };
    if send(&mut socket, &hello, &figures).await.is_none() {
        return;
    }
    let mut heard = Instant::now();
    loop {
        let message = tokio::select! {
            message = subscription.next() => message,
            incoming = socket.recv() => match incoming {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                // What a client says is not asked for, but it lives.
                Some(Ok(_)) => {
                    heard = Instant::now();
                    continue;
                }
            },
        };
        figures.events_skipped.inc_by(subscription.take_skipped());
        let is_time_to_ask = matches!(message, ServerMessage::Presence { .. });
        if is_time_to_ask && (!visit.goes_on().await || subscription.is_over() && is_again_measured()) {
            return;
        }
        if heard.elapsed() > SILENCE_LIMIT {
            figures.viewers_let_go.inc();
            return;
        }
        if send(&mut socket, &message, &figures).await.is_none() {
            return;
        }
    }
}

async fn send(socket: &mut WebSocket, message: &ServerMessage, figures: &Figures) -> Option<()> {
    let text = serde_json::to_string(message).ok()?;
    let all = async {
        socket.send(Message::text(text)).await?;
        // Presence comes every few seconds, and so does the question whether anybody is there.
        match message {
            ServerMessage::Presence { .. } => socket.send(Message::Ping(Bytes::new())).await,
            _ => Ok(()),
        }
    };
    match tokio::time::timeout(SEND_LIMIT, all).await {
        Ok(Ok(())) => {
            figures.count_told(message);
            Some(())
        }
        // It is gone.
        Ok(Err(_)) => None,
        Err(_) => {
            figures.viewers_let_go.inc();
            None
        }
    }
}
