//! A place where the tumour may have changed: its contig, the reads of both samples on it, and what was made of them.

use genuma_reads::{NORMAL, TUMOUR};

use crate::change::{self, Change, is_small};
use crate::compare::Compared;
use crate::errors::{self, Errors, OnSequence};
use crate::evidence::Evidence;
use crate::fold_back;
use crate::genotype::{self, Filter, Genotype, Kind};
use crate::haplotype;
use crate::lay::Recruit;
use crate::packed::Read;
use crate::recruit::Kept;
use crate::slippage::{self, Repeat};
use crate::vote::{Shared, Vote};

/// A judged change.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What changed.
    pub change: Change,
    /// What kind of errors look like it.
    pub kind: Kind,
    /// The verdict.
    pub genotype: Genotype,
    /// Molecules of the tumours at the place, whether they tell the alleles apart or not.
    pub molecules: u32,
    /// How many normals of the panel have it, where there is one.
    pub panel: Option<u32>,
    /// Whether the contig goes on behind the change as the reverse complement of what is before it.
    pub turns_back: bool,
    /// Index of the locus that shows it.
    pub locus: usize,
    /// Index of the finding on its contig.
    pub finding: usize,
    /// Pairs with the tumour allele that stand for their molecules, ascending: indices into the pairs of the locus' range.
    pub supporting: Vec<u32>,
    /// Small changes of the contig, of those after this one, that the same molecules have.
    pub in_phase: Vec<Change>,
}

/// A contig with its reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locus {
    /// The contig as compared.
    pub contig: Compared,
    /// The reads laid on it, by pair and mate, where they are in memory.
    pub recruits: Vec<Recruit>,
    /// How many they are.
    pub laid: usize,
    /// Pairs of the normal and of the tumours among them.
    pub pairs: [usize; 2],
    /// One pair in so many was kept here, of the normal and of the deepest tumour.
    pub thinned: [u32; 2],
    /// Other loci that show other changes of the same place, by index.
    pub rivals: Vec<usize>,
}

/// Distance of two changes, bases, within which they are held against each other's reads.
const BESIDE: usize = 100;
/// Rivals of a locus, those of the most reads first.
const RIVALS: usize = 8;

/// Finds the rivals of all loci. Says how many are left out.
pub fn find_rivals(loci: &mut [Locus]) -> u64 {
    let mut left_out = 0;
    let mut places: Vec<((usize, usize), usize)> = (0..)
        .zip(loci.iter())
        .flat_map(|(l, locus)| locus.places().into_iter().map(move |place| (place, l)))
        .collect();
    places.sort_unstable();
    let found: Vec<Vec<usize>> = (0..loci.len())
        .map(|l| {
            let mut near: Vec<usize> = Vec::new();
            for (chrom, pos) in loci[l].places() {
                let from = places.partition_point(|p| p.0 < (chrom, pos.saturating_sub(BESIDE)));
                let within = places[from..].iter().take_while(|p| p.0 <= (chrom, pos + BESIDE));
                near.extend(within.map(|p| p.1).filter(|&other| other != l));
            }
            near.sort_unstable();
            near.dedup();
            near.sort_by_key(|&other| (std::cmp::Reverse(loci[other].contig.depth), other));
            left_out += near.len().saturating_sub(RIVALS) as u64;
            near.truncate(RIVALS);
            near
        })
        .collect();
    for (locus, rivals) in loci.iter_mut().zip(found) {
        locus.rivals = rivals;
    }
    left_out
}

/// Small changes on one contig from which it is not a changed place but another one.
const DIVERGENT: usize = 10;
impl Locus {
    /// A contig without reads, of a place of which one pair in so many was kept.
    pub fn new(contig: Compared, thinned: [u32; 2]) -> Locus {
        Locus { contig, recruits: Vec::new(), laid: 0, pairs: [0; 2], thinned, rivals: Vec::new() }
    }

    /// Gives it the reads that were laid on it, of `pairs`.
    pub fn take_reads(&mut self, recruits: Vec<Recruit>, pairs: &[Kept]) {
        self.laid = recruits.len();
        self.pairs = [0; 2];
        for mates in recruits.chunk_by(|a, b| a.pair == b.pair) {
            self.pairs[usize::from(pairs[mates[0].pair as usize].sample != NORMAL)] += 1;
        }
        self.recruits = recruits;
    }

    /// Whether it has too many small changes for each to have a haplotype of its own.
    pub(crate) fn is_crowded(&self) -> bool {
        let small = |f: &&crate::compare::Finding| matches!(f.change, Change::Allele { .. });
        self.contig.findings.iter().filter(small).count() > haplotype::FEW
    }

    /// The places its changes touch.
    fn places(&self) -> Vec<(usize, usize)> {
        self.contig.findings.iter().flat_map(|f| change::places(&f.change)).collect()
    }

