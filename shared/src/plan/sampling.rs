//! How answers are drawn and where they end (method §3): what is sent with each request, where the server takes it.

use std::{fmt, str::FromStr};

/// What leaves a setting to the server.
const SERVER: &str = "server";
/// Highest temperature that is sent; beyond it a model writes noise.
const MAX_TEMPERATURE: Decimal = Decimal { thousandths: 5_000 };
/// The model's own distribution, which loops least.
const ONE: Decimal = Decimal { thousandths: 1_000 };

/// A small number of at most three decimals, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    thousandths: u32,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.thousandths / 1_000, self.thousandths % 1_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:03}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl FromStr for Decimal {
    type Err = String;

    /// `0.7`, `0,7` or `1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no number with at most three decimals, as 0.7");
        let (whole, rest) = text.trim().split_once(['.', ',']).unwrap_or((text.trim(), ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 6 || rest.len() > 3 || !digits(whole) || !digits(rest) {
            return Err(wrong());
        }
        let thousandths = format!("{whole}{rest:0<3}").parse().map_err(|_out_of_range| wrong())?;
        Ok(Self { thousandths })
    }
}

/// What ends an answer before its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndOfText {
    /// Nothing: the model's end-of-text token is ignored, so a window holds decoding, not restarts.
    #[default]
    Ignored,
    /// The model, as with real users.
    Obeyed,
}

impl fmt::Display for EndOfText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ignored => "ignore",
            Self::Obeyed => "stop",
        })
    }
}

impl FromStr for EndOfText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" | "ignore" => Ok(Self::Ignored),
            "stop" => Ok(Self::Obeyed),
            other => Err(format!("\"{other}\" is unknown: choose ignore or stop")),
        }
    }
}

/// How answers are drawn. `None` leaves a setting to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<Decimal>,
    /// Share of the probability that is drawn from, above 0 and at most 1.
    pub top_p: Option<Decimal>,
    /// What ends an answer.
    pub end_of_text: EndOfText,
    /// Fewest output tokens.
    pub min_output_tokens: Option<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: Some(ONE), top_p: None, end_of_text: EndOfText::Ignored, min_output_tokens: None }
    }
}

impl Sampling {
    /// Plain words: `temperature 1, to the output limit`.
    pub fn words(self) -> String {
        let mut parts = vec![match self.temperature {
            Some(temperature) => format!("temperature {temperature}"),
            None => "the server's temperature".to_owned(),
        }];
        parts.extend(self.top_p.map(|top_p| format!("top-p {top_p}")));
        parts.push(match self.end_of_text {
            EndOfText::Ignored => "to the output limit".to_owned(),
            EndOfText::Obeyed => "until the model ends".to_owned(),
        });
        parts.extend(self.min_output_tokens.map(|tokens| format!("at least {tokens} tokens")));
        parts.join(", ")
    }
}

/// Reads a temperature: empty is 1, `server` leaves it to the server.
pub(super) fn read_temperature(text: &str) -> Result<Option<Decimal>, String> {
    match text.trim() {
        "" => Ok(Some(ONE)),
        SERVER => Ok(None),
        number => match number.parse()? {
            temperature if temperature <= MAX_TEMPERATURE => Ok(Some(temperature)),
            _ => Err(format!("between 0 and {MAX_TEMPERATURE}, or \"{SERVER}\" for the server's own")),
        },
    }
}

/// Reads a nucleus: empty or `server` leaves it to the server.
pub(super) fn read_top_p(text: &str) -> Result<Option<Decimal>, String> {
    match text.trim() {
        "" | SERVER => Ok(None),
        number => match number.parse::<Decimal>()? {
            top_p if top_p.thousandths > 0 && top_p <= ONE => Ok(Some(top_p)),
            _ => Err(format!("above 0 and at most 1, or \"{SERVER}\" for the server's own")),
        },
    }
}

/// A setting as it is typed, where empty would mean something else.
pub(super) fn written(setting: Option<Decimal>) -> String {
    setting.map_or_else(|| SERVER.to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_read_what_they_write() {
        let check = |text: &str, wanted: Option<&str>| {
            assert_eq!(text.parse::<Decimal>().ok().map(|number| number.to_string()).as_deref(), wanted, "{text}");
        };
        check("1", Some("1"));
        check("0.70", Some("0.7"));
        check("0,05", Some("0.05"));
        check("1.", Some("1"));
        check("12.345", Some("12.345"));
        for wrong in ["", ".5", "1.2345", "-1", "1e3", "NaN", "+1", "9999999", "0.7 5"] {
            check(wrong, None);
        }
    }

    #[test]
    fn settings_have_their_bounds() {
        let check = |read: Result<Option<Decimal>, String>, wanted: Result<&str, &str>| {
            assert_eq!(read.map(written).as_ref().map(String::as_str).map_err(String::as_str), wanted);
        };
        check(read_temperature(""), Ok("1"));
        check(read_temperature("0"), Ok("0"));
        check(read_temperature("server"), Ok("server"));
        check(read_temperature("5.001"), Err("between 0 and 5, or \"server\" for the server's own"));
        check(read_top_p(" "), Ok("server"));
        check(read_top_p("0.95"), Ok("0.95"));
        check(read_top_p("0"), Err("above 0 and at most 1, or \"server\" for the server's own"));
        check(read_top_p("1.1"), Err("above 0 and at most 1, or \"server\" for the server's own"));
    }

    #[test]
    fn sampling_in_words() {
        assert_eq!(Sampling::default().words(), "temperature 1, to the output limit");
        let users = Sampling {
            temperature: None,
            top_p: "0.9".parse().ok(),
            end_of_text: EndOfText::Obeyed,
            min_output_tokens: Some(64),
        };
        assert_eq!(users.words(), "the server's temperature, top-p 0.9, until the model ends, at least 64 tokens");
    }
}
