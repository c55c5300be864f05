//! Consensus reads of UMI families, computed with the model of fgbio's CallMolecularConsensusReads and
//! CallDuplexConsensusReads.

/// Phred quality of errors made after the UMI was attached (fgbio: error-rate-post-umi). It limits the quality of a
/// base in a single read.
const POST_UMI_QUALITY: f64 = 40.0;
/// Phred quality of errors made before the UMI was attached (fgbio: error-rate-pre-umi). It limits the quality of the
/// consensus of one strand.
const PRE_UMI_QUALITY: f64 = 45.0;
/// Highest Phred quality of a consensus base.
const MAX_CONSENSUS_QUALITY: u8 = 90;
/// Phred quality of a consensus base that is called N.
const NO_CALL_QUALITY: u8 = 2;
const BASES: [u8; 4] = *b"ACGT";

/// Base and Phred quality of a consensus read at one position.
type ConsensusBase = (u8, u8);

/// For each position of the reads of one family: natural-log likelihoods of the bases A, C, G and T.
#[derive(Debug, Default)]
pub(crate) struct BaseLikelihoods(Vec<[f64; 4]>);

fn error_probability(quality: f64) -> f64 {
    10f64.powf(-quality / 10.0)
}

/// Returns the probability that a base is wrong after two independent errors with probabilities `a` and `b`. A second
/// error may restore the true base.
fn combine_errors(a: f64, b: f64) -> f64 {
    a + b - 4.0 / 3.0 * a * b
}

impl BaseLikelihoods {
    /// Adds a read to the likelihoods; `quals` are qualities as Phred+33.
    pub(super) fn add_read(&mut self, bases: &[u8], quals: &[u8]) {
        self.0.resize(self.0.len().max(bases.len()), [0.0; 4]);
        for ((column, &base), &qual) in self.0.iter_mut().zip(bases).zip(quals) {
            if base == b'N' {
                continue;
            }
            let quality = f64::from(qual.saturating_sub(33));
            let error = combine_errors(error_probability(quality), error_probability(POST_UMI_QUALITY)).min(0.75);
            for (likelihood, candidate) in column.iter_mut().zip(BASES) {
                *likelihood += if candidate == base { (1.0 - error).ln() } else { (error / 3.0).ln() };
            }
        }
    }

    /// Returns the consensus of the reads of one strand: the likeliest base and its quality at each position, or N if
    /// its quality is at most [`NO_CALL_QUALITY`].
    pub(super) fn call_consensus_bases(&self) -> Vec<ConsensusBase> {
        self.0.iter().map(call_base).collect()
    }
}

fn call_base(likelihoods: &[f64; 4]) -> ConsensusBase {
    let best = (1..4).fold(0, |best, i| if likelihoods[i] > likelihoods[best] { i } else { best });
    let odds: f64 = (0..4).filter(|&i| i != best).map(|i| (likelihoods[i] - likelihoods[best]).exp()).sum();
    let error = combine_errors(odds / (1.0 + odds), error_probability(PRE_UMI_QUALITY));
    let quality = (-10.0 * error.log10()).round().clamp(0.0, f64::from(MAX_CONSENSUS_QUALITY)) as u8;
    if quality <= NO_CALL_QUALITY { (b'N', NO_CALL_QUALITY) } else { (BASES[best], quality) }
}

/// Combines the consensus of both strands of a molecule. If the bases agree, their qualities are added; if not, the
/// base of higher quality is taken and the qualities are subtracted. The result is N if either base is N or if
/// different bases have about the same quality. The result is as long as the shorter consensus. If one strand has no
/// consensus, returns that of the other strand.
pub(crate) fn combine_strand_consensuses(first: Vec<ConsensusBase>, second: Vec<ConsensusBase>) -> Vec<ConsensusBase> {
    if first.is_empty() || second.is_empty() {
        return if first.is_empty() { second } else { first };
    }
    let combine = |(a, b): (ConsensusBase, ConsensusBase)| match (a, b) {
        ((b'N', _), _) | (_, (b'N', _)) => (b'N', NO_CALL_QUALITY),
        _ if a.0 == b.0 => (a.0, (a.1 + b.1).min(MAX_CONSENSUS_QUALITY)),
        _ if a.1.abs_diff(b.1) <= NO_CALL_QUALITY => (b'N', NO_CALL_QUALITY),
        _ => (if a.1 > b.1 { a.0 } else { b.0 }, a.1.abs_diff(b.1)),
    };
    first.into_iter().zip(second).map(combine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_outvote_errors_and_strands_add_up() {
        let mut family = BaseLikelihoods::default();
        for bases in [b"ACGT", b"ACGT", b"ATGN"] {
            family.add_read(bases, b"FFFF");
        }
        let strand = family.call_consensus_bases();
        assert_eq!(strand.iter().map(|b| b.0).collect::<Vec<_>>(), b"ACGT");
        assert!(strand[0].1 == 45 && (30..45).contains(&strand[1].1));
        let duplex = combine_strand_consensuses(strand.clone(), vec![(b'A', 45), (b'T', 45), (b'T', 10), (b'T', 2)]);
        assert_eq!((duplex[0], duplex[1].0 == b'T' || duplex[1].0 == b'N'), ((b'A', 90), true));
        assert_eq!((duplex[2], combine_strand_consensuses(strand.clone(), vec![])), ((b'G', 35), strand));
    }
}
