//! Writes the result files of a call: `somatic.vcf.gz`, `contigs.fa`, `supporting.bam`, `summary.json`. The files
//! appear together when the caller publishes their [`AtomicFileSet`]. Their content depends on the calls only, not on
//! the number of threads.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use genuma_align::bam::{
    self, BamHeader, BamHeaderProgram, BamReadGroup, HasTemplate, SequencedRead, UnalignedTemplate,
};
use genuma_align::indexed_file::{self, IndexedFile, IndexedRecordFormat, RecordReferenceRange};
use genuma_align::scan::ReferenceScan;
use genuma_reads::NORMAL_SAMPLE;
use genuma_reads::fasta::Reference;
use genuma_work::parallel::try_map_in_order;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::spillable_buckets::{MemoryBudget, SpillableBuckets};
use genuma_work::{ProgressCounters, spill};
use serde::{Deserialize, Serialize};

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{self, Change};
use crate::genotyping::FinishedCall;
use crate::locus::{Locus, VariantCall};
use crate::locus_ranges::pair_memory_bytes;
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
    Bam(#[from] bam::Error),
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
    Ok(file.finish_file_and_index(set)?)
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

/// A read pair that supports the tumour allele of at least one call.
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
    /// Merges the positions, quality and filters of the same pair from other calls.
    fn merge(&mut self, other: &mut SupportingPair) {
        self.positions.append(&mut other.positions);
        self.quality = self.quality.max(other.quality);
        self.passed |= other.passed;
    }
}

impl HasTemplate for SupportingPair {
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
/// Number of pairs that one thread copies at a time.
const PAIRS_PER_CHUNK: usize = 256;

/// Returns the pairs that support the tumour allele of any call, passed or not, each pair once. The iterator yields
/// them in portions that follow each other in the genome; within a portion they are sorted by position, sample, name
/// and bases. Portions that do not fit in `memory` bytes are spilled to the folder `work`. The division into portions
/// depends on the calls only.
///
/// # Errors
/// Spilled data cannot be written or read.
pub fn collect_supporting_pairs(
    finished: &mut FinishedCall,
    work: &Path,
    memory: u64,
    threads: usize,
) -> Result<impl Iterator<Item = Result<Vec<SupportingPair>, Error>> + use<>, Error> {
    const WHAT: &str = "supporting reads'";
    let calls: Vec<&VariantCall> = finished.events.iter().flat_map(|e| &e.calls).collect();
    let mut calls_of_locus: Vec<Vec<usize>> = vec![Vec::new(); finished.ranges.loci().len()];
    let mut first_positions: Vec<((usize, usize), usize)> = Vec::with_capacity(calls.len());
    for (c, call) in calls.iter().enumerate() {
        calls_of_locus[call.locus].push(c);
        first_positions.extend(
            change::affected_positions(&call.change)
                .into_iter()
                .min()
                .map(|place| (place, call.supporting_pairs.len())),
        );
    }
    let starts = portion_starts(first_positions);
    let get_call_data = |call: &VariantCall, locus: &Locus| {
        (change::affected_positions(&call.change), locus.contig.changes[call.change_index].mapq)
    };
    let call_data: Vec<_> = calls.iter().map(|call| get_call_data(call, &finished.ranges.loci()[call.locus])).collect();
    let room = MemoryBudget::with_available_bytes(memory);
    let put = |buckets: &SpillableBuckets<SupportingPair>, bucket: usize, one: SupportingPair| {
        let bytes = pair_memory_bytes(&one.pair) + 64;
        buckets.push_value(bucket, one, bytes)
    };
    // A pair may occur in several ranges. Its data are merged by its number.
    let by_number = SpillableBuckets::new(WHAT, work, starts.len(), &room);
    finished.ranges.for_each_range(|_, contigs, pairs| {
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
                put(&by_number, one.pair.id as usize % by_number.num_buckets(), one)
            })
        };
        try_map_in_order(some.len(), threads, || (), keep).map(drop)
    })?;
    let portions = SpillableBuckets::new(WHAT, work, starts.len(), &room);
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
            put(&portions, portion.saturating_sub(1), one)?;
        }
        Ok::<(), spill::Error>(())
    };
    try_map_in_order(starts.len(), threads, || (), sort)?;
    drop(by_number);
    Ok((0..portions.num_buckets()).map(move |portion| {
        let mut all = portions.take_bucket(portion)?;
        all.sort_unstable();
        Ok(all)
    }))
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
pub struct SupportingReadsOrigin<'a> {
    /// Command line and sequencing platforms.
    pub provenance: &'a Provenance,
    /// URL, assembly and MD5 sums of the reference, for the BAM header.
    pub reference: &'a ReferenceIdentity,
}

