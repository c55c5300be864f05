//! Aligns read pairs to a reference without an index of the reference ([`crate::scan`]) and writes them to a BAM file
//! sorted by coordinate, with its index. Section numbers refer to the SAM specification.

mod records;

use std::io;
use std::path::Path;

use genuma_reads::fasta::Reference;
use genuma_work::parallel;
use genuma_work::publish::AtomicFileSet;
use noodles_bam as bam;
use noodles_sam as sam;

use crate::Hit;
use crate::bgzf::CompressionLevel;
use crate::scan::{
    FALLBACK_MAX_INSERT_SIZE_BP, ReferenceRegion, ReferenceScan, choose_best_pair_and_set_mapq,
    estimate_max_insert_size,
};
use crate::sort::{self, BamFileWriter, BlockSorter, Sorter};
use records::RecordEncoder;

/// Why a BAM file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The records cannot be sorted, or the BAM file or its index cannot be written.
    #[error(transparent)]
    Sort(#[from] sort::Error),
    /// A header or record that cannot be represented in BAM.
    #[error("{what} cannot be written as BAM: {source}")]
    Encode {
        /// What cannot be written: the header, or the read with its name.
        what: String,
        /// Reason given by the BAM encoder.
        source: io::Error,
    },
}

/// Bases and qualities of one read as sequenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencedRead<'a> {
    /// Bases (ASCII).
    pub seq: &'a [u8],
    /// Phred qualities without offset, one for each base.
    pub qual: &'a [u8],
}

/// A read pair to be aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnalignedTemplate<'a> {
    /// Name of the template, which all its reads share (QNAME).
    pub name: &'a [u8],
    /// Index of the read group in [`BamHeader::read_groups`].
    pub read_group: usize,
    /// Read 1 and read 2.
    pub mates: [SequencedRead<'a>; 2],
    /// Whether no record is written for a mate without bases, as in a library of unpaired reads. If false, such a mate
    /// gets an unmapped record.
    pub omits_empty_mate: bool,
    /// Positions near which the pair is expected: index of the reference sequence, and 0-based position. The pair may
    /// also align elsewhere.
    pub expected_positions: &'a [(usize, usize)],
    /// Upper limit of the mapping quality of mates that are not searched for in the whole reference: those that align
    /// near the expected positions, and all mates if `search_genome` is false.
    pub max_mapq: u8,
    /// Whether mates that do not align near the expected positions are searched for in the whole reference.
    pub search_genome: bool,
}

/// A value that contains a read pair to be aligned.
pub trait HasUnalignedTemplate {
    /// Returns the read pair to be aligned.
    fn template(&self) -> UnalignedTemplate<'_>;
}

/// A read group for the `@RG` header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BamReadGroup<'a> {
    /// ID of the read group, unique in the file.
    pub id: &'a str,
    /// Sample that the reads are from (SM).
    pub sample: &'a str,
    /// Sequencing platform (PL), if it is known.
    pub platform: Option<&'a str>,
}

/// The program for the `@PG` header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BamHeaderProgram<'a> {
    /// Name of the program (PN and ID of `@PG`).
    pub name: &'a str,
    /// Version of the program (VN of `@PG`).
    pub version: &'a str,
    /// The command line as typed.
    pub command: &'a str,
}

/// Content of the header of a BAM file of supporting reads: reference, samples and program.
#[derive(Debug, Clone, Copy)]
pub struct BamHeader<'a> {
    /// The reference whose sequences the `@SQ` lines list.
    pub reference: &'a Reference,
    /// MD5 sums of the sequences (M5), in their order; empty if they are unknown.
    pub sequence_md5: &'a [String],
    /// The read groups; [`UnalignedTemplate::read_group`] is an index into this list. A group with an empty ID has no
    /// templates and gets no `@RG` line.
    pub read_groups: &'a [BamReadGroup<'a>],
    /// The program that writes the file.
    pub program: BamHeaderProgram<'a>,
}

