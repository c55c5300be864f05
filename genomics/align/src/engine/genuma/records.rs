//! Places → records: what bwa mem writes, as BAM.

use genuma_mapper::bases::{LETTERS, base};
use genuma_mapper::gapped::{DELETED, INSERTED, MATCH};
use genuma_mapper::index::View;
use genuma_mapper::mapper::Draft;
use genuma_mapper::pairs::{Answer, Piece};
use genuma_mapper::place::Place;
use genuma_mapper::ungapped::{Masks, differences, places};
use genuma_reads::{ReadBatch, ReadRef, dna};

use super::super::Error;
use super::Options;
use crate::sam::{self, Builder, Contigs, Fixed, NO_PLACE};

const SOFT_CLIP: u32 = 4;
const HARD_CLIP: u32 = 5;
const OPERATIONS: &[u8; 6] = b"MIDNSH";
/// Share of the best score that another place has to have to be named in `XA`.
const NAMED_SHARE: f64 = 0.8;
/// Quality (Phred) of the bases that count for `ms`.
const COUNTED_QUALITY: u8 = 15;

/// What is the same for all records.
pub(super) struct Format<'a> {
    pub view: View<'a>,
    pub contigs: &'a Contigs,
    pub options: &'a Options,
    /// The read group's identifier; empty for none.
    pub group: &'a [u8],
}

/// A worker's buffers.
#[derive(Default)]
pub(super) struct Buffers {
    described: [Vec<Described>; 2],
    /// Other places of a piece.
    rivals: Vec<Described>,
    masks: Masks,
}

/// What a record says of a place.
#[derive(Default)]
struct Described {
    contig: i32,
    /// First base, from 0.
    position: i32,
    reverse: bool,
    /// Operations, with soft clips.
    cigar: Vec<u32>,
    differences: u32,
    /// The text of `MD`.
    differing: Vec<u8>,
    quality: u8,
    score: i32,
    /// Another place of bases that are reported elsewhere.
    rival: bool,
    /// Bases of the reference under it.
    span: i32,
}

/// One read of a template with what became of it.
struct Whole<'a> {
    read: ReadRef<'a>,
    number: usize,
    answer: &'a Answer,
    described: &'a [Described],
}

fn number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn cigar_text(out: &mut Vec<u8>, cigar: &[u32]) {
    for &operation in cigar {
        number(out, operation >> 4);
        out.push(OPERATIONS[operation as usize & 15]);
    }
}

/// The sum of the qualities that count, as samtools fixmate has it.
fn mate_score(qualities: &[u8]) -> i64 {
    qualities.iter().map(|&q| q.wrapping_sub(33)).filter(|&q| q >= COUNTED_QUALITY).map(i64::from).sum()
}

impl Whole<'_> {
    /// The place of a piece.
    fn place(&self, piece: usize) -> &Place {
        &self.answer.places[self.answer.pieces[piece].place]
    }
}

