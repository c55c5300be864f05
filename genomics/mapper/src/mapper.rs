//! Each read alone: from its seeds to its places. Reads go through the stages in groups, and each stage asks for the memory that the next one reads.
//!
//! ```text
//!  letters -> packed -> seeds -> buckets -> places without gaps -> those worth it with gaps -> places of each read
//!                         asks for  asks for       asks for the
//!                         buckets   lists          reference
//! ```

use genuma_machine::processor::Vectors;

use crate::bases::{Packed, between};
use crate::gapped::{Aligner, Job};
use crate::index::{Address, Slot, View};
use crate::options::Options;
use crate::place::Place;
use crate::syncmers::{Finder, SEED};
use crate::ungapped::{Masks, WORDS, differences, has_seed, placed};

/// Reads that go through the stages together.
const GROUP: usize = 64;
/// Places of lists that are looked at before mates are, in all; lists of `SHORT_LIST` and fewer are always.
const FIRST_PLACES: usize = 16;
const SHORT_LIST: usize = 12;
/// Points behind the best that a place may be and still matter.
const NEAR: i32 = 25;
const KEPT: i32 = 30;
/// Points behind the best that a rival could be with gaps and matter, and fewest points it could gain.
const RIVAL: i32 = 10;
const WORTH_IT: i32 = 10;
/// Places of a read that are aligned with gaps.
const GAPPED: usize = 4;
/// Places of a read that are kept.
const MOST: usize = 256;
/// Longest list of which the places on ALT contigs are counted; hits of a read up to which they are looked at.
const COUNTED: usize = 600;
const WITH_ALT: usize = 400;
/// Diagonals this near may belong to one alignment (bp).
const NEIGHBOURS: u64 = 150;

/// A list of a seed whose places were too many to be looked at one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Where in the index it begins.
    pub list: u32,
    /// Its places: those in the primary assembly, unless there are very many.
    pub places: u32,
    /// Those on ALT contigs are to be looked at, too.
    pub alt: bool,
    /// Where the seed begins in the read.
    pub at: u16,
    /// The seed's reverse complement was hashed.
    pub reverse: bool,
}

/// What is known of a read besides its places.
#[derive(Debug, Clone, Copy, Default)]
pub struct About {
    /// Its places among those of all reads.
    pub places: (u32, u32),
    /// Its waiting lists among those of all.
    pub waiting: (u32, u32),
    /// Where its seeds begin, among those of all.
    pub seeds: (u32, u32),
    /// How often the seed in the middle of all, by frequency, stands in the reference: about so many near copies there are.
    pub copies: u32,
    /// Seeds that do not overlap and of which all places were looked at: a place not found has a difference in each.
    pub sure: u16,
}

/// What mapping leaves of some reads.
#[derive(Debug, Default)]
pub struct Draft {
    /// The reads.
    pub packed: Packed,
    /// Of each read.
    pub about: Vec<About>,
    /// Of each read those of the primary assembly, the best first, then those on ALT contigs, the best first.
    pub places: Vec<Place>,
    /// Lists of each read, the shortest first.
    pub waiting: Vec<Waiting>,
    /// Where the seeds of each read begin.
    pub seeds: Vec<u16>,
    /// Operations of all alignments with gaps.
    pub cigars: Vec<u32>,
}

impl Draft {
    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.packed.clear();
        self.about.clear();
        self.places.clear();
        self.waiting.clear();
        self.seeds.clear();
        self.cigars.clear();
    }

    /// The places of a read.
    pub fn of(&self, read: usize) -> &[Place] {
        let (from, to) = self.about[read].places;
        &self.places[from as usize..to as usize]
    }

    /// Where the seeds of a read begin.
    pub fn seeds_of(&self, read: usize) -> &[u16] {
        let (from, to) = self.about[read].seeds;
        &self.seeds[from as usize..to as usize]
    }

    /// The waiting lists of a read.
    pub fn waiting_of(&self, read: usize) -> &[Waiting] {
        let (from, to) = self.about[read].waiting;
        &self.waiting[from as usize..to as usize]
    }
}

