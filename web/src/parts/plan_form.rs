//! The fields of the set-up page: the server, the cells, and how each is measured.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{
    api::{RunSummary, SavedTarget},
    plan::{Field, presets},
};

use super::{
    field::{Choice, FieldNote, Form, TextField, input_id},
    found::FoundHere,
    pick::{Options, Pick},
    plan_more::MoreFields,
    probe::{LookButton, Probe, ProbeCard, look},
};

/// Id of the list of models that were found.
const MODELS: &str = "models-found";

/// Which server.
#[component]
pub fn TargetFields(
    /// The form.
    form: Form,
    /// The key for the server; never leaves this page but in a request to the agent.
    api_key: RwSignal<String>,
    /// What a look brought.
    probe: RwSignal<Probe>,
    /// Servers to choose from.
    saved: RwSignal<Vec<SavedTarget>>,
    /// The runs, the latest first.
    runs: RwSignal<Vec<RunSummary>>,
    /// What can be told about it by hand.
    children: Children,
) -> impl IntoView {
    let models = move || {
        let found = probe.with(|probe| probe.facts().map(|facts| facts.models.clone()).unwrap_or_default());
        found.into_iter().map(|model| view! { <option value=model></option> }).collect_view()
    };
    view! {
        <section class="panel" aria-labelledby="step-target">
            <div class="inner">
                <h2 id="step-target"><span class="n" aria-hidden="true">"1"</span>"Server"</h2>
                <Saved form api_key probe saved/>
                <FoundHere form api_key probe saved runs/>
                <TextField
                    form
                    field=Field::Target
                    label="Address"
                    placeholder="for example http://127.0.0.1:8000"
                    hint="A server with the OpenAI API, as it is reached from the agent's host."
                >
                    <LookButton form api_key probe/>
                </TextField>
                <div class="pair">
                    <KeyField api_key/>
                    <TextField
                        form
                        field=Field::Model
                        label="Model"
                        placeholder="the first one the server offers"
                        list=MODELS
                    />
                </div>
                <datalist id=MODELS>{models}</datalist>
                <ProbeCard probe/>
                {children()}
            </div>
        </section>
    }
}

#[component]
fn Saved(
    form: Form,
    api_key: RwSignal<String>,
    probe: RwSignal<Probe>,
    saved: RwSignal<Vec<SavedTarget>>,
) -> impl IntoView {
    let chip = move |target: SavedTarget| {
        let url = target.url.clone();
        let pressed = move || (form.text(Field::Target) == url).to_string();
        let name = target.name.clone();
        let choose = move |_| {
            match target.demo_plan.clone() {
                Some(plan) => form.fill(plan),
                None => form.set(Field::Target, target.url.clone()),
            }
            look(form, api_key, probe);
        };
        view! {
            <button type="button" class="chip" data-testid="saved-target" aria-pressed=pressed on:click=choose>{name}</button>
        }
    };
    view! {
        <div class="steady">
            <div class="chips" role="group" aria-label="Known servers">
                {move || saved.get().into_iter().map(chip).collect_view()}
            </div>
        </div>
    }
}

#[component]
fn KeyField(api_key: RwSignal<String>) -> impl IntoView {
    view! {
        <div class="field">
            <label for="field-key">"Key"</label>
            <input
                class="input"
                type="password"
                id="field-key"
                data-testid="field-key"
                autocomplete="off"
                placeholder="none"
                prop:value=move || api_key.get()
                on:input=move |event: Event| api_key.set(event_target_value(&event))
                aria-describedby="note-key"
            />
            <p class="hint" id="note-key">"If the server wants a bearer key. It is kept in memory only, never stored or shown."</p>
        </div>
    }
}

