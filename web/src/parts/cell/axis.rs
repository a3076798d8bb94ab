//! The one axis of time that several charts share: what is shown of it, the moment under the pointer, and the
//! gestures that change them.

use gloo_timers::future::TimeoutFuture;
use leptos::{
    ev::{KeyboardEvent, PointerEvent, WheelEvent},
    prelude::*,
};
use wasm_bindgen::JsCast as _;

use crate::zoom::{self, Zoom};

/// How much one step of the wheel or one press of a key shows more or less.
const ZOOM_STEP: f64 = 1.35;
/// How far one press of a key moves, as a share of what is shown.
const MOVE_STEP: f64 = 0.2;
/// Movements below this many pixels are a click.
const CLICK_PX: f64 = 4.0;
/// After this long without a further step of the wheel the address says what is shown.
const SETTLED_AFTER_MS: u32 = 250;

/// Where the axis lies on an element, as shares of its width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Its begin.
    pub left: f64,
    /// Its end.
    pub right: f64,
}

impl Field {
    /// All of the element.
    pub const WHOLE: Self = Self { left: 0.0, right: 1.0 };
}

/// What the pointer is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Drag {
    /// It marks a part to look at.
    Mark { from_s: f64, from_px: f64 },
    /// It moves what is shown.
    Move { from_px: f64, from: Zoom },
}

/// The axis.
#[derive(Debug, Clone, Copy)]
pub struct TimeAxis {
    /// All of the time that can be shown.
    pub whole: Signal<Zoom>,
    /// The part that was chosen; `None`: all.
    pub zoom: RwSignal<Option<Zoom>>,
    /// The moment under the pointer or the cross line, seconds.
    pub cursor: RwSignal<Option<f64>>,
    /// The part that is being marked.
    pub marked: RwSignal<Option<Zoom>>,
    drag: StoredValue<Option<Drag>>,
    steps: StoredValue<u32>,
    settled: UnsyncCallback<Option<Zoom>>,
}

impl TimeAxis {
    /// An axis over some time, which may grow; `settled` is told what is shown when a gesture has ended.
    pub fn new(whole: Signal<Zoom>, zoom: RwSignal<Option<Zoom>>, settled: UnsyncCallback<Option<Zoom>>) -> Self {
        let (cursor, marked) = (RwSignal::new(None), RwSignal::new(None));
        Self { whole, zoom, cursor, marked, drag: StoredValue::new(None), steps: StoredValue::new(0), settled }
    }

    /// What is shown.
    pub fn shown(&self) -> Zoom {
        zoom::shown(self.zoom.get(), self.whole.get())
    }

    /// What is shown, for who does not follow it.
    pub fn shown_now(&self) -> Zoom {
        zoom::shown(self.zoom.get_untracked(), self.whole.get_untracked())
    }

    /// Shows a part and says so in the address.
    pub fn show(&self, zoom: Option<Zoom>) {
        self.zoom.set(zoom);
        self.settled.run(zoom);
    }

