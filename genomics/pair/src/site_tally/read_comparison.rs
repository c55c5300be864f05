//! Comparison of the reads that contain the same root, two by two.

use genuma_kmers::RootCounters;

/// Depth of a root in both samples together from which its reads are no longer compared two by two. Deeper roots show
/// the genotypes themselves. Chosen.
pub const MIN_DEPTH_WITHOUT_READ_COMPARISON: u32 = 48;

/// Number of comparisons of two reads that contain the same root, and number of comparisons in which they differ. The
/// two reads are of different molecules, so they are not mates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadComparisonCounts {
    /// Number of comparisons of two reads of the normal, of two reads of the tumour, and of a read of each.
    pub compared: [u64; 3],
    /// Number of these comparisons in which the base before or after the root differs; 0 at roots with a near copy
    /// ([`super::has_near_copy`]).
    pub differing: [u64; 3],
}

impl ReadComparisonCounts {
    /// Compares all reads that contain a root two by two. Returns the depth of both samples together, and the numbers
    /// of comparisons. `shared_starts` is for each sample the number of comparisons of two reads that differ although
    /// they start alike; they are taken for duplicates with a sequencing error and are not counted.
    pub fn compare_reads_at_root(root: &RootCounters, shared_starts: [u32; 2]) -> (u32, ReadComparisonCounts) {
        let (mut depth, mut same, mut between) = ([0u32; 2], [0u64; 2], 0u64);
        for counts in &root.counts {
            for s in 0..2 {
                depth[s] = depth[s].saturating_add(counts[s]);
                same[s] += num_pairs(counts[s]);
            }
            between += u64::from(counts[0]) * u64::from(counts[1]);
        }
        let all = [num_pairs(depth[0]), num_pairs(depth[1]), u64::from(depth[0]) * u64::from(depth[1])];
        let alike = [same[0], same[1], between];
        let shared_starts = [shared_starts[0], shared_starts[1], 0].map(u64::from);
        let differ: [u64; 3] = std::array::from_fn(|i| (all[i] - alike[i]).saturating_sub(shared_starts[i]));
        let compared = std::array::from_fn(|i| alike[i] + differ[i]);
        (depth[0].saturating_add(depth[1]), ReadComparisonCounts { compared, differing: differ })
    }

    /// Adds the numbers of `other`.
    pub fn merge_comparison_counts(&mut self, other: &ReadComparisonCounts) {
        self.compared.iter_mut().zip(other.compared).for_each(|(a, b)| *a += b);
        self.differing.iter_mut().zip(other.differing).for_each(|(a, b)| *a += b);
    }
}

fn num_pairs(n: u32) -> u64 {
    u64::from(n) * u64::from(n.saturating_sub(1)) / 2
}
