//! Runs tracking: converts records to junctions, selects anchor k-mers, reads all samples once, counts molecules and
//! decides what is detected.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_reads::{Lane, ProgressCounters, Trimmer, for_each_batch};
use genuma_somatic::kmer_lookup::KmerLookup;
use genuma_somatic::reference_kmers;
use genuma_work::ProgressListener;
use genuma_work::parallel::map_in_order;

use crate::anchors::{self, AnchorKmerIndex};
use crate::background_errors::{BackgroundErrorRates, CompactFlankErrorCounts, FlankErrorSums};
use crate::change::{TrackedChange, VcfAlleleRecord};
use crate::error::Error;
use crate::mate_evidence::EvidenceCollector;
use crate::molecules::{self, MoleculeCounts};
use crate::pair_evidence::{JunctionPairEvidence, PairCountsByJunctionAndSample};
use crate::reference_windows::{ReferenceWindow, ReferenceWindowRequest, ReferenceWindows, read_reference_windows};
use crate::tracked_junction::{self, TrackedJunction};
use crate::verdict::{self, ChangeResult, JunctionObservations, SampleResult};

/// Inputs and options of a tracking run.
#[derive(Debug)]
pub struct TrackingJob {
    /// VCF records of the changes to track. Tracking moves them to its result.
    pub records: Vec<VcfAlleleRecord>,
    /// FASTA file of the reference genome of the VCF records.
    pub reference: PathBuf,
    /// Lanes of reads of all samples. `Lane::sample` is an index in [`TrackingJob::samples`].
    pub lanes: Vec<Lane>,
    /// Names of the samples.
    pub samples: Vec<String>,
    /// Index of the patient's normal sample; `None` without one.
    pub normal: Option<usize>,
    /// Length of the anchor k-mers, 17 to 32.
    pub k: u32,
    /// Number of threads, at least 1.
    pub threads: usize,
}

/// A change that cannot be tracked.
#[derive(Debug, Clone, PartialEq)]
pub struct UntrackedChange {
    /// The record of the VCF file.
    pub record: VcfAlleleRecord,
    /// Why the change cannot be tracked.
    pub reason: &'static str,
}

/// Results of tracking in one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleTrackingResult {
    /// Name of the sample, as given with `--sample`.
    pub name: String,
    /// Whether the sample is the patient's normal.
    pub is_normal: bool,
    /// Results of all tracked changes, in their order.
    pub changes: Vec<ChangeResult>,
    /// Whether the sample contains tumour DNA, and how much, computed from all changes.
    pub result: SampleResult,
    /// Background errors: rates at which errors look like a change.
    pub background: BackgroundErrorRates,
    /// Number of read pairs of the sample.
    pub pairs: u64,
}

/// Result of tracking: the tracked changes, the changes that cannot be tracked, and the results of each sample (the
/// later samples and, if given, the patient's normal).
#[derive(Debug, Clone, PartialEq)]
pub struct TrackingResult {
    /// The changes that were tracked, in the order of the VCF file.
    pub changes: Vec<TrackedChange>,
    /// The changes that cannot be tracked.
    pub untracked: Vec<UntrackedChange>,
    /// Records that describe the same change as an earlier record: file position of the record, and of the earlier one.
    pub duplicate_records: Vec<[(usize, usize); 2]>,
    /// Results for each sample, in the given order.
    pub samples: Vec<SampleTrackingResult>,
    /// Number of mates that fit neither allele of their junction.
    pub unassigned_mates: u64,
    /// Number of anchor k-mers of all junctions.
    pub kmers: usize,
}

/// Changes that were parsed from the VCF records, and records that cannot be tracked.
#[derive(Default)]
struct ParsedRecords {
    changes: Vec<TrackedChange>,
    untracked: Vec<UntrackedChange>,
    repeated: Vec<[(usize, usize); 2]>,
}

