//! Recruiting, the third pass over the reads: collects the pairs of all samples that overlap a change, whichever allele
//! they have.
//!
//! Three kinds of k-mers recruit pairs for a contig: k-mers next to the novel sequence, which both alleles have; k-mers
//! of the novel sequence, which only the tumour has; and k-mers across the position of the change without the change,
//! which the normal has. Only unique k-mers are used, which occur once in the genome, or, with changed bases, not at
//! all; k-mers with a few copies are used for a contig without unique ones. Copies are counted in the genome, not in
//! the reads, so amplified loci keep their reads. In a repeat, where no k-mer near the change is unique, k-mers farther
//! away are used: they identify a pair by one mate, and the other mate gives the evidence.
//!
//! At a locus of extreme depth a half of the pairs, a quarter, an eighth and so on is kept. A hash of the pair's name
//! decides, so the choice does not depend on the order of the reads.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use genuma_kmers::encode::kmers;
use genuma_reads::fasta::Reference;
use genuma_reads::{NORMAL_SAMPLE, ReadPair};
use genuma_work::parallel::map_in_order;
use serde::{Deserialize, Serialize};

use crate::aligned_contig::AlignedContig;
use crate::kmer_lookup::{KmerHit, KmerLookup, KmerLookupBuffers};
use crate::molecule::{PairForDuplicateSearch, hash_bytes, umi_key_of_name};
use crate::packed::OwnedRead;
use crate::unchanged_allele_ends::UnchangedAlleleEnds;

/// Maximum distance in bases at which a recruiting k-mer counts as near the changed and novel bases of its contig.
/// Farther ones, up to [`FAR_BASES`], are used only on a side with fewer than [`MIN_UNIQUE_KMERS_PER_SIDE`] unique near
/// ones.
const NEAR_BASES: usize = 40;
/// Distance in bases between recruiting k-mers near the change; a read across the change has several of them.
const NEAR_STRIDE: usize = 4;
/// Maximum distance in bases of any recruiting k-mer from the changed and novel bases of its contig.
const FAR_BASES: usize = 450;
/// Distance in bases between recruiting k-mers that are more than [`NEAR_BASES`] away from the change.
const FAR_STRIDE: usize = 16;
/// Number of unique k-mers beside one end of a change that are enough. With fewer, k-mers farther away on that side
/// are used too; with fewer on both sides, those with changed bases are not used.
const MIN_UNIQUE_KMERS_PER_SIDE: usize = 3;
/// Number of pairs of a sample with the same k-mer from which a locus is downsampled.
const DOWNSAMPLING_MIN_PAIRS: u32 = 4096;
/// Maximum number of contigs for which one k-mer recruits pairs. At extreme depth recurrent errors make thousands of
/// contigs at one position, and each of them would be compared with all pairs there. Chosen: more than the number of
/// changes at a position.
const MAX_CONTIGS_PER_KMER: usize = 64;
/// Number of contigs in one unit of parallel work.
const CONTIGS_PER_BLOCK: usize = 256;
/// Maximum number of copies of a recruiting k-mer in the genome. If all k-mers of a contig without changed bases have
/// more copies, the contig is left out: its reads would fit all copies. Copies are counted up to this number plus 1.
const MAX_KMER_COPIES: u8 = 32;

/// A recruiting k-mer (its rank) that occurs on a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct KmerOccurrence {
    rank: u32,
    contig: u32,
}

