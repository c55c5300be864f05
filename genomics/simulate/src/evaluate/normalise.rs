//! Sequence alleles in their one normal form: as short as possible and as far left as possible (Tan, Abecasis, Kang,
//! Bioinformatics 2015).

/// A replacement of reference bases; either side may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allele {
    /// The first reference base that is replaced, from 0; where bases go in, the base right of them.
    pub start: usize,
    /// Bases taken out.
    pub removed: Vec<u8>,
    /// Bases put in.
    pub added: Vec<u8>,
}

impl Allele {
    /// From POS (1-based), REF and ALT: drops what both share at the end and at the front.
    pub fn new(pos: usize, reference: &[u8], alternate: &[u8]) -> Self {
        let same_end = reference.iter().rev().zip(alternate.iter().rev()).take_while(|(a, b)| a == b).count();
        let (removed, added) =
            (&reference[..reference.len() - same_end], &alternate[..alternate.len() - same_end]);
        let same_front = removed.iter().zip(added).take_while(|(a, b)| a == b).count();
        Allele {
            start: (pos + same_front).saturating_sub(1),
            removed: removed[same_front..].to_vec(),
            added: added[same_front..].to_vec(),
        }
    }

    /// Moves a pure insertion or deletion left as far as the contig `seq` allows.
    pub fn left_align(mut self, seq: &[u8]) -> Self {
        let bases = match (self.removed.is_empty(), self.added.is_empty()) {
            (true, false) => &mut self.added,
            (false, true) => &mut self.removed,
            _ => return self,
        };
        // One step left turns the allele like a wheel: its last base comes to the front.
        let (n, mut steps) = (bases.len(), 0);
        while self.start > steps && seq.get(self.start - 1 - steps) == Some(&bases[n - 1 - steps % n]) {
            steps += 1;
        }
        bases.rotate_right(steps % n);
        self.start -= steps;
        self
    }

    /// Whether bases are only taken out or only put in.
    pub(crate) fn is_gap(&self) -> bool {
        self.removed.is_empty() || self.added.is_empty()
    }

    /// Change of length, bp.
    pub fn net(&self) -> i64 {
        self.added.len() as i64 - self.removed.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn applied(seq: &[u8], allele: &Allele) -> Vec<u8> {
        [&seq[..allele.start], &allele.added, &seq[allele.start + allele.removed.len()..]].concat()
    }

    /// The leftmost pure insertion or deletion that spells the same sequence, tried one by one.
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
        let mut rng = Rng::stream(11, &[]);
        for _ in 0..3000 {
            // Two letters make many repeats.
            let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.pick(b"AC")).collect() };
            let (seq, novel) = (word(24), word(4));
            let start = rng.below(20);
            let n = 1 + rng.below(4);
            let reference = &seq[start..start + 1 + n];
            let (reference, alternate) = if rng.chance(0.5) {
                (reference.to_vec(), seq[start..start + 1].to_vec())
            } else {
                (seq[start..start + 1].to_vec(), [&seq[start..start + 1], &novel[..n]].concat())
            };
            let allele = Allele::new(start + 1, &reference, &alternate);
            let before = applied(&seq, &allele);
            let aligned = allele.left_align(&seq);
            assert_eq!(applied(&seq, &aligned), before);
            assert_eq!(aligned.start, brute_force(&seq, &before), "{aligned:?}");
        }
    }

    #[test]
    fn shared_bases_go() {
        let allele = Allele::new(10, b"ACGT", b"ATGT");
        assert_eq!(allele, Allele { start: 10, removed: b"C".to_vec(), added: b"T".to_vec() });
        assert_eq!(
            Allele::new(10, b"A", b"ACC"),
            Allele { start: 10, removed: vec![], added: b"CC".to_vec() }
        );
        assert_eq!(Allele::new(10, b"ACC", b"AC").net(), -1);
    }
}
