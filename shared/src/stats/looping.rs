//! Whether a text repeats itself: a model that loops is faster than it is with real answers, with speculation above all.

/// A text loops if its end is exactly periodic over at least this many characters …
const LEAST_CHARS: usize = 4_096;
/// … with at least this many periods.
const LEAST_CYCLES: usize = 4;
/// Requests of the slots below this one keep their text to be looked at: a sample that costs the others nothing.
pub const LOOKED_AT_SLOTS: u32 = 32;
/// A cell loops if at least this share of the requests that were looked at do.
pub const MIN_SHARE: f64 = 0.1;

/// Whether a text ends in a loop (method §5): at least 4 cycles of an exactly periodic tail over at least 4,096 characters.
/// The period of each tail comes from the failure function of the reversed text (Knuth, Morris and Pratt, 1977), in linear
/// time. Bytes are looked at: a period of characters is one of bytes.
pub fn is_looping(text: &str) -> bool {
    let reversed: Vec<u8> = text.bytes().rev().collect();
    // border[i]: length of the longest proper border of the first i + 1 bytes.
    let mut border = vec![0_usize; reversed.len()];
    let mut length = 0;
    for i in 1..reversed.len() {
        while length > 0 && reversed[i] != reversed[length] {
            length = border[length - 1];
        }
        if reversed[i] == reversed[length] {
            length += 1;
        }
        border[i] = length;
        let (tail, period) = (i + 1, i + 1 - length);
        if tail >= LEAST_CHARS && tail >= LEAST_CYCLES * period {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_and_long_repetition_is_a_loop() {
        // A counter's digits: no period.
        let prose = |chars: usize| {
            let words = (0_u32..).map(|n| format!("{} ", n.wrapping_mul(2_654_435_761)));
            let mut text: String = words.take(chars / 2).collect();
            text.truncate(chars);
            text
        };
        let check = |text: String, looping: bool| assert_eq!(is_looping(&text), looping, "{text:.40}");
        check(prose(20_000), false);
        check(prose(3_000) + &"and so on ".repeat(410), true);
        check("and so on ".repeat(409), false);
        check(prose(3_000) + &"and so on ".repeat(410) + "!", false);
        check(prose(1_024).repeat(4), true);
        check(prose(1_500).repeat(3), false);
        check(String::new(), false);
    }
}
