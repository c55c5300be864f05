//! Gapped alignment: the best local alignment within a band, for many reads at once.
//!
//! Affine gaps (Gotoh 1982) in a band of diagonals; clipping an end of the read costs a penalty. Thirty-two reads are
//! processed together, one in each lane of a vector (Rognes and Seeberg 2000; Farrar 2007 compares the alternatives),
//! so that no cell of the matrix waits for the result of its neighbour. The width of the band follows from the ungapped
//! score: a gap that costs more than the mismatches of the ungapped alignment cannot help.

use crate::bases::{BASES_PER_WORD, ReadStrand};
use crate::index::IndexView;
use crate::options::{AMBIGUOUS_BASE_SCORE, ScoringOptions};
use crate::placement::Placement;

/// Number of reads that are aligned together.
const LANES: usize = 32;
/// Maximum number of diagonals (bp) on each side of the middle of a band: the maximum length of a gap from or to the
/// middle diagonal.
pub const MAX_GAP_BP: i32 = 35;
/// Score of an alignment that is not possible.
const NO_SCORE: i16 = -20_000;
/// Code of an ambiguous base of a read.
const AMBIGUOUS_CODE: i16 = 4;
/// Code of a reference position outside of the sequence.
const OUTSIDE_CODE: i16 = 8;

type Lanes = [i16; LANES];

// Source of the best score of a cell.
const DIAGONAL: u8 = 0;
const DELETION: u8 = 1;
const INSERTION: u8 = 2;
const START: u8 = 3;
const SOURCE_MASK: u8 = 3;
/// Bit of a cell: the deletion that ends in this cell is longer than one base.
const LONGER_DELETION: u8 = 4;
/// Bit of a cell: the insertion that ends in this cell is longer than one base.
const LONGER_INSERTION: u8 = 8;

/// A request to align a read with gaps near one of its placements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GappedJob {
    /// Number by which the caller identifies the read.
    pub read: u32,
    /// Number by which the caller identifies the placement.
    pub place: u32,
    /// Packed position of base 0 of the read on the first diagonal of the band.
    at: u64,
    anchor: u16,
    reverse: bool,
    length: u16,
    width: u8,
    /// Net score that an alignment must exceed: that of the placement.
    net_score: i32,
    /// Whether the band contains every alignment with gaps of up to [`MAX_GAP_BP`] that could have a higher score than
    /// the placement.
    covers_all_gaps: bool,
}

/// The result of a [`GappedJob`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct GappedResult {
    /// Number of the read, as in [`GappedJob::read`].
    pub read: u32,
    /// Number of the placement, as in [`GappedJob::place`].
    pub place: u32,
    /// The best alignment in the band, if its net score is higher than that of the placement. If it has gaps, its CIGAR
    /// operations are in the list that the caller passed.
    pub better: Option<Placement>,
    /// Whether the band contained every alignment with gaps of up to [`MAX_GAP_BP`] that could have a higher score than
    /// the placement.
    pub covers_all_gaps: bool,
}

impl GappedJob {
    /// Creates the job for a placement; `None` if no alignment with gaps can have a higher score. The band contains all
    /// alignments with a higher score and gaps of up to [`MAX_GAP_BP`]. If the placement is a `rival` of a better one,
    /// the band is narrower: it contains only those with at most one gap at each end of the read.
    #[inline(always)]
    pub(crate) fn for_placement(
        read: u32,
        number: u32,
        place: &Placement,
        length: usize,
        rival: bool,
        options: &ScoringOptions,
    ) -> Option<GappedJob> {
        let mut lost = length as i32 * options.match_score - place.net_score;
        if rival {
            lost = lost.min(place.max_gapped_score - place.net_score + 2 * options.min_gap_cost());
        }
        let [deletion, insertion] = options.max_gap_lengths_below_cost(lost).map(|gap| gap.min(MAX_GAP_BP));
        if deletion + insertion == 0 {
            return None;
        }
        // The band is symmetric, because before the anchor the gaps shift the diagonal the other way.
        let side = deletion.max(insertion);
        let width = (2 * side + 1) as usize;
        Some(GappedJob {
            read,
            place: number,
            at: place.left - side as u64,
            anchor: place.anchor,
            reverse: place.reverse,
            length: length as u16,
            width: width as u8,
            net_score: place.net_score,
            covers_all_gaps: !rival,
        })
    }
}

