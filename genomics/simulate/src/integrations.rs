//! Inserts foreign sequence into the tumour's genome, as viral integration does.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::{SequenceEdit, StructuralVariant};
use crate::variant_placer::{MAX_PLACEMENT_TRIES, VariantPlacer, no_space_error};

/// Parameters of foreign insertions, each a somatic insertion.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IntegrationParams {
    /// Number of random parts of the foreign sequences that are inserted into the tumour's genome.
    pub pieces: usize,
    /// FASTA file of the foreign (such as viral) genome.
    pub genome: Option<PathBuf>,
}

/// Shortest and longest inserted sequence, bp.
const INSERT_BP: (usize, usize) = (500, 5000);

/// Places insertions of random parts of a foreign genome.
pub(crate) fn place_integrations(placer: &mut VariantPlacer<'_, '_>, params: &IntegrationParams) -> Result<()> {
    let Some(path) = &params.genome else { return Ok(()) };
    let foreign = Genome::read_fasta(path)?;
    if foreign.longest_contig_bp() < INSERT_BP.0 {
        let message = format!("{}: give --integrate sequences of at least {} bp", path.display(), INSERT_BP.0);
        return Err(Error::Parameters(message));
    }
    for placed in 0..params.pieces {
        let clone = placer.draw_clone();
        let settled = (0..MAX_PLACEMENT_TRIES).any(|_| {
            let at = placer.occupied.draw_position(placer.rng);
            let mut edit =
                SequenceEdit { position: at, removed: vec![], added: draw_foreign_insert(&foreign, placer.rng) };
            edit.left_align(&placer.genome.seqs[at.contig]);
            placer.place_structural_variant(clone, StructuralVariant::Insertion(edit.position, edit.added))
        });
        if !settled {
            return Err(no_space_error("foreign pieces", placed, params.pieces));
        }
    }
    placer.tumour.structural.sort_by_key(|p| p.variant.breakpoints()[0]);
    Ok(())
}

/// Draws a part of any sequence that is long enough, on either strand.
fn draw_foreign_insert(foreign: &Genome, rng: &mut Rng) -> Vec<u8> {
    let long: Vec<_> = foreign.seqs.iter().filter(|seq| seq.len() >= INSERT_BP.0).collect();
    let seq = long[rng.draw_below(long.len())];
    let length = rng.draw_log_uniform(INSERT_BP.0, INSERT_BP.1.min(seq.len()).max(INSERT_BP.0 + 1)).min(seq.len());
    let at = rng.draw_below(seq.len() - length + 1);
    let piece = &seq[at..at + length];
    if rng.draw_bernoulli(0.5) { piece.to_vec() } else { genuma_reads::dna::reverse_complement(piece) }
}
