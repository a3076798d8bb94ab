//! The agent in a process of its own, and what the system knows of it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde::de::DeserializeOwned;
use speedmatrix_agent::client::{Target, http::Http};
use speedmatrix_shared::{
    api::{StartRun, Started, path},
    id::RunId,
    plan::{PlanDraft, draft::parse_target},
    state::{RunState, RunStatus},
};
use tempfile::TempDir;

use super::Outcome;

/// The unit of the kernel's processor times: `USER_HZ` of Linux, per second.
const TICKS_PER_SECOND: u64 = 100;
/// How often it is asked whether a run is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An agent over an empty store; it ends with this.
pub(crate) struct Agent {
    child: Child,
    url: String,
    http: Http,
    _store: TempDir,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It has nothing to save that anybody would miss.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Agent {
    /// Starts one and waits until it says where it listens.
    pub(crate) fn start() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_speedmatrix"))
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(folder.path().join("runs.sqlite3"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the agent has no output")?).read_line(&mut line)?;
        let url = line.trim().trim_start_matches("listening on ").to_owned();
        let http = Http::new(&Target { url: parse_target(&url)?, key: None })?;
        Ok(Self { child, url, http, _store: folder })
    }

    /// Starts a run.
    pub(crate) async fn begin(&self, plan: PlanDraft) -> Outcome<RunId> {
        let asked = serde_json::to_string(&StartRun { plan, ..StartRun::default() })?;
        let answer = self.http.post(path::RUNS, asked).await?.body;
        let started: Started = serde_json::from_str(&answer).map_err(|_not_started| answer)?;
        Ok(started.id)
    }

    /// Stops a run, and waits until it has.
    pub(crate) async fn stop(&self, run: &RunId) -> Outcome<()> {
        self.http.post(&path::of(path::STOP, run), String::new()).await?;
        self.ended(run).await.map(drop)
    }

    /// A run when it is over.
    pub(crate) async fn ended(&self, run: &RunId) -> Outcome<RunState> {
        loop {
            let state: RunState = self.get(&path::of(path::RUN, run)).await?;
            if state.status != RunStatus::Running {
                return Ok(state);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Outcome<T> {
        let answer = self.http.get(path).await?.body;
        serde_json::from_str(&answer).map_err(|_something_else| answer.into())
    }

    /// One of its own figures.
    pub(crate) async fn counted(&self, name: &str) -> Outcome<u64> {
        let page = self.http.get(path::METRICS).await?.body;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.ok_or_else(|| format!("the agent has no figure {name}"))?.parse()?)
    }

    /// Address of a run's live socket.
    pub(crate) fn live(&self, run: &RunId) -> String {
        format!("{}{}", self.url.replacen("http", "ws", 1), path::of(path::LIVE, run))
    }

    /// Its memory now, bytes (Linux; 0 elsewhere).
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Most memory that it had so far, bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|kib| kib.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) << 10
    }

    /// Processor time so far, also of threads that have ended.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = self.file("stat");
        // The name in brackets may hold anything; user and system time are 12th and 13th after it.
        let times = stat.rsplit_once(')').map_or("", |(_, times)| times).split_whitespace().skip(11).take(2);
        let ticks: u64 = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
    }
}
