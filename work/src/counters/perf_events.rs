//! Perf events of a process and of the processes that it starts (perf_event_open(2)).

use std::fs;
use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Software};
use perf_event::{Builder, Counter};

use super::CounterValue;

/// Which processes a perf event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedProcesses {
    /// The next process that this thread starts, from the moment at which it executes its program, and its children.
    NextChild,
    /// The calling thread, and threads that it or its threads start later.
    ThisProcess,
}

/// Open perf events. An event that the system does not permit has the reason instead.
#[derive(Debug)]
pub(super) struct PerfEvents {
    cycles: OpenEvent,
    instructions: OpenEvent,
    llc_misses: OpenEvent,
    remote_loads: OpenEvent,
    cpu_migrations: OpenEvent,
}

/// Counts of the perf events of a set of processes.
#[derive(Debug, Clone)]
pub(super) struct PerfCounts {
    pub(super) cycles: CounterValue,
    pub(super) instructions: CounterValue,
    pub(super) llc_misses: CounterValue,
    pub(super) remote_loads: CounterValue,
    pub(super) cpu_migrations: CounterValue,
}

#[derive(Debug)]
enum OpenEvent {
    Counting { counter: Counter, user_mode_only: bool },
    Refused(String),
}

/// Whether an event must also be counted while the kernel runs, which an unprivileged process may not be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelPart {
    /// The count is also useful without the kernel's part.
    Optional,
    /// The count is meaningless without the kernel's part.
    Essential,
}

impl PerfEvents {
    /// Opens the events that the system permits.
    pub(super) fn open(scope: CountedProcesses) -> PerfEvents {
        let remote = Cache { which: CacheId::NODE, operation: CacheOp::READ, result: CacheResult::MISS };
        PerfEvents {
            cycles: OpenEvent::open(Hardware::CPU_CYCLES, scope, KernelPart::Optional),
            instructions: OpenEvent::open(Hardware::INSTRUCTIONS, scope, KernelPart::Optional),
            llc_misses: OpenEvent::open(Hardware::CACHE_MISSES, scope, KernelPart::Optional),
            remote_loads: OpenEvent::open(remote, scope, KernelPart::Optional),
            // The kernel moves threads, so that without its part the number would always be 0.
            cpu_migrations: OpenEvent::open(Software::CPU_MIGRATIONS, scope, KernelPart::Essential),
        }
    }

    /// Whether a perf event counts moves of threads to another CPU.
    pub(super) fn counts_thread_migrations(&self) -> bool {
        matches!(self.cpu_migrations, OpenEvent::Counting { .. })
    }

    /// Reads and closes all events.
    pub(super) fn read_and_close(self) -> PerfCounts {
        PerfCounts {
            cycles: self.cycles.read(),
            instructions: self.instructions.read(),
            llc_misses: self.llc_misses.read(),
            remote_loads: self.remote_loads.read(),
            cpu_migrations: self.cpu_migrations.read(),
        }
    }
}

impl OpenEvent {
    fn open(event: impl Event + Clone, scope: CountedProcesses, kernel: KernelPart) -> OpenEvent {
        let build = |user_mode_only: bool| {
            let mut builder = Builder::new(event.clone());
            builder.observe_self().any_cpu().inherit(true);
            builder.exclude_kernel(user_mode_only).exclude_hv(user_mode_only);
            match scope {
                CountedProcesses::NextChild => builder.enabled(false).enable_on_exec(true),
                CountedProcesses::ThisProcess => builder.enabled(true).inherit_thread(true),
            };
            builder.build()
        };
        let whole = build(false);
        let refused = whole.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        let user_mode_only = refused && kernel == KernelPart::Optional;
        match if user_mode_only { build(true) } else { whole } {
            Ok(counter) => OpenEvent::Counting { counter, user_mode_only },
            Err(error) => OpenEvent::Refused(explain_refusal(&error)),
        }
    }

    fn read(self) -> CounterValue {
        let (mut counter, user_mode_only) = match self {
            OpenEvent::Refused(why) => return CounterValue::missing_with_reason(why),
            OpenEvent::Counting { counter, user_mode_only } => (counter, user_mode_only),
        };
        match counter.read_full() {
            Ok(data) => {
                let ns = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_nanos());
                scale_count(data.count(), ns(data.time_enabled()), ns(data.time_running()), user_mode_only)
            }
            Err(error) => CounterValue::missing_with_reason(format!("the counter cannot be read: {error}")),
        }
    }
}

/// Extrapolates a count from the time during which the event was counted to the whole time: if the CPU has too few
/// hardware counters, the kernel counts the events alternately.
fn scale_count(count: u64, enabled_ns: u128, running_ns: u128, user_mode_only: bool) -> CounterValue {
    if running_ns == 0 {
        let why = if enabled_ns == 0 { "the counted process did not run" } else { "the CPU had no counter free" };
        return CounterValue::missing_with_reason(why);
    }
    let value = u64::try_from(u128::from(count) * enabled_ns / running_ns).unwrap_or(u64::MAX);
    let share = 100 * running_ns / enabled_ns.max(1);
    match (running_ns < enabled_ns, user_mode_only) {
        (false, false) => CounterValue::with_exact_value(value),
        (false, true) => CounterValue::with_lower_bound_and_reason(
            value,
            "in user mode only, as kernel.perf_event_paranoid allows no more",
        ),
        (true, false) => CounterValue {
            value: Some(value),
            at_least: false,
            note: Some(format!("extrapolated from {share} % of the time, as the CPU has too few counters")),
        },
        (true, true) => CounterValue::with_lower_bound_and_reason(
            value,
            format!("in user mode only, and extrapolated from {share} % of the time, as the CPU has too few counters"),
        ),
    }
}

/// Returns the reason why perf_event_open(2) failed, and what the user can do, as text.
fn explain_refusal(error: &io::Error) -> String {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = paranoid.map_or_else(|_| "unknown".to_owned(), |level| level.trim().to_owned());
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "perf events are not permitted (kernel.perf_event_paranoid is {level}): set it to 1 or lower, or run with \
             CAP_PERFMON; in a container, also allow the system call perf_event_open"
        ),
        io::ErrorKind::NotFound => {
            "the CPU offers no such counter to this system, as in most virtual machines".to_owned()
        }
        io::ErrorKind::Unsupported => "the kernel or the CPU does not support this perf event".to_owned(),
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_ran_part_of_the_time_is_extrapolated() {
        assert_eq!(scale_count(500, 100, 100, false), CounterValue::with_exact_value(500));
        let part = scale_count(500, 100, 25, false);
        assert_eq!((part.value, part.at_least), (Some(2000), false));
        assert!(part.note.is_some_and(|note| note.contains("25 %")));
        assert!(scale_count(500, 100, 100, true).at_least);
    }

    #[test]
    fn a_counter_that_never_ran_is_missing_and_not_zero() {
        let missing_value = scale_count(0, 100, 0, false);
        assert_eq!(missing_value, CounterValue::missing_with_reason("the CPU had no counter free"));
    }

    #[test]
    fn refusals_are_explained() {
        let explain = |number: i32| explain_refusal(&io::Error::from_raw_os_error(number));
        assert!(explain(libc::EACCES).contains("perf_event_paranoid"));
        assert!(explain(libc::EPERM).contains("perf_event_open"));
        assert!(explain(libc::ENOENT).contains("virtual machines"));
        assert!(explain(libc::EOPNOTSUPP).contains("support"));
        assert!(explain(libc::EMFILE).contains("Too many open files"));
    }
}
