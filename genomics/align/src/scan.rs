//! Sequences against a reference that goes past: where each of them lies, and each of its parts. No index of the reference is made or needed.
//!
//! ```text
//! sequences -> seeds   -> how often each stands in the reference   (it goes past once)
//!                      -> the rare ones -> stretches without gaps  (it goes past again)
//!                                       -> the best of each part -> with short gaps -> hits
//! ```
//!
//! What it costs is a look at each base of the reference, twice, for as many sequences as memory holds at once: some [`PER_BASE`] bytes for each of
//! their bases. Where sequences are parts of repeats, each place of the repeat is looked at beside that. No part of a sequence has more than [`KEPT`] hits.

mod extend;
mod seeds;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_machine::processor::prefetch;
use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;
use genuma_work::Meter;
use genuma_work::parallel::in_order;

use self::extend::{Alignment, Stretch, equal_bases, with_gaps, without_gaps};
use self::seeds::{Group, Place, SEED, Seed, Seeds, seeds};
use crate::hit::{CigarKind, CigarOp, Hit, Strand};

/// Bytes that a base of a sequence takes; bases that are looked for at once, at least and at most, and one for so many of the reference if that is more
/// than `SOME`: tables much larger than what goes past them only miss the caches.
const PER_BASE: u64 = 64;
const BATCH: Range<u64> = 1 << 20..1 << 29;
const SHARE: u64 = 16;
const SOME: u64 = 4 << 20;
/// How often the reference goes past for sequences that are looked for at once.
const PASSES: u64 = 2;
/// Bases of the reference that a thread takes at once.
const CHUNK: usize = 512 << 10;
/// How often a k-mer may stand in the reference that is looked for in any case; how often the rarest of [`WITHIN`] bases, if these have fewer than
/// [`ENOUGH`] such; and the rarest of all, if they have none.
const SELDOM: u32 = 20;
const OFTEN: u32 = 500;
const VERY_OFTEN: u32 = 5_000;
const WITHIN: usize = 24;
const ENOUGH: usize = 2;
/// Hits of one part of a sequence at most.
const KEPT: usize = 50;
/// Stretches of a sequence from which the worst are dropped, and chunks after which all threads do that together.
const MANY: usize = 256;
const ROUND: usize = 64;
/// Parts of the sequences that threads take then.
const SHARES: usize = 64;
/// Stretches laid last among which a seed's is looked for, before it is laid.
const RECENT: usize = 16;
/// k-mers that are laid together, bytes of a cache line, and lines before and behind a k-mer that its stretch may reach.
const TOGETHER: usize = 128;
const LINE: usize = 64;
const AHEAD: usize = 3;
/// Fewest points of a hit.
const LEAST: i32 = 25;
/// Points behind the best of a part from which gaps cannot help, and hits of a part that are tried with gaps.
const HOPELESS: i32 = 40;
const TRIED: usize = 8;
/// Points by which a hit has to be better than all others to be as sure as can be, and the quality of that.
const SURE: i32 = 20;
const SUREST: i32 = 60;
/// How far apart mates lie (bp) if too few say how far.
pub const APART: usize = 1_000;
/// What mates cost that do not lie as mates do, and how many say how far.
const UNPAIRED: i32 = 17;
const FEWEST: usize = 20;

/// Where sequences lie.
#[derive(Debug)]
pub struct Found<T = Vec<Hit>> {
    /// Of each sequence its hits, the best first, or what was made of them.
    pub hits: Vec<T>,
    /// Sequences with a part that stands in so many places that these were not looked at.
    pub crowded: u64,
    /// Sequences with a part of which more places were found than are kept.
    pub unkept: u64,
}

/// Some bases of one sequence of the reference.
pub type Part = (usize, Range<usize>);

