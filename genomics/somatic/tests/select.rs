//! Depths read off spectra, and the rule that picks k-mers off one root's counters.
mod common;

use common::{K, Rng};
use genuma_kmers::RootCounters;
use genuma_kmers::encode::{pack, revcomp};
use genuma_reads::{NORMAL, TUMOUR};
use genuma_somatic::select::{Depths, Pick, Select, beyond_errors, usual_depth};

/// What a spectrum is made of: errors that thin out, and bells of k-mers with one or two haplotypes.
struct Mixture {
    depth: f64,
    /// Distinct k-mers that both haplotypes have, and those that one has.
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

fn depths(normal: f64, tumour: f64, one: f64) -> Depths {
    let spectrum = |depth| Mixture { depth, both: 5e6 - one, one, errors: 2e7 }.spectrum();
    Depths::of(&[spectrum(normal), spectrum(tumour)])
}

#[test]
fn the_depth_is_that_of_the_homozygous_peak() {
    for (normal, tumour) in [(24.0, 24.0), (48.0, 24.0), (24.0, 48.0), (8.0, 24.0), (10.0, 10.0)] {
        // Also in a very heterozygous genome, where more than half of the k-mers stand on one haplotype only; at ten
        // or less the two bells are one.
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
    assert!((usual_depth(&spectrum) - 40.0).abs() <= 2.0, "{}", usual_depth(&spectrum));
    // A panel: what was caught is at all depths up to 600, what was not at a few.
    let panel: Vec<u64> =
        (0..1000u64).map(|m| if m < 20 { 400_000 >> m } else { u64::from(m < 600) * 300 }).collect();
    assert!((300.0..500.0).contains(&usual_depth(&panel)), "{}", usual_depth(&panel));
    assert_eq!(usual_depth(&[]), 0.0);
}

#[test]
fn the_share_of_errors_is_what_lies_before_the_valley() {
    let share = |errors: f64| {
        let spectrum = Mixture { depth: 30.0, both: 1e6, one: 0.0, errors }.spectrum();
        Depths::of(&[spectrum.clone(), spectrum]).error_share
    };
    // 1e6 k-mers 30 times each, and `errors` once or a little more.
    let expected = |errors: f64| {
        let mass = errors * (1.0 + 2.0 * 0.08 + 3.0 * 0.0064);
        mass / (mass + 3e7)
    };
    for errors in [1e5, 1e6, 1e7] {
        assert!((share(errors) - expected(errors)).abs() < 0.02 * expected(errors), "{errors}");
    }
    assert_eq!(Depths::of(&[vec![0; 1024], vec![0; 1024]]).error_share, 0.0);
}

/// A root with counts `(first, last) → [normal, tumour]`.
fn root(stem: &[u8], counts: &[(u8, u8, [u32; 2])]) -> RootCounters {
    let mut counters = RootCounters { stem: pack(stem).unwrap(), counts: [[0; 2]; 16] };
    for &(first, last, [normal, tumour]) in counts {
        let slot = 4 * pack(&[first]).unwrap() + pack(&[last]).unwrap();
        let cell = &mut counters.counts[slot as usize];
        (cell[NORMAL as usize], cell[TUMOUR as usize]) = (normal, tumour);
    }
    counters
}

/// A rule for samples of which the tumour has `ratio` times as many k-mers as the normal.
fn rule(k: u32, ratio: u64) -> Select {
    Select::new(k, 3, [1_000_000, 1_000_000 * ratio], 30.0)
}

/// Times seen in the tumour and in the normal, and whether the samples part there.
fn picks_at(ratio: u64, counts: &[(u8, u8, [u32; 2])]) -> Vec<(u32, u32, bool)> {
    let mut found: Vec<Pick> = Vec::new();
    rule(K, ratio).root(&root(&Rng(41).sequence(K as usize - 2), counts), &mut found);
    found.iter().map(|p| (p.tumour, p.normal, p.parting())).collect()
}

fn picks(counts: &[(u8, u8, [u32; 2])]) -> Vec<(u32, u32, bool)> {
    picks_at(1, counts)
}

#[test]
fn picks_what_the_tumour_has_and_the_normal_lacks() {
    // The samples part: the normal has the root with another extension.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])]), [(14, 0, true)]);
    // Novel sequence: the normal does not have the root at all.
    assert_eq!(picks(&[(b'A', b'G', [0, 14])]), [(14, 0, false)]);
    // Where the normal was hardly read nothing can be said of where they part.
    assert_eq!(picks(&[(b'A', b'C', [1, 15]), (b'A', b'G', [0, 14])]), [(15, 1, false), (14, 0, false)]);
    // Too few, or in the normal too.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 2])]), []);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 14])]), []);
    // A little contamination is allowed, more is not.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [1, 14])]), [(14, 1, true)]);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [6, 14])]), []);
    // What only the normal has is not the tumour's gain.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 0])]), []);
    // Two alleles of one root.
    assert_eq!(
        picks(&[(b'A', b'A', [0, 7]), (b'A', b'C', [30, 15]), (b'T', b'C', [0, 8])]),
        [(7, 0, true), (8, 0, true)]
    );
}

#[test]
fn what_the_normal_does_not_know_is_counted_beyond_what_is_wanted() {
    let rule = rule(K, 1).with_unknown(2);
    let mut found: Vec<Pick> = Vec::new();
    for seed in 0..5 {
        let stem = Rng(seed).sequence(K as usize - 2);
        rule.root(&root(&stem, &[(b'A', b'G', [0, 14])]), &mut found);
        rule.root(&root(&stem, &[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])]), &mut found);
    }
    assert_eq!(rule.unknown(), 5);
    assert_eq!(found.iter().filter(|pick| pick.parting()).count(), 5);
    assert_eq!(found.iter().filter(|pick| !pick.parting()).count(), 2);
}

