//! Tests the selectors of candidate k-mers with several tumours of one person.

use crate::common::Rng;
use genuma_kmers::RootCounters;
use genuma_kmers::encode::pack;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_somatic::candidate_kmer::{CandidateKmer, CandidateSelector, POOLED_SELECTOR_NUMBER};
use genuma_somatic::candidate_selectors::CandidateSelectors;

const K: u32 = 31;
const GENOME: u64 = 1_000_000;

/// A root with counts `last base → [normal, tumours]` for one first base.
fn root<const S: usize>(counts: &[(u8, [u32; S])]) -> RootCounters<S> {
    let stem = pack(&Rng(41).sequence(K as usize - 2)).unwrap();
    let mut root = RootCounters { root: stem, counts: [[0; S]; 16] };
    for &(last, counts) in counts {
        root.counts[pack(&[last]).unwrap() as usize] = counts;
    }
    root
}

fn rules(depths: &[u64]) -> CandidateSelectors {
    let kmers: Vec<u64> = depths.iter().map(|depth| depth * GENOME).collect();
    CandidateSelectors::for_tumours(K, 2, &kmers, Some(GENOME), u64::MAX, &[])
}

/// Selector number, counts in the tumour and the normal, and root depth of each candidate.
fn summarize_candidates(picks: &[CandidateKmer]) -> Vec<(u8, u32, u32, u32)> {
    // Candidates of a normal without tumour cells.
    let of_clean_normal = picks.iter().filter(|p| p.tumour_in_normal_percent == 0);
    of_clean_normal.map(|p| (p.selector, p.tumour_count, p.normal_count, p.root_depth)).collect()
}

/// The candidates of a normal and two tumours with depth 40 each.
fn picked(counts: &[(u8, [u32; 4])]) -> Vec<(u8, u32, u32, u32)> {
    let mut picks = Vec::new();
    rules(&[40, 40, 40]).append_candidates_of_root(&root(counts), &mut picks);
    summarize_candidates(&picks)
}

#[test]
fn one_tumour_is_picked_of_as_ever() {
    let counts = [(b'A', [30, 16]), (b'C', [0, 14]), (b'G', [0, 2]), (b'T', [5, 6])];
    let (mut by_rules, mut by_select) = (Vec::new(), Vec::new());
    rules(&[30, 40]).append_candidates_of_root(&root(&counts), &mut by_rules);
    CandidateSelector::for_tumour(K, 2, [30 * GENOME, 40 * GENOME], 40.0, &SamplePairLibraryProperties::default())
        .append_candidates_of_root(&root(&counts), &mut by_select);
    assert_eq!(by_rules, by_select);
    assert_eq!(summarize_candidates(&by_rules), [(1, 14, 0, 38)]);
}

#[test]
fn what_one_tumour_shows_clearly_is_its_own() {
    assert_eq!(picked(&[(b'A', [40, 28, 40, 0]), (b'C', [0, 12, 0, 0])]), [(1, 12, 0, 40)]);
    // Both tumours show it: each has a candidate with its own depth.
    let both = [(b'A', [40, 28, 20, 0]), (b'C', [0, 12, 20, 0])];
    assert_eq!(picked(&both), [(1, 12, 0, 40), (2, 20, 0, 40)]);
    // Novel k-mers have no root depth.
    assert_eq!(picked(&[(b'C', [0, 0, 9, 0])]), [(2, 9, 0, 0)]);
}

#[test]
fn alleles_of_each_tumour_are_collected() {
    let rules = rules(&[40, 40, 40]);
    rules.append_candidates_of_root(&root(&[(b'A', [36, 40, 20, 0]), (b'C', [4, 0, 20, 0])]), &mut Vec::new());
    let [first, second] = &rules.tumour_alleles()[..] else { panic!("two tumours") };
    assert!(first.alleles.is_empty());
    let [(counts, roots)] = second.alleles[..] else { panic!("{second:?}") };
    assert_eq!((counts.tumour, counts.normal, roots), ([20, 40], [4, 40], 1));
}

#[test]
fn what_each_shows_too_seldom_is_picked_of_all_together() {
    assert_eq!(picked(&[(b'A', [40, 38, 38, 0]), (b'C', [0, 2, 2, 0])]), [(POOLED_SELECTOR_NUMBER, 4, 0, 80)]);
    // At the pooled depth there are more errors.
    assert_eq!(picked(&[(b'A', [40, 39, 39, 0]), (b'C', [0, 1, 1, 0])]), []);
    assert_eq!(picked(&[(b'A', [40, 1500, 1500, 0]), (b'C', [0, 6, 6, 0])]), []);
    assert_eq!(picked(&[(b'A', [40, 38, 38, 0]), (b'C', [5, 2, 2, 0])]), [], "the normal has it");
}

#[test]
fn each_tumour_may_be_another_persons() {
    let rules = rules(&[40, 40, 40]);
    // The first tumour has the normal's allele, the second does not.
    let mut picks = Vec::new();
    rules.append_candidates_of_root(&root(&[(b'A', [40, 20, 0, 0]), (b'C', [0, 20, 40, 0])]), &mut picks);
    assert_eq!(rules.num_genotype_mismatches(), [0, 1]);
    assert_eq!(rules.num_novel_candidates_found(), 0);
    rules.append_candidates_of_root(&root(&[(b'C', [0, 7, 9, 0])]), &mut picks);
    assert_eq!(rules.num_novel_candidates_found(), 2);
}
