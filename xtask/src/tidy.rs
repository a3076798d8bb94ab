//! What no other tool checks: how long files are, what they say first and how they are called,
//! words that mark unfinished work, where colours stand, and what `shared` may depend on.

use crate::step::{Result, output, say};
use std::{fs, path::Path, process::Command};

const FILE_LINES: usize = 400;
const ARCHITECTURE_LINES: usize = 150;
/// Files that may be longer, each with its reason. Only tables of data are long for a good one.
const LONG: &[(&str, &str)] = &[("shared/src/metric/table.rs", "one row for each metric")];
/// What code is written in; everything else in the repository is data or prose.
const CODE: [&str; 5] = ["rs", "css", "html", "js", "sh"];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"];
/// Marks of unfinished or silenced work. Split, so that this file passes its own check.
const UNFINISHED: [&str; 8] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
    concat!("#[", "allow("),
    concat!("#![", "allow("),
];
/// Paths that exist on one machine only, and hosts that serve one place only.
const PRIVATE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
const PRIVATE_HOST: &str = concat!("arti", "factory");
/// The only file that may name colours.
const COLOURS: &str = "web/style/tokens.css";
const COLOUR_FUNCTIONS: [&str; 5] = ["rgb(", "rgba(", "hsl(", "hsla(", "oklch("];
/// What `shared` may use, as it must stay pure and small in the browser.
const SHARED_MANIFEST: &str = "shared/Cargo.toml";
const SHARED_MAY_USE: [&str; 6] = ["miniz_oxide", "serde", "serde_json", "shlex", "statrs", "thiserror"];

/// Checks every file that git knows or would add; an error lists all that is wrong.
pub(crate) fn repository() -> Result {
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let paths = output(Command::new("git").args(listed)).ok_or("`git ls-files` failed: tidy needs git and a clone")?;
    let mut files = 0;
    let mut wrong = Vec::new();
    for path in paths.split_terminator('\0') {
        // Deleted but still listed, or not text: nothing to say about it.
        if let Ok(text) = fs::read_to_string(path) {
            files += 1;
            wrong.extend(check(path, &text));
        }
    }
    wrong.extend(needless_exceptions());
    if wrong.is_empty() {
        say(&format!("  {files} files are tidy"));
        return Ok(());
    }
    Err(format!("not tidy:\n  {}", wrong.join("\n  ")))
}

/// All that is wrong with one file, each as `path:line: what`.
fn check(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut report = |line: usize, what: String| wrong.push(format!("{path}:{line}: {what}"));
    let extension = extension(path);
    check_length(path, text, &mut report);
    if extension == "rs" {
        check_rust(path, text, &mut report);
    }
    if path == SHARED_MANIFEST {
        check_shared(text, &mut report);
    }
    for (index, line) in text.lines().enumerate() {
        let mut found = |what: String| report(index + 1, what);
        if let Some(mark) = UNFINISHED.iter().find(|mark| is_code(path) && has_word(line, mark)) {
            found(format!("{mark} marks unfinished or silenced work"));
        }
        if let Some(name) = PRIVATE_PATHS.iter().find(|name| has_path(line, name)) {
            found(format!("{name} is a folder of one machine"));
        }
        if line.contains(PRIVATE_HOST) {
            found(String::from("this names a host of one place"));
        }
        if let Some(colour) = colour(path, extension, line) {
            found(format!("the colour {colour} belongs in {COLOURS}"));
        }
    }
    wrong
}

fn extension(path: &str) -> &str {
    let extension = Path::new(path).extension();
    extension.and_then(|it| it.to_str()).unwrap_or_default()
}

fn is_code(path: &str) -> bool {
    CODE.contains(&extension(path))
}

fn check_length(path: &str, text: &str, report: &mut impl FnMut(usize, String)) {
    let limit = match path {
        "ARCHITECTURE.md" => ARCHITECTURE_LINES,
        _ if is_code(path) && !LONG.iter().any(|(long, _)| *long == path) => FILE_LINES,
        _ => return,
    };
    let lines = text.lines().count();
    if lines > limit {
        report(lines, format!("{lines} lines, and {limit} are allowed"));
    }
}

