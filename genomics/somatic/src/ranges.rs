//! Recruited pairs in the work folder, shelved by the place of their contigs, and judged a range of places at a time: as many as memory has
//! room for.
//!
//! A pair that is recruited for contigs of several shelves lies on each of them, with the contigs of that shelf. Reads are laid on their
//! contigs once; where there are several ranges, how they lie is put away with them. What is found does not depend on the ranges.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_work::parallel::{in_order, try_in_order};
use genuma_work::shelves::{Shelf, Shelves};
use genuma_work::spill::{Error, ObjectFile};
use serde::{Deserialize, Serialize};

use crate::change::position;
use crate::compare::Compared;
use crate::lay::{self, Recruit};
use crate::locus::Locus;
use crate::recruit::{Deep, Index, Kept};

/// How the files are named in messages.
const WHAT: &str = "recruited reads'";
/// Contigs of a shelf, at least; shelves, at most. A contig of extreme depth has some ten thousand pairs.
const CONTIGS: usize = 16;
const MOST_SHELVES: usize = 1024;
/// Bytes that a pair takes in memory beside its letters: seven vectors, where it lies, and what judging keeps of it.
const PER_PAIR: u64 = 400;
/// Bits of a pair's number within its shard.
const PAIRS_OF_SHARD: u32 = 44;

/// Bytes of memory that a pair takes.
pub(crate) fn resident(pair: &Kept) -> u64 {
    let letters: usize = pair.mates.iter().map(|mate| mate.seq.len() + mate.qual.len()).sum();
    PER_PAIR + (pair.name.len() + letters + 4 * pair.contigs.len()) as u64
}

/// Shelves that are being filled.
#[derive(Debug)]
pub(crate) struct Shelving {
    /// Contigs by place.
    order: Vec<u32>,
    /// Of each shelf one past its last, in `order`.
    ends: Vec<u32>,
    /// By contig.
    shelf_of: Vec<u32>,
    shelves: Shelves,
    next: AtomicU64,
}

/// What recruiting has left.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recruited {
    order: Vec<u32>,
    ends: Vec<u32>,
    shelves: Vec<Shelf>,
    /// Of each shelf the bytes of memory that its pairs take.
    resident: Vec<u64>,
    /// Pairs kept.
    pub pairs: u64,
    /// For each contig and sample: one pair in so many was kept.
    pub thinned: Vec<[u32; 2]>,
}