/// The recruiting k-mers of all contigs, and which contigs contain each of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecruitingKmers {
    /// Length of the k-mers.
    k: u32,
    /// Distinct k-mers, ascending. The index of a k-mer is its rank.
    kmers: Vec<u64>,
    /// Occurrences of the k-mers on contigs, sorted by k-mer rank.
    occurrences: Vec<KmerOccurrence>,
    /// For each k-mer rank the index of its first occurrence in `occurrences`; then the number of all occurrences.
    starts: Vec<u32>,
    /// Whether the copies of the k-mers in the genome were counted, so that all recruiting k-mers are unique, except
    /// those of contigs without a unique one. False without a reference.
    are_unique: bool,
    /// Number of contigs without a unique k-mer, including those that were left out.
    pub(crate) contigs_without_unique_kmer: u64,
    /// Indices of the contigs that were left out, ascending, in the list given to
    /// [`RecruitingKmers::select_recruiting_kmers`]: contigs in repeats with so many copies that all of their k-mers
    /// are frequent.
    pub omitted_repeat_contigs: Vec<u32>,
    /// Number of contigs without recruiting k-mers because too many contigs with more reads have the same k-mers.
    pub(crate) num_crowded_contigs: u64,
}

/// Index with which passes over the reads look up recruiting k-mers.
#[derive(Debug)]
pub struct RecruitingKmerIndex {
    lookup: KmerLookup,
    /// Occurrences of the k-mers on contigs, sorted by k-mer rank.
    occurrences: Vec<KmerOccurrence>,
    /// For each k-mer rank the index of its first occurrence in `occurrences`; then the number of all occurrences.
    starts: Vec<u32>,
    /// Whether the copies of the k-mers in the genome were counted: see [`RecruitingKmers`].
    are_unique: bool,
}

/// Number of pairs with each recruiting k-mer in each sample. All threads count into it.
#[derive(Debug)]
pub struct PairCountsByRecruitingKmer {
    num_samples: usize,
    /// Counts by k-mer rank, then by sample.
    counts: Vec<AtomicU32>,
}

impl PairCountsByRecruitingKmer {
    /// Counts of 0 for each recruiting k-mer of `index` in each of `samples` samples.
    pub fn zero_counts(index: &RecruitingKmerIndex, samples: usize) -> PairCountsByRecruitingKmer {
        let kmers = index.starts.len().saturating_sub(1);
        PairCountsByRecruitingKmer {
            num_samples: samples,
            counts: (0..kmers * samples).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The counts by k-mer rank, then by sample. Must not be called while other threads count.
    pub fn counts_by_rank_and_sample(&self) -> Vec<u32> {
        self.counts.iter().map(|pair_counts| pair_counts.load(Relaxed)).collect()
    }

    /// Adds the counts of the same k-mers from another shard. Returns false if the numbers of counts differ; the sums
    /// are then unusable.
    pub fn merge_shard_counts(&self, counts: &[u32]) -> bool {
        for (pair_counts, &n) in self.counts.iter().zip(counts) {
            pair_counts.fetch_add(n, Relaxed);
        }
        self.counts.len() == counts.len()
    }

    /// Increments the count of a k-mer in a sample and returns the count before.
    fn increment(&self, rank: u32, sample: u8) -> u32 {
        self.counts[rank as usize * self.num_samples + usize::from(sample)].fetch_add(1, Relaxed)
    }
}

/// A read pair that was recruited for one or more contigs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecruitedPair {
    /// Number of the sample that the pair is from: 0 for the normal, 1 and up for tumours.
    pub sample: u8,
    /// Name of the template (QNAME), without `/1` and `/2`.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Read 1 and read 2, trimmed.
    pub mates: [OwnedRead; 2],
    /// ID of the pair, unique within the call; a pair in several disk buckets has one ID.
    pub id: u64,
    /// Indices of the contigs for which the pair was recruited.
    pub contigs: Vec<u32>,
}

impl RecruitedPair {
    /// Sort key: the normal's pairs first, then all tumours' pairs by name and bases, so that the order of the
    /// tumours has no effect.
    fn sort_key(&self) -> impl Ord + '_ {
        let RecruitedPair { sample, name, mates, id, contigs } = self;
        (*sample != NORMAL_SAMPLE, name, mates, *sample, *id, contigs)
    }
}

