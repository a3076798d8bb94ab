//! Curves as drawings: a logarithmic axis with marks at the measured points, and labels at the lines.

use super::{concat, escape};
use crate::{
    format,
    id::Phase,
    metric::{self, Metric},
    plan::Load,
    scale::{Axis, Kind, Range, path, spread, time_ticks},
    state::{Cell, RunState},
};

/// Size of a drawing and the field in it, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 60.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// Least distance of two marks, so that their texts do not touch.
const MARK_ROOM: f64 = 34.0;
/// Colours of lines, short contexts to long ones.
const COLOURS: usize = 8;

/// What the value axis holds.
#[derive(Clone, Copy)]
enum Values {
    Rate,
    Time,
}

/// A mark of the horizontal axis: place and text.
type Mark = (f64, String);

struct Point {
    x: f64,
    y: f64,
    half: Option<f64>,
}

struct Line {
    label: String,
    points: Vec<Point>,
}

struct Words {
    title: &'static str,
    across: &'static str,
}

/// Prompt tokens per second over context.
pub(super) fn prefill_rate(state: &RunState) -> String {
    prefill(state, "total_tok_s", &Words { title: "Prompt tokens per second", across: "context" }, Values::Rate)
}

/// Cold time to first token over context.
pub(super) fn prefill_time(state: &RunState) -> String {
    prefill(state, "ttft", &Words { title: "Cold time to first token", across: "context" }, Values::Time)
}

fn prefill(state: &RunState, key: &str, words: &Words, values: Values) -> String {
    let Some(metric) = metric::by_key(key) else { return String::new() };
    let mut cells: Vec<&Cell> = state.cells_of(Phase::Prefill).collect();
    cells.sort_by_key(|cell| cell.id);
    let marks: Vec<Mark> =
        cells.iter().map(|cell| (cell.id.context.tokens() as f64, cell.id.context.to_string())).collect();
    let points = cells.iter().filter_map(|cell| point(cell, metric, cell.id.context.tokens() as f64)).collect();
    draw(words, values, &marks, &[Line { label: String::new(), points }])
}

/// The decode matrix over requests at once: what all get, what one gets, how long the first and the next tokens take.
pub(super) fn decode(state: &RunState) -> String {
    let across = match state.plan.load() {
        Load::Sustained | Load::Burst { .. } => "requests at once",
        Load::Mixed { .. } => "background requests",
        Load::Open(_) => "requests per minute",
    };
    if state.plan.concurrency().len() < 2 {
        return String::new();
    }
    let chart = |title, key, values| {
        let marks: Vec<Mark> =
            state.plan.concurrency().iter().map(|level| (f64::from(level.get()), level.to_string())).collect();
        metric::by_key(key).map(|metric| draw(&Words { title, across }, values, &marks, &lines(state, metric)))
    };
    let charts = [
        chart("Total tokens per second", "total_tok_s", Values::Rate),
        chart("Tokens per second of one request", "per_request_tok_s", Values::Rate),
        chart("Time to first token", "ttft", Values::Time),
        chart("Time between tokens", "time_between_tokens", Values::Time),
    ];
    charts.into_iter().flatten().collect()
}

fn lines(state: &RunState, metric: &Metric) -> Vec<Line> {
    let line = |context: &crate::units::Context| {
        let mut cells: Vec<&Cell> = state.cells_of(Phase::Decode).filter(|cell| cell.id.context == *context).collect();
        cells.sort_by_key(|cell| cell.id);
        let points = cells.into_iter().filter_map(|cell| point(cell, metric, f64::from(cell.id.concurrency.get())));
        Line { label: context.to_string(), points: points.collect() }
    };
    state.plan.contexts().iter().map(line).collect()
}

fn point(cell: &Cell, metric: &Metric, x: f64) -> Option<Point> {
    let result = cell.result().filter(|result| !result.status.is_failed())?;
    let half = metric.interval(result).map(|interval| interval.half_width);
    Some(Point { x, y: (metric.get)(result)?, half })
}

