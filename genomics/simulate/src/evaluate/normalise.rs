//! Normalises VCF alleles: trims them to the shortest form and left-aligns them (Tan, Abecasis, Kang, Bioinformatics
//! 2015).

/// A replacement of reference bases by other bases, trimmed: the bases that REF and ALT share at either end are
/// removed. It is left-aligned only after [`SequenceReplacement::left_align`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SequenceReplacement {
    /// First replaced reference base, 0-based; for an insertion, the base to its right.
    pub start: usize,
    /// Reference bases that the variant removes; empty for an insertion.
    pub removed: Vec<u8>,
    /// Bases that the variant adds in their place; empty for a deletion.
    pub added: Vec<u8>,
}

impl SequenceReplacement {
    /// Creates a trimmed replacement from POS (1-based), REF and ALT.
    pub(super) fn from_vcf_alleles(pos: usize, reference: &[u8], alternate: &[u8]) -> Self {
        let same_end = reference.iter().rev().zip(alternate.iter().rev()).take_while(|(a, b)| a == b).count();
        let (removed, added) = (&reference[..reference.len() - same_end], &alternate[..alternate.len() - same_end]);
        let same_front = removed.iter().zip(added).take_while(|(a, b)| a == b).count();
        SequenceReplacement {
            start: (pos + same_front).saturating_sub(1),
            removed: removed[same_front..].to_vec(),
            added: added[same_front..].to_vec(),
        }
    }

    /// Left-aligns a pure insertion or deletion; `seq` is the sequence of the contig. Other replacements are unchanged.
    pub(super) fn left_align(mut self, seq: &[u8]) -> Self {
        let bases = match (self.removed.is_empty(), self.added.is_empty()) {
            (true, false) => &mut self.added,
            (false, true) => &mut self.removed,
            _ => return self,
        };
        // One step left rotates the allele: its last base becomes the first.
        let (n, mut steps) = (bases.len(), 0);
        while self.start > steps && seq.get(self.start - 1 - steps) == Some(&bases[n - 1 - steps % n]) {
            steps += 1;
        }
        bases.rotate_right(steps % n);
        self.start -= steps;
        self
    }

    /// Returns whether the variant only removes bases or only adds bases.
    pub(crate) fn is_pure_indel(&self) -> bool {
        self.removed.is_empty() || self.added.is_empty()
    }

    /// Returns the change of the sequence length, bp (negative: bases are lost).
    pub(super) fn length_change_bp(&self) -> i64 {
        self.added.len() as i64 - self.removed.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn applied(seq: &[u8], allele: &SequenceReplacement) -> Vec<u8> {
        [&seq[..allele.start], &allele.added, &seq[allele.start + allele.removed.len()..]].concat()
    }

    /// The leftmost pure insertion or deletion that spells the same sequence, by trying all positions.
    fn brute_force(seq: &[u8], target: &[u8]) -> usize {
        let n = target.len().abs_diff(seq.len());
        (0..=seq.len())
            .find(|&start| {
                if target.len() > seq.len() {
                    [&seq[..start], &target[start..start + n], &seq[start..]].concat() == target
                } else {
                    start + n <= seq.len() && [&seq[..start], &seq[start + n..]].concat() == target
                }
            })
            .unwrap()
    }

    #[test]
    fn left_alignment_is_what_brute_force_finds() {
        let mut rng = Rng::from_seed_and_labels(11, &[]);
        for _ in 0..3000 {
            // Two letters give many repeats.
            let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.choose_item(b"AC")).collect() };
            let (seq, novel) = (word(24), word(4));
            let start = rng.draw_below(20);
            let n = 1 + rng.draw_below(4);
            let reference = &seq[start..start + 1 + n];
            let (reference, alternate) = if rng.draw_bernoulli(0.5) {
                (reference.to_vec(), seq[start..start + 1].to_vec())
            } else {
                (seq[start..start + 1].to_vec(), [&seq[start..start + 1], &novel[..n]].concat())
            };
            let allele = SequenceReplacement::from_vcf_alleles(start + 1, &reference, &alternate);
            let before = applied(&seq, &allele);
            let aligned = allele.left_align(&seq);
            assert_eq!(applied(&seq, &aligned), before);
            assert_eq!(aligned.start, brute_force(&seq, &before), "{aligned:?}");
        }
    }

    #[test]
    fn shared_bases_go() {
        let allele = SequenceReplacement::from_vcf_alleles(10, b"ACGT", b"ATGT");
        assert_eq!(allele, SequenceReplacement { start: 10, removed: b"C".to_vec(), added: b"T".to_vec() });
        assert_eq!(
            SequenceReplacement::from_vcf_alleles(10, b"A", b"ACC"),
            SequenceReplacement { start: 10, removed: vec![], added: b"CC".to_vec() }
        );
        assert_eq!(SequenceReplacement::from_vcf_alleles(10, b"ACC", b"AC").length_change_bp(), -1);
    }
}
