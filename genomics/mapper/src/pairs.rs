//! Mates together: places that only a mate makes likely, mates looked for where they should be, and which pair of places it is.

use genuma_machine::processor::Vectors;

use crate::gapped::Job;
use crate::index::View;
use crate::insert::{Inserts, first_base};
use crate::mapper::{About, Draft, Waiting, better, jobs, listed, settled, sure, without_gaps};
use crate::options::{LONGEST, Options};
use crate::place::Place;
use crate::quality;
use crate::ungapped::{Masks, differences, placed, scan};

/// Places of a list that is looked at in any case: the first two where mates do not fit yet, the first where they do; and of further lists as long
/// as few places were looked at; and places in all.
const LONG_LIST: u32 = 100_000;
const FITTING_LIST: u32 = 16_000;
const FURTHER_LIST: u32 = 20_000;
const FEW_PLACES: u32 = 200;
const MORE_PLACES: u32 = 400;
/// Share of the copies' penalty that a pair pays.
const COPIED: f64 = 0.7;
/// Differences that a pair has that fits.
const FITTING: i32 = 6;
/// So many places are looked at whether or not they join.
const ALL: usize = 256;
/// Places of a read that are held against all of its mate.
const FEW: usize = 4;
/// Joined places that wait for the reference before they are looked at; lists that are asked for ahead.
const TOGETHER: usize = 64;
const LISTS: usize = 3;
/// Points behind the best that a joined place could be with gaps and matter: its mate may make up for them.
const BEHIND: i32 = 15;
/// Joined places that are looked at; of those of a read without any.
const JOINED: usize = 4_000;
const SAMPLED: usize = 64;
/// Bases that a pair's distance may be off before its ends are known (gaps).
const SLACK: i64 = 30;
/// Places of a read whose mate is looked for.
const RESCUERS: usize = 8;
/// Least score of a read whose mate is looked for.
const RESCUER: i32 = 40;
/// Points behind the best pair that still matter.
const NEAR: i32 = 24;
/// Longest stretch in which a mate is looked for (bp).
const WINDOW: u64 = 20_000;

/// A read with its places: those of the primary assembly, the best first, then those on ALT contigs.
#[derive(Debug, Default, Clone)]
struct Read {
    places: Vec<Place>,
    /// Lists that were not looked at.
    waiting: bool,
    /// Seeds that count as looked at, see [`About::sure`].
    about: About,
    /// The same for pairs, whose places were looked at only where both mates have one.
    joined: u16,
    length: usize,
}

/// A pair of places: what it scores, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Combined {
    score: i32,
    which: [u16; 2],
}

/// A diagonal that a list says, for joining: strand, packed base and anchor in one number, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

/// Bits of an anchor.
const ANCHOR_BITS: u32 = LONGEST.ilog2() + 1;

impl Key {
    #[inline(always)]
    fn new(left: u64, reverse: bool, anchor: u16) -> Key {
        Key(u64::from(reverse) << 63 | left << ANCHOR_BITS | u64::from(anchor))
    }

    #[inline(always)]
    fn reverse(self) -> bool {
        self.0 >> 63 == 1
    }

    #[inline(always)]
    fn left(self) -> u64 {
        self.0 << 1 >> (ANCHOR_BITS + 1)
    }

    #[inline(always)]
    fn anchor(self) -> u16 {
        (self.0 & ((1 << ANCHOR_BITS) - 1)) as u16
    }

    /// The same without its anchor.
    #[inline(always)]
    fn diagonal(self) -> u64 {
        self.0 >> ANCHOR_BITS
    }

    fn place(self) -> Place {
        Place {
            left: self.left(),
            reverse: self.reverse(),
            anchor: self.anchor(),
            votes: 1,
            ..Place::default()
        }
    }
}

/// Merges keys in order into others in order, each diagonal once; `merged` is a buffer.
#[inline(always)]
fn merge(keys: &mut Vec<Key>, more: &[Key], merged: &mut Vec<Key>) {
    if keys.is_empty() {
        keys.extend_from_slice(more);
        return;
    }
    merged.clear();
    merged.reserve(keys.len() + more.len());
    let (mut a, mut b) = (keys.iter().copied().peekable(), more.iter().copied().peekable());
    let mut last = u64::MAX;
    loop {
        let key = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x <= y => a.next(),
            (Some(_), None) => a.next(),
            _ => b.next(),
        };
        let Some(key) = key else { break };
        if key.diagonal() != last {
            merged.push(key);
            last = key.diagonal();
        }
    }
    std::mem::swap(keys, merged);
}

