//! Secrets in the words of a command line.

use super::{REDACTED, is_secret_name, text};

/// What the next words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Anything.
    Any,
    /// The value of a flag, to be hidden.
    Secret,
    /// One or several of them: servers take a list of keys.
    Secrets,
}

/// A command line as it may be shown: each word by itself, so that quoting is up to who shows it.
pub fn argv<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut next = Next::Any;
    let mut shown = Vec::with_capacity(words.len());
    for word in words.iter().map(AsRef::as_ref) {
        if next != Next::Any && !word.starts_with("--") && !(next == Next::Secrets && word.starts_with('-')) {
            shown.push(REDACTED.to_owned());
            if next == Next::Secret {
                next = Next::Any;
            }
            continue;
        }
        next = Next::Any;
        shown.push(match word.split_once('=') {
            Some((name, value)) if promises(name) && !value.is_empty() => format!("{name}={REDACTED}"),
            _ if word.starts_with('-') && promises(word) => {
                next = if is_of_keys(word) { Next::Secrets } else { Next::Secret };
                word.to_owned()
            }
            _ => text::clean(word),
        });
    }
    shown
}

fn promises(name: &str) -> bool {
    name.chars().all(text::is_name_char) && is_secret_name(name)
}

/// Whether a flag takes several keys at once, as `--api-key` of vLLM does.
pub(super) fn is_of_keys(flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase().replace('_', "-");
    flag.ends_with("api-key") || flag.ends_with('s')
}
