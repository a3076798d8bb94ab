//! The `speedmatrix` program: reads its arguments, builds the runtime that serves, and returns an exit status.

use std::{env, process::ExitCode};

use speedmatrix_agent::{
    cli::{self, Exit},
    terminal::Terminal,
};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// Threads for serving and storing. Measuring has a runtime of its own, see `runs`.
const SERVING_THREADS: usize = 2;

fn main() -> ExitCode {
    log_to_standard_error();
    let mut terminal = Terminal::standard();
    let command = match cli::read(env::args_os(), &mut terminal) {
        Ok(command) => command,
        Err(exit) => return exit.into(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(SERVING_THREADS)
        .thread_name("serve")
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal.complain(&format!("no threads to work with ({error}): close other programs"));
            return Exit::Unwritten.into();
        }
    };
    let exit = runtime.block_on(cli::carry_out(command, &mut terminal));
    // What still waits, such as a measuring thread after a second Ctrl-C, is not waited for.
    runtime.shutdown_background();
    exit.into()
}

/// Warnings, and what `SPEEDMATRIX_LOG` asks for, such as `debug` or `speedmatrix_agent::store=trace`.
fn log_to_standard_error() {
    let wanted = EnvFilter::builder().with_env_var("SPEEDMATRIX_LOG").with_default_directive(LevelFilter::WARN.into());
    tracing_subscriber::fmt().with_env_filter(wanted.from_env_lossy()).with_writer(std::io::stderr).init();
}
