//! Writes placements as BAM records with the fields and tags of bwa mem.

use std::ops::Range;

use genuma_mapper::bases::{BASE_LETTERS, base_code_at};
use genuma_mapper::gapped::{CIGAR_DELETION, CIGAR_INSERTION, CIGAR_MATCH};
use genuma_mapper::index::IndexView;
use genuma_mapper::mapper::MappedReads;
use genuma_mapper::pairs::{ReadReport, ReportedSegment};
use genuma_mapper::placement::Placement;
use genuma_mapper::ungapped::{MismatchMasks, mask_and_count_mismatches, mismatch_positions};
use genuma_reads::{ReadBatch, ReadRef, dna};

use super::super::Error;
use super::GenumaEngineOptions;
use crate::sam::{self, Contigs, FixedFields, NO_POSITION, RecordBuilder};

const SOFT_CLIP: u32 = 4;
const HARD_CLIP: u32 = 5;
const CIGAR_LETTERS: &[u8; 6] = b"MIDNSH";
/// Minimum score of a placement listed in `XA`, as a share of the score of the reported placement. The value of bwa mem
/// (`-h`, XA_drop_ratio).
const MIN_XA_SCORE_SHARE: f64 = 0.8;
/// Minimum base quality (Phred) that counts for the tag `ms`, as in samtools fixmate.
const MIN_MATE_SCORE_QUALITY: u8 = 15;

/// Writes the BAM records of the reads of a batch. The fields are what all these records share: index, options and
/// read group.
pub(super) struct RecordWriter<'a> {
    pub view: IndexView<'a>,
    pub contigs: &'a Contigs,
    pub options: &'a GenumaEngineOptions,
    /// ID of the read group of the reads; empty if they have none.
    pub group: &'a [u8],
}

/// Buffers that a worker reuses to make SAM records of placements.
#[derive(Default)]
pub(super) struct RecordBuffers {
    fields: [Vec<AlignmentFields>; 2],
    /// Fields of the other placements of the same bases of the read.
    rivals: Vec<AlignmentFields>,
    masks: MismatchMasks,
}

/// Fields of a record that are computed from a placement.
#[derive(Default)]
struct AlignmentFields {
    contig: i32,
    /// 0-based position of the first aligned base.
    position: i32,
    reverse: bool,
    /// CIGAR with soft clips, each operation as in BAM (length << 4 | operation code).
    cigar: Vec<u32>,
    edit_distance: u32,
    /// Value of the tag `MD`.
    md_text: Vec<u8>,
    mapq: u8,
    score: i32,
    /// Whether the record is secondary: another placement of the bases of a reported segment.
    is_secondary: bool,
    /// Number of reference bases that the alignment covers.
    ref_span_bp: i32,
}

impl AlignmentFields {
    /// Sets the CIGAR of a placement of a read. `cigars` has the operations of all placements with gaps.
    fn set_cigar(&mut self, place: &Placement, read_length: usize, cigars: &[u32]) {
        let (from, to) = (usize::from(place.from), usize::from(place.to));
        self.cigar.clear();
        if from > 0 {
            self.cigar.push((from as u32) << 4 | SOFT_CLIP);
        }
        if place.num_cigar_ops == 0 {
            self.cigar.push(((to - from) as u32) << 4 | CIGAR_MATCH);
        } else {
            let at = place.cigar_start as usize;
            self.cigar.extend_from_slice(&cigars[at..at + usize::from(place.num_cigar_ops)]);
        }
        if to < read_length {
            self.cigar.push(((read_length - to) as u32) << 4 | SOFT_CLIP);
        }
    }

    /// Sets edit distance and `MD` of a placement without gaps, whose mismatches are those of `masks`.
    fn set_mismatches(&mut self, view: &IndexView<'_>, place: &Placement, masks: &MismatchMasks) {
        let (from, to) = (usize::from(place.from), usize::from(place.to));
        self.md_text.clear();
        self.edit_distance = 0;
        let mut last = from;
        for at in mismatch_positions(masks, from, to) {
            write_int(&mut self.md_text, at - last);
            self.md_text.push(BASE_LETTERS[usize::from(view.base_code_at(place.left + at as u64))]);
            last = at + 1;
            self.edit_distance += 1;
        }
        write_int(&mut self.md_text, to - last);
    }

