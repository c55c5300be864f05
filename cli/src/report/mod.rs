//! The pages that people look at: each is one file that needs nothing else, not even a network.

pub mod advice;
pub mod call;
pub mod machine;
pub mod markup;
mod plot;
#[cfg(test)]
mod testing;

/// The style that all pages share: colours in light, dark and print, tiles, figures, tables.
const BASE_STYLE: &str = include_str!("base.css");
