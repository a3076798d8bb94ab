//! Secrets: a type that can't be printed, serialised or compared, and the removal of what looks like one from command
//! lines, environments, addresses, headers and texts. Everything here is pure.

mod argv;
mod names;
mod text;
mod token;

#[cfg(test)]
mod tests;

use std::fmt;

pub use self::{
    argv::argv,
    names::is_secret_name,
    token::{Digest, Token},
};

/// Put in place of a secret.
pub const REDACTED: &str = "<redacted>";

/// A key for a target. There is no way to print it; [`Secret::expose`] is called where the request is built.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A key, if `text` holds one.
    pub fn new(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| Self(trimmed.to_owned()))
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Takes the known key, and all that looks like one, out of a text that came from outside: an address, a line of a log,
/// the body of an error, a document.
pub fn redact(text: &str, known: Option<&Secret>) -> String {
    match known {
        Some(secret) => text::clean(&text.replace(secret.expose(), REDACTED)),
        None => text::clean(text),
    }
}

/// As [`redact`], and at most so many characters of it. Cut only then: half a secret would not be found.
pub fn redact_short(text: &str, known: Option<&Secret>, most_chars: usize) -> String {
    redact(text, known).chars().take(most_chars).collect()
}

/// The value of an environment variable as it may be shown.
pub fn environment(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() { REDACTED.to_owned() } else { text::clean(value) }
}

/// The value of a header as it may be shown. `Authorization` keeps its scheme.
pub fn header(name: &str, value: &str) -> String {
    let scheme = value.split_once(' ').map(|(scheme, _)| scheme).filter(|scheme| text::is_scheme(scheme));
    match scheme {
        Some(scheme) if is_secret_name(name) => format!("{scheme} {REDACTED}"),
        _ => environment(name, value),
    }
}
