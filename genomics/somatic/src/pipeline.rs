//! The units of a call, their threads and their order; the stages themselves are single-threaded and pure.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use genuma_reads::Lane;
use genuma_reads::copy::{Copied, ReadCopy};
use genuma_reads::fasta::Reference;
use genuma_work::clock::{Clock, UnitCost};
use genuma_work::unit::Store;
use genuma_work::{Meter, Watch};

use crate::compare::Compared;
use crate::count::{self, Counting, Counts};
use crate::gather::{Gather, Gathering};
use crate::judge::{self, Judging};
use crate::label::sought;
use crate::ledger::Ledger;
use crate::panel::{InNormals, Panel};
use crate::passes::{Passes, Reads};
use crate::ranges::{Recruited, Shelving};
use crate::recruit::{Index, Seen, Wanted};
use crate::samples::Samples;
use crate::select::Pick;
use crate::units::{Contigs, Places, Surroundings};
use crate::why::{Question, Why};

pub use crate::error::Error;
pub use crate::judge::Finished;
pub use crate::means::{Means, Params};

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Job {
    /// Reads of all samples.
    pub lanes: Vec<Lane>,
    /// What these are called.
    pub samples: Samples,
    /// Where calls are placed; without it on the assembled normal contigs.
    pub reference: Option<PathBuf>,
    /// Sequences that are screened for.
    pub screen: Option<PathBuf>,
    /// What the result depends on.
    pub params: Params,
    /// What it may use.
    pub means: Means,
    /// Where units leave their results.
    pub store: Store,
    /// Variants that are to be followed; they need a reference.
    pub why: Vec<Question>,
    /// What other people's normals have, if that is known.
    pub panel: Option<Panel>,
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
        let passes = Passes {
            reads: copy.as_ref().map_or(Reads::Files(&self.lanes), Reads::Copy),
            samples: self.samples.len(),
            k: self.params.k,
            threads: self.means.threads,
        };
        ledger.append(&counts.ledger);
        if let Some(why) = &mut why {
            let meter = Arc::new(Meter::default());
            watch.begins("why", Some(meter.clone()));
            passes.all(&meter, |pair, sample, looking, hits| why.pair(pair, sample, looking, hits))?;
            why.picked(&counts.picks);
        }
        let panel = self.panel(&counts, &mut costs, &mut ledger, watch)?;
        let picks = std::mem::take(&mut counts.picks);
        let mut assembled =
            self.store.unit("assemble", &mut costs, || self.assemble(&passes, picks, why.as_mut(), watch))?;
        ledger.append(&assembled.ledger);
        if let Some(why) = &mut why {
            why.assembled(&assembled.contigs);
        }
        // Who follows variants is to see them placed.
        let store = Store { resume: self.store.resume && why.is_none(), ..self.store.clone() };
        let mut genome = None;
        let Places { contigs, wanted, ledger: lines } = store.unit("place", &mut costs, || {
            let meter = Arc::new(Meter::of("the reference"));
            watch.begins("place", self.reference.is_some().then(|| meter.clone()));
            genome = self.reference.as_deref().map(Reference::read).transpose()?;
            let with = Surroundings {
                genome: genome.as_ref(),
                k: self.params.k,
                threads: self.means.threads,
                memory: self.means.room(),
                folds: judge::library(&counts, &self.params).folds,
                meter: &meter,
            };
            Ok::<_, Error>(Places::of(&mut assembled.contigs, &with, why.as_mut()))
        })?;
        ledger.append(&lines);
        let recruited =
            self.store.unit("recruit", &mut costs, || self.recruit(&passes, wanted, &contigs, watch))?;
        if copy.is_some() {
            // Nobody reads it any more. What cannot be removed goes with the folder.
            let _ = fs::remove_file(count::copy_path(&self.store));
        }
        drop(copy);
        if genome.is_none() {
            genome = self.reference.as_deref().map(Reference::read).transpose()?;
        }
        watch.begins("judge", None);
        let judging = Judging {
            samples: &self.samples,
            counts,
            genome,
            contigs,
            assembled: &assembled.contigs,
            recruited,
            recruits: &self.recruits(),
            params: &self.params,
            means: &self.means,
            work: &self.store.work,
            ledger,
            costs,
            why,
            panel,
        };
        judging.run()
    }

    /// What the panel of normals says of what was picked, if there is one.
    fn panel(
        &self,
        counts: &Counts,
        costs: &mut Vec<UnitCost>,
        ledger: &mut Ledger,
        watch: &dyn Watch,
    ) -> Result<Option<InNormals>, Error> {
        let Some(panel) = &self.panel else { return Ok(None) };
        watch.begins("panel", None);
        let clock = Clock::start();
        let known = panel.look_up(
            &counts.picks,
            counts.usual_of_first(),
            self.means.threads,
            self.means.room() / 2,
        )?;
        known.tell(ledger);
        costs.push(clock.cost("panel"));
        Ok(Some(known))
    }

    /// First pass: joint counts, and the k-mers that only the tumour has.
    fn count(&self, genome_bases: Option<u64>, watch: &dyn Watch) -> Result<Counts, Error> {
        let tumours = self.samples.tumours().len();
        let params = self.means.counting(&self.params, genome_bases, tumours, self.store.work.clone());
        let least_tumour = self.params.least_tumour;
        let (lanes, samples) = (&self.lanes, &self.samples);
        let (reference, screen) = (self.reference.as_deref(), self.screen.as_deref());
        Ok(Counting { lanes, samples, params, least_tumour, genome_bases, reference, screen, watch }
            .all(&self.store)?)
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

    /// Second pass: the tumours' reads with such k-mers, grouped and assembled.
    fn assemble(
        &self,
        passes: &Passes<'_>,
        picks: Vec<Pick>,
        why: Option<&mut Why>,
        watch: &dyn Watch,
    ) -> Result<Contigs, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("assemble", Some(meter.clone()));
        let k = self.params.k;
        let sought = sought(k, &picks);
        let followed = why.as_ref().map(|why| why.ranks_among(&picks)).unwrap_or_default();
        // The other half is for the piles that threads have in hand, and for contigs.
        let (threads, memory, work) = (self.means.threads, self.means.room() / 2, &self.store.work);
        let tumours = self.samples.tumours().len();
        let gathering =
            Gathering::new(Gather { picks, tumours, k, threads, memory, work, followed: &followed });
        passes.label(&sought, &meter, |pair| Ok(gathering.put(pair)?))?;
        drop(sought);
        let gathered = gathering.assemble()?;
        if let Some(why) = why {
            why.grouped(&gathered.followed);
        }
        Ok(Contigs::of(gathered))
    }

    /// Where recruited pairs are.
    fn recruits(&self) -> PathBuf {
        self.store.work.join("recruit.bins")
    }

    /// Third pass: the pairs of all samples that overlap a change.
    fn recruit(
        &self,
        passes: &Passes<'_>,
        wanted: Wanted,
        contigs: &[Compared],
        watch: &dyn Watch,
    ) -> Result<Recruited, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("recruit", Some(meter.clone()));
        let index = Index::of(wanted);
        let (seen, shelving) =
            (Seen::new(&index, self.samples.len()), Shelving::new(contigs, &self.recruits())?);
        passes.recruit(&index, &seen, &meter, |pair| Ok(shelving.put(pair)?))?;
        Ok(shelving.settle(&[], &index, &index.deep(&seen, contigs.len()), self.means.threads)?)
    }
}

/// Bases of a reference that are known.
pub fn known_bases(genome: &Reference) -> u64 {
    let known = |seq: &Vec<u8>| seq.iter().filter(|b| b"ACGT".contains(b)).count() as u64;
    genome.contigs.iter().map(|c| known(&c.seq)).sum()
}
