//! The sequences that reads of a place are held against: the tumour's contig, and the same with changes undone.
//!
//! A contig often shows several changes. A normal read has none of them, a read of a subclone some; held against a
//! sequence that lacks one change but has the others, either would look like a stranger. So there is a haplotype with
//! all small changes, one with none, and for each change one that has it alone and one that lacks it alone.

use crate::change::{self, Change};
use crate::compare::{Compared, Finding};

/// Small changes of a contig up to which each gets haplotypes in which it stands alone.
pub(crate) const FEW: usize = 6;

/// A sequence that a read may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Haplotype {
    /// Its bases.
    pub seq: Vec<u8>,
    /// For each finding of the contig, whether the haplotype has the change; `None` when it does not reach its place.
    pub has: Vec<Option<bool>>,
    /// What turns a contig coordinate into one of `seq`: a number for each stretch without gaps, without repetitions.
    pub shifts: Vec<i32>,
}

/// Bases beside a change that must be the same for two contigs to show the same of it.
const WINDOW: usize = 30;

/// Another contig of the same place as a haplotype that reads of this one may come from; `None` when it does not lie there.
///
/// A wrong base that two reads share makes a contig beside that of the true allele, with all its changes and one more. Held against
/// both, the reads of the true allele do not speak for the wrong base.
pub fn of_rival(contig: &Compared, rival: &Compared) -> Option<Haplotype> {
    let mut shifts = Vec::new();
    for (chrom, own) in contig.diagonals.into_iter().flatten() {
        for (_, other) in rival.diagonals.into_iter().flatten().filter(|d| d.0 == chrom) {
            shifts.extend(i32::try_from(own - other));
        }
    }
    shifts.sort_unstable();
    shifts.dedup();
    if shifts.is_empty() {
        return None;
    }
    let shows = |f: &Finding| {
        let window = f.at.start.saturating_sub(WINDOW)..(f.at.end + WINDOW).min(contig.seq.len());
        let there = |shift: i32| {
            let start = usize::try_from(window.start as i32 + shift).ok()?;
            rival.seq.get(start..start + window.len())
        };
        let same = rival.findings.iter().any(|other| change::alike(&other.change, &f.change))
            || shifts.iter().any(|&shift| there(shift) == Some(&contig.seq[window.clone()]));
        let reaches = |&shift: &i32| {
            f.at.start as i32 + shift >= 0 && f.at.start as i32 + shift <= rival.seq.len() as i32
        };
        (same || shifts.iter().any(reaches)).then_some(same)
    };
    let has = contig.findings.iter().map(shows).collect();
    Some(Haplotype { seq: rival.seq.clone(), has, shifts })
}

/// A small change on a contig: `at` has come of `normal`.
struct Edit<'a> {
    finding: usize,
    at: std::ops::Range<usize>,
    normal: &'a [u8],
}

/// A stretch of the contig with genome bases in the place of what lies beyond it.
#[derive(Default)]
struct Frame<'a> {
    /// Contig positions kept.
    from: usize,
    to: usize,
    /// What the genome has before `from` and after `to`, when the frame is one end of a junction as the normal goes on there.
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
}

impl Frame<'_> {
    /// Whether the frame shows what `f` has changed, if the change is not undone; `None` when it does not reach the place.
    fn holds(&self, f: &Finding) -> Option<bool> {
        let parted = !matches!(f.change, Change::Allele { .. });
        // At its own edge the frame goes on as the normal does.
        let edge =
            self.after.is_some() && f.at.start == self.to || self.before.is_some() && f.at.end == self.from;
        match f.at.start >= self.from && f.at.end <= self.to {
            true => Some(!(parted && edge)),
            false => (parted && edge).then_some(false),
        }
    }
}

/// All haplotypes of a contig, the first being the contig itself.
pub fn of(contig: &Compared) -> Vec<Haplotype> {
    let whole = Frame { to: contig.seq.len(), ..Frame::default() };
    let (mut edits, mut frames) = (Vec::new(), vec![whole]);
    for (i, finding) in contig.findings.iter().enumerate() {
        match finding.change {
            Change::Allele { .. } => edits.extend(edit(i, finding)),
            Change::Junction { .. } | Change::Novel { .. } => frames.extend(ends(contig, finding)),
        }
    }
    edits.sort_by_key(|e| (e.at.start, e.at.end));
    let mut all: Vec<Haplotype> = Vec::new();
    for frame in &frames {
        for kept in choices(edits.len()) {
            let haplotype = spell(contig, frame, &edits, &kept);
            if !all.iter().any(|other| other.seq == haplotype.seq) {
                all.push(haplotype);
            }
        }
    }
    all
}

fn edit(finding: usize, f: &Finding) -> Option<Edit<'_>> {
    let after = usize::try_from(f.at.end as i32 + f.right_shift).ok()?;
    Some(Edit { finding, at: f.at.clone(), normal: f.left_normal.get(f.at.start..after)? })
}

fn ends<'a>(contig: &Compared, f: &'a Finding) -> Vec<Frame<'a>> {
    let (len, mut frames) = (contig.seq.len(), Vec::new());
    let before = usize::try_from(f.at.end as i32 + f.right_shift).unwrap_or(0);
    if f.left_normal.get(..f.at.start) == contig.seq.get(..f.at.start) {
        let after = Some(&f.left_normal[f.at.start..]);
        frames.push(Frame { to: f.at.start, after, ..Frame::default() });
    }
    if f.right_normal.get(before..) == contig.seq.get(f.at.end..) {
        let before = Some(&f.right_normal[..before]);
        frames.push(Frame { from: f.at.end, to: len, before, after: None });
    }
    frames
}

/// Which of `n` edits are kept, haplotype by haplotype.
fn choices(n: usize) -> Vec<Vec<bool>> {
    let mut all = vec![vec![true; n], vec![false; n]];
    all.extend((0..n).map(|one| (0..n).map(|i| i != one).collect()));
    if n <= FEW {
        all.extend((0..n).map(|one| (0..n).map(|i| i == one).collect()));
    }
    all
}

fn spell(contig: &Compared, frame: &Frame, edits: &[Edit], kept: &[bool]) -> Haplotype {
    let mut has: Vec<Option<bool>> = contig.findings.iter().map(|f| frame.holds(f)).collect();
    let mut seq = frame.before.unwrap_or_default().to_vec();
    let mut shifts = vec![seq.len() as i32 - frame.from as i32];
    let mut at = frame.from;
    let undone = edits
        .iter()
        .zip(kept)
        .filter(|(edit, kept)| !**kept && frame.holds(&contig.findings[edit.finding]).is_some());
    for (edit, _) in undone {
        // Of two edits that overlap only one can be undone.
        if edit.at.start < at {
            continue;
        }
        seq.extend_from_slice(&contig.seq[at..edit.at.start]);
        seq.extend_from_slice(edit.normal);
        at = edit.at.end;
        shifts.push(seq.len() as i32 - at as i32);
        has[edit.finding] = Some(false);
    }
    seq.extend_from_slice(&contig.seq[at..frame.to]);
    seq.extend_from_slice(frame.after.unwrap_or_default());
    shifts.sort_unstable();
    shifts.dedup();
    Haplotype { seq, has, shifts }
}
