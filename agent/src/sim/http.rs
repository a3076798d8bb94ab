//! HTTP/1.1 by hand, as little as the simulator needs: the streaming path owns its socket, so that a chunk is stamped
//! right before its write and no library buffers it.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

const HEAD_LIMIT_BYTES: usize = 32 << 10;
const HEADERS_LIMIT: usize = 64;
/// Largest request body; a prompt of a million tokens has 5 MB.
pub(super) const BODY_LIMIT_BYTES: u64 = 64 << 20;
/// Bytes that a client may send ahead while its answer is streamed.
const AHEAD_LIMIT_BYTES: usize = 64 << 10;
/// A connection without a request, as long as common proxies keep one.
const IDLE_LIMIT: Duration = Duration::from_mins(2);
const HEAD_TIME_LIMIT: Duration = Duration::from_secs(10);
/// Silence in the middle of a body, or a client that doesn't take its answer.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// A client's connection between two requests.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) read: OwnedReadHalf,
    pub(super) write: OwnedWriteHalf,
    /// Read and not yet used.
    pub(super) buffer: BytesMut,
}

/// The parts of a request's head that the simulator looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) authorization: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) body: BodyKind,
    pub(super) expects: Expects,
    pub(super) after: After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Bytes(u64),
    /// Chunked: the simulator doesn't read these.
    Chunked,
}

/// Whether the client waits for `100 Continue`; curl does so for bodies above 1 MB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expects {
    Nothing,
    Continue,
}

/// What the client wants of the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    KeepAlive,
    Close,
}

/// Why no request could be read.
#[derive(Debug)]
pub(super) enum Unread {
    /// The client is gone, or too slow to wait for.
    Gone,
    /// The client must be told; the connection is closed after that.
    Bad(Answer),
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
    pub(super) retry_after_secs: Option<u64>,
    pub(super) request_id: Option<String>,
}

impl Answer {
    pub(super) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::bytes(status, "application/json", body.to_string().into_bytes())
    }

    pub(super) fn bytes(status: u16, kind: &'static str, body: Vec<u8>) -> Self {
        Self { status, kind, body, retry_after_secs: None, request_id: None }
    }

    /// The answer as it goes over the wire.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { status, kind, body, retry_after_secs, request_id } = self;
        let id = request_id.as_ref().map(|id| format!("x-request-id: {id}\r\n")).unwrap_or_default();
        let retry = retry_after_secs.map(|secs| format!("retry-after: {secs}\r\n")).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status} {}\r\nserver: uvicorn\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{id}{retry}\r\n",
            reason(*status),
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    /// An error in vLLM's shape.
    pub(super) fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = serde_json::json!({"message": message, "type": kind, "param": null, "code": status});
        Self::json(status, &serde_json::json!({ "error": error }))
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        Ok(Self { read, write, buffer: BytesMut::new() })
    }

    /// The next request's head.
    pub(super) async fn head(&mut self) -> Result<Head, Unread> {
        if self.buffer.is_empty() {
            self.more(IDLE_LIMIT).await?;
        }
        timeout(HEAD_TIME_LIMIT, self.rest_of_head()).await.unwrap_or(Err(Unread::Gone))
    }

    async fn rest_of_head(&mut self) -> Result<Head, Unread> {
        loop {
            if let Some((head, length)) = parse(&self.buffer)? {
                self.buffer.advance(length);
                return Ok(head);
            }
            if self.buffer.len() > HEAD_LIMIT_BYTES {
                return Err(Unread::Bad(Answer::error(431, "Bad Request", "the request's head is longer than 32 KiB")));
            }
            self.more(HEAD_TIME_LIMIT).await?;
        }
    }

    /// The body that belongs to `head`.
    pub(super) async fn body(&mut self, head: &Head) -> Result<Vec<u8>, Unread> {
        let BodyKind::Bytes(length) = head.body else {
            return Err(Unread::Bad(Answer::error(411, "Bad Request", "send the body with a content-length")));
        };
        let Some(length) = usize::try_from(length).ok().filter(|length| *length as u64 <= BODY_LIMIT_BYTES) else {
            return Err(Unread::Bad(Answer::error(413, "Bad Request", "the body is longer than 64 MiB")));
        };
        if head.expects == Expects::Continue {
            self.write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let mut body = Vec::with_capacity(length);
        let buffered = self.buffer.split_to(length.min(self.buffer.len()));
        body.extend_from_slice(&buffered);
        while body.len() < length {
            let missing = (length - body.len()) as u64;
            let mut rest = (&mut self.read).take(missing);
            let read = timeout(STALL_LIMIT, rest.read_buf(&mut body)).await;
            if !matches!(read, Ok(Ok(1..))) {
                return Err(Unread::Gone);
            }
        }
        Ok(body)
    }

    /// Writes a whole answer.
    pub(super) async fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        self.write_all(&answer.to_bytes()).await
    }

    /// Writes the head of an event stream.
    pub(super) async fn begin_stream(&mut self, request_id: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
             x-request-id: {request_id}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.write_all(head.as_bytes()).await
    }

    /// Writes all of it, unless the client takes nothing for too long.
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        timeout(STALL_LIMIT, self.write.write_all(bytes)).await?
    }

    async fn more(&mut self, limit: Duration) -> Result<(), Unread> {
        match timeout(limit, self.read.read_buf(&mut self.buffer)).await {
            Ok(Ok(1..)) => Ok(()),
            _ => Err(Unread::Gone),
        }
    }
}

