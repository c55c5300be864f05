//! What a call will take: time, memory, bytes read and written, by unit. Nothing here looks at the machine or at a file.
//!
//! The number of partitions is asked of the counter itself, so that a plan and a call cannot disagree. All else is bases times the figures
//! of [`Rates`].

use std::path::PathBuf;

use genuma_align::scan;
use genuma_kmers::{CountParams, Expected, MAX_PARTS, Planned, least_memory};
use genuma_reads::Estimate;
use genuma_somatic::count::{PICKS_PER_BASE, SAMPLE, planned, room_for_copy, scratch_for_copy};
use genuma_somatic::pipeline::{Means, Params};
use serde::Serialize;

use super::rates::{Rates, SMALL};
use crate::sizes;

/// Bytes that a call takes however small its input (measured: 90 MiB with two threads on 0.2 Mbp); a call with less is refused.
const BASE: u64 = 96 << 20;
/// Bytes that a thread takes for the reads it holds.
const PER_THREAD: u64 = 16 << 20;
/// Bytes that a call keeps free where it asks what room is left.
const RESERVE: u64 = 256 << 20;
/// Bytes that looking up a million k-mers takes beside the table's filter: the k-mers, their pages, what was found.
const LOOKING: u64 = 40 << 20;
/// Pairs of a thread from which what it notes of a library takes no more memory.
const LIBRARY_PAIRS: f64 = 65_536.0;

/// Bytes of memory without which a call with so many threads is refused.
pub(crate) fn least_for_threads(threads: usize) -> u64 {
    (BASE + PER_THREAD * threads as u64).max(2 * least_memory(threads))
}

/// Bytes of memory without which a call is refused: the sequence is in memory as letters. Rounded as it is shown, so that what is asked for
/// is enough.
pub(crate) fn least_for(threads: usize, reference: Option<u64>) -> u64 {
    (least_for_threads(threads) + reference.unwrap_or(0)).next_multiple_of(1 << 20)
}

/// What a call is given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Given {
    /// Bases of the normal and of the tumour, or of all tumours.
    pub(crate) bases: [u64; 2],
    /// Samples, the normal among them.
    pub(crate) samples: usize,
    /// Bytes of their files as they lie on the disk.
    pub(crate) bytes: [u64; 2],
    /// Bytes that a packed copy of all reads takes.
    pub(crate) copied: u64,
    /// Bases of a read.
    pub(crate) read_length: u64,
    /// Files of reads: each is inflated by one thread at a time.
    pub(crate) files: u64,
    /// Those of them that are BAM, CRAM or CBQ: in each, reads wait for their mates.
    pub(crate) aligned: u64,
    /// The panel of normals, if there is one.
    pub(crate) panel: Option<Panel>,
    /// Bases of the reference, if there is one.
    pub(crate) reference: Option<u64>,
    /// Length of k-mers.
    pub(crate) k: u32,
    /// What the call may use.
    pub(crate) means: Means,
}

/// The table of a panel of normals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Panel {
    /// Bytes of its pages of k-mers.
    pub(crate) pages: u64,
    /// Bytes of its filter and its index, which come into memory if half of what is left there has room for them.
    pub(crate) beside: u64,
}

/// What one unit will take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Unit {
    /// Its name, as `summary.json` has it.
    pub(crate) name: &'static str,
    /// CPU seconds, all threads.
    pub(crate) cpu_s: f64,
    /// Seconds by the clock.
    pub(crate) wall_s: f64,
    /// Bytes of memory, at most.
    pub(crate) peak_bytes: u64,
    /// Bytes read from files.
    pub(crate) read_bytes: u64,
    /// Bytes written to files.
    pub(crate) written_bytes: u64,
}

/// What a whole call will take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Forecast {
    /// By unit, in the order they run; what reads and writes in turn is one unit. Empty when the call is refused.
    pub(crate) units: Vec<Unit>,
    /// Readings of all reads that counting takes.
    pub(crate) partitions: u32,
    /// Bytes of a packed copy of the reads, which later passes read; 0 when they read the files again.
    pub(crate) copied: u64,
    /// Bytes of the work folder, at most.
    pub(crate) scratch_bytes: u64,
    /// Why a call with these means is refused, if it is.
    pub(crate) refused: Option<String>,
    /// What to change: so that it fits, then what would make it faster.
    pub(crate) advice: Vec<String>,
    /// Whether the call is expected to keep within its means.
    pub(crate) fits: bool,
}

