//! Alleles that the tumour clearly has and the normal nearly lacks, found at single roots while k-mers are counted.
//! They are used to estimate tumour in normal (TiN).
//!
//! Calls cannot be used for this estimate. K-mers that the normal has more often than slight contamination explains are
//! not selected as candidates, and a change is more likely to be called if few of its molecules happen to be in the
//! normal. So the more tumour cells are in the normal, the more of the informative changes are missing among the calls.
//! Here alleles are selected by their count in the tumour only. Their counts in the normal are kept up to a bound,
//! which the likelihood takes into account.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_kmers::encode::reverse_complement_kmer;
use genuma_pair::site_tally::{ends_in_tandem_repeat, substitution_class_index};
use serde::{Deserialize, Serialize};

/// Numbers of occurrences of one root and of the tumour's own allele at it, in both samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TumourAlleleCounts {
    /// In the normal: number of occurrences of the allele, and of the root.
    pub normal: [u32; 2],
    /// In the tumour: number of occurrences of the allele, and of the root.
    pub tumour: [u32; 2],
    /// Class of the substitution (index into [`genuma_pair::site_tally::SUBSTITUTION_CLASS_NAMES`]).
    pub substitution: u8,
}

/// Numbers of roots at which one sample has an own allele: an allele that it clearly has and the other sample lacks,
/// except for few occurrences that may be errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAlleleRootCounts {
    /// Number of roots at which the own allele has at most a third of the reads. Many somatic changes of a tumour with
    /// normal cells are minor, few germline alleles are.
    pub minor: u64,
    /// Number of roots at which the own allele has more than a third of the reads. Besides somatic changes these are
    /// germline alleles that the other sample lost.
    pub balanced: u64,
}

/// Alleles of the tumour and error statistics, collected at single roots, from which the tumour in normal is estimated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TumourAlleles {
    /// Distinct counts of the tumour's alleles, sorted, each with the number of roots that have these counts.
    pub alleles: Vec<(TumourAlleleCounts, u64)>,
    /// At sampled roots where both samples have the same single allele: number of other bases in the normal, by
    /// substitution class.
    pub error_counts: [u64; 6],
    /// Number of all bases of the normal at the roots of `error_counts`: C or G, and A or T.
    pub base_counts: [u64; 2],
    /// For each depth of the normal, at roots where the normal has two alleles: number of roots, and sum of the squared
    /// differences between the counts of the two alleles.
    pub allele_imbalance: Vec<[u64; 2]>,
    /// Numbers of roots with an own allele of the normal, and with an own allele of the tumour. Unlike for
    /// [`Self::alleles`], the same rule applies to both samples.
    pub own_alleles: [OwnAlleleRootCounts; 2],
}

/// Minimum number of occurrences of a root in each sample.
pub(crate) const MIN_ROOT_COUNT: u32 = 8;
/// Minimum number of occurrences of an allele of the tumour. Empirical.
pub const MIN_TUMOUR_ALLELE_COUNT: u32 = 5;
/// Maximum number of occurrences of the root in the tumour per occurrence of the tumour's allele. Empirical.
pub const MAX_ROOT_COUNT_PER_ALLELE_COUNT: u32 = 12;
/// Minimum number of occurrences of a root for each occurrence that has neither of its two most frequent alleles. A
/// root with more occurrences of other alleles is probably in a repeat.
const MIN_ROOT_COUNT_PER_OTHER_BASE: u32 = 8;
/// An allele counts as own allele of a sample although it occurs in the other sample, too, if the root has at least
/// this many occurrences in the other sample for each occurrence of the allele. A single occurrence is always allowed.
/// Chosen: more occurrences are seldom errors. A lower value counts repeats, whose copies are in both samples.
const MIN_ROOT_COUNT_PER_SHARED_BASE: u32 = 32;
/// Binary logarithm of n, if one root in n, chosen by hash, is used to measure errors.
const ERROR_SAMPLING_BITS: u32 = 6;
/// Depth from which roots do not count in [`TumourAlleles::allele_imbalance`].
const MAX_IMBALANCE_DEPTH: usize = 1024;

/// Maximum number of occurrences in the normal of an allele that is counted as the tumour's: a quarter of the root's
/// occurrences, and half of the number expected in the normal at the tumour's allele fraction. A more frequent allele
/// is germline or in a repeat. `all_of_normal` is the number of occurrences of the root in the normal; `tumour` are
/// those of the allele and of the root in the tumour.
pub fn max_normal_count_of_tumour_allele(all_of_normal: u32, tumour: [u32; 2]) -> u32 {
    let alike = u64::from(tumour[0]) * u64::from(all_of_normal) / (2 * u64::from(tumour[1].max(1)));
    (all_of_normal / 4).min(alike as u32)
}

