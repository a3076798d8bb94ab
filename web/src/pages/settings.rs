//! Who may use this agent: links to give away, and to take back.

use leptos::{ev::SubmitEvent, prelude::*};
use leptos_router::hooks::use_query_map;
use speedmatrix_shared::{
    api::{self, NewPass, Pass, Role, Shared, enter_link},
    format,
    id::RunId,
};

use crate::{
    base::at,
    browser, fetch,
    parts::{
        copy::CopyButton,
        notice::{Notice, Weight},
    },
    shell::Shell,
};

/// For how long a link may open: hours, and words.
const TIMES: [(&str, &str); 4] =
    [("24", "One day"), ("168", "One week"), ("720", "30 days"), ("", "Until it is taken back")];
/// What a link may open.
const KINDS: [(&str, &str); 3] =
    [("run", "Look at one run"), ("all", "Look at all runs"), ("operator", "Everything: start, change, delete, share")];

/// The links of this agent.
#[derive(Debug, Clone, Copy)]
struct Links {
    all: RwSignal<Vec<Pass>>,
    made: RwSignal<Option<Shared>>,
    trouble: RwSignal<Option<String>>,
}

impl Links {
    fn look(self) {
        leptos::task::spawn_local(async move {
            match fetch::get::<Vec<Pass>>(api::path::PASSES).await {
                Ok(all) => self.all.set(all),
                Err(error) => self.trouble.set(Some(error.to_string())),
            }
        });
    }

    fn make(self, asked: NewPass) {
        self.trouble.set(None);
        leptos::task::spawn_local(async move {
            match fetch::post::<Shared>(api::path::PASSES, &asked).await {
                Ok(made) => self.made.set(Some(made)),
                Err(error) => self.trouble.set(Some(error.to_string())),
            }
            self.look();
        });
    }

    fn take_back(self, number: u64) {
        self.trouble.set(None);
        leptos::task::spawn_local(async move {
            if let Err(error) = fetch::delete(&api::path::PASS.replace("{pass}", &number.to_string())).await {
                self.trouble.set(Some(error.to_string()));
            }
            self.look();
        });
    }
}

/// The page of links.
#[component]
pub fn SettingsPage() -> impl IntoView {
    browser::set_title("Sharing");
    let shell = Shell::of_app();
    let body = move || match (shell.guarded.get(), shell.access.get().may_act()) {
        (_, false) => {
            let text = "Your link allows to look. Links are given away by an operator of this agent.";
            view! { <Notice weight=Weight::Info text/> }.into_any()
        }
        (false, true) => {
            let text = "Only this machine reaches this agent, so it asks nobody who they are. Start it with --listen \
                        0.0.0.0:7878 (or --require-token, behind a proxy) to share it by links.";
            view! { <Notice weight=Weight::Info text/> }.into_any()
        }
        (true, true) => view! { <Sharing/> }.into_any(),
    };
    view! {
        <div class="head">
            <div>
                <h1>"Sharing"</h1>
                <p class="sub">"Links that open this agent to others, and what each of them allows."</p>
            </div>
        </div>
        {body}
    }
}

#[component]
fn Sharing() -> impl IntoView {
    let links = Links { all: RwSignal::new(Vec::new()), made: RwSignal::new(None), trouble: RwSignal::new(None) };
    links.look();
    let trouble = move || links.trouble.get().map(|text| view! { <Notice weight=Weight::Bad text/> });
    view! {
        {trouble}
        <NewLink links/>
        <Made links/>
        <section class="panel" aria-labelledby="links-title">
            <h2 id="links-title">"Valid links"</h2>
            <ul class="links" data-testid="links">
                {move || links.all.get().into_iter().map(|pass| view! { <Link pass links/> }).collect_view()}
            </ul>
        </section>
    }
}

