//! Tests the removal of duplicates and of recurrent errors from labelled pairs.

use crate::common::{Interesting, K, READ, Rng, edit, find, pair, replaced};
use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::dna::reverse_complement;
use genuma_somatic::candidate_kmer::{CandidateKmer, MIN_HIGH_BASE_QUALITY};
use genuma_somatic::kmer_lookup::KmerHit;
use genuma_somatic::labelled_pair::{self, KmerMoleculeCounts, LabelledPair};

/// A haplotype of 1,000 bp with one wrong or changed base at 500.
struct Changed {
    haplotype: Vec<u8>,
    interesting: Interesting,
}

impl Changed {
    fn new(seed: u64) -> Changed {
        let mut rng = Rng(seed);
        let normal = rng.sequence(1000);
        let haplotype = replaced(&normal, 500, 1, &[rng.another(normal[500])]);
        let interesting = Interesting::new(&[&haplotype], &[&normal]);
        assert_eq!(interesting.ranks.len(), K as usize);
        Changed { haplotype, interesting }
    }

    /// Pairs of one molecule each; the first mate covers the change.
    fn pairs(&self, n: usize) -> Vec<LabelledPair> {
        let molecule = |i: usize| {
            let fragment = &self.haplotype[390 + 3 * i..710 + 4 * i];
            let mates = [fragment[..READ].to_vec(), reverse_complement(&fragment[fragment.len() - READ..])];
            pair(&format!("p{i}"), TUMOUR_SAMPLE, mates)
        };
        self.interesting.label((0..n).map(molecule).collect())
    }

    /// Candidate k-mers that are branching k-mers at tumour depth `depth`.
    fn picks(&self, depth: u32) -> Vec<CandidateKmer> {
        let ranks = self.interesting.ranks.iter();
        ranks
            .map(|(&kmer, &rank)| {
                let parts = self.interesting.parting[rank as usize];
                CandidateKmer {
                    kmer,
                    tumour_count: 8,
                    root_depth: if parts { depth } else { 0 },
                    selector: TUMOUR_SAMPLE,
                    ..CandidateKmer::default()
                }
            })
            .collect()
    }
}

/// The pairs that remain.
struct Believed {
    pairs: Vec<LabelledPair>,
    parting: Vec<bool>,
    copies: usize,
    errors: u64,
}

fn believe(labelled: Vec<LabelledPair>, picks: &[CandidateKmer], k: u32) -> Believed {
    let all = labelled.len();
    let mut pairs = labelled_pair::keep_best_pair_of_each_molecule(labelled, &[]);
    let copies = all - pairs.len();
    let carriers = KmerMoleculeCounts::zero_counts(picks.len(), 1);
    carriers.count_kmers_of_pairs(&pairs);
    let parting = carriers.confirm_branching_kmers(picks, &[pairs.len() as f64 / all as f64; 2], &[None; 2]);
    let errors = labelled_pair::remove_hits_of_errors(&mut pairs, &carriers, &parting, k);
    Believed { pairs, parting, copies, errors }
}

fn hits(pairs: &[LabelledPair]) -> usize {
    pairs.iter().flat_map(|p| &p.hits).map(Vec::len).sum()
}

#[test]
fn a_change_that_parts_the_samples_is_believed_whole() {
    let changed = Changed::new(1);
    let pairs = changed.pairs(8);
    let Believed { pairs: kept, parting, copies, errors } = believe(pairs.clone(), &changed.picks(30), K);
    assert!(kept == pairs);
    assert_eq!((copies, errors), (0, 0));
    // At both ends of its row of k-mers.
    assert_eq!(parting, changed.interesting.parting);
    assert_eq!(parting.iter().filter(|p| **p).count(), 2);
}

