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
            <p>{move || sentences(&text.get())}</p>
            {children.map(|children| view! { <div class="btns">{children()}</div> })}
        </div>
    }
}

/// The first sentence stands out when others follow it.
fn sentences(text: &str) -> impl IntoView + use<> {
    let (lead, rest) = lead(text);
    let (lead, rest) = (lead.map(ToOwned::to_owned), rest.to_owned());
    view! {
        {lead.map(|lead| view! { <b>{lead}</b>" " })}
        {rest}
    }
}

fn lead(text: &str) -> (Option<&str>, &str) {
    match text.split_once(". ") {
        // Only what begins like a sentence is one: "e.g. 8 requests" is not.
        Some((lead, rest)) if rest.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()) => {
            (text.get(..=lead.len()), rest)
        }
        _ => (None, text),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_sentences_leads() {
        assert_eq!(lead("2 cells failed. 8K × 1 was refused."), (Some("2 cells failed."), "8K × 1 was refused."));
        assert_eq!(lead("One sentence only."), (None, "One sentence only."));
        assert_eq!(lead("it came approx. late"), (None, "it came approx. late"));
    }
}