/// What becomes of a read.
#[derive(Debug, Default)]
pub struct Answer {
    /// All its places.
    pub places: Vec<Place>,
    /// Which are reported: the primary one first, then those of other parts of the read, then those on ALT contigs that are better.
    pub pieces: Vec<Piece>,
    /// Of each place the best one of the same bases, ALT contigs and all, which may be itself; empty if the read has no place on an ALT contig.
    pub leaders: Vec<usize>,
}

/// A reported place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which place.
    pub place: usize,
    /// Its mapping quality.
    pub quality: u8,
    /// The best score of another place of the same bases, 0 if there is none.
    pub next: i32,
    /// The score of the place on an ALT contig that is the best one of the same bases, if it is better than this one; else 0.
    pub alt: i32,
}

/// A worker's buffers.
#[derive(Debug, Default)]
pub struct State {
    reads: Vec<Read>,
    combined: Vec<Combined>,
    keys: [Vec<Key>; 2],
    kept: [Vec<Key>; 2],
    buffers: [Vec<Key>; 2],
    candidates: Vec<Place>,
    /// What pairs joined and was not looked at, and up to where it is whose.
    pending: Vec<Place>,
    readers: Vec<(usize, usize)>,
    jobs: Vec<Job>,
    aligner: crate::gapped::Aligner,
    masks: Masks,
    counts: Vec<u32>,
    ends: [Vec<u64>; 2],
    order: Vec<(u64, u32)>,
    answers: [Answer; 2],
}

struct Finishing<'a> {
    view: &'a View<'a>,
    options: &'a Options,
    inserts: &'a Inserts,
}

/// Decides where the reads of `draft` are, pairs where `paired`, and hands the answer for each template to `each`: its first read's number, its
/// answers, one or two, and whether they lie as mates do. The operations of places are in the draft.
pub fn finish<E>(
    view: &View<'_>,
    options: &Options,
    vectors: Vectors,
    state: &mut State,
    draft: &mut Draft,
    inserts: Option<&Inserts>,
    mut each: impl FnMut(&Draft, usize, &[Answer], bool) -> Result<(), E>,
) -> Result<(), E> {
    let none = Inserts::default();
    let job = Finishing { view, options, inserts: inserts.unwrap_or(&none) };
    let paired = inserts.is_some();
    vectors.run(
        #[inline(always)]
        || {
            state.begin(draft);
            if paired {
                for pair in 0..draft.about.len() / 2 {
                    State::prefetch(&job, draft, 2 * pair + 4);
                    state.join(&job, draft, 2 * pair);
                    if state.pending.len() >= TOGETHER {
                        state.look_at_pending(&job, draft);
                    }
                }
                state.look_at_pending(&job, draft);
            }
            for read in 0..draft.about.len() {
                state.sample(&job, draft, read);
            }
            state.with_gaps(&job, draft);
            if paired {
                for pair in 0..draft.about.len() / 2 {
                    state.rescue(&job, draft, 2 * pair);
                }
                state.with_gaps(&job, draft);
            }
        },
    );
    if !paired {
        for read in 0..draft.about.len() {
            state.single(&job, 0, read);
            each(draft, read, &state.answers[..1], false)?;
        }
        return Ok(());
    }
    for first in (0..draft.about.len()).step_by(2) {
        let proper = state.choose(&job, first);
        each(draft, first, &state.answers, proper)?;
    }
    Ok(())
}

impl State {
    #[inline(always)]
    fn begin(&mut self, draft: &Draft) {
        let n = draft.about.len();
        if self.reads.len() < n {
            self.reads.resize_with(n, Read::default);
        }
        for (i, read) in self.reads[..n].iter_mut().enumerate() {
            read.places.clear();
            read.places.extend_from_slice(draft.of(i));
            read.about = draft.about[i];
            read.joined = read.about.sure;
            read.waiting = !draft.waiting_of(i).is_empty();
            read.length = draft.packed.length(i);
        }
    }

