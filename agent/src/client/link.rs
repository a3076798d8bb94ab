//! Where a target is, and one kept connection to it.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http::header::{self, HeaderValue};
use speedmatrix_shared::trace::RequestFailure;
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    net::TcpStream,
};
use url::Host;

use super::{
    ClientError, Target,
    body::Body,
    failure::Failures,
    stamped::{Notes, Read, Stamped},
    tls::{Tls, Transport},
};

/// A server that doesn't take a connection for this long isn't there (real time: nobody simulates the network).
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("speedmatrix/", env!("CARGO_PKG_VERSION"));
/// Joins our record of a request with the server's.
const REQUEST_ID: &str = "x-request-id";
/// Room for a request's head; a longer one grows it.
const HEAD_BYTES: usize = 512;
/// Parts of a request that one write takes: a head, and a document with what is around it.
const MOST_PARTS: usize = 4;
/// Most bytes of one read: an event is far smaller, and only a document is larger.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    /// Where reads land: what comes is taken in before anything else is read, so one per thread does.
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

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

    /// The head of a request to `path` below the target's own path, and its body, ready to leave.
    pub(crate) fn request(&self, path: &str, body: &Body, id: &str) -> Sending {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        for part in ["POST ", &self.base_path, path, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let length = HeaderValue::from(body.len());
        let fields = [
            (header::HOST.as_str(), self.authority.as_bytes()),
            (header::USER_AGENT.as_str(), USER_AGENT.as_bytes()),
            (header::ACCEPT.as_str(), b"text/event-stream"),
            (header::ACCEPT_ENCODING.as_str(), b"identity"),
            (header::CONTENT_TYPE.as_str(), b"application/json"),
            (header::CONTENT_LENGTH.as_str(), length.as_bytes()),
            (REQUEST_ID, id.as_bytes()),
        ];
        let authorization = self.authorization.iter().map(|key| (header::AUTHORIZATION.as_str(), key.as_bytes()));
        for (name, value) in fields.into_iter().chain(authorization) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        head.extend_from_slice(b"\r\n");
        Sending { parts: std::iter::once(Bytes::from(head)).chain(body.parts().iter().cloned()).collect() }
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, failures: &Failures) -> Result<Link, RequestFailure> {
        let opened = tokio::time::timeout(CONNECT_LIMIT, self.open()).await;
        let opened = opened.unwrap_or_else(|_elapsed| {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", CONNECT_LIMIT.as_secs())))
        });
        let io = opened
            .map_err(|error| failures.connect(&format!("could not connect to {}:{}: {error}", self.host, self.port)))?;
        Ok(Link { io })
    }

    async fn open(&self) -> io::Result<Transport> {
        let io = TcpStream::connect((self.host.as_str(), self.port)).await?;
        io.set_nodelay(true)?;
        let stamped = Stamped::new(io);
        match &self.tls {
            None => Ok(Transport::Plain(stamped)),
            Some(tls) => tls.connect(stamped).await,
        }
    }
}

fn bearer(key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A request on its way out. Its head may hold the key, so it can't be printed.
pub(crate) struct Sending {
    /// What has not left yet.
    parts: VecDeque<Bytes>,
}

impl std::fmt::Debug for Sending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sending").field("parts_left", &self.parts.len()).finish_non_exhaustive()
    }
}

/// An open connection. The task that uses it drives it: no second task, no hand-over between bytes and reader.
#[derive(Debug)]
pub(crate) struct Link {
    io: Transport,
}

impl Link {
    /// The socket's notes.
    pub(crate) fn notes(&self) -> &Notes {
        self.io.socket().notes()
    }

    /// Forgets the notes about the last request's bytes.
    pub(crate) fn begin_request(&mut self) {
        self.io.socket_mut().begin_request();
    }

    /// Writes what is left of a request; ready when all of it has been handed over.
    pub(crate) fn poll_send(&mut self, sending: &mut Sending, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !sending.parts.is_empty() {
            let mut slices = [IoSlice::new(&[]); MOST_PARTS];
            for (slice, part) in slices.iter_mut().zip(&sending.parts) {
                *slice = IoSlice::new(part);
            }
            let mut written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            while let Some(part) = sending.parts.front_mut() {
                if written < part.len() {
                    part.advance(written);
                    break;
                }
                written -= part.len();
                sending.parts.pop_front();
            }
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Hands the next bytes to `take`; none of them: the other side has closed.
    pub(crate) fn poll_read<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8], Read) -> T,
    ) -> Poll<io::Result<T>> {
        ROOM.with_borrow_mut(|room| {
            let mut buffer = ReadBuf::new(room);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
            Poll::Ready(Ok(take(buffer.filled(), self.notes().last_read())))
        })
    }

    /// Whether a kept connection can take another request: it is open and nothing has come meanwhile.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(self.poll_read(cx, |_bytes, _read| ()).is_pending())).await
    }
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

    fn head(address: &Address, id: &str) -> String {
        let sending = address.request("/v1/chat/completions", &Body::new([], 1), id);
        String::from_utf8(sending.parts[0].to_vec()).unwrap()
    }

    #[test]
    fn addresses_keep_their_base_path() {
        let check = |url: &str, host: &str, port: u16, path: &str| {
            let address = address(url, "");
            let head = head(&address, "id");
            let seen = (address.host.as_str(), address.port, head.split(' ').nth(1));
            assert_eq!(seen, (host, port, Some(path)), "{url}");
        };
        check("http://127.0.0.1:8000", "127.0.0.1", 8_000, "/v1/chat/completions");
        check("http://[::1]:8000/v1", "::1", 8_000, "/v1/chat/completions");
        check("http://host/case/A01/v1", "host", 80, "/case/A01/v1/chat/completions");
    }

    #[test]
    fn a_request_names_what_it_wants() {
        let address = address("http://host:81", "secret-key");
        let head = head(&address, "run-1").replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(head.replace('\r', "").trim_end(), @"
        POST /v1/chat/completions HTTP/1.1
        host: host:81
        user-agent: speedmatrix/VERSION
        accept: text/event-stream
        accept-encoding: identity
        content-type: application/json
        content-length: 0
        x-request-id: run-1
        authorization: Bearer secret-key
        ");
        let sending = address.request("/v1/chat/completions", &Body::new([], 1), "run-1");
        assert_eq!(format!("{sending:?}"), "Sending { parts_left: 1, .. }", "it holds the key");
    }
}
