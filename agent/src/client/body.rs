//! Request bodies that share their large parts.

use std::sync::Arc;

use bytes::Bytes;

/// A request body whose large document is shared by many requests: its parts are sent one after the other and never
/// copied. Cloning counts a reference.
#[derive(Debug, Clone)]
pub struct Body {
    parts: Arc<[Bytes]>,
    max_output_tokens: u32,
    rid: Option<Arc<str>>,
}

impl Body {
    /// A body of these parts, in order, which asks for at most so many output tokens.
    pub fn new(parts: impl IntoIterator<Item = Bytes>, max_output_tokens: u32) -> Self {
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Self { parts, max_output_tokens, rid: None }
    }

    /// The most output tokens that it asks for.
    pub const fn max_output_tokens(&self) -> u32 {
        self.max_output_tokens
    }

    /// The same body, which gives its request the id `rid`: by it an engine can be told to end the request.
    #[must_use]
    pub fn with_rid(self, rid: Option<Arc<str>>) -> Self {
        Self { rid, ..self }
    }

    /// The id that it gives its request, if any.
    pub fn rid(&self) -> Option<&Arc<str>> {
        self.rid.as_ref()
    }

    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Its parts in order, none of them empty.
    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_in_order_and_uncopied() {
        let document = Bytes::from(vec![b'x'; 1_000]);
        let parts = [Bytes::from_static(b"{"), document.clone(), Bytes::new(), Bytes::from_static(b"}")];
        let body = Body::new(parts, 8);
        assert_eq!(body.len(), 1_002);
        assert_eq!(body.parts().len(), 3);
        assert_eq!(body.parts()[1].as_ptr(), document.as_ptr(), "the document is shared");
    }
}
