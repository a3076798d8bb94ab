//! Where the kernel gives no receive stamps, the read is the stamp.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead as _, ReadBuf},
    net::TcpStream,
};

use super::Stamped;

pub(super) fn ask_for_stamps(_io: &TcpStream) {}

pub(super) fn poll_read(stamped: &mut Stamped, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    let before = buf.filled().len();
    let read = Pin::new(&mut stamped.io).poll_read(cx, buf);
    if read.is_ready() && buf.filled().len() > before {
        stamped.notes.note_read(None);
    }
    read
}
