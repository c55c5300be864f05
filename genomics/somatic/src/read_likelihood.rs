//! Computes the likelihood of each read on each haplotype of a contig, and the read's log-odds for a change. All
//! logarithms are natural.

use std::borrow::Cow;
use std::ops::Range;

use crate::gapped_likelihood::{GappedAlignmentScore, GappedReadAligner};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::haplotype::Haplotype;
use crate::packed::OwnedRead;
use crate::read_placement::{PlacedRead, distinct_offsets, read_reaches_range};
use crate::recruit::RecruitedPair;
use crate::sequencing_errors::{ERROR_MODEL_PARAMS, ErrorModel};

/// A read with its likelihoods on all haplotypes of its contig.
#[derive(Debug, Clone)]
pub struct ReadLikelihoods<'a> {
    /// Index of the read among the contig's reads.
    pub read_index: usize,
    /// The read, oriented like the contig.
    pub read: Cow<'a, OwnedRead>,
    /// Natural logarithm of P(read | haplotype), for each haplotype of the contig.
    log_likelihoods: Vec<f64>,
    /// Indices of the haplotypes whose likelihoods were computed. The read is as likely on each of the others as on the
    /// one to which it is equal where the read is placed.
    distinct_haplotypes: Vec<usize>,
    /// Contig position of the read's first base, for its best placement on the contig itself (the haplotype with all
    /// changes), and on the haplotype with the highest likelihood.
    pub(crate) starts: [i32; 2],
}

impl ReadLikelihoods<'_> {
    /// Contig position of the read's first base on the haplotype with the highest likelihood.
    pub fn start_on_likeliest_haplotype(&self) -> i32 {
        self.starts[1]
    }
}

/// Computes for each prefix of a read its log-likelihood if all bases are correct. An N counts 0.
fn error_free_log_likelihoods(read: &OwnedRead, errors: &ErrorModel, prefixes: &mut Vec<f64>) {
    let mut sum = 0.0;
    let after = |(&base, &quality): (&u8, &u8)| {
        sum += if base == b'N' { 0.0 } else { errors.log_correct[usize::from(quality.min(63))] };
        sum
    };
    prefixes.clear();
    prefixes.push(0.0);
    prefixes.extend(read.seq.iter().zip(&read.qual).map(after));
}

/// Log-likelihood of a read placed without gaps on a haplotype from position `at` on, and the number of its mismatches
/// with quality 15 or more. `None` as soon as the log-likelihood is at most `floor`. Each base beyond the end of the
/// haplotype has probability 1/4. `error_free` is the result of [`error_free_log_likelihoods`] for the read.
fn placement_log_likelihood(
    (read, error_free): (&OwnedRead, &[f64]),
    at: i32,
    haplotype: &[u8],
    (errors, damage): (&ErrorModel, &[[f64; 4]; 4]),
    floor: f64,
) -> Option<(f64, u32)> {
    /// Number of bases after which the sum is compared with `floor`.
    const BLOCK: usize = 32;
    let from = ((-at).max(0) as usize).min(read.seq.len());
    let to = read.seq.len().min((haplotype.len() as i32 - at).max(0) as usize).max(from);
    // docs/model/error_model.md (4)
    let mut sum = (read.seq.len() - (to - from)) as f64 * ERROR_MODEL_PARAMS.uncovered_base_probability.ln()
        + error_free[to]
        - error_free[from];
    let mut differing = 0;
    let reference_bases = haplotype.get((at + from as i32).max(0) as usize..).unwrap_or_default();
    let reference_bases = &reference_bases[..reference_bases.len().min(to - from)];
    let blocks = read.seq[from..to].chunks(BLOCK).zip(reference_bases.chunks(BLOCK));
    for (start, (bases, reference_bases)) in (from..).step_by(BLOCK).zip(blocks) {
        for i in differing_positions(bases, reference_bases).filter(|&i| bases[i] != b'N') {
            let (b, h, quality) = (bases[i], reference_bases[i], read.qual[start + i]);
            sum -= errors.log_correct[usize::from(quality.min(63))];
            if h != b'N' {
                sum += errors.wrong_base_log_probability(quality, damage, h, b);
                differing += u32::from(quality >= ERROR_MODEL_PARAMS.min_mismatch_quality);
            }
        }
        // Each wrong base lowers the sum.
        if sum <= floor {
            return None;
        }
    }
    Some((sum, differing))
}

/// Positions at which two sequences of the same length differ, ascending. Compares eight bases at a time.
fn differing_positions<'a>(a: &'a [u8], b: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let word = |bases: &[u8]| match bases.first_chunk() {
        Some(bases) => u64::from_le_bytes(*bases),
        None => bases.iter().rev().fold(0, |word, &base| word << 8 | u64::from(base)),
    };
    let words = a.chunks(size_of::<u64>()).zip(b.chunks(size_of::<u64>()));
    (0..).step_by(size_of::<u64>()).zip(words).flat_map(move |(start, (a, b))| {
        let mut differing = word(a) ^ word(b);
        std::iter::from_fn(move || {
            let byte = (differing != 0).then(|| differing.trailing_zeros() / u8::BITS)?;
            differing &= !(u64::from(u8::MAX) << (u8::BITS * byte));
            Some(start + byte as usize)
        })
    })
}

