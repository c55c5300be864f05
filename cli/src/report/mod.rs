//! The pages that people look at: each is one file that needs nothing else, not even a network.

pub(crate) mod advice;
pub(crate) mod call;
pub(crate) mod machine;
pub(crate) mod markup;
mod plot;
#[cfg(test)]
mod testing;

/// The style that all pages share: colours in light, dark and print, tiles, figures, tables.
const BASE_STYLE: &str = include_str!("base.css");
