//! The genotyping unit, which genotypes all loci and builds the events. It makes up to four passes over all loci, a
//! range of loci at a time. Each pass needs the results of the previous pass for all loci: sequences of the normal,
//! then error rates, then merged adjacent substitutions, then genotypes.

use std::path::Path;

use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::marker_kmers::contig_copies_and_screen::ContigCopiesAndScreen;
use genuma_pair::pair_summary::ReferenceFreePairEvidence;
use genuma_reads::fasta::Reference;
use genuma_reads::targets::Targets;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use genuma_work::cost::{CostTimer, UnitCost};
use genuma_work::parallel::map_in_order;

use crate::adjacent_substitutions;
use crate::aligned_contig::{self, AlignedContig};
use crate::assemble::Contig;
use crate::candidate_kmer::KmerDepths;
use crate::count::{CountingResult, count_distinct_solid_kmers};
use crate::element_copy_filter;
use crate::error::Error;
use crate::event::{self, CallThresholds, Event};
use crate::genotype::{self, Admixture, ForeignDna};
use crate::germline_haplotype;
use crate::known_variants::{KnownVariantFrequencies, KnownVariants};
use crate::ledger::Ledger;
use crate::locus::{self, GenotypingInputs, VariantCall};
use crate::locus_ranges::{LocusRanges, RecruitedPairsOnDisk};
use crate::normal_sequences;
use crate::other_species_filter;
use crate::panel_of_normals::PanelHitCounts;
use crate::repeat_family_copy_filter;
use crate::resources::{CallParams, Resources};
use crate::sample_names::SampleNames;
use crate::sample_summary::{SampleSummary, TumourSummaryInputs};
use crate::sequencing_errors::{self, ErrorModel};
use crate::short_homopolymer::ShortHomopolymerReadCounts;
use crate::slippage::{self, SlippageModel};
use crate::target_depth::{TargetsOption, TargetsWithDepths};
use crate::tumour_alleles::OwnAlleleRootCounts;
use crate::tumour_only;
use crate::variant_trace::{TraceReport, VariantTracer};

/// The events of a finished call, with everything that the output files contain.
pub struct FinishedCall {
    /// The sequences to which calls refer.
    pub genome: Reference,
    /// The loci with their recruited pairs; `VariantCall::locus` is the index of a locus.
    pub ranges: LocusRanges,
    /// The events, sorted by position.
    pub events: Vec<Event>,
    /// Names of the normal and the tumours.
    pub samples: SampleNames,
    /// k-mer spectrum of each sample: number of distinct k-mers by number of occurrences.
    pub spectra: Vec<Vec<u64>>,
    /// Depths that were estimated from the k-mer spectra.
    pub depths: KmerDepths,
    /// Number of bases of each sample.
    pub bases: Vec<u64>,
    /// Run time and memory of each unit.
    pub costs: Vec<UnitCost>,
    /// Error rates of the reads, estimated from the recruited reads.
    pub errors: ErrorModel,
    /// Number of items that each stage produced and skipped, with reasons.
    pub ledger: Ledger,
    /// Share of the sites known in both samples at which normal and tumour have different alleles, for the tumour with
    /// the highest share; `None` if the samples may come from one person.
    pub genotype_mismatch_share: Option<f64>,
    /// For each tumour, numbers of roots at which the normal has an allele of its own, and at which the tumour has.
    pub own_alleles: Vec<[OwnAlleleRootCounts; 2]>,
    /// Tumour cells in the normal, and DNA of another person in the tumours, as genotyping assumed.
    pub admixture: Admixture,
    /// Reports of the traced variants (`--why`).
    pub traces: Vec<TraceReport>,
    /// For each tumour, the library metrics of the tumour and the normal.
    pub libraries: Vec<SamplePairLibraryMetrics>,
    /// Depths of reference contigs and of screened sequences, estimated from marker k-mers.
    pub known_sequences: ContigCopiesAndScreen,
    /// For each tumour, facts about the tumour, the normal and the calls.
    pub sample_summaries: Vec<SampleSummary>,
    /// Whether `genome` is a reference. Otherwise it consists of the assembled contigs of the normal.
    pub on_reference: bool,
    /// The targets with their depths; `None` without targets.
    pub targets: Option<TargetsWithDepths>,
}