    /// All pairs of places of two mates that lie as mates do, the best first. Those on ALT contigs are in none.
    #[inline(always)]
    fn combine(&mut self, job: &Finishing<'_>, first: usize) {
        let State { reads, combined, ends, order, .. } = self;
        combined.clear();
        let (one, two) = (&reads[first], &reads[first + 1]);
        for (ends, read) in ends.iter_mut().zip([one, two]) {
            ends.clear();
            ends.extend(read.places.iter().map(|place| first_base(place, read.length)));
        }
        let [one_ends, two_ends] = &*ends;
        let mut add = |x: usize, y: usize| {
            let (a, b) = (&one.places[x], &two.places[y]);
            let Some(worth) = job.inserts.worth([one_ends[x], two_ends[y]], [a.reverse, b.reverse]) else {
                return;
            };
            if !a.alt && job.view.contig_at(a.start()) == job.view.contig_at(b.start()) {
                combined.push(Combined { score: a.score + b.score + worth, which: [x as u16, y as u16] });
            }
        };
        if one_ends.len().min(two_ends.len()) < FEW {
            for x in 0..one_ends.len() {
                (0..two_ends.len()).for_each(|y| add(x, y));
            }
        } else {
            // Both in order: those that are near each other.
            order.clear();
            order.extend(two_ends.iter().copied().zip(0u32..));
            order.sort_unstable();
            for (x, &end) in one_ends.iter().enumerate() {
                let near = order.partition_point(|other| other.0 + job.inserts.farthest < end);
                let near = order[near..].iter().take_while(|other| other.0 <= end + job.inserts.farthest);
                near.for_each(|other| add(x, other.1 as usize));
            }
        }
        combined.sort_unstable_by_key(|pair| (-pair.score, pair.which));
    }

    /// Where both mates stand in many places: looks for places that are as far from each other as mates are, before any is looked at.
    #[inline(always)]
    fn join(&mut self, job: &Finishing<'_>, draft: &Draft, first: usize) {
        let [one, two] = [&self.reads[first], &self.reads[first + 1]];
        if !one.waiting && !two.waiting {
            return;
        }
        let options = job.options;
        let best = |read: &Read| read.places.first().map_or(0, |place| place.score);
        let (bests, waiting) = ([best(one), best(two)], [one.waiting, two.waiting]);
        // A place that was not looked at differs elsewhere, too.
        let bounds = [one, two].map(|read| quality::unseen(read.about.sure + 1, read.length, options));
        let full = (one.length + two.length) as i32 * options.equal;
        let rescuer = RESCUER * options.equal;
        self.combine(job, first);
        let top = self.combined.first().map_or(0, |pair| pair.score);
        let wanted = if waiting[0] && waiting[1] {
            top - options.unpaired - 1 < bounds[0] + bounds[1]
        } else {
            waiting[0] && bests[1] < rescuer || waiting[1] && bests[0] < rescuer
        };
        if !wanted {
            return;
        }
        let fitting = top > full - FITTING * (options.equal + options.differs);
        for mate in 0..2 {
            let (i, keys) = (first + mate, &mut self.keys[mate]);
            keys.clear();
            let read = &mut self.reads[i];
            let lists = draft.waiting_of(i);
            let n = looked_at(lists, fitting);
            let [one, merged] = &mut self.buffers;
            one.clear();
            one.extend(read.places.iter().map(|place| Key::new(place.left, place.reverse, place.anchor)));
            one.sort_unstable();
            merge(keys, one, merged);
            for list in &lists[..n] {
                one.clear();
                listed(job.view, list, read.length, |left, reverse, anchor| {
                    one.push(Key::new(left, reverse, anchor))
                });
                merge(keys, one, merged);
            }
            read.joined = sure(draft.seeds_of(i), &lists[n..]);
        }
        self.kept.iter_mut().for_each(Vec::clear);
        let lengths = [0, 1].map(|mate| self.reads[first + mate].length as i64);
        for (orientation, insert) in job.inserts.all.iter().enumerate() {
            let Some(insert) = insert else { continue };
            let strands = [orientation & 2 != 0, orientation & 1 != 0];
            for (a, b) in [(0, 1), (1, 0)] {
                // Mate a lies before mate b.
                let on = |keys: &[Key], reverse: bool| {
                    let middle = keys.partition_point(|key| !key.reverse());
                    if reverse { middle..keys.len() } else { 0..middle }
                };
                let before = on(&self.keys[a], strands[0]);
                let behind = on(&self.keys[b], strands[1]);
                let first_base = |key: Key, mate: usize| {
                    key.left() as i64 + if key.reverse() { lengths[mate] - 1 } else { 0 }
                };
                let mut low = behind.start;
                for x in before {
                    let key = self.keys[a][x];
                    let at = first_base(key, a);
                    let far = |other: Key| first_base(other, b) - at + 1;
                    while low < behind.end && far(self.keys[b][low]) < insert.low - SLACK {
                        low += 1;
                    }
                    let mut any = false;
                    for &other in &self.keys[b][low..behind.end] {
                        if far(other) > insert.high + SLACK {
                            break;
                        }
                        self.kept[b].push(other);
                        any = true;
                    }
                    if any {
                        self.kept[a].push(key);
                    }
                }
            }
        }
        for mate in 0..2 {
            let i = first + mate;
            let kept = &mut self.kept[mate];
            if self.keys[mate].len() <= ALL {
                // A mate may be where a list had no place of it.
                kept.clear();
                kept.extend_from_slice(&self.keys[mate]);
            }
            kept.sort_unstable();
            kept.dedup();
            let read = &mut self.reads[i];
            kept.retain(|key| {
                read.places.iter().all(|place| place.left != key.left() || place.reverse != key.reverse())
            });
            if kept.len() > JOINED {
                let step = kept.len().div_ceil(JOINED);
                let mut n = 0;
                kept.retain(|_| {
                    n += 1;
                    n % step == 1
                });
                read.waiting = true;
            }
            for key in &*kept {
                job.view.prefetch_bases(key.left());
                self.pending.push(key.place());
            }
            self.readers.push((i, self.pending.len()));
        }
    }

