//! The two harnesses of the agent that print results and not just pass or fail.

use crate::{
    build::AGENT,
    layout::Layout,
    step::{Result, run, say},
};
use std::env;

/// Replays the recorded cases through the product's own code: a line for each, then a total.
///
/// They lie beside the repository, in `shared/` or where `SPEEDMATRIX_SHARED` says; without them
/// there is nothing to do.
pub(crate) fn cases(layout: &Layout, args: &[String]) -> Result {
    let beside = layout.root.join("../shared");
    let shared = env::var_os("SPEEDMATRIX_SHARED").map_or(beside, |given| layout.root.join(given));
    let given = shared.join("cases/given");
    if !given.is_dir() {
        say(&format!("no recorded cases at {}: nothing to replay", given.display()));
        return Ok(());
    }
    let mut cargo = layout.cargo(["test", "--locked", "--quiet", "--release", "-p", AGENT]);
    cargo.args(["--test", "cases", "--"]).args(args);
    run(cargo.env("SPEEDMATRIX_SHARED", &shared))
}

/// Measures how true the client's stamps are, against the simulator's own; then how small and fast the store
/// is, then what watching costs.
pub(crate) fn bench(layout: &Layout, args: &[String]) -> Result {
    let bench = |name: &str, args: &[String]| {
        let mut cargo = layout.cargo(["bench", "--locked", "--quiet", "-p", AGENT]);
        run(cargo.args(["--bench", name, "--"]).args(args))
    };
    bench("truth", args)?;
    bench("store", &[])?;
    bench("watch", &[])
}
