//! Writes the result files of a call: `somatic.vcf.gz`, `contigs.fa`, `supporting.bam`, `summary.json`. The files
//! appear together when the caller publishes their [`AtomicFileSet`]. Their content depends on the calls only, not on
//! the number of threads.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use genuma_align::indexed_file::{self, IndexedFile, IndexedRecordFormat, RecordReferenceRange};
use genuma_align::scan::ReferenceScan;
use genuma_align::scan_to_bam::{
    self, BamHeader, BamHeaderProgram, BamReadGroup, HasUnalignedTemplate, SequencedRead, UnalignedTemplate,
};
use genuma_reads::NORMAL_SAMPLE;
use genuma_reads::fasta::Reference;
use genuma_work::parallel::try_map_in_order;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::spillable_buckets::{MemoryBudget, SpillableBuckets};
use genuma_work::{ProgressCounters, spill};
use serde::{Deserialize, Serialize};

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{self, Change};
use crate::genotyping_unit::FinishedCall;
use crate::locus::{Locus, VariantCall};
use crate::locus_ranges::estimate_pair_bytes;
use crate::provenance::{Provenance, ReferenceIdentity};
use crate::recruit::RecruitedPair;
use crate::resources::Resources;
use crate::vcf;
use crate::vcf_record::VcfRecord;

