//! A simulator on a thread and runtime of its own, so that it shares no executor with what measures it.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Sim, SimConfig, SimLog};

/// Tasks between two looks at the sockets; tokio's own 61 would let a busy engine keep new requests waiting.
const EVENT_INTERVAL: u32 = 8;

/// A simulator on its own thread; [`SimThread::stop`] or dropping it ends the thread.
#[derive(Debug)]
pub struct SimThread {
    address: SocketAddr,
    log: SimLog,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Sim {
    /// As [`Sim::start`], on a new thread with a runtime of its own. Call it outside of async code: it waits until the
    /// simulator listens.
    pub fn start_on_thread(config: SimConfig, listen: SocketAddr) -> io::Result<SimThread> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(EVENT_INTERVAL)
            .max_blocking_threads(2)
            .thread_name("sim-blocking")
            .build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (started, start) = oneshot::channel();
        let thread = std::thread::Builder::new().name("sim".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let sim = match Self::start(config, listen).await {
                    Ok(sim) => sim,
                    Err(error) => {
                        started.send(Err(error)).ok();
                        return;
                    }
                };
                if started.send(Ok((sim.address(), sim.log()))).is_ok() {
                    stopped.cancelled().await;
                }
                sim.stop().await;
            });
        })?;
        let (address, log) = start
            .blocking_recv()
            .map_err(|gone| io::Error::other(format!("the simulator's thread ended before it listened: {gone}")))??;
        Ok(SimThread { address, log, stop, thread: Some(thread) })
    }
}

impl SimThread {
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

    /// Closes all connections and waits for the thread's end.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for SimThread {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told on standard error already.
            thread.join().ok();
        }
    }
}
