//! The page of somebody whom the agent does not know: what is asked for, and a field for it.

use leptos::{ev::SubmitEvent, prelude::*};

use crate::{
    browser,
    enter::{enter, token_in},
    parts::notice::{Notice, Weight},
};

/// Asks for a link or a token. `trouble` is what became of the last one.
#[component]
pub fn EnterPage(
    /// Why the last token did not open.
    trouble: RwSignal<Option<String>>,
) -> impl IntoView {
    browser::set_title("Enter");
    let text = RwSignal::new(String::new());
    let send = move |event: SubmitEvent| {
        event.prevent_default();
        let Some(token) = token_in(&text.get_untracked()) else {
            trouble.set(Some("That is no link or token: paste the whole link that you were given.".to_owned()));
            return;
        };
        leptos::task::spawn_local(async move {
            match enter(token).await {
                Ok(()) => browser::reload(),
                Err(error) => trouble.set(Some(error)),
            }
        });
    };
    let said = move || trouble.get().map(|text| view! { <Notice weight=Weight::Bad text/> });
    view! {
        <div class="head">
            <div>
                <h1>"This agent asks who you are"</h1>
                <p class="sub">"Its operator gives you a link: to look at one run, at all of them, or to run measurements."</p>
            </div>
        </div>
        <form class="panel enter" on:submit=send data-testid="enter">
            {said}
            <div class="field">
                <label for="enter-token">"Link or token"</label>
                <input
                    id="enter-token"
                    type="password"
                    autocomplete="off"
                    prop:value=move || text.get()
                    on:input:target=move |event| text.set(event.target().value())
                />
            </div>
            <div class="btns"><button type="submit" class="btn primary">"Enter"</button></div>
        </form>
    }
}
