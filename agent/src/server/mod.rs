//! The HTTP interface and the page. Commands are HTTP; the live socket only tells.

mod assets;
mod base;
mod cells;
mod door;
mod error;
mod export;
mod figures;
mod guard;
mod health;
mod import;
mod labels;
mod listen;
mod live;
mod passes;
mod proxy;
mod runs;
mod script_hashes;
mod servers;
mod tag;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware,
    routing::{delete, get, post},
};
use speedmatrix_shared::{
    api::{SavedTarget, path},
    import::MAX_BYTES as MAX_FILE_BYTES,
    state::RunState,
};
use tokio::sync::Semaphore;
use tower_http::{compression::CompressionLayer, set_header::SetResponseHeaderLayer};

pub use base::BasePath;
pub use door::{Door, RULES};
pub use guard::AllowedHosts;
pub use listen::{Encryption, Limits, Manner, Peer, Tls, TlsError, serve};
pub use passes::{MAX_HOURS, NewPassError, new_pass};
pub use proxy::{Network, TrustedProxy};

use crate::{
    nearby::{Nearby, Scope},
    runs::Runs,
};

/// Largest request body, in bytes: a plan with its longest name and lists has some 50 KB.
const MAX_BODY_BYTES: usize = 256 * 1_024;

/// How people reach an agent.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// The path of its host below which it stands.
    pub base: BasePath,
    /// The agent itself encrypts: its cookie is never sent openly.
    pub is_encrypted: bool,
    /// Whose word is taken for who asks, and how.
    pub proxy: Option<TrustedProxy>,
}

impl Reached {
    /// Whether whoever asks does so encrypted, as far as anybody can know that is believed.
    fn is_encrypted_for(&self, headers: &HeaderMap, peer: Option<Peer>) -> bool {
        self.is_encrypted || self.proxy.as_ref().is_some_and(|proxy| proxy.is_encrypted(headers, peer))
    }
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct AppState {
    /// The runs.
    pub runs: Arc<Runs>,
    /// The read-only sample run.
    pub reference: Arc<RunState>,
    /// Servers to choose from.
    pub targets: Arc<[SavedTarget]>,
    /// Names under which this agent may be asked.
    pub hosts: Arc<AllowedHosts>,
    /// Who is let in.
    pub door: Door,
    /// How people come to it.
    reached: Arc<Reached>,
    /// Wrong tokens of late.
    failures: Arc<door::Failures>,
    /// What is counted.
    figures: Arc<figures::Figures>,
    /// The latest look at the store.
    readiness: Arc<health::Readiness>,
    /// What listens on this machine.
    nearby: Arc<Nearby>,
    /// Places for those who look at a cell's record.
    looks: Arc<Semaphore>,
    /// Files are read one at a time, as each may be large.
    pub reading: Arc<Semaphore>,
}

impl AppState {
    /// An agent that serves `runs`.
    pub fn new(runs: Arc<Runs>, targets: Vec<SavedTarget>, hosts: AllowedHosts, door: Door) -> Self {
        Self {
            runs,
            reference: Arc::new(speedmatrix_shared::sample::reference()),
            targets: targets.into(),
            nearby: Arc::new(Nearby::new(Scope::Without(hosts.port()))),
            hosts: Arc::new(hosts),
            door,
            reached: Arc::default(),
            failures: Arc::default(),
            figures: Arc::default(),
            readiness: Arc::default(),
            looks: Arc::new(Semaphore::new(cells::AT_ONCE)),
            reading: Arc::new(Semaphore::new(1)),
        }
    }

    /// An agent that people reach so.
    #[must_use]
    pub fn reached(self, reached: Reached) -> Self {
        let hosts =
            if reached.is_encrypted { Arc::new(Arc::unwrap_or_clone(self.hosts).encrypted()) } else { self.hosts };
        Self { reached: Arc::new(reached), hosts, ..self }
    }
}

/// The whole application. Tests call it without a socket.
pub fn app(state: AppState) -> Router {
    // Only these are large enough to be worth the packing.
    let records = Router::new()
        .route(path::CELL, get(cells::detail))
        .route(path::REQUESTS, get(cells::requests))
        .route(path::RUNS, get(runs::list).post(runs::start))
        .route(path::HISTORY, get(cells::history))
        .layer(CompressionLayer::new());
    let api = Router::new()
        .route(path::HEALTH, get(health::alive))
        .route(path::READY, get(health::ready))
        .route(path::METRICS, get(figures::tell))
        .route(path::INFO, get(runs::info))
        .route(path::RUN, get(runs::state).patch(labels::change).delete(labels::delete))
        .route(path::LIVE, get(live::upgrade))
        .route(path::STOP, post(runs::stop))
        .route(path::STEER, post(runs::steer))
        .route(path::RESUME, post(runs::resume))
        .route(path::EXPORT, get(export::file))
        .route(path::PROBE, post(runs::probe))
        .route(path::SERVERS, get(servers::found))
        .route(path::LABELS, get(labels::labels))
        .route(path::RESTORE, post(labels::restore))
        .route(path::IMPORT, post(import::file).layer(DefaultBodyLimit::max(MAX_FILE_BYTES)))
        .route(path::ENTER, post(passes::enter).delete(passes::leave))
        .route(path::PASSES, get(passes::list).post(passes::give))
        .route(path::PASS, delete(passes::revoke))
        .merge(records)
        .route_layer(middleware::from_fn_with_state(state.clone(), door::check))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(fixed_header(header::CACHE_CONTROL, "no-store"));
    let base = state.reached.base.clone();
    let app = api
        .fallback_service(assets::page(base.clone()))
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(&state.hosts), guard::check))
        .layer(SetResponseHeaderLayer::if_not_present(header::CONTENT_SECURITY_POLICY, assets::fixed_policy()))
        .layer(fixed_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed_header(header::REFERRER_POLICY, "no-referrer"))
        .layer(fixed_header(header::X_FRAME_OPTIONS, "DENY"))
        .layer(middleware::from_fn_with_state(Arc::clone(&state.figures), figures::count))
        .with_state(state);
    base.under(app)
}

fn fixed_header(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}
