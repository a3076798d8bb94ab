//! A run as a file: Markdown, CSV, JSON.
