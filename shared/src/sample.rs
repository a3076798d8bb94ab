//! The read-only sample run: one published page as data.