impl Forecast {
    fn refused(why: String, advice: String) -> Forecast {
        Forecast {
            units: Vec::new(),
            partitions: 0,
            copied: 0,
            scratch_bytes: 0,
            refused: Some(why),
            advice: vec![advice],
            fits: false,
        }
    }

    /// Seconds by the clock.
    pub(crate) fn wall_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.wall_s).sum()
    }

    /// CPU seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.cpu_s).sum()
    }

    /// Bytes of memory, at most.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0)
    }

    /// Bytes read and written.
    pub(crate) fn moved(&self) -> [u64; 2] {
        let sum = |of: fn(&Unit) -> u64| self.units.iter().map(of).sum();
        [sum(|unit| unit.read_bytes), sum(|unit| unit.written_bytes)]
    }
}

impl Given {
    /// What the files hold.
    fn held(&self) -> Estimate {
        let bases = self.bases.iter().sum();
        Estimate { bases, reads: u64::div_ceil(bases, self.read_length.max(1)), copied: self.copied }
    }

    /// What the call will take at these rates.
    pub(crate) fn forecast(&self, rates: &Rates) -> Forecast {
        let Means { threads, memory, .. } = self.means;
        let least = least_for(threads, self.reference);
        if memory < least {
            let (have, need) = (sizes::show(memory), sizes::show(least));
            return Forecast::refused(
                format!("{have} of memory are too little: the call needs {need} or more"),
                format!("give --memory {}, or lower --threads", sizes::option(least)),
            );
        }
        let expected = Expected::of(&self.held(), self.k);
        let Some((planned, copied)) = self.planned(&expected) else {
            return Forecast::refused(
                format!(
                    "{} of k-mers would be counted in more than {MAX_PARTS} readings of all reads",
                    sizes::show(expected.bytes)
                ),
                format!("give --scratch {} or more", sizes::option(expected.bytes / 16 + 1)),
            );
        };
        let work = Work::of(self, rates, copied);
        let kept = rates.unit_bytes * work.tumour + rates.pair_bytes * work.both;
        let mut forecast = Forecast {
            units: work.units(&planned),
            partitions: planned.parts,
            copied: work.copied.unwrap_or(0),
            scratch_bytes: planned.spilled.max(kept as u64) + work.copied.unwrap_or(0),
            refused: None,
            advice: Vec::new(),
            fits: true,
        };
        let over = forecast.units.iter().filter(|unit| unit.peak_bytes > memory);
        if let Some(Unit { name, peak_bytes, .. }) = over.max_by_key(|unit| unit.peak_bytes) {
            forecast.fits = false;
            forecast.advice.push(format!(
                "{name} may take {} of memory, more than --memory: give --memory {}",
                sizes::show(*peak_bytes),
                sizes::option(self.enough(*peak_bytes, rates))
            ));
        }
        if planned.parts > 1 {
            let all = expected.bytes + expected.bytes / 16;
            forecast.advice.push(format!(
                "counting takes {} readings of all reads: with --scratch {} one would do (now {})",
                planned.parts,
                sizes::option(all),
                sizes::show(self.means.scratch)
            ));
        }
        if !copied {
            forecast.advice.push(format!(
                "with --scratch {} later passes would read a packed copy of the reads instead of their files (now {})",
                sizes::option(scratch_for_copy(&self.counting(), self.samples, &expected, &self.held())),
                sizes::show(self.means.scratch)
            ));
        }
        forecast
    }

    /// Bytes of memory of what reads say of the pair while they are counted: for each tumour the sample of roots, for each sample what each thread notes of
    /// its library.
    pub(crate) fn facts(&self, rates: &Rates) -> u64 {
        let tumours = self.samples.saturating_sub(1).max(1) as f64;
        // Half as many of what is held at most are there on average; of a small genome there are not so many.
        let sampled = SAMPLE.most_of(self.reference.unwrap_or(u64::MAX)).min(self.kmers());
        let tallies = (self.means.threads * self.samples) as f64;
        let pairs = self.held().reads / 2 / self.means.threads.max(1) as u64 / self.samples.max(1) as u64;
        let library = rates.library_bytes * (pairs as f64 / LIBRARY_PAIRS).min(1.0);
        (rates.sampled_bytes * sampled as f64 * tumours + library * tallies) as u64
    }

