//! Compares read sets of shallow samples with each other, as `genuma check` compares two, reading each only once.
//! Used by bench/identity.sh.
//!
//! usage: identity FIRST... -- SECOND...   where each is the folder and the name of a sample, such as pair/tumor
//!
//! Prints one line per pair: both names, the relation, the excess mismatch rate and its confidence interval.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genuma_kmers::RootCounters;
use genuma_pair::identity::IdentityResult;
use genuma_pair::site_tally::{MIN_DEPTH_WITHOUT_READ_COMPARISON, ReadComparisonCounts, has_near_copy};
use genuma_pair::sketch::{SketchBuilder, SketchParams};
use genuma_reads::{Lane, LaneFiles, NORMAL_SAMPLE, ProgressCounters, Trimmer, for_each_batch};

/// The sketch parameters of `genuma check`.
const SAMPLE: SketchParams =
    SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: 8_000_000, max_kmers: 32_000_000 };

/// The k-mers of a sample: root << 4 | slot, with their counts.
struct Set {
    name: String,
    kmers: Vec<(u64, u8)>,
    /// Number of molecules with shared read starts, by root.
    copies: BTreeMap<u64, u32>,
}

impl Set {
    fn read(name: &str) -> Set {
        let file = |mate: u8| PathBuf::from(format!("{name}_{mate}.fq.gz"));
        assert!(Path::exists(&file(1)), "no {}", file(1).display());
        let lanes = [Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Pair(file(1), file(2)))];
        let sampling = SketchBuilder::empty(SAMPLE);
        let start = || (Trimmer::default(), sampling.new_writer());
        for_each_batch(&lanes, 1, &ProgressCounters::default(), start, |(trimmer, sampler), batch| {
            for raw in batch.iter() {
                let cut = trimmer.trim_pair(raw);
                sampler.add_pair(cut, trimmer.packed_mates_before_adapter_trimming(), batch.sample);
            }
            Ok::<(), genuma_reads::Error>(())
        })
        .expect("reads");
        let sampled = sampling.take_sketch();
        assert!(sampled.sampled_root_share() == 1.0, "{name}: a smaller genome, so that all k-mers have room");
        let of = |root: RootCounters| {
            let slots = root.counts.into_iter().enumerate().filter(|(_, count)| count[0] > 0);
            slots.map(move |(slot, count)| (root.root << 4 | slot as u64, count[0].min(255) as u8))
        };
        let copies = sampled.molecule_counters_with_shared_starts().filter(|(_, copies)| copies[0] > 0);
        let copies = copies.map(|(root, copies)| (root.root, copies[0])).collect();
        Set { name: name.to_owned(), kmers: sampled.root_counters_in_molecules().flat_map(of).collect(), copies }
    }

    fn has(&self, root: u64) -> bool {
        let at = self.kmers.partition_point(|kmer| kmer.0 >> 4 < root);
        self.kmers.get(at).is_some_and(|kmer| kmer.0 >> 4 == root)
    }
}

/// Comparisons of the reads of two samples, two by two, by depth in both samples together.
fn draws(normal: &Set, tumour: &Set) -> Vec<ReadComparisonCounts> {
    let mut all = vec![ReadComparisonCounts::default(); MIN_DEPTH_WITHOUT_READ_COMPARISON as usize];
    let (mut a, mut b) = (normal.kmers.iter().peekable(), tumour.kmers.iter().peekable());
    while let Some(key) = [a.peek(), b.peek()].into_iter().flatten().map(|kmer| kmer.0 >> 4).min() {
        let mut root = RootCounters { root: key, counts: [[0; 2]; 16] };
        for (s, side) in [&mut a, &mut b].into_iter().enumerate() {
            while let Some((key, count)) = side.next_if(|kmer| kmer.0 >> 4 == key) {
                root.counts[(key & 15) as usize][s] = u32::from(*count);
            }
        }
        let (depth, mut own) = ReadComparisonCounts::compare_reads_at_root(
            &root,
            [normal, tumour].map(|set| set.copies.get(&key).copied().unwrap_or(0)),
        );
        let is_there = |root: u64| normal.has(root) || tumour.has(root);
        if depth < MIN_DEPTH_WITHOUT_READ_COMPARISON
            && own.differing != [0; 3]
            && has_near_copy(key, SAMPLE.k - 2, is_there)
        {
            own.differing = [0; 3];
        }
        if let Some(sum) = all.get_mut(depth as usize) {
            sum.merge_comparison_counts(&own);
        }
    }
    all
}

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut groups = names.split(|name| name == "--");
    let [first, second] = [groups.next(), groups.next()].map(|names| names.expect("FIRST... -- SECOND..."));
    let second: Vec<Set> = second.iter().map(|name| Set::read(name)).collect();
    for name in first {
        let one = Set::read(name);
        for other in &second {
            let draws = draws(other, &one);
            let IdentityResult { relation, excess_mismatch_rate: excess, sites, .. } =
                IdentityResult::decide_from_read_comparisons(&draws, 2.0);
            println!(
                "{}\t{}\t{relation:?}\t{:.2e}\t{:.2e}\t{:.2e}\t{sites}",
                one.name, other.name, excess.value, excess.low, excess.high
            );
        }
    }
}
