//! The socket end of a stream: writes without waiting, and the bytes that a slow client has not taken.

use std::io;

use tokio::net::tcp::OwnedWriteHalf;

use super::log::End;

/// Bytes that wait for a slow client before the simulator gives it up.
const PENDING_LIMIT_BYTES: usize = 4 << 20;

/// A socket's write half and the bytes that it didn't take yet.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) half: OwnedWriteHalf,
    pub(super) pending: Vec<u8>,
}

impl Wire {
    pub(super) fn new(half: OwnedWriteHalf) -> Self {
        Self { half, pending: Vec::new() }
    }

    /// Writes without waiting; what a slow client leaves is tried again with the next write.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        if self.pending.is_empty() {
            let taken = self.write(bytes)?;
            self.pending.extend_from_slice(&bytes[taken..]);
        } else {
            self.pending.extend_from_slice(bytes);
            let pending = std::mem::take(&mut self.pending);
            let taken = self.write(&pending)?;
            self.pending = pending;
            self.pending.drain(..taken);
        }
        if self.pending.len() > PENDING_LIMIT_BYTES { Err(End::ClientTooSlow) } else { Ok(()) }
    }

    /// How many of `bytes` the socket took.
    fn write(&self, bytes: &[u8]) -> Result<usize, End> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.half.try_write(&bytes[taken..]) {
                Ok(more) => taken += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(End::ClientLeft),
            }
        }
        Ok(taken)
    }
}
