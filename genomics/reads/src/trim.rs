//! Ends of reads that do not come from the sample's DNA: adapters behind short fragments, tails the sequencer itself
//! calls worthless, and the G that two-colour sequencers write where there is no light.
//!
//! A fragment shorter than its reads shows in the mates alone: each begins with the reverse complement of where the
//! other's fragment ends. That tells the fragment's length to the base, whatever the adapter; known adapters are looked
//! for besides, for mates too poor to compare. Nothing is ever cut in the middle or at the start of a read.

use genuma_machine::processor::widest;
use serde::{Deserialize, Serialize};

use crate::batch::{Mate, Pair};
use crate::dna;
use crate::packed::{Codes, Packed, WORD, reversed};

/// Bases of a seed by which the mates' overlap is found.
const SEED: usize = 16;
/// Longest piece behind a fragment that is cut without looking like an adapter.
const SHORT: usize = 8;
/// Bases by which a known adapter is recognised, and bases it is then held against.
const MARK: usize = 12;
const PROOF: usize = 20;
/// Fewest G that make a dark tail: in a genome a run of so many is rare, and rarer at the very end of a read.
const DARK: usize = 12;
/// Quality letters up to this one (Phred 2) say that a base is worth nothing: Illumina's mark of a failed tail.
const WORTHLESS: u8 = b'#';

/// First bases of the adapters in use: Illumina TruSeq (both mates), Nextera (both mates), MGI read 1 and read 2, and Illumina's for
/// small RNA.
const ADAPTERS: [&[u8; PROOF]; 6] = [
    b"AGATCGGAAGAGCACACGTC",
    b"AGATCGGAAGAGCGTCGTGT",
    b"CTGTCTCTTATACACATCTC",
    b"AAGTCGGAGGCCAAGCGGTC",
    b"AAGTCGGATCGTAGCCATGT",
    b"TGGAATTCTCGGGTGCCAAG",
];

/// What was cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trimmed {
    /// Pairs looked at.
    pub pairs: u64,
    /// Pairs whose fragment is shorter than a read.
    pub adapters: u64,
    /// Bases behind such fragments.
    pub adapter_bases: u64,
    /// Bases of worthless tails.
    pub tail_bases: u64,
    /// Bases of dark tails.
    pub dark_bases: u64,
    /// Mates that end in the reverse complement of what they began with, as those of a molecule that folded back on itself do.
    /// They are left as they are.
    pub folded: u64,
}

impl Trimmed {
    /// Adds what another has cut.
    pub fn add(&mut self, other: &Trimmed) {
        self.pairs += other.pairs;
        self.adapters += other.adapters;
        self.adapter_bases += other.adapter_bases;
        self.tail_bases += other.tail_bases;
        self.dark_bases += other.dark_bases;
        self.folded += other.folded;
    }

    /// Share of the mates that fold back on themselves.
    pub fn folding(&self) -> f64 {
        self.folded as f64 / (2 * self.pairs).max(1) as f64
    }

    /// All bases cut.
    pub fn bases(&self) -> u64 {
        self.adapter_bases + self.tail_bases + self.dark_bases
    }
}

/// Cuts the ends of pairs and counts what it cut; keeps its memory between pairs.
#[derive(Debug, Default)]
pub struct Trimmer {
    counts: Trimmed,
    reads: [Codes; 2],
}