/// Computes the likelihoods of the reads of a contig on all haplotypes. Leaves out reads with too many mismatches and
/// indel errors on the haplotype that they fit best.
pub fn compute_read_likelihoods<'a>(
    haplotypes: &[Haplotype],
    placed_reads: &[PlacedRead],
    pairs: &'a [RecruitedPair],
    errors: &ErrorModel,
) -> Vec<ReadLikelihoods<'a>> {
    let has_frequent_indels = errors.short_homopolymers.has_frequent_errors();
    let mut gapped_reads = GappedReadAligner::default();
    let mut error_free = Vec::new();
    let weigh_one = |(r, placed_read): (usize, &PlacedRead)| {
        let read = placed_read.oriented_read(pairs);
        let damage = errors.damage_log_probabilities(pairs[placed_read.pair as usize].sample, placed_read.is_f1r2());
        error_free_log_likelihoods(&read, errors, &mut error_free);
        let distinct = distinct_haplotypes(haplotypes, placed_read, read.seq.len());
        let on = PlacementHaplotypes { haplotypes, distinct: &distinct };
        let mut fit = place_without_gaps((&read, &error_free), placed_read, on, (errors, damage));
        if has_frequent_indels && fit.num_mismatches >= ERROR_MODEL_PARAMS.min_mismatches_of_indel {
            let gapped = place_with_gaps(&mut gapped_reads, &read, placed_read, on, (errors, damage));
            if let Some((log_likelihoods, num_mismatches)) = gapped {
                (fit.log_likelihoods, fit.num_mismatches) = (log_likelihoods, num_mismatches);
            }
        }
        let is_unrelated =
            f64::from(fit.num_mismatches) > ERROR_MODEL_PARAMS.max_mismatch_share * read.seq.len() as f64;
        (!is_unrelated).then_some(ReadLikelihoods {
            read_index: r,
            read,
            log_likelihoods: fit.log_likelihoods,
            distinct_haplotypes: distinct,
            starts: fit.starts,
        })
    };
    placed_reads.iter().enumerate().filter_map(weigh_one).collect()
}

/// Indices of the haplotypes on which a read of this length must be placed: all but those that are equal to an earlier
/// one wherever the read may be placed, with one base around it.
fn distinct_haplotypes(haplotypes: &[Haplotype], placed_read: &PlacedRead, read_len: usize) -> Vec<usize> {
    let reaches = |haplotype: &Haplotype, differing: &Range<usize>| {
        let mut starts =
            haplotype.shifts.iter().flat_map(|&shift| placed_read.offsets.map(|offset| i64::from(offset + shift)));
        starts.any(|start| read_reaches_range(start, read_len, differing))
    };
    let is_distinct = |(_, haplotype): &(usize, &Haplotype)| match &haplotype.equal_outside {
        Some((_, differing)) => reaches(haplotype, differing),
        None => true,
    };
    haplotypes.iter().enumerate().filter(is_distinct).map(|(h, _)| h).collect()
}

/// The haplotypes of a contig, and those of them on which a read is placed ([`distinct_haplotypes`]).
#[derive(Clone, Copy)]
struct PlacementHaplotypes<'a> {
    haplotypes: &'a [Haplotype],
    distinct: &'a [usize],
}

impl PlacementHaplotypes<'_> {
    /// The log-likelihoods on all haplotypes, from those on the distinct ones.
    fn log_likelihoods_on_all(&self, on_distinct: &[f64]) -> Vec<f64> {
        let mut log_likelihoods = vec![f64::NAN; self.haplotypes.len()];
        self.distinct.iter().zip(on_distinct).for_each(|(&h, &l)| log_likelihoods[h] = l);
        let mut distinct = self.distinct.iter().peekable();
        for (h, haplotype) in self.haplotypes.iter().enumerate() {
            if distinct.next_if(|&&next| next == h).is_none()
                && let Some((other, _)) = haplotype.equal_outside
            {
                log_likelihoods[h] = log_likelihoods[other];
            }
        }
        log_likelihoods
    }
}

/// Likelihoods and mismatches of a read on the haplotypes of its contig.
struct ReadFit {
    /// Natural logarithm of P(read | haplotype), for each haplotype of the contig.
    log_likelihoods: Vec<f64>,
    /// Number of mismatches of good quality, and of indel errors, on the haplotype with the highest likelihood;
    /// `u32::MAX` if the read cannot be placed.
    num_mismatches: u32,
    /// Contig position of the read's first base on the contig itself and on the best haplotype, as in
    /// [`ReadLikelihoods::starts`].
    starts: [i32; 2],
}

