//! Where dealer, instances and merger meet: who has which batch, and which records wait for their turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::deal::Batch;
use crate::instance::Instance;
use crate::merge::Header;

use super::Error;

/// Records (bytes) that may wait to be written out while their batch has its turn.
const BACKLOG: usize = 32 << 20;

/// How long a process may starve before it is seen.
const STARVING: Duration = Duration::from_millis(2);

/// Records of a batch.
#[derive(Debug, Default)]
struct Pieces {
    bytes: Vec<Vec<u8>>,
    ended: bool,
}

/// An instance, as long as one process of it lives.
#[derive(Debug, Default)]
struct Life {
    /// Batches it was given, in order.
    given: Vec<Arc<Batch>>,
    /// Those of them whose records are not all with the merger.
    owed: BTreeMap<u64, Arc<Batch>>,
    /// Batches of the process before, to be given first.
    again: VecDeque<Arc<Batch>>,
    /// The number of the process.
    process: Option<u32>,
    /// The process is gone.
    over: bool,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Arc<Batch>>,
    /// No batch follows those that are ready.
    dealt: bool,
    stopped: bool,
    error: Option<Error>,
    lives: Vec<Life>,
    header: Option<Header>,
    pieces: BTreeMap<u64, Pieces>,
    /// The batch whose turn it is.
    turn: u64,
    /// Bytes of records that wait for the turn of their batch.
    held: usize,
    /// Bytes of records of the batch whose turn it is.
    backlog: usize,
}

/// The meeting place.
#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
    /// Batches that may be ready.
    ahead: usize,
    /// Bytes of records that may wait for their turn.
    room: usize,
    /// Batches of which the process at each seat may owe records.
    most_owed: Vec<usize>,
}

/// What the merger is to write.
pub(crate) enum Next {
    Header(Vec<u8>),
    Records(Vec<Vec<u8>>),
    End,
}

impl State {
    fn owes_turn(&self, seat: usize) -> bool {
        let life = &self.lives[seat];
        life.owed.contains_key(&self.turn) || life.again.iter().any(|batch| batch.number == self.turn)
    }
}

