//! The tumour's pairs that carry interesting k-mers → molecules → what is believed of them → groups → contigs, a pile at a time.
//!
//! They are on piles, in memory as far as there is room and in the work folder beyond: first by how their mates start, so that copies of a
//! molecule meet, then by their groups. Only what there is of each k-mer, some bytes, is always in memory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_work::parallel::try_in_order;
use genuma_work::piles::{Piles, Room};
use genuma_work::shelves::{Shelf, Shelves};
use genuma_work::spill::{Error, ObjectFile};

use crate::apart::assemble_apart;
use crate::assemble::{self, Assembled};
use crate::group::{Grouped, Sets, group};
use crate::label::{Carriers, Labelled, believe, molecules};
use crate::select::{Pick, TOGETHER, by_kmer};

/// How the files are named in messages.
const WHAT: &str = "labelled reads'";
/// Piles: of a human genome's 10 GB at 30x each has 20 MB.
const PILES: usize = 512;

/// The pile of a number.
fn pile(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PILES
}

/// What pairs are gathered with.
#[derive(Debug)]
pub struct Gather<'a> {
    /// The interesting k-mers, by rank, each as often as rules have picked it.
    pub picks: Vec<Pick>,
    /// How many tumours the pairs are of.
    pub tumours: usize,
    /// Length of the interesting k-mers.
    pub k: u32,
    /// Threads, at least 1.
    pub threads: usize,
    /// Bytes of memory that pairs may take, before they go to the work folder.
    pub memory: u64,
    /// The work folder.
    pub work: &'a Path,
    /// Ranks of the k-mers of variants that are followed.
    pub followed: &'a [HashSet<u32>],
}

/// Pairs being gathered.
#[derive(Debug)]
pub struct Gathering<'a> {
    with: Gather<'a>,
    room: Room,
    piles: Piles<Labelled>,
    /// What shards of the reads have left.
    shards: Vec<Shelves>,
    pairs: AtomicU64,
}

/// Pairs by the rules that look at them: of all tumours, and of each.
type ByRule = Vec<u64>;

/// Counts pairs by the rules that look at them.
fn by_rule(pairs: &[Labelled], tumours: usize) -> ByRule {
    let mut counts = vec![0; tumours + 1];
    for pair in pairs {
        counts[usize::from(pair.sample)] += 1;
    }
    counts[usize::from(TOGETHER)] = pairs.len() as u64;
    counts
}

/// Pairs of a shard of the reads, being gathered in a file.
#[derive(Debug)]
pub(crate) struct Shelving(Shelves);

impl Shelving {
    /// In a new file at `path`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Shelving, Error> {
        Ok(Shelving(Shelves::create(WHAT, path, PILES)?))
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, pair: &Labelled) -> Result<(), Error> {
        self.0.put(pile(pair.start()), pair)
    }

    /// What lies where, all of it in the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<Vec<Shelf>, Error> {
        self.0.finish()
    }
}

/// What came of the pairs.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Pairs that were gathered.
    pub pairs: u64,
    /// Of them PCR copies.
    pub copies: u64,
    /// k-mers in reads left out, of errors that recur.
    pub errors: u64,
    /// Groups of pairs.
    pub groups: u64,
    /// Pairs in groups too small.
    pub lone: u64,
    /// Pairs in groups where the samples do not part.
    pub(crate) not_parting: u64,
    /// What came of all groups, in their order.
    pub assembled: Assembled,
    /// What was seen of the variants that are followed.
    pub followed: Vec<Followed>,
}

/// What was seen of a variant that is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followed {
    /// Pairs that carry its k-mers.
    pub pairs: usize,
    /// Groups with such pairs, by number: how many of them, among how many.
    pub groups: Vec<(usize, usize, usize)>,
}

/// What came of one pile of groups.
struct Heap {
    /// Named by their first k-mers.
    groups: Vec<(u32, Assembled)>,
    lone: u64,
    not_parting: u64,
    /// Pairs that carry k-mers of each variant, ...
    carrying: Vec<usize>,
    /// ... and which variant was seen in which group, how often, among how many pairs.
    followed: Vec<(usize, u32, usize, usize)>,
}

