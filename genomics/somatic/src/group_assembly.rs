//! Collects labelled pairs, removes duplicates and recurrent errors, groups the pairs and assembles the groups.
//!
//! The pairs are stored in buckets, which are in memory up to the memory budget and else in files of the work folder.
//! They are first distributed to buckets by the first bases of their mates, so that duplicates are in the same bucket,
//! and then by group. Only a few bytes for each k-mer are always in memory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_work::disk_buckets::{DiskBucketLocation, DiskBuckets};
use genuma_work::parallel::try_map_in_order;
use genuma_work::spill::{Error, LocalCopyOfObjectRange};
use genuma_work::spillable_buckets::{MemoryBudget, SpillableBuckets};

use crate::assemble::{self, AssembledContigs};
use crate::candidate_kmer::{CandidateKmer, POOLED_SELECTOR_NUMBER, group_candidates_by_kmer};
use crate::group::{DisjointSets, GroupedPairs, group_pairs};
use crate::labelled_pair::{KmerMoleculeCounts, LabelledPair, keep_best_pair_of_each_molecule, remove_hits_of_errors};
use crate::per_tumour::assemble_pooled_and_per_tumour;

/// Name of the spill file in error messages.
const SPILL_NAME: &str = "labelled reads'";
/// Number of buckets for labelled pairs. For a human genome at a depth of 30, with 10 GB of labelled pairs, a bucket
/// contains 20 MB.
const NUM_BUCKETS: usize = 512;

/// Index of the bucket for a hash value or a group number.
fn bucket_of(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % NUM_BUCKETS
}

/// Parameters for grouping and assembling labelled pairs.
#[derive(Debug)]
pub struct GroupAssemblyParams<'a> {
    /// Candidate k-mers, sorted. A k-mer appears once for each selector that chose it.
    pub candidates: Vec<CandidateKmer>,
    /// Number of tumour samples, at least 1.
    pub num_tumours: usize,
    /// Length of the candidate k-mers.
    pub k: u32,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Memory in bytes for labelled pairs. Further pairs are spilled to the work folder.
    pub memory_bytes: u64,
    /// Folder for pairs that do not fit in memory.
    pub work_dir: &'a Path,
    /// For each traced variant (`--why`), the ranks of its k-mers.
    pub traced_kmers: &'a [HashSet<u32>],
    /// For each tumour, properties of its library and of the normal's library, such as depth, error rate and assay.
    pub libraries: &'a [SamplePairLibraryProperties],
}

/// Collects labelled pairs, then groups them and assembles each group.
#[derive(Debug)]
pub struct GroupAssembler<'a> {
    params: GroupAssemblyParams<'a>,
    memory_budget: MemoryBudget,
    buckets: SpillableBuckets<LabelledPair>,
    /// Files with the labelled pairs of the shards of the reads, in a distributed call.
    shards: Vec<DiskBuckets>,
    num_pairs: AtomicU64,
}

/// Numbers of pairs by selector number: of all tumours together, then of each tumour.
type PairCounts = Vec<u64>;

fn count_by_selector(pairs: &[LabelledPair], tumours: usize) -> PairCounts {
    let mut counts = vec![0; tumours + 1];
    for pair in pairs {
        counts[usize::from(pair.sample)] += 1;
    }
    counts[usize::from(POOLED_SELECTOR_NUMBER)] = pairs.len() as u64;
    counts
}

/// Writes the labelled pairs of a shard of the reads to a file, divided into buckets (distributed call).
#[derive(Debug)]
pub(crate) struct LabelledPairWriter(DiskBuckets);

impl LabelledPairWriter {
    /// Creates the file at `path`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> Result<LabelledPairWriter, Error> {
        Ok(LabelledPairWriter(DiskBuckets::create(SPILL_NAME, path, NUM_BUCKETS)?))
    }

    /// Appends a pair to its bucket.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_pair(&self, pair: &LabelledPair) -> Result<(), Error> {
        self.0.push_value(bucket_of(pair.duplicate_search_hash()), pair)
    }

    /// Flushes the file and returns its buckets.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish_buckets(self) -> Result<Vec<DiskBucketLocation>, Error> {
        self.0.finish_writing()
    }
}

/// Contigs of all groups, with numbers of pairs, groups and skipped items.
#[derive(Debug, Default)]
pub struct GroupAssemblyResult {
    /// Number of labelled pairs.
    pub pairs: u64,
    /// Number of labelled pairs that were removed as duplicates.
    pub duplicates: u64,
    /// Number of k-mer occurrences in labelled pairs that were removed as recurrent errors.
    pub error_kmers: u64,
    /// Number of groups of labelled pairs, including those that gave no contig.
    pub groups: u64,
    /// Number of pairs skipped because their group has too few pairs.
    pub pairs_in_small_groups: u64,
    /// Number of pairs skipped because their group has no branching k-mer.
    pub(crate) pairs_in_unbranched_groups: u64,
    /// Contigs of all groups, in the order of the groups, with counts of skipped stacks and reads.
    pub assembled: AssembledContigs,
    /// For each traced variant (`--why`), its labelled pairs and their groups.
    pub traced: Vec<TracedVariantPairs>,
}

