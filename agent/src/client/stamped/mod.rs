//! The measured socket: every read carries the kernel's receive stamp, every write the moment it was handed over.
//!
//! On Linux the socket has `SO_TIMESTAMPNS` and is read with `recvmsg`; the stamp is the packet's own arrival, taken
//! before this process was even woken, so that the client's scheduling delay drops out of every number. Packets that
//! wait together are merged in the receive queue and keep only the last one's stamp (`tcp_try_coalesce`; always so on the
//! loop-back of Linux 6.18), so that reading them in pieces would hide it, not mend it: the record counts such reads.
//! Elsewhere, and where the kernel gives no stamp, the read itself is the stamp, and says so.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use speedmatrix_shared::trace::StampSource;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

#[cfg(target_os = "linux")]
use self::linux as kernel;
#[cfg(not(target_os = "linux"))]
use self::portable as kernel;

/// A read later than this after its packet is late: far above what waking up takes (20 µs), far below a token's time.
pub(crate) const LATE: Duration = Duration::from_millis(1);

/// The latest read of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// Reads so far: equal numbers mean the very same read.
    pub(crate) number: u64,
    /// When the bytes reached this machine.
    pub(crate) at: Instant,
    /// How much later this process read them.
    pub(crate) late: Duration,
    /// Who stamped it.
    pub(crate) by: StampSource,
}

/// What a socket notes about itself.
#[derive(Debug)]
pub(crate) struct Notes {
    last_read: Read,
    first_write: Option<Instant>,
    last_write: Option<Instant>,
}

impl Notes {
    fn new() -> Self {
        let last_read = Read { number: 0, at: Instant::now(), late: Duration::ZERO, by: StampSource::Process };
        Self { last_read, first_write: None, last_write: None }
    }

    /// The latest read; number 0 is the connection's beginning.
    pub(crate) const fn last_read(&self) -> Read {
        self.last_read
    }

    /// When the request's first byte was handed to the kernel.
    pub(crate) const fn first_write(&self) -> Option<Instant> {
        self.first_write
    }

    /// When its last byte so far had been handed over.
    pub(crate) const fn last_write(&self) -> Option<Instant> {
        self.last_write
    }

    /// The latest sign of life: bytes that came, or bytes that the other side let us send.
    pub(crate) fn last_sign(&self) -> Instant {
        let read = self.last_read.at + self.last_read.late;
        self.last_write.map_or(read, |write| read.max(write))
    }

    /// A read just came back; `late` is how long its packet had waited, if the kernel says so.
    fn note_read(&mut self, late: Option<Duration>) {
        let now = Instant::now();
        let by = if late.is_some() { StampSource::Kernel } else { StampSource::Process };
        let late = late.unwrap_or_default();
        let at = now.checked_sub(late).unwrap_or(now);
        self.last_read = Read { number: self.last_read.number + 1, at, late, by };
    }

    fn note_write(&mut self, before: Instant) {
        self.first_write.get_or_insert(before);
        self.last_write = Some(Instant::now());
    }
}

/// Most bytes of a request that are handed over before others get their turn: many long prompts then start together,
/// within the time of as many small writes, and upload side by side. The first piece is small: it is what makes a start.
const FIRST_PIECE_BYTES: usize = 4 << 10;
const PIECE_BYTES: usize = 64 << 10;
/// Most buffers of one piece: a head and the parts of a body.
const MOST_PARTS: usize = 8;

/// A TCP connection that stamps.
#[derive(Debug)]
pub(crate) struct Stamped {
    io: TcpStream,
    notes: Notes,
    turn: Turn,
}

/// Whether a long write may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ours,
    /// A whole piece was written: the others first.
    Others,
}

impl Stamped {
    /// Takes a connection over and asks the kernel for stamps.
    pub(crate) fn new(io: TcpStream) -> Self {
        kernel::ask_for_stamps(&io);
        Self { io, notes: Notes::new(), turn: Turn::Ours }
    }

    /// What it noted.
    pub(crate) const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Forgets the writes: a new request begins.
    pub(crate) const fn begin_request(&mut self) {
        (self.notes.first_write, self.notes.last_write) = (None, None);
    }

    fn write_piece(&mut self, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if std::mem::replace(&mut self.turn, Turn::Ours) == Turn::Others {
            // Polled once, it lets the runtime wake us after the tasks that wait; dropping it doesn't take that back.
            let _pending = std::pin::pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        let room = if self.notes.first_write().is_none() { FIRST_PIECE_BYTES } else { PIECE_BYTES };
        let mut piece = [io::IoSlice::new(&[]); MOST_PARTS];
        let mut taken = 0;
        for (slot, part) in piece.iter_mut().zip(parts) {
            let part: &[u8] = part;
            let part = part.get(..room - taken).unwrap_or(part);
            *slot = io::IoSlice::new(part);
            taken += part.len();
        }
        let before = Instant::now();
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, &piece);
        if let Poll::Ready(Ok(bytes @ 1..)) = written {
            self.notes.note_write(before);
            self.turn = if bytes == room { Turn::Others } else { Turn::Ours };
        }
        written
    }
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        kernel::poll_read(self.get_mut(), cx, buf)
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().write_piece(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write_piece(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn pair() -> (Stamped, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        far.set_nodelay(true).unwrap();
        (Stamped::new(near), far)
    }

    #[tokio::test]
    async fn reads_are_numbered_and_stamped_no_later_than_they_are_made() {
        let (mut near, mut far) = pair().await;
        let mut buf = [0; 64];
        for number in 1..=3 {
            far.write_all(b"data: x\n\n").await.unwrap();
            assert_eq!(near.read(&mut buf).await.unwrap(), 9);
            let read = near.notes().last_read();
            assert_eq!(read.number, number);
            assert!(read.at <= Instant::now());
        }
    }

    #[tokio::test]
    async fn writes_are_stamped_per_request() {
        let (mut near, mut far) = pair().await;
        assert_eq!(near.notes().first_write(), None);
        let before = Instant::now();
        near.write_all(b"one").await.unwrap();
        far.read_exact(&mut [0; 3]).await.unwrap();
        near.write_all(b"two").await.unwrap();
        let (first, last) = (near.notes().first_write().unwrap(), near.notes().last_write().unwrap());
        assert!(before <= first && first < last && last <= Instant::now());
        near.begin_request();
        assert_eq!(near.notes().first_write(), None);
    }

    /// A packet that waited still has its own arrival, however late it is read.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn lateness_is_measured_and_taken_off() {
        let (mut near, mut far) = pair().await;
        let before = Instant::now();
        far.write_all(b"data: x\n\n").await.unwrap();
        let written = Instant::now();
        // The lateness itself is under test: the event may not be read while it is young.
        std::thread::sleep(LATE * 5);
        assert_eq!(near.read(&mut [0; 64]).await.unwrap(), 9);
        let read = near.notes().last_read();
        if read.by == StampSource::Process {
            return; // this kernel gives no stamps
        }
        assert!(read.late >= LATE * 5, "{read:?}");
        assert!(before <= read.at && read.at <= written + LATE, "{read:?}");
    }
}
