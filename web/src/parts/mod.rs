//! What pages are built of.

pub mod badge;
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
pub mod notes;
pub mod notice;
pub mod plan_form;
pub mod plan_preview;
pub mod prefill;
pub mod probe;
pub mod run_card;
pub mod run_edit;
pub mod run_filters;
pub mod run_head;
pub mod run_import;
pub mod run_list;
pub mod run_menu;
pub mod top_bar;
pub mod undo;
