//! Parameters of the genotype model (docs/model/genotype.md).

/// Parameters of the genotype model. The formulas are those of `docs/model/genotype.md`.
#[derive(Debug)]
pub(crate) struct GenotypeModelParams {
    /// Log prior odds against a somatic mutation of a base, before the mutation rate of the sample is known (formula
    /// 9). Unit: natural-log units. Source: chosen, 1 in 60,000 bases (docs/decisions/0017). If higher: more evidence
    /// is needed.
    pub(crate) somatic_prior_log_odds: f64,
    /// Log prior odds of a germline variant that the reads of the normal missed, over a somatic variant (formula 8).
    /// Unit: natural-log units. Source: empirical; not fitted. If higher: more depth in the normal is needed.
    pub(crate) missed_germline_log_odds: f64,
    /// Log prior odds of a germline variant over a somatic one, for a substitution or repeat length, if the normal has
    /// tumour cells (formula 8). Unit: natural-log units. Source: fit on five sets `tin20` of `bench/assays.py`
    /// (docs/evidence/2026-11-28-priors-of-alleles.md). If higher: more mutations with reads in the normal are
    /// filtered.
    pub(crate) germline_in_tumour_cells_log_odds: f64,
    /// Log prior odds of an allele of any fraction that normal and tumour share (sequence copies that the reference has
    /// once, mosaics, errors at this position), over a somatic small variant (formula 21). Unit: natural-log units.
    /// Source: chosen, as frequent as mutations. If higher: more depth in the normal is needed where the tumour has a
    /// low fraction.
    pub(crate) shared_allele_log_odds: f64,
    /// Maximum fraction of an allele that normal and tumour share (formula 21). Unit: fraction. Source: chosen; one
    /// copy of three has one third, and more is a germline variant (formula 8). If higher: more depth in the normal is
    /// needed for clonal mutations.
    pub(crate) max_shared_fraction: f64,
    /// Added to `shared_allele_log_odds` if the molecules with the allele have another small change nearby: 60 in 100
    /// differences between copies of a sequence have another one within a read, but only 1 in 100 mutations (formula
    /// 21). Unit: natural-log units. Source: chosen. If higher: more calls of alleles on one haplotype are filtered.
    pub(crate) linked_allele_log_odds: f64,
    /// Log-odds of a copy of another member of a repeat family over a mutation, for a change to the base that most
    /// other members have: 60 in 100 differences of a copy from its most similar member are of this kind, and 3 in 100
    /// mutations in a repeat (formula 23). Unit: natural-log units. Source: chosen. If higher: more calls in repeats
    /// are filtered.
    pub(crate) family_allele_log_odds: f64,
    /// Log-odds of a copy of another member of a repeat family over a mutation, for a change to a base that most other
    /// members lack (formula 23). Unit: natural-log units. Source: chosen, 40 in 100 differences of a copy, and 97 in
    /// 100 mutations. If higher: more calls in repeats are filtered.
    pub(crate) other_allele_log_odds: f64,
    /// Minimum log-odds at which a contig counts as a copy of another member of a repeat family (formula 23). Unit:
    /// natural-log units. Source: chosen; two changes, both to bases of the family, suffice. If higher: fewer calls in
    /// repeats are filtered.
    pub(crate) min_copy_log_odds: f64,
    /// Added to the log-odds of a copy of another member of a repeat family if another contig within
    /// `max_copy_distance_bp` is divergent (formula 23). Unit: natural-log units. Source: chosen; most contigs of an
    /// inserted element have such a neighbour, but only one mutation in 50. If higher: more calls in repeats are
    /// filtered.
    pub(crate) beside_copy_log_odds: f64,
    /// Maximum number of changes after the first one for which `linked_allele_log_odds` is added next to a divergent
    /// contig (formula 23). Unit: changes. Source: chosen; from three on, further mutations are as likely as further
    /// differences of a copy. If higher: more clusters of mutations in repeats are filtered.
    pub(crate) max_linked_differences: u32,
    /// Maximum distance between a change and one of a divergent contig for both to be in the same copy (formula 23).
    /// Unit: bp. Source: chosen, the length of a fragment. If higher: more calls in repeats are filtered.
    pub(crate) max_copy_distance_bp: usize,
    /// Share of the molecules from another copy of a sequence whose mates are also found around the variant by chance or
    /// because the copies are long (formula 28). Unit: share of molecules. Source: chosen. If higher: fewer calls in
    /// repeats are filtered.
    pub(crate) copy_mate_concordance: f64,
    /// Log prior odds that no junction of the tumour lies within a fragment of a small variant (formula 28). Unit:
    /// natural-log units. Source: chosen, 1 in 1,000. If higher: more small variants beside junctions are filtered.
    pub(crate) near_junction_log_odds: f64,
    /// Minimum log-odds at which the mates show that the molecules come from another copy of the sequence (formula 28).
    /// Unit: natural-log units. Source: chosen, 20 to 1. If higher: fewer calls in repeats are filtered.
    pub(crate) min_discordant_log_odds: f64,
    /// Slippage rate of a repeat above which length changes that normal and tumour share (mosaics, and slippage beyond
    /// the estimate) are more frequent than other shared alleles (formula 21). Unit: probability in a read. Source:
    /// chosen, the rate of repeats of nine units. If higher: more length changes of repeats pass at low fractions.
    pub(crate) shared_slippage_rate: f64,
    /// Share of alleles that normal and tumour share among them and mutations, before it is learned from the calls
    /// (formula 27). Unit: share of alleles. Source: fit on real normals that were dealt against themselves (deals 0 to
    /// 5 of docs/evidence/2026-11-28-priors-of-alleles.md). If higher: more calls of few molecules are filtered in
    /// samples with few mutations.
    pub(crate) shared_allele_share: f64,
    /// Weight of `shared_allele_share` when it is learned from the calls (formula 27). Unit: calls. Source: chosen; ten
    /// clear mutations of a small panel outweigh it. If higher: more calls are needed to change the share.
    pub(crate) shared_odds_weight: f64,
    /// Minimum length of a homopolymer after which reads may show its base instead of the next one (formula 26). Unit:
    /// bases. Source: chosen; reads lose phase in longer homopolymers. If higher: more calls of one strand beside
    /// homopolymers pass.
    pub(crate) min_phasing_homopolymer_bases: usize,
    /// Log prior odds of a germline variant over a somatic one, for an allele of a tumour without a normal (formula
    /// 15). Unit: natural-log units. Source: chosen, one germline variant in 1,000 bases and one mutation in exp(11).
    /// If higher: calls without a normal need an allele fraction further from one half.
    pub(crate) germline_log_odds: f64,
    /// Candidate standard deviations of the fraction of a heterozygous germline allele in a tumour without a normal,
    /// where copy numbers did not change; the best-fitting one is used (formula 17). Unit: share of molecules. Source:
    /// chosen; the last is `germline_fraction_sd`. If higher: more alleles near one half count as germline.
    pub(crate) germline_fraction_sds: [f64; 4],
    /// Expected allele fraction of a homozygous germline allele in a tumour without a normal (formula 17). Unit: share
    /// of molecules. Source: chosen; one molecule in 100 is wrong. If higher: fewer alleles count as homozygous.
    pub(crate) homozygous_fraction: f64,
    /// Number of allele fractions over which likelihoods are averaged in a call without a normal (formula 17). Unit:
    /// fractions. Source: chosen; fine enough for a depth of 10,000. If higher: finer and slower.
    pub(crate) num_tumour_only_fractions: usize,
    /// Pseudo-count of alleles with which `shifted_fraction_share` is weighted when the share is estimated from the
    /// sample (formula 19). Unit: alleles. Source: chosen. If higher: more common variants are needed to change the
    /// share.
    pub(crate) shifted_share_weight: f64,
    /// Pseudo-count of alleles with which the prior odds of unlisted alleles are weighted when they are estimated from
    /// the sample (formula 20). Unit: alleles. Source: chosen. If higher: more unlisted alleles are needed to change
    /// the odds.
    pub(crate) germline_prior_weight: f64,
    /// Initial share of PCR errors among the calls of amplicons, before it is estimated from the sample (formula 25).
    /// Unit: share of calls. Source: chosen; with it an allele of one orientation passes at a fraction of 0.05. If
    /// higher: more calls of a low fraction or of one orientation are filtered.
    pub(crate) pcr_error_share: f64,
    /// Pseudo-count of calls with which `pcr_error_share` is weighted when the share is estimated from the sample
    /// (formula 25). Unit: calls. Source: chosen. If higher: more PCR errors are needed to change the share.
    pub(crate) pcr_error_share_weight: f64,
    /// Minimum fraction of a PCR error among the pairs of one orientation (formula 24). Unit: share of pairs. Source:
    /// chosen; calls have higher fractions. If higher: errors of high fractions are more likely.
    pub(crate) min_pcr_error_fraction: f64,
    /// Maximum fraction of a PCR error among the pairs of one orientation (formula 24). Unit: share of pairs. Source:
    /// definition, half of the copies of one molecule. If higher: no visible effect.
    pub(crate) max_pcr_error_fraction: f64,
    /// Number of allele fractions over which the likelihoods of mutations and of PCR errors are averaged (formula 24).
    /// Unit: fractions. Source: chosen; fine enough for a depth of 10,000. If higher: finer and slower.
    pub(crate) num_pcr_error_fractions: usize,
    /// Probability that a pair of the opposite orientation shows a PCR error (formula 24). Unit: probability. Source:
    /// chosen, that of a base of quality 30. If higher: alleles with few pairs of one orientation are more often
    /// errors.
    pub(crate) opposite_strand_error_probability: f64,
    /// Initial number of molecules of each orientation that were amplified at one position, before it is estimated from
    /// the sample (formula 25). Unit: molecules. Source: chosen; most likely are 80 in amplicons of 1000x and 20 to 40
    /// of 300x (seeds 301, 302, 1301 and 1302 of `make bench-assays`). If higher: mutations whose fraction differs
    /// between the orientations count as errors.
    pub(crate) expected_templates: f64,
    /// Maximum number of doublings and halvings of `expected_templates` that are tried (formula 25). Unit: doublings.
    /// Source: chosen, 40 to 640 molecules; with fewer, errors in half of the pairs of one orientation pass. If higher:
    /// slower, and more errors pass where few molecules were amplified.
    pub(crate) num_template_doublings: u8,
    /// Standard deviation of the prior of the number of amplified molecules (formula 25). Unit: doublings. Source:
    /// chosen; three calls outweigh it. If higher: few calls decide.
    pub(crate) templates_sd_doublings: f64,
    /// Minimum population frequency of the alleles from which the fractions of germline alleles are estimated (formula
    /// 19). Unit: share of chromosomes. Source: chosen; above it one allele in 1,000 is somatic. If higher: fewer
    /// alleles are used.
    pub(crate) min_common_frequency: f64,
    /// Share of the germline variants of a person that are not among the known variants (formula 15). Unit: share of
    /// variants. Source: chosen; a few in a hundred germline variants of a person are not in large population files. If
    /// higher: more depth in the normal is needed for alleles that are not known.
    pub(crate) unlisted_germline_share: f64,
    /// Log prior odds of a normal without tumour cells over one with tumour cells (formula 7). Unit: natural-log units.
    /// Source: empirical; not fitted. If higher: fewer tumour reads are tolerated in the normal.
    pub(crate) pure_normal_log_odds: f64,
    /// Default minimum somatic quality of a passing call (formula 9). Unit: Phred. Source: empirical; not fitted. If
    /// higher: fewer calls pass.
    pub(crate) min_quality: f64,
    /// Largest somatic quality that is reported (formula 9). Unit: Phred. Source: chosen (three digits). If higher:
    /// higher qualities are reported.
    pub(crate) max_quality: f64,
    /// Minimum number of distinct molecules of a call (formula 10). Unit: molecules. Source: chosen, two molecules have
    /// the same error once in some thousand bases at 30x (docs/decisions/0017). If higher: fewer calls, fewer false
    /// ones.
    pub(crate) min_molecules: usize,
    /// Minimum number of distinct molecules of a call whose change looks like a rare error (formula 10). Unit:
    /// molecules. Source: chosen (docs/decisions/0017). If higher: fewer indels and junctions are called.
    pub(crate) min_molecules_rare_error: usize,
    /// Maximum measured error rate of good bases at which two molecules may suffice for a call of any change (formula
    /// 10). Unit: probability. Source: derived, below it two of a hundred molecules, the depth at which rates are
    /// measured, reach `somatic_prior_log_odds`. If higher: more contigs of two pairs are genotyped, whose quality is
    /// too low.
    pub(crate) max_two_molecule_error_rate: f64,
    /// Maximum number of calls with two molecules per call with three or more, among changes that look like rare
    /// errors; an excess indicates library artefacts (formula 10). Unit: ratio. Source: empirical; not fitted. If
    /// higher: more calls with two molecules pass.
    pub(crate) max_two_molecule_call_share: f64,
    /// Minimum number of informative molecules of the normal at a call (formula 10). Unit: molecules. Source:
    /// empirical; not fitted. If higher: more calls are filtered at low depth.
    pub(crate) min_normal_depth: u32,
    /// Minimum number of informative molecules of the normal at a call if known variants are given (formula 10). Unit:
    /// molecules. Source: chosen; the prior (formula 15) replaces most of the normal's evidence. If higher: more calls
    /// are filtered at low depth.
    pub(crate) min_normal_depth_known: u32,
    /// Minimum log-likelihood ratio at which the tumour clearly has more of an allele than the normal: 9 to 1 (formula
    /// 10). Unit: natural-log units. Source: chosen (docs/decisions/0017). If higher: more calls with reads in the
    /// normal are filtered.
    pub(crate) min_tumour_excess: f64,
    /// Minimum log-likelihood ratio at which the tumour clearly has more of an allele than the normal, if one molecule
    /// of the normal has it and the quality is high: e to 1 (formula 10). Unit: natural-log units. Source: chosen, 16
    /// true and 2 false calls more in 48 sets (docs/decisions/0017). If higher: more calls are filtered.
    pub(crate) min_tumour_excess_one_molecule: f64,
    /// Minimum somatic quality at which a single molecule of the normal with the allele is tolerated as an error
    /// (formula 10). Unit: Phred. Source: empirical; not fitted. If higher: more calls are filtered.
    pub(crate) min_forgiving_quality: f64,
    /// Allele fraction in the normal up to which contamination with tumour DNA may explain it, whatever the fraction in
    /// the tumour (formula 7). Unit: share of molecules. Source: empirical; not fitted. If higher: more calls with
    /// reads in the normal pass.
    pub(crate) min_contamination: f64,
    /// Ratio of the allele fraction in the normal to the largest fraction in the tumours up to which contamination with
    /// tumour DNA may explain it (formula 7). Unit: ratio. Source: empirical; not fitted. If higher: more calls with
    /// reads in the normal pass.
    pub(crate) contamination_ratio: f64,
    /// Number of standard deviations by which the allele fraction in a normal with tumour cells may exceed the expected
    /// one before the allele counts as germline (formula 10). Unit: standard deviations. Source: chosen (one allele in
    /// 40 has more). If higher: fewer calls get the filter `germline`.
    pub(crate) tumour_in_normal_deviations: f64,
    /// Number of allele fractions at which the likelihood of an allele of another person is computed (formula 13).
    /// Unit: fractions. Source: chosen. If higher: finer and slower.
    pub(crate) num_foreign_fractions: usize,
    /// Number of germline indels outside repeats and of junctions per germline substitution (formulas 13 and 21). Unit:
    /// ratio. Source: about one indel in ten variants of a human genome, half of them in repeats. If higher: more
    /// indels get the filter `contamination`, and structural variants a lower quality.
    pub(crate) rare_allele_ratio: f64,
    /// Minimum number of molecules of the normal with the allele for the allele to count as germline (formula 10).
    /// Unit: molecules. Source: empirical; not fitted. If higher: fewer calls get the filter `germline`.
    pub(crate) min_germline_molecules: u32,
    /// Minimum allele fraction in the normal for the allele to count as germline (formula 10). Unit: share of
    /// molecules. Source: empirical; not fitted. If higher: fewer calls get the filter `germline`.
    pub(crate) min_germline_fraction: f64,
    /// Minimum log-likelihood ratio at which the reads of the tumour allele clearly differ from those of the normal
    /// allele in a property (formula 11). Unit: natural-log units. Source: empirical; not fitted. If higher: fewer
    /// calls are filtered.
    pub(crate) min_bias_log_ratio: f64,
    /// Minimum difference between the shares of reads with the property (formula 11). Unit: share of reads. Source:
    /// chosen (at great depth any difference is significant, only a large one is an artefact). If higher: fewer calls
    /// are filtered.
    pub(crate) min_bias_difference: f64,
    /// Distance from an end of a read within which a base counts as being at the end (formula 11). Unit: bases. Source:
    /// empirical; not fitted. If higher: more calls are filtered.
    pub(crate) read_end_bases: u16,
    /// Minimum median quality of the bases that show the tumour allele. Unit: Phred. Source: empirical; not fitted. If
    /// higher: more calls are filtered.
    pub(crate) min_median_base_quality: u8,
    /// Minimum mapping quality of a contig; below it, the contig may come from another locus. Unit: Phred. Source:
    /// empirical; not fitted. If higher: more calls are filtered.
    pub(crate) min_mapq: u8,
    /// Number of expectation–maximisation rounds to fit an allele fraction (formula 2) or the odds of two kinds of
    /// alleles. Unit: rounds. Source: empirical; not fitted. If higher: slower, no visible effect.
    pub(crate) num_fit_rounds: usize,
    /// Maximum number of standard deviations by which a slippage rate may exceed its estimate (formula 3). Unit:
    /// standard deviations. Source: empirical; not fitted. If higher: more length changes are explained by slippage.
    pub(crate) max_rate_deviations: usize,
    /// Number of slippage rates that are tried for each standard deviation (formula 3). Unit: steps. Source: empirical;
    /// not fitted. If higher: finer and slower.
    pub(crate) rate_steps_per_deviation: usize,
    /// Minimum number of allele fractions over which likelihoods are averaged (formula 4). Unit: fractions. Source:
    /// empirical; not fitted. If higher: finer and slower.
    pub(crate) num_fractions: usize,
    /// Number of allele fractions for each standard deviation of a likelihood, from the depth at which these are more
    /// than `num_fractions` (formula 4). Unit: fractions. Source: chosen; the sum over a normal distribution is exact
    /// to 1 % from one on. If higher: finer and slower.
    pub(crate) fractions_per_deviation: f64,
    /// Share of the tumour genome in which copy-number changes may have shifted the fraction of a germline allele to
    /// any value (formula 5). Unit: share of the genome. Source: empirical; not fitted. If higher: more calls are taken
    /// for germline variants.
    pub(crate) shifted_fraction_share: f64,
    /// Standard deviation of the fraction of a heterozygous germline allele in the tumour where copy numbers did not
    /// change (formula 5). Unit: share of molecules. Source: chosen (that of 40 molecules). If higher: more calls are
    /// taken for germline variants.
    pub(crate) germline_fraction_sd: f64,
    /// Minimum log-likelihood ratio, best-fitting fraction over errors, at which one of several tumours has a called
    /// change. Unit: natural-log units. Source: empirical (one molecule in thirty passes, one in a hundred does not).
    /// If higher: fewer tumours have the change.
    pub(crate) min_tumour_log_ratio: f64,
    /// Minimum log-odds at which a molecule supports an allele. Unit: natural-log units. Source: chosen (20 to 1). If
    /// higher: more molecules are undecided.
    pub(crate) min_support_log_odds: f64,
    /// Minimum log-likelihood difference by which a read must fit a haplotype that does not cover the change better
    /// than all others to be excluded. Unit: natural-log units. Source: empirical; not fitted. If higher: more reads of
    /// other junctions count.
    pub(crate) min_uncovered_log_odds: f64,
    /// Pseudo-count added to found and expected calls, so that a few bases do not determine the mutation rate (formula
    /// 12). Unit: calls. Source: fit on rare alleles in deep libraries
    /// (docs/evidence/2026-11-28-assays-and-other-callers.md); mutation rates of tumours differ by orders of magnitude,
    /// as an exponential prior says. If higher: qualities are adjusted less.
    pub(crate) frequency_pseudo_calls: f64,
    /// Number of iterations in which the mutation rate is estimated (formula 12). Unit: iterations. Source: empirical;
    /// not fitted. If higher: slower, no visible effect.
    pub(crate) frequency_iterations: usize,
}

