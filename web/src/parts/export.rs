//! The export menu: the run as a file.

use leptos::{ev::KeyboardEvent, prelude::*};
use speedmatrix_shared::export::ExportFormat;

use super::{
    icon::{Icon, icon},
    keys::EXPORT_BUTTON,
};
use crate::{base::at, browser};

const fn words(format: ExportFormat) -> (&'static str, &'static str) {
    match format {
        ExportFormat::Markdown => ("Markdown", "Facts and the table, for people"),
        ExportFormat::Html => ("HTML", "The report as one page that opens anywhere"),
        ExportFormat::Csv => ("CSV", "One row per cell with every number"),
        ExportFormat::Json => ("JSON", "The whole run, for programs"),
    }
}

/// A button that opens the formats.
#[component]
pub fn ExportMenu(
    /// The path that gives the run as a file.
    path: String,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let path = StoredValue::new(path);
    let close_on_escape = move |event: KeyboardEvent| {
        if event.key() == "Escape" && open.get_untracked() {
            open.set(false);
            browser::focus(EXPORT_BUTTON);
        }
    };
    let items = move || {
        let item = |format: ExportFormat| {
            let (name, says) = words(format);
            let address = format!("{}?format={}", path.get_value(), format.extension());
            view! {
                <li>
                    <a href=at(&address) rel="external" download data-testid=format!("export-{}", format.extension())>
                        {name}
                        <span>{says}</span>
                    </a>
                </li>
            }
        };
        open.get().then(|| view! { <ul>{ExportFormat::ALL.map(item).collect_view()}</ul> })
    };
    view! {
        <div class="menu" on:keydown=close_on_escape>
            <button
                type="button"
                class="btn"
                id=EXPORT_BUTTON
                data-testid="export"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {icon(Icon::Download)}
                "Export"
            </button>
            {items}
        </div>
    }
}
