//! OpenAI's chat completions, streamed, as the engines and proxies really write them; `choices[].text` of the older
//! completions interface too. Field names: vLLM, SGLang, llama.cpp, LM Studio, Azure, OpenRouter.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Decoded, Delta, ServerError, ToolFragment, UsageReport,
    json::{Count, List, Maybe, Rare, Words},
};

/// Largest error object that is read: a larger one is shown as it came, as much of it. What is read takes many times the
/// memory of its text.
const ERROR_LIMIT_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    object: Words<'a>,
    #[serde(borrow, default)]
    model: Words<'a>,
    #[serde(borrow, default = "List::default")]
    choices: List<Choice<'a>>,
    #[serde(default)]
    usage: Maybe<Usage>,
    #[serde(default)]
    timings: Rare<Maybe<Timings>>,
    /// Of whatever shape.
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Words<'a>,
    #[serde(borrow, default, rename = "type")]
    class: Words<'a>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Maybe<Message<'a>>,
    /// Of an answer that is not streamed.
    #[serde(borrow, default = "Rare::default")]
    message: Rare<Maybe<Message<'a>>>,
    /// Of the completions interface.
    #[serde(borrow, default)]
    text: Words<'a>,
    #[serde(borrow, default)]
    finish_reason: Words<'a>,
    /// Which of several answers; only the first one's text is kept.
    #[serde(default)]
    index: Count,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Words<'a>,
    #[serde(borrow, default)]
    reasoning: Words<'a>,
    #[serde(borrow, default)]
    reasoning_content: Words<'a>,
    #[serde(borrow, default = "Rare::default")]
    tool_calls: Rare<List<ToolCall<'a>>>,
    /// What tool calls were called before there could be several.
    #[serde(borrow, default = "Rare::default")]
    function_call: Rare<Maybe<Function<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    function: Maybe<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Words<'a>,
    #[serde(borrow, default)]
    arguments: Words<'a>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    completion_tokens_details: Maybe<OutputDetails>,
    #[serde(default)]
    prompt_tokens_details: Maybe<PromptDetails>,
    /// SGLang's place for it.
    #[serde(default)]
    reasoning_tokens: Count,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
}

/// llama.cpp's own counters; its last chunk carries them even where no usage was asked for.
#[derive(Deserialize)]
struct Timings {
    #[serde(default, rename = "prompt_n")]
    computed: Count,
    #[serde(default, rename = "cache_n")]
    cached: Count,
    #[serde(default, rename = "predicted_n")]
    predicted: Count,
}

/// Reads the data of one event, or a whole answer that was not streamed. `scratch` holds a repaired copy where the bytes
/// are not proper JSON (half a surrogate pair, broken UTF-8); its content before the call doesn't matter.
pub fn decode<'a>(data: &'a [u8], scratch: &'a mut String) -> Decoded<'a> {
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        return Decoded::Done;
    }
    if data.first() != Some(&b'{') {
        return Decoded::NotJson;
    }
    // Checked as one text: `from_slice` would check each of its strings again.
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(chunk) = serde_json::from_str::<Chunk<'a>>(text)
    {
        return Decoded::Delta(delta(chunk));
    }
    *scratch = repaired(data);
    match serde_json::from_str::<Chunk<'a>>(scratch) {
        Ok(chunk) => Decoded::Delta(delta(chunk)),
        Err(_not_json_either) => Decoded::NotJson,
    }
}

fn delta(chunk: Chunk<'_>) -> Delta<'_> {
    let error = error(&chunk);
    let mut out = Delta {
        usage: chunk
            .usage
            .0
            .map(report)
            .or_else(|| chunk.timings.0.and_then(|timings| timings.0.and_then(timings_report))),
        error,
        model: non_empty(chunk.model),
        ..Delta::default()
    };
    for choice in chunk.choices.into_iter() {
        add_choice(&mut out, choice);
    }
    out
}

fn add_choice<'a>(out: &mut Delta<'a>, choice: Choice<'a>) {
    if out.finish_reason.is_none() {
        out.finish_reason = non_empty(choice.finish_reason);
    }
    let several = choice.index.0.unwrap_or(0) > 0 && out.has_text();
    if several {
        return; // counted with the first one: an event with text is one event
    }
    append(&mut out.content, choice.text.0);
    for message in choice.delta.0.into_iter().chain(choice.message.0.and_then(|message| message.0)) {
        append(&mut out.content, message.content.0);
        append(&mut out.reasoning, one_reasoning(message.reasoning.0, message.reasoning_content.0));
        for call in message.tool_calls.0.into_iter().flat_map(|calls| calls.into_iter()) {
            let function = call.function.0;
            out.tools.extend(function.map(|function| fragment(call.index.0, function)));
        }
        out.tools.extend(
            message.function_call.0.and_then(|function| function.0).map(|function| fragment(Some(0), function)),
        );
    }
}