    /// Looks at what pairs joined, the reference having had time to come.
    #[inline(always)]
    fn look_at_pending(&mut self, job: &Finishing<'_>, draft: &Draft) {
        let mut from = 0;
        for n in 0..self.readers.len() {
            let (read, to) = self.readers[n];
            self.candidates.clear();
            self.candidates.extend_from_slice(&self.pending[from..to]);
            self.look(job, draft, read);
            from = to;
        }
        self.pending.clear();
        self.readers.clear();
    }

    /// Asks for the lists that a pair may join.
    #[inline(always)]
    fn prefetch(job: &Finishing<'_>, draft: &Draft, first: usize) {
        for read in first..(first + 2).min(draft.about.len()) {
            for list in draft.waiting_of(read).iter().take(LISTS) {
                job.view.prefetch_list(list.list);
            }
        }
    }

    /// A read of which no place is known, as all its seeds stand in many: some of those places.
    #[inline(always)]
    fn sample(&mut self, job: &Finishing<'_>, draft: &Draft, i: usize) {
        if !self.reads[i].places.is_empty() {
            return;
        }
        let Some(list) = draft.waiting_of(i).first() else { return };
        let step = (list.places as usize).div_ceil(SAMPLED);
        self.candidates.clear();
        let mut n = 0;
        listed(job.view, list, self.reads[i].length, |left, reverse, anchor| {
            if n % step == 0 {
                self.candidates.push(Key::new(left, reverse, anchor).place());
            }
            n += 1;
        });
        self.reads[i].waiting = true;
        self.look(job, draft, i);
    }

    /// Looks at the candidates of a read and adds those that matter.
    #[inline(always)]
    fn look(&mut self, job: &Finishing<'_>, draft: &Draft, i: usize) {
        let places = &mut self.reads[i].places;
        let best = places.first().map_or(i32::MIN / 2, |place| place.score);
        let first = places.len();
        without_gaps(
            job.view,
            job.options,
            &draft.packed,
            i,
            &mut self.candidates,
            Some(best),
            &mut self.masks,
            places,
        );
        jobs(
            job.options,
            i,
            draft.packed.length(i),
            places,
            first,
            BEHIND * job.options.equal,
            &mut self.jobs,
        );
        if self.jobs.last().is_none_or(|job| job.read as usize != i) {
            settled(job.options, draft.packed.length(i), places);
        }
    }