/// Why a result file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be created or published.
    #[error(transparent)]
    File(#[from] genuma_work::publish::Error),
    /// A write failed; the message contains the path.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The VCF or its index cannot be written.
    #[error(transparent)]
    Vcf(#[from] indexed_file::Error),
    /// The BAM cannot be written.
    #[error(transparent)]
    Bam(#[from] scan_to_bam::Error),
    /// Spilled data cannot be read.
    #[error(transparent)]
    Spill(#[from] spill::Error),
}

/// Number of bases in a FASTA line.
const FASTA_LINE_WIDTH: usize = 80;

/// Writes a VCF compressed with BGZF, and its index: `.tbi`, or `.csi` if a sequence of `genome` is too long for
/// `.tbi`. `records` must be sorted. `has_normal` is set if the normal has a column. The files are added to `set`,
/// which the caller publishes.
///
/// # Errors
/// A file cannot be written.
pub fn write_vcf(
    path: &Path,
    header: &str,
    records: &[VcfRecord],
    genome: &Reference,
    has_normal: bool,
    set: &mut AtomicFileSet,
) -> Result<(), Error> {
    let longest = genome.contigs.iter().map(|c| c.seq.len()).max().unwrap_or(0);
    let used: BTreeSet<usize> = records.iter().map(|r| r.chrom).collect();
    // The index contains only sequences with records, as an index written by tabix does.
    let names = used.iter().map(|&c| genome.contigs[c].name.clone()).collect();
    let ranks: Vec<usize> = used.into_iter().collect();
    let mut file = IndexedFile::create(path, longest, IndexedRecordFormat::Vcf { names })?;
    file.write_header(header.as_bytes())?;
    for record in records {
        let text = vcf::format_vcf_record(record, genome, has_normal) + "\n";
        let place = RecordReferenceRange {
            sequence: ranks.partition_point(|&c| c < record.chrom),
            start: record.pos,
            end: record.end,
            is_aligned: true,
        };
        file.write_record(text.as_bytes(), Some(place))?;
    }
    Ok(file.finish_with_index_into_file_set(set)?)
}

/// Writes the contigs as FASTA. Each tumour contig is named `tN`, as in the VCF field CONTIG. Its header has its
/// length, the number of pairs of the tumours and of the normal placed on it, and the positions of its changes. The
/// normal allele of its first change follows as `nN`. Without a reference, the contigs of the normal on which calls are
/// placed follow under their own names instead.
///
/// # Errors
/// The file cannot be written.
pub fn write_contigs(path: &Path, finished: &FinishedCall, set: &mut AtomicFileSet) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    for (c, locus) in finished.ranges.loci().iter().enumerate() {
        let contig = &locus.contig;
        let (seq, places) = (&contig.seq[contig.assembled.clone()], format_finding_positions(contig, &finished.genome));
        let ([normal, tumour], n) = (locus.num_pairs, c + 1);
        writeln!(file, ">t{n} length={} tumour_pairs={tumour} normal_pairs={normal}{places}", seq.len())?;
        write_bases(&mut file, seq)?;
        if finished.on_reference
            && let Some(finding) = contig.changes.first()
        {
            let seq = normal_allele(contig, finding);
            writeln!(file, ">n{n} length={} normal_of=t{n}", seq.len())?;
            write_bases(&mut file, seq)?;
        }
    }
    if !finished.on_reference {
        for contig in &finished.genome.contigs {
            writeln!(file, ">{} length={}", contig.name, contig.seq.len())?;
            write_bases(&mut file, &contig.seq)?;
        }
    }
    set.add_file(file.flush_to_partial_file()?);
    Ok(())
}

/// Writes the bases of one FASTA record, in lines of [`FASTA_LINE_WIDTH`] bases.
fn write_bases(file: &mut AtomicFile, seq: &[u8]) -> io::Result<()> {
    for line in seq.chunks(FASTA_LINE_WIDTH) {
        file.write_all(line)?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns the field ` changes=` of a FASTA header: the genome positions (1-based) of the changes of a contig, with `/`
/// between the two ends of a junction. Empty without changes.
fn format_finding_positions(contig: &AlignedContig, genome: &Reference) -> String {
    let at = |chrom: usize, pos: usize| format!("{}:{}", genome.contigs[chrom].name, pos + 1);
    let places: Vec<String> = contig
        .changes
        .iter()
        .map(|f| match &f.change {
            Change::Allele { chrom, pos, .. } => at(*chrom, *pos),
            Change::Junction { ends: [a, b], .. } => format!("{}/{}", at(a.chrom, a.pos), at(b.chrom, b.pos)),
            Change::Novel { end, .. } => at(end.chrom, end.pos),
        })
        .collect();
    if places.is_empty() { String::new() } else { format!(" changes={}", places.join(",")) }
}

/// The normal allele of a change over the assembled bases of the contig; for a junction, the normal sequence with the
/// same left flank.
fn normal_allele<'a>(contig: &AlignedContig, finding: &'a ContigChange) -> &'a [u8] {
    let (start, all) = (contig.assembled.start, &finding.left_normal);
    let end = match finding.change {
        // The bases beyond the contig's right end follow the normal allele too.
        Change::Allele { .. } => all.len().saturating_sub(contig.seq.len() - contig.assembled.end),
        _ => contig.assembled.end.min(all.len()),
    };
    all.get(start..end).unwrap_or_default()
}

/// A read pair, the representative of its molecule, that supports the tumour allele of at least one call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SupportingPair {
    /// Positions of all calls that the pair supports: index of the sequence and 0-based position, sorted. A junction
    /// has two positions.
    pub positions: Vec<(usize, usize)>,
    /// The read pair that is written to `supporting.bam`.
    pub pair: RecruitedPair,
    /// Highest mapping quality of the contigs with the calls that the pair supports.
    pub quality: u8,
    /// Whether at least one of the calls that the pair supports passed all filters.
    pub passed: bool,
}

impl SupportingPair {
    fn push_to_bucket(self, bucket: usize, buckets: &SpillableBuckets<SupportingPair>) -> Result<(), spill::Error> {
        let bytes = estimate_pair_bytes(&self.pair) + 64;
        buckets.push_value(bucket, self, bytes)
    }

    /// Adds the positions of `other`, the same pair from other calls. Keeps the higher mapping quality; `passed` is set
    /// if it was set in either.
    fn merge(&mut self, other: &mut SupportingPair) {
        self.positions.append(&mut other.positions);
        self.quality = self.quality.max(other.quality);
        self.passed |= other.passed;
    }
}

impl HasUnalignedTemplate for SupportingPair {
    fn template(&self) -> UnalignedTemplate<'_> {
        let SupportingPair { positions: places, pair, quality, passed } = self;
        let mates = [0, 1].map(|m| SequencedRead { seq: &pair.mates[m].seq, qual: &pair.mates[m].qual });
        let group = usize::from(pair.sample);
        UnalignedTemplate {
            name: &pair.name,
            read_group: group,
            mates,
            omits_empty_mate: true,
            expected_positions: places,
            max_mapq: *quality,
            search_genome: *passed,
        }
    }
}

