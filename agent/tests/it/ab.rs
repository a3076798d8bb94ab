//! Two servers measured in turns: what is found, that they are never measured at once, and in which order.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
    time::Duration,
};

use speedmatrix_agent::{
    runs::{Opponent, Runs},
    sim::{Physics, SimConfig, SimLog},
    store::{Access, Store},
};
use speedmatrix_shared::{
    api::ServerMessage,
    compare::{Comparison, Ranked},
    event::{Envelope, Origin, RunEvent, RunOutcome},
    id::{CellId, Phase, RunId},
    plan::{PlanDraft, Side},
    state::{RunState, RunStatus},
};
use tokio::runtime::Builder;

use crate::{
    cli::{err, finish, out, program},
    rig::{draft, exact, simulator},
};

/// Simulated seconds per real one.
const FACTOR: f64 = 5.0;

fn plan(repeats: &str) -> PlanDraft {
    PlanDraft { repeats: repeats.into(), client_check: "skip".into(), ..draft("1K", "1,2", "1s", "64") }
}

/// A simulator whose steps take so long.
fn config(step_millis: u64) -> SimConfig {
    let (first_token, step) = (Duration::from_millis(50), Duration::from_millis(step_millis));
    SimConfig { physics: Physics::Fixed { first_token, step }, ..exact(FACTOR) }
}

/// A run that is over.
struct Run {
    state: RunState,
    events: Vec<Envelope>,
    tags: Vec<String>,
}

/// Measures both servers in turns to the end.
fn measured(plan: &PlanDraft, [a, b]: [&str; 2]) -> [Run; 2] {
    let folder = tempfile::tempdir().unwrap();
    let serving = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    serving.block_on(async {
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
        let runs = Runs::new(store);
        let server = |target: &str| Opponent { target: target.into(), model: String::new(), key: None };
        let [a, b] = runs.start_pair(plan, [server(a), server(b)]).await.unwrap();
        runs.ended(&a).await;
        runs.ended(&b).await;
        [run(&runs, &a).await, run(&runs, &b).await]
    })
}

async fn run(runs: &Runs, id: &RunId) -> Run {
    Run {
        state: runs.state(id).await.unwrap(),
        events: runs.store().events_from(id, 0).await.unwrap(),
        tags: runs.labels(id).await.unwrap().tags,
    }
}

fn comparison([a, b]: &[Run; 2]) -> Comparison {
    Comparison::of(&a.state, &b.state, Ranked::total_speed(), 0.03)
}

/// A measurement of a cell, in real nanoseconds since 1970.
#[derive(Debug)]
struct Span {
    cell: CellId,
    side: Side,
    from: u64,
    to: u64,
}

/// All measurements of both, in the order in which they began, from the stored events.
fn spans(pair: &[Run; 2]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (Run { state, events, .. }, side) in pair.iter().zip(Side::BOTH) {
        let Some(Origin::Simulated { clock_factor }) = state.origin else { panic!("{:?}", state.origin) };
        let real = |at: u64| state.started_unix_ms * 1_000_000 + (at as f64 / clock_factor) as u64;
        let mut from = 0;
        for Envelope { at, event, .. } in events {
            match event {
                RunEvent::CellStarted { .. } => from = real(at.0),
                RunEvent::CellFinished { cell, .. } => spans.push(Span { cell: *cell, side, from, to: real(at.0) }),
                _ => {}
            }
        }
    }
    spans.sort_by_key(|span| span.from);
    for both in spans.windows(2) {
        assert!(both[0].to <= both[1].from, "two at once: {both:#?}");
    }
    spans
}

/// When requests were with a server: from what was received to the last token that was sent.
fn requests(log: &SimLog, side: Side) -> Vec<(u64, u64, Side)> {
    let span = |from: u64, to: Option<u64>| (from, to.unwrap_or(from), side);
    let records = log.records().into_iter();
    records.map(|it| span(it.received.monotonic_ns, it.last_token.map(|stamp| stamp.monotonic_ns))).collect()
}

