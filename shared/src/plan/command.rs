//! A plan as the command line that starts the same run.

use super::{Field, PlanDraft, RunPlan};

impl PlanDraft {
    /// Every field with its text, in the order of the form.
    pub fn fields(&self) -> [(Field, &str); 22] {
        [
            (Field::Target, &self.target),
            (Field::Model, &self.model),
            (Field::Name, &self.name),
            (Field::Contexts, &self.contexts),
            (Field::Concurrency, &self.concurrency),
            (Field::LeaveOut, &self.leave_out),
            (Field::PrefillContexts, &self.prefill_contexts),
            (Field::Duration, &self.duration),
            (Field::MaxOutput, &self.max_output),
            (Field::Prompts, &self.prompts),
            (Field::Load, &self.load),
            (Field::Slo, &self.slo),
            (Field::Corpus, &self.corpus),
            (Field::Questions, &self.questions),
            (Field::Temperature, &self.temperature),
            (Field::TopP, &self.top_p),
            (Field::EndOfText, &self.end_of_text),
            (Field::MinOutput, &self.min_output),
            (Field::Order, &self.order),
            (Field::Repeats, &self.repeats),
            (Field::ClientCheck, &self.client_check),
            (Field::Seed, &self.seed),
        ]
    }

    /// The text of one field, to be changed.
    pub const fn field_mut(&mut self, field: Field) -> &mut String {
        match field {
            Field::Target => &mut self.target,
            Field::Model => &mut self.model,
            Field::Name => &mut self.name,
            Field::Contexts => &mut self.contexts,
            Field::Concurrency => &mut self.concurrency,
            Field::LeaveOut => &mut self.leave_out,
            Field::PrefillContexts => &mut self.prefill_contexts,
            Field::Duration => &mut self.duration,
            Field::MaxOutput => &mut self.max_output,
            Field::Prompts => &mut self.prompts,
            Field::Load => &mut self.load,
            Field::Slo => &mut self.slo,
            Field::Corpus => &mut self.corpus,
            Field::Questions => &mut self.questions,
            Field::Temperature => &mut self.temperature,
            Field::TopP => &mut self.top_p,
            Field::EndOfText => &mut self.end_of_text,
            Field::MinOutput => &mut self.min_output,
            Field::Order => &mut self.order,
            Field::Repeats => &mut self.repeats,
            Field::ClientCheck => &mut self.client_check,
            Field::Seed => &mut self.seed,
        }
    }
}

/// The line to paste into a shell. Defaults are written out, so that it means the same in a later version.
pub fn command(plan: &RunPlan) -> String {
    let draft = PlanDraft::from(plan.clone());
    let fields = draft.fields();
    let told = fields.iter().filter(|(_, text)| !text.is_empty());
    let words = told.map(|(field, text)| {
        // A value that begins with a dash would be taken for a flag if it stood alone.
        let between = if text.starts_with('-') { '=' } else { ' ' };
        format!("{}{between}{}", field.flag(), quoted(text))
    });
    std::iter::once("speedmatrix run".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// One word of a POSIX shell: as it is where nothing in it has a meaning, else in single quotes.
fn quoted(text: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '=' | '@' | '%' | '+');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
