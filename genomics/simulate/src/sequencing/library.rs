//! Molecules from fragments: what preparing a library does to them, in the order in which it happens.

use super::chimera;
use super::counts::Counts;
use super::damage;
use super::foldback::fold_back;
use super::molecule::Molecule;
use super::params::SequencingParams;
use super::recurrent::Shown;
use super::slippage::{Slippage, Stage};
use super::tube::{Drawn, Kind, Tube};
use crate::rng::Rng;
use crate::tandem;

/// The shortest fragment where adapters are read into, bp: shorter ones do not survive the cleaning of the library.
pub const SHORTEST_INSERT: usize = 30;
/// Share of the short molecules that are two adapters with nothing between them.
const DIMERS: f64 = 0.02;

/// Draws the lengths of fragments.
#[derive(Debug, Clone)]
pub struct Inserts {
    mean: f64,
    sd: f64,
    shortest: f64,
    /// Share of short ones, and how long they are at most.
    short: (f64, usize),
}

/// The length of a fragment, bp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insert {
    /// As most are.
    Usual(usize),
    /// No longer than a read.
    Short(usize),
    /// There is none.
    Dimer,
}

impl Insert {
    /// In bp.
    pub fn length(self) -> usize {
        match self {
            Insert::Usual(length) | Insert::Short(length) => length,
            Insert::Dimer => 0,
        }
    }
}

impl Inserts {
    /// Without adapters no fragment is shorter than a read.
    pub fn new(params: &SequencingParams) -> Self {
        let read = params.longest_read();
        let shortest = if params.adapter().is_some() { SHORTEST_INSERT.min(read) } else { read };
        Inserts {
            mean: params.insert_mean,
            sd: params.insert_sd,
            shortest: shortest as f64,
            short: (params.library.short_inserts, read),
        }
    }

    /// A random length.
    pub fn draw(&self, rng: &mut Rng) -> Insert {
        let (share, longest) = self.short;
        if share > 0.0 && rng.chance(share) {
            let shortest = self.shortest as usize;
            let length = shortest + rng.below(longest - shortest + 1);
            return if rng.chance(DIMERS) { Insert::Dimer } else { Insert::Short(length) };
        }
        Insert::Usual(self.usual(rng))
    }

    /// A random length, not of the short ones.
    pub fn usual(&self, rng: &mut Rng) -> usize {
        let length = (0..100).map(|_| rng.normal(self.mean, self.sd)).find(|&l| l >= self.shortest);
        length.unwrap_or(self.shortest) as usize
    }

    /// The length that few fragments exceed.
    pub fn longest(&self) -> usize {
        (self.mean + 3.0 * self.sd) as usize
    }
}

/// Makes the molecules of a sample.
#[derive(Debug)]
pub struct Library<'a> {
    tube: Tube<'a>,
    params: &'a SequencingParams,
    inserts: Inserts,
    slippage: Option<Slippage>,
    /// Wrong bases that recur, if there are any.
    recurrent: Option<Shown>,
}

impl<'a> Library<'a> {
    /// A library of what is in a tube.
    pub fn new(tube: Tube<'a>, params: &'a SequencingParams, recurrent: Option<Shown>) -> Self {
        let slippage = Slippage::new(Stage::Pcr, params.library.pcr_slippage);
        Library { tube, params, inserts: Inserts::new(params), slippage, recurrent }
    }

    /// A new molecule.
    pub fn molecule(&self, rng: &mut Rng, counts: &mut Counts) -> Molecule<'a> {
        counts.molecules += 1;
        let insert = self.inserts.draw(rng);
        counts.short_inserts += u64::from(!matches!(insert, Insert::Usual(_)));
        if insert == Insert::Dimer {
            counts.adapter_dimers += 1;
            return Molecule::dimer();
        }
        let Drawn { fragment, kind, captured } = self.tube.fragment(insert.length(), rng);
        let reverse = rng.chance(0.5);
        let mut molecule = Molecule::new(fragment, reverse, kind);
        molecule.captured = captured;
        damage::damage(&mut molecule, &self.params.library, rng, counts);
        if let Some(recurrent) = &self.recurrent
            && kind == Kind::Patient
        {
            recurrent.strike(&mut molecule, &fragment, reverse, rng, counts);
        }
        self.rearrange(&mut molecule, rng, counts);
        self.amplify(&mut molecule, rng, counts);
        molecule
    }

    /// Folds a molecule back, or joins it with another.
    fn rearrange(&self, molecule: &mut Molecule<'a>, rng: &mut Rng, counts: &mut Counts) {
        let (fold_backs, chimeras) = (self.params.library.fold_backs, self.params.library.chimeras);
        if fold_backs + chimeras == 0.0 {
            return;
        }
        let choice = rng.unit();
        if choice < fold_backs {
            let length = self.inserts.usual(rng);
            counts.fold_backs += u64::from(fold_back(molecule, length, rng));
        } else if choice < fold_backs + chimeras {
            counts.chimeras += u64::from(chimera::join(molecule, &self.tube, rng));
        }
    }

    /// What the first rounds of PCR do.
    fn amplify(&self, molecule: &mut Molecule<'a>, rng: &mut Rng, counts: &mut Counts) {
        if self.slippage.is_some() || self.params.machine.sequencing_slippage > 0.0 {
            let mut tracts = vec![];
            tandem::find_tracts(molecule.bases(), &mut tracts);
            molecule.tracts = tracts;
        }
        if let Some(slippage) = &self.slippage {
            slippage.slip(molecule, rng, counts);
        }
        damage::copy_errors(molecule, self.params.library.pcr_errors, rng, counts);
    }
}