/// The genotyping unit with its input, ready to run.
pub(crate) struct GenotypingUnit<'a> {
    /// Names of the normal and the tumours.
    pub samples: &'a SampleNames,
    /// Result of counting k-mers.
    pub counts: CountingResult,
    /// Contigs, their recruited pairs, and the reference.
    pub loci: LocusInputs<'a>,
    /// Call parameters that determine the result.
    pub params: &'a CallParams,
    /// Threads, memory and disk space that the unit may use.
    pub resources: &'a Resources,
    /// Folder for spilled data.
    pub work_dir: &'a Path,
    /// Ledger of all earlier stages.
    pub ledger: Ledger,
    /// Run time and memory of each earlier unit.
    pub costs: Vec<UnitCost>,
    /// Tracer of the variants given with `--why`; `None` without `--why`.
    pub tracer: Option<VariantTracer>,
    /// Number of normals of the panel that have each candidate k-mer; `None` without a panel.
    pub panel: Option<PanelHitCounts>,
    /// The options and intervals of the targets; `None` without targets.
    pub targets: Option<(&'a TargetsOption, Targets)>,
    /// Known variants with population frequencies; `None` if none were given. They require a reference.
    pub known: Option<&'a KnownVariants>,
}

/// The contigs that become loci, and the pairs recruited for them.
pub(crate) struct LocusInputs<'a> {
    /// The reference; without it, calls are placed on the assembled contigs of the normal.
    pub genome: Option<Reference>,
    /// Aligned contigs for which reads were recruited.
    pub contigs: Vec<AlignedContig>,
    /// All assembled contigs; used only if there is no reference.
    pub assembled: &'a [Contig],
    /// Positions of the recruited pairs in the file `recruited_path`, and numbers of pairs.
    pub recruited: RecruitedPairsOnDisk,
    /// File of the recruited pairs.
    pub recruited_path: &'a Path,
}

/// Minimum share of genotype mismatches, among the k-mers that both samples have, at which a warning says that the
/// samples come from two people. Unrelated people differ in one base in some thousands, two samples of one person in
/// one in millions. A lower value warns more often.
pub(crate) const MIN_MISMATCH_SHARE_OF_TWO_PEOPLE: f64 = 1e-4;

/// Determines the call thresholds, most of which depend on the libraries.
pub fn determine_call_thresholds(
    counts: &CountingResult,
    samples: &SampleNames,
    params: &CallParams,
) -> CallThresholds {
    // The artefacts of one tumour's library appear among the calls of all tumours.
    let tumours = counts.trimmed.iter().skip(TUMOUR_SAMPLE.into());
    let most = tumours
        .max_by(|a, b| a.estimate_fold_back_sites_per_mate().total_cmp(&b.estimate_fold_back_sites_per_mate()))
        .copied()
        .unwrap_or_default();
    let error_rate = SamplePairLibraryProperties::highest_error_rate(&counts.library_models);
    let fragment_ends = SamplePairLibraryProperties::random_or_fixed_ends_by_sample(&counts.library_models);
    CallThresholds {
        has_unknown_duplicates: sequencing_errors::has_tumour_with_fixed_fragment_ends(&fragment_ends),
        may_raise_quality: error_rate.is_some(),
        normal_has_tumour_cells: counts.tumour_in_normal_ratio > 0.0,
        min_molecules: genotype::min_call_molecules_common_error(error_rate),
        ..CallThresholds::from_trim_counts(&most, estimate_known_bases(counts, samples), params.min_quality)
    }
}