/// Minimum number of occurrences in the tumour of an allele that is counted as the tumour's, if the root has
/// `all_of_tumour` occurrences there.
pub fn min_tumour_allele_count(all_of_tumour: u32) -> u32 {
    MIN_TUMOUR_ALLELE_COUNT.max(all_of_tumour.div_ceil(MAX_ROOT_COUNT_PER_ALLELE_COUNT))
}

/// The base by which two k-mers with the same root differ, if they differ in either the first or the last base only:
/// the base code in `from`, the base code in `to`, and whether it is the last base. `None` if both bases differ.
fn find_differing_base(from: usize, to: usize) -> Option<(usize, usize, bool)> {
    match (from >> 2 == to >> 2, from & 3 == to & 3) {
        (true, false) => Some((from & 3, to & 3, true)),
        (false, true) => Some((from >> 2, to >> 2, false)),
        _ => None,
    }
}

/// Whether a root belongs to the sample of roots at which errors are measured.
fn is_sampled_for_errors(root: u64) -> bool {
    root.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ERROR_SAMPLING_BITS) == 0
}

/// Whether [`TumourAlleleCollector::add_root`] may find anything at a root: both samples are deep enough, and more than
/// one of its 16 k-mers is frequent, or the root is used to measure errors. This test is fast, because most roots of a
/// genome have one frequent k-mer. `counts` iterates over the counts of the 16 k-mers.
#[inline(always)]
pub(crate) fn may_root_yield_alleles_or_errors<I: Iterator<Item = [u32; 2]>>(
    root: u64,
    counts: impl Fn() -> I,
    [normal, tumour]: [u32; 2],
) -> bool {
    if normal < MIN_ROOT_COUNT || tumour < MIN_ROOT_COUNT {
        return false;
    }
    // Most occurrences of a root with one extension are of this extension, so a count above a quarter is that of the
    // extension.
    let rare = normal / 4;
    let (plausible, germline) = counts().fold((0, 0), |(plausible, germline), [normal_count, tumour_count]| {
        let often = normal_count > rare;
        let clear = (tumour_count >= MIN_TUMOUR_ALLELE_COUNT) | (normal_count >= MIN_TUMOUR_ALLELE_COUNT);
        (plausible + u32::from(often | clear), germline + u32::from(often))
    });
    (plausible, germline) != (1, 1) || is_sampled_for_errors(root)
}

/// An own allele of a sample at a root (an allele that the other sample lacks), by its share of the sample's reads at
/// the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnAllele {
    /// At most a third of the sample's reads at the root have the allele.
    Minor,
    /// More than a third of the sample's reads at the root have the allele.
    Balanced,
}

/// Finds the own allele of `sample` (0: normal, 1: tumour) at a root: a base that has at least the count of
/// [`min_tumour_allele_count`] there, while all but few reads of the other sample have another base. `None` if there is
/// no such base, or if the root seems to be in a repeat. `reverse` is the reverse complement of `root`; `all` are the
/// counts of the root.
fn find_own_allele(
    root: u64,
    reverse: u64,
    counts: &[[u32; 2]; 16],
    all: [u32; 2],
    sample: usize,
) -> Option<OwnAllele> {
    let other = 1 - sample;
    let major = (1..16)
        .fold(0, |best, extension| if counts[extension][other] > counts[best][other] { extension } else { best });
    let few = |reads: u32, sample: usize| reads.saturating_mul(MIN_ROOT_COUNT_PER_OTHER_BASE) <= all[sample];
    if !few(all[other] - counts[major][other], other) {
        return None;
    }
    let mut own_alleles = counts.iter().enumerate().filter_map(|(extension, counts)| {
        let (_, _, behind) = find_differing_base(major, extension)?;
        let clear = counts[sample] >= min_tumour_allele_count(all[sample])
            && counts[other] <= (all[other] / MIN_ROOT_COUNT_PER_SHARED_BASE).max(1)
            && !ends_in_tandem_repeat(if behind { root } else { reverse });
        clear.then_some((extension, counts[sample]))
    });
    let (extension, reads) = own_alleles.next()?;
    // A root with more alleles is in a repeat.
    if own_alleles.next().is_some() || !few(all[sample] - counts[major][sample] - counts[extension][sample], sample) {
        return None;
    }
    Some(if reads.saturating_mul(3) <= all[sample] { OwnAllele::Minor } else { OwnAllele::Balanced })
}

impl OwnAlleleRootCounts {
    /// Counts an own allele of a sample as minor or balanced; `None` counts nothing.
    fn add_allele(&mut self, allele: Option<OwnAllele>) {
        self.minor += u64::from(allele == Some(OwnAllele::Minor));
        self.balanced += u64::from(allele == Some(OwnAllele::Balanced));
    }
}

