//! Labelled pairs that share interesting k-mers form groups: union–find over the k-mers.

use crate::label::Labelled;

/// A disjoint-set forest with path halving and union by smaller root, so that the result names itself
/// the same way whatever the order of unions.
#[derive(Debug)]
pub struct UnionFind {
    parent: Vec<u32>,
}

impl UnionFind {
    /// `n` sets of one.
    pub fn new(n: usize) -> UnionFind {
        UnionFind { parent: (0..n as u32).collect() }
    }

    /// The set's smallest member.
    pub fn find(&mut self, mut x: u32) -> u32 {
        while self.parent[x as usize] != x {
            let up = self.parent[self.parent[x as usize] as usize];
            self.parent[x as usize] = up;
            x = up;
        }
        x
    }

    /// Joins two sets.
    pub fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high as usize] = low;
    }
}

/// Limits that keep repeats from welding the genome together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A k-mer carried by more pairs than this joins nothing.
    pub most_carriers: u32,
    /// Fewest pairs of a group worth assembling.
    pub fewest_pairs: usize,
}

/// Groups of pairs (indices into `labelled`), each in the order of `labelled`, groups by their first k-mer. A group
/// without a k-mer at which the samples part (`parting`, by rank) is a recurrent error inside a repeat: it is left out.
pub fn group(labelled: &[Labelled], parting: &[bool], limits: Limits) -> Vec<Vec<u32>> {
    let kmers = parting.len();
    let mut carriers = vec![0u32; kmers];
    for pair in labelled {
        for hit in pair.hits.iter().flatten() {
            carriers[hit.rank as usize] += 1;
        }
    }
    let joins = |rank: u32| carriers[rank as usize] <= limits.most_carriers;
    let mut sets = UnionFind::new(kmers);
    for pair in labelled {
        let mut ranks = pair.hits.iter().flatten().map(|h| h.rank).filter(|&r| joins(r));
        if let Some(first) = ranks.next() {
            ranks.for_each(|r| sets.union(first, r));
        }
    }
    let mut members: Vec<(u32, u32)> = labelled
        .iter()
        .enumerate()
        .filter_map(|(i, pair)| {
            let rank = pair.hits.iter().flatten().map(|h| h.rank).find(|&r| joins(r))?;
            Some((sets.find(rank), i as u32))
        })
        .collect();
    members.sort_unstable();
    members
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|g| g.len() >= limits.fewest_pairs)
        .filter(|g| {
            let ranks = |i: u32| labelled[i as usize].hits.iter().flatten().map(|h| h.rank);
            g.iter().flat_map(|m| ranks(m.1)).any(|r| parting[r as usize])
        })
        .map(|g| g.iter().map(|m| m.1).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{KmerHit, Read};

    fn pair(ranks: &[u32]) -> Labelled {
        let hits = ranks.iter().map(|&rank| KmerHit { at: 0, rank, forward: true }).collect();
        Labelled { name: vec![], sample: 1, mates: [Read::default(), Read::default()], hits: [hits, vec![]] }
    }

    #[test]
    fn shared_kmers_group_and_crowded_ones_do_not() {
        let pairs = [&[0, 1][..], &[4], &[1, 2], &[4, 5], &[3], &[9, 0], &[9, 5], &[9, 3]].map(pair);
        let limits = Limits { most_carriers: 2, fewest_pairs: 2 };
        let mut parting = [false; 10];
        (parting[1], parting[3], parting[4]) = (true, true, true);
        assert_eq!(group(&pairs, &parting, limits), [vec![0, 2, 5], vec![4, 7], vec![1, 3, 6]]);
    }
}
