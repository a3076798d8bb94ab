//! What happened over the time of a cell, as the rows of a table. Pure.

use speedmatrix_shared::{detail::CellDetail, format};

use crate::zoom::Zoom;

/// Rows of a table at most: each is a stretch of time.
const TABLE_ROWS: usize = 40;

/// A column of what was told at moments, by the engine or the GPUs.
struct Column<'a> {
    head: &'static str,
    points: &'a [(f64, f64)],
    show: fn(Option<f64>) -> String,
}

impl Column<'_> {
    /// The mean of what was told in a stretch of time.
    fn cell(&self, from_s: f64, to_s: f64) -> String {
        let inside = self.points.iter().filter(|(at_s, _)| (from_s..to_s).contains(at_s));
        let (n, sum) = inside.fold((0_u32, 0.0), |(n, sum), (_, value)| (n + 1, sum + value));
        (self.show)((n > 0).then(|| sum / f64::from(n)))
    }
}

/// The columns of which anything was told.
fn told_columns(detail: &CellDetail) -> impl Iterator<Item = Column<'_>> {
    let (engine, gpu) = (&detail.engine, &detail.gpu);
    let columns = [
        Column { head: "Running", points: &engine.running, show: format::decimal1 },
        Column { head: "Waiting", points: &engine.waiting, show: format::decimal1 },
        Column { head: "KV cache", points: &engine.kv_usage, show: format::percent },
        Column { head: "GPU power", points: &gpu.power_w, show: format::watts },
        Column { head: "GPU temperature", points: &gpu.temperature_c, show: format::celsius },
    ];
    columns.into_iter().filter(|column| !column.points.is_empty())
}

/// The shown time in at most [`TABLE_ROWS`] stretches of whole blocks.
pub fn table_rows(detail: &CellDetail, shown: Zoom) -> Vec<Vec<String>> {
    let seen = &detail.timeline;
    if seen.block_s <= 0.0 {
        return Vec::new();
    }
    let first = (shown.from_s / seen.block_s).floor() as usize;
    let last = ((shown.to_s / seen.block_s).ceil() as usize).min(seen.tok_s.len());
    let per_row = last.saturating_sub(first).div_ceil(TABLE_ROWS).max(1);
    let mean = |values: &[f64], from: usize, to: usize| {
        let values = values.get(from..to).filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let row = |from: usize| {
        let to = (from + per_row).min(last);
        let secs = |block: usize| block as f64 * seen.block_s;
        let edge = |block: usize| format::moment(secs(block), seen.block_s);
        let told = told_columns(detail).map(|column| column.cell(secs(from), secs(to)));
        let of_client = [
            edge(from),
            edge(to),
            format::rate(mean(&seen.tok_s, from, to)),
            format::decimal1(mean(&seen.in_flight, from, to)),
            format::decimal1(mean(&seen.decoding, from, to)),
        ];
        of_client.into_iter().chain(told).collect()
    };
    (first..last).step_by(per_row).map(row).collect()
}

/// The heads of that table.
pub fn table_heads(detail: &CellDetail) -> Vec<&'static str> {
    let of_client = ["From", "To", "tok/s", "In flight", "Decoding"];
    of_client.into_iter().chain(told_columns(detail).map(|column| column.head)).collect()
}
