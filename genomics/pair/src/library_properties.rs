//! Properties of the libraries of a normal and a tumour that are computed after all reads have been read and before
//! candidate k-mers are selected: the assay, the median depth of a base, and the error rate of bases of good quality.

use genuma_kmers::RootCounters;
use serde::{Deserialize, Serialize};

use crate::assay::{AssayDecision, AssayEvidence, GivenAssayAndGenomeSize, RandomOrFixedEnds};
use crate::error_threshold::{MAX_RATE_OF_SPECIFIC_WRONG_BASE, min_count_above_expected_errors};
use crate::library::LibraryTally;
use crate::modal_depth::self_weighted_median;
use crate::site_tally::substitution_class_index;
use crate::sketch::KmerSketch;

/// Properties of the library of one sample that the selection of candidate k-mers needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SampleLibraryProperties {
    /// Assay of the library, and the reason for which this assay was chosen.
    pub assay: AssayDecision,
    /// Median depth, in read pairs, over the sequenced bases that at least two pairs cover; 0 if there are none. Only
    /// bases whose neighbours also have good quality count.
    pub depth: f64,
    /// Median over all read pairs of the number of pairs with the same two fragment ends; for reads without mates, with
    /// the same start.
    pub pairs_per_fragment: u32,
    /// Whether fragments end at random or at fixed positions; follows from the assay.
    pub fragment_ends: RandomOrFixedEnds,
    /// Probability that a base of good quality (see [`crate::sketch::SketchParams::min_quality`]) is one specific wrong
    /// base, for the substitution class with the highest rate. `None` if the sample is too shallow to distinguish
    /// errors from alleles.
    pub error_rate: Option<f64>,
}

/// Properties of the libraries of a normal and one tumour.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SamplePairLibraryProperties {
    /// Library of the normal.
    pub normal: SampleLibraryProperties,
    /// Library of the tumour.
    pub tumour: SampleLibraryProperties,
}

/// Minimum depth, in read pairs, at which the error rate is measured; at lower depth its upper bound is used. Chosen:
/// at lower depth the same wrong base seldom occurs twice, so that the bound suffices.
const MIN_ERROR_RATE_DEPTH: u32 = 100;
/// Minimum number of bases at which errors of a substitution class could occur, to measure the error rate of the class.
/// Chosen; a higher value needs larger panels.
const MIN_BASES_PER_SUBSTITUTION: u64 = 20_000;
/// Number of rounds in which bases that are too frequent for errors are left out and the error rate is measured again.
/// Empirical; the rate changes little after three rounds.
const NUM_TRIM_ROUNDS: usize = 5;
/// Lower bound of the error rate, even if fewer errors are observed. Chosen: errors made before sequencing are at least
/// this frequent.
const MIN_ERROR_RATE: f64 = 1e-6;

impl SamplePairLibraryProperties {
    /// Computes the properties of the libraries of a normal and a tumour from their library tallies and their common
    /// k-mer sketch. `context` is what is known about the assay besides the reads.
    pub fn from_tallies_and_sketch(
        tallies: [&LibraryTally; 2],
        sketch: &KmerSketch,
        context: &GivenAssayAndGenomeSize,
    ) -> SamplePairLibraryProperties {
        let [normal, tumour] = [0, 1].map(|sample| {
            let (depth, tally) = (median_depth(sketch, sample), tallies[sample]);
            let pairs_per_fragment = tally.weighted_median_pairs_per_fragment();
            let shape = AssayEvidence {
                depth,
                bases: tally.num_bases(),
                pairs_per_fragment,
                nucleosomes: tally.nucleosome_pattern(),
            };
            let assay = AssayDecision::decide_unless_given(&shape, context);
            SampleLibraryProperties {
                fragment_ends: assay.assay.random_or_fixed_ends(),
                assay,
                depth,
                pairs_per_fragment,
                error_rate: (depth >= f64::from(MIN_ERROR_RATE_DEPTH)).then(|| error_rate(sketch, sample)).flatten(),
            }
        });
        SamplePairLibraryProperties { normal, tumour }
    }

    /// Whether any sample, tumour or normal, has a targeted assay (exome, panel or amplicons).
    pub fn has_targeted_assay(models: &[SamplePairLibraryProperties]) -> bool {
        models.iter().flat_map(|model| [&model.normal, &model.tumour]).any(|own| own.assay.assay.is_targeted())
    }

    /// For each sample, the normal first: whether its fragments end at random or at fixed positions.
    pub fn random_or_fixed_ends_by_sample(models: &[SamplePairLibraryProperties]) -> Vec<RandomOrFixedEnds> {
        let normal = models.first().map(|model| model.normal.fragment_ends);
        normal.into_iter().chain(models.iter().map(|model| model.tumour.fragment_ends)).collect()
    }

