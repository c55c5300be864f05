//! Labelled pairs: read pairs of the tumours that contain candidate k-mers.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_kmers::MAX_K;
use genuma_pair::assay::RandomOrFixedEnds;
use genuma_reads::ReadPair;
use serde::{Deserialize, Serialize};

use crate::candidate_kmer::{
    CandidateKmer, MIN_HIGH_BASE_QUALITY, POOLED_SELECTOR_NUMBER, group_candidates_by_kmer,
    min_count_above_errors_at_depth, min_high_quality_count_above_errors,
};
use crate::kmer_lookup::{KmerHit, KmerLookup, KmerLookupBuffers};
use crate::molecule::{
    COMPARED_MATE_PREFIX_BP, MoleculeAssignment, PairForDuplicateSearch, hash_bytes, umi_key_of_name,
};
use crate::packed::{OwnedRead, PackedRead};
use crate::tandem_repeat;

/// A labelled pair: a tumour read pair of which at least one mate contains candidate k-mers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledPair {
    /// Read name (template name).
    pub name: Box<[u8]>,
    /// Number of the tumour that the pair is from; 1 for the first.
    pub sample: u8,
    /// Bases and qualities of both mates.
    pub mates: [PackedRead; 2],
    /// Candidate k-mers of each mate by position; those of tandem repeats come last.
    pub hits: [Vec<KmerHit>; 2],
}

/// The first bases of both mates of a labelled pair and the key of its UMI, by which duplicates are found.
struct MatePrefixes {
    sample: u8,
    umi_key: u64,
    bases: [[u8; COMPARED_MATE_PREFIX_BP]; 2],
    lengths: [u8; 2],
}

impl MatePrefixes {
    fn from_pair(pair: &LabelledPair) -> MatePrefixes {
        let (mut bases, mut lengths) = ([[0; COMPARED_MATE_PREFIX_BP]; 2], [0; 2]);
        for (i, mate) in pair.mates.iter().enumerate() {
            let start = mate.unpack_bases_in_range(0..mate.len().min(COMPARED_MATE_PREFIX_BP));
            bases[i][..start.len()].copy_from_slice(&start);
            lengths[i] = start.len() as u8;
        }
        MatePrefixes { sample: pair.sample, umi_key: umi_key_of_name(&pair.name), bases, lengths }
    }
}

impl PairForDuplicateSearch for MatePrefixes {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        [0, 1].map(|i| &self.bases[i][..usize::from(self.lengths[i])])
    }

    fn umi_key(&self) -> u64 {
        self.umi_key
    }
}

/// Appends the candidate k-mers of the read `seq` to `out`, sorted by position; the artificial k-mers of tandem repeats
/// come last.
pub fn find_candidates_in_read(
    seq: &[u8],
    lookup: &KmerLookup,
    scratch: &mut KmerLookupBuffers,
    out: &mut Vec<KmerHit>,
) {
    let packed = lookup.find_kmers(seq, scratch, out);
    tandem_repeat::for_each_repeat(seq, packed, |repeat| {
        tandem_repeat::for_each_repeat_kmer(seq, repeat, lookup.k(), |encoded| {
            out.extend(lookup.rank_of_kmer(encoded.kmer).map(|rank| KmerHit {
                start: encoded.start as u32,
                span: encoded.span_bp as u32,
                rank,
                forward: encoded.forward,
            }));
        });
    });
}

/// Builds the lookup of candidate k-mers. Their k-mer ranks are the indices in the list of distinct k-mers.
/// `candidates` must be sorted.
pub fn build_candidate_lookup(k: u32, candidates: &[CandidateKmer]) -> KmerLookup {
    if candidates.windows(2).all(|two| two[0].kmer != two[1].kmer) {
        return KmerLookup::from_kmer_iter(k, candidates.iter().map(|candidate| candidate.kmer));
    }
    let distinct: Vec<u64> = group_candidates_by_kmer(candidates).map(|same| same[0].kmer).collect();
    KmerLookup::from_kmer_iter(k, distinct.iter().copied())
}

/// Finds the candidate k-mers of both mates and overwrites `found` with them. Returns whether there are any.
pub fn find_candidates_in_pair(
    pair: ReadPair<'_>,
    lookup: &KmerLookup,
    scratch: &mut KmerLookupBuffers,
    found: &mut [Vec<KmerHit>; 2],
) -> bool {
    for (mate, found) in pair.mates.iter().zip(found.iter_mut()) {
        found.clear();
        find_candidates_in_read(mate.seq, lookup, scratch, found);
    }
    found.iter().any(|h| !h.is_empty())
}

