use std::collections::HashMap;

use super::*;
use crate::bases::{BASE_LETTERS, is_acgt};
use crate::syncmers::{SEED_BP, SyncmerFinder};

/// Random numbers (splitmix64).
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % sides as u64) as usize
    }

    pub(crate) fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.roll(4)]).collect()
    }
}

/// Bytes that are aligned to 64.
#[derive(Debug)]
pub(crate) struct Held(Vec<Bucket>, usize);

impl Held {
    fn new(bytes: &[u8]) -> Held {
        let mut lines = vec![Bucket::zeroed(); bytes.len().div_ceil(size_of::<Bucket>())];
        bytemuck::cast_slice_mut(&mut lines)[..bytes.len()].copy_from_slice(bytes);
        Held(lines, bytes.len())
    }

    fn change(&mut self, at: usize, change: impl Fn(u8) -> u8) {
        let byte = &mut bytemuck::cast_slice_mut(&mut self.0)[at];
        *byte = change(*byte);
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }
}

/// The bytes of the index of some sequences.
pub(crate) fn bytes(contigs: &[(String, Vec<u8>)], threads: usize) -> Held {
    let mut built = ReferenceBuilder::default();
    for (name, letters) in contigs {
        built.begin_contig(name.clone());
        // In chunks of any size, as a file is read.
        letters.chunks(1 + 7 * threads).for_each(|some| built.add_bases(some));
    }
    let mut all = Vec::new();
    build_and_write_index(built, threads, |some| {
        all.extend_from_slice(some);
        Ok::<(), Error>(())
    })
    .unwrap();
    Held::new(&all)
}

/// The index of some sequences.
pub(crate) fn index(contigs: &[(String, Vec<u8>)]) -> Index<Held> {
    Index::from_bytes(bytes(contigs, 1)).unwrap()
}

/// Sequences of all kinds: with ambiguous ranges, with copies on both strands, palindromes, tandem repeats, short
/// ones.
fn reference(seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(seed);
    let family = dice.bases(700);
    let turned = genuma_reads::dna::reverse_complement(&family);
    let mut long = dice.bases(150_000);
    for (i, copy) in [&family, &turned, &family, &family, &turned, &turned, &family].into_iter().enumerate() {
        let at = 1000 + 20_000 * i;
        long[at..at + copy.len()].copy_from_slice(copy);
    }
    // Three copies are stored in slots.
    for at in [30_000, 50_000] {
        long.copy_within(70_000..70_400, at);
    }
    // Ambiguous ranges of all sizes: one across the end of a task, one before the first base, one after the last.
    for (from, to) in [(0, 30), (500, 501), (520, 521), (65_500, 65_600), (90_000, 91_000), (149_990, 150_000)] {
        long[from..to].fill(b"NRn-"[from % 4]);
    }
    let half = dice.bases(300);
    let palindrome = [half.clone(), genuma_reads::dna::reverse_complement(&half)].concat().repeat(3);
    let tandem = dice.bases(31).repeat(40);
    let mut contigs = vec![long, palindrome, vec![b'N'; 100], tandem, vec![b'A'; 200], b"AC".repeat(100)];
    contigs.extend([1, 24, 25, 26, 32, 64, 65, 66_000].map(|n| dice.bases(n)));
    let mut lower = dice.bases(3 * 65_536);
    lower[100..70_000].make_ascii_lowercase();
    contigs.push(lower);
    (contigs.into_iter().enumerate()).map(|(i, letters)| (format!("contig{i}"), letters)).collect()
}

/// Position of a seed, and whether its reverse complement was hashed.
pub(crate) type SeedOccurrence = (u64, bool);

/// All seeds of the sequences by hash, with their positions and the hashed strand.
fn true_seeds(index: &Index<Held>, contigs: &[(String, Vec<u8>)]) -> HashMap<u64, Vec<SeedOccurrence>> {
    let mut seeds: HashMap<u64, Vec<SeedOccurrence>> = HashMap::new();
    for (contig, (_, letters)) in index.contigs().iter().zip(contigs) {
        let mut packed: Vec<u64> = letters.chunks(BASES_PER_WORD).map(crate::bases::pack_letters_into_word).collect();
        packed.extend([0; 2]);
        SyncmerFinder::default().find_seeds(&packed, 0, letters.len(), |seed| {
            let at = seed.at as usize;
            if letters[at..at + SEED_BP].iter().all(|&letter| is_acgt(letter)) {
                seeds.entry(seed.hash).or_default().push((contig.start + at as u64, seed.reverse));
            }
        });
    }
    seeds
}

