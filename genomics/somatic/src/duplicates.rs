//! PCR duplicates: pairs that start and end at the same places are copies of one molecule.

use crate::label::Labelled;
use crate::recruit::Recruit;

/// Bases compared at the start of each mate.
const PREFIX: usize = 32;
/// Differences allowed over both prefixes: sequencing errors in one of the copies.
const DIFFERENCES: usize = 4;

fn differ(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take(PREFIX).filter(|(x, y)| x != y).count()
}

fn same_molecule(a: &Labelled, b: &Labelled) -> bool {
    let ends = |x: usize, y: usize| {
        let one = differ(&a.mates[0].seq, &b.mates[x].seq);
        one <= DIFFERENCES && one + differ(&a.mates[1].seq, &b.mates[y].seq) <= DIFFERENCES
    };
    a.sample == b.sample && (ends(0, 1) || ends(1, 0))
}

/// For each pair, whether it is a copy of another one in `pairs` with better qualities (ties: earlier name).
pub fn mark(pairs: &[&Labelled]) -> Vec<bool> {
    let quality = |p: &Labelled| p.mates.iter().flat_map(|m| &m.qual).map(|&q| u64::from(q)).sum::<u64>();
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|&a, &b| (quality(pairs[b]), &pairs[a].name).cmp(&(quality(pairs[a]), &pairs[b].name)));
    let mut copy = vec![false; pairs.len()];
    for (n, &i) in order.iter().enumerate() {
        copy[i] = order[..n].iter().any(|&j| !copy[j] && same_molecule(pairs[j], pairs[i]));
    }
    copy
}

/// The pairs of a contig that are PCR copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies(Vec<u32>);

impl Copies {
    /// Looks for them among the pairs recruited for one contig.
    pub fn among(recruits: &[Recruit], pairs: &[Labelled]) -> Copies {
        let mut members: Vec<u32> = recruits.iter().map(|r| r.pair).collect();
        members.dedup();
        let kept: Vec<&Labelled> = members.iter().map(|&p| &pairs[p as usize]).collect();
        let marks = mark(&kept);
        Copies(members.into_iter().zip(marks).filter(|(_, copy)| *copy).map(|(pair, _)| pair).collect())
    }

    /// Whether the pair is a copy.
    pub fn contains(&self, pair: u32) -> bool {
        self.0.binary_search(&pair).is_ok()
    }
}
