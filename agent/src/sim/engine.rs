//! The one task that owns the batch: it obeys the connections, follows the schedule and writes every token.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::clock::{Alarm, SimClock, monotonic_now_ns};
use super::delivery::{Delivery, Progress, Then};
use super::log::End;
use super::metrics::{Finish, Metrics};
use super::schedule::Scheduler;
use super::sequence::{Happening, Order};

/// Happenings between two looks at the connections' wishes; about half a millisecond of writing.
const TURN: usize = 64;

/// Shortest sleep. Below it, setting the timer costs more processor time than it wins punctuality.
const SHORTEST_SLEEP_NS: u64 = 50_000;

/// A connection's wish.
#[derive(Debug)]
pub(super) enum Command {
    Submit(Box<(Order, Delivery)>),
    /// The client of this request is gone.
    Abort(u64),
}

#[derive(Debug)]
pub(super) struct Engine {
    scheduler: Scheduler,
    clock: SimClock,
    alarm: Alarm,
    metrics: Arc<Metrics>,
    deliveries: BTreeMap<u64, Delivery>,
    /// What happened and isn't delivered yet.
    happenings: VecDeque<Happening>,
}

impl Engine {
    pub(super) fn new(scheduler: Scheduler, clock: SimClock, alarm: Alarm, metrics: Arc<Metrics>) -> Self {
        Self { scheduler, clock, alarm, metrics, deliveries: BTreeMap::new(), happenings: VecDeque::new() }
    }

    /// Runs until `stop`; the records of unfinished requests are closed as stopped.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            while let Ok(command) = commands.try_recv() {
                self.obey(command);
            }
            if self.happenings.is_empty() {
                self.scheduler.advance(self.clock.now(), TURN, &mut self.happenings);
            }
            if self.happenings.is_empty() {
                self.metrics.set_load(self.scheduler.load());
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    command = commands.recv() => match command {
                        Some(command) => self.obey(command),
                        None => break,
                    },
                    () = self.next_event() => {}
                }
            } else {
                for _ in 0..TURN {
                    let Some(happening) = self.happenings.pop_front() else {
                        break;
                    };
                    self.deliver(happening);
                }
                self.metrics.set_load(self.scheduler.load());
                // Lets the connections read, and the runtime look at its sockets.
                tokio::task::yield_now().await;
            }
        }
        for delivery in self.deliveries.values_mut() {
            delivery.close_record(End::Stopped);
        }
    }

    async fn next_event(&self) {
        match self.scheduler.next_due() {
            Some(due) => {
                let soonest = monotonic_now_ns() + SHORTEST_SLEEP_NS;
                self.alarm.until(self.clock.monotonic_ns(due).max(soonest)).await;
            }
            None => std::future::pending().await,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(job) => {
                let (order, delivery) = *job;
                self.deliveries.insert(order.id, delivery);
                self.scheduler.submit(order);
            }
            Command::Abort(id) => self.finish(id, End::ClientLeft, Then::Close),
        }
    }

    fn deliver(&mut self, Happening { id, due, what }: Happening) {
        let Some(delivery) = self.deliveries.get_mut(&id) else {
            return;
        };
        self.metrics.count(what, delivery.record.prompt_tokens);
        match delivery.happen(what, due, &self.clock) {
            Progress::Going => {}
            Progress::Over(end, then) => self.finish(id, end, then),
        }
    }

    /// Hands the connection back and frees what the request held.
    fn finish(&mut self, id: u64, end: End, then: Then) {
        let Some(delivery) = self.deliveries.remove(&id) else {
            return;
        };
        self.metrics.finish(if end == End::Completed { delivery.finish } else { Finish::Abort });
        delivery.end(end, then);
        // A completed request has left the scheduler already; this finds nothing then.
        self.scheduler.abort(id, self.clock.now(), &mut self.happenings);
    }
}
