//! What the table of all measurements shows: its columns, its rows and their order, as they stand in the address. Pure.

use std::{cmp::Ordering, collections::BTreeMap};

use speedmatrix_shared::{
    export::column::Column,
    state::{Cell, RunState},
};

use crate::query;

/// Stands in the address for every column there is.
const EVERY: &str = "all";
/// Stands in the address for no column of numbers.
const NONE: &str = "none";

/// What rows can be chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// What the cell measures.
    Phase,
    /// Where it stands.
    Status,
    /// Its context.
    Context,
    /// Its requests at once.
    Level,
}

impl Facet {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Phase, Self::Status, Self::Context, Self::Level];

    /// Its name in the address.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Status => "status",
            Self::Context => "context",
            Self::Level => "concurrency",
        }
    }

    /// The column whose texts it chooses by.
    pub const fn column(self) -> Column {
        match self {
            Self::Phase => Column::Phase,
            Self::Status => Column::Status,
            Self::Context => Column::Context,
            Self::Level => Column::Level,
        }
    }

    /// What can be chosen in a run, in the order of its cells; what is chosen already is among it, even if no cell has it.
    pub fn options(self, state: &RunState, chosen: Option<&str>) -> Vec<String> {
        let mut cells: Vec<&Cell> = state.cells.iter().collect();
        let column = self.column();
        cells.sort_by(|a, b| column.compare(a, b, state.origin).unwrap_or(Ordering::Equal));
        let texts = cells.into_iter().map(|cell| column.text(state, cell));
        let mut options: Vec<String> = Vec::new();
        for text in texts.chain(chosen.map(ToOwned::to_owned)) {
            if !options.contains(&text) {
                options.push(text);
            }
        }
        options
    }
}

/// Which way rows are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// The least first.
    #[default]
    Ascending,
    /// The most first.
    Descending,
}

/// How rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// By which column.
    pub column: Column,
    /// Which way.
    pub direction: Direction,
}

impl Default for Order {
    fn default() -> Self {
        Self { column: Column::Phase, direction: Direction::Ascending }
    }
}

impl Order {
    /// Reads `ttft`, or `-ttft` for the most first.
    fn read(text: &str) -> Option<Self> {
        let (name, direction) = match text.strip_prefix('-') {
            Some(name) => (name, Direction::Descending),
            None => (text, Direction::Ascending),
        };
        Column::by_key(name).map(|column| Self { column, direction })
    }

    fn text(self) -> String {
        let sign = if self.direction == Direction::Descending { "-" } else { "" };
        format!("{sign}{}", self.column.key())
    }

    /// The order after a press on a column's head.
    #[must_use]
    pub fn pressed(self, column: Column) -> Self {
        let direction = match (self.column == column, self.direction) {
            (true, Direction::Ascending) => Direction::Descending,
            _ => Direction::Ascending,
        };
        Self { column, direction }
    }

    /// What `aria-sort` says of a column.
    pub fn aria(self, column: Column) -> Option<&'static str> {
        (self.column == column).then_some(match self.direction {
            Direction::Ascending => "ascending",
            Direction::Descending => "descending",
        })
    }

    /// The sign beside a column's head.
    pub fn arrow(self, column: Column) -> &'static str {
        match self.aria(column) {
            Some("ascending") => " ↑",
            Some(_) => " ↓",
            None => "",
        }
    }
}

/// What the table shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableView {
    /// Columns of numbers; `None` for those of the reference page.
    numbers: Option<Vec<Column>>,
    /// How rows are ordered.
    pub order: Order,
    /// Words that must all stand in a row.
    pub text: String,
    chosen: BTreeMap<Facet, String>,
}

