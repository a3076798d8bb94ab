//! The engine's own tokenizer, where it has an endpoint for it: counts a prompt without running the model.

use serde_json::Value;

use super::http::Http;

/// vLLM's path; it takes a model and chat messages and counts the template too.
const TOKENIZE_PATH: &str = "/tokenize";

/// How many tokens the prompt in `question` (a JSON document with `model` and `messages`) has; `None` if the engine doesn't
/// tell, for whatever reason.
pub async fn count_tokens(http: &Http, question: String) -> Option<u64> {
    let answer = http.post(TOKENIZE_PATH, question).await.ok().filter(|answer| answer.status == 200)?;
    let document: Value = serde_json::from_str(&answer.body).ok()?;
    document.get("count")?.as_u64().filter(|count| *count > 0)
}
