//! The same numbers as a table: for those who can't see a chart, and for those who want to copy them.

use leptos::prelude::*;

/// "Show as table": the rows are made when they are asked for.
#[component]
pub fn AsTable(
    /// What the table holds.
    caption: &'static str,
    /// Heads of its columns.
    columns: UnsyncCallback<(), Vec<String>>,
    /// Its rows.
    rows: UnsyncCallback<(), Vec<Vec<String>>>,
    /// Stable name for tests.
    testid: &'static str,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let table = move || {
        open.get().then(|| {
            let row = |row: Vec<String>| view! { <tr>{row.into_iter().map(|text| view! { <td>{text}</td> }).collect_view()}</tr> };
            let rows: Vec<_> = rows.run(()).into_iter().map(row).collect();
            let heads = columns.run(()).into_iter().map(|name| view! { <th scope="col">{name}</th> }).collect_view();
            view! {
                <div class="table-scroll low" tabindex="0" role="region" aria-label=caption>
                    <table class="table" data-testid=testid>
                        <caption class="sr">{caption}</caption>
                        <thead><tr>{heads}</tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            }
        })
    };
    view! {
        <div class="as-table">
            <button
                type="button"
                class="btn ghost"
                aria-expanded=move || open.get().to_string()
                data-testid=format!("{testid}-button")
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {move || if open.get() { "Hide table" } else { "Show as table" }}
            </button>
            {table}
        </div>
    }
}