impl<'a> Gathering<'a> {
    /// Of nothing yet.
    pub fn new(with: Gather<'a>) -> Gathering<'a> {
        let room = Room::of(with.memory);
        let piles = Piles::new(WHAT, with.work, PILES, &room);
        Gathering { with, room, piles, shards: Vec::new(), pairs: AtomicU64::new(0) }
    }

    /// Adds what a shard of the reads has left in an object. False when it is not one of gathered pairs.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn add_shard(&mut self, file: &ObjectFile<'_>, shelves: Vec<Shelf>) -> Result<bool, Error> {
        if shelves.len() != PILES {
            return Ok(false);
        }
        *self.pairs.get_mut() += shelves.iter().map(|shelf| shelf.values).sum::<u64>();
        self.shards.push(Shelves::object(WHAT, file, shelves)?);
        Ok(true)
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// The work folder cannot be written to.
    pub fn put(&self, pair: Labelled) -> Result<(), Error> {
        self.pairs.fetch_add(1, Relaxed);
        put(&self.piles, pile(pair.start()), pair)
    }

    /// Calls `each` with the pairs of every pile, and gives what it says in order.
    fn each<T: Send>(
        &self,
        each: impl Fn(Vec<Labelled>, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let take = |(): &mut (), pile: usize| each(self.piles.take(pile)?, pile);
        try_in_order(self.piles.len(), self.with.threads, || (), take)
    }

    /// Groups and assembles them.
    ///
    /// # Errors
    /// The work folder cannot be written to or read.
    pub fn assemble(mut self) -> Result<Gathered, Error> {
        let picks = std::mem::take(&mut self.with.picks);
        let Gather { tumours, k, threads, work, followed, .. } = self.with;
        let pairs = self.pairs.load(Relaxed);
        let back = |pairs: Vec<Labelled>, pile: usize| {
            pairs.into_iter().try_for_each(|pair| put(&self.piles, pile, pair))
        };

        let kmers = by_kmer(&picks).count();
        let carriers = Carriers::none(kmers, tumours);
        let counts = self.each(|mut all, pile| {
            for shard in &self.shards {
                all.append(&mut shard.read(pile)?);
            }
            let before = by_rule(&all, tumours);
            let kept = molecules(all);
            carriers.count(&kept);
            let after = by_rule(&kept, tumours);
            back(kept, pile).map(|()| [before, after])
        })?;
        let sum = |at: usize, rule: usize| counts.iter().map(|pile| pile[at][rule]).sum::<u64>();
        let shares: Vec<f64> =
            (0..=tumours).map(|rule| sum(1, rule) as f64 / sum(0, rule).max(1) as f64).collect();
        let kept = sum(1, TOGETHER.into());
        let parting = carriers.parting(&picks, &shares);

        let sets = Sets::new(kmers);
        // Of a large genome they are a GB, and contigs are to come.
        drop(picks);
        let errors = self.each(|mut pairs, pile| {
            let errors = believe(&mut pairs, &carriers, &parting, k);
            sets.join(&pairs);
            back(pairs, pile).map(|()| errors)
        })?;
        drop(carriers);

        let groups = Piles::new(WHAT, work, PILES, &self.room);
        self.each(|pairs, _| {
            pairs.into_iter().try_for_each(|pair| match sets.of(&pair) {
                Some(group) => put(&groups, pile(group.into()), pair),
                None => Ok(()),
            })
        })?;
        drop(self);

        let heap = |(): &mut (), pile: usize| {
            let assemble =
                |group: &[u32], pairs: &[Labelled]| assemble_apart(group, pairs, &parting, tumours, k);
            Ok(heap(groups.take(pile)?, &sets, &parting, followed, assemble))
        };
        let heaps: Vec<Heap> = try_in_order(groups.len(), threads, || (), heap)?;
        let copies = pairs - kept;
        let gathered = Gathered { pairs, copies, errors: errors.iter().sum(), ..Gathered::default() };
        Ok(gathered.with(heaps, followed.len()))
    }
}

impl Gathered {
    /// Together with all heaps, of so many variants that are followed.
    fn with(mut self, heaps: Vec<Heap>, followed: usize) -> Gathered {
        self.followed.resize(followed, Followed::default());
        let (mut groups, mut seen) = (Vec::new(), Vec::new());
        for mut heap in heaps {
            self.lone += heap.lone;
            self.not_parting += heap.not_parting;
            self.followed.iter_mut().zip(heap.carrying).for_each(|(all, here)| all.pairs += here);
            groups.append(&mut heap.groups);
            seen.append(&mut heap.followed);
        }
        groups.sort_unstable_by_key(|(name, _)| *name);
        seen.sort_unstable();
        for (variant, name, here, of) in seen {
            let number = groups.partition_point(|group| group.0 < name);
            self.followed[variant].groups.push((number, here, of));
        }
        self.groups = groups.len() as u64;
        for (_, one) in groups {
            self.assembled.add(one);
        }
        self
    }
}

fn put(piles: &Piles<Labelled>, pile: usize, pair: Labelled) -> Result<(), Error> {
    let bytes = pair.resident();
    piles.put(pile, pair, bytes)
}

/// The groups of a pile, assembled.
fn heap(
    mut pairs: Vec<Labelled>,
    sets: &Sets,
    parting: &[bool],
    followed: &[HashSet<u32>],
    assemble: impl Fn(&[u32], &[Labelled]) -> Assembled,
) -> Heap {
    pairs.sort_unstable_by(Labelled::by_name);
    let Grouped { groups, lone, not_parting } = group(&pairs, sets, parting, assemble::FEWEST);
    let carries = |pair: u32, ranks: &HashSet<u32>| {
        pairs[pair as usize].hits.iter().flatten().any(|hit| ranks.contains(&hit.rank))
    };
    let carrying =
        |ranks: &HashSet<u32>| (0..pairs.len() as u32).filter(|&pair| carries(pair, ranks)).count();
    let carrying = followed.iter().map(carrying).collect();
    let mut heap =
        Heap { groups: Vec::with_capacity(groups.len()), lone, not_parting, carrying, followed: Vec::new() };
    for group in groups {
        let Some(name) = group.first().and_then(|&pair| sets.of(&pairs[pair as usize])) else { continue };
        for (i, ranks) in followed.iter().enumerate() {
            let here = group.iter().filter(|&&pair| carries(pair, ranks)).count();
            if here > 0 {
                heap.followed.push((i, name, here, group.len()));
            }
        }
        heap.groups.push((name, assemble(&group, &pairs)));
    }
    heap
}
