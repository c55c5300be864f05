//! What goes into the tube of each sample, and how many pairs of it are read.

use crate::cells::Cells;
use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::mitochondrion;
use crate::params::Params;
use crate::ploidy::Ploidy;
use crate::rng::{Rng, Stream};
use crate::sequencing::{
    Captured, Coverage, Inserts, Kind, Library, Machine, Mixture, Pool, Recurrent, Sampling, Shown, Source,
    Tube, kept,
};
use crate::targets::Targets;

/// Pairs drawn to find out what one adds to the depth.
const PILOT: usize = 40_000;

/// Everything that is sequenced.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The nuclear genome.
    pub genome: &'a Genome,
    /// The chromosomes of all cells.
    pub cells: &'a Cells<'a>,
    /// How many copies of each contig healthy cells have.
    pub ploidy: &'a Ploidy,
    /// Targets, if some were captured.
    pub targets: Option<&'a Targets>,
    /// Places where every library shows the same wrong base.
    pub recurrent: &'a [Recurrent],
    /// What is wanted.
    pub params: &'a Params,
}

/// What sets a sample apart.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Mean coverage of the genome, or of its targets.
    pub depth: f64,
    /// Share of tumour cells.
    pub(crate) tumour_share: f64,
    /// Share of the reads that are another person's.
    pub foreign: f64,
    /// Its random numbers.
    pub stream: Stream,
}

/// Random numbers of a sample beside those of its blocks of reads, which count from 0.
#[derive(Clone, Copy)]
enum Beside {
    Wave,
    Indices,
    Pilot,
    Recurrent,
}

/// A sample that is ready to be sequenced.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// Its molecules.
    pub library: Library<'a>,
    /// What reads them.
    pub machine: Machine<'a>,
    /// How many pairs are read.
    pub pairs: usize,
    /// The seed of the blocks of reads.
    pub seed: u64,
}

impl<'a> Bench<'a> {
    /// Mixes what a sample is of and counts the pairs that its depth takes.
    pub fn prepare(&self, sample: &Sample) -> Result<Prepared<'a>> {
        let reads = &self.params.sequencing;
        let seed = self.params.stream(sample.stream).bits();
        let random = |what: Beside| Rng::stream(seed, &[u64::MAX - what as u64]);
        let machine = Machine::new(reads, &mut random(Beside::Indices));
        let shared = self.params.stream(Stream::Coverage);
        let coverage = Coverage::new(&reads.coverage, self.genome, shared, random(Beside::Wave));
        let inserts = Inserts::new(reads);

        let patient = self.cells.patient(sample.tumour_share);
        let shortest = reads.longest_read();
        let pool = Pool::new(&patient, shortest);
        let known = self.genome.known_bases() as f64;
        // The depth is that of two copies: what is amplified comes on top.
        let amplified = self.params.copies.amplifications > 0;
        let content = if amplified {
            pool.bases() / (2 * self.genome.length()) as f64
        } else {
            self.ploidy.content(self.genome)
        };
        let per_pair = if machine.is_uniform() {
            (2 * reads.read_length) as f64
        } else {
            bases_of_pair(&inserts, &machine, &mut random(Beside::Pilot))
        };

        let mut sources = vec![];
        let mut add = |pairs: f64, kind: Kind, sampling: Sampling<'a>| {
            if pairs > 0.0 {
                sources.push(Source { share: pairs, kind, sampling });
            }
        };
        let (own, foreign) = (1.0 - sample.foreign, sample.foreign);
        let mut anywhere = sample.depth * known / per_pair * content;
        let mut foreign_anywhere = anywhere * foreign;
        if let (Some(targets), Some(capture)) = (self.targets, &self.params.capture) {
            let caught = Captured::new(&patient, targets, inserts.longest());
            if caught.is_empty() {
                return Err(Error::Parameters("the tumour has lost all targets; choose others".into()));
            }
            let on_target =
                on_target_of_pair(&caught, coverage.as_ref(), &inserts, &machine, &mut random(Beside::Pilot));
            let content = if amplified { caught.content() } else { 1.0 };
            let pairs = sample.depth * targets.bases() as f64 / on_target * content;
            anywhere *= capture.off_target;
            add(pairs * own, Kind::Patient, Sampling::Targets(caught));
            let others = Captured::new(&self.cells.foreign(), targets, inserts.longest());
            if others.is_empty() {
                // Another species has no targets.
                foreign_anywhere = (anywhere + pairs) * foreign;
            } else {
                foreign_anywhere = anywhere * foreign;
                add(pairs * foreign, Kind::Foreign, Sampling::Targets(others));
            }
        }
        add(anywhere * own, Kind::Patient, Sampling::Anywhere(pool));
        add(foreign_anywhere, Kind::Foreign, pool_of(&self.cells.foreign(), shortest));
        if self.params.samples.mitochondrion > 0.0 {
            let pairs = self.params.samples.mitochondrion * mitochondrion::LENGTH as f64 / per_pair;
            let mixture = self.cells.mitochondria(sample.tumour_share, foreign);
            add(pairs, Kind::Mitochondrion, pool_of(&mixture, shortest));
        }
        let pairs = sources.iter().map(|s| s.share).sum::<f64>().round() as usize;
        let shown = || Shown::new(self.recurrent, &mut random(Beside::Recurrent));
        let recurrent = (!self.recurrent.is_empty()).then(shown);
        let library = Library::new(Tube::new(sources, coverage), reads, recurrent);
        Ok(Prepared { library, machine, pairs, seed })
    }
}

fn pool_of<'a>(mixture: &Mixture<'a>, shortest: usize) -> Sampling<'a> {
    Sampling::Anywhere(Pool::new(mixture, shortest))
}

/// Bases of their molecules that the mates of a pair have, on average.
fn bases_of_pair(inserts: &Inserts, machine: &Machine, rng: &mut Rng) -> f64 {
    let pair = |rng: &mut Rng| {
        let insert = inserts.draw(rng).length();
        machine.lengths(rng).map(|length| length.min(insert)).iter().sum::<usize>()
    };
    (0..PILOT).map(|_| pair(rng)).sum::<usize>() as f64 / PILOT as f64
}

/// Bases of targets that the mates of a caught pair have, on average.
fn on_target_of_pair(
    caught: &Captured,
    coverage: Option<&Coverage>,
    inserts: &Inserts,
    machine: &Machine,
    rng: &mut Rng,
) -> f64 {
    let pair = |rng: &mut Rng| {
        let insert = inserts.draw(rng).length();
        if insert == 0 {
            return 0;
        }
        let fragment = kept(|rng| caught.fragment(insert, rng), coverage, rng);
        let n = fragment.len();
        let [first, second] = machine.lengths(rng).map(|length| length.min(n));
        caught.overlap(&fragment, 0, first) + caught.overlap(&fragment, n - second, n)
    };
    (0..PILOT).map(|_| pair(rng)).sum::<usize>() as f64 / PILOT as f64
}
