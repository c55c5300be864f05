//! The tumour's labelled pairs → contigs, a pile at a time, wherever the piles are.
mod common;

use std::collections::{BTreeMap, HashSet};

use common::{Interesting, K, Rng, Sequencer, replaced};
use genuma_reads::TUMOUR;
use genuma_somatic::gather::{Gather, Gathered, Gathering};
use genuma_somatic::label::Labelled;
use genuma_somatic::select::Pick;

/// Forty places with a changed base each, read twenty times, every third pair copied.
struct World {
    pairs: Vec<Labelled>,
    interesting: Interesting,
    tumour: Vec<Vec<u8>>,
}

impl World {
    fn new() -> World {
        let mut rng = Rng(31);
        let normal: Vec<Vec<u8>> = (0..40).map(|_| rng.sequence(900)).collect();
        let tumour: Vec<Vec<u8>> =
            normal.iter().map(|n| replaced(n, 450, 1, &[rng.another(n[450])])).collect();
        let interesting = Interesting::new(
            &tumour.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &normal.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        let mut sequencer = Sequencer { rng: Rng(32), sample: TUMOUR, depth: 20, error: 0.001 };
        let mut pairs = Vec::new();
        for (i, haplotype) in tumour.iter().enumerate() {
            let of_one = sequencer.pairs(haplotype).into_iter();
            pairs.extend(of_one.map(|pair| Labelled {
                name: [&pair.name, format!("t{i}").as_bytes()].concat().into(),
                ..pair
            }));
        }
        let copies: Vec<Labelled> = pairs
            .iter()
            .step_by(3)
            .map(|pair| Labelled { name: [&pair.name, &b"copy"[..]].concat().into(), ..pair.clone() })
            .collect();
        pairs.extend(copies);
        Rng(33).shuffle(&mut pairs);
        World { pairs: interesting.label(pairs), interesting, tumour }
    }

    fn gathered(&self, memory: u64, threads: usize, followed: &[HashSet<u32>]) -> Gathered {
        let work = tempfile::tempdir().unwrap();
        let pick = |(&kmer, &rank): (&u64, &u32)| {
            let depth = if self.interesting.parting[rank as usize] { 20 } else { 0 };
            Pick { kmer, tumour: 20, normal: 0, depth, rule: TUMOUR }
        };
        let picks = self.interesting.ranks.iter().map(pick).collect();
        let with = Gather { picks, tumours: 1, k: K, threads, memory, work: work.path(), followed };
        let gathering = Gathering::new(with);
        self.pairs.iter().for_each(|pair| gathering.put(pair.clone()).unwrap());
        gathering.assemble().unwrap()
    }
}

#[test]
fn each_change_is_a_contig_whatever_memory_and_threads_there_are() {
    let world = World::new();
    // Of three places each, k-mers of which the ranks are known.
    let mut of_place: BTreeMap<usize, HashSet<u32>> = BTreeMap::new();
    for (place, haplotype) in world.tumour.iter().enumerate().take(3) {
        let ranks = genuma_kmers::encode::kmers(haplotype, K);
        let ranks = ranks.filter_map(|(_, kmer)| world.interesting.ranks.get(&kmer.canonical()).copied());
        of_place.insert(place, ranks.collect());
    }
    let followed: Vec<HashSet<u32>> = of_place.into_values().chain([HashSet::new()]).collect();
    let all = world.gathered(u64::MAX, 1, &followed);
    assert_eq!((all.pairs, all.groups), (world.pairs.len() as u64, 40));
    // And pairs that happen to be of fragments alike.
    let copied = world.pairs.iter().filter(|pair| pair.name.ends_with(b"copy")).count() as u64;
    assert!((copied..copied + copied / 10).contains(&all.copies), "{} of {copied}", all.copies);
    let contigs = &all.assembled.contigs;
    let places = contigs.iter().filter_map(|contig| {
        let turned = genuma_reads::dna::revcomp(&contig.seq);
        world
            .tumour
            .iter()
            .position(|t| [&contig.seq, &turned].iter().any(|seq| common::find(t, seq).is_some()))
    });
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places, (0..40).collect::<Vec<_>>());
    for seen in &all.followed[..3] {
        let [(_, here, of)] = seen.groups[..] else { panic!("{seen:?}") };
        assert!(here == seen.pairs && here == of && here > 5, "{seen:?}");
    }
    assert_eq!((all.followed[3].pairs, all.followed[3].groups.len()), (0, 0));
    for (memory, threads) in [(0, 1), (0, 3), (200_000, 2), (1 << 30, 4)] {
        let again = world.gathered(memory, threads, &followed);
        assert_eq!(again.assembled, all.assembled, "{memory} bytes, {threads} threads");
        assert_eq!((again.copies, again.errors, again.lone), (all.copies, all.errors, all.lone));
        assert_eq!(again.followed, all.followed);
    }
}
