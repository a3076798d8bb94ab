//! What people add to a run: a name, tags, notes and a pin; and, for an imported record, where it came from. None of it
//! is measured, so it is no event of the run: it is kept beside the events and may change at any time.

use serde::{Deserialize, Serialize};

use crate::typed::{self, TooLong, TypedFacts};

/// Longest name and longest notes, in characters; longer ones are refused, not cut.
pub const MAX_TEXT_CHARS: usize = 10_000;
/// Most tags of one run.
pub const MAX_TAGS: usize = 50;
/// Longest tag, in characters.
pub const MAX_TAG_CHARS: usize = 100;

/// What people added to a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// One more at each change; 0 while nobody has added anything.
    pub revision: u64,
    /// A name that is shown instead of the run's own title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Short words to find the run by, in the order in which they were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Free text; line breaks are kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Whether the run stands above the others.
    pub pinned: bool,
    /// Facts about the server that are not known otherwise.
    #[serde(skip_serializing_if = "TypedFacts::is_empty")]
    pub typed: TypedFacts,
    /// Set if the record was not made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportNote>,
}

/// Where an imported record came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportNote {
    /// Wall time of the import, milliseconds since 1970 UTC.
    pub at_unix_ms: u64,
    /// Name of the file, if it had one.
    pub file: Option<String>,
}

/// A change of some labels; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelPatch {
    /// [`Labels::revision`] that the change was made from. Another one means that somebody else was faster.
    pub revision: u64,
    /// The new name; empty: the run's own title again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// All tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The whole notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// All facts typed by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedFacts>,
    /// Pinned or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// Why a label is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The name is too long.
    #[error("the name has {0} characters and {MAX_TEXT_CHARS} are allowed: shorten it")]
    Title(usize),
    /// The notes are too long.
    #[error("the notes have {0} characters and {MAX_TEXT_CHARS} are allowed: shorten them")]
    Notes(usize),
    /// There are too many tags.
    #[error("{0} tags are more than a run holds ({MAX_TAGS}): take some out")]
    Tags(usize),
    /// A tag is too long.
    #[error("the tag \"{start}…\" has {chars} characters and {MAX_TAG_CHARS} are allowed: shorten it")]
    Tag {
        /// How it begins.
        start: String,
        /// Its length.
        chars: usize,
    },
    /// A fact typed by hand is too long.
    #[error(transparent)]
    Typed(#[from] TooLong),
}

impl Labels {
    /// Whether nobody has added anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The labels after a change. Whether the change was made from this revision is the caller's to check.
    pub fn changed(&self, patch: &LabelPatch) -> Result<Self, LabelError> {
        let mut next = self.clone();
        if let Some(title) = &patch.title {
            next.title = name(title)?;
        }
        if let Some(tags) = &patch.tags {
            next.tags = tags_of(tags)?;
        }
        if let Some(text) = &patch.notes {
            next.notes = notes(text)?;
        }
        if let Some(facts) = &patch.typed {
            next.typed = typed::tidy(facts)?;
        }
        next.pinned = patch.pinned.unwrap_or(next.pinned);
        if next != *self {
            next.revision += 1;
        }
        Ok(next)
    }
}

fn name(text: &str) -> Result<Option<String>, LabelError> {
    let line = one_line(text);
    match line.chars().count() {
        0 => Ok(None),
        1..=MAX_TEXT_CHARS => Ok(Some(line)),
        chars => Err(LabelError::Title(chars)),
    }
}

/// Tags as they are kept: commas part them, equal ones (in whatever case) are kept once.
fn tags_of(texts: &[String]) -> Result<Vec<String>, LabelError> {
    let mut tags: Vec<String> = Vec::new();
    for tag in texts.iter().flat_map(|text| text.split(',')).map(one_line).filter(|tag| !tag.is_empty()) {
        let chars = tag.chars().count();
        if chars > MAX_TAG_CHARS {
            return Err(LabelError::Tag { start: tag.chars().take(20).collect(), chars });
        }
        let folded = tag.to_lowercase();
        if !tags.iter().any(|known| known.to_lowercase() == folded) {
            if tags.len() == MAX_TAGS {
                return Err(LabelError::Tags(texts.len().max(MAX_TAGS + 1)));
            }
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// Line breaks as `\n`, no other control characters than tabs, nothing blank at the end.
fn notes(text: &str) -> Result<String, LabelError> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
    let text = text.trim_end();
    match text.chars().count() {
        0..=MAX_TEXT_CHARS => Ok(text.to_owned()),
        chars => Err(LabelError::Notes(chars)),
    }
}

/// Control characters and runs of blanks as one blank: what is a line can't become two, nor hide anything.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(patch: &LabelPatch) -> String {
        match Labels::default().changed(patch) {
            Ok(labels) => serde_json::to_string(&labels).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn labels_are_kept_tidy_and_bounded() {
        let title = |text: &str| check(&LabelPatch { title: Some(text.into()), ..LabelPatch::default() });
        let tags = |texts: &[&str]| {
            let tags = texts.iter().map(|&text| text.into()).collect();
            check(&LabelPatch { tags: Some(tags), ..LabelPatch::default() })
        };
        let notes = |text: &str| check(&LabelPatch { notes: Some(text.into()), ..LabelPatch::default() });
        let many: Vec<String> = (0..51).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let lines = [
            title("  Driver 570\r\nafter \u{7} reboot "),
            title(" \n"),
            title(&"é".repeat(MAX_TEXT_CHARS + 1)),
            tags(&["night", "Night", " new driver, H200 ,", ""]),
            tags(&many),
            tags(&["x".repeat(101).as_str()]),
            notes("<b>bold</b>\r\n\tkept\u{0}  \n\n"),
            notes(&"é".repeat(MAX_TEXT_CHARS + 1)),
            check(&LabelPatch { pinned: Some(true), ..LabelPatch::default() }),
            check(&LabelPatch::default()),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"revision":1,"title":"Driver 570 after reboot","pinned":false}
        {"revision":0,"pinned":false}
        the name has 10001 characters and 10000 are allowed: shorten it
        {"revision":1,"tags":["night","new driver","H200"],"pinned":false}
        51 tags are more than a run holds (50): take some out
        the tag "xxxxxxxxxxxxxxxxxxxx…" has 101 characters and 100 are allowed: shorten it
        {"revision":1,"notes":"<b>bold</b>\n\tkept","pinned":false}
        the notes have 10001 characters and 10000 are allowed: shorten them
        {"revision":1,"pinned":true}
        {"revision":0,"pinned":false}
        "#);
        assert_eq!(serde_json::from_str::<Labels>("{}").unwrap(), Labels::default());
    }

    proptest! {
        #[test]
        fn what_is_kept_is_kept_as_it_is(title in ".*", tags in prop::collection::vec(".{0,9}", 0..9), notes in ".*") {
            let patch = LabelPatch { title: Some(title), tags: Some(tags), notes: Some(notes), ..LabelPatch::default() };
            let once = Labels::default().changed(&patch).unwrap();
            let Labels { title, tags, notes, .. } = once.clone();
            let again = LabelPatch { title, tags: Some(tags), notes: Some(notes), ..LabelPatch::default() };
            prop_assert_eq!(once.changed(&again).unwrap(), once);
        }
    }
}
