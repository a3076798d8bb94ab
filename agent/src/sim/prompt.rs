//! Requests: JSON to what was asked, text to tokens and cache blocks.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::config::SimConfig;
use super::tokens::{Prompt, Reader};

/// Which endpoint was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Completions,
}

/// A generation request, understood and checked against the limits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) prompt: Prompt,
    /// Most tokens to generate.
    pub(super) limit_tokens: u64,
    pub(super) min_tokens: u64,
    pub(super) length: Length,
    pub(super) seed: Option<u64>,
    pub(super) delivery: Asking,
}

/// Who decides the length of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// `ignore_eos`: exactly the limit.
    Limit,
    /// The simulated model, up to the limit.
    Model,
}

/// How the answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Whole,
    Stream(AskedUsage),
}

/// The usage that a stream is asked to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedUsage {
    None,
    Final,
    EveryChunk,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    Json(String),
    UnknownModel(String),
    TooLong { max_model_len: u64, prompt_tokens: u64, output_tokens: u64 },
    Invalid(String),
}

impl fmt::Display for Refused {
    /// vLLM's words where it has some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "the body is not a request: {error}"),
            Self::UnknownModel(model) => write!(f, "The model `{model}` does not exist."),
            Self::TooLong { max_model_len, prompt_tokens, output_tokens } => write!(
                f,
                "This model's maximum context length is {max_model_len} tokens. However, you requested {} tokens \
                 ({prompt_tokens} in the messages, {output_tokens} in the completion). Please reduce the length of the \
                 messages or completion.",
                prompt_tokens + output_tokens
            ),
            Self::Invalid(message) => f.write_str(message),
        }
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    prompt: Option<Text<'a>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    min_tokens: Option<u64>,
    ignore_eos: Option<bool>,
    seed: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Plain(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Part<'a>>),
    Tokens(Vec<u32>),
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Reads a generation request.
pub(super) fn read(body: &[u8], endpoint: Endpoint, config: &SimConfig) -> Result<Asked, Refused> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|error| Refused::Json(error.to_string()))?;
    if let Some(model) = &body.model
        && *model != config.model
    {
        return Err(Refused::UnknownModel(model.clone().into_owned()));
    }
    let prompt = prompt_of(&body, endpoint, config)?;
    let room = config.max_model_len.saturating_sub(prompt.tokens);
    let limit_tokens = body.max_completion_tokens.or(body.max_tokens).unwrap_or(room.max(1));
    if limit_tokens == 0 {
        return Err(Refused::Invalid("max_tokens must be at least 1, got 0.".to_owned()));
    }
    if limit_tokens > room {
        return Err(Refused::TooLong {
            max_model_len: config.max_model_len,
            prompt_tokens: prompt.tokens,
            output_tokens: limit_tokens,
        });
    }
    let options = body.stream_options.unwrap_or_default();
    let usage = match (options.include_usage, options.continuous_usage_stats) {
        (Some(true), Some(true)) => AskedUsage::EveryChunk,
        (Some(true), _) => AskedUsage::Final,
        _ => AskedUsage::None,
    };
    Ok(Asked {
        prompt,
        limit_tokens,
        min_tokens: body.min_tokens.unwrap_or(0),
        length: if body.ignore_eos == Some(true) { Length::Limit } else { Length::Model },
        seed: body.seed.map(i64::cast_unsigned),
        delivery: if body.stream == Some(true) { Asking::Stream(usage) } else { Asking::Whole },
    })
}

/// Reads a `/tokenize` request: how many tokens its messages (with the template) or its prompt have.
pub(super) fn count(body: &[u8], config: &SimConfig) -> Result<u64, Refused> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|error| Refused::Json(error.to_string()))?;
    let endpoint = if body.messages.is_some() { Endpoint::Chat } else { Endpoint::Completions };
    prompt_of(&body, endpoint, config).map(|prompt| prompt.tokens)
}

