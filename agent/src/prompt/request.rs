//! Chat-completion bodies in three pieces: a head, the document that requests share, and a tail of their own. Also which
//! optional fields this target takes: a field that it refuses by name is left out from then on.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use speedmatrix_shared::{
    plan::{Sampling, sampling::EndOfText},
    trace::{FailureKind, RequestFailure},
};

use super::{questions::question, text::Document};

/// Path of the requests, below the target's base address.
pub const CHAT_PATH: &str = "/v1/chat/completions";

/// A field that a server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// `stream_options.continuous_usage_stats`: the server counts in every chunk.
    ContinuousUsage,
    /// `stream_options` as a whole: the server counts at the end.
    StreamOptions,
    /// `ignore_eos`: outputs run to their limit, so that a window holds decoding, not restarts.
    IgnoreEos,
    /// `seed`: each request samples differently, and the same in the next run.
    Seed,
    /// `temperature`.
    Temperature,
    /// `top_p`.
    TopP,
    /// `min_tokens`.
    MinTokens,
    /// `rid`: an id by which the engine can be told to end the request.
    Rid,
}

impl Field {
    /// In the order in which a refusal is searched for their names: the inner field before the one around it.
    const ALL: [Self; 8] = [
        Self::ContinuousUsage,
        Self::StreamOptions,
        Self::IgnoreEos,
        Self::Seed,
        Self::Temperature,
        Self::TopP,
        Self::MinTokens,
        Self::Rid,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::ContinuousUsage => "continuous_usage_stats",
            Self::StreamOptions => "stream_options",
            Self::IgnoreEos => "ignore_eos",
            Self::Seed => "seed",
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::MinTokens => "min_tokens",
            Self::Rid => "rid",
        }
    }
}

/// What the target is known to take. Starts with everything; [`Dialect::learn`] takes away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dialect {
    refused: Vec<Field>,
    completion_limit: LimitName,
}

/// Under which name the output limit is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LimitName {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

impl LimitName {
    const fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

impl Dialect {
    /// Learns from a refused request. Returns what changed, as a sentence for the log, if the refusal named a field that
    /// can be left out or renamed: then the request is worth another try. Each field is only given up once.
    pub fn learn(&mut self, failure: &RequestFailure) -> Option<String> {
        let refused = matches!(failure.http_status, Some(400 | 422)) && failure.kind == FailureKind::BadRequest;
        if !refused {
            return None;
        }
        let (old, new) = (LimitName::MaxTokens, LimitName::MaxCompletionTokens);
        if self.completion_limit == old && names(&failure.text, old.name()) {
            self.completion_limit = new;
            return Some(format!("the server refuses {}: sending {} instead", old.name(), new.name()));
        }
        let field = Field::ALL.into_iter().find(|field| self.takes(*field) && names(&failure.text, field.name()))?;
        self.refused.push(field);
        Some(format!("the server refuses {}: leaving it out", field.name()))
    }

    fn takes(&self, field: Field) -> bool {
        !self.refused.contains(&field)
    }
}

/// Whether a word of `text` is exactly `name`.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

/// What one request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Most output tokens.
    pub max_output_tokens: u32,
    /// A number of its own: chooses the question and the sampling seed.
    pub number: u64,
}

/// Builds the bodies for one model.
#[derive(Debug, Clone)]
pub struct Requests {
    head: Bytes,
    sampling: Sampling,
    dialect: Dialect,
    rids: Option<Rids>,
}

/// Ids of requests, none of which was given before, here or elsewhere.
#[derive(Debug, Clone)]
struct Rids {
    prefix: Arc<str>,
    given: Arc<AtomicU64>,
}

