//! HTTP/1.1 answers as their bytes come (RFC 9112): a head, then a body in one of its framings. Nothing is copied but a
//! head that comes in pieces, and every length is bounded. Pure, and open to whoever has bytes for it.

use http::{
    HeaderMap, StatusCode,
    header::{self, HeaderName, HeaderValue},
};

/// Largest head of an answer.
const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// Most fields of a head.
const HEADERS_LIMIT: usize = 128;
/// Most bytes of one body that are neither size nor content: chunk extensions and trailers.
const EXTRAS_LIMIT_BYTES: usize = 16 << 10;
/// Digits of the largest chunk size, 64 bits.
const SIZE_DIGITS: u8 = 16;

/// Bytes that are no HTTP/1.1 answer, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(String);

fn bad(what: impl Into<String>) -> BadAnswer {
    BadAnswer(what.into())
}

/// What an answer says before its body.
#[derive(Debug)]
pub struct Head {
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub headers: HeaderMap,
    /// What becomes of the connection after the body.
    pub after: After,
    /// Reads what follows.
    pub body: BodyReader,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The next request may use it.
    Keep,
    /// The server closes it.
    Close,
}

/// Reads a head.
#[derive(Debug, Default)]
pub struct HeadReader {
    /// A head as far as it has come.
    held: Vec<u8>,
    /// Bytes of heads that only announced the answer.
    interim: usize,
}

impl HeadReader {
    /// Whether nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes the next bytes. Gives the head once it is whole, and what follows it in `bytes`.
    pub fn push<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<(Head, &'b [u8])>, BadAnswer> {
        let mut bytes = bytes;
        loop {
            let before = self.held.len();
            self.held.extend_from_slice(bytes);
            let Some((head, length)) = parse(&self.held)? else {
                if self.held.len() > HEAD_LIMIT_BYTES {
                    return Err(bad(format!("the answer's head is longer than {HEAD_LIMIT_BYTES} bytes")));
                }
                return Ok(None);
            };
            bytes = bytes.get(length - before..).unwrap_or_default();
            self.held.clear();
            // 100 Continue and its like announce the real answer.
            if !head.status.is_informational() {
                self.interim = 0;
                return Ok(Some((head, bytes)));
            }
            self.interim += length;
            if self.interim > HEAD_LIMIT_BYTES {
                return Err(bad(format!("over {HEAD_LIMIT_BYTES} bytes announced an answer, and none came")));
            }
        }
    }
}

/// The head at the start of `bytes` and its length; `None` while it is not whole.
fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, BadAnswer> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut answer = httparse::Response::new(&mut fields);
    let length = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(bad(format!("what came is no http answer: {error}"))),
    };
    let status = StatusCode::from_u16(answer.code.unwrap_or_default())
        .map_err(|error| bad(format!("the answer's status can't be read: {error}")))?;
    let mut headers = HeaderMap::with_capacity(answer.headers.len());
    for field in answer.headers.iter() {
        let named = (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value));
        let (Ok(name), Ok(value)) = named else {
            return Err(bad(format!("the answer's header {} can't be read", field.name)));
        };
        headers.append(name, value);
    }
    let framing = framing(status, &headers)?;
    let persistent = match answer.version {
        Some(0) => says(&headers, header::CONNECTION, "keep-alive"),
        _ => !says(&headers, header::CONNECTION, "close"),
    };
    let after = if persistent && framing != Framing::UntilClose { After::Keep } else { After::Close };
    Ok(Some((Head { status, headers, after, body: BodyReader { framing, extras: 0 } }, length)))
}

/// Whether a list header holds this word.
fn says(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let words =
        headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
    words.map(str::trim).any(|said| said.eq_ignore_ascii_case(word))
}

/// How a body ends (RFC 9112 §6.3).
fn framing(status: StatusCode, headers: &HeaderMap) -> Result<Framing, BadAnswer> {
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(Framing::Length { left: 0 });
    }
    if headers.contains_key(header::TRANSFER_ENCODING) {
        let chunked = says(headers, header::TRANSFER_ENCODING, "chunked");
        return Ok(if chunked { Framing::Chunked(Chunk::START) } else { Framing::UntilClose });
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).into_iter();
    let Some(length) = lengths.next() else { return Ok(Framing::UntilClose) };
    if lengths.any(|other| other != length) {
        return Err(bad("the answer gives two different lengths"));
    }
    let left = length.to_str().ok().and_then(|text| text.trim().parse().ok());
    let left = left.ok_or_else(|| bad(format!("the answer's content-length {length:?} is no number")))?;
    Ok(Framing::Length { left })
}

