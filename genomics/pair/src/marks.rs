//! Known sequences among the joint counters: k-mers of each contig of the reference, and of what is screened for, are looked up where the
//! counter shows each root once.
//!
//! Only k-mers are marks whose root has a small hash, so that nearly all roots are passed over by a multiplication. Of each sequence up to some
//! thousands are kept, those of the smallest hashes, which are spread over it as chance has it. What stands in a sequence twice, or in two of the
//! reference, is no mark; nor is what is screened for and stands in the reference. Repeats that are left show as outliers, which facts do without.

pub mod facts;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::mask;
use genuma_reads::fasta::{Part, read_parts};
use genuma_reads::{Error, dna};
use serde::{Deserialize, Serialize};

/// One root in so many may be that of a mark, as a power of two.
const DRAWN: u32 = 4;
/// Most marks of a sequence.
const MOST: usize = 4096;
/// Contigs of the reference that are marked: the longest, and organelles beside them.
const CONTIGS: usize = 512;
/// Most marks of all that is screened for.
const MOST_SCREENED: usize = 1 << 21;
/// Bits of the filter for each mark.
const FILTER: usize = 16;

/// What a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A chromosome, or a piece of one.
    Contig,
    /// A mitochondrion or a plastid, of which a cell has many.
    Organelle,
    /// It is screened for.
    Screened,
}

/// Names of mitochondria and plastids.
const ORGANELLES: [&str; 9] = ["chrm", "mt", "m", "chrmt", "mito", "pt", "chrpt", "chrc", "mitochondrion"];

fn kind(name: &str) -> Kind {
    let name = name.to_ascii_lowercase();
    if ORGANELLES.contains(&&name[..]) { Kind::Organelle } else { Kind::Contig }
}