fn shortened(mate: Mate<'_>, len: usize) -> Mate<'_> {
    Mate { seq: &mate.seq[..len], qual: &mate.qual[..len] }
}

/// Bases before the worthless tail.
fn before_tail(mate: Mate<'_>) -> usize {
    mate.qual.iter().rposition(|&q| q > WORTHLESS).map_or(0, |last| last + 1)
}

/// Bases before a dark tail: a run of G at the end in which one in eight may differ.
fn before_dark(seq: &[u8]) -> usize {
    // Where the balance of G and others is best; below nothing the run is over.
    let (mut balance, mut best, mut start) = (0i32, 0, seq.len());
    for (at, &base) in seq.iter().enumerate().rev() {
        balance += if base & !0x20 == b'G' { 1 } else { -7 };
        if balance < 0 {
            break;
        }
        if balance > best {
            (best, start) = (balance, at);
        }
    }
    if seq.len() - start >= DARK { start } else { seq.len() }
}

/// The first [`MARK`] bases of each adapter.
const MARKS: [u32; ADAPTERS.len()] = {
    let mut marks = [0; ADAPTERS.len()];
    let mut i = 0;
    while i < ADAPTERS.len() {
        let mut at = 0;
        while at < MARK {
            let code = match ADAPTERS[i][at] {
                b'A' => 0,
                b'C' => 1,
                b'G' => 2,
                _ => 3,
            };
            marks[i] = marks[i] << 2 | code;
            at += 1;
        }
        i += 1;
    }
    marks
};

/// Whether two sequences agree, side by side, but for one base in six.
fn alike<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> bool {
    let (mut all, mut differing) = (0, 0);
    for (a, b) in a.zip(b) {
        all += 1;
        differing += usize::from(a != b);
    }
    differing * 6 <= all
}

/// The [`SEED`] bases from base `at` on.
#[inline(always)]
fn seed(read: Packed<'_>, at: usize) -> u32 {
    (read.word(at) >> (2 * (WORD - SEED))) as u32
}

/// Bases that are looked for in a mate.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Reverse complements of the first two seeds of the other mate.
    seeds: Option<[u32; 2]>,
    /// The reverse complement of its own last seed.
    fold: Option<u32>,
}

/// What may be in a mate: where it is not seen it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    seeds: bool,
    fold: bool,
    adapter: bool,
}

impl Wanted {
    fn of(mate: &Codes, other: &Codes) -> Wanted {
        let bases = mate.codes().len();
        let holds_two = |mate: &Codes| mate.codes().len() >= 2 * SEED;
        Wanted {
            seeds: holds_two(other).then(|| [0, SEED].map(|at| reversed(seed(other.packed(), at)))),
            fold: holds_two(mate).then(|| reversed(seed(mate.packed(), bases - SEED))),
        }
    }

    /// Looks at all bases of a mate; what hangs over its end may be seen too.
    fn look(&self, mate: &Codes) -> Seen {
        let mut seen = Seen { seeds: false, fold: false, adapter: false };
        widest(
            #[inline(always)]
            || seen = self.look_scalar(mate),
        );
        seen
    }

    /// [`Wanted::look`], whatever the processor.
    #[inline(always)]
    fn look_scalar(&self, mate: &Codes) -> Seen {
        let (read, bases) = (mate.packed(), mate.codes().len());
        let [first, second] = self.seeds.unwrap_or_default();
        let fold = self.fold.unwrap_or_default();
        // What is nothing somewhere is there. The smallest of each lane needs no branch.
        let [mut seeds, mut folds, mut marks] = [[u32::MAX; WORD]; 3];
        for at in (0..bases).step_by(WORD) {
            let words = read.sixteens(at);
            for i in 0..WORD {
                seeds[i] = seeds[i].min(words[i] ^ first).min(words[i] ^ second);
                folds[i] = folds[i].min(words[i] ^ fold);
                let mark = words[i] >> (2 * (SEED - MARK));
                for wanted in MARKS {
                    marks[i] = marks[i].min(mark ^ wanted);
                }
            }
        }
        let any = |lanes: [u32; WORD]| lanes.into_iter().fold(u32::MAX, u32::min) == 0;
        Seen {
            seeds: self.seeds.is_some() && any(seeds),
            fold: self.fold.is_some() && any(folds),
            adapter: any(marks),
        }
    }
}

impl Trimmer {
    /// What was cut so far.
    pub fn counts(&self) -> Trimmed {
        self.counts
    }

