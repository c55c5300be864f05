//! Lookups of one thread.

use std::sync::Once;
use std::thread;

use crate::answers::{Answers, Part as Room};
use crate::error::Error;
use crate::format::{self, PAGE};
use crate::queue::{self, Access, Done, Queue, Refusal};
use crate::sift::{Counted, Wanted, sift};
use crate::table::{Checked, Table};

/// Keys whose pages are put in order together. What a call takes besides its answers is bounded by it.
const WINDOW: usize = 1 << 20;
/// The most reads a reader has under way.
const DEEPEST: usize = 4096;

/// Looks keys up. It stays with the thread that made it, because its ring does.
#[derive(Debug)]
pub struct Reader<'t> {
    table: &'t Table,
    access: Access,
    /// None where all pages are in memory.
    queue: Option<Box<dyn Queue>>,
    depth: usize,
    wanted: Vec<Wanted>,
    free: Vec<usize>,
    /// For each slot, its page and which of `wanted` want it.
    asked: Vec<(u64, std::ops::Range<usize>)>,
    done: Vec<Done>,
    counted: Counted,
    one: Answers,
}

impl Table {
    /// A reader with up to `depth` reads under way (1 to 4096, other numbers become the nearest of these). It stays with the thread that
    /// makes it.
    ///
    /// # Errors
    /// When the access that was asked for is refused, or there is no memory for the buffers (4096 bytes a read).
    pub fn reader(&self, depth: usize) -> Result<Reader<'_>, Error> {
        Reader::new(self, depth)
    }

    /// Looks many keys up in `threads` threads, each with up to `depth` reads under way. Readers kept by the caller's own threads save
    /// the time to start them.
    ///
    /// # Errors
    /// As for [`Table::reader`] and [`Reader::get_many`], or when a thread cannot be started.
    pub fn get_many(
        &self,
        keys: &[u64],
        threads: usize,
        depth: usize,
        answers: &mut Answers,
    ) -> Result<(), Error> {
        let mut room = answers.reset(keys.len(), self.value_bytes());
        let share = keys.len().div_ceil(threads.max(1)).max(1);
        let look_up = |keys: &[u64], room: Room<'_>| self.reader(depth)?.fill(keys, room);
        thread::scope(|scope| {
            let mut started = Vec::new();
            for keys in keys.chunks(share) {
                let (own, others) = room.split(keys.len());
                room = others;
                let thread = thread::Builder::new().spawn_scoped(scope, move || look_up(keys, own));
                started.push(thread.map_err(|source| Error::Thread { path: self.path.clone(), source })?);
            }
            let joined = started.into_iter().map(|thread| thread.join());
            joined
                .into_iter()
                .try_for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl<'t> Reader<'t> {
    fn new(table: &'t Table, depth: usize) -> Result<Reader<'t>, Error> {
        let depth = depth.clamp(1, DEEPEST);
        let (access, queue) = if table.pages.is_some() {
            (Access::Memory, None)
        } else {
            let (access, queue) = choose(table, depth)?;
            (access, Some(queue))
        };
        let (wanted, done, counted, one) = (Vec::new(), Vec::new(), Counted::default(), Answers::new());
        let (free, asked) = ((0..depth).collect(), vec![(0, 0..0); depth]);
        Ok(Reader { table, access, queue, depth, wanted, free, asked, done, counted, one })
    }

    /// How it reads: never [`Access::Auto`].
    pub fn access(&self) -> Access {
        self.access
    }

    /// What it has done since it was made.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// The value of a key, if it is in the table.
    ///
    /// # Errors
    /// When its page cannot be read or is damaged.
    pub fn get(&mut self, key: u64) -> Result<Option<&[u8]>, Error> {
        let mut one = std::mem::take(&mut self.one);
        let looked = self.get_many(&[key], &mut one);
        self.one = one;
        looked.map(|()| self.one.get(0))
    }

    /// Looks many keys up, in any order and repeated or not. A page that several of them need is read once (once for each
    /// 2^20 keys of a larger call).
    ///
    /// # Errors
    /// When a page cannot be read or is damaged. The answers mean nothing then.
    pub fn get_many(&mut self, keys: &[u64], answers: &mut Answers) -> Result<(), Error> {
        let room = answers.reset(keys.len(), self.table.value_bytes());
        self.fill(keys, room)
    }

    fn fill(&mut self, keys: &[u64], mut room: Room<'_>) -> Result<(), Error> {
        for (window, first) in keys.chunks(WINDOW).zip((0..).step_by(WINDOW)) {
            self.wanted.clear();
            sift(self.table, first, window, &mut room, &mut self.wanted, &mut self.counted);
            match &self.table.pages {
                Some(pages) => {
                    for wanted in &self.wanted {
                        let page = Checked::again(self.table, wanted.page, &pages[wanted.page as usize]);
                        if let Some(value) = page.get(keys[wanted.key]) {
                            room.put(wanted.key, value);
                        }
                    }
                }
                None => {
                    self.wanted.sort_unstable_by_key(|wanted| wanted.page);
                    self.read(keys, &mut room)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the pages wanted, as many at once as may be, and takes the values from them.
    fn read(&mut self, keys: &[u64], room: &mut Room<'_>) -> Result<(), Error> {
        let queue = self.queue.as_mut().expect("pages are not in memory");
        let table = self.table;
        let mut next = 0;
        let mut failed = None;
        loop {
            while next < self.wanted.len() && failed.is_none() {
                let Some(slot) = self.free.pop() else { break };
                let page = self.wanted[next].page;
                let first = next;
                while self.wanted.get(next).is_some_and(|wanted| wanted.page == page) {
                    next += 1;
                }
                // Page 0 of the file is the header.
                queue.push(slot, page + 1);
                self.asked[slot] = (page, first..next);
                self.counted.pages += 1;
            }
            if self.free.len() == self.depth {
                return failed.map_or(Ok(()), Err);
            }
            if let Err(source) = queue.wait(&mut self.done) {
                // The kernel takes no more calls on it; what is under way ends with it.
                let part = format::part(self.asked[0].0);
                let (access, queue) = choose(table, self.depth)?;
                (self.access, self.queue, self.free) = (access, Some(queue), (0..self.depth).collect());
                return Err(Error::Read { path: table.path.clone(), part, source });
            }
            for Done { slot, read } in self.done.drain(..) {
                self.free.push(slot);
                let (number, asked) = self.asked[slot].clone();
                let bytes = match read {
                    Ok(PAGE) => Ok(queue.page(slot)),
                    Ok(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => Err(error),
                };
                let part = format::part(number);
                let page = bytes.map_err(|source| Error::Read { path: table.path.clone(), part, source });
                match page.and_then(|page| table.check(number, page)) {
                    Ok(page) => {
                        for wanted in &self.wanted[asked] {
                            if let Some(value) = page.get(keys[wanted.key]) {
                                room.put(wanted.key, value);
                            }
                        }
                    }
                    // The reads under way have to end before anything else.
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
    }
}

/// The way of reading that was asked for, or the best that is permitted.
fn choose(table: &Table, depth: usize) -> Result<(Access, Box<dyn Queue>), Error> {
    let path = || table.path.clone();
    let ways = match table.access {
        Access::Auto => &[Access::Ring, Access::Aio, Access::Pread][..],
        ref asked => std::slice::from_ref(asked),
    };
    let mut refused = None;
    for &way in ways {
        match queue::make(way, &table.file, depth, &table.placement) {
            Ok(queue) => {
                if let Some((before, error)) = refused {
                    static SAID: Once = Once::new();
                    SAID.call_once(|| {
                        tracing::warn!(
                            "{} is refused here ({error}), tables are read by {}",
                            Access::name(before),
                            way.name()
                        );
                    });
                }
                return Ok((way, queue));
            }
            Err(Refusal::Memory(source)) => return Err(Error::Memory { path: path(), source }),
            Err(Refusal::System(error)) => refused = Some((way, error)),
        }
    }
    let (way, source) = refused.expect("there is a way to try");
    Err(Error::Refused { path: path(), way: way.name(), source })
}
