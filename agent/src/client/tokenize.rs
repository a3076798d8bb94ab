//! The engine's own tokenizer, where it has an endpoint for it: counts a prompt without running the model.

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::json;

use super::http::Http;
use crate::engine::known::Tokenizer;

/// Takes a model and chat messages (vLLM) or a text (llama.cpp).
const TOKENIZE_PATH: &str = "/tokenize";
/// llama.cpp's path from chat messages to the text that the model reads.
const TEMPLATE_PATH: &str = "/apply-template";

/// The answer of vLLM's tokenizer.
#[derive(Deserialize)]
struct Counted {
    count: u64,
}

/// The answer of llama.cpp's: tokens are only counted, and take no room.
#[derive(Deserialize)]
struct Listed {
    tokens: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Templated {
    prompt: String,
}

/// How many tokens the prompt in `question` (a JSON document with `model` and `messages`) has, the template's own
/// included; `None` if the engine doesn't tell, for whatever reason.
pub async fn count_tokens(http: &Http, tokenizer: Tokenizer, question: String) -> Option<u64> {
    let count = match tokenizer {
        Tokenizer::None | Tokenizer::Messages => answer::<Counted>(http, TOKENIZE_PATH, question).await?.count,
        Tokenizer::TemplateFirst => {
            let prompt = answer::<Templated>(http, TEMPLATE_PATH, question).await?.prompt;
            // The model's own marks count as they do in a chat.
            let text = json!({"content": prompt, "add_special": true, "parse_special": true}).to_string();
            answer::<Listed>(http, TOKENIZE_PATH, text).await?.tokens.len() as u64
        }
    };
    (count > 0).then_some(count)
}

async fn answer<T: DeserializeOwned>(http: &Http, path: &str, question: String) -> Option<T> {
    let answer = http.post(path, question).await.ok().filter(|answer| answer.status == 200)?;
    serde_json::from_str(&answer.body).ok()
}
