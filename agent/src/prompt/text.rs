//! Seeded text that reads like prose and never repeats: sentences from a small grammar over the vocabulary in `words`.
//! A document begins with marks of its own, so that no server has any part of it in a cache from before.

use std::{fmt::Write as _, sync::LazyLock};

use bytes::Bytes;
use rand::{Rng, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};
use speedmatrix_shared::{id::RunId, units::Context};

use super::{
    corpus::{Corpus, whole_characters},
    words,
};

/// What a document is for. Each purpose has texts of its own: a calibration prompt never warms a measured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Finding out how many characters a token has.
    Calibration,
    /// Cold prefill requests.
    Prefill,
    /// The document of one decode cell's slot (slot 0: also the one that all slots share).
    Decode,
    /// A fresh document for every request of a decode cell.
    Fresh,
}

impl Purpose {
    const fn key(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Fresh => "fresh",
        }
    }
}

/// Where documents come from: a plan's seed and a run's id.
#[derive(Debug, Clone)]
pub struct Library {
    seed: u64,
    run: RunId,
    corpus: Option<Corpus>,
}

/// Which document of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shelfmark {
    /// What it is for.
    pub purpose: Purpose,
    /// The context that it fills.
    pub context: Context,
    /// Its number among those.
    pub number: u64,
}

/// A text, ready to stand inside a JSON string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text, escaped for JSON. Seeded text is plain ASCII without quotes, backslashes or control characters, so it is
    /// its own escape.
    pub bytes: Bytes,
    /// SHA-256 of `bytes`, lower-case hex.
    pub sha256: String,
}

impl Library {
    /// The documents of one run.
    pub const fn new(seed: u64, run: RunId) -> Self {
        Self { seed, run, corpus: None }
    }

    /// The same, with a person's own text instead of seeded prose.
    #[must_use]
    pub fn with_corpus(self, corpus: Option<Corpus>) -> Self {
        Self { corpus, ..self }
    }

    /// The document at `mark`, exactly `chars` bytes long, which are as many characters unless a corpus has others.
    ///
    /// It begins with a nonce: the first 16 hex digits of SHA-256 over seed, run id, purpose, context and number. The
    /// text after it is drawn from the same hash, so the same plan in the same run gives the same bytes, and another run
    /// (or cell, or slot) differs from the first characters on.
    pub fn document(&self, mark: Shelfmark, chars: usize) -> Document {
        let hash = self.hash(mark);
        let mut text = Vec::with_capacity(chars + LONGEST_SENTENCE);
        let head = format!("{} opens the notes of run {}. ", &hex(&hash)[..16], self.run);
        text.extend_from_slice(head.as_bytes());
        let mut rng = ChaCha8Rng::from_seed(hash);
        if let Some(corpus) = &self.corpus {
            corpus.fill(&mut text, chars, &mut rng);
        } else {
            let mut writer = Writer { rng };
            while text.len() < chars {
                writer.sentence(&mut text);
            }
            text.truncate(chars);
        }
        let sha256 = hex(&Sha256::digest(&text).into());
        Document { bytes: text.into(), sha256 }
    }

    /// A number for the sampling seed and the question of one request of a slot: each request gets its own.
    pub fn request_number(&self, mark: Shelfmark, restart: u64) -> u64 {
        let mut hasher = Sha256::new();
        hasher.update(self.hash(mark));
        hasher.update(restart.to_le_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        u64::from_le_bytes(*hash.first_chunk().expect("a hash has 32 bytes"))
    }

    fn hash(&self, mark: Shelfmark) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.seed.to_le_bytes());
        hasher.update(mark.context.tokens().to_le_bytes());
        hasher.update(mark.number.to_le_bytes());
        hasher.update(mark.purpose.key());
        hasher.update("/");
        hasher.update(self.run.as_str());
        hasher.finalize().into()
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(64);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all text");
    }
    text
}

impl Document {
    /// Its beginning, at most `bytes` long, without half a character at its end.
    pub fn beginning(&self, bytes: usize) -> Bytes {
        self.bytes.slice(..whole_characters(&self.bytes, bytes))
    }
}

/// No sentence of the grammar is longer: at most 30 words of at most 14 letters.
const LONGEST_SENTENCE: usize = 512;

