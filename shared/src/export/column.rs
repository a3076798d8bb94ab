//! A column of a table of cells: what it is called, what it shows, and what it is sorted by. All that METRICS holds can
//! be one, with its interval and its n beside it.

use std::cmp::Ordering;

use crate::{
    event::Origin,
    format,
    metric::{self, METRICS, Metric},
    plan::Load,
    state::{Cell, RunState},
};

/// Ends the name of a column that holds half the width of a number's interval.
const HALF_WIDTH: &str = ".ci";
/// Ends the name of a column that holds how many samples a number rests on.
const SAMPLES: &str = ".n";

/// A column.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// What the cell measures.
    Phase,
    /// Its context.
    Context,
    /// Its requests at once, or what the load calls them.
    Level,
    /// Where it stands.
    Status,
    /// A number.
    Value(&'static Metric),
    /// Half the width of that number's 95 % interval.
    HalfWidth(&'static Metric),
    /// How many samples that number rests on.
    Samples(&'static Metric),
}

impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Column {}

impl Column {
    /// What says which cell a row is, and how it went.
    pub const LEADING: [Self; 4] = [Self::Phase, Self::Context, Self::Level, Self::Status];

    /// The reference page's columns, in its order.
    pub fn standard() -> Vec<Self> {
        Self::LEADING.into_iter().chain(metric::reference_columns().iter().map(Self::Value)).collect()
    }

    /// Every column there is.
    pub fn all() -> Vec<Self> {
        Self::LEADING.into_iter().chain(METRICS.iter().flat_map(Self::of)).collect()
    }

    /// A number with its interval and its n, where it has them.
    pub fn of(metric: &'static Metric) -> Vec<Self> {
        let mut columns = vec![Self::Value(metric)];
        columns.extend(metric.has_interval().then_some(Self::HalfWidth(metric)));
        columns.extend(metric.has_n().then_some(Self::Samples(metric)));
        columns
    }

    /// The column of that name.
    pub fn by_key(key: &str) -> Option<Self> {
        if let Some(column) = Self::LEADING.into_iter().find(|column| column.key() == key) {
            return Some(column);
        }
        let of = |name: &str| metric::by_key(name);
        if let Some(metric) = key.strip_suffix(HALF_WIDTH).and_then(of) {
            return metric.has_interval().then_some(Self::HalfWidth(metric));
        }
        if let Some(metric) = key.strip_suffix(SAMPLES).and_then(of) {
            return metric.has_n().then_some(Self::Samples(metric));
        }
        of(key).map(Self::Value)
    }

    /// Its stable name, as in addresses: `ttft`, `ttft.n`, `total_tok_s.ci`.
    pub fn key(self) -> String {
        match self {
            Self::Phase => "phase".to_owned(),
            Self::Context => "context".to_owned(),
            Self::Level => "concurrency".to_owned(),
            Self::Status => "status".to_owned(),
            Self::Value(metric) => metric.key.to_owned(),
            Self::HalfWidth(metric) => format!("{}{HALF_WIDTH}", metric.key),
            Self::Samples(metric) => format!("{}{SAMPLES}", metric.key),
        }
    }

    /// Its head; the reference page's words where it has the column.
    pub fn head(self, load: Load) -> String {
        match self {
            Self::Phase => "Phase".to_owned(),
            Self::Context => "Context".to_owned(),
            Self::Level => load.level_label().to_owned(),
            Self::Status => "Status".to_owned(),
            Self::Value(metric) => metric.column.to_owned(),
            Self::HalfWidth(metric) => format!("{}, ± 95 %", metric.column),
            Self::Samples(metric) => format!("{}, n", metric.column),
        }
    }

    /// What it shows of a cell; "—" where there is no number.
    pub fn text(self, state: &RunState, cell: &Cell) -> String {
        match self {
            Self::Phase => state.plan.load().phase_label(cell.id.phase).to_owned(),
            Self::Context => cell.id.context.to_string(),
            Self::Level => cell.id.concurrency.to_string(),
            Self::Status => cell.status_label(),
            Self::Value(metric) | Self::HalfWidth(metric) => (metric.show)(self.number(cell, state.origin)),
            Self::Samples(_) => format::whole(self.number(cell, state.origin)),
        }
    }

    /// The number that it shows, if it is one and was measured.
    pub fn number(self, cell: &Cell, origin: Option<Origin>) -> Option<f64> {
        let result = cell.result();
        match self {
            Self::Phase | Self::Context | Self::Level | Self::Status => None,
            Self::Value(metric) => result.and_then(metric.get),
            Self::HalfWidth(metric) => {
                result.and_then(|result| metric.interval(result)).map(|interval| interval.half_width)
            }
            Self::Samples(metric) => result.and_then(|result| metric.n(result, origin)).map(|n| n as f64),
        }
    }

    /// How two cells stand to each other in this column; `None` where one has no number, which belongs to the end
    /// whatever the direction.
    pub fn compare(self, a: &Cell, b: &Cell, origin: Option<Origin>) -> Option<Ordering> {
        match self {
            Self::Phase => Some(a.id.cmp(&b.id)),
            Self::Context => Some(a.id.context.cmp(&b.id.context)),
            Self::Level => Some(a.id.concurrency.cmp(&b.id.concurrency)),
            Self::Status => Some(a.status_label().cmp(&b.status_label())),
            _ => Some(self.number(a, origin)?.total_cmp(&self.number(b, origin)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_column_has_a_name_of_its_own_that_reads_back() {
        let all = Column::all();
        let mut keys: Vec<String> = all.iter().map(|column| column.key()).collect();
        for (column, key) in all.iter().zip(&keys) {
            assert_eq!(Column::by_key(key), Some(*column), "{key}");
        }
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.len());
        for wrong in ["", "nonsense", "ttft.ci", "total_tok_s.n", "phase.n", "TTFT"] {
            assert_eq!(Column::by_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cell_in_all_its_columns() {
        let state = sample::reference();
        let cell = state.cell("decode-8K-1".parse().unwrap()).unwrap();
        let load = state.plan.load();
        let shown: Vec<String> = Column::standard()
            .into_iter()
            .chain(["total_tok_s.ci", "ttft.n"].into_iter().filter_map(Column::by_key))
            .map(|column| format!("{}: {}", column.head(load), column.text(&state, cell)))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        Phase: Sustained decode
        Context: 8K
        Requests at once: 1
        Status: Valid
        Total tok/s: 223.5
        Per request tok/s: 222.3
        TTFT: 92 ms
        Time between tokens: 4.5 ms
        Average active requests: 1.0
        Completed requests: 1
        Output tokens: 6,702
        Measured for: 30.0 s
        Total tok/s, ± 95 %: —
        TTFT, n: —
        ");
    }
}
