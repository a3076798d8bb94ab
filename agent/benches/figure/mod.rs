//! What the benches print: figures with what is asked and what is reached.

use std::io::{self, Write as _};

/// One row of the table.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) asked: String,
    pub(crate) reached: String,
    pub(crate) ok: bool,
}

/// A figure that must not be above its bound.
pub(crate) fn at_most(name: String, bound: f64, unit: &str, reached: f64) -> Figure {
    let ok = reached <= bound;
    Figure { name, asked: format!("<= {bound} {unit}"), reached: format!("{reached:.3} {unit}"), ok }
}

/// Prints the figures below each other.
pub(crate) fn table(figures: &[Figure]) -> io::Result<()> {
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    writeln!(out, "{:width$} | {:>12} | {:>12} | ok", "figure", "asked", "reached")?;
    for Figure { name, asked, reached, ok } in figures {
        let ok = if *ok { "yes" } else { "NO" };
        writeln!(out, "{name:width$} | {asked:>12} | {reached:>12} | {ok}")?;
    }
    Ok(())
}
