//! Looks for bytes that break a parser: libFuzzer, guided by what code they reach, on the stable compiler.

use crate::{
    layout::Layout,
    step::{Result, run, step},
};
use std::fs;

/// The targets, and where their seeds are: the table of `fuzz/src/lib.rs`.
const TARGETS: [(&str, &str); 10] = [
    ("sse", "agent/tests/it/captures"),
    ("decode", "fuzz/seeds/decode"),
    ("prometheus", "fuzz/seeds/prometheus"),
    ("http1", "fuzz/seeds/http1"),
    ("secrets", "fuzz/seeds/secrets"),
    ("import", "fuzz/seeds/import"),
    ("log", "fuzz/seeds/log"),
    ("plan", "fuzz/seeds/plan"),
    ("live", "fuzz/seeds/live"),
    ("record", "fuzz/seeds/record"),
];
/// How long each is looked at unless said otherwise.
const MINUTES: u64 = 10;
/// Longest input, bytes: parsers break on shape, not on size.
const MAX_BYTES: u32 = 65_536;
/// Memory of the process that counts as a finding, MiB.
const MAX_MIB: u32 = 2_048;
/// Seconds for one input that count as a finding.
const MAX_SECS: u32 = 10;
/// What `cargo fuzz` gives nightly's compiler, without the sanitizer for unsafe code, of which there is none here: counters
/// of code that is reached, and of comparisons.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

/// `[TARGET] [MINUTES]`. What is found is written beside the corpus, and its path printed.
pub(crate) fn look(layout: &Layout, args: &[String]) -> Result {
    let (wanted, minutes) = match args {
        [] => (None, MINUTES),
        [target] => (Some(target), MINUTES),
        [target, minutes] => {
            let minutes = minutes.parse().map_err(|e| format!("minutes {minutes:?}: {e}"))?;
            (Some(target), minutes)
        }
        _ => return Err(format!("fuzz takes a target and minutes, not {args:?}")),
    };
    let chosen: Vec<_> = TARGETS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name)).collect();
    if chosen.is_empty() {
        return Err(format!("no target called {wanted:?}: see fuzz/src/lib.rs"));
    }
    // A folder of its own, as everything in it is compiled with counters.
    let target = layout.target.join("fuzz");
    step("build with counters", || {
        let triple = host(layout)?;
        let mut cargo = layout.cargo(["build", "--locked", "--profile", "fuzz", "--target", &triple]);
        cargo.args(["-p", "fuzz", "--features", "guided"]);
        run(cargo.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", COVERAGE))?;
        let built = target.join(&triple).join("fuzz/fuzz");
        fs::copy(&built, target.join("program")).map(drop).map_err(|e| format!("{}: {e}", built.display()))
    })?;
    for (name, seeds) in chosen {
        step(&format!("{name}, {minutes} min"), || {
            let corpus = target.join("corpus").join(name);
            fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
            let mut program = layout.program(&target.join("program").to_string_lossy());
            program.env("SPEEDMATRIX_FUZZ", name).arg(&corpus).arg(layout.root.join(seeds));
            program.arg(format!("-artifact_prefix={}/{name}-", target.display()));
            program.arg(format!("-max_total_time={}", minutes * 60)).arg(format!("-max_len={MAX_BYTES}"));
            program.arg(format!("-rss_limit_mb={MAX_MIB}")).arg(format!("-timeout={MAX_SECS}"));
            run(program.args(["-print_final_stats=1", "-verbosity=0"]))
        })?;
    }
    Ok(())
}

/// The compiler's own machine: named, so that build scripts are compiled without counters.
fn host(layout: &Layout) -> Result<String> {
    let told = crate::step::output(layout.program("rustc").arg("-vV")).ok_or("`rustc -vV` failed")?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(ToOwned::to_owned).ok_or_else(|| format!("`rustc -vV` names no host: {told}"))
}
