//! What a call will take, and what earlier calls say of it: for `genuma plan`, and for `genuma call` before it begins.

pub(crate) mod calibrate;
pub(crate) mod input;
pub(crate) mod model;
pub(crate) mod rates;
pub(crate) mod steps;
