//! Everything that must hold before a change lands, in the order that fails early.

use crate::{
    build::{AGENT, BINARY},
    bundle::{Page, bundle},
    generate,
    layout::Layout,
    setup::{self, Scope, browser::Browser},
    step::{Result, output, run, step},
    tidy,
};
use std::process::Command;

/// The page's package: compiled for wasm32 to run, and natively to test its pure parts.
const WEB: &str = "speedmatrix-web";
/// The native half. Named one by one, as any further package would change with which features
/// cargo compiles all the others.
const PACKAGES: [&str; 8] = ["-p", "speedmatrix-shared", "-p", AGENT, "-p", "xtask", "-p", "fuzz"];
/// Those with a library.
const DOCUMENTED: [&str; 4] = ["-p", "speedmatrix-shared", "-p", AGENT];
const NO_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn all(layout: &Layout) -> Result {
    step("test", || {
        step("format", || run(&mut layout.cargo(["fmt", "--all", "--check"])))?;
        step("tidy", tidy::repository)?;
        let wasm = setup::provide(layout, Scope::Tests)?;
        step("generated pages", || generate::check(layout))?;
        step("lint, native", || {
            let mut clippy = native(layout, ["clippy", "--locked", "--all-targets", "-p", "e2e"]);
            run(clippy.args(PACKAGES).args(NO_WARNINGS))?;
            // Beside "all targets", cargo overlooks the name of one that it does not test by itself.
            let mut clippy = native(layout, ["clippy", "--locked", "-p", AGENT, "--test", "cases"]);
            run(clippy.args(NO_WARNINGS))
        })?;
        step("lint, page", || {
            let mut clippy = wasm.clippy();
            clippy.args(["--locked", "--all-targets", "-p", WEB]);
            run(clippy.args(NO_WARNINGS))
        })?;
        // Before the agent is compiled to run, as it takes in the list of the page's files.
        bundle(layout, &wasm, Page::Test)?;
        step("tests, native", || {
            run(tests(layout, native).args(PACKAGES))?;
            run(native(layout, ["test", "--locked", "--quiet", "--doc"]).args(DOCUMENTED))
        })?;
        step("tests, the page's pure parts", || run(tests(layout, native).args(["-p", WEB, "--lib"])))?;
        step("tests, in the browser", || in_browser(layout))
    })
}

/// cargo for the native half; the agent compiled in it serves the page built for tests.
fn native<const N: usize>(layout: &Layout, args: [&str; N]) -> Command {
    let mut command = layout.cargo(args);
    command.env("SPEEDMATRIX_DIST", layout.test_page());
    command
}

/// nextest where it is installed, as it runs tests side by side; else cargo's own runner.
fn tests(layout: &Layout, cargo: fn(&Layout, [&str; 3]) -> Command) -> Command {
    let has_nextest = output(&mut layout.cargo(["nextest", "--version"])).is_some();
    if has_nextest {
        cargo(layout, ["nextest", "run", "--locked"])
    } else {
        cargo(layout, ["test", "--locked", "--quiet"])
    }
}

fn in_browser(layout: &Layout) -> Result {
    let browser = Browser::find(layout)?;
    // cargo built it for the agent's own integration tests.
    let agent = layout.target.join("debug").join(BINARY);
    run(browser.tell(tests(layout, Layout::cargo).args(["-p", "e2e"]), &agent))
}
