//! Mates on the haplotypes of a contig: how likely each makes each, and what that says of a change.

use crate::errors::{Errors, STRANGER};
use crate::haplotype::Haplotype;
use crate::lay::Recruit;
use crate::packed::Read;
use crate::recruit::Kept;

/// A mate on the haplotypes of its contig.
#[derive(Debug, Clone)]
pub struct Weighed {
    /// Which of the contig's recruits.
    pub recruit: usize,
    /// The read along the contig.
    pub read: Read,
    /// Log-likelihood on each haplotype.
    likelihood: Vec<f64>,
    /// Where it begins, in contig coordinates, on the best haplotype that has everything and on the best of all.
    pub(crate) at: [i32; 2],
}

impl Weighed {
    /// Contig position of the first base on the haplotype that fits best.
    pub fn at(&self) -> i32 {
        self.at[1]
    }
}

/// Log-likelihood of the first so many bases of a read if all are right, for each number of them. An N says nothing.
fn if_right(read: &Read, errors: &Errors) -> Vec<f64> {
    let mut sum = 0.0;
    let after = |(&base, &quality): (&u8, &u8)| {
        sum += if base == b'N' { 0.0 } else { errors.right[usize::from(quality.min(63))] };
        sum
    };
    std::iter::once(0.0).chain(read.seq.iter().zip(&read.qual).map(after)).collect()
}

/// A read laid without gaps on a haplotype from `at` on: its log-likelihood and its number of disagreeing good bases; `None` once it is clear
/// that the former is not above `floor`. Bases beyond the haplotype count as guessed. `right` is what [`if_right`] says of the read.
fn likelihood(
    (read, right): (&Read, &[f64]),
    at: i32,
    haplotype: &[u8],
    (errors, damage): (&Errors, &[[f64; 4]; 4]),
    floor: f64,
) -> Option<(f64, u32)> {
    const BLOCK: usize = 32;
    let from = ((-at).max(0) as usize).min(read.seq.len());
    let to = read.seq.len().min((haplotype.len() as i32 - at).max(0) as usize).max(from);
    let mut sum = (read.seq.len() - (to - from)) as f64 * 0.25f64.ln() + right[to] - right[from];
    let mut differing = 0;
    let beside = haplotype.get((at + from as i32).max(0) as usize..).unwrap_or_default();
    let beside = &beside[..beside.len().min(to - from)];
    let blocks = read.seq[from..to].chunks(BLOCK).zip(beside.chunks(BLOCK));
    for (start, (bases, beside)) in (from..).step_by(BLOCK).zip(blocks).filter(|(_, (a, b))| a != b) {
        let pairs = (start..).zip(bases).zip(beside).filter(|((_, b), h)| b != h && **b != b'N');
        for ((i, &b), &h) in pairs {
            let quality = read.qual[i];
            sum -= errors.right[usize::from(quality.min(63))];
            if h != b'N' {
                sum += errors.wrong(quality, damage, h, b);
                differing += u32::from(quality >= 15);
            }
        }
        // Each wrong base takes away.
        if sum <= floor {
            return None;
        }
    }
    Some((sum, differing))
}

/// Weighs the recruited reads of a contig; those that fit none of the haplotypes are left out.
pub fn weigh(
    haplotypes: &[Haplotype],
    recruits: &[Recruit],
    pairs: &[Kept],
    errors: &Errors,
) -> Vec<Weighed> {
    let weigh_one = |(r, recruit): (usize, &Recruit)| {
        let read = recruit.oriented(pairs);
        let right = if_right(&read, errors);
        let damage = errors.damage_of(pairs[recruit.pair as usize].sample, recruit.first_forward());
        let (mut best, mut differing) = (f64::NEG_INFINITY, u32::MAX);
        let mut at = [recruit.at[0]; 2];
        let mut tried: Vec<i32> = Vec::new();
        let mut on = |(h, haplotype): (usize, &Haplotype)| {
            let mut here = f64::NEG_INFINITY;
            tried.clear();
            for &shift in &haplotype.shifts {
                for offset in recruit.at {
                    let start = offset + shift;
                    if tried.contains(&start) {
                        continue;
                    }
                    tried.push(start);
                    let laid = likelihood((&read, &right), start, &haplotype.seq, (errors, damage), here);
                    let Some((sum, wrong)) = laid.filter(|laid| laid.0 > here) else { continue };
                    here = sum;
                    if h == 0 {
                        at[0] = offset;
                    }
                    if sum > best {
                        (best, differing, at[1]) = (sum, wrong, offset);
                    }
                }
            }
            here
        };
        let likelihood = haplotypes.iter().enumerate().map(&mut on).collect();
        let stranger = f64::from(differing) > STRANGER * read.seq.len() as f64;
        (!stranger).then_some(Weighed { recruit: r, read, likelihood, at })
    };
    recruits.iter().enumerate().filter_map(weigh_one).collect()
}

/// Log-likelihood by which a read fits where it lies better than elsewhere.
const ELSEWHERE: f64 = 3.0;

/// Log-odds of a mate for finding `f` by the haplotypes that have it and those that lack it. A read that clearly comes from one that does
/// not reach the place, as from beyond another junction of the contig, says nothing: `None`.
pub(crate) fn by_haplotypes(weighed: &Weighed, haplotypes: &[Haplotype], f: usize) -> Option<f64> {
    let best = |has: Option<bool>| {
        let own = haplotypes.iter().zip(&weighed.likelihood).filter(|(h, _)| h.has[f] == has);
        own.map(|(_, l)| *l).fold(f64::NEG_INFINITY, f64::max)
    };
    let (with, without) = (best(Some(true)), best(Some(false)));
    let tells = with.is_finite() && without.is_finite() && best(None) < with.max(without) + ELSEWHERE;
    tells.then_some(with - without)
}
