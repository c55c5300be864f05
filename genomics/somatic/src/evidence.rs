//! Evidence of the reads of one locus for each change of its contig, molecule by molecule. Log-odds are natural
//! logarithms.
//!
//! Each read is aligned to each haplotype of the contig ([`crate::haplotype`]), at the offsets that its k-mers
//! indicate: without gaps, unless length errors of short homopolymers are frequent. Its bases and qualities give the
//! likelihood of the read on each haplotype. The best haplotype with a change is compared with the best one without it.
//! For a length change of a tandem repeat, the repeat length that the read shows is used instead. The log-odds of both
//! mates and of all duplicates of a molecule are added, and limited by the probability of errors that the bases do not
//! show.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{Change, is_substitution};
use crate::genotype::{self, ErrorFrequency};
use crate::haplotype::{self, Haplotype};
use crate::molecule::MoleculeAssignment;
use crate::molecule_vote::MoleculeVote;
use crate::read_likelihood::{ReadLikelihoods, change_log_odds_of_read, compute_read_likelihoods};
use crate::read_placement::PlacedRead;
use crate::recruit::RecruitedPair;
use crate::repeat_length_change::{self, RepeatLengthChange};
use crate::sequencing_errors::{self, ErrorModel};
use crate::slippage::SlippageRate;
use crate::unchanged_allele_ends::{
    self, UnchangedAlleleEnds, is_evenly_selected, num_molecules_with_unchanged_allele, select_evenly_spaced,
};
use genuma_reads::NORMAL_SAMPLE;

/// Evidence of reads for all changes of one contig.
#[derive(Debug)]
pub struct LocusEvidence<'a> {
    contig: &'a AlignedContig,
    reads: &'a [PlacedRead],
    pairs: &'a [RecruitedPair],
    errors: &'a ErrorModel,
    haplotypes: Cow<'a, [Haplotype]>,
    /// For each change, the haplotypes of [`haplotype::haplotype_indices_by_differing_change`].
    differing_haplotypes: Vec<Vec<usize>>,
    read_likelihoods: Vec<ReadLikelihoods<'a>>,
    molecules: MoleculeAssignment,
}

/// Whether common or rare errors look like change number `f` of a contig.
pub fn error_frequency_by_kind_of_change(contig: &AlignedContig, f: usize) -> ErrorFrequency {
    match &contig.changes[f].change {
        change if is_substitution(change) => ErrorFrequency::Common,
        Change::Allele { .. } if repeat_length_change::is_length_change_of_slipping_repeat(contig, f) => {
            ErrorFrequency::Common
        }
        _ => ErrorFrequency::Rare,
    }
}

