//! Lines over the time of a cell. Several such charts stand below each other on one axis.

use leptos::prelude::*;
use speedmatrix_shared::{detail::Stages, format};

use super::{
    line::{Frame, Tick, grid},
    scale::{Axis, Kind, Range, decimate, path, spread},
};
use crate::{shell::Room, zoom::Zoom};

/// Room above the field: for the words of the value axis and of the stages.
const HEAD_PX: f64 = 24.0;
/// Room below the field: for the numbers of the time axis.
const FOOT_PX: f64 = 22.0;
/// Width that the words of the value axis take.
const Y_WORD_PX: f64 = 36.0;
/// Width that the name of a stage takes.
const STAGE_WORD_PX: f64 = 48.0;

/// The frame of a chart whose field is `height` high.
pub const fn frame_for(room: Room, height: f64) -> Frame {
    let (width, left, labels) = match room {
        Room::Narrow => (360.0, 42.0, 62.0),
        Room::Middle | Room::Wide => (800.0, 52.0, 84.0),
    };
    let bottom = HEAD_PX + height;
    Frame { width, height: bottom + FOOT_PX, left, right: width - labels, top: HEAD_PX, bottom }
}

/// A line: seconds and values, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name, at its end.
    pub label: &'static str,
    /// Its look's class.
    pub class: &'static str,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// The value nearest to a moment; `None` outside of what was told.
    pub fn at(&self, at_s: f64) -> Option<f64> {
        let after = self.points.partition_point(|(x, _)| *x < at_s);
        let around = self.points.get(after.saturating_sub(1)..).unwrap_or_default().iter().take(2);
        let away = |point: &&(f64, f64)| (point.0 - at_s).abs();
        around.min_by(|a, b| away(a).total_cmp(&away(b))).map(|(_, value)| *value)
    }

    /// The points inside a part of the time and the ones next to it, so that the line reaches its edges.
    fn inside(&self, zoom: Zoom) -> &[(f64, f64)] {
        let from = self.points.partition_point(|(x, _)| *x < zoom.from_s).saturating_sub(1);
        let to = (self.points.partition_point(|(x, _)| *x <= zoom.to_s) + 1).min(self.points.len());
        self.points.get(from..to).unwrap_or_default()
    }
}

/// What a chart's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Rates or counts.
    Amount,
    /// Shares of 0–1.
    Share,
}

impl Values {
    fn ticks(self, axis: Axis) -> Vec<Tick> {
        let values = axis.ticks();
        match self {
            // Half a request is none: marks between whole numbers would all read alike.
            Self::Amount => Tick::each(values.into_iter().filter(|value| value.fract() == 0.0), format::whole),
            Self::Share => Tick::each(values, format::percent),
        }
    }
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it is, for those who can't see it.
    pub describes: &'static str,
    /// Words at the value axis.
    pub y_word: &'static str,
    /// Its lines.
    pub lines: Vec<Line>,
    /// What its values are.
    pub values: Values,
    /// From and to of times, in seconds, that are marked at its foot.
    pub held: Vec<(f64, f64)>,
    /// Its size.
    pub frame: Frame,
}

/// Marks of the time axis, with as many decimals as their distance needs.
pub fn moments(axis: Axis) -> Vec<Tick> {
    let values = axis.ticks();
    let step = values.iter().zip(values.iter().skip(1)).map(|(a, b)| b - a).next().unwrap_or(1.0);
    values.into_iter().map(|value| Tick { value, text: format::moment(value, step) }).collect()
}

impl Chart {
    fn axes(&self, zoom: Zoom) -> [Axis; 2] {
        let values = self.lines.iter().flat_map(|line| line.inside(zoom)).map(|(_, value)| *value);
        let highest = Range::of(values).map_or(0.0, |range| range.hi);
        let x = Axis::new(zoom.range(), self.frame.across(), Kind::Linear);
        // An axis of zeros alone still has a height.
        let hi = if highest > 0.0 { highest * 1.08 } else { 1.0 };
        [x, Axis::new(Range { lo: 0.0, hi }, self.frame.upwards(), Kind::Linear)]
    }

