//! Assembles the reads of a group into tumour contigs by the consensus of a gapless stack.
//!
//! All reads with the same candidate k-mer come from the same locus of the same haplotype, and Illumina reads hardly
//! ever have insertion or deletion errors. So shared candidate k-mers determine the offset between two reads. The reads
//! are stacked at these offsets without gaps, and each column votes for a base. Unlike a de Bruijn graph, this works
//! across short tandem repeats longer than k.
//!
//! A contig grows from the branching k-mer with the most reads, up to [`MAX_KMER_DISTANCE_BP`] in each direction. So
//! the run time depends only on the reads of one locus, even if a repeat or a germline k-mer has joined many loci to
//! one group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use genuma_kmers::MAX_K;
use genuma_reads::dna::reverse_complement;
use serde::{Deserialize, Serialize};

use crate::branch_points;
use crate::candidate_kmer::min_count_above_errors_at_depth;
use crate::gapless_stack::GaplessStack;
use crate::kmer_lookup::KmerHit;
use crate::labelled_pair::LabelledPair;
use crate::molecule::hash_bytes;
use crate::packed::{OwnedRead, PackedRead};

mod changed_base;
mod read_stack;

pub use changed_base::MIN_CHANGED_BASE_QUALITY_SUM;
use changed_base::{find_changed_base, has_good_bases};
use read_stack::{SeedConsensus, StackConsensus, StackedRead};

/// A tumour read in the gapless stack from which a contig was assembled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContigRead {
    /// Index of the read's pair in the list of labelled pairs.
    pub pair: u32,
    /// The mate of the pair: 0 for read 1, 1 for read 2.
    pub mate: u8,
    /// Whether the read has the orientation of the contig.
    pub forward: bool,
    /// Contig position of the first base of the read in the orientation of the contig; negative if the read starts
    /// before the contig.
    pub start: i32,
}

/// The assembled sequence of a tumour allele and its flanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contig {
    /// Bases, in upper case.
    pub seq: Vec<u8>,
    /// For each base, whether a candidate k-mer covers it.
    pub novel: Vec<bool>,
    /// For each base, the sum of the base qualities of the reads that have this base, at most 65,535.
    pub quality_sums: Vec<u16>,
    /// The reads from which the consensus was computed.
    pub reads: Vec<ContigRead>,
    /// Bases of mates that lie beyond the left and beyond the right end of the contig, in the orientation of the
    /// contig; a few for each end.
    pub outer_mates: [Vec<Vec<u8>>; 2],
}

impl Contig {
    /// Counts the distinct read pairs of the contig.
    pub fn num_pairs(&self) -> usize {
        let pairs: std::collections::BTreeSet<u32> = self.reads.iter().map(|read| read.pair).collect();
        pairs.len()
    }
}

/// Minimum number of distinct read pairs of a contig.
pub const MIN_CONTIG_PAIRS: usize = 2;

/// Contigs of one or more groups, with counts of skipped stacks and reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssembledContigs {
    /// Contigs. Those of one group are sorted by the number of reads with their seed, the highest first; with several
    /// tumours, contigs of single tumours follow.
    pub contigs: Vec<Contig>,
    /// Number of gapless stacks of reads that gave no contig because they have too few pairs.
    pub stacks_with_few_pairs: u64,
    /// Number of gapless stacks of reads that gave no contig because too few pairs have good base qualities at the
    /// change.
    pub low_quality_stacks: u64,
    /// Number of reads that were not stacked because too many reads had the same k-mer or started in the same stretch
    /// of the contig. A read counts each time it is left out.
    pub skipped_reads: u64,
}

impl AssembledContigs {
    /// Appends the contigs of another group and adds its counts.
    pub fn add_group_result(
        &mut self,
        AssembledContigs { mut contigs, stacks_with_few_pairs: few, low_quality_stacks: poor, skipped_reads: deep }: AssembledContigs,
    ) {
        self.contigs.append(&mut contigs);
        self.stacks_with_few_pairs += few;
        self.low_quality_stacks += poor;
        self.skipped_reads += deep;
    }
}

