//! Groups labelled pairs that share candidate k-mers, directly or through other pairs (union-find over k-mers).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::labelled_pair::LabelledPair;

/// Disjoint sets of k-mer ranks (union-find): a forest with path halving and union by smaller root. The name of a set
/// is its smallest member, whatever the order of unions. Several threads may join sets at the same time (Anderson and
/// Woll, STOC 1991).
#[derive(Debug)]
pub struct DisjointSets {
    parent: Vec<AtomicU32>,
}

impl DisjointSets {
    /// Creates `n` sets with one member each: the ranks 0 to `n` − 1.
    pub fn create_singleton_sets(n: usize) -> DisjointSets {
        DisjointSets { parent: (0..n as u32).map(AtomicU32::new).collect() }
    }

    fn parent(&self, x: u32) -> u32 {
        self.parent[x as usize].load(Relaxed)
    }

    /// The smallest member of the set that contains `x`. Correct only while no other thread joins sets.
    pub fn find_smallest_member(&self, mut x: u32) -> u32 {
        loop {
            let up = self.parent(x);
            if up == x {
                return x;
            }
            // Parents only become smaller members of the same set, so a thread that loses the race need not retry.
            let above = self.parent(up);
            if above != up {
                let _ = self.parent[x as usize].compare_exchange(up, above, Relaxed, Relaxed);
            }
            x = above;
        }
    }

    /// Joins the sets that contain `a` and `b`.
    pub fn join_sets(&self, a: u32, b: u32) {
        let (mut a, mut b) = (a, b);
        loop {
            (a, b) = (self.find_smallest_member(a), self.find_smallest_member(b));
            let (low, high) = (a.min(b), a.max(b));
            if low == high || self.parent[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// For each pair, joins the sets of all candidate k-mers that the pair contains.
    pub fn join_kmers_of_pairs(&self, pairs: &[LabelledPair]) {
        for pair in pairs {
            let mut ranks = pair.hits.iter().flatten().map(|hit| hit.rank);
            if let Some(first) = ranks.next() {
                ranks.for_each(|rank| self.join_sets(first, rank));
            }
        }
    }

    /// Number of the group of a pair: the smallest member of the set of its k-mers. `None` if the pair has no candidate
    /// k-mers.
    pub fn group_of_pair(&self, pair: &LabelledPair) -> Option<u32> {
        pair.hits.iter().flatten().next().map(|hit| self.find_smallest_member(hit.rank))
    }
}

/// Groups of labelled pairs, with counts of the pairs of skipped groups.
#[derive(Debug, Default)]
pub struct GroupedPairs {
    /// For each group, the indices of its labelled pairs, ascending. Groups are sorted by their smallest k-mer rank.
    pub groups: Vec<Vec<u32>>,
    /// Number of pairs skipped because their group has too few pairs.
    pub pairs_in_small_groups: u64,
    /// Number of pairs skipped because their group has no branching k-mer: recurrent errors inside a repeat.
    pub(crate) pairs_in_unbranched_groups: u64,
}

/// Groups pairs that share candidate k-mers, directly or through other pairs. `branching` says for each k-mer, by k-mer
/// rank, whether it is a branching k-mer. Groups of fewer than `min_pairs` pairs, and groups without a branching k-mer,
/// are skipped. Groups have no maximum size, because assembly starts from one k-mer; a group is only a unit of work for
/// one thread.
pub fn group_pairs(
    labelled: &[LabelledPair],
    sets: &DisjointSets,
    branching: &[bool],
    min_pairs: usize,
) -> GroupedPairs {
    let mut members: Vec<(u32, u32)> =
        (0..).zip(labelled).filter_map(|(i, pair)| Some((sets.group_of_pair(pair)?, i))).collect();
    members.sort_unstable();
    let mut grouped = GroupedPairs::default();
    for group in members.chunk_by(|a, b| a.0 == b.0) {
        let ranks = |i: u32| labelled[i as usize].hits.iter().flatten().map(|h| h.rank);
        if group.len() < min_pairs {
            grouped.pairs_in_small_groups += group.len() as u64;
        } else if !group.iter().flat_map(|m| ranks(m.1)).any(|r| branching[r as usize]) {
            grouped.pairs_in_unbranched_groups += group.len() as u64;
        } else {
            grouped.groups.push(group.iter().map(|m| m.1).collect());
        }
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kmer_lookup::KmerHit;
    use crate::packed::PackedRead;

    fn pair(ranks: &[u32]) -> LabelledPair {
        let hits = ranks.iter().map(|&rank| KmerHit { start: 0, span: 31, rank, forward: true }).collect();
        let none = PackedRead::new(&[], &[]);
        LabelledPair { name: [].into(), sample: 1, mates: [none.clone(), none], hits: [hits, vec![]] }
    }

    #[test]
    fn shared_kmers_group_and_what_is_left_out_is_counted() {
        let pairs = [&[0, 1][..], &[4], &[1, 2], &[4, 5], &[3], &[7, 8], &[8], &[]].map(pair);
        let mut branching = [false; 10];
        (branching[1], branching[3], branching[4]) = (true, true, true);
        let sets = DisjointSets::create_singleton_sets(10);
        sets.join_kmers_of_pairs(&pairs);
        let GroupedPairs { groups, pairs_in_small_groups: lone, pairs_in_unbranched_groups: not_parting } =
            group_pairs(&pairs, &sets, &branching, 2);
        assert_eq!(groups, [vec![0, 2], vec![1, 3]]);
        assert_eq!((lone, not_parting), (1, 2));
    }
    #[test]
    fn sets_are_the_same_whoever_joins_them_at_once() {
        let n = 20_000;
        let edges: Vec<(u32, u32)> = (0..n).map(|i| (i, i * 7919 % n / 3 * 3)).collect();
        let joined = |threads: usize| {
            let sets = DisjointSets::create_singleton_sets(n as usize);
            std::thread::scope(|scope| {
                for part in 0..threads {
                    let (sets, edges) = (&sets, &edges);
                    let own = move || edges.iter().skip(part).step_by(threads).for_each(|&(a, b)| sets.join_sets(a, b));
                    scope.spawn(own);
                }
            });
            (0..n).map(|x| sets.find_smallest_member(x)).collect::<Vec<u32>>()
        };
        let one = joined(1);
        assert!(one.iter().zip(0..).all(|(&root, x)| root <= x && one[root as usize] == root));
        let roots = one.iter().zip(0..).filter(|(root, x)| *root == x).count();
        assert!(roots > 1 && roots < n as usize / 2, "{roots}");
        assert!((2..6).all(|threads| joined(threads) == one));
    }
}