/// Reads a body.
#[derive(Debug, PartialEq, Eq)]
pub struct BodyReader {
    framing: Framing,
    /// Bytes of extensions and trailers so far.
    extras: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunked(Chunk),
    Length { left: u64 },
    UntilClose,
}

/// Where a chunked body stands (RFC 9112 §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Size { bytes: u64, digits: u8 },
    Extension { bytes: u64 },
    Data { left: u64 },
    DataEnd,
    Trailer { line_bytes: usize },
    Done,
}

impl Chunk {
    const START: Self = Self::Size { bytes: 0, digits: 0 };

    const fn after_size(bytes: u64) -> Self {
        if bytes == 0 { Self::Trailer { line_bytes: 0 } } else { Self::Data { left: bytes } }
    }
}

/// The next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'b> {
    /// Content.
    Data(&'b [u8]),
    /// All bytes were taken and more must come.
    More,
    /// The body is whole.
    End,
}

impl BodyReader {
    /// Takes the next piece off the front of `bytes`.
    pub fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Piece<'b>, BadAnswer> {
        loop {
            match &mut self.framing {
                Framing::Length { left: 0 } | Framing::Chunked(Chunk::Done) => return Ok(Piece::End),
                _ if bytes.is_empty() => return Ok(Piece::More),
                Framing::UntilClose => return Ok(Piece::Data(std::mem::take(bytes))),
                Framing::Length { left } => return Ok(Piece::Data(take(bytes, left))),
                Framing::Chunked(chunk) => match chunk {
                    Chunk::Data { left } => {
                        let data = take(bytes, left);
                        if *left == 0 {
                            *chunk = Chunk::DataEnd;
                        }
                        return Ok(Piece::Data(data));
                    }
                    other => {
                        let Some((byte, rest)) = bytes.split_first() else { return Ok(Piece::More) };
                        *other = step(*other, *byte, &mut self.extras)?;
                        *bytes = rest;
                    }
                },
            }
        }
    }

    /// Whether the body is whole.
    pub fn is_over(&self) -> bool {
        matches!(self.framing, Framing::Length { left: 0 } | Framing::Chunked(Chunk::Done))
    }

    /// Whether the end of the connection may be the end of the body.
    pub fn may_end_here(&self) -> bool {
        self.is_over() || self.framing == Framing::UntilClose
    }
}

fn take<'b>(bytes: &mut &'b [u8], left: &mut u64) -> &'b [u8] {
    let length = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    let (data, rest) = bytes.split_at(length);
    *bytes = rest;
    *left -= length as u64;
    data
}

/// One byte around the chunks. A line may end without its carriage return, as with most clients.
fn step(chunk: Chunk, byte: u8, extras: &mut usize) -> Result<Chunk, BadAnswer> {
    let mut extra = |next: Chunk| {
        *extras += 1;
        if *extras > EXTRAS_LIMIT_BYTES { Err(bad("endless chunk extensions or trailers came")) } else { Ok(next) }
    };
    match (chunk, byte) {
        (Chunk::Size { digits: 0, .. }, b'\r' | b'\n') => Err(bad("a chunk without a size came")),
        (Chunk::Size { bytes, .. } | Chunk::Extension { bytes }, b'\n') => Ok(Chunk::after_size(bytes)),
        (Chunk::Size { bytes, digits: 1.. }, b';' | b' ' | b'\t') | (Chunk::Extension { bytes }, _) => {
            extra(Chunk::Extension { bytes })
        }
        (Chunk::Size { .. } | Chunk::DataEnd | Chunk::Trailer { .. }, b'\r')
        | (Chunk::Data { .. } | Chunk::Done, _) => Ok(chunk),
        (Chunk::Size { bytes, digits: digits @ ..SIZE_DIGITS }, digit) if digit.is_ascii_hexdigit() => {
            let value = char::from(digit).to_digit(16).unwrap_or_default();
            Ok(Chunk::Size { bytes: bytes << 4 | u64::from(value), digits: digits + 1 })
        }
        (Chunk::Size { .. }, _) => Err(bad("a chunk's size can't be read")),
        (Chunk::DataEnd, b'\n') => Ok(Chunk::START),
        (Chunk::DataEnd, _) => Err(bad("a chunk is longer than it says")),
        (Chunk::Trailer { line_bytes: 0 }, b'\n') => Ok(Chunk::Done),
        (Chunk::Trailer { .. }, b'\n') => Ok(Chunk::Trailer { line_bytes: 0 }),
        (Chunk::Trailer { line_bytes }, _) => extra(Chunk::Trailer { line_bytes: line_bytes + 1 }),
    }
}

#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
