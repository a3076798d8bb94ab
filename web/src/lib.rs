//! The browser app: set up, watch and read runs. It listens to the agent and draws; what a run is, and every number
//! as text, comes from the shared crate.

pub mod app;
pub mod base;
pub mod browser;
pub mod chart;
pub mod compare_view;
pub mod enter;
pub mod fetch;
pub mod filter;
pub mod history;
pub mod labels;
pub mod live;
pub mod opening;
pub mod pages;
pub mod parts;
pub mod query;
pub mod shell;
pub mod table_view;
pub mod theme;
pub mod zoom;

/// Puts the app into the page, in place of the "Loading" line.
pub fn start() {
    console_error_panic_hook::set_once();
    browser::remove("boot");
    leptos::mount::mount_to_body(app::App);
}
