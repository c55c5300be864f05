//! Each read alone: from its seeds to its places. Reads go through the stages in groups, and each stage asks for the memory that the next one reads.
//!
//! ```text
//!  letters -> packed -> seeds -> buckets -> places without gaps -> those worth it with gaps -> places of each read
//!                         asks for  asks for       asks for the
//!                         buckets   lists          reference
//! ```

use std::ops::Range;

use genuma_machine::processor::Vectors;

use crate::bases::{Packed, between};
use crate::diagonal::Diagonal;
use crate::gapped::{Aligner, Found, Job};
use crate::index::{Address, Slot, View};
use crate::options::Options;
use crate::place::Place;
use crate::syncmers::{Finder, SEED};
use crate::ungapped::{Masks, WORDS, differences, has_seed, placed, worth};

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
/// Points that a place without gaps has lost when one is likely.
const BAD: i32 = 30;
/// Places of a read that are aligned with gaps.
const GAPPED: usize = 4;
/// Places of a read that are kept.
const MOST: usize = 256;
/// Diagonals whose bases are asked for ahead.
pub(crate) const AHEAD: usize = 16;
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
    /// Places near the best were not kept, as there are too many.
    pub unkept: bool,
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
    pub(crate) fn seeds_of(&self, read: usize) -> &[u16] {
        let (from, to) = self.about[read].seeds;
        &self.seeds[from as usize..to as usize]
    }

    /// The waiting lists of a read.
    pub(crate) fn waiting_of(&self, read: usize) -> &[Waiting] {
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

/// A worker's buffers.
#[derive(Debug, Default)]
pub struct State {
    finder: Finder,
    words: Vec<u64>,
    seeds: Vec<Seed>,
    hits: Vec<Diagonal>,
    /// Those of a read, with those of its short lists.
    more: Vec<Diagonal>,
    lists: Vec<Waiting>,
    /// For each read of a group: where its seeds, hits and lists end.
    ends: Vec<[usize; 3]>,
    /// Of each read of a group, sorted, each once.
    diagonals: Vec<Diagonal>,
    /// Places of one read.
    of_one: Vec<Place>,
    /// Places of all reads before they are settled.
    places: Vec<Place>,
    jobs: Vec<Job>,
    aligner: Aligner,
    laying: Laying,
}

/// Where a read lies if its seed at `at` lies on packed base `place`.
#[inline(always)]
fn diagonal(place: u64, at: u16, length: usize, reverse: bool) -> Diagonal {
    let anchor = if reverse { (length - SEED) as u16 - at } else { at };
    Diagonal::new(place - u64::from(anchor), reverse, anchor)
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

/// Hands the places of a list to `each`, in order. Those on ALT contigs only where the list says so.
#[inline(always)]
pub(crate) fn listed(view: &View<'_>, waiting: &Waiting, length: usize, mut each: impl FnMut(Diagonal)) {
    let list = view.list(waiting.list);
    for reverse in [false, true] {
        let places = list.on(waiting.reverse ^ reverse);
        if waiting.alt || !view.has_alt() {
            places.for_each(|place| each(diagonal(place, waiting.at, length, reverse)));
        } else {
            places
                .filter(|place| !view.is_alt(*place))
                .for_each(|place| each(diagonal(place, waiting.at, length, reverse)));
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
    fn seeds(&mut self, view: &View<'_>, packed: &Packed, reads: Range<usize>) {
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
    fn look_up(&mut self, view: &View<'_>, packed: &Packed, reads: Range<usize>) {
        self.hits.clear();
        self.lists.clear();
        let mut from = 0;
        for (ends, read) in self.ends.iter_mut().zip(reads) {
            let length = packed.length(read);
            for seed in &self.seeds[from..ends[0]] {
                view.slots(seed.address, |slot| match slot {
                    Slot::Place(place, reversed) => {
                        self.hits.push(diagonal(place, seed.at, length, reversed ^ seed.reverse));
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
    fn gather(&mut self, view: &View<'_>, draft: &mut Draft, reads: Range<usize>) {
        self.diagonals.clear();
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
                    listed(view, &list, length, |diagonal| more.push(diagonal));
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
            about.sure = sure(&draft.seeds[from as usize..], waiting, 0..length);
            more.sort_unstable();
            more.dedup_by(|one, other| one.same(*other));
            let first = self.diagonals.len();
            for &diagonal in &*more {
                view.prefetch_bases(diagonal.left(), length);
                self.diagonals.push(diagonal);
            }
            about.places = (first as u32, self.diagonals.len() as u32);
            draft.about.push(about);
        }
    }

    /// Lays reads on their diagonals, without gaps.
    #[inline(always)]
    fn check(&mut self, view: &View<'_>, options: &Options, draft: &mut Draft, reads: Range<usize>) {
        for read in reads {
            let (from, to) = draft.about[read].places;
            let first = self.places.len();
            let diagonals = &self.diagonals[from as usize..to as usize];
            draft.about[read].unkept =
                self.laying.lay(view, options, &draft.packed, read, diagonals, None, &mut self.places);
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
            better(&mut places[found.place as usize], &found);
        });
    }

    /// Puts the places of each read in order and drops those that do not matter.
    #[inline(always)]
    fn settle(&mut self, options: &Options, draft: &mut Draft) {
        for read in 0..draft.about.len() {
            let (from, to) = draft.about[read].places;
            self.of_one.clear();
            self.of_one.extend_from_slice(&self.places[from as usize..to as usize]);
            draft.about[read].unkept |= settled(options, draft.packed.length(read), &mut self.of_one);
            let first = draft.places.len() as u32;
            draft.places.extend_from_slice(&self.of_one);
            draft.about[read].places = (first, draft.places.len() as u32);
        }
    }
}

/// Seeds of some bases of a read that do not overlap and whose lists do not wait.
#[inline(always)]
pub(crate) fn sure(seeds: &[u16], waiting: &[Waiting], bases: Range<usize>) -> u16 {
    let (mut sure, mut end) = (0, bases.start);
    for &at in seeds {
        if usize::from(at) >= end
            && usize::from(at) + SEED <= bases.end
            && waiting.iter().all(|list| list.at != at)
        {
            sure += 1;
            end = usize::from(at) + SEED;
        }
    }
    sure
}

/// Takes what was found with gaps, if it is better.
#[inline(always)]
pub(crate) fn better(place: &mut Place, found: &Found) {
    if found.best.total > place.total {
        let Place { sought, alt, .. } = *place;
        *place = Place { sought, alt, formed: true, ..found.best };
    }
    place.mended |= found.full;
}

/// A diagonal that a read was laid on, what it is worth at most without gaps, and how many bases differ.
#[derive(Debug, Clone, Copy)]
struct Laid {
    diagonal: Diagonal,
    worth: i32,
    differing: u32,
}

/// Buffers for laying reads on diagonals.
#[derive(Debug, Default)]
pub(crate) struct Laying {
    laid: Vec<Laid>,
    /// How many there are of each number of differing bases.
    laid_by_differing: Vec<usize>,
    masks: Masks,
}

impl Laying {
    /// Lays a read on diagonals, which are sorted, without gaps and appends those to `places` that may matter: those that are not far worse than
    /// the best, nor than `best`, which is known where others than these were looked at before. Whether some were left out as there are too many.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn lay(
        &mut self,
        view: &View<'_>,
        options: &Options,
        packed: &Packed,
        read: usize,
        diagonals: &[Diagonal],
        best: Option<i32>,
        places: &mut Vec<Place>,
    ) -> bool {
        let Laying { laid, laid_by_differing, masks } = self;
        let strands = [packed.strand(read, false), packed.strand(read, true)];
        let length = strands[0].length;
        let full = length as i32 * options.equal;
        let (lost, near) = (options.equal + options.differs, NEAR * options.equal);
        let limit = (view.words.len() - WORDS - 2) as u64 * 32;
        let first = places.len();
        // What the best diagonal is worth from end to end: others need not be looked at closely if they cannot come near.
        let mut least = best.unwrap_or(i32::MIN / 2) - near;
        let place = |diagonal: Diagonal| Place {
            left: diagonal.left(),
            reverse: diagonal.reverse(),
            anchor: diagonal.anchor(),
            ..Place::default()
        };
        laid.clear();
        for (i, &diagonal) in diagonals.iter().enumerate() {
            if let Some(ahead) = diagonals.get(i + AHEAD) {
                view.prefetch_bases(ahead.left(), length);
            }
            if diagonal.left() >= limit {
                continue;
            }
            let strand = strands[usize::from(diagonal.reverse())];
            let differing = differences(view.words, diagonal.left(), strand, masks);
            if has_seed(masks, usize::from(diagonal.anchor())) {
                // One on an ALT contig does not push others out.
                if !view.is_alt(diagonal.left() + u64::from(diagonal.anchor())) {
                    least = least.max(full - lost * differing as i32 - near);
                }
                if diagonals.len() == 1 {
                    let mut place = place(diagonal);
                    placed(view, masks, strand, &mut place, false, options);
                    places.push(place);
                    return false;
                }
                let mut most = full - options.equal * differing as i32;
                if best.is_some() && most >= least {
                    most = worth(masks, strand, options);
                }
                laid.push(Laid { diagonal, worth: most, differing });
            }
        }
        let (near_best, mut crowded) = (least, false);
        if laid.len() > MOST {
            // No more are kept, so what these are worth from end to end others have to be, too.
            laid_by_differing.clear();
            laid_by_differing.resize(length + 1, 0);
            let assembled =
                |laid: &&Laid| !view.is_alt(laid.diagonal.left() + u64::from(laid.diagonal.anchor()));
            laid.iter().filter(assembled).for_each(|laid| laid_by_differing[laid.differing as usize] += 1);
            let mut seen = 0;
            let last = laid_by_differing.iter().position(|n| {
                seen += n;
                seen >= MOST
            });
            least = least.max(full - lost * last.unwrap_or(length) as i32);
        }
        let many = laid.len() > 1 && least > full / 2;
        for i in 0..laid.len() {
            let Laid { diagonal, worth, .. } = laid[i];
            let near =
                |other: Option<&Laid>| other.is_some_and(|other| other.diagonal.near(diagonal, NEIGHBOURS));
            let neighbour = near(laid.get(i + 1)) || near(i.checked_sub(1).and_then(|i| laid.get(i)));
            if many && worth < least && !neighbour {
                crowded |= worth >= near_best;
                continue;
            }
            let strand = strands[usize::from(diagonal.reverse())];
            differences(view.words, diagonal.left(), strand, masks);
            let mut place = place(diagonal);
            // Where lists wait nobody knows its neighbours.
            placed(view, masks, strand, &mut place, neighbour || best.is_some(), options);
            places.push(place);
        }
        places[first..].sort_unstable_by_key(|place| (place.alt, -place.total, place.left, place.reverse));
        crowded
    }
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
    let bad = best <= length as i32 * options.equal - BAD * options.equal;
    let mut n = 0;
    for (i, place) in places.iter().enumerate().skip(first) {
        let first_alt = place.alt && i > first && !places[i - 1].alt;
        // Where even the best one is bad, a rival about as good may be the one that a gap mends, wherever that is.
        let mended = bad && place.total >= best - RIVAL * options.equal;
        let rival = i > first && !first_alt && !mended;
        let worth_it = first_alt || mended || place.most >= place.total + WORTH_IT * options.equal;
        if i > first && (!mended && place.most < best - behind || !worth_it) {
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

/// Sorts places, those on ALT contigs behind all others and the best first, and drops those that are forms of a better one, or too bad to
/// matter; says whether others were dropped as there are too many.
#[inline(always)]
pub(crate) fn settled(options: &Options, length: usize, places: &mut Vec<Place>) -> bool {
    if places.len() < 2 {
        return false;
    }
    places.sort_unstable_by_key(|place| (place.alt, -place.score, place.left, place.reverse));
    let near = places[0].score - KEPT * options.equal;
    let (mut kept, mut gapped, mut crowded) = (0, false, false);
    for i in 0..places.len() {
        let place = places[i];
        // Those of other bases of the read are held against the best one of these.
        let same = |other: &&Place| !place.elsewhere(other, length);
        let matters = place.score >= near
            || place.score >= options.least
                && places[..kept]
                    .iter()
                    .find(same)
                    .is_none_or(|best| place.score >= best.score - KEPT * options.equal);
        // One found beside its mate says more than one among many.
        let room = kept < MOST || place.sought;
        if !matters || !room {
            crowded |= matters;
            continue;
        }
        // Seeds give each diagonal once.
        let gaps = place.formed;
        let form = (gapped || gaps || place.sought) && places[..kept].iter().any(|other| other.alike(&place));
        if !form {
            places[kept] = place;
            kept += 1;
            gapped |= gaps || place.sought;
        }
    }
    places.truncate(kept);
    crowded
}
