//! What pages are built of.

pub mod badge;
pub mod cell;
pub mod copy;
pub mod curves;
pub mod decode;
pub mod export;
pub mod facts;
pub mod field;
pub mod icon;
pub mod keys;
pub mod live;
pub mod measurements;
pub mod notice;
pub mod pick;
pub mod plan_form;
pub mod plan_grid;
pub mod plan_more;
pub mod plan_preview;
pub mod prefill;
pub mod probe;
pub mod reins;
pub mod run_card;
pub mod run_head;
pub mod top_bar;
