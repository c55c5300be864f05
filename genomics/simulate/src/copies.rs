//! Copy numbers of the tumour: whole chromosomes lost and gained, spans amplified and lost.

use serde::Serialize;

use crate::error::Result;
use crate::genome::Genome;
use crate::sequencing::is_default;
use crate::site::{Site, TRIES, no_room};
use crate::small::{Kind, SmallMaker};
use crate::somatic::{LONGEST_INDEL, SHORTEST_SV, left_aligned};
use crate::tumour::{Carriers, Placed, Tumour};
use crate::variant::{Cut, Edit, Span, Structural};

/// How the tumour's copy numbers differ from two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyParams {
    /// Probability that a haplotype of a contig is lost or gained in all tumour cells, each as likely.
    pub aneuploidy: f64,
    /// Spans of 10–40 kb that are amplified on one haplotype in all tumour cells.
    pub amplifications: usize,
    /// Copies in a tumour cell that the amplified spans have, dealt in turn.
    pub amplified_copies: Vec<usize>,
    /// Spans of 20–200 kb that are lost on one haplotype.
    pub losses: usize,
    /// The genome was doubled as a whole before contigs were lost and gained.
    #[serde(skip_serializing_if = "is_default")]
    pub doubled: bool,
    /// Probability that a haplotype of a contig is lost or gained once more in one subclone only, of those that there are.
    #[serde(skip_serializing_if = "is_default")]
    pub subclonal: f64,
}

impl Default for CopyParams {
    fn default() -> Self {
        CopyParams {
            aneuploidy: 0.0,
            amplifications: 0,
            amplified_copies: vec![10, 30, 100],
            losses: 0,
            doubled: false,
            subclonal: 0.0,
        }
    }
}

/// A contig of which the tumour cells have more or fewer copies than healthy ones.
#[derive(Debug, Clone, Serialize)]
pub struct Aneuploid {
    /// The contig.
    pub contig: String,
    /// Copies of both haplotypes.
    pub copies: [usize; 2],
}

/// Lengths of amplified spans, bp, and the largest part of the longest contig that one may be.
const AMPLIFIED: (usize, usize, usize) = (10_000, 40_000, 10);
/// Lengths of lost spans, bp, and the largest part of the longest contig that one may be.
const LOST: (usize, usize, usize) = (20_000, 200_000, 8);
/// Small variants of each amplified span, beside one deletion.
const INSIDE: [Kind; 5] = [Kind::Snv, Kind::Snv, Kind::Snv, Kind::Indel, Kind::Indel];
/// Times a place inside is looked for.
const INNER_TRIES: usize = 40_000;
/// Lengths of the deletion inside, bp.
const DELETED: (usize, usize) = (SHORTEST_SV, 300);

/// Sets the copy numbers of a tumour without variants. Amplified spans get small variants of their own: three SNVs, two
/// indels and a deletion each.
pub fn place(site: &mut Site, params: &CopyParams) -> Result<()> {
    whole_chromosomes(site, params.aneuploidy, if params.doubled { 2 } else { 1 });
    in_subclones(site, params.subclonal);
    let wanted = params.amplifications;
    // Finding the genome's tandem repeats takes its time.
    let maker = (wanted > 0).then(|| SmallMaker::new(site.genome, site.ground));
    for (i, maker) in (0..wanted).zip(maker.iter().cycle()) {
        let copies = params.amplified_copies[i % params.amplified_copies.len()];
        let amplicon = (0..TRIES)
            .find_map(|_| amplify(site, copies, i))
            .ok_or_else(|| no_room("amplifications", i, wanted))?;
        let inside = INSIDE.len() + 1;
        fill(site, maker, &amplicon)
            .ok_or_else(|| no_room("small variants inside amplifications", i * inside, wanted * inside))?;
    }
    for i in 0..params.losses {
        let clone = site.random_clone();
        (0..TRIES)
            .find_map(|_| {
                let lost = Structural::Deletion(random_span(site, LOST)?);
                site.settle(clone, lost).then_some(())
            })
            .ok_or_else(|| no_room("losses", i, params.losses))?;
    }
    Ok(())
}

/// Contigs of which the tumour cells have more or fewer copies than healthy ones. Chromosomes go by the contig that they begin with.
pub fn aneuploid(genome: &Genome, tumour: &Tumour) -> Vec<Aneuploid> {
    let contig = |(i, name): (usize, &String)| {
        let copies = [0, 1].map(|h| tumour.karyotypes[0][h].copies()[i]);
        let healthy = tumour.ploidy.haplotypes(i).map(usize::from);
        (copies != healthy).then(|| Aneuploid { contig: name.clone(), copies })
    };
    genome.names.iter().enumerate().filter_map(contig).collect()
}

/// Sets how often each chromosome is there: as `usual`, or once more or less.
fn whole_chromosomes(site: &mut Site, share: f64, usual: usize) {
    for contig in 0..site.genome.seqs.len() {
        let there = site.tumour.ploidy.haplotypes(contig);
        let mut copies = [usual; 2];
        for haplotype in &mut copies {
            if site.rng.chance(share) {
                *haplotype = if site.rng.chance(0.5) { usual + 1 } else { usual - 1 };
            }
        }
        for (copies, there) in copies.iter_mut().zip(there) {
            *copies *= usize::from(there);
        }
        if copies == [0, 0] {
            copies[if there == [true; 2] { site.rng.below(2) } else { usize::from(there[1]) }] = 1;
        }
        for pair in &mut site.tumour.karyotypes {
            for (karyotype, copies) in pair.iter_mut().zip(copies) {
                karyotype.set_copies(contig, copies);
            }
        }
    }
}