impl<'a> LocusEvidence<'a> {
    /// Computes the likelihood of each read on each of the `haplotypes`. The first haplotype is the contig itself.
    pub fn from_placed_reads(
        contig: &'a AlignedContig,
        haplotypes: Cow<'a, [Haplotype]>,
        placed_reads: &'a [PlacedRead],
        pairs: &'a [RecruitedPair],
        errors: &'a ErrorModel,
    ) -> LocusEvidence<'a> {
        let likelihoods = compute_read_likelihoods(&haplotypes, placed_reads, pairs, errors);
        let mut members: Vec<u32> = placed_reads.iter().map(|r| r.pair).collect();
        members.dedup();
        let molecules = MoleculeAssignment::assign_pairs_to_molecules(&members, pairs, &errors.fragment_ends);
        LocusEvidence {
            contig,
            reads: placed_reads,
            pairs,
            errors,
            differing_haplotypes: haplotype::haplotype_indices_by_differing_change(&haplotypes, contig.changes.len()),
            haplotypes,
            read_likelihoods: likelihoods,
            molecules,
        }
    }

    /// The read pairs of the locus range, to which votes refer.
    pub(crate) fn pairs(&self) -> &'a [RecruitedPair] {
        self.pairs
    }

    /// Assignment of the contig's read pairs to molecules.
    pub fn molecule_assignment(&self) -> &MoleculeAssignment {
        &self.molecules
    }

    /// Log-odds of one read for change `f` over its absence; 0 without evidence.
    fn log_odds(&self, likelihoods: &ReadLikelihoods<'_>, f: usize, length: Option<&RepeatLengthChange<'_>>) -> f64 {
        match length {
            Some(change) => {
                change.length_log_odds_of_read(likelihoods, &self.reads[likelihoods.read_index].offsets, self.errors)
            }
            None => self.change_log_odds_of_read(likelihoods, f).unwrap_or(0.0),
        }
    }

    /// Log-odds of one read for change `f` from its haplotypes; `None` if the read does not cover the change.
    fn change_log_odds_of_read(&self, likelihoods: &ReadLikelihoods<'_>, f: usize) -> Option<f64> {
        change_log_odds_of_read(likelihoods, &self.haplotypes, &self.differing_haplotypes[f], f)
    }

    /// Makes the vote of a read on change `f` from its log-odds; `None` if the read does not cover the change.
    fn vote(&self, likelihoods: &ReadLikelihoods<'_>, f: usize, log_odds: f64) -> Option<MoleculeVote> {
        let (at, placed_read) = (&self.contig.changes[f].contig_range, &self.reads[likelihoods.read_index]);
        // A read that supports the tumour's allele is placed where the contig has it.
        let begin = likelihoods.starts[usize::from(log_odds < 0.0)];
        let len = likelihoods.read.seq.len() as i32;
        let reach = |edge: usize| (edge as i32 - begin).min(len - (edge as i32 - begin));
        let from_end = u16::try_from(reach(at.start).max(reach(at.end))).ok()?;
        let start = (at.start as i32 - begin).clamp(0, len - 1) as usize;
        let end = (at.end as i32 - begin).clamp(start as i32 + 1, len) as usize;
        let mut around: Vec<u8> = likelihoods.read.qual[start..end].to_vec();
        around.sort_unstable();
        Some(MoleculeVote {
            pair: placed_read.pair,
            log_odds,
            forward: placed_read.forward,
            is_f1r2: placed_read.is_f1r2(),
            distance_from_end: from_end,
            quality: around[around.len() / 2],
            duplicates: 0,
            counts_in_fraction: true,
        })
    }

    /// Counts the molecules of the normal, and of the tumours, that cover change `f`, whether they support an allele or
    /// not. A read in a stretch that a junction duplicates may come from either copy; it counts if it covers the
    /// junction in one of them.
    pub fn count_covering_molecules(&self, f: usize) -> [u32; 2] {
        let contig_change = &self.contig.changes[f];
        let at = &contig_change.contig_range;
        let joined = matches!(contig_change.change, Change::Junction { .. });
        let mut heads: [Vec<u32>; 2] = Default::default();
        for likelihoods in &self.read_likelihoods {
            let here = self.change_log_odds_of_read(likelihoods, f).is_some();
            let reaches =
                |begin: &i32| *begin <= at.start as i32 && *begin + likelihoods.read.seq.len() as i32 >= at.end as i32;
            let either = joined && self.reads[likelihoods.read_index].offsets.iter().any(reaches);
            if here && (either || reaches(&likelihoods.start_on_likeliest_haplotype())) {
                let pair = self.reads[likelihoods.read_index].pair;
                heads[usize::from(self.pairs[pair as usize].sample != NORMAL_SAMPLE)]
                    .push(self.molecules.representative_of_pair(pair));
            }
        }
        heads.map(|mut own| {
            own.sort_unstable();
            own.dedup();
            own.len() as u32
        })
    }

    /// Whether common or rare errors look like change number `f` of this contig. Unlike in
    /// [`error_frequency_by_kind_of_change`], length changes of short homopolymers count as common where the reads have
    /// such errors.
    pub fn error_frequency_of_change(&self, f: usize) -> ErrorFrequency {
        match repeat_length_change::short_homopolymer_length_error_rate(self.contig, f, self.errors) {
            Some(_) => ErrorFrequency::Common,
            None => error_frequency_by_kind_of_change(self.contig, f),
        }
    }

    /// Probability that a molecule shows the wrong allele at change `f` although its bases are of good quality.
    pub(crate) fn error_probability_of_change(&self, f: usize) -> f64 {
        match self.error_frequency_of_change(f) {
            ErrorFrequency::Common if is_substitution(&self.contig.changes[f].change) => {
                self.errors.substitution_error_probability()
            }
            ErrorFrequency::Common => self.errors.common_error_probability,
            ErrorFrequency::Rare => {
                sequencing_errors::ERROR_MODEL_PARAMS.rare_error_probability.min(self.errors.common_error_probability)
            }
        }
    }

    /// Minimum number of distinct molecules of a call whose change looks like a common error.
    pub(crate) fn min_call_molecules_common_error(&self) -> usize {
        genotype::min_call_molecules_common_error(self.errors.measured_error_rate)
    }

    /// Whether the fragments of a tumour end at fixed positions, as in amplicon sequencing.
    pub(crate) fn has_tumour_with_fixed_fragment_ends(&self) -> bool {
        sequencing_errors::has_tumour_with_fixed_fragment_ends(&self.errors.fragment_ends)
    }

    /// Votes of the molecules on change `f`: for each sample, sorted by read pair.
    pub fn molecule_votes(&self, f: usize) -> Vec<Vec<MoleculeVote>> {
        self.votes_and_slippage_rate(f).0
    }

    /// Votes of the molecules on change `f`, and the rate at which slippage of a repeat, or a length error of a short
    /// homopolymer, looks like the change; the rate is 0 for other changes.
    pub(crate) fn votes_and_slippage_rate(&self, f: usize) -> (Vec<Vec<MoleculeVote>>, SlippageRate) {
        let length =
            RepeatLengthChange::detect_length_change(self.contig, f, &self.read_likelihoods, self.reads, self.pairs);
        let slips = match &length {
            Some(change) => change.slippage_rate_to_tumour_length(self.errors),
            None => repeat_length_change::short_homopolymer_length_error_rate(self.contig, f, self.errors)
                .unwrap_or_default(),
        };
        let error_probability = self.error_probability_of_change(f);
        let mut votes = vec![Vec::new(); self.errors.num_samples()];
        for likelihoods in &self.read_likelihoods {
            let log_odds = self.log_odds(likelihoods, f, length.as_ref());
            if log_odds != 0.0 {
                let sample = self.pairs[self.reads[likelihoods.read_index].pair as usize].sample;
                votes[usize::from(sample)].extend(self.vote(likelihoods, f, log_odds));
            }
        }
        let contig_change = &self.contig.changes[f];
        // A damaged base and a slip during amplification are in both mates and all duplicates.
        let one = (contig_change.contig_range.len() == 1 && contig_change.right_shift == 0).then(|| {
            [
                contig_change.left_normal[contig_change.contig_range.start],
                self.contig.seq[contig_change.contig_range.start],
            ]
        });
        let by_molecule = |(sample, own): (u8, Vec<MoleculeVote>)| {
            let damaged = |first: bool| {
                one.map_or(error_probability, |to| self.errors.damage_probability(sample, first, to, error_probability))
            };
            let false_support_rates = [false, true].map(|first| damaged(first).max(slips.rate));
            self.combine_by_molecule(own, error_probability, false_support_rates)
        };
        let mut votes: Vec<Vec<MoleculeVote>> = (0..).zip(votes).map(by_molecule).collect();
        if length.is_none() {
            if let Some(stretch) = UnchangedAlleleEnds::ends_of_tandem_duplication(contig_change, self.contig) {
                self.count_unchanged_molecules(&stretch, error_probability, &mut votes);
            } else {
                self.limit_votes_to_one_end(contig_change, &mut votes);
            }
        }
        (votes, slips)
    }

    /// Corrects the allele fraction of long changes. A molecule can show a long allele at either of its two ends, so
    /// too many molecules show it. Votes are excluded from the fraction until the number of counted votes equals that
    /// of molecules that cross one end. For a deletion or junction these are votes for the unchanged allele, for an
    /// insertion votes for the insertion.
    fn limit_votes_to_one_end(&self, f: &ContigChange, votes: &mut [Vec<MoleculeVote>]) {
        let unchanged = unchanged_allele_ends::ends_of_deletion_or_junction(f);
        if unchanged.is_none() && !unchanged_allele_ends::is_long_insertion(f) {
            return;
        }
        let is_of_allele = |vote: &MoleculeVote| match unchanged {
            Some(_) => vote.supports_normal_allele(),
            None => vote.supports_tumour_allele(),
        };
        // For each sample the molecules that cross each end.
        let mut crossing: Vec<[HashSet<u32>; 2]> = vec![Default::default(); votes.len()];
        for likelihoods in &self.read_likelihoods {
            let placed_read = &self.reads[likelihoods.read_index];
            let crossed = match &unchanged {
                Some(ends) => {
                    ends.read_overhangs_at_ends(&likelihoods.read, &placed_read.offsets).map(|beside| beside.is_some())
                }
                None => unchanged_allele_ends::are_insertion_ends_crossed(
                    f,
                    likelihoods.starts[0],
                    likelihoods.read.seq.len(),
                ),
            };
            let sample = usize::from(self.pairs[placed_read.pair as usize].sample);
            for (molecules, _) in crossing[sample].iter_mut().zip(crossed).filter(|(_, crossed)| *crossed) {
                molecules.insert(self.molecules.representative_of_pair(placed_read.pair));
            }
        }
        for (votes, crossing) in votes.iter_mut().zip(&crossing) {
            let own: Vec<u32> = votes.iter().filter(|vote| is_of_allele(vote)).map(|vote| vote.pair).collect();
            let at_end = crossing.each_ref().map(|end| own.iter().filter(|pair| end.contains(*pair)).count());
            let at_any = own.iter().filter(|pair| crossing.iter().any(|end| end.contains(*pair))).count();
            let counted = unchanged_allele_ends::mean_molecules_crossing_one_end(own.len(), at_end, at_any);
            for (i, vote) in votes.iter_mut().filter(|vote| is_of_allele(vote)).enumerate() {
                vote.counts_in_fraction = is_evenly_selected(i, own.len(), counted);
            }
        }
    }

    /// Adds votes for the unchanged allele of a tandem duplication, or, at a junction, removes some, so that their
    /// number equals the number of unchanged molecules that cross the ends of the duplicated stretch. `votes` are those
    /// of each sample.
    fn count_unchanged_molecules(
        &self,
        stretch: &UnchangedAlleleEnds<'_>,
        error_probability: f64,
        votes: &mut [Vec<MoleculeVote>],
    ) {
        let crossing = self.votes_across_ends(stretch, error_probability, votes.len());
        for (votes, crossing) in votes.iter_mut().zip(crossing) {
            let (unchanged, mut others): (Vec<MoleculeVote>, Vec<MoleculeVote>) =
                votes.iter().partition(|v| v.supports_normal_allele());
            let duplicated = others.iter().filter(|v| v.supports_tumour_allele()).count();
            let expected = num_molecules_with_unchanged_allele(crossing.each_ref().map(Vec::len), duplicated);
            let known: Vec<u32> = votes.iter().map(|v| v.pair).collect();
            let mut further: Vec<MoleculeVote> = crossing.concat();
            further.sort_by_key(|vote| (vote.pair, vote.distance_from_end));
            further.dedup_by_key(|vote| vote.pair);
            further.retain(|vote| known.binary_search(&vote.pair).is_err());
            others.extend(select_evenly_spaced(further, expected.saturating_sub(unchanged.len())));
            // On a contig with both copies each such molecule contains the whole stretch. At a junction either end
            // suffices, so that there are twice as many.
            let kept = if stretch.is_junction { select_evenly_spaced(unchanged, expected) } else { unchanged };
            others.extend(kept);
            others.sort_by_key(|vote| vote.pair);
            *votes = others;
        }
    }

    /// For each sample, the molecules that cross each end of a duplicated stretch, as votes for the unchanged allele,
    /// sorted by read pair.
    fn votes_across_ends(
        &self,
        stretch: &UnchangedAlleleEnds<'_>,
        error_probability: f64,
        num_samples: usize,
    ) -> Vec<[Vec<MoleculeVote>; 2]> {
        let mut crossing: Vec<[Vec<MoleculeVote>; 2]> = vec![Default::default(); num_samples];
        for likelihoods in &self.read_likelihoods {
            let placed_read = &self.reads[likelihoods.read_index];
            let crossed = stretch.read_overhangs_at_ends(&likelihoods.read, &placed_read.offsets);
            let sample = usize::from(self.pairs[placed_read.pair as usize].sample);
            for (crossing, beside) in crossing[sample].iter_mut().zip(crossed) {
                let Some(beside) = beside else { continue };
                let mut quality = likelihoods.read.qual.clone();
                quality.sort_unstable();
                crossing.push(MoleculeVote {
                    pair: self.molecules.representative_of_pair(placed_read.pair),
                    log_odds: error_probability.ln(),
                    forward: placed_read.forward,
                    is_f1r2: placed_read.is_f1r2(),
                    distance_from_end: u16::try_from(beside).unwrap_or(u16::MAX),
                    quality: quality[quality.len() / 2],
                    duplicates: 0,
                    counts_in_fraction: true,
                });
            }
        }
        for votes in crossing.iter_mut().flatten() {
            votes.sort_by_key(|vote| (vote.pair, vote.distance_from_end));
            votes.dedup_by_key(|vote| vote.pair);
        }
        crossing
    }

    /// Combines the votes of all reads of each molecule. `error_probability` is the probability that a molecule with
    /// the tumour allele does not show it. `false_support_rates` is the probability that a molecule without the allele
    /// shows it, by orientation of the pair.
    fn combine_by_molecule(
        &self,
        votes: Vec<MoleculeVote>,
        error_probability: f64,
        false_support_rates: [f64; 2],
    ) -> Vec<MoleculeVote> {
        let bounds = false_support_rates.map(|false_support_rates| (error_probability.ln(), -false_support_rates.ln()));
        let bounded = |log_odds: f64, first: bool| {
            let (least, most) = bounds[usize::from(first)];
            log_odds.clamp(least, most)
        };
        let mut votes: Vec<(u32, MoleculeVote)> =
            votes.into_iter().map(|vote| (self.molecules.representative_of_pair(vote.pair), vote)).collect();
        votes.sort_by_key(|(pair, vote)| (*pair, vote.pair));
        let sum = |votes: &[(u32, MoleculeVote)]| {
            let pair = votes[0].0;
            let votes = || votes.iter().map(|(_, vote)| vote);
            let strongest = votes().reduce(|a, b| if b.log_odds.abs() > a.log_odds.abs() { b } else { a })?;
            // The log-odds of a molecule are limited by errors that its bases do not show.
            // docs/model/error_model.md (6)
            let log_odds: f64 = votes().map(|v| bounded(v.log_odds, v.is_f1r2)).sum();
            let duplicates = votes().zip(votes().skip(1)).filter(|(a, b)| a.pair != b.pair).count() as u16;
            let log_odds = bounded(log_odds, strongest.is_f1r2);
            Some(MoleculeVote { pair, log_odds, duplicates, ..*strongest })
        };
        votes.chunk_by(|a, b| a.0 == b.0).filter_map(sum).collect()
    }
}
