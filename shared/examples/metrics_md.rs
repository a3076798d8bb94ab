//! Prints docs/METRICS.md; `cargo xtask gen` writes it down and `cargo xtask test` checks that it is fresh.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(speedmatrix_shared::metric::markdown().as_bytes())
}
