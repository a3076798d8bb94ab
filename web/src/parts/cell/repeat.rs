//! Which measurement of a repeated cell is looked at.

use leptos::prelude::*;
use speedmatrix_shared::state::Cell;

/// How often a cell was measured: 1 where the plan asks for no repeats; `None` before the first.
pub fn measured_times(cell: &Cell) -> Option<usize> {
    cell.result().map(|_| cell.repeats.len().max(1))
}

/// A button for each measurement of a repeated cell. The last one stands in the address as nothing, as it is what a link to
/// the cell means.
#[component]
pub fn Repeats(
    /// How often the cell was measured.
    times: Memo<Option<usize>>,
    /// The chosen one, from 1; `None` is the last.
    repeat: Memo<Option<usize>>,
    /// Called with another one.
    choose: UnsyncCallback<Option<usize>>,
) -> impl IntoView {
    let button = move |of: usize, last: usize| {
        let this = (of < last).then_some(of);
        let pressed = move || (repeat.get() == this).to_string();
        let words = if this.is_none() { format!("{of}, the last") } else { of.to_string() };
        view! {
            <button type="button" aria-pressed=pressed data-repeat=of on:click=move |_| choose.run(this)>{words}</button>
        }
    };
    move || {
        times.get().filter(|times| *times > 1).map(|times| {
            view! {
                <section class="part" aria-labelledby="which-title" data-testid="which">
                    <header>
                        <h2 id="which-title">"Charts and requests of measurement"</h2>
                        <div class="seg" role="group" aria-labelledby="which-title">
                            {(1..=times).map(|of| button(of, times)).collect_view()}
                        </div>
                    </header>
                </section>
            }
        })
    }
}
