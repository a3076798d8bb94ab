//! KV memory: the prefix cache in blocks of 256 tokens, and the budget that admission counts against.

use std::collections::{BTreeMap, HashMap};

/// Tokens per cache block, as `--block-size 256` of the reference server.
pub(super) const BLOCK_TOKENS: u64 = 256;

/// What happens to a request's own blocks when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// Its prompt was computed: the blocks stay for later requests.
    Keep,
    /// It ended before that: blocks that it brought and nobody else holds are worthless.
    Forget,
}

/// All KV memory of the simulated engine. A block counts once, however many requests share it.
#[derive(Debug)]
pub(super) struct KvMemory {
    capacity_tokens: u64,
    blocks: HashMap<u64, Block>,
    /// Blocks that no request holds, oldest first: evicted in this order.
    idle: BTreeMap<u64, u64>,
    next_stamp: u64,
    /// Tokens set aside for admitted requests outside of shared blocks: prompt tails and whole outputs.
    reserved_tokens: u64,
}

#[derive(Debug)]
struct Block {
    holders: u32,
    /// Key in `idle` while nobody holds the block.
    idle_since: u64,
}

impl KvMemory {
    pub(super) fn new(capacity_tokens: u64) -> Self {
        Self { capacity_tokens, blocks: HashMap::new(), idle: BTreeMap::new(), next_stamp: 0, reserved_tokens: 0 }
    }

    /// Takes a request in: holds its prompt's `blocks` and sets `private_tokens` aside. Returns how many leading blocks
    /// were cached, or `None`, with nothing changed, when it doesn't fit beside the others.
    pub(super) fn admit(&mut self, blocks: &[u64], private_tokens: u64) -> Option<usize> {
        let cached = blocks.iter().take_while(|hash| self.blocks.contains_key(hash)).count();
        let newly_held =
            blocks.iter().filter(|hash| self.blocks.get(hash).is_none_or(|block| block.holders == 0)).count() as u64;
        let wanted = self.held_tokens() + newly_held * BLOCK_TOKENS + self.reserved_tokens + private_tokens;
        if wanted > self.capacity_tokens {
            return None;
        }
        for hash in blocks {
            self.hold(*hash);
        }
        self.reserved_tokens += private_tokens;
        self.evict();
        Some(cached)
    }

    /// Gives back what [`Self::admit`] took. `cached` is what it returned.
    pub(super) fn release(&mut self, blocks: &[u64], cached: usize, private_tokens: u64, release: Release) {
        self.reserved_tokens -= private_tokens;
        // From the end, so that a document's tail is evicted before its beginning.
        for (index, hash) in blocks.iter().enumerate().rev() {
            let fate = if index >= cached { release } else { Release::Keep };
            self.let_go(*hash, fate);
        }
    }

    /// Tokens in blocks that a request holds.
    pub(super) fn held_tokens(&self) -> u64 {
        (self.blocks.len() - self.idle.len()) as u64 * BLOCK_TOKENS
    }

    fn hold(&mut self, hash: u64) {
        let block = self.blocks.entry(hash).or_insert(Block { holders: 0, idle_since: u64::MAX });
        if block.holders == 0 {
            self.idle.remove(&block.idle_since);
        }
        block.holders += 1;
    }

    fn let_go(&mut self, hash: u64, fate: Release) {
        let block = self.blocks.get_mut(&hash).expect("a held block is in the table");
        block.holders -= 1;
        if block.holders > 0 {
            return;
        }
        if fate == Release::Forget {
            self.blocks.remove(&hash);
        } else {
            block.idle_since = self.next_stamp;
            self.idle.insert(self.next_stamp, hash);
            self.next_stamp += 1;
        }
    }

    fn evict(&mut self) {
        while self.blocks.len() as u64 * BLOCK_TOKENS + self.reserved_tokens > self.capacity_tokens {
            let Some((_, hash)) = self.idle.pop_first() else {
                return;
            };
            self.blocks.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(document: u64, count: u64) -> Vec<u64> {
        (0..count).map(|block| document * 1_000 + block).collect()
    }

    #[test]
    fn the_second_request_of_a_document_hits_and_shares() {
        let mut memory = KvMemory::new(4 * 256);
        assert_eq!(memory.admit(&blocks(1, 2), 100), Some(0));
        assert_eq!(memory.admit(&blocks(1, 2), 100), Some(2));
        assert_eq!(memory.held_tokens(), 512);
        assert_eq!(memory.admit(&blocks(2, 2), 100), None, "512 + 512 + 300 > 1,024");
        memory.release(&blocks(1, 2), 0, 100, Release::Keep);
        assert_eq!(memory.held_tokens(), 512, "the other request still holds them");
    }

    #[test]
    fn idle_blocks_are_evicted_oldest_document_first_and_from_its_end() {
        let mut memory = KvMemory::new(4 * 256);
        for document in [1, 2] {
            memory.admit(&blocks(document, 2), 0).unwrap();
            memory.release(&blocks(document, 2), 0, 0, Release::Keep);
        }
        memory.admit(&blocks(3, 1), 0).unwrap();
        assert_eq!(memory.admit(&blocks(2, 2), 0), Some(2));
        memory.release(&blocks(2, 2), 2, 0, Release::Keep);
        assert_eq!(memory.admit(&blocks(1, 2), 0), Some(1), "block 1 of document 1 had to go");
    }

    #[test]
    fn an_aborted_prefill_leaves_no_false_hit() {
        let mut memory = KvMemory::new(8 * 256);
        assert_eq!(memory.admit(&blocks(1, 3), 0), Some(0));
        memory.release(&blocks(1, 3), 0, 0, Release::Forget);
        assert_eq!(memory.admit(&blocks(1, 3), 0), Some(0));
    }

    proptest! {
        #[test]
        fn memory_is_never_overbooked_and_all_comes_back(
            requests in prop::collection::vec((0_u64..4, 0_u64..6, 0_u64..300), 1..40),
        ) {
            let mut memory = KvMemory::new(8 * 256);
            let mut admitted = Vec::new();
            for (document, count, private) in requests {
                let hashes = blocks(document, count);
                match memory.admit(&hashes, private) {
                    Some(cached) => admitted.push((hashes, cached, private)),
                    None => if let Some((hashes, cached, private)) = admitted.pop() {
                        memory.release(&hashes, cached, private, Release::Keep);
                    },
                }
                let stored = memory.blocks.len() as u64 * BLOCK_TOKENS;
                prop_assert!(stored + memory.reserved_tokens <= memory.capacity_tokens);
            }
            for (hashes, cached, private) in admitted {
                memory.release(&hashes, cached, private, Release::Keep);
            }
            prop_assert_eq!(memory.held_tokens(), 0);
            prop_assert_eq!(memory.reserved_tokens, 0);
        }
    }
}
