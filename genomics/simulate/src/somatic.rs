//! Places the tumour's somatic variants, each on a random haplotype and clone.

use serde::Serialize;

use crate::error::Result;
use crate::genome::Genome;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::small_variants::{self, SmallVariantGenerator};
use crate::tumour::PlacedVariant;
use crate::variant::{ContigSpan, SequenceEdit, StructuralVariant};
use crate::variant_placer::{MAX_PLACEMENT_TRIES, VariantPlacer, no_space_error};

/// Numbers of somatic variants of each class, their spacing, and the subclones.
#[derive(Debug, Clone, Serialize)]
pub struct SomaticParams {
    /// Number of single-nucleotide variants.
    pub snvs: usize,
    /// Number of insertions and deletions of 1–50 bp.
    pub indels: usize,
    /// Number of structural variants of 50 bp and more; the classes are used in turn.
    pub svs: usize,
    /// Share of the indels that change the length of a tandem repeat by whole units.
    pub tandem_share: f64,
    /// Minimum distance between two variants or breakpoints, bp.
    pub spacing: usize,
    /// Maximum length of a structural variant, bp. It is also at most a quarter of the longest contig.
    pub largest_sv: usize,
    /// Share of the tumour cells that belong to each subclone; the sum is at most 1. A variant is assigned to the
    /// founder clone or to one of the subclones, each with the same probability.
    pub subclones: Vec<f64>,
}

impl Default for SomaticParams {
    fn default() -> Self {
        SomaticParams {
            snvs: 300,
            indels: 150,
            svs: 40,
            tandem_share: 1.0 / 3.0,
            spacing: 500,
            largest_sv: 1_000_000,
            subclones: vec![],
        }
    }
}

/// Minimum number of target bases per variant, in multiples of the spacing. With a higher value fewer variants are
/// placed in capture targets (chosen so that random placement succeeds).
const SPACINGS_PER_VARIANT: f64 = 2.5;

impl SomaticParams {
    /// Returns the parameters with the numbers of SNVs, indels and structural variants reduced by the same factor, so
    /// that the variants fit into capture targets of `bases` bp; unchanged if they fit already.
    pub(crate) fn reduce_to_fit_targets(&self, bases: usize) -> SomaticParams {
        let all = (self.snvs + self.indels + self.svs) as f64;
        let room = bases as f64 / (SPACINGS_PER_VARIANT * self.spacing as f64);
        let part = |n: usize| (n as f64 * (room / all.max(1.0)).min(1.0)).ceil() as usize;
        SomaticParams { snvs: part(self.snvs), indels: part(self.indels), svs: part(self.svs), ..self.clone() }
    }
}

