//! From one cell to the next: in reading order, and as the arrows point.

use speedmatrix_shared::id::CellId;

/// A way from a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The one before it in reading order.
    Previous,
    /// The one after it.
    Next,
    /// Fewer requests at once.
    Left,
    /// More requests at once.
    Right,
    /// A shorter context.
    Up,
    /// A longer context.
    Down,
}

impl Way {
    /// The way of a key that works everywhere.
    pub fn of_bracket(key: &str) -> Option<Self> {
        match key {
            "[" => Some(Self::Previous),
            "]" => Some(Self::Next),
            _ => None,
        }
    }

    /// The way of an arrow key.
    pub fn of_arrow(key: &str) -> Option<Self> {
        match key {
            "ArrowLeft" => Some(Self::Left),
            "ArrowRight" => Some(Self::Right),
            "ArrowUp" => Some(Self::Up),
            "ArrowDown" => Some(Self::Down),
            _ => None,
        }
    }
}

/// The cell that lies that way among `cells`; `None` at an edge.
pub fn neighbour(cells: &[CellId], from: CellId, way: Way) -> Option<CellId> {
    let mut sorted = cells.to_vec();
    sorted.sort_unstable();
    let row = |cell: &&CellId| (cell.phase, cell.context) == (from.phase, from.context);
    let column = |cell: &&CellId| (cell.phase, cell.concurrency) == (from.phase, from.concurrency);
    let before = |cell: &&CellId| **cell < from;
    let after = |cell: &&CellId| **cell > from;
    match way {
        Way::Previous => sorted.iter().rev().find(before),
        Way::Next => sorted.iter().find(after),
        Way::Left => sorted.iter().rev().filter(row).find(before),
        Way::Right => sorted.iter().filter(row).find(after),
        Way::Up => sorted.iter().rev().filter(column).find(before),
        Way::Down => sorted.iter().filter(column).find(after),
    }
    .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_as_in_the_matrix() {
        let cell = |text: &str| text.parse::<CellId>().unwrap();
        // In run order, which is not reading order.
        let cells = ["decode-8K-1", "decode-16K-1", "prefill-8K-1", "decode-8K-4", "decode-16K-4"].map(cell);
        let check = |from: &str, way, to: Option<&str>| {
            assert_eq!(neighbour(&cells, cell(from), way), to.map(cell), "{from} {way:?}");
        };
        check("decode-8K-1", Way::Right, Some("decode-8K-4"));
        check("decode-8K-4", Way::Right, None);
        check("decode-8K-4", Way::Next, Some("decode-16K-1"));
        check("decode-8K-4", Way::Down, Some("decode-16K-4"));
        check("decode-16K-4", Way::Up, Some("decode-8K-4"));
        check("decode-8K-1", Way::Up, None);
        check("decode-8K-1", Way::Previous, Some("prefill-8K-1"));
        check("prefill-8K-1", Way::Previous, None);
        check("decode-16K-4", Way::Next, None);
    }
}