/// What has a hash of its root under the bound of [`DRAWN`] is looked at.
#[inline(always)]
fn hash(stem: u64) -> u64 {
    stem.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Spreads a hash anew, as its highest bits are nothing.
#[inline(always)]
fn spread(hash: u64) -> u64 {
    (hash ^ (hash >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[inline(always)]
fn is_drawn(hash: u64) -> bool {
    hash >> (64 - DRAWN) == 0
}

/// The counter's name of a k-mer: its root, then the slot.
#[inline]
fn key(kmer: u64, k: u32) -> u64 {
    ((kmer >> 2) & mask(k - 2)) << 4 | (kmer >> (2 * k - 2)) << 2 | (kmer & 3)
}

/// A sequence with the marks that it has so far.
#[derive(Debug)]
struct Sequence {
    name: String,
    kind: Kind,
    /// Bases, and k-mers without foreign letters.
    bases: u64,
    kmers: u64,
    /// How often the bound on the hash was halved.
    halved: u32,
    /// Keys, and whether they came twice.
    keys: Vec<(u64, bool)>,
}

impl Sequence {
    fn new(name: &[u8], kind: Kind) -> Sequence {
        let name = String::from_utf8_lossy(name).into_owned();
        Sequence { name, kind, bases: 0, kmers: 0, halved: 0, keys: Vec::new() }
    }

    #[inline]
    fn push(&mut self, key: u64, hash: u64) {
        if hash <= (u64::MAX >> DRAWN) >> self.halved {
            self.keys.push((key, false));
            if self.keys.len() >= 2 * MOST {
                self.settle();
            }
        }
    }

    /// Makes one of those that came twice, and halves the bound while there are too many.
    fn settle(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup_by(|next, kept| {
            let twice = next.0 == kept.0;
            kept.1 |= twice;
            twice
        });
        while self.keys.len() > MOST {
            self.halve(self.halved + 1);
        }
    }

    fn halve(&mut self, halved: u32) {
        self.halved = halved;
        let bound = (u64::MAX >> DRAWN) >> halved;
        self.keys.retain(|(key, _)| hash(key >> 4) <= bound);
    }
}

/// Chooses marks while sequences go past.
struct Choosing {
    k: u32,
    sequences: Vec<Sequence>,
    /// The windows in hand: forward and reverse, and known bases in a row.
    forward: u64,
    reverse: u64,
    known: u32,
}

impl Choosing {
    fn new(k: u32) -> Choosing {
        Choosing { k, sequences: Vec::new(), forward: 0, reverse: 0, known: 0 }
    }

    fn begin(&mut self, name: &[u8], kind: Kind) {
        self.known = 0;
        self.sequences.push(Sequence::new(name, kind));
    }

    /// Goes on with the last sequence; `drawn` sees the keys of all k-mers that might be marks.
    fn bases(&mut self, bases: &[u8], mut drawn: impl FnMut(u64, u64)) {
        let k = self.k;
        let (all, inner, top) = (mask(k), mask(k - 2), 2 * (k - 1));
        let Some(sequence) = self.sequences.last_mut() else { return };
        sequence.bases += bases.len() as u64;
        for &base in bases {
            let code = u64::from(dna::code(base));
            if code > 3 {
                self.known = 0;
                continue;
            }
            self.forward = ((self.forward << 2) | code) & all;
            self.reverse = (self.reverse >> 2) | ((3 - code) << top);
            self.known += 1;
            if self.known < k {
                continue;
            }
            sequence.kmers += 1;
            let stem = ((self.forward >> 2) & inner).min((self.reverse >> 2) & inner);
            let hash = hash(stem);
            if is_drawn(hash) {
                let key = key(self.forward, k).min(key(self.reverse, k));
                sequence.push(key, hash);
                drawn(key, hash);
            }
        }
    }
}

/// Reads what is screened for.
fn screened(path: &Path, k: u32) -> Result<Vec<Sequence>, Error> {
    let mut choosing = Choosing::new(k);
    // What is settled, and the most halvings of any since all were too many.
    let (mut marks, mut halved) = (0, 0);
    read_parts(path, |part| match part {
        Part::Header { name, .. } => {
            if let Some(last) = choosing.sequences.last_mut() {
                last.settle();
                marks += last.keys.len();
            }
            while marks > MOST_SCREENED {
                halved += 1;
                let over = choosing.sequences.iter_mut().filter(|sequence| sequence.halved < halved);
                over.for_each(|sequence| sequence.halve(halved));
                marks = choosing.sequences.iter().map(|sequence| sequence.keys.len()).sum();
            }
            choosing.begin(name, Kind::Screened);
            if let Some(next) = choosing.sequences.last_mut() {
                next.halved = halved;
            }
        }
        Part::Bases(bases) => choosing.bases(bases, |_, _| {}),
    })?;
    choosing.sequences.iter_mut().for_each(Sequence::settle);
    Ok(choosing.sequences)
}

/// Reads the reference, and takes what it holds out of what is screened for.
fn contigs(path: &Path, k: u32, screened: &mut Screened) -> Result<Vec<Sequence>, Error> {
    let mut choosing = Choosing::new(k);
    read_parts(path, |part| match part {
        Part::Header { name, .. } => {
            choosing.sequences.last_mut().into_iter().for_each(Sequence::settle);
            if choosing.sequences.len() >= 2 * CONTIGS {
                only_long(&mut choosing.sequences);
            }
            choosing.begin(name, kind(&String::from_utf8_lossy(name)));
        }
        Part::Bases(bases) if screened.is_empty() => choosing.bases(bases, |_, _| {}),
        Part::Bases(bases) => choosing.bases(bases, |key, hash| screened.is_known(key, hash)),
    })?;
    choosing.sequences.iter_mut().for_each(Sequence::settle);
    only_long(&mut choosing.sequences);
    Ok(choosing.sequences)
}

/// Leaves the longest contigs, the first of equals, and organelles.
fn only_long(sequences: &mut Vec<Sequence>) {
    let mut lengths: Vec<(u64, usize)> =
        sequences.iter().enumerate().map(|(i, sequence)| (u64::MAX - sequence.bases, i)).collect();
    lengths.sort_unstable();
    let mut long = vec![false; sequences.len()];
    lengths.iter().take(CONTIGS).for_each(|&(_, i)| long[i] = true);
    let mut long = long.into_iter();
    sequences.retain(|sequence| long.next().unwrap_or(false) || sequence.kind == Kind::Organelle);
}

/// Marks of what is screened for, and which of them the reference has.
#[derive(Default)]
struct Screened {
    /// Sorted, with whose they are.
    keys: Vec<(u64, u32)>,
    filter: Filter,
    known: Vec<bool>,
}

impl Screened {
    fn of(sequences: &[Sequence]) -> Screened {
        let mut keys: Vec<(u64, u32)> = (0..)
            .zip(sequences)
            .flat_map(|(i, sequence)| {
                sequence.keys.iter().filter(|(_, twice)| !twice).map(move |(key, _)| (*key, i))
            })
            .collect();
        // The first that has it keeps it.
        keys.sort_unstable();
        keys.dedup_by_key(|(key, _)| *key);
        let (filter, known) = (Filter::of(keys.iter().map(|(key, _)| *key)), vec![false; keys.len()]);
        Screened { keys, filter, known }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    #[inline]
    fn is_known(&mut self, key: u64, hash: u64) {
        if self.filter.may_have(hash)
            && let Ok(at) = self.keys.binary_search_by_key(&key, |(key, _)| *key)
        {
            self.known[at] = true;
        }
    }
}

/// Roots that may be those of marks.
#[derive(Debug, Default)]
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn of(keys: impl ExactSizeIterator<Item = u64>) -> Filter {
        let bits = (keys.len() * FILTER).next_power_of_two().max(64);
        let mut filter = Filter { bits: vec![0; bits / 64], shift: 64 - bits.ilog2() };
        keys.for_each(|key| {
            let bit = spread(hash(key >> 4)) >> filter.shift;
            filter.bits[bit as usize / 64] |= 1 << (bit % 64);
        });
        filter
    }

    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let bit = spread(hash) >> self.shift;
        self.bits[bit as usize / 64] >> (bit % 64) & 1 > 0
    }
}

/// How often the samples have the marks of some sequences.
#[derive(Debug)]
pub struct Marks {
    /// Sorted.
    keys: Vec<u64>,
    owners: Vec<u32>,
    counts: Vec<[AtomicU32; 2]>,
    /// The greatest hash of a root of theirs.
    bound: u64,
    filter: Filter,
    /// Without what was seen.
    sequences: Vec<Marked>,
}

/// One sequence, with how often its marks were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// First word of its header.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Bases.
    pub bases: u64,
    /// Its k-mers without foreign letters, each as often as it stands there.
    pub kmers: u64,
    /// Marks.
    pub marks: u64,
    /// What would be marks, but stands in the reference or in a sequence before this one, too.
    pub(crate) not_own: u64,
    /// The sequence before this one that has most of these.
    pub like: Option<String>,
    /// In each sample, how many marks it has how often; those that it has.
    pub seen: [Vec<(u32, u32)>; 2],
}

/// What was seen of the marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarksTally {
    /// Contigs of the reference, then what is screened for, each in the order of its file.
    pub sequences: Vec<Marked>,
}

impl MarksTally {
    /// Adds what was seen in another partition of the same k-mers. Says whether the marks are the same.
    #[must_use]
    pub fn add(&mut self, other: &MarksTally) -> bool {
        let same = |(a, b): (&Marked, &Marked)| (&a.name, a.marks, a.kmers) == (&b.name, b.marks, b.kmers);
        if self.sequences.len() != other.sequences.len()
            || !self.sequences.iter().zip(&other.sequences).all(same)
        {
            return false;
        }
        let both = self.sequences.iter_mut().zip(&other.sequences);
        for (sum, part) in both.flat_map(|(sum, part)| sum.seen.iter_mut().zip(&part.seen)) {
            sum.extend(part);
            sum.sort_unstable();
            sum.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
        true
    }
}

impl Marks {
    /// Chooses marks of the contigs of a reference and of what is screened for; `None` where there is neither.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn choose(k: u32, reference: Option<&Path>, screen: Option<&Path>) -> Result<Option<Marks>, Error> {
        let others = screen.map_or(Ok(Vec::new()), |path| screened(path, k))?;
        let mut screened = Screened::of(&others);
        let contigs = reference.map_or(Ok(Vec::new()), |path| contigs(path, k, &mut screened))?;
        Ok((!contigs.is_empty() || !others.is_empty()).then(|| Marks::of(contigs, others, screened)))
    }

    fn of(contigs: Vec<Sequence>, others: Vec<Sequence>, screened: Screened) -> Marks {
        let mut all: Vec<(u64, u32)> = (0..)
            .zip(&contigs)
            .flat_map(|(i, sequence)| {
                sequence.keys.iter().filter(|(_, twice)| !twice).map(move |(key, _)| (*key, i))
            })
            .collect();
        all.sort_unstable();
        // What two contigs have is a mark of neither.
        let mut keys: Vec<(u64, u32)> =
            all.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() == 1).map(|run| run[0]).collect();
        let first = contigs.len() as u32;
        let mut not_own = not_own(&others, &screened);
        let free = screened.keys.iter().zip(&screened.known).filter(|(_, known)| !**known);
        keys.extend(free.map(|(&(key, i), _)| (key, first + i)));
        keys.sort_unstable();
        let mut marks = vec![0; contigs.len() + others.len()];
        keys.iter().for_each(|&(_, i)| marks[i as usize] += 1);
        let sequences = contigs.into_iter().chain(others).enumerate().map(|(i, sequence)| {
            let Sequence { name, kind, bases, kmers, .. } = sequence;
            let (not_own, like) =
                i.checked_sub(first as usize).map_or((0, None), |i| std::mem::take(&mut not_own[i]));
            Marked { name, kind, bases, kmers, marks: marks[i], not_own, like, seen: Default::default() }
        });
        let sequences = sequences.collect();
        let filter = Filter::of(keys.iter().map(|(key, _)| *key).collect::<Vec<_>>().into_iter());
        let counts = keys.iter().map(|_| Default::default()).collect();
        let bound = keys.iter().map(|(key, _)| hash(key >> 4)).max().unwrap_or(0);
        let (keys, owners) = keys.into_iter().unzip();
        Marks { keys, owners, counts, bound, filter, sequences }
    }

    /// Looks a root up, for the first two samples. Each root is shown once.
    #[inline]
    pub fn see<const S: usize>(&self, root: &RootCounters<S>) {
        let hash = hash(root.stem);
        if hash <= self.bound && self.filter.may_have(hash) {
            self.look(root);
        }
    }

    #[inline(never)]
    fn look<const S: usize>(&self, root: &RootCounters<S>) {
        let from = self.keys.partition_point(|key| key >> 4 < root.stem);
        let own = self.keys[from..].iter().take_while(|key| **key >> 4 == root.stem);
        for (key, counts) in own.zip(&self.counts[from..]) {
            let seen = root.counts[(key & 15) as usize];
            counts.iter().zip(seen).for_each(|(count, n)| count.store(n, Relaxed));
        }
    }

    /// What was seen since it was last asked.
    pub fn take(&self) -> MarksTally {
        let mut seen: Vec<[HashMap<u32, u32>; 2]> = vec![Default::default(); self.sequences.len()];
        for (counts, &owner) in self.counts.iter().zip(&self.owners) {
            for (count, seen) in counts.iter().zip(&mut seen[owner as usize]) {
                let n = count.swap(0, Relaxed);
                if n > 0 {
                    *seen.entry(n).or_default() += 1;
                }
            }
        }
        let sequences = self.sequences.iter().zip(seen).map(|(sequence, seen)| {
            let seen = seen.map(|seen| {
                let mut seen: Vec<(u32, u32)> = seen.into_iter().collect();
                seen.sort_unstable();
                seen
            });
            Marked { seen, ..sequence.clone() }
        });
        MarksTally { sequences: sequences.collect() }
    }
}

/// How many k-mers of each sequence are not its own, and who has most of them before it.
fn not_own(others: &[Sequence], screened: &Screened) -> Vec<(u64, Option<String>)> {
    let of = |(i, sequence): (usize, &Sequence)| {
        let (mut known, mut before) = (0, HashMap::<u32, u64>::new());
        for (key, _) in sequence.keys.iter().filter(|(_, twice)| !twice) {
            let Ok(at) = screened.keys.binary_search_by_key(key, |(key, _)| *key) else { continue };
            match screened.keys[at].1 {
                _ if screened.known[at] => known += 1,
                owner if owner as usize != i => *before.entry(owner).or_default() += 1,
                _ => {}
            }
        }
        let most = before.iter().max_by_key(|&(owner, n)| (*n, u32::MAX - owner));
        let like = most.map(|(&owner, _)| others[owner as usize].name.clone());
        (known + before.values().sum::<u64>(), like)
    };
    others.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests;
