//! Debian's packages, installed only where they are missing.

use crate::{
    layout::Layout,
    step::{Result, ensure, output, run_quietly},
};
use std::{path::Path, process::Command, time::Duration};

const APT: &str = "/usr/bin/apt-get";
const LIMIT: Duration = Duration::from_mins(20);

pub(super) fn is_debian() -> bool {
    Path::new(APT).exists()
}

/// Installs `packages`; with sudo unless this is root.
pub(super) fn install(layout: &Layout, packages: &[&str]) -> Result {
    let names = packages.join(" ");
    let installed = || packages.iter().all(|package| is_installed(package));
    ensure(&format!("Debian packages {names}"), installed, || {
        if !is_debian() {
            return Err(format!("no apt-get here: install what Debian calls {names}"));
        }
        let log = layout.tools.join("apt.log");
        run_quietly(apt().args(["update", "-qq"]), &log, LIMIT)?;
        run_quietly(apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages), &log, LIMIT)
            .map_err(|e| format!("{e}\ninstall {names} by hand, then start this again"))
    })
}

fn apt() -> Command {
    let is_root = output(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    let mut command = Command::new(if is_root { "env" } else { "sudo" });
    command.args(["DEBIAN_FRONTEND=noninteractive", APT]);
    command
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${db:Status-Status}", package]);
    output(&mut query).is_some_and(|status| status == "installed")
}