impl GenotypingUnit<'_> {
    /// Genotypes the changes of all loci and builds the events.
    ///
    /// # Errors
    /// Spilled data cannot be written or read, or is damaged.
    pub fn run_genotyping(self) -> Result<FinishedCall, Error> {
        let clock = CostTimer::start();
        let passes = GenotypingPasses {
            params: self.params,
            samples: self.samples,
            resources: self.resources,
            work_dir: self.work_dir,
        };
        let GenotypingUnit { counts, loci, mut ledger, mut costs, mut tracer, panel, targets, known, .. } = self;
        let thresholds = determine_call_thresholds(&counts, self.samples, self.params);
        let on_reference = loci.genome.is_some();
        let (mut ranges, genome) = passes.open_loci(loci, &mut ledger)?;
        let admixture = estimate_admixture(&counts, thresholds.has_fold_back_artefacts);
        let errors = passes.learn_errors(&mut ranges, &counts, admixture)?;
        passes.join_neighbours(&mut ranges, &errors)?;
        let known = match known.filter(|_| on_reference) {
            Some(known) => known.read_frequencies_of_changes(ranges.changes_of_all_loci(), &genome, &mut ledger)?,
            None => KnownVariantFrequencies::default(),
        };
        let reference = on_reference.then_some(&genome);
        let (min_quality, has_normal) = (self.params.min_quality, self.samples.has_normal());
        let inputs = GenotypingInputs { min_quality, admixture, known: &known, has_normal, reference };
        let mut calls = passes.genotype_loci(&mut ranges, &errors, inputs, &mut ledger)?;
        if let Some(panel) = panel {
            let (k, threads) = (self.params.k, self.resources.threads);
            panel.annotate_and_filter_calls(ranges.loci(), reference, k, threads, &mut calls);
        }
        let mut events = build_and_filter_events(calls, &thresholds, &genome, &mut ledger);
        let targets = targets.map(|(option, targets)| {
            let outside = drop_events_outside_targets(&mut events, &targets, option.padding_bp, &mut ledger);
            let (depths, samples) = (counts.target_depths.clone().unwrap_or_default(), self.samples.num_samples());
            (option.padding_bp, TargetsWithDepths::summarise_targets(option, targets, depths, samples, outside))
        });
        if let Some(tracer) = &mut tracer {
            if let Some((padding_bp, finished)) = &targets {
                tracer.record_variants_outside_targets(&finished.targets, *padding_bp);
            }
            tracer.record_calls(ranges.loci(), &events, &genome);
        }
        let targets_and_padding = targets.as_ref().map(|(padding_bp, finished)| (finished, *padding_bp));
        let sample_summaries =
            passes.summarise_tumours(&counts, &events, reference, &errors.slippage, targets_and_padding);
        costs.push(clock.stop("judge"));
        Ok(FinishedCall {
            genome,
            ranges,
            events,
            samples: self.samples.clone(),
            genotype_mismatch_share: estimate_genotype_mismatch_share(&counts),
            own_alleles: counts.tumour_alleles.iter().map(|alleles| alleles.own_alleles).collect(),
            admixture,
            depths: KmerDepths::estimate_depths_from_spectra(&counts.spectra),
            spectra: counts.spectra,
            bases: counts.bases,
            libraries: counts.libraries,
            known_sequences: counts.known_sequences,
            sample_summaries,
            costs,
            errors,
            ledger,
            traces: tracer.map(VariantTracer::into_reports).unwrap_or_default(),
            on_reference,
            targets: targets.map(|(_, finished)| finished),
        })
    }
}

/// The passes over all loci, with the data that they share.
struct GenotypingPasses<'a> {
    params: &'a CallParams,
    samples: &'a SampleNames,
    resources: &'a Resources,
    work_dir: &'a Path,
}