    /// Sets edit distance and `MD` of a placement, whose CIGAR is set. `reference_letter` returns the letter at a packed
    /// position of the reference, `read_letter` that of a base of the read on the strand of the placement.
    #[inline]
    fn set_differences(
        &mut self,
        place: &Placement,
        reference_letter: impl Fn(u64) -> u8,
        read_letter: impl Fn(usize) -> u8,
    ) {
        self.md_text.clear();
        self.edit_distance = 0;
        let (mut at, mut target, mut equal) = (usize::from(place.from), place.ref_start(), 0);
        for &operation in self.cigar.iter().filter(|&operation| operation & 15 != SOFT_CLIP) {
            let n = (operation >> 4) as usize;
            match operation & 15 {
                CIGAR_INSERTION => {
                    at += n;
                    self.edit_distance += n as u32;
                }
                CIGAR_DELETION => {
                    write_int(&mut self.md_text, equal);
                    self.md_text.push(b'^');
                    self.md_text.extend((0..n as u64).map(|i| reference_letter(target + i)));
                    equal = 0;
                    target += n as u64;
                    self.edit_distance += n as u32;
                }
                _ => {
                    for _ in 0..n {
                        let letter = reference_letter(target);
                        if letter == read_letter(at) {
                            equal += 1;
                        } else {
                            write_int(&mut self.md_text, equal);
                            self.md_text.push(letter);
                            equal = 0;
                            self.edit_distance += 1;
                        }
                        at += 1;
                        target += 1;
                    }
                }
            }
        }
        write_int(&mut self.md_text, equal);
    }
}

/// Which bases of the read are in a record, and on which strand.
struct RecordBases {
    /// Range of the bases in the order of sequencing.
    range: Range<usize>,
    /// Whether the record has the reverse complement of these bases.
    reverse: bool,
}

/// One read of a template with its placements and record fields.
struct TemplateRead<'a> {
    read: ReadRef<'a>,
    number: usize,
    report: &'a ReadReport,
    fields: &'a [AlignmentFields],
}

fn write_int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_cigar_text(out: &mut Vec<u8>, cigar: &[u32]) {
    for &operation in cigar {
        write_int(out, operation >> 4);
        out.push(CIGAR_LETTERS[operation as usize & 15]);
    }
}

/// Sum of the qualities of at least [`MIN_MATE_SCORE_QUALITY`], as in samtools fixmate.
fn mate_score(qualities: &[u8]) -> i64 {
    qualities.iter().map(|&q| q.wrapping_sub(33)).filter(|&q| q >= MIN_MATE_SCORE_QUALITY).map(i64::from).sum()
}

impl TemplateRead<'_> {
    /// The placement of segment number `piece` of the read.
    fn place(&self, piece: usize) -> &Placement {
        &self.report.placements[self.report.segments[piece].place]
    }
}