/// Aligns read pairs and writes them to `path` as a BAM file sorted by coordinate, with its index (`.bai`, or `.csi`
/// if a sequence is too long for BAI). Both files are added to `set`. The bytes depend on the templates, their order
/// and their batches, but not on the number of threads or `memory`.
///
/// Each template is first searched for near its expected positions, together with the other templates of its batch,
/// whose positions should be near. Mates that do not align there are searched for in the whole reference if the
/// template allows it. That genome-wide search runs at the end for all such templates; they stay in memory until
/// then.
///
/// A read has one primary record, and a supplementary record (hard-clipped) for each further segment. An unmapped
/// read gets the position of its mate. Tags: NM, AS, RG, MC (CIGAR of the mate), SA (other segments). The records use
/// at most `memory` bytes (about 400 bytes for a read of 150 bp); further records are spilled to an unnamed file in
/// the folder of `path`.
///
/// # Errors
/// A file cannot be written, BAM cannot hold a record, or an item of `batches` is an error.
pub fn align_and_write_bam<T: HasUnalignedTemplate + Sync, E: From<Error>>(
    path: &Path,
    bam_header: &BamHeader<'_>,
    batches: impl IntoIterator<Item = Result<Vec<T>, E>>,
    scan: &ReferenceScan<'_>,
    memory: usize,
    set: &mut AtomicFileSet,
) -> Result<(), E> {
    // Create the file first, so that a file that cannot be written is reported before minutes of alignment.
    let text = sort::SortedFileHeader::from_sam_header(&bam_header.text()).map_err(Error::from)?;
    let file = BamFileWriter::create(path, text, CompressionLevel::default()).map_err(Error::from)?;
    let sam_header = bam_header.sequences().parse().map_err(|e| encode_error("the header", io::Error::other(e)))?;
    let work = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let sorter =
        Sorter::new(&sort::SortOptions { memory_bytes: memory, threads: scan.threads, work_dir: work, markdup: None });
    let (num_repetitive_sequences, sequences_with_dropped_hits) = Default::default();
    let mut mapper = TemplateMapper {
        bam_header,
        sam_header: &sam_header,
        scan,
        max_mate_distance: FALLBACK_MAX_INSERT_SIZE_BP,
        num_repetitive_sequences,
        sequences_with_dropped_hits,
        sorter,
    };
    let mut unplaced = Vec::new();
    for batch in batches {
        mapper.map_near_expected(batch?, &mut unplaced)?;
    }
    mapper.map_genome_wide(unplaced)?;
    mapper.log_skipped_positions();
    mapper.sorter.write_bam(file, set).map_err(Error::from)?;
    Ok(())
}

fn encode_error(what: &str, source: io::Error) -> Error {
    Error::Encode { what: what.to_owned(), source }
}

/// Replaces control characters by spaces, so that the text is valid in a header field (section 1.3).
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl BamHeader<'_> {
    fn sequences(&self) -> String {
        let md5 = |c: usize| self.sequence_md5.get(c).map_or_else(String::new, |md5| format!("\tM5:{md5}"));
        let contigs = self.reference.contigs.iter().enumerate();
        contigs.map(|(c, contig)| format!("@SQ\tSN:{}\tLN:{}{}\n", contig.name, contig.seq.len(), md5(c))).collect()
    }

    fn text(&self) -> String {
        let mut text = self.sequences();
        for group in self.read_groups.iter().filter(|group| !group.id.is_empty()) {
            let platform = group.platform.map_or_else(String::new, |name| format!("\tPL:{name}"));
            text += &format!("@RG\tID:{}\tSM:{}{platform}\n", group.id, printable(group.sample));
        }
        let [name, version, command] = [self.program.name, self.program.version, self.program.command].map(printable);
        text + &format!("@PG\tID:{name}\tPN:{name}\tVN:{version}\tCL:{command}\n")
    }
}

/// Number of templates that are searched for together near their expected positions. Chosen: templates of a batch are
/// near each other, so that one scan serves all of them.
const TEMPLATES_PER_LOCAL_SCAN: usize = 8 << 10;
/// Number of templates whose mates are searched for in one scan of the whole reference. Chosen: limits the memory for
/// their hits.
const TEMPLATES_PER_GENOME_SCAN: usize = 256 << 10;
/// Number of templates that a thread encodes and sorts at a time. Chosen: the templates of one local search make up to
/// 32 chunks, which the threads share.
const TEMPLATES_PER_CHUNK: usize = 256;
/// Number of bases (bp) before and after each expected position in which a template is searched for. Chosen: mates are
/// rarely farther apart.
const SEARCH_FLANK_BP: usize = 1_500;