impl GenotypingPasses<'_> {
    /// Makes loci of the contigs and places their recruited reads. Returns the loci, and the sequences to which calls
    /// refer.
    fn open_loci(&self, inputs: LocusInputs<'_>, ledger: &mut Ledger) -> Result<(LocusRanges, Reference), Error> {
        let LocusInputs { genome, contigs, assembled, recruited, recruited_path } = inputs;
        ledger.append_produced_line("recruit", "pairs recruited", recruited.num_pairs);
        let deep = recruited.downsampling_factors.iter().filter(|t| **t != [1, 1]).count() as u64;
        ledger.append_skipped_line("recruit", "contigs so deep that only a sample of their pairs was kept", deep);
        let on_reference = genome.is_some();
        let mut ranges = LocusRanges::open_and_place_reads(
            recruited,
            recruited_path,
            contigs,
            self.resources.allocatable_memory_bytes() / 2,
            self.work_dir,
            self.resources.threads,
            // The normal's reads suffice to assemble its alleles. All reads are placed then.
            |sample| on_reference || sample == NORMAL_SAMPLE,
        )?;
        let genome = match genome {
            Some(genome) => {
                self.split_germline_changes(&mut ranges, &genome)?;
                genome
            }
            None => self.assemble_normals(assembled, &mut ranges)?,
        };
        let rivals = locus::find_and_set_rival_contigs(ranges.loci_mut());
        ledger.append_skipped_line(
            "judge",
            "overlapping contigs beyond the deepest with which reads are compared",
            rivals,
        );
        let crowded =
            ranges.loci().iter().filter(|l| l.has_too_many_changes_for_single_change_haplotypes()).count() as u64;
        let what = "contigs with too many changes to compare reads with each change separately";
        ledger.append_skipped_line("judge", what, crowded);
        Ok((ranges, genome))
    }

    /// In a call without a reference, assembles the normal allele of each contig from the recruited reads of the
    /// normal, and compares the contigs with these alleles. Returns the normal alleles, which replace the reference.
    fn assemble_normals(&self, assembled: &[Contig], ranges: &mut LocusRanges) -> Result<Reference, Error> {
        let (n, threads) = (assembled.len(), self.resources.threads);
        let mut normals = vec![normal_sequences::NormalSequences::default(); n];
        ranges.for_each_locus_range(|loci, contigs, pairs| {
            let assemble = |(): &mut (), i: usize| {
                let locus = &loci[contigs[i] as usize];
                normal_sequences::assemble_normal_sequences(&locus.contig, &locus.reads, pairs)
            };
            let found = map_in_order(contigs.len(), threads, || (), assemble);
            contigs.iter().zip(found).for_each(|(&c, found)| normals[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        let (genome, hits) = normal_sequences::build_normal_reference_and_hits(&normals);
        let compare = |(): &mut (), c: usize| aligned_contig::align_contig(&assembled[c], &hits[c], &genome);
        ranges.place_reads_on_new_contigs(map_in_order(n, threads, || (), compare))?;
        Ok(genome)
    }

    /// Splits neighbouring changes of each contig into germline variants and somatic changes of the normal's haplotype.
    fn split_germline_changes(&self, ranges: &mut LocusRanges, genome: &Reference) -> Result<(), Error> {
        if !ranges
            .loci()
            .iter()
            .any(|locus| germline_haplotype::may_combine_germline_and_somatic_changes(&locus.contig))
        {
            return Ok(());
        }
        let mut split = vec![None; ranges.loci().len()];
        ranges.for_each_locus_range(|loci, contigs, pairs| {
            let split_one = |(): &mut (), i: usize| {
                let locus = &loci[contigs[i] as usize];
                germline_haplotype::may_combine_germline_and_somatic_changes(&locus.contig)
                    .then(|| germline_haplotype::split_off_germline_changes(locus, pairs, genome))
                    .flatten()
            };
            let found = map_in_order(contigs.len(), self.resources.threads, || (), split_one);
            contigs.iter().zip(found).for_each(|(&c, found)| split[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        for (locus, changes) in ranges.loci_mut().iter_mut().zip(split) {
            if let Some((changes, explanation)) = changes {
                locus.contig.changes = changes;
                locus.contig.explanations.insert(0, explanation);
            }
        }
        Ok(())
    }

    /// Estimates the error rates of the recruited reads.
    fn learn_errors(
        &self,
        ranges: &mut LocusRanges,
        counts: &CountingResult,
        admixture: Admixture,
    ) -> Result<ErrorModel, Error> {
        let (threads, has_normal, n) = (self.resources.threads, self.samples.has_normal(), ranges.loci().len());
        let error_rate = SamplePairLibraryProperties::highest_error_rate(&counts.library_models);
        let mut bases = sequencing_errors::BaseErrorCounts::zero_counts(self.samples.num_samples());
        let mut slips = vec![slippage::ReadCountsByRepeatLength::default(); n];
        let mut homopolymers = ShortHomopolymerReadCounts::default();
        ranges.for_each_locus_range(|loci, contigs, pairs| {
            let tally = |(): &mut (), i: usize| {
                loci[contigs[i] as usize].count_base_and_length_errors(pairs, error_rate, has_normal)
            };
            for (&c, (b, s, h)) in contigs.iter().zip(map_in_order(contigs.len(), threads, || (), tally)) {
                bases.merge_counts(&b);
                homopolymers.merge_counts(&h);
                slips[c as usize] = s;
            }
            Ok::<(), Error>(())
        })?;
        let mut all = slippage::ReadCountsByRepeatLength::default();
        slips.iter().for_each(|s| all.merge_counts(s));
        let mut errors =
            ErrorModel::from_error_counts_and_slippage(&bases, SlippageModel::estimate_slippage_rates(&all));
        errors.short_homopolymers = homopolymers.estimate_length_error_rates();
        errors.measured_error_rate = error_rate;
        errors.tumour_in_normal_ratio = admixture.tumour_in_normal_ratio;
        errors.fragment_ends = SamplePairLibraryProperties::random_or_fixed_ends_by_sample(&counts.library_models);
        Ok(errors)
    }

    /// Merges adjacent substitutions into one change (MNV) if hardly any molecule has only one of them.
    fn join_neighbours(&self, ranges: &mut LocusRanges, errors: &ErrorModel) -> Result<(), Error> {
        let mut weighed = vec![Vec::new(); ranges.loci().len()];
        if !ranges.loci().iter().any(|locus| adjacent_substitutions::has_adjacent_substitutions(&locus.contig)) {
            return Ok(());
        }
        ranges.for_each_locus_range(|loci, contigs, pairs| {
            let weigh = |(): &mut (), i: usize| {
                adjacent_substitutions::count_molecules_of_adjacent_substitutions(
                    contigs[i] as usize,
                    loci,
                    pairs,
                    errors,
                )
            };
            let found = map_in_order(contigs.len(), self.resources.threads, || (), weigh);
            contigs.iter().zip(found).for_each(|(&c, found)| weighed[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        adjacent_substitutions::merge_adjacent_substitutions(ranges.loci_mut(), weighed.into_iter().flatten());
        Ok(())
    }

    /// Genotypes the changes of all loci, filters copies of repeat families and DNA of another species, and lowers
    /// qualities if there is no normal. Returns the calls in the order of the loci.
    fn genotype_loci(
        &self,
        ranges: &mut LocusRanges,
        errors: &ErrorModel,
        inputs: GenotypingInputs<'_>,
        ledger: &mut Ledger,
    ) -> Result<Vec<VariantCall>, Error> {
        let mut calls = vec![Vec::new(); ranges.loci().len()];
        ranges.for_each_locus_range(|loci, contigs, pairs| {
            let judge = |(): &mut (), i: usize| {
                let l = contigs[i] as usize;
                let evidence = loci[l].compute_locus_evidence(loci, pairs, errors);
                loci[l].genotype_changes(l, &evidence, inputs)
            };
            let found = map_in_order(contigs.len(), self.resources.threads, || (), judge);
            contigs.iter().zip(found).for_each(|(&c, found)| calls[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        let mut calls: Vec<VariantCall> = calls.into_iter().flatten().collect();
        repeat_family_copy_filter::filter_changes_of_family_copies(&mut calls, ranges.loci());
        if self.samples.has_normal() {
            other_species_filter::filter_changes_of_other_species(&mut calls, ranges.loci(), ledger);
        } else {
            tumour_only::limit_quality_by_germline_variants(&mut calls, self.params.min_quality);
        }
        Ok(calls)
    }

    /// Summarises the facts about each tumour, the normal and the calls. `targets` are the targets and their padding in
    /// bases.
    fn summarise_tumours(
        &self,
        counts: &CountingResult,
        events: &[Event],
        reference: Option<&Reference>,
        slippage: &SlippageModel,
        targets: Option<(&TargetsWithDepths, usize)>,
    ) -> Vec<SampleSummary> {
        let inputs = TumourSummaryInputs {
            counts,
            events,
            reference,
            callable_bases: estimate_known_bases(counts, self.samples),
            k: self.params.k,
            has_normal: self.samples.has_normal(),
            slippage,
            targets,
            threads: self.resources.threads,
        };
        let tumours = 0..self.samples.tumour_names().len();
        tumours.map(|tumour| SampleSummary::summarise_tumour(inputs, tumour)).collect()
    }
}

/// Builds the events from the calls of all loci, and sets the filter of changes in copies of mobile elements.
fn build_and_filter_events(
    calls: Vec<VariantCall>,
    thresholds: &CallThresholds,
    genome: &Reference,
    ledger: &mut Ledger,
) -> Vec<Event> {
    ledger.append_produced_line("judge", "changes genotyped", calls.len() as u64);
    let mut events = event::build_events(calls, thresholds, genome);
    event::convert_short_junctions_to_alleles(&mut events, genome);
    element_copy_filter::filter_changes_in_element_copies(&mut events);
    ledger.append_produced_line("judge", "events", events.len() as u64);
    events
}

/// Removes the events outside the targets and their padding. Returns their number.
fn drop_events_outside_targets(
    events: &mut Vec<Event>,
    targets: &Targets,
    padding_bp: usize,
    ledger: &mut Ledger,
) -> u64 {
    let all = events.len();
    events.retain(|event| event.is_on_target(targets, padding_bp));
    let outside = (all - events.len()) as u64;
    ledger.append_skipped_line("judge", "calls outside the targets", outside);
    outside
}

/// Estimates the admixture of other DNA in the samples from the k-mer counts of all tumours. DNA of another person is
/// not estimated in libraries with fold-back artefacts, which look like alleles of another person.
fn estimate_admixture(counts: &CountingResult, has_fold_back_artefacts: bool) -> Admixture {
    let foreign = |evidence: &ReferenceFreePairEvidence| {
        evidence.tumour_contamination_and_foreign_site_share().filter(|_| !has_fold_back_artefacts)
    };
    // With several tumours, the largest share counts for all.
    let foreign = counts.pair_evidence.iter().filter_map(foreign).max_by(|a, b| a.0.high.total_cmp(&b.0.high));
    Admixture {
        tumour_in_normal_ratio: counts.tumour_in_normal_ratio,
        foreign_dna: foreign
            .map(|(share, allele_frequency)| ForeignDna { share: [share.low, share.high], allele_frequency }),
    }
}

/// Number of bases known in both samples, as the number of distinct k-mers that are certainly not errors: that of the
/// normal or of the best tumour, whichever is smaller; that of the best tumour without a normal.
fn estimate_known_bases(counts: &CountingResult, samples: &SampleNames) -> u64 {
    let (normal, tumours) = counts.spectra.split_at(TUMOUR_SAMPLE.into());
    let most = |of: &[Vec<u64>]| of.iter().map(|s| count_distinct_solid_kmers(s)).max().unwrap_or(0);
    if samples.has_normal() { most(normal).min(most(tumours)) } else { most(tumours) }
}

/// Share of the sites known in both samples at which the samples have different alleles, for the tumour with the
/// highest share; `None` if the share is normal for one person.
fn estimate_genotype_mismatch_share(counts: &CountingResult) -> Option<f64> {
    let [normal, tumours @ ..] = &counts.spectra[..] else { return None };
    let share = |(&strangers, tumour): (&u64, &Vec<u64>)| {
        let all = count_distinct_solid_kmers(normal).min(count_distinct_solid_kmers(tumour));
        // Each such site shows in the roots on its two sides.
        let share = strangers as f64 / 2.0 / all.max(1) as f64;
        (strangers >= 20 && share > MIN_MISMATCH_SHARE_OF_TWO_PEOPLE).then_some(share)
    };
    counts.genotype_mismatches.iter().zip(tumours).filter_map(share).reduce(f64::max)
}
