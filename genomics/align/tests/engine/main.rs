//! The engines give the same records as their own command lines, whatever the batches and workers. Indexes that are
//! damaged or foreign are refused.

mod peers;
mod data;
mod genuma;
mod minibwa;
mod strobealign;