    /// Error rates of good bases: first the highest one of all tumours, used when the tumours are pooled; then the rate
    /// of each tumour. `None` if a rate is unknown.
    pub fn pooled_then_tumour_error_rates(models: &[SamplePairLibraryProperties]) -> Vec<Option<f64>> {
        let pooled = SamplePairLibraryProperties::pool_tumour_libraries(models);
        std::iter::once(&pooled).chain(models).map(|model| model.tumour.error_rate).collect()
    }

    /// The highest error rate of good bases of all tumours and, if it is known, of the normal; `None` if the rate of
    /// any tumour is unknown.
    pub fn highest_error_rate(models: &[SamplePairLibraryProperties]) -> Option<f64> {
        let normal = models.first().and_then(|model| model.normal.error_rate);
        let tumours = models.iter().map(|model| model.tumour.error_rate).reduce(|a, b| Some(a?.max(b?))).flatten();
        tumours.map(|rate| rate.max(normal.unwrap_or(0.0)))
    }

    /// Combines the libraries of several tumours of one person to one library: with the sum of their depths, the
    /// highest of their error rates (`None` if any is unknown), and the other properties of the first tumour. The
    /// normal is that of the first pair.
    pub fn pool_tumour_libraries(models: &[SamplePairLibraryProperties]) -> SamplePairLibraryProperties {
        let pool = |a: SamplePairLibraryProperties, b: SamplePairLibraryProperties| {
            let rates = a.tumour.error_rate.zip(b.tumour.error_rate);
            let tumour = SampleLibraryProperties {
                depth: a.tumour.depth + b.tumour.depth,
                error_rate: rates.map(|(a, b)| a.max(b)),
                ..a.tumour
            };
            SamplePairLibraryProperties { tumour, ..a }
        };
        models.iter().cloned().reduce(pool).unwrap_or_default()
    }
}

/// Number of read pairs of a sample that contain this root.
fn root_depth(root: &RootCounters, sample: usize) -> u32 {
    root.counts.iter().fold(0, |sum: u32, counts| sum.saturating_add(counts[sample]))
}

/// Median depth of a sample over all its sequenced bases, in read pairs. Roots in only one pair do not count, because
/// most of them are sequencing errors.
fn median_depth(sketch: &KmerSketch, sample: usize) -> f64 {
    let depths = sketch.root_counters_in_read_pairs().map(|root| root_depth(&root, sample)).filter(|&n| n > 1);
    self_weighted_median(depths.collect()).map_or(0.0, f64::from)
}

/// Depth of a site, and the number of reads of one base there other than the most frequent base, with its substitution
/// class.
struct MinorBase {
    class: usize,
    depth: u32,
    count: u32,
}

/// Measures the probability of one specific wrong base, for the substitution class with the highest rate. Bases that
/// are too frequent for errors are alleles and are left out. `None` if the sample is too shallow.
fn error_rate(sketch: &KmerSketch, sample: usize) -> Option<f64> {
    let minors: Vec<MinorBase> =
        sketch.root_counters_in_read_pairs().flat_map(|root| minor_bases(&root, sample)).collect();
    let rate_of_class = |class: usize| {
        let own = || minors.iter().filter(move |minor| minor.class == class);
        if own().map(|minor| u64::from(minor.depth)).sum::<u64>() < MIN_BASES_PER_SUBSTITUTION {
            return None;
        }
        let mut rate = MAX_RATE_OF_SPECIFIC_WRONG_BASE;
        for _ in 0..NUM_TRIM_ROUNDS {
            let is_error = |minor: &&MinorBase| {
                f64::from(minor.count) <= min_count_above_expected_errors(f64::from(minor.depth) * rate)
            };
            let [errors, bases] = own().filter(is_error).fold([0.0, 0.0], |[errors, bases], minor| {
                [errors + f64::from(minor.count), bases + f64::from(minor.depth)]
            });
            rate = f64::max(errors / f64::max(bases, 1.0), MIN_ERROR_RATE);
        }
        Some(rate)
    };
    (0..6).filter_map(rate_of_class).reduce(f64::max)
}