#[component]
fn NewLink(links: Links) -> impl IntoView {
    let asked = use_query_map().with_untracked(|query| query.get("run")).unwrap_or_default();
    let kind = RwSignal::new(if asked.is_empty() { "all" } else { "run" }.to_owned());
    let run = RwSignal::new(asked);
    let hours = RwSignal::new(TIMES[1].0.to_owned());
    let name = RwSignal::new(String::new());
    let wants_run = Memo::new(move |_| kind.with(|kind| kind == "run"));
    let send = move |event: SubmitEvent| {
        event.prevent_default();
        let role = if kind.with_untracked(|kind| kind == "operator") { Role::Operator } else { Role::Viewer };
        let run: Option<Result<RunId, _>> = wants_run.get_untracked().then(|| run.get_untracked().trim().parse());
        match run.transpose() {
            Ok(run) => {
                let hours = hours.get_untracked().parse().ok();
                links.make(NewPass { role, run, name: name.get_untracked(), hours });
            }
            Err(error) => links.trouble.set(Some(format!("{error}: copy it from the address of the run's page."))),
        }
    };
    let options = |options: &'static [(&'static str, &'static str)], chosen: RwSignal<String>| {
        options
            .iter()
            .map(
                |&(value, words)| view! { <option value=value selected=move || chosen.get() == value>{words}</option> },
            )
            .collect_view()
    };
    view! {
        <form class="panel enter" on:submit=send data-testid="new-link">
            <h2>"A new link"</h2>
            <div class="field">
                <label for="link-kind">"It allows to"</label>
                <select id="link-kind" on:change:target=move |event| kind.set(event.target().value())>{options(&KINDS, kind)}</select>
            </div>
            {move || {
                wants_run.get().then(|| {
                    view! {
                        <div class="field">
                            <label for="link-run">"Run (the end of its address)"</label>
                            <input
                                id="link-run"
                                prop:value=move || run.get()
                                on:input:target=move |event| run.set(event.target().value())
                            />
                        </div>
                    }
                })
            }}
            <div class="field">
                <label for="link-hours">"For how long"</label>
                <select id="link-hours" on:change:target=move |event| hours.set(event.target().value())>
                    {options(&TIMES, hours)}
                </select>
            </div>
            <div class="field">
                <label for="link-name">"For whom (a name for this list)"</label>
                <input
                    id="link-name"
                    maxlength="100"
                    prop:value=move || name.get()
                    on:input:target=move |event| name.set(event.target().value())
                />
            </div>
            <div class="btns"><button type="submit" class="btn primary">"Make the link"</button></div>
        </form>
    }
}

/// The link that was just made, which is shown this once.
#[component]
fn Made(links: Links) -> impl IntoView {
    let link = Memo::new(move |_| {
        links.made.with(|made| {
            let made = made.as_ref()?;
            let place = made.pass.run.as_ref().map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"));
            let origin = window().location().origin().ok()?;
            Some(enter_link(&format!("{origin}{}", at(&place)), &made.token))
        })
    });
    let shown = move || {
        link.get().map(|text| {
            view! {
                <div class="panel" data-testid="made-link">
                    <p>"This link is shown once. Whoever has it is let in."</p>
                    <p><code class="link">{text}</code></p>
                    <div class="btns"><CopyButton label="Copy the link" text=link testid="copy-link"/></div>
                </div>
            }
        })
    };
    view! { <div role="status">{shown}</div> }
}

#[component]
fn Link(pass: Pass, links: Links) -> impl IntoView {
    let Pass { number, role, run, name, until_unix_ms, .. } = pass;
    let what = run.map_or_else(|| "all runs".to_owned(), |run| format!("run {run}"));
    let until = until_unix_ms
        .map_or_else(|| "until it is taken back".to_owned(), |at| format!("until {}", format::wall_time(at)));
    let called = if name.is_empty() { format!("Link {number}") } else { name };
    let label = format!("Take back {called}");
    view! {
        <li>
            <span><b><bdi>{called}</bdi></b>" · "{role.label()}" · "{what}" · "{until}</span>
            <button type="button" class="btn" aria-label=label on:click=move |_| links.take_back(number)>"Take back"</button>
        </li>
    }
}
