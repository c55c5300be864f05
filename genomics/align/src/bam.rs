//! Read pairs → alignments → a sorted, indexed BAM (sections cited are those of the SAM specification).

use std::io;
use std::path::Path;

use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;
use genuma_work::parallel;
use genuma_work::publish::Set;
use noodles_bam as bam;
use noodles_core::Position;
use noodles_sam as sam;
use sam::alignment::RecordBuf;
use sam::alignment::io::Write as _;
use sam::alignment::record::cigar::{Op, op::Kind};
use sam::alignment::record::data::field::Tag;
use sam::alignment::record::{Flags, MappingQuality};
use sam::alignment::record_buf::data::field::Value;
use sam::alignment::record_buf::{Cigar, Data, QualityScores, Sequence};

use crate::bgzf::Level;
use crate::scan::{APART, Part, Scan, choose, farthest};
use crate::sort::{self, BamFile, Blocks, Sorter};
use crate::{CigarKind, Hit, Strand};

/// What can go wrong while a BAM is made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The records cannot be sorted, or the BAM or its index not be written.
    #[error(transparent)]
    Sort(#[from] sort::Error),
    /// Something that BAM cannot hold.
    #[error("{what} cannot be written as BAM: {source}")]
    Encode {
        /// The header, or a template by its name.
        what: String,
        /// What is wrong with it.
        source: io::Error,
    },
}

/// A read as sequenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    /// Bases (ASCII).
    pub seq: &'a [u8],
    /// Phred qualities without offset, as many as bases.
    pub qual: &'a [u8],
}

/// A pair of reads to be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Index of its read group in [`Heading::groups`].
    pub group: usize,
    /// Read 1 and read 2.
    pub mates: [Read<'a>; 2],
    /// About where it is expected: sequences and positions. It may lie elsewhere.
    pub places: &'a [(usize, usize)],
    /// Mapping quality of what lies there, at most: what is known of these places.
    pub quality: u8,
    /// Whether mates that do not lie there are looked for in the whole reference.
    pub anywhere: bool,
}

/// What has a template.
pub trait Templated {
    /// The template.
    fn template(&self) -> Template<'_>;
}

/// An `@RG` line: some reads of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadGroup<'a> {
    /// Its identifier.
    pub id: &'a str,
    /// The sample's name.
    pub sample: &'a str,
}

/// The `@PG` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The command line as typed.
    pub command: &'a str,
}

/// What the header of a BAM says.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    /// The sequences: those the index was made from.
    pub genome: &'a Reference,
    /// The read groups.
    pub groups: &'a [ReadGroup<'a>],
    /// Who made it.
    pub program: Program<'a>,
}

/// Places templates and writes them sorted by position, with an index beside (`.bai`, or `.csi` when a sequence is too long for that); both are
/// put into `set`. The bytes depend on the templates, their order and how they are portioned, not on `threads` or `memory`.
///
/// A template is looked for about its places first, with those of its neighbours in the portion, which should be near; of reads that do not lie there
/// the whole reference is asked, where that is wanted, once for all of them that memory has room for. Those that wait for it are in memory
/// together, with what was found of their mates.
///
/// A read has one primary record and supplementary ones for its other pieces (hard-clipped); an unmapped read stands
/// at its mate. Tags: NM, AS, RG, MC (CIGAR of the mate), SA (the other pieces). Records take `memory` bytes at most (about
/// 400 for a read of 150 bp), beyond which they are sorted in a file without a name beside `path`.
///
/// # Errors
/// A file cannot be written; that of a portion.
pub fn write_bam<T: Templated + Sync, E: From<Error>>(
    path: &Path,
    heading: &Heading<'_>,
    portions: impl IntoIterator<Item = Result<Vec<T>, E>>,
    scan: &Scan<'_>,
    memory: usize,
    set: &mut Set,
) -> Result<(), E> {
    // The file comes first: that it cannot be written should not show after minutes of mapping.
    let text = sort::Header::sorted(&heading.text()).map_err(Error::from)?;
    let file = BamFile::create(path, text, Level::default()).map_err(Error::from)?;
    let header = heading.sequences().parse().map_err(|e| encode_error("the header", io::Error::other(e)))?;
    let work = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let sorter = Sorter::new(&sort::Options { memory, threads: scan.threads, work, marking: None });
    let (crowded, unkept) = Default::default();
    let mut placing = Placing { heading, header: &header, scan, apart: APART, crowded, unkept, sorter };
    let mut elsewhere = Vec::new();
    for portion in portions {
        placing.about(portion?, &mut elsewhere)?;
    }
    placing.anywhere(elsewhere)?;
    placing.tell();
    placing.sorter.finish(file, set).map_err(Error::from)?;
    Ok(())
}

