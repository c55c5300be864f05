//! The units of a call, their threads and their order; the stages themselves are single-threaded and pure.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use genuma_kmers::{CountParams, Part};
use genuma_reads::copy::{Copied, ReadCopy};
use genuma_reads::fasta::Reference;
use genuma_reads::{Lane, NORMAL, Pair, TUMOUR, Trimmer};
use genuma_work::clock::{Clock, UnitCost};
use genuma_work::parallel::in_order;
use genuma_work::timeline;
use genuma_work::unit::{self, Store};
use genuma_work::{Meter, Watch, spill};
use serde::{Deserialize, Serialize};

use crate::assemble::{Assembled, Contig};
use crate::compare::{self, Compared};
use crate::count::{self, Counting, Counts, solid};
use crate::errors::{self, Errors};
use crate::event::{self, Event};
use crate::gather::{Gather, Gathered, Gathering};
use crate::label::{self, Labelled};
use crate::ledger::Ledger;
use crate::locus::{self, Call};
use crate::neighbours;
use crate::normal;
use crate::place::{Placing, place};
use crate::ranges::{Ranges, Recruited, Shelving};
use crate::recruit;
use crate::select::{Depths, Pick};
use crate::slippage::{self, Slippage};
use crate::sought::{KmerHit, Looking, Sought};
use crate::why::{Answer, Question, Why};

/// What can stop a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or the reference could not be read, or a file not be written.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// Counting failed.
    #[error(transparent)]
    Count(#[from] count::Error),
    /// Placing failed.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
    /// A unit's file is not usable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// What memory had no room for is not usable.
    #[error(transparent)]
    Spill(#[from] spill::Error),
    /// The input cannot give an answer.
    #[error("{0}")]
    Input(String),
}

/// Everything the result of a call depends on, beside the reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// k-mer length, 24..=32.
    pub k: u32,
    /// k-mers with a base under this Phred quality are not counted.
    pub min_base_quality: u8,
    /// Fewest tumour occurrences of an interesting k-mer.
    pub least_tumour: u32,
    /// Lowest quality that passes.
    pub least_quality: f64,
}

/// The means: they change how long a call takes, never its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory budget of the process in bytes.
    pub memory: u64,
    /// Bytes that k-mers which do not fit in it, and a packed copy of the reads, may take in the work folder.
    pub scratch: u64,
}

impl Means {
    /// What counting with `params` gets of them, where the reference has so many bases; k-mers that have no room go to `work`.
    pub fn counting(&self, params: &Params, reference: Option<u64>, work: PathBuf) -> CountParams {
        let picks = (reference.unwrap_or(0) as f64 * count::PICKS_PER_BASE) as u64;
        CountParams {
            k: params.k,
            min_base_quality: params.min_base_quality,
            threads: self.threads,
            memory: self.memory.saturating_sub(RESERVE + picks).max(self.memory / 2),
            work,
            scratch: self.scratch,
            part: Part::WHOLE,
        }
    }

    /// Bytes that may be taken now beside what the process holds, less what is kept free for small things.
    pub fn room(&self) -> u64 {
        let held = timeline::resident().unwrap_or(self.memory / 2);
        self.memory.saturating_sub(held + RESERVE)
    }
}

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Job {
    /// Reads of both samples.
    pub lanes: Vec<Lane>,
    /// Where calls are placed; without it on the assembled normal contigs.
    pub reference: Option<PathBuf>,
    /// What the result depends on.
    pub params: Params,
    /// What it may use.
    pub means: Means,
    /// Where units leave their results.
    pub store: Store,
    /// Variants that are to be followed; they need a reference.
    pub why: Vec<Question>,
}

/// A finished call.
pub struct Finished {
    /// The sequences calls are placed on.
    pub genome: Reference,
    /// Places where the tumour may have changed, with the pairs recruited for them; `Call::locus` counts them.
    pub ranges: Ranges,
    /// What was found, by position.
    pub events: Vec<Event>,
    /// k-mer spectra of both samples.
    pub spectra: [Vec<u64>; 2],
    /// What the spectra say.
    pub depths: Depths,
    /// Bases read of both samples.
    pub bases: [u64; 2],
    /// Cost of each unit.
    pub costs: Vec<UnitCost>,
    /// What the reads show that their molecules do not have.
    pub errors: Errors,
    /// What each stage made and left out.
    pub ledger: Ledger,
    /// Whether the samples look like two people's.
    pub strangers: Option<f64>,
    /// What became of the variants asked for.
    pub answers: Vec<Answer>,
    /// Whether these are those of a reference.
    pub on_reference: bool,
}

