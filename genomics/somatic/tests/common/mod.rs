//! Small genomes, haplotypes and reads with known truth, shared by the tests of this crate.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::{BTreeMap, HashSet};

use genuma_kmers::encode::kmers;
use genuma_reads::dna::reverse_complement;
use genuma_reads::{Mate, ReadPair};
use genuma_somatic::assemble::Contig;
use genuma_somatic::kmer_lookup::KmerHit;
use genuma_somatic::labelled_pair::LabelledPair;
use genuma_somatic::packed::{OwnedRead, PackedRead};

pub mod planted_reads;

pub const K: u32 = 31;
/// Length of a simulated read.
pub const READ: usize = 150;

/// A small random number generator (splitmix64) with the same sequence on every machine.
pub struct Rng(pub u64);

impl Rng {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number in `range`.
    pub fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        range.start + (self.word() % (range.len() as u64)) as usize
    }

    pub fn chance(&mut self, p: f64) -> bool {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64 <= p && p > 0.0
    }

    pub fn base(&mut self) -> u8 {
        b"ACGT"[self.within(0..4)]
    }

    /// A base that is not `other`.
    pub fn another(&mut self, other: u8) -> u8 {
        loop {
            let base = self.base();
            if base != other {
                return base;
            }
        }
    }

    pub fn sequence(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.base()).collect()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.within(0..i + 1);
            items.swap(i, j);
        }
    }
}

/// Another base.
pub fn other(base: u8) -> u8 {
    if base == b'A' { b'C' } else { b'A' }
}

/// `seq` with `seq[at..at + removed]` replaced by `added`.
pub fn replaced(seq: &[u8], at: usize, removed: usize, added: &[u8]) -> Vec<u8> {
    [&seq[..at], added, &seq[at + removed..]].concat()
}

/// Position of `part` in `whole`, if `whole` contains it.
pub fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    whole.windows(part.len()).position(|w| w == part)
}

/// A pair of reads of a haplotype; with `mirrored` the second mate comes first.
pub fn pair(name: &str, sample: u8, mates: [Vec<u8>; 2]) -> LabelledPair {
    let mates = mates.map(|seq| PackedRead::new(&seq, &vec![37; seq.len()]));
    LabelledPair { name: name.as_bytes().into(), sample, mates, hits: [Vec::new(), Vec::new()] }
}

/// A change of a read.
pub fn edit(packed: &mut PackedRead, change: impl FnOnce(&mut OwnedRead)) {
    let mut read = packed.unpack();
    change(&mut read);
    *packed = PackedRead::from(&read);
}

/// Simulates read pairs of one haplotype.
pub struct Sequencer {
    pub rng: Rng,
    pub sample: u8,
    /// Mean depth of the pairs over the haplotype.
    pub depth: usize,
    /// Probability of a wrong base.
    pub error: f64,
}

impl Sequencer {
    /// Random pairs with fragment lengths of 300 to 450 bp, half of them from either strand.
    pub fn pairs(&mut self, haplotype: &[u8]) -> Vec<LabelledPair> {
        let n = haplotype.len() * self.depth / (2 * READ);
        (0..n)
            .map(|i| {
                let insert = self.rng.within(300..451);
                let from = self.rng.within(0..haplotype.len() - insert + 1);
                let fragment = &haplotype[from..from + insert];
                let mut mates = [fragment[..READ].to_vec(), reverse_complement(&fragment[insert - READ..])];
                if self.rng.chance(0.5) {
                    mates.reverse();
                }
                let mut made = pair(&format!("s{}h{}n{i}", self.sample, haplotype.len()), self.sample, mates);
                self.misread(&mut made);
                made
            })
            .collect()
    }

    fn misread(&mut self, pair: &mut LabelledPair) {
        for mate in &mut pair.mates {
            edit(mate, |read| {
                for (base, quality) in read.seq.iter_mut().zip(&mut read.qual) {
                    if self.rng.chance(self.error) {
                        *base = self.rng.another(*base);
                        *quality = if self.rng.chance(0.8) { 11 } else { 37 };
                    }
                }
            });
        }
    }
}

