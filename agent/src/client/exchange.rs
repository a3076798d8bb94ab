//! One request and its answer on one connection: bytes out and bytes in side by side, as a server may answer before it has
//! read everything.

use std::{
    io,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use http::{HeaderMap, header};
use speedmatrix_shared::{
    trace::{FailureKind, RequestFailure},
    units::Nanos,
};

use super::{
    SlotCounters,
    answer::Answer,
    failure::{Failures, retry_after},
    http1::{After, BadAnswer, BodyReader, Head, HeadReader, Piece},
    link::{Link, Sending},
    patience::{Interrupt, Patience, Step},
    record::Progress,
    settle::{Closing, Try},
    stamped::Read,
};

/// How long the rest of a finished answer may take, for the connection to be kept (real time).
const REST_LIMIT: Duration = Duration::from_millis(20);

/// A request on its way, with all that it fills in.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    link: Link,
    /// `None` once all of it has left, or can't any more.
    sending: Option<Sending>,
    intake: Intake<'a>,
}

/// What else an exchange told.
#[derive(Debug)]
pub(super) struct Told {
    /// How long the server asks to wait.
    pub(super) retry_after: Option<Nanos>,
    pub(super) heard: Heard,
}

/// Whether a connection ended in silence: a kept one may have been closed before it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It ended before any byte of an answer.
    Nothing,
    /// An answer came, or at least the connection did not end.
    Something,
}

impl<'a> Exchange<'a> {
    /// Of a request that is about to leave over `link`.
    pub(super) fn new(
        mut link: Link,
        sending: Sending,
        attempt: &'a mut Try,
        counters: &'a SlotCounters,
        failures: &'a Failures,
    ) -> Self {
        link.begin_request();
        let stage = Stage::Head(HeadReader::default());
        let intake = Intake { stage, after: After::Keep, retry_after: None, attempt, counters, failures };
        Self { link, sending: Some(sending), intake }
    }

    /// Runs it to its end and notes how it ended. Gives the connection back if it can be used again.
    pub(super) async fn run(mut self, mut patience: Patience, idle_limit: Nanos) -> (Option<Link>, Told) {
        let closing = match patience.wait(&mut self).await {
            Ok(closing) => closing,
            Err(Interrupt::Cut) => Closing::Cut,
            Err(Interrupt::Silent) => Closing::Silent { limit: idle_limit },
        };
        let notes = self.link.notes();
        (self.intake.attempt.send_started, self.intake.attempt.send_finished) =
            (notes.first_write(), notes.last_write());
        let silent = matches!(closing, Closing::Broken(_)) && self.intake.is_untouched();
        let heard = if silent { Heard::Nothing } else { Heard::Something };
        let told = Told { retry_after: self.intake.retry_after, heard };
        let whole = closing == Closing::Whole;
        self.intake.finish(closing, notes.last_read());
        let good = whole && self.intake.attempt.record.error.is_none() && self.sending.is_none();
        let keep = good && self.rest().await;
        (keep.then_some(self.link), told)
    }

    /// Reads what still belongs to a finished answer; whether the connection is free for the next request then.
    async fn rest(&mut self) -> bool {
        let rest = std::future::poll_fn(|cx| {
            while self.intake.after == After::Keep && !self.intake.is_over() {
                if ready!(self.poll_bytes(cx)).is_err() {
                    self.intake.after = After::Close;
                }
            }
            Poll::Ready(self.intake.after == After::Keep)
        });
        tokio::time::timeout(REST_LIMIT, rest).await.unwrap_or(false)
    }

    /// Reads once and takes it in. A closing says how that ended the answer.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Closing>>> {
        let intake = &mut self.intake;
        self.link.poll_read(cx, |bytes, read| intake.take(bytes, read))
    }
}

impl Step for Exchange<'_> {
    type Done = Closing;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Closing> {
        if let Some(sending) = &mut self.sending {
            match self.link.poll_send(sending, cx) {
                Poll::Ready(Ok(())) => self.sending = None,
                Poll::Ready(Err(_)) => {
                    // Whoever refuses the rest of a request may have said why: the answer, or its absence, is the news.
                    (self.sending, self.intake.after) = (None, After::Close);
                }
                Poll::Pending => {}
            }
        }
        loop {
            match ready!(self.poll_bytes(cx)) {
                Ok(None) => {}
                Ok(Some(closing)) => return Poll::Ready(closing),
                // So ends TLS where the server doesn't take leave.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(self.intake.closed()),
                Err(error) => return Poll::Ready(Closing::Broken(self.intake.failures.socket(&error))),
            }
        }
    }

    fn last_sign(&self) -> Instant {
        self.link.notes().last_sign()
    }
}

