//! Tests that labelled pairs give the same contigs whether their buckets are in memory or on disk.

use std::collections::{BTreeMap, HashSet};

use crate::common::{Interesting, K, Rng, Sequencer, replaced};
use genuma_reads::TUMOUR_SAMPLE;
use genuma_somatic::candidate_kmer::CandidateKmer;
use genuma_somatic::group_assembly::{GroupAssembler, GroupAssemblyParams, GroupAssemblyResult};
use genuma_somatic::labelled_pair::LabelledPair;

/// Forty loci with a changed base each, 20 reads at each locus, every third pair duplicated.
struct World {
    pairs: Vec<LabelledPair>,
    interesting: Interesting,
    tumour: Vec<Vec<u8>>,
}

impl World {
    fn new() -> World {
        let mut rng = Rng(31);
        let normal: Vec<Vec<u8>> = (0..40).map(|_| rng.sequence(900)).collect();
        let tumour: Vec<Vec<u8>> = normal.iter().map(|n| replaced(n, 450, 1, &[rng.another(n[450])])).collect();
        let interesting = Interesting::new(
            &tumour.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &normal.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        let mut sequencer = Sequencer { rng: Rng(32), sample: TUMOUR_SAMPLE, depth: 20, error: 0.001 };
        let mut pairs = Vec::new();
        for (i, haplotype) in tumour.iter().enumerate() {
            let of_one = sequencer.pairs(haplotype).into_iter();
            pairs.extend(
                of_one.map(|pair| LabelledPair {
                    name: [&pair.name, format!("t{i}").as_bytes()].concat().into(),
                    ..pair
                }),
            );
        }
        let copies: Vec<LabelledPair> = pairs
            .iter()
            .step_by(3)
            .map(|pair| LabelledPair { name: [&pair.name, &b"copy"[..]].concat().into(), ..pair.clone() })
            .collect();
        pairs.extend(copies);
        Rng(33).shuffle(&mut pairs);
        World { pairs: interesting.label(pairs), interesting, tumour }
    }

    fn gathered(&self, memory: u64, threads: usize, followed: &[HashSet<u32>]) -> GroupAssemblyResult {
        let work = tempfile::tempdir().unwrap();
        let pick = |(&kmer, &rank): (&u64, &u32)| {
            let depth = if self.interesting.parting[rank as usize] { 20 } else { 0 };
            CandidateKmer {
                kmer,
                tumour_count: 20,
                root_depth: depth,
                selector: TUMOUR_SAMPLE,
                ..CandidateKmer::default()
            }
        };
        let picks = self.interesting.ranks.iter().map(pick).collect();
        let with = GroupAssemblyParams {
            candidates: picks,
            num_tumours: 1,
            libraries: &[],
            k: K,
            threads,
            memory_bytes: memory,
            work_dir: work.path(),
            traced_kmers: followed,
        };
        let gathering = GroupAssembler::empty(with);
        self.pairs.iter().for_each(|pair| gathering.add_pair(pair.clone()).unwrap());
        gathering.group_and_assemble_pairs().unwrap()
    }
}

#[test]
fn each_change_is_a_contig_whatever_memory_and_threads_there_are() {
    let world = World::new();
    // Ranks of the k-mers of three loci each.
    let mut of_place: BTreeMap<usize, HashSet<u32>> = BTreeMap::new();
    for (place, haplotype) in world.tumour.iter().enumerate().take(3) {
        let ranks = genuma_kmers::encode::kmers(haplotype, K);
        let ranks = ranks.filter_map(|(_, kmer)| world.interesting.ranks.get(&kmer.canonical()).copied());
        of_place.insert(place, ranks.collect());
    }
    let followed: Vec<HashSet<u32>> = of_place.into_values().chain([HashSet::new()]).collect();
    let all = world.gathered(u64::MAX, 1, &followed);
    assert_eq!((all.pairs, all.groups), (world.pairs.len() as u64, 40));
    // Includes pairs of different fragments that look alike.
    let copied = world.pairs.iter().filter(|pair| pair.name.ends_with(b"copy")).count() as u64;
    assert!((copied..copied + copied / 10).contains(&all.duplicates), "{} of {copied}", all.duplicates);
    let contigs = &all.assembled.contigs;
    let places = contigs.iter().filter_map(|contig| {
        let turned = genuma_reads::dna::reverse_complement(&contig.seq);
        world.tumour.iter().position(|t| [&contig.seq, &turned].iter().any(|seq| crate::common::find(t, seq).is_some()))
    });
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places, (0..40).collect::<Vec<_>>());
    for seen in &all.traced[..3] {
        let [(_, here, of)] = seen.groups[..] else { panic!("{seen:?}") };
        assert!(here == seen.pairs && here == of && here > 5, "{seen:?}");
    }
    assert_eq!((all.traced[3].pairs, all.traced[3].groups.len()), (0, 0));
    for (memory, threads) in [(0, 1), (0, 3), (200_000, 2), (1 << 30, 4)] {
        let again = world.gathered(memory, threads, &followed);
        assert_eq!(again.assembled, all.assembled, "{memory} bytes, {threads} threads");
        assert_eq!(
            (again.duplicates, again.error_kmers, again.pairs_in_small_groups),
            (all.duplicates, all.error_kmers, all.pairs_in_small_groups)
        );
        assert_eq!(again.traced, all.traced);
    }
}
