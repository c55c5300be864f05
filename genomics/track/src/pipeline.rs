//! The whole of it: changes → places → k-mers → one pass over the reads → molecules → verdicts.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_reads::{Lane, Meter, Trimmer, for_each_batch};
use genuma_somatic::known;
use genuma_somatic::sought::Sought;
use genuma_work::Watch;
use genuma_work::parallel::in_order;

use crate::anchors::{self, Anchors};
use crate::background::Background;
use crate::change::{Change, Record};
use crate::error::Error;
use crate::judge::{self, Given, Tracked, Whole};
use crate::look::Looker;
use crate::molecules::{self, Votes, Watched};
use crate::place::{self, Place};
use crate::seen::{Depths, Seen};
use crate::windows::{Window, windows};

/// What is to be done.
#[derive(Debug)]
pub struct Job {
    /// The known changes, as they stand in a file.
    pub records: Vec<Record>,
    /// Where they are placed.
    pub reference: PathBuf,
    /// Reads of all samples; the number of a sample is its place in [`Job::samples`].
    pub lanes: Vec<Lane>,
    /// Names of the samples.
    pub samples: Vec<String>,
    /// Which of them is the patient's normal.
    pub normal: Option<usize>,
    /// Length of the k-mers, 24 to 32.
    pub k: u32,
    /// Threads, at least 1.
    pub threads: usize,
}

/// A change that is not looked for, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Untracked {
    /// The record.
    pub record: Record,
    /// The reason.
    pub why: &'static str,
}

/// What one sample says.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// Whether it is the patient's normal.
    pub is_normal: bool,
    /// By change that is tracked, in their order.
    pub tracked: Vec<Tracked>,
    /// All together.
    pub whole: Whole,
    /// What was learned of its errors.
    pub background: Background,
    /// Pairs read.
    pub pairs: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracking {
    /// The changes that were looked for.
    pub changes: Vec<Change>,
    /// Those that were not.
    pub untracked: Vec<Untracked>,
    /// Records that say what others say: where each stands, and where that one stands.
    pub repeated: Vec<[(usize, usize); 2]>,
    /// The samples.
    pub samples: Vec<Sample>,
    /// Mates that fit neither allele of the place that they come from.
    pub strangers: u64,
    /// k-mers that were looked for.
    pub kmers: usize,
}

/// What records are understood as.
#[derive(Default)]
struct Understood {
    changes: Vec<Change>,
    untracked: Vec<Untracked>,
    repeated: Vec<[(usize, usize); 2]>,
}

/// Why a change cannot be told from the rest of the genome.
const IN_REPEAT: &str = "stands in a repeat";
const AT_END: &str = "stands at the end of a sequence, or beside letters that are no bases";

/// What a thread has at the end.
struct Found<'a> {
    looker: Looker<'a>,
    trimmer: Trimmer,
    seen: Vec<Seen>,
    pairs: Vec<u64>,
    /// Longest mate.
    longest: usize,
}