fn encode_error(what: &str, source: io::Error) -> Error {
    Error::Encode { what: what.to_owned(), source }
}

/// Text that can stand in a header field (section 1.3).
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Heading<'_> {
    fn sequences(&self) -> String {
        let contigs = self.genome.contigs.iter();
        contigs.map(|c| format!("@SQ\tSN:{}\tLN:{}\n", c.name, c.seq.len())).collect()
    }

    fn text(&self) -> String {
        let mut text = self.sequences();
        for group in self.groups {
            text += &format!("@RG\tID:{}\tSM:{}\tPL:ILLUMINA\n", group.id, printable(group.sample));
        }
        let [name, version, command] =
            [self.program.name, self.program.version, self.program.command].map(printable);
        text + &format!("@PG\tID:{name}\tPN:{name}\tVN:{version}\tCL:{command}\n")
    }
}

/// Templates that are looked for together about their places, and those of the others whose hits are in memory together; a scan takes them in as many
/// turns as its memory asks for. And templates that are handed to a thread at a time.
const NEIGHBOURS: usize = 8 << 10;
const PORTION: usize = 256 << 10;
const CHUNK: usize = 256;
/// Bases beside a place in which its templates are looked for: mates are seldom farther apart.
const BESIDE: usize = 1_500;

/// Bases about the places of some templates.
fn parts(templates: &[Template<'_>], genome: &Reference) -> Vec<Part> {
    let about = |&(chrom, at): &(usize, usize)| {
        (chrom, at.saturating_sub(BESIDE)..(at + BESIDE).min(genome.contigs[chrom].seq.len()))
    };
    let mut parts: Vec<Part> = templates.iter().flat_map(|template| template.places).map(about).collect();
    parts.sort_unstable_by_key(|(chrom, range)| (*chrom, range.start));
    parts.dedup_by(|(chrom, range), (before, kept)| {
        let joined = *chrom == *before && range.start <= kept.end;
        if joined {
            kept.end = kept.end.max(range.end);
        }
        joined
    });
    parts
}

/// Whether a read lies where its hits are: their parts of it have nine points of ten at least.
fn lies(mate: &Read<'_>, hits: &[Hit]) -> bool {
    let mut parts: Vec<&Hit> = Vec::new();
    for hit in hits {
        let beside = |part: &&Hit| hit.query_end <= part.query_start || part.query_end <= hit.query_start;
        if parts.iter().all(beside) {
            parts.push(hit);
        }
    }
    let points: i32 = parts.iter().map(|part| part.score).sum();
    points as usize * 10 >= mate.seq.len() * 9
}

/// What has a template, and what was found of its mates.
struct Here<T> {
    of: T,
    mates: [Vec<Hit>; 2],
    /// Which of them lie about the template's places.
    lie: [bool; 2],
}

impl<T: Templated> Here<T> {
    /// Mates that have to be looked for elsewhere.
    fn to_be_found(some: &[Here<T>]) -> Vec<&[u8]> {
        let mates =
            some.iter().flat_map(|one| one.of.template().mates.map(|mate| mate.seq).into_iter().zip(one.lie));
        mates.filter(|(_, lies)| !lies).map(|(mate, _)| mate).collect()
    }

    /// With that hit of each mate first with which both are best. Of what was not looked for elsewhere no more is known than of the places.
    fn choose(&mut self, apart: usize) {
        choose(&mut self.mates, apart);
        let Template { quality, anywhere, .. } = self.of.template();
        for (hits, _) in self.mates.iter_mut().zip(self.lie).filter(|(_, lies)| *lies || !anywhere) {
            hits.iter_mut().for_each(|hit| hit.mapq = hit.mapq.min(quality));
        }
    }
}

/// Placing templates, and what came of it.
struct Placing<'a> {
    heading: &'a Heading<'a>,
    header: &'a sam::Header,
    /// Of the whole reference.
    scan: &'a Scan<'a>,
    /// How far mates lie apart.
    apart: usize,
    /// Reads of which places were not looked at, or not kept.
    crowded: u64,
    unkept: u64,
    sorter: Sorter,
}

