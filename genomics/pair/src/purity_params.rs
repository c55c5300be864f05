//! Parameters of the model of purity and ploidy (`docs/model/purity_ploidy.md`).

/// Parameters of the purity and ploidy model: input data, segmentation, copy states, fit, somatic changes, non-somatic
/// alleles, report. The formulas are those of `docs/model/purity_ploidy.md`.
#[derive(Debug)]
pub(crate) struct PurityModelParams {
    /// Minimum modal depth of the normal. Unit: molecules. Source: chosen (below it heterozygous sites cannot be
    /// recognised). If higher: more shallow normals without an estimate.
    pub(crate) min_normal_depth: f64,
    /// Minimum number of heterozygous sites of the normal to report LOH, and to test whether the alleles of the normal
    /// are balanced. Unit: sites. Source: empirical; not fitted. If higher: LOH is undetermined more often.
    pub(crate) min_het_sites: usize,
    /// Smallest and largest depth of the normal at the heterozygous sites that are used. Unit: multiples of the modal
    /// depth of the normal. Source: chosen (beyond it deletions and repeats are frequent). If higher: first value:
    /// fewer sites; second value: more repeats.
    pub(crate) het_depth_range: [f64; 2],
    /// Smallest and largest depth of the normal at the somatic sites of a sketch. Unit: multiples of the modal depth
    /// of the normal. Source: chosen (beyond it deletions and repeats are frequent). If higher: first value: fewer
    /// sites; second value: more repeats.
    pub(crate) somatic_site_depth_range: [f64; 2],
    /// Smallest and largest depth of the normal at the heterozygous sites whose tumour depths are used to compute the
    /// detection probability of foreign alleles (formula 16). Unit: multiples of the mean depth of the normal. Source:
    /// chosen (a higher depth may come from several copies of the sequence in the genome). If higher: more sites in
    /// repeats.
    pub(crate) detection_depth_range: [f64; 2],
    /// Maximum number of heterozygous sites whose tumour depths are averaged for the detection probability (formula
    /// 16). Unit: sites. Source: chosen (enough for a precise mean). If higher: slower.
    pub(crate) max_detection_depths: usize,
    /// Maximum number of single-copy roots whose depths are kept: those with the smallest hashes. Unit: roots.
    /// Source: chosen (at 30x they give the depth ratio of a hundredth of a genome to about 1 %). If higher: finer
    /// segments, more memory.
    pub(crate) max_roots: usize,
    /// Smallest and largest normal depth of a root that counts as single-copy. Unit: multiples of the modal depth of
    /// the normal. Source: empirical; not fitted. If higher: a wider range admits repeats and deletions.
    pub(crate) single_copy_range: [f64; 2],
    /// Minimum number of roots with a position on the reference. Unit: roots. Source: empirical; not fitted. If
    /// higher: more small genomes without an estimate.
    pub(crate) min_placed_roots: usize,
    /// Maximum overdispersion of the allelic balance in the normal; above it, the normal has more than two copies or
    /// is a mixture. Unit: variance over the largest possible variance. Source: empirical; not fitted. If higher:
    /// more mixed normals are accepted.
    pub(crate) max_normal_overdispersion: f64,
    /// Minimum number of heterozygous sites of a stretch to report its minor allele share. A genome position that two
    /// roots show counts once. Unit: sites. Source: chosen (3 sites of 30 reads give a share with a standard error of
    /// 0.05). If higher: fewer bins of the profile have a share.
    pub(crate) min_profile_het_sites: f64,
    /// Maximum number of bins of the genome. Unit: bins. Source: chosen (the segmentation takes quadratic time per
    /// contig). If higher: finer segments, slower.
    pub(crate) max_bins: usize,
    /// Minimum mean length of a bin. Unit: bp. Source: chosen (smaller bins would share most of their reads). If
    /// higher: coarser segments of small genomes.
    pub(crate) min_bases_per_bin: f64,
    /// Minimum number of roots of a bin, and of a contig. Unit: roots. Source: empirical; not fitted. If higher:
    /// larger and more precise bins; more contigs are left out.
    pub(crate) min_roots_per_bin: usize,
    /// Penalty of each breakpoint (formula 6). Unit: natural-log units. Source: empirical; not fitted. If higher: fewer
    /// segments.
    pub(crate) breakpoint_penalty: f64,
    /// Step of the minor allele share in the segmentation. Unit: 0.5 / `NUM_MINOR_SHARE_STEPS`. Source: chosen (for
    /// speed). If higher: faster and less precise.
    pub(crate) coarse_minor_share_step: usize,
    /// Share of the sites that are not heterozygous, or have wrong counts; their minor allele share is uniform (formula
    /// 3). Unit: share of sites. Source: empirical; not fitted. If higher: more robust, less sensitive.
    pub(crate) outlier_site_share: f64,
    /// Smallest and largest allele share in the beta-binomial distribution (formula 4). Unit: share of reads. Source:
    /// chosen (a base may be wrong). If higher: reads of an absent allele weigh less.
    pub(crate) allele_share_limits: [f64; 2],
    /// First value and step of the 61 overdispersions that are tried (formula 5). Unit: variance over the largest
    /// possible variance. Source: chosen (covers 0 to 0.24). If higher: coarser grid.
    pub(crate) overdispersion_grid: [f64; 2],
    /// Shares of sites that are not heterozygous but in repeats, as tried for the overdispersion (formula 5). Unit:
    /// share of sites. Source: empirical; not fitted. If higher: more sites may be in repeats.
    pub(crate) repeat_site_share_grid: [f64; 5],
    /// Distance over which two sites share reads. Unit: bp. Source: chosen (about a read length). If higher: close
    /// sites weigh less.
    pub(crate) read_sharing_bases: f64,
    /// Factor of the variance of the depth ratio, for reads that neighbouring bins share (formula 7). Unit: factor.
    /// Source: empirical; not fitted. If higher: fewer segments.
    pub(crate) neighbour_variance_factor: f64,
    /// Minimum number of pairs of neighbouring bins from which the noise of the depths is estimated (formula 7). Unit:
    /// pairs. Source: empirical; not fitted. If higher: small genomes use the assumed noise more often.
    pub(crate) min_bin_pairs: usize,
    /// Variance of the depths, relative to that of counting, that is assumed with fewer pairs of bins (formula 7).
    /// Unit: factor. Source: empirical; not fitted. If higher: fewer segments in small genomes.
    pub(crate) few_bins_variance_factor: f64,
    /// Median of the square of a standard normal deviate (formula 7). Unit: none. Source: definition (chi-squared
    /// distribution with one degree of freedom). If higher: not to be changed.
    pub(crate) median_squared_deviate: f64,
    /// Weights with which the likelihood of a minor allele share is mixed with its neighbours at distances of 0 to 3
    /// steps of half a percent. Unit: weight. Source: chosen (a normal distribution with a standard deviation of half
    /// a percent, for model error). If higher: broader likelihood, wider intervals.
    pub(crate) minor_share_smoothing_weights: [f64; 4],
    /// Major and minor copy number of the clonal states, with their prior in a genome that changed step by step, and in
    /// one that was doubled as a whole (formula 9). Unit: copies; probability. Source: empirical; not fitted. If
    /// higher: the state wins more often where depth and balance leave it open.
    pub(crate) clonal_state_priors: [([u8; 2], [f64; 2]); 24],
    /// Prior that a segment is in a subclonal state (formula 9). Unit: probability. Source: empirical; not fitted. If
    /// higher: more segments are explained by subclones.
    pub(crate) subclonal_state_prior: f64,
    /// Cell fractions of subclonal states, as tried (formula 9). Unit: share of tumour cells. Source: empirical; not
    /// fitted. If higher: no direct effect.
    pub(crate) cell_fraction_grid: [f64; 7],
    /// Total copy number from which a clonal state has no subclonal states with one copy more. Unit: copies. Source:
    /// empirical; not fitted. If higher: adds states that are hard to distinguish.
    pub(crate) subclonal_copies_limit: u8,
    /// Number of cell fractions that are tried for one large subclone (formula 10). Unit: cell fractions. Source:
    /// empirical; not fitted. If higher: finer cell fraction, slower.
    pub(crate) num_subclone_fractions: u32,
    /// Smallest cell fraction of a large subclone, and the width of the range (formula 10). Unit: share of tumour
    /// cells. Source: chosen (0.1 to 0.9). If higher: larger subclones.
    pub(crate) subclone_fraction_range: [f64; 2],
    /// Smallest and largest purity that is tried. Unit: share of cells. Source: empirical; not fitted. If higher:
    /// lower purities are not tried.
    pub(crate) purity_range: [f64; 2],
    /// Smallest and largest ploidy that is tried. Unit: copies. Source: empirical; not fitted. If higher: higher
    /// ploidies are tried, lower ones not.
    pub(crate) ploidy_range: [f64; 2],
    /// Prior probability that the genome was doubled as a whole (formula 10). Unit: probability. Source: chosen low (a
    /// doubled genome without earlier LOH looks like an undoubled one of lower purity and is rare; with LOH the
    /// segments decide). If higher: more doubled genomes are reported.
    pub(crate) genome_doubling_prior: f64,
    /// Prior probability of a genome with one large subclone (formula 10). Unit: probability. Source: empirical; not
    /// fitted. If higher: more segments are explained by subclones.
    pub(crate) large_subclone_prior: f64,
    /// Prior that a segment of a genome with a large subclone is in a subclonal state (formula 10). Unit: probability.
    /// Source: empirical; not fitted. If higher: more segments are explained by the subclone.
    pub(crate) subclone_segment_prior: f64,
    /// Difference in log-likelihood beyond which a state is neglected. Unit: natural-log units. Source: chosen (for
    /// speed). If higher: slower, no visible effect.
    pub(crate) negligible_log_difference: f64,
    /// Prior that a segment is in no known state: any depth and balance (formula 9). Unit: probability. Source:
    /// empirical; not fitted. If higher: more segments are left unexplained.
    pub(crate) unexplained_segment_prior: f64,
    /// Range of depth ratios over which a segment in no known state is uniform (formula 9). Unit: multiples of the mean
    /// depth ratio. Source: empirical; not fitted. If higher: fewer segments are left unexplained.
    pub(crate) unexplained_ratio_range: f64,
    /// Relative errors of the depths of segments beyond counting noise, as tried; the best one is used (formula 8).
    /// Unit: share of the depth. Source: empirical; not fitted. If higher: more differences of depth count as noise.
    pub(crate) depth_error_grid: [f64; 5],
    /// Minimum standard deviation of the depth ratio of a segment (formula 8). Unit: share of the mean depth ratio.
    /// Source: empirical; not fitted. If higher: wider intervals of large genomes.
    pub(crate) min_depth_error: f64,
    /// Number of steps of the purity in the first search. Unit: steps. Source: empirical; not fitted. If higher:
    /// finer and slower search.
    pub(crate) num_coarse_purities: i32,
    /// Largest step of the natural logarithm of the depth ratio in the first search. Unit: natural-log units. Source:
    /// chosen (for speed). If higher: coarser and faster search.
    pub(crate) coarse_log_ratio_step: f64,
    /// Relative error of the depths in the first search. Unit: share of the depth. Source: empirical; not fitted. If
    /// higher: more candidates in the first search.
    pub(crate) coarse_depth_error: f64,
    /// Maximum number of fits of the first search from which the second one climbs. Unit: fits. Source: chosen (for
    /// speed). If higher: slower and more exhaustive search.
    pub(crate) max_candidates: usize,
    /// Two candidates of the first search are alike if they differ by less in purity and in the natural logarithm of
    /// the depth ratio. Unit: share of cells; natural-log units. Source: empirical; not fitted. If higher: fewer,
    /// more different candidates.
    pub(crate) candidate_separation: [f64; 2],
    /// Two fits are the same if they differ by less in purity and in ploidy. Unit: share of cells; copies. Source:
    /// empirical; not fitted. If higher: fewer, more different fits.
    pub(crate) fit_separation: [f64; 2],
    /// First step of the purity and first relative step of the depth ratio of the second search. Unit: share of
    /// cells; share of the ratio. Source: empirical; not fitted. If higher: coarser search.
    pub(crate) climb_steps: [f64; 2],
    /// Number of step sizes of the second search, each half of the last one. Unit: step sizes. Source: empirical; not
    /// fitted. If higher: finer and slower search.
    pub(crate) num_climb_halvings: i32,
    /// Maximum number of rounds with one step size. Unit: rounds. Source: empirical; not fitted. If higher: slower
    /// and more exhaustive search.
    pub(crate) max_climb_rounds: u32,
    /// Smallest gain of the log-posterior that counts as progress. Unit: natural-log units. Source: chosen (above
    /// rounding errors). If higher: the search stops earlier.
    pub(crate) min_climb_gain: f64,
    /// Step of the profile of the purity (formula 18). Unit: share of cells. Source: chosen (finer than the interval).
    /// If higher: coarser interval.
    pub(crate) purity_step: f64,
    /// Relative steps of the depth ratio that are tried at each purity of the profile (formula 18). Unit: share of the
    /// ratio. Source: empirical; not fitted. If higher: wider search of the depth ratio.
    pub(crate) profile_ratio_steps: [f64; 9],
    /// Minimum number of tumour molecules of a somatic change (formula 14). Unit: molecules. Source: chosen (changes
    /// with fewer may be errors). If higher: fewer changes.
    pub(crate) min_change_reads: u32,
    /// Minimum number of somatic changes to use their read fractions: of a call, and of a sketch, some of whose
    /// changes are false. Unit: changes. Source: empirical; not fitted. If higher: purity of tumours with two copies
    /// everywhere is undetermined more often.
    pub(crate) min_changes: [f64; 2],
    /// Maximum number of changes that are evaluated; with more, every second, third, … change is used. Unit: changes.
    /// Source: chosen (2000 give the purity to about 0.01). If higher: slower, more precise.
    pub(crate) max_changes: usize,
    /// Overdispersion of the read fractions of called changes (formula 14). Unit: variance over the largest possible
    /// variance. Source: empirical; not fitted. If higher: changes weigh less.
    pub(crate) called_overdispersion: f64,
    /// Overdispersion of the read fractions of changes of a sketch, relative to that of heterozygous sites, some of
    /// which are in repeats (formula 14). Unit: factor. Source: empirical; not fitted. If higher: changes weigh less.
    pub(crate) sketched_overdispersion_factor: f64,
    /// Shares of the changes that are subclonal, as tried (formula 13). Unit: share of changes. Source: empirical; not
    /// fitted. If higher: more changes may be subclonal.
    pub(crate) subclonal_share_grid: [f64; 5],
    /// Exponent of 1 − share in the prior of the subclonal share: Beta(1, 4), a fifth on average (formula 15). Unit:
    /// none. Source: chosen (if few changes leave it open, they are not explained as subclonal changes of a purer
    /// tumour). If higher: fewer subclonal changes, lower purity.
    pub(crate) subclonal_share_exponent: f64,
    /// Shares of the clonal changes that are older than the gain of their allele, as tried, where the allele has
    /// several copies (formula 13). Unit: share of clonal changes. Source: chosen (a genome may double early or late).
    /// If higher: more changes may be older.
    pub(crate) early_share_grid: [f64; 5],
    /// Exponent of share × (1 − share) in the prior of the share of older changes; with the value 2 the prior is a
    /// Beta(3, 3) distribution (formula 15). Unit: none. Source: chosen (few genomes have only older or only later
    /// changes). If higher: shares near one half become likelier.
    pub(crate) early_share_exponent: f64,
    /// Scale of the prior of the share of older changes, so that the prior is 1 at one half (formula 15). Unit: none.
    /// Source: definition. If higher: not to be changed.
    pub(crate) early_share_scale: f64,
    /// Share of the changes that are false, or are in segments with wrong copy numbers; for these all read fractions
    /// are equally likely (formula 13). Unit: share of changes. Source: empirical; not fitted. If higher: more robust,
    /// less sensitive.
    pub(crate) outlier_change_share: f64,
    /// Number of cell fractions that subclonal changes may have (formula 12). Unit: cell fractions. Source: empirical;
    /// not fitted. If higher: finer grid.
    pub(crate) num_cell_fractions: usize,
    /// Largest cell fraction of a subclonal change is n / (n + offset) for n cell fractions (formula 12). Unit: cell
    /// fractions. Source: empirical; not fitted. If higher: smaller cell fractions of subclonal changes.
    pub(crate) cell_fraction_offset: f64,
    /// Mean copy number from which an allele has several copies, so that changes may be older than its gain (formula
    /// 12). Unit: copies. Source: chosen (halfway between one copy and two). If higher: fewer subclonal gains have
    /// older changes.
    pub(crate) several_copies_limit: f64,
    /// Shares of the changes after a gain that are in one copy, and that arose between two gains (formula 12). Unit:
    /// share of later changes. Source: empirical; not fitted. If higher: more later changes in one copy, or between
    /// gains.
    pub(crate) later_change_weights: [f64; 2],
    /// Minimum probability of a change; keeps the logarithm finite (formula 13). Unit: probability. Source: empirical;
    /// not fitted. If higher: outliers weigh less.
    pub(crate) min_probability: f64,
    /// Minimum probability to detect a change by which its likelihood is divided (formula 14). Unit: probability.
    /// Source: chosen (keeps the quotient finite). If higher: rarely seen fractions become less likely.
    pub(crate) min_detection_probability: f64,
    /// A running product of probabilities is converted to a logarithm when it leaves the range from this value to its
    /// inverse. Unit: probability. Source: chosen (far from the smallest double-precision number). If higher: more
    /// logarithms, slower.
    pub(crate) min_product: f64,
    /// Minimum share of the apparent changes that the model takes as somatic, even if the estimated numbers of germline
    /// alleles and foreign alleles explain all of them (formulas 16 and 17). Unit: share of changes. Source: empirical;
    /// not fitted. If higher: the model can explain fewer changes away.
    pub(crate) min_somatic_share: f64,
    /// Shares of the changes that are foreign alleles, as tried if the number of examined sites is unknown (formula
    /// 17). Unit: share of changes. Source: empirical; not fitted. If higher: more changes may be foreign.
    pub(crate) foreign_share_grid: [f64; 6],
    /// Factors of the expected number of foreign alleles, as tried if the number of examined sites is known (formula
    /// 17). Unit: factor. Source: empirical; not fitted. If higher: more changes may be foreign.
    pub(crate) foreign_count_factors: [f64; 6],
    /// Minimum standard deviation of the natural logarithm of the factor of `foreign_count_factors` (formula 17). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: the expected number is trusted less.
    pub(crate) min_foreign_count_log_sd: f64,
    /// Width of a 95 % interval in standard deviations (formula 17). Unit: standard deviations. Source: definition (2 ×
    /// 1.96, rounded). If higher: the expected number is trusted more.
    pub(crate) interval_width_sds: f64,
    /// Differences in log-posterior up to which a fit is inside the confidence interval: a fit of about the same
    /// ploidy, and of another one (formula 18). Unit: natural-log units. Source: empirical (one parameter alone would
    /// need 1.92, simulated tumours needed more). If higher: wider intervals.
    pub(crate) interval_log_drops: [f64; 2],
    /// Difference in ploidy up to which two fits have about the same ploidy (formula 18). Unit: copies. Source:
    /// empirical; not fitted. If higher: more fits count by the first of `interval_log_drops`.
    pub(crate) same_ploidy_tolerance: f64,
    /// Difference in log-posterior up to which an alternative fit is reported. Unit: natural-log units. Source:
    /// empirical; not fitted. If higher: more alternatives.
    pub(crate) alternative_log_drop: f64,
    /// Minimum differences in purity and in ploidy from the best fit; a fit is an alternative if either is exceeded.
    /// Unit: share of cells; copies. Source: empirical; not fitted. If higher: fewer alternatives.
    pub(crate) min_alternative_differences: [f64; 2],
    /// Minimum half-widths of the intervals of purity and ploidy (formula 18). Unit: share of cells; copies. Source:
    /// chosen (for model error). If higher: wider intervals.
    pub(crate) min_half_widths: [f64; 2],
    /// Maximum widths of the intervals of purity and ploidy to report an estimate. Unit: share of cells; copies.
    /// Source: empirical; not fitted. If higher: more uncertain estimates are reported.
    pub(crate) max_interval_widths: [f64; 2],
    /// Minimum purity at the lower end of the confidence interval to report an estimate; below it, noise looks like
    /// copy-number changes. Unit: share of cells. Source: empirical; not fitted. If higher: fewer low purities are
    /// reported.
    pub(crate) min_purity: f64,
    /// Maximum share of the genome in no known state to report an estimate. Unit: share of the genome. Source:
    /// empirical; not fitted. If higher: more badly fitting estimates are reported.
    pub(crate) max_unexplained_fraction: f64,
    /// Share of the genome with one copy of each parental allele above which a tumour is reported as diploid. Unit:
    /// share of the genome. Source: empirical; not fitted. If higher: fewer tumours count as diploid.
    pub(crate) min_diploid_fraction: f64,
    /// Maximum range of the LOH fractions of all fits inside the interval to report LOH. Unit: share of the genome.
    /// Source: empirical; not fitted. If higher: less certain LOH fractions are reported.
    pub(crate) max_loh_spread: f64,
}