impl Job {
    /// From records and reads to verdicts.
    ///
    /// # Errors
    /// Records that do not fit the reference, none that can be looked for, files that cannot be read.
    pub fn run(&self, watch: &dyn Watch) -> Result<Tracking, Error> {
        let Understood { mut changes, mut untracked, repeated } = self.understand()?;
        let meter = Arc::new(Meter::of("the reference"));
        watch.begins("place", Some(meter.clone()));
        let mut places = self.places(&changes, &meter)?;
        let asked = anchors::asked(&places, self.k);
        let copies = if asked.is_empty() {
            Vec::new()
        } else {
            known::copies(&self.reference, &Sought::new(self.k, asked.iter().copied()), self.threads, &meter)?
        };
        let anchors = Anchors::of(&places, self.k, &asked, &copies);
        drop((asked, copies));
        let tells: HashSet<usize> =
            places.iter().zip(&anchors.known).filter(|(_, known)| **known).map(|(p, _)| p.change).collect();
        let spelled: HashSet<usize> =
            places.iter().filter(|p| p.alternative.len() > 2 * self.k as usize).map(|p| p.change).collect();
        for (i, change) in changes.iter().enumerate().filter(|(i, _)| !tells.contains(i)) {
            let why = if spelled.contains(&i) { IN_REPEAT } else { AT_END };
            untracked.push(Untracked { record: change.record.clone(), why });
        }
        if tells.is_empty() {
            let reasons: BTreeSet<&str> = untracked.iter().map(|u| u.why).collect();
            let reasons: Vec<&str> = reasons.into_iter().collect();
            return Err(Error::Nothing(format!(
                "none of the {} changes can be tracked: {}",
                untracked.len(),
                reasons.join("; ")
            )));
        }
        let meter = Arc::new(Meter::default());
        watch.begins("look", Some(meter.clone()));
        let depths = Depths::new(places.len(), self.samples.len());
        let found = self.pass(&anchors, &places, &depths, &meter)?;
        watch.begins("judge", None);
        let kmers = anchors.sought.len();
        let strangers = found.iter().map(|f| f.looker.strangers).sum();
        let pairs: Vec<u64> =
            (0..self.samples.len()).map(|s| found.iter().map(|f| f.pairs[s]).sum()).collect();
        let longest = found.iter().map(|f| f.longest).max().unwrap_or(0);
        if longest < self.k as usize && pairs.iter().sum::<u64>() > 0 {
            let what = format!(
                "the longest read has {longest} bases, k is {}: give a smaller -k, or longer reads",
                self.k
            );
            return Err(Error::Nothing(what));
        }
        let mut seen: Vec<Seen> =
            found.into_iter().flat_map(|f| f.seen).filter(|s| depths.stays(s)).collect();
        seen.sort_unstable();
        let judged = self.judge(&changes, &places, &seen, &depths, &tells, &pairs);
        drop((anchors, seen));
        // Those that are left keep their order; places are no longer needed.
        places.clear();
        let mut i = 0;
        changes.retain(|_| {
            i += 1;
            tells.contains(&(i - 1))
        });
        Ok(Tracking { changes, untracked, repeated, samples: judged, strangers, kmers })
    }

    /// Records → changes, each once.
    fn understand(&self) -> Result<Understood, Error> {
        let (mut keys, mut understood) = (HashMap::new(), Understood::default());
        for record in &self.records {
            match Change::of(record.clone())? {
                Ok(change) => match keys.entry(change.key()) {
                    Entry::Occupied(known) => understood.repeated.push([record.stands, *known.get()]),
                    Entry::Vacant(new) => {
                        new.insert(record.stands);
                        understood.changes.push(change);
                    }
                },
                Err((record, why)) => understood.untracked.push(Untracked { record, why }),
            }
        }
        Ok(understood)
    }