/// No server works while the other one does.
#[track_caller]
fn check_turns(a: &SimLog, b: &SimLog) {
    let mut all = [requests(a, Side::A), requests(b, Side::B)].concat();
    all.sort_by_key(|(from, ..)| *from);
    let mut busy = [0, 0];
    for (from, to, side) in all {
        let [own, other] = if side == Side::A { [0, 1] } else { [1, 0] };
        assert!(from >= busy[other], "a request came while the other server worked");
        busy[own] = busy[own].max(to);
    }
}

#[test]
fn a_slower_server_is_found_and_both_are_measured_in_turns() {
    let (fast, slow) = (simulator(config(10)), simulator(config(12)));
    let pair = measured(&plan("4"), [&fast.base_url(), &slow.base_url()]);
    let finished = RunStatus::Ended { outcome: RunOutcome::Finished };
    assert!(pair.iter().all(|run| run.state.status == finished));
    let comparison = comparison(&pair);
    let decode: Vec<_> = comparison.cells.iter().filter(|cell| cell.id.phase == Phase::Decode).collect();
    assert_eq!((comparison.counts.slower, decode.len()), (2, 2), "{comparison:#?}");
    for cell in decode {
        // 10 ÷ 12, less what the first token takes from both.
        assert!((0.80..0.90).contains(&cell.ratio().unwrap()), "{cell:#?}");
    }

    let spans = spans(&pair);
    assert_eq!(spans.len(), 2 * (1 + 2 * 4), "one prefill row and four repeats of two cells on each side");
    check_turns(&fast.log(), &slow.log());

    let plan = &pair[0].state.plan;
    let decode: Vec<&Span> = spans.iter().filter(|span| span.cell.phase == Phase::Decode).collect();
    let mut firsts = Vec::new();
    for (number, turn) in (0..).zip(decode.chunks(2)) {
        assert_eq!((turn[0].cell, turn[0].side), (turn[1].cell, turn[1].side.other()));
        assert_eq!(turn[0].side, plan.goes_first(turn[0].cell, number % 4), "{number}");
        firsts.push(turn[0].side);
    }
    assert!(firsts.contains(&Side::A) && firsts.contains(&Side::B), "{firsts:?}");

    let [a, b] = pair.each_ref().map(|run| run.tags.join(" "));
    let mark = a.strip_suffix(" A").filter(|mark| mark.starts_with("ab:")).unwrap();
    assert_eq!(b, format!("{mark} B"));
}

/// Until a run has finished a measurement of a decode cell.
async fn measured_once(runs: &Runs, run: &RunId) {
    let mut feed = runs.subscribe(run).await.unwrap();
    loop {
        if let ServerMessage::Event { envelope: Envelope { event: RunEvent::CellFinished { cell, .. }, .. } } =
            feed.next().await
            && cell.phase == Phase::Decode
        {
            return;
        }
    }
}

