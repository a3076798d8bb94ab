//! The dialog in which a run gets its name, tags and notes. Who was slower than somebody else sees both and chooses.

use leptos::{
    ev::{Event, SubmitEvent},
    html,
    prelude::*,
};
use speedmatrix_shared::{
    id::RunId,
    label::{LabelPatch, Labels},
};

use super::{
    icon::{Icon, icon},
    notice::{Notice, Weight},
    run_list::RunList,
    run_menu::{Editing, Label, button_id},
};
use crate::{
    browser,
    labels::{self, SaveError},
    parts::field::capitalised,
};

/// Tags of other runs that are offered.
const MAX_OFFERED: usize = 12;

/// The dialog's texts as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Typed {
    revision: u64,
    title: String,
    tags: String,
    notes: String,
}

impl Typed {
    fn of(labels: &Labels) -> Self {
        Self {
            revision: labels.revision,
            title: labels.title.clone().unwrap_or_default(),
            tags: labels.tags.join(", "),
            notes: labels.notes.clone(),
        }
    }

    fn tags(&self) -> Vec<String> {
        self.tags.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
    }

    /// Only what differs from `from` is sent, so that the rest keeps what others write.
    fn patch(&self, from: &Self) -> LabelPatch {
        LabelPatch {
            revision: self.revision,
            title: (self.title != from.title).then(|| self.title.clone()),
            tags: (self.tags() != from.tags()).then(|| self.tags()),
            notes: (self.notes != from.notes).then(|| self.notes.clone()),
            pinned: None,
            typed: None,
        }
    }
}

/// How saving went.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Saving {
    NotYet,
    Sent,
    Changed(Box<Labels>),
    Failed(String),
}

/// The open dialog.
#[derive(Debug, Clone, Copy)]
struct Dialog {
    list: RunList,
    run: StoredValue<RunId>,
    /// What was there when the dialog opened.
    before: StoredValue<Typed>,
    typed: RwSignal<Typed>,
    saving: RwSignal<Saving>,
}

/// The dialog; it is there while `editing` names a run.
#[component]
pub fn EditDialog(
    /// The list.
    list: RunList,
    /// The run whose labels are being edited.
    editing: RwSignal<Option<Editing>>,
) -> impl IntoView {
    let place = NodeRef::<html::Dialog>::new();
    move || {
        let Editing { run, first } = editing.get()?;
        let now =
            list.listing.with_untracked(|listing| listing.runs.iter().flatten().find(|one| one.id == run).cloned())?;
        let typed = Typed::of(&now.labels);
        let dialog = Dialog {
            list,
            run: StoredValue::new(run.clone()),
            before: StoredValue::new(typed.clone()),
            typed: RwSignal::new(typed),
            saving: RwSignal::new(Saving::NotYet),
        };
        request_animation_frame(move || {
            if let Some(place) = place.get_untracked().filter(|place| !place.open()) {
                place.show_modal().ok();
            }
            browser::focus(id_of(first));
        });
        let closed = move |_| {
            editing.set(None);
            let run = run.clone();
            request_animation_frame(move || browser::focus(&button_id(&run)));
        };
        Some(view! {
            <dialog class="box edit" node_ref=place aria-labelledby="edit-title" data-testid="edit" on:close=closed>
                <header>
                    <h2 id="edit-title">"Name, tags and notes"</h2>
                    <form method="dialog">
                        <button class="btn ghost square" aria-label="Close">{icon(Icon::Cross)}</button>
                    </form>
                </header>
                <Fields dialog own_title=now.title place/>
            </dialog>
        })
    }
}

const fn id_of(label: Label) -> &'static str {
    match label {
        Label::Name => "edit-name",
        Label::Tags => "edit-tags",
        Label::Notes => "edit-notes",
    }
}

