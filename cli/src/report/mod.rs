//! The HTML reports. Each page is one file without external resources, so that it opens without a network.

pub(crate) mod advice;
pub(crate) mod call;
pub(crate) mod machine;
pub(crate) mod markup;
mod plot;
#[cfg(test)]
mod testing;

/// The style sheet of all pages: colours for light mode, dark mode and print, tiles, figures, tables.
const BASE_STYLE: &str = include_str!("base.css");
