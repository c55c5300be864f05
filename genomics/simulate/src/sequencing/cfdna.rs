//! Fragment lengths of cell-free DNA in plasma: peaks at the length of one and of two nucleosomes, and shorter
//! fragments in steps of one turn of the DNA helix. Peaks as in Snyder et al., Cell 2016, fig. 1; shares and widths are
//! chosen to resemble them.

use crate::rng::Rng;

/// Mean and standard deviation of the length of fragments of one nucleosome with its linker, bp.
const MONONUCLEOSOME_BP: (f64, f64) = (167.0, 9.0);
/// Mean and standard deviation of the length of fragments of two nucleosomes, bp.
const DINUCLEOSOME_BP: (f64, f64) = (330.0, 22.0);
/// Share of the fragments that contain two nucleosomes.
const DINUCLEOSOME_SHARE: f64 = 0.12;
/// Share of the fragments that were cut within the nucleosome and so are shorter than the main peak.
const NICKED_SHARE: f64 = 0.25;
/// Distance between the sub-peaks of the lengths of shorter fragments, bp: one turn of the DNA helix.
const HELIX_TURN_BP: f64 = 10.0;
/// Maximum number of helix turns by which a fragment is shorter than the main peak.
const MAX_LOST_TURNS: usize = 9;
/// Probability that a shorter fragment is shorter by one more turn.
const NEXT_TURN_PROBABILITY: f64 = 0.75;
/// Standard deviation of the fragment length within a sub-peak, bp.
const SUB_PEAK_SD_BP: f64 = 2.0;
/// Length that few fragments exceed, bp: mean plus three standard deviations of fragments of two nucleosomes.
pub(crate) const RARELY_EXCEEDED_CFDNA_FRAGMENT_BP: usize = 396;

/// Draws the length of a fragment, bp.
pub(crate) fn draw_cfdna_length(rng: &mut Rng) -> f64 {
    let class = rng.draw_unit_interval();
    if class < DINUCLEOSOME_SHARE {
        return rng.draw_gaussian(DINUCLEOSOME_BP.0, DINUCLEOSOME_BP.1);
    }
    if class >= DINUCLEOSOME_SHARE + NICKED_SHARE {
        return rng.draw_gaussian(MONONUCLEOSOME_BP.0, MONONUCLEOSOME_BP.1);
    }
    // Fragments that lost one turn are within the main peak: sub-peaks begin two turns below it.
    let more = rng.draw_geometric(1.0 - NEXT_TURN_PROBABILITY);
    let turns = (2 + more % (MAX_LOST_TURNS - 1)) as f64;
    rng.draw_gaussian(MONONUCLEOSOME_BP.0 - turns * HELIX_TURN_BP, SUB_PEAK_SD_BP)
}
