//! Puts the page into the agent: what Trunk built into `web/dist`, or where `SPEEDMATRIX_DIST`
//! says. Also hashes the inline scripts of its index.html, so that the Content-Security-Policy can
//! allow exactly these and needs no 'unsafe-inline'.
//!
//! A release embeds the files, compressed; a development build reads them from that folder.

use anyhow::{Context as _, Result, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

#[path = "src/server/script_hashes.rs"]
mod script_hashes;

use script_hashes::script_hashes;

/// Served where the page was not built, as in a plain `cargo build`.
const STUB: &str = "<!doctype html>\n<html lang=\"en\">\n<title>Speedmatrix</title>\n\
    <p>This agent was built without its page: build it with <code>cargo xtask build</code>.\n";

fn main() -> Result<()> {
    println!("cargo::rerun-if-env-changed=SPEEDMATRIX_DIST");
    println!("cargo::rerun-if-env-changed=REQUIRE_WEB");
    let page = page()?;
    let index = page.join("index.html");
    let html = fs::read_to_string(&index).with_context(|| format!("cannot read {}", index.display()))?;
    println!("cargo::rustc-env=CSP_SCRIPT_HASHES={}", script_hashes(&html));
    memory_serve::load_directory(page);
    Ok(())
}

/// The folder to serve: the built page, else a stub that says that there is none.
fn page() -> Result<PathBuf> {
    let built = match env::var_os("SPEEDMATRIX_DIST") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../web/dist"),
    };
    // cargo takes a watched folder that is absent for one that changes all the time, and would
    // compile the agent again at every build.
    fs::create_dir_all(&built).with_context(|| format!("cannot create {}", built.display()))?;
    println!("cargo::rerun-if-changed={}", built.display());
    if built.join("index.html").exists() {
        return Ok(built);
    }
    ensure!(env::var_os("REQUIRE_WEB").is_none(), "no page in {}: build it with `cargo xtask build`", built.display());
    let stub = Path::new(&env::var("OUT_DIR")?).join("stub");
    let index = stub.join("index.html");
    // memory-serve has cargo watch the stub too: written at each run, it would always look changed.
    if !fs::read_to_string(&index).is_ok_and(|there| there == STUB) {
        fs::create_dir_all(&stub)?;
        fs::write(index, STUB)?;
    }
    Ok(stub)
}