/// Canonical k-mers of several sequences.
pub fn canonical(seqs: &[&[u8]]) -> HashSet<u64> {
    seqs.iter().flat_map(|s| kmers(s, K)).map(|(_, kmer)| kmer.canonical()).collect()
}

/// Candidate k-mers by k-mer rank: k-mers of the tumour's haplotypes that the normal's haplotypes lack, and which of
/// them are branching (the normal has their root).
pub struct Interesting {
    pub ranks: BTreeMap<u64, u32>,
    pub parting: Vec<bool>,
}

impl Interesting {
    pub fn new(tumour: &[&[u8]], normal: &[&[u8]]) -> Interesting {
        let known = canonical(normal);
        let picked: Vec<(u64, &[u8])> = tumour
            .iter()
            .flat_map(|s| kmers(s, K).map(|(at, kmer)| (kmer.canonical(), &s[at..at + K as usize])))
            .filter(|(kmer, _)| !known.contains(kmer))
            .collect();
        let stem = |kmer: &[u8]| kmer[1..K as usize - 1].to_vec();
        let stems: HashSet<Vec<u8>> = normal
            .iter()
            .flat_map(|s| [s.to_vec(), reverse_complement(s)])
            .flat_map(|s| s.windows(K as usize - 2).map(<[u8]>::to_vec).collect::<Vec<_>>())
            .collect();
        let texts: BTreeMap<u64, &[u8]> = picked.into_iter().collect();
        let parting = texts.values().map(|text| stems.contains(&stem(text))).collect();
        let ranks = texts.keys().enumerate().map(|(rank, &kmer)| (kmer, rank as u32)).collect();
        Interesting { ranks, parting }
    }

    /// Labels pairs; pairs without candidate k-mers are removed.
    pub fn label(&self, pairs: Vec<LabelledPair>) -> Vec<LabelledPair> {
        let hits = |seq: &[u8]| -> Vec<KmerHit> {
            kmers(seq, K)
                .filter_map(|(at, kmer)| {
                    let rank = *self.ranks.get(&kmer.canonical())?;
                    Some(KmerHit { start: at as u32, span: K, rank, forward: kmer.canonical() == kmer.forward })
                })
                .collect()
        };
        pairs
            .into_iter()
            .filter_map(|mut p| {
                p.hits = p.mates.each_ref().map(|mate| hits(&mate.unpack().seq));
                p.hits.iter().any(|h| !h.is_empty()).then_some(p)
            })
            .collect()
    }
}

/// For each base whether a k-mer that is not in `known` covers it.
pub fn novel(seq: &[u8], known: &HashSet<u64>) -> Vec<bool> {
    let mut novel = vec![false; seq.len()];
    for (at, kmer) in kmers(seq, K) {
        if !known.contains(&kmer.canonical()) {
            novel[at..at + K as usize].fill(true);
        }
    }
    novel
}

/// A contig as the assembly returns it, with high quality sums everywhere.
pub fn contig(seq: Vec<u8>, known: &HashSet<u64>) -> Contig {
    Contig {
        novel: novel(&seq, known),
        quality_sums: vec![400; seq.len()],
        seq,
        reads: Vec::new(),
        outer_mates: Default::default(),
    }
}

/// A pair as it is in a batch: the same bases, with qualities in ASCII.
pub fn lend<T>(labelled: &LabelledPair, with: impl FnOnce(ReadPair<'_>) -> T) -> T {
    let seqs = labelled.mates.each_ref().map(|mate| mate.unpack().seq);
    let quals = labelled.mates.each_ref().map(|mate| mate.qualities().map(|q| q + 33).collect::<Vec<u8>>());
    let mate = |m: usize| Mate { seq: &seqs[m], qual: &quals[m] };
    with(ReadPair { name: &labelled.name, mates: [mate(0), mate(1)] })
}
