//! A locus: a tumour contig with its changes, the reads of all samples on it, and the calls made from them.

use std::borrow::Cow;

use genuma_reads::fasta::Reference;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};

use crate::aligned_contig::AlignedContig;
use crate::change::{self, Change, is_small_variant};
use crate::discordant_mates;
use crate::divergence;
use crate::evidence::LocusEvidence;
use crate::fold_back;
use crate::genotype::{self, Admixture, ErrorFrequency, Filter, GenotypingResult};
use crate::haplotype::{self, Haplotype};
use crate::known_variants::{KnownVariantFrequencies, PopulationFrequency};
use crate::linked_changes::{self, ChangeWithVotes, LinkageEvidence};
use crate::molecule_vote::{MoleculeVote, TwoChangeMoleculeCounts};
use crate::normal_sequences;
use crate::packed::OwnedRead;
use crate::read_placement::PlacedRead;
use crate::recruit::RecruitedPair;
use crate::repeat_length_change;
use crate::sequencing_errors::{self, ErrorModel, ReadOnContig};
use crate::short_homopolymer::ShortHomopolymerReadCounts;
use crate::slippage::{self, RepeatRange, SlippageRate};

/// A change of a contig with its genotype, filters and annotations.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantCall {
    /// The difference between the tumour's allele and the genome.
    pub change: Change,
    /// Whether errors that look like this change are common or rare.
    pub error_frequency: ErrorFrequency,
    /// Quality, filters and support.
    pub genotype: GenotypingResult,
    /// Population frequency of the change.
    pub population_frequency: PopulationFrequency,
    /// Number of normals in the panel that have the change; `None` without a panel, or if it does not apply to the
    /// change.
    pub panel_normals: Option<u32>,
    /// Whether the change may be a fold-back artefact, according to the sequence of the contig.
    pub is_fold_back: bool,
    /// Index of the locus to which the change belongs.
    pub locus: usize,
    /// Index of the change among the changes of the contig.
    pub change_index: usize,
    /// Representative pairs of the molecules of all samples that support the tumour allele, ascending, as indices into
    /// the pairs of the locus range.
    pub supporting_pairs: Vec<u32>,
    /// Small variants that pass, are later in the contig's list of changes and are on the same haplotype; empty if this
    /// change is not a small variant that passes.
    pub phased_changes: Vec<Change>,
}

/// A contig with the reads of all samples that are placed on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locus {
    /// The contig aligned with the genome.
    pub contig: AlignedContig,
    /// The reads placed on the contig, sorted by pair and mate; empty unless the locus range is in memory.
    pub reads: Vec<PlacedRead>,
    /// Number of reads placed on the contig.
    pub num_reads: usize,
    /// Number of pairs of the normal, and of all tumours together, that have a read placed on the contig.
    pub num_pairs: [usize; 2],
    /// Downsampling factors of the normal and of the deepest tumour: a factor of 4 means that one pair in four was
    /// kept.
    pub downsampling_factors: [u32; 2],
    /// Indices of the loci that are rivals: other loci with changes near those of this one; of many those with the most
    /// reads.
    pub rivals: Vec<usize>,
}

/// What is the same for all loci when they are genotyped.
#[derive(Debug, Clone, Copy)]
pub struct GenotypingInputs<'a> {
    /// Minimum somatic quality (Phred) of a passing call.
    pub min_quality: f64,
    /// Tumour cells in the normal, and DNA of another person in the tumour.
    pub admixture: Admixture,
    /// Population frequencies of the changes.
    pub known: &'a KnownVariantFrequencies,
    /// Whether the call has a normal; otherwise the reference takes its place.
    pub has_normal: bool,
    /// The reference to which the changes refer; `None` if these are sequences of the normal.
    pub reference: Option<&'a Reference>,
}

/// Votes of the molecules on one change of the locus.
struct ChangeVotes {
    normal: Vec<MoleculeVote>,
    /// For each tumour the votes of its molecules on the change (natural log-odds).
    tumours: Vec<Vec<MoleculeVote>>,
    /// Votes of all tumours, sorted by pair.
    pooled: Vec<MoleculeVote>,
    /// Rate at which reads of another allele show the change because of slippage of a repeat.
    slippage_rate: SlippageRate,
}

