//! Parts of a page that are drawn after what stands above them is on the screen.

use std::time::Duration;

use leptos::prelude::*;

/// Draws what is in it in a task of its own, after the browser has shown the rest: charts and a table of 1,000 cells take as
/// long to build as all that is above them.
#[component]
pub fn Later(
    /// What is drawn then.
    children: ChildrenFn,
) -> impl IntoView {
    let is_time = RwSignal::new(false);
    // The first frame shows the page without it; the task after that frame draws it.
    request_animation_frame(move || {
        let draw = move || {
            // The page may have been left.
            is_time.try_set(true);
        };
        set_timeout(draw, Duration::ZERO);
    });
    move || is_time.get().then(|| children())
}
