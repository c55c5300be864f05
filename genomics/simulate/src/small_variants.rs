//! Generates small variants: SNVs, indels, MNVs, and length changes of tandem repeats.

use crate::genome::Genome;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::tandem_repeats::{self, TandemRepeat};
use crate::variant::{ContigSpan, GenomePosition, SequenceEdit};

/// Longest tandem repeat whose length is changed, bp. Reads must be long enough to span it.
const MAX_RESIZED_REPEAT_BP: usize = 80;

/// Kind of small variant to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SmallVariantKind {
    /// A single-nucleotide variant.
    Snv,
    /// A deletion, a tandem duplication, or an insertion of random bases, at any position.
    Indel,
    /// A length change of a tandem repeat by whole units.
    RepeatLengthChange,
}

/// A proposed variant, and the span of the reference that it occupies: that of all its equivalent notations (the same
/// indel, shifted).
#[derive(Debug, Clone)]
pub(crate) struct ProposedVariant {
    /// Position and alleles of the variant, left-aligned.
    pub edit: SequenceEdit,
    /// Span from the leftmost to the rightmost equivalent notation, plus one base on both sides.
    pub reserved: ContigSpan,
}

/// Generates small variants. It stores all tandem repeats of the genome whose length may change.
#[derive(Debug)]
pub(crate) struct SmallVariantGenerator<'a> {
    genome: &'a Genome,
    /// Homopolymers; and tandem repeats with longer units.
    tracts: [Vec<CompactTandemRepeat>; 2],
}

/// A tandem repeat of at most [`MAX_RESIZED_REPEAT_BP`] bp, stored compactly because large genomes have tens of
/// millions.
#[derive(Debug, Clone, Copy)]
struct CompactTandemRepeat {
    start: usize,
    contig: u32,
    length: u8,
    unit: u8,
}

impl<'a> SmallVariantGenerator<'a> {
    /// Finds the tandem repeats of at most [`MAX_RESIZED_REPEAT_BP`] bp that begin where `occupied` allows random
    /// positions.
    pub(crate) fn with_resizable_repeats_of_genome(genome: &'a Genome, occupied: &OccupiedRegions) -> Self {
        let mut tracts = [vec![], vec![]];
        for (contig, seq) in genome.seqs.iter().enumerate() {
            let mut found = tandem_repeats::list_tandem_repeats(seq);
            found.sort_unstable_by_key(|t| (t.start, t.unit));
            for TandemRepeat { start, end, unit } in found {
                let wanted = occupied.is_position_allowed(GenomePosition { contig, pos: start });
                if wanted && end - start <= MAX_RESIZED_REPEAT_BP {
                    let (length, contig) = ((end - start) as u8, contig as u32);
                    tracts[usize::from(unit > 1)].push(CompactTandemRepeat { start, contig, length, unit: unit as u8 });
                }
            }
        }
        SmallVariantGenerator { genome, tracts }
    }

    /// Proposes a variant at a random position (a length change: of a random tandem repeat); `None` if the variant is
    /// not possible there. `longest` is the maximum length of an indel, bp.
    pub(crate) fn propose_random_variant(
        &self,
        occupied: &OccupiedRegions,
        rng: &mut Rng,
        kind: SmallVariantKind,
        longest: usize,
    ) -> Option<ProposedVariant> {
        let at = occupied.draw_allowed_position(rng);
        self.propose_variant_at(at, occupied, rng, kind, longest)
    }