/// Minimum number of supporting pairs in a portion. If there are very many pairs, portions are larger, so that there
/// are at most [`MAX_PORTIONS`].
const MIN_PORTION_PAIRS: usize = 8 << 10;
/// Maximum number of portions into which the supporting pairs are divided.
const MAX_PORTIONS: usize = 1024;
/// Name of the spilled data in error messages.
const SUPPORTING_READS: &str = "supporting reads'";
/// Number of pairs that one thread copies at a time.
const PAIRS_PER_CHUNK: usize = 256;

/// Returns the pairs, without duplicates, that support the tumour allele of any call, passed or not, each pair once.
/// The iterator yields them in portions that follow each other in the genome; within a portion they are sorted by
/// position, sample, name and bases. Portions that do not fit in `memory` bytes are spilled to the folder `work`. The
/// division into portions depends on the calls only.
///
/// # Errors
/// Spilled data cannot be written or read.
pub fn collect_supporting_pairs(
    finished: &mut FinishedCall,
    work: &Path,
    memory: u64,
    threads: usize,
) -> Result<impl Iterator<Item = Result<Vec<SupportingPair>, Error>> + use<>, Error> {
    let calls: Vec<&VariantCall> = finished.events.iter().flat_map(|e| &e.calls).collect();
    let mut calls_of_locus: Vec<Vec<usize>> = vec![Vec::new(); finished.ranges.loci().len()];
    let mut first_positions: Vec<((usize, usize), usize)> = Vec::with_capacity(calls.len());
    for (c, call) in calls.iter().enumerate() {
        calls_of_locus[call.locus].push(c);
        first_positions.extend(
            change::positions_of_change_ends(&call.change)
                .into_iter()
                .min()
                .map(|place| (place, call.supporting_pairs.len())),
        );
    }
    let starts = portion_starts(first_positions);
    let get_call_data = |call: &VariantCall, locus: &Locus| {
        (change::positions_of_change_ends(&call.change), locus.contig.changes[call.change_index].mapq)
    };
    let call_data: Vec<_> = calls.iter().map(|call| get_call_data(call, &finished.ranges.loci()[call.locus])).collect();
    let room = MemoryBudget::with_available_bytes(memory);
    // A pair may occur in several ranges. Its data are merged by its number.
    let by_number = SpillableBuckets::new(SUPPORTING_READS, work, starts.len(), &room);
    finished.ranges.for_each_locus_range(|_, contigs, pairs| {
        let mut own: Vec<(u32, usize)> = Vec::new();
        for &c in contigs.iter().flat_map(|&contig| &calls_of_locus[contig as usize]) {
            own.extend(calls[c].supporting_pairs.iter().map(|&pair| (pair, c)));
        }
        own.sort_unstable();
        let of_pair: Vec<&[(u32, usize)]> = own.chunk_by(|a, b| a.0 == b.0).collect();
        let some: Vec<&[&[(u32, usize)]]> = of_pair.chunks(PAIRS_PER_CHUNK).collect();
        let keep = |(): &mut (), i: usize| {
            some[i].iter().try_for_each(|own| {
                let one = SupportingPair {
                    positions: own.iter().flat_map(|&(_, c)| call_data[c].0.iter().copied()).collect(),
                    pair: pairs[own[0].0 as usize].clone(),
                    quality: own.iter().map(|&(_, c)| call_data[c].1).max().unwrap_or(0),
                    passed: own.iter().any(|&(_, c)| calls[c].genotype.filters.is_empty()),
                };
                let bucket = one.pair.id as usize % by_number.num_buckets();
                one.push_to_bucket(bucket, &by_number)
            })
        };
        try_map_in_order(some.len(), threads, || (), keep).map(drop)
    })?;
    let portions = SpillableBuckets::new(SUPPORTING_READS, work, starts.len(), &room);
    divide_into_portions(by_number, &portions, &starts, threads)?;
    Ok((0..portions.num_buckets()).map(move |portion| {
        let mut all = portions.take_bucket(portion)?;
        all.sort_unstable();
        Ok(all)
    }))
}

