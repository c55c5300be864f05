//! First pass: the joint counts of both samples, and the k-mers that only the tumour has.
//!
//! What fits neither in memory nor in the scratch space is counted in several partitions of the k-mer space, one after the other, each in
//! a reading of its own of all reads. A root is in one of them, and the rule of [`Select`] depends on the root and on what all reads hold: so
//! picks and spectra of the partitions, added up, are those of a count in one. Each partition is a unit of its own until all are done.
//!
//! Where all is counted in one reading and scratch space has room for it, that reading leaves a packed copy of the reads for later passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use genuma_kmers::{
    CountParams, Counted, Expected, Fit, Grid, MAX_PARTS, MAX_SAMPLES, Part, Planned, Prepare, RootCounters,
    Shard, in_parts,
};
use genuma_pair::check::pairs_expected;
use genuma_pair::each::{Samplers, Samplings};
use genuma_pair::facts::Looked;
use genuma_pair::library::facts::Libraries;
use genuma_pair::library::{LibraryTally, Observer, Seen};
use genuma_pair::marks::facts::{Known, Reads};
use genuma_pair::marks::{Marks, MarksTally};
use genuma_pair::sampled::{SampleParams, Sampled};
use genuma_reads::copy::{self, Copied, Copying, Recorder};
use genuma_reads::{Estimate, Lane, Pair, TUMOUR, Tally, Trimmed};
use genuma_work::spill::{self, ObjectFile};
use genuma_work::unit::{self, Store};
use genuma_work::{Meter, Watch};
use serde::{Deserialize, Serialize};

use crate::known::known;
use crate::label::Spelling;
use crate::ledger::Ledger;
use crate::own_alleles::OwnAlleles;
use crate::rules::Rules;
use crate::samples::Samples;
use crate::select::{Depths, Pick, TOGETHER, beyond_errors, by_kmer, usual_depth};
use crate::sought::Sought;

