//! Whether a root has a tandem repeat, or a near copy elsewhere in the genome.

use genuma_kmers::encode::reverse_complement_kmer;

/// Whether a root ends in a tandem repeat, so that polymerase slippage may change the next base: a homopolymer of 5
/// bases, 3 copies of a unit of 2 or 3 bases, or 11 bases of a unit of 4.
pub fn ends_in_tandem_repeat(root: u64) -> bool {
    [(1, 5), (2, 6), (3, 9), (4, 11)].iter().any(|&(unit, bases)| {
        let differ = root ^ (root >> (2 * unit));
        differ & (u64::MAX >> (64 - 2 * (bases - unit))) == 0
    })
}

/// Whether a root contains a tandem repeat anywhere: at least 7 consecutive bases that equal those one unit of 1 to 6
/// bases earlier. Next to such a root, molecules with a slippage error show the same false alleles in both samples.
pub(crate) fn has_tandem_repeat(root: u64, bases: u32) -> bool {
    (1..=6).any(|unit| {
        let differ = root ^ (root >> (2 * unit));
        let alike = !(differ | differ >> 1) & 0x5555_5555_5555_5555 & (u64::MAX >> (64 - 2 * (bases - unit)));
        let two = alike & alike >> 2;
        let four = two & two >> 4;
        four & four >> 6 != 0
    })
}

/// Whether `is_there` is true for another root that differs from `root` in one base. Such a root suggests a second,
/// diverged copy of the sequence in the genome, so that reads that differ may come from the two copies. It does not
/// matter which sample has the other root. Roots have `bases` bases.
pub fn has_near_copy(root: u64, bases: u32, is_there: impl Fn(u64) -> bool) -> bool {
    let reverse = reverse_complement_kmer(root, bases);
    (0..bases).any(|at| {
        // The same bits differ in the complement, at the mirrored position.
        (1..4).any(|differ| is_there((root ^ (differ << (2 * at))).min(reverse ^ (differ << (2 * (bases - 1 - at))))))
    })
}