/// All positions that slots and lists give for a seed.
fn looked_up(view: &IndexView<'_>, hash: u64) -> (Vec<SeedOccurrence>, Vec<Vec<SeedOccurrence>>) {
    let (mut own, mut lists) = (Vec::new(), Vec::new());
    view.for_each_slot_with_tag(view.bucket_and_tag_of_hash(hash), |slot| match slot {
        IndexSlot::Position(at, reverse) => own.push((at, reverse)),
        IndexSlot::List(at) => {
            let list = view.position_list(at);
            let on = |reverse| list.positions_hashed_on_strand(reverse).map(move |at| (at, reverse));
            let all: Vec<_> = on(false).chain(on(true)).collect();
            assert_eq!(all.len(), list.num_positions());
            lists.push(all);
        }
    });
    (own, lists)
}

#[test]
fn bases_are_the_references_and_holes_where_it_has_none() {
    let contigs = reference(1);
    let index = index(&contigs);
    let view = index.view();
    assert_eq!(index.contigs().len(), contigs.len());
    for (contig, (name, letters)) in index.contigs().iter().zip(&contigs) {
        assert_eq!((&contig.name, contig.length), (name, letters.len() as u64));
        for (at, letter) in (contig.start..).zip(letters) {
            let hole = !view.ambiguous_ranges_in(at..at + 1).is_empty();
            assert_eq!(hole, !is_acgt(*letter));
            assert!(hole || BASE_LETTERS[usize::from(view.base_code_at(at))] == letter.to_ascii_uppercase());
        }
    }
}

#[test]
fn every_seed_is_found_where_it_is_and_none_over_a_hole() {
    let contigs = reference(2);
    let index = index(&contigs);
    let view = index.view();
    let seeds = true_seeds(&index, &contigs);
    let (mut listed, mut all) = (0, Vec::new());
    for (&hash, places) in &seeds {
        let (own, mut lists) = looked_up(&view, hash);
        if places.len() <= MAX_SINGLE_POSITIONS {
            assert!(places.iter().all(|place| own.contains(place)), "{places:?}: {own:?}");
        } else {
            listed += 1;
            let mut places = places.clone();
            places.sort_unstable_by_key(|&(at, reverse)| (reverse, at));
            assert!(lists.contains(&places), "{places:?}: {lists:?}");
            lists.retain(|list| *list == places);
            assert_eq!(lists.len(), 1, "a list stands once");
        }
        all.extend_from_slice(places);
    }
    assert!(listed > 100, "{listed} lists");
    // The index has no other seeds.
    let mut found = Vec::new();
    for bucket in view.buckets {
        for slot in 0..(bucket.flags >> COUNT_SHIFT & 15) as usize {
            match bucket.flags >> slot & 1 {
                1 => {
                    let list = view.position_list(bucket.places[slot]);
                    found.extend(
                        [false, true]
                            .into_iter()
                            .flat_map(|strand| list.positions_hashed_on_strand(strand).map(move |at| (at, strand))),
                    );
                }
                _ => found.push((u64::from(bucket.places[slot]), bucket.tags[slot] >> 7 == 1)),
            }
        }
    }
    all.sort_unstable();
    found.sort_unstable();
    assert!(all == found, "{} seeds, {} in the index", all.len(), found.len());
}

#[test]
fn the_bytes_are_the_same_for_any_number_of_threads() {
    let contigs = reference(3);
    let one = bytes(&contigs, 1);
    for threads in [2, 5] {
        assert!(*bytes(&contigs, threads) == *one, "{threads} threads");
    }
}

/// A small reference with three sequences and three ambiguous ranges.
fn small() -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(4);
    [("a", 300), ("bc", 40), ("d", 100)]
        .map(|(name, n)| {
            let mut letters = dice.bases(n);
            letters[n / 2..n / 2 + 7].fill(b'N');
            (name.to_owned(), letters)
        })
        .to_vec()
}