impl Dialog {
    fn save(self, place: NodeRef<html::Dialog>) {
        let (typed, run) = (self.typed.get_untracked(), self.run.get_value());
        let patch = self.before.with_value(|before| typed.patch(before));
        // The agent checks the same; here it is said without asking it.
        if let Err(error) = Labels::default().changed(&patch) {
            self.saving.set(Saving::Failed(error.to_string()));
            return;
        }
        self.saving.set(Saving::Sent);
        // What was written is saved even if the dialog is closed meanwhile.
        leptos::task::spawn_local(async move {
            match labels::save(&run, &patch).await {
                Ok(labels) => {
                    self.list.relabelled(&run, labels);
                    self.list.said.set("Saved.".into());
                    if let Some(place) = place.try_get_untracked().flatten() {
                        place.close();
                    }
                }
                Err(SaveError::Changed(now)) => self.saving.set(Saving::Changed(now)),
                Err(SaveError::Other(text)) => self.saving.set(Saving::Failed(text)),
            }
        });
    }

    /// Goes on from what somebody else saved, with the texts typed here or with theirs.
    fn go_on_from(self, now: &Labels, keep: Keep) {
        let theirs = Typed::of(now);
        self.before.set_value(theirs.clone());
        self.saving.set(Saving::NotYet);
        match keep {
            Keep::Mine => self.typed.update(|typed| typed.revision = theirs.revision),
            Keep::Theirs => self.typed.set(theirs),
        }
    }

    /// The tags of other runs that this one does not have.
    fn offered(self) -> Vec<String> {
        let has = self.typed.with(Typed::tags);
        let mut offered: Vec<String> = self.list.listing.with(|listing| {
            let tags = listing.runs.iter().flatten().flat_map(|run| run.labels.tags.iter());
            tags.filter(|tag| !has.contains(tag)).cloned().collect()
        });
        offered.sort();
        offered.dedup();
        offered.truncate(MAX_OFFERED);
        offered
    }
}

/// Whose texts stay in the dialog.
#[derive(Debug, Clone, Copy)]
enum Keep {
    Mine,
    Theirs,
}

/// A field of one line.
#[derive(Debug, Clone, Copy)]
struct LineField {
    label: Label,
    words: &'static str,
    hint: &'static str,
    /// Stable name for tests.
    testid: &'static str,
    autocapitalize: &'static str,
    text: fn(&Typed) -> &String,
    text_mut: fn(&mut Typed) -> &mut String,
}

const NAME: LineField = LineField {
    label: Label::Name,
    words: "Name",
    hint: "Leave it empty for the run's own title.",
    testid: "edit-name",
    autocapitalize: "sentences",
    text: |typed| &typed.title,
    text_mut: |typed| &mut typed.title,
};

const TAGS: LineField = LineField {
    label: Label::Tags,
    words: "Tags",
    hint: "Words to find the run by, with commas between them.",
    testid: "edit-tags-input",
    autocapitalize: "off",
    text: |typed| &typed.tags,
    text_mut: |typed| &mut typed.tags,
};

#[component]
fn Line(field: LineField, typed: RwSignal<Typed>, placeholder: String) -> impl IntoView {
    let id = id_of(field.label);
    let hint_id = format!("{id}-hint");
    view! {
        <div class="field">
            <label for=id>{field.words}</label>
            <input
                class="input"
                type="text"
                dir="auto"
                id=id
                data-testid=field.testid
                autocomplete="off"
                autocapitalize=field.autocapitalize
                placeholder=placeholder
                aria-describedby=hint_id.clone()
                prop:value=move || typed.with(|typed| (field.text)(typed).clone())
                on:input=move |event: Event| typed.update(|typed| *(field.text_mut)(typed) = event_target_value(&event))
            />
            <p class="hint" id=hint_id>{field.hint}</p>
        </div>
    }
}

