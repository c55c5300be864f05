//! minibwa's hits → records: what its `format.c` and the last step of its `map-main.c` print, as BAM.

use genuma_reads::ReadRef;

use super::ffi::{Hit, Opts};
use crate::sam::{self, Builder, Contigs, Fixed, NO_PLACE};

const SOFT_CLIP: u32 = 4;
const HARD_CLIP: u32 = 5;
const LETTERS: &[u8; 10] = b"MIDNSHP=XB";

/// What is the same for all records.
pub(super) struct Format<'a> {
    pub(crate) opts: &'a Opts,
    pub contigs: &'a Contigs,
    /// The read group's identifier; empty for none.
    pub group: &'a [u8],
    pub comments: bool,
    pub soft_clips: bool,
}

/// A read with its hits, as a mate sees it.
#[derive(Clone, Copy)]
pub(super) struct Mapped<'a> {
    pub read: ReadRef<'a>,
    pub hits: &'a [Hit],
}

impl<'a> Mapped<'a> {
    fn primary(&self) -> Option<&'a Hit> {
        self.hits.iter().find(|h| h.get().sam_pri() != 0)
    }
}

/// The other read of a template, and which of the two this one is.
#[derive(Clone, Copy)]
pub(super) struct Mate<'a> {
    pub other: Mapped<'a>,
    pub second: bool,
}

/// All records of a read.
pub(super) fn read(
    format: &Format<'_>,
    this: Mapped<'_>,
    mate: Option<Mate<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), sam::Error> {
    if this.hits.is_empty() {
        return record(format, this, None, mate, out);
    }
    let opts = format.opts.get();
    let mut secondary = 0;
    for (i, hit) in this.hits.iter().enumerate() {
        if primary(hit) {
            record(format, this, Some(i), mate, out)?;
        } else if secondary < opts.out_n {
            let parent = this.hits.get(hit.get().parent as usize);
            if parent.is_some_and(|parent| comparable(hit, parent, opts.out_s)) {
                record(format, this, Some(i), mate, out)?;
                secondary += 1;
            }
        }
    }
    Ok(())
}

fn primary(hit: &Hit) -> bool {
    hit.get().parent == hit.get().id
}

/// Whether a secondary hit scores at least `share` of its parent.
fn comparable(hit: &Hit, parent: &Hit, share: f32) -> bool {
    let (score, best) = match (hit.alignment(), parent.alignment()) {
        (Some(hit), Some(parent)) => (hit.dp_max, parent.dp_max),
        _ => (hit.get().score, parent.get().score),
    };
    f64::from(score) >= f64::from(share) * f64::from(best)
}

fn place(hit: &Hit) -> (i32, i32) {
    (hit.get().tid as i32, hit.get().ts as i32)
}

/// The base that was sequenced first.
fn five_prime(hit: &Hit) -> i32 {
    let hit = hit.get();
    if hit.rev() != 0 { hit.te as i32 - 1 } else { hit.ts as i32 }
}

/// Bases before and behind the alignment, along the reference.
fn clips(hit: &Hit, length: usize) -> [u32; 2] {
    let (before, behind) = (hit.get().qs, length as i32 - hit.get().qe);
    if hit.reverse() { [behind as u32, before as u32] } else { [before as u32, behind as u32] }
}

fn number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn cigar_text(out: &mut Vec<u8>, hit: &Hit, length: usize) {
    let [before, behind] = clips(hit, length).map(|clip| (clip > 0).then_some(clip << 4 | SOFT_CLIP));
    for operation in before.into_iter().chain(hit.cigar().iter().copied()).chain(behind) {
        number(out, operation >> 4);
        out.push(LETTERS[(operation as usize & 15).min(9)]);
    }
}

fn distance(hit: &Hit) -> i32 {
    hit.get().blen - hit.get().mlen + hit.alignment().map_or(0, |a| a.n_ambi() as i32)
}

