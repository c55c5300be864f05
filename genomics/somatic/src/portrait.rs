//! What the calls of a tumour add to what both samples say of themselves: its cells in the normal, its mutations by their context, how many there are, and how
//! many tandem repeats have another length.

use genuma_pair::changes;
use genuma_pair::facts::PairFacts;
use genuma_pair::interval::Estimate;
use genuma_reads::TUMOUR;
use genuma_reads::dna::code;
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::change::{Change, position};
use crate::count::Counts;
use crate::event::{Class, Event};
use crate::genotype::Support;
use crate::in_normal;
use crate::own_alleles::OwnAlleles;
use crate::select::{Depths, usual_depth};
use crate::sites;
use crate::slippage::Slippage;
use crate::unstable::{Repeats, Visible};

/// What is told of a pair of samples after the call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Portrait {
    /// What a sample of roots says, and the tumour's own changes of how pure it is.
    pub pair: Option<PairFacts>,
    /// Share of the normal's cells that are the tumour's.
    pub tumour_in_normal: Option<Estimate>,
    /// Why that is not told, if it is not.
    pub why_no_tumour_in_normal: Option<String>,
    /// SNVs that passed by substitution and the bases beside it, in the order of [`contexts`]; nothing without a reference.
    pub spectrum: Vec<u64>,
    /// SNVs and indels that passed for each million bases known in both samples.
    pub burden: Option<Estimate>,
    /// Tandem repeats; nothing without a reference.
    pub repeats: Option<Repeats>,
}

/// The 96 contexts: substitution (C>A, C>G, C>T, T>A, T>C, T>G), then the base before, then the base behind, as `A[C>A]A`.
pub fn contexts() -> Vec<String> {
    let mut all = Vec::with_capacity(96);
    for (from, tos) in [('C', "AGT"), ('T', "ACG")] {
        for to in tos.chars() {
            for before in "ACGT".chars() {
                all.extend("ACGT".chars().map(|behind| format!("{before}[{from}>{to}]{behind}")));
            }
        }
    }
    all
}

/// The index of a substitution of the base in the middle of three.
fn context(three: [u8; 3], to: u8) -> Option<usize> {
    let codes = [three[0], three[1], three[2], to].map(|b| usize::from(code(b)));
    if codes.iter().any(|&c| c > 3) || codes[1] == codes[3] {
        return None;
    }
    let [before, from, behind, to] = match codes[1] {
        0 | 2 => [3 - codes[2], 3 - codes[1], 3 - codes[0], 3 - codes[3]],
        _ => codes,
    };
    let tos: Vec<usize> = (0..4).filter(|&b| b != from).collect();
    let kind = if from == 1 { 0 } else { 3 } + tos.iter().position(|&b| b == to)?;
    Some(kind * 16 + before * 4 + behind)
}

/// What is asked after a call, the same for all of its tumours.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    /// What was counted.
    pub(crate) counts: &'a Counts,
    /// The events.
    pub(crate) events: &'a [Event],
    /// Where they lie, if that was given.
    pub(crate) reference: Option<&'a Reference>,
    /// Bases known in both samples.
    pub(crate) known: u64,
    /// How repeats slip.
    pub(crate) slippage: &'a Slippage,
    /// Threads, at least 1.
    pub(crate) threads: usize,
}

impl<'a> Called<'a> {
    /// Events that passed and that a tumour, counted from 0, has: all of them where it is the only one.
    fn passed(self, tumour: usize) -> impl Iterator<Item = &'a Event> {
        let has = move |event: &&Event| {
            let genotype = &event.calls[0].genotype;
            genotype.filters.is_empty() && genotype.tumours.get(tumour).is_none_or(|own| own.has)
        };
        self.events.iter().filter(has)
    }
}

/// What a call says of a tumour, counted from 0.
fn own(event: &Event, tumour: usize) -> Support {
    let genotype = &event.calls[0].genotype;
    genotype.tumours.get(tumour).map_or(genotype.tumour, |own| own.support)
}

