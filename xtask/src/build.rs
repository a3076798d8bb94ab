//! Builds the program that people get, the page inside it, and starts it.

use crate::{
    bundle::{Page, bundle, trunk},
    layout::Layout,
    setup::{self, Scope},
    step::{Result, run, say, step},
};
use std::{os::unix::process::CommandExt as _, path::PathBuf};

/// The agent's package, as cargo knows it.
pub(crate) const AGENT: &str = "speedmatrix-agent";
/// The agent's program.
pub(crate) const BINARY: &str = "speedmatrix";

/// Builds the release binary and gives its path.
pub(crate) fn release(layout: &Layout) -> Result<PathBuf> {
    let wasm = setup::provide(layout, Scope::Build)?;
    bundle(layout, &wasm, Page::Release)?;
    step("agent, release", || {
        let mut cargo = layout.cargo(["build", "--locked", "--release", "-p", AGENT, "--bin", BINARY]);
        // A release without its page would be found out by the first user.
        run(cargo.env("REQUIRE_WEB", "1").env_remove("SPEEDMATRIX_DIST"))
    })?;
    Ok(layout.target.join("release").join(BINARY))
}

/// Builds the release binary and becomes it, so that it gets the terminal's signals itself.
pub(crate) fn run_agent(layout: &Layout, args: &[String]) -> Result {
    let binary = release(layout)?;
    say(&format!("  $ {BINARY} serve --demo {}", args.join(" ")));
    let error = layout.program(&binary.to_string_lossy()).args(["serve", "--demo"]).args(args).exec();
    Err(format!("cannot start {}: {error}", binary.display()))
}

/// Serves the page with reload at each change; Trunk.toml names the agent that it talks to.
pub(crate) fn dev(layout: &Layout, args: &[String]) -> Result {
    let wasm = setup::provide(layout, Scope::Build)?;
    run(&mut layout.cargo(["fetch", "--locked", "--quiet"]))?;
    // A target folder of its own: this runs beside other builds and must not wait for their lock.
    let target = layout.target.join("web-dev");
    run(trunk(&wasm, "serve").arg("--dist").arg(target.join("dist")).args(args).env("CARGO_TARGET_DIR", &target))
}