impl TableView {
    /// Its names in the address.
    pub const KEYS: [&'static str; 7] = ["cols", "sort", "find", "phase", "status", "context", "concurrency"];

    /// Reads the view from the address; names that are unknown are passed over, so an old link still opens.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let numbers = get("cols").map(|text| match text.as_str() {
            EVERY => all_numbers(),
            names => in_order(&names.split(',').filter_map(Column::by_key).collect::<Vec<_>>()),
        });
        let chosen = Facet::ALL.into_iter().filter_map(|facet| Some((facet, get(facet.key())?)));
        Self {
            numbers: numbers.filter(|numbers| *numbers != standard_numbers()),
            order: get("sort").and_then(|text| Order::read(&text)).unwrap_or_default(),
            text: get("find").unwrap_or_default(),
            chosen: chosen.filter(|(_, value)| !value.is_empty()).collect(),
        }
    }

    /// The query, with its question mark; empty for the default view.
    pub fn query(&self) -> String {
        let columns = self.numbers.as_ref().map(|numbers| match numbers.as_slice() {
            [] => NONE.to_owned(),
            numbers if *numbers == all_numbers() => EVERY.to_owned(),
            numbers => numbers.iter().map(|column| column.key()).collect::<Vec<_>>().join(","),
        });
        let order = (self.order != Order::default()).then(|| self.order.text());
        let text = (!self.text.is_empty()).then(|| self.text.clone());
        let own = [("cols", columns), ("sort", order), ("find", text)];
        let mut pairs: Vec<(&str, &str)> =
            own.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
        pairs.extend(self.chosen.iter().map(|(facet, value)| (facet.key(), value.as_str())));
        query::joined(&pairs)
    }

    /// Its columns, from left to right.
    pub fn columns(&self) -> Vec<Column> {
        let numbers = self.numbers.clone().unwrap_or_else(standard_numbers);
        Column::LEADING.into_iter().chain(numbers).collect()
    }

    /// Shows or hides a column of numbers.
    pub fn toggle(&mut self, column: Column) {
        let mut numbers = self.numbers.clone().unwrap_or_else(standard_numbers);
        match numbers.iter().position(|one| *one == column) {
            Some(place) => drop(numbers.remove(place)),
            None => numbers.push(column),
        }
        let numbers = in_order(&numbers);
        self.numbers = (numbers != standard_numbers()).then_some(numbers);
    }

    /// Shows the columns of the reference page.
    pub fn show_standard(&mut self) {
        self.numbers = None;
    }

    /// Shows every column.
    pub fn show_all(&mut self) {
        self.numbers = Some(all_numbers());
    }

    /// What is chosen of a facet.
    pub fn chosen(&self, facet: Facet) -> Option<&str> {
        self.chosen.get(&facet).map(String::as_str)
    }

    /// Chooses a value; an empty one stands for all.
    pub fn choose(&mut self, facet: Facet, value: String) {
        if value.is_empty() {
            self.chosen.remove(&facet);
        } else {
            self.chosen.insert(facet, value);
        }
    }

    /// Whether rows may be left out.
    pub fn is_filtered(&self) -> bool {
        !self.text.trim().is_empty() || !self.chosen.is_empty()
    }

    /// Leaves no row out.
    pub fn show_all_rows(&mut self) {
        self.text.clear();
        self.chosen.clear();
    }

    /// The cells that are shown, in their order. Equal ones keep their natural order; those without a number go last.
    pub fn cells<'a>(&self, state: &'a RunState) -> Vec<&'a Cell> {
        self.ordered(state).into_iter().map(|(_, cell)| cell).collect()
    }

    /// The same as places among the cells of the run.
    pub fn places(&self, state: &RunState) -> Vec<usize> {
        self.ordered(state).into_iter().map(|(place, _)| place).collect()
    }

    fn ordered<'a>(&self, state: &'a RunState) -> Vec<(usize, &'a Cell)> {
        let columns = self.columns();
        let words: Vec<String> = self.text.split_whitespace().map(str::to_lowercase).collect();
        let is_shown = |cell: &Cell| self.allows(state, cell) && has_words(state, cell, &columns, &words);
        let mut cells: Vec<(usize, &Cell)> =
            state.cells.iter().enumerate().filter(|(_, cell)| is_shown(cell)).collect();
        cells.sort_by_key(|(_, cell)| cell.id);
        let Order { column, direction } = self.order;
        cells.sort_by(|(_, a), (_, b)| match (column.compare(a, b, state.origin), direction) {
            (Some(ordering), Direction::Ascending) => ordering,
            (Some(ordering), Direction::Descending) => ordering.reverse(),
            (None, _) => column.number(b, state.origin).is_some().cmp(&column.number(a, state.origin).is_some()),
        });
        cells
    }

    fn allows(&self, state: &RunState, cell: &Cell) -> bool {
        self.chosen.iter().all(|(facet, value)| facet.column().text(state, cell) == *value)
    }
}

