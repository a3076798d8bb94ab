//! Small words on what a run is: where its numbers come from and where it stands.

use leptos::prelude::*;
use speedmatrix_shared::{
    event::{Origin, RunOutcome},
    format,
    label::ImportNote,
    state::RunStatus,
};

use super::icon::{Icon, icon};

/// `Simulated ×40 clock`, `Of another tool`, or nothing for what was measured here.
pub fn origin_badge(origin: Option<Origin>) -> Option<impl IntoView + use<>> {
    let (class, picture, words) = match origin? {
        Origin::Measured => return None,
        Origin::Simulated { clock_factor } => ("badge warn", Icon::Simulated, simulated_words(clock_factor)),
        Origin::Imported => ("badge", Icon::Import, "Of another tool".to_owned()),
    };
    Some(view! { <span class=class data-testid="origin">{icon(picture)}{words}</span> })
}

fn simulated_words(clock_factor: f64) -> String {
    match clock_words(clock_factor) {
        Some(factor) => format!("Simulated ×{factor} clock"),
        None => "Simulated".into(),
    }
}

/// The clock's factor as text; `None` for a clock as fast as the one on the wall.
fn clock_words(factor: f64) -> Option<String> {
    let words = format::whole(Some(factor));
    (words != "1").then_some(words)
}

/// The sentence that stands with simulated numbers.
pub fn simulated_sentence(origin: Option<Origin>) -> Option<String> {
    let Some(Origin::Simulated { clock_factor }) = origin else { return None };
    let clock = clock_words(clock_factor).map_or_else(String::new, |factor| {
        format!(" Its clock runs {factor} times as fast as the one on the wall; all times and rates are on its clock.")
    });
    Some(format!("These numbers come from the built-in simulator, not from a real server.{clock}"))
}

/// Where a run stands, in one word.
pub const fn status_words(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::Ended { outcome } => match outcome {
            RunOutcome::Finished => "Finished",
            RunOutcome::Cancelled => "Stopped",
            RunOutcome::Failed { .. } => "Failed",
            RunOutcome::Interrupted => "Interrupted",
        },
    }
}

/// Where a run stands.
pub fn status_badge(status: &RunStatus) -> impl IntoView + use<> {
    let class = match status {
        RunStatus::Running => "badge acc",
        RunStatus::Ended { outcome } => match outcome {
            RunOutcome::Finished => "badge ok",
            RunOutcome::Cancelled => "badge",
            RunOutcome::Failed { .. } => "badge bad",
            RunOutcome::Interrupted => "badge warn",
        },
    };
    view! { <span class=class data-testid="status">{status_words(status)}</span> }
}

/// `Imported`, for a record that was made elsewhere; the file and the day are told on a closer look.
pub fn import_badge(note: Option<&ImportNote>) -> Option<impl IntoView + use<>> {
    let note = note?;
    let file = note.file.as_ref().map(|file| format!(" from {file}")).unwrap_or_default();
    let title = format!("Imported on {}{file}", format::wall_time(note.at_unix_ms));
    Some(view! { <span class="badge info" data-testid="imported" title=title>{icon(Icon::Import)}"Imported"</span> })
}

/// `Not stored yet`, for what is only in the agent's memory; why is told on a closer look.
pub fn unstored_badge(words: Option<String>) -> Option<impl IntoView + use<>> {
    let title = words?;
    Some(
        view! { <span class="badge warn" data-testid="unstored" title=title>{icon(Icon::Warning)}"Not stored yet"</span> },
    )
}

/// How many cells have something to look at.
pub fn flagged_badge(flagged: usize) -> Option<impl IntoView + use<>> {
    let noun = if flagged == 1 { "cell" } else { "cells" };
    (flagged > 0)
        .then(|| view! { <span class="badge warn">{icon(Icon::Warning)}{format!("{flagged} {noun} flagged")}</span> })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_numbers_say_so() {
        assert_eq!(simulated_words(40.0), "Simulated ×40 clock");
        assert!(
            simulated_sentence(Some(Origin::Simulated { clock_factor: 40.0 })).is_some_and(|s| s.contains("40 times"))
        );
        assert_eq!(simulated_sentence(Some(Origin::Measured)), None);
    }
}