#[derive(Debug, Clone, Copy)]
struct Seed {
    address: Address,
    at: u16,
    reverse: bool,
}

/// A place that a seed says, before anything was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    reverse: bool,
    /// Packed base of base 0 of the read.
    left: u64,
    anchor: u16,
}

/// A worker's buffers.
#[derive(Debug, Default)]
pub struct State {
    finder: Finder,
    words: Vec<u64>,
    seeds: Vec<Seed>,
    hits: Vec<Hit>,
    /// Those of a read, with those of its short lists.
    more: Vec<Hit>,
    lists: Vec<Waiting>,
    /// For each read of a group: where its seeds, hits and lists end.
    ends: Vec<[usize; 3]>,
    candidates: Vec<Place>,
    of_one: Vec<Place>,
    /// Places of all reads before they are settled.
    places: Vec<Place>,
    jobs: Vec<Job>,
    aligner: Aligner,
    masks: Masks,
}

/// Where base 0 of a read lies if its seed at `at` lies on packed base `place`.
#[inline(always)]
fn left(place: u64, at: u16, length: usize, reverse: bool) -> (u64, u16) {
    let anchor = if reverse { (length - SEED) as u16 - at } else { at };
    (place - u64::from(anchor), anchor)
}

/// Places of a list in the primary assembly; all of a long one.
#[inline(always)]
fn assembled(view: &View<'_>, list: u32) -> usize {
    let list = view.list(list);
    let all = list.len();
    if !view.has_alt() || all > COUNTED {
        return all;
    }
    all - list.on(false).chain(list.on(true)).filter(|&place| view.is_alt(place)).count()
}

/// Hands the places of a list to `each`, first those forwards: diagonal, whether the read lies reversed, its anchor. Those on ALT contigs only
/// where the list says so.
#[inline(always)]
pub(crate) fn listed(
    view: &View<'_>,
    waiting: &Waiting,
    length: usize,
    mut each: impl FnMut(u64, bool, u16),
) {
    let list = view.list(waiting.list);
    for reverse in [false, true] {
        for place in list.on(waiting.reverse ^ reverse) {
            if !waiting.alt && view.is_alt(place) {
                continue;
            }
            let (left, anchor) = left(place, waiting.at, length, reverse);
            each(left, reverse, anchor);
        }
    }
}

/// Finds the places of reads, each alone. Reads are at most [`crate::options::LONGEST`] long.
pub fn map<'a>(
    view: &View<'_>,
    options: &Options,
    vectors: Vectors,
    state: &mut State,
    reads: impl Iterator<Item = &'a [u8]>,
    draft: &mut Draft,
) {
    draft.clear();
    state.places.clear();
    vectors.run(
        #[inline(always)]
        || {
            for read in reads {
                draft.packed.push(read);
            }
            for first in (0..draft.packed.len()).step_by(GROUP) {
                let last = (first + GROUP).min(draft.packed.len());
                state.seeds(view, &draft.packed, first..last);
                state.look_up(view, &draft.packed, first..last);
                state.gather(view, draft, first..last);
                state.check(view, options, draft, first..last);
            }
            state.with_gaps(view, options, draft);
            state.settle(options, draft);
        },
    );
}

impl State {
    /// Finds seeds, asks for their buckets.
    #[inline(always)]
    fn seeds(&mut self, view: &View<'_>, packed: &Packed, reads: std::ops::Range<usize>) {
        self.seeds.clear();
        self.ends.clear();
        for read in reads {
            let strand = packed.strand(read, false);
            self.words.clear();
            self.words.extend_from_slice(strand.words);
            self.words.extend([0; 2]);
            let seeds = &mut self.seeds;
            self.finder.find(&self.words, 0, strand.length, |seed| {
                let at = seed.at as usize;
                if !strand.odd.is_empty() {
                    let touched =
                        (at / 32..strand.odd.len()).any(|i| strand.odd[i] & between(i, at, at + SEED) != 0);
                    if touched {
                        return;
                    }
                }
                let address = view.address(seed.hash);
                view.prefetch(address);
                seeds.push(Seed { address, at: at as u16, reverse: seed.reverse });
            });
            self.ends.push([self.seeds.len(), 0, 0]);
        }
    }