    /// The lines of a part of the time, with the stages of the cell behind them.
    pub fn draw(&self, zoom: Zoom, stages: Option<Stages>) -> impl IntoView + use<> {
        let Frame { left, right, top, bottom, .. } = self.frame;
        let [x, y] = self.axes(zoom);
        let y_ticks = self.values.ticks(y);
        let line = |line: &Line| {
            let points = line.inside(zoom).iter().map(|&(at, value)| (x.at(at), Some(y.at(value))));
            view! { <g class=line.class><path class="line thin" d=path(decimate(points))></path></g> }
        };
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        // A picture inside the picture, because it cuts off what lies outside of it.
        let (width, height) = (right - left, bottom - top);
        let field = format!("{left} {top} {width} {height}");
        let word = self.y_word;
        let held = |&(from, to): &(f64, f64)| {
            view! { <rect class="held" x=x.at(from) y=bottom - 5.0 width=(x.at(to) - x.at(from)).max(1.0) height=5.0></rect> }
        };
        let held: Vec<_> = self.held.iter().map(held).collect();
        view! {
            <svg x=left y=top width=width height=height viewBox=field.clone()>{stages.map(|stages| shades(stages, x, self.frame))}</svg>
            {grid(self.frame, [x, y], &moments(x), &y_ticks)}
            <text class="tick" x=left y=14 text-anchor="start">{word}</text>
            <svg x=left y=top width=width height=height viewBox=field>{lines}{held}</svg>
            {self.labels(zoom, y)}
        }
    }

    /// Each line's name at its right end; a single line needs none.
    fn labels(&self, zoom: Zoom, y: Axis) -> Vec<AnyView> {
        let ends: Vec<(&Line, f64)> = self
            .lines
            .iter()
            .filter(|line| !line.label.is_empty())
            .filter_map(|line| Some((line, y.at(line.inside(zoom).last()?.1))))
            .collect();
        let places: Vec<f64> = ends.iter().map(|(_, place)| *place).collect();
        let places = spread(&places, 12.0, self.frame.bottom);
        let label = |((line, _), place): ((&Line, f64), f64)| {
            let (class, text, x) = (format!("label {}", line.class), line.label, self.frame.right + 6.0);
            view! { <text class=class x=x y=place + 4.0>{text}</text> }.into_any()
        };
        ends.into_iter().zip(places).map(label).collect()
    }
}

fn shades(stages: Stages, x: Axis, frame: Frame) -> impl IntoView + use<> {
    let shade = |class: &'static str, (from, to): (f64, f64)| {
        let (from, to) = (x.at(from), x.at(to));
        view! { <rect class=class x=from y=frame.top width=(to - from).max(0.0) height=frame.bottom - frame.top></rect> }
    };
    view! { {shade("ramp-stage", stages.ramp)} {shade("window", stages.window)} }
}

/// The words over the stages, where there is room for them.
pub fn stage_words(stages: Stages, zoom: Zoom, frame: Frame) -> impl IntoView + use<> {
    let x = Axis::new(zoom.range(), frame.across(), Kind::Linear);
    let word = |text: &'static str, (from, to): (f64, f64)| {
        // At the left edge stand the words of the value axis.
        let (from, to) = (x.at(from).max(frame.left + Y_WORD_PX), x.at(to).min(frame.right));
        (to - from > STAGE_WORD_PX).then(|| {
            let middle = f64::midpoint(from, to);
            view! { <text class="tick" x=middle y=frame.top - 10.0 text-anchor="middle">{text}</text> }
        })
    };
    view! { {word("ramp", stages.ramp)} {word("window", stages.window)} }
}

/// The cross line and the part that is being marked, over the field.
pub fn overlay(zoom: Zoom, cursor: Option<f64>, marked: Option<Zoom>, frame: Frame) -> impl IntoView + use<> {
    let x = Axis::new(zoom.range(), frame.across(), Kind::Linear);
    let Frame { top, bottom, .. } = frame;
    let line = cursor.filter(|at| (zoom.from_s..=zoom.to_s).contains(at)).map(|at| {
        view! { <line class="cursor" x1=x.at(at) x2=x.at(at) y1=top y2=bottom></line> }
    });
    let mark = marked.map(|marked| {
        let (from, to) = (x.at(marked.from_s), x.at(marked.to_s));
        view! { <rect class="marked" x=from y=top width=to - from height=bottom - top></rect> }
    });
    view! { {mark} {line} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_at_its_nearest_point() {
        let line = Line { label: "", class: "", points: vec![(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)] };
        let check = |at: f64, wanted: f64| assert_eq!(line.at(at), Some(wanted), "{at}");
        check(0.0, 10.0);
        check(1.6, 20.0);
        check(2.9, 20.0);
        check(99.0, 40.0);
        assert_eq!(Line { points: Vec::new(), ..line.clone() }.at(1.0), None);
        assert_eq!(line.inside(Zoom { from_s: 1.5, to_s: 1.7 }), [(1.0, 10.0), (2.0, 20.0)]);
    }
}
