//! The command line: what was asked, and who does it.

mod ab;
mod args;
mod args_of_db;
mod args_of_door;
mod args_of_runs;
mod compare;
mod link;
mod measure;
mod read;
mod reanalyse;
mod serve;
mod target;
mod upkeep;

use std::{ffi::OsString, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser as _, error::ErrorKind};
use speedmatrix_shared::{compare::gate::Gate, import::ImportError, plan::PlanErrors};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    client::probe::ProbeError,
    logging::LogFormat,
    reanalysis::ReanalysisError,
    runs::StartError,
    server::{NewPassError, TlsError},
    store::StoreError,
    terminal::Terminal,
    watch::{self, WatchError},
};
use args::{Arguments, Command, WatchArgs};

/// How the program ends: the numbers of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; everything was measured.
    Done,
    /// Some cells failed, or the run did.
    SomeFailed,
    /// Stopped before its end.
    Cancelled,
    /// The arguments can't be followed.
    Usage,
    /// The target, or the agent to watch, can't be reached.
    Unreachable,
    /// The store, a file or a port can't be had.
    Unwritten,
    /// What `gate` answers.
    Gate(Gate),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::SomeFailed => 1,
            Exit::Cancelled => 2,
            Exit::Usage => 64,
            Exit::Unreachable => 69,
            Exit::Unwritten => 74,
            Exit::Gate(answer) => answer.exit_status(),
        })
    }
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    #[error(transparent)]
    Target(#[from] ProbeError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Link(#[from] NewPassError),
    #[error(transparent)]
    Reanalysis(#[from] ReanalysisError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(
        "{address} is in use: stop the program that listens there, or choose another port with --listen 127.0.0.1:0"
    )]
    PortInUse { address: SocketAddr },
    #[error("can't listen on {address} ({source}): choose an address of this machine with --listen")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the simulator can't start ({source}): choose another address with --listen")]
    Simulator { source: io::Error },
    #[error("{path} can't be written ({source}): choose another file with --output", path = path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} can't be written ({source}): choose another file", path = path.display())]
    Report { path: PathBuf, source: io::Error },
    #[error("{path} can't be read ({source}): give a run's id, or the path of a run's file", path = path.display())]
    Unread { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = path.display())]
    NoRun { path: PathBuf, source: ImportError },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Output(#[from] io::Error),
}

impl CliError {
    fn exit(&self) -> Exit {
        match self {
            Self::Usage(_)
            | Self::Plan(_)
            | Self::Start(
                StartError::Plan(_)
                | StartError::Corpus(_)
                | StartError::Load(StoreError::NoSuchRun(_))
                | StartError::NothingOpen(_)
                | StartError::NotAPair(_)
                | StartError::Imported(_)
                | StartError::Changed(_),
            )
            | Self::Store(StoreError::NoSuchRun(_))
            | Self::Reanalysis(
                ReanalysisError::Store(StoreError::NoSuchRun(_))
                | ReanalysisError::Running(_)
                | ReanalysisError::NoRaw(_)
                | ReanalysisError::Plan(_),
            )
            | Self::Unread { .. }
            | Self::Watch(WatchError::Address(_) | WatchError::Trust(_)) => Exit::Usage,
            Self::NoRun { .. } => Exit::Gate(Gate::NotComparable),
            Self::Target(_) | Self::Start(StartError::Target(_)) | Self::Watch(_) => Exit::Unreachable,
            // Who reads the output has had enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            _ => Exit::Unwritten,
        }
    }
}

async fn watched(args: WatchArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let token = target::key_from("--token-env", args.token_env.as_deref())?;
    watch::watch(&args.url, token, args.tls_ca.as_deref(), terminal).await?;
    Ok(Exit::Done)
}

/// A command that was understood.
#[derive(Debug)]
pub struct Wanted {
    command: Command,
    log_format: LogFormat,
}

impl Wanted {
    /// What the log is to look like.
    pub const fn log_format(&self) -> LogFormat {
        self.log_format
    }
}

/// Reads the arguments. Help and version are printed here; so is what is wrong with the arguments.
pub fn read(arguments: impl IntoIterator<Item = OsString>, terminal: &mut Terminal) -> Result<Wanted, Exit> {
    let error = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => {
            return Ok(Wanted { log_format: arguments.log_format(), command: arguments.command() });
        }
        Err(error) => error,
    };
    let text = error.render().to_string();
    Err(match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            terminal.line(text.trim_end()).map_or_else(|error| CliError::Output(error).exit(), |()| Exit::Done)
        }
        _ => {
            terminal.hint(text.trim_end());
            Exit::Usage
        }
    })
}

/// Carries out a command. What goes wrong is said in one sentence.
pub async fn carry_out(wanted: Wanted, terminal: &mut Terminal) -> Exit {
    let done = match wanted.command {
        Command::Serve(args) => serve::serve(args, terminal).await,
        Command::Run(args) => measure::run(*args, terminal).await,
        Command::Sim(args) => target::simulate(args, terminal).await,
        Command::Probe(args) => target::probe_one(args, terminal).await,
        Command::Resume(args) => measure::resume(args, terminal).await,
        Command::Watch(args) => watched(args, terminal).await,
        Command::Runs(args) => read::list(args, terminal).await,
        Command::Export(args) => read::export(args, terminal).await,
        Command::Link(args) => link::link(args, terminal).await,
        Command::Reanalyse(args) => reanalyse::reanalyse(args, terminal).await,
        Command::Db(args) => upkeep::db(args, terminal).await,
        Command::Ab(args) => ab::ab(*args, terminal).await,
        Command::Compare(args) => compare::compare(args, terminal).await,
        Command::Gate(args) => compare::gate(args, terminal).await,
        Command::PlanRepeats(args) => compare::plan_repeats(args, terminal).await,
    };
    done.unwrap_or_else(|error| {
        let exit = error.exit();
        if exit != Exit::Done {
            terminal.complain(&error.to_string());
        }
        exit
    })
}

/// Ctrl-C, and the system's request to end. None gets lost between two calls.
#[derive(Debug)]
struct Interrupts {
    pressed: Signal,
    terminated: Signal,
}

impl Interrupts {
    fn listen() -> io::Result<Self> {
        Ok(Self { pressed: signal(SignalKind::interrupt())?, terminated: signal(SignalKind::terminate())? })
    }

    /// Until the next one.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.pressed.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
