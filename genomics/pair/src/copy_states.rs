//! Allele-specific copy-number states of tumour segments, with their prior probabilities.

use crate::purity_params::PURITY_PARAMS;

/// Copy numbers of both parental alleles in a segment of the tumour genome, the major allele first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CopyState {
    /// Mean copy number of the major and of the minor allele over all tumour cells.
    pub copies: [f64; 2],
    /// Copy numbers of both alleles in the tumour cells that lack the subclonal gain.
    pub base_copies: [u8; 2],
    /// Share of the tumour cells with loss of heterozygosity in the segment (0 to 1).
    pub loh_fraction: f64,
    /// Natural logarithm of the prior probability of this state in a genome that was not doubled, and in a doubled
    /// genome.
    pub log_priors: [f64; 2],
}

impl CopyState {
    /// Mean copy number of both alleles together over all tumour cells.
    pub(crate) fn total_copies(&self) -> f64 {
        self.copies.iter().sum()
    }
}

/// Lists the clonal copy states: those that all tumour cells have.
pub(crate) fn list_clonal_copy_states() -> Vec<CopyState> {
    PURITY_PARAMS
        .clonal_state_priors
        .iter()
        .map(|&(whole, prior)| CopyState {
            copies: whole.map(f64::from),
            base_copies: whole,
            loh_fraction: f64::from(u8::from(whole[1] == 0 && whole[0] > 0)),
            log_priors: prior.map(f64::ln),
        })
        .collect()
}

/// Lists the subclonal copy states: some of the tumour cells have one copy more of one allele than the others.
pub(crate) fn list_subclonal_copy_states() -> Vec<CopyState> {
    PURITY_PARAMS
        .cell_fraction_grid
        .iter()
        .flat_map(|part| {
            states_in_cell_fraction(
                *part,
                (PURITY_PARAMS.subclonal_state_prior / PURITY_PARAMS.cell_fraction_grid.len() as f64).ln(),
            )
        })
        .collect()
}

/// Lists the copy states of genomes with one large subclone. For each tried fraction of the tumour cells, the inner
/// list has the states in which this fraction of the cells has one copy more of one allele.
pub(crate) fn list_copy_states_by_subclone_fraction() -> Vec<Vec<CopyState>> {
    (0..PURITY_PARAMS.num_subclone_fractions)
        .map(|i| {
            states_in_cell_fraction(
                PURITY_PARAMS.subclone_fraction_range[0]
                    + PURITY_PARAMS.subclone_fraction_range[1] * f64::from(i)
                        / f64::from(PURITY_PARAMS.num_subclone_fractions - 1),
                0.0,
            )
        })
        .collect()
}

/// Lists the subclonal copy states in which a fraction `cell_fraction` of the tumour cells has one copy more.
/// `log_penalty` is added to the log-priors.
fn states_in_cell_fraction(cell_fraction: f64, log_penalty: f64) -> Vec<CopyState> {
    let mut all = Vec::new();
    for from in list_clonal_copy_states() {
        let [a, b] = from.base_copies;
        if a + b >= PURITY_PARAMS.subclonal_copies_limit || a + b == 0 {
            continue;
        }
        // If both alleles have the same copy number, a gain of either gives the same state.
        let more = [[a + 1, b], [a, b + 1]];
        for [c, d] in more.into_iter().take(if a == b { 1 } else { 2 }) {
            let copies =
                [f64::from(a) + cell_fraction * f64::from(c - a), f64::from(b) + cell_fraction * f64::from(d - b)];
            let lost =
                f64::from(u8::from(b == 0)) * (1.0 - cell_fraction) + f64::from(u8::from(d == 0)) * cell_fraction;
            let prior = from.log_priors.map(|log| log + log_penalty);
            all.push(CopyState { copies, base_copies: from.base_copies, loh_fraction: lost, log_priors: prior });
        }
    }
    all
}
