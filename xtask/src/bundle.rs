//! Builds the page with Trunk, unless nothing that goes into it has changed.
//!
//! Trunk writes all of its files at each build, after which cargo would embed them anew: seconds
//! become minutes. So what went in and what came out is remembered as one number.

use crate::{
    layout::Layout,
    setup::Wasm,
    step::{Result, output, run, say, step},
};
use std::{
    fs,
    hash::{DefaultHasher, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

/// Everything the page is made of: Rust, markup, style, and what decides how they are compiled.
const SOURCES: [&str; 6] = [".cargo/config.toml", "Cargo.lock", "Cargo.toml", "Trunk.toml", "shared", "web"];

/// Which page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Page {
    /// Small: optimized for size, for minutes.
    Release,
    /// Soon there: what the browser tests use.
    Test,
}

impl Page {
    fn folder(self, layout: &Layout) -> PathBuf {
        match self {
            Self::Release => layout.release_page(),
            Self::Test => layout.test_page(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Release => "page, release",
            Self::Test => "page, for tests",
        }
    }
}

/// Builds the page into its folder.
pub(crate) fn bundle(layout: &Layout, wasm: &Wasm<'_>, page: Page) -> Result {
    let name = page.name();
    let folder = page.folder(layout);
    let stamp_file = layout.target.join(format!("{}.stamp", name.replace(", ", "-")));
    let compiler = output(wasm.program("rustc").arg("-vV")).unwrap_or_default();
    let stamp = || stamp(&compiler, &folder);
    if fs::read_to_string(&stamp_file).is_ok_and(|last| last == stamp()) {
        say(&format!("✔ {name}  unchanged"));
        return Ok(());
    }
    step(name, || {
        // Trunk is offline, so that it takes the tools that set-up placed and never fetches its
        // own; it hands that on to cargo, which must then have everything already.
        run(&mut layout.cargo(["fetch", "--locked", "--quiet"]))?;
        run(trunk(wasm, "build").arg("--dist").arg(&folder).args(match page {
            Page::Release => &["--release"][..],
            Page::Test => &[],
        }))?;
        fs::write(&stamp_file, stamp()).map_err(|e| format!("cannot write {}: {e}", stamp_file.display()))
    })
}

/// A command of Trunk's that fetches nothing.
pub(crate) fn trunk(wasm: &Wasm<'_>, subcommand: &str) -> Command {
    let mut command = wasm.program("trunk");
    command.args([subcommand, "--offline", "--locked"]);
    // Trunk reads this common variable as the value of its option --no-color, and takes no "1".
    command.env_remove("NO_COLOR");
    command
}

/// A number of everything that a page was built from, and of the files that came out.
fn stamp(compiler: &str, folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(compiler.as_bytes());
    for source in SOURCES {
        each_file(Path::new(source), &mut |file| {
            hasher.write(file.as_os_str().as_encoded_bytes());
            hasher.write(&fs::read(file).unwrap_or_default());
        });
    }
    // Trunk names files after their content, so that names and sizes tell one page from another.
    each_file(folder, &mut |file| {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write_u64(file.metadata().map_or(0, |data| data.len()));
    });
    format!("{:016x}", hasher.finish())
}

/// Visits all files at and below `path` in order, but not what Trunk put among the sources.
fn each_file(path: &Path, visit: &mut impl FnMut(&Path)) {
    if path == Path::new("web/dist") {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else {
        visit(path);
        return;
    };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        each_file(&entry, visit);
    }
}
