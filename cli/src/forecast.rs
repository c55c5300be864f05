//! What a call will take, and what earlier calls say of it: for `genuma plan`, and for `genuma call` before it begins.

pub mod calibrate;
pub mod input;
pub mod model;
pub mod rates;
pub mod steps;
