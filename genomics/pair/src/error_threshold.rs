//! Number of reads from which an allele is no longer explained by sequencing errors.

/// Upper bound of the probability that a read has one specific wrong base at a position. An upper bound suffices,
/// because it only serves to separate errors from alleles, and repeats from single-copy sequence. Empirical; a larger
/// value removes more alleles at high depth.
pub const MAX_RATE_OF_SPECIFIC_WRONG_BASE: f64 = 0.0015;

/// Number of standard deviations (Poisson) that are added to the expected number of errors. Chosen: at about one root
/// in 30,000 more errors occur by chance; a higher value removes more alleles.
const ERROR_DEVIATIONS: f64 = 4.0;

/// Returns the minimum number of reads of an allele that sequencing errors do not explain: the expected number of
/// errors `errors`, plus four standard deviations (Poisson), plus one.
pub fn min_count_above_expected_errors(errors: f64) -> f64 {
    1.0 + errors + ERROR_DEVIATIONS * errors.sqrt()
}

/// Returns the minimum number of reads of an allele that sequencing errors do not explain, at a root that `depth` reads
/// of the sample have. The number rises with the depth, because the same errors recur in repeats.
pub fn min_count_above_errors_at_depth(depth: f64) -> f64 {
    min_count_above_expected_errors(depth * MAX_RATE_OF_SPECIFIC_WRONG_BASE)
}
