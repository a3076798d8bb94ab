//! The only place where a number becomes text (rounding of the reference page). What is missing, not a number
//! or not finite becomes [`MISSING`], never `NaN` and never 0.

use crate::units::size_label;

/// Shown where nothing was measured.
pub const MISSING: &str = "—";

/// From this rate on, tokens per second are shown in thousands: it would round to 10,000.0.
const RATE_IN_THOUSANDS_FROM: f64 = 9_999.95;

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}

fn or_missing(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    finite(value).map_or_else(|| MISSING.to_owned(), show)
}

/// Digits with thousands commas and a fixed number of decimals; a value that rounds to zero has no sign.
fn grouped(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = String::with_capacity(digits.len() + whole.len() / 3 + 1);
    if value < 0.0 && digits.bytes().any(|b| matches!(b, b'1'..=b'9')) {
        text.push('-');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// One decimal, and none where it would be 0: `12.3`, `30`.
fn short(value: f64) -> String {
    let text = grouped(value, 1);
    text.strip_suffix(".0").map(ToOwned::to_owned).unwrap_or(text)
}

/// Tokens per second: `3,747.8`, from 9,999.95 on `11.3K` (here K = 1,000).
pub fn rate(tok_s: Option<f64>) -> String {
    or_missing(tok_s, |v| {
        if v.abs() >= RATE_IN_THOUSANDS_FROM { format!("{}K", grouped(v / 1_000.0, 1)) } else { grouped(v, 1) }
    })
}

/// Milliseconds with so many decimals, from seconds: `20.04 ms`.
pub fn millis(secs: Option<f64>, decimals: usize) -> String {
    or_missing(secs, |v| format!("{} ms", grouped(v * 1_000.0, decimals)))
}

/// Time to first token, from seconds: `163,008 ms`.
pub fn ttft(secs: Option<f64>) -> String {
    millis(secs, 0)
}

/// Time between tokens, from seconds: `4.5 ms`.
pub fn between_tokens(secs: Option<f64>) -> String {
    millis(secs, 1)
}

/// The client's own lateness, from seconds: `0.04 ms`; with fewer decimals where it is long: `12.3 ms`, `1,800 ms`.
pub fn lag(secs: Option<f64>) -> String {
    let decimals = match secs.map_or(0.0, f64::abs) {
        ..0.009_995 => 2,
        ..0.099_95 => 1,
        _ => 0,
    };
    millis(secs, decimals)
}

/// Seconds: `30.0 s`.
pub fn seconds(secs: Option<f64>) -> String {
    or_missing(secs, |v| format!("{} s", grouped(v, 1)))
}

/// A whole number: `112,385`.
pub fn count(number: Option<u64>) -> String {
    number.map_or_else(|| MISSING.to_owned(), group_whole)
}

/// A whole number that a table holds as a decimal one: `112,385`.
pub fn whole(number: Option<f64>) -> String {
    or_missing(number, |v| grouped(v, 0))
}

fn group_whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One decimal: average active requests `73.4`.
pub fn decimal1(value: Option<f64>) -> String {
    or_missing(value, |v| grouped(v, 1))
}

/// Two decimals, for small numbers: requests per second `0.27`, tokens per step `2.54`.
pub fn decimal2(value: Option<f64>) -> String {
    or_missing(value, |v| grouped(v, 2))
}

/// A share of 0–1 as `5 %` or `62.5 %`.
pub fn percent(share: Option<f64>) -> String {
    or_missing(share, |v| format!("{} %", short(v * 100.0)))
}

/// A change as a share of what was there before, with its sign: `+8.4 %`, `−0.5 %`, `0.0 %`.
pub fn change(share: Option<f64>) -> String {
    or_missing(share, |v| {
        let digits = grouped(v.abs() * 100.0, 1);
        let sign = match v {
            _ if digits == "0.0" => "",
            ..0.0 => "−",
            _ => "+",
        };
        format!("{sign}{digits} %")
    })
}

/// A number of tokens as a label: `8K`.
pub fn size(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| MISSING.to_owned(), size_label)
}

/// A number of tokens in full: `4,096 tokens`.
pub fn tokens(number: Option<u64>) -> String {
    number.map_or_else(|| MISSING.to_owned(), |n| format!("{} tokens", group_whole(n)))
}

/// Memory in GB as the vendor counts: `282 GB`.
pub fn gigabytes(gb: Option<f64>) -> String {
    or_missing(gb, |v| format!("{} GB", short(v)))
}

/// Memory in units of 2³⁰ bytes, which is what vendors call a GB of a card, from bytes: `70.5 GB`.
pub fn memory(bytes: Option<f64>) -> String {
    gigabytes(bytes.map(|bytes| bytes / f64::from(1 << 30)))
}

/// Traffic of a link, from bytes per second: `41.2 GB/s` (10⁹ bytes, as links are sold), `0.0123 GB/s`.
pub fn traffic(bytes_per_s: Option<f64>) -> String {
    or_missing(bytes_per_s, |v| format!("{} GB/s", grouped_digits(v / 1e9)))
}

/// Power: `1,234 W`.
pub fn watts(watts: Option<f64>) -> String {
    or_missing(watts, |v| format!("{} W", grouped(v, 0)))
}

/// Energy, with three digits that tell: `0.0123 J`, `1.23 J`, `1,234 J`.
pub fn joules(joules: Option<f64>) -> String {
    or_missing(joules, |v| format!("{} J", grouped_digits(v)))
}

/// Three digits that tell.
fn grouped_digits(v: f64) -> String {
    let decimals = match v.abs() {
        ..0.1 => 4,
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    grouped(v, decimals)
}

/// A clock: `1,980 MHz`.
pub fn megahertz(mhz: Option<f64>) -> String {
    or_missing(mhz, |v| format!("{} MHz", grouped(v, 0)))
}

/// A temperature: `71 °C`.
pub fn celsius(degrees: Option<f64>) -> String {
    or_missing(degrees, |v| format!("{} °C", grouped(v, 0)))
}

/// A length of time in words, from seconds: `726 ms`, `30 s`, `2 min 43 s`, `1 h 5 min`.
pub fn duration_words(secs: Option<f64>) -> String {
    or_missing(secs, |v| {
        let rounded = v.max(0.0).round() as u64;
        match v {
            ..0.9995 => format!("{} ms", grouped(v * 1_000.0, 0)),
            ..59.95 => format!("{} s", short(v)),
            ..3_599.5 => format!("{} min {} s", rounded / 60, rounded % 60),
            _ => {
                let minutes = (v / 60.0).round() as u64;
                format!("{} h {} min", group_whole(minutes / 60), minutes % 60)
            }
        }
    })
}

/// A round length of time for the mark of an axis, from seconds: `10 ms`, `1 s`, `1 min`.
pub fn round_time(secs: Option<f64>) -> String {
    let words = duration_words(secs);
    let round = words.strip_suffix(" 0 s").or_else(|| words.strip_suffix(" 0 min"));
    round.map_or(words.clone(), ToOwned::to_owned)
}

/// Numbers for the marks of one axis: with as many decimals as tell them apart, at most two: `0`, `250`, `500`; `0.5`, `1.0`.
pub fn marks(values: &[f64]) -> Vec<String> {
    let fits = |decimals: &usize| {
        let scale = [1.0, 10.0, 100.0].get(*decimals).copied().unwrap_or(1.0);
        values.iter().all(|value| ((value * scale).round() - value * scale).abs() < 1e-6)
    };
    let decimals = (0..3).find(fits).unwrap_or(2);
    values.iter().map(|value| or_missing(Some(*value), |v| grouped(v, decimals))).collect()
}

/// A rate and its interval: `223.5 ± 4.1`, `11.3K ± 0.2K`; only the rate where there is no interval.
pub fn interval(tok_s: Option<f64>, half_width: Option<f64>) -> String {
    let (Some(rate_tok_s), Some(half)) = (finite(tok_s), finite(half_width)) else { return rate(tok_s) };
    let half = if rate_tok_s.abs() >= RATE_IN_THOUSANDS_FROM {
        format!("{}K", grouped(half / 1_000.0, 1))
    } else {
        grouped(half, 1)
    };
    format!("{} ± {half}", rate(tok_s))
}

/// Elapsed or remaining time: `4:07`, `1:02:03`. Part of a second counts as not yet over.
pub fn clock(secs: Option<f64>) -> String {
    or_missing(secs, |v| {
        let total = v.max(0.0).floor() as u64;
        let (hours, minutes, rest) = (total / 3_600, total / 60 % 60, total % 60);
        if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") }
    })
}

/// A moment on an axis whose marks are `step_s` apart, in seconds: `12 s`, `12.5 s`, `12.503 s`.
pub fn moment(secs: f64, step_s: f64) -> String {
    let decimals = match step_s {
        1.0.. => 0,
        0.1.. => 1,
        0.01.. => 2,
        _ => 3,
    };
    or_missing(Some(secs), |v| format!("{} s", grouped(v, decimals)))
}

/// A number for a machine: full precision, no commas, no unit; empty where nothing was measured.
pub fn plain(value: Option<f64>) -> String {
    finite(value).map_or_else(String::new, |v| if v == 0.0 { "0".to_owned() } else { v.to_string() })
}

/// Wall time from milliseconds since 1970: `2026-12-01 21:30 UTC`. 0 is the time of a run whose start is not known.
pub fn wall_time(unix_ms: u64) -> String {
    if unix_ms == 0 {
        return MISSING.to_owned();
    }
    let minutes = unix_ms / 60_000;
    let (year, month, day) = civil_date(minutes / 1_440);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

/// Year, month and day of a number of days since 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms":
/// years begin in March, so that the leap day is a year's last).
fn civil_date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: impl AsRef<str>, wanted: &str) {
        assert_eq!(shown.as_ref(), wanted);
    }

    #[test]
    fn numbers_read_as_on_the_reference_page() {
        check(rate(Some(3_747.8)), "3,747.8");
        check(rate(Some(9_999.94)), "9,999.9");
        check(rate(Some(9_999.95)), "10.0K");
        check(rate(Some(11_283.7)), "11.3K");
        check(rate(Some(0.0)), "0.0");
        check(rate(Some(1_234_567.0)), "1,234.6K");
        check(ttft(Some(0.092)), "92 ms");
        check(ttft(Some(163.008)), "163,008 ms");
        check(between_tokens(Some(0.004_49)), "4.5 ms");
        check(lag(Some(0.000_04)), "0.04 ms");
        check(lag(Some(0.009_996)), "10.0 ms");
        check(lag(Some(1.8)), "1,800 ms");
        check(seconds(Some(30.0)), "30.0 s");
        check(count(Some(112_385)), "112,385");
        check(count(Some(0)), "0");
        check(whole(Some(1_000_000.0)), "1,000,000");
        check(change(Some(0.084)), "+8.4 %");
        check(change(Some(-0.012_5)), "−1.2 %");
        check(change(Some(-0.000_1)), "0.0 %");
        check(change(Some(f64::INFINITY)), "—");
        check(decimal1(Some(73.4)), "73.4");
        check(decimal1(Some(-0.04)), "0.0");
        check(decimal1(Some(-1_234.56)), "-1,234.6");
        check(percent(Some(0.05)), "5 %");
        check(percent(Some(0.625)), "62.5 %");
        check(size(Some(8_192)), "8K");
        check(tokens(Some(4_096)), "4,096 tokens");
        check(gigabytes(Some(282.0)), "282 GB");
        check(memory(Some(75_698_798_592.0)), "70.5 GB");
        check(watts(Some(1_234.4)), "1,234 W");
        check(joules(Some(0.012_34)), "0.0123 J");
        check(joules(Some(0.45)), "0.450 J");
        check(joules(Some(1.234)), "1.23 J");
        check(joules(Some(12_345.6)), "12,346 J");
        check(megahertz(Some(1_980.0)), "1,980 MHz");
        check(celsius(Some(70.6)), "71 °C");
        check(interval(Some(223.5), Some(4.14)), "223.5 ± 4.1");
        check(interval(Some(11_300.0), Some(210.0)), "11.3K ± 0.2K");
        check(interval(Some(223.5), None), "223.5");
        check(moment(12.0, 2.0), "12 s");
        check(moment(12.5, 0.5), "12.5 s");
        check(moment(0.25, 0.05), "0.25 s");
        check(moment(1_234.000_6, 0.000_5), "1,234.001 s");
        check(plain(Some(223.512_345_678)), "223.512345678");
        check(plain(Some(1e21)), "1000000000000000000000");
        check(plain(Some(-0.0)), "0");
    }

    #[test]
    fn times_read_as_people_say_them() {
        check(duration_words(Some(0.726)), "726 ms");
        check(duration_words(Some(0.999_6)), "1 s");
        check(duration_words(Some(30.0)), "30 s");
        check(duration_words(Some(59.97)), "1 min 0 s");
        check(duration_words(Some(163.008)), "2 min 43 s");
        check(duration_words(Some(3_599.6)), "1 h 0 min");
        check(duration_words(Some(3_930.0)), "1 h 6 min");
        check(clock(Some(247.9)), "4:07");
        check(clock(Some(3_723.0)), "1:02:03");
        check(clock(Some(-3.0)), "0:00");
        check(wall_time(1_796_160_600_000), "2026-12-01 21:30 UTC");
        check(wall_time(951_782_399_999), "2000-02-28 23:59 UTC");
        check(wall_time(951_782_400_000), "2000-02-29 00:00 UTC");
        check(wall_time(1_709_251_200_000), "2024-03-01 00:00 UTC");
        check(wall_time(1), "1970-01-01 00:00 UTC");
        check(wall_time(0), MISSING);
    }

    #[test]
    fn what_is_not_a_number_is_missing() {
        let shows: [fn(Option<f64>) -> String; 16] = [
            rate,
            ttft,
            between_tokens,
            lag,
            seconds,
            whole,
            decimal1,
            percent,
            gigabytes,
            duration_words,
            clock,
            memory,
            watts,
            joules,
            megahertz,
            celsius,
        ];
        for show in shows {
            for value in [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)] {
                check(show(value), MISSING);
            }
        }
        check(count(None), MISSING);
        check(size(None), MISSING);
        check(tokens(None), MISSING);
        check(interval(None, Some(1.0)), MISSING);
        check(interval(Some(2.0), Some(f64::NAN)), "2.0");
        check(plain(None), "");
        check(plain(Some(f64::NAN)), "");
    }
}
