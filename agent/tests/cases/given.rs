//! A stream case as it is written down.

use std::{collections::BTreeMap, io, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// One case.
#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    /// `A01` …
    pub(crate) id: String,
    /// What the tester sets.
    #[serde(default)]
    pub(crate) request: Request,
    /// The pieces of the answer.
    pub(crate) chunks: Vec<Chunk>,
    /// What must come out; a missing key is not compared, null must be unknown.
    pub(crate) expect: BTreeMap<String, Value>,
}

/// What the tester sets.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Request {
    /// Output limit in tokens.
    pub(crate) max_tokens: Option<u32>,
    /// Longest silence, ms.
    pub(crate) idle_timeout_ms: Option<u64>,
    /// When the client goes, ms after it sent.
    pub(crate) client_cancels_after_ms: Option<u64>,
    /// What the prompt should count.
    pub(crate) expected_prompt_tokens: Option<u64>,
}

/// One piece: a pause, then bytes.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    /// Pause before it, ms.
    #[serde(default)]
    pub(crate) delay_ms: u64,
    data_utf8: Option<String>,
    data_b64: Option<String>,
}

impl Case {
    /// Reads one file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Milliseconds from the request to the piece of this index, as the server waits them.
    pub(crate) fn due_ms(&self, index: usize) -> u64 {
        self.chunks.iter().take(index + 1).map(|chunk| chunk.delay_ms).sum()
    }

    /// An expected text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.expect.get(key)?.as_str()
    }

    /// An expected list of texts.
    pub(crate) fn texts(&self, key: &str) -> Vec<&str> {
        self.expect.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

impl Chunk {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match (&self.data_utf8, &self.data_b64) {
            (_, Some(text)) => from_base64(text),
            (Some(text), None) => text.clone().into_bytes(),
            (None, None) => Vec::new(),
        }
    }
}

/// Standard base64, as the cases have it.
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut out) = (0_u32, 0, Vec::new());
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        bits = (bits << 6) | digit as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    out
}
