//! Where things are: the repository, what cargo builds, and the tools that outlive both.

use crate::step::Result;
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The three folders that every command works with, all absolute.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The repository; also the current folder, so that relative paths start here.
    pub(crate) root: PathBuf,
    /// What cargo builds: the caller's `CARGO_TARGET_DIR`, else `target`.
    pub(crate) target: PathBuf,
    /// Programs that builds and tests need. Outside the repository, so that neither a fresh clone
    /// nor `cargo clean` pays for them again.
    pub(crate) tools: PathBuf,
}

impl Layout {
    /// Finds the folders and goes to the repository's root.
    pub(crate) fn enter() -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_path_buf();
        let from = env::current_dir().map_err(|e| format!("the current folder is gone: {e}"))?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => from.join(folder),
            None => root.join("target"),
        };
        let tools = match env::var_os("SPEEDMATRIX_TOOLS") {
            Some(folder) => from.join(folder),
            None => data_folder()?.join("speedmatrix/tools"),
        };
        env::set_current_dir(&root).map_err(|e| format!("cannot enter {}: {e}", root.display()))?;
        Ok(Self { root, target, tools })
    }

    /// Where the page that goes into the release is built.
    pub(crate) fn release_page(&self) -> PathBuf {
        self.root.join("web/dist")
    }

    /// Where the browser tests' page is built: not over the release's.
    pub(crate) fn test_page(&self) -> PathBuf {
        self.target.join("web-test")
    }

    /// `program`, as the shell would start it in the repository.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // `cargo run` describes xtask's own package to xtask. Passed on, build scripts that watch
        // these variables (ring's does) would run again at each change between `cargo xtask` and
        // `cargo`, and everything above them would be compiled again.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE"];
            if own.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&*name);
            }
        }
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The cargo that runs xtask, with a subcommand and its options.
    pub(crate) fn cargo<const N: usize>(&self, args: [&str; N]) -> Command {
        let cargo = env::var("CARGO").unwrap_or_else(|_| String::from("cargo"));
        let mut command = self.program(&cargo);
        command.args(args);
        command
    }
}

fn data_folder() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("XDG_DATA_HOME") {
        return Ok(folder.into());
    }
    let home = env::home_dir().ok_or("HOME is not set: set SPEEDMATRIX_TOOLS to a folder")?;
    Ok(home.join(".local/share"))
}