#[test]
fn wrong_bases_that_recur_where_nothing_parts_are_left_out_and_counted() {
    let changed = Changed::new(2);
    let pairs = changed.pairs(8);
    let all = hits(&pairs);
    assert_eq!(all, 8 * K as usize);
    // The end k-mers were not selected because they are too rare for the depth, or they are too rare after removal of
    // duplicates.
    for picks in [changed.picks(0), changed.picks(100_000)] {
        let believed = believe(pairs.clone(), &picks, K);
        assert_eq!((hits(&believed.pairs), believed.errors as usize), (0, all));
        assert!(!believed.parting.contains(&true));
    }
}

#[test]
fn in_a_repeat_good_bases_count_where_the_samples_part() {
    let changed = Changed::new(6);
    let with = |quality, times| {
        let mut pairs = changed.pairs(8);
        pairs.iter_mut().flat_map(|p| &mut p.mates).for_each(|mate| edit(mate, |read| read.qual.fill(quality)));
        let picks = changed.picks(1_300).into_iter().map(|pick| CandidateKmer { tumour_count: times, ..pick });
        hits(&believe(pairs, &picks.collect::<Vec<_>>(), K).pairs)
    };
    assert_eq!((with(MIN_HIGH_BASE_QUALITY - 1, 8), with(MIN_HIGH_BASE_QUALITY, 8)), (0, 8 * K as usize));
    // A k-mer that is frequent enough before removal of duplicates and too rare afterwards is a PCR error.
    assert_eq!(with(MIN_HIGH_BASE_QUALITY, 20), 0);
}

#[test]
fn a_row_longer_than_a_wrong_base_makes_is_novel_sequence() {
    let mut rng = Rng(3);
    let normal = rng.sequence(1000);
    let haplotype = replaced(&normal, 500, 0, &rng.sequence(100));
    let interesting = Interesting::new(&[&haplotype], &[&normal]);
    let inside = |i: usize| {
        let fragment = &haplotype[420 + 2 * i..900 + 3 * i];
        let mates = [fragment[..READ].to_vec(), reverse_complement(&fragment[fragment.len() - READ..])];
        pair(&format!("p{i}"), TUMOUR_SAMPLE, mates)
    };
    let pairs = interesting.label((0..8).map(inside).collect());
    let picks: Vec<CandidateKmer> = interesting
        .ranks
        .keys()
        .map(|&kmer| CandidateKmer { kmer, tumour_count: 8, selector: TUMOUR_SAMPLE, ..CandidateKmer::default() })
        .collect();
    let believed = believe(pairs.clone(), &picks, K);
    // Only k-mers with a single molecule are removed.
    assert!(hits(&believed.pairs) * 10 > hits(&pairs) * 9);
    assert_eq!(hits(&believed.pairs) + believed.errors as usize, hits(&pairs));
}

#[test]
fn copies_of_one_molecule_are_one_and_the_best_read_stays() {
    let changed = Changed::new(4);
    let mut pairs = changed.pairs(3);
    let mut best = pairs[1].clone();
    best.name = b"best".to_vec().into();
    edit(&mut best.mates[0], |read| read.qual.fill(40));
    let mut turned = pairs[2].clone();
    turned.name = b"turned".to_vec().into();
    turned.mates.reverse();
    turned.hits.reverse();
    edit(&mut turned.mates[0], |read| read.qual[50] = 2);
    pairs.extend([best, turned]);
    let believed = believe(pairs, &changed.picks(30), K);
    let mut names: Vec<&[u8]> = believed.pairs.iter().map(|p| &p.name[..]).collect();
    names.sort_unstable();
    assert_eq!((names, believed.copies), (vec![&b"best"[..], b"p0", b"p2"], 2));
    // Duplicates of a single molecule are no evidence for a change.
    let one = changed.pairs(1);
    let copies = (0..9).map(|i| LabelledPair { name: format!("c{i}").into_bytes().into(), ..one[0].clone() }).collect();
    let believed = believe(copies, &changed.picks(30), K);
    assert_eq!((believed.pairs.len(), believed.copies), (0, 8));
    assert_eq!(believed.errors as usize, hits(&one));
}

