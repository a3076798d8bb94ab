//! What the browser tests drive: Chromium, its driver, and axe-core to check accessibility.

use super::{debian, find_on_path, tools};
use crate::{layout::Layout, step::Result};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

const AXE_VERSION: &str = "4.14.1";
/// Its names on different systems.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const CHROMEDRIVER: [&str; 1] = ["chromedriver"];

/// What the browser tests are told.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) chromium: PathBuf,
    pub(crate) chromedriver: PathBuf,
    pub(crate) axe_js: PathBuf,
}

impl Browser {
    /// The browser that set-up left: `CHROMIUM` and `CHROMEDRIVER`, else what is on PATH.
    pub(crate) fn find(layout: &Layout) -> Result<Self> {
        let found = |variable: &str, names: &[&str]| {
            locate(variable, names).ok_or_else(|| format!("no {} on PATH: install it or set {variable}", names[0]))
        };
        Ok(Self {
            chromium: found("CHROMIUM", &CHROMIUM)?,
            chromedriver: found("CHROMEDRIVER", &CHROMEDRIVER)?,
            axe_js: layout.tools.join("npm/node_modules/axe-core/axe.min.js"),
        })
    }

    /// Tells a command of `e2e` where the browser is, and the agent that it is to look at.
    pub(crate) fn tell<'c>(&self, command: &'c mut Command, agent: &Path) -> &'c mut Command {
        command
            .env("AGENT_BIN", agent)
            .env("CHROMEDRIVER", &self.chromedriver)
            .env("CHROMIUM", &self.chromium)
            .env("AXE_JS", &self.axe_js)
    }
}

pub(super) fn provide(layout: &Layout) -> Result {
    tools::npm_install(layout, "axe-core", AXE_VERSION)?;
    let missing = locate("CHROMIUM", &CHROMIUM).is_none() || locate("CHROMEDRIVER", &CHROMEDRIVER).is_none();
    if missing && debian::is_debian() {
        debian::install(layout, &["chromium", "chromium-driver"])?;
    }
    Browser::find(layout).map(|_| ())
}

fn locate(variable: &str, names: &[&str]) -> Option<PathBuf> {
    match env::var_os(variable) {
        Some(file) => Some(file.into()),
        None => names.iter().find_map(|name| find_on_path(name)),
    }
}
