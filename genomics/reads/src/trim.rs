//! Ends of reads that do not come from the sample's DNA: adapters behind short fragments, tails the sequencer itself
//! calls worthless, and the G that two-colour sequencers write where there is no light.
//!
//! A fragment shorter than its reads shows in the mates alone: each begins with the reverse complement of where the
//! other's fragment ends. That tells the fragment's length to the base, whatever the adapter; known adapters are looked
//! for besides, for mates too poor to compare. Nothing is ever cut in the middle or at the start of a read.

use serde::{Deserialize, Serialize};

use crate::batch::{Mate, Pair};
use crate::dna;

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
    coded: [Coded; 2],
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

/// Bases of a mate as numbers, and what is looked for in them.
#[derive(Debug, Default)]
struct Coded {
    /// Two-bit codes; what is no base counts as one, as seeds are checked afterwards.
    codes: Vec<u8>,
    /// For each base the word of [`SEED`] bases from there on; past the end there is A.
    words: Vec<u32>,
    /// Words half as long, while they are made.
    halves: Vec<u32>,
}

impl Coded {
    /// Reads a sequence, in loops that compilers make vectors of.
    fn load(&mut self, seq: &[u8]) {
        let Coded { codes, words, halves } = self;
        codes.clear();
        codes.extend(seq.iter().map(|b| (b >> 1 ^ b >> 2) & 3));
        words.clear();
        words.extend(codes.iter().map(|&code| u32::from(code)));
        words.resize(seq.len() + SEED, 0);
        for bases in [1, 2, 4, 8] {
            std::mem::swap(words, halves);
            words.clear();
            words
                .extend(halves.iter().zip(&halves[bases..]).map(|(here, there)| here << (2 * bases) | there));
        }
    }

    /// Words of so many bases and more that the sequence holds whole; the rest of each is of no account.
    fn words(&self, bases: usize) -> &[u32] {
        &self.words[..(self.codes.len() + 1).saturating_sub(bases)]
    }
}

/// Where words are that `wanted` wants, in order.
fn find(words: &[u32], wanted: impl Fn(u32) -> bool + Copy) -> impl Iterator<Item = usize> {
    const BLOCK: usize = 16;
    (0..).step_by(BLOCK).zip(words.chunks(BLOCK)).flat_map(move |(start, words)| {
        let any = words.iter().fold(false, |any, &word| any | wanted(word));
        let words = if any { words } else { &[] };
        (start..).zip(words).filter(move |(_, word)| wanted(**word)).map(|(at, _)| at)
    })
}

/// The reverse complement of [`SEED`] bases.
fn reversed(word: u32) -> u32 {
    let x = !word;
    let x = ((x >> 2) & 0x3333_3333) | ((x & 0x3333_3333) << 2);
    let x = ((x >> 4) & 0x0f0f_0f0f) | ((x & 0x0f0f_0f0f) << 4);
    x.swap_bytes()
}

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
        for (mate, coded) in mates.iter().zip(&mut self.coded) {
            coded.load(mate.seq);
        }
        let [one, two] = &self.coded;
        let by_mates = fragment_by_mates(one, two);
        counts.folded += u64::from(folds(one)) + u64::from(folds(two));
        if let Some(fragment) = by_mates.or_else(|| fragment_by_adapter([one, two])) {
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
}

/// Length of a fragment that ends inside a mate, by the overlap of both.
fn fragment_by_mates(one: &Coded, two: &Coded) -> Option<usize> {
    by_seeds(one, two).or_else(|| by_seeds(two, one))
}

/// Looks in `read` for the reverse complements of two seeds at the start of its `mate`.
fn by_seeds(mate: &Coded, read: &Coded) -> Option<usize> {
    let [Some(&first), Some(&second)] = [0, SEED].map(|at| mate.words(SEED).get(at)) else { return None };
    let seeds = [first, second].map(reversed);
    find(read.words(SEED), |word| word == seeds[0] || word == seeds[1]).find_map(|at| {
        let mut fragments =
            (1..).zip(seeds).filter(|(_, seed)| read.words[at] == *seed).map(|(i, _)| at + i * SEED);
        fragments.find(|&fragment| is_fragment(&mate.codes, &read.codes, fragment))
    })
}

/// Whether the mates are two views of one fragment of that length, with adapters behind it.
fn is_fragment(one: &[u8], two: &[u8], fragment: usize) -> bool {
    if fragment >= one.len().max(two.len()) {
        return false;
    }
    // Base i of one faces base fragment - 1 - i of two.
    let first = fragment.saturating_sub(two.len());
    let opposite: Vec<u8> = two[..fragment.min(two.len())].iter().rev().map(|c| 3 - c).collect();
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

/// Whether the end of a read is the reverse complement of an earlier part of it.
fn folds(read: &Coded) -> bool {
    let Coded { codes, words, .. } = read;
    let Some(last) = codes.len().checked_sub(SEED).filter(|&last| last >= SEED) else { return false };
    let seed = reversed(words[last]);
    let Some(at) = find(&words[..=last - SEED], |word| word == seed).next() else { return false };
    // From the seed on both arms go inwards, to where the strand turns.
    let arm = (last - at) / 2;
    let backwards: Vec<u8> = codes[codes.len() - arm..].iter().rev().map(|c| 3 - c).collect();
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

/// Where a known adapter begins in either mate.
fn fragment_by_adapter(mates: [&Coded; 2]) -> Option<usize> {
    let marked =
        |word: u32| MARKS.iter().fold(false, |any, &mark| any | (word >> (2 * (SEED - MARK)) == mark));
    let begins = |mate: &Coded| find(mate.words(MARK), marked).find(|&at| is_adapter(&mate.codes[at..]));
    mates.into_iter().filter_map(begins).min()
}
