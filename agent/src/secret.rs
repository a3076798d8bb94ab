//! Secrets: a type that can't be printed, serialised or compared, and the removal of what looks like one from texts.

use std::fmt;

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

/// Takes the known key, and words that look like one (`sk-…`, `hf_…`, the word after `Bearer`), out of a text that
/// came from outside.
pub fn redact(text: &str, known: Option<&Secret>) -> String {
    let text = match known {
        Some(secret) => text.replace(secret.expose(), REDACTED),
        None => text.to_owned(),
    };
    let mut out = String::with_capacity(text.len());
    let mut after_bearer = false;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '=' | '`' | ';')) {
        let body =
            word.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '=' | '`' | ';'));
        let secret = !body.is_empty() && (after_bearer || looks_secret(body)) && body != REDACTED;
        out.push_str(if secret { REDACTED } else { body });
        out.push_str(&word[body.len()..]);
        if !body.is_empty() {
            after_bearer = body.eq_ignore_ascii_case("bearer");
        }
    }
    out
}

fn looks_secret(word: &str) -> bool {
    let long_after = |prefix: &str| word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= 8);
    long_after("sk-") || long_after("hf_") || long_after("gsk_") || long_after("nvapi-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_leave_no_trace() {
        let key = Secret::new("my-own-key");
        let check = |text: &str, clean: &str| assert_eq!(redact(text, key.as_ref()), clean);
        check("key my-own-key refused", "key <redacted> refused");
        check("Authorization: Bearer abc.def", "Authorization: Bearer <redacted>");
        check("{\"key\":\"sk-0123456789\"}", "{\"key\":\"<redacted>\"}");
        check("max_tokens 12", "max_tokens 12");
        assert_eq!(format!("{key:?}"), "Some(<redacted>)");
    }
}