    /// Does all alignments with gaps that were asked for.
    #[inline(always)]
    fn with_gaps(&mut self, job: &Finishing<'_>, draft: &mut Draft) {
        let State { reads, jobs, aligner, .. } = self;
        if jobs.is_empty() {
            return;
        }
        let mut touched: Vec<u32> = jobs.iter().map(|job| job.read).collect();
        touched.sort_unstable();
        touched.dedup();
        let packed = &draft.packed;
        let strand = |read: u32, reverse| packed.strand(read as usize, reverse);
        aligner.align(job.view, job.options, jobs, &mut draft.cigars, strand, |found| {
            better(&mut reads[found.read as usize].places[found.place as usize], found.best);
        });
        for i in touched {
            let read = &mut reads[i as usize];
            read.places.retain(|place| place.votes > 0 || place.score >= job.options.least);
            settled(job.options, read.length, &mut read.places);
        }
    }

    /// Looks for mates where they should be.
    #[inline(always)]
    fn rescue(&mut self, job: &Finishing<'_>, draft: &Draft, first: usize) {
        self.combine(job, first);
        let options = job.options;
        let top = self.combined.first().map_or(i32::MIN / 2, |pair| pair.score);
        let step = options.equal + options.differs;
        for mate in 0..2 {
            let (x, y) = (first + mate, first + 1 - mate);
            let (best, other) = (
                self.reads[x].places.first().map_or(0, |place| place.score),
                self.reads[y].places.first().map_or(0, |place| place.score),
            );
            if best < RESCUER * options.equal {
                continue;
            }
            let length = self.reads[y].length;
            let full = length as i32 * options.equal;
            let most = full - step * i32::from(self.reads[y].about.sure.min(6));
            let begun = self.jobs.len();
            let known = self.reads[y].places.len();
            for i in 0..self.reads[x].places.len().min(RESCUERS) {
                let place = self.reads[x].places[i];
                if place.score < best - options.unpaired {
                    break;
                }
                if place.score + most < top - NEAR * options.equal {
                    continue;
                }
                let end = first_base(&place, self.reads[x].length);
                let enough = (full - 2 * step).min(other) - 2 * step;
                let there = self.reads[y].places[..known].iter().any(|found| {
                    let ends = [end, first_base(found, length)];
                    let worth = job.inserts.worth(ends, [place.reverse, found.reverse]);
                    worth.is_some_and(|worth| found.score + worth >= enough)
                });
                if !there {
                    self.find_mate(job, draft, y, &place, end);
                }
            }
            if self.jobs.len() == begun && self.reads[y].places.len() > known {
                self.reads[y].places.retain(|place| place.votes > 0 || place.score >= options.least);
                settled(options, length, &mut self.reads[y].places);
            }
        }
    }

    /// Looks for a read near the place of its mate, whose first sequenced base lies at `end`.
    #[inline(always)]
    fn find_mate(&mut self, job: &Finishing<'_>, draft: &Draft, y: usize, mate: &Place, end: u64) {
        let length = self.reads[y].length;
        let bounds = job.view.bounds(mate.start());
        for (orientation, insert) in job.inserts.all.iter().enumerate() {
            let Some(insert) = insert else { continue };
            let strands = [orientation & 2 != 0, orientation & 1 != 0];
            for behind in [true, false] {
                let (own, reverse) = if behind { (strands[0], strands[1]) } else { (strands[1], strands[0]) };
                if own != mate.reverse {
                    continue;
                }
                // Where the read's first sequenced base may lie, then its first one on the reference.
                let (low, high) = (insert.low - 1, insert.high - 1);
                let (from, to) = if behind { (low, high) } else { (-high, -low) };
                let shift = if reverse { length as i64 - 1 } else { 0 };
                let within = |at: i64| {
                    at.clamp(bounds.start as i64 - length as i64 / 2, bounds.end as i64 - length as i64 / 2)
                        as u64
                };
                let (from, to) = (within(end as i64 + from - shift), within(end as i64 + to - shift + 1));
                if to <= from || length == 0 {
                    continue;
                }
                let strand = draft.packed.strand(y, reverse);
                let found = scan(job.view.words, strand, from, to.min(from + WINDOW), &mut self.counts);
                for (differing, left) in found.into_iter().flatten() {
                    if 10 * differing as usize > 6 * length {
                        continue;
                    }
                    let mut place = Place {
                        left,
                        reverse,
                        anchor: length as u16 / 2,
                        differing: differing as u16,
                        ..Place::default()
                    };
                    differences(job.view.words, left, strand, &mut self.masks);
                    placed(job.view, &self.masks, strand, &mut place, true, job.options);
                    let places = &mut self.reads[y].places;
                    if places.iter().any(|other| other.left == left && other.reverse == reverse) {
                        continue;
                    }
                    self.jobs.extend(Job::new(
                        y as u32,
                        places.len() as u32,
                        &place,
                        length,
                        false,
                        job.options,
                    ));
                    places.push(place);
                }
            }
        }
    }

