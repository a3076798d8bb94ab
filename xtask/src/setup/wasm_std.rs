//! The standard library for wasm32: rustup's where rustup can bring it, else built once from
//! Debian's source.
//!
//! The fallback is a rustup toolchain in a folder of links: Debian's cargo and rustc, and beside
//! them the library built here. Nothing in /usr or in rustup's own toolchains is changed. Plain
//! cargo and Trunk work with it by `RUSTUP_TOOLCHAIN=<folder>`, without any unstable option.

use super::{Scope, WASM_TARGET, debian};
use crate::{
    layout::Layout,
    step::{Result, ensure, output, run, run_quietly, say},
};
use std::{
    env, fs,
    hash::{DefaultHasher, Hasher as _},
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
/// How long rustup may try: without a network it can hang for minutes.
const RUSTUP_LIMIT: Duration = Duration::from_mins(2);
/// As rustup's component ships: `proc_macro` for crates that link proc-macro2, `test` for tests.
const STD_CRATES: &str = "core,alloc,std,panic_abort,panic_unwind,proc_macro,test";
const SEED_MANIFEST: &str = r#"[package]
name = "std-seed"
version = "0.0.0"
edition = "2021"
[profile.release]
opt-level = 3
codegen-units = 1
debug = 0
[workspace]
"#;

/// Where the standard library comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The toolchain that runs xtask has it.
    Rustup,
    /// The toolchain in this folder has it.
    Debian(PathBuf),
}

pub(super) fn provide(layout: &Layout, scope: Scope) -> Result<Source> {
    match env::var("WASM_STD").as_deref() {
        Ok("rustup") => from_rustup(layout),
        Ok("debian") => from_debian(layout, scope),
        Ok("auto") | Err(_) => {
            // What an earlier run built is taken without asking the network again.
            if !has_std(&rustc(layout)) && Toolchain::find(&layout.tools).is_some_and(|t| t.works()) {
                return from_debian(layout, scope);
            }
            from_rustup(layout).or_else(|why| {
                if !debian::is_debian() {
                    return Err(format!("{why}\nrun `rustup target add {WASM_TARGET}` where there is a network"));
                }
                say(&format!("  {why}\n  so it is built from Debian's source"));
                from_debian(layout, scope)
            })
        }
        Ok(other) => Err(format!("WASM_STD={other}: it must be auto, rustup or debian")),
    }
}

fn from_rustup(layout: &Layout) -> Result<Source> {
    let there = || has_std(&rustc(layout));
    ensure(&format!("std for {WASM_TARGET} (rustup)"), there, || {
        let log = layout.tools.join("rustup.log");
        let mut rustup = layout.program("rustup");
        run_quietly(rustup.args(["target", "add", WASM_TARGET]), &log, RUSTUP_LIMIT)
    })?;
    Ok(Source::Rustup)
}

fn from_debian(layout: &Layout, scope: Scope) -> Result<Source> {
    // Debian 12's own `rustc` is far too old; the `-web` ones follow Chromium's and Firefox's needs.
    debian::install(layout, &["rustc-web", "rust-web-src", "cargo-web"])?;
    let toolchain =
        Toolchain::find(&layout.tools).ok_or_else(|| format!("{DEBIAN_RUSTC} does not tell its version and host"))?;
    let name = format!("std for {WASM_TARGET} (Debian's {})", toolchain.version);
    ensure(&name, || toolchain.works(), || toolchain.build(layout))?;
    toolchain.link_linker(layout)?;
    if scope == Scope::Tests {
        debian::install(layout, &["rust-web-clippy"])?;
        // It finds its driver beside itself, where this link leads.
        link(Path::new("/usr/bin/cargo-clippy"), &toolchain.root.join("bin/cargo-clippy"))?;
    }
    Ok(Source::Debian(toolchain.root))
}

/// The toolchain that `rustc` is of, as the page's build will see it: see `Wasm::program`.
fn rustc(layout: &Layout) -> impl Fn() -> Command + '_ {
    || layout.program("rustc")
}

/// Does this rustc have a compiled standard library for the target?
fn has_std(rustc: &dyn Fn() -> Command) -> bool {
    let query = ["--print", "target-libdir", "--target", WASM_TARGET];
    output(rustc().args(query)).is_some_and(|folder| {
        files(Path::new(folder.trim())).iter().any(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libstd-") && file.extension().is_some_and(|e| e == "rlib")
        })
    })
}

/// The folder of links that makes Debian's rustc a toolchain with the target.
struct Toolchain {
    version: String,
    /// Debian's platform, such as `x86_64-unknown-linux-gnu`.
    host: String,
    root: PathBuf,
}

impl Toolchain {
    /// The one for the rustc that Debian installed; named after its version, so that an upgrade
    /// builds anew.
    fn find(tools: &Path) -> Option<Self> {
        let told = output(Command::new(DEBIAN_RUSTC).arg("-vV"))?;
        let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
        let version = field("release: ")?.to_owned();
        let host = field("host: ")?.to_owned();
        let root = tools.join(format!("toolchain-{version}"));
        Some(Self { version, host, root })
    }

