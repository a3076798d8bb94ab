//! What a reading process is told to do, and what it found.

use std::{
    io,
    process::{Command, Stdio},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Streams to read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The simulator.
    pub(crate) url: String,
    /// Streams at once.
    pub(crate) streams: u32,
    /// Requests of each, one after the other.
    pub(crate) requests: u32,
    /// Output tokens of a request.
    pub(crate) tokens: u32,
    /// Size of the shared document.
    pub(crate) prompt_bytes: usize,
    /// What is asked for and kept beside first and last stamps.
    pub(crate) detail: Detail,
}

/// How much is kept of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Detail {
    /// Usage at the end.
    Ends,
    /// Usage in each chunk, and every arrival in the report.
    Arrivals,
}

/// What a process found.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Processor time from the first send to the last byte.
    pub(crate) cpu_nanos: u64,
    /// Most memory until then.
    pub(crate) memory_bytes: u64,
    /// Its requests.
    pub(crate) requests: Vec<Row>,
}

/// One request. Times are `CLOCK_MONOTONIC`, nanoseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) sent: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) tokens: u64,
    pub(crate) events: u64,
    pub(crate) reads: u64,
    pub(crate) coalesced: u64,
    /// Events in the read that the first token came with: more than one have the later one's stamp.
    pub(crate) first_with: u64,
    /// Time and cumulative tokens of each arrival, if asked for.
    pub(crate) arrivals: Vec<(u64, u64)>,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// Does a job in a process of its own: `client` or `bare`.
pub(crate) fn in_process(reader: &str, job: &Job) -> io::Result<Report> {
    let output = Command::new(std::env::current_exe()?)
        .args([reader, &serde_json::to_string(job)?])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the {reader} process ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Two bodies around one shared document: the parts of request number `n` are head, document, tail.
pub(crate) fn parts(job: &Job, number: u64) -> (String, String) {
    let continuous = job.detail == Detail::Arrivals;
    let tokens = job.tokens;
    let head = r#"{"model":"exact","messages":[{"role":"user","content":""#.to_owned();
    let tail = format!(
        r#" Question {number}."}}],"stream":true,"max_tokens":{tokens},"ignore_eos":true,"stream_options":{{"include_usage":true,"continuous_usage_stats":{continuous}}}}}"#
    );
    (head, tail)
}

/// The shared document.
pub(crate) fn document(job: &Job) -> String {
    "five ".repeat(job.prompt_bytes / 5)
}

/// Both readers run on the same kind of runtime: one worker, as a core of their own.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// `CLOCK_MONOTONIC` now, nanoseconds.
pub(crate) fn monotonic_nanos() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// Processor time of all threads of this process, nanoseconds (`/proc/self/task/*/schedstat`).
pub(crate) fn cpu_nanos() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// Most resident memory so far, bytes.
pub(crate) fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|kib| kib.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