    /// The pair without what does not come from its fragment. A mate can come back empty.
    pub fn trim<'a>(&mut self, pair: Pair<'a>) -> Pair<'a> {
        let counts = &mut self.counts;
        counts.pairs += 1;
        let mut mates = pair.mates;
        for mate in &mut mates {
            let kept = before_tail(*mate);
            counts.tail_bases += (mate.seq.len() - kept) as u64;
            *mate = shortened(*mate, kept);
        }
        for (mate, read) in mates.iter().zip(&mut self.reads) {
            read.load(mate.seq, mate.qual, 0);
        }
        let [one, two] = &self.reads;
        let wanted = [Wanted::of(one, two), Wanted::of(two, one)];
        let seen = [wanted[0].look(one), wanted[1].look(two)];
        // Few pairs go on from here: what is not seen is not looked for.
        let seeds = |i: usize| wanted[i].seeds.filter(|_| seen[i].seeds);
        let by_mates = || {
            let in_two = seeds(1).and_then(|seeds| by_seeds(seeds, one, two));
            in_two.or_else(|| seeds(0).and_then(|seeds| by_seeds(seeds, two, one)))
        };
        let by_adapter = || {
            let mates = [one, two].into_iter().zip(&seen).filter(|(_, seen)| seen.adapter);
            mates.filter_map(|(mate, _)| adapter(mate)).min()
        };
        for (i, read) in self.reads.iter().enumerate() {
            let fold = wanted[i].fold.filter(|_| seen[i].fold);
            counts.folded += u64::from(fold.is_some_and(|seed| folds(seed, read)));
        }
        if let Some(fragment) = by_mates().or_else(by_adapter) {
            counts.adapters += 1;
            for mate in &mut mates {
                let kept = mate.seq.len().min(fragment);
                counts.adapter_bases += (mate.seq.len() - kept) as u64;
                *mate = shortened(*mate, kept);
            }
        }
        for mate in &mut mates {
            let kept = before_dark(mate.seq);
            counts.dark_bases += (mate.seq.len() - kept) as u64;
            *mate = shortened(*mate, kept);
        }
        Pair { mates, ..pair }
    }

    /// The bases of the last pair, and what was cut behind them.
    pub fn packed(&self) -> [Packed<'_>; 2] {
        self.reads.each_ref().map(Codes::packed)
    }
}

/// Length of a fragment that ends inside a mate, by the overlap of both: looks in `read` for the reverse complements of two seeds
/// at the start of its `mate`.
fn by_seeds(seeds: [u32; 2], mate: &Codes, read: &Codes) -> Option<usize> {
    let starts = 0..(read.codes().len() + 1).saturating_sub(SEED);
    starts.into_iter().find_map(|at| {
        let here = seed(read.packed(), at);
        let mut fragments = (1..).zip(seeds).filter(|(_, seed)| here == *seed).map(|(i, _)| at + i * SEED);
        fragments.find(|&fragment| is_fragment(mate.codes(), read.codes(), fragment))
    })
}

/// Whether the mates are two views of one fragment of that length, with adapters behind it.
fn is_fragment(one: &[u8], two: &[u8], fragment: usize) -> bool {
    if fragment >= one.len().max(two.len()) {
        return false;
    }
    // Base i of one faces base fragment - 1 - i of two.
    let first = fragment.saturating_sub(two.len());
    let opposite: Vec<u8> = two[..fragment.min(two.len())].iter().rev().map(|c| c ^ 3).collect();
    if !alike(one[first..fragment.min(one.len())].iter(), opposite.iter()) {
        return false;
    }
    // A tandem copy as far apart as the fragment is long looks the same, but there both mates go on as the genome does.
    let behind = [one, two].map(|mate| mate.get(fragment..).unwrap_or_default());
    let [short, long] = if behind[0].len() < behind[1].len() { behind } else { [behind[1], behind[0]] };
    long.len() <= SHORT
        || is_adapter(long)
        || (short.len() > SHORT && alike(short.iter().take(MARK), long.iter()))
}

/// Longest unit of a tandem repeat, which may read alike on both strands.
const UNIT: usize = 6;