/// Number of parts of the collector, each with its own lock, so that threads hardly ever wait for each other.
const NUM_LOCKS: usize = 64;

/// Collects the tumour's alleles and error statistics from roots while k-mers are counted. Threads may add roots at the
/// same time.
#[derive(Debug)]
pub struct TumourAlleleCollector([Mutex<CollectedAlleles>; NUM_LOCKS]);

impl Default for TumourAlleleCollector {
    fn default() -> Self {
        TumourAlleleCollector(std::array::from_fn(|_| Mutex::default()))
    }
}

#[derive(Debug, Default)]
struct CollectedAlleles {
    seen: HashMap<TumourAlleleCounts, u64>,
    all: TumourAlleles,
}

impl TumourAlleleCollector {
    /// Locks the part of the collector to which a root belongs.
    fn lock_for_root(&self, root: u64) -> MutexGuard<'_, CollectedAlleles> {
        let part = root.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 58;
        self.0[part as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a root of `bases` bases. `counts` are the counts of its 16 k-mers in the normal and the tumour; the last
    /// argument has the counts of the root.
    pub fn add_root(&self, root: u64, bases: u32, counts: &[[u32; 2]; 16], [normal, tumour]: [u32; 2]) {
        if normal < MIN_ROOT_COUNT || tumour < MIN_ROOT_COUNT {
            return;
        }
        let reverse = reverse_complement_kmer(root, bases);
        if root == reverse {
            return;
        }
        // The most frequent extension in the normal, the first of equals.
        let major =
            (1..16).fold(0, |best, extension| if counts[extension][0] > counts[best][0] { extension } else { best });
        let major_counts = counts[major];
        let slips_on = |behind: bool| ends_in_tandem_repeat(if behind { root } else { reverse });
        let few = |others: u32, all: u32| others.saturating_mul(MIN_ROOT_COUNT_PER_OTHER_BASE) <= all;
        let own = [0, 1].map(|sample| find_own_allele(root, reverse, counts, [normal, tumour], sample));
        if own != [None; 2] {
            let mut gathered = self.lock_for_root(root);
            gathered.all.own_alleles.iter_mut().zip(own).for_each(|(sum, own)| sum.add_allele(own));
        }
        for (extension, &[normal_count, tumour_count]) in counts.iter().enumerate() {
            let germline = normal_count.saturating_mul(4) > normal;
            if extension == major || (tumour_count < MIN_TUMOUR_ALLELE_COUNT && !germline) {
                continue;
            }
            let Some((from, to, behind)) = find_differing_base(major, extension) else { continue };
            if !few(normal - major_counts[0] - normal_count, normal) || slips_on(behind) {
                continue;
            }
            if germline {
                if (normal as usize) < MAX_IMBALANCE_DEPTH {
                    let mut gathered = self.lock_for_root(root);
                    gathered.all.allele_imbalance.resize(MAX_IMBALANCE_DEPTH, [0; 2]);
                    let at = &mut gathered.all.allele_imbalance[normal as usize];
                    at[0] += 1;
                    at[1] += u64::from(major_counts[0] - normal_count).pow(2);
                }
            } else if tumour_count >= min_tumour_allele_count(tumour)
                && normal_count <= max_normal_count_of_tumour_allele(normal, [tumour_count, tumour])
                && few(tumour - major_counts[1] - tumour_count, tumour)
            {
                let class = substitution_class_index(from, to) as u8;
                let seen = TumourAlleleCounts {
                    normal: [normal_count, normal],
                    tumour: [tumour_count, tumour],
                    substitution: class,
                };
                *self.lock_for_root(root).seen.entry(seen).or_default() += 1;
            }
        }
        if is_sampled_for_errors(root)
            && major_counts[1] == tumour
            && major_counts[0].saturating_mul(4) >= normal.saturating_mul(3)
        {
            self.lock_for_root(root).all.add_errors(major, counts, normal, slips_on);
        }
    }

    /// Merges what all threads have collected so far, with equal counts combined.
    pub fn merge_collected_alleles(&self) -> TumourAlleles {
        let (mut all, mut seen) = (TumourAlleles::default(), Vec::new());
        for part in &self.0 {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            all.merge_alleles(&part.all);
            seen.extend(part.seen.iter().map(|(seen, n)| (*seen, *n)));
        }
        all.alleles = seen;
        all.merge_equal_alleles();
        all
    }
}

impl TumourAlleles {
    /// Adds the errors at a root whose reads of the tumour all have the extension `major`. `normal` is the count of the
    /// root in the normal; `slips_on` returns whether the root is a tandem repeat before the base at an end.
    fn add_errors(&mut self, major: usize, counts: &[[u32; 2]; 16], normal: u32, slips_on: impl Fn(bool) -> bool) {
        for (extension, &[normal_count, _]) in counts.iter().enumerate().filter(|&(extension, _)| extension != major) {
            if let Some((from, to, behind)) = find_differing_base(major, extension)
                && !slips_on(behind)
            {
                self.error_counts[substitution_class_index(from, to)] += u64::from(normal_count);
            }
        }
        for (base, behind) in [(major >> 2, false), (major & 3, true)] {
            if !slips_on(behind) {
                // The codes of C and G are 1 and 2.
                self.base_counts[usize::from(base == 0 || base == 3)] += u64::from(normal);
            }
        }
    }

