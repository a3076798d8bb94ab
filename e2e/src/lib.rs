//! Page objects and the rig of the browser tests live in `tests/`.
