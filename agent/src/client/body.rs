//! Request bodies that share their large parts.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A request body whose large document is shared by many requests: its parts are sent one after the other and never
/// copied. Cloning counts a reference.
#[derive(Debug, Clone)]
pub struct Body {
    parts: Arc<[Bytes]>,
}

impl Body {
    /// A body of these parts, in order.
    pub fn new(parts: impl IntoIterator<Item = Bytes>) -> Self {
        Self { parts: parts.into_iter().filter(|part| !part.is_empty()).collect() }
    }

    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The parts on their way out, once.
    pub(crate) fn sender(&self) -> SendBody {
        SendBody { body: self.clone(), next: 0, left: self.len() }
    }
}

/// A body on its way out: one frame per part.
#[derive(Debug)]
pub(crate) struct SendBody {
    body: Body,
    next: usize,
    left: u64,
}

impl http_body::Body for SendBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let me = self.get_mut();
        let Some(part) = me.body.parts.get(me.next) else { return Poll::Ready(None) };
        me.next += 1;
        me.left -= part.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(part.clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn parts_leave_in_order_and_uncopied() {
        let document = Bytes::from(vec![b'x'; 1_000]);
        let body = Body::new([Bytes::from_static(b"{"), document.clone(), Bytes::new(), Bytes::from_static(b"}")]);
        assert_eq!(body.len(), 1_002);
        let mut sender = body.sender();
        let mut parts = Vec::new();
        while let Some(frame) = sender.frame().await {
            parts.push(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[1].as_ptr(), document.as_ptr(), "the document is shared");
        assert!(http_body::Body::is_end_stream(&sender));
    }
}