/// What can stop a count.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference could not be read.
    #[error(transparent)]
    Reference(#[from] genuma_reads::Error),
    /// Counting failed.
    #[error(transparent)]
    Kmers(#[from] genuma_kmers::Error),
    /// A partition's file is not usable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// The input cannot give an answer, or not with these means.
    #[error("{0}")]
    Input(String),
}

/// What the counting unit leaves.
#[derive(Serialize, Deserialize)]
pub struct Counts {
    /// What is interesting, sorted.
    pub picks: Vec<Pick>,
    /// k-mer spectra of all samples.
    pub spectra: Vec<Vec<u64>>,
    /// Bases of all samples.
    pub bases: Vec<u64>,
    /// For each tumour the roots at which it and the normal differ as two people do.
    pub strangers: Vec<u64>,
    /// For each tumour the alleles that it clearly has, and what the normal has of them.
    pub own: Vec<OwnAlleles>,
    /// What was cut off the reads of each sample.
    pub trimmed: Vec<Trimmed>,
    /// For each tumour what its reads and the normal's say of their libraries.
    pub libraries: Vec<Libraries>,
    /// What there is in these of the contigs of the reference, and of what is screened for.
    pub known: Known,
    /// For each tumour what a sample of the roots says of it beside the normal; none if none was taken.
    pub looked: Vec<Looked>,
    /// What lies where in the packed copy of the reads, if there is one.
    pub copied: Option<Copied>,
    /// What was made and left out.
    pub ledger: Ledger,
}

/// Where the packed copy of the reads is.
pub(crate) fn copy_path(store: &Store) -> PathBuf {
    store.work.join("reads.bins")
}

/// Bytes of the work folder that pairs which are recruited may take, for each base of the reads: they lie beside the copy.
const RECRUITED: f64 = 1.0 / 16.0;

/// Bytes of the scratch space that a packed copy of the reads may take; `None` where it does not have so many beside k-mers of which so many are
/// expected, all of them counted in one reading.
pub fn room_for_copy(
    params: &CountParams,
    samples: usize,
    expected: &Expected,
    held: &Estimate,
) -> Option<u64> {
    let room = least_for_copy(params, held);
    let left = params.scratch.checked_sub(room)?;
    let beside = CountParams { scratch: left, ..params.clone() };
    let fits = parts_wanted(&beside, samples, expected) == Some(1) && left >= recruited(held);
    (fits && held.copied > 0).then_some(room)
}

/// Bytes of scratch space with which there is room for a copy.
pub fn scratch_for_copy(params: &CountParams, samples: usize, expected: &Expected, held: &Estimate) -> u64 {
    let none = CountParams { scratch: 0, ..params.clone() };
    let spilled = match parts_wanted(&none, samples, expected) {
        Some(1) => 0,
        _ => expected.bytes + expected.bytes / 16,
    };
    least_for_copy(params, held) + spilled.max(recruited(held))
}

/// Partitions that the k-mers of so many samples are counted in: see [`CountParams::parts_wanted`].
fn parts_wanted(params: &CountParams, samples: usize, expected: &Expected) -> Option<u32> {
    match samples {
        0..=2 => params.parts_wanted::<2>(expected),
        3 | 4 => params.parts_wanted::<4>(expected),
        _ => params.parts_wanted::<MAX_SAMPLES>(expected),
    }
}

/// What counting so many samples is expected to take: see [`CountParams::planned`].
pub fn planned(params: &CountParams, samples: usize, expected: &Expected) -> Option<Planned> {
    match samples {
        0..=2 => params.planned::<2>(expected),
        3 | 4 => params.planned::<4>(expected),
        _ => params.planned::<MAX_SAMPLES>(expected),
    }
}

/// Bytes that a copy gets: a sixteenth is for what the reads are other than expected, and the last block of each thread is not full.
fn least_for_copy(params: &CountParams, held: &Estimate) -> u64 {
    held.copied + held.copied / 16 + (params.threads * copy::BLOCK) as u64
}

fn recruited(held: &Estimate) -> u64 {
    (held.bases as f64 * RECRUITED) as u64
}

/// What became of the copy of the reads.
enum Recorded {
    /// It is there.
    Whole(Copied),
    /// Each shard of the reads has one.
    InShards,
    /// Scratch space has no room for so many bytes.
    NoRoom(u64),
    /// It took more bytes than it was given room for.
    Outgrown(u64),
    /// So many bytes could not be written.
    Refused(u64),
}

impl Recorded {
    fn told(&self, ledger: &mut Ledger) {
        let mut no = |why: &str, bytes| {
            let what =
                format!("bytes of a packed copy of the reads, {why}: later passes read the files again");
            ledger.left_out("count", &what, bytes);
        };
        match self {
            // Its bytes go by which thread had which pairs.
            Recorded::Whole(copied) => ledger.made("count", COPIED, copied.pairs()),
            Recorded::InShards => {}
            Recorded::NoRoom(bytes) => no("for which there is too little scratch space", *bytes),
            Recorded::Outgrown(bytes) => no("which outgrew them", *bytes),
            Recorded::Refused(bytes) => no("which could not be written", *bytes),
        }
    }
}

/// How the ledger calls the bytes of the copy.
pub const COPIED: &str = "pairs in a packed copy in the work folder, which later passes read";

/// Spells pairs, looks at what they say of their library, and records them as they are then.
struct Recording<'a, 'b> {
    spelling: Spelling,
    observer: Observer,
    recorder: Option<Recorder<'a>>,
    /// Where no earlier reading has done so.
    samplers: Option<Samplers<'b>>,
}

impl<'a, 'b> Recording<'a, 'b> {
    /// Where so many pairs of each sample are expected.
    fn new(k: u32, expected: &[u64], copying: Option<&'a Copying>, samplings: Option<&'b Samplings>) -> Self {
        let (spelling, observer) = (Spelling::new(k, expected.len()), Observer::expecting(expected));
        let (recorder, samplers) = (copying.map(Copying::recorder), samplings.map(Samplings::samplers));
        Recording { spelling, observer, recorder, samplers }
    }
}

/// What all threads have cut off and seen of each sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Told {
    trimmed: Vec<Trimmed>,
    libraries: Vec<LibraryTally>,
    /// What there was in files of aligned reads of each sample.
    aligned: Vec<Tally>,
}

impl Counts {
    /// How often the first tumour has a k-mer of one place.
    pub(crate) fn usual_of_first(&self) -> f64 {
        usual_depth(&self.spectra[usize::from(TUMOUR)])
    }
}

impl Told {
    fn of(samples: usize) -> Told {
        let (trimmed, aligned) = (vec![Trimmed::default(); samples], vec![Tally::default(); samples]);
        Told { trimmed, libraries: vec![LibraryTally::default(); samples], aligned }
    }

    fn add(&mut self, other: &Told) {
        self.trimmed.iter_mut().zip(&other.trimmed).for_each(|(sum, part)| sum.add(part));
        self.libraries.iter_mut().zip(&other.libraries).for_each(|(sum, part)| sum.add(part));
        self.aligned.iter_mut().zip(&other.aligned).for_each(|(sum, part)| sum.add(part));
    }
}

/// What all threads say, and where they have recorded pairs, when all lanes were read.
fn told<'a>(recordings: Vec<Recording<'a, '_>>, lanes: &[Lane], samples: usize) -> (Told, Vec<Recorder<'a>>) {
    let (mut told, mut recorders) = (Told::of(samples), Vec::new());
    for (lane, tally) in lanes.iter().filter_map(|lane| Some((lane, lane.tally()?))) {
        told.aligned[usize::from(lane.sample)].add(tally);
    }
    for Recording { spelling, observer, recorder, .. } in recordings {
        let (trimmed, libraries) = (spelling.trimmed().collect(), observer.finish());
        told.add(&Told { trimmed, libraries, aligned: Vec::new() });
        recorders.extend(recorder);
    }
    (told, recorders)
}

