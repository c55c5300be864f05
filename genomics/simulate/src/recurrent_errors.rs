//! Draws recurrent errors: sites at which every library shows the same wrong base. They depend on the genome only, not
//! on the person.

use serde::Serialize;

use crate::genome::Genome;
use crate::rng::Rng;
use crate::sequencing::{AffectedStrand, RecurrentError};
use crate::variant::GenomePosition;

/// Number and seed of the recurrent error sites.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecurrentErrorParams {
    /// Number of sites that are drawn; a site that is drawn twice is one site.
    pub places: usize,
    /// Random seed of the sites, independent of [`crate::SimulationParams::seed`]. The same genome, number of sites and
    /// seed give the same sites.
    pub seed: u64,
}

/// Range from which each site's share of molecules with the wrong base is drawn (of the affected strand; mean over
/// libraries). Chosen.
const MOLECULE_SHARE_RANGE: [f64; 2] = [0.05, 0.4];
/// Share of the sites at which only molecules of one strand show the wrong base (chosen).
const ONE_STRAND_SHARE: f64 = 0.5;
/// Maximum number of attempts to draw a site that is not N.
const MAX_DRAWS_PER_SITE: usize = 200;
/// Label of the random stream from which these sites are drawn.
const RECURRENT_STREAM_LABEL: u64 = 0x7265_6375_7272;

/// Draws the recurrent errors of a genome, sorted by position, at most one per base.
pub(crate) fn draw_recurrent_errors(genome: &Genome, params: &RecurrentErrorParams) -> Vec<RecurrentError> {
    let mut rng = Rng::from_seed_and_labels(params.seed, &[RECURRENT_STREAM_LABEL]);
    let total = genome.length_bp();
    let mut places: Vec<RecurrentError> = Vec::with_capacity(params.places);
    for _ in 0..if total > 0 { params.places } else { 0 } {
        let known = (0..MAX_DRAWS_PER_SITE).find_map(|_| {
            let mut pos = rng.draw_below(total);
            let contig = genome.seqs.iter().position(|seq| {
                let here = pos < seq.len();
                pos -= if here { 0 } else { seq.len() };
                here
            })?;
            let base = genome.seqs[contig][pos];
            (base != b'N').then_some((GenomePosition { contig, pos }, base))
        });
        let Some((at, normal)) = known else { continue };
        let wrong = rng.draw_other_base(normal);
        let share = MOLECULE_SHARE_RANGE[0]
            * (MOLECULE_SHARE_RANGE[1] / MOLECULE_SHARE_RANGE[0]).powf(rng.draw_unit_interval());
        let strand = match (rng.draw_bernoulli(ONE_STRAND_SHARE), rng.draw_bernoulli(0.5)) {
            (false, _) => AffectedStrand::Both,
            (true, true) => AffectedStrand::Forward,
            (true, false) => AffectedStrand::Reverse,
        };
        places.push(RecurrentError {
            position: at,
            reference_base: normal,
            error_base: wrong,
            molecule_share: share,
            strand,
        });
    }
    places.sort_by_key(|place| place.position);
    places.dedup_by_key(|place| place.position);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_genome;

    #[test]
    fn places_are_the_genomes_own() {
        let genome =
            synthetic_genome::generate_synthetic_genome(300_000, 2, None, &mut Rng::from_seed_and_labels(1, &[]));
        let of = |places, seed| draw_recurrent_errors(&genome, &RecurrentErrorParams { places, seed });
        let places = of(500, 1);
        assert!(places.len() > 495 && places == of(500, 1) && places != of(500, 2));
        for place in &places {
            assert_eq!(genome.seqs[place.position.contig][place.position.pos], place.reference_base);
            assert!(place.error_base != place.reference_base && (0.05..=0.4).contains(&place.molecule_share));
        }
        let both = places.iter().filter(|place| place.strand == AffectedStrand::Both).count();
        assert!((200..300).contains(&both), "{both}");
        assert!(of(0, 1).is_empty());
    }
}
