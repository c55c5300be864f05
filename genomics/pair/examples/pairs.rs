//! Compares read sets of shallow samples each with each, as `genuma check` compares two, without reading any twice: what bench/pairs.sh counts.
//!
//! usage: pairs FIRST... -- SECOND...   where each is the folder and the name of a sample, such as pair/tumor
//! Prints a line a pair: both names, what is said, the excess and its interval.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genuma_kmers::RootCounters;
use genuma_pair::identity::Identity;
use genuma_pair::roots::{DRAWN, Draws, has_copies};
use genuma_pair::sampled::{SampleParams, Sampling};
use genuma_reads::{Lane, LaneFiles, Meter, NORMAL, Trimmer, for_each_batch};

/// What `genuma check` samples.
const SAMPLE: SampleParams = SampleParams { k: 31, quality: [20, 30], few: 8_000_000, most: 32_000_000 };

/// k-mers of a sample, each root with its slot, and how often it has each.
struct Set {
    name: String,
    kmers: Vec<(u64, u8)>,
    /// Roots at which molecules begin alike, and how many.
    copies: BTreeMap<u64, u32>,
}

impl Set {
    fn read(name: &str) -> Set {
        let file = |mate: u8| PathBuf::from(format!("{name}_{mate}.fq.gz"));
        assert!(Path::exists(&file(1)), "no {}", file(1).display());
        let lanes = [Lane::whole(NORMAL, LaneFiles::Pair(file(1), file(2)))];
        let sampling = Sampling::new(SAMPLE);
        let start = || (Trimmer::default(), sampling.sampler());
        for_each_batch(&lanes, 1, &Meter::default(), start, |(trimmer, sampler), batch| {
            for raw in batch.iter() {
                let cut = trimmer.trim(raw);
                sampler.see(cut, trimmer.packed(), batch.sample);
            }
            Ok::<(), genuma_reads::Error>(())
        })
        .expect("reads");
        let sampled = sampling.finish();
        assert!(sampled.share() == 1.0, "{name}: a smaller genome, so that all k-mers have room");
        let of = |root: RootCounters| {
            let slots = root.counts.into_iter().enumerate().filter(|(_, count)| count[0] > 0);
            slots.map(move |(slot, count)| (root.stem << 4 | slot as u64, count[0].min(255) as u8))
        };
        let copies = sampled.roots_and_copies().filter(|(_, copies)| copies[0] > 0);
        let copies = copies.map(|(root, copies)| (root.stem, copies[0])).collect();
        Set { name: name.to_owned(), kmers: sampled.roots().flat_map(of).collect(), copies }
    }

    fn has(&self, root: u64) -> bool {
        let at = self.kmers.partition_point(|kmer| kmer.0 >> 4 < root);
        self.kmers.get(at).is_some_and(|kmer| kmer.0 >> 4 == root)
    }
}

/// The draws of two samples, by occurrences in both.
fn draws(normal: &Set, tumour: &Set) -> Vec<Draws> {
    let mut all = vec![Draws::default(); DRAWN as usize];
    let (mut a, mut b) = (normal.kmers.iter().peekable(), tumour.kmers.iter().peekable());
    while let Some(stem) = [a.peek(), b.peek()].into_iter().flatten().map(|kmer| kmer.0 >> 4).min() {
        let mut root = RootCounters { stem, counts: [[0; 2]; 16] };
        for (s, side) in [&mut a, &mut b].into_iter().enumerate() {
            while let Some((key, count)) = side.next_if(|kmer| kmer.0 >> 4 == stem) {
                root.counts[(key & 15) as usize][s] = u32::from(*count);
            }
        }
        let (depth, mut own) =
            Draws::at(&root, [normal, tumour].map(|set| set.copies.get(&stem).copied().unwrap_or(0)));
        let is_there = |root: u64| normal.has(root) || tumour.has(root);
        if depth < DRAWN && own.differ != [0; 3] && has_copies(stem, SAMPLE.k - 2, is_there) {
            own.differ = [0; 3];
        }
        if let Some(sum) = all.get_mut(depth as usize) {
            sum.add(&own);
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
            let Identity { relation, excess, sites, .. } = Identity::shallow(&draws, 2.0);
            println!(
                "{}\t{}\t{relation:?}\t{:.2e}\t{:.2e}\t{:.2e}\t{sites}",
                one.name, other.name, excess.value, excess.low, excess.high
            );
        }
    }
}