impl Shelving {
    /// Empty shelves for `contigs`, in a new file at `path`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(contigs: &[Compared], path: &Path) -> Result<Shelving, Error> {
        Shelving::of_shard(0, contigs, path)
    }

    /// The same for the pairs of a shard of the reads, by its number; each has other pairs.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn of_shard(shard: u32, contigs: &[Compared], path: &Path) -> Result<Shelving, Error> {
        let mut order: Vec<u32> = (0..contigs.len() as u32).collect();
        order.sort_by_key(|&c| (contigs[c as usize].findings.first().map(|f| position(&f.change)), c));
        let number = contigs.len().div_ceil(CONTIGS).clamp(1, MOST_SHELVES);
        let ends: Vec<u32> = (1..=number).map(|i| (contigs.len() * i / number) as u32).collect();
        let mut shelf_of = vec![0; contigs.len()];
        let mut start = 0;
        for (shelf, &end) in (0..).zip(&ends) {
            order[start..end as usize].iter().for_each(|&c| shelf_of[c as usize] = shelf);
            start = end as usize;
        }
        let shelves = Shelves::create(WHAT, path, number)?;
        let next = AtomicU64::new(u64::from(shard) << PAIRS_OF_SHARD);
        Ok(Shelving { order, ends, shelf_of, shelves, next })
    }

    /// What lies on the shelves of a shard, all of it in its file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<Vec<Shelf>, Error> {
        self.shelves.finish()
    }

    /// How many shelves there are.
    pub fn number(&self) -> usize {
        self.shelves.len()
    }

    /// What a shard has left in an object, to be [settled](Shelving::settle) with others.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn shard(file: &ObjectFile<'_>, shelves: Vec<Shelf>) -> Result<Shelves, Error> {
        Shelves::object(WHAT, file, shelves)
    }

    /// Puts a pair on the shelves of its contigs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, mut pair: Kept) -> Result<(), Error> {
        pair.id = self.next.fetch_add(1, Relaxed);
        let mut shelves: Vec<u32> = pair.contigs.iter().map(|&c| self.shelf_of[c as usize]).collect();
        shelves.sort_unstable();
        shelves.dedup();
        shelves.into_iter().try_for_each(|shelf| self.shelves.put(shelf as usize, &pair))
    }

    /// Thins places of extreme depth, now that it is known which they are, and leaves each shelf in order, with what `shards` have of it.
    ///
    /// # Errors
    /// The file cannot be read or written, or that of a shard not be read.
    pub fn settle(
        self,
        shards: &[Shelves],
        index: &Index,
        deep: &Deep,
        threads: usize,
    ) -> Result<Recruited, Error> {
        let Shelving { order, ends, shelf_of, shelves, .. } = self;
        let settle = |(looking, found): &mut _, shelf: usize| {
            let mut pairs: Vec<Kept> = shelves.take(shelf)?;
            for shard in shards {
                pairs.append(&mut shard.read(shelf)?);
            }
            let mut first = 0;
            for pair in &mut pairs {
                index.thin(pair, deep, looking, found);
                let shelves = || pair.contigs.iter().map(|&c| shelf_of[c as usize] as usize);
                first += u64::from(shelves().min() == Some(shelf));
                pair.contigs.retain(|&c| shelf_of[c as usize] as usize == shelf);
            }
            pairs.retain(|pair| !pair.contigs.is_empty());
            pairs.sort_unstable();
            pairs.iter().try_for_each(|pair| shelves.put(shelf, pair))?;
            Ok((first, pairs.iter().map(resident).sum::<u64>()))
        };
        let counts = try_in_order(shelves.len(), threads, || (index.looking(), Vec::new()), settle)?;
        let (firsts, resident): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
        let (pairs, thinned) = (firsts.iter().sum(), deep.thinned());
        Ok(Recruited { order, ends, shelves: shelves.finish()?, resident, pairs, thinned })
    }
}

/// Pairs of a range in memory.
#[derive(Debug, Default)]
struct Resident {
    /// Ascending by sample, name and bases.
    pairs: Vec<Kept>,
    /// The contigs they were recruited for.
    contigs: Vec<u32>,
}

/// The loci of a call, with the reads of one range of them at a time.
#[derive(Debug)]
pub struct Ranges {
    /// All contigs; those of the range in hand have their reads.
    loci: Vec<Locus>,
    recruited: Recruited,
    shelves: Shelves,
    /// Of shelves.
    ranges: Vec<Range<usize>>,
    /// The only range there is.
    resident: Option<Resident>,
    /// How the reads of each range lie on their contigs, where there are several.
    laid: Shelves,
    threads: usize,
}

