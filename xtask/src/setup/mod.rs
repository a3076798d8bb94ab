//! Makes a fresh machine able to build and test everything. Done again, it only checks.

pub(crate) mod browser;
mod debian;
mod nginx;
mod tools;
mod wasm_std;

use crate::{
    layout::Layout,
    step::{Result, say, step},
};
use std::{
    env,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    process::Command,
};
use wasm_std::Source;

/// The target that the page is compiled for.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// What a command will do next, and so how much it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Build the page and the agent.
    Build,
    /// Also lint the page and drive it in a browser.
    Tests,
}

/// A machine that can build the page: starts programs in the environment that this needs.
#[derive(Debug)]
pub(crate) struct Wasm<'a> {
    layout: &'a Layout,
    source: Source,
}

impl Wasm<'_> {
    /// A program that compiles for the page's target, directly or as a child.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = self.layout.program(program);
        let path = env::var_os("PATH").unwrap_or_default();
        let tools = [self.layout.tools.join("bin")];
        let path = env::join_paths(tools.into_iter().chain(env::split_paths(&path)));
        command.env("PATH", path.expect("a folder of PATH has no separator in its name"));
        // cargo names itself to xtask in these, and Trunk would take that one, whose toolchain
        // may lack the target.
        command.env_remove("CARGO").env_remove("RUSTC");
        // rustup's proxy set RUSTUP_TOOLCHAIN for xtask. It stays where that toolchain has the
        // target, and must give way where it has not.
        if let Source::Debian(toolchain) = &self.source {
            command.env("RUSTUP_TOOLCHAIN", toolchain);
        }
        command
    }

    /// `cargo clippy` for the page's target.
    pub(crate) fn clippy(&self) -> Command {
        let mut command = self.program("cargo");
        if let Source::Debian(toolchain) = &self.source {
            // clippy-driver takes the place of rustc, and with it of the wrapper that names the
            // folder where the target's standard library is.
            command.env("SYSROOT", toolchain);
        }
        command.args(["clippy", "--target", WASM_TARGET]);
        command
    }
}

/// Installs whatever of `scope` is missing.
pub(crate) fn provide(layout: &Layout, scope: Scope) -> Result<Wasm<'_>> {
    step("set up", || {
        // Worktrees share the tools: two set-ups at once would build them twice into one place.
        let _held_until_done = lock(&layout.tools)?;
        let source = wasm_std::provide(layout, scope)?;
        tools::provide(layout)?;
        if scope == Scope::Tests {
            browser::provide(layout)?;
            nginx::provide(layout);
        }
        Ok(Wasm { layout, source })
    })
}

fn lock(tools: &Path) -> Result<File> {
    let failed = |e| format!("cannot use {} for tools: {e}", tools.display());
    fs::create_dir_all(tools.join("bin")).map_err(failed)?;
    let file = File::create(tools.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => say("  another set-up is at work: waiting for it"),
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    file.lock().map_err(failed)?;
    Ok(file)
}

/// The file of that name in a folder of PATH.
fn find_on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|file| file.is_file())
}
