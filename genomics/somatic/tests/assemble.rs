//! Tests the assembly: labelled pairs become groups and contigs with the sequence of the tumour's haplotype.

use crate::common::{Interesting, Rng, Sequencer, canonical, edit, find, novel, replaced};
use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::dna::reverse_complement;
use genuma_somatic::assemble::{AssembledContigs, Contig, MIN_CONTIG_PAIRS, assemble_group};
use genuma_somatic::group::{DisjointSets, group_pairs};
use genuma_somatic::labelled_pair::LabelledPair;

/// Tumour and normal haplotypes, and the depth of each tumour haplotype.
struct Tissue<'a> {
    tumour: &'a [&'a [u8]],
    normal: &'a [&'a [u8]],
    depth: usize,
    error: f64,
    seed: u64,
}

impl Tissue<'_> {
    fn labelled(&self) -> (Vec<LabelledPair>, Interesting) {
        let mut sequencer =
            Sequencer { rng: Rng(self.seed), sample: TUMOUR_SAMPLE, depth: self.depth, error: self.error };
        let pairs = self.tumour.iter().chain(self.normal).flat_map(|h| sequencer.pairs(h)).collect();
        let interesting = Interesting::new(self.tumour, self.normal);
        (interesting.label(pairs), interesting)
    }

    fn contigs(&self) -> Vec<Vec<Contig>> {
        let (labelled, interesting) = self.labelled();
        let groups = groups(&labelled, &interesting.parting);
        let contigs = |g: &Vec<u32>| assemble_group(g, &labelled, &interesting.parting).contigs;
        groups.iter().map(|g| checked(contigs(g), &labelled, self)).collect()
    }
}

/// The groups with a branching k-mer.
fn groups(labelled: &[LabelledPair], parting: &[bool]) -> Vec<Vec<u32>> {
    let sets = DisjointSets::create_singleton_sets(parting.len());
    sets.join_kmers_of_pairs(labelled);
    group_pairs(labelled, &sets, parting, MIN_CONTIG_PAIRS).groups
}

/// Asserts that every contig is part of a tumour haplotype, is novel exactly where the normal lacks the k-mers, has
/// the quality sums and positions of its reads, and has outer mates beyond its ends.
fn checked(contigs: Vec<Contig>, labelled: &[LabelledPair], tissue: &Tissue) -> Vec<Contig> {
    let known = canonical(tissue.normal);
    for contig in &contigs {
        assert!(place(contig, tissue.tumour).is_some(), "{}", String::from_utf8_lossy(&contig.seq));
        assert_eq!(contig.novel, novel(&contig.seq, &known));
        let mut weight = vec![0u16; contig.seq.len()];
        for placed in &contig.reads {
            let read = labelled[placed.pair as usize].mates[placed.mate as usize].unpack();
            let read = if placed.forward { read } else { read.reverse_complement() };
            let (mut inside, mut differing) = (0, 0);
            for (i, base) in read.seq.iter().enumerate() {
                let at = usize::try_from(placed.start + i as i32).ok();
                if let Some(other) = at.and_then(|at| contig.seq.get(at)) {
                    inside += 1;
                    differing += usize::from(other != base);
                    if other == base {
                        weight[(placed.start + i as i32) as usize] += u16::from(read.qual[i]);
                    }
                }
            }
            assert!(inside >= crate::common::K as usize);
            assert!(differing <= if tissue.error > 0.0 { inside / 10 } else { 0 }, "{differing} of {inside}");
        }
        assert_eq!(contig.quality_sums, weight);
        if tissue.error == 0.0 {
            mates_lie_beyond(contig, tissue.tumour);
        }
    }
    contigs
}

/// Asserts that the outer mates of both ends have the orientation of the contig and extend beyond it on their side.
fn mates_lie_beyond(contig: &Contig, haplotypes: &[&[u8]]) {
    let turned: Vec<Vec<u8>> = haplotypes.iter().map(|h| reverse_complement(h)).collect();
    let all: Vec<&[u8]> = haplotypes.iter().copied().chain(turned.iter().map(Vec::as_slice)).collect();
    for (side, mates) in contig.outer_mates.iter().enumerate() {
        for mate in mates {
            let beyond = all.iter().any(|haplotype| {
                let (Some(at), Some(mate_at)) = (find(haplotype, &contig.seq), find(haplotype, mate)) else {
                    return false;
                };
                if side == 0 { mate_at < at } else { mate_at + mate.len() > at + contig.seq.len() }
            });
            assert!(beyond, "side {side}");
        }
    }
}

