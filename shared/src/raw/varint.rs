//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first, as protocol buffers write them
//! (protobuf.dev, "Encoding", base 128 varints and zig-zag).

use super::codec::RawError;

/// The eighth bit: another byte follows.
const MORE: u8 = 0x80;

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        bytes.push(number as u8 | MORE);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends the way from `before` to `number`: 0, −1, 1, −2 … as 0, 1, 2, 3 … It wraps, so every pair has one.
pub(super) fn put_step(bytes: &mut Vec<u8>, before: u64, number: u64) {
    let step = number.wrapping_sub(before).cast_signed();
    put(bytes, ((step << 1) ^ (step >> 63)).cast_unsigned());
}

/// Takes numbers off the front of some bytes.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next number.
    pub(super) fn take(&mut self) -> Result<u64, RawError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(RawError::Short)?;
            self.rest = rest;
            let bits = u64::from(byte & !MORE);
            // The tenth byte has room for one bit only.
            if bits << shift >> shift != bits {
                return Err(RawError::TooLarge);
            }
            number |= bits << shift;
            if byte & MORE == 0 {
                return Ok(number);
            }
        }
        Err(RawError::TooLarge)
    }

    /// The next number, where only a smaller type's are right.
    pub(super) fn take_small<T: TryFrom<u64>>(&mut self) -> Result<T, RawError> {
        T::try_from(self.take()?).map_err(|_out_of_range| RawError::TooLarge)
    }

    /// The number that the next step leads to from `before`.
    pub(super) fn take_step(&mut self, before: u64) -> Result<u64, RawError> {
        let code = self.take()?;
        let step = (code >> 1).cast_signed() ^ -(code & 1).cast_signed();
        Ok(before.wrapping_add(step.cast_unsigned()))
    }

    /// The next bytes with their number before them.
    pub(super) fn section(&mut self) -> Result<&'a [u8], RawError> {
        let length: usize = self.take_small()?;
        let (section, rest) = self.rest.split_at_checked(length).ok_or(RawError::Short)?;
        self.rest = rest;
        Ok(section)
    }

    /// Bytes that are left: an upper bound for the numbers that can still come.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Nothing may be left.
    pub(super) const fn end(&self) -> Result<(), RawError> {
        if self.rest.is_empty() { Ok(()) } else { Err(RawError::Long) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_short_and_endless_ones_an_error() {
        let check = |number: u64, wanted: &[u8]| {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes, wanted);
        };
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[128, 1]);
        check(u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let read = |bytes: &[u8]| Reader::new(bytes).take().map_err(|error| error.to_string());
        assert_eq!(read(&[255; 9]), Err(RawError::Short.to_string()));
        assert_eq!(read(&[255; 10]), Err(RawError::TooLarge.to_string()));
        assert_eq!(read(&[128, 128, 128, 128, 128, 128, 128, 128, 128, 2]), Err(RawError::TooLarge.to_string()));
        assert_eq!(read(&[]), Err(RawError::Short.to_string()));
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            let mut before = 0;
            for &number in &numbers {
                put(&mut bytes, number);
                put_step(&mut bytes, before, number);
                before = number;
            }
            let mut reader = Reader::new(&bytes);
            let mut before = 0;
            for &number in &numbers {
                prop_assert_eq!(reader.take().unwrap(), number);
                before = reader.take_step(before).unwrap();
                prop_assert_eq!(before, number);
            }
            prop_assert!(reader.end().is_ok());
        }
    }
}