fn fragment(index: Option<u64>, function: Function<'_>) -> ToolFragment<'_> {
    ToolFragment { index, name: function.name.0, arguments: function.arguments.0 }
}

/// Proxies send both fields with the same text; only servers that mean two different things send different ones.
fn one_reasoning<'a>(one: Cow<'a, str>, other: Cow<'a, str>) -> Cow<'a, str> {
    if one.is_empty() || one == other {
        return other;
    }
    let mut both = one;
    append(&mut both, other);
    both
}

fn append<'a>(text: &mut Cow<'a, str>, more: Cow<'a, str>) {
    if text.is_empty() {
        *text = more;
    } else if !more.is_empty() {
        text.to_mut().push_str(&more);
    }
}

fn non_empty(words: Words<'_>) -> Option<Cow<'_, str>> {
    (!words.0.is_empty()).then_some(words.0)
}

fn report(usage: Usage) -> UsageReport {
    UsageReport {
        prompt_tokens: usage.prompt_tokens.0,
        completion_tokens: usage.completion_tokens.0,
        reasoning_tokens: usage
            .completion_tokens_details
            .0
            .and_then(|details| details.reasoning_tokens.0)
            .or(usage.reasoning_tokens.0),
        cached_tokens: usage.prompt_tokens_details.0.and_then(|details| details.cached_tokens.0),
    }
}

fn timings_report(Timings { computed, cached, predicted }: Timings) -> Option<UsageReport> {
    let completion_tokens = Some(predicted.0?);
    let prompt_tokens = computed.0.map(|computed| computed.saturating_add(cached.0.unwrap_or(0)));
    Some(UsageReport { prompt_tokens, completion_tokens, reasoning_tokens: None, cached_tokens: cached.0 })
}

/// An error member of whatever shape, or a whole object that is one (vLLM before 0.10).
fn error(chunk: &Chunk<'_>) -> Option<ServerError> {
    match chunk.error {
        Some(raw) => server_error(raw.get()),
        None if chunk.object.0 == "error" => Some(ServerError {
            message: chunk.message.0.clone().into_owned(),
            class: non_empty(chunk.class.clone()).map(Cow::into_owned),
        }),
        None => None,
    }
}

fn server_error(raw: &str) -> Option<ServerError> {
    let value: Option<Value> = if raw.len() <= ERROR_LIMIT_BYTES { serde_json::from_str(raw).ok() } else { None };
    let Some(value) = value else {
        let message = raw[..raw.floor_char_boundary(ERROR_LIMIT_BYTES)].to_owned();
        return Some(ServerError { message, class: None });
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match &value {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) => Some(ServerError { message: message.clone(), class: None }),
        other => Some(ServerError {
            message: text("message").or_else(|| text("detail")).unwrap_or_else(|| other.to_string()),
            class: text("code").or_else(|| text("type")).or_else(|| text("status")),
        }),
    }
}

/// Makes text out of broken UTF-8, and replacement characters out of `\u` escapes that are half a surrogate pair.
fn repaired(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xd800..0xdc00), Some(0xdc00..)) => 12,
            (Some(_), _) => {
                out.push('\u{fffd}');
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            // A backslash and the character it escapes, so that an escaped backslash is not taken for the next escape.
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(taken);
        out.push_str(kept);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The code unit of a `\uXXXX` escape at the start of `text`, if it is half a surrogate pair.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: &str) -> Option<String> {
        let mut scratch = String::new();
        let Decoded::Delta(delta) = decode(data.as_bytes(), &mut scratch) else { panic!("{data:.80} is an object") };
        delta.error.map(|error| error.message)
    }

    #[test]
    fn errors_of_every_shape_are_read_in_bounds() {
        let check = |error: &str, wanted: Option<&str>| {
            assert_eq!(message(&format!("{{\"error\":{error}}}")).as_deref(), wanted, "{error}");
        };
        check("null", None);
        check("false", None);
        check("\"oh\"", Some("oh"));
        check("{\"message\":\"oh\",\"code\":7}", Some("oh"));
        check("{ \"why\": [1] }", Some("{\"why\":[1]}"));
        let deep = ["[".repeat(120), "]".repeat(120)].concat();
        check(&deep, Some(&deep));
        let large = format!("[{}0]", "{},".repeat(1_000_000));
        check(&large, Some(&large[..ERROR_LIMIT_BYTES]));
    }
}
