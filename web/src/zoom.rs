//! Which part of a stretch of time is looked at. Pure; of a cell it stands in the address as `t=12.5..20`, seconds from
//! the cell's zero.

use crate::chart::scale::Range;

/// Shortest part that can be looked at, seconds: below it the stamps of two arrivals can't be told apart.
const SHORTEST_S: f64 = 0.002;

/// A part of the time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zoom {
    /// Where it begins.
    pub from_s: f64,
    /// Where it ends; later than the begin.
    pub to_s: f64,
}

impl Zoom {
    /// The part between two moments, in either order; `None` if they are one.
    pub fn between(a_s: f64, b_s: f64) -> Option<Self> {
        let zoom = Self { from_s: a_s.min(b_s), to_s: a_s.max(b_s) };
        (zoom.from_s.is_finite() && zoom.to_s.is_finite() && zoom.to_s > zoom.from_s).then_some(zoom)
    }

    /// Reads `12.5..20`.
    pub fn read(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        let (from_s, to_s): (f64, f64) = (from.parse().ok()?, to.parse().ok()?);
        Self::between(from_s, to_s).filter(|_| (0.0..to_s).contains(&from_s))
    }

    /// As it stands in the address: milliseconds are fine enough for any screen.
    pub fn text(self) -> String {
        let number = |secs: f64| {
            let text = format!("{secs:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        format!("{}..{}", number(self.from_s), number(self.to_s))
    }

    /// As a range of an axis.
    pub const fn range(self) -> Range {
        Range { lo: self.from_s, hi: self.to_s }
    }

    const fn length_s(self) -> f64 {
        self.to_s - self.from_s
    }
}

/// The part that is shown of a whole: all of it where nothing was chosen or the choice lies beside it.
pub fn shown(zoom: Option<Zoom>, whole: Zoom) -> Zoom {
    let whole = Zoom { to_s: whole.to_s.max(whole.from_s + SHORTEST_S), ..whole };
    let inside = |zoom: Zoom| {
        let (from_s, to_s) = (zoom.from_s.max(whole.from_s), zoom.to_s.min(whole.to_s));
        (to_s > from_s).then_some(Zoom { from_s, to_s })
    };
    zoom.and_then(inside).unwrap_or(whole)
}

/// A part of another length: `factor` below 1 shows less. The moment `at_s` stays where it is.
pub fn scaled(zoom: Zoom, at_s: f64, factor: f64, whole: Zoom) -> Option<Zoom> {
    let length = (zoom.length_s() * factor).max(SHORTEST_S);
    if length >= whole.length_s() {
        return None;
    }
    let share = ((at_s - zoom.from_s) / zoom.length_s()).clamp(0.0, 1.0);
    let from_s = (at_s - share * length).clamp(whole.from_s, whole.to_s - length);
    Some(Zoom { from_s, to_s: from_s + length })
}

/// The same length, moved by a share of it and kept inside; `None` if all is shown anyway.
pub fn moved(zoom: Zoom, share: f64, whole: Zoom) -> Option<Zoom> {
    let length = zoom.length_s();
    if length >= whole.length_s() {
        return None;
    }
    let from_s = (zoom.from_s + share * length).clamp(whole.from_s, whole.to_s - length);
    Some(Zoom { from_s, to_s: from_s + length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_reads_back_from_the_address() {
        let check = |text: &str, back: Option<&str>| {
            assert_eq!(Zoom::read(text).map(Zoom::text).as_deref(), back, "{text}");
        };
        check("12.5..20", Some("12.5..20"));
        check("0..0.1255", Some("0..0.126"));
        for wrong in ["", "5", "5..", "a..b", "7..7", "9..8", "-1..3", "NaN..2", "1..inf"] {
            check(wrong, None);
        }
    }

    #[test]
    fn what_is_shown_lies_inside() {
        let check = |zoom: Option<(f64, f64)>, whole: (f64, f64), wanted: (f64, f64)| {
            let of = |(from_s, to_s)| Zoom { from_s, to_s };
            let got = shown(zoom.map(of), of(whole));
            assert_eq!((got.from_s, got.to_s), wanted, "{zoom:?}");
        };
        check(None, (0.0, 30.0), (0.0, 30.0));
        check(Some((4.0, 9.0)), (0.0, 30.0), (4.0, 9.0));
        check(Some((20.0, 99.0)), (0.0, 30.0), (20.0, 30.0));
        check(Some((40.0, 99.0)), (0.0, 30.0), (0.0, 30.0));
        // What has passed out of a moving whole is shown no more.
        check(Some((4.0, 9.0)), (5.0, 35.0), (5.0, 9.0));
        check(Some((4.0, 9.0)), (10.0, 40.0), (10.0, 40.0));
    }

    #[test]
    fn zooming_keeps_the_moment_in_its_place_and_moving_stays_inside() {
        let (ten, whole) = (Zoom { from_s: 10.0, to_s: 20.0 }, Zoom { from_s: 0.0, to_s: 30.0 });
        assert_eq!(scaled(ten, 12.0, 0.5, whole), Zoom::between(11.0, 16.0));
        assert_eq!(scaled(ten, 12.0, 9.0, whole), None);
        assert_eq!(moved(ten, 0.25, whole), Zoom::between(12.5, 22.5));
        assert_eq!(moved(ten, -9.0, whole), Zoom::between(0.0, 10.0));
        assert_eq!(moved(whole, 0.5, whole), None);
    }
}
