//! Tests depths estimated from spectra, and the rule that selects candidate k-mers from the counters of one root.

use crate::common::{K, Rng};
use genuma_kmers::RootCounters;
use genuma_kmers::encode::{pack, reverse_complement_kmer};
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use genuma_somatic::candidate_kmer::{
    CandidateKmer, CandidateSelector, KmerDepths, median_kmer_depth_of_spectrum, min_count_above_errors_at_depth,
};

/// Model of a spectrum: error k-mers, and peaks of k-mers on one or two haplotypes.
struct Mixture {
    depth: f64,
    /// Number of distinct k-mers on both haplotypes, and on one haplotype only.
    both: f64,
    one: f64,
    errors: f64,
}

impl Mixture {
    fn spectrum(&self) -> Vec<u64> {
        let mut spectrum = vec![0u64; 1024];
        let bell = |m: f64, mean: f64| {
            let variance = mean * 1.2;
            (-(m - mean).powi(2) / (2.0 * variance)).exp() / (2.0 * std::f64::consts::PI * variance).sqrt()
        };
        for (m, n) in spectrum.iter_mut().enumerate().skip(1) {
            let m = m as f64;
            let true_ones = self.both * bell(m, self.depth) + self.one * bell(m, self.depth / 2.0);
            *n = (true_ones + self.errors * 0.08f64.powf(m - 1.0)) as u64;
        }
        spectrum
    }
}

fn depths(normal: f64, tumour: f64, one: f64) -> KmerDepths {
    let spectrum = |depth| Mixture { depth, both: 5e6 - one, one, errors: 2e7 }.spectrum();
    KmerDepths::estimate_depths_from_spectra(&[spectrum(normal), spectrum(tumour)])
}

#[test]
fn the_depth_is_that_of_the_homozygous_peak() {
    for (normal, tumour) in [(24.0, 24.0), (48.0, 24.0), (24.0, 48.0), (8.0, 24.0), (10.0, 10.0)] {
        // Also in a very heterozygous genome, where more than half of the k-mers are on one haplotype only. At a
        // depth of 10 or less the two peaks are one.
        let most = if f64::min(normal, tumour) > 10.0 { 2.6e6 } else { 5e5 };
        for one in [0.0, 2e5, most] {
            let found = depths(normal, tumour, one).kmer;
            for (found, expected) in found.iter().zip([normal, tumour]) {
                assert!((found - expected).abs() <= 1.0, "{found} for {expected}, {one} heterozygous");
            }
        }
    }
}

#[test]
fn the_usual_depth_is_where_bases_lie() {
    let spectrum = Mixture { depth: 40.0, both: 5e6, one: 0.0, errors: 2e7 }.spectrum();
    assert!(
        (median_kmer_depth_of_spectrum(&spectrum) - 40.0).abs() <= 2.0,
        "{}",
        median_kmer_depth_of_spectrum(&spectrum)
    );
    // A targeted panel: captured sequence has all depths up to 600, the rest is shallow.
    let panel: Vec<u64> = (0..1000u64).map(|m| if m < 20 { 400_000 >> m } else { u64::from(m < 600) * 300 }).collect();
    assert!(
        (300.0..500.0).contains(&median_kmer_depth_of_spectrum(&panel)),
        "{}",
        median_kmer_depth_of_spectrum(&panel)
    );
    assert_eq!(median_kmer_depth_of_spectrum(&[]), 0.0);
}

