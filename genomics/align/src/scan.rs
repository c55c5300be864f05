//! Sequences against a reference that goes past: where each of them lies, and each of its parts. No index of the reference is made or needed.
//!
//! ```text
//! sequences -> seeds   -> how often each stands in the reference   (it goes past once)
//!                      -> the rare ones -> stretches without gaps  (it goes past again)
//!                                       -> the best of each part -> with short gaps -> hits
//! ```
//!
//! What it costs is a look at each base of the reference, twice, for as many sequences as memory holds at once: some [`PER_BASE`] bytes for each of
//! their bases. No part of a sequence has more than [`KEPT`] hits.

mod extend;
mod seeds;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;
use genuma_work::parallel::in_order;

use self::extend::{Alignment, Stretch, equal_bases, with_gaps, without_gaps};
use self::seeds::{Group, Place, SEED, Seed, Seeds, seeds};
use crate::hit::{CigarKind, CigarOp, Hit, Strand};

/// Bytes that a base of a sequence takes; bases that are looked for at once, at least and at most, and one for so many of the reference if that is more
/// than `SOME`.
const PER_BASE: u64 = 48;
const BATCH: Range<u64> = 1 << 20..16 << 20;
const SHARE: u64 = 16;
const SOME: u64 = 4 << 20;
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
/// Stretches laid last among which a seed's is looked for, before it is laid.
const RECENT: usize = 16;
/// Fewest points of a hit.
const LEAST: i32 = 25;
/// Points behind the best of a part from which gaps cannot help, and hits of a part that are tried with gaps.
const HOPELESS: i32 = 40;
const TRIED: usize = 8;
/// Points by which a hit has to be better than all others to be as sure as can be, and the quality of that.
const SURE: i32 = 20;
const SUREST: i32 = 60;
/// What mates cost that do not lie as mates do, and how far apart those lie that do (bp) if too few say how far.
const UNPAIRED: i32 = 17;
const APART: usize = 1_000;
const FEWEST: usize = 20;

/// Where sequences lie.
#[derive(Debug, Default)]
pub struct Found {
    /// Of each sequence, the best first.
    pub hits: Vec<Vec<Hit>>,
    /// Sequences with a part that stands in so many places that these were not looked at.
    pub crowded: u64,
    /// Sequences with a part of which more places were found than are kept.
    pub unkept: u64,
}

/// Where mates lie.
#[derive(Debug, Default)]
pub struct FoundPairs {
    /// Of each pair, as [`Found::hits`]; the first of each is the one that is believed.
    pub hits: Vec<[Vec<Hit>; 2]>,
    /// As [`Found::crowded`], of the mates.
    pub crowded: u64,
    /// As [`Found::unkept`], of the mates.
    pub unkept: u64,
}

/// All that shares 22 bases and has [`LEAST`] points (1 for equal bases, −4 for different ones, −6−1 for a gap of up to 35), but of the bases that
/// stand in very many places. The first hit of a sequence is primary, others of the same bases are secondary.
/// What is found does not depend on `threads`, nor on `memory`: the bytes that it may take, 48 MB at least.
///
/// # Panics
/// A sequence of 1 Gbp or more.
pub fn find(genome: &Reference, sequences: &[&[u8]], threads: usize, memory: u64) -> Found {
    let mut found = Found::default();
    let all: u64 = genome.contigs.iter().map(|contig| contig.seq.len() as u64).sum();
    let batch = (memory / PER_BASE).min(SOME.max(all / SHARE)).clamp(BATCH.start, BATCH.end) as usize;
    let mut first = 0;
    while first < sequences.len() {
        let mut bases = 0;
        let fits = |sequence: &&&[u8]| {
            bases += sequence.len() + 1;
            bases <= batch
        };
        let n = sequences[first..].iter().take_while(fits).count().max(1);
        let some = Batch::new(&sequences[first..first + n]).find(genome, threads);
        found.hits.extend(some.hits);
        found.crowded += some.crowded;
        found.unkept += some.unkept;
        first += n;
    }
    found
}

/// The same for mates: of places that are about as good those are believed that lie as mates do.
pub fn find_pairs(genome: &Reference, pairs: &[[&[u8]; 2]], threads: usize, memory: u64) -> FoundPairs {
    let Found { hits, crowded, unkept } = find(genome, pairs.as_flattened(), threads, memory);
    let mut hits: Vec<[Vec<Hit>; 2]> = {
        let mut hits = hits.into_iter();
        std::iter::from_fn(|| hits.next().zip(hits.next()).map(|(one, two)| [one, two])).collect()
    };
    let apart = farthest(&hits);
    for mates in &mut hits {
        choose(mates, apart);
    }
    FoundPairs { hits, crowded, unkept }
}

