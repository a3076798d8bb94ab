//! What agent and clients say to each other: paths, bodies, and the messages of the live socket.

mod history;
mod live;

use serde::{Deserialize, Serialize};

use crate::{
    event::Origin,
    id::RunId,
    label::Labels,
    plan::{FieldError, PlanDraft},
    state::RunStatus,
    typed::TypedFacts,
};

pub use self::{
    history::{CellInRun, MOST_OTHER_RUNS},
    live::ServerMessage,
};
pub use crate::target::engine_line;

/// Version of the messages below; a client with another one reloads itself.
pub const PROTOCOL: u32 = 1;

/// Paths of the HTTP interface. `{id}` stands for a run's id.
pub mod path {
    /// GET: whether the agent's process lives.
    pub const HEALTH: &str = "/healthz";
    /// GET: whether the agent can do its work; 503 where it can't.
    pub const READY: &str = "/readyz";
    /// GET: figures of the agent itself, for Prometheus.
    pub const METRICS: &str = "/metrics";
    /// GET: [`super::Info`].
    pub const INFO: &str = "/api/v1/info";
    /// GET: list of [`super::RunSummary`], running first, then newest first; POST [`super::StartRun`]: [`super::Started`].
    pub const RUNS: &str = "/api/v1/runs";
    /// GET: the run's [`super::RunState`]; PATCH [`crate::label::LabelPatch`]: the new [`super::Labels`]; DELETE: the run
    /// is gone from the list, and from the store after [`super::UNDO_SECS`].
    pub const RUN: &str = "/api/v1/runs/{id}";
    /// WebSocket: [`super::ServerMessage`]s.
    pub const LIVE: &str = "/api/v1/runs/{id}/live";
    /// POST: stops the run; what is measured stays.
    pub const STOP: &str = "/api/v1/runs/{id}/stop";
    /// POST [`super::ResumeRun`]: a run that ended too early goes on with the cells that are missing.
    pub const RESUME: &str = "/api/v1/runs/{id}/resume";
    /// POST [`crate::steer::Steer`]: what happens next in a running run, or a cell to leave out.
    pub const STEER: &str = "/api/v1/runs/{id}/steer";
    /// GET `?format=md|html|csv|json`: the run as a file.
    pub const EXPORT: &str = "/api/v1/runs/{id}/export";
    /// POST [`super::ProbeRequest`]: [`crate::target::TargetFacts`].
    pub const PROBE: &str = "/api/v1/probe";
    /// GET: model servers on the agent's own machine, [`crate::found::FoundServers`].
    pub const SERVERS: &str = "/api/v1/servers";
    /// GET: a finished cell looked at closely, [`crate::detail::CellDetail`].
    pub const CELL: &str = "/api/v1/runs/{id}/cells/{cell}";
    /// GET: its requests, [`crate::detail::requests::Columns`].
    pub const REQUESTS: &str = "/api/v1/runs/{id}/cells/{cell}/requests";
    /// GET: what other runs measured in it, a list of [`super::CellInRun`].
    pub const HISTORY: &str = "/api/v1/runs/{id}/cells/{cell}/history";
    /// GET: the run's [`super::Labels`].
    pub const LABELS: &str = "/api/v1/runs/{id}/labels";
    /// POST: takes a deletion back.
    pub const RESTORE: &str = "/api/v1/runs/{id}/restore";
    /// POST the bytes of a file, with its name as `?name=`: a list of [`super::Imported`], one for each run in it.
    pub const IMPORT: &str = "/api/v1/import";
    /// POST [`super::Enter`]: the browser keeps the token in a cookie; DELETE: it forgets it.
    pub const ENTER: &str = "/api/v1/enter";
    /// GET: the valid [`super::Pass`]es; POST [`super::NewPass`]: [`super::Shared`].
    pub const PASSES: &str = "/api/v1/passes";
    /// DELETE: takes a pass back. `{pass}` is its number.
    pub const PASS: &str = "/api/v1/passes/{pass}";

    /// A path with its run filled in.
    pub fn of(template: &str, id: &crate::id::RunId) -> String {
        template.replace("{id}", id.as_str())
    }

    /// A path with its run and its cell filled in.
    pub fn of_cell(template: &str, id: &crate::id::RunId, cell: crate::id::CellId) -> String {
        of(template, id).replace("{cell}", &cell.to_string())
    }
}

/// How long a deleted run can be brought back, seconds.
pub const UNDO_SECS: u32 = 10;

/// A server that the agent knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedTarget {
    /// What people call it.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Set for the built-in simulator: a plan that fits it.
    pub demo_plan: Option<PlanDraft>,
}

/// What somebody may do with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Look, start, change, delete and share.
    Operator,
}

impl Role {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Viewer => "Viewer",
            Self::Operator => "Operator",
        }
    }
}

/// Who is let in by a token, without the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Its number, to take it back.
    pub number: u64,
    /// What it allows.
    pub role: Role,
    /// The only run that may be looked at; `None`: all.
    pub run: Option<RunId>,
    /// What people call it.
    pub name: String,
    /// Wall time, milliseconds since 1970 UTC.
    pub created_unix_ms: u64,
    /// When it runs out; `None`: never.
    pub until_unix_ms: Option<u64>,
}