impl RecordWriter<'_> {
    /// Appends all records of a template to `out`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn append_template_records(
        &self,
        buffers: &mut RecordBuffers,
        mapped: &MappedReads,
        reads: &ReadBatch,
        first: usize,
        reports: &[ReadReport],
        proper: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let masks = &mut buffers.masks;
        for (i, report) in reports.iter().enumerate() {
            let fields = &mut buffers.fields[i];
            fields.resize_with(report.segments.len().max(fields.len()), AlignmentFields::default);
            for (piece, fields) in report.segments.iter().zip(fields) {
                let read = reads.read(first + i);
                self.fill_fields(mapped, first + i, read, &report.placements[piece.place], fields, masks);
                fields.mapq = piece.mapq;
            }
        }
        let whole = |i: usize| TemplateRead {
            read: reads.read(first + i),
            number: first + i,
            report: &reports[i],
            fields: &buffers.fields[i][..reports[i].segments.len()],
        };
        for i in 0..reports.len() {
            let this = whole(i);
            let mate = (reports.len() == 2).then(|| whole(1 - i));
            let mate = mate.as_ref().map(|mate| (mate, i == 1, proper));
            let name = this.read.name;
            if this.fields.is_empty() {
                self.write_record(&this, None, mate, out).map_err(Error::record(name))?;
            }
            for piece in 0..this.fields.len() {
                let rivals = self.competing_alignments(mapped, &this, piece, &mut buffers.rivals, masks);
                self.write_record(&this, Some((piece, rivals)), mate, out).map_err(Error::record(name))?;
                if self.options.report_all {
                    for rival in rivals {
                        self.write_secondary(&this, rival, mate, out).map_err(Error::record(name))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Fills the record fields of a placement.
    fn fill_fields(
        &self,
        mapped: &MappedReads,
        number: usize,
        read: ReadRef<'_>,
        place: &Placement,
        out: &mut AlignmentFields,
        masks: &mut MismatchMasks,
    ) {
        let view = &self.view;
        let contig = view.contig_index_at(place.ref_start());
        out.contig = contig as i32;
        out.position = (place.ref_start() - view.contigs[contig].start) as i32;
        out.reverse = place.reverse;
        out.ref_span_bp = (place.ref_end() - place.ref_start()) as i32;
        let length = read.seq.len();
        out.set_cigar(place, length, &mapped.cigars);
        let strand = mapped.packed.read_strand(number, place.reverse);
        let ambiguous_ranges = view.ambiguous_ranges_in(place.ref_start()..place.ref_end());
        if place.num_cigar_ops == 0 && ambiguous_ranges.is_empty() {
            mask_and_count_mismatches(view.words, place.left, strand, masks);
            out.set_mismatches(view, place, masks);
            return;
        }
        let reference = |at: u64| {
            if ambiguous_ranges.iter().any(|hole| hole.contains(&at)) {
                b'N'
            } else {
                BASE_LETTERS[usize::from(view.base_code_at(at))]
            }
        };
        let letter = |at: usize| {
            let letter = if place.reverse { read.seq[length - 1 - at] } else { read.seq[at] };
            match (dna::encode_base(letter), place.reverse) {
                (dna::NOT_A_BASE_CODE, _) => b'N',
                _ => BASE_LETTERS[usize::from(base_code_at(strand.words, at))],
            }
        };
        out.set_differences(place, reference, letter);
    }

    /// Appends one record: that of segment number `piece`, or that of an unmapped read.
    fn write_record(
        &self,
        this: &TemplateRead<'_>,
        piece: Option<(usize, &[AlignmentFields])>,
        mate: Option<(&TemplateRead<'_>, bool, bool)>,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let fields = piece.map(|(piece, _)| &this.fields[piece]);
        let is_supplementary = piece.is_some_and(|(piece, _)| piece > 0);
        let mut flag = match fields {
            None => 0x4,
            Some(fields) => u16::from(fields.reverse) << 4,
        };
        if is_supplementary {
            flag |= if self.options.supplementary_as_secondary { 0x100 } else { 0x800 };
        }
        let is_on_alt = piece.is_some_and(|(piece, _)| this.place(piece).is_on_alt);
        // As in bwa mem: supplementary records on ALT contigs keep all bases of the read.
        let clip =
            if is_supplementary && !is_on_alt && !self.options.soft_clip_supplementary { HARD_CLIP } else { SOFT_CLIP };
        let (mut record, bases) = self.start_record(this, fields, mate, flag, clip, out)?;
        if let (Some(fields), Some((piece, _))) = (fields, piece) {
            let of = &this.report.segments[piece];
            record.push_int_tag(b"NM", i64::from(fields.edit_distance));
            record.push_text_tag(b"MD", |out| out.extend_from_slice(&fields.md_text));
            push_mate_tags(&mut record, mate);
            record.push_int_tag(b"AS", i64::from(this.place(piece).score));
            record.push_int_tag(b"XS", i64::from(of.next_score));
        } else {
            push_mate_tags(&mut record, mate);
        }
        if !self.group.is_empty() {
            record.push_text_tag(b"RG", |out| out.extend_from_slice(self.group));
        }
        if let Some((piece, rivals)) = piece {
            self.push_other_alignment_tags(this, piece, rivals, &mut record);
        }
        self.push_input_tags(this, bases, &mut record)?;
        record.finish_record();
        Ok(())
    }

    /// Appends the fixed fields, CIGAR, bases and qualities of a record, which is then still without tags. Also
    /// returns which bases of the read the record has.
    fn start_record<'o>(
        &self,
        this: &TemplateRead<'_>,
        fields: Option<&AlignmentFields>,
        mate: Option<(&TemplateRead<'_>, bool, bool)>,
        mut flag: u16,
        clip: u32,
        out: &'o mut Vec<u8>,
    ) -> Result<(RecordBuilder<'o>, RecordBases), sam::Error> {
        let next = mate.and_then(|(mate, ..)| mate.fields.first());
        if let Some((_, second, proper)) = mate {
            flag |= 0x1 | if second { 0x80 } else { 0x40 };
            flag |= u16::from(proper && fields.is_some()) << 1;
            flag |= next.map_or(0x8, |next| u16::from(next.reverse) << 5);
        }
        let place = |fields: &AlignmentFields| (fields.contig, fields.position);
        // An unmapped read gets the position of its mate, and the mate position of a read with an unmapped mate is
        // that of the read.
        let here = fields.or(next).map_or(NO_POSITION, place);
        let own = this.fields.first();
        let there = if mate.is_none() { NO_POSITION } else { next.or(own).map_or(NO_POSITION, place) };
        let template_length = match (fields, next) {
            (Some(a), Some(b)) if a.contig == b.contig => {
                let first = |x: &AlignmentFields| x.position + if x.reverse { x.ref_span_bp - 1 } else { 0 };
                let length = first(b) - first(a);
                length + length.signum()
            }
            _ => 0,
        };
        let mapq = fields.map_or(0, |fields| fields.mapq);
        let read = this.read;
        let mut record = RecordBuilder::begin_record(
            out,
            read.name,
            FixedFields { flag, position: here, mapq, mate_position: there, template_length },
        )?;
        let mut shown = 0..read.seq.len();
        let reverse = fields.is_some_and(|fields| fields.reverse);
        if let Some(fields) = fields {
            for &operation in &fields.cigar {
                let kind = if operation & 15 == SOFT_CLIP { clip } else { operation & 15 };
                record.push_cigar_op(operation & !15 | kind);
            }
            if clip == HARD_CLIP {
                let clipped = |operation: Option<&u32>| {
                    operation.filter(|&&o| o & 15 == SOFT_CLIP).map_or(0, |&o| (o >> 4) as usize)
                };
                let (before, behind) = (clipped(fields.cigar.first()), clipped(fields.cigar.last()));
                let (before, behind) = if reverse { (behind, before) } else { (before, behind) };
                shown = before..read.seq.len() - behind;
            }
        }
        if flag & 0x100 != 0 && fields.is_some_and(|fields| fields.is_secondary) {
            shown = 0..0;
        }
        record.append_bases_as_bam_codes(&read.seq[shown.clone()], reverse);
        record.push_qualities(read.qual.get(shown.clone()).unwrap_or_default(), reverse);
        Ok((record, RecordBases { range: shown, reverse }))
    }

    /// Appends the carried tags of the read and, if [`GenumaEngineOptions::copy_comments`] is set, its comment.
    fn push_input_tags(
        &self,
        this: &TemplateRead<'_>,
        bases: RecordBases,
        record: &mut RecordBuilder<'_>,
    ) -> Result<(), sam::Error> {
        let ReadRef { tags, seq, .. } = this.read;
        if !tags.is_empty() {
            let RecordBases { range, reverse } = bases;
            self.options.carried_tags.append_tags_for_record(
                tags,
                seq.len(),
                range,
                reverse,
                record.output_buffer_mut(),
            );
        }
        if self.options.copy_comments && !this.read.comment.is_empty() {
            sam::parse_and_push_tags(this.read.comment, record).map_err(|reason| sam::Error::SamLine {
                name: String::from_utf8_lossy(this.read.name).into_owned(),
                reason: format!("its comment cannot be copied: {reason}"),
            })?;
        }
        Ok(())
    }

    /// Appends the tags for other placements of the read: other segments (`SA`), the score divided by that of the best
    /// placement on an ALT contig (`pa`), and placements of the same bases, if they are few (`XA`).
    fn push_other_alignment_tags(
        &self,
        this: &TemplateRead<'_>,
        piece: usize,
        rivals: &[AlignmentFields],
        record: &mut RecordBuilder<'_>,
    ) {
        let name = |out: &mut Vec<u8>, contig: i32| {
            out.extend_from_slice(self.contigs.contig_name(contig).unwrap_or("*").as_bytes());
        };
        if this.fields.len() > 1 {
            record.push_text_tag(b"SA", |out| {
                for (_, other) in this.fields.iter().enumerate().filter(|(i, _)| *i != piece) {
                    name(out, other.contig);
                    out.push(b',');
                    write_int(out, other.position + 1);
                    out.extend_from_slice(if other.reverse { b",-," } else { b",+," });
                    write_cigar_text(out, &other.cigar);
                    out.push(b',');
                    write_int(out, other.mapq);
                    out.push(b',');
                    write_int(out, other.edit_distance);
                    out.push(b';');
                }
            });
        }
        let of = &this.report.segments[piece];
        if of.alt_score > 0 {
            // Three digits, as in bwa mem.
            let share = f64::from(this.place(piece).score) / f64::from(of.alt_score);
            record.push_float_tag(b"pa", ((1000.0 * share).round() / 1000.0) as f32);
        }
        if !rivals.is_empty() && !self.options.report_all {
            record.push_text_tag(b"XA", |out| {
                for rival in rivals {
                    name(out, rival.contig);
                    out.extend_from_slice(if rival.reverse { b",-" } else { b",+" });
                    write_int(out, rival.position + 1);
                    out.push(b',');
                    write_cigar_text(out, &rival.cigar);
                    out.push(b',');
                    write_int(out, rival.edit_distance);
                    out.push(b';');
                }
            });
        }
    }

    /// Other placements of the same bases: with `-a` all whose score is sufficient, otherwise those to be listed in
    /// `XA`, or none if they are too many.
    fn competing_alignments<'b>(
        &self,
        mapped: &MappedReads,
        this: &TemplateRead<'_>,
        piece: usize,
        buffer: &'b mut Vec<AlignmentFields>,
        masks: &mut MismatchMasks,
    ) -> &'b [AlignmentFields] {
        let TemplateRead { report, read, number, .. } = this;
        let ReportedSegment { place: own, .. } = report.segments[piece];
        let length = read.seq.len();
        let mut n = 0;
        if report.placements.len() > 1 {
            let best = this.place(piece);
            let min_score = if self.options.report_all {
                self.options.scores.min_score
            } else {
                (MIN_XA_SCORE_SHARE * f64::from(best.score)).ceil() as i32
            };
            let rival = |(i, place): (usize, &Placement)| {
                let here = if report.best_of_same_bases.is_empty() || self.options.report_all {
                    let reported = report.segments.iter().any(|piece| piece.place == i);
                    !reported
                        && !place.is_on_alt
                        && !best.is_on_alt
                        && !place.covers_mostly_different_bases(best, length)
                } else {
                    i != own && report.best_of_same_bases[i] == own
                };
                here && place.score >= min_score && place.score >= self.options.scores.min_score
            };
            let [plain, with_alt] = self.options.max_xa_placements;
            let all = || report.placements.iter().enumerate();
            let most = match (self.options.report_all, report.best_of_same_bases.is_empty()) {
                (true, _) => usize::MAX,
                (_, false) if all().any(|(i, place)| place.is_on_alt && rival((i, place))) => with_alt,
                _ => plain,
            };
            for (i, place) in all() {
                if !rival((i, place)) {
                    continue;
                }
                n += 1;
                if n > most {
                    return &[];
                }
                if buffer.len() < n {
                    buffer.push(AlignmentFields::default());
                }
                self.fill_fields(mapped, *number, *read, place, &mut buffer[n - 1], masks);
                let rival = &mut buffer[n - 1];
                (rival.score, rival.is_secondary, rival.mapq) = (place.score, true, 0);
            }
        }
        &buffer[..n]
    }

    /// Appends a secondary record for another placement of the same bases.
    fn write_secondary(
        &self,
        this: &TemplateRead<'_>,
        rival: &AlignmentFields,
        mate: Option<(&TemplateRead<'_>, bool, bool)>,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let flag = 0x100 | u16::from(rival.reverse) << 4;
        let (mut record, bases) = self.start_record(this, Some(rival), mate, flag, HARD_CLIP, out)?;
        record.push_int_tag(b"NM", i64::from(rival.edit_distance));
        record.push_text_tag(b"MD", |out| out.extend_from_slice(&rival.md_text));
        push_mate_tags(&mut record, mate);
        record.push_int_tag(b"AS", i64::from(rival.score));
        if !self.group.is_empty() {
            record.push_text_tag(b"RG", |out| out.extend_from_slice(self.group));
        }
        self.push_input_tags(this, bases, &mut record)?;
        record.finish_record();
        Ok(())
    }
}

fn push_mate_tags(record: &mut RecordBuilder<'_>, mate: Option<(&TemplateRead<'_>, bool, bool)>) {
    let Some((mate, ..)) = mate else { return };
    if let Some(next) = mate.fields.first() {
        record.push_text_tag(b"MC", |out| write_cigar_text(out, &next.cigar));
        record.push_int_tag(b"MQ", i64::from(next.mapq));
    }
    if !mate.read.qual.is_empty() {
        record.push_int_tag(b"ms", mate_score(mate.read.qual));
    }
}