/// A reference that goes past, and the means, on which what is found does not depend.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// The reference.
    pub genome: &'a Reference,
    /// The parts of it that go past, each a sequence and its bases, in order and apart; all of it if there are none such. What begins in one goes on
    /// beyond it.
    pub parts: Option<&'a [Part]>,
    /// Threads, at least 1.
    pub threads: usize,
    /// Bytes that looking may take, 64 MB at least, beside what it gives back.
    pub memory: u64,
    /// Told of the bases of the reference that have gone past.
    pub meter: &'a Meter,
}

/// Bases of sequences that are looked for at once in a reference of so many bases, with so many bytes.
pub fn at_once(reference: u64, memory: u64) -> u64 {
    (memory / PER_BASE).min(SOME.max(reference / SHARE)).clamp(BATCH.start, BATCH.end)
}

/// Bytes that looking for so many bases of sequences at once takes.
pub fn bytes_for(bases: u64) -> u64 {
    bases * PER_BASE
}

impl Scan<'_> {
    /// How many of the first of some sequences, of so many bases each, are looked for at once: as many as there is memory for, and one at least.
    pub fn together(&self, lengths: impl Iterator<Item = usize>) -> usize {
        let most = at_once(self.bases(), self.memory);
        let mut bases = 0;
        let fits = |length: &usize| {
            bases += *length as u64 + 1;
            bases <= most
        };
        lengths.take_while(fits).count().max(1)
    }

    /// How many bases go past for sequences of so many bases each.
    pub fn expected(&self, mut lengths: &[usize]) -> u64 {
        let mut turns = 0;
        while !lengths.is_empty() {
            lengths = &lengths[self.together(lengths.iter().copied())..];
            turns += 1;
        }
        turns * PASSES * self.bases()
    }

    fn bases(&self) -> u64 {
        match self.parts {
            Some(parts) => parts.iter().map(|(_, range)| range.len() as u64).sum(),
            None => self.genome.contigs.iter().map(|contig| contig.seq.len() as u64).sum(),
        }
    }

    /// Pieces of what goes past.
    fn chunks(&self) -> Vec<Part> {
        let of = |(chrom, part): Part| {
            let end = part.end;
            part.step_by(CHUNK).map(move |from| (chrom, from..(from + CHUNK).min(end)))
        };
        let all = || {
            let contigs = self.genome.contigs.iter().enumerate();
            contigs.map(|(chrom, contig)| (chrom, 0..contig.seq.len())).collect()
        };
        self.parts.map_or_else(all, <[Part]>::to_vec).into_iter().flat_map(of).collect()
    }

    /// The bases of a piece, and those that k-mers which begin in it need behind it.
    fn bases_of(&self, (chrom, range): &Part) -> &[u8] {
        let seq = &self.genome.contigs[*chrom].seq;
        &seq[range.start..(range.end + SEED - 1).min(seq.len())]
    }

    /// All that shares 22 bases and has [`LEAST`] points (1 for equal bases, −4 for different ones, −6−1 for a gap of up to 35), but of the bases
    /// that stand in very many places. The first hit of a sequence is primary, others of the same bases are secondary.
    ///
    /// # Panics
    /// A sequence of 1 Gbp or more.
    pub fn find(&self, sequences: &[&[u8]]) -> Found {
        self.find_each(sequences, |_, hits| hits)
    }

    /// The same, of which only that is kept that `make` makes of the hits of each sequence, in any order and on all threads.
    ///
    /// # Panics
    /// As [`Scan::find`].
    pub fn find_each<T: Send>(
        &self,
        sequences: &[&[u8]],
        make: impl Fn(usize, Vec<Hit>) -> T + Sync,
    ) -> Found<T> {
        let mut found = Found { hits: Vec::with_capacity(sequences.len()), crowded: 0, unkept: 0 };
        let mut first = 0;
        while first < sequences.len() {
            let rest = &sequences[first..];
            let n = self.together(rest.iter().map(|sequence| sequence.len()));
            let some = Batch::new(&rest[..n]).find(self, |s, hits| make(first + s, hits));
            found.hits.extend(some.hits);
            found.crowded += some.crowded;
            found.unkept += some.unkept;
            first += n;
        }
        found
    }
}

