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

use super::Stamped;

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
        let mut got = None;
        let tried = SCRATCH.with_borrow_mut(|scratch| {
            let tried = stamped.io.try_io(Interest::READABLE, || {
                let (bytes, stamp) = receive(stamped.io.as_raw_fd(), scratch, room)?;
                got = Some((bytes, stamp));
                // Less than there was room for: the queue is empty. Saying so here spares the read that would find it
                // out (readiness is edge-triggered, and tokio's own `poll_read` concludes the same; what comes
                // meanwhile makes it ready again).
                if (1..room).contains(&bytes) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
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

fn receive(fd: RawFd, scratch: &mut Scratch, room: usize) -> io::Result<(usize, Option<SystemTime>)> {
    let mut parts = [IoSliceMut::new(&mut scratch.bytes[..room])];
    let message = recvmsg::<()>(fd, &mut parts, Some(&mut scratch.control), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    Ok((message.bytes, stamp.map(|stamp| SystemTime::UNIX_EPOCH + Duration::from(stamp))))
}