impl Placing<'_> {
    /// The hits of reads.
    fn find(&mut self, reads: &[&[u8]], scan: &Scan<'_>) -> impl Iterator<Item = Vec<Hit>> + use<> {
        let lengths: Vec<usize> = reads.iter().map(|read| read.len()).collect();
        scan.meter.expect_bytes(scan.expected(&lengths));
        let found = scan.find(reads);
        (self.crowded, self.unkept) = (self.crowded + found.crowded, self.unkept + found.unkept);
        found.hits.into_iter()
    }

    /// Encodes templates with their hits.
    fn write<T: Templated + Sync>(&mut self, all: &[Here<T>]) -> Result<(), Error> {
        let &mut Placing { heading, header, .. } = self;
        let chunks: Vec<_> = all.chunks(CHUNK).collect();
        let encode = |(): &mut (), i: usize| {
            let mut encoder = Encoder { heading, header, out: bam::io::Writer::from(Vec::new()) };
            for one in chunks[i] {
                encoder.template(&one.of.template(), &one.mates)?;
            }
            Ok::<_, Error>(Blocks::new(None).block(&encoder.out.into_inner())?)
        };
        for block in parallel::try_in_order(chunks.len(), self.scan.threads, || (), encode)? {
            self.sorter.push(block)?;
        }
        Ok(())
    }

    /// Looks for templates about their places; those of which a mate has to be looked for elsewhere wait.
    fn about<T: Templated + Sync>(&mut self, all: Vec<T>, elsewhere: &mut Vec<Here<T>>) -> Result<(), Error> {
        let mut all = all.into_iter();
        while all.len() > 0 {
            let some: Vec<T> = all.by_ref().take(NEIGHBOURS).collect();
            let templates: Vec<Template<'_>> = some.iter().map(Templated::template).collect();
            let parts = parts(&templates, self.heading.genome);
            let near = Scan { parts: Some(&parts), ..*self.scan };
            let mut hits = self.find(&of_mates(&templates), &near);
            let hits: Vec<[Vec<Hit>; 2]> =
                std::iter::from_fn(|| hits.next().zip(hits.next()).map(|(one, two)| [one, two])).collect();
            self.apart = farthest(&hits).unwrap_or(self.apart);
            let lie = |(template, mates): (&Template<'_>, &[Vec<Hit>; 2])| {
                [0, 1].map(|m| lies(&template.mates[m], &mates[m]))
            };
            let lie: Vec<[bool; 2]> = templates.iter().zip(&hits).map(lie).collect();
            let mut here = Vec::with_capacity(some.len());
            for ((of, mates), lie) in some.into_iter().zip(hits).zip(lie) {
                let mut one = Here { of, mates, lie };
                if lie == [true; 2] || !one.of.template().anywhere {
                    one.choose(self.apart);
                    here.push(one);
                } else {
                    elsewhere.push(one);
                }
            }
            self.write(&here)?;
        }
        Ok(())
    }

    /// Looks for the mates that do not lie about their places.
    fn anywhere<T: Templated + Sync>(&mut self, mut elsewhere: Vec<Here<T>>) -> Result<(), Error> {
        for some in elsewhere.chunks_mut(PORTION) {
            let mut hits = self.find(&Here::to_be_found(some), self.scan);
            for one in some.iter_mut() {
                for (mate, _) in one.mates.iter_mut().zip(one.lie).filter(|(_, lies)| !lies) {
                    *mate = hits.next().unwrap_or_default();
                }
                one.choose(self.apart);
            }
            self.write(some)?;
        }
        Ok(())
    }

    fn tell(&self) {
        if self.crowded + self.unkept > 0 {
            tracing::info!(
                "of the supporting reads {} have a part that stands in so many places that these were not looked at, \
                 {} one of whose places only the best were kept",
                self.crowded,
                self.unkept
            );
        }
    }
}

