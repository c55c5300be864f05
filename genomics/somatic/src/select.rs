//! Root counters → interesting k-mers: seen in the tumour, absent from the normal.
//!
//! The rule looks at one root at a time, so it runs inside the counter while the root's bin is in memory
//! (cadenelli2019, section 2.4). It is generous on purpose: on simulated tumours it leaves a few hundred false
//! loci in 5 Mbp, which grouping and evidence remove, while fixed thresholds lose two fifths of the true ones.

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{mask, revcomp};
use genuma_reads::{NORMAL, TUMOUR};
use serde::{Deserialize, Serialize};

/// A k-mer that the tumour has and the normal lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pick {
    /// The canonical k-mer (smaller of the two strands).
    pub kmer: u64,
    /// Times seen in the tumour.
    pub tumour: u32,
    /// Times seen in the normal.
    pub normal: u32,
    /// Whether the samples part here: the normal has the root, with another extension, and the tumour has this one
    /// more often than sequencing errors would make it. Without it the k-mer lies inside novel sequence.
    pub parting: bool,
}

/// The most normal occurrences that contamination by the tumour may explain, given the tumour's count.
pub fn normal_allowance(tumour: u32) -> u32 {
    tumour / 6
}

/// Chance that a read shows one particular wrong base: an upper bound, since it only has to tell repeats apart.
const ERROR: f64 = 0.0015;

/// Fewest occurrences of an extension that errors do not explain, when the root stands `depth` times in the tumour:
/// mean and four standard deviations of the errors. In a repeat of many copies errors recur, and the bar rises.
fn beyond_errors(depth: u32) -> f64 {
    let errors = f64::from(depth) * ERROR;
    1.0 + errors + 4.0 * errors.sqrt()
}

/// Pushes the k-mers of a root that are seen `least` times or more in the tumour and are absent from the normal,
/// up to [`normal_allowance`]. Palindromic k-mers have no direction and cannot anchor a read: they are left out.
pub fn select(k: u32, least: u32, root: &RootCounters, picks: &mut Vec<Pick>) {
    let total = |sample: u8| root.counts.iter().map(|c| c[sample as usize]).sum::<u32>();
    let (in_normal, bar) = (total(NORMAL), beyond_errors(total(TUMOUR)));
    for (slot, counts) in root.counts.iter().enumerate() {
        let (tumour, normal) = (counts[TUMOUR as usize], counts[NORMAL as usize]);
        if tumour < least || normal > normal_allowance(tumour) {
            continue;
        }
        let parting = in_normal > normal;
        if parting && f64::from(tumour) < bar {
            continue;
        }
        let (first, last) = (slot as u64 >> 2, slot as u64 & 3);
        let word = (first << (2 * (k - 1)) | root.stem << 2 | last) & mask(k);
        let reverse = revcomp(word, k);
        if word != reverse {
            picks.push(Pick { kmer: word.min(reverse), tumour, normal, parting });
        }
    }
}

/// What the k-mer spectra say about the two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Depths {
    /// Occurrences of a k-mer that stands once in each haplotype of the genome, normal then tumour.
    pub kmer: [f64; 2],
    /// Share of the tumour's k-mer occurrences that are sequencing errors.
    pub error_share: f64,
}

impl Depths {
    /// Reads the depth off each spectrum: the highest peak beyond the valley that follows the errors.
    pub fn of(spectra: &[Vec<u64>; 2]) -> Depths {
        let kmer = [peak(&spectra[0]), peak(&spectra[1])];
        let tumour = &spectra[TUMOUR as usize];
        let valley = valley(tumour);
        let weigh = |range: &[u64], from: usize| -> f64 {
            range.iter().enumerate().map(|(m, &n)| (m + from) as f64 * n as f64).sum()
        };
        let all = weigh(tumour, 0).max(1.0);
        Depths { kmer, error_share: weigh(&tumour[..valley], 0) / all }
    }
}

/// First multiplicity where the spectrum rises again.
fn valley(spectrum: &[u64]) -> usize {
    (2..spectrum.len().saturating_sub(1)).find(|&m| spectrum[m + 1] > spectrum[m]).unwrap_or(2)
}

/// The multiplicity with the most k-mers beyond the valley, by k-mer mass so that a heterozygous half-peak loses.
fn peak(spectrum: &[u64]) -> f64 {
    let from = valley(spectrum);
    let last = spectrum.len().saturating_sub(1);
    (from..last).max_by_key(|&m| (m as u64 * spectrum[m], std::cmp::Reverse(m))).unwrap_or(1).max(1) as f64
}