impl Ord for RecruitedPair {
    fn cmp(&self, other: &RecruitedPair) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for RecruitedPair {
    fn partial_cmp(&self, other: &RecruitedPair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PairForDuplicateSearch for RecruitedPair {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        self.mates.each_ref().map(|mate| &mate.seq[..])
    }

    fn umi_key(&self) -> u64 {
        umi_key_of_name(&self.name)
    }
}

/// Depths at all recruiting k-mers and contigs, for downsampling; known after all reads were counted.
#[derive(Debug)]
pub struct LocusDepths {
    num_samples: usize,
    /// Number of pairs with each recruiting k-mer, by k-mer rank, then by sample.
    kmer_depths: Vec<u32>,
    /// Number of pairs at each contig, by contig, then by sample.
    contig_depths: Vec<u32>,
}

impl LocusDepths {
    /// Whether downsampling drops no pair at any locus.
    pub fn are_all_pairs_kept(&self) -> bool {
        // The depth of a contig is that of one of its k-mers.
        self.kmer_depths.iter().all(|&pairs| downsampling_level(pairs) == 0)
    }

    /// For each contig the downsampling factors of the normal and of the deepest tumour: a factor of 4 means that one
    /// pair in four is kept.
    pub fn downsampling_factors(&self) -> Vec<[u32; 2]> {
        let of_contig = |depth: &[u32]| {
            let (normal, tumours) = depth.split_at(1);
            [normal, tumours].map(|of| 1 << of.iter().map(|&n| downsampling_level(n)).max().unwrap_or(0))
        };
        self.contig_depths.chunks(self.num_samples).map(of_contig).collect()
    }
}

/// A k-mer that may recruit pairs for a contig.
struct RecruitingKmerCandidate {
    kmer: u64,
    /// Distance in bases of the k-mer from the changed and novel bases, plus 1; 0 if it is at most [`NEAR_BASES`] away.
    distance_bases: u32,
    /// Whether the middle of the k-mer is before the middle of the changed range.
    is_before_change: bool,
    /// Whether the k-mer contains changed bases. Such a k-mer must not occur in the genome, otherwise it belongs to
    /// another locus.
    has_changed_bases: bool,
}

/// The recruiting k-mers of one contig.
#[derive(Clone)]
struct SelectedKmers {
    kmers: Vec<u64>,
    /// Whether the contig has candidates for recruiting k-mers but none of them is unique.
    has_no_unique_kmer: bool,
}

impl SelectedKmers {
    /// Selects the recruiting k-mers among the candidates of one contig. `copies` returns the number of occurrences of
    /// a candidate in the genome, or `None` without a reference.
    fn select(
        own: &[RecruitingKmerCandidate],
        copies: impl Fn(&RecruitingKmerCandidate) -> Option<u8>,
    ) -> SelectedKmers {
        // Changed k-mers must not occur in the genome, the others once.
        let fits =
            |c: &RecruitingKmerCandidate| copies(c).is_none_or(|copies| copies == u8::from(!c.has_changed_bases));
        let (mut chosen, mut shared): (Vec<&RecruitingKmerCandidate>, Vec<&RecruitingKmerCandidate>) =
            own.iter().filter(|c| c.distance_bases == 0 && fits(c)).partition(|c| c.has_changed_bases);
        let beside = |before: bool| shared.iter().filter(|c| c.is_before_change == before).count();
        if beside(true) < MIN_UNIQUE_KMERS_PER_SIDE && beside(false) < MIN_UNIQUE_KMERS_PER_SIDE {
            // In a repeat the changed k-mers may be errors in any copy of the repeat: only unique k-mers are
            // reliable.
            chosen.clear();
        }
        for before in [true, false] {
            let beside = shared.iter().filter(|c| c.is_before_change == before).count();
            if beside < MIN_UNIQUE_KMERS_PER_SIDE {
                shared.extend(own.iter().filter(|c| c.distance_bases > 0 && c.is_before_change == before && fits(c)));
            }
        }
        chosen.append(&mut shared);
        let common = chosen.is_empty() && !own.is_empty();
        if common {
            // The repeat is as long as fragments are: its copies are treated together.
            let few = |c: &RecruitingKmerCandidate| copies(c).is_none_or(|copies| copies <= MAX_KMER_COPIES);
            chosen.extend(own.iter().filter(|c| c.distance_bases == 0 && few(c)));
            if chosen.iter().all(|c| c.has_changed_bases) {
                // The k-mers that the copies share are too frequent.
                chosen.clear();
            }
        }
        SelectedKmers { kmers: chosen.iter().map(|c| c.kmer).collect(), has_no_unique_kmer: common }
    }
}

/// Candidates for recruiting k-mers of one contig: near each change, on the contig and on the normal's sequences.
fn candidate_kmers(contig: &AlignedContig, k: u32) -> Vec<RecruitingKmerCandidate> {
    let mut out = Vec::new();
    let novel = (0..contig.novel.len()).filter(|&at| contig.novel[at]);
    let changed = contig.changes.iter().flat_map(|f| [f.contig_range.start, f.contig_range.end]);
    let places: Vec<usize> = novel.chain(changed).collect();
    let (Some(&start), Some(&end)) = (places.iter().min(), places.iter().max()) else { return out };
    let changed: Vec<_> = contig.changes.iter().map(|f| f.contig_range.start..f.contig_range.end).collect();
    let mut take = |seq: &[u8], start: usize, end: usize, changed: &[std::ops::Range<usize>]| {
        let window = start.saturating_sub(FAR_BASES)..(end + FAR_BASES).min(seq.len());
        if window.start >= window.end {
            return;
        }
        for (at, kmer) in kmers(&seq[window.clone()], k).map(|(at, kmer)| (at + window.start, kmer)) {
            let to = at + k as usize;
            let near = at + NEAR_BASES >= start && to <= end + NEAR_BASES;
            let stride = if near { NEAR_STRIDE } else { FAR_STRIDE };
            if at % stride != 0 || kmer.forward == kmer.reverse {
                continue;
            }
            let before = to <= start;
            let off = if before { start - to } else { at.saturating_sub(end) };
            let off = if near { 0 } else { off as u32 + 1 };
            // At a deletion the k-mer has to extend across the position.
            let holds = |r: &std::ops::Range<usize>| at < r.end.max(r.start) && to > r.start;
            out.push(RecruitingKmerCandidate {
                kmer: kmer.canonical(),
                distance_bases: off,
                is_before_change: at + k as usize / 2 < usize::midpoint(start, end),
                has_changed_bases: changed.iter().any(holds),
            });
        }
    };
    take(&contig.seq, start, end, &changed);
    for f in &contig.changes {
        let right = usize::try_from(f.contig_range.end as i32 + f.right_shift).unwrap_or(0);
        // Only k-mers across the change: the others are on the contig too.
        for (normal, from, to) in
            [(&f.left_normal, f.contig_range.start, f.contig_range.start), (&f.right_normal, right, right)]
        {
            let reach = from.saturating_sub(k as usize - 1)..(to + k as usize - 1).min(normal.len());
            if reach.start < reach.end {
                take(&normal[reach.clone()], from - reach.start, to - reach.start, &[]);
            }
        }
        // The depth of a duplication is counted at the ends of the duplicated stretch.
        if let Some(stretch) = UnchangedAlleleEnds::ends_of_tandem_duplication(f, contig) {
            for bases in stretch.bases_around_ends(k as usize - 1) {
                take(bases, bases.len() / 2, bases.len() / 2, &[]);
            }
        }
    }
    out
}

impl RecruitingKmers {
    /// Selects the recruiting k-mers of `contigs`, and removes from the list the contigs that are in repeats with too
    /// many copies. Contigs at crowded positions stay in the list, without recruiting k-mers. `genome` shows which
    /// k-mers are unique; without it all k-mers are used.
    pub fn select_recruiting_kmers(
        contigs: &mut Vec<AlignedContig>,
        k: u32,
        genome: Option<&Reference>,
        threads: usize,
    ) -> RecruitingKmers {
        // For a large genome the candidates need gigabytes. So they are computed twice, and only their k-mers are
        // kept in between.
        let each = |c: usize| candidate_kmers(&contigs[c], k);
        let blocks = contigs.len().div_ceil(CONTIGS_PER_BLOCK);
        let block = |b: usize| b * CONTIGS_PER_BLOCK..((b + 1) * CONTIGS_PER_BLOCK).min(contigs.len());
        let distinct = |(): &mut (), b: usize| {
            let mut kmers: Vec<u64> = block(b).flat_map(each).map(|c| c.kmer).collect();
            kmers.sort_unstable();
            kmers.dedup();
            kmers
        };
        let mut distinct: Vec<u64> = map_in_order(blocks, threads, || (), distinct).concat();
        distinct.sort_unstable();
        distinct.dedup();
        let copies = genome.map(|genome| count_genome_copies(&distinct, k, genome, threads));
        let copies = |c: &RecruitingKmerCandidate| {
            copies.as_ref().map(|copies| copies[distinct.partition_point(|&d| d < c.kmer)])
        };
        let chosen = |(): &mut (), b: usize| -> Vec<SelectedKmers> {
            block(b).map(|c| SelectedKmers::select(&each(c), copies)).collect()
        };
        let chosen = map_in_order(blocks, threads, || (), chosen).concat();
        let mut entries = Vec::new();
        let (mut number, mut nowhere_unique, mut families) = (0, 0, Vec::new());
        for (c, SelectedKmers { kmers, has_no_unique_kmer: common }) in (0..).zip(&chosen) {
            nowhere_unique += u64::from(*common);
            if *common && kmers.is_empty() && genome.is_some() {
                families.push(c);
            } else {
                entries.extend(kmers.iter().map(|&kmer| (kmer, number)));
                number += 1;
            }
        }
        drop((distinct, chosen));
        let mut c = 0;
        contigs.retain(|_| {
            c += 1;
            families.binary_search(&(c - 1)).is_err()
        });
        entries.sort_unstable();
        entries.dedup();
        let crowded = drop_crowded_contigs(&mut entries, contigs);
        let (mut kmers, mut sites, mut starts) = (Vec::new(), Vec::with_capacity(entries.len()), Vec::new());
        for (kmer, contig) in entries {
            if kmers.last() != Some(&kmer) {
                kmers.push(kmer);
                starts.push(sites.len() as u32);
            }
            sites.push(KmerOccurrence { rank: kmers.len() as u32 - 1, contig });
        }
        starts.push(sites.len() as u32);
        RecruitingKmers {
            k,
            kmers,
            occurrences: sites,
            starts,
            are_unique: genome.is_some(),
            contigs_without_unique_kmer: nowhere_unique,
            omitted_repeat_contigs: families,
            num_crowded_contigs: crowded,
        }
    }
}

/// Removes the k-mers of contigs that share a k-mer with [`MAX_CONTIGS_PER_KMER`] contigs with more reads. Returns the
/// number of contigs whose k-mers were removed. `entries` are pairs of k-mer and contig, sorted.
fn drop_crowded_contigs(entries: &mut Vec<(u64, u32)>, contigs: &[AlignedContig]) -> u64 {
    let mut is_crowded = vec![false; contigs.len()];
    for of_kmer in entries.chunk_by(|a, b| a.0 == b.0).filter(|of_kmer| of_kmer.len() > MAX_CONTIGS_PER_KMER) {
        let mut deepest_first: Vec<u32> = of_kmer.iter().map(|&(_, contig)| contig).collect();
        deepest_first.sort_unstable_by_key(|&c| (std::cmp::Reverse(contigs[c as usize].num_reads), c));
        deepest_first[MAX_CONTIGS_PER_KMER..].iter().for_each(|&c| is_crowded[c as usize] = true);
    }
    entries.retain(|&(_, contig)| !is_crowded[contig as usize]);
    is_crowded.into_iter().filter(|&crowded| crowded).count() as u64
}

impl RecruitingKmerIndex {
    /// Builds the index with which passes over the reads look up recruiting k-mers.
    pub fn from_recruiting_kmers(recruiting_kmers: RecruitingKmers) -> RecruitingKmerIndex {
        let RecruitingKmers { k, kmers, occurrences: sites, starts, are_unique: unique, .. } = recruiting_kmers;
        RecruitingKmerIndex {
            lookup: KmerLookup::from_kmer_iter(k, kmers.into_iter()),
            occurrences: sites,
            starts,
            are_unique: unique,
        }
    }

    /// Whether a mate of the pair contains a recruiting k-mer.
    pub(crate) fn has_recruiting_kmer(
        &self,
        pair: ReadPair<'_>,
        scratch: &mut KmerLookupBuffers,
        hits: &mut Vec<KmerHit>,
    ) -> bool {
        hits.clear();
        pair.mates.iter().any(|mate| {
            self.lookup.find_kmers(mate.seq, scratch, hits);
            !hits.is_empty()
        })
    }

    /// If a mate contains a recruiting k-mer, returns the pair with the contigs for which it is recruited. Counts the
    /// pair's k-mers. `None` also if downsampling drops the pair at all contigs.
    pub fn recruit_pair(
        &self,
        pair: ReadPair<'_>,
        sample: u8,
        pair_counts: &PairCountsByRecruitingKmer,
        scratch: &mut KmerLookupBuffers,
        hits: &mut Vec<KmerHit>,
    ) -> Option<RecruitedPair> {
        hits.clear();
        for mate in pair.mates {
            self.lookup.find_kmers(mate.seq, scratch, hits);
        }
        if hits.is_empty() {
            return None;
        }
        hits.sort_unstable_by_key(|h| h.rank);
        hits.dedup_by_key(|h| h.rank);
        let name_hash = hash_bytes(pair.name);
        let mut contigs = Vec::new();
        let mut added: &[KmerOccurrence] = &[];
        for hit in hits.iter() {
            let before = pair_counts.increment(hit.rank, sample);
            let sites = self.occurrences_of(hit.rank);
            // Downsampling only becomes stricter: a pair that is kept in the end was kept before.
            if is_pair_kept(name_hash, before) && !have_same_contigs(sites, added) {
                contigs.extend(sites.iter().map(|s| s.contig));
                added = sites;
            }
        }
        if contigs.is_empty() {
            return None;
        }
        contigs.sort_unstable();
        contigs.dedup();
        Some(RecruitedPair {
            sample,
            name: pair.name.to_vec(),
            mates: pair.mates.map(OwnedRead::copy_mate_to_owned_read),
            id: 0,
            contigs,
        })
    }

    /// Computes the depths of all loci from the counts of all reads. `contigs` is the number of contigs.
    pub fn compute_locus_depths(&self, pair_counts: &PairCountsByRecruitingKmer, contigs: usize) -> LocusDepths {
        let (samples, kmers) = (pair_counts.num_samples, pair_counts.counts_by_rank_and_sample());
        LocusDepths {
            num_samples: samples,
            contig_depths: self.contig_depths(&kmers, samples, contigs),
            kmer_depths: kmers,
        }
    }

    /// Removes from a pair the contigs at which the final downsampling drops the pair.
    pub fn drop_pair_at_downsampled_contigs(
        &self,
        pair: &mut RecruitedPair,
        depths: &LocusDepths,
        scratch: &mut KmerLookupBuffers,
        hits: &mut Vec<KmerHit>,
    ) {
        let (name_hash, sample) = (hash_bytes(&pair.name), usize::from(pair.sample));
        hits.clear();
        for mate in &pair.mates {
            self.lookup.find_kmers(&mate.seq, scratch, hits);
        }
        pair.contigs.clear();
        let (mut added, mut added_level): (&[KmerOccurrence], u32) = (&[], 0);
        for hit in hits {
            let own = depths.kmer_depths[hit.rank as usize * depths.num_samples + sample];
            let depth = |c: u32| depths.contig_depths[c as usize * depths.num_samples + sample];
            let (sites, level) = (self.occurrences_of(hit.rank), downsampling_level(own));
            // Neighbouring k-mers have the same contigs.
            if level == added_level && have_same_contigs(sites, added) {
                continue;
            }
            (added, added_level) = (sites, level);
            let contigs = sites.iter().map(|s| s.contig);
            pair.contigs.extend(contigs.filter(|&c| is_pair_kept(name_hash, own.max(depth(c)))));
        }
        pair.contigs.sort_unstable();
        pair.contigs.dedup();
    }

    /// Number of pairs at each contig in each sample: the maximum count of the contig's k-mers with a reference;
    /// otherwise the median, because a repeat among the k-mers says nothing about the locus.
    fn contig_depths(&self, pair_counts: &[u32], samples: usize, contigs: usize) -> Vec<u32> {
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); contigs * samples];
        for site in &self.occurrences {
            let (own, pair_counts) = (site.contig as usize * samples, &pair_counts[site.rank as usize * samples..]);
            for (all, &pair_counts) in all[own..own + samples].iter_mut().zip(pair_counts) {
                all.push(pair_counts);
            }
        }
        let select_depth = |mut counts: Vec<u32>| {
            counts.sort_unstable();
            let at = if self.are_unique { counts.len().saturating_sub(1) } else { counts.len() / 2 };
            counts.get(at).copied().unwrap_or(0)
        };
        all.into_iter().map(select_depth).collect()
    }

