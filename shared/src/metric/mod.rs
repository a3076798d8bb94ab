//! The METRICS table: one row per number; tables, heat map, CSV, Markdown and docs derive from it.
