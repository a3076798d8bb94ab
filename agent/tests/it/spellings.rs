//! The spellings of secrets, and a search for what is left of them.

/// A room and its words in each line, tab-separated; `{S}` is the secret.
const TABLE: &str = include_str!("secrets.tsv");

/// One way to give a secret.
pub(crate) struct Spelling {
    /// Where: `argv`, `env`, `url`, `header` or `text`.
    pub(crate) room: &'static str,
    /// Its words.
    pub(crate) words: Vec<String>,
}

impl Spelling {
    /// The secret of one line.
    pub(crate) fn secret(line: usize) -> String {
        format!("Zq{line:02}LeakedValue")
    }

    /// As a program would write it into a log.
    pub(crate) fn line(&self) -> String {
        match (self.room, self.words.as_slice()) {
            ("env", [name, value]) => format!("{name}={value}"),
            ("header", [name, value]) => format!("{name}: {value}"),
            (_, words) => words.join(" "),
        }
    }
}

/// All of them, each with a secret of its own.
pub(crate) fn spellings() -> Vec<Spelling> {
    let lines = TABLE.lines().enumerate();
    let spelling = |(number, line): (usize, &'static str)| {
        let mut words = line.split('\t');
        let room = words.next().expect("each line has a room");
        Spelling { room, words: words.map(|word| word.replace("{S}", &Spelling::secret(number))).collect() }
    };
    lines.map(spelling).collect()
}

/// What is left of any secret in a text, with what is around it.
pub(crate) fn leaks(place: &str, text: &str) -> Vec<String> {
    let around = |at: usize| {
        let (from, to) = (text.floor_char_boundary(at.saturating_sub(40)), text.floor_char_boundary(at + 20));
        format!("{place}: …{}…", &text[from..to])
    };
    text.match_indices("LeakedValue").map(|(at, _)| around(at)).collect()
}
