//! Before the first cell: which request fields the target takes, and how long its prompts must be.

use std::{collections::BTreeMap, sync::Arc};

use speedmatrix_shared::{
    event::{LogLevel, RunEvent},
    trace::{FailureKind, RequestFailure, RequestTrace},
    units::Context,
};

use super::{
    Bench, Halt,
    abort::known_engine,
    single::{failure, prompt_tokens},
    supply::Recipe,
};
use crate::{
    client::{http::Http, tokenize::count_tokens},
    prompt::{
        calibrate::{Aim, Counted, Fit, Verdict},
        text::{Purpose, Shelfmark},
    },
};

/// Document of the larger calibration prompt, characters: long enough that one token of rounding is below 0.1 %.
const LARGE_CHARS: usize = 20_000;
/// The smaller one is a tenth of it.
const SMALL_SHARE: usize = 10;
/// How far the tokenizer endpoint may be off the count of a real request before it is not believed.
const TOKENIZER_SLACK: u64 = 2;
/// Longest context that is sent once more only to correct its length; longer ones take too long.
const RESENT_UP_TO_TOKENS: u64 = 65_536;

/// What is known about lengths.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    fit: Option<Fit>,
    /// Set when the engine's tokenizer endpoint counts like its requests.
    tokenizer: Option<Http>,
    aims: BTreeMap<Context, Aim>,
}

impl Bench {
    /// Learns the target's dialect and the line from characters to tokens.
    pub(super) async fn calibrate(&mut self) -> Result<(), Halt> {
        let large_chars = self.large_chars();
        let small = self.calibration(0, large_chars / SMALL_SHARE);
        let first = self.first_request(&small).await?;
        let sent = format!("requests carry {}", self.requests.fields_sent().join(", "));
        self.teller.log(LogLevel::Info, sent).await?;
        // Built only now: the first request may have changed the fields that are sent.
        let large = self.calibration(1, large_chars);
        let told = prompt_tokens(&first);
        let counts = match self.tokenizer_count(&small, told).await {
            Some((http, tokens)) => {
                let large = self.tokens_of(&http, &large).await;
                self.lengths.tokenizer = large.is_some().then_some(http);
                Some(tokens).zip(large)
            }
            None => match told {
                Some(tokens) => {
                    let trace = self.send_one(&large.0, large.1, 0).await?;
                    Some(tokens).zip(prompt_tokens(&trace))
                }
                None => None,
            },
        };
        let fit = counts.and_then(|(small_tokens, large_tokens)| {
            let small = Counted { chars: small.0.chars, tokens: small_tokens };
            Fit::through(small, Counted { chars: large.0.chars, tokens: large_tokens })
        });
        self.lengths.fit = fit;
        if fit.is_none() {
            let text = "the server does not count prompt tokens usefully: prompt lengths are estimated at 4.5 characters \
                        per token";
            self.teller.log(LogLevel::Warning, text.to_owned()).await?;
        }
        Ok(())
    }

    /// The length of `context`'s documents, corrected by the tokenizer endpoint if there is one.
    pub(super) async fn recipe(&mut self, context: Context, max_output_tokens: u32) -> Result<Recipe, Halt> {
        if !self.lengths.aims.contains_key(&context) {
            let mut aim = Aim::new(context, self.lengths.fit.unwrap_or_else(Fit::estimated));
            if let Some(http) = self.lengths.tokenizer.clone() {
                self.correct(&http, &mut aim).await?;
            }
            self.lengths.aims.insert(context, aim);
        }
        let chars = self.lengths.aims.get(&context).map_or(1, Aim::chars);
        Ok(self.recipe_of(context, chars, max_output_tokens))
    }

    /// Which try of a context's documents this is; part of their numbers, so that a corrected document shares no beginning
    /// with the one before.
    pub(super) fn edition(&self, context: Context) -> u64 {
        self.lengths.aims.get(&context).map_or(0, Aim::edition) << 32
    }