/// Lists the bases other than the most frequent one, before and after a root with sufficient depth.
fn minor_bases(root: &RootCounters, sample: usize) -> Vec<MinorBase> {
    let depth = root_depth(root, sample);
    if depth < MIN_ERROR_RATE_DEPTH {
        return Vec::new();
    }
    let mut sides = [[0u32; 4]; 2];
    for (slot, counts) in root.counts.iter().enumerate() {
        sides[0][slot >> 2] += counts[sample];
        sides[1][slot & 3] += counts[sample];
    }
    let of_side = |bases: [u32; 4]| {
        let major = (0..4).max_by_key(|&base| bases[base]).unwrap_or(0);
        (0..4).filter(move |&base| base != major).map(move |base| MinorBase {
            class: substitution_class_index(major, base),
            depth,
            count: bases[base],
        })
    };
    sides.into_iter().flat_map(of_side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{SketchBuilder, SketchParams};
    use genuma_reads::packed_bases::CodesAndPackedBases;
    use genuma_reads::{Mate, ReadPair};

    const PARAMS: SketchParams =
        SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: 640_000, max_kmers: 3_000_000 };

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// The model of `pairs` pairs of reads of 100 bases of a random genome of 600 bases, in both samples. `start`
    /// returns the positions of the mates; one base in `bases_per_error` is wrong.
    fn model(
        pairs: usize,
        bases_per_error: u64,
        mut start: impl FnMut(&mut Random) -> [usize; 2],
    ) -> SamplePairLibraryProperties {
        let mut random = Random(7);
        let genome: Vec<u8> = (0..600).map(|_| b"ACGT"[random.below(4) as usize]).collect();
        let builder = SketchBuilder::empty(PARAMS);
        let mut observer = crate::library::LibraryTallyCollector::with_expected_pairs(&[0, 0]);
        let mut writer = builder.new_writer();
        for pair in 0..2 * pairs {
            let starts = start(&mut random);
            let mut mates = starts.map(|from| genome[from..from + 100].to_vec());
            mates[1] = genuma_reads::dna::reverse_complement(&mates[1]);
            for base in mates.iter_mut().flatten() {
                if random.below(bases_per_error) == 0 {
                    *base = b"ACGT"[random.below(4) as usize];
                }
            }
            let (qual, name) = ([b'I'; 100], format!("r{pair}"));
            let mut codes = <[CodesAndPackedBases; 2]>::default();
            codes.iter_mut().zip(&mates).for_each(|(codes, seq)| codes.encode_bases(seq, &qual, 0));
            let packed = [codes[0].packed_bases(), codes[1].packed_bases()];
            let pair_of = ReadPair {
                name: name.as_bytes(),
                mates: [Mate { seq: &mates[0], qual: &qual }, Mate { seq: &mates[1], qual: &qual }],
            };
            let sample = (pair % 2) as u8;
            writer.add_pair(pair_of, packed, sample);
            observer.add_pair(&crate::library::RawAndTrimmedPair { raw: pair_of, trimmed: pair_of, packed }, sample);
        }
        drop(writer);
        let tallies = observer.into_tallies();
        SamplePairLibraryProperties::from_tallies_and_sketch(
            [&tallies[0], &tallies[1]],
            &builder.take_sketch(),
            &GivenAssayAndGenomeSize::default(),
        )
    }

    #[test]
    fn fragments_of_two_amplicons_have_fixed_ends_and_sheared_ones_do_not() {
        let amplicons = model(1000, 300, |random| if random.below(2) == 0 { [20, 180] } else { [250, 400] });
        assert_eq!(amplicons.tumour.fragment_ends, RandomOrFixedEnds::Fixed);
        assert!(amplicons.normal.pairs_per_fragment > 100, "{amplicons:?}");
        let sheared = model(1000, 300, |random| {
            let from = random.below(350) as usize;
            [from, from + 100 + random.below(50) as usize]
        });
        assert_eq!(sheared.tumour.fragment_ends, RandomOrFixedEnds::Random);
        // Each molecule of a shallow library twelve times.
        let mut at = [0; 2];
        let mut times = 0;
        let amplified = model(240, 300, |random| {
            times += 1;
            if times % 24 == 1 {
                let from = random.below(350) as usize;
                at = [from, from + 100 + random.below(50) as usize];
            }
            at
        });
        assert_eq!(amplified.tumour.fragment_ends, RandomOrFixedEnds::Random, "{amplified:?}");
    }

    #[test]
    fn error_rates_are_measured_in_deep_samples_only() {
        let random_start = |random: &mut Random| {
            let from = random.below(350) as usize;
            [from, from + 100 + random.below(50) as usize]
        };
        for (bases_per_error, rate) in [(100, 1.0 / 400.0), (1000, 1.0 / 4000.0), (1_000_000, 1e-6)] {
            let own = model(3000, bases_per_error, random_start).tumour;
            let measured = own.error_rate.expect("deep enough");
            assert!(measured > 0.5 * rate && measured < 2.0 * rate + 2e-6, "{bases_per_error}: {own:?}");
        }
        assert_eq!(model(60, 100, random_start).tumour.error_rate, None);
    }
}