    fn occurrences_of(&self, rank: u32) -> &[KmerOccurrence] {
        &self.occurrences[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// Whether two k-mers occur on the same contigs.
fn have_same_contigs(a: &[KmerOccurrence], b: &[KmerOccurrence]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.contig == b.contig)
}

/// Base-2 logarithm of the downsampling factor for a number of pairs; 0 if no pairs are dropped.
fn downsampling_level(pairs: u32) -> u32 {
    (pairs / DOWNSAMPLING_MIN_PAIRS).checked_ilog2().map_or(0, |l| l + 1)
}

/// Whether a pair with this hash of its name is kept at a locus with `pairs` pairs.
fn is_pair_kept(name_hash: u64, pairs: u32) -> bool {
    name_hash.leading_zeros() >= downsampling_level(pairs)
}

/// Number of occurrences of each of the sorted `distinct` k-mers in the genome, on either strand; at most
/// [`MAX_KMER_COPIES`] + 1.
fn count_genome_copies(distinct: &[u64], k: u32, genome: &Reference, threads: usize) -> Vec<u8> {
    /// Number of genome bases in one unit of parallel work.
    const PIECE: usize = 1 << 20;
    let sought = KmerLookup::from_kmer_iter(k, distinct.iter().copied());
    let pieces: Vec<&[u8]> = genome
        .contigs
        .iter()
        .flat_map(|c| {
            (0..c.seq.len()).step_by(PIECE).map(|at| &c.seq[at..(at + PIECE + k as usize - 1).min(c.seq.len())])
        })
        .collect();
    let copies: Vec<AtomicU8> = distinct.iter().map(|_| AtomicU8::new(0)).collect();
    let count = |(scratch, hits): &mut (KmerLookupBuffers, Vec<KmerHit>), i: usize| {
        hits.clear();
        sought.find_kmers(pieces[i], scratch, hits);
        for hit in hits {
            let more = |n: u8| (n <= MAX_KMER_COPIES).then_some(n + 1);
            // The count does not increase beyond the maximum.
            let _ = copies[hit.rank as usize].fetch_update(Relaxed, Relaxed, more);
        }
    };
    map_in_order(pieces.len(), threads, || (KmerLookupBuffers::default(), Vec::new()), count);
    copies.into_iter().map(AtomicU8::into_inner).collect()
}

#[cfg(test)]
mod tests;
