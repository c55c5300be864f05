//! State that the masters of a farm share: the source, the sink, and the numbers that keep the tasks in order.

use crate::sleep::Sleeper;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use crate::try_lock::TryLock;

/// The task source with the number of the task that it fills next.
pub(crate) struct NumberedSource<I> {
    pub(crate) source: I,
    /// Number of the task that the source fills next.
    pub(crate) next_task: u64,
}

/// Task source and result sink, each used by one master at a time, with the numbers that keep the tasks in order.
pub(crate) struct SharedSourceAndSink<'a, I, O> {
    input: TryLock<NumberedSource<I>>,
    sink: TryLock<O>,
    tasks_read: AtomicU64,
    /// Number of the task whose result goes to the sink next.
    next_in_order: AtomicU64,
    /// Index of the master that read a task, by the task number modulo the length, a power of two.
    reader_of_task: Box<[AtomicU64]>,
    /// Number of the task whose result the source waits for. `u64::MAX` if it never waited. The source waits as long as
    /// this number equals that of the next task in order.
    source_waits_for_task: AtomicU64,
    /// Whether reading has ended: no master reads any more tasks.
    has_ended: AtomicBool,
    /// Whether all masters must stop at once, because of an error or a panic.
    is_aborted: AtomicBool,
    master_sleepers: &'a [MasterSleeper],
}

/// [`Sleeper`] of one master, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct MasterSleeper(pub(crate) Sleeper);

impl<'a, I, O> SharedSourceAndSink<'a, I, O> {
    /// Creates the shared state for these masters and `tasks` tasks in total.
    pub(crate) fn new(source: I, sink: O, masters: &'a [MasterSleeper], tasks: usize) -> Self {
        SharedSourceAndSink {
            input: TryLock::new(NumberedSource { source, next_task: 0 }),
            sink: TryLock::new(sink),
            tasks_read: AtomicU64::new(0),
            next_in_order: AtomicU64::new(0),
            reader_of_task: (0..tasks.next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
            source_waits_for_task: AtomicU64::new(u64::MAX),
            has_ended: AtomicBool::new(false),
            is_aborted: AtomicBool::new(false),
            master_sleepers: masters,
        }
    }

    /// Lets master `master` read tasks through `read`, unless another master is reading; then returns `None`. `read`
    /// must report each task to [`Self::record_master_that_read_task`].
    pub(crate) fn try_read_tasks<R>(&self, master: usize, read: impl FnOnce(&mut NumberedSource<I>) -> R) -> Option<R> {
        let result = self.input.try_lock_and_run(read);
        if result.is_some() {
            self.wake_others(master);
        }
        result
    }

    /// Records that master `master` has read task `number`.
    pub(crate) fn record_master_that_read_task(&self, master: usize, number: u64) {
        self.reader_of_task[self.ring_index(number)].store(master as u64, Ordering::Relaxed);
        self.tasks_read.store(number + 1, Ordering::Release);
    }

    /// Whether another master is reading tasks now.
    pub(crate) fn is_source_being_read(&self) -> bool {
        self.input.is_locked()
    }

    /// Number of the task whose result goes to the sink next.
    pub(crate) fn next_task_number_for_sink(&self) -> u64 {
        self.next_in_order.load(Ordering::Acquire)
    }

    /// Index of the master that read task `number`. `None` if it has not been read.
    pub(crate) fn master_that_read_task(&self, number: u64) -> Option<usize> {
        let read = number < self.tasks_read.load(Ordering::Acquire);
        read.then(|| self.reader_of_task[self.ring_index(number)].load(Ordering::Relaxed) as usize)
    }

    /// Lets master `master` pass results to the sink. This master must hold the result of the next task in order.
    /// `pass_results` gets the sink and the number of that task, and returns the number of the task after the last one
    /// passed. Only one master can hold the next task in order, so no other master is using the sink.
    pub(crate) fn pass_results_to_sink<E>(
        &self,
        master: usize,
        pass_results: impl FnOnce(&mut O, u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let next = self.next_task_number_for_sink();
        let after = self.sink.try_lock_and_run(|sink| pass_results(sink, next));
        let after = after.expect("only the master with the next task hands on")?;
        self.next_in_order.store(after, Ordering::Release);
        if self.master_sleepers.len() > 1 {
            // Either this master sees the reader of `after` here, or that reader sees `after` as the next task before
            // it sleeps. The same holds for the master that reads when the source waited for this result.
            fence(Ordering::SeqCst);
            if (next..after).contains(&self.source_waits_for_task.load(Ordering::Relaxed)) {
                self.wake_others(master);
            } else if let Some(other) = self.master_that_read_task(after).filter(|&other| other != master) {
                self.master_sleepers[other].0.wake_thread();
            }
        }
        Ok(())
    }

    /// Records that the source waits for more results. `next_for_sink` is the number of the task whose result was due
    /// at the sink when the source was called.
    pub(crate) fn set_source_waits_for_result(&self, next_for_sink: u64) {
        self.source_waits_for_task.store(next_for_sink, Ordering::Relaxed);
    }

    /// Whether the source waits for results.
    pub(crate) fn source_waits_for_result(&self) -> bool {
        self.source_waits_for_task.load(Ordering::Relaxed) == self.next_task_number_for_sink()
    }

    /// Whether reading has ended: no master reads any more tasks.
    pub(crate) fn has_reading_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Ends reading in all masters. Called by the master with index `master`.
    pub(crate) fn end_reading(&self, master: usize) {
        self.has_ended.store(true, Ordering::Release);
        self.wake_others(master);
    }

    /// Whether all masters must stop at once, because of an error or a panic.
    pub(crate) fn are_masters_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Relaxed)
    }

    /// Stops all masters at once. Called by the master with index `master`.
    pub(crate) fn abort_masters(&self, master: usize) {
        self.is_aborted.store(true, Ordering::Relaxed);
        self.wake_others(master);
    }

    fn wake_others(&self, master: usize) {
        for (other, post) in self.master_sleepers.iter().enumerate() {
            if other != master {
                post.0.wake_thread();
            }
        }
    }

    fn ring_index(&self, number: u64) -> usize {
        number as usize & (self.reader_of_task.len() - 1)
    }
}
