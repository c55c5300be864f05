//! Adds copy-number changes to the tumour: gains and losses of whole chromosomes, amplifications and large deletions.

use serde::Serialize;

use crate::error::Result;
use crate::genome::Genome;
use crate::sequencing::is_default;
use crate::small_variants::{SmallVariantGenerator, SmallVariantKind};
use crate::somatic::{MAX_INDEL_BP, MIN_SV_BP, left_align_span};
use crate::tumour::{CarrierCopies, PlacedVariant, Tumour};
use crate::variant::{ContigSpan, GenomePosition, SequenceEdit, StructuralVariant};
use crate::variant_placer::{MAX_PLACEMENT_TRIES, VariantPlacer, no_space_error};

/// Parameters of the tumour's copy-number changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyNumberParams {
    /// Probability, for each haplotype of each contig, that all tumour cells have one copy more or less of it; both are
    /// equally likely. At least one copy of each contig remains.
    pub aneuploidy: f64,
    /// Number of spans of 10–40 kb (at most a tenth of the longest contig) that are amplified on one haplotype in all
    /// tumour cells.
    pub amplifications: usize,
    /// Copy numbers of the amplified spans in a tumour cell. The first amplification has the first number, and so on;
    /// after the last number the list starts again.
    pub amplified_copies: Vec<usize>,
    /// Number of spans of 20–200 kb (at most an eighth of the longest contig) that are deleted on one haplotype of one
    /// clone.
    pub losses: usize,
    /// Whether the whole genome is doubled before chromosomes are lost and gained.
    #[serde(skip_serializing_if = "is_default")]
    pub doubled: bool,
    /// Probability, for each haplotype of each contig, that it has one copy more or less in one subclone only. It has
    /// no effect without subclones.
    #[serde(skip_serializing_if = "is_default")]
    pub subclonal: f64,
}

impl Default for CopyNumberParams {
    fn default() -> Self {
        CopyNumberParams {
            aneuploidy: 0.0,
            amplifications: 0,
            amplified_copies: vec![10, 30, 100],
            losses: 0,
            doubled: false,
            subclonal: 0.0,
        }
    }
}

/// A contig whose haplotypes have other copy numbers in the founder clone than in healthy cells, such as a lost
/// chromosome or copy-neutral LOH.
#[derive(Debug, Clone, Serialize)]
pub struct AneuploidContig {
    /// Name of the contig.
    pub contig: String,
    /// Number of copies of each haplotype in tumour cells of the founder clone.
    pub copies: [usize; 2],
}

/// Minimum and maximum length of an amplified span, bp, and the divisor of the longest contig's length that limits
/// both.
const AMPLIFIED_BP: (usize, usize, usize) = (10_000, 40_000, 10);
/// Minimum and maximum length of a large deletion, bp, and the divisor of the longest contig's length that limits both.
const LOST_BP: (usize, usize, usize) = (20_000, 200_000, 8);
/// Small variants that are placed in each amplified span, in addition to one deletion.
const AMPLIFIED_SPAN_VARIANTS: [SmallVariantKind; 5] = [
    SmallVariantKind::Snv,
    SmallVariantKind::Snv,
    SmallVariantKind::Snv,
    SmallVariantKind::Indel,
    SmallVariantKind::Indel,
];
/// Maximum number of attempts to find a position for a variant within an amplified span.
const MAX_AMPLIFIED_SPAN_TRIES: usize = 40_000;
/// Minimum and maximum length of the deletion within an amplified span, bp.
const AMPLIFIED_SPAN_DELETION_BP: (usize, usize) = (MIN_SV_BP, 300);

/// Sets the copy numbers of a tumour that has no variants yet, and places amplifications and large deletions. Each
/// amplified span gets three SNVs, two indels and one deletion.
///
/// # Errors
/// Returns an error if the genome has no space for a change.
pub(crate) fn place_copy_number_changes(placer: &mut VariantPlacer, params: &CopyNumberParams) -> Result<()> {
    set_chromosome_copies(placer, params.aneuploidy, if params.doubled { 2 } else { 1 });
    change_subclonal_copies(placer, params.subclonal);
    let wanted = params.amplifications;
    // The generator finds all tandem repeats of the genome, which takes time: create it only if needed.
    let maker =
        (wanted > 0).then(|| SmallVariantGenerator::with_resizable_repeats_of_genome(placer.genome, placer.occupied));
    for (i, maker) in (0..wanted).zip(maker.iter().cycle()) {
        let copies = params.amplified_copies[i % params.amplified_copies.len()];
        let amplicon = (0..MAX_PLACEMENT_TRIES)
            .find_map(|_| amplify_random_span(placer, copies, i))
            .ok_or_else(|| no_space_error("amplifications", i, wanted))?;
        let inside = AMPLIFIED_SPAN_VARIANTS.len() + 1;
        place_amplified_span_variants(placer, maker, &amplicon)
            .ok_or_else(|| no_space_error("small variants inside amplifications", i * inside, wanted * inside))?;
    }
    for i in 0..params.losses {
        let clone = placer.draw_clone();
        (0..MAX_PLACEMENT_TRIES)
            .find_map(|_| {
                let lost = StructuralVariant::Deletion(random_span(placer, LOST_BP)?);
                placer.place_structural_variant(clone, lost).then_some(())
            })
            .ok_or_else(|| no_space_error("losses", i, params.losses))?;
    }
    Ok(())
}