/// Which cells.
#[component]
pub fn MatrixFields(
    /// The form.
    form: Form,
    /// The way to an earlier run's plan.
    from_run: AnyView,
    /// The grid that shows them.
    children: Children,
) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="step-matrix">
            <div class="inner">
                <h2 id="step-matrix"><span class="n" aria-hidden="true">"2"</span>"Cells"</h2>
                <div class="chips">
                    <Presets form/>
                    {from_run}
                </div>
                <div class="pair">
                    <TextField
                        form
                        field=Field::Contexts
                        label="Context lengths (prompt tokens)"
                        placeholder="for example 8K,16K,32K"
                        hint="K is 1,024 tokens. 8K-128K doubles, 8K-64K+8K goes in steps, 8K,16K,…,128K goes on as it began."
                    />
                    <TextField
                        form
                        field=Field::Concurrency
                        label="Requests at once (concurrency)"
                        placeholder="for example 1,2,4,8"
                        hint="Each number is a column of the matrix. 1-128 doubles."
                    />
                </div>
                <PrefillChoice form/>
                {children()}
                <TextField
                    form
                    field=Field::LeaveOut
                    label="Cells to leave out"
                    placeholder="none"
                    hint="Painted in the grid above, or typed: 64Kx128,128Kx64."
                />
            </div>
        </section>
    }
}

#[component]
fn Presets(form: Form) -> impl IntoView {
    let chip = move |preset: &'static presets::Preset| {
        let pressed = move || form.draft.with(|draft| preset.apply(draft) == *draft).to_string();
        let choose = move |_| form.fill(form.draft.with_untracked(|draft| preset.apply(draft)));
        view! {
            <button type="button" class="chip" data-testid="preset" data-preset=preset.key title=preset.about aria-pressed=pressed on:click=choose>
                {preset.label}
            </button>
        }
    };
    view! {
        <div class="chips" role="group" aria-label="Presets">{presets::PRESETS.iter().map(chip).collect_view()}</div>
    }
}

/// Where prefill rows come from, as the field's text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrefillKind {
    WarmUp,
    Cold,
    None,
}

fn prefill_kind(text: &str) -> PrefillKind {
    match text.trim() {
        "" => PrefillKind::WarmUp,
        "none" => PrefillKind::None,
        _ => PrefillKind::Cold,
    }
}

#[component]
fn PrefillChoice(form: Form) -> impl IntoView {
    let field = Field::PrefillContexts;
    let kind = Memo::new(move |_| prefill_kind(&form.text(field)));
    let chosen = move |wanted| Signal::derive(move || kind.get() == wanted);
    let write = move |text: &'static str| Callback::new(move |()| form.set(field, text.to_owned()));
    let cold = Callback::new(move |()| {
        let contexts = form.text(Field::Contexts);
        form.set(field, if contexts.trim().is_empty() { "8K".to_owned() } else { contexts });
    });
    view! {
        <fieldset class="field">
            <legend>"Prefill rows (reading the prompt)"</legend>
            <Choice
                group="prefill"
                value="warm-up"
                word="From warm-up"
                says="the request that fills the cache before the first decode cell of each context is the sample"
                chosen=chosen(PrefillKind::WarmUp)
                choose=write("")
            />
            <Choice
                group="prefill"
                value="cold"
                word="Cold requests of their own"
                says="several per context, for contexts you choose"
                chosen=chosen(PrefillKind::Cold)
                choose=cold
            />
            <Choice
                group="prefill"
                value="none"
                word="None"
                says="decode cells only"
                chosen=chosen(PrefillKind::None)
                choose=write("none")
            />
            {move || {
                (kind.get() == PrefillKind::Cold).then(|| view! { <TextField form field label="Contexts of the prefill rows"/> })
            }}
        </fieldset>
    }
}