impl Prepare for Recording<'_, '_> {
    fn prepare<'a>(&mut self, raw: Pair<'a>, sample: u8, added: &mut Vec<u8>) -> Pair<'a> {
        let cut = self.spelling.prepare(raw, sample, added);
        self.observer.see(&Seen { raw, cut, packed: self.spelling.packed(sample) }, sample);
        if let Some(samplers) = &mut self.samplers {
            samplers.see(cut, self.spelling.packed(sample), sample);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.push(cut, sample);
        }
        cut
    }
}

/// What is to be counted.
pub struct Counting<'a> {
    /// Reads of all samples.
    pub lanes: &'a [Lane],
    /// What these are called.
    pub samples: &'a Samples,
    /// Of the whole space.
    pub params: CountParams,
    /// Fewest tumour occurrences of an interesting k-mer.
    pub least_tumour: u32,
    /// Known bases of the reference, if there is one.
    pub genome_bases: Option<u64>,
    /// The reference: what the normal knows nothing of, but the reference has, is left out.
    pub reference: Option<&'a Path>,
    /// Sequences that are screened for.
    pub screen: Option<&'a Path>,
    /// Told of each reading.
    pub watch: &'a dyn Watch,
}

/// What reads and roots are looked at for beside what is counted.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// Marks of known sequences.
    marks: Option<&'a Marks>,
    /// Pairs that are expected of each sample.
    expected: &'a [u64],
}

/// What scattering a shard of the reads leaves, beside its k-mers and the copy of its reads.
#[derive(Serialize, Deserialize)]
pub struct Scattered {
    /// What lies where of its k-mers.
    pub shard: Shard,
    /// What lies where of the copy.
    pub copied: Copied,
    /// What was cut off the reads, and what they say of their libraries.
    told: Told,
    /// A sample of their roots, for each tumour beside the normal.
    sampled: Vec<Sampled>,
}

/// What one partition leaves, or several together.
#[derive(Serialize, Deserialize)]
pub struct Share {
    part: Part,
    picks: Vec<Pick>,
    spectra: Vec<Vec<u64>>,
    strangers: Vec<u64>,
    own: Vec<OwnAlleles>,
    /// Picks where the normal does not know the root, those too that were not kept.
    unknown: u64,
    /// k-mers among them left out because the reference has them.
    known: u64,
    /// Most bytes of the spill file.
    spilled: u64,
    /// How often marks of known sequences were seen.
    marks: Option<MarksTally>,
    /// What a sample of the roots says of each tumour, which the first partition's reading takes; of others nothing.
    looked: Vec<Looked>,
    /// The same for all partitions.
    read: Read,
}

/// What all reads hold.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Read {
    bases: Vec<u64>,
    kmers: Vec<u64>,
    told: Told,
}

/// Share of a tumour's k-mers that the normal lacks from which what the normal knows nothing of is left out: two people differ in a twentieth,
/// a tumour in a thousandth; in fixed tissue at 30x the normal may have no molecule of a fifth. All of it would be assembled.
const FOREIGN: f64 = 0.5;

/// k-mers of which the normal does not even know the middle, from which all of them are left out: so many, or this share of the reference's
/// bases if that is more. Errors make one of sixty bases one at 30x, a normal of less than five reads a base leaves one in thirty by chance.
const MOST_UNKNOWN: (u64, f64) = (64_000_000, 1.0 / 30.0);

/// Bytes that the counter leaves for picks, for each base of the reference: as many as are kept, and half as much again while they are gathered.
pub const PICKS_PER_BASE: f64 = 1.2;

/// What is sampled of the roots: 320,000 to 640,000 k-mers of genomes of up to some 40 Mbp, in which are enough sites of two alleles to tell contamination where
/// a genome has one in 1,500 bases; up to 3 million of larger ones, in a table of some 110 MB for each tumour.
pub const SAMPLE: SampleParams = SampleParams { k: 31, quality: [20, 30], few: 640_000, most: 3_000_000 };

/// Share of the scratch space that a packed copy of reads from pipes gets; the rest is for k-mers. A base takes 0.55 to 1.3 bytes of the one and up to 1.3 of the other.
const PIPED_COPY: f64 = 0.45;
/// Bytes of scratch space for each base of reads from pipes with which there surely is room.
const PIPED: f64 = 2.6;

/// Reads from a pipe are there once: their k-mers and their copy have to have room. Of so many bases, if all were read.
fn no_room_for_pipe(bases: Option<u64>) -> Error {
    let wanted = match bases {
        Some(bases) => {
            let gib = (bases as f64 * PIPED / f64::from(1 << 30)).ceil() as u64;
            format!("for {bases} bases give --scratch {gib}G, and a work folder with that room")
        }
        None => "give more --scratch, 2.6 bytes a base, and a work folder with that room".to_owned(),
    };
    Error::Input(format!(
        "reads from a pipe cannot be read again, and the scratch space has no room for their k-mers and a packed copy of them: {wanted}, or more --memory, \
         or save the reads to files"
    ))
}

