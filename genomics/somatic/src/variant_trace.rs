//! Traces given variants (`--why`) through a call: reports what each stage found of a variant, and at which stage and
//! why it was dropped.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::encode::{kmers, unpack};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_reads::targets::Targets;
use genuma_reads::{NORMAL_SAMPLE, ReadPair, TUMOUR_SAMPLE};

use crate::assemble::Contig;
use crate::candidate_kmer::{CandidateKmer, group_candidates_by_kmer};
use crate::change::{Breakend, Change, MIN_STRUCTURAL_VARIANT_BP, RetainedSide, is_on_target};
use crate::contig_filter::RejectReason;
use crate::contig_placement::PlacedContig;
use crate::event::Event;
use crate::explanation::{Explanation, ExplanationMethod};
use crate::group_assembly::TracedVariantPairs;
use crate::kmer_lookup::{KmerHit, KmerLookup, KmerLookupBuffers};
use crate::labelled_pair::find_candidates_in_read;
use crate::locus::{Locus, VariantCall};
use crate::tandem_repeat;

/// A variant given with `--why` that is followed through all stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedVariant {
    /// The variant as the user wrote it.
    pub description: String,
    /// The differences between the variant and the reference: two junctions for an inversion, otherwise one change.
    pub changes: Vec<Change>,
}

/// Report on a traced variant: the findings of each stage of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceReport {
    /// The variant as the user wrote it.
    pub variant: String,
    /// One line per finding, in the order of the stages.
    pub lines: String,
}

/// Estimated number of bytes for each k-mer of a traced variant: the k-mer, its slots in the lookup, its counts and
/// ranks, by the sizes of their types, rounded up.
const BYTES_PER_TRACED_KMER: usize = 56;
/// Maximum number of bytes of the line that a report has for each k-mer of the changed sequence.
const LINE_BYTES_PER_KMER: usize = 80;
/// Number of bytes of a traced variant and of the other lines of its report. Empirical: with half of it, a call with
/// `--why` of a VCF file with SNVs took 885 MB where 774 MiB had been estimated and allowed.
const BYTES_PER_TRACED_VARIANT: usize = 2400;

impl TracedVariant {
    /// Number of bytes that tracing the variant takes, by the lengths of its sequences.
    pub fn memory_bytes(&self, k: u32) -> u64 {
        let k = k as usize;
        let of_change = |change: &Change| {
            let (changed, unchanged) = match change {
                Change::Allele { reference, alternative, .. } => (alternative.len() + k, reference.len() + k),
                Change::Junction { inserted, .. } => (inserted.len() + k, 2 * (FLANK_BP + k)),
                Change::Novel { sequence, .. } => (sequence.len() + k, FLANK_BP + k),
            };
            (changed + unchanged) * BYTES_PER_TRACED_KMER + changed * LINE_BYTES_PER_KMER
        };
        (BYTES_PER_TRACED_VARIANT + self.changes.iter().map(of_change).sum::<usize>()) as u64
    }

    /// The k-mers that only the changed sequence has, and those that only the unchanged one has.
    fn own_kmers(&self, genome: &Reference, k: u32) -> [Box<[u64]>; 2] {
        let (mut changed, mut unchanged) = (HashSet::new(), HashSet::new());
        for change in &self.changes {
            let (changed_seq, unchanged_seqs) = changed_and_unchanged_sequences(change, genome);
            changed.extend(canonical_kmers(&changed_seq, k));
            unchanged_seqs.iter().for_each(|seq| unchanged.extend(canonical_kmers(seq, k)));
        }
        [changed.difference(&unchanged).copied().collect(), unchanged.difference(&changed).copied().collect()]
    }
}

/// Length in bp of the reference flanks of a change that are included in the sequences from which its k-mers are made.
const FLANK_BP: usize = 150;
/// Maximum distance in bp between the breakends of two junctions that count as the same junction, and between a variant
/// and a call near it.
const MAX_END_DISTANCE_BP: usize = 20;

