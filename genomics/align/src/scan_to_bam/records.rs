//! BAM records of aligned templates.

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
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

use super::{BamHeader, Error, SequencedRead, UnalignedTemplate, encode_error};
use crate::{CigarKind, Hit, Strand};

/// One aligned segment of a read.
pub(super) struct AlignedReadSegment<'a> {
    hit: &'a Hit,
    /// Index of the reference sequence.
    sequence: usize,
    /// 0-based start on the reference. `end` is exclusive.
    start: usize,
    end: usize,
    /// CIGAR with soft clips, so that it covers the whole read.
    cigar: Vec<Op>,
    /// Edit distance (tag NM).
    edit_distance: i32,
}

impl<'a> AlignedReadSegment<'a> {
    fn new(hit: &'a Hit, mate: &OrientedRead<'_>, genome: &Reference) -> AlignedReadSegment<'a> {
        let (sequence, start, end) = (hit.tid, hit.ref_start, hit.ref_end);
        let bases = &genome.contigs[sequence].seq[start..end];
        let (head, tail) = (hit.query_start, mate.seq.len() - hit.query_end);
        let reverse = hit.strand == Strand::Reverse;
        let (left, right) = if reverse { (tail, head) } else { (head, tail) };
        let mut cigar = Vec::with_capacity(hit.cigar.len() + 2);
        cigar.extend((left > 0).then(|| Op::new(Kind::SoftClip, left)));
        cigar.extend(hit.cigar.iter().map(|op| Op::new(cigar_op_kind(op.kind), op.len as usize)));
        cigar.extend((right > 0).then(|| Op::new(Kind::SoftClip, right)));
        let edit_distance = edit_distance(&cigar, mate.oriented(reverse).0, bases);
        AlignedReadSegment { hit, sequence, start, end, cigar, edit_distance }
    }

    fn is_reverse(&self) -> bool {
        self.hit.strand == Strand::Reverse
    }

    /// Reference position of the first sequenced base (5' end) of the aligned bases, without clips.
    fn five_prime_position(&self) -> i64 {
        if self.is_reverse() { self.end as i64 - 1 } else { self.start as i64 }
    }

    /// Signed template length (section 1.4, TLEN): distance between the 5' ends of both mates.
    fn template_length(&self, mate: &AlignedReadSegment<'_>) -> i32 {
        if self.sequence != mate.sequence {
            return 0;
        }
        let apart = mate.five_prime_position() - self.five_prime_position();
        (apart + apart.signum()) as i32
    }

    /// Entry of this alignment in the SA tag of another record (SAMtags, section 1.2).
    fn sa_tag_entry(&self, genome: &Reference) -> String {
        format!(
            "{},{},{},{},{},{};",
            genome.contigs[self.sequence].name,
            self.start + 1,
            if self.is_reverse() { '-' } else { '+' },
            cigar_text(&self.cigar),
            self.hit.mapq,
            self.edit_distance
        )
    }
}