/// Values of the parameters of the purity and ploidy model.
pub(crate) const PURITY_PARAMS: PurityModelParams = PurityModelParams {
    min_normal_depth: 5.0,
    min_het_sites: 150,
    het_depth_range: [0.6, 1.5],
    somatic_site_depth_range: [0.5, 1.6],
    detection_depth_range: [0.6, 1.2],
    max_detection_depths: 1_000,
    max_roots: 100_000,
    single_copy_range: [0.6, 1.5],
    min_placed_roots: 2_000,
    max_normal_overdispersion: 0.12,
    min_profile_het_sites: 3.0,
    max_bins: 600,
    min_bases_per_bin: 4_000.0,
    min_roots_per_bin: 25,
    breakpoint_penalty: 13.0,
    coarse_minor_share_step: 4,
    outlier_site_share: 0.01,
    allele_share_limits: [0.002, 0.998],
    overdispersion_grid: [1e-4, 0.004],
    repeat_site_share_grid: [0.0, 0.03, 0.06, 0.1, 0.15],
    read_sharing_bases: 120.0,
    neighbour_variance_factor: 1.2,
    min_bin_pairs: 8,
    few_bins_variance_factor: 3.0,
    median_squared_deviate: 0.455,
    minor_share_smoothing_weights: [0.383, 0.242, 0.0606, 0.006],
    clonal_state_priors: [
        ([1, 1], [0.50, 0.04]),
        ([1, 0], [0.13, 0.03]),
        ([2, 1], [0.13, 0.13]),
        ([2, 0], [0.06, 0.09]),
        ([2, 2], [0.05, 0.36]),
        ([3, 1], [0.03, 0.05]),
        ([3, 0], [0.015, 0.015]),
        ([3, 2], [0.012, 0.12]),
        ([4, 1], [0.01, 0.015]),
        ([3, 3], [0.006, 0.04]),
        ([4, 2], [0.006, 0.04]),
        ([4, 0], [0.005, 0.015]),
        ([5, 1], [0.004, 0.006]),
        ([4, 3], [0.003, 0.01]),
        ([5, 0], [0.002, 0.003]),
        ([5, 2], [0.002, 0.006]),
        ([4, 4], [0.002, 0.006]),
        ([6, 1], [0.002, 0.003]),
        ([5, 3], [0.001, 0.004]),
        ([6, 2], [0.001, 0.003]),
        ([7, 1], [0.001, 0.001]),
        ([8, 1], [0.001, 0.001]),
        ([8, 2], [0.0005, 0.001]),
        ([0, 0], [0.003, 0.003]),
    ],
    subclonal_state_prior: 0.03,
    cell_fraction_grid: [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875],
    subclonal_copies_limit: 4,
    num_subclone_fractions: 17,
    subclone_fraction_range: [0.1, 0.8],
    purity_range: [0.05, 1.0],
    ploidy_range: [1.1, 6.5],
    genome_doubling_prior: 0.01,
    large_subclone_prior: 0.1,
    subclone_segment_prior: 0.3,
    negligible_log_difference: 20.0,
    unexplained_segment_prior: 1e-4,
    unexplained_ratio_range: 3.0,
    depth_error_grid: [0.003, 0.006, 0.012, 0.025, 0.05],
    min_depth_error: 0.003,
    num_coarse_purities: 48,
    coarse_log_ratio_step: 0.012,
    coarse_depth_error: 0.02,
    max_candidates: 14,
    candidate_separation: [0.07, 0.05],
    fit_separation: [0.02, 0.1],
    climb_steps: [0.02, 0.01],
    num_climb_halvings: 5,
    max_climb_rounds: 12,
    min_climb_gain: 1e-9,
    purity_step: 0.005,
    profile_ratio_steps: [-0.008, -0.004, -0.002, -0.001, 0.0, 0.001, 0.002, 0.004, 0.008],
    min_change_reads: 4,
    min_changes: [12.0, 50.0],
    max_changes: 2_000,
    called_overdispersion: 0.004,
    sketched_overdispersion_factor: 0.3,
    subclonal_share_grid: [0.01, 0.08, 0.2, 0.4, 0.6],
    subclonal_share_exponent: 3.0,
    early_share_grid: [0.02, 0.25, 0.5, 0.75, 0.98],
    early_share_exponent: 2.0,
    early_share_scale: 4.0,
    outlier_change_share: 0.03,
    num_cell_fractions: 8,
    cell_fraction_offset: 0.7,
    several_copies_limit: 1.5,
    later_change_weights: [0.9, 0.1],
    min_probability: 1e-12,
    min_detection_probability: 1e-3,
    min_product: 1e-250,
    min_somatic_share: 0.02,
    foreign_share_grid: [0.0, 0.1, 0.25, 0.45, 0.65, 0.85],
    foreign_count_factors: [0.35, 0.5, 0.7, 1.0, 1.4, 2.0],
    min_foreign_count_log_sd: 0.4,
    interval_width_sds: 4.0,
    interval_log_drops: [4.0, 2.5],
    same_ploidy_tolerance: 0.2,
    alternative_log_drop: 7.0,
    min_alternative_differences: [0.05, 0.2],
    min_half_widths: [0.01, 0.03],
    max_interval_widths: [0.45, 1.0],
    min_purity: 0.1,
    max_unexplained_fraction: 0.3,
    min_diploid_fraction: 0.98,
    max_loh_spread: 0.1,
};
