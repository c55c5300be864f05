//! A call in parts: steps that each run in a process, on a machine, of its own, through objects only.
//!
//! ```text
//! scatter, a shard of the reads each ─→ k-mers by partition, a packed copy of the shard
//! count, a partition each             ─→ its picks, spectra
//! pick                                ─→ all picks, without what the reference has
//! label, a shard each                 ─→ the tumour's pairs that carry picks, on piles
//! assemble                            ─→ contigs
//! place                               ─→ where they lie, what differs, by what their reads are known
//! recruit, a shard each               ─→ pairs of both samples, on shelves by place
//! finish                              ─→ what a call in one process has when it has judged
//! ```
//!
//! Each does what the unit of that name does in [`crate::pipeline`], by the same functions. An object appears whole or not at all, so that a step may be
//! done again, or by two at once; what is read of shards is put in order before anything looks at it, so that they do not show.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_kmers::{Grid, Part};
use genuma_reads::copy::ReadCopy;
use genuma_reads::fasta::Reference;
use genuma_reads::{Lane, Meter};
use genuma_storage::object::{self, Label, Object};
use genuma_storage::{Depot, Fetched};
use genuma_work::Watch;
use genuma_work::clock::{Clock, UnitCost};
use genuma_work::shelves::Shelf;
use genuma_work::spill::ObjectFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::assemble::Contig;
use crate::count::{Counting, Counts, Scattered, Share};
use crate::error::Error;
use crate::gather::{self, Gather, Gathering};
use crate::judge::{self, Finished, Judging};
use crate::label::sought;
use crate::ledger::Ledger;
use crate::means::{Means, Params};
use crate::panel::{InNormals, Panel};
use crate::passes::{Passes, Reads};
use crate::ranges;
use crate::recruit::{Index, Seen};
use crate::samples::Samples;
use crate::units::{Contigs, Places, Surroundings};

/// What a call in parts is made of: all that decides what its objects mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The reads, shard by shard.
    pub shards: Vec<Vec<Lane>>,
    /// What the samples are called. There is one tumour: several are not called in parts.
    #[serde(default)]
    pub samples: Samples,
    /// Partitions of the k-mer space, and bins of each.
    pub grid: Grid,
    /// Where calls are placed; without it on the assembled normal contigs.
    pub reference: Option<PathBuf>,
    /// Sequences that are screened for.
    pub screen: Option<PathBuf>,
    /// The panel of normals; plans without one do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<Panel>,
    /// Known bases of the reference.
    pub genome_bases: Option<u64>,
    /// What the result depends on.
    pub params: Params,
    /// The same, and the rest of this, line by line.
    pub fingerprint: String,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads of a shard → k-mers by partition, a packed copy.
    Scatter,
    /// k-mers of a partition → its picks.
    Count,
    /// Picks of all partitions → those that are looked for.
    Pick,
    /// Reads of a shard → pairs that carry picks.
    Label,
    /// Pairs → contigs.
    Assemble,
    /// Contigs → places.
    Place,
    /// Reads of a shard → pairs that overlap a change.
    Recruit,
    /// Pairs → events.
    Finish,
}

impl Kind {
    /// All of them, each after those that it needs.
    pub const ALL: [Kind; 8] = [
        Kind::Scatter,
        Kind::Count,
        Kind::Pick,
        Kind::Label,
        Kind::Assemble,
        Kind::Place,
        Kind::Recruit,
        Kind::Finish,
    ];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Scatter => "scatter",
            Kind::Count => "count",
            Kind::Pick => "pick",
            Kind::Label => "label",
            Kind::Assemble => "assemble",
            Kind::Place => "place",
            Kind::Recruit => "recruit",
            Kind::Finish => "finish",
        }
    }

    /// That of a name.
    pub fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether each does a shard of the reads.
    pub fn is_of_shard(self) -> bool {
        matches!(self, Kind::Scatter | Kind::Label | Kind::Recruit)
    }

    /// All steps of this kind must wait for all of that kind.
    pub fn after(self) -> Option<Kind> {
        let at = Kind::ALL.iter().position(|&kind| kind == self)?;
        at.checked_sub(1).map(|before| Kind::ALL[before])
    }
}

