//! Tokens that open an agent to somebody. Only their digest is kept.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::REDACTED;

/// Random bytes in a token: nobody guesses 256 bits, so a plain hash of them is as good as a slow one.
const BYTES: usize = 32;
/// Longest text that is looked at as a token, in bytes: a real one has 43.
const MAX_BYTES: usize = 128;

/// A token, as its owner has it. It is shown once.
pub struct Token(String);

impl Token {
    /// A new one, from the system's own source of randomness.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// One that somebody sent, if it can be one.
    pub fn sent(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (1..=MAX_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// The token itself, to be handed to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    pub fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// The SHA-256 of a token. Comparing two takes the same time whatever they are.
#[derive(Clone, Copy)]
pub struct Digest(pub [u8; BYTES]);

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_random_and_never_printed() {
        let (one, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert_eq!(one.expose().len(), 43);
        assert_ne!(one.digest(), other.digest());
        assert_eq!(Token::sent(&format!(" {} ", one.expose())).unwrap().digest(), one.digest());
        assert_eq!(format!("{one:?} {:?}", one.digest()), "<redacted> <redacted>");
    }

    #[test]
    fn what_can_be_no_token_is_not_hashed() {
        for text in ["", " ", "a b", "a\nb", "ä", &"x".repeat(129)] {
            assert!(Token::sent(text).is_none(), "{text}");
        }
    }
}
