//! Recruited pairs → judged events: a range of places at a time, in three turns, of which each needs what all places said in the one before.

use std::path::Path;

use genuma_pair::library::facts::Libraries;
use genuma_pair::marks::facts::Known;
use genuma_reads::TUMOUR;
use genuma_reads::fasta::Reference;
use genuma_work::clock::{Clock, UnitCost};
use genuma_work::parallel::in_order;

use crate::assemble::Contig;
use crate::compare::{self, Compared};
use crate::count::{Counts, solid};
use crate::error::Error;
use crate::errors::{self, Errors};
use crate::event::{self, Event, Library};
use crate::ledger::Ledger;
use crate::locus::{self, Call};
use crate::means::{Means, Params};
use crate::neighbours;
use crate::normal;
use crate::panel::InNormals;
use crate::portrait::{Called, Portrait};
use crate::ranges::{Ranges, Recruited};
use crate::samples::Samples;
use crate::select::Depths;
use crate::slippage::{self, Slippage};
use crate::why::{Answer, Why};

/// A finished call.
pub struct Finished {
    /// The sequences calls are placed on.
    pub genome: Reference,
    /// Places where the tumour may have changed, with the pairs recruited for them; `Call::locus` counts them.
    pub ranges: Ranges,
    /// What was found, by position.
    pub events: Vec<Event>,
    /// What the samples are called.
    pub samples: Samples,
    /// k-mer spectra of all samples.
    pub spectra: Vec<Vec<u64>>,
    /// What the spectra say.
    pub depths: Depths,
    /// Bases read of all samples.
    pub bases: Vec<u64>,
    /// Cost of each unit.
    pub costs: Vec<UnitCost>,
    /// What the reads show that their molecules do not have.
    pub errors: Errors,
    /// What each stage made and left out.
    pub ledger: Ledger,
    /// Whether the samples look like two people's: the share of places where the tumour and the normal differ, or that tumour which differs most.
    pub strangers: Option<f64>,
    /// What became of the variants asked for.
    pub answers: Vec<Answer>,
    /// For each tumour what its reads and the normal's say of the libraries.
    pub libraries: Vec<Libraries>,
    /// What there is of the contigs of the reference, and of what is screened for.
    pub known: Known,
    /// For each tumour what it and the normal say of themselves, and the calls that it has.
    pub portraits: Vec<Portrait>,
    /// Whether these are those of a reference.
    pub on_reference: bool,
}

/// What is judged, and with what.
pub(crate) struct Judging<'a> {
    /// What the samples are called.
    pub samples: &'a Samples,
    /// What counting says of the samples.
    pub counts: Counts,
    /// Where calls are placed; none: on the normal's side of the contigs.
    pub genome: Option<Reference>,
    /// The contigs that reads were looked for.
    pub contigs: Vec<Compared>,
    /// All contigs as assembled; only looked at where there is no reference.
    pub assembled: &'a [Contig],
    /// What was recruited.
    pub recruited: Recruited,
    /// Where it is.
    pub recruits: &'a Path,
    /// What the result depends on.
    pub params: &'a Params,
    /// What judging may use.
    pub means: &'a Means,
    /// Where what memory has no room for goes.
    pub work: &'a Path,
    /// What was made and left out so far.
    pub ledger: Ledger,
    /// What it cost so far.
    pub costs: Vec<UnitCost>,
    /// Variants that are followed.
    pub why: Option<Why>,
    /// What the panel of normals says, if there is one.
    pub panel: Option<InNormals>,
}

/// Places at which each sample has another allele alone, by k-mers that both samples have, from which they are of two people:
/// between strangers one base in some thousands, in one person one in millions.
const TWO_PEOPLE: f64 = 1e-4;

