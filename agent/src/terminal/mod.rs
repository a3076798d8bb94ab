//! The only room that prints. Output that nobody reads any more is an error to handle, not a panic.

mod followed;
mod pair;
mod table;

use std::io::{self, IsTerminal as _, Write};

pub use pair::LivePair;
pub use table::LiveTable;

/// Standard output for results, standard error for what is said about them.
pub struct Terminal {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    line_in_place: LineInPlace,
    hears: Hears,
}

/// Who gets what is said beside the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hears {
    /// Somebody at a terminal.
    Person,
    /// A file, a journal, a program: it may be kept and read by others.
    Log,
}

/// The line that is updated in place, on a terminal only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineInPlace {
    /// Output is no terminal.
    Never,
    /// None is shown now.
    Clear,
    /// One is shown.
    Shown,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("line_in_place", &self.line_in_place).finish_non_exhaustive()
    }
}

impl Terminal {
    /// The process's own.
    pub fn standard() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            line_in_place: if is_terminal { LineInPlace::Clear } else { LineInPlace::Never },
            hears: if io::stderr().is_terminal() { Hears::Person } else { Hears::Log },
        }
    }

    /// Whether a person reads what is said beside the results, and no log keeps it.
    pub fn is_heard_by_a_person(&self) -> bool {
        self.hears == Hears::Person
    }

    /// A result: one line, or several joined by line ends.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.print(&clean(text))
    }

    /// What programs read, a file or a line of JSON: to the byte, but cleaned where a terminal shows it.
    pub fn data(&mut self, text: &str) -> io::Result<()> {
        match self.line_in_place {
            LineInPlace::Never => self.print(text),
            LineInPlace::Clear | LineInPlace::Shown => self.line(&text.replace("\r\n", "\n")),
        }
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// The line that is updated in place; nothing where output is no terminal.
    pub fn in_place(&mut self, text: &str) -> io::Result<()> {
        if self.line_in_place == LineInPlace::Never {
            return Ok(());
        }
        self.line_in_place = LineInPlace::Shown;
        // Back to the line's start, clear to its end.
        write!(self.out, "\r\x1b[K{}", printable(text))?;
        self.out.flush()
    }

    /// Something good to know, apart from the results.
    pub fn hint(&mut self, text: &str) {
        self.aside(text);
    }

    /// What went wrong, in one sentence.
    pub fn complain(&mut self, text: &str) {
        self.aside(&format!("error: {text}"));
    }

    fn aside(&mut self, text: &str) {
        // Where nobody reads what is said beside the results, the results still count.
        drop(self.clear().and_then(|()| writeln!(self.err, "{}", clean(text))));
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.line_in_place != LineInPlace::Shown {
            return Ok(());
        }
        self.line_in_place = LineInPlace::Clear;
        write!(self.out, "\r\x1b[K")
    }
}

/// A foreign text on one line, without what would speak to the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_spoken(c) { ' ' } else { c }).collect()
}

/// As [`printable`], with its lines and tabs.
fn clean(text: &str) -> String {
    text.chars().map(|c| if is_spoken(c) && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect()
}

/// Whether it is for the terminal, not for who reads: controls (C0, DEL, C1), and what turns the direction of the text
/// around (UAX 9), so that it reads as another one.
fn is_spoken(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was printed.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        fn terminal(&self, line_in_place: LineInPlace) -> Terminal {
            Terminal { out: Box::new(self.clone()), err: Box::new(self.clone()), line_in_place, hears: Hears::Log }
        }

        pub(crate) fn watched(&self) -> Terminal {
            Terminal { hears: Hears::Person, ..self.terminal(LineInPlace::Clear) }
        }

        pub(crate) fn piped(&self) -> Terminal {
            self.terminal(LineInPlace::Never)
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_take_the_place_of_the_one_in_place() {
        let check = |line_in_place, wanted: &str| {
            let page = Page::default();
            let mut terminal = page.terminal(line_in_place);
            terminal.in_place("1 %").unwrap();
            terminal.in_place("2 %").unwrap();
            terminal.line("done").unwrap();
            terminal.hint("bye");
            assert_eq!(page.text(), wanted);
        };
        check(LineInPlace::Never, "done\nbye\n");
        check(LineInPlace::Clear, "\r\x1b[K1 %\r\x1b[K2 %\r\x1b[Kdone\nbye\n");
    }

    #[test]
    fn foreign_text_does_not_speak_to_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a [2Jb c");
        let hostile = "a\x1b]0;x\x07\u{9b}2J\u{7f}\u{202e}b\u{2066}c\r\nd\té";
        let check = |say: &dyn Fn(&mut Terminal), line_in_place, wanted: &str| {
            let page = Page::default();
            say(&mut page.terminal(line_in_place));
            assert_eq!(page.text(), wanted);
        };
        let cleaned = "a ]0;x  2J  b c \nd\té\n";
        for line_in_place in [LineInPlace::Never, LineInPlace::Clear] {
            check(&|terminal| terminal.line(hostile).unwrap(), line_in_place, cleaned);
            check(&|terminal| terminal.hint(hostile), line_in_place, cleaned);
            check(&|terminal| terminal.complain(hostile), line_in_place, &format!("error: {cleaned}"));
        }
        let in_place = |terminal: &mut Terminal| terminal.in_place(hostile).unwrap();
        check(&in_place, LineInPlace::Clear, "\r\x1b[Ka ]0;x  2J  b c  d é");
        // A program gets what is in the file, a person what can be shown.
        let data = |terminal: &mut Terminal| terminal.data(hostile).unwrap();
        check(&data, LineInPlace::Never, &format!("{hostile}\n"));
        check(&data, LineInPlace::Clear, &cleaned.replace("c \n", "c\n"));
    }
}