    fn works(&self) -> bool {
        has_std(&|| Command::new(self.root.join("bin/rustc")))
    }

    fn build(&self, layout: &Layout) -> Result {
        let work = layout.tools.join("std-build");
        let seed = work.join("src");
        clear(&self.root)?;
        clear(&work)?;
        create(&seed)?;
        write(&work.join("Cargo.toml"), SEED_MANIFEST)?;
        write(&seed.join("lib.rs"), "#![no_std]\n")?;
        let mut cargo = Command::new(DEBIAN_CARGO);
        cargo
            .args(["build", "--quiet", "--release", "--target", WASM_TARGET, "-Z"])
            .arg(format!("build-std={STD_CRATES}"))
            .current_dir(&work)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO_BUILD_TARGET")
            .env("CARGO_TARGET_DIR", work.join("target"))
            .env("RUSTC", DEBIAN_RUSTC)
            .env("RUSTC_BOOTSTRAP", "1")
            // Without bitcode in it, `lto = "fat"` cannot read the library.
            .env("RUSTFLAGS", "-Cembed-bitcode=yes -Zforce-unstable-if-unmarked");
        run(&mut cargo)?;
        let built = work.join("target").join(WASM_TARGET).join("release/deps");
        let stamp = self.place_libraries(&built)?;
        self.place_programs(stamp)?;
        clear(&work)
    }

    /// Copies the libraries into the toolchain; gives a number that changes when they do.
    fn place_libraries(&self, built: &Path) -> Result<u64> {
        let rustlib = self.root.join("lib/rustlib");
        let libraries = rustlib.join(WASM_TARGET).join("lib");
        create(&libraries)?;
        let mut hasher = DefaultHasher::new();
        for file in files(built) {
            if file.extension().is_some_and(|e| e == "rlib") {
                let bytes = fs::read(&file).map_err(|e| cannot("read", &file, &e))?;
                hasher.write(&bytes);
                let to = libraries.join(file.file_name().unwrap_or_default());
                fs::write(&to, bytes).map_err(|e| cannot("write", &to, &e))?;
            }
        }
        create(&rustlib.join(&self.host))?;
        let debian = Path::new("/usr/lib/rustlib").join(&self.host).join("lib");
        link(&debian, &rustlib.join(&self.host).join("lib"))?;
        Ok(hasher.finish())
    }

    /// The toolchain's programs. rustc is a script and no link: started by a link under rustup, it
    /// looks for its libraries in /usr.
    ///
    /// cargo tells builds apart by the text of `rustc -vV` alone, so that text must name this very
    /// library: else one built anew leaves a target folder that looks fresh and does not link.
    fn place_programs(&self, stamp: u64) -> Result {
        let bin = self.root.join("bin");
        create(&bin)?;
        link(Path::new(DEBIAN_CARGO), &bin.join("cargo"))?;
        // rustc last: with it the toolchain works.
        for program in ["rustdoc", "rustc"] {
            let script = format!(
                "#!/bin/sh\n\
                 [ \"$*\" = -vV ] && {{ /usr/bin/{program} -vV && echo \"std: {stamp:016x}\"; exit; }}\n\
                 exec /usr/bin/{program} --sysroot \"{}\" \"$@\"\n",
                self.root.display()
            );
            let file = bin.join(program);
            write(&file, &script)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
                .map_err(|e| cannot("make executable", &file, &e))?;
        }
        Ok(())
    }

    /// The linker for wasm, where rustc looks for it. rustup's toolchains bring one; as they come
    /// and go, the link is checked each time.
    fn link_linker(&self, layout: &Layout) -> Result {
        let bin = self.root.join("lib/rustlib").join(&self.host).join("bin");
        let at = bin.join("rust-lld");
        if at.exists() {
            return Ok(());
        }
        create(&bin)?;
        let rustups = output(layout.program("rustc").args(["--print", "sysroot"])).map(|sysroot| {
            let host = Path::new(sysroot.trim()).join("lib/rustlib").join(&self.host);
            host.join("bin/rust-lld")
        });
        if let Some(linker) = rustups.filter(|linker| linker.exists()) {
            return link(&linker, &at);
        }
        debian::install(layout, &["lld-19"])?;
        link(Path::new("/usr/bin/lld-19"), &at)
    }
}

/// Links `at` to `target`, in place of whatever link was there.
pub(super) fn link(target: &Path, at: &Path) -> Result {
    if fs::read_link(at).is_ok_and(|now| now == target) {
        return Ok(());
    }
    if at.is_symlink() {
        fs::remove_file(at).map_err(|e| cannot("remove", at, &e))?;
    }
    symlink(target, at).map_err(|e| cannot("link", at, &e))
}

/// What a folder holds, in order; nothing if it is absent.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn clear(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(cannot("remove", folder, &e)),
        _ => Ok(()),
    }
}

fn create(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|e| cannot("create", folder, &e))
}

fn write(file: &Path, text: &str) -> Result {
    fs::write(file, text).map_err(|e| cannot("write", file, &e))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