impl Requests {
    /// Bodies for `model` that ask for `sampling`, with the fields that the target takes.
    pub fn new(model: &str, sampling: Sampling, dialect: Dialect) -> Self {
        let model = serde_json::Value::from(model);
        let head = format!(r#"{{"model":{model},"messages":[{{"role":"user","content":""#);
        Self { head: head.into(), sampling, dialect, rids: None }
    }

    /// The same bodies with other fields.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// The same bodies, each with an id of its own.
    #[must_use]
    pub fn with_rids(self) -> Self {
        let prefix = uuid::Uuid::now_v7().simple().to_string().into();
        Self { rids: Some(Rids { prefix, given: Arc::default() }), ..self }
    }

    /// The ids of requests, if they have one and the target takes it.
    fn rids(&self) -> Option<&Rids> {
        self.rids.as_ref().filter(|_| self.dialect.takes(Field::Rid))
    }

    /// The id of the next request, if requests have one.
    pub fn next_rid(&self) -> Option<Arc<str>> {
        let Rids { prefix, given } = self.rids()?;
        Some(format!("{prefix}-{}", given.fetch_add(1, Relaxed)).into())
    }

    /// What the target takes.
    pub const fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The body in pieces around the pieces of its text; those are shared, not copied. `rid` is from
    /// [`Requests::next_rid`].
    pub fn parts(&self, text: &[Bytes], wish: Wish, rid: Option<&str>) -> Vec<Bytes> {
        let tail = Bytes::from(self.tail(wish, rid));
        [std::slice::from_ref(&self.head), text, &[tail]].concat()
    }

    /// The question to an engine's tokenizer: how many tokens has the prompt of [`Requests::parts`]?
    pub fn tokenizer_question(&self, document: &Document, number: u64) -> String {
        let question = question(number);
        let pieces = [self.head.as_ref(), document.bytes.as_ref(), question.as_bytes(), br#""}]}"#];
        String::from_utf8_lossy(&pieces.concat()).into_owned()
    }

    fn tail(&self, wish: Wish, rid: Option<&str>) -> String {
        let mut tail = format!(r#"{}"}}],"stream":true"#, question(wish.number));
        let mut field = |name: &str, value: &str| {
            tail.push_str(",\"");
            tail.push_str(name);
            tail.push_str("\":");
            tail.push_str(value);
        };
        field(self.dialect.completion_limit.name(), &wish.max_output_tokens.to_string());
        for (name, value) in self.optional_fields(wish) {
            field(name, &value);
        }
        if let Some(rid) = rid {
            field(Field::Rid.name(), &serde_json::Value::from(rid).to_string());
        }
        tail.push('}');
        tail
    }

    /// The names of the fields beside model and messages that requests carry, in their order.
    pub fn fields_sent(&self) -> Vec<&'static str> {
        let optional = self.optional_fields(Wish { max_output_tokens: u32::MAX, number: 0 });
        std::iter::once(self.dialect.completion_limit.name())
            .chain(optional.into_iter().map(|(name, _)| name))
            .chain(self.rids().map(|_| Field::Rid.name()))
            .collect()
    }

    /// What the plan wants and the target takes.
    fn optional_fields(&self, wish: Wish) -> Vec<(&'static str, String)> {
        let Sampling { temperature, top_p, end_of_text, min_output_tokens } = self.sampling;
        let usage = if self.dialect.takes(Field::ContinuousUsage) {
            r#"{"include_usage":true,"continuous_usage_stats":true}"#
        } else {
            r#"{"include_usage":true}"#
        };
        // A one-token request can't have more.
        let least = min_output_tokens.filter(|least| *least <= wish.max_output_tokens);
        let all = [
            (Field::StreamOptions, Some(usage.to_owned())),
            (Field::Temperature, temperature.map(|number| number.to_string())),
            (Field::TopP, top_p.map(|number| number.to_string())),
            // 31 bits: some servers hold the seed in a signed 32-bit number.
            (Field::Seed, Some((wish.number >> 33).to_string())),
            (Field::IgnoreEos, (end_of_text == EndOfText::Ignored).then(|| "true".to_owned())),
            (Field::MinTokens, least.map(|tokens| tokens.to_string())),
        ];
        let wanted = all.into_iter().filter(|(field, _)| self.dialect.takes(*field));
        wanted.filter_map(|(field, value)| Some((field.name(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::prompt::text::{Library, Purpose, Shelfmark};

    fn document() -> Document {
        let mark = Shelfmark { purpose: Purpose::Decode, context: "8K".parse().unwrap(), number: 0 };
        Library::new(0, "run-1".parse().unwrap()).document(mark, 60)
    }

    fn body(requests: &Requests, number: u64) -> String {
        let parts = requests.parts(&[document().bytes], Wish { max_output_tokens: 64, number }, None);
        String::from_utf8(parts.concat()).unwrap()
    }

    fn refusal(text: &str) -> RequestFailure {
        RequestFailure { kind: FailureKind::BadRequest, http_status: Some(400), text: text.to_owned() }
    }

    #[test]
    fn the_whole_body() {
        let body = body(
            &Requests::new("org/a \"quoted\" model", Sampling::default(), Dialect::default()),
            0x0123_4567_89ab_cdef,
        );
        insta::assert_snapshot!(body, @r#"{"model":"org/a \"quoted\" model","messages":[{"role":"user","content":"2f30533d3645fa25 opens the notes of run run-1. Before spring Task 01234567: Discuss in a long essay which events in these notes belong together, and argue for your view."}],"stream":true,"max_tokens":64,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"temperature":1,"seed":9544371,"ignore_eos":true}"#);
        assert!(serde_json::from_str::<Value>(&body).is_ok());
    }

    #[test]
    fn sampling_is_sent_as_planned() {
        let check = |sampling: Sampling, sent: &str| {
            let parts = Requests::new("m", sampling, Dialect::default()).parts(
                &[document().bytes],
                Wish { max_output_tokens: 64, number: 0 },
                None,
            );
            let body = String::from_utf8(parts.concat()).unwrap();
            assert!(body.ends_with(sent), "{body}");
        };
        let users = Sampling {
            temperature: "0.7".parse().ok(),
            top_p: "0.95".parse().ok(),
            end_of_text: EndOfText::Obeyed,
            min_output_tokens: Some(16),
        };
        check(users, r#""continuous_usage_stats":true},"temperature":0.7,"top_p":0.95,"seed":0,"min_tokens":16}"#);
        check(Sampling { temperature: None, min_output_tokens: Some(65), ..users }, r#"},"top_p":0.95,"seed":0}"#);
        let requests = Requests::new("m", users, Dialect::default());
        assert_eq!(
            requests.fields_sent(),
            ["max_tokens", "stream_options", "temperature", "top_p", "seed", "min_tokens"]
        );
    }

    #[test]
    fn each_request_has_an_id_where_the_engine_wants_one() {
        let mut requests = Requests::new("m", Sampling::default(), Dialect::default()).with_rids();
        let (first, second) = (requests.next_rid().unwrap(), requests.next_rid().unwrap());
        assert_ne!(first, second);
        let parts = requests.parts(&[document().bytes], Wish { max_output_tokens: 64, number: 0 }, Some(&first));
        let sent: Value = serde_json::from_slice(&parts.concat()).unwrap();
        assert_eq!(sent["rid"], *first);
        assert!(requests.fields_sent().contains(&"rid"));
        // A server that does not know it gets none.
        let mut dialect = Dialect::default();
        assert!(dialect.learn(&refusal("Extra inputs are not permitted: rid")).is_some());
        requests = requests.with_dialect(dialect);
        assert!(requests.next_rid().is_none() && !requests.fields_sent().contains(&"rid"));
    }

    #[test]
    fn the_tokenizer_is_asked_about_the_same_prompt() {
        let requests = Requests::new("m", Sampling::default(), Dialect::default());
        let asked: Value = serde_json::from_str(&requests.tokenizer_question(&document(), 77)).unwrap();
        let sent: Value = serde_json::from_str(&body(&requests, 77)).unwrap();
        assert_eq!(asked["messages"], sent["messages"]);
        assert_eq!(asked["model"], "m");
    }

    #[test]
    fn the_document_is_shared_and_the_question_is_not() {
        let requests = Requests::new("m", Sampling::default(), Dialect::default());
        let document = document();
        let text = [document.bytes.clone()];
        let [first, second] =
            [1 << 40, 2 << 40].map(|number| requests.parts(&text, Wish { max_output_tokens: 1, number }, None));
        assert_eq!(first[1].as_ptr(), document.bytes.as_ptr());
        assert_eq!(second[1].as_ptr(), document.bytes.as_ptr());
        assert_ne!(first[2], second[2]);
    }

    #[test]
    fn a_refused_field_is_left_out_once() {
        let check = |texts: &[&str], kept: &[&str], gone: &[&str]| {
            let mut dialect = Dialect::default();
            for text in texts {
                assert!(dialect.learn(&refusal(text)).is_some(), "{text}");
            }
            let body = body(&Requests::new("m", Sampling::default(), dialect), 5);
            assert!(kept.iter().all(|name| body.contains(&format!("\"{name}\":"))), "{body}");
            assert!(gone.iter().all(|name| !body.contains(&format!("\"{name}\":"))), "{body}");
            assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
        };
        check(
            &["stream_options.continuous_usage_stats: extra inputs are not permitted"],
            &["stream_options", "include_usage", "max_tokens"],
            &["continuous_usage_stats"],
        );
        check(
            &["Parameter 'max_tokens' is not supported here, use 'max_completion_tokens'."],
            &["max_completion_tokens"],
            &["max_tokens"],
        );
        check(&["unknown field `seed`", "unknown field `ignore_eos`"], &["temperature"], &["seed", "ignore_eos"]);
        check(&["Unrecognized request argument: stream_options"], &["stream"], &["stream_options", "include_usage"]);
    }

    #[test]
    fn what_is_left_out_already_is_not_learnt_again() {
        let mut dialect = Dialect::default();
        assert!(dialect.learn(&refusal("unknown field seed")).is_some());
        assert_eq!(dialect.learn(&refusal("unknown field seed")), None);
        assert!(dialect.learn(&refusal("use max_completion_tokens, not max_tokens")).is_some());
        assert_eq!(dialect.learn(&refusal("use max_completion_tokens, not max_tokens")), None);
    }

    #[test]
    fn other_failures_teach_nothing() {
        let mut dialect = Dialect::default();
        assert_eq!(dialect.learn(&refusal("the server proceeds without seeds")), None);
        let overflow = RequestFailure { kind: FailureKind::ContextOverflow, ..refusal("max_tokens is too large") };
        assert_eq!(dialect.learn(&overflow), None);
        let server = RequestFailure { http_status: Some(500), ..refusal("max_tokens") };
        assert_eq!(dialect.learn(&server), None);
        assert_eq!(dialect, Dialect::default());
    }
}
