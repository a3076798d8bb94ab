//! What requests carry: how their prompts relate to each other, what they ask, and where the text comes from.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Longest name of a corpus file, bytes: as file systems have it.
const MAX_CORPUS_NAME_BYTES: usize = 255;

/// How the prompts of a decode cell relate to each other. It is stored as it is typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PromptMode {
    /// One document for all slots; its prefix is cached before the cell.
    #[default]
    Shared,
    /// A document per slot, each cached before the cell.
    Unique,
    /// The first part of each document is shared and cached, the rest is fresh for each request.
    Mixed(SharedPercent),
    /// A fresh document per request: nothing is cached.
    Cold,
}

/// How much of a mixed prompt is shared, percent: 1 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPercent(u8);

impl SharedPercent {
    /// The share, 0–1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl PromptMode {
    /// The share (0–1) of each prompt that should come from the cache.
    pub fn cached_share(self) -> f64 {
        match self {
            Self::Shared | Self::Unique => 1.0,
            Self::Mixed(percent) => percent.share(),
            Self::Cold => 0.0,
        }
    }
}

impl TryFrom<String> for PromptMode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PromptMode> for String {
    fn from(mode: PromptMode) -> Self {
        mode.to_string()
    }
}

impl fmt::Display for PromptMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("shared"),
            Self::Unique => f.write_str("unique"),
            Self::Mixed(SharedPercent(percent)) => write!(f, "mixed:{percent}%"),
            Self::Cold => f.write_str("cold"),
        }
    }
}

impl FromStr for PromptMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |text: &str| {
            let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
            let percent = number.filter(|percent| (1..=99).contains(percent));
            percent.ok_or_else(|| format!("\"{text}\" is no share: write mixed:40% with 1 to 99 percent"))
        };
        match text.trim() {
            "" | "shared" => Ok(Self::Shared),
            "unique" => Ok(Self::Unique),
            "cold" => Ok(Self::Cold),
            other => match other.strip_prefix("mixed:") {
                Some(share) => percent(share).map(|percent| Self::Mixed(SharedPercent(percent))),
                None => Err(format!("\"{other}\" is unknown: choose shared, unique, mixed:40% or cold")),
            },
        }
    }
}

/// Whether requests ask the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Questions {
    /// Question and sampling seed differ per slot and restart.
    #[default]
    Varied,
    /// All the same: outputs go together, which flatters caches and speculation.
    Identical,
}

impl fmt::Display for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Varied => "varied",
            Self::Identical => "identical",
        })
    }
}

impl FromStr for Questions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" | "varied" => Ok(Self::Varied),
            "identical" => Ok(Self::Identical),
            other => Err(format!("\"{other}\" is unknown: choose varied or identical")),
        }
    }
}

/// The name of a text file in the agent's folder of corpora: never a path, so that a plan can't make an agent send other
/// files of its host to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusName(String);

impl CorpusName {
    /// The file's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CorpusName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim();
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
        let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
        if !is_name || name.len() > MAX_CORPUS_NAME_BYTES {
            return Err(format!(
                "\"{name}\" is no file's name: put the text into the agent's folder of corpora and write its name, as novel.txt"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_what_they_write() {
        let check = |text: &str, wanted: Result<&str, &str>| {
            let read = text.parse::<PromptMode>().map(|mode| mode.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), wanted, "{text}");
        };
        check("", Ok("shared"));
        check("mixed: 40 %", Ok("mixed:40%"));
        check("mixed:100%", Err("\"100%\" is no share: write mixed:40% with 1 to 99 percent"));
        check("warm", Err("\"warm\" is unknown: choose shared, unique, mixed:40% or cold"));
        assert_eq!("identical".parse(), Ok(Questions::Identical));
    }

    #[test]
    fn a_corpus_is_named_and_never_a_path() {
        let check = |text: &str, wanted: bool| assert_eq!(text.parse::<CorpusName>().is_ok(), wanted, "{text}");
        check("novel.txt", true);
        check(" my notes-2_b.md ", true);
        for wrong in ["", "../secret", "/etc/passwd", "a/b", "a\\b", ".hidden", "..", "a\nb", "a\0b", "C:x"] {
            check(wrong, false);
        }
        check(&"a".repeat(256), false);
    }
}
