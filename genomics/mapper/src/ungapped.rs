//! A read against the reference without gaps: which of its bases differ, counted by the machine's words, and the best stretch of it.

use crate::bases::{LOW, Strand, WORD, between};
use crate::index::View;
use crate::options::{AMBIGUOUS, LONGEST, Options};
use crate::place::Place;
use crate::syncmers::SEED;

/// Words of the longest read.
pub const WORDS: usize = LONGEST.div_ceil(WORD);

/// Words of a read that are compared at once.
const LINE: usize = 8;

/// Which bases of a read differ: the lower bit of each.
#[derive(Debug, Clone)]
pub struct Masks([u64; WORDS]);

impl Default for Masks {
    fn default() -> Self {
        Masks([0; WORDS])
    }
}

/// Lays a read on packed bases from `at` on; sets the masks of its words and says how many bases differ.
#[inline(always)]
pub fn differences(words: &[u64], at: u64, read: Strand<'_>, masks: &mut Masks) -> u32 {
    let n = read.words.len();
    let (first, shift) = (at as usize / WORD, 2 * (at as usize % WORD) as u32);
    if n <= LINE
        && read.odd.is_empty()
        && let Some(bases) = read.further.first_chunk()
        && let Some(reference) = words[first..].first_chunk()
        && let Some(masks) = masks.0.first_chunk_mut()
    {
        return differences_of_line(reference, shift, bases, read.length, masks);
    }
    let reference = &words[first..first + n + 1];
    let masks = &mut masks.0[..n];
    let mut count = 0;
    for i in 0..n {
        let here = (reference[i] >> shift) | (reference[i + 1] << 1 << (63 - shift));
        let other = here ^ read.words[i];
        masks[i] = (other | other >> 1) & LOW;
    }
    if let Some(last) = masks.last_mut() {
        *last &= between(n - 1, 0, read.length);
    }
    for (mask, odd) in masks.iter_mut().zip(read.odd) {
        *mask |= odd;
    }
    for mask in masks {
        count += mask.count_ones();
    }
    count
}

/// The same for a read of eight words at most, all at once: words behind its last one are masked.
#[inline(always)]
fn differences_of_line(
    reference: &[u64; LINE + 1],
    shift: u32,
    bases: &[u64; LINE],
    length: usize,
    masks: &mut [u64; LINE],
) -> u32 {
    let mut counts = [0; LINE];
    for i in 0..LINE {
        let here = (reference[i] >> shift) | (reference[i + 1] << 1 << (63 - shift));
        let other = here ^ bases[i];
        let inside = (length as u64).saturating_sub((WORD * i) as u64).min(WORD as u64);
        let inside = if inside == 0 { 0 } else { LOW >> (64 - 2 * inside) };
        masks[i] = (other | other >> 1) & inside;
        counts[i] = masks[i].count_ones();
    }
    counts.iter().sum()
}

/// Whether all bases of the seed at base `at` of a read are the reference's.
#[inline(always)]
pub(crate) fn has_seed(masks: &Masks, at: usize) -> bool {
    places(masks, at, at + SEED).next().is_none()
}

/// The places of differing bases from `from` to `to`.
#[inline(always)]
pub fn places(masks: &Masks, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
    (from / WORD..to.div_ceil(WORD)).flat_map(move |i| {
        let mut mask = masks.0[i] & between(i, from, to);
        std::iter::from_fn(move || {
            (mask != 0).then(|| {
                let at = WORD * i + mask.trailing_zeros() as usize / 2;
                mask &= mask - 1;
                at
            })
        })
    })
}

/// The stretch of a read that scores best with what is clipped beside it: its total, score, first base and the one behind its last.
#[inline(always)]
pub(crate) fn best_stretch(
    masks: &Masks,
    read: Strand<'_>,
    inside: (usize, usize),
    reverse: bool,
    options: &Options,
) -> (i32, i32, usize, usize) {
    let [left, right] = options.clips(reverse);
    let (first, behind) = inside;
    // Where the reference ends before the read does, bases must be clipped.
    let (begin, end) = (if first > 0 { -left } else { 0 }, if behind < read.length { right } else { 0 });
    let (mut now, mut from, mut last) = (begin, first, first);
    // Nothing at all is clipped on both sides.
    let (mut best, mut best_from, mut best_to) = (-left - right, first, first);
    for at in places(masks, first, behind) {
        now += (at - last) as i32 * options.equal;
        if now - right > best && at > from {
            (best, best_from, best_to) = (now - right, from, at);
        }
        let odd = !read.odd.is_empty() && read.odd[at / WORD] >> (2 * (at % WORD)) & 1 == 1;
        now += if odd { AMBIGUOUS } else { -options.differs };
        last = at + 1;
        if now <= -left {
            (now, from) = (-left, last);
        }
    }
    now += (behind - last) as i32 * options.equal;
    if now - end > best && from < behind {
        (best, best_from, best_to) = (now - end, from, behind);
    }
    let clipped = if best_from > 0 || best_to == best_from { left } else { 0 }
        + if best_to < read.length { right } else { 0 };
    (best, best + clipped, best_from, best_to)
}

