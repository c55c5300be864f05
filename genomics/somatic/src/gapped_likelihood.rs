//! Likelihood of a read with insertion or deletion errors, given a haplotype.
//!
//! The k-mers of the read indicate several start positions, each of which fits a part of the read. The best path
//! switches from one start position to another wherever bases are missing or inserted in the read, at the cost of an
//! indel error.

use crate::packed::OwnedRead;
use crate::sequencing_errors::{ERROR_MODEL_PARAMS, ErrorModel};

/// Differences to the start positions from k-mers at which a read is also tried: an indel error of one base near the
/// end of a read leaves too few bases behind it for a k-mer.
const NEIGHBOUR_STARTS: [i32; 2] = [-1, 1];

/// Likelihood, mismatches and indel errors of the best alignment of a read to a haplotype, with gaps allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GappedAlignmentScore {
    /// Natural logarithm of the likelihood of the read.
    pub(crate) log_likelihood: f64,
    /// Number of mismatches with at least the base quality `min_mismatch_quality`.
    pub(crate) num_mismatches: u32,
    /// Number of insertion and deletion errors of the read.
    pub(crate) num_indels: u32,
}

/// The best alignment of the first bases of a read that ends with one start position.
type PathEnd = GappedAlignmentScore;

const NO_PATH: PathEnd = PathEnd { log_likelihood: f64::NEG_INFINITY, num_mismatches: 0, num_indels: 0 };

/// Buffers for [`GappedReadAligner::align_read_to_haplotype`], reused between reads.
#[derive(Debug, Default)]
pub(crate) struct GappedReadAligner {
    starts: Vec<i32>,
    /// For each number of aligned bases of the read, the best path for each start position.
    paths: Vec<PathEnd>,
}

impl GappedReadAligner {
    /// Aligns `read` to `haplotype` with any number of indel errors, also none, of at most `max_read_indel_bases` bases
    /// each. `starts` are the haplotype positions of the read's first base that its k-mers indicate. `damage` is the
    /// DNA damage of the read's sample and orientation. Formula 9 of docs/model/error_model.md.
    pub(crate) fn align_read_to_haplotype(
        &mut self,
        read: &OwnedRead,
        starts: &[i32],
        haplotype: &[u8],
        (errors, damage): (&ErrorModel, &[[f64; 4]; 4]),
    ) -> GappedAlignmentScore {
        self.starts.clear();
        for &start in starts {
            self.starts.push(start);
            self.starts.extend(NEIGHBOUR_STARTS.map(|shift| start + shift));
        }
        self.starts.sort_unstable();
        self.starts.dedup();
        let num_starts = self.starts.len();
        self.paths.clear();
        self.paths.resize((read.seq.len() + 1) * num_starts, NO_PATH);
        self.paths[..num_starts].fill(PathEnd { log_likelihood: 0.0, ..NO_PATH });
        for i in 0..read.seq.len() {
            if i > 0 {
                self.change_start(i);
            }
            for s in 0..num_starts {
                let before = self.paths[i * num_starts + s];
                let after = &mut self.paths[(i + 1) * num_starts + s];
                let placed = extend_path(
                    before,
                    (read.seq[i], read.qual[i]),
                    self.starts[s] + i as i32,
                    haplotype,
                    (errors, damage),
                );
                if placed.log_likelihood > after.log_likelihood {
                    *after = placed;
                }
            }
        }
        let ends = &self.paths[read.seq.len() * num_starts..];
        ends.iter().fold(NO_PATH, |best, end| if end.log_likelihood > best.log_likelihood { *end } else { best })
    }

    /// Allows each path of the first `i` bases to continue with another start position: a larger one after bases are
    /// missing in the read, a smaller one after inserted bases, which are skipped.
    fn change_start(&mut self, i: usize) {
        let num_starts = self.starts.len();
        let len = self.paths.len() / num_starts - 1;
        for from in 0..num_starts {
            let path = self.paths[i * num_starts + from];
            if path.log_likelihood == f64::NEG_INFINITY {
                continue;
            }
            let changed = PathEnd {
                log_likelihood: path.log_likelihood + ERROR_MODEL_PARAMS.read_indel_probability.ln(),
                num_indels: path.num_indels + 1,
                ..path
            };
            for to in (0..num_starts).filter(|&to| to != from) {
                let shift = self.starts[to] - self.starts[from];
                let inserted = (-shift).max(0) as usize;
                if shift.unsigned_abs() > ERROR_MODEL_PARAMS.max_read_indel_bases || i + inserted >= len {
                    continue;
                }
                let other = &mut self.paths[(i + inserted) * num_starts + to];
                if changed.log_likelihood > other.log_likelihood {
                    *other = changed;
                }
            }
        }
    }
}

