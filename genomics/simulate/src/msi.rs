//! Simulates microsatellite instability: somatic length changes of tandem repeats all over the genome, as in tumours
//! with deficient mismatch repair.

use serde::Serialize;

use crate::error::Result;
use crate::small_variants::SmallVariantGenerator;
use crate::tandem_repeats;
use crate::tumour::PlacedVariant;
use crate::variant_placer::VariantPlacer;

/// Parameters of microsatellite instability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MsiParams {
    /// Probability that the length of an eligible tandem repeat changes in the tumour, 0 to 1. Repeats of 10 to 80 bp
    /// with at least five units are eligible. A repeat too close to another variant does not change.
    pub share: f64,
}

/// Minimum number of units of a tandem repeat whose length may change.
const MIN_UNITS: usize = 5;
const ELIGIBLE_REPEAT_BP: std::ops::RangeInclusive<usize> = 10..=80;
/// Largest length change, in repeat units.
const MAX_CHANGED_UNITS: usize = 3;
/// Minimum distance between a changed tandem repeat and other variants, bp.
const MIN_SPACING_BP: usize = 40;

/// Changes the lengths of tandem repeats in the tumour. Returns the number of changed tandem repeats, and of all
/// eligible ones.
pub(crate) fn resize_microsatellites(placer: &mut VariantPlacer<'_, '_>, params: &MsiParams) -> Result<[usize; 2]> {
    let [mut changed, mut all] = [0; 2];
    if params.share == 0.0 {
        return Ok([0; 2]);
    }
    let maker = SmallVariantGenerator::with_resizable_repeats_of_genome(placer.genome, placer.occupied);
    for contig in 0..placer.genome.seqs.len() {
        let mut tracts = tandem_repeats::list_tandem_repeats(&placer.genome.seqs[contig]);
        tracts.sort_unstable_by_key(|tract| (tract.start, tract.unit));
        for tract in tracts {
            let bases = tract.end - tract.start;
            if !ELIGIBLE_REPEAT_BP.contains(&bases) || bases < MIN_UNITS * tract.unit {
                continue;
            }
            all += 1;
            if !placer.rng.draw_bernoulli(params.share) {
                continue;
            }
            let Some(made) =
                maker.propose_repeat_length_change(contig, tract, placer.rng, MAX_CHANGED_UNITS * tract.unit)
            else {
                continue;
            };
            if !placer.occupied.can_place_at_span(made.reserved, MIN_SPACING_BP)
                || !placer.tumour.has_haplotype_for_variant_at(made.edit.position)
            {
                continue;
            }
            placer.occupied.occupy_span(made.reserved);
            let clone = placer.draw_clone();
            let (haplotype, carriers) = placer.tumour.draw_haplotype_and_copies(made.edit.position, placer.rng);
            placer
                .tumour
                .small
                .push(PlacedVariant { carriers, ..PlacedVariant::on_all_copies(made.edit, haplotype, clone) });
            changed += 1;
        }
    }
    placer.tumour.small.sort_by_key(|placed| placed.variant.position);
    Ok([changed, all])
}