/// How each cell is measured.
#[component]
pub fn HowFields(
    /// The form.
    form: Form,
) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="step-how">
            <div class="inner">
                <h2 id="step-how"><span class="n" aria-hidden="true">"3"</span>"How"</h2>
                <div class="triple">
                    <TextField
                        form
                        field=Field::Duration
                        label="Time per cell"
                        placeholder="30s"
                        hint="Length of the window, after the ramp."
                    />
                    <TextField
                        form
                        field=Field::MaxOutput
                        label="Max output"
                        placeholder="4096"
                        hint="Tokens of one answer."
                    />
                    <TextField form field=Field::Seed label="Seed" placeholder="0" hint="Same seed, same prompts."/>
                </div>
                <Pick form field=Field::Load group="load" legend="Load" options=LOADS/>
                <PromptChoice form/>
                <Pick form field=Field::Questions group="questions" legend="Questions" options=QUESTIONS/>
                <div class="pair">
                    <Pick form field=Field::Order group="order" legend="Order of the cells" options=ORDERS/>
                    <TextField
                        form
                        field=Field::Repeats
                        label="Measure each cell"
                        placeholder="1"
                        hint="How often: 3, or 3% until the speed is known that well, or 10,3% for both. From three times on, errors contain run-to-run variation."
                    />
                </div>
                <MoreFields form/>
                <TextField form field=Field::Name label="Name of the run" placeholder="model and hardware"/>
            </div>
        </section>
    }
}

#[component]
fn PromptChoice(form: Form) -> impl IntoView {
    let field = Field::Prompts;
    let choices = [
        ("shared", "Shared", "one document for all requests, in the cache before the cell: decoding alone is measured"),
        (
            "unique",
            "Unique",
            "a document per request slot, each in the cache before the cell: the cache must hold them all",
        ),
        (
            "mixed:50%",
            "Mixed",
            "the first part of each document is shared and in the cache, the rest is fresh: write the share below",
        ),
        ("cold", "Cold", "a fresh document per request: reading and writing compete, as with new users"),
    ];
    let choice = move |(value, word, says): (&'static str, &'static str, &'static str)| {
        let chosen = Signal::derive(move || {
            let text = form.text(field);
            let kind = |text: &str| text.trim().split(':').next().unwrap_or_default().to_owned();
            kind(&text) == kind(value) || (text.trim().is_empty() && value == "shared")
        });
        let choose = Callback::new(move |()| form.set(field, value.to_owned()));
        view! { <Choice group="prompts" value word says chosen choose/> }
    };
    let mixed = Memo::new(move |_| form.text(field).trim().starts_with("mixed"));
    view! {
        // The share's own input has the field's id and note while it is there.
        <fieldset class="field" id=move || (!mixed.get()).then(|| input_id(field)) tabindex="-1">
            <legend>"Prompts"</legend>
            {choices.map(choice).collect_view()}
            {move || {
                if mixed.get() {
                    view! { <TextField form field label="Shared part, as mixed:50%"/> }.into_any()
                } else {
                    view! { <FieldNote field hint="" errors=form.errors_of(field)/> }.into_any()
                }
            }}
        </fieldset>
    }
}

const LOADS: Options = &[
    ("sustained", "Sustained", "so many requests at once, all the time; a window is measured once all have a token"),
    ("burst:100", "Burst", "100 requests, so many at once, all completed: the time of the whole counts"),
    (
        "mixed:1K",
        "Prefill beside decode",
        "cold prompts of each context come, one at a time, while so many requests on 1K prompts decode",
    ),
    (
        "open:poisson",
        "Open loop",
        "requests come at random, whatever the server does; the columns are requests per minute",
    ),
];

const QUESTIONS: Options = &[
    ("varied", "Varied", "each request asks and samples differently, as users do"),
    ("identical", "Identical", "all ask the same: outputs go together, which flatters caches and speculation"),
];

const ORDERS: Options = &[
    ("rows", "Rows", "the first column, the first row, then row by row"),
    ("shuffled", "Shuffled", "by the seed, so that a drift of the machine is no trend"),
    ("interleaved", "Interleaved", "every cell once, then every cell again: a drift falls on all alike"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_where_prefill_rows_come_from() {
        assert_eq!(prefill_kind(" "), PrefillKind::WarmUp);
        assert_eq!(prefill_kind("none"), PrefillKind::None);
        assert_eq!(prefill_kind("8K"), PrefillKind::Cold);
    }
}
