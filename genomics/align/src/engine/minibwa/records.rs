//! Writes minibwa's hits as BAM records with the content that its `format.c` and the last step of its `map-main.c`
//! print.

use genuma_reads::ReadRef;

use super::ffi::{Hit, MappingOptions};
use crate::sam::{self, Contigs, FixedFields, NO_POSITION, RecordBuilder};

const SOFT_CLIP: u32 = 4;
const HARD_CLIP: u32 = 5;
const CIGAR_LETTERS: &[u8; 10] = b"MIDNSHP=XB";

/// Properties that all BAM records of a batch share.
pub(super) struct RecordFormat<'a> {
    pub(crate) opts: &'a MappingOptions,
    pub contigs: &'a Contigs,
    /// ID of the read group; empty without read group.
    pub group: &'a [u8],
    pub comments: bool,
    pub soft_clips: bool,
}

/// A read with its hits.
#[derive(Clone, Copy)]
pub(super) struct MappedRead<'a> {
    pub read: ReadRef<'a>,
    pub hits: &'a [Hit],
}

impl<'a> MappedRead<'a> {
    fn primary_hit(&self) -> Option<&'a Hit> {
        self.hits.iter().find(|h| h.raw_hit().sam_pri() != 0)
    }
}

/// The other read of a template, and whether this read is read 2.
#[derive(Clone, Copy)]
pub(super) struct Mate<'a> {
    pub other: MappedRead<'a>,
    pub is_read2: bool,
}

/// Appends all records of a read.
pub(super) fn write_read_records(
    format: &RecordFormat<'_>,
    this: MappedRead<'_>,
    mate: Option<Mate<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), sam::Error> {
    if this.hits.is_empty() {
        return write_record(format, this, None, mate, out);
    }
    let opts = format.opts.raw_options();
    let mut secondary = 0;
    for (i, hit) in this.hits.iter().enumerate() {
        if is_primary(hit) {
            write_record(format, this, Some(i), mate, out)?;
        } else if secondary < opts.out_n {
            let parent = this.hits.get(hit.raw_hit().parent as usize);
            if parent.is_some_and(|parent| scores_close_to(hit, parent, opts.out_s)) {
                write_record(format, this, Some(i), mate, out)?;
                secondary += 1;
            }
        }
    }
    Ok(())
}

fn is_primary(hit: &Hit) -> bool {
    hit.raw_hit().parent == hit.raw_hit().id
}

/// Whether a secondary hit scores at least `share` of its parent.
fn scores_close_to(hit: &Hit, parent: &Hit, share: f32) -> bool {
    let (score, best) = match (hit.alignment(), parent.alignment()) {
        (Some(hit), Some(parent)) => (hit.dp_max, parent.dp_max),
        _ => (hit.raw_hit().score, parent.raw_hit().score),
    };
    f64::from(score) >= f64::from(share) * f64::from(best)
}

fn position(hit: &Hit) -> (i32, i32) {
    (hit.raw_hit().tid as i32, hit.raw_hit().ts as i32)
}

/// Reference position of the first sequenced base (5' end).
fn five_prime(hit: &Hit) -> i32 {
    let hit = hit.raw_hit();
    if hit.rev() != 0 { hit.te as i32 - 1 } else { hit.ts as i32 }
}

/// Clipped bases before and after the alignment, along the reference.
fn clips(hit: &Hit, length: usize) -> [u32; 2] {
    let (before, behind) = (hit.raw_hit().qs, length as i32 - hit.raw_hit().qe);
    if hit.is_reverse() { [behind as u32, before as u32] } else { [before as u32, behind as u32] }
}

fn write_int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_cigar_text(out: &mut Vec<u8>, hit: &Hit, length: usize) {
    let [before, behind] = clips(hit, length).map(|clip| (clip > 0).then_some(clip << 4 | SOFT_CLIP));
    for operation in before.into_iter().chain(hit.cigar().iter().copied()).chain(behind) {
        write_int(out, operation >> 4);
        out.push(CIGAR_LETTERS[(operation as usize & 15).min(9)]);
    }
}

fn edit_distance(hit: &Hit) -> i32 {
    hit.raw_hit().blen - hit.raw_hit().mlen + hit.alignment().map_or(0, |a| a.n_ambi() as i32)
}

