//! Makes genuma's system calls fail, one by one, and judges what becomes of its results.
//!
//! [`fault`] says what can happen to a call, [`shim`] lets it happen, [`case`] has the commands, [`bench`] runs them, [`oracle`] judges
//! what they leave ([`snapshot`]), [`damage`] spoils what is read back, [`plan`] lists what a campaign does, [`tally`] what came of it.

pub mod bench;
pub mod case;
pub mod damage;
pub mod fault;
pub mod oracle;
pub mod plan;
pub mod process;
pub mod shim;
mod snapshot;
pub mod tally;