/// Merges the data of each pair, and moves it to the portion of its first position. `starts` has the start of each
/// portion.
fn divide_into_portions(
    by_number: SpillableBuckets<SupportingPair>,
    portions: &SpillableBuckets<SupportingPair>,
    starts: &[(usize, usize)],
    threads: usize,
) -> Result<(), spill::Error> {
    let sort = |(): &mut (), pile: usize| {
        let mut all = by_number.take_bucket(pile)?;
        all.sort_unstable_by_key(|one| one.pair.id);
        all.dedup_by(|again, kept| {
            let same = again.pair.id == kept.pair.id;
            if same {
                kept.merge(again);
            }
            same
        });
        for mut one in all {
            one.positions.sort_unstable();
            one.positions.dedup();
            let portion = one.positions.first().map_or(0, |first| starts.partition_point(|start| start <= first));
            one.push_to_bucket(portion.saturating_sub(1), portions)?;
        }
        Ok::<(), spill::Error>(())
    };
    try_map_in_order(starts.len(), threads, || (), sort).map(drop)
}

/// Returns the start position of each portion. `first_positions` has for each call its first position and the number of
/// its supporting pairs.
fn portion_starts(mut first_positions: Vec<((usize, usize), usize)>) -> Vec<(usize, usize)> {
    first_positions.sort_unstable();
    let all: usize = first_positions.iter().map(|(_, pairs)| pairs).sum();
    let portion = MIN_PORTION_PAIRS.max(all / MAX_PORTIONS);
    let (mut starts, mut held) = (vec![(0, 0)], 0);
    for (place, pairs) in first_positions {
        if held + pairs > portion && starts.last() != Some(&place) {
            starts.push(place);
            held = 0;
        }
        held += pairs;
    }
    starts
}

/// Provenance and reference of the supporting reads, for the header of their BAM file.
#[derive(Debug, Clone, Copy)]
pub struct SupportingBamHeaderContent<'a> {
    /// Command line and sequencing platforms.
    pub provenance: &'a Provenance,
    /// URL, assembly and MD5 sums of the reference, for the BAM header.
    pub reference: &'a ReferenceIdentity,
}

impl<'a> SupportingBamHeaderContent<'a> {
    /// The sequencing platform of a sample; `None` if it is unknown.
    fn platform(&self, sample: usize) -> Option<&'a str> {
        self.provenance.platforms.get(sample)?.as_deref()
    }
}

/// Aligns the supporting pairs of all samples to the reference and writes them as a sorted BAM with its index. Without
/// a reference nothing is written. Data that does not fit in memory is spilled to the folder `work`. `meter` counts the
/// reference bases that were scanned.
///
/// # Errors
/// A file cannot be written.
pub fn write_supporting_pairs(
    path: &Path,
    finished: &mut FinishedCall,
    source: SupportingBamHeaderContent<'_>,
    means: &Resources,
    work: &Path,
    meter: &ProgressCounters,
    set: &mut AtomicFileSet,
) -> Result<(), Error> {
    if !finished.on_reference {
        return Ok(());
    }
    // A quarter each for pairs, pairs that wait for alignment, alignment, and BAM records.
    let (memory, threads) = (means.allocatable_memory_bytes() / 4, means.threads);
    let portions = collect_supporting_pairs(finished, work, memory, threads)?;
    let program = BamHeaderProgram {
        name: "genuma",
        version: env!("CARGO_PKG_VERSION"),
        command: &source.provenance.command_line,
    };
    // In the order of the sample numbers. Without a normal no pair has number 0.
    let mut groups: Vec<BamReadGroup<'_>> = (finished.samples.names().iter().enumerate())
        .map(|(s, name)| BamReadGroup { id: name, sample: name, platform: source.platform(s) })
        .collect();
    if !finished.samples.has_normal() {
        groups[usize::from(NORMAL_SAMPLE)].id = "";
    }
    let heading = BamHeader {
        reference: &finished.genome,
        sequence_md5: &source.reference.sequence_md5,
        read_groups: &groups,
        program,
    };
    let scan = ReferenceScan { genome: &finished.genome, regions: None, threads, memory_bytes: memory, meter };
    scan_to_bam::align_and_write_bam(path, &heading, portions, &scan, memory as usize, set)
}

/// Writes `value` as indented JSON.
///
/// # Errors
/// The file cannot be written, or the value has no JSON form.
pub fn write_json(path: &Path, value: &impl Serialize, set: &mut AtomicFileSet) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value).map_err(io::Error::from)?;
    file.write_all(b"\n")?;
    set.add_file(file.flush_to_partial_file()?);
    Ok(())
}

#[cfg(test)]
mod tests;
