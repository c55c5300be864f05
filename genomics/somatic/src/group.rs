//! Labelled pairs that share interesting k-mers form groups: union–find over the k-mers.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::label::Labelled;

/// Picks by their groups: a disjoint-set forest with path halving and union by smaller root, so that a set is named by its
/// smallest member whatever the order of unions, and several threads may make them at once (as in Anderson and Woll, STOC 1991).
#[derive(Debug)]
pub struct Sets {
    parent: Vec<AtomicU32>,
}

impl Sets {
    /// `n` sets of one.
    pub fn new(n: usize) -> Sets {
        Sets { parent: (0..n as u32).map(AtomicU32::new).collect() }
    }

    fn parent(&self, x: u32) -> u32 {
        self.parent[x as usize].load(Relaxed)
    }

    /// The set's smallest member, if nobody joins sets meanwhile.
    pub fn find(&self, mut x: u32) -> u32 {
        loop {
            let up = self.parent(x);
            if up == x {
                return x;
            }
            // Parents only ever become smaller members of the same set, so whoever loses the race has nothing to do again.
            let above = self.parent(up);
            if above != up {
                let _ = self.parent[x as usize].compare_exchange(up, above, Relaxed, Relaxed);
            }
            x = above;
        }
    }

    /// Joins two sets.
    pub fn union(&self, a: u32, b: u32) {
        let (mut a, mut b) = (a, b);
        loop {
            (a, b) = (self.find(a), self.find(b));
            let (low, high) = (a.min(b), a.max(b));
            if low == high || self.parent[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok()
            {
                return;
            }
        }
    }

    /// Joins the k-mers of each pair.
    pub fn join(&self, pairs: &[Labelled]) {
        for pair in pairs {
            let mut ranks = pair.hits.iter().flatten().map(|hit| hit.rank);
            if let Some(first) = ranks.next() {
                ranks.for_each(|rank| self.union(first, rank));
            }
        }
    }

    /// The group of a pair, named by its first k-mer, if the pair has any.
    pub fn of(&self, pair: &Labelled) -> Option<u32> {
        pair.hits.iter().flatten().next().map(|hit| self.find(hit.rank))
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
    pub(crate) not_parting: u64,
}

/// Groups pairs by the k-mers they share, which `sets` have joined; `parting` tells of each k-mer, by rank, whether the samples part there. A
/// group of fewer than `fewest` pairs shows nothing. A group may be as large as it likes: assembling works from one k-mer to its
/// surroundings and not on the group, which only is the part of the work that one thread can do alone.
pub fn group(labelled: &[Labelled], sets: &Sets, parting: &[bool], fewest: usize) -> Grouped {
    let mut members: Vec<(u32, u32)> =
        (0..).zip(labelled).filter_map(|(i, pair)| Some((sets.of(pair)?, i))).collect();
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
        let sets = Sets::new(10);
        sets.join(&pairs);
        let Grouped { groups, lone, not_parting } = group(&pairs, &sets, &parting, 2);
        assert_eq!(groups, [vec![0, 2], vec![1, 3]]);
        assert_eq!((lone, not_parting), (1, 2));
    }
    #[test]
    fn sets_are_the_same_whoever_joins_them_at_once() {
        let n = 20_000;
        let edges: Vec<(u32, u32)> = (0..n).map(|i| (i, i * 7919 % n / 3 * 3)).collect();
        let joined = |threads: usize| {
            let sets = Sets::new(n as usize);
            std::thread::scope(|scope| {
                for part in 0..threads {
                    let (sets, edges) = (&sets, &edges);
                    let own =
                        move || edges.iter().skip(part).step_by(threads).for_each(|&(a, b)| sets.union(a, b));
                    scope.spawn(own);
                }
            });
            (0..n).map(|x| sets.find(x)).collect::<Vec<u32>>()
        };
        let one = joined(1);
        assert!(one.iter().zip(0..).all(|(&root, x)| root <= x && one[root as usize] == root));
        let roots = one.iter().zip(0..).filter(|(root, x)| *root == x).count();
        assert!(roots > 1 && roots < n as usize / 2, "{roots}");
        assert!((2..6).all(|threads| joined(threads) == one));
    }
}