/// The mates of some templates.
fn of_mates<'a>(templates: &[Template<'a>]) -> Vec<&'a [u8]> {
    templates.iter().flat_map(|template| template.mates.map(|mate| mate.seq)).collect()
}

/// One piece of a read on the genome.
struct Piece<'a> {
    hit: &'a Hit,
    sequence: usize,
    /// 0-based.
    start: usize,
    end: usize,
    /// With soft clips, so that it is as long as the read.
    cigar: Vec<Op>,
    /// Edit distance (tag NM).
    distance: i32,
}

impl<'a> Piece<'a> {
    fn new(hit: &'a Hit, mate: &Mate<'_>, genome: &Reference) -> Piece<'a> {
        let (sequence, start, end) = (hit.tid, hit.ref_start, hit.ref_end);
        let bases = &genome.contigs[sequence].seq[start..end];
        let (head, tail) = (hit.query_start, mate.seq.len() - hit.query_end);
        let reverse = hit.strand == Strand::Reverse;
        let (left, right) = if reverse { (tail, head) } else { (head, tail) };
        let mut cigar = Vec::with_capacity(hit.cigar.len() + 2);
        cigar.extend((left > 0).then(|| Op::new(Kind::SoftClip, left)));
        cigar.extend(hit.cigar.iter().map(|op| Op::new(kind(op.kind), op.len as usize)));
        cigar.extend((right > 0).then(|| Op::new(Kind::SoftClip, right)));
        let distance = distance(&cigar, mate.oriented(reverse).0, bases);
        Piece { hit, sequence, start, end, cigar, distance }
    }

    fn reverse(&self) -> bool {
        self.hit.strand == Strand::Reverse
    }

    /// Position of the read's first base as sequenced, were it aligned up to its end.
    fn first_base(&self) -> i64 {
        if self.reverse() { self.end as i64 - 1 } else { self.start as i64 }
    }

    /// Length of the template between the first bases of two mates (section 1.4, TLEN).
    fn template_length(&self, mate: &Piece<'_>) -> i32 {
        if self.sequence != mate.sequence {
            return 0;
        }
        let apart = mate.first_base() - self.first_base();
        (apart + apart.signum()) as i32
    }

    /// Its entry in another record's SA tag (section 1.2 of SAMtags).
    fn other_alignment(&self, genome: &Reference) -> String {
        format!(
            "{},{},{},{},{},{};",
            genome.contigs[self.sequence].name,
            self.start + 1,
            if self.reverse() { '-' } else { '+' },
            cigar_text(&self.cigar),
            self.hit.mapq,
            self.distance
        )
    }
}

fn kind(kind: CigarKind) -> Kind {
    match kind {
        CigarKind::Match => Kind::Match,
        CigarKind::Ins => Kind::Insertion,
        CigarKind::Del => Kind::Deletion,
    }
}

fn cigar_text(cigar: &[Op]) -> String {
    let letter = |kind| match kind {
        Kind::Match => 'M',
        Kind::Insertion => 'I',
        Kind::Deletion => 'D',
        Kind::Skip => 'N',
        Kind::SoftClip => 'S',
        Kind::HardClip => 'H',
        Kind::Pad => 'P',
        Kind::SequenceMatch => '=',
        Kind::SequenceMismatch => 'X',
    };
    cigar.iter().map(|op| format!("{}{}", op.len(), letter(op.kind()))).collect()
}