/// Some sequences, all of their bases one after the other.
struct Batch {
    bases: Vec<u8>,
    /// The reverse complement of each in its place.
    turned: Vec<u8>,
    /// Where each begins, with a base of none between two; and where the next would.
    starts: Vec<usize>,
    /// Of which sequence each base is.
    owners: Vec<u32>,
}

/// A stretch of a sequence on a sequence of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Laid {
    sequence: u32,
    chrom: u32,
    reverse: bool,
    /// Where base 0 of the sequence, turned if it is reversed, would lie.
    left: i64,
    stretch: Stretch,
}

/// What a thread finds in a chunk.
struct Here {
    group: Group,
    /// Of each sequence, and from how many on it is thinned.
    found: Vec<(Vec<Laid>, usize)>,
    /// Sequences that have some.
    touched: Vec<u32>,
}

impl Laid {
    /// The best first, then in order of place.
    fn order(&self) -> impl Ord + use<> {
        let Laid { chrom, reverse, left, stretch, .. } = *self;
        (-stretch.score, chrom, left, reverse, stretch.from, stretch.to)
    }

    /// Where a base of its lies.
    fn on(&self, q: usize) -> usize {
        (self.left + q as i64) as usize
    }

    /// Whether both lie on one diagonal.
    fn has_diagonal_of(&self, other: &Laid) -> bool {
        (self.chrom, self.reverse, self.left) == (other.chrom, other.reverse, other.left)
    }

