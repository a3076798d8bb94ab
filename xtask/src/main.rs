//! The repository's own commands. `cargo xtask run` and `cargo xtask test` are the only two that a
//! fresh clone on a fresh machine needs. No dependency, so that it builds in two seconds and works
//! when the rest does not compile.

mod bench_web;
mod build;
mod bundle;
mod engines;
mod fuzz;
mod generate;
mod layout;
mod measure;
mod screenshots;
mod setup;
mod step;
mod test;
mod tidy;

use crate::{
    layout::Layout,
    setup::Scope,
    step::{Result, say},
};
use std::{env, process::ExitCode};

const HELP: &str = "\
cargo xtask run [ARGS]      set up, build the page and the agent, start it with a demonstration
cargo xtask build           the same without starting: target/release/speedmatrix, the page in it
cargo xtask test            everything that must hold before a change lands (also called `ci`)
cargo xtask setup           install what building and testing need; again only checks
cargo xtask dev             serve the page with reload, on top of an agent that runs already
cargo xtask cases [ARGS]    replay the recorded cases beside the repository, one line each
cargo xtask bench [ARGS]    how true the client's own stamps are, how small and fast the store is, what watching costs: three tables
cargo xtask bench-web       what the page costs in a browser: script, frames, memory, size; on an idle machine
cargo xtask screenshots     take the pictures of docs/screenshots again: every page, wide and narrow, light and dark
cargo xtask engines [DIR]   measure the engines that can be started here, for docs/ENGINES.md
cargo xtask fuzz [TARGET] [MINUTES]  look for bytes that break a parser; without TARGET all, ten minutes each
cargo xtask gen [--check]   write the generated pages of docs/ (or say which are stale)
cargo xtask tidy            what no other tool checks: sizes, names, colours, forbidden words

SPEEDMATRIX_TOOLS           where the tools are kept (default: the user's data folder)
WASM_STD=auto               how to get the standard library for wasm32: auto, rustup or debian";

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    match dispatch(&command, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("\nxtask: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &str, args: &[String]) -> Result {
    let layout = Layout::enter()?;
    match command {
        "run" => build::run_agent(&layout, args),
        "build" => build::release(&layout).map(|binary| say(&format!("{}", binary.display()))),
        "test" | "ci" => test::all(&layout),
        "setup" => setup::provide(&layout, Scope::Tests).map(|_| ()),
        "dev" => build::dev(&layout, args),
        "cases" => measure::cases(&layout, args),
        "bench" => measure::bench(&layout, args),
        "bench-web" => bench_web::bench(&layout, args),
        "screenshots" => screenshots::take(&layout),
        "engines" => engines::check(&layout, args),
        "fuzz" => fuzz::look(&layout, args),
        "gen" => match args {
            [] => generate::write(&layout),
            [option] if option == "--check" => generate::check(&layout),
            _ => Err(format!("gen takes --check or nothing, not {args:?}")),
        },
        "tidy" => tidy::repository(),
        "" | "help" | "-h" | "--help" => {
            say(HELP);
            Ok(())
        }
        _ => Err(format!("no command called {command:?}\n\n{HELP}")),
    }
}