fn cigar_op_kind(kind: CigarKind) -> Kind {
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

/// Edit distance of an alignment: inserted, deleted and mismatched bases. N counts as a mismatch.
fn edit_distance(cigar: &[Op], mut read: &[u8], mut genome: &[u8]) -> i32 {
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

/// Bases and qualities of a read in the order of sequencing and reverse-complemented.
struct OrientedRead<'a> {
    seq: Vec<u8>,
    qual: &'a [u8],
    revcomp_seq: Vec<u8>,
    reversed_qual: Vec<u8>,
}

impl<'a> OrientedRead<'a> {
    fn new(read: SequencedRead<'a>) -> OrientedRead<'a> {
        let seq = read.seq.to_ascii_uppercase();
        let revcomp_seq = reverse_complement(&seq);
        OrientedRead { seq, qual: read.qual, revcomp_seq, reversed_qual: read.qual.iter().rev().copied().collect() }
    }

    fn oriented(&self, reverse: bool) -> (&[u8], &[u8]) {
        if reverse { (&self.revcomp_seq, &self.reversed_qual) } else { (&self.seq, self.qual) }
    }
}

/// The read name as BAM allows it (section 1.4): at most 254 bytes. Characters that are not allowed become `_`.
pub(super) fn make_valid_bam_read_name(name: &[u8]) -> Vec<u8> {
    let mut name: Vec<u8> =
        name.iter().take(254).map(|&b| if b.is_ascii_graphic() && b != b'@' { b } else { b'_' }).collect();
    if name.is_empty() || name == b"*" {
        name = b"_".to_vec();
    }
    name
}

/// Encodes templates as BAM records.
pub(super) struct RecordEncoder<'a> {
    pub(super) bam_header: &'a BamHeader<'a>,
    pub(super) sam_header: &'a sam::Header,
    pub(super) out: bam::io::Writer<Vec<u8>>,
}

impl RecordEncoder<'_> {
    pub(super) fn encode_records_of_template(
        &mut self,
        template: &UnalignedTemplate<'_>,
        hits: &[Vec<Hit>; 2],
    ) -> Result<(), Error> {
        let name = make_valid_bam_read_name(template.name);
        let mates = template.mates.map(OrientedRead::new);
        let mut alignments: [Vec<AlignedReadSegment<'_>>; 2] = [Vec::new(), Vec::new()];
        for (m, hits) in hits.iter().enumerate() {
            let hits = hits.iter().filter(|hit| !hit.is_secondary);
            alignments[m].extend(hits.map(|hit| AlignedReadSegment::new(hit, &mates[m], self.bam_header.reference)));
            // The primary alignment first; the sort is stable.
            alignments[m].sort_by_key(|p| !p.hit.is_primary);
        }
        let is_written = template.mates.map(|mate| !mate.seq.is_empty() || !template.omits_empty_mate);
        // A read without a mate is written as one record.
        for m in [0, 1].into_iter().filter(|&m| is_written[m] || !is_written[1 - m]) {
            let pair = MateRecords {
                name: &name,
                group: self.bam_header.read_groups.get(template.read_group).map(|g| g.id),
                mate: &mates[m],
                alignments: &alignments[m],
                mate_alignment: alignments[1 - m].first(),
                is_read1: m == 0,
                has_mate: is_written[1 - m] || !is_written[m],
            };
            for i in 0..pair.alignments.len().max(1) {
                let record = pair.build_record(i, self.bam_header.reference);
                self.out
                    .write_alignment_record(self.sam_header, &record)
                    .map_err(|e| encode_error(&format!("read {}", String::from_utf8_lossy(&name)), e))?;
            }
        }
        Ok(())
    }
}

/// Data from which the records of one read of a template are built.
struct MateRecords<'a> {
    name: &'a [u8],
    group: Option<&'a str>,
    mate: &'a OrientedRead<'a>,
    /// Alignments of the read, the primary one first; empty if the read is unmapped.
    alignments: &'a [AlignedReadSegment<'a>],
    /// Primary alignment of the mate.
    mate_alignment: Option<&'a AlignedReadSegment<'a>>,
    /// Whether the read is read 1 of its template (SAM flag 0x40).
    is_read1: bool,
    /// Whether a record is written for the mate, too.
    has_mate: bool,
}

