//! Likelihood of the site counts, given the contamination share and the somatic changes.

use super::minor_counts::{HetAndSomaticCountProbabilities, minor_count_probabilities};
use super::site_rows::SiteCountsByMinorReads;
use super::somatic_spectrum::{NUM_SPECTRUM_SHAPES, SomaticSpectrumHypothesis};
use crate::confidence_interval::{MIN_PROBABILITY_FOR_LOG, MIN_SHARE_FOR_LOG, log_factorials};
use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::site_tally::NUM_DEPTH_CLASSES;

/// The sites of a [`SiteCountsByMinorReads`] with the same number of reads of the minor allele, and the probabilities
/// of this number.
struct MinorCountCell {
    minor_reads: usize,
    sites: f64,
    /// Probability of this number of reads for a heterozygous allele, which is in half of the reads.
    /// `somatic_probabilities` are those for a somatic change, by shape of the somatic spectrum.
    het_probability: f64,
    somatic_probabilities: [f64; NUM_SPECTRUM_SHAPES],
}

/// The rows of transitions or of transversions at which the other sample has the same number of reads of the minor
/// allele.
struct RowGroup {
    is_transition: bool,
    other_reads: usize,
    /// Factors by which a site is more likely to be in this group if the contaminant is heterozygous there, and if he
    /// is homozygous there.
    foreign_enrichment: [f64; 2],
    /// For each row: depth, number of sites, and the cells by number of reads with the minor allele.
    rows: Vec<(usize, f64, Vec<MinorCountCell>)>,
}

/// The site counts, with the parts of the contamination likelihood that do not depend on the contamination share or the
/// somatic spectrum.
pub(super) struct ContaminationLikelihood {
    groups: Vec<RowGroup>,
    /// Approximate sequencing error rate per base, for transversions and for transitions.
    error_rates: [f64; 2],
    /// Number of sites at which two molecules have the same error, per site at which one molecule has an error. It is
    /// proportional to the sample's share of duplicates.
    repeated_error_rate: f64,
    allele_loss_share: f64,
    /// Mean number of times that one genome position is counted as a site (1 to 2): twice if the roots on both sides of
    /// it are in the sketch.
    views_per_site: f64,
    /// Whether the other sample is contaminated and has a read of the minor allele at some of the sites.
    has_shared_rows: bool,
    log_factorials: Vec<f64>,
}

/// For each cell: its probability at sites where the contaminant is heterozygous, and where he is homozygous.
pub(super) struct ForeignAlleleCountProbabilities(Vec<[f64; 2]>);

impl ContaminationLikelihood {
    /// Computes the parts of the likelihood that are independent of the contamination share. `copies` is the duplicate
    /// share, `lost` the share of sites at which the other sample does not show an inherited allele, `seen` the mean
    /// number of times that a position is counted, and `other` the mean number of molecules of the contaminant at a
    /// site of the other sample.
    pub(super) fn new(
        rows: &[SiteCountsByMinorReads],
        copies: f64,
        lost: f64,
        seen: f64,
        other: f64,
    ) -> ContaminationLikelihood {
        let logs = log_factorials(NUM_DEPTH_CLASSES);
        let mut shown: Vec<Option<HetAndSomaticCountProbabilities>> = (0..NUM_DEPTH_CLASSES).map(|_| None).collect();
        for row in rows {
            shown[row.depth].get_or_insert_with(|| HetAndSomaticCountProbabilities::at_depth(row.depth, &logs));
        }
        let cell = |n: usize, m: usize, sites: f64| {
            let (half, kinds) =
                shown[n].as_ref().map_or((0.0, [0.0; NUM_SPECTRUM_SHAPES]), |own| (own.het[m], own.somatic[m]));
            MinorCountCell { minor_reads: m, sites, het_probability: half, somatic_probabilities: kinds }
        };
        let of_row = |row: &SiteCountsByMinorReads| {
            let seen = row
                .sites
                .iter()
                .enumerate()
                .filter(|(m, sites)| *m <= CONTAMINATION_PARAMS.max_shared_minor_reads || **sites > 0.0);
            let cells = seen.map(|(m, sites)| cell(row.depth, m, *sites)).collect();
            (row.depth, row.sites.iter().sum(), cells)
        };
        let usual = |transition: bool| {
            move |row: &&SiteCountsByMinorReads| row.is_transition == transition && row.other_reads == 0
        };
        let sites = |rows: &[&SiteCountsByMinorReads]| rows.iter().flat_map(|row| &row.sites).sum::<f64>();
        let error = |transition: bool| {
            let sum = rows.iter().filter(usual(transition)).fold([0.0; 2], |sum, row| {
                let all: f64 = row.sites.iter().sum();
                [sum[0] + row.sites.get(1).unwrap_or(&0.0), sum[1] + all * row.depth as f64]
            });
            sum[0] / f64::max(sum[1], 1.0)
        };
        let errors = [false, true].map(error);
        let poisson = |mean: f64, m: usize| (m as f64 * mean.max(MIN_SHARE_FOR_LOG).ln() - mean - logs[m]).exp();
        let alike = |own: &[&SiteCountsByMinorReads]| {
            let SiteCountsByMinorReads { is_transition: transition, other_reads: beside, .. } = *own[0];
            let all = |beside: usize| {
                let fit = |row: &&SiteCountsByMinorReads| row.is_transition == transition && row.other_reads == beside;
                sites(&rows.iter().filter(fit).collect::<Vec<_>>())
            };
            let share = |beside: usize| all(beside) / (all(0) + all(1));
            // Reads of the contaminant's allele in the other sample, plus its errors.
            // docs/model/contamination.md (5)
            let foreign = [0.5, 1.0].map(|of| poisson(of * other + share(1), beside) / share(beside));
            let rows = own.iter().map(|row| of_row(row)).collect();
            RowGroup { is_transition: transition, other_reads: beside, foreign_enrichment: foreign, rows }
        };
        let all: Vec<&SiteCountsByMinorReads> = rows.iter().collect();
        let beside = other > 0.0 && all.iter().any(|row| row.other_reads > 0);
        let alike = all
            .chunk_by(|a, b| (a.is_transition, a.other_reads) == (b.is_transition, b.other_reads))
            .map(alike)
            .collect();
        ContaminationLikelihood {
            groups: alike,
            error_rates: errors,
            repeated_error_rate: CONTAMINATION_PARAMS.repeated_error_rate
                * copies.max(CONTAMINATION_PARAMS.min_duplicate_share),
            allele_loss_share: lost,
            views_per_site: seen,
            has_shared_rows: beside,
            log_factorials: logs,
        }
    }

