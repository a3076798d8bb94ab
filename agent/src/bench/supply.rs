//! Where a slot's next request body comes from. A body is ready before it is needed.

use std::sync::Arc;

use bytes::Bytes;
use speedmatrix_shared::{plan::Questions, units::Context};
use tokio::{runtime::Handle, task::JoinHandle};

use crate::{
    client::Body,
    prompt::{
        request::{Requests, Wish},
        text::{Document, Library, Purpose, Shelfmark},
    },
};

/// What all bodies of a cell share.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) library: Arc<Library>,
    pub(super) requests: Arc<Requests>,
    pub(super) context: Context,
    /// Length of its documents, characters.
    pub(super) chars: usize,
    pub(super) max_output_tokens: u32,
    pub(super) questions: Questions,
}

impl Recipe {
    /// A body around `document`, with the question and sampling seed number `restart` of `mark`.
    pub(super) fn body(&self, document: &Document, mark: Shelfmark, restart: u64) -> Body {
        self.body_of(std::slice::from_ref(&document.bytes), mark, restart)
    }

    /// As [`Recipe::body`], around a text in pieces.
    fn body_of(&self, text: &[Bytes], mark: Shelfmark, restart: u64) -> Body {
        let number = self.library.request_number(mark, restart);
        let rid = self.requests.next_rid();
        let wish = Wish { max_output_tokens: self.max_output_tokens, number };
        Body::new(self.requests.parts(text, wish, rid.as_deref()), self.max_output_tokens).with_rid(rid)
    }

    /// The body of a measured request: where all ask the same, that of the first slot's first one.
    fn measured(&self, text: &[Bytes], mark: Shelfmark, restart: u64) -> Body {
        match self.questions {
            Questions::Varied => self.body_of(text, mark, restart),
            Questions::Identical => self.body_of(text, self.mark(Purpose::Decode, 0), 0),
        }
    }

    pub(super) fn mark(&self, purpose: Purpose, number: u64) -> Shelfmark {
        Shelfmark { purpose, context: self.context, number }
    }

    pub(super) fn document(&self, mark: Shelfmark) -> Document {
        self.library.document(mark, self.chars)
    }
}

/// The bodies of one slot, one after the other.
#[derive(Debug)]
pub(super) struct Supply {
    recipe: Recipe,
    slot: u64,
    restart: u64,
    stock: Stock,
}

#[derive(Debug)]
enum Stock {
    /// The same document for all requests of the slot.
    Kept(Document),
    /// A fresh document for each, after a part that all share; the next one is written elsewhere while the current one
    /// is in flight.
    Fresh { shared: Bytes, writers: Handle, first: u64, next: Option<JoinHandle<(Document, Shelfmark)>> },
}

impl Supply {
    /// Requests of `slot` on one document.
    pub(super) fn kept(recipe: Recipe, slot: u64, document: Document) -> Self {
        Self { recipe, slot, restart: 0, stock: Stock::Kept(document) }
    }

    /// Requests of `slot` on a fresh document each, which begins with `shared`; `first` is a number from which on no
    /// document of the run has been used. Documents are written on `writers`.
    pub(super) fn fresh(recipe: Recipe, slot: u64, shared: Bytes, first: u64, writers: Handle) -> Self {
        let recipe = Recipe { chars: recipe.chars.saturating_sub(shared.len()).max(1), ..recipe };
        Self { recipe, slot, restart: 0, stock: Stock::Fresh { shared, writers, first, next: None } }
    }

    /// The next body.
    pub(super) async fn next(&mut self) -> Body {
        let restart = self.restart;
        self.restart += 1;
        let (recipe, slot) = (&self.recipe, self.slot);
        match &mut self.stock {
            Stock::Kept(document) => {
                recipe.measured(std::slice::from_ref(&document.bytes), recipe.mark(Purpose::Decode, slot), restart)
            }
            Stock::Fresh { shared, writers, first, next } => {
                let first = *first;
                let order = |restart: u64| {
                    let recipe = recipe.clone();
                    // A slot's requests of a cell lie in a range of their own.
                    let mark = recipe.mark(Purpose::Fresh, first + (slot << 20) + restart);
                    writers.spawn_blocking(move || (recipe.document(mark), mark))
                };
                let current = next.take().unwrap_or_else(|| order(restart));
                let written = current.await;
                *next = Some(order(restart + 1));
                // The serving runtime may be shutting down; the document is then written here.
                let (document, mark) = written.unwrap_or_else(|_gone| {
                    let mark = recipe.mark(Purpose::Fresh, first + (slot << 20) + restart);
                    (recipe.document(mark), mark)
                });
                let text = [shared.clone(), document.bytes];
                recipe.measured(&text, mark, restart)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speedmatrix_shared::plan::Sampling;

    use crate::prompt::request::Dialect;

    fn recipe() -> Recipe {
        Recipe {
            library: Arc::new(Library::new(0, "run-1".parse().unwrap())),
            requests: Arc::new(Requests::new("m", Sampling::default(), Dialect::default())),
            context: "1K".parse().unwrap(),
            chars: 400,
            max_output_tokens: 8,
            questions: Questions::Varied,
        }
    }

    #[tokio::test]
    async fn a_kept_document_gets_a_new_question_each_time() {
        let recipe = recipe();
        let document = recipe.document(recipe.mark(Purpose::Decode, 0));
        let mut supply = Supply::kept(recipe, 3, document);
        let (first, second) = (supply.next().await, supply.next().await);
        assert_eq!(first.max_output_tokens(), 8);
        assert_ne!(format!("{first:?}"), format!("{second:?}"));
    }

    #[tokio::test]
    async fn fresh_documents_never_repeat() {
        let mut bodies = std::collections::HashSet::new();
        for slot in 0..3 {
            let mut supply = Supply::fresh(recipe(), slot, Bytes::new(), 0, Handle::current());
            for _ in 0..4 {
                let body = format!("{:?}", supply.next().await);
                let document = body.split("content").nth(1).unwrap().to_owned();
                assert!(bodies.insert(document[..60].to_owned()));
            }
        }
    }

    #[tokio::test]
    async fn mixed_documents_share_their_beginning_only() {
        let shared = Bytes::from_static(b"the shared part");
        let mut supply = Supply::fresh(recipe(), 0, shared, 0, Handle::current());
        let texts = [supply.next().await, supply.next().await].map(|body| body.parts().concat());
        let [one, other] = texts.map(|text| String::from_utf8(text).unwrap());
        let begin = one.find("the shared part").unwrap();
        let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        assert!((begin + 15..begin + 40).contains(&same), "{same} bytes are the same");
        assert_eq!(one.find("Task").map(|end| end - begin), Some(401), "as long as it should be, and a space");
    }

    #[tokio::test]
    async fn identical_questions_are_the_same_bytes() {
        let recipe = Recipe { questions: Questions::Identical, ..recipe() };
        let document = recipe.document(recipe.mark(Purpose::Decode, 0));
        let mut bodies = Vec::new();
        for slot in 0..2 {
            let mut supply = Supply::kept(recipe.clone(), slot, document.clone());
            bodies.extend([supply.next().await.parts().concat(), supply.next().await.parts().concat()]);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
}
