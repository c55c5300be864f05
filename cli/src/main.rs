//! The door: one file a verb.
fn main() {}
