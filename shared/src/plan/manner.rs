//! How cells are measured, beside which cells: read from a draft together, so that every error is told at once.

use super::{
    CellOrder, CheckClient, CorpusName, Field, Load, PlanDraft, PromptMode, Questions, Repeats, Sampling, Slo,
    draft::Reading, sampling,
};

/// Everything about how cells are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) load: Load,
    pub(super) slo: Option<Slo>,
    pub(super) prompts: PromptMode,
    pub(super) corpus: Option<CorpusName>,
    pub(super) questions: Questions,
    pub(super) sampling: Sampling,
    pub(super) order: CellOrder,
    pub(super) repeats: Repeats,
    pub(super) check_client: CheckClient,
}

impl Manner {
    /// Reads all of it; `max_output_tokens` is the plan's, if that could be read.
    pub(super) fn read(reading: &mut Reading, draft: &PlanDraft, max_output_tokens: Option<u32>) -> Option<Self> {
        let load = reading.take(Field::Load, draft.load.parse());
        let slo = reading.optional(Field::Slo, &draft.slo);
        let prompts = reading.take(Field::Prompts, draft.prompts.parse());
        let corpus = reading.optional(Field::Corpus, &draft.corpus);
        let questions = reading.take(Field::Questions, draft.questions.parse());
        let sampling = read_sampling(reading, draft, max_output_tokens);
        let order = reading.take(Field::Order, draft.order.parse());
        let repeats = reading.take(Field::Repeats, Repeats::read(&draft.repeats));
        let check_client = reading.take(Field::ClientCheck, draft.client_check.parse());
        Some(Self {
            load: load?,
            slo,
            prompts: prompts?,
            corpus,
            questions: questions?,
            sampling: sampling?,
            order: order?,
            repeats: repeats?,
            check_client: check_client?,
        })
    }

    /// As it is typed; nothing that differs from an empty field's meaning is left out.
    pub(super) fn write(&self, draft: &mut PlanDraft) {
        draft.load = self.load.to_string();
        draft.slo = self.slo.map(|slo| slo.to_string()).unwrap_or_default();
        draft.prompts = self.prompts.to_string();
        draft.corpus = self.corpus.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default();
        draft.questions = self.questions.to_string();
        draft.temperature = sampling::written(self.sampling.temperature);
        draft.top_p = sampling::written(self.sampling.top_p);
        draft.min_output = self.sampling.min_output_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
        draft.end_of_text = self.sampling.end_of_text.to_string();
        draft.order = self.order.to_string();
        draft.repeats = self.repeats.to_string();
        draft.client_check = self.check_client.to_string();
    }
}

fn read_sampling(reading: &mut Reading, draft: &PlanDraft, max_output_tokens: Option<u32>) -> Option<Sampling> {
    let temperature = reading.take(Field::Temperature, sampling::read_temperature(&draft.temperature));
    let top_p = reading.take(Field::TopP, sampling::read_top_p(&draft.top_p));
    let end_of_text = reading.take(Field::EndOfText, draft.end_of_text.parse());
    let min_output_tokens = reading.take(Field::MinOutput, read_min_output(&draft.min_output, max_output_tokens));
    Some(Sampling {
        temperature: temperature?,
        top_p: top_p?,
        end_of_text: end_of_text?,
        min_output_tokens: min_output_tokens?,
    })
}

fn read_min_output(text: &str, max_output_tokens: Option<u32>) -> Result<Option<u32>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<u32>() {
        Ok(tokens) if tokens > 0 && max_output_tokens.is_none_or(|most| tokens <= most) => Ok(Some(tokens)),
        Ok(_) => Err("between 1 and the output limit".to_owned()),
        Err(_not_a_number) => Err(format!("\"{text}\" is not a whole number of tokens")),
    }
}
