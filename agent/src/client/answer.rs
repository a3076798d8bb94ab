//! What kind of answer came, and its bytes on their way into the record: a stream, one document, or an error body.

use http::{HeaderMap, StatusCode, header};
use speedmatrix_shared::trace::{FailureKind, RequestFailure};

use super::{
    SlotCounters,
    failure::{ERROR_LIMIT_BYTES, Failures, looks_like_page},
    record::{Progress, Record},
    settle::Closing,
    stamped::Read,
};
use crate::framing::Sse;

/// Largest answer that came as one document: a million tokens of a script outside ASCII, escaped, are some 9 MB.
const DOCUMENT_LIMIT_BYTES: usize = 16 << 20;

/// An answer being read.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    status: StatusCode,
    headers: HeaderMap,
    failures: &'a Failures,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The content type doesn't say: the first byte will.
    Unsure,
    Stream(Sse),
    Document(Vec<u8>),
    Error(Vec<u8>),
}

impl<'a> Answer<'a> {
    /// An answer with this head.
    pub(super) fn new(status: StatusCode, headers: HeaderMap, failures: &'a Failures) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let form = if !status.is_success() {
            Form::Error(Vec::new())
        } else if content_type.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            Form::Stream(Sse::default())
        } else {
            Form::Unsure
        };
        Self { status, headers, failures, form }
    }

    /// Takes the next bytes of its body. Fails when a bound is broken.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        read: Read,
        record: &mut Record,
        counters: &SlotCounters,
    ) -> Result<(), RequestFailure> {
        if matches!(self.form, Form::Unsure)
            && let Some(first) = bytes.trim_ascii_start().first()
        {
            let document = matches!(first, b'{' | b'[' | b'<');
            self.form = if document { Form::Document(Vec::new()) } else { Form::Stream(Sse::default()) };
        }
        let broken = |text: &str| self.failures.of(FailureKind::Protocol, Some(self.status), text);
        match &mut self.form {
            Form::Unsure => Ok(()),
            Form::Stream(sse) => {
                let mut events = sse.push(bytes);
                while let Some(event) = events.next_event() {
                    record.event(event.map_err(|error| broken(&error.to_string()))?, read, counters);
                }
                if record.progress == Progress::TooMuch { Err(broken(&record.too_much())) } else { Ok(()) }
            }
            Form::Document(document) if document.len() + bytes.len() > DOCUMENT_LIMIT_BYTES => {
                Err(broken(&format!("a document of over {DOCUMENT_LIMIT_BYTES} bytes came: it was given up")))
            }
            Form::Document(document) => {
                document.extend_from_slice(bytes);
                Ok(())
            }
            Form::Error(body) => {
                let room = ERROR_LIMIT_BYTES - body.len();
                body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
                // The rest would only be read to be thrown away.
                if body.len() < ERROR_LIMIT_BYTES { Ok(()) } else { Err(broken("an endless error body came")) }
            }
        }
    }

    /// The bytes ended like this: takes what they held, and says how that ends the request.
    pub(super) fn finish(
        &mut self,
        closing: Closing,
        read: Read,
        record: &mut Record,
        counters: &SlotCounters,
    ) -> Closing {
        match &mut self.form {
            Form::Stream(sse) if closing != Closing::Cut => {
                while let Some(event) = sse.finish() {
                    record.event(event, read, counters);
                }
                closing
            }
            // However the body ended, the status is the news.
            Form::Error(body) if closing != Closing::Cut => {
                Closing::Broken(self.failures.status(self.status, &self.headers, body))
            }
            Form::Document(document) if closing == Closing::Whole => {
                let start = document.get(..ERROR_LIMIT_BYTES).unwrap_or(document);
                if looks_like_page(&String::from_utf8_lossy(start)) {
                    return Closing::Broken(self.failures.page(self.status, start));
                }
                record.document(document, read);
                if record.skipped_events == 0 {
                    return closing;
                }
                let start = document.get(..ERROR_LIMIT_BYTES).unwrap_or(document);
                let text = format!("neither a stream nor a JSON document came: {}", String::from_utf8_lossy(start));
                Closing::Broken(self.failures.of(FailureKind::NotAStream, Some(self.status), &text))
            }
            _ => closing,
        }
    }
}
