//! Summary of a tumour sample after the call: properties of the sample pair, tumour in normal, mutational spectrum,
//! mutation burden and microsatellite instability.

use genuma_pair::confidence_interval::Estimate;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::somatic_changes;
use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::candidate_kmer::{KmerDepths, median_kmer_depth_of_spectrum};
use crate::change::{Change, change_sort_position};
use crate::count::CountingResult;
use crate::event::{Event, EventClass};
use crate::genotype::AlleleSupport;
use crate::msi::{LengthChangeDetectionConditions, MicrosatelliteInstability};
use crate::mutation_context::mutation_context_index;
use crate::root_positions;
use crate::signatures::SignatureExposures;
use crate::slippage::SlippageModel;
use crate::target_depth::{MIN_CALLABLE_KMER_DEPTH, TargetsWithDepths};
use crate::tumour_alleles::TumourAlleles;
use crate::tumour_in_normal;

/// Summary of one tumour and the normal after the call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// Properties of the sample pair, such as purity and contamination. They are estimated from the k-mer sketch, and
    /// the purity also from the calls. `None` if no sketch was taken, and in a tumour-only call.
    pub pair: Option<SamplePairSummary>,
    /// Properties of the libraries of the normal and the tumour that the call used, such as error rates.
    pub libraries: SamplePairLibraryProperties,
    /// Tumour in normal: share of tumour cells in the normal sample; `None` if it is not estimated.
    pub tumour_in_normal: Option<Estimate>,
    /// Why the tumour in normal is not estimated; `None` if there is an estimate.
    pub why_no_tumour_in_normal: Option<String>,
    /// Mutational spectrum: numbers of passed SNVs by mutation context, in the order of
    /// [`crate::mutation_context::mutation_context_names`]; empty without a reference.
    pub spectrum: Vec<u64>,
    /// Exposures of the tumour to the signatures of the given matrix; `None` if no matrix was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signatures: Option<SignatureExposures>,
    /// Mutation burden: passed SNVs, MNVs and indels at callable depth per million callable bases; `None` if no base is
    /// callable. With targets, only changes and bases of the targets without their padding count.
    pub burden: Option<Estimate>,
    /// Microsatellite instability; `None` without a reference, or if no repeat can be assessed.
    pub repeats: Option<MicrosatelliteInstability>,
}

/// Results of a call from which the summaries of all its tumours are computed.
#[derive(Clone, Copy)]
pub(crate) struct TumourSummaryInputs<'a> {
    /// Results of counting k-mers: spectra, tumour alleles, library properties.
    pub(crate) counts: &'a CountingResult,
    pub(crate) events: &'a [Event],
    /// The reference, if there is one.
    pub(crate) reference: Option<&'a Reference>,
    /// Number of callable bases in both samples: those whose k-mer occurs [`MIN_CALLABLE_KMER_DEPTH`] times in each.
    pub(crate) callable_bases: u64,
    /// Length of the k-mers in bases.
    pub(crate) k: u32,
    /// Whether the call has a normal.
    pub(crate) has_normal: bool,
    /// Slippage rates of repeats.
    pub(crate) slippage: &'a SlippageModel,
    /// The targets, if there are any, and their padding in bases.
    pub(crate) targets: Option<(&'a TargetsWithDepths, usize)>,
    /// Number of threads, at least 1.
    pub(crate) threads: usize,
}

impl<'a> TumourSummaryInputs<'a> {
    /// Events of a tumour that passed all filters. Tumour number 0 is the first.
    fn passed(self, tumour: usize) -> impl Iterator<Item = &'a Event> {
        let has = move |event: &&Event| {
            let genotype = &event.calls[0].genotype;
            genotype.filters.is_empty() && genotype.tumours.get(tumour).is_none_or(|own| own.has)
        };
        self.events.iter().filter(has)
    }

    /// Whether tumour and normal have as many molecules at an event as callable bases have. Otherwise a shallow sample
    /// would have calls outside of its callable bases, and too high a burden. Tumour number 0 is the first.
    fn has_callable_depth(self, event: &Event, tumour: usize) -> bool {
        let Some(library) = self.counts.libraries.get(tumour) else { return true };
        let [of_normal, of_tumour] = [&library.normal, &library.tumor].map(|reads| reads.mates[0].lengths[1]);
        let has_depth = |support: &AlleleSupport, read_len: u64| {
            has_callable_depth(support.num_informative_molecules(), read_len, self.k)
        };
        has_depth(&tumour_support(event, tumour), of_tumour)
            && (!self.has_normal || has_depth(&event.calls[0].genotype.normal, of_normal))
    }
}

/// Whether a sample with this number of molecules at a base has the k-mers of the base [`MIN_CALLABLE_KMER_DEPTH`] times
/// on average. `read_len` is the length of its reads in bases.
fn has_callable_depth(num_molecules: u32, read_len: u64, k: u32) -> bool {
    let kmers_per_read = (read_len + 1).saturating_sub(k.into());
    u64::from(num_molecules) * kmers_per_read >= u64::from(MIN_CALLABLE_KMER_DEPTH) * read_len
}

/// Support of an event in one tumour. Tumour number 0 is the first.
fn tumour_support(event: &Event, tumour: usize) -> AlleleSupport {
    let genotype = &event.calls[0].genotype;
    genotype.tumours.get(tumour).map_or(genotype.tumour, |own| own.support)
}