    /// K-mers that are expected.
    pub(crate) fn kmers(&self) -> u64 {
        Expected::of(&self.held(), self.k).kmers
    }

    /// What the counter gets.
    fn counting(&self) -> CountParams {
        // The quality under which bases are not counted changes nothing here.
        let params = Params { k: self.k, min_base_quality: 0, least_tumour: 2, least_quality: 0.0 };
        self.means.counting(&params, self.reference, self.samples.saturating_sub(1), PathBuf::new())
    }

    /// What the counter plans, and whether a copy of the reads is made beside it.
    fn planned(&self, expected: &Expected) -> Option<(Planned, bool)> {
        let params = self.counting();
        let room = room_for_copy(&params, self.samples, expected, &self.held());
        let beside = CountParams { scratch: params.scratch - room.unwrap_or(0), ..params };
        Some((planned(&beside, self.samples, expected)?, room.is_some()))
    }

    /// Bytes of memory that no unit goes beyond if it has so many, from `least` on: some units take more where there is more.
    fn enough(&self, least: u64, rates: &Rates) -> u64 {
        let mut memory = least;
        for _ in 0..16 {
            let given = Given { means: Means { memory, ..self.means.clone() }, ..self.clone() };
            let expected = Expected::of(&given.held(), given.k);
            let Some((planned, copied)) = given.planned(&expected) else { break };
            let units = Work::of(&given, rates, copied).units(&planned);
            let peak = units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0);
            if peak <= memory {
                break;
            }
            memory = peak;
        }
        memory
    }

    /// CPU seconds and peak memory of a unit by these rates, of a call that counted in so many partitions, and made a copy of the reads or not; `None` when
    /// there is no such unit.
    pub(crate) fn unit(&self, name: &str, partitions: u32, copied: bool, rates: &Rates) -> Option<Unit> {
        let planned = Planned { parts: partitions, memory: 0, spilled: 0 };
        Work::of(self, rates, copied).units(&planned).into_iter().find(|unit| unit.name == name)
    }
}

/// The work of a call.
struct Work<'a> {
    given: &'a Given,
    rates: &'a Rates,
    /// Gbases of the tumour.
    tumour: f64,
    /// Gbases of both samples.
    both: f64,
    /// Bytes of the copy of the reads, if there is one.
    copied: Option<u64>,
    /// Gbp of the reference; 0 without one.
    gbp: f64,
    /// Bytes of memory that the reference takes, and all that each unit has.
    letters: u64,
    base: u64,
    /// Bytes of what the panel says, from when it is looked at.
    in_normals: u64,
}

impl<'a> Work<'a> {
    fn of(given: &'a Given, rates: &'a Rates, copied: bool) -> Self {
        let giga = |n: u64| n as f64 / 1e9;
        let letters = given.reference.unwrap_or(0);
        let base = (rates.base_bytes + rates.thread_bytes * given.means.threads as f64) as u64;
        let [normal, tumour] = given.bases.map(giga);
        let copied = copied.then_some(given.copied);
        let in_normals = given.panel.map_or(0, |_| Self::bytes(rates.in_normals_bytes, tumour));
        Work {
            given,
            rates,
            tumour,
            both: normal + tumour,
            copied,
            gbp: giga(letters),
            letters,
            base: base + in_normals,
            in_normals,
        }
    }

    fn units(&self, planned: &Planned) -> Vec<Unit> {
        let count = self.count(planned.parts, planned.memory, planned.spilled);
        let reference = (self.letters > 0).then(|| self.reference());
        let panel = self.given.panel.map(|panel| self.panel(panel));
        let units = [self.assemble(), self.place(), self.recruit(), self.judge(), self.write()];
        reference.into_iter().chain([count]).chain(panel).chain(units).collect()
    }

    /// Seconds by the clock: `cpu_s` by all threads, beside which `inflated` Gbases come out of files and `moved` bytes go to and from the
    /// work folder, and `alone_s` in one thread.
    fn wall(&self, cpu_s: f64, inflated: f64, moved: u64, alone_s: f64) -> f64 {
        let threads = self.given.means.threads as f64;
        let together = cpu_s / (threads * self.rates.busy);
        let inflating = inflated * self.rates.inflate / self.given.files.max(1) as f64;
        together.max(inflating).max(moved as f64 / self.rates.disk) + alone_s
    }