impl<'a> SupportingReadsOrigin<'a> {
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
    source: SupportingReadsOrigin<'_>,
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
    bam::align_and_write_bam(path, &heading, portions, &scan, memory as usize, set)
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
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use genuma_reads::dna::reverse_complement;
    use genuma_reads::fasta::Contig;

    use super::*;
    use crate::candidate_kmer::KmerDepths;
    use crate::change::{Breakend, RetainedSide};
    use crate::event::{Event, EventClass, event_class_of_change};
    use crate::genotype::{ErrorFrequency, GenotypingResult};
    use crate::ledger::Ledger;
    use crate::locus_ranges::LocusRanges;
    use crate::packed;
    use crate::provenance::{Provenance, ReferenceIdentity};
    use crate::read_placement::{MAX_OFFSETS_PER_READ, PlacedRead};
    use crate::recruit::RecruitedPair;
    use crate::sample_names::SampleNames;
    use crate::sequencing_errors::{BaseErrorCounts, ErrorModel};
    use crate::slippage::SlippageModel;
    use crate::vcf_record;

    fn random_bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    fn genome() -> Reference {
        let contig = |name: &str, n, seed| Contig { name: name.into(), seq: random_bases(n, seed) };
        Reference::from_contigs(vec![contig("chr1", 50_000, 1), contig("empty", 1_000, 2), contig("chr2", 40_000, 3)])
    }

    fn call(change: Change, supporting: &[u32]) -> VariantCall {
        let genotype = GenotypingResult { quality: 50.0, ..GenotypingResult::default() };
        let supporting = supporting.to_vec();
        VariantCall {
            change,
            error_frequency: ErrorFrequency::Common,
            genotype,
            tumour_molecules: 0,
            population_frequency: Default::default(),
            panel_normals: None,
            is_fold_back: false,
            locus: 0,
            change_index: 0,
            supporting_pairs: supporting,
            phased_changes: Vec::new(),
        }
    }

    fn allele(genome: &Reference, chrom: usize, pos: usize, deleted: usize, alternative: &[u8]) -> Change {
        let reference = genome.contigs[chrom].seq[pos..pos + 1 + deleted].to_vec();
        Change::Allele { chrom, pos, alternative: [&reference[..1], alternative].concat(), reference }
    }

    fn junction(ends: [(usize, usize, RetainedSide); 2], inserted: &[u8]) -> Change {
        let ends = ends.map(|(chrom, pos, side)| Breakend { chrom, pos, side });
        Change::Junction { ends, inserted: inserted.to_vec(), homology: 2 }
    }

    /// One event of every kind, and many substitutions.
    fn events(genome: &Reference) -> Vec<Event> {
        use RetainedSide::{Left, Right};
        let base = genome.contigs[0].seq[99];
        let other = if base == b'A' { b'C' } else { b'A' };
        let snv = Change::Allele { chrom: 0, pos: 99, reference: vec![base], alternative: vec![other] };
        let novel =
            |side, pos| Change::Novel { end: Breakend { chrom: 0, pos, side }, sequence: b"GATTACAGATTACA".to_vec() };
        let mut changes = vec![
            vec![snv],
            vec![allele(genome, 0, 200, 3, b"")],
            vec![allele(genome, 0, 300, 0, b"GATTACA")],
            vec![allele(genome, 2, 400, 80, b"")],
            vec![junction([(0, 5_000, Left), (0, 9_000, Right)], b"")],
            vec![junction([(0, 12_000, Right), (0, 13_000, Left)], b"AC")],
            vec![junction([(0, 20_000, Left), (2, 7_000, Left)], b"")],
            vec![novel(Left, 30_000), novel(Right, 30_001)],
        ];
        changes.extend((0..800).map(|i| {
            let (pos, r) = (1_000 + 40 * i, genome.contigs[2].seq[1_000 + 40 * i]);
            let alternative = vec![if r == b'G' { b'T' } else { b'G' }];
            vec![Change::Allele { chrom: 2, pos, reference: vec![r], alternative }]
        }));
        let event = |changes: Vec<Change>| Event {
            class: if changes.len() == 2 { EventClass::Ins } else { event_class_of_change(&changes[0]) },
            calls: changes.into_iter().map(|c| call(c, &[])).collect(),
            inserted_element: None,
            phase_set: None,
        };
        changes.into_iter().map(event).collect()
    }

