//! Chaos: one store, and a program that is killed at any moment, started, and killed again. What it told as finished
//! before a kill is in the store after it, the file opens and is sound, and what a kill cut short is said to be
//! interrupted and can go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Stdio},
    str::FromStr,
    thread::JoinHandle,
    time::Duration,
};

use futures_util::StreamExt as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use speedmatrix_agent::{
    client::{Target, http::Http},
    sim::{Recording, SimConfig, SimThread},
    store::{Access, Store, Which, check},
};
use speedmatrix_shared::{
    api::{ResumeRun, RunSummary, ServerMessage, StartRun, Started, path},
    event::{Envelope, RunEvent, RunOutcome},
    id::{CellId, RunId},
    plan::{PlanDraft, draft::parse_target},
    raw::codec,
    state::{RunState, RunStatus},
    stats::cell::CellResult,
};
use tempfile::TempDir;
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::{
    cli::{Running, program, serve},
    rig::{draft, exact, simulator},
};

/// Kills in a usual test run.
const ROUNDS: u64 = 50;
/// Says another number of kills, for a long one.
const ROUNDS_VARIABLE: &str = "SPEEDMATRIX_CHAOS_ROUNDS";
/// Says what the moments are drawn from; a failure names it.
const SEED_VARIABLE: &str = "SPEEDMATRIX_CHAOS_SEED";
/// Latest kill after a run was asked for, ms of real time: its eight cells take about that long.
const LATEST_MS: u32 = 700;
/// Latest kill of an agent that has just been started, ms of real time: it serves after about the half.
const LATEST_STARTING_MS: u32 = 200;

/// Results that were told, by cell.
type Told = BTreeMap<CellId, CellResult>;

/// How a round ends in a kill.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// The agent dies while it starts.
    Starting,
    /// The agent dies while it measures a new run.
    New,
    /// The agent dies while it goes on with an interrupted run.
    Resumed,
    /// A terminal's run dies beside an agent, and the agent after it.
    Terminal,
}

struct Chaos {
    _folder: TempDir,
    store: PathBuf,
    simulator: SimThread,
    chance: ChaCha8Rng,
    /// All that was told of each run.
    told: BTreeMap<RunId, Told>,
    /// Told by a terminal whose run has no name before the list shows it.
    unnamed: Told,
    known: BTreeSet<RunId>,
    /// Runs that the latest kill may have touched.
    touched: BTreeSet<RunId>,
    /// Runs that say that they were interrupted.
    open: Vec<RunId>,
    /// Sentences about what is lost.
    lost: Vec<String>,
    interruptions: u64,
}

fn number<T: FromStr>(variable: &str, usual: T) -> T {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// What is asked of the agent at an address.
pub(crate) fn http(url: &str) -> Http {
    Http::new(&Target { url: parse_target(url).unwrap(), key: None }).unwrap()
}

/// The agent's own runs, without the sample.
async fn runs_of(agent: &Running) -> Vec<RunSummary> {
    let answer = http(agent.url()).get(path::RUNS).await.unwrap();
    let mut runs: Vec<RunSummary> = serde_json::from_str(&answer.body).unwrap();
    runs.retain(|run| run.id.as_str() != RunId::REFERENCE);
    runs
}

/// Folds what a live socket tells until the agent is gone.
async fn listen(url: &str, run: &RunId) -> Told {
    let mut told = Told::new();
    let live = format!("{}{}", url.replacen("http", "ws", 1), path::of(path::LIVE, run));
    let Ok((mut socket, _)) = connect_async(live).await else { return told };
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        match serde_json::from_str(&text).unwrap() {
            ServerMessage::Snapshot { state, .. } => told.extend(results(&state)),
            ServerMessage::Event { envelope } => told.extend(finished(envelope)),
            _ => {}
        }
    }
    told
}

fn results(state: &RunState) -> Told {
    state.cells.iter().filter_map(|cell| Some((cell.id, cell.result()?.clone()))).collect()
}

fn finished(envelope: Envelope) -> Option<(CellId, CellResult)> {
    match envelope.event {
        RunEvent::CellFinished { cell, result } => Some((cell, *result)),
        _ => None,
    }
}

/// Asks an agent for a run, and listens to it until the agent is gone.
async fn watched(url: String, plan: PlanDraft, resume: Option<RunId>) -> Option<(RunId, Told)> {
    let http = http(&url);
    let run = if let Some(run) = resume {
        let body = serde_json::to_string(&ResumeRun::default()).unwrap();
        http.post(&path::of(path::RESUME, &run), body).await.ok()?;
        run
    } else {
        let body = serde_json::to_string(&StartRun { plan, ..StartRun::default() }).unwrap();
        let answer = http.post(path::RUNS, body).await.ok()?;
        serde_json::from_str::<Started>(&answer.body).unwrap_or_else(|e| panic!("{e}: {}", answer.body)).id
    };
    let told = listen(&url, &run).await;
    Some((run, told))
}