    /// Proposes a variant at a position. A length change is proposed for a random tandem repeat instead; without tandem
    /// repeats, an indel at a random position. `None` if the variant is not possible there. `longest` is the maximum
    /// length of an indel, bp.
    pub(crate) fn propose_variant_at(
        &self,
        at: GenomePosition,
        occupied: &OccupiedRegions,
        rng: &mut Rng,
        kind: SmallVariantKind,
        longest: usize,
    ) -> Option<ProposedVariant> {
        let seq = &self.genome.seqs[at.contig];
        match kind {
            SmallVariantKind::Snv => {
                let from = seq[at.pos];
                (from != b'N').then(|| {
                    self.left_align_and_reserve(SequenceEdit {
                        position: at,
                        removed: vec![from],
                        added: vec![draw_substituted_base(rng, from)],
                    })
                })
            }
            SmallVariantKind::Indel => {
                let length = rng.draw_log_uniform(1, longest);
                if at.pos + length >= seq.len() {
                    return None;
                }
                let here = seq[at.pos..at.pos + length].to_vec();
                if here.contains(&b'N') {
                    return None;
                }
                Some(self.left_align_and_reserve(match rng.draw_below(4) {
                    0 | 1 => SequenceEdit { position: at, removed: here, added: vec![] },
                    2 => SequenceEdit { position: at, removed: vec![], added: here },
                    _ => SequenceEdit {
                        position: at,
                        removed: vec![],
                        added: (0..length).map(|_| rng.draw_base(0.42)).collect(),
                    },
                }))
            }
            SmallVariantKind::RepeatLengthChange => {
                let [homopolymers, others] = &self.tracts;
                let choice = if others.is_empty() || (!homopolymers.is_empty() && rng.draw_bernoulli(0.5)) {
                    homopolymers
                } else {
                    others
                };
                if choice.is_empty() {
                    return self.propose_random_variant(occupied, rng, SmallVariantKind::Indel, longest);
                }
                let CompactTandemRepeat { start, contig, length, unit } = *rng.choose_item(choice);
                let tract = TandemRepeat { start, end: start + usize::from(length), unit: unit.into() };
                self.propose_repeat_length_change(contig as usize, tract, rng, longest)
            }
        }
    }

    /// Proposes a length change of a tandem repeat by whole units, at most `longest` bp; `None` if it is not possible.
    pub(crate) fn propose_repeat_length_change(
        &self,
        contig: usize,
        tract: TandemRepeat,
        rng: &mut Rng,
        longest: usize,
    ) -> Option<ProposedVariant> {
        let seq = &self.genome.seqs[contig];
        let copies = (tract.end - tract.start) / tract.unit;
        let shorter = rng.draw_bernoulli(0.5);
        // Two units stay, so that the site is still a tandem repeat.
        let most = if shorter { copies.saturating_sub(2) } else { copies }.min(longest / tract.unit);
        if most == 0 {
            return None;
        }
        let length = rng.draw_log_uniform(1, most) * tract.unit;
        let at = GenomePosition { contig, pos: tract.start };
        let units: Vec<u8> = seq[tract.start..tract.start + tract.unit].iter().copied().cycle().take(length).collect();
        let (removed, added) = if shorter { (units, vec![]) } else { (vec![], units) };
        Some(self.left_align_and_reserve(SequenceEdit { position: at, removed, added }))
    }

    /// Proposes a substitution of `length` adjacent bases, all of which change; `None` at the end of the contig or at
    /// an N.
    pub(crate) fn propose_substitution(
        &self,
        at: GenomePosition,
        rng: &mut Rng,
        length: usize,
    ) -> Option<ProposedVariant> {
        let removed = self.genome.seqs[at.contig].get(at.pos..at.pos + length)?.to_vec();
        if removed.contains(&b'N') {
            return None;
        }
        let added = removed.iter().map(|&b| draw_substituted_base(rng, b)).collect();
        Some(self.left_align_and_reserve(SequenceEdit { position: at, removed, added }))
    }

    fn left_align_and_reserve(&self, mut edit: SequenceEdit) -> ProposedVariant {
        let seq = &self.genome.seqs[edit.position.contig];
        edit.left_align(seq);
        let allele = if edit.is_substitution() { vec![] } else { [edit.removed.as_slice(), &edit.added].concat() };
        let mut end = edit.reference_end();
        // Rightwards the allele rotates the other way: count the positions at which the same change can be written.
        let mut steps = 0;
        while !allele.is_empty() && end < seq.len() && seq[end] == allele[steps % allele.len()] {
            steps += 1;
            end += 1;
        }
        let reserved =
            ContigSpan { contig: edit.position.contig, start: edit.position.pos.saturating_sub(1), end: end + 1 };
        ProposedVariant { edit, reserved }
    }
}

/// Draws a base other than `base`. The transition is twice as likely as both transversions together.
fn draw_substituted_base(rng: &mut Rng, base: u8) -> u8 {
    let transition = match base {
        b'A' => b'G',
        b'G' => b'A',
        b'C' => b'T',
        _ => b'C',
    };
    if rng.draw_bernoulli(2.0 / 3.0) {
        return transition;
    }
    loop {
        let other = rng.draw_other_base(base);
        if other != transition {
            return other;
        }
    }
}