/// Reason why a change cannot be tracked: it cannot be distinguished from the rest of the genome.
const REASON_IN_REPEAT: &str = "it is in a repeat of the reference";
/// Reason why a change cannot be tracked: there is not enough reference sequence around it.
const REASON_AT_SEQUENCE_END: &str = "it is at the end of a sequence, or next to letters that are not bases";
/// Reason why a change cannot be tracked: its contig, or that of its mate, is not in the reference.
const REASON_UNKNOWN_CONTIG: &str = "the reference does not have its contig or that of its mate";
/// Reason why a change cannot be tracked: its position, or that of its mate, is not in the contig.
const REASON_BEYOND_CONTIG: &str = "its position or that of its mate is beyond the end of the contig";

/// Maximum number of junctions whose counts at the flanks are in memory at a time.
const MAX_JUNCTIONS_WITH_FLANK_COUNTS: usize = 1024;

/// Results of one thread that read the samples.
struct ThreadResults<'a> {
    collector: EvidenceCollector<'a>,
    trimmer: Trimmer,
    evidence: Vec<JunctionPairEvidence>,
    pairs: Vec<u64>,
    /// Length of the longest mate in bases.
    max_mate_len: usize,
}

impl TrackingJob {
    /// Runs all stages of tracking.
    ///
    /// # Errors
    /// REF of a record differs from the reference, no change can be tracked, the reference lacks most contigs of the
    /// changes, all reads are shorter than k, or a file cannot be read.
    pub fn track_changes(&mut self, watch: &dyn ProgressListener) -> Result<TrackingResult, Error> {
        let ParsedRecords { mut changes, mut untracked, repeated } = parse_records(std::mem::take(&mut self.records))?;
        let meter = Arc::new(ProgressCounters::new("the reference"));
        watch.unit_started("place", Some(meter.clone()));
        let junctions = self.build_junctions(&mut changes, &mut untracked, &meter)?;
        let counted = KmerLookup::from_kmers(self.k, anchors::list_kmers_to_count_in_reference(&junctions, self.k));
        let copies = match counted.is_empty() {
            true => Vec::new(),
            false => {
                reference_kmers::count_reference_copies_up_to_two(&self.reference, &counted, self.threads, &meter)?
            }
        };
        let anchors = AnchorKmerIndex::select_anchors(&junctions, counted, &copies)?;
        drop(copies);
        let (mut trackable, mut spelled) = (vec![false; changes.len()], vec![false; changes.len()]);
        for (junction, is_trackable) in junctions.iter().zip(&anchors.is_trackable) {
            trackable[junction.change] |= is_trackable;
            spelled[junction.change] |= junction.alternative.len() > 2 * self.k as usize;
        }
        for (i, change) in changes.iter().enumerate().filter(|(i, _)| !trackable[*i]) {
            let why = if spelled[i] { REASON_IN_REPEAT } else { REASON_AT_SEQUENCE_END };
            untracked.push(UntrackedChange { record: change.record.clone(), reason: why });
        }
        if !trackable.contains(&true) {
            let reasons: BTreeSet<&str> = untracked.iter().map(|u| u.reason).collect();
            let reasons: Vec<&str> = reasons.into_iter().collect();
            return Err(Error::NothingToTrack(format!(
                "none of the {} changes can be tracked: {}",
                untracked.len(),
                reasons.join("; ")
            )));
        }
        let meter = Arc::new(ProgressCounters::default());
        watch.unit_started("look", Some(meter.clone()));
        let depths = PairCountsByJunctionAndSample::zero_counts(junctions.len(), self.samples.len());
        let found = self.collect_evidence(&anchors, &junctions, &depths, &meter)?;
        watch.unit_started("judge", None);
        let kmers = anchors.lookup.len();
        let strangers = found.iter().map(|f| f.collector.unassigned_mates).sum();
        let pairs: Vec<u64> = (0..self.samples.len()).map(|s| found.iter().map(|f| f.pairs[s]).sum()).collect();
        let longest = found.iter().map(|f| f.max_mate_len).max().unwrap_or(0);
        if longest < self.k as usize && pairs.iter().sum::<u64>() > 0 {
            let what =
                format!("the longest read has {longest} bases, k is {}: use a smaller -k or longer reads", self.k);
            return Err(Error::NothingToTrack(what));
        }
        let evidence = sort_evidence(found.into_iter().map(|f| f.evidence), &depths);
        drop(anchors);
        let judged = self.judge_samples(&changes, &junctions, &evidence, &depths, &trackable, &pairs);
        let each = changes.into_iter().zip(&trackable);
        Ok(TrackingResult {
            changes: each.filter(|(_, is_trackable)| **is_trackable).map(|(change, _)| change).collect(),
            untracked,
            duplicate_records: repeated,
            samples: judged,
            unassigned_mates: strangers,
            kmers,
        })
    }

