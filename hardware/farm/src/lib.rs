//! A lock-free master-worker farm of pinned threads: the runtime of misale2014, section V.
//!
//! A master, the calling thread, reads tasks and collects their results. Each worker, pinned to a CPU, is joined to it by two
//! bounded rings with one writer and one reader each. A task is made once, by the worker it belongs to, goes round between
//! the two for ever, and carries input one way and results the other. So a farm holds
//! *workers × tasks per worker* tasks whatever the length of the input, their memory lies on the node where it is worked on,
//! and nothing is locked or allocated for a task.
//!
//! Results are handed on in the order the tasks were read. A source whose next task depends on results says so
//! ([`Next::Later`]) and is asked again when one has been handed on.
//!
//! ```
//! use genuma_farm::{Farm, Seat};
//!
//! let mut numbers = 0..1000_u64;
//! let mut sum = 0;
//! let summary = Farm::new(vec![Seat::default(); 2])
//!     .run(
//!         |_seat| 0_u64,                              // a task, made by its worker
//!         |_seat| Ok(()),                             // what a worker keeps from task to task
//!         |task| Ok(numbers.next().map(|n| *task = n).is_some()),
//!         |(), task| { *task *= 2; Ok(()) },
//!         |task| { sum += *task; Ok::<(), String>(()) },
//!     )
//!     .unwrap();
//! assert_eq!((sum, summary.tasks), (999_000, 1000));
//! ```

mod seat;
mod next;
mod error;
mod farm;
mod worker;
mod desk;
mod master;
mod pace;
mod window;
mod sleep;
mod turn;
mod sync;

pub use error::{Error, Place};
pub use farm::{Farm, Summary};
pub use next::Next;
pub use seat::{Seat, seats};
pub use worker::{Worked, touched};
