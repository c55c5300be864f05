//! Which contigs are worth looking for the reads of both samples: those with a change that can become a call.

use crate::compare::Compared;
use crate::evidence::kind;
use crate::fold_back::is_folded;
use crate::genotype::{FEWEST_PAIRS, Kind};

/// Why reads are not looked for, in the order in which it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unworthy {
    /// It shows no change.
    Unchanged,
    /// Its changes rest on poor bases only.
    Poor,
    /// Two pairs have its changes, all of which errors make so often that a call wants three molecules.
    Few,
    /// A few molecules folded back on themselves, in a library in which many do.
    Folded,
}

impl Unworthy {
    /// All reasons.
    pub const ALL: [Unworthy; 4] = [Unworthy::Unchanged, Unworthy::Poor, Unworthy::Few, Unworthy::Folded];

    /// Why a contig of so many pairs is not worth it; `folds` tells of the library.
    pub fn of(compared: &Compared, pairs: usize, folds: bool) -> Option<Unworthy> {
        let common = |f: usize| kind(compared, f) == Kind::Common;
        if compared.findings.is_empty() {
            Some(Unworthy::Unchanged)
        } else if !compared.is_well_read() {
            Some(Unworthy::Poor)
        } else if pairs < FEWEST_PAIRS && (0..compared.findings.len()).all(common) {
            Some(Unworthy::Few)
        } else if folds && is_folded(compared, pairs) {
            Some(Unworthy::Folded)
        } else {
            None
        }
    }

    /// Words for many such contigs.
    pub fn of_many(self) -> &'static str {
        match self {
            Unworthy::Unchanged => "contigs that differ in nothing from the reference",
            Unworthy::Poor => "contigs whose changes rest on poor bases only",
            Unworthy::Few => "contigs of two pairs whose changes want three: wrong bases, lengths of repeats",
            Unworthy::Folded => "contigs of a few molecules that folded back on themselves",
        }
    }

    /// Words for one, behind what it was taken for.
    pub fn of_one(self) -> &'static str {
        match self {
            Unworthy::Unchanged => "",
            Unworthy::Poor => "; its bases are too poor",
            Unworthy::Few => "; two pairs are too few for such a change",
            Unworthy::Folded => {
                "; a few molecules that folded back on themselves, as many of this library do"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{Contig, Placed};
    use crate::change::Change;
    use crate::compare::Finding;

    /// What becomes of a contig of so many pairs in which `new` stands for `old` behind `before`, each base read with `quality` by each.
    fn worth(before: &[u8], old: &[u8], new: &[u8], pairs: u32, quality: u16) -> Option<Unworthy> {
        let after = b"GATTACATTGCACGGTCA";
        let [normal, seq] = [old, new].map(|bases| [before, bases, after].concat());
        let reads = (0..pairs).map(|pair| Placed { pair, mate: 0, forward: true, at: 0 }).collect();
        let (novel, weight) = (vec![true; seq.len()], vec![quality * pairs as u16; seq.len()]);
        let contig = Contig { seq, novel, weight, reads, beyond: Default::default() };
        let mut compared = Compared::unplaced(&contig);
        let (reference, alternative) = ([b"T", old].concat(), [b"T", new].concat());
        if old != new {
            compared.findings.push(Finding {
                change: Change::Allele { chrom: 0, pos: 9, reference, alternative },
                at: before.len()..before.len() + new.len(),
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: old.len() as i32 - new.len() as i32,
                mapq: 60,
            });
        }
        Unworthy::of(&compared, contig.pairs(), false)
    }

    #[test]
    fn two_pairs_suffice_for_what_is_hardly_ever_an_error() {
        let (plain, run) = (b"CCTGATGCAT", b"CCTGAAAAAA");
        assert_eq!(worth(plain, b"A", b"A", 9, 37), Some(Unworthy::Unchanged));
        assert_eq!(worth(plain, b"A", b"C", 2, 20), Some(Unworthy::Poor));
        assert_eq!(worth(plain, b"A", b"C", 2, 37), Some(Unworthy::Few));
        assert_eq!(worth(plain, b"A", b"C", 3, 37), None);
        // A base of a run gone, and bases gone that stand alone.
        assert_eq!(worth(run, b"A", b"", 2, 37), Some(Unworthy::Few));
        assert_eq!(worth(run, b"A", b"", 3, 37), None);
        assert_eq!(worth(plain, b"CGT", b"", 2, 37), None);
    }
}
