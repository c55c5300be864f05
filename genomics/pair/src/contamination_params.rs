//! Parameters of the contamination model, with the values that are used.

/// Parameters of the contamination model. The formulas are those of
/// `docs/model/contamination.md`.
#[derive(Debug)]
pub(crate) struct ContaminationModelParams {
    /// Contamination shares at which the likelihood is computed (formula 13), denser near 0. Unit: share of DNA.
    /// Source: chosen (above 0.3 the alleles of both people mix too much). If higher: wider range of shares.
    pub(crate) share_grid: [f64; 24],
    /// Number of steps into which the intervals of `share_grid` around the likeliest shares are divided. Unit: steps.
    /// Source: empirical; not fitted. If higher: finer estimate, more computation.
    pub(crate) grid_refinement: u32,
    /// Intervals of `share_grid` with an end whose log-likelihood is at most this much below the maximum are refined.
    /// Unit: natural-log units. Source: empirical; not fitted. If higher: more intervals are refined, more
    /// computation.
    pub(crate) refined_log_drop: f64,
    /// Contamination shares at which the somatic spectra are compared first. Unit: share of DNA. Source: chosen (few
    /// shares, for speed). If higher: no direct effect.
    pub(crate) coarse_share_grid: [f64; 7],
    /// Number of sites at which a contaminant is heterozygous for an allele that the person lacks, and at which he is
    /// homozygous for one (formula 2). Unit: sites per heterozygous site of the person. Source: derived for unrelated
    /// people with neutral allele frequencies (Watterson 1975; KING kinship 0, Manichaikul 2010). If higher: lower
    /// estimates.
    pub(crate) foreign_sites_per_het_site: [f64; 2],
    /// Standard deviations of the natural logarithms of `foreign_sites_per_het_site`, because people differ in
    /// diversity (formula 2). Unit: natural-log units. Source: empirical; not fitted. If higher: wider interval.
    pub(crate) foreign_density_log_sds: [f64; 2],
    /// Deviations of the density of foreign sites that are tried (formula 2). Unit: multiples of
    /// `foreign_density_log_sds`. Source: chosen (three points of a normal distribution). If higher: wider range of
    /// densities.
    pub(crate) foreign_density_deviations: [f64; 3],
    /// Scale of the prior of the contamination share (formula 11). Unit: share of DNA. Source: chosen (most samples
    /// have next to no contamination). If higher: weaker pull of small estimates towards 0.
    pub(crate) share_prior_scale: f64,
    /// Densities of somatic changes that are tried (formula 9). Unit: changes per heterozygous site of the person.
    /// Source: chosen (covers 0.003 to 0.9). If higher: more somatic changes are possible.
    pub(crate) somatic_density_grid: [f64; 8],
    /// Shares of the reads that clonal somatic changes have, as tried (formula 9). Unit: share of reads. Source: chosen
    /// (covers purities up to about 1). If higher: amplified changes are covered.
    pub(crate) somatic_fraction_grid: [f64; 8],
    /// Shares of the somatic changes that are subclonal, as tried (formula 9). Unit: share of somatic changes. Source:
    /// empirical; not fitted. If higher: more of the alleles with few reads may be subclonal changes.
    pub(crate) subclonal_change_share_grid: [f64; 3],
    /// Number of read fractions, equally spaced up to that of clonal changes, over which subclonal changes are averaged
    /// (formula 9). Unit: read fractions. Source: empirical; not fitted. If higher: finer average, more computation.
    pub(crate) num_subclonal_read_fractions: usize,
    /// Negative logarithm of the prior of each value of `subclonal_change_share_grid` (formula 10). Unit: natural-log
    /// units. Source: chosen (more subclonal changes are less likely). If higher: fewer alleles are attributed to
    /// subclonal changes.
    pub(crate) subclonal_log_penalties: [f64; 3],
    /// Shares of the somatic changes that are transitions, as tried; the first is used for the first search (formula
    /// 3). Unit: share of somatic changes. Source: empirical; not fitted. If higher: more transitions among the somatic
    /// changes.
    pub(crate) transition_share_grid: [f64; 3],
    /// Scale of the prior of the density of somatic changes (formula 10). Unit: changes per base. Source: empirical;
    /// not fitted. If higher: many somatic changes become more likely.
    pub(crate) somatic_density_prior_scale: f64,
    /// Share of the reads below which clonal somatic changes are taken to be in few cells; their log-prior is then
    /// lower by one natural-log unit (formula 10). Unit: share of reads. Source: empirical; not fitted. If higher: more
    /// spectra are penalised, so more alleles with few reads are attributed to contamination.
    pub(crate) low_fraction_limit: f64,
    /// Penalty of somatic changes in a normal sample (formula 10). Unit: natural-log units. Source: chosen (samples may
    /// be swapped, but rarely are). If higher: more alleles of the normal are attributed to contamination.
    pub(crate) normal_somatic_log_penalty: f64,
    /// Number of somatic spectra, the likeliest ones, that are examined at all contamination shares. Unit: spectra.
    /// Source: chosen (for speed). If higher: slower and more exhaustive search.
    pub(crate) num_best_spectra: usize,
    /// Number of further somatic spectra that are kept for each share of `coarse_share_grid`. Unit: spectra. Source:
    /// chosen (for speed). If higher: slower and more exhaustive search.
    pub(crate) num_best_spectra_per_share: usize,
    /// Minimum number of sites for an estimate. Unit: sites. Source: chosen (with fewer sites a few odd places of the
    /// library or genome would look like a contaminant). If higher: more small samples without an estimate.
    pub(crate) min_sites: u64,
    /// Minimum expected number of heterozygous sites among the examined sites; a contaminant has about as many
    /// alleles of his own. Unit: sites. Source: empirical; not fitted. If higher: more shallow samples without an
    /// estimate.
    pub(crate) min_het_sites: f64,
    /// Smallest and largest depth of the examined sites. Unit: multiples of the modal depth. Source: chosen (beyond
    /// it deletions and repeats are frequent). If higher: first value: fewer shallow sites; second value: more
    /// repeats.
    pub(crate) depth_range: [f64; 2],
    /// Smallest depth of the examined sites. Unit: molecules. Source: empirical; not fitted. If higher: fewer sites
    /// of shallow samples.
    pub(crate) min_depth: f64,
    /// Number of other bases that could be the minor allele of a site (formula 3). Each site is counted once for each
    /// of them. Unit: alleles per site. Source: definition. If higher: not to be changed.
    pub(crate) minor_alleles_per_site: f64,
    /// Shares of inherited alleles that are transitions, and that are one given transversion of the two that a site has
    /// (formula 3). Unit: share of inherited alleles. Source: transition to transversion ratio of 2 of the human
    /// genome. If higher: not to be changed alone, because the first plus twice the second is 1.
    pub(crate) inherited_class_shares: [f64; 2],
    /// Number of sites with the same error in two molecules: PCR errors whose duplicates were not recognised, and sites
    /// with frequent errors (formula 6). Unit: sites per site with an error in one molecule and per share of
    /// duplicates. Source: empirical; the factor `repeated_error_factors` is fitted to each sample. If higher: lower
    /// small estimates.
    pub(crate) repeated_error_rate: f64,
    /// Factors of `repeated_error_rate` that are tried; the second is used for the first search (formula 6). Unit:
    /// factor. Source: empirical; not fitted. If higher: more repeated errors are allowed.
    pub(crate) repeated_error_factors: [f64; 3],
    /// Standard deviation of the natural logarithm of the factor of `repeated_error_rate` (formula 12). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: more variation between libraries is allowed.
    pub(crate) repeated_error_factor_log_sd: f64,
    /// Smallest duplicate share that `repeated_error_rate` is multiplied by. Unit: share of read pairs. Source:
    /// empirical; not fitted. If higher: more repeated errors in libraries without duplicates.
    pub(crate) min_duplicate_share: f64,
    /// Lower bound of the fitted error rate (formula 7). Unit: errors per base. Source: chosen (keeps the likelihood
    /// finite). If higher: no effect unless errors are that rare.
    pub(crate) min_error_rate: f64,
    /// Substitution classes whose error rate exceeds this multiple of the lowest rate are damaged and left out. Unit:
    /// factor. Source: empirical; not fitted. If higher: more damaged classes are used.
    pub(crate) max_error_rate_ratio: f64,
    /// Substitution classes with an error rate below this value are never left out. Unit: errors per base. Source:
    /// empirical; not fitted. If higher: more damaged classes are used.
    pub(crate) always_used_error_rate: f64,
    /// Of the sites at which one read of the other sample has the minor allele: maximum share that may be foreign
    /// alleles (formula 8). Unit: share of sites. Source: chosen (keeps the likelihood finite). If higher: more of
    /// these sites may be foreign.
    pub(crate) max_foreign_shared_site_share: f64,
    /// Maximum number of reads of the minor allele in this sample at sites with a read of it in the other sample
    /// (formula 8). Unit: reads. Source: chosen (with more, the allele may be inherited and by chance or loss rare in
    /// the other sample). If higher: more sites, and more inherited alleles among them.
    pub(crate) max_shared_minor_reads: usize,
    /// Probability of a second allele for a reason that the model does not cover (formula 6). Unit: probability per
    /// site. Source: empirical; not fitted. If higher: more robust and less sensitive estimate.
    pub(crate) unexplained_site_rate: f64,
    /// Maximum number of rounds in which the contamination of both samples is re-estimated, because each estimate
    /// depends on the other. Unit: rounds. Source: empirical; not fitted. If higher: slower, closer to convergence.
    pub(crate) max_rounds: usize,
    /// Largest change of a contamination share between two rounds that counts as converged. Unit: share of DNA.
    /// Source: empirical; not fitted. If higher: the rounds stop earlier.
    pub(crate) convergence_tolerance: f64,
}

