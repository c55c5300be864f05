//! Mates together: places that only a mate makes likely, mates looked for where they should be, and which pair of places it is.

mod answer;

use genuma_machine::processor::Vectors;

use crate::diagonal::Diagonal;
use crate::gapped::Job;
use crate::index::View;
use crate::insert::{Inserts, first_base};
use crate::join::{Joiner, Mate, looked_at, looked_at_alone};
use crate::mapper::{AHEAD, About, Draft, Laying, better, jobs, listed, settled, sure};
use crate::options::Options;
use crate::place::Place;
use crate::quality;
use crate::ungapped::{Masks, differences, placed, scan};

pub use answer::{Answer, Piece};
use answer::{alone, in_pieces, most};

/// Share of the copies' penalty that a pair pays.
const COPIED: f64 = 0.7;
/// Differences that a pair has that fits.
const FITTING: i32 = 6;
/// Places of a read that are held against all of its mate.
const FEW: usize = 4;
/// Joined places that wait for the reference before they are looked at; lists that are asked for ahead.
const TOGETHER: usize = 64;
const LISTS: usize = 3;
/// Points that a read alone is better than anything unseen and needs no further look.
const SURE: i32 = 14;
/// Points behind the best that a joined place could be with gaps and matter: its mate may make up for them.
const BEHIND: i32 = 15;
/// Places that are looked at of a read without any.
const SAMPLED: usize = 64;
/// Places of a read whose mate is looked for.
const RESCUERS: usize = 8;
/// Least score of a read whose mate is looked for.
const RESCUER: i32 = 40;
/// Points behind the best pair that still matter.
const NEAR: i32 = 24;
/// Points that a place of the best pair has lost when it is aligned with gaps, if it was not before.
const MENDED: i32 = 20;
/// Longest stretch in which a mate is looked for (bp).
const WINDOW: u64 = 20_000;

/// A read with its places: those of the primary assembly, the best first, then those on ALT contigs.
#[derive(Debug, Default, Clone)]
struct Read {
    places: Vec<Place>,
    /// Lists that were not looked at.
    waiting: bool,
    /// Alignments with gaps were asked for, which know its places by their numbers.
    asked: bool,
    /// Of its places a sample was looked at.
    sampled: bool,
    /// Places that its mate made likely and that were not looked at.
    unjoined: bool,
    /// Lists that mattered for it alone and were too long.
    unread: bool,
    /// Places near the best that were not kept.
    unkept: bool,
    /// Seeds that count as looked at, see [`About::sure`].
    about: About,
    /// The same for pairs, whose places were looked at only where both mates have one.
    joined: u16,
    length: usize,
    /// Which of the draft's it is.
    number: usize,
}

impl Read {
    /// Puts its places in order.
    #[inline(always)]
    fn settle(&mut self, options: &Options) {
        self.unkept |= settled(options, self.length, &mut self.places);
    }
}

/// A pair of places: what it scores, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Combined {
    score: i32,
    which: [u16; 2],
}

/// How many reads have places that nobody looked at, or kept; their qualities count on such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Reads of any of these kinds.
    pub reads: u64,
    /// All of whose seeds stand in so many places that a sample of those was looked at.
    pub sampled: u64,
    /// With more places beside those of the mate than are looked at, or seeds in too many to see which are.
    pub joined: u64,
    /// Without a mate that fits, and with seeds in too many places to look at all, of which one could matter.
    pub lists: u64,
    /// With more places near the best one than are kept.
    pub places: u64,
}

/// A worker's buffers.
#[derive(Debug, Default)]
pub struct State {
    /// What was left out, of all reads so far.
    pub unseen: Unseen,
    reads: Vec<Read>,
    combined: Vec<Combined>,
    joiner: Joiner,
    diagonals: Vec<Diagonal>,
    /// What pairs joined and was not looked at, and up to where it is whose.
    pending: Vec<Diagonal>,
    readers: Vec<(usize, usize)>,
    jobs: Vec<Job>,
    aligner: crate::gapped::Aligner,
    laying: Laying,
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
                    state.look_if_many(&job, draft);
                }
                state.look_at_pending(&job, draft);
            }
            let mates = if paired { 2 } else { 1 };
            for first in (0..draft.about.len()).step_by(mates) {
                State::prefetch(&job, draft, first + 4);
                if !paired || state.apart(&job, draft, first) {
                    (first..first + mates).for_each(|read| state.further(&job, draft, read));
                    state.look_if_many(&job, draft);
                }
            }
            state.look_at_pending(&job, draft);
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
    state.count(draft.about.len());
    if !paired {
        for read in 0..draft.about.len() {
            state.single(&job, draft, 0, read);
            each(draft, read, &state.answers[..1], false)?;
        }
        return Ok(());
    }
    for first in (0..draft.about.len()).step_by(2) {
        let proper = state.choose(&job, draft, first);
        each(draft, first, &state.answers, proper)?;
    }
    Ok(())
}