/// Places a read without gaps on each haplotype, at the best of its candidate offsets. `error_free` is the result of
/// [`error_free_log_likelihoods`] for the read.
fn place_without_gaps(
    (read, error_free): (&OwnedRead, &[f64]),
    placed_read: &PlacedRead,
    on: PlacementHaplotypes<'_>,
    (errors, damage): (&ErrorModel, &[[f64; 4]; 4]),
) -> ReadFit {
    let (mut best, mut num_mismatches) = (f64::NEG_INFINITY, u32::MAX);
    let mut starts = [placed_read.offsets[0]; 2];
    let mut place = |&h: &usize| {
        let haplotype = &on.haplotypes[h];
        let mut here = f64::NEG_INFINITY;
        for &shift in &haplotype.shifts {
            for offset in distinct_offsets(&placed_read.offsets) {
                let start = offset + shift;
                let placement =
                    placement_log_likelihood((read, error_free), start, &haplotype.seq, (errors, damage), here);
                let Some((sum, wrong)) = placement.filter(|placement| placement.0 > here) else { continue };
                here = sum;
                if h == 0 {
                    starts[0] = offset;
                }
                if sum > best {
                    (best, num_mismatches, starts[1]) = (sum, wrong, offset);
                }
            }
        }
        here
    };
    let on_distinct: Vec<f64> = on.distinct.iter().map(&mut place).collect();
    ReadFit { log_likelihoods: on.log_likelihoods_on_all(&on_distinct), num_mismatches, starts }
}

/// Log-likelihoods of a read on each haplotype if the read may have insertion and deletion errors, and the number of
/// its errors on the best haplotype. `None` if it has no such error there.
fn place_with_gaps(
    gapped_reads: &mut GappedReadAligner,
    read: &OwnedRead,
    placed_read: &PlacedRead,
    on: PlacementHaplotypes<'_>,
    models: (&ErrorModel, &[[f64; 4]; 4]),
) -> Option<(Vec<f64>, u32)> {
    let mut starts: Vec<i32> = Vec::new();
    let place = |&h: &usize| {
        let haplotype = &on.haplotypes[h];
        starts.clear();
        starts.extend(haplotype.shifts.iter().flat_map(|&shift| placed_read.offsets.map(|offset| offset + shift)));
        gapped_reads.align_read_to_haplotype(read, &starts, &haplotype.seq, models)
    };
    let placements: Vec<GappedAlignmentScore> = on.distinct.iter().map(place).collect();
    let best = placements.iter().max_by(|a, b| a.log_likelihood.total_cmp(&b.log_likelihood))?;
    let num_errors = best.num_mismatches + best.num_indels;
    let on_distinct: Vec<f64> = placements.iter().map(|p| p.log_likelihood).collect();
    (best.num_indels > 0).then(|| (on.log_likelihoods_on_all(&on_distinct), num_errors))
}

/// Log-odds of a read for change `f`: the best haplotype with the change against the best haplotype without it. `None`
/// if the read does not cover the change, for example because it comes from beyond another junction of the contig.
/// `differing_in_change` are the haplotypes of [`crate::haplotype::haplotype_indices_by_differing_change`] for `f`.
pub(crate) fn change_log_odds_of_read(
    likelihoods: &ReadLikelihoods<'_>,
    haplotypes: &[Haplotype],
    differing_in_change: &[usize],
    f: usize,
) -> Option<f64> {
    // Any other haplotype has the likelihood of a distinct one that has or lacks the change as it does.
    let best = |has: Option<bool>| {
        let all = likelihoods.distinct_haplotypes.iter().chain(differing_in_change);
        let own = all.filter(|&&h| haplotypes[h].has_change[f] == has).map(|&h| likelihoods.log_likelihoods[h]);
        own.fold(f64::NEG_INFINITY, f64::max)
    };
    // docs/model/error_model.md (5)
    let (with, without) = (best(Some(true)), best(Some(false)));
    let is_informative = with.is_finite()
        && without.is_finite()
        && best(None) < with.max(without) + GENOTYPE_MODEL_PARAMS.min_uncovered_log_odds;
    is_informative.then_some(with - without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_positions_are_those_of_a_comparison_base_by_base() {
        let bases: Vec<u8> = (0..70_usize).map(|i| b"ACGT"[i * i % 11 % 4]).collect();
        for len in 0..=70 {
            for step in 1..12 {
                let mut changed = bases[..len].to_vec();
                changed.iter_mut().step_by(step).for_each(|base| *base = b'N');
                let expected: Vec<usize> = (0..len).step_by(step).collect();
                assert_eq!(differing_positions(&bases[..len], &changed).collect::<Vec<_>>(), expected);
                assert_eq!(differing_positions(&bases[..len], &bases[..len]).next(), None);
            }
        }
    }
}
