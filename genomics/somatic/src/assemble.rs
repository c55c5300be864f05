//! Reads of a group → tumour contigs, by anchored consensus.
//!
//! Every read that carries the same tumour-only k-mer comes from the same place on the same haplotype, and Illumina
//! reads hardly ever gain or lose a base. So a read's interesting k-mers fix its offset, the reads are stacked without
//! gaps, and each column votes. Unlike a de Bruijn graph this keeps short tandem repeats longer than k in one piece.
//!
//! A contig grows from the k-mer most reads carry and no further than [`REACH`], so that what it costs depends on the
//! reads of its own place, however many places a repeat or a germline k-mer has brought into one group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::label::{KmerHit, Labelled, Read};
use crate::select::beyond_errors;

/// A read laid on a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Index of its pair among the labelled ones.
    pub pair: u32,
    /// Which mate.
    pub mate: u8,
    /// Whether the read runs with the contig.
    pub forward: bool,
    /// Contig position of the first base of the (oriented) read; negative when it begins before the contig.
    pub at: i32,
}

/// The assembled sequence of a tumour allele with its flanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contig {
    /// Upper-case bases.
    pub seq: Vec<u8>,
    /// For each base, whether a tumour-only k-mer covers it.
    pub novel: Vec<bool>,
    /// For each base, the qualities of the reads that have it, summed up.
    pub weight: Vec<u16>,
    /// Reads the consensus was made from.
    pub reads: Vec<Placed>,
    /// Mates of these reads that lie beyond the contig's left and right end, turned to run with it: some of them.
    pub beyond: [Vec<Read>; 2],
}

/// Fewest distinct pairs that a contig rests on.
pub const FEWEST: usize = 2;

/// What came of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembled {
    /// Contigs, the best supported first.
    pub contigs: Vec<Contig>,
    /// Stacks of fewer pairs than a contig needs.
    pub few: u64,
    /// Stacks in which too few pairs have good bases where the change is.
    pub poor: u64,
}

/// Bases from the first k-mer of a contig up to which it grows, on each side.
const REACH: i32 = 1500;

/// Mates kept of the reads at each end of a contig: as many as it takes to tell one place of a repeat from another.
const MATES: usize = 12;

/// A read with its hits, waiting to be laid.
struct Member<'a> {
    pair: u32,
    mate: u8,
    read: &'a Read,
    hits: &'a [KmerHit],
}

/// The reads of a group and which of them carry each k-mer.
struct Group<'a> {
    labelled: &'a [Labelled],
    members: Vec<Member<'a>>,
    /// The k-mers' ranks among all, ascending; a place in this list is a k-mer's number in the group.
    ranks: Vec<u32>,
    /// Members by k-mer number.
    carriers: Vec<Vec<u32>>,
    k: i32,
}