/// Below 5x the spectrum of k-mers falls from 2 on: its first rise is in the repeats.
#[test]
fn the_depth_of_a_shallow_sample_is_not_that_of_its_repeats() {
    let poisson = |mean: f64, m: u32| (0..m).fold((-mean).exp(), |p, i| p * mean / f64::from(i + 1));
    for mean in [2.5, 3.0, 4.4] {
        let mut spectrum: Vec<u64> =
            (0..1024).map(|m| (1e7 * poisson(mean, m) + 1e6 * poisson(mean / 2.0, m)) as u64).collect();
        (20..1024).for_each(|m| spectrum[m] += 6_000 / m as u64);
        (700..760).for_each(|m| spectrum[m] += 100);
        let median = median_kmer_depth_of_spectrum(&spectrum);
        assert!((median - mean).abs() <= 2.0, "{median} for {mean}");
        let peak = KmerDepths::estimate_depths_from_spectra(&[spectrum.clone(), spectrum]).kmer[0];
        assert!((peak - mean).abs() <= 1.0, "{peak} for {mean}");
    }
}

#[test]
fn the_share_of_errors_is_what_lies_before_the_valley() {
    let share = |errors: f64| {
        let spectrum = Mixture { depth: 30.0, both: 1e6, one: 0.0, errors }.spectrum();
        KmerDepths::estimate_depths_from_spectra(&[spectrum.clone(), spectrum]).error_share
    };
    // 1e6 k-mers 30 times each, and `errors` k-mers once or a few times.
    let expected = |errors: f64| {
        let mass = errors * (1.0 + 2.0 * 0.08 + 3.0 * 0.0064);
        mass / (mass + 3e7)
    };
    for errors in [1e5, 1e6, 1e7] {
        assert!((share(errors) - expected(errors)).abs() < 0.02 * expected(errors), "{errors}");
    }
    assert_eq!(KmerDepths::estimate_depths_from_spectra(&[vec![0; 1024], vec![0; 1024]]).error_share, 0.0);
}

/// A root with counts `(first, last) → [normal, tumour]`.
fn root(stem: &[u8], counts: &[(u8, u8, [u32; 2])]) -> RootCounters {
    let mut counters = RootCounters { root: pack(stem).unwrap(), counts: [[0; 2]; 16] };
    for &(first, last, [normal, tumour]) in counts {
        let slot = 4 * pack(&[first]).unwrap() + pack(&[last]).unwrap();
        let cell = &mut counters.counts[slot as usize];
        (cell[NORMAL_SAMPLE as usize], cell[TUMOUR_SAMPLE as usize]) = (normal, tumour);
    }
    counters
}

/// A selector for samples whose tumour has `ratio` times as many k-mers as the normal.
fn rule(k: u32, ratio: u64) -> CandidateSelector {
    CandidateSelector::for_tumour(k, 3, [1_000_000, 1_000_000 * ratio], 30.0, &SamplePairLibraryProperties::default())
}

/// Counts in the tumour and in the normal, and whether it is a branching k-mer.
fn picks_at(ratio: u64, counts: &[(u8, u8, [u32; 2])]) -> Vec<(u32, u32, bool)> {
    let mut found: Vec<CandidateKmer> = Vec::new();
    rule(K, ratio).append_candidates_of_root(&root(&Rng(41).sequence(K as usize - 2), counts), &mut found);
    // Candidates of a normal without tumour cells.
    let of_clean_normal = found.iter().filter(|p| p.tumour_in_normal_percent == 0);
    of_clean_normal.map(|p| (p.tumour_count, p.normal_count, p.is_branching())).collect()
}

fn picks(counts: &[(u8, u8, [u32; 2])]) -> Vec<(u32, u32, bool)> {
    picks_at(1, counts)
}

#[test]
fn picks_what_the_tumour_has_and_the_normal_lacks() {
    // A branching k-mer: the normal has the root with another extension.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])]), [(14, 0, true)]);
    // A novel k-mer: the normal lacks the root.
    assert_eq!(picks(&[(b'A', b'G', [0, 14])]), [(14, 0, false)]);
    // Where the normal has hardly any reads, a k-mer is not branching.
    assert_eq!(picks(&[(b'A', b'C', [1, 15]), (b'A', b'G', [0, 14])]), [(15, 1, false), (14, 0, false)]);
    // Too few occurrences, or the normal has it too.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 2])]), []);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 14])]), []);
    // A little contamination is allowed, more is not.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [1, 14])]), [(14, 1, true)]);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [6, 14])]), []);
    // A k-mer of the normal only is no candidate.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 0])]), []);
    // Two alleles of one root.
    assert_eq!(
        picks(&[(b'A', b'A', [0, 7]), (b'A', b'C', [30, 15]), (b'T', b'C', [0, 8])]),
        [(7, 0, true), (8, 0, true)]
    );
}

