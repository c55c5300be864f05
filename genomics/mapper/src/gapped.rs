//! Alignments with gaps: the best local alignment within a band, many reads at once.
//!
//! Affine gaps (Gotoh 1982) in a band of diagonals; a read that is not aligned to an end loses points. Thirty-two reads go through the same cells
//! together, one in each lane of a vector (Rognes and Seeberg 2000; Farrar 2007 has the other ways), so no cell waits for its neighbour. How
//! wide the band is follows from what is to be beaten: a gap that costs more than the alignment without gaps loses cannot help.

use crate::bases::{Strand, WORD};
use crate::index::View;
use crate::options::{AMBIGUOUS, Options};
use crate::place::Place;

/// Reads that are aligned together.
const LANES: usize = 32;
/// Longest gap that is looked for.
pub const LONGEST_GAP: i32 = 35;
/// No score at all.
const NONE: i16 = -20_000;
/// What a base of a read is that is none, and one of the reference where it has none.
const ODD: i16 = 4;
const OUTSIDE: i16 = 8;

type Lanes = [i16; LANES];

// Where the best score of a cell comes from.
const DIAGONAL: u8 = 0;
const DELETION: u8 = 1;
const INSERTION: u8 = 2;
const START: u8 = 3;
const FROM: u8 = 3;
/// The gap that ends here is longer than one base.
const LONGER_DELETION: u8 = 4;
const LONGER_INSERTION: u8 = 8;

/// A place that may be better with gaps.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Whose place, and which: numbers of the caller's.
    pub read: u32,
    /// See above.
    pub place: u32,
    /// The packed base at which base 0 of the read would lie on the first diagonal of the band.
    at: u64,
    anchor: u16,
    reverse: bool,
    length: u16,
    width: u8,
    /// All that could be better is in its band.
    full: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// See [`Job::read`].
    pub read: u32,
    /// See [`Job::place`].
    pub place: u32,
    /// Where it lies now; its operations are in the list that was handed over.
    pub best: Place,
    /// Nothing better lies near.
    pub full: bool,
}

impl Job {
    /// What is to be done for a place to find all alignments that are better than it is; none where gaps cannot help. Of a rival only
    /// those with one gap at each end.
    #[inline(always)]
    pub fn new(
        read: u32,
        number: u32,
        place: &Place,
        length: usize,
        rival: bool,
        options: &Options,
    ) -> Option<Job> {
        let mut lost = length as i32 * options.equal - place.total;
        if rival {
            lost = lost.min(place.most - place.total + 2 * options.cheapest_gap());
        }
        let [deletion, insertion] = options.longest_gaps(lost).map(|gap| gap.min(LONGEST_GAP));
        if deletion + insertion == 0 {
            return None;
        }
        // A diagonal on each side: the gaps, turned round, for bases before the anchor.
        let side = deletion.max(insertion);
        let width = (2 * side + 1) as usize;
        Some(Job {
            read,
            place: number,
            at: place.left - side as u64,
            anchor: place.anchor,
            reverse: place.reverse,
            length: length as u16,
            width: width as u8,
            full: !rival,
        })
    }
}

/// Buffers.
#[derive(Debug, Default)]
pub struct Aligner {
    /// Bases of the reads, row by row; of the reference; what a differing base costs each row.
    read: Vec<Lanes>,
    reference: Vec<Lanes>,
    differs: Vec<Lanes>,
    /// Best scores of the row before, and of those that end with an insertion.
    best: Vec<Lanes>,
    insertion: Vec<Lanes>,
    /// Where the scores of all cells come from.
    from: Vec<[u8; LANES]>,
    operations: Vec<u32>,
}

/// Codes of operations as SAM has them.
pub const MATCH: u32 = 0;
/// An insertion.
pub const INSERTED: u32 = 1;
/// A deletion.
pub const DELETED: u32 = 2;