fn draw(words: &Words, values: Values, marks: &[Mark], lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Range::of(points().map(|point| point.x).chain(marks.iter().map(|mark| mark.0)));
    let ends = points().flat_map(|point| [point.y - point.half.unwrap_or(0.0), point.y + point.half.unwrap_or(0.0)]);
    let (Some(x), Some(y), true) = (x, Range::of(ends), points().next().is_some()) else { return String::new() };
    let x = Axis::new(x, [LEFT, RIGHT], Kind::Log);
    let (y, y_marks) = value_axis(y, values);
    let body: String = lines.iter().enumerate().map(|(n, line)| curve(line, &class(n, lines.len()), x, y)).collect();
    let (grid, labels) = (grid(x, y, marks, &y_marks), labels(lines, x, y));
    let (title, across) = (escape(words.title), escape(words.across));
    format!(
        "<figure class=\"panel\"><figcaption><b>{title}</b> by {across}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} \
         {HEIGHT}\" role=\"img\" aria-label=\"{title} by {across}; the values are in the table of all \
         measurements\">{grid}{body}{labels}<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{across} (log \
         scale)</text></svg></figure>\n",
        f64::midpoint(LEFT, RIGHT),
        HEIGHT - 6.0
    )
}

fn value_axis(range: Range, values: Values) -> (Axis, Vec<Mark>) {
    match values {
        Values::Rate => {
            let range = Range { hi: range.hi * 1.1, ..range }.from_zero();
            let axis = Axis::new(range, [BOTTOM, TOP], Kind::Linear);
            let ticks = axis.ticks();
            let texts = format::marks(&ticks);
            (axis, ticks.into_iter().zip(texts).collect())
        }
        Values::Time => {
            let range = Range { lo: range.lo * 0.8, hi: range.hi * 1.25 };
            let axis = Axis::new(range, [BOTTOM, TOP], Kind::Log);
            let mark = |secs: f64| (secs, format::round_time(Some(secs)));
            (axis, time_ticks(range).into_iter().map(mark).collect())
        }
    }
}

fn class(n: usize, count: usize) -> String {
    let last = COLOURS - 1;
    format!("k{}", if count <= 1 { last / 2 } else { n * last / (count - 1) })
}

fn grid(x: Axis, y: Axis, x_marks: &[Mark], y_marks: &[Mark]) -> String {
    let row = |(value, text): &Mark| {
        let at = y.at(*value);
        format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" \
             y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            escape(text)
        )
    };
    let mut free_from = f64::MIN;
    let column = |(value, text): &Mark| {
        let at = x.at(*value);
        let words = if at >= free_from {
            free_from = at + MARK_ROOM;
            format!("<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", BOTTOM + 17.0, escape(text))
        } else {
            String::new()
        };
        format!("<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>{words}")
    };
    let rows: String = y_marks.iter().map(row).collect();
    rows + &x_marks.iter().map(column).collect::<String>()
}

fn curve(line: &Line, class: &str, x: Axis, y: Axis) -> String {
    let known: Vec<(f64, f64, f64)> =
        line.points.iter().filter_map(|point| Some((point.x, point.y, point.half?))).collect();
    let band = if known.len() > 1 {
        let upper = known.iter().map(|(at, value, half)| Some((x.at(*at), y.at(value + half))));
        let lower = known.iter().rev().map(|(at, value, half)| Some((x.at(*at), y.at(value - half))));
        format!("<path class=\"band\" d=\"{}Z\"/>", path(upper.chain(lower)))
    } else {
        String::new()
    };
    let places: Vec<(f64, f64)> = line.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    let dots = concat(places.iter().map(|(cx, cy)| format!("<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3\"/>")));
    let drawn = path(places.iter().copied().map(Some));
    format!("<g class=\"{class}\">{band}<path class=\"line\" d=\"{drawn}\"/>{dots}</g>")
}

fn labels(lines: &[Line], x: Axis, y: Axis) -> String {
    let named = lines.iter().enumerate().filter(|(_, line)| !line.label.is_empty());
    let named: Vec<(usize, &Line, &Point)> =
        named.filter_map(|(n, line)| line.points.last().map(|last| (n, line, last))).collect();
    let places: Vec<f64> = named.iter().map(|(_, _, last)| y.at(last.y)).collect();
    let places = spread(&places, 13.0, BOTTOM);
    let label = |((n, line, last), place): (&(usize, &Line, &Point), f64)| {
        let class = class(*n, lines.len());
        format!(
            "<text class=\"name {class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x.at(last.x) + 8.0,
            place + 4.0,
            escape(&line.label)
        )
    };
    named.iter().zip(places).map(label).collect()
}