/// The haplotype that a contig is part of, and its range there.
fn place(contig: &Contig, haplotypes: &[&[u8]]) -> Option<(usize, std::ops::Range<usize>)> {
    haplotypes.iter().enumerate().find_map(|(h, haplotype)| {
        let at = find(haplotype, &contig.seq).or_else(|| find(haplotype, &reverse_complement(&contig.seq)))?;
        Some((h, at..at + contig.seq.len()))
    })
}

/// One change in the middle of `normal` must give one group and one contig, with at least 60 bp on both sides of the
/// change.
fn one_contig(normal: &[u8], tumour: &[u8], changed: std::ops::Range<usize>) {
    for (error, seed) in [(0.0, 1), (0.0, 2), (0.004, 3), (0.004, 4)] {
        let tissue = Tissue { tumour: &[tumour], normal: &[normal], depth: 20, error, seed };
        let groups = tissue.contigs();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].len(), 1);
        let (_, range) = place(&groups[0][0], &[tumour]).unwrap();
        assert!(range.start + 60 <= changed.start && range.end >= changed.end + 60, "{range:?} round {changed:?}");
    }
}

#[test]
fn substitutions_deletions_and_insertions() {
    let mut rng = Rng(11);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    one_contig(&normal, &replaced(&normal, 1000, 1, &[base]), 1000..1001);
    for size in [1, 20] {
        one_contig(&normal, &replaced(&normal, 1000, size, b""), 1000..1000);
        let added = rng.sequence(size);
        one_contig(&normal, &replaced(&normal, 1000, 0, &added), 1000..1000 + size);
    }
}

#[test]
fn an_insertion_inside_a_homopolymer() {
    let mut normal = Rng(12).sequence(2000);
    normal[1000..1015].fill(b'A');
    (normal[999], normal[1015]) = (b'C', b'G');
    one_contig(&normal, &replaced(&normal, 1000, 0, b"A"), 1000..1016);
    one_contig(&normal, &replaced(&normal, 1000, 1, b""), 1000..1014);
}

#[test]
fn a_short_tandem_repeat_longer_than_k_stays_in_one_piece() {
    let mut normal = Rng(13).sequence(2000);
    for (i, base) in normal[1000..1060].iter_mut().enumerate() {
        *base = b"CA"[i % 2];
    }
    (normal[999], normal[1060]) = (b'G', b'T');
    // An interrupted repeat: the flanks of the change have the same sequence several times.
    let tumour = replaced(&normal, 1030, 1, b"T");
    one_contig(&normal, &tumour, 1030..1031);
}

#[test]
fn a_long_novel_insertion() {
    let mut rng = Rng(14);
    let normal = rng.sequence(2000);
    let added = rng.sequence(300);
    one_contig(&normal, &replaced(&normal, 1000, 0, &added), 1000..1300);
}

#[test]
fn a_junction_of_two_places() {
    let mut rng = Rng(15);
    let (one, two) = (rng.sequence(2000), rng.sequence(2000));
    let tumour = [&one[..1000], &reverse_complement(&two[..900])[..]].concat();
    for (error, seed) in [(0.0, 5), (0.004, 6)] {
        let tissue = Tissue { tumour: &[&tumour], normal: &[&one, &two], depth: 20, error, seed };
        let groups = tissue.contigs();
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
        let (_, range) = place(&groups[0][0], &[&tumour]).unwrap();
        assert!(range.start <= 940 && range.end >= 1060, "{range:?}");
    }
}

#[test]
fn near_changes_of_one_haplotype_share_a_contig() {
    let mut rng = Rng(16);
    let normal = rng.sequence(2000);
    let (one, two) = (rng.another(normal[1000]), rng.another(normal[1020]));
    let tumour = replaced(&replaced(&normal, 1000, 1, &[one]), 1020, 1, &[two]);
    one_contig(&normal, &tumour, 1000..1021);
}

