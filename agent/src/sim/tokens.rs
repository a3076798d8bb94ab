//! The simulated tokenizer: a token per five bytes (by configuration), and a hash per cache block.

use super::cache::BLOCK_TOKENS;

/// A prompt after the tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) tokens: u64,
    /// One hash per full cache block, each of the whole text up to its end.
    pub(super) blocks: Vec<u64>,
    /// Hash of the whole text.
    pub(super) hash: u64,
}

/// The tokenizer: counts bytes, hashes them, and notes the hash at the end of every full block. The hash is not
/// cryptographic; two documents that collide would share a cache entry, which nobody would notice.
pub(super) struct Reader {
    block_bytes: u64,
    bytes_per_token: u64,
    bytes: u64,
    given_tokens: u64,
    state: u64,
    blocks: Vec<u64>,
}

impl Reader {
    pub(super) fn new(bytes_per_token: u64) -> Self {
        Self {
            block_bytes: BLOCK_TOKENS * bytes_per_token,
            bytes_per_token,
            bytes: 0,
            given_tokens: 0,
            state: 0x9e37_79b9_7f4a_7c15,
            blocks: Vec::new(),
        }
    }

    /// A token that the client gave as a number; it belongs to no cache block.
    pub(super) fn token(&mut self, token: u32) {
        self.mark(&token.to_le_bytes());
        self.given_tokens += 1;
    }

    /// Changes the hash without adding text: roles, message borders.
    pub(super) fn mark(&mut self, bytes: &[u8]) {
        self.mix(u64::MAX);
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    pub(super) fn text(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.block_bytes - self.bytes % self.block_bytes;
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            let (words, rest) = now.as_chunks::<8>();
            for word in words {
                self.mix(u64::from_le_bytes(*word));
            }
            for byte in rest {
                self.mix(u64::from(*byte));
            }
            self.bytes += now.len() as u64;
            if self.bytes.is_multiple_of(self.block_bytes) {
                self.blocks.push(self.state);
            }
            bytes = later;
        }
    }

    /// Multiply and fold, as wyhash does it: each word moves all bits. The sum keeps zero from staying zero.
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * 0xe703_7ed1_a0b4_28db;
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    pub(super) fn finish(self, overhead_tokens: u64) -> Prompt {
        let tokens = overhead_tokens + self.given_tokens + self.bytes.div_ceil(self.bytes_per_token);
        Prompt { tokens: tokens.max(1), blocks: self.blocks, hash: self.state }
    }
}