/// What the units of partitions are called, before their labels.
const UNIT: &str = "count-";

fn unit_name(part: Part) -> String {
    format!("{UNIT}{}", part.label())
}

/// Partitions whose units are in the folder.
fn parts_in(store: &Store) -> Vec<Part> {
    let part = |name: &String| Part::from_label(name.strip_prefix(UNIT)?);
    store.finished().iter().filter_map(part).collect()
}

/// Removes the units of partitions: the whole is done.
pub(crate) fn forget_parts(store: &Store) {
    parts_in(store).into_iter().for_each(|part| store.forget(&unit_name(part)));
}

impl Counting<'_> {
    /// Counts, in as many partitions as the scratch space asks for.
    ///
    /// # Errors
    /// Reads that cannot be read, a spill file or unit that cannot be written or read, a sample without k-mers, too little scratch space.
    pub fn all(&self, store: &Store) -> Result<Counts, Error> {
        let done = if store.resume { parts_in(store) } else { Vec::new() };
        // Damage is told before hours of work.
        let marks = self.marks()?;
        let each = Estimate::by_sample(self.lanes);
        let pairs = pairs_expected(&each, self.samples.len());
        let beside = Beside { marks: marks.as_ref(), expected: &pairs };
        let loaded: Vec<Share> =
            done.iter().map(|&part| self.kept(store, part, 0, beside)).collect::<Result<_, _>>()?;
        let mut unknown: u64 = loaded.iter().map(|share| share.unknown).sum();
        let held = each.into_iter().sum();
        let expected = Expected::of(&held, self.params.k);
        let piped = self.lanes.iter().any(Lane::has_pipe);
        let room = match piped {
            // Nobody knows how much there is.
            true => Some((self.params.scratch as f64 * PIPED_COPY) as u64),
            false => room_for_copy(&self.params, self.samples.len(), &expected, &held),
        };
        let mut recorded = Recorded::NoRoom(held.copied);
        let mut whole = || {
            let Some(room) = room else { return Ok(self.part(Part::WHOLE, 0, None, beside)?.0) };
            let (share, copy) = self.whole(store, room, beside)?;
            recorded = copy;
            Ok(share)
        };
        let one = |part| match if part == Part::WHOLE {
            whole()
        } else {
            self.kept(store, part, unknown, beside)
        } {
            Ok(share) => {
                unknown += share.unknown;
                Ok(Fit::Counted(share))
            }
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { .. })) if piped => Err(no_room_for_pipe(None)),
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { read, .. })) => Ok(Fit::TooLarge(read)),
            Err(error) => Err(error),
        };
        let scratch = self.params.scratch;
        let too_large = |part| Error::Kmers(genuma_kmers::Error::TooLarge { part, scratch, read: 1.0 });
        let (used, made) = in_parts(self.wanted(&expected)?, &done, one, too_large)?;
        let shares: Vec<Share> =
            loaded.into_iter().filter(|share| used.contains(&share.part)).chain(made).collect();
        let parts = shares.len() as u64;
        let all = sum(shares)?;
        if piped && !matches!(recorded, Recorded::Whole(_)) {
            return Err(no_room_for_pipe(Some(all.read.bases.iter().sum())));
        }
        self.join(all, parts, recorded)
    }

    /// As many partitions as are expected to suffice.
    fn wanted(&self, expected: &Expected) -> Result<u32, Error> {
        parts_wanted(&self.params, self.samples.len(), expected).ok_or_else(|| {
            Error::Input(format!(
                "about {:.0} GB of k-mers would be counted in more than {MAX_PARTS} readings of all reads: give --scratch {}G or more",
                expected.bytes as f64 / 1e9,
                (expected.bytes >> 34) + 1
            ))
        })
    }

    /// Counts all k-mers at once, and leaves a copy of the reads in so many bytes at most. It can be done without: what is wrong with it is told.
    fn whole(&self, store: &Store, room: u64, beside: Beside<'_>) -> Result<(Share, Recorded), Error> {
        let path = copy_path(store);
        let refused = |error: spill::Error| {
            tracing::warn!("{error}; without it later passes read the files of reads again");
            Recorded::Refused(room)
        };
        let copying = match Copying::create(&path, room) {
            Ok(copying) => copying,
            Err(error) => return Ok((self.part(Part::WHOLE, 0, None, beside)?.0, refused(error))),
        };
        let counted = self.part(Part::WHOLE, 0, Some((&copying, room)), beside);
        let counted = counted.map(|(share, recorders)| (share, copying.finish(recorders)));
        if !matches!(counted, Ok((_, Ok(_)))) {
            // Its room is for others now. What cannot be removed goes with the folder.
            let _ = fs::remove_file(&path);
        }
        let (share, copied) = counted?;
        let recorded = copied.map_or_else(
            |error| match error {
                spill::Error::Full { limit, .. } => Recorded::Outgrown(limit),
                error => refused(error),
            },
            Recorded::Whole,
        );
        Ok((share, recorded))
    }

    /// A partition from its unit, which is made if it is not there.
    fn kept(&self, store: &Store, part: Part, unknown: u64, beside: Beside<'_>) -> Result<Share, Error> {
        let name = unit_name(part);
        let share: Share = store
            .unit(&name, &mut Vec::new(), || Ok::<_, Error>(self.part(part, unknown, None, beside)?.0))?;
        if share.part != part {
            let path = store.path(&name);
            return Err(unit::Error::Damaged { path, what: "another partition" }.into());
        }
        Ok(share)
    }

    /// Most picks of which the normal does not even know the middle.
    fn most_unknown(&self) -> u64 {
        let (least, share) = MOST_UNKNOWN;
        let of_one = least.max((self.genome_bases.unwrap_or(0) as f64 * share) as u64);
        of_one * self.samples.tumours().len() as u64
    }

    /// Counts a partition, when others have left so many picks of which the normal does not know the middle. All reads go into the `copy`, if there is one,
    /// which takes so many bytes of the scratch space at most.
    fn part<'a>(
        &self,
        part: Part,
        unknown: u64,
        copy: Option<(&'a Copying, u64)>,
        beside: Beside<'_>,
    ) -> Result<(Share, Vec<Recorder<'a>>), Error> {
        match self.samples.len() {
            0..=2 => self.part_of::<2>(part, unknown, copy, beside),
            3 | 4 => self.part_of::<4>(part, unknown, copy, beside),
            _ => self.part_of::<MAX_SAMPLES>(part, unknown, copy, beside),
        }
    }

    /// With counters of `S` samples, as many as there are or more.
    fn part_of<'a, const S: usize>(
        &self,
        part: Part,
        unknown: u64,
        copy: Option<(&'a Copying, u64)>,
        beside: Beside<'_>,
    ) -> Result<(Share, Vec<Recorder<'a>>), Error> {
        let meter = Arc::new(Meter::default());
        let name = if part == Part::WHOLE { "count".to_owned() } else { format!("count, {part}") };
        self.watch.begins(&name, Some(meter.clone()));
        let scratch = self.params.scratch - copy.map_or(0, |(_, room)| room);
        let params = CountParams { part, scratch, ..self.params.clone() };
        let rule = OnceLock::new();
        // All readings would sample the same.
        let samplings = (part.number() == 0).then(|| self.samplings());
        let (counted, recordings) = genuma_kmers::count(
            self.lanes,
            &params,
            &meter,
            || {
                let copying = copy.map(|(copying, _)| copying);
                Recording::new(params.k, beside.expected, copying, samplings.as_ref())
            },
            |kmers: &[u64; S]| select(rule.get_or_init(|| self.rule(kmers, unknown)), beside.marks),
        )?;
        let (told, recorders) = told(recordings, self.lanes, self.samples.len());
        let mut share = self.share(part, counted, told, rule.get(), beside.marks)?;
        share.looked = samplings.map_or_else(Vec::new, looked);
        self.leave_out_known(&mut share)?;
        Ok((share, recorders))
    }

    /// The rule by which k-mers are picked when there are so many of each sample in all, and other partitions have left so many picks of which the normal
    /// does not know the middle.
    fn rule(&self, kmers: &[u64], unknown: u64) -> Rules {
        let wanted = self.most_unknown().saturating_sub(unknown);
        let kmers = &kmers[..self.samples.len()];
        Rules::new(self.params.k, self.least_tumour, kmers, self.genome_bases, wanted)
    }

    /// A sample of the roots for each tumour.
    fn samplings(&self) -> Samplings {
        Samplings::new(SAMPLE, self.samples.tumours().len())
    }

    /// Marks of what is known: contigs of the reference, and what is screened for.
    fn marks(&self) -> Result<Option<Marks>, Error> {
        Ok(Marks::choose(self.params.k, self.reference, self.screen)?)
    }

    /// What a partition leaves, of which all k-mers are counted.
    fn share<const S: usize>(
        &self,
        part: Part,
        counted: Counted<Pick, S>,
        told: Told,
        rule: Option<&Rules>,
        marks: Option<&Marks>,
    ) -> Result<Share, Error> {
        let (stats, samples) = (counted.stats, self.samples.len());
        for sample in 0..samples {
            if stats.kmers[sample] == 0 {
                let (k, name) = (self.params.k, self.samples.word(sample));
                return Err(Error::Input(format!("the {name} has no read of {k} known bases in a row")));
            }
        }
        let [bases, kmers] = [stats.bases, stats.kmers].map(|all| all[..samples].to_vec());
        Ok(Share {
            part,
            picks: counted.picks,
            spectra: counted.spectra.into_iter().take(samples).collect(),
            strangers: rule.map(Rules::strangers).unwrap_or_default(),
            own: rule.map_or_else(|| vec![OwnAlleles::default(); samples - 1], Rules::own),
            unknown: rule.map_or(0, Rules::unknown),
            known: 0,
            spilled: stats.spill_peak,
            marks: marks.map(Marks::take),
            looked: Vec::new(),
            read: Read { bases, kmers, told },
        })
    }

    /// Writes the k-mers of all lanes, which are a shard of the reads, and a packed copy of these, into a new file at `path`.
    ///
    /// # Errors
    /// Reads that cannot be read, too little memory for the grid, a file that cannot be written.
    pub fn scatter(&self, grid: Grid, path: &Path) -> Result<Scattered, Error> {
        let meter = Arc::new(Meter::default());
        self.watch.begins("scatter", Some(meter.clone()));
        let copying = Copying::create(path, u64::MAX).map_err(genuma_kmers::Error::from)?;
        let samplings = self.samplings();
        let expected = pairs_expected(&Estimate::by_sample(self.lanes), self.samples.len());
        let prepare = || Recording::new(self.params.k, &expected, Some(&copying), Some(&samplings));
        let (scattered, recordings) = Shard::scatter(self.lanes, grid, &self.params, &meter, prepare)?;
        let (told, recorders) = told(recordings, self.lanes, self.samples.len());
        let copied = copying.finish(recorders).map_err(genuma_kmers::Error::from)?;
        let shard = Shard::lay_down(scattered, grid, copying.file())?;
        Ok(Scattered { shard, copied, told, sampled: samplings.finish() })
    }

    /// Counts the partition of the parameters from what all shards have left.
    ///
    /// # Errors
    /// An object that cannot be read, or is damaged; a sample without k-mers.
    pub fn scattered(&self, scattered: &[(&Scattered, ObjectFile<'_>)]) -> Result<Share, Error> {
        let meter = Arc::new(Meter::of("k-mers"));
        self.watch.begins("count", Some(meter.clone()));
        let shards: Vec<_> = scattered.iter().map(|(one, file)| (one.shard.clone(), *file)).collect();
        let (rule, marks) = (OnceLock::new(), self.marks()?);
        let marks = marks.as_ref();
        let counted = genuma_kmers::count_shards(&shards, &self.params, &meter, |kmers| {
            select(rule.get_or_init(|| self.rule(kmers, 0)), marks)
        })?;
        drop(shards);
        let mut told = Told::of(self.samples.len());
        scattered.iter().for_each(|(one, _)| told.add(&one.told));
        let mut share = self.share(self.params.part, counted, told, rule.get(), marks)?;
        if self.params.part.number() == 0 {
            let all = self.samplings();
            scattered.iter().for_each(|(one, _)| all.add_sampled(&one.sampled));
            share.looked = looked(all);
        }
        Ok(share)
    }

    /// What all partitions say together that were counted from what shards have left.
    ///
    /// # Errors
    /// None, or of different reads.
    pub fn together(&self, shares: Vec<Share>) -> Result<Counts, Error> {
        let parts = shares.len() as u64;
        let mut all = sum(shares)?;
        // Those of each partition are in order by themselves.
        all.picks.sort_unstable();
        self.leave_out_known(&mut all)?;
        self.join(all, parts, Recorded::InShards)
    }

    /// Leaves out what only the normal lacks: picks whose middle it does not know and which the reference has.
    fn leave_out_known(&self, share: &mut Share) -> Result<(), Error> {
        let Some(path) = self.reference else { return Ok(()) };
        if share.unknown > self.most_unknown() {
            // All of them go.
            return Ok(());
        }
        let meter = Arc::new(Meter::of("the reference"));
        meter.expect_bytes(self.genome_bases.unwrap_or(0));
        self.watch.begins("count, against the reference", Some(meter.clone()));
        let picks = &mut share.picks;
        // Whether the normal knows the middle does not depend on the tumour.
        let mut unknown: Vec<u64> =
            picks.iter().filter(|pick| !pick.parting()).map(|pick| pick.kmer).collect();
        unknown.dedup();
        let sought = Sought::new(self.params.k, unknown.iter().copied());
        let known = known(path, &sought, self.params.threads, &meter)?;
        share.known += known.iter().filter(|&&known| known).count() as u64;
        let mut rank = 0;
        picks.retain(|pick| {
            if pick.parting() {
                return true;
            }
            while unknown.get(rank).is_some_and(|&kmer| kmer < pick.kmer) {
                rank += 1;
            }
            !known.get(rank).copied().unwrap_or(false)
        });
        Ok(())
    }

    /// How many bases usually lie on each other, where a sample has so many in so many pairs, if its k-mers tell it.
    fn usual_depth(&self, spectrum: &[u64], bases: u64, pairs: u64) -> Option<f64> {
        let (kmer, length) = (usual_depth(spectrum), bases as f64 / (2 * pairs).max(1) as f64);
        let starts = length + 1.0 - f64::from(self.params.k);
        (kmer > 0.0 && starts >= 1.0).then(|| kmer * length / starts)
    }

    /// What all partitions say together.
    fn join(&self, all: Share, parts: u64, recorded: Recorded) -> Result<Counts, Error> {
        let Share {
            mut picks,
            spectra,
            strangers,
            own,
            unknown,
            known,
            spilled,
            marks,
            looked,
            read: Read { bases, told: Told { trimmed, libraries, aligned }, .. },
            ..
        } = all;
        let crowded = unknown > self.most_unknown();
        if crowded {
            picks.retain(Pick::parting);
        }
        picks.sort_unstable();
        let mut ledger = Ledger::default();
        let each = match recorded {
            Recorded::InShards => "each from what all shards of the reads have left",
            _ => "each in a reading of all reads",
        };
        ledger.made("count", &format!("partitions that the k-mers were counted in, {each}"), parts);
        ledger.made("count", "bytes of the file of k-mers in the work folder, at most", spilled);
        recorded.told(&mut ledger);
        let others = self.samples.tumours().len().saturating_sub(1) as u64;
        if others > 0 && marks.is_some() {
            let what =
                "tumours beyond the first, of which contigs, sex and what is screened for are not told";
            ledger.left_out("count", what, others);
        }
        for (aligned, sample) in aligned.iter().zip((0..).map(|sample| self.samples.word(sample))) {
            if aligned.records > 0 {
                ledger.made("count", &format!("{sample}: records of aligned reads"), aligned.records);
            }
            for (what, n) in aligned.left_out() {
                ledger.left_out("count", &format!("{sample}: {what}"), n);
            }
        }
        for (trimmed, sample) in trimmed.iter().zip((0..).map(|sample| self.samples.word(sample))) {
            let mut made = |what: &str, n: u64| ledger.made("count", &format!("{sample}: {what}"), n);
            made("pairs read", trimmed.pairs);
            made("mates that fold back on themselves", trimmed.folded);
            let mut left_out = |what: &str, n: u64| ledger.left_out("count", &format!("{sample}: {what}"), n);
            left_out("bases behind fragments shorter than their reads (adapters)", trimmed.adapter_bases);
            left_out("bases of tails of quality 2 or less", trimmed.tail_bases);
            left_out("bases of tails of G only (no light)", trimmed.dark_bases);
        }
        // The depths are known only now.
        let usual = by_rule(spectra.iter().map(|spectrum| usual_depth(spectrum)));
        picks.retain(|p| !p.wants_good_bases() || p.in_repeat(usual[usize::from(p.rule)]));
        if self.genome_bases.is_none() {
            let depth = by_rule(Depths::of(&spectra).kmer);
            picks.retain(|p| f64::from(p.tumour) >= beyond_errors(depth[usize::from(p.rule)]));
        }
        let made = by_kmer(&picks).count() as u64;
        ledger.made("count", "k-mers of the tumour that the normal lacks", made);
        if crowded {
            let what = "k-mers of which the normal does not know the middle either, as there are too many: was it read too seldom? Only where the samples part is looked on";
            ledger.left_out("select", what, unknown);
        }
        let known = if crowded { 0 } else { known };
        if known > 0 {
            let what = "k-mers of which the normal does not know the middle, but which the reference has: nothing is new there";
            ledger.left_out("select", what, known);
        }
        let of_tumour = spectra.iter().skip(TUMOUR.into()).map(|spectrum| solid(spectrum)).max();
        if (by_kmer(&picks).count() as u64 + known) as f64 > FOREIGN * of_tumour.unwrap_or(0) as f64 {
            let all = by_kmer(&picks).count();
            picks.retain(Pick::parting);
            let what = "k-mers of sequence unknown to the normal, as more than half of the tumour's are: is it of another species?";
            ledger.left_out("select", what, (all - by_kmer(&picks).count()) as u64);
        }
        let copied = match recorded {
            Recorded::Whole(copied) => Some(copied),
            _ => None,
        };
        let depth = |i: usize| self.usual_depth(&spectra[i], bases[i], libraries[i].pairs());
        let k = f64::from(self.params.k);
        let reads = [0, 1].map(|i: usize| {
            let tally = &libraries[i];
            let number = (2 * tally.pairs()) as f64;
            Reads { number, kmers: (tally.bases() as f64 / number.max(1.0) + 1.0 - k).max(1.0) }
        });
        let known = marks.map_or_else(Known::default, |marks| Known::of(&marks, reads));
        let pair = |i: usize| {
            let depths = [depth(0), depth(i)];
            Libraries::of([&libraries[0], &libraries[i]], [&trimmed[0], &trimmed[i]], depths)
        };
        let libraries = (1..self.samples.len()).map(pair).collect();
        Ok(Counts {
            picks,
            spectra,
            bases,
            strangers,
            own,
            trimmed,
            libraries,
            known,
            looked,
            copied,
            ledger,
        })
    }
}

/// What is done with each root.
fn select<'a, const S: usize>(
    rule: &'a Rules,
    marks: Option<&'a Marks>,
) -> impl Fn(&RootCounters<S>, &mut Vec<Pick>) + Sync + use<'a, S> {
    move |root, picks| {
        rule.root(root, picks);
        if let Some(marks) = marks {
            marks.see(root);
        }
    }
}

