//! Facts about a server that a person typed because nobody here can see them. They fill what is not known, bear a mark
//! wherever they are shown, and never stand in for what was measured or told by the server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{facts::Fact, format};

/// Longest fact, in characters; longer ones are refused, not cut.
pub const MAX_FACT_CHARS: usize = 200;
/// Longest launch command, in characters.
pub const MAX_COMMAND_CHARS: usize = 10_000;
/// Stands after each, so that nobody takes it for a measured one.
pub const MARK: &str = "(typed by hand)";

/// What can be typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypedFact {
    /// Name of one GPU.
    Gpu,
    /// GPUs that the server uses.
    GpuCount,
    /// Their memory.
    Vram,
    /// Operating system.
    Os,
    /// The serving program.
    Engine,
    /// Its version.
    Version,
    /// Weights and KV format.
    Quantization,
    /// `cuda`, `rocm` …
    Backend,
    /// The model itself.
    Model,
    /// How the server was started.
    LaunchCommand,
}

/// What was typed, by fact.
pub type TypedFacts = BTreeMap<TypedFact, String>;

impl TypedFact {
    /// All, in the order of their fields.
    pub const ALL: [Self; 10] = [
        Self::Gpu,
        Self::GpuCount,
        Self::Vram,
        Self::Os,
        Self::Engine,
        Self::Version,
        Self::Quantization,
        Self::Backend,
        Self::Model,
        Self::LaunchCommand,
    ];

    /// Its words, the same as on the cards of a report.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::GpuCount => "GPU count",
            Self::Vram => "VRAM",
            Self::Os => "OS",
            Self::Engine => "Engine",
            Self::Version => "Version",
            Self::Quantization => "Quantization",
            Self::Backend => "Backend",
            Self::Model => "Model",
            Self::LaunchCommand => "Launch command",
        }
    }

    /// Its name in addresses and ids.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::GpuCount => "gpu-count",
            Self::Vram => "vram",
            Self::Os => "os",
            Self::Engine => "engine",
            Self::Version => "version",
            Self::Quantization => "quantization",
            Self::Backend => "backend",
            Self::Model => "model",
            Self::LaunchCommand => "launch-command",
        }
    }

    const fn most_chars(self) -> usize {
        match self {
            Self::LaunchCommand => MAX_COMMAND_CHARS,
            _ => MAX_FACT_CHARS,
        }
    }
}

/// A fact is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" has {chars} characters and {} are allowed: shorten it", .fact.label(), .fact.most_chars())]
pub struct TooLong {
    /// Which.
    pub fact: TypedFact,
    /// Its length.
    pub chars: usize,
}

/// Facts as they are kept: each on one line, empty ones left away.
pub fn tidy(typed: &TypedFacts) -> Result<TypedFacts, TooLong> {
    let mut kept = TypedFacts::new();
    for (fact, text) in typed {
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = words.collect::<Vec<_>>().join(" ");
        let chars = line.chars().count();
        if chars > fact.most_chars() {
            return Err(TooLong { fact: *fact, chars });
        }
        if chars > 0 {
            kept.insert(*fact, line);
        }
    }
    Ok(kept)
}

/// A typed text with its mark.
pub fn marked(text: &str) -> String {
    format!("{text} {MARK}")
}

/// The facts of a card; what is missing is filled with what was typed.
pub fn filled(mut told: Vec<Fact>, typed: &TypedFacts) -> Vec<Fact> {
    for (label, text) in &mut told {
        let fact = TypedFact::ALL.into_iter().find(|fact| fact.label() == *label);
        if text == format::MISSING
            && let Some(by_hand) = fact.and_then(|fact| typed.get(&fact))
        {
            *text = marked(by_hand);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(facts: &[(TypedFact, &str)]) -> TypedFacts {
        facts.iter().map(|(fact, text)| (*fact, (*text).to_owned())).collect()
    }

    #[test]
    fn typed_facts_fill_what_is_missing_and_nothing_else() {
        let told =
            vec![("GPU", format::MISSING.to_owned()), ("OS", "linux".to_owned()), ("VRAM", format::MISSING.into())];
        let by_hand = typed(&[(TypedFact::Gpu, "H200"), (TypedFact::Os, "plan9")]);
        let filled = filled(told, &by_hand);
        let lines: Vec<String> = filled.iter().map(|(label, text)| format!("{label}: {text}")).collect();
        assert_eq!(lines, ["GPU: H200 (typed by hand)", "OS: linux", "VRAM: —"]);
    }

    #[test]
    fn typed_facts_are_one_line_each_and_bounded() {
        let kept = tidy(&typed(&[(TypedFact::Gpu, " H200\r\n\u{7} NVL "), (TypedFact::Os, " \t")])).unwrap();
        assert_eq!(kept, typed(&[(TypedFact::Gpu, "H200 NVL")]));
        let long = "x".repeat(MAX_FACT_CHARS + 1);
        let error = tidy(&typed(&[(TypedFact::Gpu, &long)])).unwrap_err().to_string();
        assert_eq!(error, "\"GPU\" has 201 characters and 200 are allowed: shorten it");
        assert!(tidy(&typed(&[(TypedFact::LaunchCommand, &long)])).is_ok());
    }

    #[test]
    fn names_are_a_format() {
        let all: TypedFacts = TypedFact::ALL.into_iter().map(|fact| (fact, String::new())).collect();
        let names = serde_json::to_string(&all).unwrap();
        insta::assert_snapshot!(names, @r#"{"gpu":"","gpu_count":"","vram":"","os":"","engine":"","version":"","quantization":"","backend":"","model":"","launch_command":""}"#);
    }
}
