//! Duplicates: read pairs of one sample whose mates start with the same bases, and whose UMIs are similar, come from
//! one molecule.
//!
//! Duplicates share damage and PCR errors of their molecule, but have independent sequencing errors. So their evidence
//! is combined, and a molecule counts once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use genuma_pair::assay::RandomOrFixedEnds;
pub use genuma_reads::umi::umi_key_of_name;
use genuma_reads::umi::{are_similar_umi_keys, halves_of_umi_key};

/// Number of bases at the start of each mate that are compared to recognise duplicates.
pub const COMPARED_MATE_PREFIX_BP: usize = 32;
/// Number of bases at the start of a mate by which possible duplicates are found in the index. A sequencing error in
/// these bases of both mates hides a duplicate.
const PREFIX_KEY_BP: usize = 12;
/// Maximum number of mismatches in the prefixes of both mates of two duplicates together, to allow for sequencing
/// errors.
const MAX_MISMATCHES: usize = 4;

fn count_mismatches(a: &[u8], b: &[u8]) -> usize {
    match (a.first_chunk::<COMPARED_MATE_PREFIX_BP>(), b.first_chunk::<COMPARED_MATE_PREFIX_BP>()) {
        // With a known length the compiler vectorises the loop.
        (Some(a), Some(b)) => a.iter().zip(b).map(|(x, y)| u8::from(x != y)).sum::<u8>().into(),
        _ => a.iter().zip(b).take(COMPARED_MATE_PREFIX_BP).filter(|(x, y)| x != y).count(),
    }
}

/// A read pair among which duplicates are searched: its sample, bases and UMIs.
pub trait PairForDuplicateSearch {
    /// Number of the sample that the pair is from: 0 for the normal, 1 and up for tumours.
    fn sample(&self) -> u8;
    /// Bases of read 1 and of read 2.
    fn seqs(&self) -> [&[u8]; 2];
    /// Key of the unique molecular identifiers (see [`umi_key_of_name`]); 0 if there are none.
    fn umi_key(&self) -> u64;
}

/// Whether the starts of both mates of two pairs are the same, except for sequencing errors, so that the pairs come
/// from one molecule. Read 1 of one pair is also compared with read 2 of the other, because the two strands of a
/// molecule are sequenced from opposite ends.
fn is_same_molecule(a: &impl PairForDuplicateSearch, b: &impl PairForDuplicateSearch) -> bool {
    let (one, other) = (a.seqs(), b.seqs());
    let ends = |x: usize, y: usize| {
        // Reads without mates: a read and a missing mate have no bases in common.
        if one[0].is_empty() != other[x].is_empty() && one[1].is_empty() != other[y].is_empty() {
            return false;
        }
        let first = count_mismatches(one[0], other[x]);
        first <= MAX_MISMATCHES && first + count_mismatches(one[1], other[y]) <= MAX_MISMATCHES
    };
    a.sample() == b.sample() && (ends(0, 1) || ends(1, 0))
}

/// Key of the index of representatives: a sample, a part of the UMIs and the start of a mate.
type PrefixKey<'a> = (u8, u64, &'a [u8]);

/// Key of the index of representatives: a start of a mate with a numbered part of the other mate's prefix.
type PartKey<'a> = (PrefixKey<'a>, usize, &'a [u8]);

/// Index of a representative pair, and the key of its UMIs.
type Representative = (u32, u64);

/// Hash function of the index of representatives: multiplication and rotation of words of eight bytes. A deep locus has
/// many thousand lookups for each contig.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}

type WordHashMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Number of pairs with the same key up to which all are compared one by one. Satellite repeats have thousands of pairs
/// with the same key; comparing each with all others would be too slow.
const MAX_LINEAR_PAIRS: usize = 32;
/// Number of parts into which the prefix of the other mate is split. Two prefixes with at most [`MAX_MISMATCHES`]
/// mismatches have at least one equal part.
const PREFIX_PARTS: usize = MAX_MISMATCHES + 1;

