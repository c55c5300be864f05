//! Options, texts and files of forecasts, which `genuma-planner` makes. Used by `genuma plan`, and by `genuma call
//! --dry-run`.

pub(crate) mod options;
pub(crate) mod machine_speed;
mod text_table;
pub(crate) mod text;
pub(crate) mod comparison_text;
