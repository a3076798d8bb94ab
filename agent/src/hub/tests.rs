//! Joining late: snapshot + events after it = all events, whenever one joins and however slow one is.

use proptest::{prelude::*, test_runner::TestCaseError};
use speedmatrix_shared::{
    api::ServerMessage,
    event::{LogLevel, RunEvent, RunOutcome},
    plan::{PlanDraft, RunPlan},
    state::{Applied, RunState},
    units::Nanos,
};

use super::{Presence, Subscription, Teller};
use crate::{
    clock::Clock,
    store::{Access, Store},
};

fn plan() -> RunPlan {
    let draft = PlanDraft {
        target: "http://127.0.0.1:8000".into(),
        contexts: "8K".into(),
        concurrency: "1,2".into(),
        ..PlanDraft::default()
    };
    draft.try_into().unwrap()
}

async fn teller(folder: &tempfile::TempDir) -> Teller {
    let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
    let first = RunEvent::RunStarted { plan: plan(), started_unix_ms: 1, tool: "test".into() };
    Teller::begin(store, "a".parse().unwrap(), first, Clock::start()).await.unwrap()
}

fn event(n: u64, last: u64) -> RunEvent {
    match n {
        n if n == last => RunEvent::RunFinished { outcome: RunOutcome::Finished },
        n => RunEvent::Log { level: LogLevel::Info, text: format!("line {n}") },
    }
}

/// Folds what a listener hears, and says how many snapshots it took.
async fn fold_all(mut subscription: Subscription) -> (RunState, usize) {
    let (mut state, mut snapshots): (Option<RunState>, usize) = (None, 0);
    loop {
        match subscription.next().await {
            ServerMessage::Snapshot { state: snapshot, .. } => {
                snapshots += 1;
                state = Some(*snapshot);
            }
            ServerMessage::Event { envelope } => {
                let state = state.as_mut().expect("a snapshot comes first");
                // Neither doubled nor lost: each event is new, and none is missing before it.
                assert_eq!(state.apply(&envelope), Ok(Applied::New));
            }
            _ => {}
        }
        if subscription.is_over() {
            return (state.expect("a snapshot comes first"), snapshots);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whenever_one_joins_nothing_is_lost_or_doubled(joins in prop::collection::vec(0_u64..20, 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let checked: Result<(), TestCaseError> = runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let presence = std::sync::Arc::default();
            let mut teller = teller(&folder).await;
            let mut listeners = Vec::new();
            for n in 1..20 {
                let joining = joins.iter().filter(|join| **join + 1 == n);
                listeners.extend(joining.map(|_| Subscription::live(teller.hub().clone(), &presence)));
                teller.tell(Nanos(n), event(n, 19)).await.unwrap();
            }
            for listener in listeners {
                let (state, snapshots) = fold_all(listener).await;
                prop_assert_eq!(&state, &teller.hub().state());
                prop_assert_eq!(snapshots, 1);
            }
            Ok(())
        });
        checked?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_join_while_events_pour_in_agree_with_the_log() {
    const EVENTS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let presence: std::sync::Arc<Presence> = std::sync::Arc::default();
    let mut teller = teller(&folder).await;
    let hub = teller.hub().clone();
    let (go, _) = tokio::sync::broadcast::channel(EVENTS as usize);
    let listeners: Vec<_> = (0..10_u64)
        .map(|listener| {
            let (hub, presence, mut told) = (hub.clone(), presence.clone(), go.subscribe());
            tokio::spawn(async move {
                while told.recv().await.is_ok_and(|n| n < listener * 15) {}
                fold_all(Subscription::live(hub, &presence)).await.0
            })
        })
        .collect();
    for n in 1..=EVENTS {
        teller.tell(Nanos(n), event(n, EVENTS)).await.unwrap();
        // After the last event nobody may be left who waits for a number.
        go.send(n).ok();
    }
    for listener in listeners {
        assert_eq!(listener.await.unwrap(), hub.state());
    }
    assert_eq!(hub.state().next_seq, EVENTS + 1);
}

#[tokio::test]
async fn one_who_is_too_slow_gets_a_new_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let presence = std::sync::Arc::default();
    let mut teller = teller(&folder).await;
    let mut slow = Subscription::live(teller.hub().clone(), &presence);
    assert!(matches!(slow.next().await, ServerMessage::Snapshot { .. }));
    let last = super::EVENTS_KEPT as u64 + 10;
    for n in 1..=last {
        teller.tell(Nanos(n), event(n, last)).await.unwrap();
    }
    let ServerMessage::Snapshot { state, .. } = slow.next().await else { panic!("a snapshot comes again") };
    assert_eq!(*state, teller.hub().state());
    assert_eq!((slow.take_skipped(), slow.take_skipped()), (10, 0));
    assert!(slow.is_over());
}