/// Edit distance of an alignment; an unknown base differs from everything.
fn distance(cigar: &[Op], mut read: &[u8], mut genome: &[u8]) -> i32 {
    let mut distance = 0;
    for op in cigar {
        let (r, g) = (
            &read[..if op.kind().consumes_read() { op.len() } else { 0 }],
            &genome[..if op.kind().consumes_reference() { op.len() } else { 0 }],
        );
        (read, genome) = (&read[r.len()..], &genome[g.len()..]);
        distance += match op.kind() {
            Kind::Insertion | Kind::Deletion => op.len(),
            Kind::Match | Kind::SequenceMatch | Kind::SequenceMismatch => {
                r.iter().zip(g).filter(|(a, b)| a != b || **a == b'N').count()
            }
            _ => 0,
        };
    }
    distance as i32
}

/// A read in both orientations.
struct Mate<'a> {
    seq: Vec<u8>,
    qual: &'a [u8],
    reversed: Vec<u8>,
    reversed_qual: Vec<u8>,
}

impl<'a> Mate<'a> {
    fn new(read: Read<'a>) -> Mate<'a> {
        let seq = read.seq.to_ascii_uppercase();
        let reversed = revcomp(&seq);
        Mate { seq, qual: read.qual, reversed, reversed_qual: read.qual.iter().rev().copied().collect() }
    }

    fn oriented(&self, reverse: bool) -> (&[u8], &[u8]) {
        if reverse { (&self.reversed, &self.reversed_qual) } else { (&self.seq, self.qual) }
    }
}

/// The name as BAM admits it (section 1.4): FASTQ headers may have other letters, and any length.
fn name(name: &[u8]) -> Vec<u8> {
    let mut name: Vec<u8> =
        name.iter().take(254).map(|&b| if b.is_ascii_graphic() && b != b'@' { b } else { b'_' }).collect();
    if name.is_empty() || name == b"*" {
        name = b"_".to_vec();
    }
    name
}

/// Turns templates into encoded records.
struct Encoder<'a> {
    heading: &'a Heading<'a>,
    header: &'a sam::Header,
    out: bam::io::Writer<Vec<u8>>,
}

impl Encoder<'_> {
    fn template(&mut self, template: &Template<'_>, hits: &[Vec<Hit>; 2]) -> Result<(), Error> {
        let name = name(template.name);
        let mates = template.mates.map(Mate::new);
        let mut pieces: [Vec<Piece<'_>>; 2] = [Vec::new(), Vec::new()];
        for (m, hits) in hits.iter().enumerate() {
            let hits = hits.iter().filter(|hit| !hit.is_secondary);
            pieces[m].extend(hits.map(|hit| Piece::new(hit, &mates[m], self.heading.genome)));
            // The primary alignment first; the sort is stable.
            pieces[m].sort_by_key(|p| !p.hit.is_primary);
        }
        for m in [0, 1] {
            let pair = Sides {
                name: &name,
                group: self.heading.groups.get(template.group).map(|g| g.id),
                mate: &mates[m],
                own: &pieces[m],
                other: pieces[1 - m].first(),
                first: m == 0,
            };
            for i in 0..pair.own.len().max(1) {
                let record = pair.record(i, self.heading.genome);
                self.out
                    .write_alignment_record(self.header, &record)
                    .map_err(|e| encode_error(&format!("read {}", String::from_utf8_lossy(&name)), e))?;
            }
        }
        Ok(())
    }
}

/// A read seen with its mate.
struct Sides<'a> {
    name: &'a [u8],
    group: Option<&'a str>,
    mate: &'a Mate<'a>,
    /// Pieces of the read, the primary one first; none when it is unmapped.
    own: &'a [Piece<'a>],
    /// Primary piece of its mate.
    other: Option<&'a Piece<'a>>,
    /// Whether it is read 1.
    first: bool,
}

