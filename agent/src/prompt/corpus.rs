//! Prompts from a person's own text instead of seeded prose: a file, held ready to stand inside a JSON string.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rand::Rng;
use speedmatrix_shared::plan::CorpusName;

/// Smallest file: less would be the same few sentences again and again.
const MIN_BYTES: usize = 1_000;
/// Largest file: four documents of the longest contexts sold. It is held in memory.
const MAX_BYTES: u64 = 64 * 1_024 * 1_024;
/// Longest escape in a JSON string, bytes: `\u001f`.
const LONGEST_ESCAPE: usize = 6;

/// Why a file can't be the text of prompts.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It is not there, or can't be read.
    #[error("the corpus {path} can't be read ({reason}): put a text file of that name there")]
    Unreadable {
        /// Where it was looked for.
        path: String,
        /// What came.
        reason: String,
    },
    /// It is too small or too large.
    #[error("the corpus {path} has {bytes} bytes: it needs at least {MIN_BYTES} and at most {MAX_BYTES}")]
    Size {
        /// Which file.
        path: String,
        /// How large it is; of a larger one than is read, as much as was.
        bytes: u64,
    },
    /// It is no text.
    #[error("the corpus {path} is not UTF-8 text: save it as UTF-8")]
    NotText {
        /// Which file.
        path: String,
    },
}

/// A text with its escapes.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// UTF-8 whose quotes, backslashes and control characters are escaped.
    escaped: Arc<str>,
}

impl Corpus {
    /// Reads the file of that name in `folder`.
    pub fn read(folder: &Path, name: &CorpusName) -> Result<Self, CorpusError> {
        let path: PathBuf = folder.join(name.as_str());
        let told = path.display().to_string();
        let unreadable =
            |error: std::io::Error| CorpusError::Unreadable { path: told.clone(), reason: error.to_string() };
        let file = std::fs::File::open(&path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() < MIN_BYTES || bytes.len() as u64 > MAX_BYTES {
            return Err(CorpusError::Size { path: told, bytes: bytes.len() as u64 });
        }
        String::from_utf8(bytes).map(|text| Self::of(&text)).map_err(|_not_utf8| CorpusError::NotText { path: told })
    }

    /// The corpus of `text`.
    pub fn of(text: &str) -> Self {
        let quoted = serde_json::Value::from(text).to_string();
        let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        Self { escaped: escaped.into() }
    }

    /// Length with escapes.
    pub fn bytes(&self) -> usize {
        self.escaped.len()
    }

    /// Appends running text until `out` is `bytes` long, from a word that `rng` chooses on, and from the beginning again
    /// after its end.
    pub(super) fn fill(&self, out: &mut Vec<u8>, bytes: usize, rng: &mut impl Rng) {
        let text = self.escaped.as_bytes();
        let drawn = (u128::from(rng.next_u64()) * text.len() as u128) >> 64;
        // A space is never part of an escape or of another character.
        let start =
            text.iter().skip(drawn as usize).position(|byte| *byte == b' ').map_or(0, |gap| drawn as usize + gap + 1);
        let mut rest = text.get(start..).unwrap_or_default();
        while out.len() < bytes && !text.is_empty() {
            let take = rest.len().min(bytes - out.len() + LONGEST_ESCAPE);
            out.extend_from_slice(&rest[..take]);
            rest = text;
        }
        out.truncate(whole_characters(out, bytes));
        // As long as it was asked for: a character that would not fit whole is left out.
        out.resize(bytes, b' ');
    }
}

/// How many of the first `at_most` bytes of a JSON string's inside hold whole characters and escapes only.
pub(super) fn whole_characters(text: &[u8], at_most: usize) -> usize {
    let at_most = at_most.min(text.len());
    // Nothing longer than an escape is open at a place: it is enough to look back so far, to where something begins.
    let mut from = at_most.saturating_sub(2 * LONGEST_ESCAPE);
    while from > 0 && !begins(text, from) {
        from -= 1;
    }
    while let Some(length) = length_at(text, from) {
        if from + length > at_most {
            break;
        }
        from += length;
    }
    from
}

/// Whether a character or an escape surely begins here: after a plain one, which no backslash came before.
fn begins(text: &[u8], at: usize) -> bool {
    let plain = |byte: &u8| *byte == b' ' || (byte.is_ascii_punctuation() && !matches!(byte, b'\\' | b'"' | b'/'));
    text.get(at - 1).is_some_and(plain)
}

fn length_at(text: &[u8], at: usize) -> Option<usize> {
    Some(match (text.get(at)?, text.get(at + 1)) {
        (b'\\', Some(b'u')) => LONGEST_ESCAPE,
        (b'\\' | 0x80..0xe0, _) => 2,
        (0..0x80, _) => 1,
        (0xe0..0xf0, _) => 3,
        (0xf0.., _) => 4,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn filled(text: &str, bytes: usize, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Corpus::of(text).fill(&mut out, bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        out
    }

    fn read(inside: &[u8]) -> String {
        let quoted = [b"\"", inside, b"\""].concat();
        serde_json::from_slice(&quoted).unwrap()
    }

    proptest! {
        #[test]
        fn a_text_is_json_as_long_as_it_was_asked_for(text in "[a\\\\\" \n\u{1}ä漢🚀.,/u]{1,80}", bytes in 0_usize..300, seed: u64) {
            let inside = filled(&text, bytes, seed);
            prop_assert_eq!(inside.len(), bytes);
            read(&inside);
        }

        #[test]
        fn a_cut_leaves_whole_characters(text in "[a\\\\\" \n\u{1}ä漢🚀.,/u]{0,80}", at_most in 0_usize..300) {
            let escaped = Corpus::of(&text).escaped;
            let kept = whole_characters(escaped.as_bytes(), at_most);
            prop_assert!(kept <= at_most && at_most.min(escaped.len()) - kept < LONGEST_ESCAPE);
            let inside = read(&escaped.as_bytes()[..kept]);
            prop_assert!(text.starts_with(&inside));
        }
    }

    #[test]
    fn running_text_goes_on_after_its_end() {
        let text = "one two three four five six seven";
        let inside = String::from_utf8(filled(text, 100, 3)).unwrap();
        assert!(inside.contains("six sevenone two") && inside.len() == 100, "{inside}");
        assert_ne!(filled(text, 30, 1), filled(text, 30, 2), "the seed chooses where it begins");
    }

    #[test]
    fn files_that_are_no_corpus_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, content: Option<&[u8]>, wanted: &str| {
            if let Some(content) = content {
                std::fs::write(folder.path().join(name), content).unwrap();
            }
            let error = Corpus::read(folder.path(), &name.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        };
        check("missing.txt", None, "put a text file of that name there");
        check("small.txt", Some(b"a few words"), "has 11 bytes: it needs at least 1000");
        check("binary.txt", Some(&[0xff; 2_000]), "is not UTF-8 text");
        std::fs::write(folder.path().join("good.txt"), "A line of \"text\".\n".repeat(100)).unwrap();
        let corpus = Corpus::read(folder.path(), &"good.txt".parse().unwrap()).unwrap();
        assert_eq!(corpus.bytes(), 100 * 21);
    }
}