#[test]
fn a_spelled_repeat_stands_for_itself() {
    let changed = Changed::new(5);
    let with_repeat = |depth| {
        let mut pairs = changed.pairs(4);
        for p in &mut pairs {
            p.hits = [vec![KmerHit { start: 20, span: 80, rank: 0, forward: true }], Vec::new()];
        }
        let picks = [CandidateKmer {
            kmer: 1,
            tumour_count: 8,
            root_depth: depth,
            selector: TUMOUR_SAMPLE,
            ..CandidateKmer::default()
        }];
        let believed = believe(pairs, &picks, K);
        (hits(&believed.pairs), believed.parting)
    };
    assert_eq!(with_repeat(30), (4, vec![true]));
    assert_eq!(with_repeat(0), (0, vec![false]));
}

#[test]
fn pairs_are_where_they_were_taken_from() {
    // The other tests rely on this: the first mates cover the change.
    let changed = Changed::new(6);
    for p in changed.pairs(8) {
        let at = find(&changed.haplotype, &p.mates[0].unpack().seq).unwrap();
        assert!((at + K as usize..at + READ - K as usize).contains(&500));
    }
}

#[test]
fn copies_meet_whichever_end_they_are_read_from() {
    let changed = Changed::new(7);
    let pairs = changed.pairs(70);
    for pair in &pairs {
        let mut copy = pair.clone();
        copy.mates.reverse();
        // Errors after the first bases change nothing.
        copy.mates.iter_mut().for_each(|mate| edit(mate, |read| read.seq[20] = b'N'));
        assert_eq!(copy.duplicate_search_hash(), pair.duplicate_search_hash());
    }
    let mut starts: Vec<u64> = pairs.iter().map(LabelledPair::duplicate_search_hash).collect();
    starts.sort_unstable();
    starts.dedup();
    assert!(starts.len() == pairs.len() && pairs.len() > 30, "{} of {}", starts.len(), pairs.len());
    // Mates with few bases or none have a duplicate key too.
    let of = |mates: [&[u8]; 2]| pair("p", TUMOUR_SAMPLE, mates.map(<[u8]>::to_vec)).duplicate_search_hash();
    assert_eq!(of([b"", b"ACG"]), of([b"ACG", b""]));
}

#[test]
fn each_tumour_is_held_to_its_own_errors() {
    // Two molecules of the first tumour, one of the second; depths 300 and 40.
    let pair = |i: usize, sample: u8| {
        let mut rng = Rng(i as u64 + 900);
        let mut pair = pair(&format!("p{i}"), sample, [rng.sequence(READ), rng.sequence(READ)]);
        pair.hits[0] = vec![KmerHit { start: 20, span: K, rank: 0, forward: true }];
        pair
    };
    let pairs = [pair(0, 1), pair(1, 1), pair(2, 2), pair(3, 2), pair(4, 2)];
    let carriers = KmerMoleculeCounts::zero_counts(1, 2);
    carriers.count_kmers_of_pairs(&pairs);
    let parting = |picks: &[(u8, u32)]| {
        let pick = |&(rule, depth)| CandidateKmer {
            kmer: 1,
            tumour_count: 9,
            root_depth: depth,
            selector: rule,
            ..CandidateKmer::default()
        };
        let picks: Vec<CandidateKmer> = picks.iter().map(pick).collect();
        let parting = carriers.confirm_branching_kmers(&picks, &[1.0; 3], &[None; 3]);
        assert_eq!(parting.len(), 1, "one k-mer");
        parting[0]
    };
    assert!(!parting(&[(1, 300)]), "two of three hundred are errors");
    assert!(parting(&[(2, 40)]), "three of forty are not");
    assert!(parting(&[(1, 300), (2, 40)]));
    assert!(!parting(&[(0, 900)]), "five of nine hundred are errors");
    assert!(parting(&[(0, 80)]), "all five");
}