/// Bytes kept free for what is not the counter's beside the picks: batches, tables.
const RESERVE: u64 = 256 << 20;

/// What the assembling unit leaves.
#[derive(Serialize, Deserialize)]
struct Contigs {
    contigs: Vec<Contig>,
    ledger: Ledger,
}

/// Places at which each sample has another allele alone, by k-mers that both samples have, from which they are of two people:
/// between strangers one base in some thousands, in one person one in millions.
const TWO_PEOPLE: f64 = 1e-4;

/// What a thread looks with, and what it found in the pair in hand.
struct Found {
    looking: Looking,
    hits: [Vec<KmerHit>; 2],
}

impl Found {
    fn new(k: u32) -> Found {
        Found { looking: Looking::new(k), hits: Default::default() }
    }
}

impl Job {
    /// From reads to judged events.
    pub fn run(&self, watch: &dyn Watch) -> Result<Finished, Error> {
        let (mut costs, mut ledger) = (Vec::new(), Ledger::default());
        let genome = self.reference.as_deref().map(Reference::read).transpose()?;
        let genome_bases = genome.as_ref().map(known_bases);
        let mut why = genome.as_ref().and_then(|genome| Why::new(&self.why, genome, self.params.k));
        drop(genome);
        let mut counts = self.store.unit("count", &mut costs, || self.count(genome_bases, watch))?;
        count::forget_parts(&self.store);
        let copy = counts.copied.take().map_or(Ok(None), |copied| self.copy(copied))?;
        ledger.append(&counts.ledger);
        let depths = Depths::of(&counts.spectra);
        let trimmed = &counts.trimmed[usize::from(TUMOUR)];
        let library = event::Library::of(trimmed, known(&counts.spectra), self.params.least_quality);
        if let Some(why) = &mut why {
            self.count_asked(copy.as_ref(), why, watch)?;
            why.picked(&counts.picks);
        }
        let picks = std::mem::take(&mut counts.picks);
        let mut assembled = self
            .store
            .unit("assemble", &mut costs, || self.assemble(copy.as_ref(), picks, why.as_mut(), watch))?;
        ledger.append(&assembled.ledger);
        if let Some(why) = &mut why {
            why.assembled(&assembled.contigs);
        }
        let clock = Clock::start();
        let meter = Arc::new(Meter::of("the reference"));
        watch.begins("place", self.reference.is_some().then(|| meter.clone()));
        let genome = self.reference.as_deref().map(Reference::read).transpose()?;
        let (numbers, mut contigs): (Vec<usize>, Vec<Compared>) = match &genome {
            Some(genome) => {
                let asked = why.as_ref().map(Why::contigs).unwrap_or_default();
                let placing = Placing {
                    genome,
                    threads: self.means.threads,
                    memory: self.means.room(),
                    folds: library.folds,
                    asked: &asked,
                    meter: &meter,
                };
                // Only calls without a reference look at them once more.
                let placed = place(std::mem::take(&mut assembled.contigs), &placing, &mut ledger);
                if let Some(why) = &mut why {
                    why.compared(&placed, genome);
                }
                let worth = placed.into_iter().filter(|placed| placed.unworthy.is_none());
                worth.map(|placed| (placed.number, placed.compared)).unzip()
            }
            None => assembled.contigs.iter().map(Compared::unplaced).enumerate().unzip(),
        };
        costs.push(clock.cost("place"));
        let index = recruit::Index::new(&mut contigs, self.params.k, genome.as_ref(), self.means.threads);
        if let Some(why) = &mut why {
            why.not_looked_for(index.families.iter().map(|&c| numbers[c as usize]));
        }
        let families = index.families.len() as u64;
        ledger.left_out(
            "recruit",
            "contigs in repeats of so many copies that changes cannot be told apart",
            families,
        );
        ledger.made("recruit", "contigs that reads were looked for", contigs.len() as u64);
        ledger.made("recruit", "of them without a k-mer of their own", index.nowhere_unique - families);
        let recruited = self
            .store
            .unit("recruit", &mut costs, || self.recruit(copy.as_ref(), &index, &contigs, watch))?;
        drop(index);
        if copy.is_some() {
            // Nobody reads it any more. What cannot be removed goes with the folder.
            let _ = fs::remove_file(count::copy_path(&self.store));
        }
        drop(copy);
        ledger.made("recruit", "pairs kept", recruited.pairs);
        let deep = recruited.thinned.iter().filter(|t| **t != [1, 1]).count() as u64;
        ledger.left_out(
            "recruit",
            "of the contigs, those so deep that only one pair in several was kept",
            deep,
        );
        watch.begins("judge", None);
        let clock = Clock::start();
        let on_reference = genome.is_some();
        let memory = self.means.room() / 2;
        let (work, threads) = (&self.store.work, self.means.threads);
        let mut ranges = Ranges::new(recruited, &self.recruits(), contigs, memory, work, threads)?;
        let genome = match genome {
            Some(genome) => genome,
            None => self.on_normals(&assembled.contigs, &mut ranges)?,
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
        let errors = self.errors(&mut ranges)?;
        self.join_neighbours(&mut ranges, &errors)?;
        let calls = self.calls(&mut ranges, &errors)?;
        ledger.made("judge", "changes judged", calls.len() as u64);
        let events = event::events(calls, &library);
        ledger.made("judge", "events", events.len() as u64);
        if let Some(why) = &mut why {
            why.judged(ranges.loci(), &events, &genome);
        }
        costs.push(clock.cost("judge"));
        Ok(Finished {
            genome,
            ranges,
            events,
            strangers: strangers(&counts),
            spectra: counts.spectra,
            depths,
            bases: counts.bases,
            costs,
            errors,
            ledger,
            answers: why.map(Why::answers).unwrap_or_default(),
            on_reference,
        })
    }

    /// First pass: joint counts, and the k-mers that only the tumour has.
    fn count(&self, genome_bases: Option<u64>, watch: &dyn Watch) -> Result<Counts, Error> {
        let params = self.means.counting(&self.params, genome_bases, self.store.work.clone());
        let least_tumour = self.params.least_tumour;
        let (lanes, store, reference) = (&self.lanes, &self.store, self.reference.as_deref());
        Ok(Counting { lanes, params, least_tumour, genome_bases, reference, store, watch }.all()?)
    }

    /// The copy of the reads that the first pass has left. If it is gone, those who would read it read the files.
    fn copy(&self, copied: Copied) -> Result<Option<ReadCopy>, Error> {
        let path = count::copy_path(&self.store);
        let copy = ReadCopy::open(&path, copied)?;
        let wanted = !self.why.is_empty() || !self.store.finished().contains(&"recruit".to_owned());
        if copy.is_none() && wanted {
            tracing::warn!("{}: gone, or not whole: the files of reads are read again", path.display());
        }
        Ok(copy)
    }

    /// A pass over the reads of some samples, each cut as in the first pass. Only those pairs go to `each` of which `may` says, before that, that they may
    /// be wanted; it is shown their bases, not always their qualities. They come in any order.
    fn pass(
        &self,
        copy: Option<&ReadCopy>,
        samples: &[u8],
        meter: &Meter,
        may: impl Fn(Pair<'_>, &mut Found) -> bool + Sync,
        each: impl Fn(Pair<'_>, u8, &mut Found) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (threads, found) = (self.means.threads, || Found::new(self.params.k));
        if let Some(copy) = copy {
            return copy.for_each(samples, threads, meter, found, |found, pair, sample| {
                if may(pair.bases(), found) { each(pair.whole(), sample, found) } else { Ok(()) }
            });
        }
        let of_samples = self.lanes.iter().filter(|lane| samples.contains(&lane.sample));
        let lanes: Vec<Lane> = of_samples.cloned().collect();
        let start = || (found(), Trimmer::default());
        genuma_reads::for_each_batch(&lanes, threads, meter, start, |(found, trimmer), batch| {
            let mut wanted = batch.iter();
            wanted.try_for_each(|pair| {
                if may(pair, found) { each(trimmer.trim(pair), batch.sample, found) } else { Ok(()) }
            })
        })
        .map(drop)
    }

    /// A pass of its own over both samples for the k-mers of variants that were asked for.
    fn count_asked(&self, copy: Option<&ReadCopy>, why: &Why, watch: &dyn Watch) -> Result<(), Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("why", Some(meter.clone()));
        let count = |pair: Pair<'_>, sample, found: &mut Found| {
            why.pair(pair, sample, &mut found.looking, &mut found.hits[0]);
            Ok(())
        };
        self.pass(copy, &[NORMAL, TUMOUR], &meter, |_, _| true, count)
    }

    /// Second pass: the tumour's reads with such k-mers, grouped and assembled.
    fn assemble(
        &self,
        copy: Option<&ReadCopy>,
        picks: Vec<Pick>,
        why: Option<&mut Why>,
        watch: &dyn Watch,
    ) -> Result<Contigs, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("assemble", Some(meter.clone()));
        let k = self.params.k;
        let sought = Sought::new(k, picks.iter().map(|p| p.kmer));
        let followed = why.as_ref().map(|why| why.ranks_among(&picks)).unwrap_or_default();
        // The other half is for the piles that threads have in hand, and for contigs.
        let (threads, memory, work) = (self.means.threads, self.means.room() / 2, &self.store.work);
        let gathering = Gathering::new(Gather { picks, k, threads, memory, work, followed: &followed });
        let search = |pair: Pair<'_>, found: &mut Found| {
            label::search(pair, &sought, &mut found.looking, &mut found.hits)
        };
        self.pass(copy, &[TUMOUR], &meter, search, |pair, sample, found| {
            if search(pair, found) {
                gathering.put(Labelled::keep(pair, sample, &found.hits))?;
            }
            Ok(())
        })?;
        drop(sought);
        let gathered = gathering.assemble()?;
        if let Some(why) = why {
            why.grouped(&gathered.followed);
        }
        let Gathered { pairs, copies, errors, groups, lone, not_parting, assembled, .. } = gathered;
        let mut ledger = Ledger::default();
        ledger.made("assemble", "pairs with such k-mers", pairs);
        ledger.left_out("assemble", "of them, PCR copies", copies);
        ledger.left_out("assemble", "k-mers in reads, of errors that recur at their depth", errors);
        ledger.made("assemble", "groups of pairs", groups);
        ledger.left_out("assemble", "pairs in groups too small", lone);
        ledger.left_out("assemble", "pairs in groups where the samples do not part", not_parting);
        let Assembled { contigs, few, poor, deep } = assembled;
        ledger.left_out("assemble", "stacks of too few pairs", few);
        ledger.left_out("assemble", "stacks with too few good bases where they differ from the normal", poor);
        ledger.left_out(
            "assemble",
            "times a read was not stacked, beyond the 4,096 at its k-mer or beside it",
            deep,
        );
        ledger.made("assemble", "contigs", contigs.len() as u64);
        Ok(Contigs { contigs, ledger })
    }

    /// Where recruited pairs are.
    fn recruits(&self) -> PathBuf {
        self.store.work.join("recruit.bins")
    }

    /// Third pass: the pairs of both samples that overlap a change.
    fn recruit(
        &self,
        copy: Option<&ReadCopy>,
        index: &recruit::Index,
        contigs: &[Compared],
        watch: &dyn Watch,
    ) -> Result<Recruited, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("recruit", Some(meter.clone()));
        let seen = recruit::Seen::new(index);
        let shelving = Shelving::new(contigs, &self.recruits())?;
        let may = |pair: Pair<'_>, found: &mut Found| {
            index.may_recruit(pair, &mut found.looking, &mut found.hits[0])
        };
        let both = [NORMAL, TUMOUR];
        self.pass(copy, &both, &meter, may, |pair, sample, Found { looking, hits: [hits, _] }| {
            let kept = index.recruit(pair, sample, &seen, looking, hits);
            kept.map_or(Ok(()), |pair| Ok(shelving.put(pair)?))
        })?;
        Ok(shelving.settle(index, &index.deep(&seen, contigs.len()), self.means.threads)?)
    }

    /// Without a reference: the normal side of each contig, assembled from the recruited reads; the reads then lie on the contigs as
    /// compared with that.
    fn on_normals(&self, assembled: &[Contig], ranges: &mut Ranges) -> Result<Reference, Error> {
        let (n, threads) = (assembled.len(), self.means.threads);
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
        let (threads, n) = (self.means.threads, ranges.loci().len());
        let mut bases = errors::Tally::default();
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
            let found = in_order(contigs.len(), self.means.threads, || (), weigh);
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
            let found = in_order(contigs.len(), self.means.threads, || (), judge);
            contigs.iter().zip(found).for_each(|(&c, found)| calls[c as usize] = found);
            Ok::<(), Error>(())
        })?;
        Ok(calls.into_iter().flatten().collect())
    }
}

/// Bases of a reference that are known.
fn known_bases(genome: &Reference) -> u64 {
    let known = |seq: &Vec<u8>| seq.iter().filter(|b| b"ACGT".contains(b)).count() as u64;
    genome.contigs.iter().map(|c| known(&c.seq)).sum()
}

/// Bases known in both samples.
fn known(spectra: &[Vec<u64>; 2]) -> u64 {
    spectra.iter().map(|s| solid(s)).min().unwrap_or(0)
}

/// Share of the places known in both samples at which each has another allele alone, if that is more than one person has.
fn strangers(counts: &Counts) -> Option<f64> {
    let all = known(&counts.spectra);
    // Each such place shows in the roots on its two sides.
    let share = counts.strangers as f64 / 2.0 / all.max(1) as f64;
    (counts.strangers >= 20 && share > TWO_PEOPLE).then_some(share)
}
