//! A relay between browser and agent: a network that can be cut, an agent that moves to another port, and one that says
//! something else than it does.

use std::sync::Arc;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// What the relay does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// It passes everything on.
    Open,
    /// Nothing goes through; what was connected is cut.
    Cut,
    /// Nothing goes through, and nobody is told: sockets stay open, as when a telephone loses its network.
    Silent,
    /// It says `said` wherever the agent says `meant`, which must be as long.
    Other { meant: String, said: String },
}

/// What it does, and where the agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    way: Way,
    agent: String,
    /// Connections of an earlier setting are cut.
    number: u32,
}

/// The relay. It ends with the test.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Its address, for a browser.
    pub(crate) url: String,
    setting: watch::Sender<Setting>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Relays to the agent at `url`.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (setting, seen) = watch::channel(Setting { way: Way::Open, agent: place(url), number: 0 });
        let task = tokio::spawn(async move {
            while let Ok((browser, _)) = listener.accept().await {
                tokio::spawn(relay(browser, seen.clone()));
            }
        });
        Ok(Self { url: format!("http://127.0.0.1:{port}"), setting, task })
    }

    /// Goes another way from now on. What is connected is cut, or falls silent until the next change.
    pub(crate) fn go(&self, way: Way) {
        self.setting.send_modify(|setting| {
            setting.way = way;
            setting.number += 1;
        });
    }

    /// The agent is somewhere else now.
    pub(crate) fn moved(&self, url: &str) {
        self.setting.send_modify(|setting| {
            setting.agent = place(url);
            setting.number += 1;
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `127.0.0.1:7878` of `http://127.0.0.1:7878`.
fn place(url: &str) -> String {
    url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// One connection, until either side ends it or the setting changes.
async fn relay(browser: TcpStream, mut seen: watch::Receiver<Setting>) {
    let setting = seen.borrow_and_update().clone();
    match setting.way {
        Way::Cut => return,
        // An error means that the test is over.
        Way::Silent => return drop(seen.changed().await),
        Way::Open | Way::Other { .. } => {}
    }
    let Ok(agent) = TcpStream::connect(&setting.agent).await else { return };
    let words = match setting.way {
        Way::Other { meant, said } => Some((meant, said)),
        Way::Open | Way::Cut | Way::Silent => None,
    };
    let (mut from_browser, mut to_browser) = browser.into_split();
    let (mut from_agent, mut to_agent) = agent.into_split();
    tokio::select! {
        () = pass(&mut from_browser, &mut to_agent, None) => {}
        () = pass(&mut from_agent, &mut to_browser, words.map(Arc::new)) => {}
        // An error means that the test is over.
        _changed = seen.changed() => {}
    }
    if seen.borrow_and_update().way == Way::Silent {
        drop(seen.changed().await);
    }
}

async fn pass(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, words: Option<Arc<(String, String)>>) {
    let mut bytes = vec![0; 64 * 1_024];
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
        let part = &mut bytes[..read];
        if let Some(words) = &words {
            replace(part, words.0.as_bytes(), words.1.as_bytes());
        }
        if to.write_all(part).await.is_err() {
            return;
        }
    }
}

fn replace(bytes: &mut [u8], meant: &[u8], said: &[u8]) {
    let places: Vec<usize> =
        bytes.windows(meant.len()).enumerate().filter(|(_, window)| *window == meant).map(|(place, _)| place).collect();
    for place in places {
        bytes[place..place + said.len()].copy_from_slice(said);
    }
}