/// Maximum distance in bp between the seed k-mer of a contig and its other k-mers, on each side.
const MAX_KMER_DISTANCE_BP: i32 = 10_000;
/// The maximum distance with which assembling a contig starts. It is multiplied by [`KMER_DISTANCE_FACTOR`] while the
/// consensus ends near it. Most contigs are shorter, but reads of a satellite continue for any distance.
const FIRST_MAX_KMER_DISTANCE_BP: i32 = 625;
const KMER_DISTANCE_FACTOR: i32 = 4;

/// Maximum number of mates that are stored for each end of a contig. They suffice to distinguish the copies of a
/// repeat.
const MAX_OUTER_MATES: usize = 12;

/// A read of the group with the occurrences of its candidate k-mers.
struct GroupRead<'a> {
    pair: u32,
    mate: u8,
    read: &'a PackedRead,
    hits: &'a [KmerHit],
    /// For each of `hits`, the number of its k-mer within the group.
    kmer_numbers: Vec<u32>,
}

/// Minimum distance in bp between the seed and the end of the novel sequence for an insertion. Shorter novel sequence
/// may come from a single changed base.
const MIN_INSERTION_BP: usize = 100;

/// The stacked reads of a seed k-mer.
struct ReadStack {
    reads: Vec<StackedRead>,
    /// Number of reads that were not stacked because too many start in the same stretch of the contig.
    num_skipped: u64,
    /// Range of the contig, relative to the seed, in which no read is missing because of the maximum distance.
    complete_range: Range<i32>,
}

/// The reads of a group, indexed by candidate k-mer.
struct GroupReads<'a> {
    labelled: &'a [LabelledPair],
    members: Vec<GroupRead<'a>>,
    /// For each k-mer number: the indices of the reads with this k-mer, ascending, at most [`MAX_READS_PER_KMER`]; and
    /// the occurrence of the k-mer in the first of them.
    reads_by_kmer: Vec<(Vec<u32>, KmerHit)>,
    /// Number of reads that were left out because a k-mer has more than [`MAX_READS_PER_KMER`] reads, summed over
    /// k-mers.
    skipped_reads: u64,
    /// Length of the longest read, bp.
    max_read_bp: i32,
}

/// Maximum number of reads of one k-mer that are stacked, those whose read names have the smallest hashes. More reads
/// do not improve the consensus, and the run time at a repeat with thousands of copies would grow with the square of
/// their number.
const MAX_READS_PER_KMER: usize = 4096;
/// Length in bp of a stretch of the contig, in which only a limited number of reads may start
/// ([`max_reads_starting_in_stretch`]).
const READ_START_STRETCH_BP: i32 = 64;
/// Maximum number of reads that may start in a stretch, for each read with the seed. Half of the reads with a 31-mer
/// are expected to start in the same 64 bp if reads have 150 bp and random positions, and all of them in an amplicon.
/// More reads come from other copies of a repeat.
const MAX_READS_STARTING_PER_SEED_READ: usize = 2;
/// A limit below this number is raised to it, because numbers of reads vary much at low depth.
const MIN_LIMIT_OF_STARTING_READS: usize = 64;

/// Maximum number of stacked reads that start in the same stretch of [`READ_START_STRETCH_BP`], if `seed_reads` reads
/// have the seed.
fn max_reads_starting_in_stretch(seed_reads: usize) -> usize {
    (MAX_READS_STARTING_PER_SEED_READ * seed_reads).clamp(MIN_LIMIT_OF_STARTING_READS, MAX_READS_PER_KMER)
}

/// Maximum number of reads of a tandem repeat with its flanks that are compared with the consensus. Chosen: hardly ever
/// all of them have an error there.
const MAX_COMPARED_REPEAT_READS: usize = 8;

