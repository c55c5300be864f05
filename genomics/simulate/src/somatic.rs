//! The tumour's own variants: where they are, on which haplotype and in which cells.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::ground::Ground;
use crate::karyotype::Karyotype;
use crate::rng::Rng;
use crate::small::{self, SmallMaker};
use crate::variant::{Cut, Edit, Span, Structural};

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

/// Longest indel, bp.
pub const LONGEST_INDEL: usize = 50;
/// Shortest structural variant, bp.
pub const SHORTEST_SV: usize = 50;
/// Longest novel sequence put in, bp.
const LONGEST_NOVEL: usize = 10_000;
/// Times a random place is tried before giving up.
const TRIES: usize = 2000;

/// What is placed: a small variant or a structural one.
#[derive(Debug, Clone)]
pub struct Placed<V> {
    /// The change.
    pub variant: V,
    /// 0 or 1.
    pub haplotype: usize,
    /// 0 is the founder clone, present in every tumour cell; then the subclones.
    pub clone: usize,
}

/// All somatic variants of a tumour.
#[derive(Debug)]
pub struct Tumour {
    /// SNVs and indels by position.
    pub small: Vec<Placed<Edit>>,
    /// Structural variants by their first cut.
    pub structural: Vec<Placed<Structural>>,
    /// Share of the tumour cells that belong to each population: founder only, then each subclone.
    pub shares: Vec<f64>,
    /// The two haplotypes of each population.
    pub karyotypes: Vec<[Karyotype; 2]>,
}

impl Tumour {
    /// Share of the tumour cells that carry the variants of a clone.
    pub fn cellular_fraction(&self, clone: usize) -> f64 {
        if clone == 0 { 1.0 } else { self.shares[clone] }
    }

    /// Copies of a place in an average tumour cell.
    fn copies(&self, at: Cut) -> f64 {
        let change = |p: &Placed<Structural>| match p.variant.body() {
            Some(b) if b.contig == at.contig && b.start <= at.pos && at.pos < b.end => {
                f64::from(p.variant.copies_added()) * self.cellular_fraction(p.clone)
            }
            _ => 0.0,
        };
        2.0 + self.structural.iter().map(change).sum::<f64>()
    }

    /// Expected share of the tumour sample's reads at `at` that show a variant of `clone`.
    pub fn allele_fraction(&self, at: Cut, clone: usize, purity: f64) -> f64 {
        purity * self.cellular_fraction(clone) / (purity * self.copies(at) + (1.0 - purity) * 2.0)
    }
}

/// Places all somatic variants and marks what they take in `ground`.
pub fn place(genome: &Genome, params: &SomaticParams, ground: &mut Ground, rng: &mut Rng) -> Result<Tumour> {
    let subclonal: f64 = params.subclones.iter().sum();
    if subclonal > 1.0 + 1e-9 || params.subclones.iter().any(|&f| f <= 0.0) {
        let message = "the subclones' shares must be above 0 and sum up to at most 1; make them smaller";
        return Err(Error::Parameters(message.into()));
    }
    let mut shares = vec![(1.0 - subclonal).max(0.0)];
    shares.extend(&params.subclones);
    let healthy = [Karyotype::new(genome), Karyotype::new(genome)];
    let karyotypes = vec![healthy; shares.len()];
    let mut tumour = Tumour { small: vec![], structural: vec![], shares, karyotypes };
    place_structural(genome, params, ground, rng, &mut tumour)?;
    place_small(genome, params, ground, rng, &mut tumour)?;
    Ok(tumour)
}

