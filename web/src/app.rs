//! The frame around all pages, and which page stands at which address.

use leptos::prelude::*;
use leptos_router::{
    components::{Route, Router, Routes},
    hooks::use_location,
    path,
};
use speedmatrix_shared::api::{self, Info};

use crate::{
    base, browser,
    enter::{self, Access},
    fetch::{self, FetchError},
    labels::Bin,
    pages::{
        compare::ComparePage, enter::EnterPage, missing::MissingPage, run::RunPage, runs::RunsPage,
        settings::SettingsPage, setup::SetupPage,
    },
    parts::{
        keys::Keys,
        top_bar::{OtherVersion, TopBar},
        undo::UndoBar,
    },
    shell::{Conn, Shell},
    theme,
};

/// The app.
#[component]
pub fn App() -> impl IntoView {
    let shell = Shell::opening();
    provide_context(shell);
    provide_context(Bin::new());
    theme::follow(shell.theme);
    let trouble = RwSignal::new(None);
    leptos::task::spawn_local_scoped_with_cancellation(greet(shell, trouble));
    let may_look = Memo::new(move |_| shell.access.get().may_look());
    let is_unknown = Memo::new(move |_| shell.access.get() == Access::None);
    view! {
        <Router base=base::base()>
            <a class="skip" href="#main" rel="external">"Skip to content"</a>
            <TopBar/>
            <OtherVersion/>
            <main class="page" id="main" tabindex="-1">
                <Show when=move || may_look.get()>
                    <Routes fallback=MissingPage>
                        <Route path=path!("/") view=RunsPage/>
                        <Route path=path!("/new") view=SetupPage/>
                        <Route path=path!("/compare") view=ComparePage/>
                        <Route path=path!("/settings") view=SettingsPage/>
                        <Route path=path!("/runs/:id/*rest") view=RunPage/>
                    </Routes>
                </Show>
                <Show when=move || is_unknown.get()><EnterPage trouble/></Show>
            </main>
            <FocusFollows/>
            <Keys/>
            <UndoBar/>
        </Router>
    }
}

/// Enters with the token of the address, if there is one, and asks the agent who it is, so that a page of another
/// version says so at once.
async fn greet(shell: Shell, trouble: RwSignal<Option<String>>) {
    if let Some(token) = enter::take_from_address() {
        shell.access.set(Access::Entering);
        trouble.set(enter::enter(token).await.err());
    }
    let conn = match fetch::get::<Info>(api::path::INFO).await {
        Ok(info) => return shell.learn(&info),
        Err(FetchError::Unreachable) => Conn::offline(),
        Err(_) => Conn::Outdated { agent: "unknown".into() },
    };
    shell.access.update(|access| {
        if *access == Access::Entering {
            *access = Access::Unknown;
        }
    });
    shell.conn.set(conn);
}

/// After a change of page the focus goes to its content, so that the keyboard and screen readers start there. A cell is
/// part of the page of its run, which cares for the focus itself.
#[component]
fn FocusFollows() -> impl IntoView {
    let path = use_location().pathname;
    Effect::new(move |before: Option<String>| {
        let path = path.with(|path| page_of(path).to_owned());
        if before.is_some_and(|before| before != path) {
            browser::focus_content();
        }
        path
    });
}

/// The address of a page, without the cell that it shows.
fn page_of(path: &str) -> &str {
    path.split_once("/cells/").map_or(path, |(page, _)| page)
}