/// What the reads of a library are like.
pub fn library(counts: &Counts, params: &Params) -> Library {
    // The artefacts of one tumour's library are among the calls of all.
    let tumours = counts.trimmed.iter().skip(TUMOUR.into());
    let most = tumours.max_by(|a, b| a.folding().total_cmp(&b.folding())).copied().unwrap_or_default();
    Library::of(&most, known(&counts.spectra), params.least_quality)
}

impl Judging<'_> {
    /// Judges all of it.
    ///
    /// # Errors
    /// What memory had no room for cannot be written or read, or is damaged.
    pub fn run(self) -> Result<Finished, Error> {
        let clock = Clock::start();
        let samples = self.samples.len();
        let turns = Turns { params: self.params, samples, threads: self.means.threads };
        let Judging {
            counts,
            genome,
            contigs,
            assembled,
            recruited,
            mut ledger,
            mut costs,
            mut why,
            panel,
            ..
        } = self;
        let library = library(&counts, self.params);
        ledger.made("recruit", "pairs kept", recruited.pairs);
        let deep = recruited.thinned.iter().filter(|t| **t != [1, 1]).count() as u64;
        ledger.left_out(
            "recruit",
            "of the contigs, those so deep that only one pair in several was kept",
            deep,
        );
        let on_reference = genome.is_some();
        let memory = self.means.room() / 2;
        let mut ranges = Ranges::new(recruited, self.recruits, contigs, memory, self.work, turns.threads)?;
        let genome = match genome {
            Some(genome) => genome,
            None => turns.on_normals(assembled, &mut ranges)?,
        };
        let rivals = locus::find_rivals(ranges.loci_mut());
        ledger.left_out(
            "judge",
            "contigs beside another, beyond the deepest that it is held against",
            rivals,
        );
        let crowded = ranges.loci().iter().filter(|l| l.is_crowded()).count() as u64;
        ledger.left_out(
            "judge",
            "contigs with so many changes that reads are not held against each alone",
            crowded,
        );
        let errors = turns.errors(&mut ranges)?;
        turns.join_neighbours(&mut ranges, &errors)?;
        let mut calls = turns.calls(&mut ranges, &errors)?;
        if let Some(panel) = panel {
            let reference = on_reference.then_some(&genome);
            panel.mark(ranges.loci(), reference, self.params.k, turns.threads, &mut calls);
        }
        ledger.made("judge", "changes judged", calls.len() as u64);
        let events = event::events(calls, &library);
        ledger.made("judge", "events", events.len() as u64);
        if let Some(why) = &mut why {
            why.judged(ranges.loci(), &events, &genome);
        }
        let known = known(&counts.spectra);
        let reference = on_reference.then_some(&genome);
        let called = Called {
            counts: &counts,
            events: &events,
            reference,
            known,
            slippage: &errors.slippage,
            threads: turns.threads,
        };
        let portraits =
            (0..self.samples.tumours().len()).map(|tumour| Portrait::of(called, tumour)).collect();
        costs.push(clock.cost("judge"));
        Ok(Finished {
            genome,
            ranges,
            events,
            samples: self.samples.clone(),
            strangers: strangers(&counts),
            depths: Depths::of(&counts.spectra),
            spectra: counts.spectra,
            bases: counts.bases,
            libraries: counts.libraries,
            known: counts.known,
            portraits,
            costs,
            errors,
            ledger,
            answers: why.map(Why::answers).unwrap_or_default(),
            on_reference,
        })
    }
}

/// The turns over all places.
struct Turns<'a> {
    params: &'a Params,
    samples: usize,
    threads: usize,
}