fn no_room(what: &str, placed: usize, wanted: usize) -> Error {
    Error::Parameters(format!(
        "no room for {wanted} {what} in this genome (placed {placed}); ask for fewer, or lower the spacing"
    ))
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

fn place_structural(
    genome: &Genome,
    params: &SomaticParams,
    ground: &mut Ground,
    rng: &mut Rng,
    tumour: &mut Tumour,
) -> Result<()> {
    use Class::{Copy, Deletion, Duplication, Insertion, Inversion, Translocation};
    let longest_contig = genome.seqs.iter().map(Vec::len).max().unwrap_or(0);
    let largest = params.largest_sv.min(longest_contig / 4).max(SHORTEST_SV);
    let mut classes = vec![Deletion, Insertion, Duplication, Inversion, Copy];
    if genome.seqs.len() > 1 {
        classes.push(Translocation);
    }
    let size = |class: Class, rng: &mut Rng| match class {
        Insertion => rng.log_uniform(SHORTEST_SV, largest.min(LONGEST_NOVEL)),
        Translocation => 0,
        _ => rng.log_uniform(SHORTEST_SV, largest),
    };
    let mut wanted: Vec<(usize, Class)> =
        (0..params.svs).map(|i| classes[i % classes.len()]).map(|class| (size(class, rng), class)).collect();
    // The large ones first, while there is room for them.
    wanted.sort_by_key(|&(size, _)| std::cmp::Reverse(size));
    for (placed, (mut size, class)) in wanted.into_iter().enumerate() {
        let clone = rng.below(tumour.shares.len());
        let mut tries = 0;
        loop {
            let variant = propose(genome, ground, rng, class, size);
            if variant.is_some_and(|v| settle(genome, params, ground, rng, tumour, clone, v)) {
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
    tumour.structural.sort_by_key(|p| p.variant.cuts()[0]);
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
fn left_aligned(mut span: Span, seq: &[u8]) -> Span {
    while span.start > 0 && seq[span.start - 1] == seq[span.end - 1] {
        span.start -= 1;
        span.end -= 1;
    }
    span
}

/// Carries the variant out in every population that has it, if its place is free.
fn settle(
    genome: &Genome,
    params: &SomaticParams,
    ground: &mut Ground,
    rng: &mut Rng,
    tumour: &mut Tumour,
    clone: usize,
    variant: Structural,
) -> bool {
    let round = |c: &Cut| Span { contig: c.contig, start: c.pos.saturating_sub(1), end: c.pos + 1 };
    let cuts = variant.cuts();
    let body = variant.body();
    let free = cuts.iter().all(|c| ground.is_free(round(c), params.spacing) && !ground.in_body(*c))
        && body.is_none_or(|b| !ground.overlaps_body(b) && !ground.holds_taken(b, params.spacing));
    if !free || copies_itself(genome, &variant) {
        return false;
    }
    let first = rng.below(2);
    let populations: Vec<usize> = (0..tumour.shares.len()).filter(|&p| clone == 0 || p == clone).collect();
    for haplotype in [first, 1 - first] {
        let mut changed: Vec<Karyotype> =
            populations.iter().map(|&p| tumour.karyotypes[p][haplotype].clone()).collect();
        if changed.iter_mut().any(|k| k.apply(&variant).is_err()) {
            continue;
        }
        for (&p, karyotype) in populations.iter().zip(changed) {
            tumour.karyotypes[p][haplotype] = karyotype;
        }
        cuts.iter().for_each(|c| ground.take(round(c)));
        if let Some(body) = body {
            ground.take_body(body);
        }
        tumour.structural.push(Placed { variant, haplotype, clone });
        return true;
    }
    false
}

/// Whether the variant would change nothing: the inversion of a palindrome.
fn copies_itself(genome: &Genome, variant: &Structural) -> bool {
    let Structural::Inversion(span) = variant else { return false };
    let bases = &genome.seqs[span.contig][span.start..span.end];
    genuma_reads::dna::revcomp(bases) == bases
}

fn place_small(
    genome: &Genome,
    params: &SomaticParams,
    ground: &mut Ground,
    rng: &mut Rng,
    tumour: &mut Tumour,
) -> Result<()> {
    let maker = SmallMaker::new(genome);
    let in_tandem = (params.indels as f64 * params.tandem_share).round() as usize;
    for (i, what) in
        (0..params.snvs + params.indels).map(|i| (i, if i < params.snvs { "SNVs" } else { "indels" }))
    {
        let edit = (0..TRIES)
            .filter_map(|_| {
                let kind = match i {
                    _ if i < params.snvs => small::Kind::Snv,
                    _ if i < params.snvs + in_tandem => small::Kind::Tandem,
                    _ => small::Kind::Indel,
                };
                maker.make(ground, rng, kind, LONGEST_INDEL)
            })
            .find(|made| ground.is_free(made.reserved, params.spacing))
            .ok_or_else(|| no_room(what, tumour.small.len(), params.snvs + params.indels))?;
        ground.take(edit.reserved);
        let clone = rng.below(tumour.shares.len());
        let at = edit.edit.at;
        // Beside a structural variant, on the haplotype that it left alone: it is neither lost nor doubled.
        let haplotype = tumour
            .structural
            .iter()
            .find(|p| {
                p.variant.body().is_some_and(|b| b.contig == at.contig && b.start <= at.pos && at.pos < b.end)
            })
            .map_or_else(|| rng.below(2), |p| 1 - p.haplotype);
        tumour.small.push(Placed { variant: edit.edit, haplotype, clone });
    }
    tumour.small.sort_by_key(|p| p.variant.at);
    Ok(())
}