impl<'a> Group<'a> {
    fn new(group: &[u32], labelled: &'a [Labelled], k: u32) -> Group<'a> {
        let mates = |&pair: &u32| {
            let p = &labelled[pair as usize];
            [0u8, 1].map(|m| Member { pair, mate: m, read: &p.mates[m as usize], hits: &p.hits[m as usize] })
        };
        let members: Vec<Member> = group.iter().flat_map(mates).filter(|m| !m.hits.is_empty()).collect();
        let mut ranks: Vec<u32> = members.iter().flat_map(|m| m.hits).map(|h| h.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut all = Group { labelled, members, carriers: vec![Vec::new(); ranks.len()], ranks, k: k as i32 };
        for (i, member) in (0..).zip(&all.members) {
            for hit in member.hits {
                let carriers = &mut all.carriers[all.ranks.partition_point(|&r| r < hit.rank)];
                if carriers.last() != Some(&i) {
                    carriers.push(i);
                }
            }
        }
        all
    }

    fn number(&self, hit: &KmerHit) -> usize {
        self.ranks.partition_point(|&r| r < hit.rank)
    }
}

/// Assembles the contigs of one group, the best supported first.
pub fn assemble(group: &[u32], labelled: &[Labelled], k: u32) -> Assembled {
    let group = Group::new(group, labelled, k);
    let mut seeds: Vec<usize> = (0..group.ranks.len()).collect();
    seeds.sort_by_key(|&n| (Reverse(group.carriers[n].len()), n));
    let mut used = vec![false; seeds.len()];
    let mut assembled = Assembled::default();
    for seed in seeds {
        if used[seed] || group.carriers[seed].len() < FEWEST {
            continue;
        }
        match group.lay(seed, &mut used) {
            Ok(contig) => assembled.contigs.push(contig),
            Err(Refused::Few) => assembled.few += 1,
            Err(Refused::Poor) => assembled.poor += 1,
        }
        used[seed] = true;
    }
    assembled
}

/// Why a stack makes no contig.
enum Refused {
    Few,
    Poor,
}

/// Where an interesting k-mer stands on the contig being built.
#[derive(Clone, Copy)]
struct Anchor {
    at: i32,
    span: i32,
    forward: bool,
}

impl Group<'_> {
    /// Lays every read that can be reached from `seed` through k-mers not used yet, and reads off the consensus. What that
    /// accounts for is marked as used.
    fn lay(&self, seed: usize, used: &mut [bool]) -> Result<Contig, Refused> {
        let (anchors, stack) = self.reach(seed, used);
        let columns = |stack: &[(Placed, Read)]| Columns::vote(stack.iter().map(|(p, read)| (p.at, read)));
        let all = columns(&stack);
        let (stack, others): (Vec<_>, Vec<_>) = stack.into_iter().partition(|(p, read)| all.fits(p.at, read));
        let columns = if others.is_empty() { all } else { columns(&stack) };
        let consensus = columns.consensus();
        let seeded = anchors[&seed].at - columns.start;
        let seed_end = seeded + anchors[&seed].span;
        if stack.is_empty() || seeded < 0 || seed_end as usize > consensus.len() {
            return Err(Refused::Few);
        }
        let seeds = seeded as usize..seed_end as usize;
        let range = columns.trusted(seeds.start, seeds.len());
        let reads = stack.iter().map(|(p, read)| (p.at, read));
        let range = columns.read_across(range, seeds, &consensus, reads);
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let mut novel = vec![false; range.len()];
        for (&number, anchor) in &anchors {
            let from = anchor.at - columns.start;
            let to = from + anchor.span;
            let Some(window) = consensus.get(from.max(0) as usize..to.max(0) as usize) else { continue };
            let inside = from >= range.start as i32 && to <= range.end as i32;
            if !inside || !self.carried(number, window) {
                continue;
            }
            used[number] = true;
            starts.push(from);
            ends.push(to);
            novel[from as usize - range.start..to as usize - range.start].fill(true);
        }
        self.mark_errors(&stack, &columns, used);
        let mut pairs: Vec<u32> = stack.iter().map(|(p, _)| p.pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() < FEWEST {
            return Err(Refused::Few);
        }
        let core = starts.iter().max().unwrap_or(&0)..ends.iter().min().unwrap_or(&0);
        if !well_read(&stack, &(columns.start + core.start..columns.start + core.end)) {
            return Err(Refused::Poor);
        }
        let shift = columns.start + range.start as i32;
        let reads: Vec<Placed> = stack.iter().map(|(p, _)| Placed { at: p.at - shift, ..*p }).collect();
        let beyond = self.beyond(&reads);
        let weight = range.clone().map(|at| columns.weight_of(at, consensus[at])).collect();
        Ok(Contig { seq: consensus[range].to_vec(), novel, weight, reads, beyond })
    }

    /// The k-mers that reads lead to from `seed` on, and those reads, each turned to run with the seed.
    fn reach(&self, seed: usize, used: &[bool]) -> (HashMap<usize, Anchor>, Vec<(Placed, Read)>) {
        let first = Anchor { at: 0, span: self.span(seed), forward: true };
        let mut anchors: HashMap<usize, Anchor> = HashMap::from([(seed, first)]);
        let mut reached = vec![seed];
        let mut laid: BTreeMap<u32, Placed> = BTreeMap::new();
        let mut next = 0;
        while next < reached.len() {
            for &i in &self.carriers[reached[next]] {
                if laid.contains_key(&i) {
                    continue;
                }
                let member = &self.members[i as usize];
                let Some(placed) = self.offset(member, &anchors) else { continue };
                laid.insert(i, placed);
                for hit in member.hits {
                    let number = self.number(hit);
                    let at = placed.at + oriented(hit, member.read.seq.len(), placed.forward);
                    if !used[number] && at.abs() <= REACH && !anchors.contains_key(&number) {
                        let forward = hit.forward == placed.forward;
                        anchors.insert(number, Anchor { at, span: hit.span as i32, forward });
                        reached.push(number);
                    }
                }
            }
            next += 1;
        }
        let turned = |(i, placed): (u32, Placed)| {
            let read = self.members[i as usize].read;
            (placed, if placed.forward { read.clone() } else { read.reversed() })
        };
        (anchors, laid.into_iter().map(turned).collect())
    }

    /// Mates of the stacked reads that are not stacked themselves, by the end beyond which they lie.
    fn beyond(&self, reads: &[Placed]) -> [Vec<Read>; 2] {
        let stacked: HashSet<(u32, u8)> = reads.iter().map(|r| (r.pair, r.mate)).collect();
        let mut beyond: [Vec<Read>; 2] = Default::default();
        for read in reads.iter().filter(|r| !stacked.contains(&(r.pair, 1 - r.mate))) {
            // Mates face each other: that of a read that runs with the contig lies to its right and runs against it.
            let mate = &self.labelled[read.pair as usize].mates[1 - read.mate as usize];
            let side = &mut beyond[usize::from(read.forward)];
            if side.len() < MATES && !mate.seq.is_empty() {
                side.push(if read.forward { mate.reversed() } else { mate.clone() });
            }
        }
        beyond
    }

    /// Bases a k-mer spans, by its first carrier.
    fn span(&self, number: usize) -> i32 {
        let member = &self.members[self.carriers[number][0] as usize];
        member.hits.iter().find(|h| h.rank == self.ranks[number]).map_or(self.k, |h| h.span as i32)
    }

    /// Whether the consensus window is that k-mer, read off one of its carriers.
    fn carried(&self, number: usize, window: &[u8]) -> bool {
        let member = &self.members[self.carriers[number][0] as usize];
        let Some(hit) = member.hits.iter().find(|h| h.rank == self.ranks[number]) else { return false };
        let text = &member.read.seq[hit.at as usize..(hit.at + hit.span) as usize];
        text == window || genuma_reads::dna::revcomp(text) == window
    }

    /// The offset most of the read's anchored k-mers agree on.
    fn offset(&self, member: &Member, anchors: &HashMap<usize, Anchor>) -> Option<Placed> {
        let mut votes: BTreeMap<(i32, bool), u32> = BTreeMap::new();
        for hit in member.hits {
            if let Some(anchor) = anchors.get(&self.number(hit)) {
                let forward = hit.forward == anchor.forward;
                let at = anchor.at - oriented(hit, member.read.seq.len(), forward);
                *votes.entry((at, forward)).or_default() += 1;
            }
        }
        let ((at, forward), _) = votes.into_iter().max_by_key(|&(_, n)| n)?;
        Some(Placed { pair: member.pair, mate: member.mate, forward, at })
    }

    /// Marks k-mers of the stacked reads that are not on the consensus and too seldom for the depth of the stack to be
    /// anything but wrong bases: they would each make a contig of their own, at a deep place hundreds.
    fn mark_errors(&self, stack: &[(Placed, Read)], columns: &Columns, used: &mut [bool]) {
        let by_mate: HashMap<(u32, u8), &Member> = self.members.iter().map(|m| ((m.pair, m.mate), m)).collect();
        for (placed, read) in stack {
            let Some(member) = by_mate.get(&(placed.pair, placed.mate)) else { continue };
            for hit in member.hits {
                let number = self.number(hit);
                let middle = placed.at + oriented(hit, read.seq.len(), placed.forward) + hit.span as i32 / 2;
                let depth = columns.depth((middle - columns.start) as usize);
                if !used[number] && (self.carriers[number].len() as f64) < beyond_errors(f64::from(depth)) {
                    used[number] = true;
                }
            }
        }
    }
}

/// Quality of a base that a sequencing error seldom has.
const GOOD: u8 = 20;

/// Whether enough pairs have good bases where all the interesting k-mers overlap: there the change itself lies. With
/// no such place (a long change) there is nothing to doubt.
fn well_read(stack: &[(Placed, Read)], core: &std::ops::Range<i32>) -> bool {
    if core.is_empty() {
        return true;
    }
    let good = |(placed, read): &&(Placed, Read)| {
        let (from, to) = (core.start - placed.at, core.end - placed.at);
        from >= 0
            && to <= read.seq.len() as i32
            && read.qual[from as usize..to as usize].iter().filter(|&&q| q < GOOD).count() * 8 <= core.len()
    };
    let mut pairs: Vec<u32> = stack.iter().filter(good).map(|(p, _)| p.pair).collect();
    pairs.dedup();
    pairs.len() >= FEWEST
}

/// Start of a hit in the oriented read.
fn oriented(hit: &KmerHit, len: usize, forward: bool) -> i32 {
    if forward { hit.at as i32 } else { len as i32 - (hit.at + hit.span) as i32 }
}
