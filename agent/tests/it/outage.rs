//! The store takes nothing for a while: what was measured is kept in memory, that is said where people look, and all of it
//! is stored once the store takes it again.

use std::{
    fs::File,
    io::{Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use futures_util::StreamExt as _;
use rusqlite::Connection;
use speedmatrix_agent::{
    sim::{Recording, SimConfig, SimThread},
    store::{Access, Store, Which, check},
};
use speedmatrix_shared::{
    api::{Problem, RunSummary, ServerMessage, StartRun, Started, path},
    event::{RunEvent, RunOutcome},
    id::RunId,
    plan::PlanDraft,
    raw::codec,
    state::{RunState, RunStatus},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::{
    chaos::http,
    cli::{Running, err, out, program, serve, serve_logging},
    rig::{draft, exact, simulator},
};

/// Size of the small disk. SQLite alone needs some 100 KB.
const DISK: &str = "size=16m";
/// What fills it.
const FILLER: &str = "filler";

/// A small disk of its own, where this machine lets a test mount one.
struct Disk {
    folder: TempDir,
}

impl Disk {
    fn mounted() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", DISK, "tmpfs"], folder.path());
        if !mounted {
            println!("skipped: this user may not mount a small disk (tmpfs), which root may");
        }
        mounted.then_some(Self { folder })
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("runs.sqlite3")
    }

    fn fill(&self) {
        let mut filler = File::create(self.folder.path().join(FILLER)).unwrap();
        let block = vec![0x5a; 4_096];
        while filler.write_all(&block).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.folder.path().join(FILLER)).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.folder.path()).status().ok();
    }
}

fn mount(arguments: &[&str], folder: &Path) -> bool {
    let output = Command::new("mount").args(arguments).arg(folder).output();
    output.is_ok_and(|output| output.status.success())
}

/// An agent of its own process that measures a simulator, and somebody who watches.
struct Watched {
    agent: Running,
    run: RunId,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    simulator: SimThread,
}

fn plan(simulator: &SimThread) -> PlanDraft {
    let target = simulator.base_url();
    PlanDraft { target, client_check: "skip".into(), ..draft("1K,2K", "1,2,3", "1s", "64") }
}

impl Watched {
    /// A run that has begun in a store; the agent's log goes to `log`.
    async fn begun(store: &Path, log: &Path) -> Self {
        let config = SimConfig { recording: Recording::FirstAndLast, ..exact(20.0) };
        let simulator = tokio::task::spawn_blocking(|| simulator(config)).await.unwrap();
        let agent = serve_logging(store, &[], File::create(log).unwrap().into());
        let answer = start(&agent, plan(&simulator)).await.unwrap();
        let live = format!("{}{}", agent.url().replacen("http", "ws", 1), path::of(path::LIVE, &answer));
        let socket = connect_async(live).await.unwrap().0;
        Self { agent, run: answer, socket, simulator }
    }

