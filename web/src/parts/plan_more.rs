//! What few runs change: sampling, bounds of a good request, a text of one's own, the client check. Folded away while all
//! of it is as it is by default.

use leptos::prelude::*;
use speedmatrix_shared::plan::{Field, PlanDraft};

use super::{
    field::{Form, TextField},
    pick::{Options, Pick},
};

/// The fields in here.
const FIELDS: [Field; 7] = [
    Field::Slo,
    Field::Corpus,
    Field::Temperature,
    Field::TopP,
    Field::EndOfText,
    Field::MinOutput,
    Field::ClientCheck,
];

const ENDS: Options = &[
    ("ignore", "At the limit", "every answer runs to its limit, so that a window holds decoding, not restarts"),
    ("stop", "Where the model ends it", "as with real users: answers differ in length"),
];

const CHECKS: Options = &[
    ("run", "Check", "some seconds against the built-in simulator tell how exact this client's times are"),
    ("skip", "Skip", "start at once: times have no certified bound"),
];

/// Whether a field says something, or something is wrong with it.
fn speaks(draft: &PlanDraft) -> bool {
    draft.fields().into_iter().any(|(field, text)| FIELDS.contains(&field) && !text.trim().is_empty())
}

/// The fields, behind a line that opens them.
#[component]
pub fn MoreFields(
    /// The form.
    form: Form,
) -> impl IntoView {
    let wrong = move || form.shown_problems().iter().any(|problem| FIELDS.contains(&problem.field));
    // It opens by itself where there is something to see, and stays as a person leaves it otherwise.
    let opened = Memo::new(move |_| form.draft.with(speaks) || wrong());
    view! {
        <details class="more" data-testid="more-options" open=move || opened.get()>
            <summary>"More: bounds, own text, sampling, client check"</summary>
            <div class="pair">
                <TextField
                    form
                    field=Field::Slo
                    label="Bounds of a good request (SLO)"
                    placeholder="for example ttft:500ms,tpot:50ms"
                    hint="Requests that keep them all per second are the goodput. Also e2e:10s."
                />
                <TextField
                    form
                    field=Field::Corpus
                    label="Own text for the prompts (corpus)"
                    placeholder="for example novel.txt"
                    hint="A file in the folder corpora beside the agent's store. Empty: seeded text."
                />
            </div>
            <div class="triple">
                <TextField
                    form
                    field=Field::Temperature
                    label="Temperature"
                    placeholder="1"
                    hint="\"server\" leaves it to the server."
                />
                <TextField form field=Field::TopP label="Top-p" placeholder="the server's" hint="Above 0, at most 1."/>
                <TextField
                    form
                    field=Field::MinOutput
                    label="Min output"
                    placeholder="none"
                    hint="Fewest tokens of one answer."
                />
            </div>
            <div class="pair">
                <Pick form field=Field::EndOfText group="end-of-text" legend="An answer ends" options=ENDS/>
                <Pick form field=Field::ClientCheck group="client-check" legend="Client check" options=CHECKS/>
            </div>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fold_opens_where_it_says_something() {
        assert!(!speaks(&PlanDraft::default()));
        assert!(speaks(&PlanDraft { slo: "ttft:1s".into(), ..PlanDraft::default() }));
        assert!(!speaks(&PlanDraft { seed: "7".into(), ..PlanDraft::default() }));
    }
}
