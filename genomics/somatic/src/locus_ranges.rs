//! Stores recruited pairs in the work folder, in disk buckets by the position of their contigs, and processes as many
//! loci at a time (a locus range) as fit in memory.
//!
//! A pair that is recruited for contigs of several buckets is in each of these buckets, with the contigs of that
//! bucket. Reads are placed on their contigs once. If there are several locus ranges, the placements are stored too.
//! The results do not depend on the ranges.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_work::disk_buckets::{DiskBucketLocation, DiskBuckets};
use genuma_work::parallel::{map_in_order, try_map_in_order};
use genuma_work::spill::{Error, LocalCopyOfObjectRange};
use serde::{Deserialize, Serialize};

use crate::aligned_contig::AlignedContig;
use crate::change::Change;
use crate::change::change_sort_position;
use crate::kmer_lookup::KmerLookupBuffers;
use crate::locus::Locus;
use crate::read_placement::{self, PlacedRead};
use crate::recruit::{LocusDepths, RecruitedPair, RecruitingKmerIndex};

/// Description of the bucket files in error messages.
const FILE_DESCRIPTION: &str = "recruited reads'";
/// Minimum number of contigs in a bucket. A contig of extreme depth has some ten thousand pairs.
const MIN_CONTIGS_PER_BUCKET: usize = 16;
/// Maximum number of buckets in which recruited pairs are stored on disk.
const MAX_BUCKETS: usize = 1024;
/// Approximate memory of a pair in bytes, without its bases, qualities and name: seven vectors, placements, and
/// evidence.
const BYTES_PER_PAIR: u64 = 400;
/// Number of low bits of a pair's ID that number the pairs of one shard; the higher bits are the number of the shard.
const PAIR_NUMBER_BITS: u32 = 44;

/// Approximate memory that a recruited pair takes, in bytes.
pub(crate) fn estimate_pair_bytes(pair: &RecruitedPair) -> u64 {
    let letters: usize = pair.mates.iter().map(|mate| mate.seq.len() + mate.qual.len()).sum();
    BYTES_PER_PAIR + (pair.name.len() + letters + 4 * pair.contigs.len()) as u64
}

/// Disk buckets to which recruited pairs are added.
#[derive(Debug)]
pub(crate) struct RecruitedPairBuckets {
    /// Indices of the contigs, sorted by position.
    order: Vec<u32>,
    /// For each bucket the end of its contigs in `order`.
    bucket_ends: Vec<u32>,
    /// For each contig the number of its bucket.
    bucket_of: Vec<u32>,
    buckets: DiskBuckets,
    next_pair_id: AtomicU64,
}

/// Result of recruiting: where the recruited pairs are on disk, and how loci were downsampled.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecruitedPairsOnDisk {
    order: Vec<u32>,
    bucket_ends: Vec<u32>,
    buckets: Vec<DiskBucketLocation>,
    bucket_memory_bytes: Vec<u64>,
    /// Number of recruited pairs in all buckets; a pair in several buckets counts once.
    pub num_pairs: u64,
    /// For each contig the downsampling factors of the normal and of the deepest tumour.
    pub downsampling_factors: Vec<[u32; 2]>,
}