impl Ranges {
    /// The pairs that were recruited into the file at `path`, to be taken up in `memory` bytes, and laid on `contigs`.
    ///
    /// # Errors
    /// A file cannot be read or written, or is damaged.
    pub fn new(
        mut recruited: Recruited,
        path: &Path,
        contigs: Vec<Compared>,
        memory: u64,
        work: &Path,
        threads: usize,
    ) -> Result<Ranges, Error> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut taken = 0;
        for (i, &needed) in recruited.resident.iter().enumerate() {
            match ranges.last_mut() {
                Some(range) if taken + needed <= memory => range.end += 1,
                _ => {
                    ranges.push(i..i + 1);
                    taken = 0;
                }
            }
            taken += needed;
        }
        let shelves = Shelves::open(WHAT, path, std::mem::take(&mut recruited.shelves))?;
        let laid = Shelves::unnamed(WHAT, work, ranges.len());
        let loci = Ranges::without_reads(contigs, &recruited);
        let mut all = Ranges { loci, recruited, shelves, ranges, resident: None, laid, threads };
        all.lay()?;
        Ok(all)
    }

    /// Loci that have their reads, of `pairs`.
    #[cfg(test)]
    pub(crate) fn in_memory(loci: Vec<Locus>, pairs: Vec<Kept>) -> Ranges {
        let none = || Shelves::unnamed(WHAT, Path::new("/"), 0);
        let (order, kept) = ((0..loci.len() as u32).collect(), pairs.len() as u64);
        let recruited = Recruited {
            order,
            ends: Vec::new(),
            shelves: Vec::new(),
            resident: Vec::new(),
            pairs: kept,
            thinned: Vec::new(),
        };
        let resident = Some(Resident { pairs, contigs: recruited.order.clone() });
        Ranges {
            loci,
            recruited,
            shelves: none(),
            ranges: std::iter::once(0..0).collect(),
            resident,
            laid: none(),
            threads: 1,
        }
    }

    fn without_reads(contigs: Vec<Compared>, recruited: &Recruited) -> Vec<Locus> {
        contigs
            .into_iter()
            .zip(&recruited.thinned)
            .map(|(contig, &thinned)| Locus::new(contig, thinned))
            .collect()
    }

    /// Lays all reads on other contigs, as many as before.
    ///
    /// # Errors
    /// Those of [`Ranges::new`].
    pub(crate) fn lay_on(&mut self, contigs: Vec<Compared>) -> Result<(), Error> {
        self.loci = Ranges::without_reads(contigs, &self.recruited);
        self.lay()
    }

    /// The contigs, with no more reads than happen to be there.
    pub fn loci(&self) -> &[Locus] {
        &self.loci
    }

    /// The same, to be changed.
    pub(crate) fn loci_mut(&mut self) -> &mut [Locus] {
        &mut self.loci
    }

    fn lay(&mut self) -> Result<(), Error> {
        let several = self.ranges.len() > 1;
        for range in 0..self.ranges.len() {
            let resident = match self.resident.take() {
                Some(resident) => resident,
                None => self.load(range)?,
            };
            let Resident { pairs, contigs } = &resident;
            let members = by_contig(pairs, contigs, self.loci.len());
            let (loci, threads) = (&self.loci, self.threads);
            let lay = |(): &mut (), i: usize| lay::lay(&loci[contigs[i] as usize].contig, &members[i], pairs);
            let laid = in_order(contigs.len(), threads, || (), lay);
            for (&c, recruits) in contigs.iter().zip(laid) {
                self.loci[c as usize].take_reads(recruits, pairs);
            }
            if several {
                self.laid.take::<Vec<Recruit>>(range)?;
                for &c in contigs {
                    let recruits = std::mem::take(&mut self.loci[c as usize].recruits);
                    self.laid.put(range, &recruits)?;
                }
            } else {
                self.resident = Some(resident);
            }
        }
        Ok(())
    }

    /// The pairs of a range, each once.
    fn load(&self, range: usize) -> Result<Resident, Error> {
        let shelves = self.ranges[range].clone();
        let ends = &self.recruited.ends;
        let start = shelves.start.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let contigs = self.recruited.order[start..ends[shelves.end - 1] as usize].to_vec();
        let read = |(): &mut (), i: usize| self.shelves.read::<Kept>(shelves.start + i);
        let read = try_in_order(shelves.len(), self.threads, || (), read)?;
        let mut pairs: Vec<Kept> = read.into_iter().flatten().collect();
        // Shelf by shelf they are in order already, which this sort makes use of.
        pairs.sort();
        pairs.dedup_by(|again, kept| {
            let same = again.id == kept.id;
            if same {
                kept.contigs.append(&mut again.contigs);
            }
            same
        });
        Ok(Resident { pairs, contigs })
    }

    /// Calls `each` for every range: with all loci, those of the range with their reads; which these are; and the pairs of the range, which
    /// the reads point into.
    ///
    /// # Errors
    /// A file cannot be read or is damaged; that of `each`.
    pub fn for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(&mut [Locus], &[u32], &[Kept]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(Resident { pairs, contigs }) = &self.resident {
            return each(&mut self.loci, contigs, pairs);
        }
        for range in 0..self.ranges.len() {
            let Resident { pairs, contigs } = self.load(range)?;
            for (&c, recruits) in contigs.iter().zip(self.laid.read(range)?) {
                self.loci[c as usize].recruits = recruits;
            }
            each(&mut self.loci, &contigs, &pairs)?;
            contigs.iter().for_each(|&c| self.loci[c as usize].recruits = Vec::new());
        }
        Ok(())
    }
}

