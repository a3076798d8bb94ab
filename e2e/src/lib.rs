//! Browser tests only: the rig, the page objects and the tests live in `tests/browser`.