    /// Its bases as the sequence was given.
    fn query(&self, length: usize) -> Range<usize> {
        let Stretch { from, to, .. } = self.stretch;
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
    let mut kept: Vec<(usize, Range<usize>)> = Vec::new();
    let (mut drop, mut thinned) = (vec![false; laid.len()], false);
    for i in order {
        let own = laid[i].query(length);
        if kept
            .iter()
            .any(|(other, bases)| laid[i].has_diagonal_of(&laid[*other]) && shared(&own, bases) == own.len())
        {
            drop[i] = true;
            continue;
        }
        let better = kept.iter().filter(|(_, other)| shared(&own, other) * 5 >= own.len() * 4).count();
        drop[i] = better >= KEPT;
        thinned |= drop[i];
        if !drop[i] {
            kept.push((i, own));
        }
    }
    let mut dropped = drop.into_iter();
    laid.retain(|_| !dropped.next().unwrap_or(false));
    thinned
}

/// Pieces of the reference, each with bases enough for what begins in it.
fn chunks(genome: &Reference) -> Vec<(usize, Range<usize>)> {
    let of = |(chrom, contig): (usize, &genuma_reads::fasta::Contig)| {
        let length = contig.seq.len();
        (0..length).step_by(CHUNK).map(move |from| (chrom, from..(from + CHUNK + SEED - 1).min(length)))
    };
    genome.contigs.iter().enumerate().flat_map(of).collect()
}

impl Batch {
    fn new(sequences: &[&[u8]]) -> Batch {
        let (mut bases, mut turned, mut starts, mut owners) = (Vec::new(), Vec::new(), vec![0], Vec::new());
        for (number, sequence) in (0..).zip(sequences) {
            bases.extend(sequence.iter().map(u8::to_ascii_uppercase));
            turned.extend(revcomp(sequence));
            bases.push(b'N');
            turned.push(b'N');
            starts.push(bases.len());
            owners.resize(bases.len(), number);
        }
        assert!(bases.len() < 1 << 30, "a sequence of 1 Gbp or more");
        Batch { bases, turned, starts, owners }
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

    fn find(&self, genome: &Reference, threads: usize) -> Found {
        let (seeds, crowded) = self.rare(genome, threads);
        let unkept: Vec<AtomicBool> = (0..self.len()).map(|_| AtomicBool::new(false)).collect();
        let laid = self.lay(genome, &seeds, &unkept, threads);
        drop(seeds);
        let hits = in_order(
            self.len(),
            threads,
            || (),
            |(), s| {
                let (hits, thinned) = self.hits(genome, s, laid[s].clone());
                unkept[s].fetch_or(thinned, Relaxed);
                hits
            },
        );
        let unkept = unkept.iter().filter(|unkept| unkept.load(Relaxed)).count() as u64;
        Found { hits, crowded, unkept }
    }

    /// The k-mers by which sequences are looked for, and of how many sequences some part has none.
    fn rare(&self, genome: &Reference, threads: usize) -> (Seeds, u64) {
        let mut places = Vec::new();
        seeds(&self.bases, |some| places.extend(some.iter().copied().map(Place::new)));
        let seeds = Seeds::new(places);
        let counts: Vec<AtomicU32> = (0..seeds.different()).map(|_| AtomicU32::new(0)).collect();
        let chunks = chunks(genome);
        let count = |group: &mut Group, i: usize| {
            let (chrom, range) = chunks[i].clone();
            seeds.look_up(group, &genome.contigs[chrom].seq[range], |number, _| {
                if counts[number].load(Relaxed) <= VERY_OFTEN {
                    counts[number].fetch_add(1, Relaxed);
                }
            });
        };
        in_order(chunks.len(), threads, Group::default, count);
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
        let mut rare = Vec::new();
        self::seeds::seeds(&self.bases, |some| {
            let chosen = some.iter().filter(|seed| chosen[seed.at as usize]);
            rare.extend(chosen.copied().map(Place::new));
        });
        (Seeds::new(rare), crowded)
    }

    /// The stretches that have these k-mers; of which sequences some were not kept is noted.
    fn lay(
        &self,
        genome: &Reference,
        seeds: &Seeds,
        unkept: &[AtomicBool],
        threads: usize,
    ) -> Vec<Vec<Laid>> {
        let chunks = chunks(genome);
        let lay = |Here { group, found, touched }: &mut Here, i: usize| {
            let (chrom, range) = chunks[i].clone();
            let reference = &genome.contigs[chrom].seq;
            seeds.look_up(group, &reference[range.clone()], |number, Seed { at, reverse, .. }| {
                for place in seeds.places(number) {
                    let sequence = self.owners[place.at()] as usize;
                    let own = self.range(sequence);
                    let turned = place.reverse() != reverse;
                    let first = place.at() - own.start;
                    let q = if turned { own.len() - SEED - first } else { first };
                    let t = range.start + at as usize;
                    let left = t as i64 - q as i64;
                    let (list, limit) = &mut found[sequence];
                    // Mostly: what is laid twice is dropped when they are thinned.
                    let known = list.iter().rev().take(RECENT).any(|laid| {
                        laid.left == left
                            && laid.reverse == turned
                            && (laid.stretch.from..laid.stretch.to).contains(&q)
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
            });
            let mut all = Vec::new();
            touched.drain(..).for_each(|sequence| all.append(&mut found[sequence as usize].0));
            all
        };
        let state = || Here {
            group: Group::default(),
            found: vec![(Vec::new(), MANY); self.len()],
            touched: Vec::new(),
        };
        // What is found is thinned every few chunks, and always after the same ones.
        let mut all: Vec<Vec<Laid>> = vec![Vec::new(); self.len()];
        for first in (0..chunks.len()).step_by(ROUND) {
            let round = (chunks.len() - first).min(ROUND);
            for laid in
                in_order(round, threads, state, |state, i| lay(state, first + i)).into_iter().flatten()
            {
                all[laid.sequence as usize].push(laid);
            }
            let many: Vec<usize> = (0..all.len()).filter(|&s| all[s].len() >= MANY).collect();
            let thinned = in_order(
                many.len(),
                threads,
                || (),
                |(), i| {
                    let mut some = all[many[i]].clone();
                    unkept[many[i]].fetch_or(thin(&mut some, self.range(many[i]).len()), Relaxed);
                    some
                },
            );
            many.into_iter().zip(thinned).for_each(|(s, some)| all[s] = some);
        }
        all
    }

    /// The hits of a sequence, from its stretches, and whether some of these were not kept.
    fn hits(&self, genome: &Reference, sequence: usize, mut laid: Vec<Laid>) -> (Vec<Hit>, bool) {
        let length = self.range(sequence).len();
        let thinned = thin(&mut laid, length);
        laid.sort_unstable_by_key(Laid::order);
        let mut hits: Vec<Hit> = Vec::with_capacity(laid.len());
        for (i, one) in laid.iter().enumerate() {
            let own = one.query(length);
            let (from, to) = (one.on(one.stretch.from), one.on(one.stretch.to));
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
        let Stretch { from, to, score } = laid.stretch;
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

/// How far mates are apart at most, by those that lie in one place each: their upper quartile and three times what is between the quartiles.
fn farthest(hits: &[[Vec<Hit>; 2]]) -> usize {
    let certain = |[one, two]: &[Vec<Hit>; 2]| match (&one[..], &two[..]) {
        ([one], [two]) => distance(one, two).filter(|&apart| apart <= 10 * APART),
        _ => None,
    };
    let mut apart: Vec<usize> = hits.iter().filter_map(certain).collect();
    if apart.len() < FEWEST {
        return APART;
    }
    apart.sort_unstable();
    let (lower, upper) = (apart[apart.len() / 4], apart[apart.len() * 3 / 4]);
    upper + 3 * (upper - lower).max(30)
}

/// Puts that hit of each mate first with which both are best.
fn choose(mates: &mut [Vec<Hit>; 2], farthest: usize) {
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