/// Index of the representative pairs of molecules by the UMI key and the first bases of either mate.
#[derive(Default)]
struct RepresentativeIndex<'a> {
    by_prefix: WordHashMap<PrefixKey<'a>, Vec<Representative>>,
    /// Pairs beyond the first [`MAX_LINEAR_PAIRS`] with a key, by each part of the prefix of the other mate.
    by_part: WordHashMap<PartKey<'a>, Vec<Representative>>,
    /// Pairs beyond the first [`MAX_LINEAR_PAIRS`] with a key whose other mate is shorter than
    /// [`COMPARED_MATE_PREFIX_BP`].
    short: WordHashMap<PrefixKey<'a>, Vec<Representative>>,
}

/// Splits a prefix into [`PREFIX_PARTS`] numbered parts.
fn split_prefix(prefix: &[u8; COMPARED_MATE_PREFIX_BP]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..PREFIX_PARTS).map(|i| {
        (i, &prefix[i * COMPARED_MATE_PREFIX_BP / PREFIX_PARTS..(i + 1) * COMPARED_MATE_PREFIX_BP / PREFIX_PARTS])
    })
}

impl<'a> RepresentativeIndex<'a> {
    /// Adds a representative pair, with the key of its UMIs, under the start of one mate; `other` is its other mate.
    fn insert(&mut self, start: PrefixKey<'a>, other: &'a [u8], representative: Representative) {
        let all = self.by_prefix.entry(start).or_default();
        all.push(representative);
        if all.len() <= MAX_LINEAR_PAIRS {
            return;
        }
        match other.first_chunk() {
            Some(prefix) => {
                for (i, part) in split_prefix(prefix) {
                    self.by_part.entry((start, i, part)).or_default().push(representative);
                }
            }
            None => self.short.entry(start).or_default().push(representative),
        }
    }

    /// Returns the representative pairs that may be of the same molecule as a pair with this key and these bases of the
    /// other mate. Some may appear more than once.
    fn similar_pairs(&self, start: PrefixKey<'a>, other: &'a [u8]) -> impl Iterator<Item = Representative> {
        let all = self.by_prefix.get(&start).map_or(&[][..], Vec::as_slice);
        let prefix = other.first_chunk().filter(|_| all.len() > MAX_LINEAR_PAIRS);
        let first = if prefix.is_some() { &all[..MAX_LINEAR_PAIRS] } else { all };
        let short = prefix.and_then(|_| self.short.get(&start));
        let like =
            prefix.into_iter().flat_map(split_prefix).filter_map(move |(i, part)| self.by_part.get(&(start, i, part)));
        first.iter().chain(short.into_iter().flatten()).chain(like.flatten()).copied()
    }
}

/// The molecule of each read pair of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoleculeAssignment {
    /// Each pair with the representative pair of its molecule, sorted by pair.
    representatives: Vec<(u32, u32)>,
}