/// Appends one record: of hit `index`, or of a read without hits.
fn write_record(
    format: &RecordFormat<'_>,
    this: MappedRead<'_>,
    index: Option<usize>,
    mate: Option<Mate<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), sam::Error> {
    let read = this.read;
    let hit = index.map(|i| &this.hits[i]);
    let next = mate.and_then(|mate| mate.other.primary_hit());
    let secondary = hit.is_some_and(|h| !is_primary(h));
    let supplementary = hit.is_some_and(|h| is_primary(h) && h.raw_hit().sam_pri() == 0);
    let mut flag = match hit {
        None => 0x4,
        Some(hit) => u16::from(hit.is_reverse()) << 4 | u16::from(secondary) << 8 | u16::from(supplementary) << 11,
    };
    if let Some(mate) = mate {
        flag |= 0x1 | if mate.is_read2 { 0x80 } else { 0x40 };
        flag |= u16::from(hit.is_some_and(|h| h.raw_hit().proper_pair() != 0)) << 1;
        flag |= next.map_or(0x8, |n| u16::from(n.is_reverse()) << 5);
    }
    // An unmapped read gets the position of its mate, and the mate position of a read with an unmapped mate is that
    // of the read.
    let here = hit.or(next).map_or(NO_POSITION, position);
    let there = if mate.is_none() { NO_POSITION } else { next.map_or(here, position) };
    let template_length = match (hit, next) {
        (Some(hit), Some(next)) if hit.raw_hit().tid == next.raw_hit().tid => {
            let length = five_prime(next) - five_prime(hit);
            length + length.signum()
        }
        _ => 0,
    };
    let mapq = hit.map_or(0, |h| h.raw_hit().mapq as u8);
    let mut record = RecordBuilder::new(
        out,
        read.name,
        FixedFields { flag, position: here, mapq, mate_position: there, template_length },
    )?;

    let clip = if supplementary && !format.soft_clips { HARD_CLIP } else { SOFT_CLIP };
    if let Some(hit) = hit {
        let [before, behind] = clips(hit, read.seq.len());
        if before > 0 {
            record.push_cigar_op(before << 4 | clip);
        }
        hit.cigar().iter().for_each(|&operation| record.push_cigar_op(operation));
        if behind > 0 {
            record.push_cigar_op(behind << 4 | clip);
        }
    }
    let reverse = hit.is_some_and(Hit::is_reverse);
    let shown = match hit {
        Some(_) if secondary && !format.soft_clips => 0..0,
        Some(hit) if clip == HARD_CLIP => hit.raw_hit().qs as usize..hit.raw_hit().qe as usize,
        _ => 0..read.seq.len(),
    };
    record.push_bases(&read.seq[shown.clone()], reverse);
    record.push_qualities(read.qual.get(shown).unwrap_or_default(), reverse);

    if !format.group.is_empty() {
        record.push_text_tag(b"RG", |out| out.extend_from_slice(format.group));
    }
    if let Some(alignment) = hit.and_then(Hit::alignment) {
        record.push_int_tag(b"NM", i64::from(edit_distance(hit.expect("it has an alignment"))));
        record.push_int_tag(b"AS", i64::from(alignment.dp_score));
        record.push_int_tag(b"ms", i64::from(alignment.dp_max0));
        record.push_int_tag(b"md", i64::from(alignment.dp_max - alignment.dp_max2));
    }
    if let (Some(_), Some(next), Some(mate)) = (hit, next, mate)
        && !next.cigar().is_empty()
        && !mate.other.read.seq.is_empty()
    {
        record.push_text_tag(b"MC", |out| write_cigar_text(out, next, mate.other.read.seq.len()));
        record.push_int_tag(b"MQ", i64::from(next.raw_hit().mapq));
    }
    if let Some(index) = index.filter(|_| !secondary) {
        push_other_alignment_tags(format, this, index, &mut record);
    }
    if format.comments && !read.comment.is_empty() {
        sam::parse_tags(read.comment, &mut record).map_err(|reason| sam::Error::SamLine {
            name: String::from_utf8_lossy(read.name).into_owned(),
            reason: format!("its comment cannot be copied: {reason}"),
        })?;
    }
    record.finish_record();
    Ok(())
}

/// Appends the tags of a primary or supplementary record for the read's other hits: other segments (`SA`), number of
/// hits with nearly the same score (`n2`), and those hits if they are few (`XA`).
fn push_other_alignment_tags(
    format: &RecordFormat<'_>,
    this: MappedRead<'_>,
    index: usize,
    record: &mut RecordBuilder<'_>,
) {
    let length = this.read.seq.len();
    let aligned = || this.hits.iter().enumerate().filter(move |(i, h)| *i != index && h.alignment().is_some());
    let name = |out: &mut Vec<u8>, hit: &Hit| {
        out.extend_from_slice(format.contigs.contig_name(hit.raw_hit().tid as i32).unwrap_or("*").as_bytes());
    };
    let pieces = || aligned().map(|(_, h)| h).filter(|h| is_primary(h));
    if pieces().next().is_some() {
        record.push_text_tag(b"SA", |out| {
            for hit in pieces() {
                let [before, behind] = clips(hit, length);
                let (query, target) =
                    (hit.raw_hit().qe - hit.raw_hit().qs, (hit.raw_hit().te - hit.raw_hit().ts) as i32);
                let matched = query.min(target);
                let operations = [
                    (before as i32, 'S'),
                    (matched, 'M'),
                    (query - matched, 'I'),
                    (target - matched, 'D'),
                    (behind as i32, 'S'),
                ];
                name(out, hit);
                out.push(b',');
                write_int(out, hit.raw_hit().ts as i32 + 1);
                out.extend_from_slice(if hit.is_reverse() { b",-," } else { b",+," });
                for (n, letter) in operations.into_iter().filter(|(n, _)| *n != 0) {
                    write_int(out, n);
                    out.push(letter as u8);
                }
                out.push(b',');
                write_int(out, hit.raw_hit().mapq);
                out.push(b',');
                write_int(out, edit_distance(hit));
                out.push(b';');
            }
        });
    }
    let opts = format.opts.raw_options();
    let this_hit = &this.hits[index];
    let close = || {
        let rivals = aligned().map(|(_, h)| h).filter(move |h| h.raw_hit().parent == index as i32);
        rivals.filter(|h| scores_close_to(h, this_hit, opts.out_s))
    };
    if opts.xa_max <= 0 {
        return;
    }
    let count = close().count();
    if count > 0 {
        record.push_int_tag(b"n2", count as i64);
    }
    if (1..=opts.xa_max as usize).contains(&count) {
        record.push_text_tag(b"XA", |out| {
            for hit in close() {
                name(out, hit);
                out.extend_from_slice(if hit.is_reverse() { b",-" } else { b",+" });
                write_int(out, hit.raw_hit().ts as i32 + 1);
                out.push(b',');
                write_cigar_text(out, hit, length);
                out.push(b',');
                write_int(out, edit_distance(hit));
                out.push(b';');
            }
        });
    }
}