    /// Looks buckets up, asks for lists.
    #[inline(always)]
    fn look_up(&mut self, view: &View<'_>, packed: &Packed, reads: std::ops::Range<usize>) {
        self.hits.clear();
        self.lists.clear();
        let mut from = 0;
        for (ends, read) in self.ends.iter_mut().zip(reads) {
            let length = packed.length(read);
            for seed in &self.seeds[from..ends[0]] {
                view.slots(seed.address, |slot| match slot {
                    Slot::Place(place, reversed) => {
                        let reverse = reversed ^ seed.reverse;
                        let (left, anchor) = left(place, seed.at, length, reverse);
                        self.hits.push(Hit { left, reverse, anchor });
                    }
                    Slot::List(list) => {
                        view.prefetch_list(list);
                        self.lists.push(Waiting {
                            list,
                            places: 0,
                            alt: false,
                            at: seed.at,
                            reverse: seed.reverse,
                        });
                    }
                });
            }
            from = ends[0];
            *ends = [ends[0], self.hits.len(), self.lists.len()];
        }
    }

    /// Reads short lists, gathers diagonals, asks for the reference there.
    #[inline(always)]
    fn gather(&mut self, view: &View<'_>, draft: &mut Draft, reads: std::ops::Range<usize>) {
        self.candidates.clear();
        let mut before = [0; 3];
        let more = &mut self.more;
        for (ends, read) in self.ends.iter().zip(reads) {
            let length = draft.packed.length(read);
            let seeds = &self.seeds[before[0]..ends[0]];
            let lists = &mut self.lists[before[2]..ends[2]];
            more.clear();
            more.extend_from_slice(&self.hits[before[1]..ends[1]]);
            before = *ends;
            let mut about = About::default();
            let mut read_lists = 0;
            if !lists.is_empty() {
                for list in &mut *lists {
                    list.places = assembled(view, list.list) as u32;
                }
                lists.sort_unstable_by_key(|list| (list.places, list.at));
                let frequent = seeds.len() / 2 + lists.len();
                about.copies = frequent
                    .checked_sub(seeds.len())
                    .and_then(|i| lists.get(i))
                    .map_or(0, |list| list.places);
                let mut sum = 0;
                for list in &*lists {
                    let n = list.places as usize;
                    if n > SHORT_LIST && sum + n > FIRST_PLACES {
                        break;
                    }
                    sum += n;
                    let list = Waiting { alt: more.len() < WITH_ALT, ..*list };
                    listed(view, &list, length, |left, reverse, anchor| {
                        more.push(Hit { left, reverse, anchor })
                    });
                    read_lists += 1;
                }
            }
            let waiting = &lists[read_lists..];
            let from = draft.waiting.len() as u32;
            draft.waiting.extend_from_slice(waiting);
            about.waiting = (from, draft.waiting.len() as u32);
            let from = draft.seeds.len() as u32;
            draft.seeds.extend(seeds.iter().map(|seed| seed.at));
            about.seeds = (from, draft.seeds.len() as u32);
            about.sure = sure(&draft.seeds[from as usize..], waiting);
            let first = self.candidates.len();
            gathered(view, more, &mut self.candidates);
            about.places = (first as u32, self.candidates.len() as u32);
            draft.about.push(about);
        }
    }

    /// Lays reads on their diagonals, without gaps.
    #[inline(always)]
    fn check(
        &mut self,
        view: &View<'_>,
        options: &Options,
        draft: &mut Draft,
        reads: std::ops::Range<usize>,
    ) {
        for read in reads {
            let (from, to) = draft.about[read].places;
            let first = self.places.len();
            self.of_one.clear();
            self.of_one.extend_from_slice(&self.candidates[from as usize..to as usize]);
            let (candidates, masks) = (&mut self.of_one, &mut self.masks);
            without_gaps(view, options, &draft.packed, read, candidates, None, masks, &mut self.places);
            jobs(
                options,
                read,
                draft.packed.length(read),
                &self.places,
                first,
                RIVAL * options.equal,
                &mut self.jobs,
            );
            draft.about[read].places = (first as u32, self.places.len() as u32);
        }
    }

