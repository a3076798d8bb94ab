//! A plan as a file, written and read; and the plan of an earlier run.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{api::RunSummary, plan::PlanDraft};
use wasm_bindgen::JsCast as _;

use super::{
    field::Form,
    icon::{Icon, icon},
};

/// Largest plan file that is read, bytes: a plan with its longest name and lists has some 50 KB.
const MOST_BYTES: f64 = 262_144.0;
/// Runs whose plan can be taken, the latest first.
const RUNS_LISTED: usize = 30;

/// Writes the plan to a file, and reads one.
#[component]
pub fn PlanFiles(
    /// The form.
    form: Form,
) -> impl IntoView {
    let trouble = RwSignal::new(None::<String>);
    let address = move || form.draft.with(|draft| data_address(&text_of(draft)));
    let open = move |event: Event| {
        let input = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
        let Some(input) = input else { return };
        let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
        leptos::task::spawn_local(async move {
            let read = read(&file).await.map(|draft| form.fill(draft));
            trouble.set(read.err().map(|error| format!("{}: {error}.", file.name())));
            // So that the same file can be chosen again after it was changed.
            input.set_value("");
        });
    };
    view! {
        <div class="files">
            <a class="btn ghost" href=address rel="external" download="plan.json" data-testid="download-plan">
                {icon(Icon::Download)}
                "Download plan"
            </a>
            <label class="btn ghost">
                {icon(Icon::Import)}
                "Open plan file"
                <input type="file" accept=".json,application/json" data-testid="open-plan" on:change=open/>
            </label>
        </div>
        <div aria-live="polite">
            {move || trouble.get().map(|text| view! {
                <p class="field"><span class="error" data-testid="plan-error">{icon(Icon::Warning)}<span>{text}</span></span></p>
            })}
        </div>
    }
}

fn text_of(draft: &PlanDraft) -> String {
    serde_json::to_string_pretty(draft).expect("a plan is plain data")
}

fn data_address(text: &str) -> String {
    format!("data:application/json;charset=utf-8,{}", js_sys::encode_uri_component(text))
}

async fn read(file: &web_sys::File) -> Result<PlanDraft, String> {
    if file.size() > MOST_BYTES {
        return Err("it is larger than any plan: choose a file that \"Download plan\" wrote".to_owned());
    }
    let text = wasm_bindgen_futures::JsFuture::from(file.text()).await;
    let text = text.ok().and_then(|text| text.as_string()).ok_or("it can't be read: choose it again")?;
    plan_of(&text)
}

fn plan_of(text: &str) -> Result<PlanDraft, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("it is no plan ({error}): choose a file that \"Download plan\" wrote"))
}

/// Takes the plan of an earlier run.
#[component]
pub fn FromRun(
    /// The runs, the latest first.
    runs: RwSignal<Vec<RunSummary>>,
    /// Takes the plan of the run of this id.
    #[prop(into)]
    take: Callback<String>,
) -> impl IntoView {
    let option = |run: &RunSummary| view! { <option value=run.id.to_string()>{run.name().to_owned()}</option> };
    let options = move || runs.with(|runs| runs.iter().take(RUNS_LISTED).map(option).collect_view());
    let chosen = move |event: Event| {
        let run = event_target_value(&event);
        if !run.is_empty() {
            take.run(run);
        }
    };
    view! {
        <label class="select">
            <span class="sr">"Plan of an earlier run"</span>
            <select data-testid="from-run" on:change=chosen>
                <option value="">"From run…"</option>
                {options}
            </select>
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_file_reads_back_and_others_are_refused() {
        let draft = PlanDraft { target: "http://h:1".into(), contexts: "8K-32K".into(), ..PlanDraft::default() };
        assert_eq!(plan_of(&text_of(&draft)), Ok(draft));
        assert!(plan_of("{\"colour\": \"red\"}").unwrap_err().contains("it is no plan"));
        assert!(plan_of("[").unwrap_err().contains("it is no plan"));
    }
}