/// Some sequences, all of their bases one after the other.
struct Batch {
    bases: Vec<u8>,
    /// The reverse complement of each in its place.
    turned: Vec<u8>,
    /// Where each begins, with a base of none between two; and where the next would.
    starts: Vec<usize>,
}

/// Where base 0 of a sequence, turned if it is reversed, would lie, and whether it is.
type Diagonal = (i64, u32, bool);

/// A stretch of a sequence on a sequence of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Laid {
    /// Where base 0 of the sequence, turned if it is reversed, would lie.
    left: i64,
    sequence: u32,
    chrom: u32,
    reverse: bool,
    stretch: Stretch,
}

/// A k-mer of a sequence that the reference has at base `t`, which has not been laid yet.
struct Waiting {
    place: Place,
    /// They are on different strands.
    turned: bool,
    t: usize,
}

/// What a thread has found in a chunk.
struct Laying {
    /// Of each sequence, and from how many on it is thinned.
    found: Vec<(Vec<Laid>, usize)>,
    /// Sequences that have some.
    touched: Vec<u32>,
}

/// What a thread works with.
struct Here {
    group: Group,
    waiting: Vec<Waiting>,
    found: Laying,
}

impl Laid {
    /// The best first, then in order of place.
    fn order(&self) -> impl Ord + use<> {
        let Laid { chrom, reverse, left, stretch, .. } = *self;
        let Range { start, end } = stretch.bases();
        (-stretch.score, chrom, left, reverse, start, end)
    }

    /// Where a base of its lies.
    fn on(&self, q: usize) -> usize {
        (self.left + q as i64) as usize
    }

    fn diagonal(&self) -> Diagonal {
        (self.left, self.chrom, self.reverse)
    }

    /// Its bases as the sequence was given.
    fn query(&self, length: usize) -> Range<usize> {
        let Range { start: from, end: to } = self.stretch.bases();
        if self.reverse { length - to..length - from } else { from..to }
    }
}