    /// How many times what a Gbase costs on a small genome it costs on this one, if it is so much more on one ten times as large.
    fn grown(&self, tenfold: f64) -> f64 {
        1.0 + tenfold * (self.gbp / SMALL).max(1.0).log10()
    }

    /// Bytes for each Gbase, in memory or in files.
    fn bytes(rate: f64, gbases: f64) -> u64 {
        (rate * gbases) as u64
    }

    /// A pass after the first over so many Gbases in files of so many bytes, which takes `cpu_s` beside reading and moves `moved` bytes: CPU seconds, seconds by
    /// the clock, and bytes read.
    fn pass(&self, gbases: f64, files: u64, cpu_s: f64, moved: u64) -> (f64, f64, u64) {
        match self.copied {
            Some(all) => {
                let read = (all as f64 * gbases / self.both.max(1e-9)) as u64;
                (cpu_s, self.wall(cpu_s, 0.0, moved + read, 0.0), read)
            }
            None => {
                let cpu_s = cpu_s + gbases * self.rates.reread;
                (cpu_s, self.wall(cpu_s, gbases, moved, 0.0), files)
            }
        }
    }

    /// It is read when the call begins, and again for the bases that are known.
    fn reference(&self) -> Unit {
        let alone_s = 2.0 * self.rates.reference * self.gbp;
        Unit {
            name: "reference",
            cpu_s: alone_s,
            wall_s: alone_s,
            peak_bytes: self.bare() + self.letters,
            read_bytes: 2 * self.letters,
            written_bytes: 0,
        }
    }

    /// What no panel has said anything of yet.
    fn bare(&self) -> u64 {
        self.base - self.in_normals
    }

    /// What reads that wait for their mates take while all files are read.
    fn waiting(&self) -> u64 {
        (self.rates.waiting_bytes * self.given.aligned as f64) as u64
    }

    /// The same in later passes, which read a copy if there is one.
    fn again(&self) -> u64 {
        if self.copied.is_some() { 0 } else { self.waiting() }
    }

    /// All that was picked is looked up at once.
    fn panel(&self, panel: Panel) -> Unit {
        let cpu_s = self.rates.panel * self.tumour;
        let held = self.base + Self::bytes(self.rates.assemble_bytes, self.tumour);
        let inside = panel.beside <= self.given.means.memory.saturating_sub(held + RESERVE) / 2;
        let beside = if inside { panel.beside } else { 0 };
        Unit {
            name: "panel",
            cpu_s,
            wall_s: self.wall(cpu_s, 0.0, panel.pages, 0.0),
            peak_bytes: held + beside + LOOKING.min(panel.pages),
            read_bytes: beside + panel.pages,
            written_bytes: 0,
        }
    }

    fn count(&self, partitions: u32, memory: u64, spilled: u64) -> Unit {
        let picks = (self.given.reference.unwrap_or(0) as f64 * PICKS_PER_BASE) as u64;
        // The counter leaves room for the picks, of which there may be so many, and for what is noted beside it: as much of that as there is where it fills all else.
        let counter = self.bare() + memory + picks;
        let beside = self.given.facts(self.rates) + self.waiting();
        let peak_bytes = (counter + beside).min(self.given.means.memory.max(counter));
        let readings = f64::from(partitions);
        let record = self.copied.map_or(0.0, |_| self.rates.record);
        let cpu_s = self.both * (self.rates.count + record + self.rates.again * (readings - 1.0));
        let moved = spilled * u64::from(partitions);
        let copied = self.copied.unwrap_or(0);
        let input: u64 = self.given.bytes.iter().sum();
        Unit {
            name: "count",
            cpu_s,
            wall_s: self.wall(cpu_s, readings * self.both, 2 * moved + copied, 0.0),
            peak_bytes,
            read_bytes: input * u64::from(partitions) + moved,
            written_bytes: moved + copied + Self::bytes(self.rates.unit_bytes, self.tumour),
        }
    }

    fn assemble(&self) -> Unit {
        let cpu_s = self.tumour * self.rates.assemble * self.grown(self.rates.tenfold);
        let (cpu_s, wall_s, read_bytes) = self.pass(self.tumour, self.given.bytes[1], cpu_s, 0);
        let held = self.base + self.again() + Self::bytes(self.rates.assemble_bytes, self.tumour);
        let labelled = Self::bytes(self.rates.labelled_bytes, self.tumour);
        Unit {
            name: "assemble",
            cpu_s,
            wall_s,
            peak_bytes: held + labelled.min(self.given.means.memory.saturating_sub(held) / 2),
            read_bytes,
            written_bytes: Self::bytes(self.rates.unit_bytes, self.tumour),
        }
    }