/// Values of the parameters of the contamination model.
pub(crate) const CONTAMINATION_PARAMS: ContaminationModelParams = ContaminationModelParams {
    share_grid: [
        0.0, 0.002, 0.004, 0.007, 0.01, 0.014, 0.018, 0.023, 0.028, 0.034, 0.04, 0.047, 0.054, 0.062, 0.07, 0.08, 0.09,
        0.1, 0.115, 0.13, 0.16, 0.2, 0.25, 0.3,
    ],
    grid_refinement: 4,
    refined_log_drop: 4.0,
    coarse_share_grid: [0.0, 0.008, 0.02, 0.04, 0.08, 0.13, 0.2],
    foreign_sites_per_het_site: [0.65, 0.175],
    foreign_density_log_sds: [0.08, 0.15],
    foreign_density_deviations: [-1.4, 0.0, 1.4],
    share_prior_scale: 0.02,
    somatic_density_grid: [0.003, 0.01, 0.03, 0.07, 0.14, 0.28, 0.5, 0.9],
    somatic_fraction_grid: [0.08, 0.12, 0.17, 0.22, 0.28, 0.35, 0.42, 0.49],
    subclonal_change_share_grid: [0.0, 0.3, 0.6],
    num_subclonal_read_fractions: 12,
    subclonal_log_penalties: [0.0, 0.5, 1.5],
    transition_share_grid: [0.6, 0.45, 0.8],
    somatic_density_prior_scale: 2e-5,
    low_fraction_limit: 0.15,
    normal_somatic_log_penalty: 6.0,
    num_best_spectra: 5,
    num_best_spectra_per_share: 2,
    min_sites: 20_000,
    min_het_sites: 250.0,
    depth_range: [0.5, 1.6],
    min_depth: 6.0,
    minor_alleles_per_site: 3.0,
    inherited_class_shares: [2.0 / 3.0, 1.0 / 6.0],
    repeated_error_rate: 0.03,
    repeated_error_factors: [0.5, 1.5, 4.0],
    repeated_error_factor_log_sd: 0.7,
    min_duplicate_share: 0.01,
    min_error_rate: 1e-7,
    max_error_rate_ratio: 1.8,
    always_used_error_rate: 2e-4,
    max_foreign_shared_site_share: 0.97,
    max_shared_minor_reads: 2,
    unexplained_site_rate: 2e-7,
    max_rounds: 5,
    convergence_tolerance: 0.001,
};
