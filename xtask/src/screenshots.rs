//! Pictures of every page for README and docs, taken of an agent of their own.

use crate::{
    build::{AGENT, BINARY},
    bundle::{Page, bundle},
    layout::Layout,
    setup::{self, Scope, browser::Browser},
    step::{Result, run, say, step},
};
use std::{fs, path::Path};

/// Where they are kept.
const FOLDER: &str = "docs/screenshots";
/// Bytes of all pictures together: a clone should not grow by more than this each time they are taken.
const MOST_BYTES: u64 = 4_000_000;

/// Builds the page and the agent as the browser tests do, which look like the release, and takes all pictures anew.
pub(crate) fn take(layout: &Layout) -> Result {
    let wasm = setup::provide(layout, Scope::Tests)?;
    bundle(layout, &wasm, Page::Test)?;
    step("agent", || {
        let mut cargo = layout.cargo(["build", "--locked", "-p", AGENT, "--bin", BINARY]);
        run(cargo.env("SPEEDMATRIX_DIST", layout.test_page()))
    })?;
    let browser = Browser::find(layout)?;
    if Path::new(FOLDER).exists() {
        fs::remove_dir_all(FOLDER).map_err(|e| format!("cannot empty {FOLDER}: {e}"))?;
    }
    step("pictures", || {
        let mut cargo = layout.cargo(["run", "--locked", "--quiet", "-p", "e2e", "--example", "screenshots", "--"]);
        run(browser.tell(cargo.arg(FOLDER), &layout.target.join("debug").join(BINARY)))
    })?;
    let files = fs::read_dir(FOLDER).map_err(|e| format!("cannot read {FOLDER}: {e}"))?;
    let sizes: Vec<u64> = files.flatten().filter_map(|file| file.metadata().ok()).map(|data| data.len()).collect();
    let bytes: u64 = sizes.iter().sum();
    say(&format!("  {} pictures, {bytes} bytes: look at each before you commit it", sizes.len()));
    if bytes > MOST_BYTES {
        return Err(format!(
            "{FOLDER} has {bytes} bytes, and {MOST_BYTES} are allowed: take fewer or smaller pictures"
        ));
    }
    Ok(())
}