/// Why a stack of reads gives no contig.
enum StackRejectReason {
    FewPairs,
    LowQuality,
}

/// Position and orientation of a candidate k-mer relative to the seed k-mer of a contig.
#[derive(Clone, Copy)]
struct KmerAnchor {
    start: i32,
    span: i32,
    forward: bool,
}

/// Positions of candidate k-mers on the contig to be assembled. The buffers are reused between contigs.
struct KmerAnchors {
    by_number: Vec<Option<KmerAnchor>>,
    kmer_queue: Vec<u32>,
    /// For each read of the group, whether it was stacked or skipped.
    is_stacked: Vec<bool>,
    /// Number of reads that were not stacked because too many start in the same stretch of the contig.
    skipped_reads: u64,
}

impl KmerAnchors {
    fn get(&self, number: u32) -> Option<KmerAnchor> {
        self.by_number[number as usize]
    }

    fn insert(&mut self, number: u32, anchor: KmerAnchor) {
        self.by_number[number as usize] = Some(anchor);
        self.kmer_queue.push(number);
    }

    fn clear(&mut self) {
        self.kmer_queue.drain(..).for_each(|number| self.by_number[number as usize] = None);
    }
}

impl<'a> GroupReads<'a> {
    fn new(group: &[u32], labelled: &'a [LabelledPair]) -> GroupReads<'a> {
        let mates = |&pair: &u32| {
            let p = &labelled[pair as usize];
            [0u8, 1].map(|mate| (pair, mate, &p.mates[usize::from(mate)], &p.hits[usize::from(mate)][..]))
        };
        let mates: Vec<_> = group.iter().flat_map(mates).filter(|m| !m.3.is_empty()).collect();
        let mut ranks: Vec<u32> = mates.iter().flat_map(|m| m.3).map(|h| h.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        // If the group has more hits than there are ranks up to its last, as when the tumour is of another species, a
        // table is faster than a binary search.
        let hits: usize = mates.iter().map(|m| m.3.len()).sum();
        let last = ranks.last().map_or(0, |&r| r as usize);
        let mut table = vec![0; if hits > last { last + 1 } else { 0 }];
        if !table.is_empty() {
            (0..).zip(&ranks).for_each(|(number, &rank)| table[rank as usize] = number);
        }
        let number = |hit: &KmerHit| match table.get(hit.rank as usize) {
            Some(&number) => number,
            None => ranks.partition_point(|&r| r < hit.rank) as u32,
        };
        let members: Vec<GroupRead> = mates
            .into_iter()
            .map(|(pair, mate, read, hits)| GroupRead {
                pair,
                mate,
                read,
                hits,
                kmer_numbers: hits.iter().map(number).collect(),
            })
            .collect();
        let mut carriers: Vec<(Vec<u32>, Option<KmerHit>)> = vec![Default::default(); ranks.len()];
        for (i, member) in (0..).zip(&members) {
            for (hit, &number) in member.hits.iter().zip(&member.kmer_numbers) {
                let (carriers, first) = &mut carriers[number as usize];
                first.get_or_insert(*hit);
                if carriers.last() != Some(&i) {
                    carriers.push(i);
                }
            }
        }
        let mut beyond = 0;
        let hash = |&i: &u32| hash_bytes(&labelled[members[i as usize].pair as usize].name);
        for (carriers, _) in carriers.iter_mut().filter(|c| c.0.len() > MAX_READS_PER_KMER) {
            beyond += (carriers.len() - MAX_READS_PER_KMER) as u64;
            carriers.sort_by_cached_key(|i| (hash(i), *i));
            carriers.truncate(MAX_READS_PER_KMER);
            carriers.sort_unstable();
        }
        let carriers = carriers.into_iter().filter_map(|(members, first)| Some((members, first?))).collect();
        let max_read_bp = members.iter().map(|member| member.read.len() as i32).max().unwrap_or(0);
        GroupReads { labelled, members, reads_by_kmer: carriers, skipped_reads: beyond, max_read_bp }
    }

    fn reads_with_kmer(&self, number: u32) -> &[u32] {
        &self.reads_by_kmer[number as usize].0
    }
}

/// Assembles the contigs of one group, sorted by the number of reads with their seed. `branching` says for each k-mer,
/// by k-mer rank, whether it is a branching k-mer. Only branching k-mers are seeds, because a contig without one shows
/// no change.
pub fn assemble_group(group: &[u32], labelled: &[LabelledPair], branching: &[bool]) -> AssembledContigs {
    let group = GroupReads::new(group, labelled);
    let kmers = group.reads_by_kmer.len();
    let is_branching = |&n: &u32| branching[group.reads_by_kmer[n as usize].1.rank as usize];
    let mut seeds: Vec<u32> = (0..kmers as u32).filter(is_branching).collect();
    seeds.sort_by_key(|&n| (Reverse(group.reads_with_kmer(n).len()), n));
    let mut used = vec![false; kmers];
    let stacked = vec![false; group.members.len()];
    let mut anchors =
        KmerAnchors { by_number: vec![None; kmers], kmer_queue: Vec::new(), is_stacked: stacked, skipped_reads: 0 };
    let mut assembled = AssembledContigs { skipped_reads: group.skipped_reads, ..AssembledContigs::default() };
    for seed in seeds {
        if used[seed as usize] || group.reads_with_kmer(seed).len() < MIN_CONTIG_PAIRS {
            continue;
        }
        match group.assemble_contig(seed, &mut used, &mut anchors) {
            Ok(contig) => assembled.contigs.push(contig),
            Err(StackRejectReason::FewPairs) => assembled.stacks_with_few_pairs += 1,
            Err(StackRejectReason::LowQuality) => assembled.low_quality_stacks += 1,
        }
        used[seed as usize] = true;
    }
    assembled.skipped_reads += anchors.skipped_reads;
    assembled
}

impl GroupReads<'_> {
    /// Assembles the contig around the k-mer `seed`: stacks all reads that are connected with the seed through unused
    /// k-mers, and computes their consensus. Marks the k-mers of the consensus as used, and those of the stacked reads
    /// that errors explain.
    fn assemble_contig(
        &self,
        seed: u32,
        used: &mut [bool],
        anchors: &mut KmerAnchors,
    ) -> Result<Contig, StackRejectReason> {
        let mut max_distance_bp = FIRST_MAX_KMER_DISTANCE_BP;
        loop {
            let ReadStack { reads, num_skipped, complete_range } =
                self.stack_reads(seed, max_distance_bp, used, anchors);
            let consensus = self.choose_consensus(seed, &reads, anchors);
            let is_complete = consensus.as_ref().is_none_or(|(of_stack, of_seed)| {
                let [from, to] = [of_seed.range.start, of_seed.range.end].map(|at| of_stack.columns.start + at as i32);
                complete_range.start <= from && to <= complete_range.end
            });
            if is_complete || max_distance_bp == MAX_KMER_DISTANCE_BP {
                anchors.skipped_reads += num_skipped;
                let (of_stack, of_seed) = consensus.ok_or(StackRejectReason::FewPairs)?;
                return self.build_contig(of_stack, of_seed, used);
            }
            max_distance_bp = (max_distance_bp * KMER_DISTANCE_FACTOR).min(MAX_KMER_DISTANCE_BP);
        }
    }

    /// Computes the consensus of the stacked reads of a seed; `None` if it does not contain the seed.
    fn choose_consensus<'r>(
        &self,
        seed: u32,
        stacked_reads: &'r [StackedRead],
        anchors: &KmerAnchors,
    ) -> Option<(StackConsensus<'r>, SeedConsensus)> {
        let read = |consensus_of_stack: &StackConsensus<'_>| self.consensus_at_seed(consensus_of_stack, seed, anchors);
        let all = StackConsensus::stack_agreeing_reads(stacked_reads.iter().collect());
        let seed_consensus = read(&all);
        // The sequence that begins here may occur at other loci too, such as bases that both sides of a translocation
        // have. Then reads of all loci meet in it and may outnumber those of this locus.
        let seed_consensus = match seed_consensus {
            Some(seed_consensus) if !seed_consensus.has_branch_in_trusted_range(stacked_reads, &all) => {
                return Some((all, seed_consensus));
            }
            seed_consensus => seed_consensus,
        };
        let has_seed = |i: usize| self.members[stacked_reads[i].member as usize].kmer_numbers.contains(&seed);
        let stack: Vec<(i32, &OwnedRead)> = stacked_reads.iter().map(StackedRead::first_column_and_read).collect();
        let span = self.reads_by_kmer[seed as usize].1.span as i32;
        let own = branch_points::select_reads_of_seed_locus(&stack, has_seed, &(0..span));
        let mut own = StackConsensus::stack_agreeing_reads(own.into_iter().map(|i| &stacked_reads[i]).collect());
        let cut = read(&own)
            .filter(|own_consensus| {
                seed_consensus.is_some() || own_consensus.is_seed_at_border_of_repeat(stacked_reads, &own)
            })
            .map(|seed_consensus| seed_consensus.cut_at_branches(stacked_reads, &own));
        let Some(cut) = cut else { return Some((all, seed_consensus?)) };
        own.keep_reads_overlapping_range(&cut.range, span);
        Some((own, cut))
    }