fn shared(one: &Range<usize>, other: &Range<usize>) -> usize {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// Drops stretches that are part of a better one, and those of which four fifths have [`KEPT`] better ones; leaves the others in their order. Says
/// whether there were such as the latter.
fn thin(laid: &mut Vec<Laid>, length: usize) -> bool {
    let mut order: Vec<usize> = (0..laid.len()).collect();
    order.sort_unstable_by_key(|&i| laid[i].order());
    // Those that stay, side by side as each is held against all of them.
    let mut kept: Vec<(Diagonal, Range<usize>)> = Vec::new();
    let (mut drop, mut thinned) = (vec![false; laid.len()], false);
    for i in order {
        let (diagonal, own) = (laid[i].diagonal(), laid[i].query(length));
        let (mut better, mut part) = (0, false);
        for (other, bases) in &kept {
            let shared = shared(&own, bases);
            part |= shared == own.len() && *other == diagonal;
            better += usize::from(shared * 5 >= own.len() * 4);
        }
        drop[i] = part || better >= KEPT;
        thinned |= drop[i] && !part;
        if !drop[i] {
            kept.push((diagonal, own));
        }
    }
    let mut dropped = drop.into_iter();
    laid.retain(|_| !dropped.next().unwrap_or(false));
    thinned
}

impl Batch {
    fn new(sequences: &[&[u8]]) -> Batch {
        let (mut bases, mut turned, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for sequence in sequences {
            bases.extend(sequence.iter().map(u8::to_ascii_uppercase));
            turned.extend(revcomp(sequence));
            bases.push(b'N');
            turned.push(b'N');
            starts.push(bases.len());
        }
        assert!(bases.len() < 1 << 30, "a sequence of 1 Gbp or more");
        Batch { bases, turned, starts }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn range(&self, sequence: usize) -> Range<usize> {
        self.starts[sequence]..self.starts[sequence + 1] - 1
    }

    fn oriented(&self, sequence: usize, reverse: bool) -> &[u8] {
        let bases = if reverse { &self.turned } else { &self.bases };
        &bases[self.range(sequence)]
    }

    fn find<T: Send>(&self, scan: &Scan<'_>, make: impl Fn(usize, Vec<Hit>) -> T + Sync) -> Found<T> {
        let (seeds, crowded) = self.rare(scan);
        let unkept: Vec<AtomicBool> = (0..self.len()).map(|_| AtomicBool::new(false)).collect();
        let laid = self.lay(scan, &seeds, &unkept);
        drop(seeds);
        let hits = in_order(
            self.len(),
            scan.threads,
            || (),
            |(), s| {
                let (hits, thinned) = self.hits(scan.genome, s, laid[s].clone());
                unkept[s].fetch_or(thinned, Relaxed);
                make(s, hits)
            },
        );
        let unkept = unkept.iter().filter(|unkept| unkept.load(Relaxed)).count() as u64;
        Found { hits, crowded, unkept }
    }

    /// The k-mers by which sequences are looked for, and of how many sequences some part has none.
    fn rare(&self, scan: &Scan<'_>) -> (Seeds, u64) {
        let seeds = self.seeds(|_| true);
        let counts: Vec<AtomicU32> = (0..seeds.different()).map(|_| AtomicU32::new(0)).collect();
        let chunks = scan.chunks();
        let count = |group: &mut Group, i: usize| {
            seeds.look_up(group, scan.bases_of(&chunks[i]), |number, _| {
                if counts[number].load(Relaxed) <= VERY_OFTEN {
                    counts[number].fetch_add(1, Relaxed);
                }
            });
            scan.meter.add_bytes(chunks[i].1.len() as u64);
        };
        in_order(chunks.len(), scan.threads, Group::default, count);
        // How often that of each base stands there.
        let mut times = vec![0; self.bases.len()];
        for (number, count) in counts.iter().enumerate() {
            let count = count.load(Relaxed);
            seeds.places(number).iter().for_each(|place| times[place.at()] = count);
        }
        drop((seeds, counts));
        let (mut chosen, mut crowded, mut there) = (vec![false; self.bases.len()], 0, Vec::new());
        for s in 0..self.len() {
            let mut left_out = false;
            for from in self.range(s).step_by(WITHIN) {
                let within = from..(from + WITHIN).min(self.range(s).end);
                there.clear();
                there.extend(within.map(|at| (times[at], at)).filter(|(count, _)| *count > 0));
                there.sort_unstable();
                for (n, &(count, at)) in there.iter().enumerate() {
                    let most = match n {
                        0 => VERY_OFTEN,
                        _ if n < ENOUGH => OFTEN,
                        _ => SELDOM,
                    };
                    if count > most {
                        left_out |= n == 0;
                        break;
                    }
                    chosen[at] = true;
                }
            }
            crowded += u64::from(left_out);
        }
        (self.seeds(|at| chosen[at]), crowded)
    }

    /// The k-mers that begin at the bases that are `wanted`.
    fn seeds(&self, wanted: impl Fn(usize) -> bool) -> Seeds {
        let mut places = Vec::new();
        for (number, s) in (0..).zip(0..self.len()) {
            let Range { start, end } = self.range(s);
            seeds(&self.bases[start..end], |some| {
                let own = some.iter().map(|seed| Seed { at: seed.at + start as u32, ..*seed });
                let wanted = own.filter(|seed| wanted(seed.at as usize));
                places.extend(wanted.map(|seed| Place::new(seed, number)));
            });
        }
        Seeds::new(places)
    }

    /// The stretches that have these k-mers; of which sequences some were not kept is noted.
    fn lay(&self, scan: &Scan<'_>, seeds: &Seeds, unkept: &[AtomicBool]) -> Vec<Vec<Laid>> {
        let &Scan { genome, threads, meter, .. } = scan;
        let chunks = scan.chunks();
        // Some sequences in a row go to one thread.
        let some = self.len().div_ceil(SHARES).max(1);
        let share = |s: usize| Mutex::new(vec![Vec::new(); some.min(self.len() - s)]);
        let shares: Vec<Mutex<Vec<Vec<Laid>>>> = (0..self.len()).step_by(some).map(share).collect();
        let lay = |Here { group, waiting, found }: &mut Here, i: usize| {
            let (chrom, Range { start, end }) = chunks[i];
            let reference = &genome.contigs[chrom].seq;
            let mut lay = |waiting: &mut Vec<Waiting>| {
                self.lay_some(waiting, found, chrom, reference, unkept);
                waiting.clear();
            };
            seeds.look_up(group, scan.bases_of(&chunks[i]), |number, Seed { at, reverse, .. }| {
                for &place in seeds.places(number) {
                    prefetch(&self.starts[place.sequence()]);
                    waiting.push(Waiting {
                        place,
                        turned: place.reverse() != reverse,
                        t: start + at as usize,
                    });
                    if waiting.len() == TOGETHER {
                        lay(waiting);
                    }
                }
            });
            lay(waiting);
            meter.add_bytes((end - start) as u64);
            let Laying { found, touched } = found;
            let mut all = vec![Vec::new(); shares.len()];
            touched.drain(..).for_each(|s| all[s as usize / some].append(&mut found[s as usize].0));
            all
        };
        let state = || Here {
            group: Group::default(),
            waiting: Vec::with_capacity(TOGETHER),
            found: Laying { found: vec![(Vec::new(), MANY); self.len()], touched: Vec::new() },
        };
        // What is found is thinned every few chunks, and always after the same ones.
        for first in (0..chunks.len()).step_by(ROUND) {
            let round = (chunks.len() - first).min(ROUND);
            let found = in_order(round, threads, state, |state, i| lay(state, first + i));
            let take = |(): &mut (), share: usize| {
                let mut lists = shares[share].lock().unwrap_or_else(PoisonError::into_inner);
                for laid in found.iter().flat_map(|found| &found[share]) {
                    lists[laid.sequence as usize % some].push(*laid);
                }
                for (s, list) in (share * some..).zip(lists.iter_mut()).filter(|(_, list)| list.len() >= MANY)
                {
                    unkept[s].fetch_or(thin(list, self.range(s).len()), Relaxed);
                }
            };
            in_order(shares.len(), threads, || (), take);
        }
        shares
            .into_iter()
            .flat_map(|share| share.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    /// Lays what waits. All of it goes through each step together, which asks for the memory that the next one reads.
    fn lay_some(
        &self,
        waiting: &[Waiting],
        Laying { found, touched }: &mut Laying,
        chrom: usize,
        reference: &[u8],
        unkept: &[AtomicBool],
    ) {
        for Waiting { place, turned, .. } in waiting {
            prefetch(&found[place.sequence()]);
            let first = if *turned { self.turned_at(*place) } else { place.at() };
            let bases = if *turned { &self.turned } else { &self.bases };
            for line in (first.saturating_sub(LINE * AHEAD)..first + LINE * AHEAD).step_by(LINE) {
                bases.get(line).into_iter().for_each(prefetch);
            }
        }
        for Waiting { place, .. } in waiting {
            found[place.sequence()].0.last().into_iter().for_each(prefetch);
        }
        for &Waiting { place, turned, t } in waiting {
            let sequence = place.sequence();
            let own = self.range(sequence);
            let q = if turned { self.turned_at(place) } else { place.at() } - own.start;
            let left = t as i64 - q as i64;
            let (list, limit) = &mut found[sequence];
            // Mostly: what is laid twice is dropped when they are thinned.
            let known =
                list.iter().rev().take(RECENT).any(|laid| {
                    laid.left == left && laid.reverse == turned && laid.stretch.bases().contains(&q)
                });
            if known {
                continue;
            }
            let stretch = without_gaps(self.oriented(sequence, turned), reference, q, t);
            if stretch.score >= LEAST {
                let (sequence, chrom) = (sequence as u32, chrom as u32);
                if list.is_empty() {
                    touched.push(sequence);
                    *limit = MANY;
                }
                list.push(Laid { sequence, chrom, reverse: turned, left, stretch });
                if list.len() >= *limit {
                    let thinned = thin(list, own.len());
                    unkept[sequence as usize].fetch_or(thinned, Relaxed);
                    // Parts may be many: it has to be worth it.
                    *limit = MANY.max(2 * list.len());
                }
            }
        }
    }

    /// Where the reverse complement of a k-mer begins among the bases that are turned.
    fn turned_at(&self, place: Place) -> usize {
        let Range { start, end } = self.range(place.sequence());
        start + end - place.at() - SEED
    }

    /// The hits of a sequence, from its stretches, and whether some of these were not kept.
    fn hits(&self, genome: &Reference, sequence: usize, mut laid: Vec<Laid>) -> (Vec<Hit>, bool) {
        let length = self.range(sequence).len();
        let thinned = thin(&mut laid, length);
        laid.sort_unstable_by_key(Laid::order);
        let mut hits: Vec<Hit> = Vec::with_capacity(laid.len());
        for (i, one) in laid.iter().enumerate() {
            let own = one.query(length);
            let bases = one.stretch.bases();
            let (from, to) = (one.on(bases.start), one.on(bases.end));
            // A part of an alignment with gaps.
            let known = hits.iter().any(|hit| {
                hit.tid == one.chrom as usize
                    && (hit.strand == Strand::Reverse) == one.reverse
                    && hit.ref_start <= from
                    && to <= hit.ref_end
                    && hit.query_start <= own.start
                    && own.end <= hit.query_end
            });
            if known {
                continue;
            }
            let better =
                laid[..i].iter().filter(|other| shared(&own, &other.query(length)) * 5 >= own.len() * 4);
            let (mut rivals, mut best) = (0, 0);
            better.for_each(|other| (rivals, best) = (rivals + 1, best.max(other.stretch.score)));
            let gaps = rivals < TRIED && best <= one.stretch.score + HOPELESS;
            hits.push(self.hit(genome, one, gaps));
        }
        settle(&mut hits);
        (hits, thinned)
    }

    fn hit(&self, genome: &Reference, laid: &Laid, gaps: bool) -> Hit {
        let query = self.oriented(laid.sequence as usize, laid.reverse);
        let reference = &genome.contigs[laid.chrom as usize].seq;
        let Range { start: from, end: to } = laid.stretch.bases();
        let score = laid.stretch.score;
        let alignment = if gaps {
            with_gaps(query, reference, laid.left, laid.stretch)
        } else {
            let target = (laid.on(from), laid.on(to));
            let cigar = vec![CigarOp { kind: CigarKind::Match, len: (to - from) as u32 }];
            let equal = equal_bases(&query[from..to], &reference[target.0..target.1]);
            Alignment { query: (from, to), target, score, cigar, equal }
        };
        let (from, to) = alignment.query;
        let (start, end) = if laid.reverse { (query.len() - to, query.len() - from) } else { (from, to) };
        Hit {
            tid: laid.chrom as usize,
            ref_start: alignment.target.0,
            ref_end: alignment.target.1,
            query_start: start,
            query_end: end,
            strand: if laid.reverse { Strand::Reverse } else { Strand::Forward },
            mapq: 0,
            score: alignment.score,
            blen: alignment.cigar.iter().map(|op| op.len as usize).sum(),
            mlen: alignment.equal,
            proper_pair: false,
            is_primary: false,
            is_secondary: false,
            cigar: alignment.cigar,
        }
    }
}

fn bases(hit: &Hit) -> Range<usize> {
    hit.query_start..hit.query_end
}

/// Whether more than half of the shorter one is shared.
fn same_bases(one: &Hit, other: &Hit) -> bool {
    let (one, other) = (bases(one), bases(other));
    shared(&one, &other) * 2 > one.len().min(other.len())
}

/// Puts hits in order, the best first, each alignment once, and says which is primary and which secondary, and how sure each is.
fn settle(hits: &mut Vec<Hit>) {
    hits.sort_by_key(|hit| (-hit.score, hit.tid, hit.ref_start, hit.ref_end, hit.strand == Strand::Reverse));
    let form =
        |hit: &Hit| (hit.tid, hit.strand == Strand::Reverse, hit.ref_start, hit.ref_end, hit.query_start);
    let mut known = HashSet::new();
    hits.retain(|hit| known.insert(form(hit)));
    rank(hits);
}

/// Which of some hits is primary and which secondary, by their order, and how sure each is.
fn rank(hits: &mut [Hit]) {
    for i in 0..hits.len() {
        let (before, rest) = hits.split_at_mut(i);
        let Some((hit, behind)) = rest.split_first_mut() else { break };
        hit.is_primary = i == 0;
        hit.is_secondary = before.iter().any(|other| !other.is_secondary && same_bases(hit, other));
        let rivals = before.iter().chain(&*behind).filter(|other| same_bases(hit, other));
        let rival = rivals.map(|other| other.score).max();
        let margin = rival.map_or(SURE, |rival| (hit.score - rival).clamp(0, SURE));
        hit.mapq = (margin * SUREST / SURE) as u8;
    }
}

/// Distance between the first bases of mates that face each other, if they do (bp).
fn distance(one: &Hit, other: &Hit) -> Option<usize> {
    let (ahead, back) = match (one.strand, other.strand) {
        (Strand::Forward, Strand::Reverse) => (one, other),
        (Strand::Reverse, Strand::Forward) => (other, one),
        _ => return None,
    };
    (one.tid == other.tid && back.ref_start >= ahead.ref_start).then(|| back.ref_end - ahead.ref_start)
}

/// How far mates are apart at most, by those that lie in one place each: their upper quartile and three times what is between the quartiles; `None` if
/// these are too few.
pub fn farthest(hits: &[[Vec<Hit>; 2]]) -> Option<usize> {
    let certain = |[one, two]: &[Vec<Hit>; 2]| match (&one[..], &two[..]) {
        ([one], [two]) => distance(one, two).filter(|&apart| apart <= 10 * APART),
        _ => None,
    };
    let mut apart: Vec<usize> = hits.iter().filter_map(certain).collect();
    if apart.len() < FEWEST {
        return None;
    }
    apart.sort_unstable();
    let (lower, upper) = (apart[apart.len() / 4], apart[apart.len() * 3 / 4]);
    Some(upper + 3 * (upper - lower).max(30))
}

/// Puts that hit of each mate first with which both are best: of places that are about as good those are believed that lie as mates do, `farthest`
/// apart at most.
pub fn choose(mates: &mut [Vec<Hit>; 2], farthest: usize) {
    let [one, two] = &*mates;
    if one.is_empty() || two.is_empty() {
        return;
    }
    let fits = |x: usize, y: usize| distance(&one[x], &two[y]).is_some_and(|apart| apart <= farthest);
    let all = (0..one.len()).flat_map(|x| (0..two.len()).map(move |y| (x, y)));
    let mut pairs: Vec<(i32, usize, usize)> =
        all.filter(|&(x, y)| fits(x, y)).map(|(x, y)| (-(one[x].score + two[y].score), x, y)).collect();
    pairs.sort_unstable();
    let apart = one[0].score + two[0].score - UNPAIRED;
    let Some(&(score, x, y)) = pairs.first().filter(|(score, ..)| -score > apart) else { return };
    let next = pairs.get(1).map_or(apart, |(next, ..)| apart.max(-next));
    let sure = ((-score - next).clamp(0, SURE) * SUREST / SURE) as u8;
    for (hits, chosen) in mates.iter_mut().zip([x, y]) {
        hits[..=chosen].rotate_right(1);
        rank(hits);
        let own = &mut hits[0];
        // A mate lends what it knows, 40 at most.
        own.mapq = own.mapq.max(sure.min(own.mapq + 40));
        own.proper_pair = true;
    }
}

#[cfg(test)]
mod tests;
