//! Notices: what is so, and the next step.

use leptos::prelude::*;

use super::icon::{Icon, icon};

/// How a notice weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something failed.
    Bad,
}

impl Weight {
    const fn class(self) -> &'static str {
        match self {
            Self::Info => "notice info",
            Self::Warning => "notice warn",
            Self::Bad => "notice bad",
        }
    }

    const fn icon(self) -> Icon {
        match self {
            Self::Info => Icon::Info,
            Self::Warning => Icon::Warning,
            Self::Bad => Icon::Cross,
        }
    }
}

/// One sentence with its weight, and what can be done about it.
#[component]
pub fn Notice(
    /// How it weighs.
    weight: Weight,
    /// What is so.
    #[prop(into)]
    text: Signal<String>,
    /// Buttons or links.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class=weight.class() role=(weight == Weight::Bad).then_some("alert") data-testid="notice">
            {icon(weight.icon())}
            <p>{move || text.get()}</p>
            {children.map(|children| view! { <div class="btns">{children()}</div> })}
        </div>
    }
}

/// "Loading …" while nothing is there yet.
#[component]
pub fn Loading(
    /// What is loading.
    what: &'static str,
) -> impl IntoView {
    view! { <p class="loading" role="status"><span class="dot" aria-hidden="true"></span>{format!("Loading {what}…")}</p> }
}
