//! Connects batch cutter, instances and merger: assigns batches to instances and holds records until they can be
//! written in the order of the reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::batching::InstanceBatch;
use crate::instance::Instance;
use crate::merge::RewrittenInstanceHeader;

use super::Error;

/// Maximum bytes of unwritten records of the batch that is being written. Beyond it the instance waits.
const MAX_BACKLOG_BYTES: usize = 32 << 20;

/// Interval between two checks whether a process has read all its input.
pub(super) const INPUT_CONSUMED_POLL_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
struct BatchRecords {
    bytes: Vec<Vec<u8>>,
    ended: bool,
}

/// State of one process of an instance.
#[derive(Debug, Default)]
struct ProcessState {
    /// Batches assigned to the process, in order.
    assigned: Vec<Arc<InstanceBatch>>,
    /// Assigned batches whose records are not complete.
    unfinished: BTreeMap<u64, Arc<InstanceBatch>>,
    /// Unfinished batches of the previous process of the instance, which are assigned first.
    requeued: VecDeque<Arc<InstanceBatch>>,
    process: Option<u32>,
    ended: bool,
}

#[derive(Debug, Default)]
struct BrokerState {
    ready: VecDeque<Arc<InstanceBatch>>,
    /// Whether all batches have been added.
    all_batches_added: bool,
    stopped: bool,
    error: Option<Error>,
    processes: Vec<ProcessState>,
    header: Option<RewrittenInstanceHeader>,
    records: BTreeMap<u64, BatchRecords>,
    /// Number of the batch whose records are written next.
    next_batch: u64,
    /// Bytes of records of later batches than `next_batch`, which cannot be written yet.
    waiting_bytes: usize,
    /// Bytes of records of batch `next_batch` that have not been written yet.
    backlog_bytes: usize,
}

/// Assigns batches from the batch cutter to instances, and passes the records of the instances to the merger in the
/// order of the batches.
#[derive(Debug)]
pub(crate) struct BatchBroker {
    state: Mutex<BrokerState>,
    changed: Condvar,
    /// Maximum number of batches that wait for an instance.
    max_ready_batches: usize,
    /// Maximum bytes of records that may wait until earlier batches are written.
    max_waiting_bytes: usize,
    /// Maximum number of unfinished batches of each instance.
    max_unfinished: Vec<usize>,
}

/// Next action of the merger: write the header, write records, or end.
pub(crate) enum MergerAction {
    Header(Vec<u8>),
    Records(Vec<Vec<u8>>),
    End,
}

impl BrokerState {
    fn must_deliver_next(&self, instance: usize) -> bool {
        let process_state = &self.processes[instance];
        process_state.unfinished.contains_key(&self.next_batch)
            || process_state.requeued.iter().any(|batch| batch.number == self.next_batch)
    }
}

impl BatchBroker {
    /// Creates a broker for as many instances as `max_unfinished` has elements. `ahead`: maximum number of batches that
    /// wait for an instance. `room`: maximum bytes of records that wait until earlier batches are written.
    /// `max_unfinished`: maximum number of unfinished batches of each instance.
    pub(super) fn new(ahead: usize, room: usize, max_unfinished: Vec<usize>) -> Self {
        let process_states = std::iter::repeat_with(ProcessState::default).take(max_unfinished.len()).collect();
        let state = Mutex::new(BrokerState { processes: process_states, ..BrokerState::default() });
        BatchBroker {
            state,
            changed: Condvar::new(),
            max_ready_batches: ahead,
            max_waiting_bytes: room,
            max_unfinished,
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, BrokerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_change<'a>(&self, state: MutexGuard<'a, BrokerState>) -> MutexGuard<'a, BrokerState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run with an error. If there are several errors, the first one is reported.
    pub(super) fn fail_run(&self, error: Error) {
        self.lock_state().error.get_or_insert(error);
        self.stop_run();
    }

    /// Ends the run and kills all processes.
    pub(super) fn stop_run(&self) {
        let mut state = self.lock_state();
        state.stopped = true;
        state.processes.iter().filter_map(|process_state| process_state.process).for_each(Instance::kill_instance);
        self.changed.notify_all();
    }

    /// Records the process ID `process` of instance `instance`, so that the process can be killed.
    pub(crate) fn register_process(&self, instance: usize, process: u32) {
        let mut state = self.lock_state();
        state.processes[instance].process = Some(process);
        if state.stopped {
            Instance::kill_instance(process);
        }
    }

    /// Returns whether the run must end.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock_state().stopped
    }

