//! Reads of a group → tumour contigs, by anchored consensus.
//!
//! Every read that carries the same tumour-only k-mer comes from the same place on the same haplotype, and Illumina
//! reads hardly ever gain or lose a base. So a read's interesting k-mers fix its offset, the reads are stacked without
//! gaps, and each column votes. Unlike a de Bruijn graph this keeps short tandem repeats longer than k in one piece.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

use crate::label::{KmerHit, Labelled, Read};

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
    /// Reads the consensus was made from.
    pub reads: Vec<Placed>,
}

/// What assembly needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// k-mer length.
    pub k: u32,
    /// Fewest distinct pairs a contig rests on.
    pub fewest_pairs: usize,
    /// Most contigs of one group.
    pub most_contigs: usize,
}

/// A read with its hits, waiting to be laid.
struct Member<'a> {
    pair: u32,
    mate: u8,
    read: &'a Read,
    hits: &'a [KmerHit],
}

/// Assembles the contigs of one group, the best supported first.
pub fn assemble(group: &[u32], labelled: &[Labelled], params: Params) -> Vec<Contig> {
    let members: Vec<Member> = group
        .iter()
        .flat_map(|&pair| {
            let p = &labelled[pair as usize];
            [0u8, 1].map(|mate| Member {
                pair,
                mate,
                read: &p.mates[mate as usize],
                hits: &p.hits[mate as usize],
            })
        })
        .filter(|m| !m.hits.is_empty())
        .collect();
    let mut open: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (i, member) in members.iter().enumerate() {
        for hit in member.hits {
            open.entry(hit.rank).or_default().push(i as u32);
        }
    }
    let mut contigs = Vec::new();
    while contigs.len() < params.most_contigs {
        let Some((&seed, carriers)) =
            open.iter().max_by_key(|(rank, carriers)| (carriers.len(), std::cmp::Reverse(**rank)))
        else {
            break;
        };
        if carriers.len() < 2 {
            break;
        }
        let (contig, used) = lay(seed, &members, &open, params);
        for rank in used {
            open.remove(&rank);
        }
        open.remove(&seed);
        contigs.extend(contig);
    }
    contigs
}

/// Where an interesting k-mer stands on the contig being built.
#[derive(Clone, Copy)]
struct Anchor {
    at: i32,
    forward: bool,
}