#[test]
fn near_changes_of_two_haplotypes_have_a_contig_each() {
    let mut rng = Rng(17);
    let normal = rng.sequence(2000);
    let one = replaced(&normal, 1000, 1, &[rng.another(normal[1000])]);
    let two = replaced(&normal, 1020, 1, &[rng.another(normal[1020])]);
    let tissue = Tissue { tumour: &[&one, &two], normal: &[&normal], depth: 20, error: 0.0, seed: 7 };
    let haplotypes = |contigs: &[Contig]| {
        let mut which: Vec<usize> = contigs.iter().map(|c| place(c, tissue.tumour).unwrap().0).collect();
        which.sort_unstable();
        which
    };
    assert_eq!(haplotypes(&tissue.contigs().concat()), [0, 1]);
    // The result is the same if their groups are joined.
    let (labelled, interesting) = tissue.labelled();
    let all: Vec<u32> = (0..labelled.len() as u32).collect();
    let contigs = assemble_group(&all, &labelled, &interesting.parting).contigs;
    assert_eq!(haplotypes(&checked(contigs, &labelled, &tissue)), [0, 1]);
}

#[test]
fn bad_bases_at_the_change_give_nothing() {
    let mut rng = Rng(18);
    let normal = rng.sequence(2000);
    let tumour = replaced(&normal, 1000, 1, &[rng.another(normal[1000])]);
    let tissue = Tissue { tumour: &[&tumour], normal: &[&normal], depth: 20, error: 0.0, seed: 8 };
    let (mut labelled, interesting) = tissue.labelled();
    let spoil = |labelled: &mut [LabelledPair]| {
        for pair in labelled {
            for mate in &mut pair.mates {
                edit(mate, |read| {
                    let runs = [find(&tumour, &read.seq), find(&tumour, &reverse_complement(&read.seq))];
                    let at = match runs {
                        [Some(from), _] => 1000usize.checked_sub(from),
                        [_, Some(from)] => (from + read.seq.len()).checked_sub(1001),
                        _ => None,
                    };
                    if let Some(quality) = at.and_then(|at| read.qual.get_mut(at)) {
                        *quality = 5;
                    }
                });
            }
        }
    };
    let groups = groups(&labelled, &interesting.parting);
    assert_eq!(groups.len(), 1);
    assert_eq!(assemble_group(&groups[0], &labelled, &interesting.parting).contigs.len(), 1);
    spoil(&mut labelled);
    // The only base that all candidate k-mers share has low quality in every read.
    let AssembledContigs { contigs, low_quality_stacks: poor, .. } =
        assemble_group(&groups[0], &labelled, &interesting.parting);
    assert_eq!(contigs, []);
    assert!(poor > 0, "what is left out is counted");
}

#[test]
fn too_few_pairs_give_nothing_and_the_order_of_pairs_nothing_else() {
    let mut rng = Rng(19);
    let normal = rng.sequence(2000);
    let tumour = replaced(&normal, 1000, 1, &[rng.another(normal[1000])]);
    let tissue = Tissue { tumour: &[&tumour], normal: &[&normal], depth: 20, error: 0.004, seed: 9 };
    let (labelled, interesting) = tissue.labelled();
    let groups = groups(&labelled, &interesting.parting);
    let assemble = |pairs: &[u32]| assemble_group(pairs, &labelled, &interesting.parting).contigs;
    assert_eq!(assemble(&groups[0][..MIN_CONTIG_PAIRS - 1]), []);
    let expected = assemble(&groups[0]);
    let place_of = |c: &Contig| place(c, tissue.tumour).unwrap();
    for seed in 0..5 {
        let mut shuffled = groups[0].clone();
        Rng(seed).shuffle(&mut shuffled);
        let contigs = assemble(&shuffled);
        assert_eq!(contigs.iter().map(place_of).collect::<Vec<_>>(), expected.iter().map(place_of).collect::<Vec<_>>());
    }
}

