//! The rules that make findings.
