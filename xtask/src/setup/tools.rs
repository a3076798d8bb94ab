//! The programs that turn compiled wasm into a page: Trunk, wasm-bindgen, wasm-opt.

use super::wasm_std::link;
use crate::{
    layout::Layout,
    step::{Result, ensure, output, run, run_quietly},
};
use std::{fs, path::Path, process::Command, time::Duration};

/// 0.22 asks for a newer compiler than ours.
const TRUNK_VERSION: &str = "0.21.14";
/// From npm, so that it is one version on every system.
const BINARYEN_VERSION: &str = "132.0.0";
const NPM_LIMIT: Duration = Duration::from_mins(10);
/// These programs run for seconds, so that optimizing them costs more than it gives (Trunk's own
/// profile asks for LTO over everything).
const QUICK_BUILD: [(&str, &str); 5] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
];

pub(super) fn provide(layout: &Layout) -> Result {
    let exactly = format!("={TRUNK_VERSION}");
    // Without its default features it has no TLS and asks nobody for updates.
    let trunk = ["trunk", "--version", &exactly, "--no-default-features"];
    cargo_install(layout, "trunk", TRUNK_VERSION, &trunk)?;
    // From the workspace's own crate: wasm-bindgen must be of the very version that the page is
    // compiled with, and Cargo.lock holds both.
    let lock = fs::read_to_string("Cargo.lock").map_err(|e| format!("cannot read Cargo.lock: {e}"))?;
    let version =
        locked_version(&lock, "wasm-bindgen").ok_or("Cargo.lock holds no wasm-bindgen: the page cannot be built")?;
    cargo_install(layout, "wasm-bindgen", version, &["--path", "tools"])?;
    npm_install(layout, "binaryen", BINARYEN_VERSION)?;
    let wasm_opt = Path::new("../npm/node_modules/.bin/wasm-opt");
    link(wasm_opt, &layout.tools.join("bin/wasm-opt"))
}

fn cargo_install(layout: &Layout, program: &str, version: &str, what: &[&str]) -> Result {
    let file = layout.tools.join("bin").join(program);
    let there = || {
        output(Command::new(&file).arg("--version")).is_some_and(|told| told.split_whitespace().nth(1) == Some(version))
    };
    ensure(&format!("{program} {version}"), there, || {
        let work = layout.tools.join("build");
        let mut cargo = layout.cargo(["install", "--locked", "--force", "--root"]);
        cargo.arg(&layout.tools).args(what);
        cargo.env("CARGO_TARGET_DIR", &work).envs(QUICK_BUILD);
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
        run(&mut cargo)?;
        fs::remove_dir_all(&work).map_err(|e| format!("cannot remove {}: {e}", work.display()))
    })
}

/// Installs a package of npm, without running any of its scripts.
pub(super) fn npm_install(layout: &Layout, package: &str, version: &str) -> Result {
    let npm = layout.tools.join("npm");
    let manifest = npm.join("node_modules").join(package).join("package.json");
    let line = format!("\"version\": \"{version}\"");
    let there = || fs::read_to_string(&manifest).is_ok_and(|text| text.contains(&line));
    ensure(&format!("{package} {version}"), there, || {
        let mut command = layout.program("npm");
        command
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
            .arg(&npm)
            .arg(format!("{package}@{version}"));
        run_quietly(&mut command, &layout.tools.join("npm.log"), NPM_LIMIT)
            .map_err(|e| format!("{e}\nNode.js with npm is needed, and npm's registry"))
    })
}

/// The version of a package in a Cargo.lock.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?;
    version.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    #[test]
    fn the_locked_version_is_that_of_the_very_package() {
        let lock = "[[package]]\nname = \"wasm-bindgen-futures\"\nversion = \"0.4.1\"\n\n\
                    [[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\nsource = \"x\"\n";
        assert_eq!(locked_version(lock, "wasm-bindgen"), Some("0.2.130"));
        assert_eq!(locked_version(lock, "wasm"), None);
    }
}