impl LabelledPair {
    /// Copies a pair out of its batch, together with the candidate k-mers found in it.
    pub fn from_pair_and_hits(pair: ReadPair<'_>, sample: u8, hits: &[Vec<KmerHit>; 2]) -> LabelledPair {
        let mates = pair.mates.map(|mate| PackedRead::from(&OwnedRead::copy_mate_to_owned_read(mate)));
        LabelledPair { name: pair.name.into(), sample, mates, hits: hits.clone() }
    }

    /// Compares two labelled pairs by name, then bases, then sample. Sorting by it gives the same order whatever the
    /// order of the input.
    pub fn compare_by_name_and_bases(a: &LabelledPair, b: &LabelledPair) -> Ordering {
        (&a.name, &a.mates, a.sample).cmp(&(&b.name, &b.mates, b.sample))
    }
}

/// Maximum length of a run of candidate k-mers, minus k, that one wrong base can explain. A longer run is novel
/// sequence.
const MAX_ERROR_RUN_BEYOND_K: u32 = 5;
/// Number of bases at each end of a long read within which a k-mer does not count as inside the read. Chosen: molecular
/// barcodes with their spacers are 3 to 8 bases in usual panels.
const MAX_END_MARGIN_BP: usize = 8;
/// In a short read, the number of k-mer positions divided by this gives the number of bases at each end within which a
/// k-mer does not count as inside the read. Chosen: half of the positions remain.
const END_MARGIN_DIVISOR: usize = 4;
/// Minimum number of molecules that must contain a k-mer; hits of k-mers in fewer molecules are removed as errors.
const MIN_CARRIER_MOLECULES: u32 = 2;
/// Minimum number of molecules that must contain the artificial k-mer of a minisatellite if the normal has no k-mer
/// with the same flanks. Chosen: as many as a call of a repeat's length needs.
const MIN_MINISATELLITE_MOLECULES: u32 = 3;
/// Number of bases at the start of each mate that [`LabelledPair::duplicate_search_hash`] includes.
const DUPLICATE_KEY_BP: usize = 8;

impl LabelledPair {
    /// A hash that is the same for all duplicates of a molecule, whichever mate is read 1. A sequencing error in the
    /// first bases of a mate changes the hash, so a search for duplicates among pairs with one hash misses a few in a
    /// hundred.
    pub fn duplicate_search_hash(&self) -> u64 {
        let start = |mate: &PackedRead| hash_bytes(&mate.unpack_bases_in_range(0..mate.len().min(DUPLICATE_KEY_BP)));
        self.mates.iter().map(start).min().unwrap_or(0)
    }

    /// Memory that the labelled pair takes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let hits: usize = self.hits.iter().map(Vec::len).sum();
        let reads: usize = self.mates.iter().map(PackedRead::len_bytes).sum();
        (2 * size_of::<LabelledPair>() + self.name.len() + reads + size_of::<KmerHit>() * hits) as u64
    }
}

/// Number of molecules of each tumour that contain each candidate k-mer.
#[derive(Debug)]
pub struct KmerMoleculeCounts {
    tumours: usize,
    /// Counts by k-mer rank, then by tumour.
    molecules: Vec<AtomicU32>,
    /// Number of molecules with each k-mer in which the first and the last base of the k-mer have a high quality; order
    /// as in `molecules`.
    high_quality_molecules: Vec<AtomicU32>,
    /// Number of molecules with each k-mer in which the read continues on both sides of the k-mer; order as in
    /// `molecules`.
    inner_molecules: Vec<AtomicU32>,
    /// k-mer ranks of the artificial k-mers that encode minisatellites.
    minisatellites: Mutex<BTreeSet<u32>>,
}

impl KmerMoleculeCounts {
    /// Counts of 0 for the given numbers of k-mers and tumours.
    pub fn zero_counts(kmers: usize, tumours: usize) -> KmerMoleculeCounts {
        let none = || (0..kmers * tumours).map(|_| AtomicU32::new(0)).collect();
        KmerMoleculeCounts {
            tumours,
            molecules: none(),
            high_quality_molecules: none(),
            inner_molecules: none(),
            minisatellites: Mutex::default(),
        }
    }

