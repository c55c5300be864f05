//! Places contigs on the reference, finds their changes, and drops contigs that cannot become a call.
//!
//! As many contigs are placed together as fit in memory, and the reference is scanned twice for each such batch.

use std::collections::BTreeSet;

use genuma_align::scan::{ReferenceScan, ScanResult};
use genuma_reads::fasta::Reference;
use genuma_work::ProgressCounters;

use crate::aligned_contig::{self, AlignedContig};
use crate::assemble::Contig;
use crate::contig_filter::RejectReason;
use crate::event::CallThresholds;
use crate::insertion_source;
use crate::ledger::{Ledger, UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE};

/// Resources and options for placing contigs on the reference.
pub struct PlacementContext<'a> {
    /// The genome to which the contigs are aligned.
    pub genome: &'a Reference,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Memory budget in bytes for the search of the reference and its results.
    pub memory_bytes: u64,
    /// Properties of the libraries that decide which contigs and calls are filtered, and two thresholds: minimum
    /// quality and minimum number of molecules.
    pub thresholds: CallThresholds,
    /// Indices of contigs that are returned even if they are rejected.
    pub always_kept: &'a BTreeSet<usize>,
    /// Receives progress: the number of reference bases scanned.
    pub meter: &'a ProgressCounters,
}

/// A contig with its position on the genome and its changes.
#[derive(Debug)]
pub struct PlacedContig {
    /// Index of the contig in the list that was given to [`place_contigs`].
    pub index: usize,
    /// Number of read pairs from which the contig was assembled.
    pub num_pairs: usize,
    /// The contig aligned with the genome, with its changes.
    pub contig: AlignedContig,
    /// Why no reads are recruited for the contig; `None` if reads are recruited.
    pub(crate) reject_reason: Option<RejectReason>,
}

/// Places all contigs on the genome. Returns the contigs for which reads are recruited, those listed in
/// [`PlacementContext::always_kept`], and those that were rejected only after their insertions were replaced by
/// junctions. The reason for a rejection is in [`PlacedContig::reject_reason`]. Counts all rejected contigs in
/// `ledger`.
pub fn place_contigs(contigs: Vec<Contig>, placing: &PlacementContext<'_>, ledger: &mut Ledger) -> Vec<PlacedContig> {
    let &PlacementContext { genome, threads, memory_bytes: memory, ref thresholds, always_kept: asked, meter } =
        placing;
    let scan = ReferenceScan { genome, regions: None, threads, memory_bytes: memory, meter };
    let lengths: Vec<usize> = contigs.iter().map(|contig| contig.seq.len()).collect();
    meter.add_expected_bytes(scan.reference_bases_of_all_passes(&lengths));
    let (mut placed, mut left_out) = (Vec::new(), [0; RejectReason::ALL_REJECT_REASONS.len()]);
    let (mut nowhere, mut nowhere_in_normal, mut num_repetitive_sequences, mut sequences_with_dropped_hits) =
        (0, 0, 0, 0);
    let mut contigs = contigs.into_iter();
    let mut first = 0;
    while first < lengths.len() {
        let n = scan.count_sequences_that_fit_batch(lengths[first..].iter().copied());
        let some: Vec<Contig> = contigs.by_ref().take(n).collect();
        let seqs: Vec<&[u8]> = some.iter().map(|contig| &contig.seq[..]).collect();
        let found: ScanResult<PlacementOutcome> = scan.find_and_convert_hits(&seqs, |c, hits| {
            let compared = aligned_contig::align_contig(&some[c], &hits, genome);
            let (number, pairs) = (first + c, some[c].num_pairs());
            let reject_reason =
                RejectReason::find_reject_reason(&compared, pairs, thresholds).filter(|_| !asked.contains(&number));
            let placed = PlacedContig { index: number, num_pairs: pairs, contig: compared, reject_reason: None };
            PlacementOutcome {
                is_unplaced: hits.is_empty(),
                is_normal_sequence: is_mostly_normal_sequence(&some[c]),
                placed: reject_reason.map_or(Ok(placed), Err),
            }
        });
        num_repetitive_sequences += found.num_repetitive_sequences;
        sequences_with_dropped_hits += found.sequences_with_dropped_hits;
        for outcome in found.hits {
            nowhere += u64::from(outcome.is_unplaced);
            nowhere_in_normal += u64::from(outcome.is_unplaced && outcome.is_normal_sequence);
            match outcome.placed {
                Ok(one) => placed.push(one),
                Err(why) => left_out[why as usize] += 1,
            }
        }
        first += n;
    }
    replace_insertions_by_junctions(&mut placed, &scan);
    for one in &mut placed {
        one.reject_reason = RejectReason::find_reject_reason(&one.contig, one.num_pairs, thresholds);
        one.reject_reason.into_iter().for_each(|why| left_out[why as usize] += 1);
    }
    ledger.append_produced_line("place", "contigs without a position on the reference", nowhere);
    if nowhere_in_normal > 0 {
        ledger.append_produced_line("place", UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE, nowhere_in_normal);
    }
    ledger.append_skipped_line(
        "place",
        "contigs with a part that occurs too often in the reference to be searched",
        num_repetitive_sequences,
    );
    ledger.append_skipped_line(
        "place",
        "contigs with a part for which only the best positions were kept",
        sequences_with_dropped_hits,
    );
    RejectReason::ALL_REJECT_REASONS
        .iter()
        .zip(left_out)
        .for_each(|(why, n)| ledger.append_skipped_line("place", why.ledger_text(), n));
    placed
}