impl ChangeVotes {
    /// Votes on change number `f` of the contig.
    fn from_evidence(evidence: &LocusEvidence<'_>, f: usize) -> ChangeVotes {
        let (mut votes, slippage_rate) = evidence.votes_and_slippage_rate(f);
        let tumours = votes.split_off(TUMOUR_SAMPLE.into());
        let pooled = genotype::pool_votes_of_samples(&tumours).into_owned();
        ChangeVotes { normal: votes.concat(), tumours, pooled, slippage_rate }
    }
}

/// Maximum distance in bases between the changes of two loci that are rivals.
const MAX_RIVAL_DISTANCE_BP: usize = 100;
/// Maximum number of rivals of a locus. The rivals with the most reads are kept.
const MAX_RIVALS: usize = 8;

/// Finds the rivals of all loci. Returns how many rivals were left out because their locus has too many.
pub fn find_and_set_rival_contigs(loci: &mut [Locus]) -> u64 {
    let mut left_out = 0;
    let mut places: Vec<((usize, usize), usize)> = (0..)
        .zip(loci.iter())
        .flat_map(|(l, locus)| locus.positions_of_change_ends().into_iter().map(move |place| (place, l)))
        .collect();
    places.sort_unstable();
    let found: Vec<Vec<usize>> = (0..loci.len())
        .map(|l| {
            let mut near: Vec<usize> = Vec::new();
            for (chrom, pos) in loci[l].positions_of_change_ends() {
                let from = places.partition_point(|p| p.0 < (chrom, pos.saturating_sub(MAX_RIVAL_DISTANCE_BP)));
                let within = places[from..].iter().take_while(|p| p.0 <= (chrom, pos + MAX_RIVAL_DISTANCE_BP));
                near.extend(within.map(|p| p.1).filter(|&other| other != l));
            }
            near.sort_unstable();
            near.dedup();
            near.sort_by_key(|&other| (std::cmp::Reverse(loci[other].contig.num_reads), other));
            left_out += near.len().saturating_sub(MAX_RIVALS) as u64;
            near.truncate(MAX_RIVALS);
            near
        })
        .collect();
    for (locus, rivals) in loci.iter_mut().zip(found) {
        locus.rivals = rivals;
    }
    left_out
}

impl Locus {
    /// Creates a locus without reads, with the given downsampling factors.
    pub fn from_contig_without_reads(contig: AlignedContig, downsampling_factors: [u32; 2]) -> Locus {
        Locus { contig, reads: Vec::new(), num_reads: 0, num_pairs: [0; 2], downsampling_factors, rivals: Vec::new() }
    }

    /// Stores the reads placed on the contig. `pairs` are the pairs to which the reads belong.
    pub fn set_placed_reads(&mut self, placed_reads: Vec<PlacedRead>, pairs: &[RecruitedPair]) {
        self.num_reads = placed_reads.len();
        self.num_pairs = [0; 2];
        for mates in placed_reads.chunk_by(|a, b| a.pair == b.pair) {
            self.num_pairs[usize::from(pairs[mates[0].pair as usize].sample != NORMAL_SAMPLE)] += 1;
        }
        self.reads = placed_reads;
    }

    /// Whether the contig has so many small changes that no haplotypes with only one of them are made
    /// ([`haplotype::MAX_CHANGES_FOR_SINGLE_CHANGE_HAPLOTYPES`]).
    pub(crate) fn has_too_many_changes_for_single_change_haplotypes(&self) -> bool {
        let small = |f: &&crate::aligned_contig::ContigChange| matches!(f.change, Change::Allele { .. });
        self.contig.changes.iter().filter(small).count() > haplotype::MAX_CHANGES_FOR_SINGLE_CHANGE_HAPLOTYPES
    }

