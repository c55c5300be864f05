//! Foreign sequence in the tumour's genome, as viruses leave it.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::rng::Rng;
use crate::site::{Site, TRIES, no_room};
use crate::variant::{Edit, Structural};

/// Pieces of foreign sequence that are put in, each a somatic insertion.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IntegratedParams {
    /// How many.
    pub pieces: usize,
    /// What they are pieces of, FASTA.
    pub genome: Option<PathBuf>,
}

/// Lengths of pieces, bp.
const PIECE: (usize, usize) = (500, 5000);

/// Puts pieces of a foreign genome in.
pub fn place(site: &mut Site<'_, '_>, params: &IntegratedParams) -> Result<()> {
    let Some(path) = &params.genome else { return Ok(()) };
    let foreign = Genome::read(path)?;
    if foreign.longest_contig() < PIECE.0 {
        let message = format!("{}: no sequence has {} bp to be put in", path.display(), PIECE.0);
        return Err(Error::Parameters(message));
    }
    for placed in 0..params.pieces {
        let clone = site.random_clone();
        let settled = (0..TRIES).any(|_| {
            let at = site.ground.random(site.rng);
            let mut edit = Edit { at, removed: vec![], added: piece(&foreign, site.rng) };
            edit.left_align(&site.genome.seqs[at.contig]);
            site.settle(clone, Structural::Insertion(edit.at, edit.added))
        });
        if !settled {
            return Err(no_room("foreign pieces", placed, params.pieces));
        }
    }
    site.tumour.structural.sort_by_key(|p| p.variant.cuts()[0]);
    Ok(())
}

/// A piece of any sequence that is long enough, on either strand.
fn piece(foreign: &Genome, rng: &mut Rng) -> Vec<u8> {
    let long: Vec<_> = foreign.seqs.iter().filter(|seq| seq.len() >= PIECE.0).collect();
    let seq = long[rng.below(long.len())];
    let length = rng.log_uniform(PIECE.0, PIECE.1.min(seq.len()).max(PIECE.0 + 1)).min(seq.len());
    let at = rng.below(seq.len() - length + 1);
    let piece = &seq[at..at + length];
    if rng.chance(0.5) { piece.to_vec() } else { genuma_reads::dna::revcomp(piece) }
}
