//! The simulator in a process of its own, and its word about what it did.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
};

use serde::Deserialize;
use speedmatrix_agent::sim::{Recording, Sim, SimConfig};

/// Serves until its input ends: `serve-sim PRESET ends|chunks`.
pub(crate) fn serve(preset: &str, recording: &str) -> io::Result<()> {
    let mut config = SimConfig::preset(preset).map_err(io::Error::other)?;
    config.recording = if recording == "chunks" { Recording::EveryChunk } else { Recording::FirstAndLast };
    let sim = Sim::start_on_thread(config, ([127, 0, 0, 1], 0).into())?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", sim.base_url())?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A running simulator; it ends with this.
pub(crate) struct Simulator {
    child: Child,
    input: Option<ChildStdin>,
    /// Its address.
    pub(crate) url: String,
}

/// What the simulator knows of a request; times are `CLOCK_MONOTONIC`, nanoseconds.
#[derive(Debug, Deserialize)]
pub(crate) struct Truth {
    id: String,
    pub(crate) first_token: Option<Stamp>,
    pub(crate) last_token: Option<Stamp>,
    pub(crate) output_tokens: u64,
    #[serde(default)]
    pub(crate) chunk_log: Vec<Chunk>,
}

/// One of its stamps.
#[derive(Debug, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) monotonic_ns: u64,
}

/// One chunk of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) sent: Stamp,
    pub(crate) tokens: u64,
}

#[derive(Deserialize)]
struct Log {
    requests: Vec<Truth>,
}

impl Simulator {
    /// Starts one and waits until it says where it listens.
    pub(crate) fn start(preset: &str, recording: &str) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve-sim", preset, recording])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url)?;
        }
        Ok(Self { child, input, url: url.trim().to_owned() })
    }

    /// What it did, by request id.
    pub(crate) fn log(&self) -> io::Result<HashMap<String, Truth>> {
        let host = self.url.trim_start_matches("http://");
        let mut io = TcpStream::connect(host)?;
        write!(io, "GET /sim/log HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        io.read_to_end(&mut answer)?;
        let start = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(0, |end| end + 4);
        let log: Log = serde_json::from_slice(&answer[start..])?;
        Ok(log.requests.into_iter().map(|truth| (truth.id.clone(), truth)).collect())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends when its input does; whatever it says by then is of no interest.
        let _ended = self.child.wait();
    }
}
