//! The proxy that tests put before an agent. Where it can't be had they say so and do nothing.

use super::{debian, find_on_path};
use crate::{layout::Layout, step::say};
use std::path::Path;

/// Where Debian puts it, which is on no user's PATH.
const PROGRAM: &str = "/usr/sbin/nginx";

pub(super) fn provide(layout: &Layout) {
    let is_there = Path::new(PROGRAM).exists() || find_on_path("nginx").is_some();
    let is_had = || debian::is_debian() && debian::install(layout, &["nginx-light"]).is_ok();
    if !is_there && !is_had() {
        say("  nginx is not installed: the tests behind a proxy are skipped");
    }
}