    fn place(&self) -> Unit {
        let held = self.base + self.letters + Self::bytes(self.rates.place_bytes, self.tumour);
        let contigs = Self::bytes(self.rates.contig_bases, self.tumour);
        // The tables by which contigs are looked for take what is left, and the reference goes past as often as that asks for.
        let at_once = scan::at_once(self.letters, self.given.means.memory.saturating_sub(held)).min(contigs);
        let turns = if self.letters == 0 { 0 } else { contigs.div_ceil(at_once.max(1)) };
        let cpu_s = 2.0 * turns as f64 * self.rates.scan * self.gbp
            + self.rates.compare * self.tumour * self.grown(self.rates.tenfold_places);
        let alone_s = self.rates.reference * self.gbp;
        Unit {
            name: "place",
            cpu_s: cpu_s + alone_s,
            wall_s: self.wall(cpu_s, 0.0, 0, alone_s),
            peak_bytes: held + scan::bytes_for(at_once),
            read_bytes: self.letters,
            written_bytes: 0,
        }
    }

    fn recruit(&self) -> Unit {
        let cpu_s = self.both * self.rates.recruit * self.grown(self.rates.tenfold);
        let pairs = Self::bytes(self.rates.pair_bytes, self.both);
        let files = self.given.bytes.iter().sum();
        let (cpu_s, wall_s, read) = self.pass(self.both, files, cpu_s, 3 * pairs);
        Unit {
            name: "recruit",
            cpu_s,
            wall_s,
            peak_bytes: self.base
                + self.again()
                + self.letters
                + Self::bytes(self.rates.recruit_bytes, self.both),
            read_bytes: read + pairs,
            written_bytes: 2 * pairs,
        }
    }

    fn judge(&self) -> Unit {
        let cpu_s = self.both * self.rates.judge * self.grown(self.rates.tenfold_found);
        // All pairs at once, or as many as half of what is left beside the reference has room for.
        let pairs = Self::bytes(self.rates.pair_bytes, self.both);
        let resident = Self::bytes(self.rates.resident_bytes, self.both);
        let held = self.base + self.letters + Self::bytes(self.rates.judge_bytes, self.both);
        let room = self.given.means.memory.saturating_sub(held) / 2;
        let several = resident > room;
        // They are read once, and again for each look at them where they do not stay.
        let read = if several { 4 * pairs } else { pairs };
        Unit {
            name: "judge",
            cpu_s,
            wall_s: self.wall(cpu_s, 0.0, read, 0.0),
            peak_bytes: held + resident.min(room),
            read_bytes: read,
            written_bytes: 0,
        }
    }

    fn write(&self) -> Unit {
        let cpu_s = self.both * self.rates.write * self.grown(self.rates.tenfold_found);
        let held = self.judge().peak_bytes;
        let room = self.given.means.memory.saturating_sub(held) / 2;
        let peak_bytes = held + Self::bytes(self.rates.write_bytes, self.both).min(room);
        let written = Self::bytes(self.rates.result_bytes, self.both);
        Unit {
            name: "write",
            cpu_s,
            wall_s: self.wall(cpu_s, 0.0, written, 0.0),
            peak_bytes,
            read_bytes: 0,
            written_bytes: written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::rates::MEASURED;

    /// A human genome at 30x/30x.
    fn human() -> Given {
        Given {
            bases: [93_000_000_000; 2],
            samples: 2,
            bytes: [43_000_000_000; 2],
            copied: 110_000_000_000,
            read_length: 150,
            files: 4,
            aligned: 0,
            panel: None,
            reference: Some(3_100_000_000),
            k: 31,
            means: Means { threads: 16, memory: 64 << 30, scratch: 1 << 40, devices: Default::default() },
        }
    }

    fn unit<'a>(forecast: &'a Forecast, name: &str) -> &'a Unit {
        forecast.units.iter().find(|unit| unit.name == name).expect("a unit")
    }

    fn with(change: impl FnOnce(&mut Given)) -> Forecast {
        let mut given = human();
        change(&mut given);
        given.forecast(&MEASURED)
    }

