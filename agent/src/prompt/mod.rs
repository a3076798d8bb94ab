//! What is sent: the texts of the prompts, the request bodies around them, and how many characters a token has.

pub mod calibrate;
pub mod corpus;
mod questions;
pub mod request;
pub mod text;
mod words;
