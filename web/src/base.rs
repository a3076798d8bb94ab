//! Where this page's agent stands on its host: at the root, or below a path behind a proxy. The agent says so in the
//! page's index; routes and addresses everywhere else begin at the agent.

use std::cell::OnceCell;

use leptos::prelude::document;

/// The attribute of the page's root element that holds the path, with a slash at its end.
const ATTRIBUTE: &str = "data-base";

thread_local! {
    static BASE: OnceCell<&'static str> = const { OnceCell::new() };
}

/// The path before all addresses of the agent, such as `/speedmatrix`; empty at the root.
pub fn base() -> &'static str {
    let read = || {
        let told = document().document_element().and_then(|root| root.get_attribute(ATTRIBUTE));
        &*told.unwrap_or_default().trim_end_matches('/').to_owned().leak()
    };
    BASE.with(|base| *base.get_or_init(read))
}

/// An address of the agent, as the browser needs it: for links and requests. The router adds the path by itself.
pub fn at(address: &str) -> String {
    format!("{}{address}", base())
}

/// The page's own address in a path of the browser, as the router's routes have it.
pub fn within(path: &str) -> &str {
    match path.strip_prefix(base()) {
        Some("") | None => "/",
        Some(own) => own,
    }
}