    /// Counts the k-mers of pairs, each of which is one molecule (without duplicates).
    pub fn count_kmers_of_pairs(&self, pairs: &[LabelledPair]) {
        count_carriers(&self.molecules, self.tumours, pairs, |_, _| true);
        // A branching k-mer differs from the normal in its first or last base.
        count_carriers(&self.high_quality_molecules, self.tumours, pairs, |read, hit| {
            let last = hit.start + hit.span - 1;
            [hit.start, last].iter().all(|&at| read.quality_at(at as usize) >= MIN_HIGH_BASE_QUALITY)
        });
        count_carriers(&self.inner_molecules, self.tumours, pairs, |read, hit| {
            let beyond = read.len().saturating_sub((hit.start + hit.span) as usize);
            let margin = MAX_END_MARGIN_BP.min(read.len().saturating_sub(hit.span as usize) / END_MARGIN_DIVISOR);
            hit.start as usize >= margin && beyond >= margin
        });
        let found: Vec<u32> = pairs.iter().flat_map(minisatellite_ranks).collect();
        // Most molecules have none.
        if !found.is_empty() {
            self.minisatellites.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
    }

    /// Number of molecules that contain a k-mer, in the tumour of a selector, or in all tumours for the pooled
    /// selector.
    fn count_for_selector(&self, molecule_counts: &[AtomicU32], rank: usize, selector: u8) -> u32 {
        let own = &molecule_counts[rank * self.tumours..(rank + 1) * self.tumours];
        match selector {
            POOLED_SELECTOR_NUMBER => own.iter().map(|n| n.load(Relaxed)).sum(),
            tumour => own[usize::from(tumour) - 1].load(Relaxed),
        }
    }

    /// Returns for each k-mer, by k-mer rank, whether the molecules confirm it as a branching k-mer for at least one
    /// selector that chose it. For each selector, `shares` has the number of molecules divided by the number of pairs,
    /// and `error_rates` the measured error rate of bases of good quality.
    ///
    /// A k-mer in too few molecules is confirmed if enough of them have high base quality. If the k-mer was selected by
    /// its number of occurrences, this requires a measured error rate: where mates overlap, a molecule has two
    /// occurrences; otherwise these are PCR duplicates of an error. A k-mer that only occurs at ends of reads is not
    /// confirmed: it contains a molecular barcode or the rest of a primer or adapter.
    ///
    /// The artificial k-mer of a minisatellite counts as a branching k-mer if enough molecules have it, although the
    /// normal lacks its root: if the repeat is almost as long as a read, few reads of the normal, or none, contain the
    /// repeat with both flanks.
    pub fn confirm_branching_kmers(
        &self,
        candidates: &[CandidateKmer],
        shares: &[f64],
        error_rates: &[Option<f64>],
    ) -> Vec<bool> {
        let minisatellites = self.minisatellites.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = |rank: usize, candidate: &CandidateKmer| {
            if !candidate.is_branching() {
                return minisatellites.contains(&(rank as u32))
                    && self.count_for_selector(&self.molecules, rank, candidate.selector)
                        >= MIN_MINISATELLITE_MOLECULES;
            }
            let here = f64::from(candidate.root_depth) * shares[usize::from(candidate.selector)];
            let beyond = f64::from(self.count_for_selector(&self.molecules, rank, candidate.selector))
                >= min_count_above_errors_at_depth(here);
            // Without library models there is no rate.
            let error_rate = error_rates.get(usize::from(candidate.selector)).copied().flatten();
            let good = || {
                f64::from(self.count_for_selector(&self.high_quality_molecules, rank, candidate.selector))
                    >= min_high_quality_count_above_errors(here, error_rate)
            };
            let may_be_confirmed = candidate.needs_high_quality_bases() || error_rate.is_some();
            let inner = || self.count_for_selector(&self.inner_molecules, rank, candidate.selector) > 0;
            (beyond || (may_be_confirmed && good())) && inner()
        };
        group_candidates_by_kmer(candidates)
            .enumerate()
            .map(|(rank, same)| same.iter().any(|candidate| parts(rank, candidate)))
            .collect()
    }
}

/// Ranks of the artificial k-mers of minisatellites in a pair.
fn minisatellite_ranks(pair: &LabelledPair) -> Vec<u32> {
    let is_minisatellite = |read: &PackedRead, hit: &KmerHit| {
        let bases = || read.unpack_bases_in_range(hit.start as usize..(hit.start + hit.span) as usize);
        hit.span > MAX_K && tandem_repeat::is_minisatellite_with_flanks(&bases())
    };
    let mates = pair.mates.iter().zip(&pair.hits);
    mates.flat_map(|(read, hits)| hits.iter().filter(|hit| is_minisatellite(read, hit)).map(|hit| hit.rank)).collect()
}

/// For each k-mer and tumour, adds the number of pairs that contain the k-mer. Only hits for which `counts_hit` is true
/// count.
fn count_carriers(
    molecule_counts: &[AtomicU32],
    tumours: usize,
    pairs: &[LabelledPair],
    counts_hit: impl Fn(&PackedRead, &KmerHit) -> bool,
) {
    let mut ranks: Vec<u32> = Vec::new();
    for pair in pairs {
        ranks.clear();
        for (read, hits) in pair.mates.iter().zip(&pair.hits) {
            ranks.extend(hits.iter().filter(|hit| counts_hit(read, hit)).map(|hit| hit.rank));
        }
        ranks.sort_unstable();
        ranks.dedup();
        for &rank in &ranks {
            molecule_counts[rank as usize * tumours + usize::from(pair.sample) - 1].fetch_add(1, Relaxed);
        }
    }
}

/// Removes hits of k-mers that only one molecule of all tumours has, hits that recurrent sequencing errors explain, and
/// pairs without remaining hits. Returns the number of removed hits.
///
/// A change makes a run of up to k consecutive candidate k-mers in a read, and the k-mers at the ends of the run that
/// are inside the read are branching k-mers. A wrong base that several reads have makes the same run, but the k-mers at
/// its ends are too rare for the depth. Either they were not selected as candidates (see [`crate::candidate_kmer`]), or
/// their counts are too low when each molecule counts once. So a run without a branching k-mer is an error, unless it
/// has more consecutive k-mers than one wrong base makes. The k-mers must be consecutive, because at high depth every
/// second read has two recurrent errors.
pub fn remove_hits_of_errors(
    pairs: &mut Vec<LabelledPair>,
    molecule_counts: &KmerMoleculeCounts,
    branching: &[bool],
    k: u32,
) -> u64 {
    let mut errors = 0;
    for hits in pairs.iter_mut().flat_map(|pair| &mut pair.hits) {
        let before = hits.len();
        hits.retain(|hit| {
            molecule_counts.count_for_selector(&molecule_counts.molecules, hit.rank as usize, POOLED_SELECTOR_NUMBER)
                >= MIN_CARRIER_MOLECULES
        });
        let mut kept = Vec::with_capacity(hits.len());
        for row in hits.chunk_by(|a, b| a.span == k && b.span == k && b.start <= a.start + k) {
            let parts = row.iter().any(|hit| branching[hit.rank as usize]);
            let mut unbroken = row.chunk_by(|a, b| b.start == a.start + 1);
            if parts || unbroken.any(|run| run.len() as u32 > k + MAX_ERROR_RUN_BEYOND_K) {
                kept.extend_from_slice(row);
            }
        }
        errors += (before - kept.len()) as u64;
        *hits = kept;
    }
    // A pair without hits is in no group. Most pairs of a large genome are removed here, which frees gigabytes.
    pairs.retain(|pair| pair.hits.iter().any(|hits| !hits.is_empty()));
    errors
}

/// Keeps one pair of each molecule: the pair with the highest sum of base qualities, or the first of several such
/// pairs. In samples with fixed fragment ends (`fragment_ends`, by sample) a pair without a UMI is a molecule of its
/// own. The result is sorted by name and bases.
pub fn keep_best_pair_of_each_molecule(
    mut labelled: Vec<LabelledPair>,
    fragment_ends: &[RandomOrFixedEnds],
) -> Vec<LabelledPair> {
    labelled.sort_unstable_by(LabelledPair::compare_by_name_and_bases);
    let members: Vec<u32> = (0..labelled.len() as u32).collect();
    let quality = |pair: &LabelledPair| pair.mates.iter().flat_map(PackedRead::qualities).map(u64::from).sum::<u64>();
    let mut stays = vec![false; labelled.len()];
    let starts: Vec<MatePrefixes> = labelled.iter().map(MatePrefixes::from_pair).collect();
    for copies in MoleculeAssignment::assign_pairs_to_molecules(&members, &starts, fragment_ends).pairs_by_molecule() {
        if let [one] = copies[..] {
            stays[one as usize] = true;
            continue;
        }
        let best = copies.into_iter().min_by_key(|&p| (Reverse(quality(&labelled[p as usize])), p));
        best.into_iter().for_each(|p| stays[p as usize] = true);
    }
    drop(starts);
    let mut stays = stays.into_iter();
    labelled.retain(|_| stays.next().unwrap_or(false));
    labelled
}
