//! The selectors of candidate k-mers: one for each tumour and, if one person has several tumours, one for all of them
//! pooled.
//!
//! The pooled selector finds changes for which each single tumour has too few reads. It uses the pooled depth, and the
//! number of errors expected at this depth.

use genuma_kmers::RootCounters;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};

use crate::candidate_kmer::{CandidateKmer, CandidateSelector, POOLED_SELECTOR_NUMBER};
use crate::tumour_alleles::TumourAlleles;

/// The candidate selectors of all tumours of a call.
#[derive(Debug)]
pub struct CandidateSelectors {
    per_tumour: Vec<CandidateSelector>,
    /// Selector of all tumours pooled; `None` with a single tumour.
    pooled: Option<CandidateSelector>,
}

impl CandidateSelectors {
    /// Creates the selectors. `kmers` has the total number of k-mers of each sample, the normal first. `genome_bases`
    /// is the size of the genome, if known. Each selector outputs at most about `max_novel_candidates` novel k-mers.
    /// `libraries` has the library properties of each tumour and the normal.
    pub fn for_tumours(
        k: u32,
        min_tumour_count: u32,
        kmers: &[u64],
        genome_bases: Option<u64>,
        max_novel_candidates: u64,
        libraries: &[SamplePairLibraryProperties],
    ) -> CandidateSelectors {
        let (normal, tumours) = (kmers[usize::from(NORMAL_SAMPLE)], &kmers[usize::from(TUMOUR_SAMPLE)..]);
        let selector = |number: u8, tumour: u64| {
            let depth = genome_bases.map_or(0.0, |bases| tumour as f64 / bases.max(1) as f64);
            let own = usize::from(number).checked_sub(usize::from(TUMOUR_SAMPLE)).and_then(|own| libraries.get(own));
            let libraries =
                own.cloned().unwrap_or_else(|| SamplePairLibraryProperties::pool_tumour_libraries(libraries));
            CandidateSelector::for_tumour(k, min_tumour_count, [normal, tumour], depth, &libraries)
                .with_novel_kmer_limit(max_novel_candidates)
                .with_selector_number(number)
        };
        CandidateSelectors {
            per_tumour: (TUMOUR_SAMPLE..).zip(tumours).map(|(number, &tumour)| selector(number, tumour)).collect(),
            pooled: (tumours.len() > 1).then(|| selector(POOLED_SELECTOR_NUMBER, tumours.iter().sum())),
        }
    }

    /// Appends the candidate k-mers of each selector at a root; a k-mer that several tumours show is appended for each
    /// of them. The pooled selector adds only k-mers that no single tumour clearly shows.
    pub fn append_candidates_of_root<const S: usize>(
        &self,
        root: &RootCounters<S>,
        candidates: &mut Vec<CandidateKmer>,
    ) {
        let len_before = candidates.len();
        for (tumour, selector) in (usize::from(TUMOUR_SAMPLE)..).zip(&self.per_tumour) {
            selector.append_candidates_in_viewed_samples(
                root,
                |counts| [counts[usize::from(NORMAL_SAMPLE)], counts[tumour]],
                candidates,
            );
        }
        let Some(pooled) = &self.pooled else { return };
        let len_before_pooled = candidates.len();
        let sum = |counts: &[u32; S]| {
            let (normal, tumours) = counts.split_at(TUMOUR_SAMPLE.into());
            [normal[0], tumours.iter().fold(0, |sum: u32, &n| sum.saturating_add(n))]
        };
        pooled.append_candidates_in_viewed_samples(root, sum, candidates);
        let mut kept = len_before_pooled;
        for at in len_before_pooled..candidates.len() {
            let candidate = candidates[at];
            let clear = |own: &CandidateKmer| own.kmer == candidate.kmer && !own.needs_high_quality_bases();
            if !candidates[len_before..len_before_pooled].iter().any(clear) {
                candidates[kept] = candidate;
                kept += 1;
            }
        }
        candidates.truncate(kept);
    }

    /// Number of novel k-mers that the selectors of single tumours found, including those above their limits, which
    /// were not output.
    pub fn num_novel_candidates_found(&self) -> u64 {
        self.per_tumour.iter().map(CandidateSelector::num_novel_candidates_found).sum()
    }

    /// For each tumour the alleles that it clearly has, with their counts in the normal.
    pub fn tumour_alleles(&self) -> Vec<TumourAlleles> {
        self.per_tumour.iter().map(CandidateSelector::tumour_alleles).collect()
    }

    /// For each tumour the number of roots at which it and the normal have different alleles, as two people do.
    pub fn num_genotype_mismatches(&self) -> Vec<u64> {
        self.per_tumour.iter().map(CandidateSelector::num_genotype_mismatches).collect()
    }
}
