//! The log on standard error: as people or as programs read it, with panics in it.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic::{self, PanicHookInfo},
    thread,
};

use tracing::{Level, Subscriber, level_filters::LevelFilter, subscriber};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Environment variable that says what is logged, such as `debug` or `speedmatrix_agent::store=trace`.
const WANTED: &str = "SPEEDMATRIX_LOG";
/// What panics are logged as.
const PANIC: &str = "speedmatrix_agent::panic";

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Time, level, place and text, coloured on a terminal.
    #[default]
    Human,
    /// One JSON object.
    Json,
}

/// Logs to standard error from now on: warnings, and what the variable `SPEEDMATRIX_LOG` asks for.
pub fn begin(format: LogFormat) {
    let wanted = EnvFilter::builder().with_env_var(WANTED).with_default_directive(LevelFilter::WARN.into());
    let log = log(format, wanted.from_env_lossy(), std::io::stderr);
    // A second one in the same process changes nothing: its panics are logged too.
    if subscriber::set_global_default(log).is_ok() {
        log_panics();
    }
}

fn log(
    format: LogFormat,
    wanted: EnvFilter,
    out: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    let log = tracing_subscriber::fmt().with_env_filter(wanted).with_writer(out);
    match format {
        LogFormat::Human => Box::new(log.finish()),
        LogFormat::Json => Box::new(log.json().flatten_event(true).finish()),
    }
}

/// Logs each panic with its message, place and thread; where the log does not take it, it is printed as ever.
fn log_panics() {
    let as_ever = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if tracing::enabled!(target: PANIC, Level::ERROR) {
            log_panic(panic);
        } else {
            as_ever(panic);
        }
    }));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current().name().unwrap_or("unnamed").to_owned();
    // As ever, only where RUST_BACKTRACE asks for it.
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(target: PANIC, place, thread, %backtrace, "a fault in Speedmatrix, please report it: {message}");
    } else {
        tracing::error!(target: PANIC, place, thread, "a fault in Speedmatrix, please report it: {message}");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        panic::catch_unwind,
        sync::{Arc, Mutex},
    };

    use serde_json::Value;

    use super::*;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged while `work` is done.
    fn logged(format: LogFormat, wanted: &str, work: impl FnOnce()) -> String {
        let page = Page::default();
        let out = page.clone();
        let log = log(format, EnvFilter::new(wanted), move || out.clone());
        subscriber::with_default(log, work);
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    fn panic_in_words() {
        log_panics();
        catch_unwind(|| panic!("bro{}", "ken")).unwrap_err();
    }

    #[test]
    fn people_read_a_line() {
        let text = logged(LogFormat::Human, "warn", || tracing::warn!(run = "a", "it is late"));
        assert!(text.contains("WARN") && text.contains("it is late") && text.contains("run"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(logged(LogFormat::Human, "warn", || tracing::info!("all is well")), "");
    }

    #[test]
    fn programs_read_an_object() {
        let text = logged(LogFormat::Json, "warn", || tracing::warn!(run = "a", "it is \"late\"\n{{"));
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["level"], &line["run"]), (&"WARN".into(), &"a".into()), "{text}");
        assert_eq!(line["message"], "it is \"late\"\n{", "{text}");
        assert!(line["timestamp"].is_string() && line["target"].is_string(), "{text}");
    }

    #[test]
    fn a_panic_is_logged_with_its_message_and_place() {
        let text = logged(LogFormat::Json, "warn", panic_in_words);
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["message"], "a fault in Speedmatrix, please report it: broken", "{text}");
        assert_eq!((&line["level"], &line["target"]), (&"ERROR".into(), &PANIC.into()), "{text}");
        assert!(line["place"].as_str().unwrap().contains("logging.rs:"), "{text}");
        let text = logged(LogFormat::Human, "warn", panic_in_words);
        assert!(text.contains("ERROR") && text.contains("broken") && text.contains("logging.rs:"), "{text}");
    }

    #[test]
    fn a_panic_that_the_log_does_not_take_is_not_logged_twice() {
        assert_eq!(logged(LogFormat::Json, "off", panic_in_words), "");
    }
}
