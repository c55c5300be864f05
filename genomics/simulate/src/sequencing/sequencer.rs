//! Simulates the sequencer: reads both ends of a molecule and adds sequencing artefacts.

use super::adapter::SampleAdapters;
use super::homopolymers::draw_homopolymer_errors;
use super::library::MIN_INSERT_BP_WITH_ADAPTERS;
use super::molecule::Molecule;
use super::params::SequencingParams;
use super::quality::QualityModel;
use super::read_counts::ReadAndArtefactCounts;
use super::slippage::{RepeatSlip, SlippageModel, SlippageStage, repeat_on_reverse_strand};
use crate::rng::Rng;
use genuma_reads::ReadStructure;

/// Minimum length of a mate after trimming, bases.
const MIN_TRIMMED_MATE_BP: usize = MIN_INSERT_BP_WITH_ADAPTERS;
/// Share of wrong bases in a tail of quality 2.
const TAIL_ERROR_SHARE: f64 = 0.3;
/// Share of random bases among those that a four-colour sequencer calls where it detects no signal; the others are A.
const NO_SIGNAL_OTHER_BASE_SHARE: f64 = 0.2;
/// Lowest and highest Phred quality of bases called without signal.
const NO_SIGNAL_QUALITIES: (u8, u8) = (2, 16);
/// Phred quality 2 as Phred+33 character.
const PHRED33_Q2: u8 = b'#';

/// One mate as the sequencer outputs it.
#[derive(Debug, Default)]
pub(crate) struct SequencedMate {
    /// Bases that the sequencer reports, errors and N included.
    pub bases: Vec<u8>,
    /// Qualities, Phred+33.
    pub quals: Vec<u8>,
    /// Number of bases of the molecule, UMI included, that the mate contains; without adapter bases and sequencing
    /// slippage.
    pub molecule_bases: usize,
    slips: Vec<RepeatSlip>,
}

/// Simulated sequencer of one sample, which reads molecules from both ends.
#[derive(Debug)]
pub(crate) struct Sequencer<'a> {
    params: &'a SequencingParams,
    /// One quality model for each possible read length.
    models: Vec<QualityModel>,
    adapters: Option<SampleAdapters>,
    slippage: Option<SlippageModel>,
}

impl<'a> Sequencer<'a> {
    /// Creates the sequencer of one sample. `rng` draws the adapter indices of the sample.
    pub(crate) fn new(params: &'a SequencingParams, rng: &mut Rng) -> Self {
        let model = |&length: &usize| QualityModel::with_error_rate(length, params.error_rate);
        Sequencer {
            params,
            models: params.possible_read_lengths().iter().map(model).collect(),
            adapters: params.adapter_type_in_reads().map(|kind| SampleAdapters::with_random_indices(kind, rng)),
            slippage: SlippageModel::for_stage(SlippageStage::Sequencing, params.machine.sequencing_slippage),
        }
    }

    /// Returns whether all mates contain the same number of molecule bases: one read length, no adapters, no trimming,
    /// no UMIs.
    pub(crate) fn has_uniform_read_length(&self) -> bool {
        let whole = self.adapters.is_none() && self.params.machine.trimmed == 0.0;
        self.models.len() == 1 && whole && self.params.library.umi.is_none()
    }

    /// Draws the maximum number of template bases in read 1 and in read 2 of a pair, after trimming and without UMIs.
    pub(crate) fn draw_template_bp_of_mates(&self, rng: &mut Rng) -> [usize; 2] {
        let length = self.choose_model(rng).mate_length();
        let prefixes = self
            .params
            .library
            .umi
            .as_ref()
            .map_or([0; 2], |umi| umi.structures.0.each_ref().map(ReadStructure::num_bases_before_template));
        prefixes.map(|prefix| self.draw_trimmed_length(length, rng).saturating_sub(prefix))
    }

    /// Reads a molecule from both ends and stores the reads in `mates`.
    pub(crate) fn sequence_both_mates(
        &self,
        molecule: &Molecule,
        mates: &mut [SequencedMate; 2],
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        let model = self.choose_model(rng);
        for (number, mate) in mates.iter_mut().enumerate() {
            self.read_mate(molecule, number, model, mate, rng, counts);
        }
    }

    fn choose_model(&self, rng: &mut Rng) -> &QualityModel {
        if let [model] = &*self.models { model } else { rng.choose_item(&self.models) }
    }

