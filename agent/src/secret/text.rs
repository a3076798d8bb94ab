//! Secrets in any text, whatever its format: it need not be well-formed, and what is cut off in the middle is hidden to
//! its end.

use super::{REDACTED, argv::is_of_keys, is_secret_name};

/// Longest name that is looked at, in bytes.
const LONGEST_NAME: usize = 96;
/// Words after a name that say how a secret is given, and are none.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token", "negotiate", "apikey"];
/// Words that are values and no secrets.
const NO_VALUES: &[&str] = &["null", "none", "true", "false", "undefined", "\"\""];
/// How keys begin, and how many letters, digits, dashes and underscores follow at least. The ones that can't be a word
/// of plain text need not be long.
const SHAPES: &[(&str, usize)] = &[
    ("sk-", 8),
    ("hf_", 8),
    ("gsk_", 8),
    ("nvapi-", 8),
    ("ghp_", 8),
    ("gho_", 8),
    ("ghs_", 8),
    ("ghu_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xai-", 16),
    ("pplx-", 16),
    ("tvly-", 8),
    ("ya29.", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("eyJ", 30),
];

/// What of the rest of a text is to be hidden: after `keep` bytes, `hide` bytes.
struct Hidden {
    keep: usize,
    hide: usize,
}

/// The text without its secrets.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        let found = if rest.starts_with("://") {
            credentials(rest)
        } else if is_name_char(letter) && !is_name_char(before) {
            key_block(rest).or_else(|| named(rest)).or_else(|| bearer(rest)).or_else(|| shaped(rest))
        } else {
            None
        };
        if let Some(Hidden { keep, hide }) = found {
            out.push_str(&rest[..keep]);
            out.push_str(REDACTED);
            rest = &rest[keep + hide..];
            before = '>';
        } else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
            before = letter;
        }
    }
    out
}