/// The pairs of each of some of the `all` contigs: indices into `pairs`, ascending.
fn by_contig(pairs: &[Kept], contigs: &[u32], all: usize) -> Vec<Vec<u32>> {
    let mut at = vec![u32::MAX; all];
    (0..).zip(contigs).for_each(|(i, &c)| at[c as usize] = i);
    let mut members = vec![Vec::new(); contigs.len()];
    for (p, pair) in (0..).zip(pairs) {
        pair.contigs.iter().for_each(|&c| members[at[c as usize] as usize].push(p));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::compare::Finding;
    use crate::recruit::{Seen, Wanted};
    use genuma_reads::dna::revcomp;
    use genuma_reads::{Mate, Pair};

    fn bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// A contig of 400 bases of the genome with its base 200 changed.
    fn contig(genome: &[u8], from: usize) -> Compared {
        let normal = genome[from..from + 400].to_vec();
        let mut seq = normal.clone();
        seq[200] = if seq[200] == b'A' { b'C' } else { b'A' };
        let change = Change::Allele {
            chrom: 0,
            pos: from + 200,
            reference: vec![normal[200]],
            alternative: vec![seq[200]],
        };
        let finding = Finding {
            change,
            at: 200..201,
            left_normal: normal.clone(),
            right_normal: normal,
            right_shift: 0,
            mapq: 60,
        };
        Compared {
            novel: (0..400).map(|at| (170..231).contains(&at)).collect(),
            weight: vec![74; 400],
            assembled: 0..400,
            depth: 4,
            findings: vec![finding],
            diagonals: [None; 2],
            seq,
        }
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_memory() {
        // Contigs in no order, some beside each other, so that pairs belong to several; pairs with equal names and bases, too.
        let genome = bases(60_000, 9);
        let mut contigs: Vec<Compared> =
            (0..80).map(|i| contig(&genome, (i * 37 % 80) * 700 + i % 2 * 400)).collect();
        let index = Index::of(Wanted::among(&mut contigs, 31, None, 1));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recruit.bins");
        let seen = Seen::new(&index, 2);
        let shelving = Shelving::new(&contigs, &path).unwrap();
        let (mut looking, mut found) = (index.looking(), Vec::new());
        let mut kept = 0;
        for i in (0..59_500).step_by(60) {
            let mates = [genome[i..i + 100].to_vec(), revcomp(&genome[i + 300..i + 400])];
            let qual = [b'I'; 100];
            let mate = |m: usize| Mate { seq: &mates[m], qual: &qual };
            for sample in [0, 1, 1] {
                let pair = Pair { name: format!("p{i}").leak().as_bytes(), mates: [mate(0), mate(1)] };
                if let Some(pair) = index.recruit(pair, sample, &seen, &mut looking, &mut found) {
                    kept += 1;
                    shelving.put(pair).unwrap();
                }
            }
        }
        let recruited = shelving.settle(&[], &index, &index.deep(&seen, contigs.len()), 2).unwrap();
        assert_eq!(recruited.pairs, kept);
        let recruited: Vec<u8> = serde_json::to_vec(&recruited).unwrap();
        let laid = |memory: u64| {
            let recruited = serde_json::from_slice(&recruited).unwrap();
            let mut ranges =
                Ranges::new(recruited, &path, contigs.clone(), memory, folder.path(), 2).unwrap();
            let mut all = vec![Vec::new(); contigs.len()];
            let mut seen = Vec::new();
            ranges
                .for_each(|loci, here, pairs| {
                    for &c in here {
                        let locus = &loci[c as usize];
                        assert_eq!(locus.laid, locus.recruits.len());
                        let told = |r: &Recruit| {
                            let pair = &pairs[r.pair as usize];
                            (pair.name.clone(), pair.sample, pair.id, r.mate, r.forward, r.at)
                        };
                        all[c as usize] = locus.recruits.iter().map(told).collect();
                        seen.push(c);
                    }
                    Ok::<(), Error>(())
                })
                .unwrap();
            let counts: Vec<[usize; 2]> = ranges.loci().iter().map(|locus| locus.pairs).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..contigs.len() as u32));
            (ranges.ranges.len(), all, counts)
        };
        let (one, all, counts) = laid(1 << 30);
        assert_eq!(one, 1);
        assert!(all.iter().all(|reads| reads.len() > 5));
        assert!(counts.iter().all(|[normal, tumour]| 2 * normal == *tumour && *normal > 1));
        for memory in [400_000, 0] {
            let (several, again, same) = laid(memory);
            assert!(several > 1 && again == all && same == counts, "{memory}: {several}");
        }
    }
}