    fn read_mate(
        &self,
        molecule: &Molecule,
        number: usize,
        model: &QualityModel,
        mate: &mut SequencedMate,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        let length = model.mate_length();
        mate.bases.clear();
        mate.slips.clear();
        let homopolymer_errors = self.params.machine.homopolymer_errors;
        // Read further, so that lost bases are replaced by the following ones.
        let reserve = if homopolymer_errors > 0.0 { length / 2 } else { 0 };
        match &self.slippage {
            None => molecule.append_mate_bases(number, length + reserve, &mut mate.bases),
            Some(slippage) => self.read_with_slips(molecule, number, length + reserve, slippage, mate, rng),
        }
        counts.sequencing_slips += mate.slips.len() as u64;
        if homopolymer_errors > 0.0 {
            let errors = draw_homopolymer_errors(&mate.bases[..length.min(mate.bases.len())], homopolymer_errors, rng);
            counts.homopolymer_errors += errors.len() as u64;
            errors.iter().rev().for_each(|error| error.apply_slip_to_bases(&mut mate.bases));
            mate.slips.extend(errors);
            mate.bases.truncate(length);
        }
        let own = mate.bases.len();
        let mut lit = own;
        if own < length
            && let Some(adapters) = &self.adapters
        {
            counts.adapter_mates += 1;
            adapters.append_adapter(number, length, &mut mate.bases);
            lit = mate.bases.len();
            mate.bases.extend((lit..length).map(|_| self.draw_base_without_signal(rng)));
        }
        model.sequence_mate(number, &mut mate.bases, &mut mate.quals, rng);
        self.add_artefacts(lit, mate, rng, counts);
        let kept = self.draw_trimmed_length(mate.bases.len(), rng);
        counts.trimmed_mates += u64::from(kept < mate.bases.len());
        mate.bases.truncate(kept);
        mate.quals.truncate(kept);
        let passed = own.min(kept);
        let gained: isize = mate.slips.iter().filter(|s| s.repeat.start < passed).map(|slip| slip.bases_gained()).sum();
        mate.molecule_bases = passed.saturating_add_signed(-gained);
    }

    fn read_with_slips(
        &self,
        molecule: &Molecule,
        number: usize,
        length: usize,
        slippage: &SlippageModel,
        mate: &mut SequencedMate,
        rng: &mut Rng,
    ) {
        let n = molecule.len();
        let backwards = molecule.mate_starts_at_stored_end(number);
        for &repeat in &molecule.repeats {
            let mut repeat = if backwards { repeat_on_reverse_strand(repeat, n) } else { repeat };
            repeat.end = repeat.end.min(length);
            if repeat.start < length {
                mate.slips.extend(slippage.draw_slip(repeat, rng));
            }
        }
        // Read further, so that lost bases are replaced by the following ones.
        let lost: usize = mate.slips.iter().map(|slip| (-slip.bases_gained()).max(0) as usize).sum();
        molecule.append_mate_bases(number, length + lost, &mut mate.bases);
        // Apply slips from the last to the first, so that positions stay valid.
        mate.slips.sort_unstable_by_key(|slip| std::cmp::Reverse(slip.repeat.start));
        for slip in &mate.slips {
            slip.apply_slip_to_bases(&mut mate.bases);
        }
        mate.bases.truncate(length);
    }

    /// Draws the base that is called where the sequencer detects no signal.
    fn draw_base_without_signal(&self, rng: &mut Rng) -> u8 {
        if self.params.machine.two_colour {
            b'G'
        } else if rng.draw_bernoulli(NO_SIGNAL_OTHER_BASE_SHARE) {
            rng.draw_base(0.5)
        } else {
            b'A'
        }
    }

    /// Adds low qualities of bases without signal, N, tails of quality 2 with their errors, and the binning of
    /// qualities. From base `lit` on, the sequencer detects no signal.
    fn add_artefacts(&self, lit: usize, mate: &mut SequencedMate, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
        let machine = &self.params.machine;
        if !machine.two_colour {
            for quality in &mut mate.quals[lit..] {
                *quality = 33
                    + NO_SIGNAL_QUALITIES.0
                    + rng.draw_below(usize::from(NO_SIGNAL_QUALITIES.1 - NO_SIGNAL_QUALITIES.0) + 1) as u8;
            }
        }
        let mut at = rng.draw_geometric(machine.n_rate);
        while at < mate.bases.len() {
            counts.n_bases += 1;
            (mate.bases[at], mate.quals[at]) = (b'N', PHRED33_Q2);
            at = at.saturating_add(1).saturating_add(rng.draw_geometric(machine.n_rate));
        }
        if machine.quality_tails > 0.0 && rng.draw_bernoulli(machine.quality_tails) {
            counts.quality_tails += 1;
            let from = rng.draw_below(mate.bases.len().max(1));
            for (base, quality) in mate.bases.iter_mut().zip(&mut mate.quals).skip(from) {
                *quality = PHRED33_Q2;
                if *base != b'N' && rng.draw_bernoulli(TAIL_ERROR_SHARE) {
                    *base = rng.draw_other_base(*base);
                }
            }
        }
        if machine.binned_qualities {
            mate.quals.iter_mut().for_each(|quality| *quality = bin_quality(*quality));
        }
    }

    /// Draws the number of bases of a mate that remain after trimming. A mate of at most [`MIN_TRIMMED_MATE_BP`] bases
    /// is not trimmed.
    fn draw_trimmed_length(&self, length: usize, rng: &mut Rng) -> usize {
        let trimmed = self.params.machine.trimmed;
        if trimmed > 0.0 && length > MIN_TRIMMED_MATE_BP && rng.draw_bernoulli(trimmed) {
            MIN_TRIMMED_MATE_BP + rng.draw_below(length - MIN_TRIMMED_MATE_BP + 1)
        } else {
            length
        }
    }
}

/// Returns the one of the four quality values of NovaSeq to whose bin a quality belongs. Both are Phred+33.
fn bin_quality(quality: u8) -> u8 {
    33 + match quality - 33 {
        0..=2 => 2,
        3..=17 => 12,
        18..=29 => 23,
        _ => 37,
    }
}
