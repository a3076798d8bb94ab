//! The text in which engines tell their gauges and counters: Prometheus' exposition format 0.0.4 and OpenMetrics 1.0, as
//! servers really write them. A line that can't be read is left out and counted; it never spoils the page. What a reader
//! of lines doesn't need (`HELP`, `TYPE`, exemplars, time stamps) is passed over.

use std::borrow::Cow;

/// Longest label list of one series; real ones have about ten.
const MAX_LABELS: usize = 64;
/// Most series of a page that are kept; a large cluster's page has some ten thousand.
const MAX_SAMPLES: usize = 200_000;

/// A page that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page<'a> {
    /// Its series, in order.
    pub samples: Vec<Sample<'a>>,
    /// Lines that could not be read.
    pub skipped_lines: u32,
}

/// One series with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Its name, whole.
    pub name: Cow<'a, str>,
    /// Its labels, escapes undone.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// `None`: NaN or infinite, which means that there is no value.
    pub value: Option<f64>,
}

impl Sample<'_> {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }
}

impl<'a> Page<'a> {
    /// Reads a page. Whatever the text is, this takes time and memory in proportion to its length.
    pub fn read(text: &'a str) -> Self {
        let mut page = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match sample(line) {
                Some(sample) if page.samples.len() < MAX_SAMPLES => page.samples.push(sample),
                _ => page.skipped_lines = page.skipped_lines.saturating_add(1),
            }
        }
        page
    }
}

/// `name`, then maybe labels in braces, then a value, then maybe a time stamp and an exemplar. The name may also be the
/// first thing inside the braces, in quotes.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
    let (bare, rest) = line.split_at(end);
    let mut name = Cow::Borrowed(bare);
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside, &mut name)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let stamped = words.next().is_none_or(|word| word.starts_with('#') || word.parse::<f64>().is_ok());
    (stamped && !name.is_empty()).then(|| Sample { name, labels, value: value.is_finite().then_some(value) })
}

/// Labels up to the closing brace, and what stands after it.
#[expect(clippy::type_complexity, reason = "a pair of what was read and what is left, used in one place")]
fn labels<'a>(mut rest: &'a str, name: &mut Cow<'a, str>) -> Option<(Vec<(Cow<'a, str>, Cow<'a, str>)>, &'a str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        if labels.len() == MAX_LABELS {
            return None;
        }
        let (key, after) = if let Some(inside) = rest.strip_prefix('"') {
            quoted(inside)?
        } else {
            let (key, after) = rest.split_at(rest.find(|c: char| c == '=' || c.is_whitespace())?);
            (Cow::Borrowed(key), after)
        };
        let Some(after) = after.trim_start().strip_prefix('=') else {
            // A word in quotes without a value is the name of the series.
            if !name.is_empty() {
                return None;
            }
            (*name, rest) = (key, after);
            continue;
        };
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        labels.push((key, value));
        rest = after;
    }
}

/// A text up to its closing quote, escapes undone, and what stands after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text.as_bytes()[end] == b'"' {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was read of each line, as one would say it.
    fn told(text: &str) -> String {
        let page = Page::read(text);
        let line = |sample: &Sample<'_>| format!("{} {:?} {:?}", sample.name, sample.labels, sample.value);
        let lines: Vec<String> = page.samples.iter().map(line).collect();
        format!("{}\nskipped {}", lines.join("\n"), page.skipped_lines)
    }

    #[test]
    fn hard_lines_are_read() {
        let text = "# Service=api\r\n\r\n\
            a:b{model=\"C:\\\\a \\\"b\\\" {x,y} = \\n n\",engine=\"0\",} 1.2E1\r\n\
            b_total {engine = \"0\" , model = \"plain\"} 1e3 1700000000123\r\n\
            c{le=\"+Inf\"} 17 # {trace_id=\"KOO5S4vxi0o\"} 0.67\n\
            d 5 1520879607.789 # {} 3\n\
            e -nan\n f +Inf\n g NaN\n h inf\n\
            {\"quoted.name\",\"lab.el\"=\"v\"} 4\n\
            # EOF";
        insta::assert_snapshot!(told(text), @r#"
        a:b [("model", "C:\\a \"b\" {x,y} = \n n"), ("engine", "0")] Some(12.0)
        b_total [("engine", "0"), ("model", "plain")] Some(1000.0)
        c [("le", "+Inf")] Some(17.0)
        d [] Some(5.0)
        e [] None
        f [] None
        g [] None
        h [] None
        quoted.name [("lab.el", "v")] Some(4.0)
        skipped 0
        "#);
    }

    #[test]
    fn what_is_no_series_is_left_out() {
        let text = "broken line without value\n\
            a{b=\"unterminated} 0.5\n a{b=\"c\"\n a{b} 1\n a{=\"c\" 1\n {} 5\n a\n a{b=\"c\"} 1,5\n a 5 later\n\
            <html>\n{\"error\":{\"code\":501}}\n ok 1";
        assert_eq!(told(text), "ok [] Some(1.0)\nskipped 11");
        let labels = "l=\"v\",".repeat(65);
        assert_eq!(told(&format!("a{{{labels}}} 1")), "\nskipped 1");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "(vllm:a|\\{|\\}|\"|\\\\|=|,| |\n|#|1|é|[ -~]){0,60}") {
            let lines = text.lines().count();
            let page = Page::read(&text);
            prop_assert!(page.samples.len() + page.skipped_lines as usize <= lines);
        }

        #[test]
        fn label_values_come_back(value in "[ -~\n]{0,40}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let line = format!("name{{key=\"{escaped}\"}} 4.5");
            let page = Page::read(&line);
            prop_assert_eq!(page.samples[0].label("key"), Some(value.as_str()));
            prop_assert_eq!(page.samples[0].value, Some(4.5));
        }
    }
}