/// A variant while it is traced.
struct VariantTrace {
    variant: TracedVariant,
    /// The findings so far, each with a line break.
    lines: String,
    /// k-mer ranks of the k-mers that only the changed sequence has.
    changed_kmers: Vec<u32>,
    /// k-mer ranks of the k-mers that only the unchanged sequence has.
    unchanged_kmers: Vec<u32>,
    /// Numbers of the assembled contigs that contain k-mers of the changed sequence. Set after the assembly.
    contig_numbers: Vec<usize>,
}

impl VariantTrace {
    /// Appends a line, without spare memory.
    fn append_line(&mut self, line: &str) {
        self.lines.reserve_exact(line.len() + 1);
        self.lines.extend([line, "\n"]);
    }

    fn append_lines(&mut self, lines: &[String]) {
        self.lines.reserve_exact(lines.iter().map(|line| line.len() + 1).sum());
        lines.iter().for_each(|line| self.append_line(line));
    }
}

/// Traces all given variants: receives the results of each stage of the call and collects a report on each variant.
pub struct VariantTracer {
    k: u32,
    traces: Vec<VariantTrace>,
    lookup: KmerLookup,
    counts: Vec<[AtomicU32; 2]>,
}

/// The `n` bases before a breakend, read towards the junction.
fn sequence_towards_end(end: &Breakend, genome: &Reference, n: usize) -> Vec<u8> {
    let seq = &genome.contigs[end.chrom].seq;
    match end.side {
        RetainedSide::Left => seq[(end.pos + 1).saturating_sub(n)..(end.pos + 1).min(seq.len())].to_vec(),
        RetainedSide::Right => reverse_complement(&seq[end.pos.min(seq.len())..(end.pos + n).min(seq.len())]),
    }
}

/// Returns the changed sequence with its flanks, and the sequences of the reference at the same loci.
fn changed_and_unchanged_sequences(change: &Change, genome: &Reference) -> (Vec<u8>, Vec<Vec<u8>>) {
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            let seq = &genome.contigs[*chrom].seq;
            let end = pos + reference.len();
            let (before, after) =
                (&seq[pos.saturating_sub(FLANK_BP)..*pos], &seq[end..(end + FLANK_BP).min(seq.len())]);
            ([before, alternative, after].concat(), vec![[before, reference, after].concat()])
        }
        Change::Junction { ends: [a, b], inserted, .. } => {
            let (left, right) = (
                sequence_towards_end(a, genome, FLANK_BP),
                reverse_complement(&sequence_towards_end(b, genome, FLANK_BP)),
            );
            let across = |end: &Breakend| {
                let seq = &genome.contigs[end.chrom].seq;
                seq[end.pos.saturating_sub(FLANK_BP)..(end.pos + FLANK_BP).min(seq.len())].to_vec()
            };
            ([&left[..], inserted, &right].concat(), vec![across(a), across(b)])
        }
        Change::Novel { end, sequence } => {
            let seq = &genome.contigs[end.chrom].seq;
            let across = seq[end.pos.saturating_sub(FLANK_BP)..(end.pos + FLANK_BP).min(seq.len())].to_vec();
            ([&sequence_towards_end(end, genome, FLANK_BP)[..], sequence].concat(), vec![across])
        }
    }
}

/// Canonical k-mers of a sequence, including the artificial k-mers of its tandem repeats ([`tandem_repeat`]).
fn canonical_kmers(seq: &[u8], k: u32) -> HashSet<u64> {
    let mut all: HashSet<u64> = kmers(seq, k).map(|(_, kmer)| kmer.canonical()).collect();
    let mut read = CodesAndPackedBases::default();
    read.encode_bases(seq, seq, 0);
    tandem_repeat::for_each_repeat(seq, read.packed_bases(), |t| {
        tandem_repeat::for_each_repeat_kmer(seq, t, k, |encoded| {
            all.insert(encoded.kmer);
        });
    });
    all
}