fn prompt_of(body: &Body<'_>, endpoint: Endpoint, config: &SimConfig) -> Result<Prompt, Refused> {
    let mut reader = Reader::new(config.bytes_per_token);
    let mut overhead = 0;
    match endpoint {
        Endpoint::Chat => {
            let messages = body.messages.as_deref().unwrap_or_default();
            if messages.is_empty() {
                return Err(Refused::Invalid("messages must not be empty".to_owned()));
            }
            overhead = config.template_tokens;
            for message in messages {
                reader.mark(message.role.as_bytes());
                message.content.iter().for_each(|text| text.feed(&mut reader));
            }
        }
        Endpoint::Completions => match &body.prompt {
            Some(text) => text.feed(&mut reader),
            None => return Err(Refused::Invalid("prompt must not be empty".to_owned())),
        },
    }
    Ok(reader.finish(overhead))
}

impl Text<'_> {
    fn feed(&self, reader: &mut Reader) {
        match self {
            Self::Plain(text) => reader.text(text.as_bytes()),
            Self::Parts(parts) => parts.iter().for_each(|part| reader.text(part.text.as_bytes())),
            Self::Tokens(tokens) => {
                for token in tokens {
                    reader.token(*token);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> SimConfig {
        SimConfig::preset("reference").unwrap()
    }

    fn chat(content: &str) -> Asked {
        let body = serde_json::json!({"model": "deepseek", "messages": [{"role": "user", "content": content}]});
        read(body.to_string().as_bytes(), Endpoint::Chat, &config()).unwrap()
    }

    fn check_refused(body: &str, want: &str) {
        let refused = read(body.as_bytes(), Endpoint::Chat, &config()).unwrap_err();
        assert_eq!(refused.to_string(), want, "{body}");
    }

    #[test]
    fn tokens_are_the_template_and_a_fifth_of_the_bytes() {
        for (content, tokens) in [("", 135), ("a", 136), ("abcde", 136), ("abcdef", 137), ("line\n\"é", 137)] {
            assert_eq!(chat(content).prompt.tokens, tokens, "{content}");
        }
    }

    #[test]
    fn a_common_beginning_has_common_blocks() {
        let document = "word ".repeat(256 * 3);
        let first = chat(&format!("{document} What is it?")).prompt;
        let second = chat(&format!("{document} Who wrote it, and when?")).prompt;
        assert_eq!(first.blocks.len(), 3);
        assert_eq!(first.blocks, second.blocks);
        assert_ne!(first.hash, second.hash);
        let other = chat(&format!("X{document}")).prompt;
        assert!(other.blocks.iter().all(|block| !first.blocks.contains(block)));
        let mut blocks = first.blocks;
        blocks.dedup();
        assert_eq!(blocks.len(), 3, "equal text in later blocks is another prefix");
    }

    #[test]
    fn parts_and_several_messages_count_as_text() {
        let body = r#"{"messages": [{"role": "system", "content": "abcde"}, {"role": "assistant", "content": null},
            {"role": "user", "content": [{"type": "text", "text": "abcde"}]}], "seed": -1, "stream": true,
            "max_completion_tokens": 7, "ignore_eos": true,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}}"#;
        let asked = read(body.as_bytes(), Endpoint::Chat, &config()).unwrap();
        assert_eq!(asked.prompt.tokens, 137);
        assert_eq!((asked.limit_tokens, asked.length, asked.seed), (7, Length::Limit, Some(u64::MAX)));
        assert_eq!(asked.delivery, Asking::Stream(AskedUsage::EveryChunk));
    }

    #[test]
    fn completions_have_no_template() {
        for (prompt, tokens) in [(r#""abcdefghij""#, 2), ("[1, 2, 3]", 3)] {
            let body = format!(r#"{{"prompt": {prompt}}}"#);
            assert_eq!(read(body.as_bytes(), Endpoint::Completions, &config()).unwrap().prompt.tokens, tokens);
            assert_eq!(count(body.as_bytes(), &config()), Ok(tokens));
        }
    }

    #[test]
    fn refusals_use_vllms_words() {
        check_refused(
            r#"{"messages": [{"role": "user", "content": "abcde"}], "max_tokens": 1048500}"#,
            "This model's maximum context length is 1048576 tokens. However, you requested 1048636 tokens (136 in the \
             messages, 1048500 in the completion). Please reduce the length of the messages or completion.",
        );
        check_refused(r#"{"model": "x", "messages": []}"#, "The model `x` does not exist.");
        check_refused("{}", "messages must not be empty");
        check_refused("{", "the body is not a request: EOF while parsing an object at line 1 column 1");
    }
}