    /// Spells all places, and holds the records against the reference.
    fn places(&self, changes: &[Change], meter: &Meter) -> Result<Vec<Place>, Error> {
        let wanted: Vec<_> = changes.iter().flat_map(place::wanted).collect();
        let windows = windows(&self.reference, &wanted, meter)?;
        // What changes touch, without the bases that alleles are padded with.
        let none = BTreeSet::new();
        let mut touched: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for change in changes.iter().filter(|c| c.reference.is_some()) {
            for junction in &change.junctions {
                let (Some(from), Some(to)) = (&junction.from, &junction.to) else { continue };
                touched.entry(&from.chrom).or_default().extend(from.pos + 1..to.pos.max(from.pos + 2));
            }
        }
        for change in changes.iter().filter(|c| c.reference.is_none()) {
            let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]).flatten();
            ends.for_each(|end| {
                touched.entry(&end.chrom).or_default().insert(end.pos);
            });
        }
        let mut at = 0;
        let mut places = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let (junctions, reference) = (2 * change.junctions.len(), at + 2 * change.junctions.len());
            check(change, &windows[at..=reference])?;
            for (j, junction) in change.junctions.iter().enumerate() {
                let pair: [&Window; 2] = [&windows[at + 2 * j], &windows[at + 2 * j + 1]];
                let chrom = junction.from.as_ref().map_or("", |end| &end.chrom);
                places.push(place::spell(
                    number,
                    change,
                    junction,
                    pair,
                    touched.get(chrom).unwrap_or(&none),
                ));
            }
            at += junctions + 1;
        }
        Ok(places)
    }

    /// One pass over all reads.
    fn pass<'a>(
        &self,
        anchors: &'a Anchors,
        places: &'a [Place],
        depths: &Depths,
        meter: &Meter,
    ) -> Result<Vec<Found<'a>>, Error> {
        let start = || Found {
            looker: Looker::new(anchors, places),
            trimmer: Trimmer::default(),
            seen: Vec::new(),
            pairs: vec![0; self.samples.len()],
            longest: 0,
        };
        for_each_batch(&self.lanes, self.threads, meter, start, |found, batch| {
            let Found { looker, trimmer, seen, pairs, longest } = found;
            pairs[usize::from(batch.sample)] += batch.len() as u64;
            for pair in batch.iter() {
                *longest = pair.mates.iter().fold(*longest, |longest, mate| longest.max(mate.seq.len()));
                if looker.may_tell(&pair) {
                    let pair = trimmer.trim(pair);
                    looker.look(&pair, batch.sample, |one| seen.extend(depths.count(&one).then_some(one)));
                }
            }
            Ok(())
        })
    }

    /// Molecules, errors and verdicts of each sample, the normal first.
    fn judge(
        &self,
        changes: &[Change],
        places: &[Place],
        seen: &[Seen],
        depths: &Depths,
        tells: &HashSet<usize>,
        pairs: &[u64],
    ) -> Vec<Sample> {
        let order =
            self.normal.into_iter().chain((0..self.samples.len()).filter(|s| Some(*s) != self.normal));
        let mut samples: Vec<(usize, Sample)> = Vec::new();
        for number in order {
            let of = |place: usize| {
                let key = (place as u32, number as u8);
                let from = seen.partition_point(|s| (s.place, s.sample) < key);
                let to = seen.partition_point(|s| (s.place, s.sample) <= key);
                &seen[from..to]
            };
            let count = |(): &mut (), place: usize| molecules::of(&places[place], of(place));
            let counted: Vec<(Votes, Option<Watched>)> = in_order(places.len(), self.threads, || (), count);
            let background = Background::of(counted.iter().filter_map(|c| c.1.as_ref()));
            let mut by_change: HashMap<usize, Vec<usize>> = HashMap::new();
            (0..places.len()).for_each(|p| by_change.entry(places[p].change).or_default().push(p));
            let normal = samples.iter().find(|(s, _)| Some(*s) == self.normal).map(|(_, sample)| sample);
            let mut tracked: Vec<Tracked> = Vec::new();
            for (index, change) in changes.iter().enumerate().filter(|(i, _)| tells.contains(i)) {
                let given: Vec<Given<'_>> = by_change[&index]
                    .iter()
                    .map(|&p| Given {
                        votes: &counted[p].0,
                        local: background.at(&places[p], counted[p].1.as_ref()),
                        thinned: depths.thinned(p, number),
                    })
                    .collect();
                let of_normal = normal.map(|sample| &sample.tracked[tracked.len()]);
                tracked.push(judge::change(index, change.record.share, &given, of_normal));
            }
            let whole = judge::whole(&mut tracked, |index| changes[index].record.share);
            let is_normal = Some(number) == self.normal;
            let name = self.samples[number].clone();
            samples
                .push((number, Sample { name, is_normal, tracked, whole, background, pairs: pairs[number] }));
        }
        samples.sort_by_key(|(number, _)| *number);
        samples.into_iter().map(|(_, sample)| sample).collect()
    }
}

/// Whether the reference is the one that a record speaks of. `windows` are those of [`place::wanted`].
fn check(change: &Change, windows: &[Window]) -> Result<(), Error> {
    let record = &change.record;
    let wrong = |what: String| Err(Error::Record { record: record.name(), what });
    let own = &windows[windows.len() - 1];
    if !own.there {
        return wrong(format!("the reference has no {}", record.chrom));
    }
    if own.bases.is_empty() {
        return wrong(format!("{} of the reference has no base {}", record.chrom, record.pos));
    }
    if let Some(reference) = &change.reference {
        let same = |(a, b): (&u8, &u8)| a == b || *b == b'N' || !b"ACGT".contains(a);
        if own.bases.len() < reference.len() || !own.bases.iter().zip(reference.as_bytes()).all(same) {
            let here = String::from_utf8_lossy(&own.bases[..own.bases.len().min(24)]).into_owned();
            return wrong(format!(
                "REF does not match the reference, which has {here} there: the file is of another genome"
            ));
        }
    }
    let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]);
    for (end, window) in ends.zip(windows) {
        let Some(end) = end else { continue };
        if !window.there {
            return wrong(format!("the reference has no {}", end.chrom));
        }
        if window.slice(end.pos, end.pos + 1).is_empty() && change.reference.is_none() {
            return wrong(format!("{} of the reference has no base {}", end.chrom, end.pos + 1));
        }
    }
    Ok(())
}
