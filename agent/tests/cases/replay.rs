//! The replay server, as a child process on a free port.

use std::{
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use speedmatrix_agent::client::Target;
use speedmatrix_shared::plan::draft::parse_target;

/// A running replay server; it ends with this.
pub(crate) struct Replay {
    child: Child,
    address: String,
    http: reqwest::Client,
}

impl Replay {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn start(script: &Path, root: &Path) -> io::Result<Self> {
        // An installed one is as good: reqwest wants any, even for plain http.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
        let mut child = Command::new("python3")
            .arg(script)
            .arg("--root")
            .arg(root)
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the replay server has no output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.split("on http").nth(1).map(|rest| format!("http{}", rest.trim()));
        let address = address.ok_or_else(|| io::Error::other(format!("the replay server said {line:?}")))?;
        Ok(Self { child, address, http })
    }

    /// The target that plays a case.
    pub(crate) fn target(&self, id: &str) -> Target {
        let url = parse_target(&format!("{}/case/{id}/v1", self.address)).expect("a loop-back address");
        Target { url, key: None }
    }

    /// Makes the server forget a case's counters.
    pub(crate) async fn reset(&self, id: &str) {
        let sent = self.http.post(format!("{}/case/{id}/reset", self.address)).send().await;
        sent.and_then(reqwest::Response::error_for_status).expect("the replay server answers");
    }

    /// How many clients of a case had gone before its end.
    pub(crate) async fn gone_early(&self, id: &str) -> u64 {
        let log = self.http.get(format!("{}/case/{id}/log", self.address)).send().await;
        let log: Value = log.expect("the replay server answers").json().await.expect("the log is JSON");
        log["gone_early"].as_u64().unwrap_or(0)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