/// Maximum length of an indel, bp.
pub(crate) const MAX_INDEL_BP: usize = 50;
/// Minimum length of a structural variant, bp.
pub(crate) const MIN_SV_BP: usize = 50;
/// Maximum length of inserted novel sequence, bp.
const MAX_INSERTED_BP: usize = 10_000;
/// Places all somatic variants that the parameters specify.
///
/// # Errors
/// Returns an error if the genome has no space for all of them.
pub(crate) fn place_somatic_variants(placer: &mut VariantPlacer, params: &SomaticParams) -> Result<()> {
    place_structural_variants(placer, params)?;
    place_small_variants(placer, params)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SvClass {
    Deletion,
    Insertion,
    Duplication,
    Inversion,
    Translocation,
    Copy,
}

fn place_structural_variants(placer: &mut VariantPlacer, params: &SomaticParams) -> Result<()> {
    use SvClass::{Copy, Deletion, Duplication, Insertion, Inversion, Translocation};
    let genome = placer.genome;
    let longest_contig = genome.longest_contig_bp();
    let largest = params.largest_sv.min(longest_contig / 4).max(MIN_SV_BP);
    let mut classes = vec![Deletion, Insertion, Duplication, Inversion, Copy];
    // A translocation exchanges the ends of two contigs of one haplotype.
    let contigs_of =
        |haplotype| (0..genome.seqs.len()).filter(|&c| !placer.tumour.founder_lacks_haplotype(c, haplotype)).count();
    if (0..2).any(|haplotype| contigs_of(haplotype) > 1) {
        classes.push(Translocation);
    }
    let size = |class: SvClass, rng: &mut Rng| match class {
        Insertion => rng.draw_log_uniform(MIN_SV_BP, largest.min(MAX_INSERTED_BP)),
        Translocation => 0,
        _ => rng.draw_log_uniform(MIN_SV_BP, largest),
    };
    let mut wanted: Vec<(usize, SvClass)> =
        (0..params.svs).map(|i| classes[i % classes.len()]).map(|class| (size(class, placer.rng), class)).collect();
    // Place the largest variants first, while there is space for them.
    wanted.sort_by_key(|&(size, _)| std::cmp::Reverse(size));
    for (placed, (mut size, class)) in wanted.into_iter().enumerate() {
        let clone = placer.draw_clone();
        let mut tries = 0;
        loop {
            let variant = propose_structural(genome, placer.occupied, placer.rng, class, size);
            if variant.is_some_and(|v| placer.place_structural_variant(clone, v)) {
                break;
            }
            tries += 1;
            if tries == MAX_PLACEMENT_TRIES {
                return Err(no_space_error("structural variants", placed, params.svs));
            }
            // Many attempts failed: the genome has no space for another large variant, so try a smaller one.
            if tries % 50 == 0 && size > MIN_SV_BP {
                size = (size / 2).max(MIN_SV_BP);
            }
        }
    }
    placer.tumour.structural.sort_by_key(|p| p.variant.breakpoints()[0]);
    Ok(())
}

/// Proposes a structural variant of a class and size at a random position, which may be occupied; `None` if it does not
/// fit on its contig, or if the second position of a translocation or copy is not suitable.
fn propose_structural(
    genome: &Genome,
    ground: &OccupiedRegions,
    rng: &mut Rng,
    class: SvClass,
    size: usize,
) -> Option<StructuralVariant> {
    let at = ground.draw_allowed_position(rng);
    let span = ContigSpan { contig: at.contig, start: at.pos, end: at.pos + size };
    let seq = &genome.seqs[at.contig];
    if span.end > seq.len() {
        return None;
    }
    Some(match class {
        SvClass::Deletion => StructuralVariant::Deletion(left_align_span(span, seq)),
        SvClass::Duplication => StructuralVariant::Duplication(left_align_span(span, seq)),
        SvClass::Inversion => StructuralVariant::Inversion(span),
        SvClass::Insertion => {
            let novel = (0..size).map(|_| rng.draw_base(0.42)).collect();
            let mut edit = SequenceEdit { position: at, removed: vec![], added: novel };
            edit.left_align(seq);
            StructuralVariant::Insertion(edit.position, edit.added)
        }
        SvClass::Translocation => {
            let other = ground.draw_allowed_position(rng);
            if other.contig == at.contig {
                return None;
            }
            let mut cuts = [at, other];
            cuts.sort();
            StructuralVariant::Translocation { cuts, inverted: rng.draw_bernoulli(0.5) }
        }
        SvClass::Copy => {
            let to = ground.draw_allowed_position(rng);
            let apart = to.contig != at.contig || to.pos + 5000 < span.start || to.pos > span.end + 5000;
            if !apart {
                return None;
            }
            StructuralVariant::Copy { from: span, to, inverted: rng.draw_bernoulli(0.5) }
        }
    })
}

/// Left-aligns the span of a deletion or duplication: shifts it to the left while the resulting sequence stays the
/// same.
pub(crate) fn left_align_span(mut span: ContigSpan, seq: &[u8]) -> ContigSpan {
    while span.start > 0 && seq[span.start - 1] == seq[span.end - 1] {
        span.start -= 1;
        span.end -= 1;
    }
    span
}

fn place_small_variants(placer: &mut VariantPlacer, params: &SomaticParams) -> Result<()> {
    let maker = SmallVariantGenerator::with_resizable_repeats_of_genome(placer.genome, placer.occupied);
    let in_tandem = (params.indels as f64 * params.tandem_share).round() as usize;
    for i in 0..params.snvs + params.indels {
        let kind = match i {
            _ if i < params.snvs => small_variants::SmallVariantKind::Snv,
            _ if i < params.snvs + in_tandem => small_variants::SmallVariantKind::RepeatLengthChange,
            _ => small_variants::SmallVariantKind::Indel,
        };
        let made = (0..MAX_PLACEMENT_TRIES)
            .find_map(|_| {
                let made = maker.propose_random_variant(placer.occupied, placer.rng, kind, MAX_INDEL_BP)?;
                placer.can_place_small_variant(&made).then_some(made)
            })
            .ok_or_else(|| {
                let what = if i < params.snvs { "SNVs" } else { "indels" };
                no_space_error(what, placer.tumour.small.len(), params.snvs + params.indels)
            })?;
        placer.occupied.occupy_span(made.reserved);
        let clone = placer.draw_clone();
        let (haplotype, carriers) = placer.tumour.draw_haplotype_and_copies(made.edit.position, placer.rng);
        placer
            .tumour
            .small
            .push(PlacedVariant { carriers, ..PlacedVariant::on_all_copies(made.edit, haplotype, clone) });
    }
    placer.tumour.small.sort_by_key(|p| p.variant.position);
    Ok(())
}
