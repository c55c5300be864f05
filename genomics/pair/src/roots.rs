//! Joint counters of sampled roots → what they say of both samples.
//!
//! A root is the middle of k-mers; its sixteen counters say which base stands before it and which behind, in each sample. So each side of a root is a
//! site at which both samples show their alleles, without a reference: one place of the genome is seen from two roots.

use std::collections::BinaryHeap;

use genuma_kmers::RootCounters;
use genuma_kmers::encode::revcomp;
use genuma_reads::{NORMAL, TUMOUR};
use serde::{Deserialize, Serialize};

use crate::interval::log_factorials;
use crate::sampled::Sampled;
use crate::usual::usual;

/// Depths told apart, by their own number.
pub const DEPTHS: usize = 256;
/// Occurrences of a second allele told apart.
pub(crate) const MINORS: usize = 32;
/// Occurrences of a root in both samples together up to which pairs of reads are compared: deeper samples show their alleles.
pub const DRAWN: u32 = 48;
/// Fewest occurrences in each sample from which a site is looked at for its alleles.
pub const DEEP: u32 = 8;
/// One root in half as many, by its hash, is asked whether it is of one place.
const ASKED: u64 = 128;
/// Sites of a kind that are kept one by one: those of the smallest hashes.
pub const KEPT: usize = 100_000;
/// One read in so many may have another allele where a sample has one.
const OTHERS: u32 = 8;
/// Classes of GC: the bases of the root that are G or C.
pub const GC: usize = 33;

/// The base substitutions, both strands together: C>A, C>G, C>T, T>A, T>C, T>G.
pub const SUBSTITUTIONS: [&str; 6] = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"];

/// Pairs of reads at roots that so many reads have, and how many of them differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draws {
    /// Pairs within the normal, within the tumour, and between them.
    pub pairs: [u64; 3],
    /// Those that differ, but for those of roots of which there may be copies ([`has_copies`]).
    pub differ: [u64; 3],
}

impl Draws {
    /// Those at a root, and how often both samples have it. Pairs of a sample of which so many begin alike are not looked at: where they do not differ they
    /// were counted as one.
    pub fn at(root: &RootCounters, copies: [u32; 2]) -> (u32, Draws) {
        let (mut depth, mut same, mut between) = ([0u32; 2], [0u64; 2], 0u64);
        for counts in &root.counts {
            for s in 0..2 {
                depth[s] = depth[s].saturating_add(counts[s]);
                same[s] += two(counts[s]);
            }
            between += u64::from(counts[0]) * u64::from(counts[1]);
        }
        let all = [two(depth[0]), two(depth[1]), u64::from(depth[0]) * u64::from(depth[1])];
        let alike = [same[0], same[1], between];
        let copies = [copies[0], copies[1], 0].map(u64::from);
        let differ: [u64; 3] = std::array::from_fn(|i| (all[i] - alike[i]).saturating_sub(copies[i]));
        let pairs = std::array::from_fn(|i| alike[i] + differ[i]);
        (depth[0].saturating_add(depth[1]), Draws { pairs, differ })
    }

    /// Adds others.
    pub fn add(&mut self, other: &Draws) {
        self.pairs.iter_mut().zip(other.pairs).for_each(|(a, b)| *a += b);
        self.differ.iter_mut().zip(other.differ).for_each(|(a, b)| *a += b);
    }
}

/// Sites where the normal has some depth and the tumour is deep, by what both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Genotypes {
    /// Sites of which both samples' alleles can be told.
    pub sites: u64,
    /// The normal has two alleles.
    pub(crate) het_normal: u64,
    /// The tumour has two.
    pub(crate) het_tumour: u64,
    /// Both have the same two.
    pub(crate) het_both: u64,
    /// Each has one, another one.
    pub opposite: u64,
    /// Sum over sites where the normal has one allele of the share of the tumour's reads that have another one often, in units of 1/65536.
    pub foreign: u64,
}

impl Genotypes {
    /// Adds others.
    pub fn add(&mut self, other: &Genotypes) {
        self.sites += other.sites;
        self.het_normal += other.het_normal;
        self.het_tumour += other.het_tumour;
        self.het_both += other.het_both;
        self.opposite += other.opposite;
        self.foreign += other.foreign;
    }
}

/// A site that is kept for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// A hash of the root and the side: those of the smallest stay.
    hash: u64,
    /// The root, by which the site can be found in a genome.
    pub root: u64,
    /// Reads of the normal with the first allele and with the second.
    pub normal: [u32; 2],
    /// The same of the tumour.
    pub tumour: [u32; 2],
}