    /// What its reads say, held against its own haplotypes and those of its rivals among `loci`.
    pub fn evidence<'a>(&'a self, loci: &[Locus], pairs: &'a [Kept], errors: &'a Errors) -> Evidence<'a> {
        self.evidence_of(&self.recruits, loci, pairs, errors)
    }

    /// What some of its reads say.
    pub fn evidence_of<'a>(
        &'a self,
        recruits: &'a [Recruit],
        loci: &[Locus],
        pairs: &'a [Kept],
        errors: &'a Errors,
    ) -> Evidence<'a> {
        let mut haplotypes = haplotype::of(&self.contig);
        let rivals = self.rivals.iter().map(|&r| &loci[r].contig);
        haplotypes.extend(rivals.filter_map(|rival| haplotype::of_rival(&self.contig, rival)));
        Evidence::of(&self.contig, haplotypes, recruits, pairs, errors)
    }

    /// The reads of all samples along the contig.
    fn reads<'a>(&'a self, pairs: &'a [Kept]) -> impl Iterator<Item = (&'a Recruit, u8, Read)> {
        self.recruits.iter().map(|r| (r, pairs[r.pair as usize].sample, r.oriented(pairs)))
    }

    /// What the reads say of the errors in them: their bases against the contig's, away from what changed; and the lengths
    /// of the repeats beside it in the normal.
    pub fn tallies(&self, pairs: &[Kept]) -> (errors::Tally, slippage::Tally) {
        let seq = &self.contig.seq;
        let mut changed = vec![false; seq.len()];
        for finding in &self.contig.findings {
            changed[finding.at.start.saturating_sub(1)..(finding.at.end + 1).min(seq.len())].fill(true);
        }
        let reads: Vec<(&Recruit, u8, Read)> = self.reads(pairs).collect();
        let on: Vec<OnSequence<'_>> = reads
            .iter()
            .map(|(r, sample, read)| OnSequence {
                sample: *sample,
                first_forward: r.first_forward(),
                at: r.at[0],
                read,
            })
            .collect();
        let mut slips = slippage::Tally::default();
        for repeat in Repeat::all(seq) {
            if changed[repeat.start.saturating_sub(1)..(repeat.end + 1).min(seq.len())].contains(&true) {
                continue;
            }
            let covers = |r: &Recruit, read: &Read| {
                r.at[0] < repeat.start as i32 && r.at[0] + read.seq.len() as i32 > repeat.end as i32
            };
            let lengths: Vec<usize> = reads
                .iter()
                .filter(|(r, sample, read)| *sample == NORMAL && covers(r, read))
                .filter_map(|(r, _, read)| repeat.in_read(seq, &read.seq, &r.at))
                .collect();
            slips.add_reads(repeat.unit, repeat.len(), &lengths);
        }
        (errors::Tally::of(seq, &changed, &on), slips)
    }

    /// Weighs the contig's changes.
    pub fn judge(&self, number: usize, evidence: &Evidence<'_>, least_quality: f64) -> Vec<Call> {
        let small = self.contig.findings.iter().filter(|f| is_small(&f.change)).count();
        let judge_one = |(f, finding): (usize, &crate::compare::Finding)| {
            let (mut votes, slips) = evidence.votes_and_slips(f);
            let tumours = votes.split_off(TUMOUR.into());
            let normal = votes.concat();
            let params = genotype::Params {
                kind: evidence.kind(f),
                slips,
                molecules: evidence.molecules_at(f),
                least_quality,
                mapq: finding.mapq,
                ..genotype::Params::default()
            };
            let mut genotype = genotype::judge(&normal, &tumours, params);
            let tumour = genotype::pooled(&tumours).into_owned();
            if small >= DIVERGENT && is_small(&finding.change) {
                genotype.filters.insert(Filter::Divergent);
            }
            let both = normal.iter().chain(&tumour);
            let mut supporting: Vec<u32> = both.filter(|v| v.alternative()).map(|v| v.pair).collect();
            supporting.sort_unstable();
            let (change, kind) = (finding.change.clone(), params.kind);
            let molecules = params.molecules[usize::from(TUMOUR)];
            let turns_back = fold_back::turns_back(&self.contig.seq, finding);
            let (locus, in_phase) = (number, Vec::new());
            let call = Call {
                change,
                kind,
                genotype,
                turns_back,
                locus,
                finding: f,
                molecules,
                panel: None,
                supporting,
                in_phase,
            };
            (call, tumour)
        };
        let (mut calls, votes): (Vec<Call>, Vec<_>) =
            self.contig.findings.iter().enumerate().map(judge_one).unzip();
        note_phase(&mut calls, &votes);
        calls
    }
}

/// Notes which small changes of a contig that pass are in phase, from what the tumour's molecules say of each: with the first of
/// two the second.
fn note_phase(calls: &mut [Call], votes: &[Vec<Vote>]) {
    let fit = |c: &Call| c.genotype.filters.is_empty() && is_small(&c.change);
    for a in 0..calls.len() {
        let others = (a + 1..calls.len()).filter(|&b| fit(&calls[a]) && fit(&calls[b]));
        let others = others.filter(|&b| Shared::of(&votes[a], &votes[b]).in_phase());
        calls[a].in_phase = others.map(|b| calls[b].change.clone()).collect();
    }
}