impl MoleculeAssignment {
    /// Finds the duplicates among `members`, which are ascending indices into `pairs`. The first pair of a molecule is
    /// its representative. `fragment_ends` has for each sample whether its fragments end at fixed or at random
    /// positions; samples without an entry have random ends. A pair with fixed ends and without a UMI is a molecule of
    /// its own. Pairs whose UMIs differ in more than one base are of different molecules.
    pub fn assign_pairs_to_molecules<'a>(
        members: &[u32],
        pairs: &'a [impl PairForDuplicateSearch],
        fragment_ends: &[RandomOrFixedEnds],
    ) -> MoleculeAssignment {
        let mut heads = RepresentativeIndex::default();
        let mut of = Vec::with_capacity(members.len());
        for &member in members {
            let pair = &pairs[member as usize];
            let umis = pair.umi_key();
            let has_fixed_ends = fragment_ends.get(usize::from(pair.sample())) == Some(&RandomOrFixedEnds::Fixed);
            if has_fixed_ends && umis == 0 {
                of.push((member, member));
                continue;
            }
            let [one, two] = pair.seqs();
            let starts = |umi_half: u64| {
                let start = |seq: &'a [u8]| seq.get(..PREFIX_KEY_BP).map(|start| (pair.sample(), umi_half, start));
                let starts = [(start(one), two), (start(two), one)];
                starts.into_iter().filter_map(|(start, other)| Some((start?, other)))
            };
            let similar =
                halves_of_umi_key(umis).flat_map(starts).flat_map(|(start, other)| heads.similar_pairs(start, other));
            let is_same = |&(other, other_umis): &Representative| {
                are_similar_umi_keys(umis, other_umis) && is_same_molecule(&pairs[other as usize], pair)
            };
            let representative = similar.filter(is_same).map(|(other, _)| other).min();
            if representative.is_none() {
                let representatives = halves_of_umi_key(umis).flat_map(starts);
                representatives.for_each(|(start, other)| heads.insert(start, other, (member, umis)));
            }
            of.push((member, representative.unwrap_or(member)));
        }
        MoleculeAssignment { representatives: of }
    }

    /// The pairs of each molecule, ascending. The molecules are in the order of their first pairs.
    pub fn pairs_by_molecule(&self) -> Vec<Vec<u32>> {
        let mut by_head = self.representatives.clone();
        by_head.sort_unstable_by_key(|&(pair, representative)| (representative, pair));
        by_head.chunk_by(|a, b| a.1 == b.1).map(|same| same.iter().map(|m| m.0).collect()).collect()
    }

    /// The representative pair of the molecule of `pair`: the pair itself or an earlier one.
    pub fn representative_of_pair(&self, pair: u32) -> u32 {
        self.representatives.binary_search_by_key(&pair, |m| m.0).map_or(pair, |at| self.representatives[at].1)
    }

    /// Whether the pair is a duplicate: an earlier pair is of the same molecule.
    pub fn is_duplicate(&self, pair: u32) -> bool {
        self.representative_of_pair(pair) != pair
    }
}

