//! Which names promise a secret: of flags, variables, headers, fields and parameters. In doubt a value is taken out: a
//! value too few is a pity, a key too many is a harm.

/// Parts of a word that always promise one, also where words are written as one: `clientsecret`.
const PARTS: &[&str] =
    &["password", "passwd", "passphrase", "passcode", "secret", "credential", "apikey", "accesskey", "privatekey"];
/// Words that always promise one.
const WORDS: &[&str] =
    &["authorization", "cookie", "cookies", "bearer", "jwt", "pat", "cred", "creds", "sig", "signature", "sas"];
/// Last words that promise one: `BASIC_AUTH`, `redis-pass`.
const LAST: &[&str] = &["auth", "pass"];
/// Last words that promise the place of a secret, not the secret.
const PLACES: &[&str] = &["file", "files", "path", "dir", "directory", "folder", "env", "header"];
/// Words before `key` or `keys` that make it a secret. `--partition-key` is none.
const KEYS_OF: &[&str] = &[
    "access",
    "account",
    "admin",
    "anon",
    "api",
    "app",
    "auth",
    "client",
    "encryption",
    "hf",
    "hmac",
    "license",
    "master",
    "openai",
    "private",
    "service",
    "session",
    "shared",
    "signing",
    "ssh",
    "storage",
    "subscription",
    "token",
    "virtual",
];
/// Words before `token` or `tokens` that make it a secret whatever follows.
const TOKENS_OF: &[&str] = &[
    "access", "admin", "api", "app", "auth", "bearer", "bot", "client", "csrf", "github", "gitlab", "hf", "hub", "id",
    "identity", "oauth", "refresh", "session", "user", "wandb",
];
/// Words before `token` that make it a piece of text: `--eos-token`, `time_per_output_token`.
const TEXT_TOKENS: &[&str] = &[
    "added",
    "audio",
    "bos",
    "cached",
    "cls",
    "context",
    "decode",
    "draft",
    "each",
    "end",
    "eos",
    "eot",
    "extra",
    "first",
    "generated",
    "image",
    "input",
    "jump",
    "last",
    "lookahead",
    "mask",
    "max",
    "min",
    "new",
    "next",
    "num",
    "output",
    "pad",
    "per",
    "prefill",
    "prompt",
    "reasoning",
    "sep",
    "single",
    "spec",
    "special",
    "speculative",
    "start",
    "stop",
    "think",
    "thinking",
    "unk",
    "video",
];
/// Words after `token` that make it a piece of text: `stop_token_ids`, `--token-budget`.
const OF_TEXT_TOKENS: &[&str] = &[
    "budget",
    "capacity",
    "count",
    "counts",
    "dispatcher",
    "dtype",
    "embedding",
    "embeddings",
    "format",
    "healing",
    "id",
    "ids",
    "index",
    "len",
    "length",
    "level",
    "limit",
    "logprobs",
    "map",
    "number",
    "parallel",
    "per",
    "position",
    "probability",
    "ratio",
    "size",
    "step",
    "type",
    "usage",
    "window",
];

/// Whether a value of this name is a secret. Dashes, underscores, dots and capitals part its words: `--hf-token`,
/// `HF_TOKEN` and `hfToken` are the same name.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(last) = words.last() else { return false };
    if PLACES.contains(last) {
        return false;
    }
    let always = |word: &&str| WORDS.contains(word) || PARTS.iter().any(|part| word.contains(part));
    // The shell's own folder is no secret: PWD and OLDPWD.
    let pwd = *last == "pwd" && words.len() > 1 && words != ["old", "pwd"];
    words.iter().any(always) || LAST.contains(last) || pwd || has_key(&words) || has_token(&words)
}

fn has_key(words: &[&str]) -> bool {
    let alone = matches!(words, ["key" | "keys"]);
    let owned = words.windows(2).any(|pair| matches!(pair, [owner, "key" | "keys"] if KEYS_OF.contains(owner)));
    alone || owned
}

fn has_token(words: &[&str]) -> bool {
    (0..words.len()).any(|at| {
        let (word, before) = (words[at], at.checked_sub(1).map(|before| words[before]));
        let owned = before.is_some_and(|before| TOKENS_OF.contains(&before));
        match word {
            "tokens" => owned,
            "token" => {
                let of_text = before.is_some_and(|before| TEXT_TOKENS.contains(&before))
                    || words.get(at + 1).is_some_and(|after| OF_TEXT_TOKENS.contains(after));
                owned || !of_text
            }
            // Written as one: `authtoken`, and `eostoken`, which is none.
            _ => word.strip_suffix("token").is_some_and(|before| !TEXT_TOKENS.contains(&before)),
        }
    })
}

/// The words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut fresh = true;
    let letters: Vec<char> = name.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            fresh = true;
            continue;
        }
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        // `hfToken` has a word at T, `AWSSecret` one at the second S.
        let capital = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if fresh || capital {
            words.push(String::new());
        }
        fresh = false;
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}
