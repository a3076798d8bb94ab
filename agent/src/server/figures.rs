//! Figures of the agent itself, for Prometheus: what is counted all the time, and what is looked up when somebody asks.
//! What can't be looked up is left out.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use prometheus_client::{
    encoding::prometheus_text,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};
use speedmatrix_shared::{api::ServerMessage, event::RunOutcome, state::RunStatus};

use super::{AppState, error::Refusal};

/// How long the store may take to list the runs.
const LIST_LIMIT: Duration = Duration::from_secs(2);
/// Every status of a run, so that none is missing where no run has it.
const STATUSES: [RunStatus; 5] = [
    RunStatus::Running,
    RunStatus::Ended { outcome: RunOutcome::Finished },
    RunStatus::Ended { outcome: RunOutcome::Cancelled },
    RunStatus::Ended { outcome: RunOutcome::Failed { reason: String::new() } },
    RunStatus::Ended { outcome: RunOutcome::Interrupted },
];

/// One label with its value.
type Label = [(&'static str, &'static str); 1];

/// What is counted all the time.
#[derive(Debug)]
pub(super) struct Figures {
    started: Instant,
    answers: Family<Label, Counter>,
    told: Family<Label, Counter>,
    pub(super) events_skipped: Counter,
    pub(super) viewers_let_go: Counter,
    pub(super) tokens_rejected: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        let figures = Self {
            started: Instant::now(),
            answers: Family::default(),
            told: Family::default(),
            events_skipped: Counter::default(),
            viewers_let_go: Counter::default(),
            tokens_rejected: Counter::default(),
        };
        // What has not happened yet is counted: none.
        for class in ["1xx", "2xx", "3xx", "4xx", "5xx"] {
            drop(figures.answers.get_or_create(&[("class", class)]));
        }
        for kind in ["hello", "snapshot", "event", "gauge", "presence"] {
            drop(figures.told.get_or_create(&[("kind", kind)]));
        }
        figures
    }
}

impl Figures {
    /// Counts a message that went out to a live socket.
    pub(super) fn count_told(&self, message: &ServerMessage) {
        let kind = match message {
            ServerMessage::Hello { .. } => "hello",
            ServerMessage::Snapshot { .. } => "snapshot",
            ServerMessage::Event { .. } => "event",
            ServerMessage::Gauge { .. } => "gauge",
            ServerMessage::Presence { .. } => "presence",
        };
        self.told.get_or_create(&[("kind", kind)]).inc();
    }

    fn count_answer(&self, status: StatusCode) {
        let class = match status.as_u16() {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.answers.get_or_create(&[("class", class)]).inc();
    }
}

/// Counts every answer, whoever gives it.
pub(super) async fn count(State(figures): State<Arc<Figures>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    figures.count_answer(response.status());
    response
}

/// All figures in Prometheus's text format.
pub(super) async fn tell(State(app): State<AppState>) -> Result<Response, Refusal> {
    let mut registry = Registry::with_prefix("speedmatrix");
    looked_up(&app, &mut registry).await;
    counted(&app, &mut registry);
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)
        .map_err(|e| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "figures_failed", e))?;
    Ok(([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text).into_response())
}

/// What is true now.
async fn looked_up(app: &AppState, registry: &mut Registry) {
    let build = Family::<Label, Gauge>::default();
    build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
    registry.register("build_info", "The program's version", build);
    if let Ok(Ok(list)) = tokio::time::timeout(LIST_LIMIT, app.runs.list()).await {
        let mut counts: BTreeMap<&str, i64> = STATUSES.iter().map(|status| (status.word(), 0)).collect();
        for run in &list {
            *counts.entry(run.status.word()).or_default() += 1;
        }
        let runs = Family::<Label, Gauge>::default();
        for (status, number) in counts {
            runs.get_or_create(&[("status", status)]).set(number);
        }
        registry.register("runs", "Stored runs as the list shows them; a damaged record counts as failed", runs);
    }
    let uptime = app.figures.started.elapsed().as_secs_f64();
    registry.register("uptime_seconds", "Since this process began to serve", ConstGauge::new(uptime));
    let cells = Some(app.runs.running_cells() as u64);
    let wholes = [
        ("cells_running", "Cells that this process measures now", cells),
        ("live_viewers", "Open live sockets", Some(u64::from(app.runs.viewers()))),
        ("store_free_bytes", "Room on the disk that holds the store", app.runs.store().free_bytes()),
        ("resident_memory_bytes", "Memory of this process that is in RAM", resident_bytes()),
    ];
    for (name, help, value) in wholes {
        if let Some(value) = value {
            registry.register(name, help, ConstGauge::new(value));
        }
    }
}

/// What was counted since this process began to serve. The encoder adds `_total` to each name.
fn counted(app: &AppState, registry: &mut Registry) {
    let Figures { answers, told, events_skipped, viewers_let_go, tokens_rejected, .. } = app.figures.as_ref();
    let counts = app.runs.store().counts();
    registry.register("http_requests", "Answered requests, by class of status", answers.clone());
    registry.register("live_messages_sent", "Messages that went out to live sockets, by kind", told.clone());
    let help = "Events that live sockets were too slow for; they got a snapshot instead";
    registry.register("live_events_skipped", help, events_skipped.clone());
    let help = "Live sockets that were closed as too slow or silent";
    registry.register("live_viewers_let_go", help, viewers_let_go.clone());
    registry.register("tokens_rejected", "Tokens that opened nothing", tokens_rejected.clone());
    registry.register("store_writes", "Transactions that are on disk", counts.written.clone());
    registry.register("store_write_failures", "Transactions that failed", counts.failed.clone());
    let help = "Facts of finished cells that were tried again without their raw arrivals";
    registry.register("store_write_retries", help, counts.retried.clone());
}

/// Memory of this process that is in RAM, bytes.
#[cfg(target_os = "linux")]
fn resident_bytes() -> Option<u64> {
    let pages = procfs::process::Process::myself().ok()?.statm().ok()?.resident;
    pages.checked_mul(procfs::page_size())
}

/// Not told by this system in a way that is read here.
#[cfg(not(target_os = "linux"))]
const fn resident_bytes() -> Option<u64> {
    None
}