/// What a read whose masks are known scores at most without gaps: of a word that is aligned in part nothing but its differing bases is taken away.
#[inline(always)]
pub fn worth(masks: &Masks, read: Strand<'_>, options: &Options) -> i32 {
    let lost = options.equal + if read.odd.is_empty() { options.differs } else { -AMBIGUOUS };
    // Best stretch of all words so far, and of those that end with the last one.
    let (mut best, mut now) = (0, 0);
    for i in 0..read.words.len() {
        let bases = (read.length - WORD * i).min(WORD) as i32 * options.equal;
        let differing = masks.0[i].count_ones() as i32;
        let part = bases - options.equal * differing;
        best = best.max(now + part);
        now = part.max(now + bases - lost * differing);
    }
    best
}

/// Which bases of a read that lies at `at` are on the sequence of the reference that has its base `anchor`.
#[inline(always)]
pub fn inside(view: &View<'_>, at: u64, anchor: usize, length: usize) -> (usize, usize) {
    let bounds = view.bounds(at + anchor as u64);
    let first = bounds.start.saturating_sub(at) as usize;
    let behind = bounds.end.saturating_sub(at).min(length as u64) as usize;
    (first.min(behind), behind)
}

/// The best stretch of a read whose masks are known, as a place; `neighbour`: there is another diagonal near it.
#[inline(always)]
pub fn placed(
    view: &View<'_>,
    masks: &Masks,
    read: Strand<'_>,
    place: &mut Place,
    neighbour: bool,
    options: &Options,
) {
    let inside = inside(view, place.left, usize::from(place.anchor), read.length);
    let (total, score, from, to) = best_stretch(masks, read, inside, place.reverse, options);
    (place.total, place.score) = (total, score);
    (place.from, place.to) = (from as u16, to as u16);
    (place.right, place.operations) = (place.left, 0);
    place.alt = view.is_alt(place.left + u64::from(place.anchor));
    place.most = total + gain(masks, read.length, place, neighbour, options);
}

/// Bases that are the reference's one after the other and show that a read lies there.
const RUN: usize = 16;

/// Bases that may lie beyond a gap and have no seed of their own (bp).
const SEEDLESS: usize = 90;

/// What a gap could gain at most: it lies before the first long run of bases that do not differ, or behind the last one, as between two runs on
/// one diagonal a gap would have to be undone by another. What lies beyond a gap has seeds of its own if it is long: then there is a
/// `neighbour`.
#[inline(always)]
fn gain(masks: &Masks, length: usize, place: &Place, neighbour: bool, options: &Options) -> i32 {
    let (from, to) = (usize::from(place.from), usize::from(place.to));
    let clips = options.clips(place.reverse);
    let lost = options.equal + options.differs;
    let cheapest = options.cheapest_gap();
    let end = |beyond: usize, clipped: usize, clip: i32, differing: i32| {
        if beyond > SEEDLESS && !neighbour {
            return 0;
        }
        let clip = if clipped > 0 { clip } else { 0 };
        (clipped as i32 * options.equal + clip + lost * differing - cheapest).max(0)
    };
    let (mut before, mut first) = (0, from);
    // Differing bases since the last run, and where it ended.
    let (mut behind, mut last, mut run) = (0, from, from);
    for at in places(masks, from, to) {
        if at - last >= RUN {
            (behind, run) = (0, at);
        }
        if run == from && behind == before {
            before += 1;
            first = at + 1;
        }
        behind += 1;
        last = at + 1;
    }
    if to - last >= RUN {
        (behind, run) = (0, to);
    }
    end(first, from, clips[0], before) + end(length - run, length - to, clips[1], behind)
}

/// The place at which a read has the fewest differing bases, of those whose first base is in `from..to`, and how many; and the next best one.
/// `counts` is a buffer.
#[inline(always)]
pub fn scan(
    words: &[u64],
    read: Strand<'_>,
    from: u64,
    to: u64,
    counts: &mut Vec<u32>,
) -> [Option<(u32, u64)>; 2] {
    let n = read.words.len();
    let last = between(n - 1, 0, read.length);
    let (first, behind) = (from as usize / WORD, (to as usize).div_ceil(WORD));
    counts.clear();
    counts.resize((behind - first) * WORD, 0);
    for (word, counts) in (first..behind).zip(counts.as_chunks_mut::<WORD>().0) {
        let reference = &words[word..word + n + 1];
        for i in 0..n {
            let (low, high, bases) = (reference[i], reference[i + 1], read.words[i]);
            let kept = if i + 1 == n { last } else { LOW };
            let odd = if read.odd.is_empty() { 0 } else { read.odd[i] };
            for (shift, count) in counts.iter_mut().enumerate() {
                let shift = 2 * shift as u64;
                let here = (low >> shift) | (high << 1 << (63 - shift));
                let other = here ^ bases;
                *count += (((other | other >> 1) & kept) | odd).count_ones();
            }
        }
    }
    let base = (first * WORD) as u64;
    let inside = &counts[(from - base) as usize..(to - base) as usize];
    let least = |without: Option<usize>| {
        let mut least = u32::MAX;
        for (i, &count) in inside.iter().enumerate() {
            least = least.min(if Some(i) == without { u32::MAX } else { count });
        }
        let at = inside.iter().enumerate().position(|(i, &count)| count == least && Some(i) != without);
        at.map(|at| (least, at))
    };
    let best = least(None);
    let next = best.and_then(|(differing, at)| least(Some(at)).filter(|next| next.0 <= differing + NEAR));
    [best, next].map(|found| found.map(|(differing, at)| (differing, from + at as u64)))
}

/// Differing bases more than the best place of a stretch has that the next best may have and matter.
const NEAR: u32 = 5;

#[cfg(test)]
mod tests;
