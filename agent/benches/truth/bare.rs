//! The same job by the least that can read a stream and keep every stamp: one `recvmsg` per wake, and a search for the
//! text field. No HTTP, no JSON, nothing checked. It is the floor that the client is compared with.

use std::{
    io::{self, IoSliceMut},
    os::fd::AsRawFd as _,
    sync::Arc,
    time::Duration,
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

use super::job::{Job, Report, Row, cpu_nanos, document, memory_bytes, parts, runtime};

/// Reads the job's streams.
pub(crate) fn run(job: &Job) -> io::Result<Report> {
    runtime()?.block_on(read(job))
}

async fn read(job: &Job) -> io::Result<Report> {
    let host = job.url.trim_start_matches("http://").to_owned();
    let document = Arc::new(document(job));
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
                rows.push(exchange(&mut io, &host, &job, &document, number).await?);
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

async fn exchange(io: &mut TcpStream, host: &str, job: &Job, document: &str, number: u64) -> io::Result<Row> {
    let (head, tail) = parts(job, number);
    let bytes = head.len() + document.len() + tail.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {bytes}\r\nx-request-id: bare-{number}\r\n\r\n{head}{document}{tail}"
    );
    io.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; 8 << 10];
    let mut control = cmsg_space!(TimeSpec);
    let mut stamps: Vec<Duration> = Vec::with_capacity(64);
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
                stamps.extend(memchr::memmem::find_iter(read, b"\"content\":\"").map(|_| stamp));
                if memchr::memmem::find(read, b"0\r\n\r\n").is_some() {
                    return Ok(Row { events: stamps.len() as u64, ..Row::default() });
                }
            }
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            (None, _) => {}
        }
    }
}