/// What a terminal prints until it is killed. The last line may be a piece of one.
fn printed(child: &mut Child) -> JoinHandle<Told> {
    let out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let lines = BufReader::new(out).lines();
        let envelopes = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
        envelopes.filter_map(finished).collect()
    })
}

fn kill(child: &mut Child) {
    // SIGKILL: no destructor, no goodbye.
    child.kill().unwrap();
    child.wait().unwrap();
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            store: folder.path().join("runs.sqlite3"),
            _folder: folder,
            simulator: simulator(SimConfig { recording: Recording::FirstAndLast, ..exact(100.0) }),
            chance: ChaCha8Rng::seed_from_u64(seed),
            told: BTreeMap::new(),
            unnamed: Told::new(),
            known: BTreeSet::new(),
            touched: BTreeSet::new(),
            open: Vec::new(),
            lost: Vec::new(),
            interruptions: 0,
        }
    }

    /// A number below `end`.
    fn draw(&mut self, end: u32) -> u32 {
        self.chance.next_u32() % end
    }

    async fn until_the_kill(&mut self, latest_ms: u32) {
        let at = Duration::from_millis(self.draw(latest_ms).into());
        tokio::time::sleep(at).await;
    }

    fn plan(&self) -> PlanDraft {
        let target = self.simulator.base_url();
        PlanDraft { target, client_check: "skip".into(), ..draft("1K,2K", "1,2,3", "500ms", "32") }
    }

    /// Starts an agent over what the latest kill left, looks at it, has something measured, and kills it.
    async fn round(&mut self) {
        let way = match self.draw(8) {
            0 => Way::Starting,
            1 | 2 => Way::Terminal,
            3..=5 if !self.open.is_empty() => Way::Resumed,
            _ => Way::New,
        };
        if let Way::Starting = way {
            let store = self.store.to_str().unwrap();
            let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", store];
            let mut child = program().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            self.until_the_kill(LATEST_STARTING_MS).await;
            kill(&mut child);
            return;
        }
        let mut agent = serve(&self.store, &[]);
        self.look(&agent).await;
        let resume = match way {
            Way::Resumed if !self.open.is_empty() => {
                let chosen = self.draw(u32::try_from(self.open.len()).unwrap());
                Some(self.open.swap_remove(usize::try_from(chosen).unwrap()))
            }
            _ => None,
        };
        self.touched.extend(resume.clone());
        if let Way::Terminal = way {
            let mut child = self.terminal();
            let printed = printed(&mut child);
            self.until_the_kill(LATEST_MS).await;
            kill(&mut child);
            self.unnamed = printed.join().unwrap();
            agent.kill();
            return;
        }
        let watching = tokio::spawn(watched(agent.url().to_owned(), self.plan(), resume));
        self.until_the_kill(LATEST_MS).await;
        agent.kill();
        if let Some((run, told)) = watching.await.unwrap() {
            self.told.entry(run.clone()).or_default().extend(told);
            self.touched.insert(run);
        }
    }

    fn terminal(&self) -> Child {
        let PlanDraft { target, contexts, concurrency, duration, max_output, .. } = self.plan();
        let mut run = program();
        run.args(["run", "--json", "--client-check", "skip", "--target", &target, "--contexts", &contexts]);
        run.args(["--concurrency", &concurrency, "--duration", &duration, "--max-output", &max_output]);
        run.arg("--store").arg(&self.store).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// What an agent that was started after a kill shows of the runs that were touched.
    async fn look(&mut self, agent: &Running) {
        let http = http(agent.url());
        for run in runs_of(agent).await {
            assert_ne!(run.status, RunStatus::Running, "nobody measures {} any more", run.id);
            if self.known.insert(run.id.clone()) {
                self.touched.insert(run.id.clone());
                let told = std::mem::take(&mut self.unnamed);
                self.told.entry(run.id.clone()).or_default().extend(told);
            }
        }
        self.lost.extend(self.unnamed.keys().map(|cell| format!("{cell} of a run that is not in the list")));
        self.unnamed.clear();
        for run in std::mem::take(&mut self.touched) {
            let answer = http.get(&path::of(path::RUN, &run)).await.unwrap();
            let Ok(state) = serde_json::from_str::<RunState>(&answer.body) else {
                self.lost.push(format!("run {run}: {}", answer.body));
                continue;
            };
            self.compare(&state);
            if state.status == (RunStatus::Ended { outcome: RunOutcome::Interrupted }) {
                self.interruptions += 1;
                if state.can_go_on() {
                    self.open.push(run);
                }
            }
        }
    }

    fn compare(&mut self, state: &RunState) {
        let stored = results(state);
        let told = self.told.get(&state.id).into_iter().flatten();
        let lost = told.filter(|(cell, result)| stored.get(cell) != Some(result));
        self.lost.extend(lost.map(|(cell, _)| format!("{cell} of run {}", state.id)));
    }

    /// All that was told in all rounds, with what it was computed from, as whoever opens the store finds it.
    async fn look_at_all(&mut self) {
        let store = Store::open(&self.store, Access::Read).await.unwrap();
        for run in self.told.keys().cloned().collect::<Vec<_>>() {
            let state = store.load(&run).await.unwrap();
            self.compare(&state);
            for (cell, result) in &self.told[&run] {
                let raw = store.raw(&run, *cell, Which::Last).await.unwrap().expect("it is stored with the result");
                assert_eq!(&codec::decode(&raw).unwrap().result(), result, "{cell} of run {run}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_told_outlives_every_kill() {
    let (rounds, seed) = (number(ROUNDS_VARIABLE, ROUNDS), number(SEED_VARIABLE, 7));
    let mut chaos = tokio::task::spawn_blocking(move || Chaos::new(seed)).await.unwrap();
    for round in 0..rounds {
        chaos.round().await;
        let found = if chaos.store.exists() { check(&chaos.store).unwrap().damage } else { Vec::new() };
        assert_eq!(found, [], "after kill {round} of seed {seed}");
        assert_eq!(chaos.lost, Vec::<String>::new(), "after kill {round} of seed {seed}");
    }
    let agent = serve(&chaos.store, &[]);
    chaos.look(&agent).await;
    chaos.look_at_all().await;
    assert_eq!(chaos.lost, Vec::<String>::new(), "of seed {seed}");
    let cells: usize = chaos.told.values().map(BTreeMap::len).sum();
    println!(
        "{rounds} kills: {} runs, {} times interrupted, {cells} cells told, 0 lost, the file always opened and was sound",
        chaos.known.len(),
        chaos.interruptions
    );
    assert!(cells > 0 && chaos.interruptions > 0, "the kills came too early or too late to show anything");
    // What is left open can be brought to its end.
    let run = chaos.open.pop().expect("something was interrupted");
    let watching = tokio::spawn(watched(agent.url().to_owned(), chaos.plan(), Some(run.clone())));
    let http = http(agent.url());
    loop {
        let state: RunState = serde_json::from_str(&http.get(&path::of(path::RUN, &run)).await.unwrap().body).unwrap();
        if state.status == (RunStatus::Ended { outcome: RunOutcome::Finished }) {
            assert!(state.cells.iter().all(|cell| cell.result().is_some()), "{state:?}");
            chaos.compare(&state);
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(chaos.lost, Vec::<String>::new(), "of seed {seed}");
    watching.abort();
}

#[tokio::test]
async fn what_was_measured_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.sqlite3");
    let mut agent = serve(&store, &["--demo"]);
    let run = loop {
        // The demo starts right after the address is told.
        if let Some(run) = runs_of(&agent).await.into_iter().next() {
            break run.id;
        }
        tokio::task::yield_now().await;
    };
    let live = format!("{}{}", agent.url().replacen("http", "ws", 1), path::of(path::LIVE, &run));
    let (mut socket, _) = connect_async(live).await.unwrap();
    let mut finished = None;
    while finished.is_none() {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        finished = match serde_json::from_str(&text).unwrap() {
            ServerMessage::Snapshot { state, .. } => {
                state.cells.iter().find_map(|cell| Some((cell.id, cell.result()?.clone())))
            }
            ServerMessage::Event { envelope: Envelope { event: RunEvent::CellFinished { cell, result }, .. } } => {
                Some((cell, *result))
            }
            _ => None,
        };
    }
    agent.kill();
    let agent = serve(&store, &["--demo"]);
    let listed = runs_of(&agent).await;
    assert_eq!(listed.len(), 1, "the demo runs only where there is no run: {listed:?}");
    assert_eq!(listed[0].status, RunStatus::Ended { outcome: RunOutcome::Interrupted });
    let store = Store::open(&store, Access::Read).await.unwrap();
    let (cell, result) = finished.unwrap();
    assert_eq!(store.load(&run).await.unwrap().cell(cell).unwrap().result(), Some(&result));
    let raw =
        store.raw(&run, cell, Which::Last).await.unwrap().expect("raw arrivals are stored together with their cell");
    assert_eq!(codec::decode(&raw).unwrap().result(), result);
}
