//! Cells of the matrix that are not measured because a person left them out.

use std::{collections::BTreeSet, fmt, str::FromStr};

use crate::units::{Concurrency, Context};

/// Decode cells to leave out, by context and requests at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaveOut(BTreeSet<(Context, Concurrency)>);

impl LeaveOut {
    /// Whether a cell is left out.
    pub fn has(&self, context: Context, concurrency: Concurrency) -> bool {
        self.0.contains(&(context, concurrency))
    }

    /// The cells, ascending.
    pub fn cells(&self) -> impl Iterator<Item = (Context, Concurrency)> {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Leaves a cell out, or takes it in again.
    pub fn toggle(&mut self, context: Context, concurrency: Concurrency) {
        let cell = (context, concurrency);
        if !self.0.remove(&cell) {
            self.0.insert(cell);
        }
    }
}

impl FromIterator<(Context, Concurrency)> for LeaveOut {
    fn from_iter<T: IntoIterator<Item = (Context, Concurrency)>>(cells: T) -> Self {
        Self(cells.into_iter().collect())
    }
}

impl fmt::Display for LeaveOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (context, concurrency)) in self.0.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{context}x{concurrency}")?;
        }
        Ok(())
    }
}

impl FromStr for LeaveOut {
    type Err = String;

    /// `64Kx128,128Kx64`, with `x` or `×`.
    fn from_str(text: &str) -> Result<Self, String> {
        let items = text.split([',', ' ', ';']).filter(|item| !item.is_empty());
        let cells: Result<BTreeSet<_>, String> = items
            .map(|item| {
                let parts = item.split_once(['x', '×']);
                let cell = parts.and_then(|(context, level)| Some((context.parse().ok()?, level.parse().ok()?)));
                cell.ok_or_else(|| format!("\"{item}\" is no cell: write 64Kx128, context and requests at once"))
            })
            .collect();
        cells.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_to_leave_out_read_what_they_write() {
        let check = |text: &str, wanted: Result<&str, &str>| {
            let read = text.parse::<LeaveOut>().map(|cells| cells.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), wanted, "{text}");
        };
        check("", Ok(""));
        check("128Kx64, 64K×128;64Kx128", Ok("64Kx128,128Kx64"));
        check("64K", Err("\"64K\" is no cell: write 64Kx128, context and requests at once"));
        check("64Kx0", Err("\"64Kx0\" is no cell: write 64Kx128, context and requests at once"));
    }

    #[test]
    fn a_cell_left_out_twice_is_in_again() {
        let mut cells = LeaveOut::default();
        let (context, level) = ("8K".parse().unwrap(), Concurrency::ONE);
        cells.toggle(context, level);
        assert!(cells.has(context, level) && cells.count() == 1);
        cells.toggle(context, level);
        assert_eq!(cells, LeaveOut::default());
    }
}
