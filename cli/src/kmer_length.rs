//! Chooses the length of k-mers: the length that the user gives, or one that fits the length of the reads.

use genuma_reads::{Lane, ReadEstimate};
use genuma_somatic::pipeline::DEFAULT_KMER_LENGTH;
use genuma_somatic::result_warnings::{ResultWarning, WarningTopic};

/// Minimum length of k-mers in bases. Chosen: shorter ones are not unique in a large genome.
const MIN_KMER_LENGTH: u32 = 17;
/// Maximum length of k-mers as a share of the mean read length. Chosen: k-mers then start at two fifths of the bases of
/// a read; with longer k-mers, short reads would have too few of them.
const MAX_KMER_SHARE_OF_READ: f64 = 0.6;

/// Minimum mean read length in bp for a call whose results are not withheld. Chosen: k-mers of shorter reads have the
/// minimum length and are too few to cover a change.
const MIN_READ_BP: u64 = 30;

/// Returns the length of k-mers: `given`, or the length that fits the mean read length
/// ([`kmer_length_for_mean_read_length`]), with a warning if it is shorter than [`DEFAULT_KMER_LENGTH`]. Reads from
/// pipes, whose length is unknown, get the default length.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn choose_kmer_length(given: Option<u32>, lanes: &[Lane]) -> anyhow::Result<(u32, Option<ResultWarning>)> {
    let ReadEstimate { bases, reads, .. } = match given {
        Some(k) => return Ok((k, None)),
        None => ReadEstimate::estimate_reads_of_lanes(lanes)?,
    };
    if reads == 0 {
        return Ok((DEFAULT_KMER_LENGTH, None));
    }
    let (k, mean) = (kmer_length_for_mean_read_length(bases as f64 / reads as f64), bases / reads);
    let withholds_results = mean < MIN_READ_BP;
    let message = match withholds_results {
        true => format!(
            "mean read length is {mean} bases, below the minimum of {MIN_READ_BP}: reads have too few k-mers to cover \
             a change, so most variants are missed. Check that these are the right files"
        ),
        false => format!(
            "mean read length is {mean} bases, so k is {k} instead of {DEFAULT_KMER_LENGTH}, and changes in repeats of \
             {k} bases and more may be missed; -k sets another length"
        ),
    };
    let warning = (k < DEFAULT_KMER_LENGTH).then_some(ResultWarning {
        topic: WarningTopic::ShortReads,
        withholds_results,
        message,
    });
    Ok((k, warning))
}

/// Returns the length of k-mers for reads of this mean length in bases: the largest odd number that is at most 0.6 of
/// the mean length, but at least 17 and at most 31.
pub(crate) fn kmer_length_for_mean_read_length(read_bases: f64) -> u32 {
    let most = (read_bases * MAX_KMER_SHARE_OF_READ) as u32;
    let odd = if most.is_multiple_of(2) { most.saturating_sub(1) } else { most };
    odd.clamp(MIN_KMER_LENGTH, DEFAULT_KMER_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::kmer_length_for_mean_read_length;

    #[test]
    fn short_reads_get_short_odd_kmers() {
        for (read, k) in [(20.0, 17), (28.0, 17), (36.0, 21), (50.0, 29), (52.0, 31), (75.0, 31), (150.0, 31)] {
            assert_eq!(kmer_length_for_mean_read_length(read), k, "{read}");
        }
    }
}