    async fn next(&mut self) -> ServerMessage {
        loop {
            if let Message::Text(text) = self.socket.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn until_a_cell_is_finished(&mut self) {
        loop {
            match self.next().await {
                ServerMessage::Event { envelope } if matches!(envelope.event, RunEvent::CellFinished { .. }) => return,
                ServerMessage::Snapshot { state, .. } if state.cells.iter().any(|cell| cell.result().is_some()) => {
                    return;
                }
                _ => {}
            }
        }
    }

    /// What is said about the store until it is this.
    async fn until_it_is_said(&mut self, wanted: impl Fn(Option<&str>) -> bool) -> Option<String> {
        loop {
            if let ServerMessage::Presence { unstored, .. } = self.next().await
                && wanted(unstored.as_deref())
            {
                return unstored;
            }
        }
    }

    async fn until_the_end(&mut self) {
        loop {
            match self.next().await {
                ServerMessage::Event { envelope } if matches!(envelope.event, RunEvent::RunFinished { .. }) => return,
                ServerMessage::Snapshot { state, .. } if state.status != RunStatus::Running => return,
                _ => {}
            }
        }
    }

    async fn listed(&self) -> RunSummary {
        let answer = http(self.agent.url()).get(path::RUNS).await.unwrap();
        let runs: Vec<RunSummary> = serde_json::from_str(&answer.body).unwrap();
        runs.into_iter().find(|run| run.id == self.run).unwrap()
    }

    /// Everything is stored as if nothing had been.
    async fn is_whole(&self, store: &Path) {
        let line = self.listed().await;
        assert_eq!((line.status, line.unstored), (RunStatus::Ended { outcome: RunOutcome::Finished }, None));
        let store = Store::open(store, Access::Read).await.unwrap();
        let state = store.load(&self.run).await.unwrap();
        for cell in &state.cells {
            let raw = store.raw(&self.run, cell.id, Which::Last).await.unwrap().unwrap();
            assert_eq!(Some(&codec::decode(&raw).unwrap().result()), cell.result(), "{}", cell.id);
        }
        assert_eq!(check(store.path()).unwrap().damage, []);
    }
}

async fn start(agent: &Running, plan: PlanDraft) -> Result<RunId, Problem> {
    let body = serde_json::to_string(&StartRun { plan, ..StartRun::default() }).unwrap();
    let answer = http(agent.url()).post(path::RUNS, body).await.unwrap();
    match serde_json::from_str::<Started>(&answer.body) {
        Ok(started) => Ok(started.id),
        Err(_) => Err(serde_json::from_str(&answer.body).unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_costs_nothing_once_there_is_room() {
    let Some(disk) = Disk::mounted() else { return };
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let mut watched = Watched::begun(&disk.store(), &log).await;
    watched.until_a_cell_is_finished().await;
    disk.fill();
    let during = watched.until_it_is_said(|said| said.is_some()).await.unwrap();
    let after = watched.until_it_is_said(|said| said.is_some_and(|said| said.starts_with("Measuring is over"))).await;
    // The end is not stored, and the list does not say that it runs.
    let line = watched.listed().await;
    assert_eq!(line.status, RunStatus::Ended { outcome: RunOutcome::Finished });
    assert_eq!(line.unstored, after);
    let refused = start(&watched.agent, plan(&watched.simulator)).await.unwrap_err();
    let ready = http(watched.agent.url()).get(path::READY).await.unwrap();
    assert_eq!((refused.code.as_str(), ready.status), ("busy", 503));
    let run = watched.run.to_string();
    insta::assert_snapshot!([during, after.unwrap(), refused.detail.replace(&run, "RUN")].join("\n"), @r#"
    What was measured last is not stored yet: the disk that holds the store is full or nearly so: free some space. Until then it is kept in the agent's memory and tried again every 2 seconds
    Measuring is over, and not all of it is stored yet: the disk that holds the store is full or nearly so: free some space. Until then it is kept in the agent's memory and tried again every 2 seconds
    run RUN is measured, and not all of it is stored yet: the disk that holds the store is full or nearly so: free some space. The next run can start when it is
    "#);
    disk.free();
    watched.until_the_end().await;
    watched.is_whole(&disk.store()).await;
    let log = std::fs::read_to_string(&log).unwrap();
    let told = ["is kept in memory and tried again every 2 seconds: the disk that holds the store", "is stored again"];
    assert!(told.iter().all(|words| log.contains(words)), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_died_on_a_full_disk_is_interrupted_and_not_running() {
    let Some(disk) = Disk::mounted() else { return };
    let logs = tempfile::tempdir().unwrap();
    let mut watched = Watched::begun(&disk.store(), &logs.path().join("log")).await;
    watched.until_a_cell_is_finished().await;
    watched.agent.kill();
    // While another program holds the file open, its log stays: there is room to read it and none to write.
    let held = Connection::open(disk.store()).unwrap();
    held.query_row("SELECT count(*) FROM runs", [], |_| Ok(())).unwrap();
    disk.fill();
    watched.agent = serve(&disk.store(), &[]);
    let line = watched.listed().await;
    assert_eq!(line.status, RunStatus::Ended { outcome: RunOutcome::Interrupted });
    insta::assert_snapshot!(line.unstored.unwrap(), @"That it was interrupted is not stored yet: the disk that holds the store is full or nearly so: free some space");
    disk.free();
    let line = watched.listed().await;
    assert_eq!((line.status, line.unstored), (RunStatus::Ended { outcome: RunOutcome::Interrupted }, None));
    let store = Store::open(&disk.store(), Access::Read).await.unwrap();
    let state: RunState = store.load(&watched.run).await.unwrap();
    assert!(state.can_go_on() && state.cells.iter().any(|cell| cell.result().is_some()));
}

/// Overwrites all pages but the first one, with the schema, between two events; the agent must read them again.
fn overwrite(store: &Path) {
    let other = Connection::open(store).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    let log = store.with_extension("sqlite3-wal");
    loop {
        other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        if std::fs::metadata(&log).unwrap().len() == 0 {
            break;
        }
        other.execute_batch("ROLLBACK").unwrap();
    }
    let mut file = File::options().write(true).open(store).unwrap();
    let pages = file.metadata().unwrap().len() / 4_096 - 1;
    file.seek(SeekFrom::Start(4_096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(pages * 4_096).unwrap()]).unwrap();
    let version: i64 = other.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    other.execute_batch(&format!("PRAGMA user_version = {version}; COMMIT")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_damaged_in_the_middle_ends_the_run_and_keeps_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = (folder.path().join("runs.sqlite3"), folder.path().join("log"));
    let mut watched = Watched::begun(&store, &log).await;
    watched.until_a_cell_is_finished().await;
    overwrite(&store);
    watched.until_the_end().await;
    let during = watched.until_it_is_said(|said| said.is_some()).await.unwrap();
    let ask = async |path: &str| http(watched.agent.url()).get(path).await.unwrap();
    let state: RunState = serde_json::from_str(&ask(&path::of(path::RUN, &watched.run)).await.body).unwrap();
    assert!(state.cells.iter().any(|cell| cell.result().is_some()));
    let RunStatus::Ended { outcome: RunOutcome::Failed { reason } } = state.status else {
        panic!("{:?}", state.status)
    };
    let said = async |answer: speedmatrix_agent::client::http::Answer| {
        let problem: Problem = serde_json::from_str(&answer.body).unwrap();
        format!("{} {}: {}", problem.status, problem.code, problem.detail)
    };
    let (list, ready) = (said(ask(path::RUNS).await).await, said(ask(path::READY).await).await);
    let next = start(&watched.agent, plan(&watched.simulator)).await.unwrap_err();
    let checked = program().args(["db", "check", "--store"]).arg(&store).output().unwrap();
    let check = format!("{}: {}", checked.status.code().unwrap(), out(&checked).lines().nth(1).unwrap_or_default());
    // What is known can be taken away, as often as anybody likes.
    let export = ask(&format!("{}?format=json", path::of(path::EXPORT, &watched.run))).await;
    assert_eq!(export.status, 200, "{}", export.body);
    let said = [during, reason, list, ready, next.detail, check].join("\n");
    insta::assert_snapshot!(said.replace(&*folder.path().to_string_lossy(), "FOLDER"), @r#"
    What was measured last is not stored, as the store is damaged: `speedmatrix db check` says what to do. It is kept in the agent's memory until the agent ends: export it before
    the store is damaged: `speedmatrix db check` says what to do
    500 store_failed: the store is damaged: `speedmatrix db check` says what to do
    503 not_ready: the store is damaged: `speedmatrix db check` says what to do
    the store is damaged: `speedmatrix db check` says what to do
    1: file and indexes damaged: database disk image is malformed
    "#);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("can't be stored any more and is kept in memory") && !log.contains("panic"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_others_hold_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.sqlite3");
    let mut watched = Watched::begun(&store, &folder.path().join("log")).await;
    watched.until_a_cell_is_finished().await;
    let other = Connection::open(&store).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = watched.until_it_is_said(|said| said.is_some()).await.unwrap();
    assert!(said.contains("other programs keep the store busy: wait for their end or stop them"), "{said}");
    other.execute_batch("COMMIT").unwrap();
    watched.until_the_end().await;
    watched.is_whole(&store).await;
}

#[tokio::test]
async fn a_store_that_can_not_be_written_is_said_at_once() {
    let Some(disk) = Disk::mounted() else { return };
    let store = disk.store();
    drop(Store::open(&store, Access::Serve).await.unwrap());
    let asked = |words: &[&str]| {
        let output = program().args(words).arg("--store").arg(&store).output().unwrap();
        let said = err(&output).replace(&*disk.folder.path().to_string_lossy(), "DISK");
        format!("{} {}: {}", words[0], output.status.code().unwrap(), said.lines().next().unwrap_or_default())
    };
    disk.fill();
    let full = asked(&["serve", "--listen", "127.0.0.1:0"]);
    disk.free();
    assert!(mount(&["-o", "remount,ro"], disk.folder.path()), "what was mounted can be made read-only");
    let run = ["run", "--target", "http://127.0.0.1:1", "--contexts", "1K", "--concurrency", "1"];
    let said = [full, asked(&["serve", "--listen", "127.0.0.1:0"]), asked(&run), asked(&["runs"])];
    insta::assert_snapshot!(said.join("\n"), @r#"
    serve 74: error: the disk that holds the store DISK/runs.sqlite3 is full: free some space, then try again
    serve 74: error: the store DISK/runs.sqlite3 can't be opened (Read-only file system (os error 30)): check the folder, or choose another file with --store
    run 74: error: the store DISK/runs.sqlite3 can't be written: make it writable for this user, or choose another file with --store
    runs 0: no runs in DISK/runs.sqlite3 yet: `speedmatrix run` makes one
    "#);
}
