//! What is drawn: the heat map, curves over a measured axis, how values spread, and what happened over time. Geometry is
//! pure and apart.

pub mod cell;
pub mod curve;
pub mod figure;
pub mod heat;
pub mod histogram;
pub mod lanes;
pub mod line;
pub mod live;
pub mod mini;
pub mod over_runs;
pub mod scale;
pub mod timeline;
pub mod waterfall;
