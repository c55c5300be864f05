//! The HTML reports. Each page is one file without external resources, so that it opens without a network.

pub mod advice;
pub mod call;
pub mod machine;
pub mod machine_comparison;
pub mod markup;
pub mod plot;
#[doc(hidden)]
pub mod testing;

/// The style sheet of all pages: colours for light mode, dark mode and print, tiles, figures, tables.
pub const BASE_STYLE: &str = include_str!("base.css");
