//! The engines answer as their own command lines do, however the reads are cut and whoever maps them; and their indexes
//! are refused when they are not what they should be.

mod peers;
mod data;
mod genuma;
mod minibwa;
mod strobealign;
