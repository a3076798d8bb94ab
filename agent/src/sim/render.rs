//! The bytes of answers: events of a stream and whole answers, in vLLM's shapes. No serializer runs per chunk.

use std::io::Write as _;

use super::prompt::Endpoint;

/// What is the same in every chunk of a request.
#[derive(Debug)]
pub(super) struct Shape {
    endpoint: Endpoint,
    id: String,
    created_secs: u64,
    /// The model's name as a JSON string.
    model_json: String,
    /// Every chunk up to its first choice.
    head: Vec<u8>,
}

/// Which field of the delta the text goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Content,
    Reasoning,
    /// The chunk that opens the tool call.
    ToolCall,
    /// A further piece of its arguments.
    ToolArguments,
}

/// Tokens of a `usage` object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    /// Found in the prefix cache; told in final usages only, as in vLLM.
    pub(super) cached: Option<u64>,
}

impl Shape {
    pub(super) fn new(endpoint: Endpoint, id: &str, created_secs: u64, model: &str) -> Self {
        let model_json = serde_json::Value::from(model).to_string();
        let mut shape = Self { endpoint, id: id.to_owned(), created_secs, model_json, head: b"data: ".to_vec() };
        let opening = shape.opening(match endpoint {
            Endpoint::Chat => "chat.completion.chunk",
            Endpoint::Completions => "text_completion",
        });
        shape.head.extend_from_slice(opening.as_bytes());
        shape
    }

    fn opening(&self, object: &str) -> String {
        let Self { id, created_secs, model_json, .. } = self;
        let prefix = match self.endpoint {
            Endpoint::Chat => "chatcmpl",
            Endpoint::Completions => "cmpl",
        };
        format!(
            r#"{{"id":"{prefix}-{id}","object":"{object}","created":{created_secs},"model":{model_json},"choices":["#
        )
    }

    /// The chunk that announces the assistant and holds no text; completions have none.
    pub(super) fn role(&self, usage: Option<Usage>, out: &mut Vec<u8>) {
        if self.endpoint == Endpoint::Chat {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(
                br#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]"#,
            );
            close(usage, out);
        }
    }