/// 64-bit hash of a byte string, for example of a read name (FNV-1a with a finaliser).
pub fn hash_bytes(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::OwnedRead;
    use crate::recruit::RecruitedPair;

    fn pair(sample: u8, mates: [&[u8]; 2]) -> RecruitedPair {
        let read = |seq: &[u8]| OwnedRead { seq: seq.to_vec(), qual: vec![30; seq.len()] };
        RecruitedPair { sample, name: vec![], mates: mates.map(read), id: 0, contigs: vec![] }
    }

    #[test]
    fn copies_are_found_from_either_end_in_spite_of_errors() {
        let one = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGC";
        let two = b"GGATTCAGCTTACGGATCCGATTACGGATTAC";
        let wrong = b"ACGTTGGATGCCGATAGCTAGGATCCATTAGC";
        let other = b"TTTACGGATTACAGGGCATTTACCAGGATTTA";
        let pairs = [
            pair(1, [one, two]),
            pair(1, [two, one]),
            pair(1, [wrong, two]),
            pair(1, [one, other]),
            pair(0, [one, two]),
        ];
        let molecules = MoleculeAssignment::assign_pairs_to_molecules(&[0, 1, 2, 3, 4], &pairs, &[]);
        assert_eq!([0, 1, 2, 3, 4].map(|p| molecules.representative_of_pair(p)), [0, 0, 0, 3, 4]);
        assert!(molecules.is_duplicate(2) && !molecules.is_duplicate(4));
        assert_eq!(molecules.pairs_by_molecule(), [vec![0, 1, 2], vec![3], vec![4]]);
        // Pairs of a sample with fixed fragment ends.
        let own = MoleculeAssignment::assign_pairs_to_molecules(
            &[0, 1, 4],
            &pairs,
            &[RandomOrFixedEnds::Random, RandomOrFixedEnds::Fixed],
        );
        assert_eq!([0, 1, 4].map(|p| own.representative_of_pair(p)), [0, 1, 4]);
        // Reads without mates: the start of the read tells.
        let late = b"ACGTTGCATGCCGATTGCTAGGATCCATTAGC";
        let singles = [pair(1, [one, b""]), pair(1, [late, b""]), pair(1, [b"ACGTTGCATGCCTTTTTTTTTTTTTTTTTTTT", b""])];
        let molecules = MoleculeAssignment::assign_pairs_to_molecules(&[0, 1, 2], &singles, &[]);
        assert_eq!([0, 1, 2].map(|p| molecules.representative_of_pair(p)), [0, 0, 2]);
        // Only some of the pairs.
        let some = MoleculeAssignment::assign_pairs_to_molecules(&[1, 2, 4], &pairs, &[]);
        assert_eq!([1, 2, 4].map(|p| some.representative_of_pair(p)), [1, 1, 4]);
    }

    #[test]
    fn where_thousands_begin_alike_the_same_copies_are_found() {
        let mut x = 11u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        // Reads of a satellite of three repeats, with sequencing errors; some mates are truncated.
        let satellite = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGCGGATTCAGC".repeat(4);
        let mut seqs = Vec::new();
        for _ in 0..3000 {
            let mut mate = || {
                let (from, len) = (below(3) as usize, if below(20) == 0 { 20 } else { 40 });
                let mut seq = satellite[from..from + len].to_vec();
                (0..below(4)).for_each(|_| seq[below(len as u64) as usize] = b"ACGT"[below(4) as usize]);
                seq
            };
            seqs.push([mate(), mate()]);
        }
        let pairs: Vec<RecruitedPair> = seqs.iter().map(|[one, two]| pair(1, [one, two])).collect();
        let members: Vec<u32> = (0..pairs.len() as u32).collect();
        let mut expected: Vec<u32> = Vec::new();
        let mut heads: Vec<u32> = Vec::new();
        for p in members.iter().copied() {
            let begins = |other: u32| {
                let (own, others) = (pairs[p as usize].seqs(), pairs[other as usize].seqs());
                own.iter().any(|a| others.iter().any(|b| a[..PREFIX_KEY_BP] == b[..PREFIX_KEY_BP]))
            };
            let same = |&other: &u32| begins(other) && is_same_molecule(&pairs[other as usize], &pairs[p as usize]);
            let representative = heads.iter().copied().find(same);
            heads.extend(representative.is_none().then_some(p));
            expected.push(representative.unwrap_or(p));
        }
        let molecules = MoleculeAssignment::assign_pairs_to_molecules(&members, &pairs, &[]);
        assert!(members.iter().all(|&p| molecules.representative_of_pair(p) == expected[p as usize]));
        assert!(heads.len() > 2 * MAX_LINEAR_PAIRS && heads.len() < 2000, "{}", heads.len());
    }

    #[test]
    fn pairs_with_other_umis_are_other_molecules() {
        let one = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGC";
        let two = b"GGATTCAGCTTACGGATCCGATTACGGATTAC";
        let named = |name: &[u8], mates| RecruitedPair { name: name.to_vec(), ..pair(1, mates) };
        // The other strand of a duplex has its mates and its UMIs swapped.
        let pairs = [
            named(b"a:ACGT+TTTT", [one, two]),
            named(b"b:TTTT+ACGT", [two, one]),
            named(b"c:ACGT+TTAA", [one, two]),
            named(b"d", [one, two]),
        ];
        for ends in [RandomOrFixedEnds::Random, RandomOrFixedEnds::Fixed] {
            let molecules = MoleculeAssignment::assign_pairs_to_molecules(&[0, 1, 2, 3], &pairs, &[ends; 2]);
            assert_eq!([0, 1, 2, 3].map(|p| molecules.representative_of_pair(p)), [0, 0, 2, 3]);
        }
    }

    #[test]
    fn short_and_empty_mates_are_copies_of_nothing() {
        let one = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGC";
        let pairs = [pair(1, [b"", b""]), pair(1, [b"", b""]), pair(1, [b"ACGT", one]), pair(1, [b"ACGT", one])];
        let molecules = MoleculeAssignment::assign_pairs_to_molecules(&[0, 1, 2, 3], &pairs, &[]);
        assert_eq!([0, 1, 2, 3].map(|p| molecules.representative_of_pair(p)), [0, 1, 2, 2]);
    }
}