    /// The answer for a read by itself.
    fn single(&mut self, job: &Finishing<'_>, answer: usize, read: usize) {
        let answer = &mut self.answers[answer];
        answer.places.clear();
        answer.places.extend_from_slice(&self.reads[read].places);
        let read = &self.reads[read];
        let primary = (!read.places.is_empty()).then(|| (0, alone(read, 0, job.options)));
        answer.pieces(read, primary, false, job.options);
    }

    /// The answers for a pair; whether it lies as pairs do.
    fn choose(&mut self, job: &Finishing<'_>, first: usize) -> bool {
        self.combine(job, first);
        let options = job.options;
        let reads = [&self.reads[first], &self.reads[first + 1]];
        let best = |read: &Read| read.places.first().map_or(0, |place| place.score);
        let apart = best(reads[0]) + best(reads[1]) - options.unpaired;
        // As bwa: a read of several pieces lies where most of it does, wherever its mate is.
        let whole = reads.iter().all(|read| !in_pieces(read, options));
        let pair = self.combined.first().copied().filter(|pair| whole && pair.score > apart);
        let Some(pair) = pair else {
            for mate in 0..2 {
                self.single(job, mate, first + mate);
            }
            return self.proper(job, first);
        };
        let mut next = self.combined.get(1).map_or(apart, |pair| pair.score.max(apart));
        let step = options.equal + options.differs + 1;
        let near = self.combined[1..].iter().filter(|pair| pair.score >= next - step).count();
        // A place that was not looked at, beside another one of the mate's.
        if reads[0].waiting && reads[1].waiting {
            for mate in 0..2 {
                let (this, other) = (reads[mate], reads[1 - mate]);
                let rivals =
                    quality::rivals(&other.places, usize::from(pair.which[1 - mate]), other.length, options);
                let unseen = quality::likely_unseen(this.joined, this.about.copies, this.length, options);
                next = next.max(unseen + rivals.best.unwrap_or(0));
            }
        }
        // What both mates have many copies of.
        let copied =
            reads.map(|read| quality::copies(read.about.copies)).into_iter().fold(f64::MAX, f64::min)
                * COPIED;
        let of_pair = quality::of_pair(pair.score - next, near as u32, copied, options);
        for (mate, read) in reads.into_iter().enumerate() {
            let which = usize::from(pair.which[mate]);
            let own = alone(read, which, options);
            // A mate lends what it knows, 40 points at most.
            let quality = if own > of_pair { own } else { of_pair.min(own + 40) };
            let quality = quality.min(quality::most(&read.places[which], read.length));
            let answer = &mut self.answers[mate];
            answer.places.clear();
            answer.places.extend_from_slice(&read.places);
            answer.pieces(read, Some((which, quality)), true, options);
        }
        self.proper(job, first)
    }

    /// Whether both answers are of a place that is good enough to be reported, and these lie as mates do.
    fn proper(&self, job: &Finishing<'_>, first: usize) -> bool {
        let primary = |answer: &Answer| answer.pieces.first().map(|piece| answer.places[piece.place]);
        let [Some(a), Some(b)] = self.answers.each_ref().map(primary) else { return false };
        let ends = [first_base(&a, self.reads[first].length), first_base(&b, self.reads[first + 1].length)];
        job.inserts.worth(ends, [a.reverse, b.reverse]).is_some()
            && job.view.contig_at(a.start()) == job.view.contig_at(b.start())
    }
}

