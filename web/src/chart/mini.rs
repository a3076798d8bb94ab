//! The heat map as a small picture, for lists.

use leptos::prelude::*;
use speedmatrix_shared::metric::Better;

use super::{
    cell::{Ranges, step_class},
    scale::step,
};

/// Side of the picture in its own units.
const SIDE: f64 = 64.0;

/// Rows of total tok/s as a picture of 64 × 64; what is not measured yet stays pale.
#[component]
pub fn Mini(
    /// Contexts ascending, each with its values by concurrency ascending.
    rows: Vec<Vec<Option<f64>>>,
) -> impl IntoView {
    let range = Ranges::of(&rows).all;
    let height = SIDE / rows.len().max(1) as f64;
    let squares: Vec<_> = rows
        .into_iter()
        .enumerate()
        .flat_map(|(y, row)| {
            let width = SIDE / row.len().max(1) as f64;
            row.into_iter().enumerate().map(move |(x, value)| {
                let class = match (value, range) {
                    (Some(value), Some(range)) => step_class(step(value, range, Better::Higher)),
                    _ => "none",
                };
                let (x, y) = (x as f64 * width, y as f64 * height);
                view! { <rect class=class x=x y=y width=width - 0.6 height=height - 0.6></rect> }
            })
        })
        .collect();
    view! { <svg class="mini" viewBox="0 0 64 64" preserveAspectRatio="none" aria-hidden="true">{squares}</svg> }
}
