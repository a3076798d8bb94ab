//! Opening a cell from a link on the page of a run: what the page shows stays in the address, and closing the cell leads
//! back to the link.

use leptos::{ev::MouseEvent, prelude::*};
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate},
};
use speedmatrix_shared::id::CellId;
use wasm_bindgen::JsCast as _;

use crate::{base::within, query};

/// Where on the page the cell was opened that is open now: the stable name of a table; `None` for the matrix.
#[derive(Debug, Clone, Copy)]
pub struct CameFrom(StoredValue<Option<&'static str>>);

impl CameFrom {
    /// For all parts of the page of a run.
    pub fn provide() -> Self {
        let from = Self(StoredValue::new(None));
        provide_context(from);
        from
    }

    /// What has the focus again when `cell` is closed.
    pub fn way_back(self, cell: &str) -> String {
        let from = self.0.try_update_value(Option::take).flatten();
        match from {
            Some(table) => format!("[data-testid={table}] a[data-opens=\"{cell}\"]"),
            None => format!("td[data-cell=\"{cell}\"][tabindex], a[data-opens=\"{cell}\"]"),
        }
    }
}

/// What a click on a table called `table` does: a plain one on a link to a cell opens it over the page as it is. Others
/// are left to the browser, as for a new tab.
pub fn open_from(table: &'static str) -> impl Fn(MouseEvent) {
    let navigate = use_navigate();
    let search = use_location().search;
    let from: Option<CameFrom> = use_context();
    move |event: MouseEvent| {
        let is_plain = !(event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key());
        let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let link = target.and_then(|target| target.closest("a[data-opens]").ok().flatten());
        let Some(link) = link.filter(|_| is_plain && event.button() == 0) else { return };
        let is_cell = link.get_attribute("data-opens").is_some_and(|cell| cell.parse::<CellId>().is_ok());
        let Some(address) = link.get_attribute("href").filter(|_| is_cell) else { return };
        event.prevent_default();
        if let Some(CameFrom(from)) = from {
            from.set_value(Some(table));
        }
        let path = address.split('?').next().unwrap_or_default();
        let address = format!("{path}{}", query::without(&search.get_untracked(), &["t"]));
        navigate(within(&address), NavigateOptions { scroll: false, ..NavigateOptions::default() });
    }
}