    #[inline(always)]
    fn with_gaps(&mut self, view: &View<'_>, options: &Options, draft: &mut Draft) {
        let (packed, places) = (&draft.packed, &mut self.places);
        let strand = |read, reverse| packed.strand(read as usize, reverse);
        self.aligner.align(view, options, &mut self.jobs, &mut draft.cigars, strand, |found| {
            better(&mut places[found.place as usize], found.best);
        });
    }

    /// Puts the places of each read in order and drops those that do not matter.
    #[inline(always)]
    fn settle(&mut self, options: &Options, draft: &mut Draft) {
        for read in 0..draft.about.len() {
            let (from, to) = draft.about[read].places;
            self.candidates.clear();
            self.candidates.extend_from_slice(&self.places[from as usize..to as usize]);
            settled(options, draft.packed.length(read), &mut self.candidates);
            let first = draft.places.len() as u32;
            draft.places.extend_from_slice(&self.candidates);
            draft.about[read].places = (first, draft.places.len() as u32);
        }
    }
}

/// Seeds that do not overlap and whose lists do not wait.
#[inline(always)]
pub(crate) fn sure(seeds: &[u16], waiting: &[Waiting]) -> u16 {
    let (mut sure, mut end) = (0, 0);
    for &at in seeds {
        if usize::from(at) >= end && waiting.iter().all(|list| list.at != at) {
            sure += 1;
            end = usize::from(at) + SEED;
        }
    }
    sure
}

/// Takes what was found with gaps, if it is better.
#[inline(always)]
pub(crate) fn better(place: &mut Place, found: Place) {
    if found.total > place.total {
        let Place { differing, votes, alt, .. } = *place;
        *place = Place { differing, votes, alt, formed: true, ..found };
    }
}

/// Hits to places, each diagonal once.
#[inline(always)]
fn gathered(view: &View<'_>, hits: &mut [Hit], places: &mut Vec<Place>) {
    let first = places.len();
    let sorted = hits.len() > 32;
    if sorted {
        hits.sort_unstable();
    }
    'hits: for hit in hits {
        let same = |place: &Place| place.left == hit.left && place.reverse == hit.reverse;
        let known = &mut places[first..];
        if let Some(last) = known.last_mut()
            && same(last)
        {
            last.votes += 1;
            continue;
        }
        if !sorted {
            for place in known {
                if same(place) {
                    place.votes += 1;
                    continue 'hits;
                }
            }
        }
        view.prefetch_bases(hit.left);
        places.push(Place {
            left: hit.left,
            reverse: hit.reverse,
            anchor: hit.anchor,
            votes: 1,
            ..Place::default()
        });
    }
}