/// One step of a call in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// Of which shard or partition, from 1 on.
    pub number: u32,
}

/// As it is given to `genuma step`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            kind if kind.is_of_shard() || kind == Kind::Count => {
                write!(f, "{} {}", kind.name(), self.number)
            }
            kind => f.write_str(kind.name()),
        }
    }
}

impl Step {
    /// Name of the object that it leaves; finishing leaves results.
    pub fn object(self) -> Option<String> {
        match self.kind {
            Kind::Finish => None,
            _ => Some(self.to_string().replace(' ', "-")),
        }
    }
}

impl Parts {
    /// How many steps of a kind there are.
    pub fn tasks(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Count => self.grid.parts,
            kind if kind.is_of_shard() => self.shards.len() as u32,
            _ => 1,
        }
    }

    /// All steps of a kind.
    pub fn steps(&self, kind: Kind) -> impl Iterator<Item = Step> + use<> {
        (1..=self.tasks(kind)).map(move |number| Step { kind, number })
    }

    /// The object of a step, if it is done.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is of another run.
    pub fn done(&self, depot: &Depot, step: Step) -> Result<Option<Object>, object::Error> {
        let Some(name) = step.object() else { return Ok(None) };
        let (step, fingerprint) = (step.to_string(), &self.fingerprint);
        Object::find(depot, &Label { step: &step, name: &name, fingerprint })
    }
}

/// What labelling a shard leaves, beside the pairs.
#[derive(Serialize, Deserialize)]
struct Labels {
    shelves: Vec<Shelf>,
}

/// What assembling leaves.
#[derive(Serialize, Deserialize)]
struct Assembled {
    /// Without picks.
    counts: Counts,
    contigs: Contigs,
}

/// What placing leaves.
#[derive(Serialize, Deserialize)]
struct Placed {
    /// Without picks.
    counts: Counts,
    /// What was made and left out before.
    ledger: Ledger,
    places: Places,
    /// All contigs, where there is no reference.
    assembled: Vec<Contig>,
}

/// What recruiting from a shard leaves, beside the pairs.
#[derive(Serialize, Deserialize)]
struct Recruits {
    shelves: Vec<Shelf>,
    /// By k-mer and sample.
    seen: Vec<u32>,
}

/// One step, with what it may use.
pub struct Stepping<'a> {
    /// The call.
    pub parts: &'a Parts,
    /// Where objects are.
    pub depot: &'a Depot,
    /// What it may use.
    pub means: Means,
    /// A folder of its own for what memory has no room for.
    pub work: &'a Path,
    /// Told of what it does.
    pub watch: &'a dyn Watch,
}

/// An object with what is needed of it on this machine.
struct Opened<T> {
    name: String,
    fetched: Fetched,
    value: T,
}

impl<T> Opened<T> {
    fn file(&self) -> ObjectFile<'_> {
        ObjectFile { name: &self.name, path: self.fetched.path(), start: self.fetched.start() }
    }
}