    /// Computes the probability of each cell for alleles of a contaminant with this contamination share.
    pub(super) fn foreign_allele_count_probabilities(&self, share: f64) -> ForeignAlleleCountProbabilities {
        let each = self.groups.iter().flat_map(|alike| {
            let error = self.error_rates[usize::from(alike.is_transition)];
            alike.rows.iter().flat_map(move |(n, _, cells)| {
                let [half, whole] = [share / 2.0, share]
                    .map(|share| minor_count_probabilities(*n, share + error, &self.log_factorials));
                cells.iter().map(move |cell| [half[cell.minor_reads], whole[cell.minor_reads]])
            })
        });
        ForeignAlleleCountProbabilities(each.collect())
    }

    /// Log-likelihood for the given densities of heterozygous and homozygous foreign sites, somatic changes, and a
    /// factor for the rate of repeated errors. Uses the likelier of two cases: the contaminant is the one of the other
    /// sample, or another person.
    pub(super) fn log_likelihood(
        &self,
        foreign: &ForeignAlleleCountProbabilities,
        densities: [f64; 2],
        changes: &SomaticSpectrumHypothesis,
        error_factor: f64,
    ) -> f64 {
        let of = |same| self.log_likelihood_for_contaminant(foreign, densities, changes, error_factor, same);
        // docs/model/contamination.md (1)
        if self.has_shared_rows { of(true).max(of(false)) } else { of(true) }
    }

    /// Log-likelihood if the contaminant is the one of the other sample (`is_same`), or another person.
    fn log_likelihood_for_contaminant(
        &self,
        foreign: &ForeignAlleleCountProbabilities,
        [one, both]: [f64; 2],
        changes: &SomaticSpectrumHypothesis,
        error_factor: f64,
        is_same: bool,
    ) -> f64 {
        let mut sum = 0.0;
        let mut from = 0;
        let mut usual_error = 0.0;
        for group in &self.groups {
            // Of inherited alleles two thirds are transitions. Each site has two possible transversions.
            let (density, own) = match group.is_transition {
                true => (CONTAMINATION_PARAMS.inherited_class_shares[0], changes.transition_share),
                false => (CONTAMINATION_PARAMS.inherited_class_shares[1], (1.0 - changes.transition_share) / 2.0),
            };
            let of = if is_same { group.foreign_enrichment } else { [1.0; 2] };
            // docs/model/contamination.md (3)
            let [one, both] = [density * one * of[0], density * both * of[1]];
            let own = own * changes.density;
            let foreign = &foreign.0[from..];
            from += group.rows.iter().map(|(.., cells)| cells.len()).sum::<usize>();
            if group.other_reads == 0 {
                let shares = [one, both, density * self.allele_loss_share, own];
                let (log, error) = self.unshared_log_likelihood(group, foreign, shares, changes.shape, error_factor);
                usual_error = error;
                sum += log;
                continue;
            }
            let too_many = ((one + both) / CONTAMINATION_PARAMS.max_foreign_shared_site_share).max(1.0);
            sum += self.shared_log_likelihood(
                group,
                foreign,
                [one / too_many, both / too_many],
                error_factor,
                usual_error,
            );
        }
        sum / self.views_per_site
    }

