//! The sequencer: mates of a molecule, base by base, with all that goes wrong on the way.

use super::adapter::Adapters;
use super::counts::Counts;
use super::library::SHORTEST_INSERT;
use super::molecule::Molecule;
use super::params::SequencingParams;
use super::quality::QualityModel;
use super::slippage::{Slip, Slippage, Stage, turned};
use crate::rng::Rng;

/// The shortest mate after trimming, bases.
const SHORTEST_MATE: usize = SHORTEST_INSERT;
/// Share of wrong bases in tails of quality 2.
const WRONG_IN_TAILS: f64 = 0.3;
/// Without a signal machines of four colours mostly say A; the share of other bases.
const DARK_NOISE: f64 = 0.2;
/// Qualities of bases without a signal, from and to.
const DARK: (u8, u8) = (2, 16);
/// Phred+33 of quality 2.
const Q2: u8 = b'#';

/// A mate as it comes from the machine.
#[derive(Debug, Default)]
pub struct Mate {
    /// Bases.
    pub bases: Vec<u8>,
    /// Qualities, Phred+33.
    pub quals: Vec<u8>,
    /// Bases of the molecule that it has passed.
    pub passed: usize,
    slips: Vec<Slip>,
}

/// Reads molecules.
#[derive(Debug)]
pub struct Machine<'a> {
    params: &'a SequencingParams,
    /// One for each length of reads.
    models: Vec<QualityModel>,
    adapters: Option<Adapters>,
    slippage: Option<Slippage>,
}

impl<'a> Machine<'a> {
    /// A machine for one sample; `rng` draws the indices of its adapters.
    pub fn new(params: &'a SequencingParams, rng: &mut Rng) -> Self {
        let model = |&length: &usize| QualityModel::new(length, params.error_rate);
        Machine {
            params,
            models: params.read_lengths().iter().map(model).collect(),
            adapters: params.adapter().map(|kind| Adapters::new(kind, rng)),
            slippage: Slippage::new(Stage::Sequencing, params.machine.sequencing_slippage),
        }
    }

    /// Whether all mates have the same number of bases of their molecule.
    pub(crate) fn is_uniform(&self) -> bool {
        self.models.len() == 1 && self.adapters.is_none() && self.params.machine.trimmed == 0.0
    }

    /// Random lengths of the mates of a pair, as the files have them.
    pub fn lengths(&self, rng: &mut Rng) -> [usize; 2] {
        let length = self.model(rng).length();
        [length, length].map(|length| self.kept(length, rng))
    }

    /// Reads a molecule from both ends.
    pub fn pair(&self, molecule: &Molecule, mates: &mut [Mate; 2], rng: &mut Rng, counts: &mut Counts) {
        let model = self.model(rng);
        for (number, mate) in mates.iter_mut().enumerate() {
            self.read(molecule, number, model, mate, rng, counts);
        }
    }

    fn model(&self, rng: &mut Rng) -> &QualityModel {
        if let [model] = &*self.models { model } else { rng.pick(&self.models) }
    }

    fn read(
        &self,
        molecule: &Molecule,
        number: usize,
        model: &QualityModel,
        mate: &mut Mate,
        rng: &mut Rng,
        counts: &mut Counts,
    ) {
        let length = model.length();
        mate.bases.clear();
        mate.slips.clear();
        match &self.slippage {
            None => molecule.read(number, length, &mut mate.bases),
            Some(slippage) => self.read_with_slips(molecule, number, length, slippage, mate, rng),
        }
        counts.sequencing_slips += mate.slips.len() as u64;
        let own = mate.bases.len();
        let mut lit = own;
        if own < length
            && let Some(adapters) = &self.adapters
        {
            counts.adapter_mates += 1;
            adapters.extend(number, length, &mut mate.bases);
            lit = mate.bases.len();
            mate.bases.extend((lit..length).map(|_| self.dark_base(rng)));
        }
        model.read(number, &mut mate.bases, &mut mate.quals, rng);
        self.spoil(lit, mate, rng, counts);
        let kept = self.kept(mate.bases.len(), rng);
        counts.trimmed_mates += u64::from(kept < mate.bases.len());
        mate.bases.truncate(kept);
        mate.quals.truncate(kept);
        let passed = own.min(kept);
        let gained: isize =
            mate.slips.iter().filter(|s| s.tract.start < passed).map(|slip| slip.gained()).sum();
        mate.passed = passed.saturating_add_signed(-gained);
    }

    fn read_with_slips(
        &self,
        molecule: &Molecule,
        number: usize,
        length: usize,
        slippage: &Slippage,
        mate: &mut Mate,
        rng: &mut Rng,
    ) {
        let n = molecule.len();
        let backwards = molecule.read_backwards(number);
        for &tract in &molecule.tracts {
            let mut tract = if backwards { turned(tract, n) } else { tract };
            tract.end = tract.end.min(length);
            if tract.start < length {
                mate.slips.extend(slippage.draw(tract, rng));
            }
        }
        // What is lost is made up for by what comes next.
        let lost: usize = mate.slips.iter().map(|slip| (-slip.gained()).max(0) as usize).sum();
        molecule.read(number, length + lost, &mut mate.bases);
        // From the last to the first, so that places stay what they are.
        mate.slips.sort_unstable_by_key(|slip| std::cmp::Reverse(slip.tract.start));
        for slip in &mate.slips {
            slip.apply(&mut mate.bases);
        }
        mate.bases.truncate(length);
    }

    /// What is called where there is no signal.
    fn dark_base(&self, rng: &mut Rng) -> u8 {
        if self.params.machine.two_colour {
            b'G'
        } else if rng.chance(DARK_NOISE) {
            rng.base(0.5)
        } else {
            b'A'
        }
    }

    /// Everything that goes wrong beyond wrong bases; from `lit` on there is no signal.
    fn spoil(&self, lit: usize, mate: &mut Mate, rng: &mut Rng, counts: &mut Counts) {
        let machine = &self.params.machine;
        if !machine.two_colour {
            for quality in &mut mate.quals[lit..] {
                *quality = 33 + DARK.0 + rng.below(usize::from(DARK.1 - DARK.0) + 1) as u8;
            }
        }
        let mut at = rng.skip(machine.n_rate);
        while at < mate.bases.len() {
            counts.n_bases += 1;
            (mate.bases[at], mate.quals[at]) = (b'N', Q2);
            at = at.saturating_add(1).saturating_add(rng.skip(machine.n_rate));
        }
        if machine.quality_tails > 0.0 && rng.chance(machine.quality_tails) {
            counts.quality_tails += 1;
            let from = rng.below(mate.bases.len().max(1));
            for (base, quality) in mate.bases.iter_mut().zip(&mut mate.quals).skip(from) {
                *quality = Q2;
                if *base != b'N' && rng.chance(WRONG_IN_TAILS) {
                    *base = rng.other_base(*base);
                }
            }
        }
        if machine.binned_qualities {
            mate.quals.iter_mut().for_each(|quality| *quality = binned(*quality));
        }
    }

    /// How many bases of a mate are kept.
    fn kept(&self, length: usize, rng: &mut Rng) -> usize {
        let trimmed = self.params.machine.trimmed;
        if trimmed > 0.0 && length > SHORTEST_MATE && rng.chance(trimmed) {
            SHORTEST_MATE + rng.below(length - SHORTEST_MATE + 1)
        } else {
            length
        }
    }
}

/// The one of NovaSeq's four qualities that stands for one of 41.
fn binned(quality: u8) -> u8 {
    33 + match quality - 33 {
        0..=2 => 2,
        3..=17 => 12,
        18..=29 => 23,
        _ => 37,
    }
}