/// Returns when the client has closed its side; what it sends ahead is kept for later, up to a limit.
pub(super) async fn client_left(read: &mut OwnedReadHalf, buffer: &mut BytesMut) {
    while buffer.len() < AHEAD_LIMIT_BYTES {
        if !matches!(read.read_buf(buffer).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// The head at the start of `buffer` and its length, or `None` while it isn't complete.
fn parse(buffer: &[u8]) -> Result<Option<(Head, usize)>, Unread> {
    let bad = |message: &str| Unread::Bad(Answer::error(400, "Bad Request", message));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(bad(&format!("the request's head can't be read: {error}"))),
    };
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        authorization: None,
        request_id: None,
        body: BodyKind::Bytes(0),
        expects: Expects::Nothing,
        after: if request.version == Some(0) { After::Close } else { After::KeepAlive },
    };
    for header in request.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else {
            continue;
        };
        let value = value.trim();
        match header.name.to_ascii_lowercase().as_str() {
            "authorization" => head.authorization = Some(value.to_owned()),
            "x-request-id" => head.request_id = Some(harmless(value)).filter(|id| !id.is_empty()),
            "content-length" => {
                head.body = BodyKind::Bytes(
                    value.parse().map_err(|error| bad(&format!("content-length `{value}` is no number: {error}")))?,
                );
            }
            "transfer-encoding" => head.body = BodyKind::Chunked,
            "expect" if value.eq_ignore_ascii_case("100-continue") => {
                head.expects = Expects::Continue;
            }
            "connection" if value.eq_ignore_ascii_case("close") => head.after = After::Close,
            _ => {}
        }
    }
    Ok(Some((head, length)))
}

/// An id that can stand in JSON and in headers.
fn harmless(id: &str) -> String {
    let safe = |c: &char| c.is_ascii_graphic() && !"\"\\".contains(*c);
    id.chars().filter(safe).take(128).collect()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_complete() {
        let text = b"POST /v1/chat/completions?x=1 HTTP/1.1\r\nContent-Length: 12\r\nX-Request-Id: a\"b/1\r\n\
            Authorization: Bearer k\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nbody";
        for end in 0..text.len() - 4 {
            assert!(parse(&text[..end]).unwrap().is_none(), "{end} bytes are no head");
        }
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!(&text[length..], b"body");
        let want = Head {
            method: "POST".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            query: "x=1".to_owned(),
            authorization: Some("Bearer k".to_owned()),
            request_id: Some("ab/1".to_owned()),
            body: BodyKind::Bytes(12),
            expects: Expects::Continue,
            after: After::Close,
        };
        assert_eq!(head, want);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["\u{1}\u{2} nonsense\r\n\r\n", "GET / HTTP/1.1\r\ncontent-length: -3\r\n\r\n"] {
            let Err(Unread::Bad(answer)) = parse(text.as_bytes()) else { panic!("{text} was read") };
            assert_eq!(answer.status, 400);
        }
    }
}