impl Desk {
    /// For as many instances as there are numbers in `most_owed`.
    pub fn new(ahead: usize, room: usize, most_owed: Vec<usize>) -> Self {
        let lives = std::iter::repeat_with(Life::default).take(most_owed.len()).collect();
        let state = Mutex::new(State { lives, ..State::default() });
        Desk { state, changed: Condvar::new(), ahead, room, most_owed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run with an error; the first one counts.
    pub fn fail(&self, error: Error) {
        self.state().error.get_or_insert(error);
        self.stop();
    }

    /// Ends the run and all processes.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.lives.iter().filter_map(|life| life.process).for_each(Instance::kill);
        self.changed.notify_all();
    }

    /// The process at `seat` lives.
    pub(crate) fn enlist(&self, seat: usize, process: u32) {
        let mut state = self.state();
        state.lives[seat].process = Some(process);
        if state.stopped {
            Instance::kill(process);
        }
    }

    /// Whether the run is to end.
    pub fn stopped(&self) -> bool {
        self.state().stopped
    }

    /// What ended the run.
    pub fn error(&self) -> Option<Error> {
        self.state().error.take()
    }

    /// A batch begins. Waits while enough others are ready; false when no more are wanted.
    pub fn ready(&self, batch: Arc<Batch>) -> bool {
        let mut state = self.state();
        while state.ready.len() >= self.ahead && !state.stopped {
            state = self.wait(state);
        }
        state.ready.push_back(batch);
        self.changed.notify_all();
        !state.stopped
    }

    /// No batch follows.
    pub fn dealt(&self) {
        self.state().dealt = true;
        self.changed.notify_all();
    }

    /// The batch at `index` of those that the process at `seat` is given: what it asks for next, or was given before. None when there are
    /// no more, or the process is gone. A process that owes as many as it may gets another only when it is `starved`: its buffers may hold
    /// several small batches, and it would wait for them to fill as long as we wait for its records.
    pub fn take(&self, seat: usize, index: usize, starved: impl Fn() -> bool) -> Option<Arc<Batch>> {
        let mut state = self.state();
        loop {
            let State { ready, lives, stopped, dealt, .. } = &mut *state;
            let life = &mut lives[seat];
            if *stopped || life.over {
                return None;
            }
            if let Some(batch) = life.given.get(index) {
                return Some(Arc::clone(batch));
            }
            let may = || life.owed.len() < self.most_owed[seat] || starved();
            let waits = !life.again.is_empty() || !ready.is_empty();
            if waits
                && may()
                && let Some(batch) = life.again.pop_front().or_else(|| ready.pop_front())
            {
                life.owed.insert(batch.number, Arc::clone(&batch));
                life.given.push(Arc::clone(&batch));
                self.changed.notify_all();
                return Some(batch);
            }
            state = match (waits, *dealt) {
                (false, true) => return None,
                (false, false) => self.wait(state),
                // Nobody tells when the process starves.
                (true, _) => {
                    let waited = self.changed.wait_timeout(state, STARVING);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Whether the process at `seat` was given a batch at `index`; never waits.
    pub fn given(&self, seat: usize, index: usize) -> Option<Arc<Batch>> {
        self.state().lives[seat].given.get(index).cloned()
    }

    /// The process at `seat` is gone: nobody waits on its behalf any more.
    pub fn leave(&self, seat: usize) {
        self.state().lives[seat].over = true;
        self.changed.notify_all();
    }

    /// Batches whose records the process at `seat` owes.
    pub(crate) fn owed(&self, seat: usize) -> Vec<Arc<Batch>> {
        self.state().lives[seat].owed.values().cloned().collect()
    }

    /// Batches that the process at `seat` was given.
    pub fn batches(&self, seat: usize) -> u64 {
        self.state().lives[seat].given.len() as u64
    }

    /// A new process at `seat`: it gets first what the one before owed.
    pub(crate) fn revive(&self, seat: usize) {
        let life = &mut self.state().lives[seat];
        let owed = std::mem::take(&mut life.owed).into_values().collect();
        *life = Life { again: owed, ..Life::default() };
    }

    /// The header of an instance: the first is kept, the others are compared. Whether it fits.
    pub fn header(&self, header: Header) -> bool {
        let mut state = self.state();
        let fits = state.header.as_ref().is_none_or(|first| first.common == header.common);
        state.header.get_or_insert(header);
        self.changed.notify_all();
        fits
    }

    /// Records of `batch` from the process at `seat`; `ended` when they are its last. Waits while too many records wait, unless those
    /// waited for must come from here.
    pub(crate) fn deliver(&self, seat: usize, batch: &Batch, records: Vec<u8>, ended: bool) {
        let mut state = self.state();
        loop {
            let turn = state.turn == batch.number;
            let full = if turn { state.backlog > BACKLOG } else { state.held > self.room };
            if !full || state.stopped || (!turn && state.owes_turn(seat)) {
                break;
            }
            state = self.wait(state);
        }
        match state.turn == batch.number {
            true => state.backlog += records.len(),
            false => state.held += records.len(),
        }
        let pieces = state.pieces.entry(batch.number).or_default();
        pieces.bytes.push(records);
        pieces.ended |= ended;
        if ended {
            state.lives[seat].owed.remove(&batch.number);
            batch.forget();
        }
        self.changed.notify_all();
    }

    /// What is to be written next; waits for it. `End` when all is written or the run is to end.
    pub fn next(&self, header_written: bool) -> Next {
        let mut state = self.state();
        loop {
            if state.stopped {
                return Next::End;
            }
            if !header_written {
                if let Some(header) = &state.header {
                    return Next::Header(header.text.clone());
                }
            } else {
                let turn = state.turn;
                if let Some(pieces) = state.pieces.get_mut(&turn) {
                    let (bytes, ended) = (std::mem::take(&mut pieces.bytes), pieces.ended);
                    if ended {
                        state.pieces.remove(&turn);
                        state.turn += 1;
                    }
                    state.backlog = 0;
                    if ended {
                        let next = state.turn;
                        let size = |p: &Pieces| p.bytes.iter().map(Vec::len).sum::<usize>();
                        let waiting = state.pieces.get(&next).map_or(0, size);
                        state.held -= waiting;
                        state.backlog = waiting;
                    }
                    self.changed.notify_all();
                    if ended || !bytes.is_empty() {
                        return Next::Records(bytes);
                    }
                }
            }
            if self.all_over(&state) {
                return Next::End;
            }
            state = self.wait(state);
        }
    }

    /// Whether nothing more will come.
    fn all_over(&self, state: &State) -> bool {
        state.dealt
            && state.ready.is_empty()
            && state.pieces.is_empty()
            && state.lives.iter().all(|life| life.owed.is_empty() && life.again.is_empty())
    }
}
