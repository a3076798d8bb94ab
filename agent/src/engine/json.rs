//! Fields as lenient as the servers that write them: null, absent and of the wrong type are all "not there", and text is
//! borrowed from the bytes wherever JSON allows it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A text, empty if it isn't one. A list of content parts gives the text of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words<'a>(pub(super) Cow<'a, str>);

/// A count, `None` if it isn't a whole number of at least 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

/// Most elements of a list that are kept, as many answers or tool calls as OpenAI's interface allows at once: an element
/// may take a hundred times the bytes that it came in.
const MOST_ELEMENTS: usize = 128;

/// A list; anything else counts as empty. The first element needs no allocation; those beyond what anybody sends are
/// passed over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List<T> {
    pub(super) first: Option<T>,
    pub(super) rest: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> List<T> {
    pub(super) fn into_iter(self) -> impl Iterator<Item = T> {
        self.first.into_iter().chain(self.rest)
    }
}

/// Answers for every kind of JSON value that a visitor takes no interest in.
macro_rules! nothing_else {
    ($lifetime:lifetime, $nothing:expr) => {
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_map<A: MapAccess<$lifetime>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Words<'de>, E> {
        Ok(Words(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Words<'de>, E> {
        Ok(Words(Cow::Owned(text.to_owned())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Words<'de>, A::Error> {
        let mut text = String::new();
        while let Some(part) = parts.next_element::<Maybe<Part<'de>>>()? {
            text += part.0.map(|part| part.text.0).as_deref().unwrap_or_default();
        }
        Ok(Words(Cow::Owned(text)))
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Words<'de>, E> {
        Ok(Words::default())
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Words<'de>, E> {
        Ok(Words::default())
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Words<'de>, E> {
        Ok(Words::default())
    }
    nothing_else!('de, Words::default());
}

/// One part of a content list.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Words<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }
    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }
    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(count).ok()))
    }
    fn visit_f64<E: de::Error>(self, count: f64) -> Result<Count, E> {
        Ok(Count((count >= 0.0 && count.fract() == 0.0 && count < u64::MAX as f64).then_some(count as u64)))
    }
    fn visit_str<E: de::Error>(self, _: &str) -> Result<Count, E> {
        Ok(Count(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
    nothing_else!('de, Count(None));
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct ListVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut found = List::default();
        for _ in 0..MOST_ELEMENTS {
            let Some(Maybe(element)) = list.next_element()? else { return Ok(found) };
            match found.first {
                None => found.first = element,
                Some(_) => found.rest.extend(element),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
    fn visit_str<E: de::Error>(self, _: &str) -> Result<List<T>, E> {
        Ok(List::default())
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<List<T>, E> {
        Ok(List::default())
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<List<T>, E> {
        Ok(List::default())
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<List<T>, E> {
        Ok(List::default())
    }
    nothing_else!('de, List::default());
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(std::marker::PhantomData))
    }
}

/// An object; anything else counts as absent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

struct MaybeVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MaybeVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Maybe<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(|object| Maybe(Some(object)))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_str<E: de::Error>(self, _: &str) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Maybe<T>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Maybe(None))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MaybeVisitor(std::marker::PhantomData))
    }
}

/// What most chunks don't have: behind a pointer, so that the others needn't move its room about. `T` is lenient itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rare<T>(pub(super) Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value: Option<T> = Option::deserialize(deserializer)?;
        Ok(Self(value.map(Box::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Nothing {}

    #[test]
    fn a_list_keeps_what_anybody_sends() {
        let check = |elements: usize, kept: usize| {
            let text = format!("[{}]", vec!["{}"; elements].join(","));
            assert_eq!(serde_json::from_str::<List<Nothing>>(&text).unwrap().into_iter().count(), kept, "{elements}");
        };
        check(0, 0);
        check(1, 1);
        check(MOST_ELEMENTS, MOST_ELEMENTS);
        check(1_000_000, MOST_ELEMENTS);
        assert!(serde_json::from_str::<List<Nothing>>(&format!("[{}", "{},".repeat(1_000))).is_err(), "it has no end");
    }
}
