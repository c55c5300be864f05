//! What the masters of a farm share: where tasks are read and handed on, and how far both are.

use crate::sleep::Sleeper;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use crate::turn::Turn;

/// The source with the number of the task it gives next.
pub(crate) struct Input<I> {
    pub(crate) source: I,
    pub(crate) number: u64,
}

/// Source and sink, used in turns, and the numbers that keep the tasks in order.
pub(crate) struct Desk<'a, I, O> {
    input: Turn<Input<I>>,
    sink: Turn<O>,
    /// Tasks read.
    read: AtomicU64,
    /// The task to be handed on next.
    next: AtomicU64,
    /// The master that read a task, by the task's number modulo the length, a power of two.
    readers: Box<[AtomicU64]>,
    /// The source waits until the task to be handed on next is another than this one.
    waits: AtomicU64,
    /// Nothing more is read.
    ended: AtomicBool,
    /// Nothing more is done at all.
    aborted: AtomicBool,
    masters: &'a [Post],
}

/// A master's sleep, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Post(pub(crate) Sleeper);

impl<'a, I, O> Desk<'a, I, O> {
    /// A desk for so many masters, and tasks in all.
    pub(crate) fn new(source: I, sink: O, masters: &'a [Post], tasks: usize) -> Self {
        Desk {
            input: Turn::new(Input { source, number: 0 }),
            sink: Turn::new(sink),
            read: AtomicU64::new(0),
            next: AtomicU64::new(0),
            readers: (0..tasks.next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
            waits: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            masters,
        }
    }

    /// Lets master `me` read, unless another is reading. `read` gives each task's number to [`Self::was_read`].
    pub(crate) fn read<R>(&self, me: usize, read: impl FnOnce(&mut Input<I>) -> R) -> Option<R> {
        let result = self.input.try_with(read);
        if result.is_some() {
            self.wake_others(me);
        }
        result
    }

    /// Notes that master `me` has read this task.
    pub(crate) fn was_read(&self, me: usize, number: u64) {
        self.readers[self.place(number)].store(me as u64, Ordering::Relaxed);
        self.read.store(number + 1, Ordering::Release);
    }

    /// Whether another is reading just now.
    pub(crate) fn is_being_read(&self) -> bool {
        self.input.is_taken()
    }

    /// The task to be handed on next.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// The master that read this task, if it was read.
    pub(crate) fn reader(&self, number: u64) -> Option<usize> {
        let read = number < self.read.load(Ordering::Acquire);
        read.then(|| self.readers[self.place(number)].load(Ordering::Relaxed) as usize)
    }

    /// Lets master `me`, who has the next task, hand on tasks from that one; `hand_on` gives the next after them. Whose
    /// turn it is follows from the numbers, so it is never taken.
    pub(crate) fn hand_on<E>(
        &self,
        me: usize,
        hand_on: impl FnOnce(&mut O, u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let next = self.next();
        let after = self.sink.try_with(|sink| hand_on(sink, next));
        let after = after.expect("only the master with the next task hands on")?;
        self.next.store(after, Ordering::Release);
        if self.masters.len() > 1 {
            // Either the reader of `after` is known here, or it finds `after` to be next before it sleeps. The same goes for
            // whoever reads when the source waited for this.
            fence(Ordering::SeqCst);
            if (next..after).contains(&self.waits.load(Ordering::Relaxed)) {
                self.wake_others(me);
            } else if let Some(other) = self.reader(after).filter(|&other| other != me) {
                self.masters[other].0.wake();
            }
        }
        Ok(())
    }

    /// Notes that the source, asked when `next` was to be handed on next, waits for more to be handed on.
    pub(crate) fn wait(&self, next: u64) {
        self.waits.store(next, Ordering::Relaxed);
    }

    /// Whether the source waits for results.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed) == self.next()
    }

    /// Whether nothing more is read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Makes this master and all others read no more.
    pub(crate) fn end(&self, me: usize) {
        self.ended.store(true, Ordering::Release);
        self.wake_others(me);
    }

    /// Whether all is to stop.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Makes this master and all others stop.
    pub(crate) fn abort(&self, me: usize) {
        self.aborted.store(true, Ordering::Relaxed);
        self.wake_others(me);
    }

    fn wake_others(&self, me: usize) {
        for (other, post) in self.masters.iter().enumerate() {
            if other != me {
                post.0.wake();
            }
        }
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.readers.len() - 1)
    }
}
