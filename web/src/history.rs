//! A view's state and the address follow each other.

use leptos::prelude::*;
use leptos_router::{NavigateOptions, hooks::use_navigate};

use crate::base::at;

/// Keeps the query of the page at `path` as `state` says, and `state` as the address says when that changes by itself,
/// as when going back. `addressed` is the state that the address tells, `query` writes one.
pub fn keep<T>(path: &'static str, state: RwSignal<T>, addressed: Memo<T>, query: fn(&T) -> String)
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    keep_at(state, addressed, query, move |query| format!("{path}{query}"));
}

/// As [`keep`], where the address holds more than this state: `address` makes the whole of it from the state's query.
pub fn keep_at<T>(
    state: RwSignal<T>,
    addressed: Memo<T>,
    query: fn(&T) -> String,
    address: impl Fn(&str) -> String + 'static,
) where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    let navigate = use_navigate();
    // Addresses that this wrote and that the router has not reported back yet: a person may have typed on since.
    let written = StoredValue::new(Vec::<String>::new());
    Effect::new(move |_| {
        let text = state.with(query);
        if text != query(&addressed.get_untracked()) {
            written.update_value(|written| written.push(text.clone()));
            // Resolved by the router, the agent's root would lose the slash at its end, and with it its route.
            let options =
                NavigateOptions { resolve: false, replace: true, scroll: false, ..NavigateOptions::default() };
            navigate(&at(&address(&text)), options);
        }
    });
    Effect::new(move |_| {
        let told = addressed.get();
        let text = query(&told);
        let own = written.try_update_value(|written| {
            let place = written.iter().position(|one| *one == text)?;
            written.drain(..=place);
            Some(place)
        });
        if own.flatten().is_none() && told != state.get_untracked() {
            state.set(told);
        }
    });
}