/// Formats the range of some counts: `5` if all are equal to 5, `1-5` if they are from 1 to 5.
fn format_range(counts: impl Iterator<Item = u32>) -> String {
    let (low, high) = counts.fold((u32::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    if low >= high { format!("{high}") } else { format!("{low}-{high}") }
}

impl VariantTracer {
    /// Creates a tracer for `variants`; `None` if `variants` is empty.
    pub fn for_variants(variants: &[TracedVariant], genome: &Reference, k: u32) -> Option<VariantTracer> {
        if variants.is_empty() {
            return None;
        }
        let own_kmers: Vec<[Box<[u64]>; 2]> = variants.iter().map(|variant| variant.own_kmers(genome, k)).collect();
        let mut kmers: Vec<u64> = own_kmers.iter().flatten().flatten().copied().collect();
        kmers.sort_unstable();
        kmers.dedup();
        kmers.shrink_to_fit();
        let ranks = |set: &[u64]| {
            let mut ranks: Vec<u32> = set.iter().map(|&x| kmers.partition_point(|&y| y < x) as u32).collect();
            ranks.sort_unstable();
            ranks
        };
        let trace = variants
            .iter()
            .zip(own_kmers)
            .map(|(variant, [changed, unchanged])| VariantTrace {
                variant: variant.clone(),
                lines: String::new(),
                changed_kmers: ranks(&changed),
                unchanged_kmers: ranks(&unchanged),
                contig_numbers: Vec::new(),
            })
            .collect();
        let counts = kmers.iter().map(|_| Default::default()).collect();
        let lookup = KmerLookup::from_kmers(k, kmers);
        Some(VariantTracer { k, traces: trace, lookup, counts })
    }

    /// Counts the k-mers of all traced variants in one read pair.
    pub fn count_kmers_in_pair(
        &self,
        pair: ReadPair<'_>,
        sample: u8,
        scratch: &mut KmerLookupBuffers,
        found: &mut Vec<KmerHit>,
    ) {
        found.clear();
        for mate in pair.mates {
            find_candidates_in_read(mate.seq, &self.lookup, scratch, found);
        }
        for hit in found.iter() {
            self.counts[hit.rank as usize][usize::from(sample != NORMAL_SAMPLE)].fetch_add(1, Relaxed);
        }
    }

    fn format_counts(&self, ranks: &[u32], sample: u8) -> String {
        format_range(ranks.iter().map(|&r| self.counts[r as usize][usize::from(sample)].load(Relaxed)))
    }

    /// After counting: adds to the reports how often the normal and the tumours have the variants' k-mers, and which of
    /// them are candidate k-mers.
    pub fn record_candidates(&mut self, candidates: &[CandidateKmer]) {
        let mut traces = std::mem::take(&mut self.traces);
        for trace in &mut traces {
            let mut lines = vec![format!(
                "count: {} k-mers of the changed sequence only, {} times in the tumour and {} in the normal; {} of the unchanged sequence only, {} and {}",
                trace.changed_kmers.len(),
                self.format_counts(&trace.changed_kmers, TUMOUR_SAMPLE),
                self.format_counts(&trace.changed_kmers, NORMAL_SAMPLE),
                trace.unchanged_kmers.len(),
                self.format_counts(&trace.unchanged_kmers, TUMOUR_SAMPLE),
                self.format_counts(&trace.unchanged_kmers, NORMAL_SAMPLE),
            )];
            let pick = |&r: &u32| {
                let kmer = self.lookup.kmer_of_rank(r);
                let same = &candidates[candidates.partition_point(|p| p.kmer < kmer)..];
                let same = &same[..same.iter().take_while(|p| p.kmer == kmer).count()];
                same.iter().find(|p| p.is_branching()).or(same.first())
            };
            let found: Vec<&CandidateKmer> = trace.changed_kmers.iter().filter_map(pick).collect();
            let parting = found.iter().filter(|p| p.is_branching()).count();
            lines.push(format!(
                "select: {} of them are candidates, {parting} of these are branching k-mers",
                found.len()
            ));
            for &r in trace.changed_kmers.iter().filter(|r| pick(r).is_none()) {
                let counts = self.counts[r as usize].each_ref().map(|n| n.load(Relaxed));
                lines.push(format!(
                    "  no candidate: {} (tumour {}, normal {})",
                    String::from_utf8_lossy(&unpack(self.lookup.kmer_of_rank(r), self.k)),
                    counts[usize::from(TUMOUR_SAMPLE)],
                    counts[usize::from(NORMAL_SAMPLE)]
                ));
            }
            trace.append_lines(&lines);
        }
        self.traces = traces;
    }

    /// For each variant, the ranks of its candidate k-mers among all candidates.
    pub(crate) fn candidate_ranks_by_variant(&self, candidates: &[CandidateKmer]) -> Vec<HashSet<u32>> {
        let kmers: Vec<u64> = group_candidates_by_kmer(candidates).map(|same| same[0].kmer).collect();
        let rank = |&r: &u32| kmers.binary_search(&self.lookup.kmer_of_rank(r)).ok().map(|at| at as u32);
        self.traces.iter().map(|trace| trace.changed_kmers.iter().filter_map(rank).collect()).collect()
    }

    /// After grouping: adds to the reports the labelled pairs with the variants' k-mers, and their groups.
    pub fn record_pairs_and_groups(&mut self, followed: &[TracedVariantPairs]) {
        for (trace, TracedVariantPairs { pairs, groups }) in self.traces.iter_mut().zip(followed) {
            let mut lines = vec![format!("label: {pairs} pairs of the tumour contain them, without recurrent errors")];
            for (group, here, of) in groups {
                lines.push(format!("group {group}: {here} of them among {of} pairs"));
            }
            if *pairs > 0 && groups.is_empty() {
                lines.push("group: no group has enough pairs and a branching k-mer".to_owned());
            }
            trace.append_lines(&lines);
        }
    }

    /// After assembly: adds to the reports the contigs with the variants' k-mers.
    pub fn record_contigs(&mut self, contigs: &[Contig]) {
        for (c, contig) in contigs.iter().enumerate() {
            let here: HashSet<u64> = canonical_kmers(&contig.seq, self.k);
            let mut pairs: Vec<u32> = contig.reads.iter().map(|r| r.pair).collect();
            pairs.sort_unstable();
            pairs.dedup();
            for trace in &mut self.traces {
                let num_held =
                    trace.changed_kmers.iter().filter(|&&r| here.contains(&self.lookup.kmer_of_rank(r))).count();
                if num_held > 0 {
                    trace.contig_numbers.push(c);
                    trace.append_line(&format!(
                        "assemble: contig {c} of {} bases and {} pairs contains {num_held} of the k-mers",
                        contig.seq.len(),
                        pairs.len()
                    ));
                }
            }
        }
        for trace in self.traces.iter_mut().filter(|a| a.contig_numbers.is_empty()) {
            trace.append_line("assemble: no contig contains any of the k-mers");
        }
    }

    /// Numbers of the contigs with k-mers of any traced variant.
    pub fn indices_of_traced_contigs(&self) -> BTreeSet<usize> {
        self.traces.iter().flat_map(|trace| &trace.contig_numbers).copied().collect()
    }

    /// After placement: adds to the reports the changes found on the variants' contigs. `placed` are all placed
    /// contigs.
    pub fn record_placements(&mut self, placed: &[PlacedContig], genome: &Reference) {
        for trace in &mut self.traces {
            for c in trace.contig_numbers.clone() {
                let Ok(at) = placed.binary_search_by_key(&c, |placed| placed.index) else { continue };
                let PlacedContig { contig: compared, reject_reason: unworthy, .. } = &placed[at];
                let found: Vec<String> = compared
                    .changes
                    .iter()
                    .map(|f| format!("{} (mapping quality {})", format_change(&f.change, genome), f.mapq))
                    .collect();
                let found = if found.is_empty() { "no change".to_owned() } else { found.join(", ") };
                let left_out = unworthy.map_or("", RejectReason::text_for_one_contig);
                trace.append_line(&format!("compare: contig {c}: {found}{left_out}"));
                if !compared.explanations.is_empty() {
                    let explanations = Explanation::format_explanations(&compared.explanations);
                    trace.append_line(&format!("  explained by {explanations}"));
                }
            }
        }
    }

    /// Before recruiting: adds to the reports that no reads are recruited for `contigs`.
    pub fn record_skipped_contigs(&mut self, contigs: impl Iterator<Item = usize>) {
        for c in contigs {
            for trace in self.traces.iter_mut().filter(|trace| trace.contig_numbers.contains(&c)) {
                trace.append_line(&format!(
                    "recruit: contig {c} is in a repeat with too many copies to assign the change to one of them"
                ));
            }
        }
    }

    /// After genotyping: adds to the reports the calls that are the variants, contain them or are near them.
    pub fn record_calls(&mut self, loci: &[Locus], events: &[Event], genome: &Reference) {
        for trace in &mut self.traces {
            let mut none = true;
            for (e, event) in events.iter().enumerate() {
                for call in &event.calls {
                    let any = |alike: fn(&Change, &Change) -> bool| {
                        trace.variant.changes.iter().any(|change| alike(change, &call.change))
                    };
                    let words = if any(is_same_change) {
                        "this is"
                    } else if any(is_part_of_call) {
                        "this is part of"
                    } else if any(is_near_call) {
                        "near the variant is"
                    } else {
                        continue;
                    };
                    none = false;
                    let locus = &loci[call.locus];
                    trace.append_line(&format_call(e, call, locus, words, genome));
                    if let [Explanation { kind: ExplanationMethod::NormalHaplotype, .. }, ..] =
                        locus.contig.explanations[..]
                    {
                        let explanations = Explanation::format_explanations(&locus.contig.explanations);
                        trace.append_line(&format!("  t{} explained by {explanations}", call.locus + 1));
                    }
                }
            }
            if none {
                trace.append_line("judge: no call at this position");
            }
        }
    }

    /// Adds to the reports which variants are outside the targets, extended by `padding_bp` on both sides. Calls of
    /// these variants are not written.
    pub fn record_variants_outside_targets(&mut self, targets: &Targets, padding_bp: usize) {
        for trace in &mut self.traces {
            if !trace.variant.changes.iter().any(|change| is_on_target(change, targets, padding_bp)) {
                trace.append_line("judge: outside the targets, so a call would not be written");
            }
        }
    }

    /// The reports of all traced variants.
    pub fn into_reports(self) -> Vec<TraceReport> {
        self.traces.into_iter().map(|a| TraceReport { variant: a.variant.description, lines: a.lines }).collect()
    }
}

fn format_call(e: usize, call: &VariantCall, locus: &Locus, words: &str, genome: &Reference) -> String {
    let g = &call.genotype;
    let filters: Vec<&str> = g.filters.iter().map(|f| f.filter_id()).collect();
    format!(
        "judge: {words} g{}: {}, t{}, {} reads aligned; molecules unchanged/changed: tumour {}/{}, normal {}/{}; quality {:.1}; {}",
        e + 1,
        format_change(&call.change, genome),
        call.locus + 1,
        locus.num_reads,
        g.tumour.reference,
        g.tumour.alternative,
        g.normal.reference,
        g.normal.alternative,
        g.quality,
        if filters.is_empty() { "PASS".to_owned() } else { filters.join(";") }
    )
}

/// Formats a change in a notation close to VCF, for messages.
pub fn format_change(change: &Change, genome: &Reference) -> String {
    let name = |chrom: usize| &genome.contigs[chrom].name;
    let cut = |bases: &[u8]| match bases.len() {
        n if n > 30 => format!("{}..({n})", String::from_utf8_lossy(&bases[..10])),
        _ => String::from_utf8_lossy(bases).into_owned(),
    };
    let end = |e: &Breakend| {
        format!("{}:{}{}", name(e.chrom), e.pos + 1, if e.side == RetainedSide::Left { '+' } else { '-' })
    };
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            format!("{}:{}:{}>{}", name(*chrom), pos + 1, cut(reference), cut(alternative))
        }
        Change::Junction { ends: [a, b], inserted, .. } => {
            format!("{}/{} [{}]", end(a), end(b), cut(inserted))
        }
        Change::Novel { end: e, sequence } => format!("{}/novel {}", end(e), cut(sequence)),
    }
}

