//! Search and filters above the list of runs, and what is shown when nothing is left.

use leptos::{ev::Event, prelude::*};
use leptos_router::hooks::use_query_map;

use super::{
    icon::{Icon, icon},
    keys::SEARCH,
    run_list::RunList,
};
use crate::{
    browser,
    filter::{Facet, RunFilter},
    history,
};

/// The filter of this page, which the address follows.
pub fn in_address() -> RwSignal<RunFilter> {
    let query = use_query_map();
    let addressed = Memo::new(move |_| query.with(|query| RunFilter::read(|key| query.get(key))));
    let filter = RwSignal::new(addressed.get_untracked());
    history::keep("/", filter, addressed, RunFilter::query);
    filter
}

/// The search field and the filters for which there is something to choose.
#[component]
pub fn Filters(
    /// The list.
    list: RunList,
    /// What is searched and chosen.
    filter: RwSignal<RunFilter>,
    /// How many runs are shown, of all.
    counts: Memo<(usize, usize)>,
) -> impl IntoView {
    let open = RwSignal::new(filter.with_untracked(|filter| filter.count() > 0));
    let chosen = Memo::new(move |_| filter.with(RunFilter::count));
    let words = move || match chosen.get() {
        0 => "Filters".to_owned(),
        count => format!("Filters ({count})"),
    };
    let reset = move || {
        let shown = filter.with(|filter| !filter.is_empty());
        shown.then(|| {
            let reset = move |_| clear(filter);
            view! { <button type="button" class="btn ghost" data-testid="clear-filter" on:click=reset>"Clear"</button> }
        })
    };
    view! {
        <div class="filters" role="search" aria-label="Search and filter runs" data-testid="filters">
            <div class="search">
                {icon(Icon::Look)}
                <input
                    class="input"
                    type="search"
                    dir="auto"
                    id=SEARCH
                    data-testid="search"
                    aria-label="Search runs"
                    placeholder="Search names, tags, notes, engines…"
                    autocomplete="off"
                    spellcheck="false"
                    prop:value=move || filter.with(|filter| filter.text.clone())
                    on:input=move |event: Event| filter.update(|filter| filter.text = event_target_value(&event))
                />
                <kbd aria-hidden="true">"/"</kbd>
            </div>
            <button
                type="button"
                class="btn filters-toggle"
                data-testid="filters-toggle"
                aria-expanded=move || open.get().to_string()
                aria-controls="facets"
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {words}
            </button>
            <div class="facets" class:open=open id="facets">
                {Facet::ALL.map(|facet| view! { <Choose list filter facet/> }).collect_view()}
                {reset}
            </div>
            <p class="count" role="status" data-testid="count">{move || count_words(counts.get())}</p>
        </div>
    }
}

/// Shows everything again and goes on where one searches.
pub fn clear(filter: RwSignal<RunFilter>) {
    filter.set(RunFilter::default());
    browser::focus(SEARCH);
}

fn count_words((shown, all): (usize, usize)) -> String {
    let noun = if all == 1 { "run" } else { "runs" };
    if shown == all { format!("{all} {noun}") } else { format!("{shown} of {all} {noun}") }
}

#[component]
fn Choose(list: RunList, filter: RwSignal<RunFilter>, facet: Facet) -> impl IntoView {
    let chosen = Memo::new(move |_| filter.with(|filter| filter.chosen(facet).map(ToOwned::to_owned)));
    let options = Memo::new(move |_| {
        let chosen = chosen.get();
        list.listing.with(|listing| facet.options(listing.runs.as_deref().unwrap_or_default(), chosen.as_deref()))
    });
    // One value that all runs share is no choice.
    let is_choice =
        Memo::new(move |_| options.with(Vec::len) > 1 || chosen.with(Option::is_some) || has_tags(facet, options));
    let option = move |(value, words): (String, String)| {
        let own = value.clone();
        let selected = move || chosen.with(|chosen| chosen.as_ref() == Some(&own));
        view! { <option value=value prop:selected=selected>{words}</option> }
    };
    move || {
        is_choice.get().then(|| {
            view! {
                <label class="select">
                    {facet.label()}
                    <select
                        data-testid=format!("filter-{}", facet.key())
                        on:change=move |event| filter.update(|filter| filter.choose(facet, event_target_value(&event)))
                    >
                        <option value="" prop:selected=move || chosen.with(Option::is_none)>"All"</option>
                        {move || options.get().into_iter().map(option).collect_view()}
                    </select>
                </label>
            }
        })
    }
}

/// A single tag is a choice already: most runs do not have it.
fn has_tags(facet: Facet, options: Memo<Vec<(String, String)>>) -> bool {
    facet == Facet::Tag && options.with(|options| !options.is_empty())
}

/// Nothing is left of the list.
#[component]
pub fn NoMatch(
    /// What is searched and chosen.
    filter: RwSignal<RunFilter>,
) -> impl IntoView {
    view! {
        <div class="no-match panel" data-testid="no-match">
            <h2>"No run matches"</h2>
            <p>{move || filter.with(|filter| format!("Looked for {}.", filter.words()))}</p>
            <button type="button" class="btn primary" data-testid="reset" on:click=move |_| clear(filter)>"Show all runs"</button>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_says_how_many_of_all() {
        assert_eq!(count_words((1, 1)), "1 run");
        assert_eq!(count_words((3, 12)), "3 of 12 runs");
    }
}