/// Merged reference regions around the expected positions of the templates.
fn search_regions(templates: &[UnalignedTemplate<'_>], genome: &Reference) -> Vec<ReferenceRegion> {
    let flank = |&(chrom, at): &(usize, usize)| {
        (chrom, at.saturating_sub(SEARCH_FLANK_BP)..(at + SEARCH_FLANK_BP).min(genome.contigs[chrom].seq.len()))
    };
    let mut regions: Vec<ReferenceRegion> =
        templates.iter().flat_map(|template| template.expected_positions).map(flank).collect();
    regions.sort_unstable_by_key(|(chrom, range)| (*chrom, range.start));
    regions.dedup_by(|(chrom, range), (before, kept)| {
        let joined = *chrom == *before && range.start <= kept.end;
        if joined {
            kept.end = kept.end.max(range.end);
        }
        joined
    });
    regions
}

/// Whether a read aligns well: its best hits that do not overlap each other in the read have a total score of at least
/// 0.9 times its number of bases. A read without bases counts as well aligned.
fn is_well_aligned(mate: &SequencedRead<'_>, hits: &[Hit]) -> bool {
    let mut separate_hits: Vec<&Hit> = Vec::new();
    for hit in hits {
        let is_disjoint = |kept: &&Hit| hit.query_end <= kept.query_start || kept.query_end <= hit.query_start;
        if separate_hits.iter().all(is_disjoint) {
            separate_hits.push(hit);
        }
    }
    let points: i32 = separate_hits.iter().map(|kept| kept.score).sum();
    points as usize * 10 >= mate.seq.len() * 9
}

/// A template with the hits of its mates on the reference.
struct MappedTemplate<T> {
    input: T,
    mate_hits: [Vec<Hit>; 2],
    /// For each mate, whether it aligns well near the expected positions.
    aligned_nearby: [bool; 2],
}

impl<T: HasUnalignedTemplate> MappedTemplate<T> {
    /// Sequences of the mates that still have to be searched for in the whole reference.
    fn unaligned_mates(some: &[MappedTemplate<T>]) -> Vec<&[u8]> {
        let mates = some
            .iter()
            .flat_map(|one| one.input.template().mates.map(|mate| mate.seq).into_iter().zip(one.aligned_nearby));
        mates.filter(|(_, is_aligned)| !is_aligned).map(|(mate, _)| mate).collect()
    }

    /// Moves the hits of the best pair to the front. Limits the mapping quality of mates that were not searched for in
    /// the whole reference to [`UnalignedTemplate::max_mapq`].
    fn choose_hits(&mut self, apart: usize) {
        choose_best_pair_and_set_mapq(&mut self.mate_hits, apart);
        let UnalignedTemplate { max_mapq, search_genome, .. } = self.input.template();
        for (hits, _) in
            self.mate_hits.iter_mut().zip(self.aligned_nearby).filter(|(_, is_aligned)| *is_aligned || !search_genome)
        {
            hits.iter_mut().for_each(|hit| hit.mapq = hit.mapq.min(max_mapq));
        }
    }
}

/// Aligns templates and passes their records to the sorter.
struct TemplateMapper<'a> {
    bam_header: &'a BamHeader<'a>,
    sam_header: &'a sam::Header,
    /// Search in the whole reference.
    scan: &'a ReferenceScan<'a>,
    /// Maximum distance (bp) between the outer ends of a proper pair.
    max_mate_distance: usize,
    /// Number of reads with a part that is too repetitive to be searched for.
    num_repetitive_sequences: u64,
    sequences_with_dropped_hits: u64,
    sorter: Sorter,
}