/// Lists the contigs whose haplotypes have other copy numbers in the founder clone than in healthy cells, copy-neutral
/// LOH included. A derived chromosome counts for the contig from which it was created.
pub(crate) fn list_aneuploid_contigs(genome: &Genome, tumour: &Tumour) -> Vec<AneuploidContig> {
    let contig = |(i, name): (usize, &String)| {
        let copies = [0, 1].map(|h| tumour.karyotypes[0][h].copies_per_chromosome()[i]);
        let healthy = tumour.ploidy.has_each_haplotype(i).map(usize::from);
        (copies != healthy).then(|| AneuploidContig { contig: name.clone(), copies })
    };
    genome.names.iter().enumerate().filter_map(contig).collect()
}

/// Sets the number of copies of each chromosome in all tumour cells: `usual`, or with probability `share` one more or
/// one less; 0 for a haplotype that healthy cells lack. At least one copy of each contig remains.
fn set_chromosome_copies(placer: &mut VariantPlacer, share: f64, usual: usize) {
    for contig in 0..placer.genome.seqs.len() {
        let there = placer.tumour.ploidy.has_each_haplotype(contig);
        let mut copies = [usual; 2];
        for haplotype in &mut copies {
            if placer.rng.draw_bernoulli(share) {
                *haplotype = if placer.rng.draw_bernoulli(0.5) { usual + 1 } else { usual - 1 };
            }
        }
        for (copies, there) in copies.iter_mut().zip(there) {
            *copies *= usize::from(there);
        }
        if copies == [0, 0] {
            copies[if there == [true; 2] { placer.rng.draw_below(2) } else { usize::from(there[1]) }] = 1;
        }
        for pair in &mut placer.tumour.karyotypes {
            for (karyotype, copies) in pair.iter_mut().zip(copies) {
                karyotype.set_chromosome_copies(contig, copies);
            }
        }
    }
}

/// Adds or removes one copy of some chromosomes, each in one random subclone with probability `share`. At least one
/// copy of each contig remains.
fn change_subclonal_copies(placer: &mut VariantPlacer, share: f64) {
    let subclones = placer.tumour.karyotypes.len() - 1;
    if share <= 0.0 || subclones == 0 {
        return;
    }
    for contig in 0..placer.genome.seqs.len() {
        for haplotype in 0..2 {
            let pair = &placer.tumour.karyotypes[0];
            let [own, other] = [haplotype, 1 - haplotype].map(|h| pair[h].copies_per_chromosome()[contig]);
            if own == 0 || !placer.rng.draw_bernoulli(share) {
                continue;
            }
            let clone = 1 + placer.rng.draw_below(subclones);
            let copies = if placer.rng.draw_bernoulli(0.5) || other == 0 && own == 1 { own + 1 } else { own - 1 };
            let there = placer.tumour.karyotypes[clone][1 - haplotype].copies_per_chromosome()[contig];
            if copies + there > 0 {
                placer.tumour.karyotypes[clone][haplotype].set_chromosome_copies(contig, copies);
            }
        }
    }
}

/// Draws a random span with a log-uniform length, and left-aligns it; `None` if it extends beyond its contig.
fn random_span(placer: &mut VariantPlacer, (low, high, part): (usize, usize, usize)) -> Option<ContigSpan> {
    let high = high.min(placer.genome.longest_contig_bp() / part).max(1);
    let size = placer.rng.draw_log_uniform(low.min(high), high);
    let at = placer.occupied.draw_allowed_position(placer.rng);
    let start = at.pos.checked_sub(placer.rng.draw_below(size))?;
    let seq = &placer.genome.seqs[at.contig];
    let span = ContigSpan { contig: at.contig, start, end: start + size };
    (span.end <= seq.len()).then(|| left_align_span(span, seq))
}