    /// Builds the sequences of all junctions from the reference, and checks that the records fit it. Changes at
    /// positions that the reference lacks are moved to `untracked`.
    fn build_junctions(
        &self,
        changes: &mut Vec<TrackedChange>,
        untracked: &mut Vec<UntrackedChange>,
        meter: &ProgressCounters,
    ) -> Result<Vec<TrackedJunction>, Error> {
        let wanted: Vec<_> = changes.iter().flat_map(tracked_junction::list_window_requests_for_change).collect();
        let reference = read_reference_windows(&self.reference, wanted, meter)?;
        keep_changes_on_reference(changes, untracked, &reference)?;
        // Positions that changes affect, without the anchor bases of indels.
        let none = BTreeSet::new();
        let mut touched: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for change in changes.iter().filter(|c| c.has_sequence_alleles) {
            for junction in &change.junctions {
                let (Some(from), Some(to)) = (&junction.from, &junction.to) else { continue };
                touched.entry(&from.chrom).or_default().extend(from.pos + 1..to.pos.max(from.pos + 2));
            }
        }
        for change in changes.iter().filter(|c| !c.has_sequence_alleles) {
            let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]).flatten();
            ends.for_each(|end| {
                touched.entry(&end.chrom).or_default().insert(end.pos);
            });
        }
        let mut junctions = Vec::with_capacity(changes.iter().map(|change| change.junctions.len()).sum());
        for (number, change) in changes.iter().enumerate() {
            let windows = windows_of_change(change, &reference);
            for (j, junction) in change.junctions.iter().enumerate() {
                let pair = [windows[2 * j], windows[2 * j + 1]];
                let chrom = junction.from.as_ref().map_or("", |end| &end.chrom);
                junctions.push(tracked_junction::build_tracked_junction(
                    number,
                    change,
                    junction,
                    pair,
                    touched.get(chrom).unwrap_or(&none),
                ));
            }
        }
        Ok(junctions)
    }

    /// Reads all samples once and collects the evidence of all read pairs.
    fn collect_evidence<'a>(
        &self,
        anchors: &'a AnchorKmerIndex,
        junctions: &'a [TrackedJunction],
        depths: &PairCountsByJunctionAndSample,
        meter: &ProgressCounters,
    ) -> Result<Vec<ThreadResults<'a>>, Error> {
        let start = || ThreadResults {
            collector: EvidenceCollector::for_junctions(anchors, junctions),
            trimmer: Trimmer::default(),
            evidence: Vec::new(),
            pairs: vec![0; self.samples.len()],
            max_mate_len: 0,
        };
        for_each_batch(&self.lanes, self.threads, meter, start, |found, batch| {
            let ThreadResults { collector, trimmer, evidence, pairs, max_mate_len: longest } = found;
            pairs[usize::from(batch.sample)] += batch.len() as u64;
            for pair in batch.iter() {
                *longest = pair.mates.iter().fold(*longest, |longest, mate| longest.max(mate.seq.len()));
                if collector.pair_has_anchor_kmer(&pair) {
                    let pair = trimmer.trim_pair(pair);
                    collector.collect_pair_evidence(&pair, batch.sample, |one| {
                        evidence.extend(depths.count_pair_and_test_downsampling(&one).then_some(one))
                    });
                }
            }
            Ok(())
        })
    }

    /// For each sample, the normal first: counts molecules, estimates background errors, and decides which changes are
    /// detected.
    fn judge_samples(
        &self,
        changes: &[TrackedChange],
        junctions: &[TrackedJunction],
        evidence: &[JunctionPairEvidence],
        depths: &PairCountsByJunctionAndSample,
        trackable: &[bool],
        pairs: &[u64],
    ) -> Vec<SampleTrackingResult> {
        let order = self.normal.into_iter().chain((0..self.samples.len()).filter(|s| Some(*s) != self.normal));
        let mut samples: Vec<(usize, SampleTrackingResult)> = Vec::new();
        for number in order {
            let of = |junction: usize| {
                let key = (junction as u32, number as u8);
                let from = evidence.partition_point(|s| (s.junction, s.sample) < key);
                let to = evidence.partition_point(|s| (s.junction, s.sample) <= key);
                &evidence[from..to]
            };
            // The counts at the flanks take some kilobytes each, so few junctions have them at a time.
            let (mut sums, mut counted) = (FlankErrorSums::zero_sums(), Vec::with_capacity(junctions.len()));
            for first in (0..junctions.len()).step_by(MAX_JUNCTIONS_WITH_FLANK_COUNTS) {
                let num = MAX_JUNCTIONS_WITH_FLANK_COUNTS.min(junctions.len() - first);
                let count = |(): &mut (), i: usize| molecules::count_molecules(&junctions[first + i], of(first + i));
                let counts = map_in_order(num, self.threads, || (), count).into_iter();
                counted.extend(counts.map(|(molecules, flanks)| {
                    let flanks = flanks.map(|flanks| sums.add_and_compact_flank_counts(&flanks));
                    (molecules, flanks)
                }));
            }
            let counted: Vec<(MoleculeCounts, Option<CompactFlankErrorCounts>)> = counted;
            let background = BackgroundErrorRates::estimate_from_flank_sums(sums);
            let normal = samples.iter().find(|(s, _)| Some(*s) == self.normal).map(|(_, sample)| sample);
            let mut results: Vec<ChangeResult> = Vec::new();
            for (index, change) in changes.iter().enumerate().filter(|(i, _)| trackable[*i]) {
                // Junctions have the order of their changes.
                let [from, to] = [index, index + 1].map(|i| junctions.partition_point(|p| p.change < i));
                let observations: Vec<JunctionObservations<'_>> = (from..to)
                    .map(|p| JunctionObservations {
                        molecules: &counted[p].0,
                        error_rates: background.error_rates_of_junction(&junctions[p], counted[p].1.as_ref()),
                        downsampling_factor: depths.downsampling_factor(p, number),
                    })
                    .collect();
                let of_normal = normal.map(|sample| &sample.changes[results.len()]);
                results.push(verdict::judge_change(index, change.record.allele_fraction, &observations, of_normal));
            }
            let whole = verdict::judge_sample(&mut results, |index| changes[index].record.allele_fraction);
            let is_normal = Some(number) == self.normal;
            let name = self.samples[number].clone();
            samples.push((
                number,
                SampleTrackingResult {
                    name,
                    is_normal,
                    changes: results,
                    result: whole,
                    background,
                    pairs: pairs[number],
                },
            ));
        }
        samples.sort_by_key(|(number, _)| *number);
        samples.into_iter().map(|(_, sample)| sample).collect()
    }
}