#[test]
fn an_index_cut_anywhere_is_refused() {
    let whole = bytes(&small(), 1);
    for length in 0..whole.len() {
        let expected = if length < MAGIC.len() + size_of::<IndexHeader>() { Error::NotAnIndex } else { Error::Damaged };
        assert_eq!(Index::from_bytes(&whole[..length]).unwrap_err(), expected, "{length} bytes");
    }
    assert_eq!(Index::from_bytes(Held::new(&[&whole[..], &[0]].concat())).unwrap_err(), Error::Damaged);
}

#[test]
fn a_head_with_other_bits_is_refused_or_makes_sense() {
    let mut whole = bytes(&small(), 1);
    let words = Index::from_bytes(&whole[..]).unwrap().words.start;
    let sections = MAGIC.len() + size_of::<IndexHeader>();
    let mut refused = 0;
    for at in 0..words {
        for change in [1u8, 2, 4, 8, 16, 32, 64, 128, 255] {
            whole.change(at, |byte| byte ^ change);
            match Index::from_bytes(&whole[..]) {
                Err(error) => {
                    refused += 1;
                    let expected = match at {
                        0..7 => Error::NotAnIndex,
                        7 => Error::OtherVersion,
                        _ => Error::Damaged,
                    };
                    assert_eq!(error, expected, "byte {at}");
                }
                Ok(index) => {
                    assert!(at >= MAGIC.len());
                    let view = index.view();
                    let bases = 32 * view.words.len() as u64;
                    assert!(view.contigs.iter().all(
                        |contig| contig.start >= EDGE_PADDING_BP && contig.packed_end() + EDGE_PADDING_BP <= bases
                    ));
                    for at in (0..bases + 70_000).step_by(50) {
                        view.contig_index_at(at);
                        view.ambiguous_ranges_in(at..at + 40);
                    }
                }
            }
            whole.change(at, |byte| byte ^ change);
        }
    }
    assert!(refused > 9 * sections / 2, "{refused}");
    Index::from_bytes(&whole[..]).unwrap();
}

#[test]
fn sequences_and_holes_are_those_of_a_naive_search() {
    let contigs = reference(5);
    let index = index(&contigs);
    let view = index.view();
    let bases = 32 * view.words.len() as u64;
    let mut dice = Dice(6);
    let edges = (view.contigs.iter().flat_map(|contig| [contig.start, contig.packed_end()]))
        .chain(view.ambiguous_ranges.iter().flat_map(|hole| [hole.start, hole.end]))
        .chain([0, 1 << 16, 2 << 16, bases, 2 * bases])
        .flat_map(|at| [at.saturating_sub(1), at, at + 1]);
    let random: Vec<u64> = (0..5000).map(|_| dice.roll(bases as usize) as u64).collect();
    for at in edges.chain(random) {
        let naive = view.contigs.iter().position(|contig| at < contig.packed_end()).unwrap_or(view.contigs.len() - 1);
        assert_eq!(view.contig_index_at(at), naive, "{at}");
        assert_eq!(view.contig_bounds(at), view.contigs[naive].start..view.contigs[naive].packed_end());
        for length in [1, 25, 300, 100_000] {
            let range = at..at + length;
            let naive: Vec<_> =
                view.ambiguous_ranges.iter().filter(|hole| hole.start < range.end && range.start < hole.end).collect();
            assert_eq!(view.ambiguous_ranges_in(range).iter().collect::<Vec<_>>(), naive);
        }
    }
}

#[test]
fn a_piece_that_cannot_be_written_ends_it() {
    #[derive(Debug, PartialEq)]
    struct Full;
    impl From<Error> for Full {
        fn from(_: Error) -> Full {
            Full
        }
    }
    let mut calls = 0;
    loop {
        let mut built = ReferenceBuilder::default();
        for (name, letters) in small() {
            built.begin_contig(name);
            built.add_bases(&letters);
        }
        let mut left = calls;
        let made = build_and_write_index(built, 2, |_| {
            left -= 1;
            if left < 0 { Err(Full) } else { Ok(()) }
        });
        if made.is_ok() {
            break;
        }
        calls += 1;
    }
    assert!(calls > 256, "every piece may be the last that has room");
}
