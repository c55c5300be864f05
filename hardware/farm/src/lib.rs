//! A lock-free master-worker farm of pinned threads: the runtime of misale2014, section V.
//!
//! A master (the calling thread) reads tasks and collects their results. Each worker is pinned to a CPU and connected
//! to the master by two bounded rings, each with one writer and one reader. A task object is allocated once, by the
//! worker that owns it, and moves between master and worker repeatedly. It carries input one way and results the other
//! way. So a farm allocates *workers × tasks per worker* task objects, whatever the length of the input. Their memory
//! is on the NUMA node of the worker, and nothing is locked or allocated per task.
//!
//! Results are passed to the sink in the order in which the tasks were read. A source whose next task depends on
//! results returns [`SourceStatus::WaitForResult`] and is called again when another result has been passed to the
//! sink.
//!
//! ```
//! use genuma_farm::{CpuSlot, Farm};
//!
//! let mut numbers = 0..1000_u64;
//! let mut sum = 0;
//! let summary = Farm::new(vec![CpuSlot::default(); 2])
//!     .run_tasks(
//!         |_slot| 0_u64,                              // a task, allocated by its worker
//!         |_slot| Ok(()),                             // state that a worker keeps from task to task
//!         |task| Ok(numbers.next().map(|n| *task = n).is_some()),
//!         |(), task| { *task *= 2; Ok(()) },
//!         |task| { sum += *task; Ok::<(), String>(()) },
//!     )
//!     .unwrap();
//! assert_eq!((sum, summary.tasks), (999_000, 1000));
//! ```

mod cpu_slot;
mod source_status;
mod error;
mod farm;
mod worker;
mod shared;
mod master;
mod task_granularity;
mod reorder_buffer;
mod sleep;
mod try_lock;
mod sync;

pub use cpu_slot::{CpuSlot, assign_cpu_slots};
pub use error::{Error, FailedClosure};
pub use farm::{Farm, FarmSummary};
pub use source_status::SourceStatus;
pub use worker::{WorkerSummary, allocate_touched_buffer};
