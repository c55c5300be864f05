//! Roots at which the tumour clearly has an allele of its own, with what the normal has of it: how much of the tumour is in the normal.
//!
//! Calls cannot tell that. k-mers that the normal has more often than slight contamination makes it are not picked, and a change is called the likelier the
//! fewer of its molecules the normal happens to have: the more tumour there is in the normal, the more are missing of those that would show it. So alleles
//! are taken here as they are counted, by what the tumour has of them, and with all that the normal has of them up to a bound that the likelihood knows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_kmers::encode::revcomp;
use genuma_pair::roots::{slips, substitution};
use serde::{Deserialize, Serialize};

/// How often both samples have a root and the tumour's own allele beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seen {
    /// Of the normal: the allele, and all.
    pub normal: [u32; 2],
    /// The same of the tumour.
    pub tumour: [u32; 2],
    /// The substitution ([`genuma_pair::roots::SUBSTITUTIONS`]).
    pub class: u8,
}

/// What roots say of alleles that one sample has alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnAlleles {
    /// The tumour's own alleles, sorted, and at how many roots they are so.
    pub seen: Vec<(Seen, u64)>,
    /// Where both samples have one allele: other bases in the normal, by substitution.
    pub wrong: [u64; 6],
    /// All bases of the normal there, of C or G and of A or T.
    pub looked: [u64; 2],
    /// Where the normal has two alleles, by how often it has the root: how many roots, and the squares of how far the two are apart.
    pub balance: Vec<[u64; 2]>,
}

/// Fewest occurrences of a root in each sample.
const DEEP: u32 = 8;
/// Fewest occurrences of the tumour's allele, and one of so many of its root.
pub const CLEAR: (u32, u32) = (5, 12);
/// One in so many of a root's occurrences may be neither allele: what has three is a repeat.
const OTHERS: u32 = 8;
/// One root of so many (a power of two, by its bases) tells of errors.
const ERRORS_OF: u32 = 6;
/// Depths of two alleles that are told apart.
const DEPTHS: usize = 1024;

/// Most occurrences in the normal of what is taken for the tumour's own: a quarter of the root's, and half as many as there were if it had as much of it as
/// the tumour. Beyond that it is inherited, or stands in a repeat.
pub fn most(all_of_normal: u32, tumour: [u32; 2]) -> u32 {
    let alike = u64::from(tumour[0]) * u64::from(all_of_normal) / (2 * u64::from(tumour[1].max(1)));
    (all_of_normal / 4).min(alike as u32)
}

/// Fewest occurrences in the tumour of what is taken for its own, of so many.
pub fn least(all_of_tumour: u32) -> u32 {
    CLEAR.0.max(all_of_tumour.div_ceil(CLEAR.1))
}

/// The bases (codes) of two extensions of a root that differ on one side of it: that of the first, that of the second, and whether it is the side behind.
fn differing(from: usize, to: usize) -> Option<(usize, usize, bool)> {
    match (from >> 2 == to >> 2, from & 3 == to & 3) {
        (true, false) => Some((from & 3, to & 3, true)),
        (false, true) => Some((from >> 2, to >> 2, false)),
        _ => None,
    }
}

/// Whether a root is one of those that tell of errors.
fn is_drawn(stem: u64) -> bool {
    stem.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ERRORS_OF) == 0
}

/// Whether there is anything to [`see`](Gathering::see) at a root: both samples are deep, and it has another extension that is not rare in the normal or clear in
/// the tumour, or it is drawn. This is asked at each root of a genome, most of which have one extension. `counts` gives those of all extensions.
#[inline(always)]
pub(crate) fn may_have_two<I: Iterator<Item = [u32; 2]>>(
    stem: u64,
    counts: impl Fn() -> I,
    [normal, tumour]: [u32; 2],
) -> bool {
    if normal < DEEP || tumour < DEEP {
        return false;
    }
    // More than a quarter: where that is one extension, it is the most frequent.
    let rare = normal / 4;
    let (any, inherited) = counts().fold((0, 0), |(any, inherited), [own, other]| {
        let often = own > rare;
        (any + u32::from(often | (other >= CLEAR.0)), inherited + u32::from(often))
    });
    (any, inherited) != (1, 1) || is_drawn(stem)
}

/// Parts, each with a lock of its own, so that threads hardly ever wait for each other.
const PARTS: usize = 64;

/// Gathers them from roots as they are counted.
#[derive(Debug)]
pub struct Gathering([Mutex<Gathered>; PARTS]);

impl Default for Gathering {
    fn default() -> Self {
        Gathering(std::array::from_fn(|_| Mutex::default()))
    }
}

#[derive(Debug, Default)]
struct Gathered {
    seen: HashMap<Seen, u64>,
    all: OwnAlleles,
}

