//! The tumour's own variants: where they are, on which haplotype and in which cells.

use serde::Serialize;

use crate::error::Result;
use crate::genome::Genome;
use crate::ground::Ground;
use crate::rng::Rng;
use crate::site::{Site, TRIES, no_room};
use crate::small::{self, SmallMaker};
use crate::tumour::Placed;
use crate::variant::{Edit, Span, Structural};

/// How many somatic variants of each class, and how they are spread.
#[derive(Debug, Clone, Serialize)]
pub struct SomaticParams {
    /// Single-nucleotide variants.
    pub snvs: usize,
    /// Insertions and deletions of 1–50 bp.
    pub indels: usize,
    /// Structural variants of 50 bp and more, all classes in turn.
    pub svs: usize,
    /// Share of the indels that lengthen or shorten a tandem repeat or homopolymer by whole units.
    pub tandem_share: f64,
    /// Fewest bases between two variants or breakpoints.
    pub spacing: usize,
    /// Longest structural variant, bp (a quarter of the longest contig when that is less).
    pub largest_sv: usize,
    /// Share of the tumour cells in each subclone; the sum is at most 1. Variants are dealt to the founder
    /// clone and the subclones alike.
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

/// Places of variants that a target has room for: one each so many times the spacing.
const ROOM: f64 = 2.5;

impl SomaticParams {
    /// As many variants as targets of so many bases have room for, in the same proportions.
    pub(crate) fn fitted(&self, bases: usize) -> SomaticParams {
        let all = (self.snvs + self.indels + self.svs) as f64;
        let room = bases as f64 / (ROOM * self.spacing as f64);
        let part = |n: usize| (n as f64 * (room / all.max(1.0)).min(1.0)).ceil() as usize;
        SomaticParams {
            snvs: part(self.snvs),
            indels: part(self.indels),
            svs: part(self.svs),
            ..self.clone()
        }
    }
}

/// Longest indel, bp.
pub(crate) const LONGEST_INDEL: usize = 50;
/// Shortest structural variant, bp.
pub(crate) const SHORTEST_SV: usize = 50;
/// Longest novel sequence put in, bp.
const LONGEST_NOVEL: usize = 10_000;
/// Places the somatic variants that [`SomaticParams`] names.
pub fn place(site: &mut Site, params: &SomaticParams) -> Result<()> {
    place_structural(site, params)?;
    place_small(site, params)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Deletion,
    Insertion,
    Duplication,
    Inversion,
    Translocation,
    Copy,
}

fn place_structural(site: &mut Site, params: &SomaticParams) -> Result<()> {
    use Class::{Copy, Deletion, Duplication, Insertion, Inversion, Translocation};
    let genome = site.genome;
    let longest_contig = genome.longest_contig();
    let largest = params.largest_sv.min(longest_contig / 4).max(SHORTEST_SV);
    let mut classes = vec![Deletion, Insertion, Duplication, Inversion, Copy];
    // Two contigs of one haplotype exchange their ends.
    let contigs_of =
        |haplotype| (0..genome.seqs.len()).filter(|&c| !site.tumour.is_lost(c, haplotype)).count();
    if (0..2).any(|haplotype| contigs_of(haplotype) > 1) {
        classes.push(Translocation);
    }
    let size = |class: Class, rng: &mut Rng| match class {
        Insertion => rng.log_uniform(SHORTEST_SV, largest.min(LONGEST_NOVEL)),
        Translocation => 0,
        _ => rng.log_uniform(SHORTEST_SV, largest),
    };
    let mut wanted: Vec<(usize, Class)> = (0..params.svs)
        .map(|i| classes[i % classes.len()])
        .map(|class| (size(class, site.rng), class))
        .collect();
    // The large ones first, while there is room for them.
    wanted.sort_by_key(|&(size, _)| std::cmp::Reverse(size));
    for (placed, (mut size, class)) in wanted.into_iter().enumerate() {
        let clone = site.random_clone();
        let mut tries = 0;
        loop {
            let variant = propose(genome, site.ground, site.rng, class, size);
            if variant.is_some_and(|v| site.settle(clone, v)) {
                break;
            }
            tries += 1;
            if tries == TRIES {
                return Err(no_room("structural variants", placed, params.svs));
            }
            // A genome half full of large events has no room for another; a smaller one will do.
            if tries % 50 == 0 && size > SHORTEST_SV {
                size = (size / 2).max(SHORTEST_SV);
            }
        }
    }
    site.tumour.structural.sort_by_key(|p| p.variant.cuts()[0]);
    Ok(())
}

/// A variant of the class at a random place, free or not; `None` when it does not fit its contig.
fn propose(genome: &Genome, ground: &Ground, rng: &mut Rng, class: Class, size: usize) -> Option<Structural> {
    let at = ground.random(rng);
    let span = Span { contig: at.contig, start: at.pos, end: at.pos + size };
    let seq = &genome.seqs[at.contig];
    if span.end > seq.len() {
        return None;
    }
    Some(match class {
        Class::Deletion => Structural::Deletion(left_aligned(span, seq)),
        Class::Duplication => Structural::Duplication(left_aligned(span, seq)),
        Class::Inversion => Structural::Inversion(span),
        Class::Insertion => {
            let novel = (0..size).map(|_| rng.base(0.42)).collect();
            let mut edit = Edit { at, removed: vec![], added: novel };
            edit.left_align(seq);
            Structural::Insertion(edit.at, edit.added)
        }
        Class::Translocation => {
            let other = ground.random(rng);
            if other.contig == at.contig {
                return None;
            }
            let mut cuts = [at, other];
            cuts.sort();
            Structural::Translocation { cuts, inverted: rng.chance(0.5) }
        }
        Class::Copy => {
            let to = ground.random(rng);
            let apart = to.contig != at.contig || to.pos + 5000 < span.start || to.pos > span.end + 5000;
            if !apart {
                return None;
            }
            Structural::Copy { from: span, to, inverted: rng.chance(0.5) }
        }
    })
}

/// The same deletion or duplication as far left as it can be written.
pub(crate) fn left_aligned(mut span: Span, seq: &[u8]) -> Span {
    while span.start > 0 && seq[span.start - 1] == seq[span.end - 1] {
        span.start -= 1;
        span.end -= 1;
    }
    span
}

fn place_small(site: &mut Site, params: &SomaticParams) -> Result<()> {
    let maker = SmallMaker::new(site.genome, site.ground);
    let in_tandem = (params.indels as f64 * params.tandem_share).round() as usize;
    for i in 0..params.snvs + params.indels {
        let kind = match i {
            _ if i < params.snvs => small::Kind::Snv,
            _ if i < params.snvs + in_tandem => small::Kind::Tandem,
            _ => small::Kind::Indel,
        };
        let made = (0..TRIES)
            .find_map(|_| {
                let made = maker.make(site.ground, site.rng, kind, LONGEST_INDEL)?;
                site.is_free(&made).then_some(made)
            })
            .ok_or_else(|| {
                let what = if i < params.snvs { "SNVs" } else { "indels" };
                no_room(what, site.tumour.small.len(), params.snvs + params.indels)
            })?;
        site.ground.take(made.reserved);
        let clone = site.random_clone();
        let (haplotype, carriers) = site.tumour.carriers(made.edit.at, site.rng);
        site.tumour.small.push(Placed { carriers, ..Placed::new(made.edit, haplotype, clone) });
    }
    site.tumour.small.sort_by_key(|p| p.variant.at);
    Ok(())
}
