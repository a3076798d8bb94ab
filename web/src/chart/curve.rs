//! Curves over a measured axis: one line per context or one in all, and labels at the lines instead of a legend.

use leptos::prelude::*;

use super::{
    line::{Frame, Tick},
    scale::{Axis, path, spread},
};

/// A measured point.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the value axis.
    pub y: f64,
    /// What a pointer on it reads.
    pub title: String,
    /// Whether it carries a ring: requests were queued.
    pub ringed: bool,
    /// A text that stands at it; empty for none.
    pub text: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its label, at its end; empty for none.
    pub label: String,
    /// Its colour's class.
    pub class: &'static str,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Whether the field below it is filled.
    pub filled: bool,
}

/// What the value axis holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Rates; the axis begins linear.
    Rate,
    /// Seconds; the axis begins logarithmic.
    Time,
}

/// A chart's words and axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// What it is, for those who can't see it.
    pub describes: String,
    /// Word at the value axis.
    pub y_word: &'static str,
    /// Words at the horizontal axis; empty for none.
    pub x_word: &'static str,
    /// Marks at the measured points; none for an axis with round marks.
    pub x_ticks: Vec<Tick>,
    /// What the value axis holds.
    pub values: Values,
    /// Its size.
    pub frame: Frame,
}

/// Pixels beside a point that its text takes.
const TEXT_ROOM: f64 = 24.0;

/// A line with its points.
pub fn draw(curve: &Curve, [x, y]: [Axis; 2], frame: Frame) -> impl IntoView + use<> {
    let places: Vec<(f64, f64)> = curve.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    let line = path(places.iter().copied().map(Some));
    let area = match (places.first(), places.last()) {
        (Some(first), Some(last)) if curve.filled => {
            Some(format!("{line}L{:.1} {:.1}L{:.1} {:.1}Z", last.0, frame.bottom, first.0, frame.bottom))
        }
        _ => None,
    };
    let points: Vec<_> = curve
        .points
        .iter()
        .zip(&places)
        .map(|(point, &(cx, cy))| {
            let ring = point.ringed.then(|| view! { <circle class="ring" cx=cx cy=cy r=6></circle> });
            let text = (!point.text.is_empty()).then(|| {
                let anchor = anchor(cx, frame);
                // Beside a falling line there is room below, beside a rising one above.
                let before = places.iter().rev().find(|(x, _)| *x < cx - TEXT_ROOM);
                let falls = before.is_some_and(|(_, before)| *before < cy - 4.0);
                let y = if falls { cy + 19.0 } else { cy - 9.0 };
                view! { <text class="label ink" x=cx y=y text-anchor=anchor>{point.text.clone()}</text> }
            });
            view! {
                <circle class="point" cx=cx cy=cy r=3.2><title>{point.title.clone()}</title></circle>
                {ring}
                {text}
            }
        })
        .collect();
    view! {
        <g class=curve.class>
            {area.map(|area| view! { <path class="area" d=area></path> })}
            <path class="line" d=line></path>
            {points}
        </g>
    }
}

/// Texts at the edges of the field stay inside it.
fn anchor(x: f64, frame: Frame) -> &'static str {
    if x - frame.left < TEXT_ROOM {
        "start"
    } else if frame.right - x < TEXT_ROOM {
        "end"
    } else {
        "middle"
    }
}

/// Each line's name beside its last point, moved apart where they would touch.
pub fn labels(curves: &[Curve], [x, y]: [Axis; 2], frame: Frame) -> Vec<AnyView> {
    let named: Vec<(&Curve, &Point)> = curves
        .iter()
        .filter(|curve| !curve.label.is_empty())
        .filter_map(|curve| curve.points.last().map(|last| (curve, last)))
        .collect();
    let places: Vec<f64> = named.iter().map(|(_, last)| y.at(last.y)).collect();
    let places = spread(&places, 13.0, frame.bottom);
    let label = |((curve, last), place): ((&Curve, &Point), f64)| {
        let (class, text) = (format!("label {}", curve.class), curve.label.clone());
        view! { <text class=class x=x.at(last.x) + 10.0 y=place + 4.0>{text}</text> }.into_any()
    };
    named.into_iter().zip(places).map(label).collect()
}
