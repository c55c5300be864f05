//! The pages that people look at: each is one file that needs nothing else, not even a network.

pub mod call;
#[allow(dead_code, reason = "the verb that writes the page comes with the next change")]
pub mod machine;
#[allow(dead_code, reason = "parts of it are the machine's alone")]
mod markup;
#[allow(dead_code, reason = "parts of it are the machine's alone")]
mod plot;
#[cfg(test)]
mod testing;

/// The style that all pages share: colours in light, dark and print, tiles, figures, tables.
const BASE_STYLE: &str = include_str!("base.css");