/// Whether all words stand somewhere in what a row shows, in whatever case.
fn has_words(state: &RunState, cell: &Cell, columns: &[Column], words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let texts: Vec<String> = columns.iter().map(|column| column.text(state, cell).to_lowercase()).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}

fn standard_numbers() -> Vec<Column> {
    numbers_of(Column::standard())
}

fn all_numbers() -> Vec<Column> {
    numbers_of(Column::all())
}

fn numbers_of(columns: Vec<Column>) -> Vec<Column> {
    columns.into_iter().filter(|column| !Column::LEADING.contains(column)).collect()
}

/// Columns of numbers in the order of METRICS, each once.
fn in_order(chosen: &[Column]) -> Vec<Column> {
    all_numbers().into_iter().filter(|column| chosen.contains(column)).collect()
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    fn view(query: &str) -> TableView {
        let pairs: Vec<(&str, &str)> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        TableView::read(|key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_view_reads_back_from_the_address() {
        let check = |query: &str, back: &str| assert_eq!(view(query).query(), back, "{query}");
        check("", "");
        check("sort=-ttft&find=8K&status=Valid", "?sort=-ttft&find=8K&status=Valid");
        check("cols=ttft,total_tok_s.ci,total_tok_s", "?cols=total_tok_s,total_tok_s.ci,ttft");
        check("cols=all", "?cols=all");
        check("cols=none&sort=nonsense", "?cols=none");
        let standard = standard_numbers().iter().map(|column| column.key()).collect::<Vec<_>>().join(",");
        check(&format!("cols={standard}"), "");
    }

    #[test]
    fn columns_come_and_go() {
        let mut shown = TableView::default();
        let interval = Column::by_key("total_tok_s.ci").unwrap();
        shown.toggle(interval);
        assert_eq!((shown.columns().len(), shown.columns()[5] == interval), (13, true));
        shown.toggle(interval);
        assert_eq!(shown, TableView::default());
        shown.show_all();
        assert_eq!(shown.columns(), Column::all());
        shown.show_standard();
        assert_eq!(shown.columns(), Column::standard());
    }

    #[test]
    fn rows_are_chosen_and_sorted_and_missing_numbers_go_last() {
        let state = sample::reference();
        let check = |query: &str, count: usize, first: &str, last: &str| {
            let cells = view(query).cells(&state);
            let id = |cell: Option<&&Cell>| cell.map(|cell| cell.id.to_string()).unwrap_or_default();
            let got = (cells.len(), id(cells.first()), id(cells.last()));
            assert_eq!(got, (count, first.to_owned(), last.to_owned()), "{query}");
        };
        check("", 73, "prefill-8K-1", "decode-1019K-128");
        check("sort=-total_tok_s", 73, "prefill-16K-1", "decode-1019K-1");
        check("sort=time_between_tokens", 73, "decode-32K-1", "prefill-1024K-1");
        check("sort=-time_between_tokens", 73, "decode-1019K-128", "prefill-1024K-1");
        check("sort=status", 73, "decode-1019K-2", "decode-1019K-64");
        check("phase=Prefill&sort=-context", 9, "prefill-1024K-1", "prefill-8K-1");
        check("context=8K&concurrency=16", 1, "decode-8K-16", "decode-8K-16");
        check("find=DECODE queued", 2, "decode-1019K-2", "decode-1019K-128");
        check("find=no such words", 0, "", "");
    }

    #[test]
    fn options_are_what_there_is_in_its_order() {
        let state = sample::reference();
        let options = |facet: Facet, chosen| facet.options(&state, chosen).join(" | ");
        assert_eq!(options(Facet::Phase, None), "Prefill | Sustained decode");
        assert_eq!(options(Facet::Level, Some("3")), "1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 3");
        assert_eq!(options(Facet::Status, None), "Requests queued | Valid");
        assert!(options(Facet::Context, None).ends_with("512K | 1019K | 1024K"));
    }

    #[test]
    fn a_second_press_turns_the_order() {
        let column = Column::by_key("ttft").unwrap();
        let once = Order::default().pressed(column);
        let twice = once.pressed(column);
        assert_eq!((once.aria(column), twice.aria(column)), (Some("ascending"), Some("descending")));
        assert_eq!((once.aria(Column::Phase), twice.arrow(column)), (None, " ↓"));
    }
}