#[test]
fn what_the_normal_does_not_know_is_counted_beyond_what_is_wanted() {
    let rule = rule(K, 1).with_novel_kmer_limit(2);
    let mut found: Vec<CandidateKmer> = Vec::new();
    for seed in 0..5 {
        let stem = Rng(seed).sequence(K as usize - 2);
        rule.append_candidates_of_root(&root(&stem, &[(b'A', b'G', [0, 14])]), &mut found);
        rule.append_candidates_of_root(&root(&stem, &[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])]), &mut found);
    }
    assert_eq!(rule.num_novel_candidates_found(), 5);
    assert_eq!(found.iter().filter(|pick| pick.is_branching()).count(), 5);
    assert_eq!(found.iter().filter(|pick| !pick.is_branching()).count(), 2);
}

#[test]
fn allowances_follow_the_depths_of_the_samples() {
    // A germline allele where the tumour is four times as deep: its count in the normal is not contamination.
    let germline = |normal| [(b'A', b'C', [15, 60]), (b'A', b'G', [normal, 60])];
    for normal in 4..16 {
        assert_eq!(picks_at(4, &germline(normal)), [], "{normal}");
    }
    assert_eq!(picks_at(4, &germline(0)), [(60, 0, true)]);
    // For a novel k-mer the sizes of the samples decide.
    let novel = |normal| [(b'A', b'G', [normal, 60])];
    assert_eq!(picks_at(1, &novel(3)), [(60, 3, false)]);
    assert_eq!(picks_at(8, &novel(3)), []);
    assert_eq!(picks_at(8, &novel(0)), [(60, 0, false)]);
    // A germline allele of the normal stays one, however often an amplified tumour has it.
    assert_eq!(picks(&[(b'A', b'C', [15, 15]), (b'A', b'G', [15, 3000])]), []);
    assert_eq!(picks(&[(b'A', b'C', [30, 1500]), (b'A', b'G', [0, 1500])]), [(1500, 0, true)]);
    assert_eq!(picks(&[(b'A', b'C', [30, 1500])]), []);
}

#[test]
fn the_depth_at_a_place_where_samples_part_is_that_of_the_tumours_root() {
    let mut found = Vec::new();
    let counts = [(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])];
    rule(K, 1).append_candidates_of_root(&root(&Rng(43).sequence(K as usize - 2), &counts), &mut found);
    assert_eq!(found.iter().map(|p| p.root_depth).collect::<Vec<_>>(), [29]);
}