/// What names are made of.
pub(super) const fn is_name_char(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Whether a word says how a secret is given.
pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `scheme://user:password@host`.
fn credentials(rest: &str) -> Option<Hidden> {
    let keep = "://".len();
    let authority = rest.get(keep..)?;
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\');
    let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
    let hide = authority.rfind('@').filter(|at| *at > 0)?;
    Some(Hidden { keep, hide })
}

/// A private key in PEM form.
fn key_block(rest: &str) -> Option<Hidden> {
    let head = rest.strip_prefix("-----BEGIN ")?;
    let title = &head[..head.find("-----")?];
    if !title.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {title}-----");
    let hide = rest.find(&end).map_or(rest.len(), |at| at + end.len());
    Some(Hidden { keep: 0, hide })
}

/// `name=value`, `"name": "value"`, `name: value`, `--name value`.
fn named(rest: &str) -> Option<Hidden> {
    let name = &rest[..rest.find(|c| !is_name_char(c)).unwrap_or(rest.len())];
    if name.len() > LONGEST_NAME || !is_secret_name(name) {
        return None;
    }
    let mut at = name.len();
    let quote = delimiter(&rest[at..]);
    at += quote.len();
    let gap = blanks(&rest[at..]);
    at += gap;
    let is_flag = name.starts_with("--");
    match rest[at..].chars().next()? {
        '=' => at += if rest[at..].starts_with("=>") { 2 } else { 1 },
        // "unknown key: max_token" is a sentence.
        ':' if quote.is_empty() && is_lone_key(name) => return None,
        ':' if rest[at..].starts_with("://") => return None,
        ':' => at += 1,
        // A list of words, as programs log their arguments.
        ',' if is_flag && !quote.is_empty() => at += 1,
        _ if is_flag && gap > 0 && !rest[at..].starts_with("--") => return flag_values(rest, at, name),
        _ => return None,
    }
    at += blanks(&rest[at..]);
    value(rest, at)
}

/// The value of a flag, and for a flag that takes several keys all words after it that look like more of them.
fn flag_values(rest: &str, at: usize, flag: &str) -> Option<Hidden> {
    let first = value(rest, at);
    let known = rest[at..].starts_with(REDACTED).then_some(at..at + REDACTED.len());
    let span = first.as_ref().map(|first| first.keep..first.keep + first.hide).or(known)?;
    let mut end = span.end;
    while is_of_keys(flag) {
        let from = end + blanks(&rest[end..]);
        let word = &rest[from..from + plain_length(&rest[from..])];
        if from == end || !looks_random(word) {
            break;
        }
        end = from + word.len();
    }
    if end == span.end { first } else { Some(Hidden { keep: span.start, hide: end - span.start }) }
}

/// Whether a word is more likely a key than a word of a sentence.
fn looks_random(word: &str) -> bool {
    word.len() >= 8 && !word.starts_with('-') && word.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_lone_key(name: &str) -> bool {
    name.eq_ignore_ascii_case("key") || name.eq_ignore_ascii_case("keys")
}

/// The value that begins at `at`, after its scheme if it has one.
fn value(rest: &str, at: usize) -> Option<Hidden> {
    let from = at + delimiter(&rest[at..]).len();
    let word = plain_length(&rest[from..]);
    let gap = blanks(&rest[from + word..]);
    if gap > 0 && is_scheme(&rest[from..from + word]) {
        let quoted = from > at;
        let length = if quoted { quoted_length(&rest[from..], &rest[at..from]) } else { rest.len() - from };
        // Within quotes the secret ends with them, whatever it is made of.
        if word + gap < length {
            let from = from + word + gap;
            return if quoted { hidden(rest, from, length - word - gap) } else { secret(rest, from) };
        }
    }
    secret(rest, at)
}

/// The secret that begins at `at`: quoted, in brackets, or a word.
fn secret(rest: &str, at: usize) -> Option<Hidden> {
    let open = delimiter(&rest[at..]);
    if !open.is_empty() {
        let from = at + open.len();
        return hidden(rest, from, quoted_length(&rest[from..], open));
    }
    match rest[at..].chars().next()? {
        '[' | '{' => hidden(rest, at, bracketed_length(&rest[at..])),
        _ => hidden(rest, at, plain_length(&rest[at..])),
    }
}

fn hidden(rest: &str, keep: usize, hide: usize) -> Option<Hidden> {
    let word = rest.get(keep..keep + hide)?;
    let is_one = !word.is_empty() && !word.starts_with(REDACTED) && !NO_VALUES.contains(&word);
    is_one.then_some(Hidden { keep, hide })
}

/// `Bearer` and the word after it.
fn bearer(rest: &str) -> Option<Hidden> {
    let word = rest.get(.."bearer".len()).filter(|word| word.eq_ignore_ascii_case("bearer"))?;
    let from = word.len() + blanks(&rest[word.len()..]);
    (from > word.len()).then(|| secret(rest, from)).flatten()
}

/// A word that begins as keys do.
fn shaped(rest: &str) -> Option<Hidden> {
    let (start, least) = SHAPES.iter().find(|(start, _)| rest.starts_with(start))?;
    let tail = &rest[start.len()..];
    let tail = &tail[..tail.find(|c: char| !is_name_char(c)).unwrap_or(tail.len())];
    // `hf_transfer` and `sk-estimators` are names: keys have digits or capitals, or are long.
    let random = tail.len() >= 20 || tail.chars().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    let tail = tail.trim_end_matches('.');
    (tail.len() >= *least && random).then(|| Hidden { keep: 0, hide: start.len() + tail.len() })
}

/// The quote at the start of `text`, with the backslashes before it: JSON in JSON has `\"`, and `\\\"` deeper.
fn delimiter(text: &str) -> &str {
    let slashes = text.bytes().take_while(|byte| *byte == b'\\').count();
    let quote = text.as_bytes().get(slashes).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    if quote { &text[..=slashes] } else { "" }
}

/// Bytes up to the same quote; all, if it never comes.
fn quoted_length(text: &str, open: &str) -> usize {
    let (slashes, quote) = (open.len() - 1, open.as_bytes()[open.len() - 1]);
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'\\' {
            run += 1;
            continue;
        }
        // Within plain quotes a quote after an odd number of backslashes belongs to the value.
        let closes = if slashes == 0 { run % 2 == 0 } else { run <= slashes };
        if byte == quote && closes {
            return at - run.min(slashes);
        }
        run = 0;
    }
    text.len()
}

/// Bytes up to and with the bracket that closes the first one; all, if it never comes.
fn bracketed_length(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), b'\\') => escaped = !escaped,
            (Some(open), byte) => {
                if byte == open && !escaped {
                    quote = None;
                }
                escaped = false;
            }
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            (None, _) => {}
        }
    }
    text.len()
}

/// Bytes of a value without quotes: up to a blank, a quote or the next parameter, without what ends a sentence or a list.
fn plain_length(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '&');
    let word = &text[..text.find(ends).unwrap_or(text.len())];
    // A backslash before a quote belongs to the quote.
    word.trim_end_matches([',', ';', ')', ']', '}', '.', '\\']).len()
}

/// Blanks at the start, but no end of a line: a value stands on the line of its name.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}
