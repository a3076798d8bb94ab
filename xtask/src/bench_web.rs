//! What the page costs in a browser: the release as people get it, measured by the bench of `e2e`.

use crate::{
    build,
    layout::Layout,
    setup::browser::Browser,
    step::{Result, run, say},
};

/// Builds the release, then prints each figure beside the one that is asked.
pub(crate) fn bench(layout: &Layout, args: &[String]) -> Result {
    let binary = build::release(layout)?;
    let browser = Browser::find(layout)?;
    say("  the figures are those of this machine, if nothing else runs on it");
    let mut cargo = layout.cargo(["bench", "--locked", "--quiet", "-p", "e2e", "--bench", "page", "--"]);
    run(browser.tell(cargo.args(args), &binary))
}
