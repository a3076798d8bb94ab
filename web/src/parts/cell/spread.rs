//! How the values of a cell spread: each kind on its own, as they must never be mixed.

use leptos::prelude::*;
use speedmatrix_shared::detail::distribution::Distribution;

use super::table::AsTable;
use crate::{
    chart::{
        histogram::{self, Shape},
        line::Frame,
    },
    shell::{Room, Shell},
};

const fn frame_for(room: Room) -> Frame {
    match room {
        Room::Narrow => Frame { width: 360.0, height: 190.0, left: 46.0, right: 350.0, top: 30.0, bottom: 168.0 },
        Room::Middle | Room::Wide => {
            Frame { width: 400.0, height: 190.0, left: 50.0, right: 388.0, top: 30.0, bottom: 168.0 }
        }
    }
}

/// The distributions of a cell.
#[component]
pub fn Spread(
    /// How they spread.
    distributions: Vec<Distribution>,
) -> impl IntoView {
    let shape = RwSignal::new(Shape::default());
    let button = move |this: Shape| {
        let pressed = move || (shape.get() == this).to_string();
        view! {
            <button type="button" aria-pressed=pressed on:click=move |_| shape.set(this)>{this.label()}</button>
        }
    };
    let all: Vec<_> = distributions.into_iter().map(|spread| view! { <One spread shape/> }).collect();
    (!all.is_empty()).then(|| {
        view! {
            <section class="part" aria-labelledby="spread-title" data-testid="spread">
                <header>
                    <h2 id="spread-title">"How values spread"</h2>
                    <p>"Requests that failed are in none of them."</p>
                    <div class="seg" role="group" aria-label="Shape">{Shape::ALL.map(button).collect_view()}</div>
                </header>
                <div class="spreads">{all}</div>
            </section>
        }
    })
}

#[component]
fn One(spread: Distribution, shape: RwSignal<Shape>) -> impl IntoView {
    let room = Shell::of_app().room;
    let (title, says) = (spread.kind.label(), histogram::words(&spread));
    let spread = StoredValue::new(spread);
    let unit = spread.with_value(|spread| histogram::unit(spread.kind));
    let title_with_unit = if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") };
    let counted = spread.with_value(|spread| match spread.kind.counted() {
        "tokens" => "Tokens",
        "slots" => "Slots",
        _ => "Requests",
    });
    view! {
        <figure class="chart">
            <h3>{title_with_unit}</h3>
            <figcaption>{says}</figcaption>
            {move || spread.with_value(|spread| histogram::draw(spread, shape.get(), frame_for(room.get())))}
            <AsTable
                caption=title
                columns=UnsyncCallback::new(move |()| ["From", "To", counted, "Share up to here"].map(String::from).to_vec())
                rows=UnsyncCallback::new(move |()| spread.with_value(histogram::rows))
                testid="spread-table"
            />
        </figure>
    }
}
