//! Reads against both alleles: who supports what, and how well.

use crate::compare::{Compared, Finding};
use crate::label::Read;
use crate::recruit::Recruit;

/// Probability that a read shows a base that its molecule did not have, whatever its quality says: damage, PCR.
const FLOOR: f64 = 1e-4;
/// A read must favour an allele by this factor (natural logarithm) to be counted for it.
const CLEAR: f64 = 3.0;
/// Share of a read's bases that may disagree with the better allele before it is taken for a stranger.
const STRANGER: f64 = 0.06;

/// Natural-log probabilities of a base call by Phred quality: right, and one particular wrong base.
#[derive(Debug, Clone)]
pub struct Qualities {
    right: [f64; 64],
    wrong: [f64; 64],
}

impl Qualities {
    /// Takes the reported qualities at their word where the reads bear them out, and lowers them where bases of that
    /// quality are wrong more often.
    pub fn of(tally: &Tally) -> Qualities {
        let error = |q: usize| {
            let reported = 10f64.powf(-(q as f64) / 10.0);
            reported.max(tally.error_rate(q).unwrap_or(0.0)).clamp(FLOOR, 0.7)
        };
        Qualities {
            right: std::array::from_fn(|q| (1.0 - error(q)).ln()),
            wrong: std::array::from_fn(|q| (error(q) / 3.0).ln()),
        }
    }
}

/// Bases of one quality from which its error rate can be told.
const ENOUGH: u64 = 5_000;

/// How often bases of each quality differ from the sequence they were read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    all: [u64; 64],
    wrong: [u64; 64],
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { all: [0; 64], wrong: [0; 64] }
    }
}

impl Tally {
    /// Compares reads of the normal, each laid from a contig position on, with the contig outside its changes. Where
    /// two reads or more differ from it stands a variant or a paralogue, not an error.
    pub fn of(contig: &Compared, reads: &[(i32, Read)]) -> Tally {
        let mut differing = vec![0u32; contig.seq.len()];
        for finding in &contig.findings {
            let around = finding.at.start.saturating_sub(1)..(finding.at.end + 1).min(differing.len());
            differing[around].fill(2);
        }
        let mut laid: Vec<(usize, usize, bool)> = Vec::new();
        for (at, read) in reads {
            let before = laid.len();
            for (i, (&base, &quality)) in read.seq.iter().zip(&read.qual).enumerate() {
                let Ok(column) = usize::try_from(at + i as i32) else { continue };
                let Some(&here) = contig.seq.get(column) else { break };
                if base != b'N' && here != b'N' {
                    laid.push((column, usize::from(quality.min(63)), base != here));
                }
            }
            let wrong = laid[before..].iter().filter(|b| b.2).count();
            // More than a few differences: another place, or the far side of an insertion or deletion.
            if wrong as f64 > STRANGER * (laid.len() - before) as f64 {
                laid.truncate(before);
            }
            laid[before..].iter().filter(|b| b.2).for_each(|b| differing[b.0] += 1);
        }
        let mut tally = Tally::default();
        for (_, quality, wrong) in laid.into_iter().filter(|b| differing[b.0] < 2) {
            tally.all[quality] += 1;
            tally.wrong[quality] += u64::from(wrong);
        }
        tally
    }

    /// Share of wrong bases of a Phred quality; `None` when there are too few of them to tell.
    pub fn error_rate(&self, quality: usize) -> Option<f64> {
        (self.all[quality] >= ENOUGH).then(|| self.wrong[quality] as f64 / self.all[quality] as f64)
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        for q in 0..64 {
            self.all[q] += other.all[q];
            self.wrong[q] += other.wrong[q];
        }
    }
}

/// How one pair sees a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vote {
    /// Index among the recruited pairs.
    pub pair: u32,
    /// Natural log of P(read | tumour allele) / P(read | normal allele), of the mate that says more.
    pub log_odds: f64,
    /// Whether that mate runs with the contig.
    pub forward: bool,
    /// Distance of the change from the nearer end of the read.
    pub from_end: u16,
    /// Phred quality of the bases that make the difference (median of them).
    pub quality: u8,
}