impl MateRecords<'_> {
    /// Whether both primary alignments were chosen as a proper pair ([`Hit::proper_pair`]), and are on the same
    /// reference sequence and on opposite strands.
    fn is_proper_pair(&self) -> bool {
        matches!((self.alignments.first(), self.mate_alignment), (Some(a), Some(b)) if a.hit.proper_pair
            && b.hit.proper_pair
            && a.sequence == b.sequence
            && a.is_reverse() != b.is_reverse())
    }

    fn sam_flags(&self, alignment: Option<&AlignedReadSegment<'_>>, supplementary: bool) -> Flags {
        let mut flags = Flags::empty();
        if self.has_mate {
            flags = Flags::SEGMENTED | if self.is_read1 { Flags::FIRST_SEGMENT } else { Flags::LAST_SEGMENT };
        }
        flags.set(Flags::PROPERLY_SEGMENTED, self.is_proper_pair());
        flags.set(Flags::UNMAPPED, alignment.is_none());
        flags.set(Flags::MATE_UNMAPPED, self.has_mate && self.mate_alignment.is_none());
        flags.set(Flags::REVERSE_COMPLEMENTED, alignment.is_some_and(AlignedReadSegment::is_reverse));
        flags.set(Flags::MATE_REVERSE_COMPLEMENTED, self.mate_alignment.is_some_and(AlignedReadSegment::is_reverse));
        flags.set(Flags::SUPPLEMENTARY, supplementary);
        flags
    }

    /// Builds the record of alignment `i`, or the record of an unmapped read.
    fn build_record(&self, i: usize, genome: &Reference) -> RecordBuf {
        let alignment = self.alignments.get(i);
        let supplementary = i > 0;
        let (mut seq, mut qual) = self.mate.oriented(alignment.is_some_and(AlignedReadSegment::is_reverse));
        let mut cigar = alignment.map_or_else(Vec::new, |p| p.cigar.clone());
        if supplementary {
            let clip = |op: Option<&Op>| op.filter(|o| o.kind() == Kind::SoftClip).map_or(0, |o| o.len());
            let kept = clip(cigar.first())..seq.len() - clip(cigar.last());
            (seq, qual) = (&seq[kept.clone()], &qual[kept]);
            for op in cigar.iter_mut().filter(|o| o.kind() == Kind::SoftClip) {
                *op = Op::new(Kind::HardClip, op.len());
            }
        }
        let mapq = MappingQuality::new(alignment.map_or(0, |p| p.hit.mapq.min(254)));
        let mut record = RecordBuf::builder()
            .set_name(self.name)
            .set_flags(self.sam_flags(alignment, supplementary))
            .set_cigar(Cigar::from(cigar))
            .set_sequence(Sequence::from(seq))
            .set_quality_scores(QualityScores::from(qual.to_vec()))
            .set_data(self.build_tags(i, genome))
            .build();
        *record.mapping_quality_mut() = mapq;
        let place = |p: &AlignedReadSegment<'_>| (Some(p.sequence), Position::new(p.start + 1));
        // An unmapped read gets the position of its mate. The mate position of a read with an unmapped mate is that
        // of the read's primary alignment (section 2).
        let here = alignment.or(self.mate_alignment).map(place).unwrap_or_default();
        let there = self.mate_alignment.or(self.alignments.first()).filter(|_| self.has_mate);
        let there = there.map(place).unwrap_or_default();
        (*record.reference_sequence_id_mut(), *record.alignment_start_mut()) = here;
        (*record.mate_reference_sequence_id_mut(), *record.mate_alignment_start_mut()) = there;
        if let (Some(alignment), Some(mate_alignment)) = (alignment, self.mate_alignment) {
            *record.template_length_mut() = alignment.template_length(mate_alignment);
        }
        record
    }

    fn build_tags(&self, i: usize, genome: &Reference) -> Data {
        let mut tags: Vec<(Tag, Value)> = Vec::with_capacity(5);
        if let Some(alignment) = self.alignments.get(i) {
            tags.push((Tag::EDIT_DISTANCE, Value::from(alignment.edit_distance)));
            tags.push((Tag::ALIGNMENT_SCORE, Value::from(alignment.hit.score)));
        }
        if let Some(mate_alignment) = self.mate_alignment {
            tags.push((Tag::MATE_CIGAR, Value::from(cigar_text(&mate_alignment.cigar))));
        }
        if self.alignments.len() > 1 {
            let others = self.alignments.iter().enumerate().filter(|(j, _)| *j != i);
            let text: String = others.map(|(_, p)| p.sa_tag_entry(genome)).collect();
            tags.push((Tag::OTHER_ALIGNMENTS, Value::from(text)));
        }
        tags.extend(self.group.map(|id| (Tag::READ_GROUP, Value::from(id))));
        tags.into_iter().collect()
    }
}