#[component]
fn Fields(dialog: Dialog, own_title: String, place: NodeRef<html::Dialog>) -> impl IntoView {
    let Dialog { typed, saving, .. } = dialog;
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        dialog.save(place);
    };
    let sent = move || saving.with(|saving| *saving == Saving::Sent);
    view! {
        <form class="edit-form" on:submit=submit>
            <Line field=NAME typed placeholder=own_title/>
            <Line field=TAGS typed placeholder="driver 570, night".to_owned()/>
            <Offered dialog/>
            <div class="field">
                <label for=id_of(Label::Notes)>"Notes"</label>
                <textarea
                    class="input"
                    dir="auto"
                    rows="5"
                    id=id_of(Label::Notes)
                    data-testid="edit-notes-input"
                    prop:value=move || typed.with(|typed| typed.notes.clone())
                    on:input=move |event: Event| typed.update(|typed| typed.notes = event_target_value(&event))
                ></textarea>
            </div>
            <Trouble dialog/>
            <div class="btns">
                <button type="submit" class="btn primary" data-testid="edit-save" disabled=sent>
                    {move || if sent() { "Saving…" } else { "Save" }}
                </button>
                <button
                    type="button"
                    class="btn"
                    on:click=move |_| {
                        if let Some(place) = place.get_untracked() {
                            place.close();
                        }
                    }
                >
                    "Cancel"
                </button>
            </div>
        </form>
    }
}

#[component]
fn Offered(dialog: Dialog) -> impl IntoView {
    let offered = Memo::new(move |_| dialog.offered());
    let one = move |tag: String| {
        let words = tag.clone();
        let add = move |_| {
            dialog.typed.update(|typed| {
                let mut tags = typed.tags();
                tags.push(tag.clone());
                typed.tags = tags.join(", ");
            });
        };
        view! { <button type="button" class="chip" on:click=add>{icon(Icon::Plus)}<bdi>{words}</bdi></button> }
    };
    move || {
        let offered = offered.get();
        (!offered.is_empty()).then(|| {
            view! { <div class="chips" role="group" aria-label="Tags of other runs">{offered.into_iter().map(one).collect_view()}</div> }
        })
    }
}

#[component]
fn Trouble(dialog: Dialog) -> impl IntoView {
    move || match dialog.saving.get() {
        Saving::NotYet | Saving::Sent => ().into_any(),
        Saving::Failed(text) => {
            let text = format!("{}.", capitalised(&text));
            view! { <div data-testid="edit-error"><Notice weight=Weight::Bad text/></div> }.into_any()
        }
        Saving::Changed(now) => {
            let text = format!("Somebody else changed this run while you wrote. Now it is: {}", told(&now));
            let theirs = now.clone();
            view! {
                <div data-testid="edit-conflict">
                    <Notice weight=Weight::Bad text>
                        <button type="button" class="btn" on:click=move |_| dialog.go_on_from(&now, Keep::Mine)>
                            "Keep mine"
                        </button>
                        <button type="button" class="btn" on:click=move |_| dialog.go_on_from(&theirs, Keep::Theirs)>
                            "Take theirs"
                        </button>
                    </Notice>
                </div>
            }
            .into_any()
        }
    }
}

/// Labels in words, for who has to choose.
fn told(labels: &Labels) -> String {
    const NOTES_SHOWN: usize = 200;
    let title = labels.title.as_ref().map_or("no name".to_owned(), |title| format!("named “{title}”"));
    let tags = match labels.tags.as_slice() {
        [] => "no tags".to_owned(),
        tags => format!("tags {}", tags.join(", ")),
    };
    let start: String = labels.notes.chars().take(NOTES_SHOWN).collect();
    let more = if labels.notes.chars().count() > NOTES_SHOWN { "…" } else { "" };
    let notes = if start.is_empty() { "no notes".to_owned() } else { format!("notes “{start}{more}”") };
    format!("{title}; {tags}; {notes}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_sent() {
        let labels = Labels { revision: 3, tags: vec!["a".into(), "b".into()], notes: "n".into(), ..Labels::default() };
        let before = Typed::of(&labels);
        let typed = Typed { title: "Mine".into(), tags: " a,b ,".into(), ..before.clone() };
        let wanted = LabelPatch { revision: 3, title: Some("Mine".into()), ..LabelPatch::default() };
        assert_eq!(typed.patch(&before), wanted);
    }

    #[test]
    fn what_others_saved_is_told() {
        assert_eq!(told(&Labels::default()), "no name; no tags; no notes.");
        let labels =
            Labels { title: Some("Night".into()), tags: vec!["a".into()], notes: "x".repeat(300), ..Labels::default() };
        assert!(told(&labels).starts_with("named “Night”; tags a; notes “xxx") && told(&labels).ends_with("x…”."));
    }
}