/// One record: of hit `index`, or of a read without hits.
fn record(
    format: &Format<'_>,
    this: Mapped<'_>,
    index: Option<usize>,
    mate: Option<Mate<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), sam::Error> {
    let read = this.read;
    let hit = index.map(|i| &this.hits[i]);
    let next = mate.and_then(|mate| mate.other.primary());
    let secondary = hit.is_some_and(|h| !primary(h));
    let supplementary = hit.is_some_and(|h| primary(h) && h.get().sam_pri() == 0);
    let mut flag = match hit {
        None => 0x4,
        Some(hit) => {
            u16::from(hit.reverse()) << 4 | u16::from(secondary) << 8 | u16::from(supplementary) << 11
        }
    };
    if let Some(mate) = mate {
        flag |= 0x1 | if mate.second { 0x80 } else { 0x40 };
        flag |= u16::from(hit.is_some_and(|h| h.get().proper_pair() != 0)) << 1;
        flag |= next.map_or(0x8, |n| u16::from(n.reverse()) << 5);
    }
    // A read without a place stands at its mate, and a mate without one is said to stand at the read.
    let here = hit.or(next).map_or(NO_PLACE, place);
    let there = if mate.is_none() { NO_PLACE } else { next.map_or(here, place) };
    let template_length = match (hit, next) {
        (Some(hit), Some(next)) if hit.get().tid == next.get().tid => {
            let length = five_prime(next) - five_prime(hit);
            length + length.signum()
        }
        _ => 0,
    };
    let mapq = hit.map_or(0, |h| h.get().mapq as u8);
    let mut record =
        Builder::new(out, read.name, Fixed { flag, place: here, mapq, mate: there, template_length })?;

    let clip = if supplementary && !format.soft_clips { HARD_CLIP } else { SOFT_CLIP };
    if let Some(hit) = hit {
        let [before, behind] = clips(hit, read.seq.len());
        if before > 0 {
            record.operation(before << 4 | clip);
        }
        hit.cigar().iter().for_each(|&operation| record.operation(operation));
        if behind > 0 {
            record.operation(behind << 4 | clip);
        }
    }
    let reverse = hit.is_some_and(Hit::reverse);
    let shown = match hit {
        Some(_) if secondary && !format.soft_clips => 0..0,
        Some(hit) if clip == HARD_CLIP => hit.get().qs as usize..hit.get().qe as usize,
        _ => 0..read.seq.len(),
    };
    record.bases(&read.seq[shown.clone()], reverse);
    record.qualities(read.qual.get(shown).unwrap_or_default(), reverse);

    if !format.group.is_empty() {
        record.text(b"RG", |out| out.extend_from_slice(format.group));
    }
    if let Some(alignment) = hit.and_then(Hit::alignment) {
        record.integer(b"NM", i64::from(distance(hit.expect("it has an alignment"))));
        record.integer(b"AS", i64::from(alignment.dp_score));
        record.integer(b"ms", i64::from(alignment.dp_max0));
        record.integer(b"md", i64::from(alignment.dp_max - alignment.dp_max2));
    }
    if let (Some(_), Some(next), Some(mate)) = (hit, next, mate)
        && !next.cigar().is_empty()
        && !mate.other.read.seq.is_empty()
    {
        record.text(b"MC", |out| cigar_text(out, next, mate.other.read.seq.len()));
        record.integer(b"MQ", i64::from(next.get().mapq));
    }
    if let Some(index) = index.filter(|_| !secondary) {
        others(format, this, index, &mut record);
    }
    if format.comments && !read.comment.is_empty() {
        sam::parse_fields(read.comment, &mut record).map_err(|what| sam::Error::Line {
            name: String::from_utf8_lossy(read.name).into_owned(),
            what: format!("its comment cannot be copied: {what}"),
        })?;
    }
    record.finish();
    Ok(())
}

/// The tags of a primary or supplementary record that name the read's other places: the other pieces (`SA`), the
/// number of places that score nearly as well (`n2`), and those places when they are few (`XA`).
fn others(format: &Format<'_>, this: Mapped<'_>, index: usize, record: &mut Builder<'_>) {
    let length = this.read.seq.len();
    let aligned =
        || this.hits.iter().enumerate().filter(move |(i, h)| *i != index && h.alignment().is_some());
    let name = |out: &mut Vec<u8>, hit: &Hit| {
        out.extend_from_slice(format.contigs.name(hit.get().tid as i32).unwrap_or("*").as_bytes());
    };
    let pieces = || aligned().map(|(_, h)| h).filter(|h| primary(h));
    if pieces().next().is_some() {
        record.text(b"SA", |out| {
            for hit in pieces() {
                let [before, behind] = clips(hit, length);
                let (query, target) = (hit.get().qe - hit.get().qs, (hit.get().te - hit.get().ts) as i32);
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
                number(out, hit.get().ts as i32 + 1);
                out.extend_from_slice(if hit.reverse() { b",-," } else { b",+," });
                for (n, letter) in operations.into_iter().filter(|(n, _)| *n != 0) {
                    number(out, n);
                    out.push(letter as u8);
                }
                out.push(b',');
                number(out, hit.get().mapq);
                out.push(b',');
                number(out, distance(hit));
                out.push(b';');
            }
        });
    }
    let opts = format.opts.get();
    let this_hit = &this.hits[index];
    let close = || {
        let rivals = aligned().map(|(_, h)| h).filter(move |h| h.get().parent == index as i32);
        rivals.filter(|h| comparable(h, this_hit, opts.out_s))
    };
    if opts.xa_max <= 0 {
        return;
    }
    let count = close().count();
    if count > 0 {
        record.integer(b"n2", count as i64);
    }
    if (1..=opts.xa_max as usize).contains(&count) {
        record.text(b"XA", |out| {
            for hit in close() {
                name(out, hit);
                out.extend_from_slice(if hit.reverse() { b",-" } else { b",+" });
                number(out, hit.get().ts as i32 + 1);
                out.push(b',');
                cigar_text(out, hit, length);
                out.push(b',');
                number(out, distance(hit));
                out.push(b';');
            }
        });
    }
}