impl State {
    fn count(&mut self, reads: usize) {
        let State { unseen, reads: all, .. } = self;
        for read in &all[..reads] {
            unseen.reads += u64::from(read.sampled || read.unjoined || read.unread || read.unkept);
            unseen.sampled += u64::from(read.sampled);
            unseen.joined += u64::from(read.unjoined);
            unseen.lists += u64::from(read.unread);
            unseen.places += u64::from(read.unkept);
        }
    }

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
            (read.asked, read.sampled, read.unjoined, read.unread) = (false, false, false, false);
            read.unkept = read.about.unkept;
            read.length = draft.packed.length(i);
            read.number = i;
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
        let lists = [0, 1].map(|mate| {
            let lists = draft.waiting_of(first + mate);
            lists.split_at(looked_at(lists, fitting))
        });
        for (mate, (_, others)) in lists.iter().enumerate() {
            let i = first + mate;
            self.reads[i].joined = sure(draft.seeds_of(i), others, 0..self.reads[i].length);
        }
        let State { reads, joiner, pending, readers, .. } = self;
        let mates = [0, 1].map(|mate| {
            let read = &reads[first + mate];
            Mate { places: &read.places, lists: lists[mate].0, length: read.length }
        });
        let more = joiner.join(job.view, job.inserts, mates);
        for mate in 0..2 {
            let found = joiner.found(mate);
            reads[first + mate].unjoined =
                more[mate] || lists[mate].0.is_empty() && !lists[mate].1.is_empty();
            for diagonal in found.iter().take(AHEAD) {
                job.view.prefetch_bases(diagonal.left(), reads[first + mate].length);
            }
            pending.extend_from_slice(found);
            readers.push((first + mate, pending.len()));
        }
    }

    /// Whether the mates of a pair, of which one at least has waiting lists, do not lie as mates do.
    #[inline(always)]
    fn apart(&mut self, job: &Finishing<'_>, draft: &Draft, first: usize) -> bool {
        if draft.waiting_of(first).is_empty() && draft.waiting_of(first + 1).is_empty() {
            return false;
        }
        self.combine(job, first);
        let best = |i: usize| self.reads[i].places.first().map_or(0, |place| place.score);
        let apart = best(first) + best(first + 1) - job.options.unpaired;
        self.combined.first().is_none_or(|pair| pair.score <= apart)
    }

    /// Where a read without a mate may have a place in its lists that matters: looks for it in those that are not too long.
    #[inline(always)]
    fn further(&mut self, job: &Finishing<'_>, draft: &Draft, i: usize) {
        let State { reads, joiner, pending, readers, .. } = self;
        let read = &mut reads[i];
        let lists = draft.waiting_of(i);
        if lists.is_empty() {
            return;
        }
        let unseen = quality::unseen(read.about.sure + 1, read.length, job.options);
        let wanted = match &read.places[..] {
            [] => true,
            // Two that are equal to the reference.
            [best, next, ..] if best.score == next.score && best.score > unseen => false,
            [best, ..] => best.score - SURE * job.options.equal < unseen,
        };
        if !wanted {
            return;
        }
        let n = looked_at_alone(lists);
        read.unread = n < lists.len();
        if n == 0 {
            return;
        }
        read.about.sure = sure(draft.seeds_of(i), &lists[n..], 0..read.length);
        read.waiting = read.unread;
        let mate = Mate { places: &read.places, lists: &lists[..n], length: read.length };
        joiner.all(job.view, mate);
        let found = joiner.found(0);
        for diagonal in found.iter().take(AHEAD) {
            job.view.prefetch_bases(diagonal.left(), read.length);
        }
        pending.extend_from_slice(found);
        readers.push((i, pending.len()));
    }

    #[inline(always)]
    fn look_if_many(&mut self, job: &Finishing<'_>, draft: &Draft) {
        if self.pending.len() >= TOGETHER {
            self.look_at_pending(job, draft);
        }
    }

    /// Looks at what pairs joined, the reference having had time to come.
    #[inline(always)]
    fn look_at_pending(&mut self, job: &Finishing<'_>, draft: &Draft) {
        let mut from = 0;
        for n in 0..self.readers.len() {
            let (read, to) = self.readers[n];
            self.diagonals.clear();
            self.diagonals.extend_from_slice(&self.pending[from..to]);
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
        self.diagonals.clear();
        let mut n = 0;
        listed(job.view, list, self.reads[i].length, |diagonal| {
            if n % step == 0 {
                self.diagonals.push(diagonal);
            }
            n += 1;
        });
        self.reads[i].waiting = true;
        self.reads[i].sampled = step > 1;
        self.look(job, draft, i);
    }

    /// Looks at the diagonals of a read and adds those that matter.
    #[inline(always)]
    fn look(&mut self, job: &Finishing<'_>, draft: &Draft, i: usize) {
        let read = &mut self.reads[i];
        let best = read.places.first().map_or(i32::MIN / 2, |place| place.score);
        let first = read.places.len();
        let (packed, diagonals) = (&draft.packed, &self.diagonals);
        read.unkept |=
            self.laying.lay(job.view, job.options, packed, i, diagonals, Some(best), &mut read.places);
        jobs(job.options, i, read.length, &read.places, first, BEHIND * job.options.equal, &mut self.jobs);
        read.asked |= self.jobs.last().is_some_and(|job| job.read as usize == i);
        if !read.asked {
            read.settle(job.options);
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
            better(&mut reads[found.read as usize].places[found.place as usize], &found);
        });
        for i in touched {
            let read = &mut reads[i as usize];
            read.asked = false;
            read.places.retain(|place| !place.sought || place.score >= job.options.least);
            read.settle(job.options);
        }
    }

    /// Looks for mates where they should be.
    #[inline(always)]
    fn rescue(&mut self, job: &Finishing<'_>, draft: &Draft, first: usize) {
        self.combine(job, first);
        let mending = self.mend(job, first);
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
            let asked = mending[1 - mate] || self.jobs.len() > begun;
            if !asked && self.reads[y].places.len() > known {
                self.reads[y].places.retain(|place| !place.sought || place.score >= options.least);
                self.reads[y].settle(options);
            }
        }
    }

    /// Asks for the places of the best pair, of those combined, to be aligned with gaps, if they were but rivals before their mates spoke for them.
    /// Says of which mates.
    #[inline(always)]
    fn mend(&mut self, job: &Finishing<'_>, first: usize) -> [bool; 2] {
        let Some(pair) = self.combined.first() else { return [false; 2] };
        let options = job.options;
        [0, 1].map(|mate| {
            let (read, which) = (&self.reads[first + mate], usize::from(pair.which[mate]));
            let place = &read.places[which];
            let full = read.length as i32 * options.equal;
            if place.mended || place.total > full - MENDED * options.equal {
                return false;
            }
            let asked = Job::new((first + mate) as u32, which as u32, place, read.length, false, options);
            self.jobs.extend(asked);
            asked.is_some()
        })
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
                    let mut place =
                        Place { left, reverse, anchor: length as u16 / 2, sought: true, ..Place::default() };
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
    fn single(&mut self, job: &Finishing<'_>, draft: &Draft, answer: usize, read: usize) {
        let answer = &mut self.answers[answer];
        answer.places.clear();
        answer.places.extend_from_slice(&self.reads[read].places);
        let read = &self.reads[read];
        let primary = (!read.places.is_empty()).then(|| (0, alone(draft, read, 0, job.options)));
        answer.pieces(draft, read, primary, false, job.options);
    }

    /// The answers for a pair; whether it lies as pairs do.
    fn choose(&mut self, job: &Finishing<'_>, draft: &Draft, first: usize) -> bool {
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
                self.single(job, draft, mate, first + mate);
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
            let own = alone(draft, read, which, options);
            // A mate lends what it knows, 40 points at most.
            let quality = if own > of_pair { own } else { of_pair.min(own + 40) };
            let quality = quality.min(most(read, which, options));
            let answer = &mut self.answers[mate];
            answer.places.clear();
            answer.places.extend_from_slice(&read.places);
            answer.pieces(draft, read, Some((which, quality)), true, options);
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

#[cfg(test)]
mod tests;