/// The sites of the smallest hashes.
#[derive(Debug, Clone, Default)]
struct Kept {
    sites: BinaryHeap<Site>,
    /// How many there were.
    all: u64,
}

impl Kept {
    fn put(&mut self, site: Site) {
        self.all += 1;
        if self.sites.len() < KEPT {
            self.sites.push(site);
        } else if self.sites.peek().is_some_and(|last| site < *last) {
            self.sites.pop();
            self.sites.push(site);
        }
    }

    /// In an order of their own.
    fn sorted(&self) -> Vec<Site> {
        let mut sites: Vec<Site> = self.sites.iter().copied().collect();
        sites.sort_unstable();
        sites
    }

    /// Share of them that are kept.
    fn share(&self) -> f64 {
        self.sites.len() as f64 / f64::max(self.all as f64, 1.0)
    }
}

/// What is seen at roots of some share of G and C which the other sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Roots.
    pub roots: u64,
    /// Occurrences.
    pub sum: u64,
}

/// What roots say. Tables of minors are `[6 × DEPTHS × MINORS]`: by substitution, by depth, by how often.
#[derive(Debug, Clone)]
pub struct RootTally {
    /// Share of all roots that were looked at.
    pub share: f64,
    /// How many they are.
    pub roots: u64,
    /// Occurrences, from and to, by which a root of each sample is taken for one of a single place.
    known: [(u32, u32); 2],
    /// By occurrences of the root in both samples together.
    pub draws: Vec<Draws>,
    /// By occurrences in the normal.
    pub(crate) genotypes: Vec<Genotypes>,
    /// By occurrences in the normal, whatever the tumour has: sites at which it has one allele, two, and where that is not clear.
    pub alleles: Vec<[u64; 3]>,
    /// Sites of each sample, by substitution, by its depth and by how often it has that second allele, where the other sample has one allele only and
    /// that is this one's most frequent. Each site is there three times, for each base that its own could be taken for.
    pub minor: [Vec<u64>; 2],
    /// The same where the other sample, at a root of a single place without a tandem repeat and without another root that differs in one base, has one read of that second allele.
    pub shared: [Vec<u64>; 2],
    /// Of each sample how many sites, of some, could be among these if the other sample had the allele, and of how many.
    pub alone: [[u64; 2]; 2],
    het: Kept,
    changed: Kept,
    /// By GC of the root and sample: where the other has the root as often as it usually has one.
    pub coverage: [Vec<Coverage>; 2],
    /// Occurrences at roots that the other sample usually has, by sample: how many roots have so many.
    pub depths: [Vec<u64>; 2],
}

impl Default for RootTally {
    fn default() -> RootTally {
        RootTally {
            share: 1.0,
            roots: 0,
            known: [(1, u32::MAX); 2],
            draws: vec![Draws::default(); DRAWN as usize],
            genotypes: vec![Genotypes::default(); DEPTHS],
            alleles: vec![[0; 3]; DEPTHS],
            minor: [(); 2].map(|()| vec![0; 6 * DEPTHS * MINORS]),
            shared: [(); 2].map(|()| vec![0; 6 * DEPTHS * MINORS]),
            alone: [[0; 2]; 2],
            het: Kept::default(),
            changed: Kept::default(),
            coverage: [(); 2].map(|()| vec![Coverage::default(); GC]),
            depths: [(); 2].map(|()| vec![0; DEPTHS]),
        }
    }
}

