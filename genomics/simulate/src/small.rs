//! Small variants at random places: SNVs, indels, and changes of the length of tandem repeats.

use crate::genome::Genome;
use crate::ground::Ground;
use crate::rng::Rng;
use crate::tandem::{self, Tract};
use crate::variant::{Cut, Edit, Span};

/// Longest tandem repeat whose length is changed, bp: reads must be able to span it.
const LONGEST_TRACT: usize = 80;

/// What to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One base for another.
    Snv,
    /// Bases lost, copied beside themselves or put in, anywhere.
    Indel,
    /// A tandem repeat longer or shorter by whole units.
    Tandem,
}

/// A variant, and the reference span in which it can be written.
#[derive(Debug, Clone)]
pub struct Made {
    /// The variant, left-aligned.
    pub edit: Edit,
    /// From its leftmost to its rightmost notation, with a base on both sides.
    pub reserved: Span,
}

/// Makes small variants; knows the genome's tandem repeats.
#[derive(Debug)]
pub(crate) struct SmallMaker<'a> {
    genome: &'a Genome,
    /// Homopolymers, and repeats of longer units.
    tracts: [Vec<Short>; 2],
}

/// A tract of [`LONGEST_TRACT`] bases at most; large genomes have tens of millions of them.
#[derive(Debug, Clone, Copy)]
struct Short {
    start: usize,
    contig: u32,
    length: u8,
    unit: u8,
}

impl<'a> SmallMaker<'a> {
    /// Finds the tandem repeats, where `ground` wants variants.
    pub fn new(genome: &'a Genome, ground: &Ground) -> Self {
        let mut tracts = [vec![], vec![]];
        for (contig, seq) in genome.seqs.iter().enumerate() {
            let mut found = tandem::tracts(seq);
            found.sort_unstable_by_key(|t| (t.start, t.unit));
            for Tract { start, end, unit } in found {
                let wanted = ground.is_wanted(Cut { contig, pos: start });
                if wanted && end - start <= LONGEST_TRACT {
                    let (length, contig) = ((end - start) as u8, contig as u32);
                    tracts[usize::from(unit > 1)].push(Short { start, contig, length, unit: unit as u8 });
                }
            }
        }
        SmallMaker { genome, tracts }
    }

    /// One variant at a random place; `None` when the place does not suit it.
    pub fn make(&self, ground: &Ground, rng: &mut Rng, kind: Kind, longest: usize) -> Option<Made> {
        let at = ground.random(rng);
        self.make_at(at, ground, rng, kind, longest)
    }

    /// One variant at a place, or at a random tandem repeat; `None` when the place does not suit it.
    pub(crate) fn make_at(
        &self,
        at: Cut,
        ground: &Ground,
        rng: &mut Rng,
        kind: Kind,
        longest: usize,
    ) -> Option<Made> {
        let seq = &self.genome.seqs[at.contig];
        match kind {
            Kind::Snv => {
                let from = seq[at.pos];
                (from != b'N')
                    .then(|| self.finish(Edit { at, removed: vec![from], added: vec![mutated(rng, from)] }))
            }
            Kind::Indel => {
                let length = rng.log_uniform(1, longest);
                if at.pos + length >= seq.len() {
                    return None;
                }
                let here = seq[at.pos..at.pos + length].to_vec();
                if here.contains(&b'N') {
                    return None;
                }
                Some(self.finish(match rng.below(4) {
                    0 | 1 => Edit { at, removed: here, added: vec![] },
                    2 => Edit { at, removed: vec![], added: here },
                    _ => Edit { at, removed: vec![], added: (0..length).map(|_| rng.base(0.42)).collect() },
                }))
            }
            Kind::Tandem => {
                let [homopolymers, others] = &self.tracts;
                let choice = if others.is_empty() || (!homopolymers.is_empty() && rng.chance(0.5)) {
                    homopolymers
                } else {
                    others
                };
                if choice.is_empty() {
                    return self.make(ground, rng, Kind::Indel, longest);
                }
                let Short { start, contig, length, unit } = *rng.pick(choice);
                let tract = Tract { start, end: start + usize::from(length), unit: unit.into() };
                self.resize(contig as usize, tract, rng, longest)
            }
        }
    }

    /// A tandem repeat of so many bases at most longer or shorter by whole units, anywhere in a contig.
    pub fn resize(&self, contig: usize, tract: Tract, rng: &mut Rng, longest: usize) -> Option<Made> {
        let seq = &self.genome.seqs[contig];
        let copies = (tract.end - tract.start) / tract.unit;
        let shorter = rng.chance(0.5);
        // Two units stay, so that the place is still a repeat.
        let most = if shorter { copies.saturating_sub(2) } else { copies }.min(longest / tract.unit);
        if most == 0 {
            return None;
        }
        let length = rng.log_uniform(1, most) * tract.unit;
        let at = Cut { contig, pos: tract.start };
        let units: Vec<u8> =
            seq[tract.start..tract.start + tract.unit].iter().copied().cycle().take(length).collect();
        let (removed, added) = if shorter { (units, vec![]) } else { (vec![], units) };
        Some(self.finish(Edit { at, removed, added }))
    }

    /// `length` adjacent bases, each for another one; `None` when the contig ends before or one is unknown.
    pub(crate) fn make_substitution(&self, at: Cut, rng: &mut Rng, length: usize) -> Option<Made> {
        let removed = self.genome.seqs[at.contig].get(at.pos..at.pos + length)?.to_vec();
        if removed.contains(&b'N') {
            return None;
        }
        let added = removed.iter().map(|&b| mutated(rng, b)).collect();
        Some(self.finish(Edit { at, removed, added }))
    }

    fn finish(&self, mut edit: Edit) -> Made {
        let seq = &self.genome.seqs[edit.at.contig];
        edit.left_align(seq);
        let allele =
            if edit.is_substitution() { vec![] } else { [edit.removed.as_slice(), &edit.added].concat() };
        let mut end = edit.end();
        // Rightwards the allele turns the other way; as long as it does, the same change can be written further on.
        let mut steps = 0;
        while !allele.is_empty() && end < seq.len() && seq[end] == allele[steps % allele.len()] {
            steps += 1;
            end += 1;
        }
        let reserved = Span { contig: edit.at.contig, start: edit.at.pos.saturating_sub(1), end: end + 1 };
        Made { edit, reserved }
    }
}

/// Another base; a transition twice as often as both transversions together.
fn mutated(rng: &mut Rng, base: u8) -> u8 {
    let transition = match base {
        b'A' => b'G',
        b'G' => b'A',
        b'C' => b'T',
        _ => b'C',
    };
    if rng.chance(2.0 / 3.0) {
        return transition;
    }
    loop {
        let other = rng.other_base(base);
        if other != transition {
            return other;
        }
    }
}