impl Sides<'_> {
    /// Both mates face each other at a distance that most have.
    fn proper(&self) -> bool {
        matches!((self.own.first(), self.other), (Some(a), Some(b)) if a.hit.proper_pair
            && b.hit.proper_pair
            && a.sequence == b.sequence
            && a.reverse() != b.reverse())
    }

    fn flags(&self, piece: Option<&Piece<'_>>, supplementary: bool) -> Flags {
        let mut flags =
            Flags::SEGMENTED | if self.first { Flags::FIRST_SEGMENT } else { Flags::LAST_SEGMENT };
        flags.set(Flags::PROPERLY_SEGMENTED, self.proper());
        flags.set(Flags::UNMAPPED, piece.is_none());
        flags.set(Flags::MATE_UNMAPPED, self.other.is_none());
        flags.set(Flags::REVERSE_COMPLEMENTED, piece.is_some_and(Piece::reverse));
        flags.set(Flags::MATE_REVERSE_COMPLEMENTED, self.other.is_some_and(Piece::reverse));
        flags.set(Flags::SUPPLEMENTARY, supplementary);
        flags
    }

    /// The record of the piece at `i`, or of an unmapped read.
    fn record(&self, i: usize, genome: &Reference) -> RecordBuf {
        let piece = self.own.get(i);
        let supplementary = i > 0;
        let (mut seq, mut qual) = self.mate.oriented(piece.is_some_and(Piece::reverse));
        let mut cigar = piece.map_or_else(Vec::new, |p| p.cigar.clone());
        if supplementary {
            let clip = |op: Option<&Op>| op.filter(|o| o.kind() == Kind::SoftClip).map_or(0, |o| o.len());
            let kept = clip(cigar.first())..seq.len() - clip(cigar.last());
            (seq, qual) = (&seq[kept.clone()], &qual[kept]);
            for op in cigar.iter_mut().filter(|o| o.kind() == Kind::SoftClip) {
                *op = Op::new(Kind::HardClip, op.len());
            }
        }
        let mapq = MappingQuality::new(piece.map_or(0, |p| p.hit.mapq.min(254)));
        let mut record = RecordBuf::builder()
            .set_name(self.name)
            .set_flags(self.flags(piece, supplementary))
            .set_cigar(Cigar::from(cigar))
            .set_sequence(Sequence::from(seq))
            .set_quality_scores(QualityScores::from(qual.to_vec()))
            .set_data(self.tags(i, genome))
            .build();
        *record.mapping_quality_mut() = mapq;
        let place = |p: &Piece<'_>| (Some(p.sequence), Position::new(p.start + 1));
        // An unmapped read stands at its mate; a mate that is unmapped stands at the read's primary piece (section 2).
        let here = piece.or(self.other).map(place).unwrap_or_default();
        let there = self.other.or(self.own.first()).map(place).unwrap_or_default();
        (*record.reference_sequence_id_mut(), *record.alignment_start_mut()) = here;
        (*record.mate_reference_sequence_id_mut(), *record.mate_alignment_start_mut()) = there;
        if let (Some(piece), Some(other)) = (piece, self.other) {
            *record.template_length_mut() = piece.template_length(other);
        }
        record
    }

    fn tags(&self, i: usize, genome: &Reference) -> Data {
        let mut tags: Vec<(Tag, Value)> = Vec::with_capacity(5);
        if let Some(piece) = self.own.get(i) {
            tags.push((Tag::EDIT_DISTANCE, Value::from(piece.distance)));
            tags.push((Tag::ALIGNMENT_SCORE, Value::from(piece.hit.score)));
        }
        if let Some(other) = self.other {
            tags.push((Tag::MATE_CIGAR, Value::from(cigar_text(&other.cigar))));
        }
        if self.own.len() > 1 {
            let others = self.own.iter().enumerate().filter(|(j, _)| *j != i);
            let text: String = others.map(|(_, p)| p.other_alignment(genome)).collect();
            tags.push((Tag::OTHER_ALIGNMENTS, Value::from(text)));
        }
        tags.extend(self.group.map(|id| (Tag::READ_GROUP, Value::from(id))));
        tags.into_iter().collect()
    }
}