fn hash(stem: u64) -> u64 {
    let mixed = (stem ^ (stem >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// How often each sample has roots of single places, from and to: around where most of the occurrences are.
fn single(sampled: &Sampled) -> [(u32, u32); 2] {
    let mut depths = [(); 2].map(|()| vec![0; DEPTHS]);
    for root in sampled.roots() {
        let depth = root.counts.iter().fold([0u32; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
        for s in 0..2 {
            // Errors are in one sample alone.
            if depth[1 - s] > 0 {
                depths[s][(depth[s] as usize).min(DEPTHS - 1)] += 1;
            }
        }
    }
    depths.map(|own| {
        let usual = usual(&own);
        (((usual * 0.5).floor() as u32).max(1), ((usual * 1.6).ceil() as u32).max(2))
    })
}

/// Whether a root ends in a tandem repeat, of which copies come and go while it is read: 5 bases of one, 3 copies of two or three, of four almost so.
pub fn slips(stem: u64) -> bool {
    [(1, 5), (2, 6), (3, 9), (4, 11)].iter().any(|&(unit, bases)| {
        let differ = stem ^ (stem >> (2 * unit));
        differ & (u64::MAX >> (64 - 2 * (bases - unit))) == 0
    })
}

/// Whether a tandem repeat lies anywhere in a root: 7 bases and more that are those of one to six before. Molecules that have slipped there show other bases beside
/// it, the same ones in both samples.
pub(crate) fn has_tandem(stem: u64, bases: u32) -> bool {
    (1..=6).any(|unit| {
        let differ = stem ^ (stem >> (2 * unit));
        let alike = !(differ | differ >> 1) & 0x5555_5555_5555_5555 & (u64::MAX >> (64 - 2 * (bases - unit)));
        let two = alike & alike >> 2;
        let four = two & two >> 4;
        four & four >> 6 != 0
    })
}

/// Whether another root that differs in one base is there: then copies of the place, which have changed since, may lie elsewhere in the genome, and reads that
/// differ may be of two of them. Which sample they are of has no part in it. Roots have so many `bases`.
pub fn has_copies(root: u64, bases: u32, is_there: impl Fn(u64) -> bool) -> bool {
    (0..bases).any(|at| {
        (1..4).any(|other| {
            let changed = root ^ (other << (2 * at));
            is_there(changed.min(revcomp(changed, bases)))
        })
    })
}

fn two(n: u32) -> u64 {
    u64::from(n) * u64::from(n.saturating_sub(1)) / 2
}

/// The index of the substitution of one base by another (codes 0 to 3: A, C, G, T), both strands together.
pub fn substitution(from: usize, to: usize) -> usize {
    let (from, to) = if from == 0 || from == 2 { (3 - from, 3 - to) } else { (from, to) };
    match (from, to) {
        (1, 0) => 0,
        (1, 2) => 1,
        (1, _) => 2,
        (_, 0) => 3,
        (_, 1) => 4,
        _ => 5,
    }
}

impl RootTally {
    /// Of what was sampled.
    pub fn of(sampled: &Sampled) -> RootTally {
        let mut tally = RootTally { share: sampled.share(), known: single(sampled), ..RootTally::default() };
        let (bases, known) = (sampled.root_bases(), sampled.known());
        sampled.roots_and_copies().for_each(|(root, copies)| {
            tally.see(&root, copies, bases, |root| has_copies(root, bases, |other| known.has(other)))
        });
        tally
    }

    /// Looks at a root of two samples. One that is its own reverse complement has no sides: it may not come.
    fn see(&mut self, root: &RootCounters, copies: [u32; 2], bases: u32, has_copies: impl Fn(u64) -> bool) {
        let hash = hash(root.stem);
        let (mut before, mut behind) = ([[0u32; 2]; 4], [[0u32; 2]; 4]);
        for (slot, counts) in root.counts.iter().enumerate() {
            for s in 0..2 {
                before[slot >> 2][s] += counts[s];
                behind[slot & 3][s] += counts[s];
            }
        }
        let depth = before.iter().fold([0u32; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
        self.roots += 1;
        let (all, mut draws) = Draws::at(root, copies);
        if all < 2 {
            return;
        }
        if all < DRAWN {
            if draws.differ != [0; 3] && has_copies(root.stem) {
                draws.differ = [0; 3];
            }
            self.draws[all as usize].add(&draws);
        }
        let gc = (root.stem ^ (root.stem >> 1)) & 0x5555_5555_5555_5555;
        let gc = (gc.count_ones() as usize).min(GC - 1);
        for s in 0..2 {
            // Single places only: what the other sample hardly has may be its errors, or of a repeat.
            if depth[1 - s] >= self.known[1 - s].0 && depth[1 - s] <= self.known[1 - s].1 {
                let own = depth[s].min(DEPTHS as u32 - 1);
                let coverage = &mut self.coverage[s][gc];
                coverage.roots += 1;
                coverage.sum += u64::from(own);
                self.depths[s][own as usize] += 1;
            }
        }
        if depth[0] >= DEEP && depth[1] >= DEEP {
            // A wrong base may make it of one that differs in one base: the bases beside that one are the same in both samples.
            let is_alone = || !has_tandem(root.stem, bases) && !has_copies(root.stem);
            if !slips(revcomp(root.stem, bases)) {
                self.site(&before, depth, is_alone, root.stem, hash & !1);
            }
            if !slips(root.stem) {
                self.site(&behind, depth, is_alone, root.stem, hash | 1);
            }
        }
    }

    /// One side: how often each sample has each of the four bases; whether what both samples have there is of this place is asked where it matters.
    fn site(
        &mut self,
        bases: &[[u32; 2]; 4],
        depth: [u32; 2],
        is_alone: impl Fn() -> bool,
        root: u64,
        hash: u64,
    ) {
        let of = |sample: usize| bases.map(|c| c[sample]);
        let (normal, tumour) = (Alleles::of(of(0), depth[0]), Alleles::of(of(1), depth[1]));
        let at = &mut self.genotypes[(depth[0] as usize).min(DEPTHS - 1)];
        let (n, t) = (normal.zygosity(), tumour.zygosity());
        self.alleles[(depth[0] as usize).min(DEPTHS - 1)][n as usize] += 1;
        if n != Zygosity::Unclear && t != Zygosity::Unclear {
            at.sites += 1;
            at.het_normal += u64::from(n == Zygosity::Two);
            at.het_tumour += u64::from(t == Zygosity::Two);
            let same = normal.bases() == tumour.bases();
            at.het_both += u64::from(n == Zygosity::Two && t == Zygosity::Two && same);
            at.opposite +=
                u64::from(n == Zygosity::One && t == Zygosity::One && normal.first != tumour.first);
            if n == Zygosity::One {
                // What the tumour has beside the normal's allele, but for what may be errors or few cells.
                let other = (0..4).filter(|&b| b != normal.first).map(|b| bases[b][1]);
                let often: u32 = other.filter(|&c| c * OFTEN >= depth[1]).sum();
                at.foreign += u64::from(often) * 65_536 / u64::from(depth[1]);
            }
        }
        for (s, own, other) in [(NORMAL, &normal, &tumour), (TUMOUR, &tumour, &normal)] {
            let s = usize::from(s);
            let o = 1 - s;
            if own.first != other.first {
                continue;
            }
            let known = self.known[o];
            let single = || (known.0..=known.1).contains(&other.depth) && is_alone();
            if hash % ASKED < 2 {
                let [could, all] = &mut self.alone[s];
                (*could, *all) = (*could + u64::from(single()), *all + 1);
            }
            let depth = own.depth as usize;
            for b in (0..4).filter(|&b| b != own.first) {
                let beside = bases[b][o] as usize;
                let alone = other.counts[0] as usize + beside == other.depth as usize;
                let table = match beside {
                    _ if !alone => continue,
                    0 => &mut self.minor[s],
                    1 if single() => &mut self.shared[s],
                    _ => continue,
                };
                let count = bases[b][s] as usize;
                let (deep, minor) = match depth {
                    ..DEPTHS => (depth, count),
                    _ => (DEPTHS - 1, count * (DEPTHS - 1) / depth),
                };
                let row = substitution(own.first, b) * DEPTHS + deep;
                table[row * MINORS + minor.min(MINORS - 1)] += 1;
            }
        }
        if n == Zygosity::Two {
            let [a, b] = [normal.first, normal.second];
            let pair = |s: usize| [bases[a][s], bases[b][s]];
            self.het.put(Site { hash, root, normal: pair(0), tumour: pair(1) });
        } else {
            // An allele that the tumour has and the normal hardly.
            let new = (0..4).filter(|&b| b != normal.first).max_by_key(|&b| bases[b][1]).unwrap_or(0);
            let [own, other] = [bases[new][0], bases[new][1]];
            let clear = f64::from(other) >= beyond_errors(f64::from(depth[1])) && other >= CLEAR;
            if clear && own * 4 <= depth[0] && bases[normal.first][0] * 4 >= depth[0] * 3 {
                let first = |s: usize| [depth[s] - bases[new][s], bases[new][s]];
                self.changed.put(Site { hash, root, normal: first(0), tumour: first(1) });
            }
        }
    }

    /// Share of a sample's sites that are among [`Self::shared`] if the other sample has one read of the allele.
    pub(crate) fn could_share(&self, sample: usize) -> f64 {
        // Never none: few may have been asked.
        let [could, all] = self.alone[sample].map(|sites| sites as f64 + 1.0);
        could / all
    }

    /// Share of all sites at which the normal has two alleles, where `usual` molecules cover a place: of those that are not deeper, as copies which have changed
    /// lie on one root where it is; with what chance leaves unclear put back.
    pub(crate) fn heterozygosity(&self, usual: f64) -> f64 {
        let to = (usual * 1.15) as usize + 1;
        let own = self.alleles.iter().enumerate().take(to).skip((DEEP as usize).max((usual * 0.5) as usize));
        let (two, all) = own.fold((0.0, 0.0), |(two, all), (depth, counts)| {
            (two + counts[1] as f64 / seen_as_two(depth as u32), all + counts.iter().sum::<u64>() as f64)
        });
        two / f64::max(all, 1.0)
    }

    /// Share of a sample's sites at which it has two alleles and the other sample one of them.
    pub fn lost(&self) -> [f64; 2] {
        let sum = |of: fn(&Genotypes) -> u64| self.genotypes.iter().map(of).sum::<u64>() as f64;
        let (sites, both) = (sum(|g| g.sites).max(1.0), sum(|g| g.het_both));
        [(sum(|g| g.het_normal) - both) / sites, (sum(|g| g.het_tumour) - both) / sites]
    }

    /// Share of a sample's reads that have another base alone among its reads, where all others and the other sample have one: by substitution.
    pub fn wrong(&self, sample: usize) -> [f64; 6] {
        std::array::from_fn(|class| {
            let rows = self.minor[sample][class * DEPTHS * MINORS..][..DEPTHS * MINORS].chunks(MINORS);
            let sum = rows.enumerate().fold([0.0; 2], |sum, (depth, row)| {
                let all = row.iter().sum::<u64>() as f64;
                [sum[0] + row[1] as f64, sum[1] + all * depth as f64]
            });
            sum[0] / sum[1].max(1.0)
        })
    }

    /// Sites where the normal has two alleles, in an order of their own.
    pub fn het(&self) -> Vec<Site> {
        self.het.sorted()
    }

    /// Sites where the tumour has an allele, the second, that the normal lacks or has in few reads.
    pub fn changed(&self) -> Vec<Site> {
        self.changed.sorted()
    }

    /// Sites at which the normal has one allele and at which it has two, by its molecules there; as many as belong to [`Self::changed`], which may be a part of all.
    pub(crate) fn zygosities(&self) -> Vec<[f64; 2]> {
        let kept = self.changed.share();
        let each = self.alleles.iter().enumerate().map(|(depth, &[one, two, _])| {
            [one as f64 * kept, two as f64 * kept / seen_as_two(depth as u32).max(0.1)]
        });
        each.collect()
    }
}

/// Share of the tumour's reads, one in so many, from which another allele is no error and not of few cells.
const OFTEN: u32 = 5;
/// Fewest reads of an allele that only the tumour has.
const CLEAR: u32 = 4;

/// Fewest reads with an allele that errors do not explain among so many: the mean and four standard deviations, and one.
fn beyond_errors(depth: f64) -> f64 {
    let errors = depth * 0.0015;
    1.0 + errors + 4.0 * errors.sqrt()
}

/// How many alleles a sample has at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zygosity {
    One,
    Two,
    Unclear,
}

/// The two most frequent bases of a sample at a site.
struct Alleles {
    first: usize,
    second: usize,
    counts: [u32; 2],
    depth: u32,
}

/// Whether two alleles of a site are seen for sure, of so many molecules in all.
fn are_two([first, second]: [u32; 2], depth: u32) -> bool {
    second * 4 >= depth && second >= 3 && (first + second) * 8 >= depth * 7
}

/// How often two alleles that are half and half are seen as two.
fn seen_as_two(depth: u32) -> f64 {
    let logs = log_factorials(depth as usize);
    let chance = |k: u32| {
        let choose = logs[depth as usize] - logs[k as usize] - logs[(depth - k) as usize];
        (choose - f64::from(depth) * std::f64::consts::LN_2).exp()
    };
    (0..=depth).filter(|&k| are_two([k.max(depth - k), k.min(depth - k)], depth)).map(chance).sum()
}

impl Alleles {
    fn of(counts: [u32; 4], depth: u32) -> Alleles {
        let mut order = [0usize, 1, 2, 3];
        order.sort_by_key(|&b| std::cmp::Reverse(counts[b]));
        Alleles { first: order[0], second: order[1], counts: [counts[order[0]], counts[order[1]]], depth }
    }

    fn zygosity(&self) -> Zygosity {
        let [first, second] = self.counts;
        if second * OTHERS <= self.depth && first * OTHERS >= self.depth * (OTHERS - 1) {
            Zygosity::One
        } else if are_two(self.counts, self.depth) {
            Zygosity::Two
        } else {
            Zygosity::Unclear
        }
    }

    fn bases(&self) -> (usize, usize) {
        (self.first.min(self.second), self.first.max(self.second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_root_are_those_that_differ_in_one_base_on_either_strand() {
        let root = 0x1234_5678_9abc_u64;
        let there = |known: u64| move |root: u64| root == known;
        let changed = root ^ (2 << 20);
        assert!(has_copies(root, 29, there(changed.min(revcomp(changed, 29)))));
        let twice = changed ^ (1 << 6);
        assert!(!has_copies(root, 29, there(twice.min(revcomp(twice, 29)))));
        assert!(!has_copies(root, 29, there(root)));
    }

    #[test]
    fn tandem_repeats_are_found_wherever_they_lie() {
        let root = |text: &str| text.bytes().fold(0, |all, base| all << 2 | dna(base));
        fn dna(base: u8) -> u64 {
            b"ACGT".iter().position(|own| *own == base).expect("a base") as u64
        }
        for (text, tandem) in [
            ("ACGGTCATTGCAACTGATCCGTAGGCTAT", false),
            ("AAAAAAAATGCAACTGATCCGTAGGCTAT", true),
            ("ACGGTCATTGCAACTGATCCGTTTTTTTT", true),
            ("ACGGTCATTTTTTTGATCCGTAGGCTATG", false),
            ("ACGGTCAGAGAGAGAGACCGTAGGCTATG", true),
            ("ACTAACTAACTAACTAACTAACTAACTAC", true),
            ("TCACTGAAACTGAAACTGAAGTCCATTGC", true),
        ] {
            assert_eq!((text.len(), has_tandem(root(text), 29)), (29, tandem), "{text}");
            assert_eq!(has_tandem(revcomp(root(text), 29), 29), tandem, "{text}, the other strand");
        }
    }

    #[test]
    fn alleles_of_both_samples_have_tables_of_their_own() {
        let mut tally = RootTally { known: [(8, 20); 2], ..RootTally::default() };
        // Before the root all have A; behind it C, and so many G.
        let mut see = |normal: u32, tumour: u32, stem: u64, has_copies: bool| {
            let mut root = RootCounters { stem, counts: [[0; 2]; 16] };
            (root.counts[1], root.counts[2]) = ([12 - normal, 14 - tumour], [normal, tumour]);
            tally.see(&root, [0; 2], 29, |_| has_copies);
        };
        let stem = 0x1234_9a1c_7b2d_63e1;
        see(0, 1, stem, true);
        see(1, 2, stem, false);
        see(1, 1, stem, false);
        see(2, 1, stem, false);
        see(2, 2, stem, false);
        // Eight A in turn, and a root beside which another differs in one base.
        see(1, 1, stem >> 16 << 16, false);
        see(1, 1, stem, true);
        let count = |table: &[u64], depth: usize, minor: usize| {
            table[(substitution(1, 2) * DEPTHS + depth) * MINORS + minor]
        };
        assert_eq!(count(&tally.minor[1], 14, 1), 1);
        for (sample, depth) in [(0, 12), (1, 14)] {
            assert_eq!([1, 2].map(|minor| count(&tally.shared[sample], depth, minor)), [1, 1]);
            assert_eq!(tally.shared[sample].iter().sum::<u64>(), 2);
        }
    }

    #[test]
    fn some_sites_are_asked_whether_they_could_be_of_one_place() {
        let mut tally = RootTally { known: [(8, 20); 2], ..RootTally::default() };
        for i in 0..20_000_u64 {
            let stem = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6;
            let mut root = RootCounters { stem, counts: [[0; 2]; 16] };
            root.counts[1] = [12, 14];
            tally.see(&root, [0; 2], 29, |_| i % 4 == 0);
        }
        for (sample, [could, all]) in tally.alone.into_iter().enumerate() {
            assert!((400..900).contains(&all), "{all} of 40000");
            // Some have a tandem repeat.
            assert!((0.6..0.78).contains(&tally.could_share(sample)), "{could} of {all}");
        }
    }

    #[test]
    fn molecules_that_begin_alike_are_no_pair() {
        let mut root = RootCounters { stem: 5, counts: [[0; 2]; 16] };
        (root.counts[3], root.counts[9]) = ([2, 1], [1, 1]);
        let (all, apart) = Draws::at(&root, [0, 0]);
        assert_eq!((all, apart.pairs, apart.differ), (5, [3, 1, 6], [2, 1, 3]));
        let (_, copied) = Draws::at(&root, [1, 1]);
        assert_eq!((copied.pairs, copied.differ), ([2, 0, 6], [1, 0, 3]));
    }
}