    /// Output of a program that must succeed; `None` if the program is not installed.
    fn output(program: &str, arguments: &[&str]) -> Option<String> {
        let Ok(out) = Command::new(program).args(arguments).output() else {
            println!("skipped: {program} is not installed");
            return None;
        };
        assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        Some(String::from_utf8(out.stdout).unwrap())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Adds files to a set, and publishes the set.
    fn published(put: impl FnOnce(&mut AtomicFileSet) -> Result<(), Error>) -> Result<(), Error> {
        let mut set = AtomicFileSet::default();
        put(&mut set)?;
        Ok(set.publish_all()?)
    }

    struct Written {
        folder: tempfile::TempDir,
        genome: Reference,
        records: Vec<VcfRecord>,
    }

    fn header(genome: &Reference) -> String {
        vcf::format_vcf_header(&vcf::VcfHeaderContent {
            genome,
            samples: &SampleNames::default(),
            reference: &ReferenceIdentity::default(),
            settings: "genuma call",
            provenance: &Provenance::default(),
            has_screen: false,
        })
    }

    impl Written {
        fn new() -> Written {
            let (folder, genome) = (tempfile::tempdir().unwrap(), genome());
            let records = vcf_record::build_records(&events(&genome), &genome);
            let written = Written { folder, genome, records };
            written.write(&written.path("somatic.vcf.gz")).unwrap();
            written
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, path: &Path) -> Result<(), Error> {
            let header = header(&self.genome);
            published(|set| write_vcf(path, &header, &self.records, &self.genome, true, set))
        }
    }

    #[test]
    fn the_index_finds_what_filtering_finds() {
        let written = Written::new();
        let path = written.path("somatic.vcf.gz");
        let path = path.to_str().unwrap();
        let Some(all) = output("bcftools", &["view", "-H", path]) else { return };
        assert_eq!(all.lines().count(), written.records.len());
        let regions = [("chr1", 1, 50_000), ("chr1", 202, 204), ("chr1", 6_000, 6_001), ("chr1", 99, 99)];
        for (chrom, from, to) in regions.into_iter().chain([("chr2", 7_000, 9_123), ("empty", 1, 1_000)]) {
            let expected: Vec<&str> = written
                .records
                .iter()
                .filter(|l| written.genome.contigs[l.chrom].name == chrom && l.pos <= to && l.end >= from)
                .map(|l| &*l.id)
                .collect();
            let region = format!("{chrom}:{from}-{to}");
            let ids = |text: String| -> Vec<String> {
                text.lines().map(|l| l.split('\t').nth(2).unwrap().to_owned()).collect()
            };
            assert_eq!(ids(output("bcftools", &["view", "-H", "-r", &region, path]).unwrap()), expected, "{region}");
            if let Some(found) = output("tabix", &[path, &region]) {
                assert_eq!(ids(found), expected, "{region}");
            }
        }
        if let Some(chroms) = output("tabix", &["-l", path]) {
            assert_eq!(chroms, "chr1\nchr2\n");
        }
        assert_eq!(output("bcftools", &["index", "-n", path]).unwrap(), format!("{}\n", written.records.len()));
    }

    #[test]
    fn alleles_agree_with_the_reference() {
        let written = Written::new();
        let fasta = written.path("genome.fa");
        written.genome.write(&fasta).unwrap();
        let path = written.path("somatic.vcf.gz");
        let arguments = ["norm", "--check-ref", "e", "-f", fasta.to_str().unwrap(), path.to_str().unwrap()];
        let Some(normalised) = output("bcftools", &arguments) else { return };
        let lines: Vec<&str> = normalised.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(lines.len(), written.records.len());
        for class in ["SNV", "INDEL", "DEL", "INS", "DUP", "BND"] {
            assert!(lines.iter().any(|l| l.contains(&format!("CLASS={class};"))), "{class}");
        }
    }

    #[test]
    fn same_bytes_again_and_no_calls() {
        let written = Written::new();
        let again = written.path("again.vcf.gz");
        written.write(&again).unwrap();
        for suffix in ["", ".tbi"] {
            let read = |name: &str| fs::read(written.path(&format!("{name}.vcf.gz{suffix}"))).unwrap();
            assert!(read("somatic") == read("again"), "{suffix}");
        }
        let header = header(&written.genome);
        published(|set| write_vcf(&again, &header, &[], &written.genome, true, set)).unwrap();
        let Some(none) = output("bcftools", &["view", "-H", "-r", "chr1", again.to_str().unwrap()]) else {
            return;
        };
        assert!(none.is_empty());
    }

    #[test]
    fn refusals_leave_nothing() {
        let written = Written::new();
        let path = written.path("no/such/somatic.vcf.gz");
        let refused = format!("{}: cannot write: No such file or directory (os error 2)", path.display());
        assert_eq!(written.write(&path).unwrap_err().to_string(), refused);

        let disk = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8k", "genuma-test"])
            .arg(disk.path())
            .output()
            .is_ok_and(|o| o.status.success());
        if !mounted {
            println!("skipped: no tmpfs can be mounted here");
            return;
        }
        let path = disk.path().join("x");
        let full = [written.write(&path), published(|set| write_json(&path, &vec![1; 100_000], set))]
            .map(|r| r.unwrap_err().to_string());
        let left = names(disk.path());
        Command::new("umount").arg(disk.path()).status().unwrap();
        let expected = format!("{}: cannot write: No space left on device (os error 28)", path.display());
        assert_eq!(full, [&*expected; 2]);
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn json_is_indented_and_ends_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        published(|set| write_json(&path, &("a", [1, 2]), set)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  \"a\",\n  [\n    1,\n    2\n  ]\n]\n");
    }

    /// A call of a deletion of 20 bp at chr1:1001-1020, supported by pairs 1 and 2 of the tumour and pair 0 of the
    /// normal.
    fn finished(on_reference: bool) -> FinishedCall {
        let genome = genome();
        let chr1 = &genome.contigs[0].seq;
        let contig = [&chr1[850..1_000], &chr1[1_020..1_170]].concat();
        let change = allele(&genome, 0, 999, 20, b"");
        let finding = ContigChange {
            change: change.clone(),
            contig_range: 350..350,
            left_normal: chr1[650..1_370].to_vec(),
            right_normal: chr1[650..1_370].to_vec(),
            right_shift: 20,
            mapq: 60,
        };
        let compared = AlignedContig {
            seq: [&chr1[650..850], &contig, &chr1[1_170..1_370]].concat(),
            novel: vec![false; 700],
            quality_sums: vec![0; 700],
            assembled: 200..500,
            num_reads: 3,
            changes: vec![finding],
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            explanations: Vec::new(),
        };
        let pair = |i: u8| {
            let from = usize::from(10 * i);
            let seqs = [contig[from..from + 150].to_vec(), reverse_complement(&chr1[1_200 + from..1_350 + from])];
            let mates = seqs.map(|seq| packed::OwnedRead { qual: vec![30; seq.len()], seq });
            RecruitedPair {
                name: format!("p{i}").into(),
                sample: u8::from(i > 1),
                mates,
                id: i.into(),
                contigs: vec![0],
            }
        };
        let recruit = |pair, mate| PlacedRead { pair, mate, forward: mate == 0, offsets: [0; MAX_OFFSETS_PER_READ] };
        let event = |supporting: &[u32]| Event {
            class: EventClass::Indel,
            calls: vec![call(change.clone(), supporting)],
            inserted_element: None,
            phase_set: None,
        };
        let pairs: Vec<RecruitedPair> = (0..5).map(pair).collect();
        let mut locus = Locus::from_contig_without_reads(compared, [1; 2]);
        locus.set_placed_reads(vec![recruit(0, 0), recruit(2, 0), recruit(2, 1), recruit(3, 0)], &pairs);
        FinishedCall {
            libraries: Default::default(),
            known_sequences: Default::default(),
            sample_summaries: Default::default(),
            ranges: LocusRanges::from_pairs_in_memory(vec![locus], pairs),
            events: vec![event(&[3, 2]), event(&[0, 3])],
            samples: SampleNames::default(),
            spectra: vec![vec![]; 2],
            depths: KmerDepths { kmer: vec![1.0; 2], error_share: 0.0 },
            bases: vec![0; 2],
            costs: vec![],
            errors: ErrorModel::from_counts(&BaseErrorCounts::default(), SlippageModel::default()),
            ledger: Ledger::default(),
            genotype_mismatch_share: None,
            own_alleles: vec![],
            admixture: Default::default(),
            traces: vec![],
            on_reference,
            targets: None,
            genome,
        }
    }

    #[test]
    fn contigs_stand_beside_their_normal_alleles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contigs.fa");
        let with = finished(true);
        published(|set| write_contigs(&path, &with, set)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let headers =
            |text: &str| -> Vec<String> { text.lines().filter(|l| l.starts_with('>')).map(str::to_owned).collect() };
        let tumour = ">t1 length=300 tumour_pairs=2 normal_pairs=1 changes=chr1:1000";
        assert_eq!(headers(&text), [tumour, ">n1 length=320 normal_of=t1"]);
        let read = Reference::read_fasta_file(&path).unwrap();
        let chr1 = &with.genome.contigs[0].seq;
        assert_eq!(read.contigs[0].seq, with.ranges.loci()[0].contig.seq[200..500]);
        assert_eq!(read.contigs[1].seq, chr1[850..1_170]);
        assert!(text.lines().all(|l| l.starts_with('>') || l.len() <= FASTA_LINE_WIDTH));

        // Without a reference the calls are placed on the normal's contigs.
        let without = finished(false);
        published(|set| write_contigs(&path, &without, set)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(headers(&text), [tumour, ">chr1 length=50000", ">empty length=1000", ">chr2 length=40000"]);
        assert_eq!(Reference::read_fasta_file(&path).unwrap().contigs[1..], without.genome.contigs[..]);
    }

    fn means() -> Resources {
        Resources { threads: 2, memory: 1 << 30, scratch: 1 << 30, devices: Default::default() }
    }

    #[test]
    fn supporting_pairs_are_those_of_any_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("supporting.bam");
        let mut without = finished(false);
        let portions = collect_supporting_pairs(&mut without, folder.path(), 0, 2).unwrap();
        let all: Vec<SupportingPair> = portions.flat_map(Result::unwrap).collect();
        let ids: Vec<u64> = all.iter().map(|one| one.pair.id).collect();
        assert_eq!(ids, [0, 2, 3]);
        assert!(all.iter().all(|one| one.positions == [(0, 999)] && one.quality == 60));
        published(|set| {
            write_supporting_pairs(
                &path,
                &mut without,
                SupportingReadsOrigin { provenance: &Provenance::default(), reference: &ReferenceIdentity::default() },
                &means(),
                folder.path(),
                &ProgressCounters::default(),
                set,
            )
        })
        .unwrap();
        assert!(!path.exists());

        let mut finished = finished(true);
        published(|set| {
            write_supporting_pairs(
                &path,
                &mut finished,
                SupportingReadsOrigin { provenance: &Provenance::default(), reference: &ReferenceIdentity::default() },
                &means(),
                folder.path(),
                &ProgressCounters::default(),
                set,
            )
        })
        .unwrap();
        let Some(sam) = output("samtools", &["view", path.to_str().unwrap(), "chr1"]) else { return };
        let mut found: Vec<[&str; 2]> = sam
            .lines()
            .map(|l| [l.split('\t').next().unwrap(), l.rsplit('\t').find(|t| t.starts_with("RG:")).unwrap()])
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [["p0", "RG:Z:NORMAL"], ["p2", "RG:Z:TUMOR"], ["p3", "RG:Z:TUMOR"]]);
        assert!(sam.contains("20D"), "{sam}");
    }

    #[test]
    fn portions_begin_where_calls_do() {
        let at = |n: usize| ((n % 3, n * 7919 % 100_000), 300);
        let starts = portion_starts((0..1_000).map(at).collect());
        assert!(starts.windows(2).all(|two| two[0] < two[1]), "{starts:?}");
        assert_eq!(starts.len(), (1_000 * 300_usize).div_ceil(MIN_PORTION_PAIRS / 300 * 300));
        // The pairs of one position are not divided.
        assert_eq!(portion_starts(vec![((0, 5), 1 << 20); 9]), [(0, 0), (0, 5)]);
        assert_eq!(portion_starts(Vec::new()), [(0, 0)]);
    }
}