    /// Makes the contig of a consensus, and marks the k-mers that it explains as used.
    fn build_contig(
        &self,
        consensus_of_stack: StackConsensus<'_>,
        seed_consensus: SeedConsensus,
        used: &mut [bool],
    ) -> Result<Contig, StackRejectReason> {
        let StackConsensus { stack, columns, consensus } = consensus_of_stack;
        let SeedConsensus { windows, range, seed: seeds } = seed_consensus;
        // A tandem repeat with its flanks does not show a changed base.
        let k = seeds.len();
        let mut plain = k <= MAX_K as usize;
        let (mut novel, mut core) = (vec![false; range.len()], 0..usize::MAX);
        for (number, window) in windows {
            used[number as usize] = true;
            plain &= window.len() == k;
            core = core.start.max(window.start)..core.end.min(window.end);
            novel[window.start - range.start..window.end - range.start].fill(true);
        }
        self.mark_error_kmers_as_used(&stack, &columns, used);
        let mut pairs: Vec<u32> = stack.iter().map(|s| s.placement.pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() < MIN_CONTIG_PAIRS {
            return Err(StackRejectReason::FewPairs);
        }
        let core = columns.start + core.start as i32..columns.start + core.end as i32;
        if !has_good_bases(&stack, &core) {
            return Err(StackRejectReason::LowQuality);
        }
        let poor = |at: usize| columns.base_quality_sum(at, consensus[at]) < MIN_CHANGED_BASE_QUALITY_SUM;
        if plain && find_changed_base(&novel, k, range.start, &stack, &columns).is_some_and(poor) {
            return Err(StackRejectReason::LowQuality);
        }
        let shift = columns.start + range.start as i32;
        let reads: Vec<ContigRead> =
            stack.iter().map(|s| ContigRead { start: s.placement.start - shift, ..s.placement }).collect();
        let beyond = self.collect_outer_mates(&reads);
        let weight = range.clone().map(|at| columns.base_quality_sum(at, consensus[at])).collect();
        Ok(Contig { seq: consensus[range].to_vec(), novel, quality_sums: weight, reads, outer_mates: beyond })
    }

    /// The consensus of a stack with the range that enough reads confirm; `None` if it does not contain the seed.
    fn consensus_at_seed(
        &self,
        consensus_of_stack: &StackConsensus<'_>,
        seed: u32,
        anchors: &KmerAnchors,
    ) -> Option<SeedConsensus> {
        let StackConsensus { stack, columns, consensus } = consensus_of_stack;
        let window = |number: u32| {
            let anchor = anchors.get(number)?;
            let from = usize::try_from(anchor.start - columns.start).ok()?;
            let range = from..from + anchor.span as usize;
            self.has_bases_of_kmer(number, consensus.get(range.clone())?).then_some(range)
        };
        let seeds = window(seed).filter(|_| !stack.is_empty())?;
        let range = columns.trusted_columns(seeds.start, seeds.len());
        let range = columns.limit_range_to_spanned_columns(
            range,
            seeds.clone(),
            consensus,
            stack.iter().map(|s| s.first_column_and_read()),
        );
        let within = |w: &Range<usize>| w.start >= range.start && w.end <= range.end;
        let on = |&number: &u32| Some((number, window(number).filter(within)?));
        let windows = anchors.kmer_queue.iter().filter_map(on).collect();
        Some(SeedConsensus { windows, range, seed: seeds })
    }

    /// Aligns reads that are connected with `seed` through shared candidate k-mers at most `max_distance_bp` from it, in
    /// the orientation of the seed.
    fn stack_reads(&self, seed: u32, max_distance_bp: i32, used: &[bool], anchors: &mut KmerAnchors) -> ReadStack {
        anchors.clear();
        let span = self.reads_by_kmer[seed as usize].1.span as i32;
        anchors.insert(seed, KmerAnchor { start: 0, span, forward: true });
        let mut stacked: Vec<(u32, ContigRead)> = Vec::new();
        // Number of reads that start in each stretch of the contig. Without a limit all copies of a repeat would be
        // stacked on each other, again for each seed, although reads of other copies are left out of the consensus.
        let max_starting = max_reads_starting_in_stretch(self.reads_with_kmer(seed).len());
        let (mut starting_by_stretch, mut skipped): (HashMap<i32, usize>, Vec<u32>) = (HashMap::new(), Vec::new());
        let mut has_kmers_beyond = false;
        let mut next = 0;
        while next < anchors.kmer_queue.len() {
            for &i in self.reads_with_kmer(anchors.kmer_queue[next]) {
                if anchors.is_stacked[i as usize] {
                    continue;
                }
                let member = &self.members[i as usize];
                let Some(placement) = self.place_read_by_votes(member, anchors) else { continue };
                anchors.is_stacked[i as usize] = true;
                let starting =
                    starting_by_stretch.entry(placement.start.div_euclid(READ_START_STRETCH_BP)).or_default();
                *starting += 1;
                if *starting > max_starting {
                    skipped.push(i);
                    continue;
                }
                stacked.push((i, placement));
                for (hit, &number) in member.hits.iter().zip(&member.kmer_numbers) {
                    let at = placement.start + oriented_start(hit, member.read.len(), placement.forward);
                    if used[number as usize] || anchors.get(number).is_some() {
                        continue;
                    }
                    if at.abs() > max_distance_bp {
                        has_kmers_beyond = true;
                        continue;
                    }
                    let forward = hit.forward == placement.forward;
                    anchors.insert(number, KmerAnchor { start: at, span: hit.span as i32, forward });
                }
            }
            next += 1;
        }
        stacked.iter().map(|(i, _)| i).chain(&skipped).for_each(|&i| anchors.is_stacked[i as usize] = false);
        stacked.sort_unstable_by_key(|(i, _)| *i);
        let orient = |(member, placement): (u32, ContigRead)| {
            let read = self.members[member as usize].read.unpack();
            StackedRead { member, placement, read: if placement.forward { read } else { read.reverse_complement() } }
        };
        // All k-mers of a missing read are beyond the maximum distance, so it reaches at most its length nearer to the seed.
        let complete_bp = if has_kmers_beyond { max_distance_bp - self.max_read_bp } else { i32::MAX };
        ReadStack {
            reads: stacked.into_iter().map(orient).collect(),
            num_skipped: skipped.len() as u64,
            complete_range: -complete_bp..complete_bp,
        }
    }

    /// Mates of stacked reads that are not stacked themselves, for the left and the right end of the contig.
    fn collect_outer_mates(&self, reads: &[ContigRead]) -> [Vec<Vec<u8>>; 2] {
        let stacked: HashSet<(u32, u8)> = reads.iter().map(|r| (r.pair, r.mate)).collect();
        let mut beyond: [Vec<Vec<u8>>; 2] = Default::default();
        for read in reads.iter().filter(|r| !stacked.contains(&(r.pair, 1 - r.mate))) {
            // Mates face each other: the mate of a read with the contig's orientation lies to its right and has the
            // opposite orientation.
            let mate = &self.labelled[read.pair as usize].mates[1 - read.mate as usize];
            let side = &mut beyond[usize::from(read.forward)];
            if side.len() < MAX_OUTER_MATES && !mate.is_empty() {
                let seq = mate.unpack_bases_in_range(0..mate.len());
                side.push(if read.forward { reverse_complement(&seq) } else { seq });
            }
        }
        beyond
    }

    /// Whether a window of the consensus has the bases of a k-mer, which are taken from the reads with it. Those of a
    /// tandem repeat with its flanks may have errors in some reads.
    fn has_bases_of_kmer(&self, number: u32, window: &[u8]) -> bool {
        let (members, first) = &self.reads_by_kmer[number as usize];
        let has_bases = |&member: &u32| {
            let member = &self.members[member as usize];
            let hit = member.kmer_numbers.iter().position(|&n| n == number).map(|at| &member.hits[at]);
            hit.is_some_and(|hit| {
                let text = member.read.unpack_bases_in_range(hit.start as usize..(hit.start + hit.span) as usize);
                text == window || reverse_complement(&text) == window
            })
        };
        let compared = if first.span <= MAX_K { 1 } else { MAX_COMPARED_REPEAT_READS };
        members.iter().take(compared).any(has_bases)
    }

    /// The position and orientation of a read on the contig that most of its k-mers indicate; `None` if none of its
    /// k-mers is placed.
    fn place_read_by_votes(&self, member: &GroupRead, anchors: &KmerAnchors) -> Option<ContigRead> {
        let mut votes: BTreeMap<(i32, bool), u32> = BTreeMap::new();
        for (hit, &number) in member.hits.iter().zip(&member.kmer_numbers) {
            if let Some(anchor) = anchors.get(number) {
                let forward = hit.forward == anchor.forward;
                let at = anchor.start - oriented_start(hit, member.read.len(), forward);
                *votes.entry((at, forward)).or_default() += 1;
            }
        }
        let ((at, forward), _) = votes.into_iter().max_by_key(|&(_, n)| n)?;
        Some(ContigRead { pair: member.pair, mate: member.mate, forward, start: at })
    }

    /// Marks k-mers of stacked reads as used if they are not on the consensus and are so rare that sequencing errors
    /// explain them. Otherwise each of them would start a contig, hundreds at a deep locus.
    fn mark_error_kmers_as_used(&self, stack: &[&StackedRead], columns: &GaplessStack, used: &mut [bool]) {
        for StackedRead { member, placement, read } in stack {
            let member = &self.members[*member as usize];
            for (hit, &number) in member.hits.iter().zip(&member.kmer_numbers) {
                if used[number as usize] {
                    continue;
                }
                let middle =
                    placement.start + oriented_start(hit, read.seq.len(), placement.forward) + hit.span as i32 / 2;
                let depth = columns.depth_at_column((middle - columns.start) as usize);
                used[number as usize] =
                    (self.reads_with_kmer(number).len() as f64) < min_count_above_errors_at_depth(f64::from(depth));
            }
        }
    }
}

fn oriented_start(hit: &KmerHit, len: usize, forward: bool) -> i32 {
    if forward { hit.start as i32 } else { len as i32 - (hit.start + hit.span) as i32 }
}