    #[test]
    fn more_bases_take_more_of_everything() {
        let all: Vec<Forecast> = (1..6)
            .map(|n| {
                with(|g| {
                    (g.bases, g.bytes, g.copied) =
                        ([n * 20_000_000_000; 2], [n * (9 << 30); 2], n * 24_000_000_000)
                })
            })
            .collect();
        for two in all.windows(2) {
            let [less, more] = two else { panic!("two") };
            assert_eq!(less.units.len(), 7);
            for (a, b) in less.units.iter().zip(&more.units) {
                assert!(a.cpu_s <= b.cpu_s && a.wall_s <= b.wall_s, "{a:?} {b:?}");
                // The counter holds less in memory when not all of it fits.
                let memory = a.name == "count" || a.peak_bytes <= b.peak_bytes / 50 * 51;
                assert!(memory && a.read_bytes <= b.read_bytes, "{a:?} {b:?}");
            }
            assert!(less.scratch_bytes <= more.scratch_bytes && less.partitions <= more.partitions);
        }
        let [small, large] = [1_000_000_000, 3_000_000_000].map(|n| with(|g| g.reference = Some(n)));
        assert!(unit(&small, "place").cpu_s < unit(&large, "place").cpu_s);
    }

    #[test]
    fn less_scratch_means_more_partitions_and_advice() {
        let by = |scratch| with(|g| (g.means.memory, g.means.scratch) = (16 << 30, scratch));
        let [all, some, none] = [1 << 40, 50 << 30, 0].map(by);
        assert_eq!(all.partitions, 1);
        assert!(some.partitions > 1 && none.partitions > some.partitions);
        assert!(all.scratch_bytes > some.scratch_bytes && some.scratch_bytes <= 50 << 30);
        assert!(all.cpu_s() < some.cpu_s() && some.cpu_s() < none.cpu_s());
        assert!(some.moved()[0] > all.moved()[0]);
        let advised = some.advice.iter().find(|line| line.contains("--scratch")).expect("advice");
        // What is advised does.
        let word =
            advised.split("--scratch ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size");
        assert_eq!(by(sizes::parse(word).expect("a size")).partitions, 1, "{advised}");
    }

    #[test]
    fn a_copy_of_the_reads_is_made_where_there_is_room_beside_the_kmers() {
        let by = |scratch| with(|g| g.means.scratch = scratch);
        let (all, none) = (by(1 << 40), by(250 << 30));
        assert_eq!((all.partitions, none.partitions), (1, 1));
        assert_eq!((all.copied, none.copied), (human().copied, 0));
        assert!(all.scratch_bytes > none.scratch_bytes && all.scratch_bytes > all.copied);
        assert!(unit(&all, "count").cpu_s > unit(&none, "count").cpu_s);
        for name in ["assemble", "recruit"] {
            let [with, without] = [&all, &none].map(|forecast| unit(forecast, name));
            assert!(with.cpu_s < without.cpu_s && with.read_bytes > 0, "{with:?} {without:?}");
        }
        assert!(all.cpu_s() < none.cpu_s() && all.advice.is_empty());
        // What is advised does, and little less does not.
        let [advised] = &none.advice[..] else { panic!("{:?}", none.advice) };
        let word =
            advised.split("--scratch ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size");
        let scratch = sizes::parse(word).expect("a size");
        assert_eq!(by(scratch).copied, human().copied, "{advised}");
        assert_eq!(by(scratch / 2).copied, 0);
        // Counted in several readings, the files are read again anyway.
        let several = by(40 << 30);
        assert!(several.partitions > 1 && several.copied == 0, "{several:?}");
        assert!(with(|g| (g.means.scratch, g.copied) = (1 << 40, 0)).copied == 0);
    }

    #[test]
    fn threads_take_less_time_for_the_same_work() {
        let all = [1, 2, 4, 16].map(|n| with(|g| g.means.threads = n));
        for two in all.windows(2) {
            assert!(two[0].wall_s() > two[1].wall_s(), "{two:?}");
            assert!((two[0].cpu_s() - two[1].cpu_s()).abs() < 1.0);
        }
        // Four files are inflated by four threads, whatever there are.
        let bound = 186.0 * MEASURED.inflate / 4.0;
        let many = with(|g| (g.means.threads, g.means.memory, g.copied) = (1000, 256 << 30, 0));
        assert!(unit(&many, "count").wall_s >= bound, "{many:?}");
        let more = with(|g| (g.means.threads, g.files, g.means.memory, g.copied) = (1000, 64, 256 << 30, 0));
        assert!(unit(&more, "count").wall_s < unit(&many, "count").wall_s);
    }