/// Lays a read on diagonals and appends those to `places` that may matter: those that are not far worse than the best, nor than `best`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn without_gaps(
    view: &View<'_>,
    options: &Options,
    packed: &Packed,
    read: usize,
    candidates: &mut Vec<Place>,
    best: Option<i32>,
    masks: &mut Masks,
    places: &mut Vec<Place>,
) {
    let strands = [packed.strand(read, false), packed.strand(read, true)];
    let length = strands[0].length;
    let full = length as i32 * options.equal;
    let (lost, near) = (options.equal + options.differs, NEAR * options.equal);
    let limit = (view.words.len() - WORDS - 2) as u64 * 32;
    let first = places.len();
    // What the best diagonal is worth from end to end: others need not be looked at closely if they cannot come near.
    let mut least = best.unwrap_or(i32::MIN / 2) - near;
    for i in 0..candidates.len() {
        let candidate = &mut candidates[i];
        candidate.differing = u16::MAX;
        if candidate.left >= limit {
            continue;
        }
        let strand = strands[usize::from(candidate.reverse)];
        let differing = differences(view.words, candidate.left, strand, masks);
        if has_seed(masks, usize::from(candidate.anchor)) {
            candidate.differing = differing as u16;
            // One on an ALT contig does not push others out.
            if !view.is_alt(candidate.left + u64::from(candidate.anchor)) {
                least = least.max(full - lost * differing as i32 - near);
            }
            if candidates.len() == 1 {
                let mut place = candidates[0];
                placed(view, masks, strand, &mut place, false, options);
                places.push(place);
                return;
            }
        }
    }
    candidates.retain(|place| place.differing != u16::MAX);
    candidates.sort_unstable_by_key(|place| (place.reverse, place.left));
    let many = candidates.len() > 1 && least > full / 2;
    for i in 0..candidates.len() {
        let mut place = candidates[i];
        let most = full - options.equal * i32::from(place.differing);
        let neighbour = {
            let near = |other: Option<&Place>| {
                other.is_some_and(|other| {
                    other.reverse == place.reverse && other.left.abs_diff(place.left) <= NEIGHBOURS
                })
            };
            near(candidates.get(i + 1)) || near(i.checked_sub(1).and_then(|i| candidates.get(i)))
        };
        if many && most < least && !neighbour {
            continue;
        }
        let strand = strands[usize::from(place.reverse)];
        differences(view.words, place.left, strand, masks);
        // Where lists wait nobody knows its neighbours.
        placed(view, masks, strand, &mut place, neighbour || best.is_some(), options);
        places.push(place);
    }
    places[first..].sort_unstable_by_key(|place| (place.alt, -place.total, place.left, place.reverse));
}

/// Asks for alignments with gaps where they may be better: of the places from `first` on, which are sorted. The best one on an ALT contig is
/// aligned as the best of all is.
#[inline(always)]
pub(crate) fn jobs(
    options: &Options,
    read: usize,
    length: usize,
    places: &[Place],
    first: usize,
    behind: i32,
    jobs: &mut Vec<Job>,
) {
    let best = |places: &[Place]| places.first().map_or(i32::MIN / 2, |place| place.total);
    let best = best(&places[first..]);
    let mut n = 0;
    for (i, place) in places.iter().enumerate().skip(first) {
        let first_alt = place.alt && i > first && !places[i - 1].alt;
        let rival = i > first && !first_alt;
        let worth_it = first_alt || place.most >= place.total + WORTH_IT * options.equal;
        if i > first && (place.most < best - behind || !worth_it) {
            continue;
        }
        // Another diagonal of the same alignment, which the wider band of a better one has.
        let known = (places[first..i].iter())
            .any(|other| other.reverse == place.reverse && other.left.abs_diff(place.left) < 8);
        if known {
            continue;
        }
        jobs.extend(Job::new(read as u32, i as u32, place, length, rival, options));
        n += 1;
        if n == GAPPED {
            break;
        }
    }
}

/// Sorts places, those on ALT contigs behind all others and the best first, and drops those that are forms of a better one, or too bad to matter.
#[inline(always)]
pub(crate) fn settled(options: &Options, length: usize, places: &mut Vec<Place>) {
    if places.len() < 2 {
        return;
    }
    places.sort_unstable_by_key(|place| (place.alt, -place.score, place.left, place.reverse));
    let near = places[0].score - KEPT * options.equal;
    let (mut kept, mut gapped) = (0, false);
    for i in 0..places.len() {
        let place = places[i];
        let elsewhere = |other: &Place| place.elsewhere(other, length);
        let matters =
            place.score >= near || place.score >= options.least && places[..kept].iter().all(elsewhere);
        // One found beside its mate says more than one among many.
        let room = kept < MOST || place.votes == 0;
        if !matters || !room {
            continue;
        }
        // Seeds give each diagonal once.
        let gaps = place.formed;
        let form =
            (gapped || gaps || place.votes == 0) && places[..kept].iter().any(|other| other.alike(&place));
        if !form {
            places[kept] = place;
            kept += 1;
            gapped |= gaps || place.votes == 0;
        }
    }
    places.truncate(kept);
}
