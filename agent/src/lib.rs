//! stub
pub mod sim;