    #[test]
    fn what_cannot_fit_is_refused_and_what_may_not_is_told() {
        let refused = with(|g| g.means.memory = 3 << 30);
        assert!(!refused.fits && refused.units.is_empty() && refused.partitions == 0);
        assert!(refused.refused.expect("a reason").contains("too little"));
        assert!(refused.advice[0].contains("--memory 3.3G"), "{:?}", refused.advice);
        assert_eq!(with(|g| g.means.memory = least_for(16, g.reference)).refused, None);
        assert_eq!(with(|g| g.means.memory = least_for(16, g.reference) - 1).units, []);

        let endless = with(|g| {
            (g.bases, g.reference) = ([30_000_000_000_000; 2], None);
            (g.means.memory, g.means.scratch) = (400 << 20, 0);
        });
        assert!(endless.refused.as_deref().is_some_and(|why| why.contains("readings")), "{endless:?}");
        assert!(endless.advice[0].contains("--scratch"));

        let over = with(|g| g.means.memory = 4 << 30);
        assert!(!over.fits && over.refused.is_none());
        assert!(over.advice[0].contains("more than --memory: give --memory "), "{:?}", over.advice);
        let word = over.advice[0].rsplit(' ').next().expect("a size");
        assert!(with(|g| g.means.memory = sizes::parse(word).expect("a size")).fits);
        let ample = with(|g| g.means.memory = 400 << 30);
        assert!(ample.fits && ample.advice.is_empty(), "{:?}", ample.advice);
    }

    #[test]
    fn facts_panel_and_lanes_take_memory() {
        let plain = with(|_| {});
        let peak = |forecast: &Forecast, name: &str| unit(forecast, name).peak_bytes;
        // Each tumour has a sample of its own.
        let given =
            Given { bases: [150_000_000; 2], copied: 180_000_000, reference: Some(5_000_000), ..human() };
        let small = |change: &dyn Fn(&mut Given)| {
            let mut given = given.clone();
            change(&mut given);
            given.forecast(&MEASURED)
        };
        let (alone, several) = (small(&|_| {}), small(&|g| g.samples = 4));
        let of = |samples| Given { samples, ..given.clone() }.facts(&MEASURED);
        assert!(of(4) > of(2) * 3 / 2 && peak(&several, "count") > peak(&alone, "count"));
        assert!(of(2) < human().facts(&MEASURED), "of a large genome more is sampled");
        // Reads wait while files are read, not while a copy is.
        let lanes = small(&|g| g.aligned = 8);
        assert_eq!(peak(&lanes, "count") - peak(&alone, "count"), 8 * MEASURED.waiting_bytes as u64);
        assert_eq!(peak(&lanes, "recruit"), peak(&alone, "recruit"));
        let again = |aligned| with(|g| (g.aligned, g.copied) = (aligned, 0));
        assert!(peak(&again(8), "recruit") > peak(&again(0), "recruit"));
        // Of a panel the filter is in memory if half of what is left has room for it.
        let table = Panel { pages: 30 << 30, beside: 4 << 30 };
        let by = |memory| with(|g| (g.panel, g.means.memory) = (Some(table), memory));
        let (large, little) = (by(64 << 30), by(8 << 30));
        assert_eq!(peak(&large, "panel") - peak(&little, "panel"), table.beside);
        assert!(unit(&large, "panel").read_bytes > unit(&little, "panel").read_bytes);
        assert!(plain.units.iter().all(|unit| unit.name != "panel"));
        assert!(peak(&large, "recruit") > peak(&plain, "recruit"), "what it says stays");
        assert_eq!(peak(&large, "count"), peak(&plain, "count"));
    }

    #[test]
    fn without_a_reference_nothing_is_scanned() {
        let none = with(|g| g.reference = None);
        let all = with(|_| {});
        assert!(
            unit(&none, "place").cpu_s < unit(&all, "place").cpu_s && unit(&none, "place").read_bytes == 0
        );
        assert!(none.units.iter().all(|unit| unit.name != "reference"));
        assert!(none.peak_bytes() <= all.peak_bytes());
    }
}