/// Extends a path by one base of the read, with its quality, aligned to a position of the haplotype.
fn extend_path(
    before: PathEnd,
    (base, quality): (u8, u8),
    at: i32,
    haplotype: &[u8],
    (errors, damage): (&ErrorModel, &[[f64; 4]; 4]),
) -> PathEnd {
    let haplotype_base = usize::try_from(at).ok().and_then(|at| haplotype.get(at)).copied();
    let (log_probability, is_mismatch) = match haplotype_base {
        None => (ERROR_MODEL_PARAMS.uncovered_base_probability.ln(), false),
        _ if base == b'N' => (0.0, false),
        Some(b'N') => (0.0, false),
        Some(other) if other == base => (errors.log_correct[usize::from(quality.min(63))], false),
        Some(other) => (
            errors.wrong_base_log_probability(quality, damage, other, base),
            quality >= ERROR_MODEL_PARAMS.min_mismatch_quality,
        ),
    };
    PathEnd {
        log_likelihood: before.log_likelihood + log_probability,
        num_mismatches: before.num_mismatches + u32::from(is_mismatch),
        num_indels: before.num_indels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequencing_errors::BaseErrorCounts;
    use crate::slippage::SlippageModel;

    const HAPLOTYPE: &[u8] = b"GATTCTGAAAACGTTAGCCCATGGTACTTTTTCGAGATCCGTAAGCTTGCATGCCTG";

    fn place(seq: &[u8], starts: &[i32]) -> GappedAlignmentScore {
        let errors = ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::default(), SlippageModel::default());
        let read = OwnedRead { seq: seq.to_vec(), qual: vec![30; seq.len()] };
        let damage = [[f64::NEG_INFINITY; 4]; 4];
        GappedReadAligner::default().align_read_to_haplotype(&read, starts, HAPLOTYPE, (&errors, &damage))
    }

    #[test]
    fn a_read_without_errors_has_no_indel() {
        let placed = place(&HAPLOTYPE[5..50], &[5]);
        assert_eq!((placed.num_indels, placed.num_mismatches), (0, 0));
        let errors = ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::default(), SlippageModel::default());
        assert!((placed.log_likelihood - 45.0 * errors.log_correct[30]).abs() < 1e-9, "{placed:?}");
    }

    #[test]
    fn lost_and_gained_bases_cost_one_indel_each() {
        let with_indels = [&HAPLOTYPE[..7], &HAPLOTYPE[8..30], b"T", &HAPLOTYPE[30..]].concat();
        // The read lost an A of four and gained a T of five; k-mers show the start before, between and after.
        for starts in [&[0, 1, 0][..], &[0][..], &[1][..]] {
            let placed = place(&with_indels, starts);
            assert_eq!((placed.num_indels, placed.num_mismatches), (2, 0), "{starts:?}");
        }
        let without_error = place(HAPLOTYPE, &[0]).log_likelihood;
        let lost = place(&with_indels, &[0]).log_likelihood - without_error;
        assert!((lost - 2.0 * ERROR_MODEL_PARAMS.read_indel_probability.ln()).abs() < 0.01, "{lost}");
    }

    #[test]
    fn a_substitution_is_cheaper_than_two_indels_and_long_gaps_are_no_errors() {
        let mut substituted = HAPLOTYPE.to_vec();
        substituted[25] = b'C';
        let placed = place(&substituted, &[0]);
        assert_eq!((placed.num_indels, placed.num_mismatches), (0, 1));
        let deleted = [&HAPLOTYPE[..20], &HAPLOTYPE[35..]].concat();
        let placed = place(&deleted, &[0, 15]);
        assert!(placed.num_mismatches > 5, "{placed:?}");
    }
}
