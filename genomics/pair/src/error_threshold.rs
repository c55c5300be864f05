//! Read counts above which an allele is not explained by sequencing errors.

/// Upper bound of the probability that a read has one given wrong base at a position. An upper bound suffices, as the
/// value only separates errors from alleles, and repeats from single-copy sequence. Empirical; a larger value removes
/// more alleles at high depth.
pub const MAX_BASE_ERROR_RATE: f64 = 0.0015;

/// Number of standard deviations (Poisson) above the expected number of errors that errors may reach. Chosen: about one
/// root in 30,000 has more by chance; a higher value removes more alleles.
const ERROR_DEVIATIONS: f64 = 4.0;

/// Returns the number of reads of an allele from which sequencing errors do not explain it: the expected number
/// `errors`, plus four standard deviations (Poisson), plus one.
pub fn min_count_above_expected_errors(errors: f64) -> f64 {
    1.0 + errors + ERROR_DEVIATIONS * errors.sqrt()
}

/// Minimum number of occurrences of a sequence that sequencing errors do not explain, where the sample has `depth`
/// occurrences of the root. The number rises with the depth, because errors recur in repeats.
pub fn min_count_above_errors_at_depth(depth: f64) -> f64 {
    min_count_above_expected_errors(depth * MAX_BASE_ERROR_RATE)
}
