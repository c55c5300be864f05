//! Places the patient's germline variants, which both the tumour and the normal sample have.

use serde::Serialize;

use crate::genome::Genome;
use crate::healthy_ploidy::HealthyPloidy;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::small_variants::{SmallVariantGenerator, SmallVariantKind};
use crate::variant::{ContigSpan, SequenceEdit};

/// Numbers and rates of germline variants, and their zygosity and spacing.
#[derive(Debug, Clone, Serialize)]
pub struct GermlineParams {
    /// SNVs per reference base other than N.
    pub snv_rate: f64,
    /// Indels of up to 30 bp per reference base other than N.
    pub indel_rate: f64,
    /// Share of the indels that change the length of a tandem repeat.
    pub tandem_share: f64,
    /// Number of structural variants: deletions and insertions of 50–2000 bp.
    pub svs: usize,
    /// Share of the variants on contigs with two haplotypes that are homozygous, 0 to 1.
    pub homozygous_share: f64,
    /// Minimum distance of a germline variant to any other variant, bp.
    pub gap: usize,
}

impl Default for GermlineParams {
    fn default() -> Self {
        GermlineParams { snv_rate: 1e-3, indel_rate: 1e-4, tandem_share: 0.5, svs: 10, homozygous_share: 0.35, gap: 10 }
    }
}

impl GermlineParams {
    /// Draws which haplotypes have a variant. `there` are the haplotypes that a healthy cell has of the contig; if it
    /// has only one, that one has the variant.
    pub(crate) fn draw_variant_haplotypes(&self, there: [bool; 2], rng: &mut Rng) -> [bool; 2] {
        let mut haplotypes = [true; 2];
        if !rng.draw_bernoulli(self.homozygous_share) {
            haplotypes[rng.draw_below(2)] = false;
        }
        if there == [true; 2] { haplotypes } else { there }
    }
}

/// A germline variant and the haplotypes that have it.
#[derive(Debug, Clone)]
pub(crate) struct GermlineVariant {
    /// The change of the reference sequence.
    pub edit: SequenceEdit,
    /// For each of the two haplotypes: whether it has the variant.
    pub haplotypes: [bool; 2],
}

const MAX_INDEL_BP: usize = 30;
const SV_BP: (usize, usize) = (50, 2000);
const MAX_TRIES_PER_VARIANT: usize = 200;

/// Draws germline variants and places them at free positions of `occupied`. A variant for which no free position is
/// found is left out.
pub(crate) fn place_germline_variants(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    params: &GermlineParams,
    occupied: &mut OccupiedRegions,
    rng: &mut Rng,
) -> Vec<GermlineVariant> {
    let maker = SmallVariantGenerator::with_resizable_repeats_of_genome(genome, occupied);
    let known = genome.num_acgt_bases() as f64;
    let (snvs, indels) = ((known * params.snv_rate) as usize, (known * params.indel_rate) as usize);
    let mut found = vec![];
    for i in 0..params.svs + indels + snvs {
        let made = (0..MAX_TRIES_PER_VARIANT).find_map(|_| {
            let made = if i < params.svs {
                propose_germline_sv(genome, occupied, rng)
            } else if i >= params.svs + indels {
                maker.propose_random_variant(occupied, rng, SmallVariantKind::Snv, 1).map(|m| (m.edit, m.reserved))
            } else {
                let kind = if rng.draw_bernoulli(params.tandem_share) {
                    SmallVariantKind::RepeatLengthChange
                } else {
                    SmallVariantKind::Indel
                };
                maker.propose_random_variant(occupied, rng, kind, MAX_INDEL_BP).map(|m| (m.edit, m.reserved))
            };
            made.filter(|(_, reserved)| occupied.can_place_at_span(*reserved, params.gap))
        });
        let Some((edit, reserved)) = made else { continue };
        occupied.occupy_span(reserved);
        let there = ploidy.has_each_haplotype(edit.position.contig);
        found.push(GermlineVariant { edit, haplotypes: params.draw_variant_haplotypes(there, rng) });
    }
    found.sort_by_key(|g| g.edit.position);
    found
}

/// Proposes a deletion, or an insertion of novel sequence, at a random position, together with the span that it
/// occupies.
fn propose_germline_sv(
    genome: &Genome,
    occupied: &OccupiedRegions,
    rng: &mut Rng,
) -> Option<(SequenceEdit, ContigSpan)> {
    let at = occupied.draw_allowed_position(rng);
    let seq = &genome.seqs[at.contig];
    let length = rng.draw_log_uniform(SV_BP.0, SV_BP.1.min(seq.len() / 10).max(SV_BP.0));
    if at.pos + length >= seq.len() {
        return None;
    }
    let mut edit = if rng.draw_bernoulli(0.5) {
        SequenceEdit { position: at, removed: seq[at.pos..at.pos + length].to_vec(), added: vec![] }
    } else {
        SequenceEdit { position: at, removed: vec![], added: (0..length).map(|_| rng.draw_base(0.42)).collect() }
    };
    edit.left_align(seq);
    let reserved = ContigSpan {
        contig: at.contig,
        start: edit.position.pos.saturating_sub(1),
        end: at.pos.max(edit.reference_end()) + 1,
    };
    Some((edit, reserved))
}