/// Where an answer's bytes go.
#[derive(Debug)]
struct Intake<'a> {
    stage: Stage<'a>,
    after: After,
    retry_after: Option<Nanos>,
    attempt: &'a mut Try,
    counters: &'a SlotCounters,
    failures: &'a Failures,
}

#[derive(Debug)]
enum Stage<'a> {
    Head(HeadReader),
    Body(Answer<'a>, BodyReader),
}

impl Intake<'_> {
    /// Takes what one read brought; nothing: the server has closed.
    fn take(&mut self, bytes: &[u8], read: Read) -> Option<Closing> {
        if bytes.is_empty() {
            return Some(self.closed());
        }
        self.try_take(bytes, read).unwrap_or_else(|failure| Some(Closing::Broken(failure)))
    }

    fn try_take(&mut self, bytes: &[u8], read: Read) -> Result<Option<Closing>, RequestFailure> {
        let mut bytes = bytes;
        let failures = self.failures;
        let broken = |error: BadAnswer| failures.of(FailureKind::Protocol, None, &error.to_string());
        if let Stage::Head(reader) = &mut self.stage {
            let Some((head, rest)) = reader.push(bytes).map_err(broken)? else { return Ok(None) };
            bytes = rest;
            self.begin(head, read)?;
        }
        let Stage::Body(answer, body) = &mut self.stage else { return Ok(None) };
        let record = &mut self.attempt.record;
        loop {
            match body.next(&mut bytes).map_err(broken)? {
                Piece::Data(data) if record.progress == Progress::Running => {
                    answer.take(data, read, record, self.counters)?;
                }
                // The end of the body is all that may come after the end mark: the server goes on.
                Piece::Data(_) => self.after = After::Close,
                Piece::More => return Ok((record.progress != Progress::Running).then_some(Closing::Whole)),
                Piece::End => {
                    if !bytes.is_empty() {
                        self.after = After::Close;
                    }
                    return Ok(Some(Closing::Whole));
                }
            }
        }
    }

    fn begin(&mut self, head: Head, read: Read) -> Result<(), RequestFailure> {
        self.attempt.headers_at = Some(read.at);
        self.attempt.status = Some(head.status);
        self.retry_after = retry_after(&head.headers);
        self.after = if self.after == After::Close { After::Close } else { head.after };
        if let Some(encoding) = encoding(&head.headers) {
            let text = format!("the answer is encoded as {encoding} although only identity was accepted");
            return Err(self.failures.of(FailureKind::UnsupportedEncoding, Some(head.status), &text));
        }
        self.stage = Stage::Body(Answer::new(head.status, head.headers, self.failures), head.body);
        Ok(())
    }

    /// The server closed the connection here.
    fn closed(&mut self) -> Closing {
        self.after = After::Close;
        let (kind, text) = match &self.stage {
            Stage::Body(_, body) if body.may_end_here() => return Closing::Whole,
            Stage::Body(..) => (FailureKind::TruncatedStream, "the connection was closed in the middle of the answer"),
            Stage::Head(_) if self.is_untouched() => {
                (FailureKind::ConnectionReset, "the connection was closed before an answer came")
            }
            Stage::Head(_) => (FailureKind::ConnectionReset, "the connection was closed within the answer's head"),
        };
        Closing::Broken(self.failures.of(kind, self.attempt.status, text))
    }

    fn finish(&mut self, closing: Closing, read: Read) {
        self.attempt.closing = match &mut self.stage {
            Stage::Head(_) => closing,
            Stage::Body(answer, _) => answer.finish(closing, read, &mut self.attempt.record, self.counters),
        };
    }

    /// Whether no byte of an answer came.
    fn is_untouched(&self) -> bool {
        matches!(&self.stage, Stage::Head(reader) if reader.is_empty())
    }

    fn is_over(&self) -> bool {
        matches!(&self.stage, Stage::Body(_, body) if body.is_over())
    }
}

/// A content encoding that was not asked for.
fn encoding(headers: &HeaderMap) -> Option<&str> {
    let encoding = headers.get(header::CONTENT_ENCODING)?.to_str().unwrap_or("an unreadable name");
    (!encoding.eq_ignore_ascii_case("identity")).then_some(encoding)
}
