//! Root counters → interesting k-mers: seen in the tumour, absent from the normal.
//!
//! The rule looks at one root at a time, so it runs inside the counter while the root's bin is in memory
//! (cadenelli2019, section 2.4). It is generous on purpose: it leaves a few hundred false loci in 5 Mbp, which
//! grouping and evidence remove, while fixed thresholds lose two fifths of the true ones. What it allows for, errors
//! in the tumour and contamination of the normal, is reckoned from the depth of the root itself wherever the normal
//! has the root, so that amplified, captured and repeated places are held to their own measure.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{mask, revcomp};
use genuma_reads::{NORMAL, TUMOUR};
use serde::{Deserialize, Serialize};

use crate::own_alleles::{Gathering, OwnAlleles, may_have_two};

/// A k-mer that the tumour has and the normal lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pick {
    /// The canonical k-mer (smaller of the two strands).
    pub kmer: u64,
    /// Times seen in the tumour.
    pub tumour: u32,
    /// Times seen in the normal.
    pub normal: u32,
    /// Where the samples part, how often the tumour has the root: the normal has it too, with another extension, and the
    /// tumour has this one more often than sequencing errors would make it. 0 inside novel sequence.
    pub depth: u32,
    /// By which rule it was picked: of the tumour of this number alone, or of all tumours together, [`TOGETHER`]; counts and depth are what that
    /// looked at. Several rules may pick one k-mer.
    pub rule: u8,
}

/// The rule that adds up all tumours.
pub const TOGETHER: u8 = 0;

/// The picks of each k-mer, of picks that are sorted.
pub(crate) fn by_kmer(picks: &[Pick]) -> impl Iterator<Item = &[Pick]> {
    picks.chunk_by(|a, b| a.kmer == b.kmer)
}

impl Pick {
    /// Whether the samples part here.
    pub fn parting(&self) -> bool {
        self.depth > 0
    }

    /// Whether a parting k-mer stands in a repeat: its root is far more frequent than k-mers of the tumour usually are.
    pub fn in_repeat(&self, usual: f64) -> bool {
        f64::from(self.depth) > REPEAT * usual
    }

    /// Whether only good bases make it more than errors.
    pub fn wants_good_bases(&self) -> bool {
        self.parting() && f64::from(self.tumour) < beyond_errors(f64::from(self.depth))
    }
}

/// Times the usual depth from which a root stands in a repeat.
const REPEAT: f64 = 3.0;

/// Chance that a read shows one particular wrong base: an upper bound, since it only has to tell repeats apart.
const ERROR: f64 = 0.0015;

/// The same for a base of quality [`GOOD`].
const GOOD_ERROR: f64 = ERROR / 5.0;
/// Quality of a base that is hardly ever wrong.
pub const GOOD: u8 = 30;
/// Fewest good bases that speak for a change where bases of any quality are too few.
const FEWEST_GOOD: f64 = 4.0;

/// Mean and four standard deviations of the errors, and one more.
fn beyond(errors: f64) -> f64 {
    1.0 + errors + 4.0 * errors.sqrt()
}

/// Fewest occurrences of a sequence that errors do not explain where the tumour's depth is `depth`. In a repeat of many copies errors
/// recur, and the bar rises.
pub fn beyond_errors(depth: f64) -> f64 {
    beyond(depth * ERROR)
}

/// The same of occurrences in bases of quality [`GOOD`] and more: in a repeat fewer suffice.
pub(crate) fn beyond_good_errors(depth: f64) -> f64 {
    beyond(depth * GOOD_ERROR).max(FEWEST_GOOD)
}

/// The rule, and what it has seen of the samples as a whole.
#[derive(Debug)]
pub struct Select {
    k: u32,
    /// Fewest tumour occurrences.
    least: u32,
    /// Depth of the normal over that of the tumour.
    ratio: f64,
    /// Most occurrences in the normal of what it lacks: where the tumour has many copies, those are no measure.
    most: f64,
    strangers: AtomicU64,
    /// What the tumour has alone, of the rule of one tumour.
    own: Gathering,
    /// Picks where the normal does not know the root, and how many of them are given out.
    unknown: AtomicU64,
    wanted: u64,
    rule: u8,
}