/// Labelled pairs and groups that contain k-mers of a traced variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedVariantPairs {
    /// Number of labelled pairs with k-mers of the variant, without duplicates and recurrent errors.
    pub pairs: usize,
    /// The groups with pairs of the variant: group number, number of pairs of the variant in the group, number of all
    /// pairs in the group.
    pub groups: Vec<(usize, usize, usize)>,
}

/// Result of assembling the groups in one bucket.
struct BucketResult {
    /// Each group, by its smallest k-mer rank, with its contigs.
    groups: Vec<(u32, AssembledContigs)>,
    pairs_in_small_groups: u64,
    pairs_in_unbranched_groups: u64,
    /// For each traced variant, the number of pairs with its k-mers.
    traced_pairs: Vec<usize>,
    /// One entry for each traced variant and group: index of the variant, group number, number of the variant's pairs
    /// in the group, number of all pairs of the group.
    traced_groups: Vec<(usize, u32, usize, usize)>,
}

impl<'a> GroupAssembler<'a> {
    /// Creates an assembler without pairs.
    pub fn empty(params: GroupAssemblyParams<'a>) -> GroupAssembler<'a> {
        let memory_budget = MemoryBudget::with_available_bytes(params.memory_bytes);
        let buckets = SpillableBuckets::new(SPILL_NAME, params.work_dir, NUM_BUCKETS, &memory_budget);
        GroupAssembler { params, memory_budget, buckets, shards: Vec::new(), num_pairs: AtomicU64::new(0) }
    }

    /// Adds the labelled pairs of a shard of the reads from an object in the run store. Returns false if the object has
    /// another number of buckets.
    ///
    /// # Errors
    /// The object cannot be opened.
    pub(crate) fn add_labelled_pairs_of_shard(
        &mut self,
        file: &LocalCopyOfObjectRange<'_>,
        buckets: Vec<DiskBucketLocation>,
    ) -> Result<bool, Error> {
        if buckets.len() != NUM_BUCKETS {
            return Ok(false);
        }
        *self.num_pairs.get_mut() += buckets.iter().map(|shelf| shelf.num_values).sum::<u64>();
        self.shards.push(DiskBuckets::open_object_copy(SPILL_NAME, file, buckets)?);
        Ok(true)
    }

    /// Adds a labelled pair.
    ///
    /// # Errors
    /// The work folder cannot be written to.
    pub fn add_pair(&self, pair: LabelledPair) -> Result<(), Error> {
        self.num_pairs.fetch_add(1, Relaxed);
        put_pair(&self.buckets, bucket_of(pair.duplicate_search_hash()), pair)
    }

    /// Calls `each` with the pairs of every bucket, in parallel, and returns the results in the order of the buckets.
    fn for_each_bucket<T: Send>(
        &self,
        each: impl Fn(Vec<LabelledPair>, usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let take = |(): &mut (), bucket: usize| each(self.buckets.take_bucket(bucket)?, bucket);
        try_map_in_order(self.buckets.num_buckets(), self.params.threads, || (), take)
    }

    /// Removes duplicates and recurrent errors, groups the pairs and assembles all groups.
    ///
    /// # Errors
    /// The work folder cannot be written to or read.
    pub fn group_and_assemble_pairs(mut self) -> Result<GroupAssemblyResult, Error> {
        let candidates = std::mem::take(&mut self.params.candidates);
        let GroupAssemblyParams {
            num_tumours: tumours,
            k,
            threads,
            work_dir: work,
            traced_kmers: traced,
            libraries,
            ..
        } = self.params;
        let fragment_ends = SamplePairLibraryProperties::random_or_fixed_ends_by_sample(libraries);
        let error_rates = SamplePairLibraryProperties::pooled_then_tumour_error_rates(libraries);
        let pairs = self.num_pairs.load(Relaxed);
        let put_back = |pairs: Vec<LabelledPair>, bucket: usize| {
            pairs.into_iter().try_for_each(|pair| put_pair(&self.buckets, bucket, pair))
        };

        let kmers = group_candidates_by_kmer(&candidates).count();
        let molecule_counts = KmerMoleculeCounts::zero_counts(kmers, tumours);
        let counts = self.for_each_bucket(|mut all, bucket| {
            for shard in &self.shards {
                all.append(&mut shard.read_bucket(bucket)?);
            }
            let before = count_by_selector(&all, tumours);
            let molecules = keep_best_pair_of_each_molecule(all, &fragment_ends);
            molecule_counts.count_kmers_of_pairs(&molecules);
            let after = count_by_selector(&molecules, tumours);
            put_back(molecules, bucket).map(|()| [before, after])
        })?;
        let sum = |at: usize, rule: usize| counts.iter().map(|bucket| bucket[at][rule]).sum::<u64>();
        let shares: Vec<f64> = (0..=tumours).map(|rule| sum(1, rule) as f64 / sum(0, rule).max(1) as f64).collect();
        let molecules = sum(1, POOLED_SELECTOR_NUMBER.into());
        let branching = molecule_counts.confirm_branching_kmers(&candidates, &shares, &error_rates);

        let sets = DisjointSets::create_singleton_sets(kmers);
        // For a large genome the candidates take about 1 GB, which the contigs will need.
        drop(candidates);
        let errors = self.for_each_bucket(|mut pairs, bucket| {
            let errors = remove_hits_of_errors(&mut pairs, &molecule_counts, &branching, k);
            sets.join_kmers_of_pairs(&pairs);
            put_back(pairs, bucket).map(|()| errors)
        })?;
        drop(molecule_counts);

        let groups = SpillableBuckets::new(SPILL_NAME, work, NUM_BUCKETS, &self.memory_budget);
        self.for_each_bucket(|pairs, _| {
            pairs.into_iter().try_for_each(|pair| match sets.group_of_pair(&pair) {
                Some(group) => put_pair(&groups, bucket_of(group.into()), pair),
                None => Ok(()),
            })
        })?;
        drop(self);

        let result = |(): &mut (), bucket: usize| {
            let assemble = |group: &[u32], pairs: &[LabelledPair]| {
                assemble_pooled_and_per_tumour(group, pairs, &branching, tumours, k)
            };
            Ok(assemble_bucket(groups.take_bucket(bucket)?, &sets, &branching, traced, assemble))
        };
        let results: Vec<BucketResult> = try_map_in_order(groups.num_buckets(), threads, || (), result)?;
        let copies = pairs - molecules;
        let gathered = GroupAssemblyResult {
            pairs,
            duplicates: copies,
            error_kmers: errors.iter().sum(),
            ..GroupAssemblyResult::default()
        };
        Ok(gathered.add_bucket_results(results, traced.len()))
    }
}

impl GroupAssemblyResult {
    /// Adds the results of all buckets to this result; `traced` is the number of traced variants.
    fn add_bucket_results(mut self, results: Vec<BucketResult>, traced: usize) -> GroupAssemblyResult {
        self.traced.resize(traced, TracedVariantPairs::default());
        let (mut groups, mut traced_groups) = (Vec::new(), Vec::new());
        for mut result in results {
            self.pairs_in_small_groups += result.pairs_in_small_groups;
            self.pairs_in_unbranched_groups += result.pairs_in_unbranched_groups;
            self.traced.iter_mut().zip(result.traced_pairs).for_each(|(all, num_traced)| all.pairs += num_traced);
            groups.append(&mut result.groups);
            traced_groups.append(&mut result.traced_groups);
        }
        groups.sort_unstable_by_key(|(name, _)| *name);
        traced_groups.sort_unstable();
        for (variant, name, num_traced, of) in traced_groups {
            let number = groups.partition_point(|group| group.0 < name);
            self.traced[variant].groups.push((number, num_traced, of));
        }
        self.groups = groups.len() as u64;
        for (_, one) in groups {
            self.assembled.add_group_result(one);
        }
        self
    }
}

fn put_pair(buckets: &SpillableBuckets<LabelledPair>, bucket: usize, pair: LabelledPair) -> Result<(), Error> {
    let bytes = pair.memory_bytes();
    buckets.push_value(bucket, pair, bytes)
}

/// Groups and assembles the pairs of one bucket.
fn assemble_bucket(
    mut pairs: Vec<LabelledPair>,
    sets: &DisjointSets,
    branching: &[bool],
    traced: &[HashSet<u32>],
    assemble: impl Fn(&[u32], &[LabelledPair]) -> AssembledContigs,
) -> BucketResult {
    pairs.sort_unstable_by(LabelledPair::compare_by_name_and_bases);
    let GroupedPairs { groups, pairs_in_small_groups: lone, pairs_in_unbranched_groups: not_parting } =
        group_pairs(&pairs, sets, branching, assemble::MIN_CONTIG_PAIRS);
    let has_traced_kmer = |pair: u32, ranks: &HashSet<u32>| {
        pairs[pair as usize].hits.iter().flatten().any(|hit| ranks.contains(&hit.rank))
    };
    let carrying = |ranks: &HashSet<u32>| (0..pairs.len() as u32).filter(|&pair| has_traced_kmer(pair, ranks)).count();
    let carrying = traced.iter().map(carrying).collect();
    let mut result = BucketResult {
        groups: Vec::with_capacity(groups.len()),
        pairs_in_small_groups: lone,
        pairs_in_unbranched_groups: not_parting,
        traced_pairs: carrying,
        traced_groups: Vec::new(),
    };
    for group in groups {
        let Some(name) = group.first().and_then(|&pair| sets.group_of_pair(&pairs[pair as usize])) else { continue };
        for (i, ranks) in traced.iter().enumerate() {
            let num_traced = group.iter().filter(|&&pair| has_traced_kmer(pair, ranks)).count();
            if num_traced > 0 {
                result.traced_groups.push((i, name, num_traced, group.len()));
            }
        }
        result.groups.push((name, assemble(&group, &pairs)));
    }
    result
}