/// Moves the changes at positions that the reference lacks from `changes` to `untracked`. `reference` has the ranges of
/// all changes.
///
/// # Errors
/// REF of a record differs from the reference, or the reference lacks most contigs of the records.
fn keep_changes_on_reference(
    changes: &mut Vec<TrackedChange>,
    untracked: &mut Vec<UntrackedChange>,
    reference: &ReferenceWindows,
) -> Result<(), Error> {
    let (num_changes, mut unknown_contigs, mut kept) = (changes.len(), Vec::new(), Vec::new());
    for change in changes.drain(..) {
        match find_misfit(&change, &windows_of_change(&change, reference))? {
            None => kept.push(change),
            Some(reason) => {
                unknown_contigs.extend((reason == REASON_UNKNOWN_CONTIG).then(|| change.record.format_for_messages()));
                untracked.push(UntrackedChange { record: change.record, reason });
            }
        }
    }
    *changes = kept;
    if 2 * unknown_contigs.len() > num_changes {
        let what = format!(
            "the reference does not have the contigs of {} of {num_changes} changes: give the reference of the VCF file",
            unknown_contigs.len()
        );
        return Err(Error::Record { record: unknown_contigs.swap_remove(0), what });
    }
    Ok(())
}

/// The reference ranges of a change, as requested by [`tracked_junction::list_window_requests_for_change`].
fn windows_of_change<'a>(change: &TrackedChange, reference: &'a ReferenceWindows) -> Vec<ReferenceWindow<'a>> {
    let requests: Vec<ReferenceWindowRequest> = tracked_junction::list_window_requests_for_change(change);
    requests.iter().map(|request| reference.requested_window(request)).collect()
}