/// Share of the tumour's depth, at its own depth, that contamination by the tumour may leave in the normal.
const CONTAMINATION: f64 = 1.0 / 6.0;
/// However often the tumour has it, a k-mer that the normal has in more than this share of a root's depth is germline.
const GERMLINE: f64 = 1.0 / 12.0;
/// Fewest occurrences of a root in the normal with other extensions from which the normal is known there. With fewer reads nothing can be
/// said of a change, and where the normal was hardly read everything of the tumour would look new.
const KNOWN: u32 = 4;
/// Fewest occurrences in the tumour from which one in the normal is forgiven.
const CLEAR: u32 = 4;
/// Depth of the tumour over that of the normal, the samples' sizes reckoned in, from which a place is amplified.
const AMPLIFIED: f64 = 2.0;
/// Fewest occurrences of a root in each sample from which it can be said which alleles the sample has.
const SOLID: u32 = 8;

impl Select {
    /// For samples of `kmers` k-mers in all, a tumour of about `depth` occurrences a k-mer (0: not known).
    pub fn new(k: u32, least: u32, kmers: [u64; 2], depth: f64) -> Select {
        let ratio = kmers[NORMAL as usize] as f64 / kmers[TUMOUR as usize].max(1) as f64;
        Select {
            k,
            least: least.max(beyond_errors(depth).ceil() as u32),
            ratio,
            most: if depth > 0.0 { 1.0 + depth * ratio * GERMLINE } else { f64::INFINITY },
            strangers: AtomicU64::new(0),
            own: Gathering::default(),
            unknown: AtomicU64::new(0),
            wanted: u64::MAX,
            rule: TUMOUR,
        }
    }

    /// The same under another number.
    pub(crate) fn with_rule(self, rule: u8) -> Select {
        Select { rule, ..self }
    }

    /// The same, which gives out about `wanted` picks at most where the normal does not know the root.
    pub fn with_unknown(self, wanted: u64) -> Select {
        Select { wanted, ..self }
    }

    /// Picks where the normal does not know the root, those too that were not given out.
    pub fn unknown(&self) -> u64 {
        self.unknown.load(Relaxed)
    }

