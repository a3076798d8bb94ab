//! Ranges in typed lists: `8K-128K` doubles from one end to the other, `10-50+10` goes in steps, and `8K,16K,…,128K` goes
//! on as it began.

use crate::units::parse_size_tokens;

/// Most numbers of one range: more than any matrix holds.
const MOST: usize = 1_024;
/// What stands between the ends of a range, the longest first.
const BETWEEN: [&str; 5] = ["...", "..", "…", "–", "-"];
/// What stands for the numbers between its neighbours.
const AND_SO_ON: [&str; 3] = ["…", "...", ".."];

/// How a range goes from one number to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Doubling,
    By(u64),
}

impl Step {
    fn after(self, number: u64) -> Option<u64> {
        match self {
            Self::Doubling => number.checked_mul(2).filter(|next| *next > number),
            Self::By(step) => number.checked_add(step).filter(|next| *next > number),
        }
    }
}

/// The items of a list with its ranges written out; each wrong range is an error of its own. What is no range stays as
/// it was typed.
pub(super) fn written_out(text: &str) -> Vec<Result<String, String>> {
    let items = text.split([',', ' ', ';']).map(str::trim).filter(|item| !item.is_empty());
    let items: Vec<&str> = items.collect();
    let mut all = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let numbers = if AND_SO_ON.contains(item) { between_neighbours(&items, at) } else { range(item) };
        match numbers {
            Some(Ok(numbers)) => all.extend(numbers.into_iter().map(|number| Ok(number.to_string()))),
            Some(Err(error)) => all.push(Err(error)),
            None => all.push(Ok((*item).to_owned())),
        }
    }
    all
}

/// `None`: it is no range.
fn range(item: &str) -> Option<Result<Vec<u64>, String>> {
    let (first, rest) = BETWEEN.iter().find_map(|between| item.split_once(between))?;
    let (last, step) = match rest.split_once('+') {
        Some((last, step)) => (last, Step::By(parse_size_tokens(step).ok()?)),
        None => (rest, Step::Doubling),
    };
    let (first, last) = (parse_size_tokens(first).ok()?, parse_size_tokens(last).ok()?);
    if first > last {
        return Some(Err(format!("the range \"{item}\" runs downward: write its smaller end first")));
    }
    Some(numbers(first, last, step).ok_or_else(|| format!("the range \"{item}\" has more than {MOST} numbers")))
}

/// `8K,16K,…,128K`: doubling where the two before it double, else in their step.
fn between_neighbours(items: &[&str], at: usize) -> Option<Result<Vec<u64>, String>> {
    let wrong = || Some(Err("\"…\" stands between numbers, as in 8K,16K,…,128K".to_owned()));
    let number = |at: Option<usize>| items.get(at?).and_then(|item| parse_size_tokens(item).ok());
    let (Some(first), Some(second), Some(last)) =
        (number(at.checked_sub(2)), number(at.checked_sub(1)), number(at.checked_add(1)))
    else {
        return wrong();
    };
    if !(0 < first && first < second && second <= last) {
        return wrong();
    }
    let step = if second == 2 * first { Step::Doubling } else { Step::By(second - first) };
    Some(numbers(second, last, step).ok_or_else(|| format!("that are more than {MOST} numbers")))
}

/// From `first` up to `last`, both included; `None` if they are too many.
fn numbers(first: u64, last: u64, step: Step) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut next = Some(first);
    while let Some(number) = next.filter(|number| *number < last) {
        if numbers.len() == MOST - 1 {
            return None;
        }
        numbers.push(number);
        next = step.after(number);
    }
    numbers.push(last);
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::size_label;

    fn check(text: &str, wanted: &str) {
        let label = |text: String| parse_size_tokens(&text).map_or(text, size_label);
        let items = written_out(text).into_iter().map(|item| item.map_or_else(|error| format!("! {error}"), label));
        assert_eq!(items.collect::<Vec<_>>().join(" "), wanted, "{text}");
    }

    #[test]
    fn ranges_are_written_out() {
        check("8K-128K", "8K 16K 32K 64K 128K");
        check("8K..100K", "8K 16K 32K 64K 100K");
        check("1–8 24", "1 2 4 8 24");
        check("10-50+10", "10 20 30 40 50");
        check("8K,16K,…,64K", "8K 16K 16K 32K 64K 64K");
        check("10;15;...;30", "10 15 15 20 25 30 30");
        check("4-4", "4");
        check("8K,abc,-8K", "8K abc -8K");
        check("8K-abc", "8K-abc");
        check("0-8", "0 8");
    }

    #[test]
    fn a_wrong_range_says_what_is_wrong() {
        check("64K-8K", "! the range \"64K-8K\" runs downward: write its smaller end first");
        check("1-9999+1", "! the range \"1-9999+1\" has more than 1024 numbers");
        check("8K,…,64K", "8K ! \"…\" stands between numbers, as in 8K,16K,…,128K 64K");
        check("…", "! \"…\" stands between numbers, as in 8K,16K,…,128K");
    }

    proptest! {
        #[test]
        fn a_range_has_its_ends_and_rises(first in any::<u64>(), last in any::<u64>(), step in prop_oneof![
            Just(Step::Doubling), (0..u64::MAX).prop_map(Step::By)
        ]) {
            let numbers = numbers(first.min(last), first.max(last), step);
            if let Some(numbers) = numbers {
                prop_assert!(numbers.len() <= MOST);
                prop_assert_eq!(numbers.last().copied(), Some(first.max(last)));
                prop_assert_eq!(numbers.first().copied(), Some(first.min(last)));
                prop_assert!(numbers.is_sorted_by(|a, b| a < b));
            }
        }

        #[test]
        fn any_text_is_read(text in ".{0,40}") {
            written_out(&text);
        }
    }
}
