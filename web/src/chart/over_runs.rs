//! One number over runs: a bar for each, the oldest first.

use leptos::prelude::*;

use super::{
    line::{Frame, Tick, grid, thin_out},
    scale::{Axis, Kind, Range},
};

/// Widest bar, in the units of the picture: a few runs are no blocks.
const WIDEST: f64 = 44.0;
/// Room that a day below a bar needs, in the same units.
const DAY_ROOM: f64 = 78.0;

/// A run among others.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What the pointer reads.
    pub title: String,
    /// The day of its start.
    pub day: String,
    /// Its value; without one its place is empty.
    pub value: Option<f64>,
    /// Class in the style sheet: which run it is.
    pub class: &'static str,
}

/// The picture. `describes` says in a sentence what it shows, `y_word` what its value axis counts, and `show` writes a
/// value of that axis.
pub fn draw(
    bars: &[Bar],
    frame: Frame,
    (describes, y_word): (String, String),
    show: fn(Option<f64>) -> String,
) -> impl IntoView + use<> {
    let highest = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    let x = Axis::new(Range { lo: 0.0, hi: bars.len().max(1) as f64 }, frame.across(), Kind::Linear);
    let y = Axis::new(Range { lo: 0.0, hi: highest * 1.08 }, frame.upwards(), Kind::Linear);
    let middle = |place: usize| place as f64 + 0.5;
    let days = bars.iter().enumerate().map(|(place, bar)| Tick { value: middle(place), text: bar.day.clone() });
    let days = thin_out(days.filter(|day| !day.text.is_empty()).collect(), x, DAY_ROOM);
    let width = ((x.at(1.0) - x.at(0.0)) * 0.8).min(WIDEST);
    let drawn: Vec<_> = bars
        .iter()
        .enumerate()
        .filter_map(|(place, bar)| {
            let top = y.at(bar.value?);
            let (left, height) = (x.at(middle(place)) - width / 2.0, (frame.bottom - top).max(0.0));
            let title = bar.title.clone();
            Some(view! {
                <rect class=format!("bin run {}", bar.class) x=left y=top width=width height=height><title>{title}</title></rect>
            })
        })
        .collect();
    let y_ticks = Tick::each(y.ticks(), show);
    view! {
        <svg class="plot" viewBox=frame.view_box() role="img" aria-label=describes>
            {grid(frame, [x, y], &days, &y_ticks)}
            {drawn}
            <text class="tick" x=frame.left y=12 text-anchor="start">{y_word}</text>
        </svg>
    }
}