impl Portrait {
    /// Of a tumour, counted from 0, beside the normal.
    pub(crate) fn of(called: Called<'_>, tumour: usize) -> Portrait {
        let Called { counts, reference, slippage, threads, .. } = called;
        let passed = || called.passed(tumour);
        let small = |event: &&Event| matches!(event.class, Class::Snv | Class::Mnv | Class::Indel);
        let changes: Vec<changes::Change> = passed()
            .filter(small)
            .map(|event| {
                let (support, at) = (own(event, tumour), position(&event.calls[0].change));
                // Without a reference changes lie on contigs of their own.
                let place = reference.map(|_| (at.0 as u32, at.1 as u32));
                changes::Change { place, molecules: [support.reference, support.alternative], normal: 0 }
            })
            .collect();
        let pair = counts.looked.get(tumour).map(|looked| {
            let places =
                reference.map(|genome| sites::places(genome, &looked.roots(), looked.shape, threads));
            looked.finish(&places.unwrap_or_default(), Some(&changes))
        });
        let usual = counts.spectra.first().map_or(0.0, |normal| usual_depth(normal));
        let clone = pair.as_ref().and_then(|pair| pair.tumour.as_ref());
        let none = OwnAlleles::default();
        let in_normal = in_normal::share(counts.own.get(tumour).unwrap_or(&none), usual, clone);
        let count = passed().filter(small).count() as u64;
        let copies = pair.as_ref().map_or(0.0, |pair| pair.copies[usize::from(TUMOUR)]);
        let depths = Depths::of(&counts.spectra).kmer;
        let visible = Visible {
            kmers: depths.get(usize::from(TUMOUR) + tumour).copied().unwrap_or(0.0) * (1.0 - copies),
            read: counts.libraries.get(tumour).map_or(0, |both| both.tumor.mates[0].lengths[1]) as usize,
            purity: clone.and_then(|clone| clone.purity).map_or(1.0, |purity| purity.value),
            slippage,
        };
        Portrait {
            tumour_in_normal: in_normal.ok(),
            why_no_tumour_in_normal: in_normal.err().map(|why| why.word().into()),
            spectrum: reference.map(|genome| spectrum(passed(), genome)).unwrap_or_default(),
            burden: Estimate::rate(count, called.known as f64 / 1e6),
            repeats: reference.and_then(|genome| Repeats::of(passed(), genome, &visible, threads)),
            pair,
        }
    }
}

/// SNVs by context.
fn spectrum<'a>(events: impl Iterator<Item = &'a Event>, genome: &Reference) -> Vec<u64> {
    let mut counts = vec![0; 96];
    for event in events.filter(|event| event.class == Class::Snv) {
        let Change::Allele { chrom, pos, alternative, .. } = &event.calls[0].change else { continue };
        let seq = &genome.contigs[*chrom].seq;
        let three = pos.checked_sub(1).and_then(|before| seq.get(before..before + 3)?.try_into().ok());
        if let Some(at) = three.and_then(|three| context(three, *alternative.first()?)) {
            counts[at] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use genuma_reads::dna::base;

    use super::*;

    fn letter(code: usize) -> u8 {
        base(code as u8)
    }

    #[test]
    fn contexts_are_the_same_on_both_strands() {
        let names = contexts();
        assert_eq!((names.len(), names[0].as_str(), names[95].as_str()), (96, "A[C>A]A", "T[T>G]T"));
        let mut seen = [0; 96];
        for i in 0..256 {
            let [before, from, behind, to] = [i >> 6, i >> 4 & 3, i >> 2 & 3, i & 3];
            let Some(at) = context([before, from, behind].map(letter), letter(to)) else {
                assert_eq!(from, to);
                continue;
            };
            seen[at] += 1;
            let turned = context([3 - behind, 3 - from, 3 - before].map(letter), letter(3 - to));
            assert_eq!(turned, Some(at));
            if from == 1 || from == 3 {
                let name = format!(
                    "{}[{}>{}]{}",
                    letter(before) as char,
                    letter(from) as char,
                    letter(to) as char,
                    letter(behind) as char
                );
                assert_eq!(names[at], name);
            }
        }
        assert!(seen.iter().all(|n| *n == 2));
        assert_eq!(context(*b"ANA", b'C'), None);
    }
}
