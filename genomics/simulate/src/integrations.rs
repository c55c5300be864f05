//! Inserts foreign sequence, such as that of a virus, into the tumour's genome.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::{SequenceEdit, StructuralVariant};
use crate::variant_placer::{MAX_PLACEMENT_TRIES, VariantPlacer, no_space_error};

/// Number and source of foreign sequences that are inserted into the tumour's genome as somatic variants.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IntegrationParams {
    /// Number of insertions. Each is a random part of the foreign genome.
    pub pieces: usize,
    /// FASTA file of the foreign genome, such as that of a virus; `None` inserts nothing.
    pub genome: Option<PathBuf>,
}

/// Minimum and maximum length of the inserted sequence, bp.
const INSERT_BP: (usize, usize) = (500, 5000);

/// Places insertions of random parts of the foreign genome into the tumour's genome.
///
/// # Errors
/// Returns an error if the foreign genome cannot be read or has no sequence of 500 bp, or if the tumour's genome has no
/// space for an insertion.
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
            let at = placer.occupied.draw_allowed_position(placer.rng);
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

/// Draws a random part of the foreign sequences, on a random strand.
fn draw_foreign_insert(foreign: &Genome, rng: &mut Rng) -> Vec<u8> {
    let long: Vec<_> = foreign.seqs.iter().filter(|seq| seq.len() >= INSERT_BP.0).collect();
    let seq = long[rng.draw_below(long.len())];
    let length = rng.draw_log_uniform(INSERT_BP.0, INSERT_BP.1.min(seq.len()).max(INSERT_BP.0 + 1)).min(seq.len());
    let at = rng.draw_below(seq.len() - length + 1);
    let piece = &seq[at..at + length];
    if rng.draw_bernoulli(0.5) { piece.to_vec() } else { genuma_reads::dna::reverse_complement(piece) }
}
