//! The engine's own tokenizer, where it has an endpoint for it: counts a prompt without running the model.

use serde_json::{Value, json};

use super::http::Http;
use crate::engine::known::Tokenizer;

/// Takes a model and chat messages (vLLM) or a text (llama.cpp).
const TOKENIZE_PATH: &str = "/tokenize";
/// llama.cpp's path from chat messages to the text that the model reads.
const TEMPLATE_PATH: &str = "/apply-template";

/// How many tokens the prompt in `question` (a JSON document with `model` and `messages`) has, the template's own
/// included; `None` if the engine doesn't tell, for whatever reason.
pub async fn count_tokens(http: &Http, tokenizer: Tokenizer, question: String) -> Option<u64> {
    let count = match tokenizer {
        Tokenizer::None | Tokenizer::Messages => {
            document(http, TOKENIZE_PATH, question).await?.get("count")?.as_u64()?
        }
        Tokenizer::TemplateFirst => {
            let prompt = document(http, TEMPLATE_PATH, question).await?.get_mut("prompt")?.take();
            // The model's own marks count as they do in a chat.
            let text = json!({"content": prompt, "add_special": true, "parse_special": true}).to_string();
            document(http, TOKENIZE_PATH, text).await?.get("tokens")?.as_array()?.len() as u64
        }
    };
    (count > 0).then_some(count)
}

async fn document(http: &Http, path: &str, question: String) -> Option<Value> {
    let answer = http.post(path, question).await.ok().filter(|answer| answer.status == 200)?;
    serde_json::from_str(&answer.body).ok()
}
