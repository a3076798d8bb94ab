//! The bar on top of every page: where one is, how the connection stands, who else watches, colours, keys.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::{
    icon::{Icon, icon},
    keys::open_keys,
    notice::{Notice, Weight},
    operator::{ForOperator, RoleBadge},
};
use crate::{
    base::{at, within},
    browser,
    shell::{Conn, Shell},
};

/// The colour steps of the mark, row by row.
const MARK: [&str; 9] = ["q2", "q4", "q6", "q4", "q6", "q7", "q5", "q7", "q8"];

/// The bar.
#[component]
pub fn TopBar() -> impl IntoView {
    let shell = Shell::of_app();
    let path = use_location().pathname;
    let current = move |is: fn(&str) -> bool| move || path.with(|path| is(within(path))).then_some("page");
    view! {
        <header class="bar">
            <a class="brand" href=at("/") aria-label="Speedmatrix: runs">
                {mark()}
                <span>"Speedmatrix"</span>
            </a>
            <nav class="nav" aria-label="Main">
                <a href=at("/") aria-current=current(|path| path == "/" || path.starts_with("/runs"))>"Runs"</a>
                <ForOperator><a href=at("/new") aria-current=current(|path| path == "/new")>"New run"</a></ForOperator>
                <a href=at("/compare") aria-current=current(|path| path == "/compare")>"Compare"</a>
            </nav>
            <div class="right">
                <Connection/>
                <Watching/>
                <RoleBadge/>
                <button
                    type="button"
                    class="btn ghost square"
                    data-testid="theme"
                    aria-label="Switch between light and dark"
                    on:click=move |_| shell.theme.update(|theme| *theme = theme.switched())
                >
                    {icon(Icon::Moon)}
                </button>
                <button
                    type="button"
                    class="btn ghost square keys-button"
                    data-testid="keys"
                    aria-label="Keyboard shortcuts"
                    on:click=move |_| open_keys()
                >
                    <kbd>"?"</kbd>
                </button>
            </div>
        </header>
    }
}

fn mark() -> impl IntoView {
    let squares: Vec<_> = (0_u8..)
        .zip(MARK)
        .map(|(n, class)| {
            let (x, y) = (n % 3 * 8, n / 3 * 8);
            view! { <rect class=class x=x y=y width="6" height="6" rx="1.5"></rect> }
        })
        .collect();
    view! { <svg viewBox="0 0 22 22" aria-hidden="true">{squares}</svg> }
}

#[component]
fn Connection() -> impl IntoView {
    let conn = Shell::of_app().conn;
    view! {
        <span class=move || conn.with(Conn::class) role="status" data-testid="conn">
            <span class="dot" aria-hidden="true"></span>
            <span>
                {move || conn.with(Conn::word)}
                {move || conn.with(Conn::more).map(|more| view! { <span class="more">{more}</span> })}
            </span>
        </span>
    }
}

/// Offers to reload where the agent is not the one that this page came from.
#[component]
pub fn OtherVersion() -> impl IntoView {
    let shell = Shell::of_app();
    let says = Memo::new(move |_| match (shell.conn.get(), shell.newer.get()) {
        (Conn::Outdated { agent }, _) => Some((
            Weight::Warning,
            format!(
                "The agent speaks another version ({agent}) than this page ({}). What is shown is from before and \
                 stays as it is; reload to go on.",
                env!("CARGO_PKG_VERSION")
            ),
        )),
        (_, Some(agent)) => Some((
            Weight::Info,
            format!(
                "The agent is now version {agent}. This page is from {}: reload to get the one that belongs to it.",
                env!("CARGO_PKG_VERSION")
            ),
        )),
        _ => None,
    });
    let notice = move || {
        says.get().map(|(weight, text)| {
            view! {
                <Notice weight text>
                    <button type="button" class="btn" data-testid="reload" on:click=move |_| browser::reload()>
                        "Reload"
                    </button>
                </Notice>
            }
        })
    };
    view! { <div class="other-version" role="status" data-testid="other-version">{notice}</div> }
}

#[component]
fn Watching() -> impl IntoView {
    let watching = Shell::of_app().watching;
    move || {
        watching.get().map(|count| {
            view! {
                <span class="watching" data-testid="watching">{count}<span class="word">" watching"</span></span>
            }
        })
    }
}