struct Lexicon {
    nouns: Vec<&'static str>,
    adjectives: Vec<&'static str>,
    verbs: Vec<&'static str>,
    adverbs: Vec<&'static str>,
    names: Vec<&'static str>,
    places: Vec<&'static str>,
    times: Vec<&'static str>,
    prepositions: Vec<&'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let list = |text: &'static str| text.split(' ').collect();
    Lexicon {
        nouns: list(words::NOUNS),
        adjectives: list(words::ADJECTIVES),
        verbs: list(words::VERBS),
        adverbs: list(words::ADVERBS),
        names: list(words::NAMES),
        places: list(words::PLACES),
        times: list(words::TIMES),
        prepositions: list(words::PREPOSITIONS),
    }
});

/// Writes sentences. One random word feeds several choices, because drawing is what takes the time.
struct Writer {
    rng: ChaCha8Rng,
}

impl Writer {
    /// A whole sentence, a full stop and a space.
    fn sentence(&mut self, out: &mut Vec<u8>) {
        let lexicon = &*LEXICON;
        match self.below(6) {
            0 => {
                self.actor(out);
                self.action(out);
            }
            1 => {
                out.extend_from_slice(b"Before ");
                self.word(&lexicon.times, out);
                out.truncate(out.len() - 1);
                out.extend_from_slice(b", ");
                self.actor(out);
                self.action(out);
            }
            2 => {
                out.extend_from_slice(b"The ");
                self.thing(out);
                self.place(out);
                out.extend_from_slice(b"was ");
                self.word(&lexicon.adverbs, out);
                self.word(&lexicon.verbs, out);
                out.extend_from_slice(b"by ");
                self.word(&lexicon.names, out);
            }
            3 => {
                self.actor(out);
                self.action(out);
                out.extend_from_slice(b"while ");
                self.actor(out);
                self.action(out);
            }
            4 => {
                out.extend_from_slice(b"In ");
                self.word(&lexicon.places, out);
                out.extend_from_slice(b"a ");
                self.thing(out);
                out.extend_from_slice(b"and a ");
                self.thing(out);
                out.extend_from_slice(b"stood ");
                self.place(out);
            }
            _ => {
                out.extend_from_slice(b"Because the ");
                self.thing(out);
                out.extend_from_slice(b"was ");
                self.word(&lexicon.adjectives, out);
                out.truncate(out.len() - 1);
                out.extend_from_slice(b", ");
                self.actor(out);
                self.word(&lexicon.adverbs, out);
                self.action(out);
            }
        }
        // Words bring a space after them; the stop goes in its place.
        out.truncate(out.len() - 1);
        out.extend_from_slice(b". ");
    }

    fn actor(&mut self, out: &mut Vec<u8>) {
        let lexicon = &*LEXICON;
        self.word(&lexicon.names, out);
        if self.below(3) == 0 {
            out.extend_from_slice(b"of ");
            self.word(&lexicon.places, out);
        }
    }

    fn action(&mut self, out: &mut Vec<u8>) {
        self.word(&LEXICON.verbs, out);
        out.extend_from_slice(b"the ");
        self.thing(out);
        if self.below(2) == 0 {
            self.place(out);
        }
    }

    fn thing(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.below(3) {
            self.word(&LEXICON.adjectives, out);
        }
        self.word(&LEXICON.nouns, out);
    }

    fn place(&mut self, out: &mut Vec<u8>) {
        self.word(&LEXICON.prepositions, out);
        out.extend_from_slice(b"the ");
        self.word(&LEXICON.nouns, out);
    }