/// Lays every read that can be reached from `seed` through k-mers still open, and reads off the consensus.
/// Also says which k-mers it accounts for.
fn lay(
    seed: u32,
    members: &[Member],
    open: &BTreeMap<u32, Vec<u32>>,
    params: Params,
) -> (Option<Contig>, Vec<u32>) {
    let k = params.k as i32;
    let mut anchors: HashMap<u32, Anchor> = HashMap::from([(seed, Anchor { at: 0, forward: true })]);
    let mut reached = vec![seed];
    let mut laid: Vec<Option<Placed>> = vec![None; members.len()];
    let mut next = 0;
    while next < reached.len() {
        for &i in &open[&reached[next]] {
            if laid[i as usize].is_some() {
                continue;
            }
            let member = &members[i as usize];
            let Some(placed) = offset(member, &anchors, k) else { continue };
            laid[i as usize] = Some(placed);
            for hit in member.hits {
                if !anchors.contains_key(&hit.rank) && open.contains_key(&hit.rank) {
                    let at = placed.at + oriented(hit.at, member.read.seq.len(), placed.forward, k);
                    anchors.insert(hit.rank, Anchor { at, forward: hit.forward == placed.forward });
                    reached.push(hit.rank);
                }
            }
        }
        next += 1;
    }
    let mut stack: Vec<(Placed, Read)> = laid
        .iter()
        .zip(members)
        .filter_map(|(placed, member)| placed.map(|p| (p, member.read)))
        .map(|(p, read)| (p, if p.forward { read.clone() } else { read.reversed() }))
        .collect();
    let mut columns = Columns::vote(stack.iter().map(|(p, read)| (p.at, read)));
    let before = stack.len();
    stack.retain(|(placed, read)| columns.fits(placed.at, read));
    if stack.len() < before {
        columns = Columns::vote(stack.iter().map(|(p, read)| (p.at, read)));
    }
    let mut pairs: Vec<u32> = stack.iter().map(|(p, _)| p.pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    if pairs.len() < params.fewest_pairs {
        return (None, Vec::new());
    }
    let consensus = columns.consensus();
    let seeded = anchors[&seed].at - columns.start;
    if seeded < 0 || (seeded + k) as usize > consensus.len() {
        return (None, Vec::new());
    }
    let (mut used, mut starts) = (Vec::new(), Vec::new());
    let range = columns.trusted(seeded as usize, k as usize);
    let mut novel = vec![false; range.len()];
    for (&rank, anchor) in &anchors {
        let from = anchor.at - columns.start;
        let Some(window) = consensus.get(from.max(0) as usize..(from + k) as usize) else { continue };
        if from < 0 || !carried(rank, window, members, open, k) {
            continue;
        }
        used.push(rank);
        starts.push(from);
        for at in from as usize..(from + k) as usize {
            if range.contains(&at) {
                novel[at - range.start] = true;
            }
        }
    }
    if !well_read(&stack, &columns, &starts, k, params.fewest_pairs - 1) {
        return (None, used);
    }
    let shift = columns.start + range.start as i32;
    let reads = stack.iter().map(|(p, _)| Placed { at: p.at - shift, ..*p }).collect();
    (Some(Contig { seq: consensus[range].to_vec(), novel, reads }), used)
}

/// Quality of a base that a sequencing error seldom has.
const GOOD: u8 = 20;

/// Whether enough pairs have good bases where all the interesting k-mers overlap: there the change itself lies. With
/// no such place (a long change) there is nothing to doubt.
fn well_read(stack: &[(Placed, Read)], columns: &Columns, starts: &[i32], k: i32, fewest: usize) -> bool {
    let (Some(&first), Some(&last)) = (starts.iter().min(), starts.iter().max()) else { return false };
    let core = columns.start + last..columns.start + first + k;
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
    pairs.len() >= fewest
}

/// Whether the consensus window is the k-mer of that rank, read off one of its carriers.
fn carried(rank: u32, window: &[u8], members: &[Member], open: &BTreeMap<u32, Vec<u32>>, k: i32) -> bool {
    let Some(member) = open.get(&rank).and_then(|c| c.first()).map(|&i| &members[i as usize]) else {
        return false;
    };
    let Some(hit) = member.hits.iter().find(|h| h.rank == rank) else { return false };
    let text = &member.read.seq[hit.at as usize..hit.at as usize + k as usize];
    text == window || genuma_reads::dna::revcomp(text) == window
}

/// Start of a k-mer in the oriented read.
fn oriented(at: u32, len: usize, forward: bool, k: i32) -> i32 {
    if forward { at as i32 } else { len as i32 - k - at as i32 }
}

/// The offset most of the read's anchored k-mers agree on.
fn offset(member: &Member, anchors: &HashMap<u32, Anchor>, k: i32) -> Option<Placed> {
    let mut votes: BTreeMap<(i32, bool), u32> = BTreeMap::new();
    for hit in member.hits {
        if let Some(anchor) = anchors.get(&hit.rank) {
            let forward = hit.forward == anchor.forward;
            let at = anchor.at - oriented(hit.at, member.read.seq.len(), forward, k);
            *votes.entry((at, forward)).or_default() += 1;
        }
    }
    let ((at, forward), _) = votes.into_iter().max_by_key(|&(_, n)| n)?;
    Some(Placed { pair: member.pair, mate: member.mate, forward, at })
}

/// Votes per column of a gapless stack of reads.
#[derive(Debug)]
pub(crate) struct Columns {
    start: i32,
    weight: Vec<[u32; 4]>,
    depth: Vec<u16>,
}

impl Columns {
    /// Stacks reads, each from its column on.
    pub(crate) fn vote<'a>(stack: impl Iterator<Item = (i32, &'a Read)> + Clone) -> Columns {
        let start = stack.clone().map(|(at, _)| at).min().unwrap_or(0);
        let end = stack.clone().map(|(at, r)| at + r.seq.len() as i32).max().unwrap_or(start);
        let width = (end - start) as usize;
        let mut columns = Columns { start, weight: vec![[0; 4]; width], depth: vec![0; width] };
        for (at, read) in stack {
            let from = (at - start) as usize;
            for (i, (&b, &q)) in read.seq.iter().zip(&read.qual).enumerate() {
                let code = genuma_reads::dna::code(b) as usize;
                if code < 4 {
                    columns.weight[from + i][code] += u32::from(q.clamp(2, 40));
                    columns.depth[from + i] = columns.depth[from + i].saturating_add(1);
                }
            }
        }
        columns
    }

    fn consensus(&self) -> Vec<u8> {
        let best = |w: &[u32; 4]| {
            let top = *w.iter().max().unwrap_or(&0);
            if top == 0 { b'N' } else { b"ACGT"[w.iter().position(|&x| x == top).unwrap_or(0)] }
        };
        self.weight.iter().map(best).collect()
    }

    /// The consensus around a column that two reads or more agree on, and the column it starts at.
    pub(crate) fn stretch(&self, around: i32) -> (i32, Vec<u8>) {
        let at = (around - self.start).clamp(0, self.weight.len() as i32 - 1) as usize;
        let range = self.trusted(at.saturating_sub(1), 1);
        (self.start + range.start as i32, self.consensus()[range].to_vec())
    }

    /// Whether a read agrees with the majority but for a few errors.
    fn fits(&self, at: i32, read: &Read) -> bool {
        let from = (at - self.start) as usize;
        let differing = read
            .seq
            .iter()
            .zip(&read.qual)
            .zip(&self.weight[from..])
            .filter(|((b, q), w)| {
                let code = genuma_reads::dna::code(**b) as usize;
                let total: u32 = w.iter().sum();
                **q >= 15 && code < 4 && w[code] * 2 < total
            })
            .count();
        differing <= 3.max(read.seq.len() / 20)
    }

    /// The stretch around the seed that two reads or more agree on, at least 60 bases to each side if one read goes
    /// that far.
    fn trusted(&self, from: usize, k: usize) -> std::ops::Range<usize> {
        const FLANK: usize = 60;
        let to = from + k;
        let good = |at: usize| {
            let w = &self.weight[at];
            let total: u32 = w.iter().sum();
            let top = *w.iter().max().unwrap_or(&0);
            self.depth[at] >= 2 && top * 10 >= total * 7
        };
        let single = |at: usize| self.weight[at].iter().any(|&w| w >= 20);
        let mut start = from;
        while start > 0 && (good(start - 1) || (from - start < FLANK && single(start - 1))) {
            start -= 1;
        }
        let mut end = to;
        while end < self.weight.len() && (good(end) || (end - to < FLANK && single(end))) {
            end += 1;
        }
        start..end
    }
}