    /// Adds the alleles and statistics of other roots.
    pub fn merge_alleles(&mut self, other: &TumourAlleles) {
        self.alleles.extend_from_slice(&other.alleles);
        self.merge_equal_alleles();
        self.error_counts.iter_mut().zip(other.error_counts).for_each(|(a, b)| *a += b);
        self.base_counts.iter_mut().zip(other.base_counts).for_each(|(a, b)| *a += b);
        for (own, other) in self.own_alleles.iter_mut().zip(&other.own_alleles) {
            own.minor += other.minor;
            own.balanced += other.balanced;
        }
        let deepest = self.allele_imbalance.len().max(other.allele_imbalance.len());
        self.allele_imbalance.resize(deepest, [0; 2]);
        for (own, other) in self.allele_imbalance.iter_mut().zip(&other.allele_imbalance) {
            own.iter_mut().zip(other).for_each(|(a, b)| *a += b);
        }
    }

    /// Sorts the alleles and merges those with equal counts.
    fn merge_equal_alleles(&mut self) {
        self.alleles.sort_unstable();
        self.alleles.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }

    /// Measured error rate of the normal, by substitution class.
    pub fn normal_substitution_error_rates(&self) -> [f64; 6] {
        std::array::from_fn(|class| self.error_counts[class] as f64 / self.base_counts[class / 3].max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is collected from a root that [`may_root_yield_alleles_or_errors`] excludes.
    #[test]
    fn what_is_passed_over_has_nothing_to_tell() {
        let mut x = 7u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let mut passed = 0;
        for i in 0..200_000u64 {
            let root = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6;
            let mut counts = [[0u32; 2]; 16];
            for _ in 0..1 + below(4) {
                let extension = below(16) as usize;
                let mut count = || {
                    let most = 1 << below(7);
                    below(most) as u32
                };
                counts[extension] = [count(), count()];
            }
            let all = [0, 1].map(|s| counts.iter().map(|c| c[s]).sum());
            if !may_root_yield_alleles_or_errors(root, || counts.iter().copied(), all) {
                passed += u32::from(all[0] >= MIN_ROOT_COUNT && all[1] >= MIN_ROOT_COUNT);
                let gathering = TumourAlleleCollector::default();
                gathering.add_root(root, 29, &counts, all);
                assert_eq!(gathering.merge_collected_alleles(), TumourAlleles::default(), "{counts:?}");
            }
        }
        assert!(passed > 10_000, "{passed}");
    }

    /// The result does not depend on threads or on partitions.
    #[test]
    fn parts_of_roots_are_all_roots() {
        const BASES: u32 = 29;
        let roots: Vec<(u64, u32)> = (1..4_000u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6, (i % 3) as u32))
            .filter(|(root, _)| *root < reverse_complement_kmer(*root, BASES))
            .collect();
        let gather = |roots: &[(u64, u32)]| {
            let gathering = TumourAlleleCollector::default();
            for &(root, kind) in roots {
                let mut counts = [[0; 2]; 16];
                // A tumour allele, a germline allele, and no second allele.
                (counts[0], counts[1]) = [([29, 20], [1, 9]), ([15, 14], [15, 15]), ([30, 30], [0, 0])][kind as usize];
                let all = [0, 1].map(|s| counts[0][s] + counts[1][s]);
                gathering.add_root(root, BASES, &counts, all);
            }
            gathering.merge_collected_alleles()
        };
        let whole = gather(&roots);
        assert_eq!(whole.alleles.len(), 1);
        assert_eq!(
            whole.alleles[0].0,
            TumourAlleleCounts { normal: [1, 30], tumour: [9, 29], substitution: whole.alleles[0].0.substitution }
        );
        assert!(whole.alleles[0].1 > 500 && whole.allele_imbalance[30][0] > 500 && whole.base_counts[1] > 0);
        let (some, others) = roots.split_at(roots.len() / 3);
        let mut sum = gather(others);
        sum.merge_alleles(&gather(some));
        assert_eq!(sum, whole);
    }
}
