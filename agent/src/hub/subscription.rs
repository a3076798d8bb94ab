//! What one listener hears: a snapshot, then every event after it, and gauges and presence as they come.

use std::{sync::Arc, time::Duration};

use speedmatrix_shared::{
    api::ServerMessage,
    event::{Envelope, RunEvent},
    gauge::Gauge,
    state::{RunState, RunStatus},
    units::Nanos,
};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    time::{Instant, sleep_until},
};

use super::{Hub, Outage, Presence, Watching};

/// Gauges come at most this often (10 Hz); the latest wins.
const GAUGE_PAUSE: Duration = Duration::from_millis(100);
/// A changed presence comes at most this often.
const PRESENCE_PAUSE: Duration = Duration::from_millis(500);
/// A presence comes at least this often, so that silence means a lost connection.
const PRESENCE_PERIOD: Duration = Duration::from_secs(4);

/// One listener's feed. It never ends by itself: after a run's end there is still presence to tell.
#[derive(Debug)]
pub struct Subscription {
    feed: Feed,
    snapshot: Option<Box<RunState>>,
    skipped: u64,
    watching: Watching,
    gauge_not_before: Instant,
    presence_not_before: Instant,
    presence_due: Instant,
}

#[derive(Debug)]
enum Feed {
    /// Events still come.
    Live {
        hub: Arc<Hub>,
        events: broadcast::Receiver<Arc<Envelope>>,
        gauge: watch::Receiver<Option<Gauge>>,
        outage: watch::Receiver<Outage>,
    },
    /// It is over; its clock stands.
    Still {
        at: Nanos,
        /// Of a run that the store never took whole.
        unstored: Option<String>,
    },
}

impl Feed {
    /// After a run's end.
    fn still(at: Nanos, hub: &Hub) -> Self {
        Self::Still { at, unstored: hub.lost().and_then(|_| hub.outage().words()) }
    }
}

/// What woke a listener.
enum Heard {
    Event(Result<Arc<Envelope>, RecvError>),
    Gauge,
    Presence,
}

impl Subscription {
    /// Listens to a running run.
    pub fn live(hub: Arc<Hub>, presence: &Arc<Presence>) -> Self {
        let (state, events) = hub.join();
        let (gauge, outage) = (hub.gauge.subscribe(), hub.outage.subscribe());
        let watching = presence.join(&hub.id);
        let feed = match state.status {
            RunStatus::Running => Feed::Live { hub, events, gauge, outage },
            RunStatus::Ended { .. } => Feed::still(state.at, &hub),
        };
        Self::with(feed, state, watching)
    }

    /// Shows a run that is over.
    pub fn still(state: RunState, presence: &Arc<Presence>) -> Self {
        let watching = presence.join(&state.id);
        Self::with(Feed::Still { at: state.at, unstored: None }, state, watching)
    }

    fn with(feed: Feed, state: RunState, watching: Watching) -> Self {
        let now = Instant::now();
        Self {
            feed,
            snapshot: Some(Box::new(state)),
            skipped: 0,
            watching,
            gauge_not_before: now,
            presence_not_before: now,
            presence_due: now,
        }
    }

    /// Whether the run's last event was heard.
    pub fn is_over(&self) -> bool {
        self.snapshot.is_none() && matches!(self.feed, Feed::Still { .. })
    }

    /// Events that this listener was too slow for, counted since the last call.
    pub fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// The next message. The first is a snapshot; another one follows only where this listener was too slow. May be
    /// dropped and called again without losing anything.
    pub async fn next(&mut self) -> ServerMessage {
        loop {
            if let Some(state) = self.snapshot.take() {
                return ServerMessage::Snapshot { now_ns: self.now().0, state };
            }
            let message = match self.hear().await {
                Heard::Event(Ok(envelope)) => Some(self.event(&envelope)),
                Heard::Event(Err(error)) => {
                    if let RecvError::Lagged(events) = error {
                        self.skipped += events;
                    }
                    self.rejoin();
                    None
                }
                Heard::Gauge => self.gauge(),
                Heard::Presence => Some(self.presence()),
            };
            if let Some(message) = message {
                return message;
            }
        }
    }

    async fn hear(&mut self) -> Heard {
        let (gauge_not_before, presence_not_before) = (self.gauge_not_before, self.presence_not_before);
        let (presence_due, Self { feed, watching, .. }) = (self.presence_due, self);
        let presence = async {
            let changed = async {
                sleep_until(presence_not_before).await;
                watching.changed().await;
            };
            tokio::select! {
                () = sleep_until(presence_due) => {}
                () = changed => {}
            }
        };
        let Feed::Live { events, gauge, outage, .. } = feed else {
            presence.await;
            return Heard::Presence;
        };
        let outage = async {
            sleep_until(presence_not_before).await;
            if outage.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let gauge = async {
            sleep_until(gauge_not_before).await;
            if gauge.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            event = events.recv() => Heard::Event(event),
            () = presence => Heard::Presence,
            () = outage => Heard::Presence,
            () = gauge => Heard::Gauge,
        }
    }

    fn event(&mut self, envelope: &Envelope) -> ServerMessage {
        if let (RunEvent::RunFinished { .. }, Feed::Live { hub, .. }) = (&envelope.event, &self.feed) {
            self.feed = Feed::still(envelope.at, hub);
        }
        ServerMessage::Event { envelope: envelope.clone() }
    }

    /// Too slow: what was missed is in a new snapshot.
    fn rejoin(&mut self) {
        let Feed::Live { hub, events, .. } = &mut self.feed else { return };
        let (state, after) = hub.join();
        *events = after;
        if state.status != RunStatus::Running {
            self.feed = Feed::still(state.at, hub);
        }
        self.snapshot = Some(Box::new(state));
    }

    fn gauge(&mut self) -> Option<ServerMessage> {
        let Feed::Live { gauge, .. } = &mut self.feed else { return None };
        self.gauge_not_before = Instant::now() + GAUGE_PAUSE;
        gauge.borrow_and_update().clone().map(|gauge| ServerMessage::Gauge { gauge })
    }

    fn presence(&mut self) -> ServerMessage {
        let now = Instant::now();
        self.presence_not_before = now + PRESENCE_PAUSE;
        self.presence_due = now + PRESENCE_PERIOD;
        let unstored = match &mut self.feed {
            Feed::Live { outage, .. } => outage.borrow_and_update().words(),
            Feed::Still { unstored, .. } => unstored.clone(),
        };
        ServerMessage::Presence { watching: self.watching.count(), now_ns: self.now().0, unstored }
    }

    fn now(&self) -> Nanos {
        match &self.feed {
            Feed::Live { hub, .. } => hub.clock.now(),
            Feed::Still { at, .. } => *at,
        }
    }
}