/// Aligns reads to the reference with gaps, several [`GappedJob`]s at a time; holds reusable buffers.
#[derive(Debug, Default)]
pub(crate) struct GappedAligner {
    /// Base of each read in each row of the matrix.
    read: Vec<Lanes>,
    /// Reference bases along the band.
    reference: Vec<Lanes>,
    /// Score of a mismatch in each row.
    mismatch_scores: Vec<Lanes>,
    /// Best score of each cell of the previous row.
    best: Vec<Lanes>,
    /// Best score of each cell of the previous row that ends with an insertion.
    insertion: Vec<Lanes>,
    /// For each cell of the alignment matrix the source of its best score: the previous cell on the diagonal, a
    /// deletion, an insertion, or the start of the alignment.
    from: Vec<[u8; LANES]>,
    /// CIGAR operations of the current alignment, in reverse order.
    operations: Vec<u32>,
}

/// CIGAR operation code of aligned bases (M), as in SAM.
pub const CIGAR_MATCH: u32 = 0;
/// CIGAR operation code of an insertion (I).
pub const CIGAR_INSERTION: u32 = 1;
/// CIGAR operation code of a deletion (D).
pub const CIGAR_DELETION: u32 = 2;

impl GappedAligner {
    /// Runs all jobs, in any order, removes them from `jobs`, and passes each result to `each`. `strand` returns the
    /// bases of a read. The CIGAR operations are appended to `cigars`.
    #[inline(always)]
    pub(crate) fn align_jobs<'a>(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        jobs: &mut Vec<GappedJob>,
        cigars: &mut Vec<u32>,
        strand: impl Fn(u32, bool) -> ReadStrand<'a>,
        mut each: impl FnMut(GappedResult),
    ) {
        jobs.sort_unstable_by_key(|job| (job.width, job.length, job.read, job.place));
        for some in jobs.chunks(LANES) {
            self.align_lanes(view, options, some, cigars, &strand, &mut each);
        }
        jobs.clear();
    }

    #[inline(always)]
    fn align_lanes<'a>(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        jobs: &[GappedJob],
        cigars: &mut Vec<u32>,
        strand: &impl Fn(u32, bool) -> ReadStrand<'a>,
        each: &mut impl FnMut(GappedResult),
    ) {
        let width = jobs.iter().map(|job| usize::from(job.width)).max().unwrap_or(0);
        let rows = jobs.iter().map(|job| usize::from(job.length)).max().unwrap_or(0);
        self.load_bases(view, options, jobs, width, rows, strand);
        let (mut clips, mut lengths, mut widths) = ([[0; LANES]; 2], [0; LANES], [0; LANES]);
        for (lane, job) in jobs.iter().enumerate() {
            let [left, right] = options.left_and_right_clip_penalties(job.reverse);
            (clips[0][lane], clips[1][lane]) = (left as i16, right as i16);
            (lengths[lane], widths[lane]) = (job.length as i16, i16::from(job.width));
        }
        let ends = self.fill_matrix(options, width, rows, &clips, &lengths, &widths);
        for (lane, job) in jobs.iter().enumerate() {
            let total = i32::from(ends.score[lane]);
            if total <= i32::from(NO_SCORE) / 2 {
                continue;
            }
            let better = (total > job.net_score).then(|| {
                let (row, column) = (ends.row[lane] as usize, ends.column[lane] as usize);
                self.traced_placement(options, job, lane, [row, column, width], total, cigars)
            });
            each(GappedResult { read: job.read, place: job.place, better, covers_all_gaps: job.covers_all_gaps });
        }
    }

    /// The alignment with net score `total` that ends in the cell at `row` and `column` of a band of `width` diagonals.
    /// If it has gaps, its CIGAR operations are appended to `cigars`.
    fn traced_placement(
        &mut self,
        options: &ScoringOptions,
        job: &GappedJob,
        lane: usize,
        [row, column, width]: [usize; 3],
        total: i32,
        cigars: &mut Vec<u32>,
    ) -> Placement {
        let (from, first) = self.trace_back(lane, row, column, width);
        let gapped = self.operations.len() > 1;
        let placement = Placement {
            left: job.at + first as u64,
            right: job.at + column as u64,
            reverse: job.reverse,
            from: from as u16,
            to: row as u16 + 1,
            anchor: job.anchor,
            score: self.best_local_score(options, lane, from, first),
            net_score: total,
            cigar_start: cigars.len() as u32,
            num_cigar_ops: if gapped { self.operations.len() as u16 } else { 0 },
            ..Placement::default()
        };
        if gapped {
            cigars.extend(self.operations.iter().rev());
        }
        placement
    }

    #[inline(always)]
    fn load_bases<'a>(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        jobs: &[GappedJob],
        width: usize,
        rows: usize,
        strand: &impl Fn(u32, bool) -> ReadStrand<'a>,
    ) {
        self.read.clear();
        self.read.resize(rows, [AMBIGUOUS_CODE; LANES]);
        self.mismatch_scores.clear();
        self.mismatch_scores.resize(rows, [-(options.mismatch_penalty as i16); LANES]);
        self.reference.clear();
        self.reference.resize(rows + width, [OUTSIDE_CODE; LANES]);
        for (lane, job) in jobs.iter().enumerate() {
            let read = strand(job.read, job.reverse);
            for (i, row) in self.read[..read.length].iter_mut().enumerate() {
                row[lane] = (read.words[i / BASES_PER_WORD] >> (2 * (i % BASES_PER_WORD)) & 3) as i16;
            }
            if !read.ambiguous.is_empty() {
                for i in 0..read.length {
                    if read.ambiguous[i / BASES_PER_WORD] >> (2 * (i % BASES_PER_WORD)) & 1 == 1 {
                        self.read[i][lane] = AMBIGUOUS_CODE;
                        self.mismatch_scores[i][lane] = AMBIGUOUS_BASE_SCORE as i16;
                    }
                }
            }
            // The diagonal of the placement is the middle of its band.
            let middle = job.at + u64::from(job.width / 2);
            let bounds = view.contig_bounds(middle + u64::from(job.anchor));
            let span = bounds.start.max(job.at)..bounds.end.min(job.at + (read.length + width) as u64);
            for at in span {
                self.reference[(at - job.at) as usize][lane] = i16::from(view.base_code_at(at));
            }
        }
    }

    /// Fills the alignment matrix and returns for each lane the cell in which its best alignment ends.
    #[inline(always)]
    fn fill_matrix(
        &mut self,
        options: &ScoringOptions,
        width: usize,
        rows: usize,
        clips: &[Lanes; 2],
        lengths: &Lanes,
        widths: &Lanes,
    ) -> BestCells {
        let mut ends = BestCells { score: [NO_SCORE; LANES], row: [0; LANES], column: [0; LANES] };
        self.best.clear();
        self.best.resize(width + 1, [NO_SCORE; LANES]);
        self.insertion.clear();
        self.insertion.resize(width + 1, [NO_SCORE; LANES]);
        self.from.clear();
        self.from.resize(rows * width, [0; LANES]);
        let equal = options.match_score as i16;
        let (open_deletion, open_insertion) = (options.gap_open[0] as i16, options.gap_open[1] as i16);
        let (extend_deletion, extend_insertion) = (options.gap_extend[0] as i16, options.gap_extend[1] as i16);
        let mut after_clip = [0; LANES];
        for lane in 0..LANES {
            after_clip[lane] = -clips[0][lane];
        }
        for row in 0..rows {
            let read = self.read[row];
            let differs = self.mismatch_scores[row];
            let start = if row == 0 { [0; LANES] } else { after_clip };
            let reference = &self.reference[row..row + width];
            let best = &mut self.best[..width + 1];
            let insertions = &mut self.insertion[..width + 1];
            let from = &mut self.from[row * width..(row + 1) * width];
            let (mut before, mut deletion) = ([NO_SCORE; LANES], [NO_SCORE; LANES]);
            let (mut most, mut most_at) = ([NO_SCORE; LANES], [0i16; LANES]);
            for column in 0..width {
                let reference = reference[column];
                let here = best[column];
                let (above, above_insertion) = (best[column + 1], insertions[column + 1]);
                let out = &mut from[column];
                let mut cell = [NO_SCORE; LANES];
                let mut inserted = [NO_SCORE; LANES];
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
                    // Not beyond the sequence, even through a gap, and not beyond the lane's own band: the result
                    // must not depend on which reads share a vector.
                    let inside = (base != OUTSIDE_CODE) & ((column as i16) < widths[lane]);
                    let value = if inside { value } else { NO_SCORE };
                    let mut code = if value == deleted { i16::from(DELETION) } else { i16::from(INSERTION) };
                    let begins = if start[lane] >= here[lane] { i16::from(START) } else { i16::from(DIAGONAL) };
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
            ends.include_row(row as i16, &most, &most_at, lengths, &clips[1]);
        }
        ends
    }

    /// Best score of a part of the traced alignment, which starts at base `from` of the read on diagonal `first` of the
    /// band, without clip penalties.
    fn best_local_score(&self, options: &ScoringOptions, lane: usize, from: usize, first: usize) -> i32 {
        let (mut best, mut now) = (0, 0);
        let (mut row, mut at) = (from, from + first);
        for &operation in self.operations.iter().rev() {
            let length = (operation >> 4) as usize;
            match operation & 15 {
                CIGAR_MATCH => {
                    for i in 0..length {
                        let equal = self.read[row + i][lane] == self.reference[at + i][lane];
                        let score =
                            if equal { options.match_score } else { self.mismatch_scores[row + i][lane].into() };
                        now = (now + score).max(0);
                        best = best.max(now);
                    }
                    row += length;
                    at += length;
                }
                kind => {
                    let is_insertion = usize::from(kind == CIGAR_INSERTION);
                    now = (now - options.gap_open[is_insertion] - options.gap_extend[is_insertion] * length as i32)
                        .max(0);
                    (row, at) = if is_insertion == 1 { (row + length, at) } else { (row, at + length) };
                }
            }
        }
        best
    }

    /// Traces an alignment back from its last cell. Stores the CIGAR operations in reverse order in `operations`, and
    /// returns the number of the first aligned base of the read and the number of the diagonal in the band on which the
    /// alignment starts.
    fn trace_back(&mut self, lane: usize, row: usize, column: usize, width: usize) -> (usize, usize) {
        self.operations.clear();
        let mut push = |operation: u32| match self.operations.last_mut() {
            Some(last) if *last & 15 == operation => *last += 16,
            _ => self.operations.push(16 | operation),
        };
        let (mut row, mut column) = (row, column);
        let mut state = DIAGONAL;
        loop {
            let code = self.from[row * width + column][lane];
            let doing = if state == DIAGONAL { code & SOURCE_MASK } else { state };
            match doing {
                DELETION => {
                    push(CIGAR_DELETION);
                    state = if code & LONGER_DELETION != 0 { DELETION } else { DIAGONAL };
                    if column == 0 {
                        return (row, column);
                    }
                    column -= 1;
                }
                INSERTION => {
                    push(CIGAR_INSERTION);
                    state = if code & LONGER_INSERTION != 0 { INSERTION } else { DIAGONAL };
                    if row == 0 {
                        return (row, column);
                    }
                    row -= 1;
                    column += 1;
                }
                doing => {
                    push(CIGAR_MATCH);
                    if doing == START || row == 0 {
                        return (row, column);
                    }
                    row -= 1;
                }
            }
        }
    }
}

/// For each SIMD lane (one job per lane) the score, row and column of the cell in which the best alignment ends.
struct BestCells {
    score: Lanes,
    row: Lanes,
    column: Lanes,
}

impl BestCells {
    /// Replaces the cell of each lane by the best one of `row`, if that has a higher score. `score` and `column` are
    /// those of the best cells of the row. `lengths` are the lengths of the reads, `right_clips` the penalties of
    /// clipping their ends.
    #[inline(always)]
    fn include_row(&mut self, row: i16, score: &Lanes, column: &Lanes, lengths: &Lanes, right_clips: &Lanes) {
        for lane in 0..LANES {
            let left = lengths[lane] - 1 - row;
            let end = if left > 0 { score[lane].saturating_sub(right_clips[lane]) } else { score[lane] };
            // As in bwa: extend to the end of the read only if the score is higher.
            let better = (end > self.score[lane]) & (left >= 0);
            self.score[lane] = if better { end } else { self.score[lane] };
            self.row[lane] = if better { row } else { self.row[lane] };
            self.column[lane] = if better { column[lane] } else { self.column[lane] };
        }
    }
}

#[cfg(test)]
mod tests;
