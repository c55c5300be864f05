//! What alignments are worth: the scoring of bwa mem (Li 2013), with its defaults.

/// Longest read (bp).
pub const LONGEST: usize = 2000;
/// Score of a letter that is no base, against anything.
pub const AMBIGUOUS: i32 = -1;

/// Scores, each a number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Of a base that is the reference's (`-A`).
    pub equal: i32,
    /// Lost by a base that is not (`-B`).
    pub differs: i32,
    /// Lost by opening a deletion, an insertion (`-O`).
    pub open: [i32; 2],
    /// Lost by each of its bases (`-E`).
    pub extend: [i32; 2],
    /// Lost by not aligning the read to its end: to the 5' one, the 3' one (`-L`).
    pub clip: [i32; 2],
    /// Lost by mates that do not lie as mates do (`-U`).
    pub unpaired: i32,
    /// Least score of an alignment (`-T`).
    pub least: i32,
}

impl Default for Options {
    fn default() -> Self {
        Options { equal: 1, differs: 4, open: [6; 2], extend: [1; 2], clip: [5; 2], unpaired: 17, least: 30 }
    }
}

impl Options {
    /// What is wrong with them, if anything.
    pub fn fault(&self) -> Option<&'static str> {
        let all = [self.equal, self.differs, self.unpaired, self.least];
        let all = all.into_iter().chain(self.open).chain(self.extend).chain(self.clip);
        if all.clone().any(|score| score < 0) {
            return Some("a score is less than 0");
        }
        if all.max() > Some(1000) || self.equal > 8 {
            return Some("a score is too large: a match has at most 8, anything else 1000");
        }
        if self.equal == 0 || self.extend.contains(&0) && self.open == [0; 2] {
            return Some("a match must have a score, and a gap a cost");
        }
        None
    }

    /// Penalties of clips: left along the reference, right.
    #[inline(always)]
    pub fn clips(&self, reverse: bool) -> [i32; 2] {
        if reverse { [self.clip[1], self.clip[0]] } else { self.clip }
    }

    /// What the cheapest gap costs.
    #[inline(always)]
    pub(crate) fn cheapest_gap(&self) -> i32 {
        (self.open[0] + self.extend[0]).min(self.open[1] + self.extend[1])
    }

    /// Most bases that a deletion, an insertion may have in an alignment that loses less than `lost` points: by each base, its opening apart.
    #[inline(always)]
    pub(crate) fn longest_gaps(&self, lost: i32) -> [i32; 2] {
        let deletion = (lost - 1 - self.open[0]) / self.extend[0].max(1);
        let insertion = (lost - 1 - self.open[1]) / (self.extend[1] + self.equal);
        [deletion.max(0), insertion.max(0)]
    }
}