impl Vote {
    /// For the tumour allele.
    pub fn alternative(&self) -> bool {
        self.log_odds > CLEAR
    }

    /// For the normal allele.
    pub fn reference(&self) -> bool {
        self.log_odds < -CLEAR
    }
}

/// Log-likelihood of a read laid without gaps on a haplotype from `at` on, and its number of disagreeing good bases.
/// Bases beyond the haplotype count as guessed.
fn likelihood(read: &Read, at: i32, haplotype: &[u8], q: &Qualities) -> (f64, u32) {
    let from = ((-at).max(0) as usize).min(read.seq.len());
    let to = read.seq.len().min((haplotype.len() as i32 - at).max(0) as usize).max(from);
    let mut sum = (read.seq.len() - (to - from)) as f64 * 0.25f64.ln();
    let mut differing = 0;
    for i in from..to {
        let quality = usize::from(read.qual[i].min(63));
        let (b, h) = (read.seq[i], haplotype[(at + i as i32) as usize]);
        if b == h {
            sum += q.right[quality];
        } else if b != b'N' && h != b'N' {
            sum += q.wrong[quality];
            differing += u32::from(quality >= 15);
        }
    }
    (sum, differing)
}

/// Weighs one recruited read. `None` when it fits neither allele.
fn weigh(finding: &Finding, contig: &[u8], recruit: &Recruit, read: &Read, q: &Qualities) -> Option<Vote> {
    let best = |a: (f64, u32), b: (f64, u32)| if a.0 >= b.0 { a } else { b };
    let mut alternative = (f64::NEG_INFINITY, 0);
    let mut normal = (f64::NEG_INFINITY, 0);
    let mut at = recruit.at[0];
    for (i, &offset) in recruit.at.iter().enumerate() {
        if recruit.at[..i].contains(&offset) {
            continue;
        }
        let here = likelihood(read, offset, contig, q);
        if here.0 > alternative.0 {
            (alternative, at) = (here, offset);
        }
        normal = best(normal, likelihood(read, offset, &finding.left_normal, q));
        normal = best(normal, likelihood(read, offset + finding.right_shift, &finding.right_normal, q));
    }
    if f64::from(best(alternative, normal).1) > STRANGER * read.seq.len() as f64 {
        return None;
    }
    let len = read.seq.len() as i32;
    let reach = |edge: usize| (edge as i32 - at).min(len - (edge as i32 - at));
    let from_end = reach(finding.at.start).max(reach(finding.at.end));
    if from_end < 0 {
        return None;
    }
    let (from_end, start) = (from_end as u16, finding.at.start as i32 - at);
    let here = start.clamp(0, len - 1) as usize;
    let last = (finding.at.end as i32 - at).clamp(here as i32 + 1, len) as usize;
    let mut around: Vec<u8> = read.qual[here..last].to_vec();
    around.sort_unstable();
    Some(Vote {
        pair: recruit.pair,
        log_odds: alternative.0 - normal.0,
        forward: recruit.forward,
        from_end,
        quality: around[around.len() / 2],
    })
}

/// One vote per pair: of the two mates the one that says more.
pub fn votes(
    finding: &Finding,
    contig: &[u8],
    recruits: &[Recruit],
    read: impl Fn(&Recruit) -> Read,
    q: &Qualities,
) -> Vec<Vote> {
    let mut votes: Vec<Vote> = Vec::new();
    for recruit in recruits {
        let Some(vote) = weigh(finding, contig, recruit, &read(recruit), q) else { continue };
        match votes.last_mut() {
            Some(last) if last.pair == vote.pair => {
                if vote.log_odds.abs() > last.log_odds.abs() {
                    *last = vote;
                }
            }
            _ => votes.push(vote),
        }
    }
    votes
}