    /// For each change of the contig its breakpoints or, for a small change, its first position (see
    /// [`change::positions_of_change_ends`]): index of the sequence and position.
    fn positions_of_change_ends(&self) -> Vec<(usize, usize)> {
        self.contig.changes.iter().flat_map(|f| change::positions_of_change_ends(&f.change)).collect()
    }

    /// Computes the evidence of all reads of the locus. They are compared with the haplotypes of this locus and of its
    /// rivals among `loci`, and with both haplotypes of a heterozygous normal.
    pub fn compute_locus_evidence<'a>(
        &'a self,
        loci: &[Locus],
        pairs: &'a [RecruitedPair],
        errors: &'a ErrorModel,
    ) -> LocusEvidence<'a> {
        let mut haplotypes = self.haplotypes_of_contig_and_rivals(loci);
        for of_normal in self.haplotypes_of_heterozygous_normal(pairs) {
            if haplotypes.iter().all(|known| known.seq != of_normal.seq) {
                haplotypes.push(of_normal);
            }
        }
        LocusEvidence::from_placed_reads(&self.contig, haplotypes.into(), &self.reads, pairs, errors)
    }

    /// The haplotypes that reads of the normal show if it is heterozygous and the contig's changes are small.
    fn haplotypes_of_heterozygous_normal(&self, pairs: &[RecruitedPair]) -> Vec<Haplotype> {
        let changes = &self.contig.changes;
        if changes.is_empty() || !changes.iter().all(|f| matches!(f.change, Change::Allele { .. })) {
            return Vec::new();
        }
        let found = normal_sequences::assemble_heterozygous_haplotypes(&self.contig, &self.reads, pairs);
        found.map_or(Vec::new(), |(range, haplotypes)| {
            let of_bases = |bases: &Vec<u8>| haplotype::haplotype_of_normal(&self.contig, &range, bases);
            haplotypes.iter().map(of_bases).collect()
        })
    }

    /// The haplotypes with which the reads of the locus are compared: those of its contig and of its rivals among
    /// `loci`.
    pub fn haplotypes_of_contig_and_rivals(&self, loci: &[Locus]) -> Vec<Haplotype> {
        let mut haplotypes = haplotype::haplotypes_of_contig(&self.contig);
        let rivals = self.rivals.iter().map(|&r| &loci[r].contig);
        haplotypes.extend(rivals.filter_map(|rival| haplotype::haplotype_of_rival_contig(&self.contig, rival)));
        haplotypes
    }

    /// All reads of the locus with the number of their sample, oriented like the contig.
    fn oriented_reads<'a>(
        &'a self,
        pairs: &'a [RecruitedPair],
    ) -> impl Iterator<Item = (&'a PlacedRead, u8, Cow<'a, OwnedRead>)> {
        self.reads.iter().map(|r| (r, pairs[r.pair as usize].sample, r.oriented_read(pairs)))
    }

    /// Counts errors of the reads: wrong bases away from changes, and wrong lengths of repeats and short homopolymers
    /// away from changes. The lengths are counted in the normal, or in the tumours if there is no normal. `error_rate`
    /// is the measured error rate, as in [`sequencing_errors::BaseErrorCounts::count_wrong_bases`].
    pub fn count_base_and_length_errors(
        &self,
        pairs: &[RecruitedPair],
        error_rate: Option<f64>,
        has_normal: bool,
    ) -> (sequencing_errors::BaseErrorCounts, slippage::ReadCountsByRepeatLength, ShortHomopolymerReadCounts) {
        let seq = &self.contig.seq;
        let mut changed = vec![false; seq.len()];
        for contig_change in &self.contig.changes {
            changed[contig_change.contig_range.start.saturating_sub(1)
                ..(contig_change.contig_range.end + 1).min(seq.len())]
                .fill(true);
        }
        let reads: Vec<(&PlacedRead, u8, Cow<'_, OwnedRead>)> = self.oriented_reads(pairs).collect();
        let on: Vec<ReadOnContig<'_>> = reads
            .iter()
            .map(|(r, sample, read)| ReadOnContig { sample: *sample, is_f1r2: r.is_f1r2(), start: r.offsets[0], read })
            .collect();
        let mut slips = slippage::ReadCountsByRepeatLength::default();
        let normal_lengths = |repeat: &RepeatRange, max_reads: usize| -> Vec<usize> {
            let covers = |r: &PlacedRead, read: &OwnedRead| {
                r.offsets[0] < repeat.start as i32 && r.offsets[0] + read.seq.len() as i32 > repeat.end as i32
            };
            reads
                .iter()
                .filter(|(r, sample, read)| (*sample == NORMAL_SAMPLE) == has_normal && covers(r, read))
                .take(max_reads)
                .filter_map(|(r, _, read)| repeat.length_in_read(seq, &read.seq, &r.offsets))
                .collect()
        };
        for repeat in RepeatRange::find_countable_repeats(seq) {
            if changed[repeat.start.saturating_sub(1)..(repeat.end + 1).min(seq.len())].contains(&true) {
                continue;
            }
            slips.count_repeat_reads(repeat.unit, repeat.length_bp(), &normal_lengths(&repeat, usize::MAX));
        }
        let mut homopolymers = ShortHomopolymerReadCounts::default();
        for homopolymer in ShortHomopolymerReadCounts::choose_homopolymers_to_count(seq, &changed) {
            let max_reads = slippage::SLIPPAGE_MODEL_PARAMS.max_reads_per_short_homopolymer;
            homopolymers.count_reads_of_homopolymer(homopolymer.length_bp(), &normal_lengths(&homopolymer, max_reads));
        }
        (sequencing_errors::BaseErrorCounts::count_wrong_bases(seq, &changed, &on, error_rate), slips, homopolymers)
    }

    /// Genotypes the contig's changes. `number` is the index of the locus.
    pub fn genotype_changes(
        &self,
        number: usize,
        evidence: &LocusEvidence<'_>,
        inputs: GenotypingInputs<'_>,
    ) -> Vec<VariantCall> {
        let GenotypingInputs { min_quality, admixture, known, has_normal, reference } = inputs;
        let votes: Vec<ChangeVotes> =
            (0..self.contig.changes.len()).map(|f| ChangeVotes::from_evidence(evidence, f)).collect();
        let linkage = self.compute_linkage_evidence(&votes, admixture);
        let are_clustered = linked_changes::are_changes_clustered(&self.contig);
        let normal_votes = votes.iter().map(|own| &own.normal[..]);
        let is_divergent = divergence::is_divergent_contig(&self.contig, normal_votes, are_clustered)
            && !linked_changes::is_somatic_cluster(&linkage);
        let fold_backs = fold_back::flag_fold_back_changes(&self.contig);
        let judge_one = |(f, contig_change): (usize, &crate::aligned_contig::ContigChange)| {
            let ChangeVotes { normal, tumours, pooled: tumour, slippage_rate } = &votes[f];
            let population_frequency = known.frequency_of_change(&contig_change.change);
            let params = genotype::GenotypingParams {
                population_frequency,
                error_frequency: evidence.error_frequency_of_change(f),
                slippage_rate: *slippage_rate,
                num_molecules: evidence.count_covering_molecules(f),
                min_quality,
                min_molecules: evidence.min_call_molecules_common_error(),
                mapq: contig_change.mapq,
                error_probability: evidence.error_probability_of_change(f),
                admixture,
                has_fixed_fragment_ends: evidence.has_tumour_with_fixed_fragment_ends(),
                has_normal,
                is_small_variant: is_small_variant(&contig_change.change),
                orientation_with_phasing_errors: repeat_length_change::orientation_with_phasing_errors(&self.contig, f),
                is_linked: linkage[f].is_linked,
                haplotype_log_ratio: linkage[f].haplotype_log_ratio,
                cluster_log_odds: linkage[f].cluster_log_odds,
                ..genotype::GenotypingParams::default()
            };
            let mut genotype = genotype::genotype_change(normal, tumours, params);
            if is_divergent && is_small_variant(&contig_change.change) {
                genotype.filters.insert(Filter::Divergent);
            }
            let both = normal.iter().chain(tumour);
            let mut supporting: Vec<u32> = both.filter(|v| v.supports_tumour_allele()).map(|v| v.pair).collect();
            supporting.sort_unstable();
            let (change, kind) = (contig_change.change.clone(), params.error_frequency);
            let (locus, in_phase) = (number, Vec::new());
            VariantCall {
                change,
                error_frequency: kind,
                genotype,
                is_fold_back: fold_backs[f],
                locus,
                change_index: f,
                population_frequency,
                panel_normals: None,
                supporting_pairs: supporting,
                phased_changes: in_phase,
            }
        };
        let mut calls: Vec<VariantCall> = self.contig.changes.iter().enumerate().map(judge_one).collect();
        self.filter_paralog(&mut calls, &votes, admixture);
        record_phase(&mut calls, &votes);
        if let Some(genome) = reference {
            for (call, own) in calls.iter_mut().zip(&votes) {
                let of_all_samples = own.normal.iter().chain(own.tumours.iter().flatten());
                let (change, genotype, pairs) = (&call.change, &mut call.genotype, evidence.pairs());
                discordant_mates::filter_change_with_discordant_mates(change, genotype, of_all_samples, pairs, genome);
            }
        }
        calls
    }

    /// The linkage of each change, from the votes on all changes.
    fn compute_linkage_evidence(&self, votes: &[ChangeVotes], admixture: Admixture) -> Vec<LinkageEvidence> {
        let changes: Vec<ChangeWithVotes<'_>> = self
            .contig
            .changes
            .iter()
            .zip(votes)
            .map(|(found, own)| ChangeWithVotes {
                change: &found.change,
                contig_range: &found.contig_range,
                normal: &own.normal,
                tumours: &own.tumours,
                pooled: &own.pooled,
            })
            .collect();
        linked_changes::compute_linkage_evidence(&changes, &self.contig.assembled, admixture.tumour_in_normal_ratio)
    }

    /// If the contig comes from a paralog, adds a filter to the calls of its small changes and of its unaligned ends.
    /// `votes` has the votes on each call.
    fn filter_paralog(&self, calls: &mut [VariantCall], votes: &[ChangeVotes], admixture: Admixture) {
        let genotyped = calls.iter().zip(votes).map(|(call, votes)| divergence::ChangeGenotypedInNormal {
            change: &call.change,
            is_germline: call.genotype.filters.contains(&Filter::Germline),
            normal_votes: &votes.normal,
        });
        let normal_has_tumour = admixture.tumour_in_normal_ratio > 0.0;
        if divergence::is_contig_of_paralog(&genotyped.collect::<Vec<_>>(), normal_has_tumour)
            || divergence::has_end_from_diverged_array(&self.contig)
        {
            let is_of_paralog = |change: &Change| is_small_variant(change) || matches!(change, Change::Novel { .. });
            for call in calls.iter_mut().filter(|call| is_of_paralog(&call.change)) {
                call.genotype.filters.insert(Filter::Divergent);
            }
        }
    }
}

/// Adds the filter `divergent` to the small variants among the calls of a contig from another locus.
pub(crate) fn filter_small_variants_as_divergent(own: &mut [VariantCall]) {
    for call in own.iter_mut().filter(|call| is_small_variant(&call.change)) {
        call.genotype.filters.insert(Filter::Divergent);
    }
}

/// Sets [`VariantCall::phased_changes`] of each small change that passes: the later small changes that pass and are on
/// the same haplotype, according to the tumours' votes.
fn record_phase(calls: &mut [VariantCall], votes: &[ChangeVotes]) {
    let fit = |c: &VariantCall| c.genotype.filters.is_empty() && is_small_variant(&c.change);
    for a in 0..calls.len() {
        let others = (a + 1..calls.len()).filter(|&b| fit(&calls[a]) && fit(&calls[b]));
        let others =
            others.filter(|&b| TwoChangeMoleculeCounts::from_votes(&votes[a].pooled, &votes[b].pooled).is_in_phase());
        calls[a].phased_changes = others.map(|b| calls[b].change.clone()).collect();
    }
}
