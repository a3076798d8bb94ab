//! A simulated inference server: OpenAI's interface, vLLM's dialect, and a physical model behind it whose every number
//! is known. It is the demo target, the `sim` command, and the truth that tests and benchmarks compare with.
//!
//! It uses nothing of the rest of the agent, so that no shared error can cancel out. [`VirtualLoad`] runs its scheduler
//! without sockets in simulated time and tells what a perfect client would have seen, in `shared`'s words.
//!
//! Beside vLLM's endpoints it has two of its own:
//! - `GET /sim/info`: `{"simulated": true, "preset", "seed", "clock_factor", "hardware", "max_sequences", …}`. A client
//!   that finds `"simulated": true` must say so wherever it shows a result. All times of the simulator run
//!   `clock_factor` times faster than the wall clock: with 20, a simulated second passes in 50 real milliseconds, so
//!   measured durations are to be multiplied, and rates divided, by it.
//! - `GET /sim/log[?id=…]`: what the simulator itself did for each request, see [`RequestRecord`].

mod cache;
mod clock;
mod config;
mod delivery;
mod engine;
mod generate;
mod http;
mod log;
mod metrics;
mod physics;
mod prompt;
mod render;
mod routes;
mod schedule;
mod script;
mod sequence;
mod text;
mod thread;
mod tokens;
mod virtual_load;
mod wire;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use self::clock::{SimTime, Stamp, monotonic_now_ns};
pub use self::config::{ApiKey, BadConfig, Hardware, Recording, SimConfig, UnknownPreset, UsageStyle};
pub use self::log::{ChunkRecord, End, RequestRecord, SimLog, Totals};
pub use self::physics::{BatchPhysics, Physics, Speculation, TokenTime};
pub use self::script::{BadScript, Misbehaviour, Script};
pub use self::thread::SimThread;
pub use self::virtual_load::{Breaks, Outputs, VirtualLoad, VirtualPlan, VirtualRecord};

use self::clock::{Alarm, SimClock};
use self::engine::{Command, Engine};
use self::metrics::Metrics;
use self::schedule::{Laws, Scheduler};

/// Most connections at once; further ones wait in the listener's queue.
const CONNECTIONS: usize = 8_192;
/// Wishes of connections that the engine hasn't seen yet.
const COMMANDS: usize = 1_024;

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running simulator. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Sim {
    address: SocketAddr,
    log: SimLog,
    tasks: TaskTracker,
    stop: DropGuard,
}

/// What connections share.
#[derive(Debug)]
struct Shared {
    config: SimConfig,
    clock: SimClock,
    metrics: Arc<Metrics>,
    log: SimLog,
    commands: mpsc::Sender<Command>,
    requests: AtomicU64,
}

impl Sim {
    /// Starts to serve on the current runtime. Port 0 takes a free one. Fails with `InvalidInput` when the configuration
    /// can't run ([`SimConfig::check`]), else when the address can't be had.
    pub async fn start(config: SimConfig, listen: SocketAddr) -> io::Result<Self> {
        config.check().map_err(|bad| io::Error::new(io::ErrorKind::InvalidInput, bad))?;
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let (commands, wishes) = mpsc::channel(COMMANDS);
        let scheduler = Scheduler::new(&Laws::of(&config));
        let clock = SimClock::start(config.clock_factor);
        let metrics = Arc::new(Metrics::default());
        let engine = Engine::new(scheduler, clock, Alarm::new()?, Arc::clone(&metrics));
        let log = SimLog::default();
        let shared = Shared { config, clock, metrics, log: log.clone(), commands, requests: AtomicU64::new(0) };
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(engine.run(wishes, stop.clone()));
        tasks.spawn(accept(listener, Arc::new(shared), tasks.clone(), stop.clone()));
        Ok(Self { address, log, tasks, stop: stop.drop_guard() })
    }

    /// `http://address:port`, without a path.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it does and did.
    pub fn log(&self) -> SimLog {
        self.log.clone()
    }

    /// Closes all connections and returns when everything has ended.
    pub async fn stop(self) {
        drop(self.stop);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tasks: TaskTracker, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes the semaphore");
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = accepted => accepted,
        };
        // A client that is gone again is its own affair; without a free descriptor, waiting for one helps.
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (shared, stop) = (Arc::clone(&shared), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = routes::serve(shared, stream) => {}
            }
            drop(place);
        });
    }
}