/// What is known of each sample, by the rules that pick: of the tumours those of their own, and for all of them their sum.
fn by_rule(of_samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut by_rule: Vec<f64> = of_samples.into_iter().collect();
    by_rule[usize::from(TOGETHER)] = by_rule.iter().skip(TUMOUR.into()).sum();
    by_rule
}

/// What was sampled of each tumour beside the normal, looked at.
fn looked(samplings: Samplings) -> Vec<Looked> {
    samplings.finish().iter().map(Looked::at).collect()
}

/// All partitions together.
fn sum(shares: Vec<Share>) -> Result<Share, Error> {
    let all = shares.into_iter().map(Ok).reduce(|all, share| all?.and(share?));
    all.unwrap_or_else(|| Err(Error::Input("nothing was counted".into())))
}

impl Share {
    /// Both together.
    fn and(mut self, other: Share) -> Result<Share, Error> {
        if self.read != other.read {
            return Err(Error::Input(
                "the reads changed while they were counted: start again without --resume, and leave them alone".into(),
            ));
        }
        self.picks.extend(other.picks);
        for (all, part) in self.spectra.iter_mut().zip(&other.spectra) {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        }
        let same = match (&mut self.marks, &other.marks) {
            (Some(marks), Some(others)) => marks.add(others),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same {
            return Err(Error::Input(
                "the reference, or what is screened for, changed while k-mers were counted: start again without --resume".into(),
            ));
        }
        self.strangers.iter_mut().zip(other.strangers).for_each(|(all, part)| *all += part);
        self.own.iter_mut().zip(&other.own).for_each(|(all, part)| all.add(part));
        if self.looked.is_empty() {
            self.looked = other.looked;
        }
        self.unknown += other.unknown;
        self.known += other.known;
        self.spilled = self.spilled.max(other.spilled);
        Ok(self)
    }
}

/// k-mers that a sample has too often for errors.
pub(crate) fn solid(spectrum: &[u64]) -> u64 {
    const SOLID: usize = 8;
    spectrum.iter().skip(SOLID).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Watch for Silent {
        fn begins(&self, _: &str, _: Option<Arc<Meter>>) {}
    }

    /// Two partitions with so many picks of which the normal does not know the middle, of which `given` were given out by each, and 10 others.
    fn joined(unknown: u64, given: u64) -> Counts {
        let folder = tempfile::tempdir().unwrap();
        let params = CountParams {
            k: 31,
            min_base_quality: 0,
            threads: 1,
            memory: 1 << 30,
            work: folder.path().into(),
            scratch: u64::MAX,
            part: Part::WHOLE,
            devices: Default::default(),
        };
        let samples = Samples::default();
        let counting = Counting {
            lanes: &[],
            samples: &samples,
            params,
            least_tumour: 2,
            genome_bases: Some(1_000_000),
            reference: None,
            screen: None,
            watch: &Silent,
        };
        let share = |first: u64| {
            let pick = |kmer, depth| Pick { kmer, tumour: 9, normal: 0, depth, rule: TUMOUR };
            let picks =
                (0..given).map(|i| pick(first + i, 0)).chain((0..10).map(|i| pick(first + 1000 + i, 20)));
            let read = Read { bases: vec![9; 2], kmers: vec![9; 2], told: Told::of(2) };
            let mut spectrum = vec![0; 1024];
            spectrum[20] = 1_000_000;
            let (spectra, picks) = (vec![spectrum.clone(), spectrum], picks.collect());
            Share {
                part: Part::WHOLE,
                picks,
                spectra,
                strangers: vec![0],
                own: vec![OwnAlleles::default()],
                unknown,
                known: 0,
                spilled: 0,
                marks: None,
                looked: Vec::new(),
                read,
            }
        };
        counting.join(sum(vec![share(5000), share(0)]).unwrap(), 2, Recorded::NoRoom(0)).unwrap()
    }

    #[test]
    fn too_many_unknown_kmers_are_left_out_all_of_them_and_told() {
        let lines = |counts: &Counts| counts.ledger.lines.iter().filter(|l| l.stage == "select").count();
        let few = joined(100, 100);
        assert_eq!((few.picks.len(), lines(&few)), (220, 0));
        assert!(few.picks.is_sorted());
        // Neither partition has too many, together they have.
        let many = joined(MOST_UNKNOWN.0 / 2 + 1, 100);
        assert_eq!((many.picks.len(), lines(&many)), (20, 1));
        let line = many.ledger.lines.iter().find(|l| l.stage == "select").unwrap();
        assert!(line.left_out && line.count == MOST_UNKNOWN.0 + 2);
    }
}