/// Changes how often some chromosomes are there in one subclone each; one copy of each contig stays.
fn in_subclones(site: &mut Site, share: f64) {
    let subclones = site.tumour.karyotypes.len() - 1;
    if share <= 0.0 || subclones == 0 {
        return;
    }
    for contig in 0..site.genome.seqs.len() {
        for haplotype in 0..2 {
            let pair = &site.tumour.karyotypes[0];
            let [own, other] = [haplotype, 1 - haplotype].map(|h| pair[h].copies()[contig]);
            if own == 0 || !site.rng.chance(share) {
                continue;
            }
            let clone = 1 + site.rng.below(subclones);
            let copies = if site.rng.chance(0.5) || other == 0 && own == 1 { own + 1 } else { own - 1 };
            let there = site.tumour.karyotypes[clone][1 - haplotype].copies()[contig];
            if copies + there > 0 {
                site.tumour.karyotypes[clone][haplotype].set_copies(contig, copies);
            }
        }
    }
}

/// A random span, as far left as its ends can be told; `None` when its contig ends before.
fn random_span(site: &mut Site, (low, high, part): (usize, usize, usize)) -> Option<Span> {
    let high = high.min(site.genome.longest_contig() / part).max(1);
    let size = site.rng.log_uniform(low.min(high), high);
    let at = site.ground.random(site.rng);
    let start = at.pos.checked_sub(site.rng.below(size))?;
    let seq = &site.genome.seqs[at.contig];
    let span = Span { contig: at.contig, start, end: start + size };
    (span.end <= seq.len()).then(|| left_aligned(span, seq))
}

/// Amplifies a random span on one haplotype so that a tumour cell has about `copies` of it; `None` if it is not free.
fn amplify(site: &mut Site, copies: usize, number: usize) -> Option<Amplicon> {
    let span = random_span(site, AMPLIFIED)?;
    let haplotype = site.rng.below(2);
    let chromosomes = |haplotype: usize| site.tumour.karyotypes[0][haplotype].copies()[span.contig];
    let (own, other) = (chromosomes(haplotype), chromosomes(1 - haplotype));
    let tandem = copies.saturating_sub(other).checked_div(own)?.max(2);
    let variant = Structural::Amplification { span, copies: tandem };
    let done = site.has_room(&variant) && site.carry_out(haplotype, 0, &variant);
    done.then_some(Amplicon { span, haplotype, number })
}

/// A span that was amplified.
struct Amplicon {
    span: Span,
    haplotype: usize,
    /// How many there were before it.
    number: usize,
}

impl Amplicon {
    /// A random place inside. Half of the tries lie where variants are wanted, as far as there are such places.
    fn random(&self, site: &mut Site, attempt: usize) -> Option<Cut> {
        let at = Cut { contig: self.span.contig, pos: self.span.start + site.rng.below(self.span.length()) };
        (attempt >= INNER_TRIES / 2 || site.ground.is_wanted(at)).then_some(at)
    }

    /// Whether a span lies inside, away from its ends and from what is there already.
    fn holds(&self, site: &Site, span: Span) -> bool {
        // Seven variants in 10 kb have room even where those elsewhere are to be far apart.
        let spacing = site.spacing.min(self.span.length() / 40);
        let inside = span.start >= self.span.start + spacing && span.end + spacing <= self.span.end;
        inside && site.ground.is_free(span, spacing)
    }
}

/// Puts small variants into an amplified span, every other one into half of the copies; `None` if they find no room.
fn fill(site: &mut Site, maker: &SmallMaker, amplicon: &Amplicon) -> Option<()> {
    let carriers = |i: usize| if i.is_multiple_of(2) { Carriers::All } else { Carriers::Half };
    let placed = |edit, i| Placed { carriers: carriers(i), ..Placed::new(edit, amplicon.haplotype, 0) };
    for (i, kind) in INSIDE.into_iter().enumerate() {
        let made = (0..INNER_TRIES).find_map(|attempt| {
            let at = amplicon.random(site, attempt)?;
            let made = maker.make_at(at, site.ground, site.rng, kind, LONGEST_INDEL)?;
            amplicon.holds(site, made.reserved).then_some(made)
        })?;
        site.ground.take(made.reserved);
        site.tumour.small.push(placed(made.edit, i));
    }
    let (edit, reserved) = (0..INNER_TRIES).find_map(|attempt| {
        let at = amplicon.random(site, attempt)?;
        let length =
            site.rng.log_uniform(DELETED.0, DELETED.1.min(amplicon.span.length() / 10).max(DELETED.0));
        let seq = &site.genome.seqs[at.contig];
        let removed = seq.get(at.pos..at.pos + length)?.to_vec();
        let mut edit = Edit { at, removed, added: vec![] };
        edit.left_align(seq);
        let reserved = Span { start: edit.at.pos.saturating_sub(1), end: at.pos + length + 1, ..edit.span() };
        amplicon.holds(site, reserved).then_some((edit, reserved))
    })?;
    site.ground.take(reserved);
    site.tumour.inner.push(placed(edit, amplicon.number));
    Some(())
}