impl RecruitedPairBuckets {
    /// Creates empty buckets for `contigs` in a new file at `path`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_buckets(contigs: &[AlignedContig], path: &Path) -> Result<RecruitedPairBuckets, Error> {
        RecruitedPairBuckets::create_buckets_for_shard(0, contigs, path)
    }

    /// Creates the buckets for shard number `shard` of the reads. The IDs of the pairs contain this number, so they are
    /// unique over all shards.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_buckets_for_shard(
        shard: u32,
        contigs: &[AlignedContig],
        path: &Path,
    ) -> Result<RecruitedPairBuckets, Error> {
        let mut order: Vec<u32> = (0..contigs.len() as u32).collect();
        order.sort_by_key(|&c| (contigs[c as usize].changes.first().map(|f| change_sort_position(&f.change)), c));
        let number = contigs.len().div_ceil(MIN_CONTIGS_PER_BUCKET).clamp(1, MAX_BUCKETS);
        let ends: Vec<u32> = (1..=number).map(|i| (contigs.len() * i / number) as u32).collect();
        let mut shelf_of = vec![0; contigs.len()];
        let mut start = 0;
        for (bucket, &end) in (0..).zip(&ends) {
            order[start..end as usize].iter().for_each(|&c| shelf_of[c as usize] = bucket);
            start = end as usize;
        }
        let buckets = DiskBuckets::create(FILE_DESCRIPTION, path, number)?;
        let next = AtomicU64::new(u64::from(shard) << PAIR_NUMBER_BITS);
        Ok(RecruitedPairBuckets { order, bucket_ends: ends, bucket_of: shelf_of, buckets, next_pair_id: next })
    }

    /// Writes all pairs of a shard to its file and returns its disk buckets.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush_shard_buckets(self) -> Result<Vec<DiskBucketLocation>, Error> {
        self.buckets.finish_writing()
    }

    /// Number of buckets into which the recruited pairs are divided by the position of their contigs.
    pub fn num_buckets(&self) -> usize {
        self.buckets.num_buckets()
    }

    /// Opens the disk buckets of a shard in an object, for [`RecruitedPairBuckets::merge_and_downsample_shards`].
    ///
    /// # Errors
    /// The object cannot be opened.
    pub fn open_shard_buckets(
        file: &LocalCopyOfObjectRange<'_>,
        buckets: Vec<DiskBucketLocation>,
    ) -> Result<DiskBuckets, Error> {
        DiskBuckets::open_object_copy(FILE_DESCRIPTION, file, buckets)
    }

    /// Adds a pair to the buckets of its contigs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_pair(&self, mut pair: RecruitedPair) -> Result<(), Error> {
        pair.id = self.next_pair_id.fetch_add(1, Relaxed);
        let mut buckets: Vec<u32> = pair.contigs.iter().map(|&c| self.bucket_of[c as usize]).collect();
        buckets.sort_unstable();
        buckets.dedup();
        buckets.into_iter().try_for_each(|bucket| self.buckets.push_value(bucket as usize, &pair))
    }

    /// Merges the pairs of `shards` into these buckets, downsamples loci of extreme depth, and sorts each bucket.
    ///
    /// # Errors
    /// The file cannot be read or written, or a shard's file cannot be read.
    pub fn merge_and_downsample_shards(
        self,
        shards: &[DiskBuckets],
        index: &RecruitingKmerIndex,
        depths: &LocusDepths,
        threads: usize,
    ) -> Result<RecruitedPairsOnDisk, Error> {
        let RecruitedPairBuckets { order, bucket_ends: ends, bucket_of: shelf_of, buckets, .. } = self;
        let are_all_kept = depths.are_all_pairs_kept();
        let settle = |(scratch, found): &mut _, bucket: usize| {
            let mut pairs: Vec<RecruitedPair> = buckets.take_bucket(bucket)?;
            for shard in shards {
                pairs.append(&mut shard.read_bucket(bucket)?);
            }
            let mut first = 0;
            for pair in &mut pairs {
                if !are_all_kept {
                    index.drop_pair_at_downsampled_contigs(pair, depths, scratch, found);
                }
                let buckets = || pair.contigs.iter().map(|&c| shelf_of[c as usize] as usize);
                first += u64::from(buckets().min() == Some(bucket));
                pair.contigs.retain(|&c| shelf_of[c as usize] as usize == bucket);
            }
            pairs.retain(|pair| !pair.contigs.is_empty());
            pairs.sort_unstable();
            pairs.iter().try_for_each(|pair| buckets.push_value(bucket, pair))?;
            Ok((first, pairs.iter().map(estimate_pair_bytes).sum::<u64>()))
        };
        let counts =
            try_map_in_order(buckets.num_buckets(), threads, || (KmerLookupBuffers::default(), Vec::new()), settle)?;
        let (firsts, resident): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
        let (pairs, downsampling_factors) = (firsts.iter().sum(), depths.downsampling_factors());
        Ok(RecruitedPairsOnDisk {
            order,
            bucket_ends: ends,
            buckets: buckets.finish_writing()?,
            bucket_memory_bytes: resident,
            num_pairs: pairs,
            downsampling_factors,
        })
    }
}

/// The recruited pairs of a locus range, in memory.
#[derive(Debug, Default)]
struct PairsInMemory {
    /// The pairs: those of the normal, then those of all tumours, each sorted by name and bases.
    pairs: Vec<RecruitedPair>,
    /// Indices of the contigs of the locus range.
    contigs: Vec<u32>,
}