#[test]
fn allowances_follow_the_depths_of_the_samples() {
    // A germline allele, the tumour four times as deep: what the normal has of it is no contamination.
    let germline = |normal| [(b'A', b'C', [15, 60]), (b'A', b'G', [normal, 60])];
    for normal in 4..16 {
        assert_eq!(picks_at(4, &germline(normal)), [], "{normal}");
    }
    assert_eq!(picks_at(4, &germline(0)), [(60, 0, true)]);
    // In novel sequence the samples' sizes tell.
    let novel = |normal| [(b'A', b'G', [normal, 60])];
    assert_eq!(picks_at(1, &novel(3)), [(60, 3, false)]);
    assert_eq!(picks_at(8, &novel(3)), []);
    assert_eq!(picks_at(8, &novel(0)), [(60, 0, false)]);
    // However often an amplified tumour has it, a germline allele of the normal stays one.
    assert_eq!(picks(&[(b'A', b'C', [15, 15]), (b'A', b'G', [15, 3000])]), []);
    assert_eq!(picks(&[(b'A', b'C', [30, 1500]), (b'A', b'G', [0, 1500])]), [(1500, 0, true)]);
    assert_eq!(picks(&[(b'A', b'C', [30, 1500])]), []);
}

#[test]
fn the_depth_at_a_place_where_samples_part_is_that_of_the_tumours_root() {
    let mut found = Vec::new();
    let counts = [(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])];
    rule(K, 1).root(&root(&Rng(43).sequence(K as usize - 2), &counts), &mut found);
    assert_eq!(found.iter().map(|p| p.depth).collect::<Vec<_>>(), [29]);
}

#[test]
fn errors_raise_the_bar_with_depth() {
    assert!((0..2000).all(|d| beyond_errors(f64::from(d)) <= beyond_errors(f64::from(d + 1))));
    // Mean and spread of what errors make stay under it: one particular wrong base in a thousand.
    for depth in [100.0, 1000.0, 10_000.0, 100_000.0_f64] {
        let mean = depth / 1000.0;
        assert!(
            beyond_errors(depth) > mean + 3.0 * mean.sqrt() && beyond_errors(depth) < 20.0 + depth / 20.0
        );
    }
    // In a repeat fewer suffice where the samples part, as their bases may be good: that is told where the reads are.
    let repeat = |n| [(b'A', b'C', [700, 1300]), (b'A', b'G', [0, n])];
    assert_eq!(picks(&repeat(4)), [(4, 0, true)]);
    assert_eq!(picks(&repeat(3)), []);
    // Whether it is a repeat is known when the depths are.
    let few = Pick { kmer: 0, tumour: 4, normal: 0, depth: 1300, rule: TUMOUR };
    assert!(few.wants_good_bases() && few.in_repeat(100.0) && !few.in_repeat(500.0));
    assert!(!Pick { tumour: 9, ..few }.wants_good_bases());
    // Where the tumour alone is deep, nothing is a repeat.
    assert_eq!(picks(&[(b'A', b'C', [30, 1300]), (b'A', b'G', [0, 4])]), []);
    // And for a whole sample at once: at 2,000x three occurrences are nothing.
    let deep = Select::new(K, 3, [1_000_000; 2], 2000.0);
    let mut found = Vec::new();
    deep.root(&root(&Rng(44).sequence(K as usize - 2), &[(b'A', b'G', [0, 4])]), &mut found);
    assert_eq!(found, []);
}

#[test]
fn roots_with_nothing_in_common_tell_strangers() {
    let strangers = |all: &[&[(u8, u8, [u32; 2])]]| {
        let rule = rule(K, 1);
        for counts in all {
            rule.root(&root(&Rng(45).sequence(K as usize - 2), counts), &mut Vec::new());
        }
        rule.strangers()
    };
    let apart: &[_] = &[(b'A', b'C', [30, 0]), (b'A', b'G', [0, 30])];
    assert_eq!(strangers(&[apart]), 1);
    assert_eq!(strangers(&[apart, apart, apart]), 3);
    // A wrong read of the other allele changes nothing.
    assert_eq!(strangers(&[&[(b'A', b'C', [30, 1]), (b'A', b'G', [0, 29])]]), 1);
    // Somatic, lost in the tumour, germline; or too few reads to tell.
    assert_eq!(strangers(&[&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 15])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [15, 0]), (b'A', b'G', [15, 30])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [15, 15]), (b'A', b'G', [15, 15])]]), 0);
    assert_eq!(strangers(&[&[(b'A', b'C', [3, 0]), (b'A', b'G', [0, 3])]]), 0);
}

#[test]
fn recurrent_errors_of_a_repeat_are_not_picked() {
    let beside =
        |depth: u32, seen: u32| picks(&[(b'A', b'C', [depth, depth]), (b'A', b'G', [0, seen])]).len();
    assert_eq!(beside(30, 3), 1);
    assert_eq!(beside(30_000, 20), 0);
    // Too few for bases of any quality, but those of good bases may be true.
    assert!(beyond_errors(30_000.0) > 60.0);
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
        rule(K, 1).root(&at, &mut found);
        let word = pack(&kmer).unwrap();
        assert_eq!(found.iter().map(|p| p.kmer).collect::<Vec<_>>(), [word.min(revcomp(word, K))]);
    }
    // Its own reverse complement has no direction (even k).
    let mut found = Vec::new();
    rule(24, 1).root(&root(b"CGTACGTACGTACGTACGTACG", &[(b'A', b'T', [0, 9])]), &mut found);
    assert_eq!(found, []);
}
