//! libFuzzer's way in: the variable `SPEEDMATRIX_FUZZ` names the target.
#![no_main]

use std::sync::OnceLock;

use fuzz::{Target, target};
use libfuzzer_sys::fuzz_target;

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("SPEEDMATRIX_FUZZ").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("SPEEDMATRIX_FUZZ={name:?} names no target: see fuzz::TARGETS"))
}

fuzz_target!(|bytes: &[u8]| CHOSEN.get_or_init(chosen)(bytes));
