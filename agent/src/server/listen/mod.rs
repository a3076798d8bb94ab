//! Connections: who gets one, and for how long one may keep another waiting. What travels on them is the app's affair.

mod seats;
mod slow;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::add_extension::AddExtension;

pub(super) use self::slow::TooSlow;
use self::{
    seats::{Seat, Seats},
    slow::Patient,
};

/// How long to wait after the system had no socket left.
const PAUSE: Duration = Duration::from_secs(1);
/// Most headers of a request: browsers send some twenty.
const MAX_HEADERS: usize = 100;

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the head of a request may take, from the moment that it may begin; a connection that asks for nothing
    /// more is closed after as long.
    pub head: Duration,
    /// Longest pause within a request's body.
    pub body_pause: Duration,
    /// How long a whole body may take.
    pub body: Duration,
    /// How long a client may take nothing of an answer that waits for it.
    pub answer_pause: Duration,
    /// Largest head of a request, bytes.
    pub head_bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address (of IPv6 from one network). This machine's own addresses are not counted:
    /// behind them are tunnels and proxies, whose clients are many.
    pub per_address: usize,
}

impl Default for Limits {
    /// The largest body is a file of 32 MB, which a line of 1 Mbit/s carries in five minutes. A page has a live socket and
    /// up to six connections for questions. 512 are half of the files that a process may usually have open (1,024): the
    /// other half is for measuring.
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body: Duration::from_mins(5),
            answer_pause: Duration::from_secs(30),
            head_bytes: 64 * 1_024,
            connections: 512,
            per_address: 256,
        }
    }
}

/// What every connection needs.
#[derive(Debug)]
struct Entrance {
    app: Router,
    limits: Limits,
    seats: Arc<Seats>,
    closing: CancellationToken,
}

/// Serves until `closing`, and then until every request that has begun is answered. Live sockets are not waited for.
pub async fn serve(listener: TcpListener, app: Router, limits: Limits, closing: CancellationToken) {
    let seats = Arc::new(Seats::new(limits.connections, limits.per_address));
    let app = app.layer(middleware::from_fn_with_state(limits, slow::bound_body));
    let entrance = Arc::new(Entrance { app, limits, seats, closing });
    let talks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = entrance.closing.cancelled() => break,
        };
        match accepted {
            Ok((socket, peer)) => {
                if let Some(seat) = entrance.seats.take(peer.ip()) {
                    talks.spawn(Arc::clone(&entrance).admit(socket, peer, seat));
                }
            }
            // Such a client is gone already.
            Err(error) if is_of_one_client(&error) => {}
            Err(error) => {
                tracing::error!("no connection could be accepted ({error}); trying again in {PAUSE:?}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    talks.close();
    talks.wait().await;
}

fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

impl Entrance {
    async fn admit(self: Arc<Self>, socket: TcpStream, peer: SocketAddr, seat: Seat) {
        // Small frames must not wait for each other.
        drop(socket.set_nodelay(true));
        let app = seat.refusal().map_or_else(|| self.app.clone(), |why| why.app());
        self.talk(Patient::new(socket, self.limits.answer_pause, seat), app, peer).await;
    }

    /// Answers what comes on one connection. The seat is the stream's, as a live socket outlasts its first request.
    async fn talk<S>(&self, io: Patient<S>, app: Router, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_headers(MAX_HEADERS)
            .max_buf_size(self.limits.head_bytes)
            .keep_alive(!io.is_refused());
        let service = TowerToHyperService::new(AddExtension::new(app, Peer(peer.ip().to_canonical())));
        let mut talk = std::pin::pin!(http.serve_connection(TokioIo::new(io), service).with_upgrades());
        let ended = tokio::select! {
            ended = talk.as_mut() => ended,
            () = self.closing.cancelled() => {
                talk.as_mut().graceful_shutdown();
                talk.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a connection of {peer} ended early: {error}");
        }
    }
}

/// The address at the other end of a request's connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub std::net::IpAddr);