#[test]
fn places_welded_into_one_group_come_apart_however_many_they_are() {
    let mut rng = Rng(20);
    let normal: Vec<Vec<u8>> = (0..40).map(|_| rng.sequence(800)).collect();
    let tumour: Vec<Vec<u8>> = normal.iter().map(|n| replaced(n, 400, 1, &[rng.another(n[400])])).collect();
    let tissue = Tissue {
        tumour: &tumour.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        normal: &normal.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        depth: 20,
        error: 0.0,
        seed: 21,
    };
    let (labelled, interesting) = tissue.labelled();
    let all: Vec<u32> = (0..labelled.len() as u32).collect();
    let contigs = checked(assemble_group(&all, &labelled, &interesting.parting).contigs, &labelled, &tissue);
    let mut which: Vec<usize> = contigs.iter().map(|c| place(c, tissue.tumour).unwrap().0).collect();
    which.sort_unstable();
    assert_eq!(which, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_place_of_great_depth_is_one_contig() {
    let mut rng = Rng(22);
    let normal = rng.sequence(1000);
    let tumour = replaced(&normal, 500, 1, &[rng.another(normal[500])]);
    let tissue = Tissue { tumour: &[&tumour], normal: &[&normal], depth: 2000, error: 0.001, seed: 23 };
    let (labelled, interesting) = tissue.labelled();
    let groups = groups(&labelled, &interesting.parting);
    assert_eq!(groups.len(), 1);
    assert!(groups[0].len() > 1000);
    let contigs = assemble_group(&groups[0], &labelled, &interesting.parting).contigs;
    let places: Vec<_> = contigs.iter().map(|c| place(c, &[&tumour])).collect();
    assert!(matches!(&places[..], [Some((0, range))] if range.contains(&440) && range.contains(&560)));
}

/// Diverged copies of a repeat. The normal has only an older form of it, as where a shallow normal has no read. Reads
/// of all copies share candidate k-mers.
#[test]
fn copies_of_a_repeat_are_not_all_stacked_for_each_seed() {
    let mut rng = Rng(41);
    let older = rng.sequence(1500);
    let mut diverged = |sequence: &[u8]| -> Vec<u8> {
        sequence.iter().map(|&base| if rng.within(0..30) == 0 { rng.another(base) } else { base }).collect()
    };
    let repeat = diverged(&older);
    let copies: Vec<Vec<u8>> = (0..40).map(|_| diverged(&repeat)).collect();
    let tissue = Tissue {
        tumour: &copies.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        normal: &[&older],
        depth: 20,
        error: 0.0,
        seed: 42,
    };
    let (labelled, interesting) = tissue.labelled();
    let all: Vec<u32> = (0..labelled.len() as u32).collect();
    let AssembledContigs { contigs, skipped_reads, .. } = assemble_group(&all, &labelled, &interesting.parting);
    assert!(skipped_reads > 0);
    // Copies differ too little for a contig of each: some contigs have parts of two.
    let found: std::collections::BTreeSet<usize> =
        contigs.iter().filter_map(|contig| place(contig, tissue.tumour)).map(|(copy, _)| copy).collect();
    assert!(found.len() >= 15, "{found:?}");
}

/// Overlapping parts of one sequence at several loci. Reads of all loci meet in the shared part.
#[test]
fn pieces_of_a_virus_in_several_places_keep_their_own_borders() {
    for seed in 30..36 {
        let mut rng = Rng(seed);
        let virus = rng.sequence(2500);
        let normal: Vec<Vec<u8>> = (0..5).map(|_| rng.sequence(1600)).collect();
        let pieces = [0..900, 300..1500, 700..1250, 100..2400, 850..1800];
        let piece = |(i, piece): (usize, &std::ops::Range<usize>)| {
            let bases = &virus[piece.clone()];
            if i % 2 == 0 { bases.to_vec() } else { reverse_complement(bases) }
        };
        let pieces: Vec<Vec<u8>> = pieces.iter().enumerate().map(piece).collect();
        let tumour: Vec<Vec<u8>> = normal.iter().zip(&pieces).map(|(n, p)| replaced(n, 800, 0, p)).collect();
        let tissue = Tissue {
            tumour: &tumour.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            normal: &normal.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            depth: 24,
            error: 0.0,
            seed,
        };
        let (labelled, interesting) = tissue.labelled();
        let groups = groups(&labelled, &interesting.parting);
        let contigs = groups.iter().flat_map(|g| assemble_group(g, &labelled, &interesting.parting).contigs);
        let places: Vec<_> = contigs.map(|contig| place(&contig, tissue.tumour).expect("of one place only")).collect();
        for (i, piece) in pieces.iter().enumerate() {
            for border in [800, 800 + piece.len()] {
                let shows = |(of, range): &(usize, std::ops::Range<usize>)| {
                    *of == i && range.start + 40 <= border && range.end >= border + 40
                };
                assert!(places.iter().any(shows), "seed {seed}, piece {i}, border {border}: {places:?}");
            }
        }
    }
}
