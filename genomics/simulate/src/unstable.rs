//! Tandem repeats of another length all over the tumour's genome, as where mismatches are not repaired.

use serde::Serialize;

use crate::error::Result;
use crate::site::Site;
use crate::small::SmallMaker;
use crate::tandem;
use crate::tumour::Placed;

/// How many tandem repeats have another length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct UnstableParams {
    /// Share of the tracts that may be changed.
    pub share: f64,
}

/// Copies and bases of tracts that may be changed: what short reads span.
const COPIES: usize = 5;
const BASES: std::ops::RangeInclusive<usize> = 10..=80;
/// Units by which a tract changes at most.
const UNITS: usize = 3;
/// Fewest bases between a tract and what else changes.
const SPACING: usize = 40;

/// Changes the lengths of tracts; says how many it changed, and of how many.
pub fn place(site: &mut Site<'_, '_>, params: &UnstableParams) -> Result<[usize; 2]> {
    let [mut changed, mut all] = [0; 2];
    if params.share == 0.0 {
        return Ok([0; 2]);
    }
    let maker = SmallMaker::new(site.genome, site.ground);
    for contig in 0..site.genome.seqs.len() {
        let mut tracts = tandem::tracts(&site.genome.seqs[contig]);
        tracts.sort_unstable_by_key(|tract| (tract.start, tract.unit));
        for tract in tracts {
            let bases = tract.end - tract.start;
            if !BASES.contains(&bases) || bases < COPIES * tract.unit {
                continue;
            }
            all += 1;
            if !site.rng.chance(params.share) {
                continue;
            }
            let Some(made) = maker.resize(contig, tract, site.rng, UNITS * tract.unit) else { continue };
            if !site.ground.is_free(made.reserved, SPACING) || !site.tumour.has_room(made.edit.at) {
                continue;
            }
            site.ground.take(made.reserved);
            let clone = site.random_clone();
            let (haplotype, carriers) = site.tumour.carriers(made.edit.at, site.rng);
            site.tumour.small.push(Placed { carriers, ..Placed::new(made.edit, haplotype, clone) });
            changed += 1;
        }
    }
    site.tumour.small.sort_by_key(|placed| placed.variant.at);
    Ok([changed, all])
}
