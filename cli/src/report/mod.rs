//! The HTML reports. Each page is one file without external resources, so that it opens without a network.

pub(crate) mod advice;
pub(crate) mod call;
pub(crate) mod machine;
pub(crate) mod markup;
pub(crate) mod plot;
#[cfg(test)]
pub(crate) mod testing;

/// The style sheet of all pages: colours for light mode, dark mode and print, tiles, figures, tables.
pub(crate) const BASE_STYLE: &str = include_str!("base.css");
