//! The `speedmatrix` program: reads its arguments, builds the runtime that serves, and returns an exit status.

use std::{env, process::ExitCode};

use speedmatrix_agent::{
    cli::{self, Exit},
    logging,
    terminal::Terminal,
};

/// Threads for serving and storing. Measuring has a runtime of its own, see `runs`.
const SERVING_THREADS: usize = 2;

fn main() -> ExitCode {
    let mut terminal = Terminal::standard();
    let command = match cli::read(env::args_os(), &mut terminal) {
        Ok(command) => command,
        Err(exit) => return exit.into(),
    };
    logging::begin(command.log_format());
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