/// Values of the parameters of the genotype model.
pub(crate) const GENOTYPE_MODEL_PARAMS: GenotypeModelParams = GenotypeModelParams {
    somatic_prior_log_odds: 11.0,
    missed_germline_log_odds: 2.4,
    germline_in_tumour_cells_log_odds: 3.1,
    shared_allele_log_odds: 0.0,
    max_shared_fraction: 0.35,
    linked_allele_log_odds: 4.1,
    family_allele_log_odds: 3.0,
    other_allele_log_odds: -0.9,
    min_copy_log_odds: 6.0,
    beside_copy_log_odds: 4.0,
    max_linked_differences: 2,
    max_copy_distance_bp: 500,
    copy_mate_concordance: 0.05,
    near_junction_log_odds: 7.0,
    min_discordant_log_odds: 3.0,
    shared_slippage_rate: 1e-3,
    shared_allele_share: 0.8,
    shared_odds_weight: 5.0,
    min_phasing_homopolymer_bases: 8,
    germline_log_odds: 4.1,
    germline_fraction_sds: [0.01, 0.02, 0.04, 0.08],
    homozygous_fraction: 0.99,
    num_tumour_only_fractions: 500,
    shifted_share_weight: 20.0,
    germline_prior_weight: 20.0,
    pcr_error_share: 0.02,
    pcr_error_share_weight: 10.0,
    min_pcr_error_fraction: 0.005,
    max_pcr_error_fraction: 0.5,
    num_pcr_error_fractions: 500,
    opposite_strand_error_probability: 1e-3,
    expected_templates: 160.0,
    num_template_doublings: 2,
    templates_sd_doublings: 2.0,
    min_common_frequency: 0.01,
    unlisted_germline_share: 0.03,
    pure_normal_log_odds: 2.5,
    min_quality: 8.0,
    max_quality: 999.0,
    min_molecules: 3,
    min_molecules_rare_error: 2,
    max_two_molecule_error_rate: 3e-5,
    max_two_molecule_call_share: 0.1,
    min_normal_depth: 6,
    min_normal_depth_known: 2,
    min_tumour_excess: 2.2,
    min_tumour_excess_one_molecule: 1.0,
    min_forgiving_quality: 20.0,
    min_contamination: 0.02,
    contamination_ratio: 0.1,
    tumour_in_normal_deviations: 2.0,
    num_foreign_fractions: 9,
    rare_allele_ratio: 0.05,
    min_germline_molecules: 3,
    min_germline_fraction: 0.1,
    min_bias_log_ratio: 8.0,
    min_bias_difference: 0.3,
    read_end_bases: 8,
    min_median_base_quality: 15,
    min_mapq: 3,
    num_fit_rounds: 40,
    max_rate_deviations: 4,
    rate_steps_per_deviation: 4,
    num_fractions: 50,
    fractions_per_deviation: 2.0,
    shifted_fraction_share: 0.25,
    germline_fraction_sd: 0.08,
    min_tumour_log_ratio: 3.0,
    min_support_log_odds: 3.0,
    min_uncovered_log_odds: 3.0,
    frequency_pseudo_calls: 1.0,
    frequency_iterations: 20,
};