/// Amplifies a random span on one haplotype, so that a tumour cell has about `copies` copies of it; `None` if the span
/// is not free, or if the tumour lacks the haplotype.
fn amplify_random_span(placer: &mut VariantPlacer, copies: usize, number: usize) -> Option<AmplifiedSpan> {
    let span = random_span(placer, AMPLIFIED_BP)?;
    let haplotype = placer.rng.draw_below(2);
    let chromosomes = |haplotype: usize| placer.tumour.karyotypes[0][haplotype].copies_per_chromosome()[span.contig];
    let (own, other) = (chromosomes(haplotype), chromosomes(1 - haplotype));
    let tandem = copies.saturating_sub(other).checked_div(own)?.max(2);
    let variant = StructuralVariant::Amplification { span, copies: tandem };
    let done = placer.is_free_for_structural_variant(&variant)
        && placer.apply_structural_variant_in_clone(haplotype, 0, &variant);
    done.then_some(AmplifiedSpan { span, haplotype, index: number })
}

struct AmplifiedSpan {
    span: ContigSpan,
    haplotype: usize,
    /// Number of the amplification, from 0.
    index: usize,
}

impl AmplifiedSpan {
    /// Draws a position within the amplified span. The first half of the attempts returns `None` for positions outside
    /// the allowed spans (such as capture targets).
    fn draw_position(&self, placer: &mut VariantPlacer, attempt: usize) -> Option<GenomePosition> {
        let at = GenomePosition {
            contig: self.span.contig,
            pos: self.span.start + placer.rng.draw_below(self.span.length_bp()),
        };
        (attempt >= MAX_AMPLIFIED_SPAN_TRIES / 2 || placer.occupied.is_position_allowed(at)).then_some(at)
    }

    /// Returns whether a span is within the amplified span and far enough from its ends and from other variants.
    fn can_hold(&self, placer: &VariantPlacer, span: ContigSpan) -> bool {
        // Six variants must fit into 10 kb even if the general spacing is larger.
        let spacing = placer.min_spacing_bp.min(self.span.length_bp() / 40);
        let inside = span.start >= self.span.start + spacing && span.end + spacing <= self.span.end;
        inside && placer.occupied.can_place_at_span(span, spacing)
    }
}

/// Places small variants and a deletion in an amplified span. The small variants are alternately on all copies and on
/// half of the copies of the span, and so are the deletions of successive spans. `None` if they do not fit.
fn place_amplified_span_variants(
    placer: &mut VariantPlacer,
    maker: &SmallVariantGenerator,
    amplicon: &AmplifiedSpan,
) -> Option<()> {
    let carriers = |i: usize| if i.is_multiple_of(2) { CarrierCopies::All } else { CarrierCopies::Half };
    let placed =
        |edit, i| PlacedVariant { carriers: carriers(i), ..PlacedVariant::on_all_copies(edit, amplicon.haplotype, 0) };
    for (i, kind) in AMPLIFIED_SPAN_VARIANTS.into_iter().enumerate() {
        let made = (0..MAX_AMPLIFIED_SPAN_TRIES).find_map(|attempt| {
            let at = amplicon.draw_position(placer, attempt)?;
            let made = maker.propose_variant_at(at, placer.occupied, placer.rng, kind, MAX_INDEL_BP)?;
            amplicon.can_hold(placer, made.reserved).then_some(made)
        })?;
        placer.occupied.occupy_span(made.reserved);
        placer.tumour.small.push(placed(made.edit, i));
    }
    let (edit, reserved) = (0..MAX_AMPLIFIED_SPAN_TRIES).find_map(|attempt| {
        let at = amplicon.draw_position(placer, attempt)?;
        let length = placer.rng.draw_log_uniform(
            AMPLIFIED_SPAN_DELETION_BP.0,
            AMPLIFIED_SPAN_DELETION_BP.1.min(amplicon.span.length_bp() / 10).max(AMPLIFIED_SPAN_DELETION_BP.0),
        );
        let seq = &placer.genome.seqs[at.contig];
        let removed = seq.get(at.pos..at.pos + length)?.to_vec();
        let mut edit = SequenceEdit { position: at, removed, added: vec![] };
        edit.left_align(seq);
        let reserved = ContigSpan {
            start: edit.position.pos.saturating_sub(1),
            end: at.pos + length + 1,
            ..edit.reference_span()
        };
        amplicon.can_hold(placer, reserved).then_some((edit, reserved))
    })?;
    placer.occupied.occupy_span(reserved);
    placer.tumour.amplified_span_deletions.push(placed(edit, amplicon.index));
    Some(())
}
