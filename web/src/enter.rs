//! Who looks at this page. An agent that others can reach asks for a token, which comes in the fragment of a link; the
//! page trades it for a cookie that no script can read, and takes it out of the address at once.

use leptos::prelude::*;
use speedmatrix_shared::api::{self, ENTER_MARK, Enter, Info, Role};

use crate::fetch;

/// What this page may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// The agent was not asked yet; most agents let everybody act.
    #[default]
    Unknown,
    /// A token is being sent.
    Entering,
    /// Nothing: the agent asks for a token.
    None,
    /// This.
    As(Role),
}

impl Access {
    /// What the agent says.
    pub const fn told(info: &Info) -> Self {
        match info.role {
            Some(role) => Self::As(role),
            // An agent of before there were roles lets everybody act.
            None if !info.is_guarded => Self::As(Role::Operator),
            None => Self::None,
        }
    }

    /// Whether runs can be started, changed and deleted.
    pub const fn may_act(self) -> bool {
        matches!(self, Self::Unknown | Self::As(Role::Operator))
    }

    /// Whether there is anything to show.
    pub const fn may_look(self) -> bool {
        matches!(self, Self::Unknown | Self::As(_))
    }
}

/// The token in what a person was given: a link, or the token itself.
pub fn token_in(text: &str) -> Option<String> {
    let text = text.trim();
    let token = text.split_once(ENTER_MARK).map_or(text, |(_, token)| token);
    (!token.is_empty() && !token.contains(['/', ' '])).then(|| token.to_owned())
}

/// Takes the token out of this page's address, if it has one.
pub fn take_from_address() -> Option<String> {
    let place = window().location();
    let hash = place.hash().ok()?;
    let token = hash.strip_prefix('#')?.strip_prefix(ENTER_MARK)?.to_owned();
    let clean = format!("{}{}", place.pathname().ok()?, place.search().ok()?);
    if let Ok(history) = window().history() {
        // Where it can't be taken out the link still opens.
        drop(history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&clean)));
    }
    token_in(&token)
}

/// Sends the token; the answer sets the cookie.
pub async fn enter(token: String) -> Result<(), String> {
    fetch::order(api::path::ENTER, &Enter { token }).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_and_a_bare_token_open_alike() {
        let check = |text: &str, wanted: Option<&str>| assert_eq!(token_in(text).as_deref(), wanted, "{text}");
        check(" abc-_1 ", Some("abc-_1"));
        check("http://host:7878/runs/x#enter=abc", Some("abc"));
        check("http://host:7878/", None);
        check("", None);
        check("#enter=", None);
    }
}
