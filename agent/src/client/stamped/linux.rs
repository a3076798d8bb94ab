//! Reading with the kernel's receive stamp: `SO_TIMESTAMPNS` and `recvmsg` (Linux, `Documentation/networking/timestamping.rst`).

use std::{
    cell::RefCell,
    io::{self, IoSliceMut},
    os::fd::{AsRawFd as _, RawFd},
    task::{Context, Poll, ready},
    time::{Duration, Instant, SystemTime},
};

use nix::{
    cmsg_space,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt},
        time::TimeSpec,
    },
};
use tokio::{
    io::{Interest, ReadBuf},
    net::TcpStream,
};

use super::{LATE, StampSource, Stamped, Wire};

/// Most bytes of one read. Larger than hyper's first buffer; a larger one only matters to documents, not to streams.
const SCRATCH_BYTES: usize = 64 << 10;

/// Where reads land before they are copied out: `recvmsg` wants initialised memory, and clearing hyper's buffer anew for
/// each read would cost more than copying an event. One per thread.
struct Scratch {
    bytes: Vec<u8>,
    control: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { bytes: vec![0; SCRATCH_BYTES], control: cmsg_space!(TimeSpec) });
}

pub(super) fn ask_for_stamps(io: &TcpStream) {
    // Refused (an exotic kernel, a sandbox): reads then come without a stamp, and say so.
    if let Err(refused) = setsockopt(io, sockopt::ReceiveTimestampns, &true) {
        tracing::debug!(%refused, "the kernel gives no receive stamps: the process stamps");
    }
}

pub(super) fn poll_read(stamped: &mut Stamped, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(stamped.io.poll_read_ready(cx))?;
        let room = buf.remaining().min(SCRATCH_BYTES);
        let split = stamped.wire == Wire::Plain && was_late(stamped);
        let mut got = None;
        let tried = SCRATCH.with_borrow_mut(|scratch| {
            let tried = stamped.io.try_io(Interest::READABLE, || {
                let fd = stamped.io.as_raw_fd();
                let queue = if split { look(fd, scratch, room)? } else { Queue { first: room, seen: 0 } };
                let (bytes, stamp) = receive(fd, scratch, queue.first, MsgFlags::empty())?;
                got = Some((bytes, stamp));
                // Less came than there was room for, or all that was seen: the queue is empty. Saying so here spares
                // the read that would find it out (readiness is edge-triggered, and tokio's own `poll_read` concludes
                // the same; what comes meanwhile makes it ready again).
                let empty = bytes < queue.first || (bytes == queue.seen && bytes < room);
                if bytes > 0 && empty { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            if let Some((bytes, _)) = got {
                buf.put_slice(&scratch.bytes[..bytes]);
            }
            tried
        });
        match (got, tried) {
            (Some((bytes, stamp)), _) => {
                if bytes > 0 {
                    note(stamped, stamp);
                }
                return Poll::Ready(Ok(()));
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            (None, tried) => return Poll::Ready(tried),
        }
    }
}

fn note(stamped: &Stamped, stamp: Option<SystemTime>) {
    let (wall, now) = (SystemTime::now(), Instant::now());
    // A stamp after "now" can only come from a clock that was just set back: not late, as far as one can tell.
    let late = stamp.map(|stamp| wall.duration_since(stamp).unwrap_or_default());
    stamped.notes.note_read(now, late);
}

fn was_late(stamped: &Stamped) -> bool {
    let last = stamped.notes.last_read();
    last.by == StampSource::Kernel && last.late > LATE
}

/// What waits in a socket's receive queue, in bytes.
struct Queue {
    /// The first event; as much as there is room for, if that can't be told.
    first: usize,
    /// All that was seen.
    seen: usize,
}

/// Looks at the queue without taking anything.
fn look(fd: RawFd, scratch: &mut Scratch, room: usize) -> io::Result<Queue> {
    let (seen, _) = receive(fd, scratch, room, MsgFlags::MSG_PEEK)?;
    Ok(Queue { first: event_end(&scratch.bytes[..seen]).unwrap_or(room), seen })
}

/// The end of the first event, with the end of its HTTP chunk where that follows.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let end = memchr::memchr_iter(b'\n', bytes).find_map(|at| {
        let after = &bytes[at + 1..];
        if after.starts_with(b"\n") {
            return Some(at + 2);
        }
        after.starts_with(b"\r\n").then_some(at + 3)
    })?;
    Some(if bytes[end..].starts_with(b"\r\n") { end + 2 } else { end })
}

fn receive(fd: RawFd, scratch: &mut Scratch, room: usize, flags: MsgFlags) -> io::Result<(usize, Option<SystemTime>)> {
    let mut parts = [IoSliceMut::new(&mut scratch.bytes[..room])];
    let message = recvmsg::<()>(fd, &mut parts, Some(&mut scratch.control), flags)?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    Ok((message.bytes, stamp.map(|stamp| SystemTime::UNIX_EPOCH + Duration::from(stamp))))
}

#[cfg(test)]
mod tests {
    use super::event_end;

    #[test]
    fn events_end_at_their_blank_line_and_chunk_end() {
        let check = |bytes: &[u8], end: Option<usize>| assert_eq!(event_end(bytes), end, "{bytes:?}");
        check(b"data: x\n\n", Some(9));
        check(b"9\r\ndata: x\n\n\r\n9\r\nd", Some(14));
        check(b"data: x\r\n\r\ndata", Some(11));
        check(b"data: x\n", None);
        check(b"", None);
    }
}