impl TemplateMapper<'_> {
    /// Aligns reads to the regions of `scan`. Returns the hits of each read, in the order of the reads.
    fn find_hits(&mut self, reads: &[&[u8]], scan: &ReferenceScan<'_>) -> impl Iterator<Item = Vec<Hit>> + use<> {
        let lengths: Vec<usize> = reads.iter().map(|read| read.len()).collect();
        scan.meter.add_expected_bytes(scan.reference_bases_of_all_passes(&lengths));
        let found = scan.find_hits(reads);
        (self.num_repetitive_sequences, self.sequences_with_dropped_hits) = (
            self.num_repetitive_sequences + found.num_repetitive_sequences,
            self.sequences_with_dropped_hits + found.sequences_with_dropped_hits,
        );
        found.hits.into_iter()
    }

    /// Encodes templates with their hits and pushes the records to the sorter.
    fn push_records<T: HasUnalignedTemplate + Sync>(&mut self, all: &[MappedTemplate<T>]) -> Result<(), Error> {
        let &mut TemplateMapper { bam_header, sam_header, .. } = self;
        let chunks: Vec<_> = all.chunks(TEMPLATES_PER_CHUNK).collect();
        let encode = |(): &mut (), i: usize| {
            let mut encoder = RecordEncoder { bam_header, sam_header, out: bam::io::Writer::from(Vec::new()) };
            for one in chunks[i] {
                encoder.encode_records_of_template(&one.input.template(), &one.mate_hits)?;
            }
            Ok::<_, Error>(BlockSorter::new(None).sort_records(&encoder.out.into_inner())?)
        };
        for block in parallel::try_map_in_order(chunks.len(), self.scan.threads, || (), encode)? {
            self.sorter.push_block(block)?;
        }
        Ok(())
    }

    /// Searches for templates near their expected positions and pushes their records. Moves templates to `unplaced`
    /// that allow a search in the whole reference and have a mate that does not align near its expected positions.
    fn map_near_expected<T: HasUnalignedTemplate + Sync>(
        &mut self,
        all: Vec<T>,
        unplaced: &mut Vec<MappedTemplate<T>>,
    ) -> Result<(), Error> {
        let mut all = all.into_iter();
        while all.len() > 0 {
            let some: Vec<T> = all.by_ref().take(TEMPLATES_PER_LOCAL_SCAN).collect();
            let templates: Vec<UnalignedTemplate<'_>> = some.iter().map(HasUnalignedTemplate::template).collect();
            let regions = search_regions(&templates, self.bam_header.reference);
            let near = ReferenceScan { regions: Some(&regions), ..*self.scan };
            let mut hits = self.find_hits(&mate_sequences(&templates), &near);
            let hits: Vec<[Vec<Hit>; 2]> =
                std::iter::from_fn(|| hits.next().zip(hits.next()).map(|(one, two)| [one, two])).collect();
            self.max_mate_distance = estimate_max_insert_size(&hits).unwrap_or(self.max_mate_distance);
            let is_aligned = |(template, mates): (&UnalignedTemplate<'_>, &[Vec<Hit>; 2])| {
                [0, 1].map(|m| is_well_aligned(&template.mates[m], &mates[m]))
            };
            let aligned: Vec<[bool; 2]> = templates.iter().zip(&hits).map(is_aligned).collect();
            let mut here = Vec::with_capacity(some.len());
            for ((input, mate_hits), aligned_nearby) in some.into_iter().zip(hits).zip(aligned) {
                let mut one = MappedTemplate { input, mate_hits, aligned_nearby };
                if aligned_nearby == [true; 2] || !one.input.template().search_genome {
                    one.choose_hits(self.max_mate_distance);
                    here.push(one);
                } else {
                    unplaced.push(one);
                }
            }
            self.push_records(&here)?;
        }
        Ok(())
    }

    /// Searches the whole reference for the mates that do not align near the expected positions, and pushes the
    /// records.
    fn map_genome_wide<T: HasUnalignedTemplate + Sync>(
        &mut self,
        mut unplaced: Vec<MappedTemplate<T>>,
    ) -> Result<(), Error> {
        for some in unplaced.chunks_mut(TEMPLATES_PER_GENOME_SCAN) {
            let mut hits = self.find_hits(&MappedTemplate::unaligned_mates(some), self.scan);
            for one in some.iter_mut() {
                for (mate, _) in one.mate_hits.iter_mut().zip(one.aligned_nearby).filter(|(_, is_aligned)| !is_aligned)
                {
                    *mate = hits.next().unwrap_or_default();
                }
                one.choose_hits(self.max_mate_distance);
            }
            self.push_records(some)?;
        }
        Ok(())
    }

    fn log_skipped_positions(&self) {
        if self.num_repetitive_sequences + self.sequences_with_dropped_hits > 0 {
            tracing::info!(
                "{} supporting reads have a part that is too repetitive to be searched for; for {} supporting reads only the \
                 best alignments were kept",
                self.num_repetitive_sequences,
                self.sequences_with_dropped_hits
            );
        }
    }
}

/// The base sequences of both mates of each template.
fn mate_sequences<'a>(templates: &[UnalignedTemplate<'a>]) -> Vec<&'a [u8]> {
    templates.iter().flat_map(|template| template.mates.map(|mate| mate.seq)).collect()
}