    /// Log-likelihood of the rows where the other sample has no read of the minor allele, and the fitted error rate.
    /// The array has densities per site: heterozygous (`one`) and homozygous (`both`) foreign sites, inherited alleles
    /// that the other sample does not show (`lost`), and somatic changes (`own`).
    fn unshared_log_likelihood(
        &self,
        group: &RowGroup,
        foreign: &[[f64; 2]],
        [one, both, lost, own]: [f64; 4],
        shape: usize,
        error_factor: f64,
    ) -> (f64, f64) {
        let rest = 1.0 - one - both - lost - own;
        // Single minor reads that nothing else explains, over the reads that could show an error.
        let mut error = self.error_rates[usize::from(group.is_transition)];
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &group.rows {
            if let Some(cell) = cells.get(1) {
                let [half, whole] = foreign[at + 1];
                let explained = one * half + both * whole + own * cell.somatic_probabilities[shape];
                single += cell.sites - all * explained;
                let n = *n as f64;
                reads += all * n * (-n * error).exp() * rest;
            }
            at += cells.len();
        }
        // docs/model/contamination.md (7)
        error = (single / f64::max(reads, 1.0)).max(CONTAMINATION_PARAMS.min_error_rate);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &group.rows {
            let mean = *n as f64 * error;
            let mut wrong = (-mean).exp();
            let mut last = 0;
            let twice = error_factor * self.repeated_error_rate * mean;
            for (cell, [half, whole]) in cells.iter().zip(&foreign[from..]) {
                while last < cell.minor_reads {
                    last += 1;
                    wrong *= mean / last as f64;
                }
                let (more, unknown) = match cell.minor_reads {
                    2 => (twice, CONTAMINATION_PARAMS.unexplained_site_rate),
                    m => (0.0, if m > 2 { CONTAMINATION_PARAMS.unexplained_site_rate } else { 0.0 }),
                };
                // docs/model/contamination.md (6)
                let chance = rest * (wrong + more)
                    + one * half
                    + both * whole
                    + lost * cell.het_probability
                    + own * cell.somatic_probabilities[shape]
                    + unknown;
                sum += cell.sites * chance.max(MIN_PROBABILITY_FOR_LOG).ln();
            }
            from += cells.len();
            // The probabilities of a row add up to this factor.
            sum -= all
                * (rest * twice + CONTAMINATION_PARAMS.unexplained_site_rate * (n / 2).saturating_sub(2) as f64)
                    .ln_1p();
        }
        (sum, error)
    }

    /// Log-likelihood of the rows where the other sample has one read of the minor allele. Only sites where the
    /// examined sample has at most `CONTAMINATION_PARAMS.max_shared_minor_reads` reads of this allele are used. The
    /// error rate is fitted and at least `min_error_rate`: it is higher where both samples tend to have errors.
    fn shared_log_likelihood(
        &self,
        group: &RowGroup,
        foreign: &[[f64; 2]],
        [one, both]: [f64; 2],
        error_factor: f64,
        min_error_rate: f64,
    ) -> f64 {
        let rest = 1.0 - one - both;
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &group.rows {
            let [half, whole] = foreign[at + 1];
            single += cells[1].sites - all * (one * half + both * whole);
            reads += all * *n as f64 * rest;
            at += cells.len();
        }
        let error = (single / f64::max(reads, 1.0)).max(min_error_rate);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &group.rows {
            let mean = *n as f64 * error;
            let wrong = [
                1.0,
                mean,
                mean * mean / 2.0
                    + error_factor * self.repeated_error_rate * mean
                    + CONTAMINATION_PARAMS.unexplained_site_rate,
            ];
            let mut whole_row = 0.0;
            for ((cell, [half, whole]), wrong) in cells.iter().zip(&foreign[from..]).zip(wrong) {
                // docs/model/contamination.md (8)
                let chance = rest * wrong * (-mean).exp() + one * half + both * whole;
                whole_row += chance;
                sum += cell.sites * chance.max(MIN_PROBABILITY_FOR_LOG).ln();
            }
            sum -= all * whole_row.max(MIN_PROBABILITY_FOR_LOG).ln();
            from += cells.len();
        }
        sum
    }
}