/// Result of placing one contig on the reference.
struct PlacementOutcome {
    /// Whether the contig has no position on the reference.
    is_unplaced: bool,
    /// Whether the normal has most of the contig's sequence too.
    is_normal_sequence: bool,
    /// The placed contig, or the reason why it was rejected.
    placed: Result<PlacedContig, RejectReason>,
}

/// Whether the normal has most of a contig's sequence: candidate k-mers cover fewer than half of the bases. In a contig
/// of a virus or a bacterium they cover nearly all bases.
fn is_mostly_normal_sequence(contig: &Contig) -> bool {
    2 * contig.novel.iter().filter(|novel| **novel).count() < contig.novel.len()
}

/// Replaces each insertion of 50 bp or more whose inserted sequence is found in the reference, next to it or elsewhere,
/// by the junctions that it forms.
fn replace_insertions_by_junctions(placed: &mut [PlacedContig], scan: &ReferenceScan<'_>) {
    let findings = placed.iter().flat_map(|one| &one.contig.changes);
    let inserted: Vec<Vec<u8>> =
        findings.filter_map(|f| insertion_source::long_inserted_sequence(&f.change)).map(<[u8]>::to_vec).collect();
    let inserted: Vec<&[u8]> = inserted.iter().map(Vec::as_slice).collect();
    let lengths: Vec<usize> = inserted.iter().map(|bases| bases.len()).collect();
    scan.meter.add_expected_bytes(scan.reference_bases_of_all_passes(&lengths));
    let mut hits = scan.find_hits(&inserted).hits.into_iter();
    for one in placed {
        let findings = std::mem::take(&mut one.contig.changes);
        one.contig.changes = insertion_source::replace_insertions_by_junctions(findings, scan.genome, &mut hits);
    }
}

#[cfg(test)]
mod tests {
    use genuma_reads::fasta;

    use super::*;
    use crate::assemble;

    /// Pseudorandom bases; the same for the same `dice`.
    fn bases(dice: &mut u64, n: usize) -> Vec<u8> {
        let mut base = || {
            *dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(*dice >> 62) as usize]
        };
        (0..n).map(|_| base()).collect()
    }

    /// A genome, and contigs of it: every second has a changed base, supported by two or three pairs; one has an
    /// insertion copied from elsewhere.
    fn world() -> (Reference, Vec<Contig>) {
        let mut dice = 4;
        let seq = bases(&mut dice, 40_000);
        let contig = |i: usize| {
            let mut own = seq[i * 10..i * 10 + 320].to_vec();
            match i % 4 {
                0 => own[160] = if own[160] == b'A' { b'C' } else { b'A' },
                1 if i == 1 => drop(own.splice(160..160, seq[30_000..30_090].iter().copied())),
                2 => own[150] = if own[150] == b'G' { b'T' } else { b'G' },
                _ => {}
            }
            let placed = |pair| assemble::ContigRead { pair, mate: 0, forward: true, start: 0 };
            let reads = (0..if i % 4 == 2 { 2 } else { 3 }).map(placed).collect();
            let (novel, weight) = (vec![true; own.len()], vec![100; own.len()]);
            Contig { seq: own, novel, quality_sums: weight, reads, outer_mates: Default::default() }
        };
        let contigs = (0..3_600).map(contig).collect();
        let genome = vec![fasta::Contig { name: "one".into(), seq: seq.clone() }];
        (Reference::from_contigs(genome), contigs)
    }

    fn placed(memory: u64, asked: &[usize]) -> (Vec<PlacedContig>, Ledger, u64, u64) {
        let (genome, contigs) = world();
        let (asked, meter) = (asked.iter().copied().collect(), ProgressCounters::new("the reference"));
        let placing = PlacementContext {
            genome: &genome,
            threads: 2,
            memory_bytes: memory,
            thresholds: CallThresholds::from_trim_counts(&Default::default(), 0, 8.0),
            always_kept: &asked,
            meter: &meter,
        };
        let mut ledger = Ledger::default();
        let placed = place_contigs(contigs, &placing, &mut ledger);
        (placed, ledger, meter.bytes_done(), meter.bytes_total())
    }

    #[test]
    fn only_what_is_worth_it_or_asked_for_stays_whatever_memory_there_is() {
        let (placed_at_once, ledger, done, total) = placed(1 << 30, &[2, 3]);
        // One scan for all contigs, and one for inserted sequences.
        assert_eq!((done, total), (4 * 40_000, 4 * 40_000));
        let worth = placed_at_once.iter().filter(|one| one.reject_reason.is_none());
        assert_eq!(worth.map(|one| one.index).filter(|&n| n % 4 == 0).count(), 900);
        let why = |n: usize| placed_at_once.iter().find(|one| one.index == n).map(|one| one.reject_reason);
        assert_eq!([why(2), why(3)], [Some(Some(RejectReason::TooFewPairs)), Some(Some(RejectReason::NoChange))]);
        assert_eq!([why(6), why(7)], [None, None]);
        let inserted = placed_at_once.iter().find(|one| one.index == 1).unwrap();
        assert_eq!(inserted.contig.changes.len(), 2, "{:?}", inserted.contig.changes);
        let (by_turns, same, done, _) = placed(0, &[2, 3]);
        assert!(done >= 6 * 40_000, "one turn");
        let of = |placed: &[PlacedContig]| -> Vec<_> {
            placed.iter().map(|one| (one.index, one.reject_reason, one.contig.clone())).collect()
        };
        assert_eq!(of(&by_turns), of(&placed_at_once));
        assert_eq!(format!("{same:?}"), format!("{ledger:?}"));
    }
}