    /// Shows a part now; the address follows when nothing more comes.
    fn show_for_now(&self, zoom: Option<Zoom>) {
        self.zoom.set(zoom);
        let step = self.steps.get_value().wrapping_add(1);
        self.steps.set_value(step);
        let axis = *self;
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            TimeoutFuture::new(SETTLED_AFTER_MS).await;
            if axis.steps.try_get_value() == Some(step) {
                axis.settled.run(axis.zoom.get_untracked());
            }
        });
    }

    /// The moment at a place of the page.
    fn moment(&self, event: &web_sys::MouseEvent, field: Field) -> Option<f64> {
        let element: web_sys::Element = event.current_target()?.dyn_into().ok()?;
        let place = element.get_bounding_client_rect();
        let share = (f64::from(event.client_x()) - place.left()) / place.width().max(1.0);
        let share = ((share - field.left) / (field.right - field.left)).clamp(0.0, 1.0);
        let shown = self.shown_now();
        Some(shown.from_s + share * (shown.to_s - shown.from_s))
    }

    /// A pointer goes down: it begins to mark, or with Shift to move.
    pub fn press(&self, event: &PointerEvent, field: Field) {
        if event.button() != 0 {
            return;
        }
        let Some(at_s) = self.moment(event, field) else { return };
        let from_px = f64::from(event.client_x());
        let drag = if event.shift_key() {
            Drag::Move { from_px, from: self.shown_now() }
        } else {
            Drag::Mark { from_s: at_s, from_px }
        };
        self.drag.set_value(Some(drag));
        let element = event.current_target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        if let Some(element) = element {
            // Without it the drag ends at the chart's edge: a pity, no harm.
            element.set_pointer_capture(event.pointer_id()).ok();
        }
    }

    /// A pointer moves; the moment that it points to.
    pub fn point(&self, event: &PointerEvent, field: Field) -> Option<f64> {
        let at_s = self.moment(event, field)?;
        self.cursor.set(Some(at_s));
        let now_px = f64::from(event.client_x());
        match self.drag.get_value() {
            Some(Drag::Mark { from_s, from_px }) if (now_px - from_px).abs() >= CLICK_PX => {
                self.marked.set(Zoom::between(from_s, at_s));
            }
            Some(Drag::Move { from_px, from }) => {
                let width = event.current_target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
                let width = width.map_or(1.0, |element| element.client_width().max(1).into());
                let share = (from_px - now_px) / (width * (field.right - field.left));
                if let Some(zoom) = zoom::moved(from, share, self.whole.get_untracked()) {
                    self.zoom.set(Some(zoom));
                }
            }
            _ => {}
        }
        Some(at_s)
    }

    /// A pointer goes up: what was marked is shown.
    pub fn release(&self) {
        let drag = self.drag.get_value();
        self.drag.set_value(None);
        let marked = self.marked.get_untracked();
        if marked.is_some() {
            self.marked.set(None);
            self.show(marked);
        } else if matches!(drag, Some(Drag::Move { .. })) {
            self.settled.run(self.zoom.get_untracked());
        }
    }

    /// The pointer has gone.
    pub fn leave(&self) {
        if self.drag.get_value().is_none() {
            self.cursor.set(None);
        }
    }

    /// The wheel shows more or less, sideways it moves. Up and down is the page's, unless Ctrl is held or the chart has
    /// the focus.
    pub fn wheel(&self, event: &WheelEvent, field: Field) {
        let (across, down) = (event.delta_x(), event.delta_y());
        let element = event.current_target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let focused = document().active_element();
        let is_mine = element.zip(focused).is_some_and(|(element, focused)| element.contains(Some(focused.as_ref())));
        let next = if event.shift_key() || across.abs() > down.abs() {
            let way = if event.shift_key() && across == 0.0 { down } else { across };
            zoom::moved(self.shown_now(), way.signum() * MOVE_STEP / 2.0, self.whole.get_untracked())
        } else if event.ctrl_key() || event.meta_key() || is_mine {
            let Some(at_s) = self.moment(event, field) else { return };
            zoom::scaled(self.shown_now(), at_s, ZOOM_STEP.powf(down.signum()), self.whole.get_untracked())
        } else {
            return;
        };
        event.prevent_default();
        self.show_for_now(next);
    }

    /// Keys that change what is shown; whether this was one.
    pub fn key(&self, event: &KeyboardEvent) -> bool {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return false;
        }
        let shown = self.shown_now();
        let middle = self.cursor.get_untracked().unwrap_or(f64::midpoint(shown.from_s, shown.to_s));
        let next = match (event.key().as_str(), event.shift_key()) {
            ("+" | "=", _) => zoom::scaled(shown, middle, 1.0 / ZOOM_STEP, self.whole.get_untracked()),
            ("-" | "_", _) => zoom::scaled(shown, middle, ZOOM_STEP, self.whole.get_untracked()),
            ("0", _) => None,
            ("ArrowLeft", true) => zoom::moved(shown, -MOVE_STEP, self.whole.get_untracked()),
            ("ArrowRight", true) => zoom::moved(shown, MOVE_STEP, self.whole.get_untracked()),
            _ => return false,
        };
        event.prevent_default();
        self.show_for_now(next);
        true
    }

    /// Makes sure that a moment is shown, moving as little as needed.
    pub fn bring(&self, at_s: f64) {
        let shown = self.shown_now();
        let length = shown.to_s - shown.from_s;
        let beside = if at_s < shown.from_s { at_s - shown.from_s } else { (at_s - shown.to_s).max(0.0) };
        if beside != 0.0
            && let Some(zoom) =
                zoom::moved(shown, beside / length + beside.signum() * MOVE_STEP, self.whole.get_untracked())
        {
            self.show_for_now(Some(zoom));
        }
    }
}