impl Aligner {
    /// Does jobs, in any order; hands each alignment to `each`. Its operations are appended to `cigars`.
    #[inline(always)]
    pub fn align<'a>(
        &mut self,
        view: &View<'_>,
        options: &Options,
        jobs: &mut Vec<Job>,
        cigars: &mut Vec<u32>,
        strand: impl Fn(u32, bool) -> Strand<'a>,
        mut each: impl FnMut(Found),
    ) {
        jobs.sort_unstable_by_key(|job| (job.width, job.length, job.read, job.place));
        for some in jobs.chunks(LANES) {
            self.together(view, options, some, cigars, &strand, &mut each);
        }
        jobs.clear();
    }

    #[inline(always)]
    fn together<'a>(
        &mut self,
        view: &View<'_>,
        options: &Options,
        jobs: &[Job],
        cigars: &mut Vec<u32>,
        strand: &impl Fn(u32, bool) -> Strand<'a>,
        each: &mut impl FnMut(Found),
    ) {
        let width = jobs.iter().map(|job| usize::from(job.width)).max().unwrap_or(0);
        let rows = jobs.iter().map(|job| usize::from(job.length)).max().unwrap_or(0);
        self.load(view, options, jobs, width, rows, strand);
        let (mut clips, mut lengths, mut widths) = ([[0; LANES]; 2], [0; LANES], [0; LANES]);
        for (lane, job) in jobs.iter().enumerate() {
            let [left, right] = options.clips(job.reverse);
            (clips[0][lane], clips[1][lane]) = (left as i16, right as i16);
            (lengths[lane], widths[lane]) = (job.length as i16, i16::from(job.width));
        }
        let ends = self.fill(options, width, rows, &clips, &lengths, &widths);
        for (lane, job) in jobs.iter().enumerate() {
            let (total, row, column) = (ends.score[lane], ends.row[lane], ends.column[lane]);
            if total <= NONE / 2 {
                continue;
            }
            let (from, first) = self.back(lane, row as usize, column as usize, width);
            let to = row as u16 + 1;
            let clipped = if from > 0 { clips[0][lane] } else { 0 }
                + if usize::from(to) < usize::from(job.length) { clips[1][lane] } else { 0 };
            let gapped = self.operations.len() > 1;
            let best = Place {
                left: job.at + first as u64,
                right: job.at + column as u64,
                reverse: job.reverse,
                from: from as u16,
                to,
                anchor: job.anchor,
                score: i32::from(total + clipped),
                total: i32::from(total),
                cigar: cigars.len() as u32,
                operations: if gapped { self.operations.len() as u16 } else { 0 },
                ..Place::default()
            };
            if gapped {
                cigars.extend(self.operations.iter().rev());
            }
            each(Found { read: job.read, place: job.place, best, full: job.full });
        }
    }

    #[inline(always)]
    fn load<'a>(
        &mut self,
        view: &View<'_>,
        options: &Options,
        jobs: &[Job],
        width: usize,
        rows: usize,
        strand: &impl Fn(u32, bool) -> Strand<'a>,
    ) {
        self.read.clear();
        self.read.resize(rows, [ODD; LANES]);
        self.differs.clear();
        self.differs.resize(rows, [-(options.differs as i16); LANES]);
        self.reference.clear();
        self.reference.resize(rows + width, [OUTSIDE; LANES]);
        for (lane, job) in jobs.iter().enumerate() {
            let read = strand(job.read, job.reverse);
            for (i, row) in self.read[..read.length].iter_mut().enumerate() {
                row[lane] = (read.words[i / WORD] >> (2 * (i % WORD)) & 3) as i16;
            }
            if !read.odd.is_empty() {
                for i in 0..read.length {
                    if read.odd[i / WORD] >> (2 * (i % WORD)) & 1 == 1 {
                        self.read[i][lane] = ODD;
                        self.differs[i][lane] = AMBIGUOUS as i16;
                    }
                }
            }
            // The place's own diagonal is the middle of its band.
            let middle = job.at + u64::from(job.width / 2);
            let bounds = view.bounds(middle + u64::from(job.anchor));
            let span = bounds.start.max(job.at)..bounds.end.min(job.at + (read.length + width) as u64);
            for at in span {
                self.reference[(at - job.at) as usize][lane] = i16::from(view.base(at));
            }
        }
    }

    /// Goes through all cells; where each lane's best alignment ends.
    #[inline(always)]
    fn fill(
        &mut self,
        options: &Options,
        width: usize,
        rows: usize,
        clips: &[Lanes; 2],
        lengths: &Lanes,
        widths: &Lanes,
    ) -> Ends {
        let mut ends = Ends { score: [NONE; LANES], row: [0; LANES], column: [0; LANES] };
        self.best.clear();
        self.best.resize(width + 1, [NONE; LANES]);
        self.insertion.clear();
        self.insertion.resize(width + 1, [NONE; LANES]);
        self.from.clear();
        self.from.resize(rows * width, [0; LANES]);
        let equal = options.equal as i16;
        let (open_deletion, open_insertion) = (options.open[0] as i16, options.open[1] as i16);
        let (extend_deletion, extend_insertion) = (options.extend[0] as i16, options.extend[1] as i16);
        let mut after_clip = [0; LANES];
        for lane in 0..LANES {
            after_clip[lane] = -clips[0][lane];
        }
        for row in 0..rows {
            let read = self.read[row];
            let differs = self.differs[row];
            let start = if row == 0 { [0; LANES] } else { after_clip };
            let reference = &self.reference[row..row + width];
            let best = &mut self.best[..width + 1];
            let insertions = &mut self.insertion[..width + 1];
            let from = &mut self.from[row * width..(row + 1) * width];
            let (mut before, mut deletion) = ([NONE; LANES], [NONE; LANES]);
            let (mut most, mut most_at) = ([NONE; LANES], [0i16; LANES]);
            for column in 0..width {
                let reference = reference[column];
                let here = best[column];
                let (above, above_insertion) = (best[column + 1], insertions[column + 1]);
                let out = &mut from[column];
                let mut cell = [NONE; LANES];
                let mut inserted = [NONE; LANES];
                for lane in 0..LANES {
                    let base = reference[lane];
                    let score = if base == read[lane] { equal } else { differs[lane] };
                    let diagonal = here[lane].max(start[lane]).saturating_add(score);
                    let opened = above[lane].saturating_sub(open_insertion);
                    let insertion = opened.max(above_insertion[lane]).saturating_sub(extend_insertion);
                    let longer_insertion = above_insertion[lane] > opened;
                    let opened = before[lane].saturating_sub(open_deletion);
                    let longer_deletion = deletion[lane] > opened;
                    let deleted = opened.max(deletion[lane]).saturating_sub(extend_deletion);
                    let value = diagonal.max(deleted).max(insertion);
                    // Not beyond the sequence, by no gap either, nor the lane's own band: who goes with whom must not show.
                    let inside = (base != OUTSIDE) & ((column as i16) < widths[lane]);
                    let value = if inside { value } else { NONE };
                    let mut code = if value == deleted { i16::from(DELETION) } else { i16::from(INSERTION) };
                    let begins =
                        if start[lane] >= here[lane] { i16::from(START) } else { i16::from(DIAGONAL) };
                    code = if value == diagonal { begins } else { code };
                    code |= if longer_deletion { i16::from(LONGER_DELETION) } else { 0 };
                    code |= if longer_insertion { i16::from(LONGER_INSERTION) } else { 0 };
                    out[lane] = code as u8;
                    cell[lane] = value;
                    inserted[lane] = insertion;
                    deletion[lane] = deleted;
                    let more = value > most[lane];
                    most_at[lane] = if more { column as i16 } else { most_at[lane] };
                    most[lane] = most[lane].max(value);
                }
                best[column] = cell;
                insertions[column] = inserted;
                before = cell;
            }
            for lane in 0..LANES {
                let left = lengths[lane] - 1 - row as i16;
                let end = if left > 0 { most[lane].saturating_sub(clips[1][lane]) } else { most[lane] };
                // As bwa: to the end of the read only if that is worth more.
                let better = (end > ends.score[lane]) & (left >= 0);
                ends.score[lane] = if better { end } else { ends.score[lane] };
                ends.row[lane] = if better { row as i16 } else { ends.row[lane] };
                ends.column[lane] = if better { most_at[lane] } else { ends.column[lane] };
            }
        }
        ends
    }

    /// Goes back from where an alignment ends; leaves its operations, the last first, and says its first base of the read and its first diagonal.
    fn back(&mut self, lane: usize, row: usize, column: usize, width: usize) -> (usize, usize) {
        self.operations.clear();
        let mut push = |operation: u32| match self.operations.last_mut() {
            Some(last) if *last & 15 == operation => *last += 16,
            _ => self.operations.push(16 | operation),
        };
        let (mut row, mut column) = (row, column);
        let mut state = DIAGONAL;
        loop {
            let code = self.from[row * width + column][lane];
            let doing = if state == DIAGONAL { code & FROM } else { state };
            match doing {
                DELETION => {
                    push(DELETED);
                    state = if code & LONGER_DELETION != 0 { DELETION } else { DIAGONAL };
                    if column == 0 {
                        return (row, column);
                    }
                    column -= 1;
                }
                INSERTION => {
                    push(INSERTED);
                    state = if code & LONGER_INSERTION != 0 { INSERTION } else { DIAGONAL };
                    if row == 0 {
                        return (row, column);
                    }
                    row -= 1;
                    column += 1;
                }
                doing => {
                    push(MATCH);
                    if doing == START || row == 0 {
                        return (row, column);
                    }
                    row -= 1;
                }
            }
        }
    }
}

/// Where alignments end.
struct Ends {
    score: Lanes,
    row: Lanes,
    column: Lanes,
}

#[cfg(test)]
mod tests;
