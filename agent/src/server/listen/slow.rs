//! Clients that say or take almost nothing, in order to keep a connection busy.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, timeout_at},
};

use super::{Limits, seats::Seat};

/// A body did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("it came too slowly")]
pub(in crate::server) struct TooSlow;

/// Ends the body of a request that comes too slowly with [`TooSlow`].
pub(super) async fn bound_body(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    next.run(request.map(|body| if body.is_end_stream() { body } else { bounded(body, limits) })).await
}

fn bounded(body: Body, limits: Limits) -> Body {
    let end = Instant::now() + limits.body;
    let pieces = stream::unfold(Some(body.into_data_stream()), move |pieces| async move {
        let mut pieces = pieces?;
        let limit = end.min(Instant::now() + limits.body_pause);
        match timeout_at(limit, pieces.next()).await {
            Ok(piece) => Some((piece?, Some(pieces))),
            Err(_elapsed) => Some((Err::<Bytes, _>(axum::Error::new(TooSlow)), None)),
        }
    });
    Body::from_stream(pieces)
}

/// A stream that ends when the other side takes nothing of what it asked for, and keeps its seat until it ends.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    limit: Duration,
    /// Set while something waits to be taken.
    waits: Option<Pin<Box<Sleep>>>,
    _seat: Seat,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, limit: Duration, seat: Seat) -> Self {
        Self { stream, limit, waits: None, _seat: seat }
    }

    /// The stream itself, to look at it without taking anything.
    pub(super) const fn socket(&self) -> &S {
        &self.stream
    }

    /// What comes of an attempt to send.
    fn sent<T>(&mut self, sent: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.waits = None;
            return sent;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        ready!(waits.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.sent(sent, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.sent(sent, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.stream).poll_flush(cx);
        this.sent(sent, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.sent(sent, cx)
    }
}
