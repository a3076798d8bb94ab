//! wasm-bindgen's own command line, built from the version that the workspace pins.

use std::process::ExitCode;

fn main() -> ExitCode {
    match wasm_bindgen_cli::wasm_bindgen::run_cli_with_args(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            // Nothing is left to tell if even stderr is gone.
            drop(writeln!(std::io::stderr(), "error: {error:?}"));
            ExitCode::FAILURE
        }
    }
}