    /// Returns the error that ended the run, and removes it.
    pub(super) fn take_run_error(&self) -> Option<Error> {
        self.lock_state().error.take()
    }

    /// Adds a batch from the batch cutter. Waits while enough batches wait for an instance. Returns `false` if the run
    /// has ended.
    pub(super) fn add_batch(&self, batch: Arc<InstanceBatch>) -> bool {
        let mut state = self.lock_state();
        while state.ready.len() >= self.max_ready_batches && !state.stopped {
            state = self.wait_for_change(state);
        }
        state.ready.push_back(batch);
        self.changed.notify_all();
        !state.stopped
    }

    /// Marks that all batches have been added.
    pub(super) fn mark_all_batches_added(&self) {
        self.lock_state().all_batches_added = true;
        self.changed.notify_all();
    }

    /// Returns batch number `index` of the process of instance `instance`. If that batch is not assigned yet, waits for
    /// the next batch and assigns it. Returns `None` if no batch is left, the process has ended, or the run was
    /// stopped.
    ///
    /// A process with the maximum number of unfinished batches gets another one only if `is_starved`: its buffers may
    /// hold several small batches, so that the process waits for more reads while the run waits for the records of the
    /// process.
    pub(super) fn get_or_assign_batch(
        &self,
        instance: usize,
        index: usize,
        is_starved: impl Fn() -> bool,
    ) -> Option<Arc<InstanceBatch>> {
        let mut state = self.lock_state();
        loop {
            let BrokerState { ready, processes: process_states, stopped, all_batches_added: dealt, .. } = &mut *state;
            let process_state = &mut process_states[instance];
            if *stopped || process_state.ended {
                return None;
            }
            if let Some(batch) = process_state.assigned.get(index) {
                return Some(Arc::clone(batch));
            }
            let may = || process_state.unfinished.len() < self.max_unfinished[instance] || is_starved();
            let waits = !process_state.requeued.is_empty() || !ready.is_empty();
            if waits
                && may()
                && let Some(batch) = process_state.requeued.pop_front().or_else(|| ready.pop_front())
            {
                process_state.unfinished.insert(batch.number, Arc::clone(&batch));
                process_state.assigned.push(Arc::clone(&batch));
                self.changed.notify_all();
                return Some(batch);
            }
            state = match (waits, *dealt) {
                (false, true) => return None,
                (false, false) => self.wait_for_change(state),
                // Nothing signals that a process is starved: poll.
                (true, _) => {
                    let waited = self.changed.wait_timeout(state, INPUT_CONSUMED_POLL_INTERVAL);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Returns batch number `index` of instance `instance` if it is already assigned, else `None`. Never waits.
    pub(super) fn assigned_batch(&self, instance: usize, index: usize) -> Option<Arc<InstanceBatch>> {
        self.lock_state().processes[instance].assigned.get(index).cloned()
    }

    /// Records that the process of instance `instance` has ended, so that no thread waits for it.
    pub(super) fn mark_process_ended(&self, instance: usize) {
        self.lock_state().processes[instance].ended = true;
        self.changed.notify_all();
    }

    /// Returns whether the process of instance `instance` is running and the run has not been stopped.
    pub(super) fn is_process_running(&self, instance: usize) -> bool {
        let state = self.lock_state();
        !state.stopped && !state.processes[instance].ended
    }

    /// Returns the batches of instance `instance` whose records are not complete.
    pub(crate) fn unfinished_batches(&self, instance: usize) -> Vec<Arc<InstanceBatch>> {
        self.lock_state().processes[instance].unfinished.values().cloned().collect()
    }

    /// Returns the number of batches assigned to the process of instance `instance`.
    pub(super) fn count_assigned_batches(&self, instance: usize) -> u64 {
        self.lock_state().processes[instance].assigned.len() as u64
    }

    /// Prepares instance `instance` for a new process, which first gets the unfinished batches.
    pub(crate) fn requeue_unfinished_batches(&self, instance: usize) {
        let process_state = &mut self.lock_state().processes[instance];
        let owed = std::mem::take(&mut process_state.unfinished).into_values().collect();
        *process_state = ProcessState { requeued: owed, ..ProcessState::default() };
    }

    /// Keeps the header of an instance if it is the first one. Returns whether its
    /// [`RewrittenInstanceHeader::common`] is equal to that of the first header.
    pub(super) fn keep_first_header_and_compare(&self, header: RewrittenInstanceHeader) -> bool {
        let mut state = self.lock_state();
        let fits = state.header.as_ref().is_none_or(|first| first.common == header.common);
        state.header.get_or_insert(header);
        self.changed.notify_all();
        fits
    }

    /// Accepts records of `batch` from instance `instance`; `ended` is true with the last records of the batch. Waits
    /// while too many records of the batch that is written next are held, or, for a later batch, too many records of
    /// later batches; but not for a later batch if this instance also has the batch that is written next.
    pub(crate) fn deliver_records(&self, instance: usize, batch: &InstanceBatch, records: Vec<u8>, ended: bool) {
        let mut state = self.lock_state();
        loop {
            let turn = state.next_batch == batch.number;
            let full = if turn {
                state.backlog_bytes > MAX_BACKLOG_BYTES
            } else {
                state.waiting_bytes > self.max_waiting_bytes
            };
            if !full || state.stopped || (!turn && state.must_deliver_next(instance)) {
                break;
            }
            state = self.wait_for_change(state);
        }
        match state.next_batch == batch.number {
            true => state.backlog_bytes += records.len(),
            false => state.waiting_bytes += records.len(),
        }
        let pieces = state.records.entry(batch.number).or_default();
        pieces.bytes.push(records);
        pieces.ended |= ended;
        if ended {
            state.processes[instance].unfinished.remove(&batch.number);
            batch.release_text();
        }
        self.changed.notify_all();
    }

    /// Waits for the next output of the merger. Returns [`MergerAction::End`] when all records are written or the run
    /// has ended.
    pub(super) fn wait_for_merger_action(&self, header_written: bool) -> MergerAction {
        let mut state = self.lock_state();
        loop {
            if state.stopped {
                return MergerAction::End;
            }
            if !header_written {
                if let Some(header) = &state.header {
                    return MergerAction::Header(header.text.clone());
                }
            } else {
                let turn = state.next_batch;
                if let Some(pieces) = state.records.get_mut(&turn) {
                    let (bytes, ended) = (std::mem::take(&mut pieces.bytes), pieces.ended);
                    if ended {
                        state.records.remove(&turn);
                        state.next_batch += 1;
                    }
                    state.backlog_bytes = 0;
                    if ended {
                        let next = state.next_batch;
                        let size = |p: &BatchRecords| p.bytes.iter().map(Vec::len).sum::<usize>();
                        let waiting = state.records.get(&next).map_or(0, size);
                        state.waiting_bytes -= waiting;
                        state.backlog_bytes = waiting;
                    }
                    self.changed.notify_all();
                    if ended || !bytes.is_empty() {
                        return MergerAction::Records(bytes);
                    }
                }
            }
            if self.is_finished(&state) {
                return MergerAction::End;
            }
            state = self.wait_for_change(state);
        }
    }

    /// Returns whether no more output can come.
    fn is_finished(&self, state: &BrokerState) -> bool {
        state.all_batches_added
            && state.ready.is_empty()
            && state.records.is_empty()
            && state
                .processes
                .iter()
                .all(|process_state| process_state.unfinished.is_empty() && process_state.requeued.is_empty())
    }
}
