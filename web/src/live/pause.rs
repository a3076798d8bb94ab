//! How long to wait before the next attempt to connect.

/// The first pause, in milliseconds.
const FIRST_MS: f64 = 500.0;
/// The longest pause, in milliseconds: a person who looks at the page gets it back soon.
const LONGEST_MS: f64 = 15_000.0;

/// Milliseconds to wait after `attempts` in vain. Pauses double up to a limit, and chance (0–1) spreads them over half
/// to one and a half times their length, so that many pages do not come back to a restarted agent all at once.
pub fn pause_ms(attempts: u32, chance: f64) -> u32 {
    let doubled = FIRST_MS * f64::from(attempts.min(16)).exp2();
    (doubled.min(LONGEST_MS) * (0.5 + chance.clamp(0.0, 1.0))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        assert_eq!(pause_ms(0, 0.5), 500);
        assert_eq!(pause_ms(3, 0.5), 4_000);
        assert_eq!(pause_ms(3, 0.0), 2_000);
        assert_eq!(pause_ms(u32::MAX, 1.0), 22_500);
    }
}
