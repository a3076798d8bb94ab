//! The same job by the least that can read a stream and keep every stamp: one `recvmsg` per wake, and a search for the
//! text field. No HTTP, no JSON, nothing checked. It is the floor that the client is compared with: in cost, and in what
//! the kernel's stamps are worth on a machine that has more to do than it can.

use std::{
    io::{self, IoSliceMut},
    os::fd::AsRawFd as _,
    sync::Arc,
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
    io::{AsyncWriteExt as _, Interest},
    net::TcpStream,
    sync::Barrier,
    task::JoinSet,
};

use super::job::{Job, Report, Row, cpu_nanos, document, memory_bytes, monotonic_nanos, parts, runtime};

/// Reads the job's streams.
pub(crate) fn run(job: &Job) -> io::Result<Report> {
    runtime()?.block_on(read(job))
}

async fn read(job: &Job) -> io::Result<Report> {
    let host = job.url.trim_start_matches("http://").to_owned();
    let document = Arc::new(document(job));
    let zero = Zero::now();
    let barrier = Arc::new(Barrier::new(job.streams as usize + 1));
    let mut tasks = JoinSet::new();
    for slot in 0..job.streams {
        let mut io = TcpStream::connect(&host).await?;
        io.set_nodelay(true)?;
        setsockopt(&io, sockopt::ReceiveTimestampns, &true)?;
        let (job, host, document, barrier) = (job.clone(), host.clone(), Arc::clone(&document), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            let mut rows = Vec::with_capacity(job.requests as usize);
            for request in 0..job.requests {
                let number = u64::from(slot) * u64::from(job.requests) + u64::from(request);
                rows.push(exchange(&mut io, &host, &job, &document, (number, zero)).await?);
            }
            io::Result::Ok(rows)
        });
    }
    let cpu = cpu_nanos();
    barrier.wait().await;
    let rows: io::Result<Vec<Vec<Row>>> = tasks.join_all().await.into_iter().collect();
    let (cpu_nanos, memory_bytes) = (cpu_nanos() - cpu, memory_bytes());
    Ok(Report { cpu_nanos, memory_bytes, requests: rows?.into_iter().flatten().collect() })
}

/// One moment on both clocks: the kernel stamps on the wall's, the simulator's log has the monotonic one.
#[derive(Clone, Copy)]
struct Zero {
    wall: SystemTime,
    monotonic: u64,
}

impl Zero {
    fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: monotonic_nanos() }
    }

    fn monotonic(self, stamp: Duration) -> u64 {
        let since = (SystemTime::UNIX_EPOCH + stamp).duration_since(self.wall).unwrap_or_default();
        self.monotonic + since.as_nanos() as u64
    }
}

async fn exchange(
    io: &mut TcpStream,
    host: &str,
    job: &Job,
    document: &str,
    (number, zero): (u64, Zero),
) -> io::Result<Row> {
    let id = format!("bare-{}-{number}", std::process::id());
    let (head, tail) = parts(job, number);
    let bytes = head.len() + document.len() + tail.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {bytes}\r\nx-request-id: {id}\r\n\r\n{head}{document}{tail}"
    );
    io.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; 8 << 10];
    let mut control = cmsg_space!(TimeSpec);
    let mut stamps: Vec<Duration> = Vec::with_capacity(64);
    let mut row = Row { id, ..Row::default() };
    loop {
        io.readable().await?;
        let mut got = None;
        let tried = io.try_io(Interest::READABLE, || {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let message = recvmsg::<()>(io.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
            let stamp = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
                _ => None,
            });
            got = Some((message.bytes, stamp.unwrap_or_default()));
            // A short read empties the queue, as in tokio's own reads.
            if message.bytes < 8 << 10 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match (got, tried) {
            (Some((0, _)), _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (Some((n, stamp)), _) => {
                let read = &buffer[..n];
                // The first event names the role and has an empty text.
                let texts =
                    memchr::memmem::find_iter(read, b"\"content\":\"").filter(|at| read.get(at + 11) != Some(&b'"'));
                let before = stamps.len();
                stamps.extend(texts.map(|_| stamp));
                let came = stamps.len() - before;
                row.reads += u64::from(came > 0);
                row.coalesced += u64::from(came > 1);
                row.first_with = if before == 0 { came as u64 } else { row.first_with };
                if memchr::memmem::find(read, b"0\r\n\r\n").is_some() {
                    let at = |stamp: Option<&Duration>| stamp.map_or(0, |stamp| zero.monotonic(*stamp));
                    (row.first, row.last, row.events) = (at(stamps.first()), at(stamps.last()), stamps.len() as u64);
                    return Ok(row);
                }
            }
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            (None, _) => {}
        }
    }
}