fn change_ends(change: &Change) -> Vec<(usize, usize)> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            let mut ends = vec![(*chrom, *pos)];
            if reference.len() >= alternative.len() + MIN_STRUCTURAL_VARIANT_BP {
                ends.push((*chrom, pos + reference.len()));
            }
            ends
        }
        Change::Junction { ends, .. } => ends.iter().map(|e| (e.chrom, e.pos)).collect(),
        Change::Novel { end, .. } => vec![(end.chrom, end.pos)],
    }
}

/// Whether a call is the traced variant. A long deletion counts as the same whether it was called as an allele or as a
/// junction.
fn is_same_change(trace: &Change, call: &Change) -> bool {
    if matches!((trace, call), (Change::Allele { .. }, Change::Allele { .. })) {
        return trace == call;
    }
    let (a, b) = (change_ends(trace), change_ends(call));
    a.len() == 2
        && b.len() == 2
        && a.iter().zip(&b).all(|(x, y)| x.0 == y.0 && x.1.abs_diff(y.1) <= MAX_END_DISTANCE_BP)
}

/// Whether the traced substitution is one of several neighbouring substitutions that were called together.
fn is_part_of_call(trace: &Change, call: &Change) -> bool {
    let (
        Change::Allele { chrom, pos, reference, alternative },
        Change::Allele { chrom: c, pos: p, reference: r, alternative: a },
    ) = (trace, call)
    else {
        return false;
    };
    let substitutes = reference.len() == alternative.len() && r.len() == a.len();
    let within = |from: usize| {
        r.get(from..from + reference.len()) == Some(reference)
            && a.get(from..from + alternative.len()) == Some(alternative)
    };
    substitutes && chrom == c && pos.checked_sub(*p).is_some_and(within)
}

fn is_near_call(trace: &Change, call: &Change) -> bool {
    change_ends(trace)
        .iter()
        .any(|x| change_ends(call).iter().any(|y| x.0 == y.0 && x.1.abs_diff(y.1) <= MAX_END_DISTANCE_BP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_of_several_that_changed_together_is_part_of_them() {
        let change = |chrom, pos, reference: &[u8], alternative: &[u8]| Change::Allele {
            chrom,
            pos,
            reference: reference.to_vec(),
            alternative: alternative.to_vec(),
        };
        let call = change(0, 100, b"GGC", b"ATT");
        for (trace, is) in [
            (change(0, 100, b"G", b"A"), true),
            (change(0, 101, b"GC", b"TT"), true),
            (change(0, 101, b"G", b"A"), false),
            (change(1, 101, b"G", b"T"), false),
            (change(0, 99, b"G", b"A"), false),
            (change(0, 103, b"G", b"A"), false),
            (change(0, 101, b"GC", b"T"), false),
        ] {
            assert_eq!(is_part_of_call(&trace, &call), is, "{trace:?}");
        }
    }
}