impl Pass {
    /// Whether it has not run out at a wall time in milliseconds since 1970 UTC.
    pub fn is_valid(&self, now_unix_ms: u64) -> bool {
        self.until_unix_ms.is_none_or(|until| now_unix_ms < until)
    }
}

/// Asks for a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPass {
    /// What it allows.
    pub role: Role,
    /// The only run that may be looked at; `None`: all.
    #[serde(default)]
    pub run: Option<RunId>,
    /// What people call it.
    #[serde(default)]
    pub name: String,
    /// For how long, from now; `None`: until it is taken back.
    #[serde(default)]
    pub hours: Option<u32>,
}

/// A pass that was just made, with its token: it is told this one time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// What its owner sends, or opens as [`enter_link`].
    pub token: String,
    /// What it allows.
    pub pass: Pass,
}

/// A token that somebody was given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enter {
    /// The token.
    pub token: String,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("pass", &self.pass).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Enter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enter").finish_non_exhaustive()
    }
}

/// What stands before the token in the fragment of a link.
pub const ENTER_MARK: &str = "enter=";

/// The link that lets a browser in. The token is in its fragment, which no browser sends to a server or tells other
/// sites, and which the page takes out of the address at once.
pub fn enter_link(page: &str, token: &str) -> String {
    format!("{page}#{ENTER_MARK}{token}")
}

/// What an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// [`PROTOCOL`] of the agent.
    pub protocol: u32,
    /// Version of the agent.
    pub version: String,
    /// The agent's wall time, milliseconds since 1970 UTC.
    pub now_unix_ms: u64,
    /// Servers to choose from.
    pub targets: Vec<SavedTarget>,
    /// What whoever asked may do; `None`: nothing before they enter.
    #[serde(default)]
    pub role: Option<Role>,
    /// The only run that they may look at; `None`: all.
    #[serde(default)]
    pub run: Option<RunId>,
    /// Whether the agent asks for tokens, so that links can be given away.
    #[serde(default)]
    pub is_guarded: bool,
}

/// One line of the run list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Which run.
    pub id: RunId,
    /// Its title.
    pub title: String,
    /// `vllm · 0.25.0 · MXFP4+FP8`, as far as known.
    pub engine: String,
    /// Wall time of the start, milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// From start to the latest event, seconds on the run's clock.
    pub elapsed_s: f64,
    /// Where it stands.
    pub status: RunStatus,
    /// Where the numbers come from.
    pub origin: Option<Origin>,
    /// Cells that need no more work.
    pub cells_done: usize,
    /// All planned cells.
    pub cells: usize,
    /// Of the finished cells: how many have findings or a status other than valid.
    pub flagged: usize,
    /// The three headline numbers.
    pub headline: Headline,
    /// Decode rows (contexts ascending) of total tok/s by concurrency ascending, for the mini heat map.
    pub mini: Vec<Vec<Option<f64>>>,
    /// The model, as far as known.
    #[serde(default)]
    pub model: Option<String>,
    /// Name of one GPU.
    #[serde(default)]
    pub gpu: Option<String>,
    /// The engine's name alone.
    #[serde(default)]
    pub engine_name: Option<String>,
    /// The server that was measured, if it may be measured again: not a simulated one, and not an imported page's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What people added.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Why not all of it is stored yet, in a sentence; `None`: all is. While it says so the status is what is known, not
    /// what is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstored: Option<String>,
}

impl RunSummary {
    /// The name that people gave it, or its own title.
    pub fn name(&self) -> &str {
        self.labels.title.as_deref().unwrap_or(&self.title)
    }
}

/// The numbers people look for first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Highest total tok/s of a decode cell.
    pub best_total_tok_s: Option<f64>,
    /// Highest per-request tok/s of a decode cell.
    pub best_per_request_tok_s: Option<f64>,
    /// Highest prefill tok/s.
    pub best_prefill_tok_s: Option<f64>,
    /// Shortest TTFT of a decode cell, seconds.
    pub shortest_ttft_s: Option<f64>,
}

/// Starts a run.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct StartRun {
    /// What to measure.
    pub plan: PlanDraft,
    /// Bearer key for the target, if it needs one. Kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Facts about the server that nobody here can see, typed by hand.
    #[serde(default, skip_serializing_if = "TypedFacts::is_empty")]
    pub typed: TypedFacts,
}

/// Lets a run go on that ended too early.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ResumeRun {
    /// Bearer key for the target, if it needs one. Kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
}

impl std::fmt::Debug for ResumeRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResumeRun").finish_non_exhaustive()
    }
}

/// Looks at a server without measuring it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// Its address.
    pub target: String,
    /// Model that is to be measured; none: the first one on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Bearer key, if it needs one. Kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
}

impl std::fmt::Debug for StartRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartRun").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ProbeRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeRequest").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A run has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its id.
    pub id: RunId,
}

/// What went wrong, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable name such as `plan_invalid`, `not_found`, `busy`, `target_unreachable`.
    pub code: String,
    /// HTTP status.
    pub status: u16,
    /// What was tried, what came, what to do.
    pub detail: String,
    /// For an invalid plan: every error at its field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
    /// For a change that came too late (`labels_changed`): what is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Box<Labels>>,
}

/// A file became a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Its id here.
    pub id: RunId,
    /// Its name.
    pub name: String,
    /// Whether this very run was here already; then nothing was stored.
    pub known: bool,
}
