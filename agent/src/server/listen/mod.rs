//! Connections: who gets one, and for how long one may keep another waiting. What travels on them is the app's affair.

mod renewal;
mod seats;
mod slow;
mod tls;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::add_extension::AddExtension;

pub(super) use self::slow::TooSlow;
pub use self::tls::{Encryption, Tls, TlsError};
use self::{
    seats::{Full, Seat, Seats},
    slow::Patient,
};

use super::guard::{self, AllowedHosts};

/// What the system keeps of an answer that its client has not taken yet, bytes; Linux doubles it. Left to itself it takes up
/// to 4 MB for each who does not read. It carries 4 MB/s to a client 100 ms away.
const SEND_BUFFER: usize = 200 * 1_024;
/// How long to wait after the system had no socket left.
const PAUSE: Duration = Duration::from_secs(1);
/// The first byte of a TLS connection: the type of its records, "handshake" (RFC 8446, 5.1). No method of HTTP begins so.
const TLS_HANDSHAKE: u8 = 0x16;
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

/// How connections are taken.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    /// What one client may take.
    pub limits: Limits,
    /// What encrypts them. Where it is set, whoever comes without is sent to https.
    pub tls: Option<Tls>,
    /// Names under which the agent may be asked; nobody is sent to another one.
    pub hosts: Option<Arc<AllowedHosts>>,
}

/// What every connection needs.
struct Entrance {
    app: Router,
    /// With what answers those who come without encryption.
    tls: Option<(TlsAcceptor, Router)>,
    limits: Limits,
    seats: Arc<Seats>,
    closing: CancellationToken,
}

/// Serves until `closing`, and then until every request that has begun is answered. Live sockets are not waited for.
pub async fn serve(listener: TcpListener, app: Router, manner: Manner, closing: CancellationToken) {
    let Manner { limits, tls, hosts } = manner;
    let seats = Arc::new(Seats::new(limits.connections, limits.per_address));
    let app = app.layer(middleware::from_fn_with_state(limits, slow::bound_body));
    if let Some(tls) = &tls {
        tokio::spawn(renewal::keep_fresh(tls.clone(), closing.clone()));
    }
    let tls = tls.map(|tls| (TlsAcceptor::from(tls.config), to_https(hosts)));
    let entrance = Arc::new(Entrance { app, tls, limits, seats, closing });
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

/// What a client wants of an agent that encrypts.
enum Greeted {
    Sealed(Box<TlsStream<Patient<TcpStream>>>),
    Open(Patient<TcpStream>),
}

async fn greet(acceptor: &TlsAcceptor, io: Patient<TcpStream>) -> io::Result<Greeted> {
    let mut first = [0];
    io.socket().peek(&mut first).await?;
    Ok(if first == [TLS_HANDSHAKE] { Greeted::Sealed(Box::new(acceptor.accept(io).await?)) } else { Greeted::Open(io) })
}

impl Entrance {
    async fn admit(self: Arc<Self>, socket: TcpStream, peer: SocketAddr, seat: Seat) {
        // Small frames must not wait for each other. Where the system refuses either, it is only less well.
        drop(socket.set_nodelay(true));
        setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER).ok();
        let app = seat.refusal().map_or_else(|| self.app.clone(), Full::app);
        let io = Patient::new(socket, self.limits.answer_pause, seat);
        let Some((acceptor, plain)) = &self.tls else { return self.talk(io, app, peer).await };
        let greeted = tokio::select! {
            greeted = timeout(self.limits.head, greet(acceptor, io)) => greeted,
            () = self.closing.cancelled() => return,
        };
        match greeted {
            Ok(Ok(Greeted::Sealed(io))) => self.talk(*io, app, peer).await,
            Ok(Ok(Greeted::Open(io))) => self.talk(io, plain.clone(), peer).await,
            Ok(Err(error)) => tracing::debug!("{peer} and this agent found no way to encrypt: {error}"),
            Err(_elapsed) => tracing::debug!("{peer} said too little in time"),
        }
    }

    /// Answers what comes on one connection. The seat is the stream's, as a live socket outlasts its first request.
    async fn talk<S>(&self, io: S, app: Router, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_headers(MAX_HEADERS)
            .max_buf_size(self.limits.head_bytes);
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

/// Sends whoever comes without encryption to the same place with it.
fn to_https(hosts: Option<Arc<AllowedHosts>>) -> Router {
    let app = Router::new().fallback(redirect);
    match hosts {
        Some(hosts) => app.layer(middleware::from_fn_with_state(hosts, guard::check)),
        None => app,
    }
}

async fn redirect(request: Request) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let Ok(place) = HeaderValue::try_from(format!("https://{host}{path}")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let close = (header::CONNECTION, HeaderValue::from_static("close"));
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place), close]).into_response()
}
