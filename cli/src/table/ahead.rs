//! Tables read ahead of whoever goes through them: some threads check and unpack the next piece of each while the one before is used.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use genuma_flash::{Error, Piece, Scan};

/// Entries of a table with their counts.
pub type Entries = Piece<u32>;

/// A piece of a table that is to be read, or was, and where it goes then.
#[derive(Debug)]
pub struct Turn {
    scan: Scan,
    piece: Entries,
    to: Sender<Result<Turn, Error>>,
}

/// What comes next of a table.
#[derive(Debug)]
pub enum Source {
    /// Pieces that threads read.
    Read {
        /// To the threads.
        wishes: Sender<Turn>,
        /// The next piece.
        from: Receiver<Result<Turn, Error>>,
    },
    /// Nothing: all that there is was there from the start, or has come.
    Given,
}

impl Source {
    /// Puts the next entries in place of those of `piece`: none when there are no more.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    pub fn next(&mut self, piece: &mut Entries) -> Result<(), Error> {
        if let Source::Read { wishes, from } = self
            // Whoever reads is gone only after a panic, which goes on when its thread is waited for.
            && let Ok(turn) = from.recv()
        {
            let mut turn = turn?;
            std::mem::swap(piece, &mut turn.piece);
            if !piece.keys.is_empty() {
                _ = wishes.send(turn);
                return Ok(());
            }
        }
        *self = Source::Given;
        piece.keys.clear();
        piece.values.clear();
        Ok(())
    }
}

/// Begins to read tables in up to `threads` threads, which end when all sources are gone.
///
/// # Errors
/// No thread can be started.
pub fn read<'scope>(
    scope: &'scope Scope<'scope, '_>,
    scans: Vec<Scan>,
    threads: usize,
) -> std::io::Result<Vec<Source>> {
    let (wishes, to_do) = channel::<Turn>();
    let to_do = Arc::new(Mutex::new(to_do));
    for _ in 0..threads.clamp(1, scans.len().max(1)) {
        let to_do = Arc::clone(&to_do);
        let work = move || {
            loop {
                let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(Turn { mut scan, mut piece, to }) = next else { break };
                let read = scan.fill(&mut piece);
                // Nobody waits any more when sending fails.
                _ = to.clone().send(read.map(|()| Turn { scan, piece, to }));
            }
        };
        std::thread::Builder::new().name("tables".to_owned()).spawn_scoped(scope, work)?;
    }
    let source = |scan: Scan| {
        let (to, from) = channel();
        // The threads end after the sources.
        _ = wishes.send(Turn { scan, piece: Entries::default(), to });
        Source::Read { wishes: wishes.clone(), from }
    };
    Ok(scans.into_iter().map(source).collect())
}
