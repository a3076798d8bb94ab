//! `serve`: the page, its interface, and the built-in simulated server.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use speedmatrix_shared::{api::SavedTarget, plan::PlanDraft};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Interrupts, args::ServeArgs, args_of_door::TlsArgs, link, target};
use crate::{
    runs::Runs,
    server::{self, AllowedHosts, AppState, Door, Encryption, Limits, Manner, Reached, Tls, app},
    sim::{SimConfig, SimThread},
    store::{Access, Store},
    terminal::Terminal,
};

/// Simulated seconds per real second of the built-in simulator. By its own laws the demo matrix takes some 1,600
/// simulated seconds, a little over a minute of real ones where client and simulator keep up.
pub(super) const DEMO_CLOCK_FACTOR: f64 = 36.0;
/// The preset that the built-in simulator runs: the reference page's server.
const DEMO_PRESET: &str = "reference";
/// How long open connections may take to end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

pub(super) async fn serve(args: ServeArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::listen()?;
    let listener = listen(args.listen).await?;
    let address = listener.local_addr().map_err(|source| CliError::Listen { address: args.listen, source })?;
    let store_path = args.store.path()?;
    let store = Store::open(&store_path, Access::Serve).await?;
    let tls = encryption(&args.tls, &store_path, address, &args.allow_host)?;
    let runs = Runs::new(store);
    runs.keep_to(args.keep.retention());
    let simulator = start_simulator(args.demo_clock_factor).await?;
    let demo = demo_target(&simulator);
    let hosts = AllowedHosts::new(address, args.allow_host);
    let proxy = args.trust.proxy()?;
    let asked = if args.require_token || proxy.is_some() { link::Asked::Tokens } else { link::Asked::Nothing };
    let door = link::door(address, asked);
    let reached = Reached { base: args.base_path, is_encrypted: tls.is_some(), proxy };
    let page = page_of(address, &reached);
    let state = AppState::new(Arc::clone(&runs), vec![demo.clone()], hosts, door.clone()).reached(reached);
    let manner = Manner {
        limits: Limits::default(),
        tls: tls.as_ref().map(|encryption| encryption.tls.clone()),
        hosts: Some(Arc::clone(&state.hosts)),
    };
    let closing = CancellationToken::new();
    let mut server = tokio::spawn(server::serve(listener, app(state), manner, closing.clone()));
    // The first line is for people and programs: the address, and nothing before it.
    terminal.line(&format!("listening on {page}"))?;
    if let Some(encryption) = &tls {
        terminal.hint(&words(encryption));
    }
    match door {
        Door::Open => terminal.hint("open it in a browser; Ctrl-C stops"),
        Door::Guarded => link::first(runs.store(), &page, terminal).await?,
    }
    if args.open && !open_browser(&page) {
        terminal.hint("no browser could be started: open the address by hand");
    }
    if args.demo {
        start_demo(&runs, demo, terminal).await?;
    }
    tokio::select! {
        ended = &mut server => return ended
            .map(|()| Exit::Done)
            .map_err(|panic| CliError::Listen { address, source: io::Error::other(panic) }),
        () = interrupts.next() => {}
    }
    terminal.hint("stopping; Ctrl-C again leaves at once");
    let end = async {
        runs.shutdown().await;
        closing.cancel();
        // Pages that stay open come back when there is an agent again.
        drop(tokio::time::timeout(CLOSE_LIMIT, server).await);
    };
    tokio::select! {
        () = end => {}
        () = interrupts.next() => {}
    }
    Ok(Exit::Done)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => CliError::PortInUse { address },
        _ => CliError::Listen { address, source },
    })
}

async fn start_simulator(clock_factor: f64) -> Result<SimThread, CliError> {
    let mut config = SimConfig::preset(DEMO_PRESET).expect("the preset is one of the simulator's own");
    config.clock_factor = clock_factor;
    config.check().map_err(|e| CliError::Usage(format!("--demo-clock-factor: {e}")))?;
    target::start(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
}

/// The built-in simulator with a plan that fills the reference page's matrix.
fn demo_target(simulator: &SimThread) -> SavedTarget {
    let url = simulator.base_url();
    let plan = PlanDraft {
        target: url.clone(),
        name: "Demo: simulated DeepSeek on two H200".into(),
        contexts: "8K,16K,32K,64K,128K,256K,512K,1019K".into(),
        concurrency: "1,2,4,8,16,32,64,128".into(),
        duration: "5s".into(),
        ..PlanDraft::default()
    };
    SavedTarget { name: "Built-in simulated server".into(), url, demo_plan: Some(plan) }
}

/// Where the page is: an agent that listens everywhere is found here too.
fn page_of(address: SocketAddr, reached: &Reached) -> String {
    let scheme = if reached.is_encrypted { "https" } else { "http" };
    format!("{scheme}://{address}{}", reached.base)
}

fn words(encryption: &Encryption) -> String {
    let (print, file) = (encryption.tls.fingerprint(), encryption.certificate.display());
    let made = if encryption.is_new { ", made just now" } else { "" };
    format!("connections are encrypted with the certificate {file}{made}; its SHA-256 is {print}")
}

fn encryption(
    args: &TlsArgs,
    store: &Path,
    address: SocketAddr,
    names: &[String],
) -> Result<Option<Encryption>, CliError> {
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let tls = Tls::given(certificate, key)?;
        return Ok(Some(Encryption { tls, certificate: certificate.clone(), is_new: false }));
    }
    if !args.tls_self_made {
        return Ok(None);
    }
    let here = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let bound = (!address.ip().is_unspecified()).then(|| address.ip().to_string());
    let names: Vec<String> = here.into_iter().chain(bound).chain(names.iter().cloned()).collect();
    let folder = store.parent().unwrap_or(Path::new("."));
    Ok(Some(Tls::self_made(folder, &names)?))
}

async fn start_demo(runs: &Arc<Runs>, demo: SavedTarget, terminal: &mut Terminal) -> Result<(), CliError> {
    if !runs.list().await?.is_empty() {
        return Ok(());
    }
    let plan = demo.demo_plan.unwrap_or_default();
    match runs.start(plan, None).await {
        Ok(run) => terminal.hint(&format!("demo run {run} has started, against the simulated server")),
        // The page is there all the same.
        Err(error) => terminal.complain(&format!("the demo run did not start: {error}")),
    }
    Ok(())
}

fn open_browser(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let browser =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    browser.is_ok()
}