    fn word(&mut self, list: &[&'static str], out: &mut Vec<u8>) {
        let chosen = list[self.below(list.len() as u32) as usize];
        out.extend_from_slice(chosen.as_bytes());
        out.push(b' ');
    }

    /// A number below `n`, by multiplying instead of dividing (Lemire 2019, without the rejection: the bias is below
    /// n ÷ 2³²).
    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(n)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn library(seed: u64, run: &str) -> Library {
        Library::new(seed, run.parse().unwrap())
    }

    fn mark(purpose: Purpose, number: u64) -> Shelfmark {
        Shelfmark { purpose, context: "8K".parse().unwrap(), number }
    }

    fn text(document: &Document) -> &str {
        std::str::from_utf8(&document.bytes).unwrap()
    }

    #[test]
    fn a_document_reads_like_prose() {
        let document = library(1, "run-1").document(mark(Purpose::Decode, 0), 420);
        insta::assert_snapshot!(text(&document), @"7165fffc593ff572 opens the notes of run run-1. Odette of Amberford dismantled the proper expensive bell. Before autumn, Camilla of Dalewick spared the crooked lens. Before midsummer, Imogen of Calderon sealed the river above the kettle. The sterile brass beyond the calendar was unusually delivered by Victor. Before sunrise, Marina of Oakenshaw anchored the oven. Tobias designed the pale notable bread while Walter adj");
        insta::assert_snapshot!(document.sha256, @"94fa49b5db0f1c3f81b34ea3a12d911dbd8588c5b8a43cfbddb0ef7562dfdf0d");
    }

    #[test]
    fn the_same_plan_in_the_same_run_gives_the_same_bytes_and_nothing_else_does() {
        let base = library(1, "run-1").document(mark(Purpose::Decode, 0), 10_000);
        assert_eq!(base, library(1, "run-1").document(mark(Purpose::Decode, 0), 10_000));
        let shorter = library(1, "run-1").document(mark(Purpose::Decode, 0), 9_000);
        assert_eq!(base.bytes[..9_000], shorter.bytes);
        let others = [
            library(2, "run-1").document(mark(Purpose::Decode, 0), 10_000),
            library(1, "run-2").document(mark(Purpose::Decode, 0), 10_000),
            library(1, "run-1").document(mark(Purpose::Prefill, 0), 10_000),
            library(1, "run-1").document(mark(Purpose::Decode, 1), 10_000),
        ];
        let heads: HashSet<_> = others.iter().chain([&base]).map(|document| &document.bytes[..16]).collect();
        assert_eq!(heads.len(), 5, "each begins with characters of its own");
    }

    #[test]
    fn nothing_needs_an_escape() {
        let document = library(7, "run-1").document(mark(Purpose::Fresh, 3), 100_000);
        assert!(document.bytes.iter().all(|b| (0x20..0x7f).contains(b) && !matches!(b, b'"' | b'\\')));
        assert_eq!(document.bytes.len(), 100_000);
        assert_eq!(serde_json::to_string(text(&document)).unwrap().len(), 100_002);
    }

    #[test]
    fn no_passage_comes_twice() {
        let document = library(7, "run-1").document(mark(Purpose::Decode, 0), 1_000_000);
        let mut sentences = text(&document).split(". ").filter(|sentence| sentence.len() > 60);
        let mut seen = HashSet::new();
        assert!(sentences.all(|sentence| seen.insert(sentence)));
        assert!(seen.len() > 5_000);
    }

    #[test]
    fn every_request_of_a_slot_has_its_own_number() {
        let library = library(1, "run-1");
        let numbers: HashSet<_> = (0..50)
            .flat_map(|slot| (0..20).map(move |n| (slot, n)))
            .map(|(slot, n)| library.request_number(mark(Purpose::Decode, slot), n))
            .collect();
        assert_eq!(numbers.len(), 1_000);
    }

    #[test]
    fn the_vocabulary_is_large_and_plain() {
        let check = |list: &[&str], least: usize| {
            let distinct: HashSet<_> = list.iter().collect();
            let twice: Vec<_> =
                list.iter().filter(|word| list.iter().filter(|other| other == word).count() > 1).collect();
            assert!(twice.is_empty(), "{twice:?}");
            assert!(distinct.len() >= least, "{} of {least}", distinct.len());
            assert!(list.iter().all(|word| !word.is_empty() && word.len() <= 14), "{list:?}");
            assert!(list.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())));
        };
        check(&LEXICON.nouns, 400);
        check(&LEXICON.adjectives, 300);
        check(&LEXICON.verbs, 250);
        check(&LEXICON.adverbs, 120);
        check(&LEXICON.names, 150);
        check(&LEXICON.places, 90);
        check(&LEXICON.times, 20);
        check(&LEXICON.prepositions, 20);
    }
}
