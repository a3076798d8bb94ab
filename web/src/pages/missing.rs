//! No page at this address.

use leptos::prelude::*;

use crate::{base::at, browser};

/// The page for addresses that lead nowhere.
#[component]
pub fn MissingPage() -> impl IntoView {
    browser::set_title("No such page");
    view! {
        <div class="blank" data-testid="missing">
            <h1>"There is no page at this address"</h1>
            <p>"The link may be from another version of Speedmatrix, or cut short. All runs are in the list."</p>
            <div class="btns">
                <a class="btn primary" href=at("/")>"See all runs"</a>
                <a class="btn" href=at("/new")>"Set up a run"</a>
            </div>
        </div>
    }
}