/// Converts the VCF records to distinct changes.
fn parse_records(records: Vec<VcfAlleleRecord>) -> Result<ParsedRecords, Error> {
    let (mut keys, mut understood) = (HashMap::new(), ParsedRecords::default());
    for record in records {
        let position = record.file_position;
        match TrackedChange::from_record(record)? {
            Ok(change) => match keys.entry(change.canonical_junctions()) {
                Entry::Occupied(known) => understood.repeated.push([position, *known.get()]),
                Entry::Vacant(new) => {
                    new.insert(position);
                    understood.changes.push(change);
                }
            },
            Err((record, why)) => understood.untracked.push(UntrackedChange { record, reason: why }),
        }
    }
    Ok(understood)
}

/// Joins the evidence of all threads, without the pairs that downsampling leaves out, and sorts it.
fn sort_evidence(
    mut by_thread: impl Iterator<Item = Vec<JunctionPairEvidence>>,
    depths: &PairCountsByJunctionAndSample,
) -> Vec<JunctionPairEvidence> {
    let mut evidence = by_thread.next().unwrap_or_default();
    by_thread.for_each(|mut of_thread| evidence.append(&mut of_thread));
    evidence.retain(|pair| depths.is_pair_kept(pair));
    evidence.sort_unstable();
    evidence
}

/// Returns why a change cannot be tracked if the reference lacks a contig or a position of its record and breakends;
/// otherwise `None`. `windows` are the reference ranges of the change.
///
/// # Errors
/// REF of the record differs from the reference.
fn find_misfit(change: &TrackedChange, windows: &[ReferenceWindow<'_>]) -> Result<Option<&'static str>, Error> {
    let record = &change.record;
    let own = &windows[windows.len() - 1];
    if !own.is_present {
        return Ok(Some(REASON_UNKNOWN_CONTIG));
    }
    if own.bases.is_empty() {
        return Ok(Some(REASON_BEYOND_CONTIG));
    }
    if let Some(reference) = change.expected_reference_bases() {
        let same = |(a, b): (&u8, &u8)| a == b || *b == b'N' || !b"ACGT".contains(a);
        if own.bases.len() < reference.len() || !own.bases.iter().zip(reference.as_bytes()).all(same) {
            let here = String::from_utf8_lossy(&own.bases[..own.bases.len().min(24)]).into_owned();
            let what = format!(
                "REF does not match the reference, which has {here} there: the VCF file belongs to another genome"
            );
            return Err(Error::Record { record: record.format_for_messages(), what });
        }
    }
    let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]);
    for (end, window) in ends.zip(windows) {
        let Some(end) = end else { continue };
        if !window.is_present {
            return Ok(Some(REASON_UNKNOWN_CONTIG));
        }
        if window.bases_in_range(end.pos, end.pos + 1).is_empty() && !change.has_sequence_alleles {
            return Ok(Some(REASON_BEYOND_CONTIG));
        }
    }
    Ok(None)
}
