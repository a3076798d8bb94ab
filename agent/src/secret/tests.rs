//! What is hidden and what is not: one table of spellings, which the integration test plays through the whole program.

use proptest::prelude::*;

use super::*;

/// A room and its words in each line, tab-separated; `{S}` is the secret.
const SPELLINGS: &str = include_str!("../../tests/it/secrets.tsv");
const PLAIN: &str = "Zq7LeakedValue";

#[test]
fn no_spelling_shows_its_secret() {
    let mut count = 0;
    for line in SPELLINGS.lines().map(|line| line.replace("{S}", PLAIN)) {
        let mut words: Vec<&str> = line.split('\t').collect();
        let shown = match words.remove(0) {
            "argv" => argv(&words).join(" "),
            "env" => environment(words[0], words[1]),
            "header" => header(words[0], words[1]),
            _ => redact(words[0], None),
        };
        assert!(!shown.contains("Leaked") && shown.contains(REDACTED), "{line} was shown as {shown}");
        count += 1;
    }
    assert!(count >= 60, "{count} spellings");
}

#[test]
fn names_promise_a_secret_or_not() {
    let check = |names: &[&str], wanted: bool| {
        for name in names {
            assert_eq!(is_secret_name(name), wanted, "{name}");
        }
    };
    check(&["--api-key", "HF_TOKEN", "hfToken", "authtoken", "AWSSecretAccessKey", "db.password", "token"], true);
    check(&["VLLM_API_KEY", "id_token", "api_tokens", "key", "DB_PWD", "x-amz-signature", "GITHUB_PAT"], true);
    check(&["--max-tokens", "--max-num-batched-tokens", "--tokenizer", "--tokenizer-mode", "tokens"], false);
    check(&["eos_token", "--stop-token-ids", "time_per_output_token", "--token-budget", "pad-token-id"], false);
    check(&["--ssl-keyfile", "--api-key-file", "HF_TOKEN_PATH", "partition-key", "PWD", "OLDPWD", "keyboard"], false);
    check(&["", "--", "author", "--speculative-token-map", "--skip-tokenizer-init", "monkey"], false);
}

#[test]
fn the_rest_stays_as_it_is() {
    let plain = |text: &str| assert_eq!(redact(text, None), text);
    plain("vllm serve org/model --max-num-batched-tokens 8192 --tokenizer org/model --ssl-keyfile /etc/k.pem");
    plain("max_tokens: 12, token_ids=[1, 2], \"eos_token\": \"</s>\"");
    plain("unknown key: max_token. ask git@github.com or http://host:8000/v1");
    plain("HF_TRANSFER, hf_transfer and sk-estimators are packages; bearer. basic training");
    plain("token=null \"password\": \"\" --enable-auth --port 8000");
    let words = ["vllm", "serve", "m", "--max-model-len", "4096", "-tp", "4", "--served-model-name", "sk"];
    assert_eq!(argv(&words), words);
}

#[test]
fn what_is_around_a_secret_stays() {
    let check = |text: &str, clean: &str| assert_eq!(redact(text, None), clean);
    check("Authorization: Bearer abc.def", "Authorization: Bearer <redacted>");
    check("{\"key\":\"sk-0123456789\",\"n\":1}", "{\"key\":\"<redacted>\",\"n\":1}");
    check("?token=a&x=1", "?token=<redacted>&x=1");
    check("(token=a,b), next", "(token=<redacted>), next");
    check("http://u:p@h/x", "http://<redacted>@h/x");
    check("\"api_keys\": [\"a]\", {\"b\": 1}], \"c\": 2", "\"api_keys\": <redacted>, \"c\": 2");
    check("{\\\"token\\\": \\\"a\\\\\\\"b\\\"} end", "{\\\"token\\\": \\\"<redacted>\\\"} end");
    check("--api-key abc k3y-number-two --port 1", "--api-key <redacted> --port 1");
    check("--api-key <redacted> k3y-number-two and", "--api-key <redacted> and");
    check("--hf-token abc org/model-7b-chat", "--hf-token <redacted> org/model-7b-chat");
    check("Bearer 'a b' c", "Bearer '<redacted>' c");
    check("token='Basic a b' --api-key '<redacted>'", "token='Basic <redacted>' --api-key '<redacted>'");
    assert_eq!(header("Authorization", "Bearer x"), "Bearer <redacted>");
    assert_eq!(argv(&["x", "--api-key", "a", "b", "-p", "1", "--token=t"]).join(" "), {
        "x --api-key <redacted> <redacted> -p 1 --token=<redacted>"
    });
}

#[test]
fn keys_leave_no_trace() {
    let key = Secret::new("my-own-key");
    assert_eq!(redact("key my-own-key refused", key.as_ref()), "key <redacted> refused");
    assert_eq!(format!("{key:?}"), "Some(<redacted>)");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_panic(
        text in "([a-z=:'\"\\\\&{}\\[\\] ,ü/@.-]|token|--api-key|Bearer |://|sk-[0-9A-Z]{9}){0,30}"
    ) {
        redact(&text, None);
        argv(&text.split(' ').collect::<Vec<_>>());
    }
}