fn check_rust(path: &str, text: &str, report: &mut impl FnMut(usize, String)) {
    if !text.starts_with("//!") {
        report(1, String::from("the first line must say, with //!, what the file is for"));
    }
    let path = Path::new(path).with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy());
    if let Some(name) = names.into_iter().find(|name| EMPTY_NAMES.contains(&&**name)) {
        report(1, format!("{name:?} does not say what is inside"));
    }
}

/// Reads the names in the manifest's tables of dependencies, except those only for tests.
fn check_shared(manifest: &str, report: &mut impl FnMut(usize, String)) {
    let mut in_dependencies = false;
    for (index, line) in manifest.lines().enumerate() {
        let mut name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            in_dependencies = table == "dependencies" || table.ends_with(".dependencies");
            match table.rsplit_once("dependencies.") {
                Some((before, single)) if !before.ends_with("dev-") => name = single,
                _ => continue,
            }
        } else if !in_dependencies || line.starts_with('#') || name.is_empty() {
            continue;
        }
        if !SHARED_MAY_USE.contains(&name) {
            report(index + 1, format!("shared may not depend on {name}"));
        }
    }
}

/// Exceptions that no longer are any.
fn needless_exceptions() -> Vec<String> {
    let needless =
        |path: &&(&str, &str)| fs::read_to_string(path.0).is_ok_and(|text| text.lines().count() <= FILE_LINES);
    let listed = LONG.iter().filter(needless);
    listed.map(|(path, _)| format!("{path}:1: is short now: take it out of LONG in tidy")).collect()
}

/// `word` in `line`, not as a part of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let bounded =
            |edge: Option<char>, neighbour: Option<char>| !edge.is_some_and(is_word) || !neighbour.is_some_and(is_word);
        bounded(word.chars().next(), before) && bounded(word.chars().next_back(), after)
    })
}

/// `path` in `line` where an absolute path begins, not inside a longer one.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=:[{<,;>".contains(c))
    })
}

