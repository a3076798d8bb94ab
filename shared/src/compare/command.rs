//! Two launch commands, argument by argument. The order of flags means nothing; that of words without a flag does.

use std::collections::{BTreeMap, BTreeSet};

/// How an argument differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentChange {
    /// Both commands have it alike.
    Same,
    /// Both have it, with different values.
    Changed,
    /// Only A has it.
    OnlyA,
    /// Only B has it.
    OnlyB,
}

impl ArgumentChange {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::OnlyA => "only in A",
            Self::OnlyB => "only in B",
        }
    }
}

/// An argument of either command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The flag (`--max-model-len`), the variable before the program (`CUDA_VISIBLE_DEVICES`), or the place of a word
    /// without a flag (`word 2`).
    pub name: String,
    /// How it differs.
    pub change: ArgumentChange,
    /// Its value in A; empty for a flag without one, `None` where A does not have it.
    pub a: Option<String>,
    /// Its value in B.
    pub b: Option<String>,
}

/// All arguments of both commands, by name.
pub fn arguments(a: &str, b: &str) -> Vec<Argument> {
    let (mut a, mut b) = (parsed(a), parsed(b));
    let names: BTreeSet<Name> = a.keys().chain(b.keys()).cloned().collect();
    let differing = |name: Name| {
        let (a, b) = (a.remove(&name), b.remove(&name));
        let change = match (&a, &b) {
            (Some(one), Some(other)) if one == other => ArgumentChange::Same,
            (Some(_), Some(_)) => ArgumentChange::Changed,
            (Some(_), None) => ArgumentChange::OnlyA,
            (None, _) => ArgumentChange::OnlyB,
        };
        Argument { name: name.text(), change, a, b }
    };
    names.into_iter().map(differing).collect()
}

/// What an argument is known by, in the order of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Variable(String),
    Word(usize),
    Flag(String),
}

impl Name {
    fn text(&self) -> String {
        match self {
            Self::Variable(name) | Self::Flag(name) => name.clone(),
            Self::Word(place) => format!("word {place}"),
        }
    }
}

/// The arguments with their values. Words after a flag are its values, until the next one: of an unknown program nobody
/// can tell them from words of their own.
fn parsed(command: &str) -> BTreeMap<Name, String> {
    // A quote that does not end makes no words of a shell: then blanks do.
    let words = shlex::split(command).unwrap_or_else(|| command.split_whitespace().map(ToOwned::to_owned).collect());
    let mut found: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    let mut flag: Option<Name> = None;
    let mut place = 0;
    for word in words {
        if let Some((name, value)) = split_flag(&word) {
            let name = Name::Flag(name);
            found.entry(name.clone()).or_default().extend(value.map(ToOwned::to_owned));
            flag = value.is_none().then_some(name);
        } else if let Some(name) = &flag {
            found.entry(name.clone()).or_default().push(word);
        } else if let Some((name, value)) = word.split_once('=').filter(|(name, _)| place == 0 && is_variable(name)) {
            found.entry(Name::Variable(name.to_owned())).or_default().push(value.to_owned());
        } else {
            place += 1;
            found.entry(Name::Word(place)).or_default().push(word);
        }
    }
    found.into_iter().map(|(name, values)| (name, values.join(" "))).collect()
}

/// A flag and the value that it carries itself; long names with underscores are those with dashes.
fn split_flag(word: &str) -> Option<(String, Option<&str>)> {
    let rest = word.strip_prefix('-')?;
    // A lone dash and negative numbers are values.
    if rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    Some((name.replace('_', "-"), value))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, wanted: &[&str]) {
        let differing = arguments(a, b).into_iter().filter(|it| it.change != ArgumentChange::Same);
        let said: Vec<String> = differing
            .map(|it| {
                let side = |value: Option<String>| value.unwrap_or_else(|| "—".to_owned());
                format!("{} {}: {} → {}", it.name, it.change.label(), side(it.a), side(it.b))
            })
            .collect();
        assert_eq!(said, wanted);
    }

    #[test]
    fn commands_differ_by_argument() {
        check("vllm serve m --tp 2 --eager", "vllm serve m --eager --tp=2", &[]);
        check("vllm serve m --max_num_seqs 8", "vllm serve m --max-num-seqs 16", &["--max-num-seqs changed: 8 → 16"]);
        check(
            "A=1 vllm serve m --eager",
            "A=2 B=3 vllm serve n --dtype fp8",
            &[
                "A changed: 1 → 2",
                "B only in B: — → 3",
                "word 3 changed: m → n",
                "--dtype only in B: — → fp8",
                "--eager only in A:  → —",
            ],
        );
        check(
            r#"x --speculative-config '{"method": "mtp"}' --names a b"#,
            "x --names a c",
            &["--names changed: a b → a c", r#"--speculative-config only in A: {"method": "mtp"} → —"#],
        );
        check("x --t -1", "x --t -2", &["--t changed: -1 → -2"]);
        check("x --api-key <redacted>", "x --api-key <redacted>", &[]);
        check("x 'open", "x", &["word 2 only in A: 'open → —"]);
        check("", "", &[]);
    }

    proptest! {
        #[test]
        fn swapping_the_commands_swaps_the_sides(a in "[-=a-c' ]{0,30}", b in "[-=a-c' ]{0,30}") {
            let turned: Vec<Argument> = arguments(&b, &a)
                .into_iter()
                .map(|it| {
                    let change = match it.change {
                        ArgumentChange::OnlyA => ArgumentChange::OnlyB,
                        ArgumentChange::OnlyB => ArgumentChange::OnlyA,
                        same => same,
                    };
                    Argument { change, a: it.b, b: it.a, ..it }
                })
                .collect();
            prop_assert_eq!(arguments(&a, &b), turned);
            prop_assert!(arguments(&a, &a).iter().all(|it| it.change == ArgumentChange::Same));
        }
    }
}
