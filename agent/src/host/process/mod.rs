//! The process behind a target on this machine: who listens on its port, how it was started, in which surroundings.
//! A process may end, or be closed to us, at any step; then a fact is unknown and has its reason.

mod command;
#[cfg(target_os = "linux")]
mod container;
mod lineage;
#[cfg(target_os = "linux")]
mod linux;
mod packages;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
pub(super) use self::linux::find;
#[cfg(not(target_os = "linux"))]
pub(super) use self::portable::find;

use speedmatrix_shared::host::ProcessFacts;

/// Why a process, or something about it, is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// It runs on another machine.
    #[error("not on this host")]
    NotHere,
    /// Nobody is seen to listen.
    #[error(
        "no process of this host is seen to listen on port {port}: it may run in a virtual machine or behind a tunnel"
    )]
    NoListener {
        /// The target's port.
        port: u16,
    },
    /// Somebody listens, and whose socket it is can't be read.
    #[error("the process on port {port} belongs to another user: run speedmatrix as that user or as root to see it")]
    NoPermission {
        /// The target's port.
        port: u16,
    },
    /// Several containers listen on the port.
    #[error("{count} containers listen on port {port}: which of them answers can't be told from outside")]
    Ambiguous {
        /// The target's port.
        port: u16,
        /// How many.
        count: usize,
    },
    /// What listens only passes on what comes: the server is elsewhere.
    #[error(
        "{program} listens on port {port} and passes on to a server that can't be seen: give that server's own address"
    )]
    PassedOn {
        /// The target's port.
        port: u16,
        /// The program that passes on.
        program: String,
    },
    /// It was there a moment ago.
    #[error("the process ended while it was looked at")]
    Gone,
    /// It wrote something else where its command line was.
    #[error("the process has replaced its command line by the name \"{name}\"")]
    Renamed {
        /// What it calls itself.
        name: String,
    },
    /// The server is a part of this program.
    #[error("the server is a part of this program")]
    Own,
    /// No way to see it here.
    #[error("this operating system does not show it")]
    NotShown,
}

/// A process that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// What is known of it.
    pub(super) facts: ProcessFacts,
    /// Its command line, to be pasted into a shell.
    pub(super) command: Result<String, Unknown>,
    /// It and all its descendants.
    pub(super) pids: Vec<u32>,
}