/// The first colour in a line where none may be.
fn colour<'a>(path: &str, extension: &str, line: &'a str) -> Option<&'a str> {
    let digits: &[usize] = match extension {
        _ if path == COLOURS || !path.starts_with("web/") => return None,
        "css" | "html" => &[3, 4, 6, 8],
        // In Rust a shorter one is rather a page's anchor.
        "rs" => &[6, 8],
        _ => return None,
    };
    let hex = line.match_indices('#').find_map(|(at, _)| {
        let length = line[at + 1..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let end = at + 1 + length;
        let goes_on = line[end..].starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
        // In `url(#name)` it is a name.
        let is_reference = line[..at].ends_with('(');
        (digits.contains(&length) && !goes_on && !is_reference).then(|| &line[at..end])
    });
    hex.or_else(|| {
        let mut functions = COLOUR_FUNCTIONS.iter().filter(|_| extension == "css");
        functions.find_map(|name| line.find(name).map(|at| &line[at..at + name.len()]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a file, without its path.
    fn check(path: &str, text: &str) -> Vec<String> {
        let found = super::check(path, text);
        found.iter().map(|f| f.strip_prefix(path).expect("it begins so").to_owned()).collect()
    }

    fn check_line(path: &str, line: &str) -> Vec<String> {
        check(path, &format!("//! A room.\n{line}\n"))
    }

    #[test]
    fn a_tidy_file_has_nothing_to_report() {
        assert!(check_line("agent/src/clock.rs", "fn now() {}").is_empty());
        assert!(check("web/style/base.css", "a:hover { color: var(--link); }\n").is_empty());
    }

    #[test]
    fn long_files_are_found_unless_they_are_data() {
        let lines = |n: usize| format!("//! A room.\n{}", "\n".repeat(n - 1));
        assert!(check("shared/src/plan.rs", &lines(400)).is_empty());
        assert_eq!(check("shared/src/plan.rs", &lines(401)), [":401: 401 lines, and 400 are allowed"]);
        assert!(check("shared/tests/capture.json", &lines(1000)).is_empty());
        assert_eq!(check("ARCHITECTURE.md", &lines(151)), [":151: 151 lines, and 150 are allowed"]);
    }

    #[test]
    fn a_rust_file_says_first_what_it_is_for() {
        let expected = [":1: the first line must say, with //!, what the file is for"];
        assert_eq!(check("agent/build.rs", "use std::fs;\n"), expected);
        assert_eq!(check("agent/src/main.rs", ""), expected);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let expected = [":1: \"utils\" does not say what is inside"];
        assert_eq!(check_line("agent/src/utils.rs", ""), expected);
        assert_eq!(check_line("agent/src/utils/mod.rs", ""), expected);
        assert!(check_line("agent/src/utilisation.rs", "").is_empty());
    }

    #[test]
    fn unfinished_work_is_found_in_code_only() {
        for mark in UNFINISHED {
            let line = format!("    {mark} later");
            let expected = [format!(":2: {mark} marks unfinished or silenced work")];
            assert_eq!(check_line("web/src/app.rs", &line), expected);
            assert!(check("shared/tests/capture.json", &line).is_empty());
        }
        assert!(check_line("web/src/app.rs", &format!("MY{}S", UNFINISHED[0])).is_empty());
        assert!(check_line("web/src/app.rs", "#[expect(dead_code, reason = \"so\")]").is_empty());
    }

    #[test]
    fn paths_and_hosts_of_one_machine_are_found_everywhere() {
        let path = PRIVATE_PATHS[0];
        let expected = [format!(":1: {path} is a folder of one machine")];
        assert_eq!(check("README.md", &format!("see {path}shared")), expected);
        assert!(check("README.md", &format!("https://example.com{path}shared")).is_empty());
        assert_eq!(
            check("Cargo.lock", &format!("source = \"https://{PRIVATE_HOST}.example\"")),
            [":1: this names a host of one place"]
        );
    }

    #[test]
    fn colours_are_found_outside_their_file() {
        let expected = |colour| [format!(":1: the colour {colour} belongs in {COLOURS}")];
        let css = "web/style/table.css";
        assert_eq!(check(css, "td { color: #1a2B3c; }"), expected("#1a2B3c"));
        assert_eq!(check(css, "td { color: #fff }"), expected("#fff"));
        assert_eq!(check(css, "td { color: rgb(0 0 0); }"), expected("rgb("));
        assert!(check(css, "#header { fill: url(#fade); }").is_empty());
        assert!(check(COLOURS, "--ink: #1a2b3c;").is_empty());
        assert_eq!(
            check_line("web/src/chart.rs", "\"#1a2b3c\""),
            [format!(":2: the colour #1a2b3c belongs in {COLOURS}")]
        );
        assert!(check_line("web/src/page.rs", "href=\"#add\"").is_empty());
        assert!(check_line("agent/src/hash.rs", "\"#1a2b3c\"").is_empty());
    }

    #[test]
    fn shared_keeps_its_few_dependencies() {
        let allowed = "[dependencies]\nserde.workspace = true\nserde_json = \"1\"\n\n\
                       [dev-dependencies]\ninsta = \"1\"\n[dev-dependencies.proptest]\n";
        assert!(check(SHARED_MANIFEST, allowed).is_empty());
        let report = |line| [format!(":{line}: shared may not depend on tokio")];
        assert_eq!(check(SHARED_MANIFEST, "[dependencies]\ntokio = \"1\"\n"), report(2));
        assert_eq!(check(SHARED_MANIFEST, "[dependencies.tokio]\nversion = \"1\"\n"), report(1));
        let target = "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"\n";
        assert_eq!(check(SHARED_MANIFEST, target), report(2));
    }
}