/// Whether the end of a read, its reverse complement given, is that of an earlier part of it.
fn folds(end: u32, read: &Codes) -> bool {
    let codes = read.codes();
    let Some(last) = codes.len().checked_sub(SEED).filter(|&last| last >= SEED) else { return false };
    let Some(at) = (0..=last - SEED).find(|&at| seed(read.packed(), at) == end) else { return false };
    // From the seed on both arms go inwards, to where the strand turns.
    let arm = (last - at) / 2;
    let backwards: Vec<u8> = codes[codes.len() - arm..].iter().rev().map(|c| c ^ 3).collect();
    let end = &codes[last..];
    let repeats = (1..=UNIT).any(|unit| end[unit..].iter().zip(end).filter(|(a, b)| a != b).count() <= 2);
    !repeats && alike(codes[at..at + arm].iter().take(2 * SEED), backwards.iter())
}

/// Whether codes go on as a known adapter does.
fn is_adapter(codes: &[u8]) -> bool {
    ADAPTERS.iter().any(|adapter| {
        codes.iter().zip(*adapter).filter(|(c, a)| **c != dna::code(**a)).count() * 6
            <= codes.len().min(PROOF)
    })
}

/// Where a known adapter begins in a mate.
fn adapter(mate: &Codes) -> Option<usize> {
    let marked = |at: &usize| MARKS.contains(&(seed(mate.packed(), *at) >> (2 * (SEED - MARK))));
    let mut starts = (0..(mate.codes().len() + 1).saturating_sub(MARK)).filter(marked);
    starts.find(|&at| is_adapter(&mate.codes()[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_mate_is_seen_by_all_processors() {
        let mut seed = 3u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut found = [0; 3];
        for round in 0..6_000 {
            let mut mates = [0, 1].map(|_| {
                let len = below(200) as usize;
                (0..len)
                    .map(|_| b"ACGTN"[below(if round % 7 == 0 { 5 } else { 4 }) as usize])
                    .collect::<Vec<u8>>()
            });
            // An adapter, a piece of the other mate and one of its own, somewhere.
            let inserted = match round % 4 {
                0 => ADAPTERS[below(6) as usize][..MARK].to_vec(),
                1 => dna::revcomp(&mates[1][..mates[1].len().min(SEED)]),
                2 => dna::revcomp(&mates[0][mates[0].len().saturating_sub(SEED)..]),
                _ => Vec::new(),
            };
            let at = below(mates[0].len() as u64 + 1) as usize;
            mates[0].splice(at..at, inserted);
            let [one, two] = mates.each_ref().map(|seq| {
                let mut codes = Codes::default();
                codes.load(seq, seq, 0);
                codes
            });
            let wanted = Wanted::of(&one, &two);
            let seen = wanted.look(&one);
            assert_eq!(seen, wanted.look_scalar(&one));
            // By letters, where what is no base counts as A.
            let letters =
                |seq: &[u8]| seq.iter().map(|&b| if b == b'N' { b'A' } else { b }).collect::<Vec<u8>>();
            let [one, two] = mates.each_ref().map(|seq| letters(seq));
            let holds = |piece: &[u8]| one.windows(piece.len()).any(|window| window == piece);
            let seeds = two.len() >= 2 * SEED
                && [0, SEED].iter().any(|&at| holds(&dna::revcomp(&two[at..at + SEED])));
            let fold = one.len() >= 2 * SEED && holds(&dna::revcomp(&one[one.len() - SEED..]));
            let adapter = ADAPTERS.iter().any(|adapter| holds(&adapter[..MARK]));
            for (n, (seen, is)) in
                found.iter_mut().zip([(seen.seeds, seeds), (seen.fold, fold), (seen.adapter, adapter)])
            {
                assert!(seen || !is, "{round}");
                assert!(!seen || is || round % 7 == 0, "{round}: seen where it is not");
                *n += usize::from(is);
            }
        }
        assert!(found.iter().all(|&n| n > 800), "{found:?}");
    }
}
