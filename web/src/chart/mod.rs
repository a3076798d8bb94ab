//! What is drawn: the heat map, curves over a measured axis, and the rate over time. Geometry is pure and apart.

pub mod cell;
pub mod curve;
pub mod heat;
pub mod line;
pub mod mini;
pub mod scale;
pub mod time;
