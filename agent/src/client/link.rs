//! Where a target is, and one kept connection to it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    Request,
    body::Incoming,
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use speedmatrix_shared::trace::RequestFailure;
use tokio::net::TcpStream;
use url::Host;

use super::{
    ClientError, Target,
    body::{Body, SendBody},
    failure::{self, Failures},
    stamped::{Notes, Stamped},
    tls::{Tls, Transport},
};

/// A server that doesn't take a connection for this long isn't there (real time: nobody simulates the network).
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("speedmatrix/", env!("CARGO_PKG_VERSION")));
/// Joins our record of a request with the server's.
const REQUEST_ID: &str = "x-request-id";

/// A target, ready to be connected to. Proxies of the environment play no part: measured bytes take the direct way.
#[derive(Debug)]
pub(crate) struct Address {
    host: String,
    port: u16,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
    base_path: String,
    tls: Option<Tls>,
}

impl Address {
    /// The address and key of `target`.
    pub(crate) fn new(target: &Target) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address { url: target.url.as_str().to_owned() };
        let url = url::Url::parse(target.url.as_str()).map_err(|_named_in_the_message| wrong())?;
        let host = match url.host().ok_or_else(wrong)? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = url.port_or_known_default().ok_or_else(wrong)?;
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(Tls::new(&host)?),
            _ => return Err(wrong()),
        };
        let authority = HeaderValue::try_from(url.authority()).map_err(|_named_in_the_message| wrong())?;
        let authorization = match &target.key {
            Some(key) => Some(bearer(key.expose()).ok_or_else(|| ClientError::Key { host: host.clone() })?),
            None => None,
        };
        let base_path = url.path().trim_end_matches('/').to_owned();
        Ok(Self { host, port, authority, authorization, base_path, tls })
    }

    /// A request to `path` below the target's own path.
    pub(crate) fn request(&self, path: &str, body: &Body, id: &str) -> Result<Request<SendBody>, hyper::http::Error> {
        let mut request = Request::post(format!("{}{path}", self.base_path))
            .header(header::HOST, &self.authority)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, "text/event-stream")
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, body.len())
            .header(REQUEST_ID, id);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.body(body.sender())
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, failures: &Failures) -> Result<Link, RequestFailure> {
        let opened = tokio::time::timeout(CONNECT_LIMIT, self.open()).await;
        let opened = opened.unwrap_or_else(|_elapsed| {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", CONNECT_LIMIT.as_secs())))
        });
        let (transport, notes) = opened
            .map_err(|error| failures.connect(&format!("could not connect to {}:{}: {error}", self.host, self.port)))?;
        let shaken = http1::Builder::new().writev(true).handshake(TokioIo::new(transport)).await;
        let (sender, io) = shaken.map_err(|error| failures.transport(&error))?;
        Ok(Link { sender, io: Some(Box::pin(io)), notes })
    }

    async fn open(&self) -> io::Result<(Transport, Arc<Notes>)> {
        let io = TcpStream::connect((self.host.as_str(), self.port)).await?;
        io.set_nodelay(true)?;
        let stamped = Stamped::new(io);
        let notes = stamped.notes();
        let transport = match &self.tls {
            None => Transport::Plain(stamped),
            Some(tls) => tls.connect(stamped).await?,
        };
        Ok((transport, notes))
    }
}

fn bearer(key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

type Io = http1::Connection<TokioIo<Transport>, SendBody>;

/// An open connection. The task that uses it drives it: no second task, no hand-over between bytes and reader, so the
/// socket's latest read is the one that a frame came with.
#[derive(Debug)]
pub(crate) struct Link {
    sender: http1::SendRequest<SendBody>,
    /// `None` once it is closed: hyper tells its other half so by being dropped.
    io: Option<Pin<Box<Io>>>,
    /// The socket's notes.
    pub(crate) notes: Arc<Notes>,
}

impl Link {
    /// Moves bytes as far as they go.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        // How it ended is told by the response or its body; here it only must not be polled again.
        if let Some(io) = &mut self.io
            && io.as_mut().poll(cx).is_ready()
        {
            self.io = None;
        }
    }

    /// Ready when the next request can be sent; an error when none ever will.
    pub(crate) fn poll_free(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.poll_io(cx);
        self.sender.poll_ready(cx)
    }

    /// Hands a request to the connection; poll the answer together with [`Link::poll_io`].
    pub(crate) fn send(
        &mut self,
        request: Request<SendBody>,
    ) -> impl Future<Output = Result<hyper::Response<Incoming>, hyper::Error>> + use<> {
        self.notes.begin_request();
        self.sender.send_request(request)
    }
}

/// Whether an error says that the server had closed a kept connection before it read anything.
pub(crate) fn is_stale(error: &hyper::Error) -> bool {
    error.is_canceled() || error.is_closed() || error.is_incomplete_message() || failure::is_io(error)
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::draft::parse_target;

    use super::*;
    use crate::secret::Secret;

    fn address(url: &str, key: &str) -> Address {
        let url = parse_target(url).unwrap();
        Address::new(&Target { url, key: Secret::new(key) }).unwrap()
    }

    #[test]
    fn addresses_keep_their_base_path() {
        let check = |url: &str, host: &str, port: u16, path: &str| {
            let address = address(url, "");
            let request = address.request("/v1/chat/completions", &Body::new([]), "id").unwrap();
            let seen = (address.host.as_str(), address.port, request.uri().path());
            assert_eq!(seen, (host, port, path), "{url}");
        };
        check("http://127.0.0.1:8000", "127.0.0.1", 8_000, "/v1/chat/completions");
        check("http://[::1]:8000/v1", "::1", 8_000, "/v1/chat/completions");
        check("http://host/case/A01/v1", "host", 80, "/case/A01/v1/chat/completions");
    }

    #[test]
    fn a_request_names_what_it_wants() {
        let address = address("http://host:81", "secret-key");
        let request = address.request("/v1/chat/completions", &Body::new([]), "run-1").unwrap();
        let headers = format!("{:#?}", request.headers()).replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(headers, @r#"
        {
            "host": "host:81",
            "user-agent": "speedmatrix/VERSION",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": "0",
            "x-request-id": "run-1",
            "authorization": Sensitive,
        }
        "#);
        assert_eq!(request.headers()[header::AUTHORIZATION].as_bytes(), b"Bearer secret-key");
    }
}