    /// Takes in what the server counted for a prompt of `context`. `true`: the length was corrected and the prompt should
    /// be sent once more.
    pub(super) async fn counted(&mut self, context: Context, trace: &RequestTrace) -> Result<bool, Halt> {
        let Some(aim) = self.lengths.aims.get_mut(&context) else { return Ok(false) };
        let Some(tokens) = prompt_tokens(trace) else { return Ok(false) };
        let known = aim.real_tokens();
        // A long prompt is not sent again for its length alone: it stays as it is, and its real count is shown.
        let mut tried = aim.clone();
        let verdict = tried.counted(tokens);
        let resend = verdict == Verdict::Corrected && context.tokens() <= RESENT_UP_TO_TOKENS;
        if verdict != Verdict::Corrected || resend {
            *aim = tried;
        }
        if !resend && known != Some(tokens) {
            let event = RunEvent::Calibrated { context_tokens: context.tokens(), real_tokens: Some(tokens) };
            self.teller.tell(event).await?;
        }
        if verdict == Verdict::Truncated {
            let text = format!(
                "the server counts {tokens} tokens for a prompt of {context}: it cuts its prompts; raise its context length"
            );
            self.teller.log(LogLevel::Warning, text).await?;
        }
        Ok(resend)
    }

    async fn correct(&mut self, http: &Http, aim: &mut Aim) -> Result<(), Halt> {
        let context = aim.context();
        loop {
            let recipe = self.recipe_of(context, aim.chars(), 1);
            let mark = recipe.mark(Purpose::Calibration, 2);
            let Some(tokens) = self.tokens_of(http, &(recipe, mark)).await else { return Ok(()) };
            if aim.counted(tokens) != Verdict::Corrected {
                let event = RunEvent::Calibrated { context_tokens: context.tokens(), real_tokens: Some(tokens) };
                return self.teller.tell(event).await;
            }
        }
    }

    /// The first request of the run: sent again while the server refuses fields by name.
    async fn first_request(&mut self, prompt: &(Recipe, Shelfmark)) -> Result<RequestTrace, Halt> {
        loop {
            let recipe = Recipe { requests: Arc::clone(&self.requests), ..prompt.0.clone() };
            let trace = self.send_one(&recipe, prompt.1, 0).await?;
            let Some(failure) = failure(&trace) else { return Ok(trace) };
            let mut dialect = self.requests.dialect().clone();
            let Some(change) = dialect.learn(failure) else {
                return Err(Halt::Fatal(first_failed(self.target.url.as_str(), failure)));
            };
            self.requests = Arc::new(self.requests.as_ref().clone().with_dialect(dialect));
            self.teller.log(LogLevel::Warning, change).await?;
        }
    }

    /// The tokenizer's count of `prompt`, if it agrees with `told`, the count of the real request.
    async fn tokenizer_count(&self, prompt: &(Recipe, Shelfmark), told: Option<u64>) -> Option<(Http, u64)> {
        let http = Http::new(&self.target).ok()?;
        let tokens = self.tokens_of(&http, prompt).await?;
        told.is_none_or(|told| told.abs_diff(tokens) <= TOKENIZER_SLACK).then_some((http, tokens))
    }

    async fn tokens_of(&self, http: &Http, (recipe, mark): &(Recipe, Shelfmark)) -> Option<u64> {
        let number = self.library.request_number(*mark, 0);
        count_tokens(
            http,
            known_engine(&self.facts).tokenizer,
            self.requests.tokenizer_question(&recipe.document(*mark), number),
        )
        .await
    }

    fn calibration(&self, number: u64, chars: usize) -> (Recipe, Shelfmark) {
        let context = Context::new(1).expect("1 is a context");
        let recipe = self.recipe_of(context, chars, 1);
        let mark = recipe.mark(Purpose::Calibration, number);
        (recipe, mark)
    }

    pub(super) fn recipe_of(&self, context: Context, chars: usize, max_output_tokens: u32) -> Recipe {
        let (library, requests) = (Arc::clone(&self.library), Arc::clone(&self.requests));
        Recipe { library, requests, context, chars, max_output_tokens, questions: self.plan.questions() }
    }

    /// Half of what the model takes, at most: two characters per token of its limit.
    fn large_chars(&self) -> usize {
        let limit = self.facts.limits.max_model_len.and_then(|tokens| usize::try_from(tokens).ok());
        LARGE_CHARS.min(limit.unwrap_or(LARGE_CHARS).saturating_mul(2)).max(SMALL_SHARE)
    }
}

fn first_failed(url: &str, failure: &RequestFailure) -> String {
    let advice = match failure.kind {
        FailureKind::Auth => "check the server's api key",
        FailureKind::NotFound => "check the address and the model's name",
        FailureKind::Connect => "check that the server still runs",
        FailureKind::Stalled => "check that the server is not stuck or still loading its model",
        FailureKind::NotAStream | FailureKind::Redirect => "give the model server's own address, not that of a site",
        _ => "look at the server's log",
    };
    format!("the first request to {url} failed ({}: {}): {advice}", failure.kind.label(), failure.text)
}
