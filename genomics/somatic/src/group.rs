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

/// What became of the labelled pairs.
#[derive(Debug, Default)]
pub struct Grouped {
    /// Groups of pairs (indices into the labelled ones), each in their order, groups by their first k-mer.
    pub groups: Vec<Vec<u32>>,
    /// Pairs left in groups too small.
    pub lone: u64,
    /// Pairs in groups without a k-mer at which the samples part: recurrent errors inside a repeat.
    pub not_parting: u64,
}

/// Groups pairs by the k-mers they share; `parting` tells of each k-mer, by rank, whether the samples part there. A group of
/// fewer than `fewest` pairs shows nothing. A group may be as large as it likes: assembling works from one k-mer to its
/// surroundings and not on the group, which only is the part of the work that one thread can do alone.
pub fn group(labelled: &[Labelled], parting: &[bool], fewest: usize) -> Grouped {
    let mut sets = UnionFind::new(parting.len());
    for pair in labelled {
        let mut ranks = pair.hits.iter().flatten().map(|h| h.rank);
        if let Some(first) = ranks.next() {
            ranks.for_each(|r| sets.union(first, r));
        }
    }
    let first = |pair: &Labelled| pair.hits.iter().flatten().map(|h| h.rank).next();
    let mut members: Vec<(u32, u32)> =
        (0..).zip(labelled).filter_map(|(i, pair)| first(pair).map(|rank| (sets.find(rank), i))).collect();
    members.sort_unstable();
    let mut grouped = Grouped::default();
    for group in members.chunk_by(|a, b| a.0 == b.0) {
        let ranks = |i: u32| labelled[i as usize].hits.iter().flatten().map(|h| h.rank);
        if group.len() < fewest {
            grouped.lone += group.len() as u64;
        } else if !group.iter().flat_map(|m| ranks(m.1)).any(|r| parting[r as usize]) {
            grouped.not_parting += group.len() as u64;
        } else {
            grouped.groups.push(group.iter().map(|m| m.1).collect());
        }
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Packed;
    use crate::sought::KmerHit;

    fn pair(ranks: &[u32]) -> Labelled {
        let hits = ranks.iter().map(|&rank| KmerHit { at: 0, span: 31, rank, forward: true }).collect();
        let none = Packed::new(&[], &[]);
        Labelled { name: [].into(), sample: 1, mates: [none.clone(), none], hits: [hits, vec![]] }
    }

    #[test]
    fn shared_kmers_group_and_what_is_left_out_is_counted() {
        let pairs = [&[0, 1][..], &[4], &[1, 2], &[4, 5], &[3], &[7, 8], &[8], &[]].map(pair);
        let mut parting = [false; 10];
        (parting[1], parting[3], parting[4]) = (true, true, true);
        let Grouped { groups, lone, not_parting } = group(&pairs, &parting, 2);
        assert_eq!(groups, [vec![0, 2], vec![1, 3]]);
        assert_eq!((lone, not_parting), (1, 2));
    }
}