impl Stepping<'_> {
    /// Does a step that leaves an object, whether one is there or not.
    ///
    /// # Errors
    /// Steps that it needs are not done; their objects, or reads, or the reference, cannot be read or are damaged; its object cannot be written.
    pub fn run(&self, step: Step) -> Result<(), Error> {
        let of = |n: u32| Error::Input(format!("{step}: there are steps 1 to {n} of this name"));
        let tasks = self.parts.tasks(step.kind);
        if !(1..=tasks).contains(&step.number) {
            return Err(of(tasks));
        }
        match step.kind {
            Kind::Scatter => self.scatter(step),
            Kind::Count => self.count(step),
            Kind::Pick => self.pick(step),
            Kind::Label => self.label(step),
            Kind::Assemble => self.assemble(step),
            Kind::Place => self.place(step),
            Kind::Recruit => self.recruit(step),
            Kind::Finish => Err(Error::Input("finishing leaves no object".into())),
        }
    }

    /// Writes what a step leaves, where `write` puts pieces in front of it.
    fn leave<T: Serialize>(
        &self,
        step: Step,
        write: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let clock = Clock::start();
        let name = step.object().unwrap_or_default();
        let draft = self.depot.draft(&name).map_err(object::Error::from)?;
        let value = write(draft.path())?;
        let text = step.to_string();
        let label = Label { step: &text, name: &name, fingerprint: &self.parts.fingerprint };
        Ok(object::publish(self.depot, draft, &label, &value, clock.cost(&text))?)
    }

    fn object(&self, step: Step) -> Result<Object, Error> {
        let (text, name) = (step.to_string(), step.object().unwrap_or_default());
        let label = Label { step: &text, name: &name, fingerprint: &self.parts.fingerprint };
        Ok(Object::of(self.depot, &label)?)
    }

    fn value<T: DeserializeOwned>(&self, step: Step) -> Result<T, Error> {
        Ok(self.object(step)?.value()?)
    }

    /// An object with all its pieces, or with those that `which` says.
    fn open<T: DeserializeOwned>(
        &self,
        step: Step,
        which: impl FnOnce(&Object, &T) -> std::ops::Range<u64>,
    ) -> Result<Opened<T>, Error> {
        let object = self.object(step)?;
        let value = object.value()?;
        let fetched = object.fetch(which(&object, &value))?;
        Ok(Opened { name: object.name().to_owned(), fetched, value })
    }

    fn counting<'b>(&'b self, lanes: &'b [Lane], part: Part) -> Counting<'b> {
        let Parts { params, genome_bases, reference, screen, .. } = self.parts;
        // Only whoever counts a partition has picks, and those of one.
        let bases = genome_bases.map(|bases| bases / u64::from(part.of()));
        let tumours = self.parts.samples.tumours().len();
        let counting = self.means.counting(params, bases, tumours, self.work.to_owned());
        Counting {
            lanes,
            samples: &self.parts.samples,
            params: genuma_kmers::CountParams { part, ..counting },
            least_tumour: params.least_tumour,
            genome_bases: *genome_bases,
            reference: reference.as_deref(),
            screen: screen.as_deref(),
            watch: self.watch,
        }
    }

    fn scatter(&self, step: Step) -> Result<(), Error> {
        let lanes = &self.parts.shards[step.number as usize - 1];
        self.leave(step, |path| Ok(self.counting(lanes, Part::WHOLE).scatter(self.parts.grid, path)?))
    }

    fn count(&self, step: Step) -> Result<(), Error> {
        let grid = self.parts.grid;
        let part = Part::new(step.number - 1, grid.parts);
        let part = part.ok_or_else(|| Error::Input(format!("{step}: no such partition")))?;
        self.leave(step, |_| {
            let open = |step| self.open(step, |_, one: &Scattered| one.shard.stretch(part));
            let shards = self.parts.steps(Kind::Scatter).map(open).collect::<Result<Vec<_>, _>>()?;
            let scattered: Vec<_> = shards.iter().map(|shard| (&shard.value, shard.file())).collect();
            Ok(self.counting(&[], part).scattered(&scattered)?)
        })
    }

    fn pick(&self, step: Step) -> Result<(), Error> {
        self.leave(step, |_| {
            self.watch.begins(&step.to_string(), None);
            let shares = self.parts.steps(Kind::Count).map(|step| self.value(step));
            let shares: Vec<Share> = shares.collect::<Result<_, _>>()?;
            Ok(self.counting(&[], Part::WHOLE).together(shares)?)
        })
    }

    /// What counting says.
    fn counts(&self) -> Result<Counts, Error> {
        self.value(Step { kind: Kind::Pick, number: 1 })
    }

    /// The packed copy of a shard's reads.
    fn copy(&self, shard: u32) -> Result<(ReadCopy, Fetched), Error> {
        let step = Step { kind: Kind::Scatter, number: shard };
        let opened = self.open(step, |_, one: &Scattered| 0..one.copied.bytes())?;
        let copy = ReadCopy::object(&opened.file(), opened.value.copied.clone())?;
        Ok((copy, opened.fetched))
    }

    fn passes<'b>(&self, copy: &'b ReadCopy) -> Passes<'b> {
        let samples = self.parts.samples.len();
        Passes { reads: Reads::Copy(copy), samples, k: self.parts.params.k, threads: self.means.threads }
    }

    fn begins(&self, step: Step) -> Arc<Meter> {
        let meter = Arc::new(Meter::default());
        self.watch.begins(&step.to_string(), Some(meter.clone()));
        meter
    }

    fn label(&self, step: Step) -> Result<(), Error> {
        let meter = self.begins(step);
        self.leave(step, |path| {
            let picks = self.counts()?.picks;
            let sought = sought(self.parts.params.k, &picks);
            drop(picks);
            let (copy, _fetched) = self.copy(step.number)?;
            let shelving = gather::Shelving::create(path)?;
            self.passes(&copy).label(&sought, &meter, |pair| Ok(shelving.put(&pair)?))?;
            Ok(Labels { shelves: shelving.finish()? })
        })
    }

    fn assemble(&self, step: Step) -> Result<(), Error> {
        self.watch.begins(&step.to_string(), None);
        self.leave(step, |_| {
            let mut counts = self.counts()?;
            let picks = std::mem::take(&mut counts.picks);
            let (threads, memory) = (self.means.threads, self.means.room() / 2);
            let k = self.parts.params.k;
            let tumours = self.parts.samples.tumours().len();
            let gather = Gather { picks, tumours, k, threads, memory, work: self.work, followed: &[] };
            let mut gathering = Gathering::new(gather);
            let mut fetched = Vec::new();
            for label in self.parts.steps(Kind::Label) {
                let opened = self.open(label, |object, _: &Labels| object.pieces())?;
                let file = ObjectFile { name: &opened.name, path: opened.fetched.path(), start: 0 };
                if !gathering.add_shard(&file, opened.value.shelves)? {
                    let object = opened.name;
                    return Err(object::Error::Damaged { object, what: "piles" }.into());
                }
                fetched.push(opened.fetched);
            }
            Ok(Assembled { counts, contigs: Contigs::of(gathering.assemble()?) })
        })
    }

    fn reference(&self) -> Result<Option<Reference>, Error> {
        Ok(self.parts.reference.as_deref().map(Reference::read).transpose()?)
    }

    fn place(&self, step: Step) -> Result<(), Error> {
        let meter = Arc::new(Meter::of("the reference"));
        self.watch.begins(&step.to_string(), self.parts.reference.is_some().then(|| meter.clone()));
        self.leave(step, |_| {
            let assembled = Step { kind: Kind::Assemble, number: 1 };
            let Assembled { mut counts, contigs: Contigs { mut contigs, ledger: lines } } =
                self.value(assembled)?;
            let mut ledger = std::mem::take(&mut counts.ledger);
            ledger.append(&lines);
            let genome = self.reference()?;
            let with = Surroundings {
                genome: genome.as_ref(),
                k: self.parts.params.k,
                threads: self.means.threads,
                memory: self.means.room(),
                folds: judge::library(&counts, &self.parts.params).folds,
                meter: &meter,
            };
            let places = Places::of(&mut contigs, &with, None);
            Ok(Placed { counts, ledger, places, assembled: contigs })
        })
    }

    fn placed(&self) -> Result<Placed, Error> {
        self.value(Step { kind: Kind::Place, number: 1 })
    }

    fn recruit(&self, step: Step) -> Result<(), Error> {
        let meter = self.begins(step);
        self.leave(step, |path| {
            let Placed { places: Places { contigs, wanted, .. }, .. } = self.placed()?;
            let index = Index::of(wanted);
            let seen = Seen::new(&index, self.parts.samples.len());
            let shelving = ranges::Shelving::of_shard(step.number, &contigs, path)?;
            drop(contigs);
            let (copy, _fetched) = self.copy(step.number)?;
            self.passes(&copy).recruit(&index, &seen, &meter, |pair| Ok(shelving.put(pair)?))?;
            Ok(Recruits { shelves: shelving.finish()?, seen: seen.counts() })
        })
    }

    /// The last step: all that was recruited, judged. What it cost holds what all steps have cost.
    ///
    /// # Errors
    /// Those of [`Stepping::run`].
    pub fn finish(&self) -> Result<Finished, Error> {
        let mut costs = self.costs()?;
        let clock = Clock::start();
        self.watch.begins("recruited pairs of all shards", None);
        let Placed { counts, mut ledger, places, assembled } = self.placed()?;
        let Places { contigs, wanted, ledger: lines } = places;
        ledger.append(&lines);
        let index = Index::of(wanted);
        let seen = Seen::new(&index, self.parts.samples.len());
        let (mut shards, mut fetched) = (Vec::new(), Vec::new());
        let recruits = self.work.join("recruit.bins");
        let shelving = ranges::Shelving::new(&contigs, &recruits)?;
        for step in self.parts.steps(Kind::Recruit) {
            let opened = self.open(step, |object, _: &Recruits| object.pieces())?;
            let file = ObjectFile { name: &opened.name, path: opened.fetched.path(), start: 0 };
            if !seen.add(&opened.value.seen) || opened.value.shelves.len() != shelving.number() {
                let object = opened.name;
                return Err(object::Error::Damaged { object, what: "shelves" }.into());
            }
            shards.push(ranges::Shelving::shard(&file, opened.value.shelves)?);
            fetched.push(opened.fetched);
        }
        let deep = index.deep(&seen, contigs.len());
        let recruited = shelving.settle(&shards, &index, &deep, self.means.threads)?;
        drop((shards, fetched, index, seen, deep));
        costs.push(clock.cost("gather what was recruited"));
        let panel = self.panel(&mut costs, &mut ledger)?;
        self.watch.begins("judge", None);
        let judging = Judging {
            samples: &self.parts.samples,
            counts,
            genome: self.reference()?,
            contigs,
            assembled: &assembled,
            recruited,
            recruits: &recruits,
            params: &self.parts.params,
            means: &self.means,
            work: self.work,
            ledger,
            costs,
            why: None,
            panel,
        };
        judging.run()
    }

    /// What the panel of normals says of what was picked, if there is one.
    fn panel(&self, costs: &mut Vec<UnitCost>, ledger: &mut Ledger) -> Result<Option<InNormals>, Error> {
        let Some(panel) = &self.parts.panel else { return Ok(None) };
        self.watch.begins("panel", None);
        let (clock, counts) = (Clock::start(), self.counts()?);
        let (usual, room) = (counts.usual_of_first(), self.means.room() / 2);
        let known = panel.look_up(&counts.picks, usual, self.means.threads, room)?;
        let mut lines = Ledger::default();
        known.tell(&mut lines);
        // Where one process has them.
        ledger.insert_before("assemble", &lines);
        costs.push(clock.cost("panel"));
        Ok(Some(known))
    }

    /// What all steps before have cost.
    fn costs(&self) -> Result<Vec<UnitCost>, Error> {
        let before = Kind::ALL.into_iter().filter(|&kind| kind != Kind::Finish);
        let steps = before.flat_map(|kind| self.parts.steps(kind));
        steps.map(|step| Ok(self.object(step)?.cost().clone())).collect()
    }
}
