//! What came out, in one sentence, with its counts as filters, and what a reader must know beside it.

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{CellVerdict, Comparison},
    format,
    state::RunStatus,
};

use super::Compared;
use crate::{
    base::at,
    compare_view::{CompareView, address},
    parts::notice::{Notice, Weight},
};

/// The section.
#[component]
pub fn VerdictSection(
    /// The runs.
    compared: Compared,
) -> impl IntoView {
    let Compared { view, comparison, .. } = compared;
    let sentence = Memo::new(move |_| comparison.with(Comparison::sentence));
    let is_filtered = Memo::new(move |_| view.with(CompareView::is_filtered));
    let all = move || {
        is_filtered.get().then(|| {
            view! {
                <button type="button" class="btn ghost" data-testid="all-verdicts" on:click=move |_| view.update(CompareView::show_all)>
                    "Show all"
                </button>
            }
        })
    };
    view! {
        <section class="verdict" aria-labelledby="verdict-title">
            <h2 class="sr" id="verdict-title">"Verdict"</h2>
            <p class="verdict-line" role="status" data-testid="sentence">{move || sentence.get()}</p>
            <div class="chips" role="group" aria-label="Show only cells that are" data-testid="verdicts">
                {CellVerdict::ALL.map(|verdict| view! { <Chip compared verdict/> }).collect_view()}
                {all}
            </div>
            <Notes compared/>
        </section>
    }
}

#[component]
fn Chip(compared: Compared, verdict: CellVerdict) -> impl IntoView {
    let Compared { view, comparison, .. } = compared;
    let shown = Memo::new(move |_| comparison.with(|it| (verdict.label(it.metric), it.counts.of_verdict(verdict))));
    let is_chosen = Memo::new(move |_| view.with(|view| view.is_chosen(verdict)));
    // Of what is not there nothing can be shown; what is chosen can be taken back.
    let is_idle = move || shown.get().1 == 0 && !is_chosen.get();
    view! {
        <button
            type="button"
            class="chip"
            data-verdict=verdict.key()
            aria-pressed=move || is_chosen.get().to_string()
            disabled=is_idle
            on:click=move |_| view.update(|view| view.toggle(verdict))
        >
            <span class="glyph" aria-hidden="true">{verdict.glyph()}</span>
            <span class="word">{move || shown.get().0}</span>
            " "
            <b>{move || format::count(Some(shown.get().1 as u64))}</b>
        </button>
    }
}

/// Caveats, and the next step where nothing could be compared.
#[component]
fn Notes(compared: Compared) -> impl IntoView {
    let Compared { comparison, .. } = compared;
    let notes = Memo::new(move |_| comparison.with(|it| it.notes.clone()));
    let dead_end = Memo::new(move |_| {
        comparison.with(|it| {
            let is_over = [&it.a, &it.b].iter().all(|side| side.status != RunStatus::Running);
            (it.counts.compared() == 0 && is_over).then(|| address(it.a.id.as_str(), ""))
        })
    });
    let note = |text: String| view! { <Notice weight=Weight::Info text/> };
    let next = move || {
        dead_end.get().map(|address| {
            let text = "No cell has a value in both runs. Compare by another number, or with a run of the same contexts \
                        and requests at once.";
            view! {
                <Notice weight=Weight::Warning text=text.to_owned()>
                    <a class="btn" href=at(&address)>"Choose another run"</a>
                </Notice>
            }
        })
    };
    view! {
        <div class="caveats" data-testid="caveats">
            {move || notes.get().into_iter().map(note).collect_view()}
            {next}
        </div>
    }
}