    /// A chunk of text, which `write` appends.
    pub(super) fn text(&self, field: Field, usage: Option<Usage>, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        let (before, after): (&[u8], &[u8]) = match (self.endpoint, field) {
            (Endpoint::Completions, _) => (br#"{"index":0,"text":""#, br#"","#),
            (Endpoint::Chat, Field::Content) => (br#"{"index":0,"delta":{"content":""#, br#""},"#),
            (Endpoint::Chat, Field::Reasoning) => (br#"{"index":0,"delta":{"reasoning_content":""#, br#""},"#),
            (Endpoint::Chat, Field::ToolCall) => {
                out.extend_from_slice(br#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_"#);
                out.extend_from_slice(self.id.as_bytes());
                (br#"","type":"function","function":{"name":"look_up","arguments":""#, br#""}}]},"#)
            }
            (Endpoint::Chat, Field::ToolArguments) => {
                (br#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":""#, br#""}}]},"#)
            }
        };
        out.extend_from_slice(before);
        write(out);
        out.extend_from_slice(after);
        out.extend_from_slice(br#""logprobs":null,"finish_reason":null}]"#);
        close(usage, out);
    }

    /// The chunk that tells why the text ends.
    pub(super) fn finish(&self, reason: &str, usage: Option<Usage>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        let empty = match self.endpoint {
            Endpoint::Chat => r#""delta":{"content":""}"#,
            Endpoint::Completions => r#""text":"""#,
        };
        write!(out, r#"{{"index":0,{empty},"logprobs":null,"finish_reason":"{reason}","stop_reason":null}}]"#)
            .expect("a vector takes all bytes");
        close(usage, out);
    }

    /// The chunk without choices that carries the final usage.
    pub(super) fn usage(&self, usage: Usage, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.push(b']');
        close(Some(usage), out);
    }

    /// A whole answer.
    pub(super) fn whole(&self, text: &str, reason: &str, usage: Usage) -> Vec<u8> {
        let (object, choice) = match self.endpoint {
            Endpoint::Chat => ("chat.completion", format!(r#""message":{{"role":"assistant","content":"{text}"}}"#)),
            Endpoint::Completions => ("text_completion", format!(r#""text":"{text}""#)),
        };
        let mut out = self.opening(object).into_bytes();
        write!(out, r#"{{"index":0,{choice},"logprobs":null,"finish_reason":"{reason}","stop_reason":null}}]"#)
            .expect("a vector takes all bytes");
        push_usage(usage, &mut out);
        out.push(b'}');
        out
    }
}

/// The event after which nothing comes.
pub(super) const DONE: &[u8] = b"data: [DONE]\n\n";

/// A comment that keeps a connection alive.
pub(super) const COMMENT: &[u8] = b": keep-alive\n\n";

/// An error in the middle of a stream.
pub(super) const ERROR: &[u8] =
    br#"data: {"error":{"message":"EngineCore encountered an issue (simulated)","type":"InternalServerError","param":null,"code":500}}

"#;

/// Frames an event as one chunk of a chunked body.
pub(super) fn chunk(event: &[u8], out: &mut Vec<u8>) {
    write!(out, "{:x}\r\n", event.len()).expect("a vector takes all bytes");
    out.extend_from_slice(event);
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn close(usage: Option<Usage>, out: &mut Vec<u8>) {
    if let Some(usage) = usage {
        push_usage(usage, out);
    }
    out.extend_from_slice(b"}\n\n");
}

fn push_usage(usage: Usage, out: &mut Vec<u8>) {
    let Usage { prompt, completion, cached } = usage;
    let total = prompt + completion;
    write!(out, r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#)
        .expect("a vector takes all bytes");
    if let Some(cached) = cached {
        write!(out, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#).expect("a vector takes all bytes");
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage { prompt: 9, completion: 2, cached: None };

    fn check_json(event: &[u8]) {
        let json = event.strip_prefix(b"data: ").unwrap_or(event);
        serde_json::from_slice::<serde_json::Value>(json).unwrap();
    }

    fn events(endpoint: Endpoint) -> String {
        let shape = Shape::new(endpoint, "r1", 7, "m\"x");
        let mut all = String::new();
        let mut tell = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            if !out.is_empty() {
                check_json(&out);
                all.push_str(std::str::from_utf8(&out).unwrap().trim_end());
                all.push('\n');
            }
        };
        tell(&|out| shape.role(Some(USAGE), out));
        for field in [Field::Content, Field::Reasoning, Field::ToolCall, Field::ToolArguments] {
            tell(&|out| shape.text(field, None, |out| out.extend_from_slice(b" word"), out));
        }
        tell(&|out| shape.finish("length", None, out));
        tell(&|out| {
            shape.usage(Usage { cached: Some(8), ..USAGE }, out);
        });
        tell(&|out| out.extend_from_slice(&shape.whole(" word", "stop", USAGE)));
        all
    }

    #[test]
    fn chat_chunks_have_vllms_shape() {
        insta::assert_snapshot!(events(Endpoint::Chat), @r#"
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"reasoning_content":" word"},"logprobs":null,"finish_reason":null}]}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_r1","type":"function","function":{"name":"look_up","arguments":" word"}}]},"logprobs":null,"finish_reason":null}]}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" word"}}]},"logprobs":null,"finish_reason":null}]}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}]}
        data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":7,"model":"m\"x","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}
        {"id":"chatcmpl-r1","object":"chat.completion","created":7,"model":"m\"x","choices":[{"index":0,"message":{"role":"assistant","content":" word"},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}
        "#);
    }

    #[test]
    fn completion_chunks_have_vllms_shape() {
        insta::assert_snapshot!(events(Endpoint::Completions), @r#"
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}]}
        data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}
        {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m\"x","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}
        "#);
    }

    #[test]
    fn events_are_framed_as_chunks() {
        let mut out = Vec::new();
        chunk(DONE, &mut out);
        assert_eq!(out, b"e\r\ndata: [DONE]\n\n\r\n");
        check_json(ERROR.trim_ascii());
    }
}
