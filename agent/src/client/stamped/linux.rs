//! Reading with the kernel's receive stamp: `SO_TIMESTAMPNS` and `recvmsg` (Linux, `Documentation/networking/timestamping.rst`).

use std::{
    cell::RefCell,
    io::{self, IoSliceMut},
    os::fd::{AsRawFd as _, RawFd},
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
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

thread_local! {
    /// Room for the stamp, beside the bytes of a read.
    static CONTROL: RefCell<Vec<u8>> = RefCell::new(cmsg_space!(TimeSpec));
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
        let room = buf.remaining();
        let mut got = None;
        let tried = stamped.io.try_io(Interest::READABLE, || {
            let (bytes, stamp) = receive(stamped.io.as_raw_fd(), buf.initialize_unfilled())?;
            got = Some((bytes, stamp));
            // Less than there was room for: the queue is empty. Saying so here spares the read that would find it
            // out (readiness is edge-triggered, and tokio's own `poll_read` concludes the same; what comes
            // meanwhile makes it ready again).
            if (1..room).contains(&bytes) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match (got, tried) {
            (Some((bytes, stamp)), _) => {
                if bytes > 0 {
                    buf.advance(bytes);
                    // A stamp after "now" can only come from a clock that was just set back: not late, as far as one
                    // can tell.
                    let late = stamp.map(|stamp| SystemTime::now().duration_since(stamp).unwrap_or_default());
                    stamped.notes.note_read(late);
                }
                return Poll::Ready(Ok(()));
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            (None, tried) => return Poll::Ready(tried),
        }
    }
}

fn receive(fd: RawFd, room: &mut [u8]) -> io::Result<(usize, Option<SystemTime>)> {
    CONTROL.with_borrow_mut(|control| {
        let mut parts = [IoSliceMut::new(room)];
        let message = recvmsg::<()>(fd, &mut parts, Some(control), MsgFlags::empty())?;
        let stamp = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        Ok((message.bytes, stamp.map(|stamp| SystemTime::UNIX_EPOCH + Duration::from(stamp))))
    })
}
