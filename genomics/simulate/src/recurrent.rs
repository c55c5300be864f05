//! Places at which every library of every person shows the same wrong base: those of the genome alone, whoever is sequenced.

use serde::Serialize;

use crate::genome::Genome;
use crate::rng::Rng;
use crate::sequencing::{Recurrent, Strand};
use crate::variant::Cut;

/// How many places there are, and which.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecurrentParams {
    /// How many.
    pub places: usize,
    /// Same genome, number and seed, same places: [`crate::Params::seed`] has no part in them.
    pub seed: u64,
}

/// Shares of the molecules that show the wrong base are from and to, in the mean over libraries.
const SHARES: [f64; 2] = [0.05, 0.4];
/// Share of the places where molecules of one strand alone show it.
const ONE_STRAND: f64 = 0.5;
/// Times a known base is looked for.
const TRIES: usize = 200;
/// A seed's stream for this.
const STREAM: u64 = 0x7265_6375_7272;

/// Draws the places, in the order of the genome, no two at one base.
pub fn place(genome: &Genome, params: &RecurrentParams) -> Vec<Recurrent> {
    let mut rng = Rng::stream(params.seed, &[STREAM]);
    let total = genome.length();
    let mut places: Vec<Recurrent> = Vec::with_capacity(params.places);
    for _ in 0..if total > 0 { params.places } else { 0 } {
        let known = (0..TRIES).find_map(|_| {
            let mut pos = rng.below(total);
            let contig = genome.seqs.iter().position(|seq| {
                let here = pos < seq.len();
                pos -= if here { 0 } else { seq.len() };
                here
            })?;
            let base = genome.seqs[contig][pos];
            (base != b'N').then_some((Cut { contig, pos }, base))
        });
        let Some((at, normal)) = known else { continue };
        let wrong = rng.other_base(normal);
        let share = SHARES[0] * (SHARES[1] / SHARES[0]).powf(rng.unit());
        let strand = match (rng.chance(ONE_STRAND), rng.chance(0.5)) {
            (false, _) => Strand::Both,
            (true, true) => Strand::Forward,
            (true, false) => Strand::Reverse,
        };
        places.push(Recurrent { at, normal, wrong, share, strand });
    }
    places.sort_by_key(|place| place.at);
    places.dedup_by_key(|place| place.at);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn places_are_the_genomes_own() {
        let genome = made::make(300_000, 2, None, &mut Rng::stream(1, &[]));
        let of = |places, seed| place(&genome, &RecurrentParams { places, seed });
        let places = of(500, 1);
        assert!(places.len() > 495 && places == of(500, 1) && places != of(500, 2));
        for place in &places {
            assert_eq!(genome.seqs[place.at.contig][place.at.pos], place.normal);
            assert!(place.wrong != place.normal && (0.05..=0.4).contains(&place.share));
        }
        let both = places.iter().filter(|place| place.strand == Strand::Both).count();
        assert!((200..300).contains(&both), "{both}");
        assert!(of(0, 1).is_empty());
    }
}
