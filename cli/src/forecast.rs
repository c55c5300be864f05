//! Predicts time, memory and disk space of a call from its input and from the costs of earlier calls. Used by `genuma
//! plan`, and by `genuma call` before it begins.

pub(crate) mod calibrate;
pub(crate) mod input;
pub(crate) mod machine_speed;
pub(crate) mod model;
pub(crate) mod rate_source;
pub(crate) mod rates;
pub(crate) mod steps;
pub(crate) mod cost;
pub(crate) mod machine_table;
pub(crate) mod machine_comparison;
mod text_table;
pub(crate) mod text;
mod comparison_notes;
mod comparison_page;
pub(crate) mod comparison_text;