/// All loci of a call, divided into ranges of which one at a time has its reads in memory.
#[derive(Debug)]
pub struct LocusRanges {
    /// One locus per contig. Only the loci of the current range have their reads.
    loci: Vec<Locus>,
    recruited: RecruitedPairsOnDisk,
    buckets: DiskBuckets,
    /// For each locus range its bucket numbers.
    ranges: Vec<Range<usize>>,
    /// The pairs in memory, if there is only one locus range.
    pairs_in_memory: Option<PairsInMemory>,
    /// For each locus range the placements of its reads, if there are several ranges.
    placements: DiskBuckets,
    threads: usize,
}

impl LocusRanges {
    /// Opens the recruited pairs in the file at `path`, splits the loci into ranges that fit in `memory` bytes, and
    /// places the reads of the samples with `is_placed` on `contigs`.
    ///
    /// # Errors
    /// A file cannot be read or written, or is damaged.
    pub fn open_and_place_reads(
        mut recruited: RecruitedPairsOnDisk,
        path: &Path,
        contigs: Vec<AlignedContig>,
        memory: u64,
        work: &Path,
        threads: usize,
        is_placed: impl Fn(u8) -> bool,
    ) -> Result<LocusRanges, Error> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut taken = 0;
        for (i, &needed) in recruited.bucket_memory_bytes.iter().enumerate() {
            match ranges.last_mut() {
                Some(range) if taken + needed <= memory => range.end += 1,
                _ => {
                    ranges.push(i..i + 1);
                    taken = 0;
                }
            }
            taken += needed;
        }
        let buckets = DiskBuckets::open_for_reading(FILE_DESCRIPTION, path, std::mem::take(&mut recruited.buckets))?;
        let placements = DiskBuckets::create_unnamed(FILE_DESCRIPTION, work, ranges.len());
        let loci = LocusRanges::loci_without_reads(contigs, &recruited);
        let mut all = LocusRanges { loci, recruited, buckets, ranges, pairs_in_memory: None, placements, threads };
        all.place_reads(is_placed)?;
        Ok(all)
    }

    /// Ranges for tests: all loci and the recruited pairs of their reads are in memory.
    #[cfg(test)]
    pub(crate) fn from_pairs_in_memory(loci: Vec<Locus>, pairs: Vec<RecruitedPair>) -> LocusRanges {
        let none = || DiskBuckets::create_unnamed(FILE_DESCRIPTION, Path::new("/"), 0);
        let (order, kept) = ((0..loci.len() as u32).collect(), pairs.len() as u64);
        let recruited = RecruitedPairsOnDisk {
            order,
            bucket_ends: Vec::new(),
            buckets: Vec::new(),
            bucket_memory_bytes: Vec::new(),
            num_pairs: kept,
            downsampling_factors: Vec::new(),
        };
        let resident = Some(PairsInMemory { pairs, contigs: recruited.order.clone() });
        LocusRanges {
            loci,
            recruited,
            buckets: none(),
            ranges: std::iter::once(0..0).collect(),
            pairs_in_memory: resident,
            placements: none(),
            threads: 1,
        }
    }

    fn loci_without_reads(contigs: Vec<AlignedContig>, recruited: &RecruitedPairsOnDisk) -> Vec<Locus> {
        contigs
            .into_iter()
            .zip(&recruited.downsampling_factors)
            .map(|(contig, &downsampling_factors)| Locus::from_contig_without_reads(contig, downsampling_factors))
            .collect()
    }

    /// Replaces the contigs of all loci by as many other contigs, and places all reads on the new contigs.
    ///
    /// # Errors
    /// A file cannot be read or written, or is damaged.
    pub(crate) fn place_reads_on_new_contigs(&mut self, contigs: Vec<AlignedContig>) -> Result<(), Error> {
        self.loci = LocusRanges::loci_without_reads(contigs, &self.recruited);
        self.place_reads(|_| true)
    }

    /// The loci. Only those of the current range have their reads.
    pub fn loci(&self) -> &[Locus] {
        &self.loci
    }

    /// The changes of all loci.
    pub(crate) fn changes_of_all_loci(&self) -> impl Iterator<Item = &Change> {
        self.loci.iter().flat_map(|locus| &locus.contig.changes).map(|found| &found.change)
    }

    /// The loci, for changing them. Only those of the current range have their reads.
    pub(crate) fn loci_mut(&mut self) -> &mut [Locus] {
        &mut self.loci
    }

    fn place_reads(&mut self, is_placed: impl Fn(u8) -> bool) -> Result<(), Error> {
        let several = self.ranges.len() > 1;
        for range in 0..self.ranges.len() {
            let resident = match self.pairs_in_memory.take() {
                Some(resident) => resident,
                None => self.load_range(range)?,
            };
            let PairsInMemory { pairs, contigs } = &resident;
            let members = pairs_by_contig(pairs, contigs, self.loci.len(), &is_placed);
            let (loci, threads) = (&self.loci, self.threads);
            let place = |(): &mut (), i: usize| {
                read_placement::place_reads(&loci[contigs[i] as usize].contig, &members[i], pairs)
            };
            let placements = map_in_order(contigs.len(), threads, || (), place);
            for (&c, recruits) in contigs.iter().zip(placements) {
                self.loci[c as usize].set_placed_reads(recruits, pairs);
            }
            if several {
                self.placements.take_bucket::<Vec<PlacedRead>>(range)?;
                for &c in contigs {
                    let recruits = std::mem::take(&mut self.loci[c as usize].reads);
                    self.placements.push_value(range, &recruits)?;
                }
            } else {
                self.pairs_in_memory = Some(resident);
            }
        }
        Ok(())
    }

    /// Reads the pairs of a locus range from disk, each pair once.
    fn load_range(&self, range: usize) -> Result<PairsInMemory, Error> {
        let buckets = self.ranges[range].clone();
        let ends = &self.recruited.bucket_ends;
        let start = buckets.start.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let contigs = self.recruited.order[start..ends[buckets.end - 1] as usize].to_vec();
        let read = |(): &mut (), i: usize| self.buckets.read_bucket::<RecruitedPair>(buckets.start + i);
        let read = try_map_in_order(buckets.len(), self.threads, || (), read)?;
        let mut pairs: Vec<RecruitedPair> = read.into_iter().flatten().collect();
        // Each bucket is sorted already, which makes this sort fast.
        pairs.sort();
        pairs.dedup_by(|again, kept| {
            let same = again.id == kept.id;
            if same {
                kept.contigs.append(&mut again.contigs);
            }
            same
        });
        Ok(PairsInMemory { pairs, contigs })
    }

    /// Calls `each` for every locus range with all loci (those of the range have their reads), the indices of the loci
    /// of the range, and the pairs of the range, to which the reads refer.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is damaged, or the first error of `each`.
    pub fn for_each_locus_range<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(&mut [Locus], &[u32], &[RecruitedPair]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(PairsInMemory { pairs, contigs }) = &self.pairs_in_memory {
            return each(&mut self.loci, contigs, pairs);
        }
        for range in 0..self.ranges.len() {
            let PairsInMemory { pairs, contigs } = self.load_range(range)?;
            for (&c, recruits) in contigs.iter().zip(self.placements.read_bucket(range)?) {
                self.loci[c as usize].reads = recruits;
            }
            each(&mut self.loci, &contigs, &pairs)?;
            contigs.iter().for_each(|&c| self.loci[c as usize].reads = Vec::new());
        }
        Ok(())
    }
}

