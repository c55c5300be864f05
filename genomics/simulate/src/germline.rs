//! The patient's own variants, in tumour and normal alike.

use serde::Serialize;

use crate::genome::Genome;
use crate::ground::Ground;
use crate::ploidy::Ploidy;
use crate::rng::Rng;
use crate::small::{Kind, SmallMaker};
use crate::variant::{Edit, Span};

/// How often the patient differs from the reference.
#[derive(Debug, Clone, Serialize)]
pub struct GermlineParams {
    /// SNVs per base.
    pub snv_rate: f64,
    /// Indels per base.
    pub indel_rate: f64,
    /// Share of the indels that change the length of a tandem repeat.
    pub tandem_share: f64,
    /// Deletions and insertions of 50–2000 bp.
    pub svs: usize,
    /// Share of the variants that are on both haplotypes.
    pub homozygous_share: f64,
    /// Fewest bases between a germline variant and anything else.
    pub gap: usize,
}

impl Default for GermlineParams {
    fn default() -> Self {
        GermlineParams {
            snv_rate: 1e-3,
            indel_rate: 1e-4,
            tandem_share: 0.5,
            svs: 10,
            homozygous_share: 0.35,
            gap: 10,
        }
    }
}

impl GermlineParams {
    /// Which haplotypes have a variant, of those that there are.
    pub(crate) fn carriers(&self, there: [bool; 2], rng: &mut Rng) -> [bool; 2] {
        let mut haplotypes = [true; 2];
        if !rng.chance(self.homozygous_share) {
            haplotypes[rng.below(2)] = false;
        }
        if there == [true; 2] { haplotypes } else { there }
    }
}

/// A germline variant and its carriers.
#[derive(Debug, Clone)]
pub struct Germline {
    /// The change.
    pub edit: Edit,
    /// Which of the two haplotypes have it.
    pub haplotypes: [bool; 2],
}

const LONGEST_INDEL: usize = 30;
const SVS: (usize, usize) = (50, 2000);
const TRIES: usize = 200;

/// Places germline variants where `ground` is free. A variant that finds no place is left out.
pub fn place(
    genome: &Genome,
    ploidy: &Ploidy,
    params: &GermlineParams,
    ground: &mut Ground,
    rng: &mut Rng,
) -> Vec<Germline> {
    let maker = SmallMaker::new(genome, ground);
    let known = genome.known_bases() as f64;
    let (snvs, indels) = ((known * params.snv_rate) as usize, (known * params.indel_rate) as usize);
    let mut found = vec![];
    for i in 0..params.svs + indels + snvs {
        let made = (0..TRIES).find_map(|_| {
            let made = if i < params.svs {
                large(genome, ground, rng)
            } else if i >= params.svs + indels {
                maker.make(ground, rng, Kind::Snv, 1).map(|m| (m.edit, m.reserved))
            } else {
                let kind = if rng.chance(params.tandem_share) { Kind::Tandem } else { Kind::Indel };
                maker.make(ground, rng, kind, LONGEST_INDEL).map(|m| (m.edit, m.reserved))
            };
            made.filter(|(_, reserved)| ground.is_free(*reserved, params.gap))
        });
        let Some((edit, reserved)) = made else { continue };
        ground.take(reserved);
        let there = ploidy.haplotypes(edit.at.contig);
        found.push(Germline { edit, haplotypes: params.carriers(there, rng) });
    }
    found.sort_by_key(|g| g.edit.at);
    found
}

/// A deletion or an insertion of novel sequence.
fn large(genome: &Genome, ground: &Ground, rng: &mut Rng) -> Option<(Edit, Span)> {
    let at = ground.random(rng);
    let seq = &genome.seqs[at.contig];
    let length = rng.log_uniform(SVS.0, SVS.1.min(seq.len() / 10).max(SVS.0));
    if at.pos + length >= seq.len() {
        return None;
    }
    let mut edit = if rng.chance(0.5) {
        Edit { at, removed: seq[at.pos..at.pos + length].to_vec(), added: vec![] }
    } else {
        Edit { at, removed: vec![], added: (0..length).map(|_| rng.base(0.42)).collect() }
    };
    edit.left_align(seq);
    let reserved =
        Span { contig: at.contig, start: edit.at.pos.saturating_sub(1), end: at.pos.max(edit.end()) + 1 };
    Some((edit, reserved))
}