#[test]
fn errors_raise_the_bar_with_depth() {
    assert!((0..2000).all(|d| min_count_above_errors_at_depth(f64::from(d)) <= min_count_above_errors_at_depth(f64::from(d + 1))));
    // The bound is above the mean and spread of errors at a rate of one in a thousand for one given wrong base.
    for depth in [100.0, 1000.0, 10_000.0, 100_000.0_f64] {
        let mean = depth / 1000.0;
        assert!(
            min_count_above_errors_at_depth(depth) > mean + 3.0 * mean.sqrt()
                && min_count_above_errors_at_depth(depth) < 20.0 + depth / 20.0
        );
    }
    // In a repeat fewer occurrences suffice for a branching k-mer, because their bases may have high quality. That is
    // tested later in the reads.
    let repeat = |n| [(b'A', b'C', [700, 1300]), (b'A', b'G', [0, n])];
    assert_eq!(picks(&repeat(4)), [(4, 0, true)]);
    assert_eq!(picks(&repeat(3)), []);
    // Whether the root is in a repeat is known once the depths are known.
    let few = CandidateKmer { tumour_count: 4, root_depth: 1300, selector: TUMOUR_SAMPLE, ..CandidateKmer::default() };
    assert!(few.needs_high_quality_bases() && few.is_in_repeat(100.0) && !few.is_in_repeat(500.0));
    assert!(!CandidateKmer { tumour_count: 9, ..few }.needs_high_quality_bases());
    // Where only the tumour is deep, the root is not in a repeat.
    assert_eq!(picks(&[(b'A', b'C', [30, 1300]), (b'A', b'G', [0, 4])]), []);
    // The same for a whole sample: at a depth of 2,000 three occurrences are not enough.
    let deep = CandidateSelector::for_tumour(K, 3, [1_000_000; 2], 2000.0, &SamplePairLibraryProperties::default());
    let mut found = Vec::new();
    deep.append_candidates_of_root(&root(&Rng(44).sequence(K as usize - 2), &[(b'A', b'G', [0, 4])]), &mut found);
    assert_eq!(found, []);
}

#[test]
fn roots_with_nothing_in_common_tell_strangers() {
    let strangers = |all: &[&[(u8, u8, [u32; 2])]]| {
        let rule = rule(K, 1);
        for counts in all {
            rule.append_candidates_of_root(&root(&Rng(45).sequence(K as usize - 2), counts), &mut Vec::new());
        }
        rule.num_genotype_mismatches()
    };
    let apart: &[_] = &[(b'A', b'C', [30, 0]), (b'A', b'G', [0, 30])];
    assert_eq!(strangers(&[apart]), 1);
    assert_eq!(strangers(&[apart, apart, apart]), 3);
    // One wrong read of the other allele changes nothing.
    assert_eq!(strangers(&[&[(b'A', b'C', [30, 1]), (b'A', b'G', [0, 29])]]), 1);
    // A somatic allele, an allele lost in the tumour, a germline allele; or too few reads to compare.
    assert_eq!(strangers(&[&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 15])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [15, 0]), (b'A', b'G', [15, 30])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [15, 15]), (b'A', b'G', [15, 15])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [3, 0]), (b'A', b'G', [0, 3])]]), 0);
}

#[test]
fn recurrent_errors_of_a_repeat_are_not_picked() {
    let beside = |depth: u32, seen: u32| picks(&[(b'A', b'C', [depth, depth]), (b'A', b'G', [0, seen])]).len();
    assert_eq!(beside(30, 3), 1);
    assert_eq!(beside(30_000, 20), 0);
    // Too few for bases of any quality, but enough if their bases have high quality.
    assert!(min_count_above_errors_at_depth(30_000.0) > 60.0);
    assert_eq!(beside(30_000, 60), 1);
    assert_eq!(beside(30_000, 300), 1);
}

#[test]
fn picks_are_canonical_kmers_with_a_direction() {
    let mut rng = Rng(42);
    for _ in 0..200 {
        let kmer = rng.sequence(K as usize);
        let mut found = Vec::new();
        let at = root(&kmer[1..K as usize - 1], &[(kmer[0], kmer[K as usize - 1], [0, 9])]);
        rule(K, 1).append_candidates_of_root(&at, &mut found);
        let word = pack(&kmer).unwrap();
        assert_eq!(found.iter().map(|p| p.kmer).collect::<Vec<_>>(), [word.min(reverse_complement_kmer(word, K))]);
    }
    // A palindromic k-mer (even k) has no direction.
    let mut found = Vec::new();
    rule(24, 1).append_candidates_of_root(&root(b"CGTACGTACGTACGTACGTACG", &[(b'A', b'T', [0, 9])]), &mut found);
    assert_eq!(found, []);
}