impl Format<'_> {
    /// Appends all records of a template.
    #[allow(clippy::too_many_arguments)]
    pub fn template(
        &self,
        buffers: &mut Buffers,
        draft: &Draft,
        reads: &ReadBatch,
        first: usize,
        answers: &[Answer],
        proper: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let masks = &mut buffers.masks;
        for (i, answer) in answers.iter().enumerate() {
            let described = &mut buffers.described[i];
            described.resize_with(answer.pieces.len().max(described.len()), Described::default);
            for (piece, described) in answer.pieces.iter().zip(described) {
                let read = reads.read(first + i);
                self.describe(draft, first + i, read, &answer.places[piece.place], described, masks);
                described.quality = piece.quality;
            }
        }
        let whole = |i: usize| Whole {
            read: reads.read(first + i),
            number: first + i,
            answer: &answers[i],
            described: &buffers.described[i][..answers[i].pieces.len()],
        };
        for i in 0..answers.len() {
            let this = whole(i);
            let mate = (answers.len() == 2).then(|| whole(1 - i));
            let mate = mate.as_ref().map(|mate| (mate, i == 1, proper));
            let name = this.read.name;
            if this.described.is_empty() {
                self.record(&this, None, mate, out).map_err(Error::record(name))?;
            }
            for piece in 0..this.described.len() {
                let rivals = self.rivals(draft, &this, piece, &mut buffers.rivals, masks);
                self.record(&this, Some((piece, rivals)), mate, out).map_err(Error::record(name))?;
                if self.options.all {
                    for rival in rivals {
                        self.secondary(&this, rival, mate, out).map_err(Error::record(name))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets what a record says of a place.
    fn describe(
        &self,
        draft: &Draft,
        number: usize,
        read: ReadRef<'_>,
        place: &Place,
        out: &mut Described,
        masks: &mut Masks,
    ) {
        let view = &self.view;
        let contig = view.contig_at(place.start());
        out.contig = contig as i32;
        out.position = (place.start() - view.contigs[contig].start) as i32;
        out.reverse = place.reverse;
        out.span = (place.end() - place.start()) as i32;
        out.cigar.clear();
        out.differing.clear();
        let (from, to) = (usize::from(place.from), usize::from(place.to));
        let length = read.seq.len();
        if from > 0 {
            out.cigar.push((from as u32) << 4 | SOFT_CLIP);
        }
        if place.operations == 0 {
            out.cigar.push(((to - from) as u32) << 4 | MATCH);
        } else {
            let at = place.cigar as usize;
            out.cigar.extend_from_slice(&draft.cigars[at..at + usize::from(place.operations)]);
        }
        if to < length {
            out.cigar.push(((length - to) as u32) << 4 | SOFT_CLIP);
        }
        let strand = draft.packed.strand(number, place.reverse);
        let holes = view.holes_in(place.start()..place.end());
        if place.operations == 0 && holes.is_empty() {
            differences(view.words, place.left, strand, masks);
            let (mut last, mut n) = (from, 0);
            for at in places(masks, from, to) {
                self::number(&mut out.differing, at - last);
                out.differing.push(LETTERS[usize::from(view.base(place.left + at as u64))]);
                last = at + 1;
                n += 1;
            }
            self::number(&mut out.differing, to - last);
            out.differences = n;
            return;
        }
        let reference = |at: u64| {
            if holes.iter().any(|hole| hole.contains(&at)) {
                b'N'
            } else {
                LETTERS[usize::from(view.base(at))]
            }
        };
        let letter = |at: usize| {
            let letter = if place.reverse { read.seq[length - 1 - at] } else { read.seq[at] };
            match (dna::code(letter), place.reverse) {
                (dna::NOT_A_BASE, _) => b'N',
                _ => LETTERS[usize::from(base(strand.words, at))],
            }
        };
        let (mut at, mut target, mut equal) = (from, place.start(), 0);
        out.differences = 0;
        for &operation in out.cigar.iter().filter(|&operation| operation & 15 != SOFT_CLIP) {
            let n = (operation >> 4) as usize;
            match operation & 15 {
                INSERTED => {
                    at += n;
                    out.differences += n as u32;
                }
                DELETED => {
                    self::number(&mut out.differing, equal);
                    out.differing.push(b'^');
                    out.differing.extend((0..n as u64).map(|i| reference(target + i)));
                    equal = 0;
                    target += n as u64;
                    out.differences += n as u32;
                }
                _ => {
                    for _ in 0..n {
                        let there = reference(target);
                        if there == letter(at) {
                            equal += 1;
                        } else {
                            self::number(&mut out.differing, equal);
                            out.differing.push(there);
                            equal = 0;
                            out.differences += 1;
                        }
                        at += 1;
                        target += 1;
                    }
                }
            }
        }
        self::number(&mut out.differing, equal);
    }

    /// One record: of a piece, or of a read without any.
    fn record(
        &self,
        this: &Whole<'_>,
        piece: Option<(usize, &[Described])>,
        mate: Option<(&Whole<'_>, bool, bool)>,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let described = piece.map(|(piece, _)| &this.described[piece]);
        let minor = piece.is_some_and(|(piece, _)| piece > 0);
        let mut flag = match described {
            None => 0x4,
            Some(described) => u16::from(described.reverse) << 4,
        };
        if minor {
            flag |= if self.options.pieces_secondary { 0x100 } else { 0x800 };
        }
        let alt = piece.is_some_and(|(piece, _)| this.place(piece).alt);
        // As bwa: what tools find on ALT contigs has all bases of the read.
        let clip = if minor && !alt && !self.options.soft_clips { HARD_CLIP } else { SOFT_CLIP };
        let mut record = self.begin(this, described, mate, flag, clip, out)?;
        if let (Some(described), Some((piece, _))) = (described, piece) {
            let of = &this.answer.pieces[piece];
            record.integer(b"NM", i64::from(described.differences));
            record.text(b"MD", |out| out.extend_from_slice(&described.differing));
            mate_tags(&mut record, mate);
            record.integer(b"AS", i64::from(this.place(piece).score));
            record.integer(b"XS", i64::from(of.next));
        } else {
            mate_tags(&mut record, mate);
        }
        if !self.group.is_empty() {
            record.text(b"RG", |out| out.extend_from_slice(self.group));
        }
        if let Some((piece, rivals)) = piece {
            self.others(this, piece, rivals, &mut record);
        }
        self.comment(this, &mut record)?;
        record.finish();
        Ok(())
    }

    /// The fields and the bases of a record.
    fn begin<'o>(
        &self,
        this: &Whole<'_>,
        described: Option<&Described>,
        mate: Option<(&Whole<'_>, bool, bool)>,
        mut flag: u16,
        clip: u32,
        out: &'o mut Vec<u8>,
    ) -> Result<Builder<'o>, sam::Error> {
        let next = mate.and_then(|(mate, ..)| mate.described.first());
        if let Some((_, second, proper)) = mate {
            flag |= 0x1 | if second { 0x80 } else { 0x40 };
            flag |= u16::from(proper && described.is_some()) << 1;
            flag |= next.map_or(0x8, |next| u16::from(next.reverse) << 5);
        }
        let place = |described: &Described| (described.contig, described.position);
        // A read without a place stands at its mate, and a mate without one is said to stand at the read.
        let here = described.or(next).map_or(NO_PLACE, place);
        let own = this.described.first();
        let there = if mate.is_none() { NO_PLACE } else { next.or(own).map_or(NO_PLACE, place) };
        let template_length = match (described, next) {
            (Some(a), Some(b)) if a.contig == b.contig => {
                let first = |x: &Described| x.position + if x.reverse { x.span - 1 } else { 0 };
                let length = first(b) - first(a);
                length + length.signum()
            }
            _ => 0,
        };
        let mapq = described.map_or(0, |described| described.quality);
        let read = this.read;
        let mut record =
            Builder::new(out, read.name, Fixed { flag, place: here, mapq, mate: there, template_length })?;
        let mut shown = 0..read.seq.len();
        let reverse = described.is_some_and(|described| described.reverse);
        if let Some(described) = described {
            for &operation in &described.cigar {
                let kind = if operation & 15 == SOFT_CLIP { clip } else { operation & 15 };
                record.operation(operation & !15 | kind);
            }
            if clip == HARD_CLIP {
                let clipped = |operation: Option<&u32>| {
                    operation.filter(|&&o| o & 15 == SOFT_CLIP).map_or(0, |&o| (o >> 4) as usize)
                };
                let (before, behind) = (clipped(described.cigar.first()), clipped(described.cigar.last()));
                let (before, behind) = if reverse { (behind, before) } else { (before, behind) };
                shown = before..read.seq.len() - behind;
            }
        }
        if flag & 0x100 != 0 && described.is_some_and(|described| described.rival) {
            shown = 0..0;
        }
        record.bases(&read.seq[shown.clone()], reverse);
        record.qualities(read.qual.get(shown).unwrap_or_default(), reverse);
        Ok(record)
    }

    fn comment(&self, this: &Whole<'_>, record: &mut Builder<'_>) -> Result<(), sam::Error> {
        if self.options.comments && !this.read.comment.is_empty() {
            sam::parse_fields(this.read.comment, record).map_err(|what| sam::Error::Line {
                name: String::from_utf8_lossy(this.read.name).into_owned(),
                what: format!("its comment cannot be copied: {what}"),
            })?;
        }
        Ok(())
    }

    /// The tags that tell of other places: the other pieces (`SA`), how this one compares with an ALT contig (`pa`), and places of the same bases
    /// when they are few (`XA`).
    fn others(&self, this: &Whole<'_>, piece: usize, rivals: &[Described], record: &mut Builder<'_>) {
        let name = |out: &mut Vec<u8>, contig: i32| {
            out.extend_from_slice(self.contigs.name(contig).unwrap_or("*").as_bytes());
        };
        if this.described.len() > 1 {
            record.text(b"SA", |out| {
                for (_, other) in this.described.iter().enumerate().filter(|(i, _)| *i != piece) {
                    name(out, other.contig);
                    out.push(b',');
                    number(out, other.position + 1);
                    out.extend_from_slice(if other.reverse { b",-," } else { b",+," });
                    cigar_text(out, &other.cigar);
                    out.push(b',');
                    number(out, other.quality);
                    out.push(b',');
                    number(out, other.differences);
                    out.push(b';');
                }
            });
        }
        let of = &this.answer.pieces[piece];
        if of.alt > 0 {
            // Three digits, as bwa has it.
            let share = f64::from(this.place(piece).score) / f64::from(of.alt);
            record.float(b"pa", ((1000.0 * share).round() / 1000.0) as f32);
        }
        if !rivals.is_empty() && !self.options.all {
            record.text(b"XA", |out| {
                for rival in rivals {
                    name(out, rival.contig);
                    out.extend_from_slice(if rival.reverse { b",-" } else { b",+" });
                    number(out, rival.position + 1);
                    out.push(b',');
                    cigar_text(out, &rival.cigar);
                    out.push(b',');
                    number(out, rival.differences);
                    out.push(b';');
                }
            });
        }
    }

    /// Other places of the same bases: all that are good enough, or those to be named, if they are few enough.
    fn rivals<'b>(
        &self,
        draft: &Draft,
        this: &Whole<'_>,
        piece: usize,
        buffer: &'b mut Vec<Described>,
        masks: &mut Masks,
    ) -> &'b [Described] {
        let Whole { answer, read, number, .. } = this;
        let Piece { place: own, .. } = answer.pieces[piece];
        let length = read.seq.len();
        let mut n = 0;
        if answer.places.len() > 1 {
            let best = this.place(piece);
            let least = if self.options.all {
                self.options.scores.least
            } else {
                (NAMED_SHARE * f64::from(best.score)).ceil() as i32
            };
            let rival = |(i, place): (usize, &Place)| {
                let here = if answer.leaders.is_empty() || self.options.all {
                    let reported = answer.pieces.iter().any(|piece| piece.place == i);
                    !reported && !place.alt && !best.alt && !place.elsewhere(best, length)
                } else {
                    i != own && answer.leaders[i] == own
                };
                here && place.score >= least && place.score >= self.options.scores.least
            };
            let [plain, with_alt] = self.options.named;
            let all = || answer.places.iter().enumerate();
            let most = match (self.options.all, answer.leaders.is_empty()) {
                (true, _) => usize::MAX,
                (_, false) if all().any(|(i, place)| place.alt && rival((i, place))) => with_alt,
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
                    buffer.push(Described::default());
                }
                self.describe(draft, *number, *read, place, &mut buffer[n - 1], masks);
                let rival = &mut buffer[n - 1];
                (rival.score, rival.rival, rival.quality) = (place.score, true, 0);
            }
        }
        &buffer[..n]
    }

    /// A record of another place of the same bases.
    fn secondary(
        &self,
        this: &Whole<'_>,
        rival: &Described,
        mate: Option<(&Whole<'_>, bool, bool)>,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let flag = 0x100 | u16::from(rival.reverse) << 4;
        let mut record = self.begin(this, Some(rival), mate, flag, HARD_CLIP, out)?;
        record.integer(b"NM", i64::from(rival.differences));
        record.text(b"MD", |out| out.extend_from_slice(&rival.differing));
        mate_tags(&mut record, mate);
        record.integer(b"AS", i64::from(rival.score));
        if !self.group.is_empty() {
            record.text(b"RG", |out| out.extend_from_slice(self.group));
        }
        self.comment(this, &mut record)?;
        record.finish();
        Ok(())
    }
}

fn mate_tags(record: &mut Builder<'_>, mate: Option<(&Whole<'_>, bool, bool)>) {
    let Some((mate, ..)) = mate else { return };
    if let Some(next) = mate.described.first() {
        record.text(b"MC", |out| cigar_text(out, &next.cigar));
        record.integer(b"MQ", i64::from(next.quality));
    }
    if !mate.read.qual.is_empty() {
        record.integer(b"ms", mate_score(mate.read.qual));
    }
}