impl Turns<'_> {
    /// Without a reference: the normal side of each contig, assembled from the recruited reads; the reads then lie on the contigs as
    /// compared with that.
    fn on_normals(&self, assembled: &[Contig], ranges: &mut Ranges) -> Result<Reference, Error> {
        let (n, threads) = (assembled.len(), self.threads);
        let mut normals = vec![normal::Normals::default(); n];
        ranges.for_each(|loci, contigs, pairs| {
            let assemble = |(): &mut (), i: usize| normal::assemble(&loci[contigs[i] as usize], pairs);
            let found = in_order(contigs.len(), threads, || (), assemble);
            contigs.iter().zip(found).for_each(|(&c, found)| normals[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        let (genome, hits) = normal::genome(&normals);
        let compare = |(): &mut (), c: usize| compare::compare(&assembled[c], &hits[c], &genome);
        ranges.lay_on(in_order(n, threads, || (), compare))?;
        Ok(genome)
    }

    /// What the recruited reads say of their errors.
    fn errors(&self, ranges: &mut Ranges) -> Result<Errors, Error> {
        let (threads, n) = (self.threads, ranges.loci().len());
        let mut bases = errors::Tally::of_samples(self.samples);
        let mut slips = vec![slippage::Tally::default(); n];
        ranges.for_each(|loci, contigs, pairs| {
            let tally = |(): &mut (), i: usize| loci[contigs[i] as usize].tallies(pairs);
            for (&c, (b, s)) in contigs.iter().zip(in_order(contigs.len(), threads, || (), tally)) {
                bases.add(&b);
                slips[c as usize] = s;
            }
            Ok::<(), Error>(())
        })?;
        let mut all = slippage::Tally::default();
        slips.iter().for_each(|s| all.add(s));
        Ok(Errors::of(&bases, Slippage::of(&all)))
    }

    /// Makes one change of neighbouring substitutions that no molecules part.
    fn join_neighbours(&self, ranges: &mut Ranges, errors: &Errors) -> Result<(), Error> {
        let mut weighed = vec![Vec::new(); ranges.loci().len()];
        if !ranges.loci().iter().any(|locus| neighbours::has_neighbours(&locus.contig)) {
            return Ok(());
        }
        ranges.for_each(|loci, contigs, pairs| {
            let weigh = |(): &mut (), i: usize| {
                neighbours::weigh_neighbours(contigs[i] as usize, loci, pairs, errors)
            };
            let found = in_order(contigs.len(), self.threads, || (), weigh);
            contigs.iter().zip(found).for_each(|(&c, found)| weighed[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        neighbours::join_neighbours(ranges.loci_mut(), weighed.into_iter().flatten());
        Ok(())
    }

    /// The changes of all loci, judged, by locus.
    fn calls(&self, ranges: &mut Ranges, errors: &Errors) -> Result<Vec<Call>, Error> {
        let mut calls = vec![Vec::new(); ranges.loci().len()];
        ranges.for_each(|loci, contigs, pairs| {
            let judge = |(): &mut (), i: usize| {
                let l = contigs[i] as usize;
                loci[l].judge(l, &loci[l].evidence(loci, pairs, errors), self.params.least_quality)
            };
            let found = in_order(contigs.len(), self.threads, || (), judge);
            contigs.iter().zip(found).for_each(|(&c, found)| calls[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        Ok(calls.into_iter().flatten().collect())
    }
}

/// Bases known in the normal and in a tumour.
fn known(spectra: &[Vec<u64>]) -> u64 {
    let (normal, tumours) = spectra.split_at(TUMOUR.into());
    let most = |of: &[Vec<u64>]| of.iter().map(|s| solid(s)).max().unwrap_or(0);
    most(normal).min(most(tumours))
}

/// Share of the places known in both samples at which each has another allele alone, if that is more than one person has.
fn strangers(counts: &Counts) -> Option<f64> {
    let [normal, tumours @ ..] = &counts.spectra[..] else { return None };
    let share = |(&strangers, tumour): (&u64, &Vec<u64>)| {
        let all = solid(normal).min(solid(tumour));
        // Each such place shows in the roots on its two sides.
        let share = strangers as f64 / 2.0 / all.max(1) as f64;
        (strangers >= 20 && share > TWO_PEOPLE).then_some(share)
    };
    counts.strangers.iter().zip(tumours).filter_map(share).reduce(f64::max)
}