    /// Roots of which each sample has but one extension, the other one: between two people they are everywhere, in one
    /// person almost nowhere.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Relaxed)
    }

    /// Alleles that the tumour clearly has, and what the normal has of them; nothing but of the first tumour alone.
    pub fn own(&self) -> OwnAlleles {
        self.own.all()
    }

    /// Pushes the k-mers of a root that the tumour has often enough and the normal lacks, but for what contamination
    /// explains. Palindromic k-mers have no direction and cannot anchor a read: they are left out.
    pub fn root(&self, root: &RootCounters, picks: &mut Vec<Pick>) {
        self.root_of(root, |counts| *counts, picks);
    }

    /// The same of counters of more samples, of which `view` makes those of the normal and of the tumour.
    pub(crate) fn root_of<const S: usize>(
        &self,
        root: &RootCounters<S>,
        view: impl Fn(&[u32; S]) -> [u32; 2],
        picks: &mut Vec<Pick>,
    ) {
        let total = |sample: u8| root.counts.iter().map(|c| view(c)[sample as usize]).sum::<u32>();
        let (in_normal, in_tumour) = (total(NORMAL), total(TUMOUR));
        if in_tumour < self.least {
            return;
        }
        let bar = beyond_errors(f64::from(in_tumour));
        // Qualities are not counted: what may be good bases is picked, and looked at where the reads are (see [`crate::label`]). Where the
        // tumour alone is deep it is no repeat but amplified, and true changes are frequent there.
        let amplified = f64::from(in_tumour) * self.ratio > AMPLIFIED * f64::from(in_normal);
        let parting_bar = if amplified { bar } else { bar.min(beyond_good_errors(f64::from(in_tumour))) };
        for (slot, counts) in root.counts.iter().enumerate() {
            let [normal, tumour] = view(counts);
            if tumour < self.least {
                continue;
            }
            let parting = in_normal >= normal + KNOWN;
            // Where the normal has the root its own depth tells what there would be of a germline allele.
            let ratio = if parting { f64::from(in_normal) / f64::from(in_tumour) } else { self.ratio };
            let most = f64::from(tumour) * ratio * CONTAMINATION;
            let most =
                if parting { most.min(1.0 + f64::from(in_normal) * GERMLINE) } else { most.min(self.most) };
            // One read of the normal may be wrong.
            let most = if tumour >= CLEAR.max(2 * self.least) { most.max(1.0) } else { most };
            if f64::from(normal) > most || f64::from(tumour) < if parting { parting_bar } else { bar } {
                continue;
            }
            let (first, last) = (slot as u64 >> 2, slot as u64 & 3);
            let word = (first << (2 * (self.k - 1)) | root.stem << 2 | last) & mask(self.k);
            let reverse = revcomp(word, self.k);
            if word != reverse {
                if !parting && self.unknown.fetch_add(1, Relaxed) >= self.wanted {
                    continue;
                }
                let depth = if parting { in_tumour } else { 0 };
                picks.push(Pick { kmer: word.min(reverse), tumour, normal, depth, rule: self.rule });
            }
        }
        let each = || root.counts.iter().map(&view);
        if self.rule == TUMOUR && may_have_two(root.stem, each, [in_normal, in_tumour]) {
            let counts = root.counts.each_ref().map(&view);
            self.own.see(root.stem, self.k - 2, &counts, [in_normal, in_tumour]);
        }
        if in_normal >= SOLID && in_tumour >= SOLID {
            let share = |c: &[u32; S]| view(c).into_iter().map(u64::from).product::<u64>();
            // One read in sixteen may be wrong.
            let common = root.counts.iter().map(share).sum::<u64>();
            if common * 16 <= u64::from(in_normal) * u64::from(in_tumour) {
                self.strangers.fetch_add(1, Relaxed);
            }
        }
    }
}

/// What the k-mer spectra say about the two samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Depths {
    /// Occurrences of a k-mer that stands once in each haplotype of the genome, of the normal and of each tumour.
    pub kmer: Vec<f64>,
    /// Share of the tumours' k-mer occurrences that are sequencing errors.
    pub error_share: f64,
}

impl Depths {
    /// Reads the depth off each spectrum: the highest peak beyond the valley that follows the errors.
    pub fn of(spectra: &[Vec<u64>]) -> Depths {
        let kmer = spectra.iter().map(|spectrum| peak(spectrum)).collect();
        let weigh = |range: &[u64]| -> u64 { range.iter().zip(0u64..).map(|(n, m)| m * n).sum() };
        let tumours = spectra.iter().skip(TUMOUR.into());
        let (errors, all) = tumours.fold((0, 0), |(errors, all), tumour| {
            (errors + weigh(&tumour[..valley(tumour)]), all + weigh(tumour))
        });
        Depths { kmer, error_share: errors as f64 / all.max(1) as f64 }
    }
}

/// How often a k-mer of the sample occurs, for half of what it has read beyond the errors: where bases mostly lie, also in a panel, whose spectrum has
/// no peak of its own.
pub fn usual_depth(spectrum: &[u64]) -> f64 {
    let from = valley(spectrum);
    let mass = |m: usize| m as u64 * spectrum[m];
    let all: u64 = (from..spectrum.len()).map(mass).sum();
    let mut left = all / 2;
    let reaches = |&m: &usize| {
        let here = mass(m);
        let found = here > left;
        left = left.saturating_sub(here);
        found
    };
    (from..spectrum.len()).find(reaches).unwrap_or(0) as f64
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