/// For each contig of `contigs` the indices of its pairs of the samples with `is_placed`, ascending. `all` is the
/// number of all contigs.
fn pairs_by_contig(
    pairs: &[RecruitedPair],
    contigs: &[u32],
    all: usize,
    is_placed: impl Fn(u8) -> bool,
) -> Vec<Vec<u32>> {
    let mut at = vec![u32::MAX; all];
    (0..).zip(contigs).for_each(|(i, &c)| at[c as usize] = i);
    let mut members = vec![Vec::new(); contigs.len()];
    for (p, pair) in (0..).zip(pairs).filter(|(_, pair)| is_placed(pair.sample)) {
        pair.contigs.iter().for_each(|&c| members[at[c as usize] as usize].push(p));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_contig::ContigChange;
    use crate::change::Change;
    use crate::recruit::{PairCountsByRecruitingKmer, RecruitingKmers};
    use genuma_reads::dna::reverse_complement;
    use genuma_reads::{Mate, ReadPair};

    fn bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// A contig of 400 bases of the genome with a changed base 200.
    fn contig(genome: &[u8], from: usize) -> AlignedContig {
        let normal = genome[from..from + 400].to_vec();
        let mut seq = normal.clone();
        seq[200] = if seq[200] == b'A' { b'C' } else { b'A' };
        let change =
            Change::Allele { chrom: 0, pos: from + 200, reference: vec![normal[200]], alternative: vec![seq[200]] };
        let finding = ContigChange {
            change,
            contig_range: 200..201,
            left_normal: normal.clone(),
            right_normal: normal,
            right_shift: 0,
            mapq: 60,
        };
        AlignedContig {
            novel: (0..400).map(|at| (170..231).contains(&at)).collect(),
            quality_sums: vec![74; 400],
            assembled: 0..400,
            num_reads: 4,
            changes: vec![finding],
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: Default::default(),
            explanations: Vec::new(),
            seq,
        }
    }

    /// Recruits pairs at every 60th base of the genome, one of the normal and two of the tumour.
    fn recruit_simulated_pairs(genome: &[u8], contigs: &mut Vec<AlignedContig>, path: &Path) -> RecruitedPairsOnDisk {
        let index =
            RecruitingKmerIndex::from_recruiting_kmers(RecruitingKmers::select_recruiting_kmers(contigs, 31, None, 1));
        let seen = PairCountsByRecruitingKmer::zero_counts(&index, 2);
        let shelving = RecruitedPairBuckets::create_buckets(contigs, path).unwrap();
        let (mut looking, mut found) = (KmerLookupBuffers::default(), Vec::new());
        let mut kept = 0;
        for i in (0..59_500).step_by(60) {
            let mates = [genome[i..i + 100].to_vec(), reverse_complement(&genome[i + 300..i + 400])];
            let qual = [b'I'; 100];
            let mate = |m: usize| Mate { seq: &mates[m], qual: &qual };
            for sample in [0, 1, 1] {
                let pair = ReadPair { name: format!("p{i}").leak().as_bytes(), mates: [mate(0), mate(1)] };
                if let Some(pair) = index.recruit_pair(pair, sample, &seen, &mut looking, &mut found) {
                    kept += 1;
                    shelving.add_pair(pair).unwrap();
                }
            }
        }
        let recruited = shelving
            .merge_and_downsample_shards(&[], &index, &index.compute_locus_depths(&seen, contigs.len()), 2)
            .unwrap();
        assert_eq!(recruited.num_pairs, kept);
        recruited
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_memory() {
        // Contigs in no order, some of them adjacent, so that pairs belong to several contigs. Some pairs have equal
        // names and bases.
        let genome = bases(60_000, 9);
        let mut contigs: Vec<AlignedContig> =
            (0..80).map(|i| contig(&genome, (i * 37 % 80) * 700 + i % 2 * 400)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recruit.bins");
        let recruited = recruit_simulated_pairs(&genome, &mut contigs, &path);
        let recruited: Vec<u8> = serde_json::to_vec(&recruited).unwrap();
        let laid = |memory: u64| {
            let recruited = serde_json::from_slice(&recruited).unwrap();
            let mut ranges =
                LocusRanges::open_and_place_reads(recruited, &path, contigs.clone(), memory, folder.path(), 2, |_| {
                    true
                })
                .unwrap();
            let mut all = vec![Vec::new(); contigs.len()];
            let mut seen = Vec::new();
            ranges
                .for_each_locus_range(|loci, here, pairs| {
                    for &c in here {
                        let locus = &loci[c as usize];
                        assert_eq!(locus.num_reads, locus.reads.len());
                        let told = |r: &PlacedRead| {
                            let pair = &pairs[r.pair as usize];
                            (pair.name.clone(), pair.sample, pair.id, r.mate, r.forward, r.offsets)
                        };
                        all[c as usize] = locus.reads.iter().map(told).collect();
                        seen.push(c);
                    }
                    Ok::<(), Error>(())
                })
                .unwrap();
            let counts: Vec<[usize; 2]> = ranges.loci().iter().map(|locus| locus.num_pairs).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..contigs.len() as u32));
            (ranges.ranges.len(), all, counts)
        };
        let (one, all, counts) = laid(1 << 30);
        assert_eq!(one, 1);
        assert!(all.iter().all(|reads| reads.len() > 5));
        assert!(counts.iter().all(|[normal, tumour]| 2 * normal == *tumour && *normal > 1));
        for memory in [400_000, 0] {
            let (several, again, same) = laid(memory);
            assert!(several > 1 && again == all && same == counts, "{memory}: {several}");
        }
    }
}
