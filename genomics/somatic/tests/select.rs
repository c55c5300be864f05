//! Depths read off spectra, and the rule that picks k-mers off one root's counters.
mod common;

use common::{K, Rng};
use genuma_kmers::RootCounters;
use genuma_kmers::encode::{pack, revcomp};
use genuma_reads::{NORMAL, TUMOUR};
use genuma_somatic::select::{Depths, Pick, select};

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

fn picks(counts: &[(u8, u8, [u32; 2])]) -> Vec<(u32, u32, bool)> {
    let mut found: Vec<Pick> = Vec::new();
    select(K, 3, &root(&Rng(41).sequence(K as usize - 2), counts), &mut found);
    found.iter().map(|p| (p.tumour, p.normal, p.parting)).collect()
}

#[test]
fn picks_what_the_tumour_has_and_the_normal_lacks() {
    // The samples part: the normal has the root with another extension.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 14])]), [(14, 0, true)]);
    // Novel sequence: the normal does not have the root at all.
    assert_eq!(picks(&[(b'A', b'G', [0, 14])]), [(14, 0, false)]);
    // Too few, or in the normal too.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [0, 2])]), []);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 14])]), []);
    // Contamination of one in six is allowed, more is not.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [2, 14])]), [(14, 2, true)]);
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [3, 14])]), []);
    // What only the normal has is not the tumour's gain.
    assert_eq!(picks(&[(b'A', b'C', [30, 15]), (b'A', b'G', [14, 0])]), []);
    // Two alleles of one root.
    assert_eq!(
        picks(&[(b'A', b'A', [0, 7]), (b'A', b'C', [30, 15]), (b'T', b'C', [0, 8])]),
        [(7, 0, true), (8, 0, true)]
    );
}

#[test]
fn recurrent_errors_of_a_repeat_are_not_picked() {
    let beside =
        |depth: u32, seen: u32| picks(&[(b'A', b'C', [depth, depth]), (b'A', b'G', [0, seen])]).len();
    assert_eq!(beside(30, 3), 1);
    assert_eq!(beside(30_000, 60), 0);
    assert_eq!(beside(30_000, 300), 1);
}

#[test]
fn picks_are_canonical_kmers_with_a_direction() {
    let mut rng = Rng(42);
    for _ in 0..200 {
        let kmer = rng.sequence(K as usize);
        let mut found = Vec::new();
        let at = root(&kmer[1..K as usize - 1], &[(kmer[0], kmer[K as usize - 1], [0, 9])]);
        select(K, 3, &at, &mut found);
        let word = pack(&kmer).unwrap();
        assert_eq!(found.iter().map(|p| p.kmer).collect::<Vec<_>>(), [word.min(revcomp(word, K))]);
    }
    // Its own reverse complement has no direction (even k).
    let mut found = Vec::new();
    select(24, 3, &root(b"CGTACGTACGTACGTACGTACG", &[(b'A', b'T', [0, 9])]), &mut found);
    assert_eq!(found, []);
}