#[test]
fn a_stopped_pair_goes_on_in_turns() {
    let (one, other) = (simulator(config(10)), simulator(config(12)));
    let folder = tempfile::tempdir().unwrap();
    let serving = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (runs, [a, b]) = serving.block_on(async {
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
        let runs = Runs::new(store);
        let server = |target: String| Opponent { target, model: String::new(), key: None };
        let pair = runs.start_pair(&plan("3"), [server(one.base_url()), server(other.base_url())]).await.unwrap();
        measured_once(&runs, &pair[0]).await;
        for run in &pair {
            // One that is over already has nothing to stop.
            drop(runs.stop(run).await);
        }
        for run in &pair {
            runs.ended(run).await;
            assert!(runs.state(run).await.unwrap().can_go_on());
        }
        (runs, pair)
    });
    let check = |other: &RunId, status: i32, wanted: &str| {
        let output = finish(&folder, &["resume", a.as_str(), other.as_str()]);
        assert_eq!(output.status.code(), Some(status), "{}", err(&output));
        assert!(err(&output).contains(wanted), "{}", err(&output));
    };
    check(&a, 64, "are no pair: they need the same plan to take turns");
    check(&b, 0, &format!("to compare both: `speedmatrix compare {a} {b}`"));
    check(&b, 64, "can't go on: it is running, or has all its cells");
    let pair = serving.block_on(async { [run(&runs, &a).await, run(&runs, &b).await] });
    for Run { state, events, .. } in &pair {
        assert_eq!(state.status, RunStatus::Ended { outcome: RunOutcome::Finished });
        assert!(events.iter().any(|envelope| matches!(envelope.event, RunEvent::RunResumed { .. })));
        let decode = state.cells.iter().filter(|cell| cell.id.phase == Phase::Decode);
        assert!(decode.clone().all(|cell| cell.repeats.len() >= 3), "{:#?}", decode.collect::<Vec<_>>());
    }
    check_turns(&one.log(), &other.log());
}

#[test]
fn a_server_against_itself_has_no_verdict() {
    let sim = simulator(config(10));
    let plan = PlanDraft { order: "interleaved".into(), name: "null".into(), ..plan("3") };
    let pair = measured(&plan, [&sim.base_url(), &sim.base_url()]);
    let comparison = comparison(&pair);
    let counts = comparison.counts;
    assert_eq!((counts.faster + counts.slower, counts.compared()), (0, 3), "{comparison:#?}");
    assert_eq!(pair.each_ref().map(|run| run.state.title()), ["null (A)", "null (B)"]);
    assert_eq!(spans(&pair).len(), 2 * (1 + 2 * 3));
}

#[test]
fn repeats_end_for_both_when_both_know_enough() {
    let (one, other) = (simulator(config(10)), simulator(config(11)));
    let pair = measured(&plan("8,30%"), [&one.base_url(), &other.base_url()]);
    let counts = pair.each_ref().map(|run| run.state.cells.iter().map(|cell| cell.repeats.len()).collect::<Vec<_>>());
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0].iter().all(|count| *count < 8), "{counts:?}");
}

#[test]
fn the_fault_of_one_server_does_not_hold_up_the_other() {
    let broken = SimConfig { script: "reset-after:3".parse().unwrap(), ..config(10) };
    let (good, bad) = (simulator(config(10)), simulator(broken));
    let pair = measured(&plan("2"), [&good.base_url(), &bad.base_url()]);
    let [a, b] = pair.map(|run| run.state);
    assert_eq!(a.status, RunStatus::Ended { outcome: RunOutcome::Finished });
    let decode = |state: &RunState| {
        state.cells.iter().filter(|cell| cell.id.phase == Phase::Decode).cloned().collect::<Vec<_>>()
    };
    assert!(decode(&a).iter().all(|cell| cell.repeats.len() == 2), "{a:#?}");
    assert!(decode(&b).iter().all(|cell| cell.result().is_none_or(|result| result.status.is_failed())), "{b:#?}");
    assert!(matches!(b.status, RunStatus::Ended { .. }));
}

