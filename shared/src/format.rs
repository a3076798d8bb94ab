//! The only place where a number becomes text (rounding of the reference page).

/// Shown where nothing was measured.
pub const MISSING: &str = "—";