impl SampleSummary {
    /// Computes the summary of one tumour. Tumour number 0 is the first.
    pub(crate) fn summarise_tumour(results: TumourSummaryInputs<'_>, tumour: usize) -> SampleSummary {
        let TumourSummaryInputs { counts, reference, slippage, targets, threads, .. } = results;
        let passed = || results.passed(tumour);
        let small = |event: &&Event| matches!(event.class, EventClass::Snv | EventClass::Mnv | EventClass::Indel);
        let changes: Vec<somatic_changes::SomaticChange> = passed()
            .filter(small)
            .map(|event| {
                let (support, at) = (tumour_support(event, tumour), change_sort_position(&event.calls[0].change));
                // Without a reference the changes are on contigs of their own.
                let place = reference.map(|_| (at.0 as u32, at.1 as u32));
                somatic_changes::SomaticChange {
                    position: place,
                    molecules: [support.reference, support.alternative],
                    normal_depth: 0,
                }
            })
            .collect();
        let pair = counts.pair_evidence.get(tumour).map(|tally| {
            let places = reference.map(|genome| {
                root_positions::locate_unique_roots(genome, &tally.list_roots_to_locate(), tally.sketch_shape, threads)
            });
            tally.estimate_purity_and_summarise(
                &places.unwrap_or_default(),
                &reference.map(Reference::contig_names).unwrap_or_default(),
                Some(&changes),
            )
        });
        let modal_depth = counts.spectra.first().map_or(0.0, |normal| median_kmer_depth_of_spectrum(normal));
        let purity_estimate = pair.as_ref().and_then(|pair| pair.tumour.as_ref());
        let none = TumourAlleles::default();
        let in_normal = tumour_in_normal::estimate_tumour_in_normal(
            counts.tumour_alleles.get(tumour).unwrap_or(&none),
            modal_depth,
            purity_estimate,
        );
        // The padding of targets has calls but not always enough depth, so it counts in neither number.
        let in_targets = |event: &&Event| targets.is_none_or(|(finished, _)| event.is_on_target(&finished.targets, 0));
        let callable = |event: &&Event| results.has_callable_depth(event, tumour);
        let count = passed().filter(small).filter(in_targets).filter(callable).count() as u64;
        let callable_bases = targets
            .and_then(|(finished, _)| finished.summary.callable_bases.get(tumour).copied())
            .unwrap_or(results.callable_bases);
        let copies = pair.as_ref().map_or(0.0, |pair| pair.duplicate_share[usize::from(TUMOUR_SAMPLE)]);
        let sample = usize::from(TUMOUR_SAMPLE) + tumour;
        let depth = match targets {
            Some((finished, _)) => finished.depths.median_kmer_depth(&finished.targets, sample),
            None => KmerDepths::estimate_depths_from_spectra(&counts.spectra).kmer.get(sample).copied().unwrap_or(0.0),
        };
        let conditions = LengthChangeDetectionConditions {
            kmer_depth: depth * (1.0 - copies),
            read_len_bases: counts.libraries.get(tumour).map_or(0, |both| both.tumor.mates[0].lengths[1]) as usize,
            purity: purity_estimate
                .and_then(|purity_estimate| purity_estimate.purity)
                .map_or(1.0, |purity| purity.value),
            slippage,
            targets: targets.map(|(finished, padding_bp)| (&finished.targets, padding_bp)),
        };
        SampleSummary {
            tumour_in_normal: in_normal.ok(),
            libraries: counts.library_models.get(tumour).cloned().unwrap_or_default(),
            why_no_tumour_in_normal: in_normal.err().map(|why| why.reason_text().into()),
            spectrum: reference.map(|genome| mutation_spectrum(passed(), genome)).unwrap_or_default(),
            signatures: None,
            burden: Estimate::rate_of_independent_events(count, callable_bases as f64 / 1e6),
            repeats: reference.and_then(|genome| {
                MicrosatelliteInstability::estimate_microsatellite_instability(passed(), genome, &conditions, threads)
            }),
            pair,
        }
    }
}

/// Numbers of SNVs by mutation context, in the order of [`crate::mutation_context::mutation_context_names`].
fn mutation_spectrum<'a>(events: impl Iterator<Item = &'a Event>, genome: &Reference) -> Vec<u64> {
    let mut counts = vec![0; 96];
    for event in events.filter(|event| event.class == EventClass::Snv) {
        let Change::Allele { chrom, pos, alternative, .. } = &event.calls[0].change else { continue };
        let seq = &genome.contigs[*chrom].seq;
        let three = pos.checked_sub(1).and_then(|before| seq.get(before..before + 3)?.try_into().ok());
        if let Some(at) = three.and_then(|three| mutation_context_index(three, *alternative.first()?)) {
            counts[at] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::has_callable_depth;

    #[test]
    fn molecules_are_compared_with_kmers_of_their_reads() {
        // Reads of 60 bases have 30 k-mers of 31 bases, half as many as bases.
        assert!(has_callable_depth(16, 60, 31) && !has_callable_depth(15, 60, 31));
        // Long reads have nearly as many.
        assert!(has_callable_depth(9, 10_000, 31) && !has_callable_depth(8, 10_000, 31));
        // Reads without a k-mer.
        assert!(!has_callable_depth(100, 20, 31));
    }
}
