//! Runs tracking: converts records to junctions, selects anchor k-mers, reads all samples once, counts molecules and
//! decides what is detected.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_reads::{Lane, ProgressCounters, Trimmer, for_each_batch};
use genuma_somatic::kmer_lookup::KmerLookup;
use genuma_somatic::reference_kmers;
use genuma_work::ProgressListener;
use genuma_work::parallel::map_in_order;

use crate::anchors::{self, AnchorKmerIndex};
use crate::background_errors::BackgroundErrors;
use crate::change::{TrackedChange, VcfAlleleRecord};
use crate::error::Error;
use crate::mate_evidence::EvidenceCollector;
use crate::molecules::{self, FlankErrorCounts, MoleculeCounts};
use crate::pair_evidence::{JunctionDepths, JunctionPairEvidence};
use crate::reference_windows::{ReferenceWindow, read_reference_windows};
use crate::tracked_junction::{self, TrackedJunction};
use crate::verdict::{self, ChangeResult, JunctionObservations, SampleResult};

/// Inputs and options of a tracking run.
#[derive(Debug)]
pub struct TrackingJob {
    /// VCF records of the changes to track.
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
    pub background: BackgroundErrors,
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
    pub fn track_changes(&self, watch: &dyn ProgressListener) -> Result<TrackingResult, Error> {
        let ParsedRecords { mut changes, mut untracked, repeated } = self.parse_records()?;
        let meter = Arc::new(ProgressCounters::new("the reference"));
        watch.unit_started("place", Some(meter.clone()));
        let mut junctions = self.build_junctions(&mut changes, &mut untracked, &meter)?;
        let counted_kmers = anchors::list_kmers_to_count(&junctions, self.k);
        let copies = if counted_kmers.is_empty() {
            Vec::new()
        } else {
            reference_kmers::count_reference_copies_up_to_two(
                &self.reference,
                &KmerLookup::build(self.k, counted_kmers.iter().copied()),
                self.threads,
                &meter,
            )?
        };
        let anchors = AnchorKmerIndex::select_anchors(&junctions, self.k, &counted_kmers, &copies);
        drop((counted_kmers, copies));
        let trackable: HashSet<usize> =
            junctions.iter().zip(&anchors.is_trackable).filter(|(_, known)| **known).map(|(p, _)| p.change).collect();
        let spelled: HashSet<usize> =
            junctions.iter().filter(|p| p.alternative.len() > 2 * self.k as usize).map(|p| p.change).collect();
        for (i, change) in changes.iter().enumerate().filter(|(i, _)| !trackable.contains(i)) {
            let why = if spelled.contains(&i) { REASON_IN_REPEAT } else { REASON_AT_SEQUENCE_END };
            untracked.push(UntrackedChange { record: change.record.clone(), reason: why });
        }
        if trackable.is_empty() {
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
        let depths = JunctionDepths::zero(junctions.len(), self.samples.len());
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
        let mut evidence: Vec<JunctionPairEvidence> =
            found.into_iter().flat_map(|f| f.evidence).filter(|s| depths.is_pair_kept(s)).collect();
        evidence.sort_unstable();
        let judged = self.judge_samples(&changes, &junctions, &evidence, &depths, &trackable, &pairs);
        drop((anchors, evidence));
        // The remaining changes keep their order; junctions are no longer needed.
        junctions.clear();
        let mut i = 0;
        changes.retain(|_| {
            i += 1;
            trackable.contains(&(i - 1))
        });
        Ok(TrackingResult {
            changes,
            untracked,
            duplicate_records: repeated,
            samples: judged,
            unassigned_mates: strangers,
            kmers,
        })
    }

    /// Converts the VCF records to distinct changes.
    fn parse_records(&self) -> Result<ParsedRecords, Error> {
        let (mut keys, mut understood) = (HashMap::new(), ParsedRecords::default());
        for record in &self.records {
            match TrackedChange::from_record(record.clone())? {
                Ok(change) => match keys.entry(change.canonical_junctions()) {
                    Entry::Occupied(known) => understood.repeated.push([record.file_position, *known.get()]),
                    Entry::Vacant(new) => {
                        new.insert(record.file_position);
                        understood.changes.push(change);
                    }
                },
                Err((record, why)) => understood.untracked.push(UntrackedChange { record, reason: why }),
            }
        }
        Ok(understood)
    }

    /// Builds the sequences of all junctions from the reference, and checks that the records fit it. Changes at
    /// positions that the reference lacks are moved to `untracked`.
    fn build_junctions(
        &self,
        changes: &mut Vec<TrackedChange>,
        untracked: &mut Vec<UntrackedChange>,
        meter: &ProgressCounters,
    ) -> Result<Vec<TrackedJunction>, Error> {
        let wanted: Vec<_> = changes.iter().flat_map(tracked_junction::window_requests).collect();
        let windows = read_reference_windows(&self.reference, &wanted, meter)?;
        let windows = keep_changes_on_reference(changes, untracked, &windows)?;
        // Positions that changes affect, without the anchor bases of indels.
        let none = BTreeSet::new();
        let mut touched: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for change in changes.iter().filter(|c| c.reference.is_some()) {
            for junction in &change.junctions {
                let (Some(from), Some(to)) = (&junction.from, &junction.to) else { continue };
                touched.entry(&from.chrom).or_default().extend(from.pos + 1..to.pos.max(from.pos + 2));
            }
        }
        for change in changes.iter().filter(|c| c.reference.is_none()) {
            let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]).flatten();
            ends.for_each(|end| {
                touched.entry(&end.chrom).or_default().insert(end.pos);
            });
        }
        let mut junctions = Vec::new();
        for (number, (change, windows)) in changes.iter().zip(windows).enumerate() {
            for (junction, pair) in change.junctions.iter().zip(windows.chunks(2)) {
                let pair: [&ReferenceWindow; 2] = [&pair[0], &pair[1]];
                let chrom = junction.from.as_ref().map_or("", |end| &end.chrom);
                junctions.push(tracked_junction::build_junction(
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
        depths: &JunctionDepths,
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
                if collector.has_anchor(&pair) {
                    let pair = trimmer.trim_pair(pair);
                    collector.collect_pair_evidence(&pair, batch.sample, |one| {
                        evidence.extend(depths.count_and_downsample_pair(&one).then_some(one))
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
        depths: &JunctionDepths,
        trackable: &HashSet<usize>,
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
            let count = |(): &mut (), junction: usize| molecules::count_molecules(&junctions[junction], of(junction));
            let counted: Vec<(MoleculeCounts, Option<FlankErrorCounts>)> =
                map_in_order(junctions.len(), self.threads, || (), count);
            let background = BackgroundErrors::from_flank_counts(counted.iter().filter_map(|c| c.1.as_ref()));
            let mut by_change: HashMap<usize, Vec<usize>> = HashMap::new();
            (0..junctions.len()).for_each(|p| by_change.entry(junctions[p].change).or_default().push(p));
            let normal = samples.iter().find(|(s, _)| Some(*s) == self.normal).map(|(_, sample)| sample);
            let mut results: Vec<ChangeResult> = Vec::new();
            for (index, change) in changes.iter().enumerate().filter(|(i, _)| trackable.contains(i)) {
                let observations: Vec<JunctionObservations<'_>> = by_change[&index]
                    .iter()
                    .map(|&p| JunctionObservations {
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

/// Moves the changes at positions that the reference lacks from `changes` to `untracked`. `windows` are the reference
/// ranges of all changes. Returns those of each remaining change.
///
/// # Errors
/// REF of a record differs from the reference, or the reference lacks most contigs of the records.
fn keep_changes_on_reference<'a>(
    changes: &mut Vec<TrackedChange>,
    untracked: &mut Vec<UntrackedChange>,
    mut windows: &'a [ReferenceWindow],
) -> Result<Vec<&'a [ReferenceWindow]>, Error> {
    let (num_changes, mut unknown_contigs) = (changes.len(), Vec::new());
    let (mut kept, mut windows_kept) = (Vec::new(), Vec::new());
    for change in changes.drain(..) {
        let (own, rest) = windows.split_at(2 * change.junctions.len() + 1);
        windows = rest;
        match find_misfit(&change, own)? {
            None => {
                kept.push(change);
                windows_kept.push(own);
            }
            Some(reason) => {
                unknown_contigs.extend((reason == REASON_UNKNOWN_CONTIG).then(|| change.record.display_name()));
                untracked.push(UntrackedChange { record: change.record, reason });
            }
        }
    }
    *changes = kept;
    if let [first, ..] = &unknown_contigs[..]
        && 2 * unknown_contigs.len() > num_changes
    {
        return Err(Error::NothingToTrack(format!(
            "the reference does not have the contigs of {} of {num_changes} changes, such as {first}: give the reference \
             of the VCF file",
            unknown_contigs.len()
        )));
    }
    Ok(windows_kept)
}

/// Returns why a change cannot be tracked if the reference lacks a contig or a position of its record and breakends;
/// otherwise `None`. `windows` are the reference ranges requested by [`tracked_junction::window_requests`].
///
/// # Errors
/// REF of the record differs from the reference.
fn find_misfit(change: &TrackedChange, windows: &[ReferenceWindow]) -> Result<Option<&'static str>, Error> {
    let record = &change.record;
    let own = &windows[windows.len() - 1];
    if !own.is_present {
        return Ok(Some(REASON_UNKNOWN_CONTIG));
    }
    if own.bases.is_empty() {
        return Ok(Some(REASON_BEYOND_CONTIG));
    }
    if let Some(reference) = &change.reference {
        let same = |(a, b): (&u8, &u8)| a == b || *b == b'N' || !b"ACGT".contains(a);
        if own.bases.len() < reference.len() || !own.bases.iter().zip(reference.as_bytes()).all(same) {
            let here = String::from_utf8_lossy(&own.bases[..own.bases.len().min(24)]).into_owned();
            let what = format!(
                "REF does not match the reference, which has {here} there: the VCF file belongs to another genome"
            );
            return Err(Error::Record { record: record.display_name(), what });
        }
    }
    let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]);
    for (end, window) in ends.zip(windows) {
        let Some(end) = end else { continue };
        if !window.is_present {
            return Ok(Some(REASON_UNKNOWN_CONTIG));
        }
        if window.bases_in_range(end.pos, end.pos + 1).is_empty() && change.reference.is_none() {
            return Ok(Some(REASON_BEYOND_CONTIG));
        }
    }
    Ok(None)
}