#[test]
fn two_servers_are_compared_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (simulator(config(10)), simulator(config(15)));
    let grid = ["--contexts", "1K", "--concurrency", "2", "--duration", "1s", "--max-output", "64"];
    let more = ["--client-check", "skip", "--prefill-contexts", "none", "--repeats", "3", "--name", "turn"];
    let (fast, slow) = (fast.base_url(), slow.base_url());
    let output = finish(&folder, &[&["ab", &fast, &slow], &grid[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("# Total speed: B against A\n\n**B is slower in 1 cell.**\n"), "{text}");
    // Numbers, addresses and times differ from run to run.
    let listed = out(&finish(&folder, &["runs"]));
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let of = |name: &str| *ids.iter().find(|id| text.contains(&format!("- {name}: turn ({name}) (`{id}`"))).unwrap();
    let said = err(&output).replace(of("A"), "ID-A").replace(of("B"), "ID-B");
    let without_numbers = said.lines().map(|line| match line.split_once(" tok/s") {
        Some((head, _)) => head.split_whitespace().take(3).collect::<Vec<_>>().join("  "),
        None => line.to_owned(),
    });
    // Both begin and end at the same time: whose line comes first is left to chance.
    let (mut both, turns): (Vec<String>, Vec<String>) =
        without_numbers.partition(|line| line.contains("turn (") || line.contains("finished"));
    both.sort();
    insta::assert_snapshot!([both, turns].concat().join("\n"), @"
    A  finished: 1 of 1 cells measured, 0 failed
    A  simulated: turn (A)  ID-A
    B  finished: 1 of 1 cells measured, 0 failed
    B  simulated: turn (B)  ID-B
    B  decode-1K-2  #1
    A  decode-1K-2  #1
    A  decode-1K-2  #2
    B  decode-1K-2  #2
    B  decode-1K-2  #3
    A  decode-1K-2  #3
    on the page, where an agent serves this store: http://127.0.0.1:7878/compare?a=ID-A&b=ID-B
    ");

    let null = finish(&folder, &[&["ab", &fast, "--null"], &grid[..], &more].concat());
    assert_eq!(null.status.code(), Some(0), "{}", err(&null));
    assert!(
        err(&null).contains("null test passed: no verdict of faster or slower in 1 cell"),
        "{}{}",
        out(&null),
        err(&null)
    );
}

#[test]
fn ctrl_c_stops_both_and_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (simulator(config(10)), simulator(config(10)));
    let store = folder.path().join("runs.sqlite3");
    let mut ab = program()
        .args(["ab", &one.base_url(), &other.base_url(), "--contexts", "1K,2K,3K", "--concurrency", "1,2,4,8"])
        .args(["--duration", "4s", "--client-check", "skip", "--store", store.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(ab.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("decode-1K-1") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0);
    }
    assert!(Command::new("kill").args(["-INT", &ab.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(ab.wait().unwrap().code(), Some(2), "{rest}");
    assert!(rest.contains("stopping both") && rest.contains("in turns again: `speedmatrix resume "), "{rest}");
    let listed = out(&finish(&folder, &["runs"]));
    assert_eq!(listed.lines().filter(|line| line.contains("cancelled")).count(), 2, "{listed}");
    assert!(listed.lines().any(|line| !line.contains(" 0/")), "{listed}");
}

#[test]
fn what_can_not_be_measured_in_turns_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let sim = simulator(config(10));
    let sim = sim.base_url();
    let grid = ["--contexts", "1K", "--concurrency", "1"];
    let check = |arguments: &[&str], status: i32, wanted: &str| {
        let output = finish(&folder, &[&["ab"], arguments].concat());
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(status), ""), "{}", err(&output));
        assert!(err(&output).contains(wanted), "{}", err(&output));
    };
    check(&[], 64, "<A> <B>");
    check(&["host"], 64, "<B>");
    check(&["host", "other", "--null"], 64, "cannot be used with");
    check(&["host", "--null", "--model-b", "x"], 64, "cannot be used with");
    check(&["host", "ftp://other", "--contexts", "1K", "--concurrency", "1"], 64, "B: \"ftp\" can't be measured");
    check(&["host", "other"], 64, "--contexts: give at least one context length");
    check(&["host", "other", "--target", "x"], 64, "unexpected argument '--target'");
    assert!(!folder.path().join("runs.sqlite3").exists());
    check(&[&[sim.as_str(), "http://127.0.0.1:1"], &grid[..]].concat(), 69, "nothing answers at http://127.0.0.1:1/");
    assert_eq!(out(&finish(&folder, &["runs"])), "", "nothing is stored of a pair that did not begin");
}