/// How many lists are looked at, of some that are sorted by length: one at least, or two where the mates do not fit yet, if they are not too long;
/// then more until many places were looked at, as short lists may be of differences.
fn looked_at(lists: &[Waiting], fitting: bool) -> usize {
    let mut sum = 0;
    for (n, list) in lists.iter().enumerate() {
        let most = match (n, fitting) {
            (0, true) => FITTING_LIST,
            (0 | 1, false) => LONG_LIST,
            _ if sum < FEW_PLACES => FURTHER_LIST,
            _ => MORE_PLACES.saturating_sub(sum),
        };
        if list.places > most {
            return n;
        }
        sum += list.places;
    }
    lists.len()
}

/// Whether a read has places in the primary assembly for different parts of it.
fn in_pieces(read: &Read, options: &Options) -> bool {
    let Some((best, others)) = read.places.split_first() else { return false };
    let piece = |place: &Place| !place.alt && place.score >= options.least;
    others.iter().any(|place| piece(place) && place.elsewhere(best, read.length))
}

fn alone(read: &Read, which: usize, options: &Options) -> i32 {
    let rivals = quality::rivals(&read.places, which, read.length, options);
    let place = &read.places[which];
    quality::alone(place, rivals, &read.about, read.waiting, read.length, options)
        .min(quality::most(place, read.length))
}

impl Answer {
    /// Sets the pieces: the primary place with its quality, the best place of each other part of the read, and what is better on ALT contigs.
    /// If the primary place is too bad to be reported, the best one on an ALT contig is it.
    fn pieces(&mut self, read: &Read, primary: Option<(usize, i32)>, paired: bool, options: &Options) {
        self.pieces.clear();
        self.leaders.clear();
        let places = &self.places;
        let good = |which: usize| places.get(which).is_some_and(|place| place.score >= options.least);
        let assembled = places.partition_point(|place| !place.alt);
        let instead = || good(assembled).then(|| (assembled, alone(read, assembled, options)));
        let primary = primary.filter(|&(which, _)| good(which)).or_else(instead);
        let Some((primary, quality)) = primary else { return };
        let next = |which| quality::rivals(places, which, read.length, options).best.unwrap_or(0);
        let piece = |place, quality: i32| Piece { place, quality: quality as u8, next: next(place), alt: 0 };
        self.pieces.push(piece(primary, quality));
        for (i, place) in places[..assembled].iter().enumerate() {
            let elsewhere = |piece: &Piece| place.elsewhere(&places[piece.place], read.length);
            if place.score >= options.least && self.pieces.iter().all(elsewhere) {
                self.pieces.push(piece(i, alone(read, i, options).min(quality)));
            }
        }
        if assembled == places.len() {
            return;
        }
        self.leaders = leaders(places, read.length);
        for piece in &mut self.pieces {
            let leader = &places[self.leaders[piece.place]];
            piece.alt = if leader.alt && !places[piece.place].alt { leader.score } else { 0 };
        }
        // As bwa: of a pair that lies as mates do, only the best one.
        let most = if paired { assembled + 1 } else { places.len() };
        for (i, place) in places.iter().enumerate().take(most).skip(assembled) {
            if self.leaders[i] == i && i != primary && place.score >= options.least {
                // Its quality says how much better it is than anything else, the primary place included.
                self.pieces.push(piece(i, alone(read, i, options)));
            }
        }
        // What its mate made primary takes the place of a better one.
        let leader = self.leaders[primary];
        if !places[leader].alt && leader != primary {
            for other in self.leaders.iter_mut().filter(|other| **other == leader) {
                *other = primary;
            }
        }
    }
}

/// Of each place the best one of the same bases: where scores are equal, one in the primary assembly.
fn leaders(places: &[Place], length: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&i| (-places[i].score, places[i].alt));
    let (mut leaders, mut found) = (vec![0; places.len()], Vec::new());
    for i in order {
        let leader = found.iter().copied().find(|&leader| !places[i].elsewhere(&places[leader], length));
        leaders[i] = leader.unwrap_or(i);
        if leader.is_none() {
            found.push(i);
        }
    }
    leaders
}

#[cfg(test)]
mod tests;
