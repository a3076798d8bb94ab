//! The frame of a chart: its size, its axes, its grid. Curves are drawn into it.

use leptos::prelude::*;
use speedmatrix_shared::format;

use super::scale::Axis;

/// Where a chart's inner field lies, in the units of its picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
    /// Left edge of the field: room for the numbers of the value axis.
    pub left: f64,
    /// Right edge of the field: room for labels of lines.
    pub right: f64,
    /// Upper edge of the field.
    pub top: f64,
    /// Lower edge of the field.
    pub bottom: f64,
}

impl Frame {
    /// A frame with room for labels beside the lines.
    pub const fn new(width: f64, height: f64, label_room: f64) -> Self {
        Self { width, height, left: 52.0, right: width - label_room, top: 26.0, bottom: height - 40.0 }
    }

    /// The `viewBox` of the picture.
    pub fn view_box(&self) -> String {
        format!("0 0 {} {}", self.width, self.height)
    }

    /// Pixels of the horizontal axis.
    pub const fn across(&self) -> [f64; 2] {
        [self.left, self.right]
    }

    /// Pixels of the value axis, which runs upwards.
    pub const fn upwards(&self) -> [f64; 2] {
        [self.bottom, self.top]
    }
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Where, in the axis' unit.
    pub value: f64,
    /// Its text.
    pub text: String,
}

impl Tick {
    /// A mark for each value.
    pub fn each(values: impl IntoIterator<Item = f64>, show: fn(Option<f64>) -> String) -> Vec<Self> {
        values.into_iter().map(|value| Self { value, text: show(Some(value)) }).collect()
    }
}

pub use format::round_time as time_tick;

/// A guessed length of time, from seconds: whole minutes once it is over two, as more would promise too much.
pub fn roughly(secs: f64) -> String {
    let unit_s = if secs < 120.0 { 1.0 } else { 60.0 };
    time_tick(Some((secs / unit_s).round() * unit_s))
}

/// The grid with the texts of both axes.
pub fn grid(frame: Frame, [x, y]: [Axis; 2], x_ticks: &[Tick], y_ticks: &[Tick]) -> impl IntoView + use<> {
    let rows: Vec<_> = y_ticks
        .iter()
        .map(|tick| {
            let at = y.at(tick.value);
            view! {
                <line class="grid" x1=frame.left x2=frame.right y1=at y2=at></line>
                <text class="tick" x=frame.left - 8.0 y=at + 4.0 text-anchor="end">{tick.text.clone()}</text>
            }
        })
        .collect();
    let columns: Vec<_> = x_ticks
        .iter()
        .map(|tick| {
            let at = x.at(tick.value);
            view! {
                <line class="grid faint" x1=at x2=at y1=frame.top y2=frame.bottom></line>
                <text class="tick" x=at y=frame.bottom + 17.0 text-anchor="middle">{tick.text.clone()}</text>
            }
        })
        .collect();
    view! {
        {rows}
        {columns}
        <line class="base" x1=frame.left x2=frame.right y1=frame.bottom y2=frame.bottom></line>
    }
}

/// Drops ticks whose texts would touch: each needs `room` pixels.
pub fn thin_out(ticks: Vec<Tick>, axis: Axis, room: f64) -> Vec<Tick> {
    let mut kept: Vec<Tick> = Vec::with_capacity(ticks.len());
    for tick in ticks {
        let fits = kept.last().is_none_or(|last| axis.at(tick.value) - axis.at(last.value) >= room);
        if fits {
            kept.push(tick);
        } else if let Some(last) = kept.last_mut() {
            // The longest of crowded neighbours is the one people look for.
            *last = tick;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::scale::{Kind, Range};

    #[test]
    fn round_times_have_no_zero_tail() {
        let check = |secs: f64, text: &str| assert_eq!(time_tick(Some(secs)), text);
        check(0.01, "10 ms");
        check(1.0, "1 s");
        check(60.0, "1 min");
        check(3_600.0, "1 h");
        assert_eq!(roughly(757.2), "13 min");
        assert_eq!(roughly(42.3), "42 s");
    }

    #[test]
    fn crowded_ticks_keep_the_last() {
        let axis = Axis::new(Range { lo: 1.0, hi: 1_024.0 }, [0.0, 100.0], Kind::Log);
        let ticks = Tick::each([1.0, 512.0, 1_019.0, 1_024.0], format::whole);
        let kept: Vec<_> = thin_out(ticks, axis, 9.0).into_iter().map(|tick| tick.text).collect();
        assert_eq!(kept, ["1", "512", "1,024"]);
    }
}