impl Gathering {
    /// The part of a root.
    fn part(&self, stem: u64) -> MutexGuard<'_, Gathered> {
        let part = stem.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 58;
        self.0[part as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a root of `bases` bases: how often the normal and the tumour have each extension, and any.
    pub fn see(&self, stem: u64, bases: u32, counts: &[[u32; 2]; 16], [normal, tumour]: [u32; 2]) {
        if normal < DEEP || tumour < DEEP {
            return;
        }
        let reverse = revcomp(stem, bases);
        if stem == reverse {
            return;
        }
        // The normal's most frequent, the first of equals.
        let first = (1..16).fold(0, |best, slot| if counts[slot][0] > counts[best][0] { slot } else { best });
        let firsts = counts[first];
        let slips_on = |behind: bool| slips(if behind { stem } else { reverse });
        let few = |others: u32, all: u32| others.saturating_mul(OTHERS) <= all;
        for (slot, &[own, other]) in counts.iter().enumerate() {
            let inherited = own.saturating_mul(4) > normal;
            if slot == first || (other < CLEAR.0 && !inherited) {
                continue;
            }
            let Some((from, to, behind)) = differing(first, slot) else { continue };
            if !few(normal - firsts[0] - own, normal) || slips_on(behind) {
                continue;
            }
            if inherited {
                if (normal as usize) < DEPTHS {
                    let mut gathered = self.part(stem);
                    gathered.all.balance.resize(DEPTHS, [0; 2]);
                    let at = &mut gathered.all.balance[normal as usize];
                    at[0] += 1;
                    at[1] += u64::from(firsts[0] - own).pow(2);
                }
            } else if other >= least(tumour)
                && own <= most(normal, [other, tumour])
                && few(tumour - firsts[1] - other, tumour)
            {
                let class = substitution(from, to) as u8;
                let seen = Seen { normal: [own, normal], tumour: [other, tumour], class };
                *self.part(stem).seen.entry(seen).or_default() += 1;
            }
        }
        if is_drawn(stem) && firsts[1] == tumour && firsts[0].saturating_mul(4) >= normal.saturating_mul(3) {
            let mut gathered = self.part(stem);
            for (slot, &[own, _]) in counts.iter().enumerate().filter(|&(slot, _)| slot != first) {
                if let Some((from, to, behind)) = differing(first, slot)
                    && !slips_on(behind)
                {
                    gathered.all.wrong[substitution(from, to)] += u64::from(own);
                }
            }
            for (base, behind) in [(first >> 2, false), (first & 3, true)] {
                if !slips_on(behind) {
                    // C and G are 1 and 2.
                    gathered.all.looked[usize::from(base == 0 || base == 3)] += u64::from(normal);
                }
            }
        }
    }

    /// All that was gathered.
    pub fn all(&self) -> OwnAlleles {
        let (mut all, mut seen) = (OwnAlleles::default(), Vec::new());
        for part in &self.0 {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(&part.all);
            seen.extend(part.seen.iter().map(|(seen, n)| (*seen, *n)));
        }
        all.seen = seen;
        all.together();
        all
    }
}

impl OwnAlleles {
    /// Adds those of other roots.
    pub fn add(&mut self, other: &OwnAlleles) {
        self.seen.extend_from_slice(&other.seen);
        self.together();
        self.wrong.iter_mut().zip(other.wrong).for_each(|(a, b)| *a += b);
        self.looked.iter_mut().zip(other.looked).for_each(|(a, b)| *a += b);
        let deepest = self.balance.len().max(other.balance.len());
        self.balance.resize(deepest, [0; 2]);
        for (own, other) in self.balance.iter_mut().zip(&other.balance) {
            own.iter_mut().zip(other).for_each(|(a, b)| *a += b);
        }
    }

    /// Sorts what was seen, and makes one of what is alike.
    fn together(&mut self) {
        self.seen.sort_unstable();
        self.seen.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }

    /// Share of the normal's bases that are wrong in a way of their own, by substitution.
    pub fn errors(&self) -> [f64; 6] {
        std::array::from_fn(|class| self.wrong[class] as f64 / self.looked[class / 3].max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a root may not have two alleles nothing is gathered.
    #[test]
    fn what_is_passed_over_has_nothing_to_tell() {
        let mut x = 7u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let mut passed = 0;
        for i in 0..200_000u64 {
            let stem = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6;
            let mut counts = [[0u32; 2]; 16];
            for _ in 0..1 + below(4) {
                let slot = below(16) as usize;
                let mut count = || {
                    let most = 1 << below(7);
                    below(most) as u32
                };
                counts[slot] = [count(), count()];
            }
            let all = [0, 1].map(|s| counts.iter().map(|c| c[s]).sum());
            if !may_have_two(stem, || counts.iter().copied(), all) {
                passed += u32::from(all[0] >= DEEP && all[1] >= DEEP);
                let gathering = Gathering::default();
                gathering.see(stem, 29, &counts, all);
                assert_eq!(gathering.all(), OwnAlleles::default(), "{counts:?}");
            }
        }
        assert!(passed > 10_000, "{passed}");
    }

    /// What is gathered does not show who saw which root, or that partitions were added up.
    #[test]
    fn parts_of_roots_are_all_roots() {
        const BASES: u32 = 29;
        let roots: Vec<(u64, u32)> = (1..4_000u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6, (i % 3) as u32))
            .filter(|(stem, _)| *stem < revcomp(*stem, BASES))
            .collect();
        let gather = |roots: &[(u64, u32)]| {
            let gathering = Gathering::default();
            for &(stem, kind) in roots {
                let mut counts = [[0; 2]; 16];
                // The tumour's own, an inherited one, and none.
                (counts[0], counts[1]) =
                    [([29, 20], [1, 9]), ([15, 14], [15, 15]), ([30, 30], [0, 0])][kind as usize];
                let all = [0, 1].map(|s| counts[0][s] + counts[1][s]);
                gathering.see(stem, BASES, &counts, all);
            }
            gathering.all()
        };
        let whole = gather(&roots);
        assert_eq!(whole.seen.len(), 1);
        assert_eq!(whole.seen[0].0, Seen { normal: [1, 30], tumour: [9, 29], class: whole.seen[0].0.class });
        assert!(whole.seen[0].1 > 500 && whole.balance[30][0] > 500 && whole.looked[1] > 0);
        let (some, others) = roots.split_at(roots.len() / 3);
        let mut sum = gather(others);
        sum.add(&gather(some));
        assert_eq!(sum, whole);
    }
}
