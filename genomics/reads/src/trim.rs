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
    codes: [Vec<u8>; 2],
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

/// Two-bit codes of a sequence; what is no base counts as A, as seeds are checked afterwards.
fn code(seq: &[u8], codes: &mut Vec<u8>) {
    codes.clear();
    codes.extend(seq.iter().map(|&b| dna::code(b) & 3));
}

fn word(codes: &[u8]) -> u32 {
    codes.iter().fold(0, |word, &code| word << 2 | u32::from(code))
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
        for (mate, codes) in mates.iter().zip(&mut self.codes) {
            code(mate.seq, codes);
        }
        let [one, two] = &self.codes;
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
fn fragment_by_mates(one: &[u8], two: &[u8]) -> Option<usize> {
    by_seeds(one, two).or_else(|| by_seeds(two, one))
}

/// Looks in `read` for the reverse complements of two seeds at the start of its `mate`.
fn by_seeds(mate: &[u8], read: &[u8]) -> Option<usize> {
    if mate.len() < 2 * SEED || read.len() < SEED {
        return None;
    }
    let seeds = [0, SEED].map(|at| reversed(word(&mate[at..at + SEED])));
    let mut window = word(&read[..SEED - 1]);
    for (end, &code) in (SEED..).zip(&read[SEED - 1..]) {
        window = window << 2 | u32::from(code);
        for (i, seed) in seeds.iter().enumerate() {
            let fragment = end + i * SEED;
            if window == *seed && is_fragment(mate, read, fragment) {
                return Some(fragment);
            }
        }
    }
    None
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
fn folds(read: &[u8]) -> bool {
    let Some(last) = read.len().checked_sub(SEED).filter(|&last| last >= SEED) else { return false };
    let seed = reversed(word(&read[last..]));
    let mut window = word(&read[..SEED - 1]);
    for (at, &code) in read[SEED - 1..last].iter().enumerate() {
        window = window << 2 | u32::from(code);
        if window == seed {
            // From the seed on both arms go inwards, to where the strand turns.
            let arm = (last - at) / 2;
            let inwards = read[at..at + arm].iter();
            let backwards: Vec<u8> = read[read.len() - arm..].iter().rev().map(|c| 3 - c).collect();
            let end = &read[last..];
            let repeats =
                (1..=UNIT).any(|unit| end[unit..].iter().zip(end).filter(|(a, b)| a != b).count() <= 2);
            return !repeats && alike(inwards.take(2 * SEED), backwards.iter());
        }
    }
    false
}

/// Whether codes go on as a known adapter does.
fn is_adapter(codes: &[u8]) -> bool {
    ADAPTERS.iter().any(|adapter| {
        codes.iter().zip(*adapter).filter(|(c, a)| **c != dna::code(**a)).count() * 6
            <= codes.len().min(PROOF)
    })
}

/// Where a known adapter begins in either mate.
fn fragment_by_adapter(mates: [&[u8]; 2]) -> Option<usize> {
    const LOW: u32 = (1 << (2 * MARK)) - 1;
    let begins = |codes: &[u8]| {
        let mut window = 0;
        for (end, &code) in (1..).zip(codes) {
            window = (window << 2 | u32::from(code)) & LOW;
            if end >= MARK && MARKS.contains(&window) && is_adapter(&codes[end - MARK..]) {
                return Some(end - MARK);
            }
        }
        None
    };
    mates.iter().filter_map(|codes| begins(codes)).min()
}
