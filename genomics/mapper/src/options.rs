//! Alignment scores and penalties: the scoring of bwa mem (Li 2013) with its defaults.

/// Maximum read length (bp).
pub const MAX_READ_BP: usize = 2000;
/// Score of an ambiguous base (not A, C, G or T) aligned to any base.
pub const AMBIGUOUS_BASE_SCORE: i32 = -1;

/// Alignment scores and penalties; no value may be negative. The letters are the options of bwa mem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoringOptions {
    /// Score of a matching base (`-A`).
    pub match_score: i32,
    /// Penalty of a mismatch (`-B`).
    pub mismatch_penalty: i32,
    /// Penalty of opening a deletion, and of opening an insertion (`-O`).
    pub gap_open: [i32; 2],
    /// Penalty of each base of a deletion, and of each base of an insertion (`-E`).
    pub gap_extend: [i32; 2],
    /// Penalty of clipping the 5' end of the read, and of clipping the 3' end (`-L`).
    pub clip_penalty: [i32; 2],
    /// Penalty of mates that are not properly paired (`-U`).
    pub unpaired_penalty: i32,
    /// Minimum score of a reported alignment (`-T`).
    pub min_score: i32,
}

impl Default for ScoringOptions {
    fn default() -> Self {
        ScoringOptions {
            match_score: 1,
            mismatch_penalty: 4,
            gap_open: [6; 2],
            gap_extend: [1; 2],
            clip_penalty: [5; 2],
            unpaired_penalty: 17,
            min_score: 30,
        }
    }
}

impl ScoringOptions {
    /// The reason why the scores are not valid; `None` if they are valid.
    pub fn validation_error(&self) -> Option<&'static str> {
        let all = [self.match_score, self.mismatch_penalty, self.unpaired_penalty, self.min_score];
        let all = all.into_iter().chain(self.gap_open).chain(self.gap_extend).chain(self.clip_penalty);
        if all.clone().any(|score| score < 0) {
            return Some("a score is less than 0");
        }
        if all.max() > Some(1000) || self.match_score > 8 {
            return Some("a score is too large: a match has at most 8, anything else 1000");
        }
        if self.match_score == 0 || self.gap_extend.contains(&0) && self.gap_open == [0; 2] {
            return Some("a match must have a score, and a gap a cost");
        }
        None
    }

    /// Clip penalties at the left end and at the right end on the reference, for a read that is aligned forward or, if
    /// `reverse` is set, as its reverse complement.
    #[inline(always)]
    pub fn left_and_right_clip_penalties(&self, reverse: bool) -> [i32; 2] {
        if reverse { [self.clip_penalty[1], self.clip_penalty[0]] } else { self.clip_penalty }
    }

    /// Penalty of the cheapest gap: opening and extension of one base.
    #[inline(always)]
    pub(crate) fn min_gap_cost(&self) -> i32 {
        (self.gap_open[0] + self.gap_extend[0]).min(self.gap_open[1] + self.gap_extend[1])
    }

    /// Maximum length (bp) of a deletion, and of an insertion, that costs less than `lost` points. The cost of an
    /// insertion includes the match scores that its bases would have had.
    #[inline(always)]
    pub(crate) fn max_gap_lengths_below_cost(&self, lost: i32) -> [i32; 2] {
        let deletion = (lost - 1 - self.gap_open[0]) / self.gap_extend[0].max(1);
        let insertion = (lost - 1 - self.gap_open[1]) / (self.gap_extend[1] + self.match_score);
        [deletion.max(0), insertion.max(0)]
    }
}
