//! `genuma table`: what several tables of k-mers have together, and what one has of its own.

mod ahead;
mod cuts;
mod info;
mod merge;
mod rule;
mod write;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::{Subcommand, value_parser};
use genuma_flash::Scan;
use genuma_kmers::MAX_SAMPLES;
use genuma_work::clock::process_cost;
use genuma_work::publish::Set;
use tracing::{info, warn};

use crate::call::budget;
use crate::count::outputs::{Target, heed_interruption, spec};
use crate::failure::{Usage, must_be_folder};
use crate::note::{Made, Note};
use crate::{command, sizes};
use ahead::{Feed, READERS};
use cuts::Stretch;
use merge::{Entries, Merger, NONE};
use rule::{Counts, Operation, Rule};
use write::Out;

/// Bytes of the process beside what tables are read and written in, ...
const BASE: u64 = 40 << 20;
/// ... and for each thread, with what it writes from.
const PER_THREAD: u64 = 3 << 20;
/// Pages of all tables together in a stretch, at most where none of them has less than one.
const PAGES: u64 = 128;
/// Bytes of a page.
const PAGE: u64 = 4096;

/// Combine, filter and describe tables of k-mers that `genuma count` made.
#[derive(Debug, clap::Args)]
#[command(
    about = "Combine, filter and describe tables of k-mers that `genuma count` made",
    after_help = "Examples:\n  \
    A panel of normals: in how many of them each k-mer is, of those that two or more have\n    \
    genuma table union --counts samples --min 2 normals/*.gkt -o panel.gkt\n  \
    What the child has and neither parent:\n    \
    genuma table subtract child.gkt mother.gkt father.gkt -o new.gkt\n  \
    As text, and only what is there ten times or more:\n    \
    genuma table filter --min 10 S.gkt -o S.tsv"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The k-mers of any table
    Union(Several),
    /// The k-mers that are in all tables
    Intersect(Several),
    /// The k-mers of the first table that no other has
    Subtract(Several),
    /// The k-mers of a table with counts between limits
    Filter(One),
    /// What a table says of itself
    Info(info::Args),
}

/// Combine tables into one.
///
/// Tables have to be of one k. They are read once, in order, each page of them checked; of memory some MiB a thread and
/// a filter of 12 bits a k-mer of the result are used. The same tables give the same bytes, whatever the threads and the
/// memory.
#[derive(Debug, clap::Args)]
struct Several {
    /// Tables that `genuma count` or `genuma table` made
    #[arg(value_name = "TABLE", required = true, num_args = 1..)]
    tables: Vec<PathBuf>,
    /// x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// What the counts of the result are, sample by sample where tables have several [default: union sum,
    /// intersect min, subtract first]
    #[arg(long, value_name = "WHICH")]
    counts: Option<Counts>,
    /// Counts below this are taken as 0 where the tables are read
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    least: u32,
    /// Counts above this are taken as 0 where the tables are read
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    most: Option<u32>,
    /// Names of the result's samples, in the order of the tables
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    names: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    means: Means,
}

/// Keep the k-mers of a table whose counts are between limits.
#[derive(Debug, clap::Args)]
struct One {
    /// Table that `genuma count` or `genuma table` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Compare the counts of this sample, or of these together [default: all samples summed]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    sample: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    means: Means,
}

/// Which k-mers are written.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Limits {
    /// Write k-mers with counts of this at least, all samples of the result summed
    #[arg(long, value_name = "N", default_value_t = 1)]
    min: u64,
    /// Write k-mers with counts of this at most, all samples of the result summed
    #[arg(long, value_name = "N")]
    max: Option<u64>,
}

/// What may be used.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Means {
    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Most memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
}

/// Combines, filters or tells.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Union(several) => several.run(Operation::Union),
        What::Intersect(several) => several.run(Operation::Intersect),
        What::Subtract(several) => several.run(Operation::Subtract),
        What::Filter(one) => one.run(),
        What::Info(args) => info::run(args),
    }
}

/// The note of a table of k-mer counts.
fn note_of(scan: &Scan) -> anyhow::Result<Note> {
    Note::read(scan.note())
        .filter(|note| note.value_bytes() == scan.value_bytes())
        .filter(|_| scan.range().is_none_or(|(_, last)| last < NONE))
        .with_context(|| {
            format!(
                "{}: is a table, but not of k-mer counts: make one with `genuma count`",
                scan.path().display()
            )
        })
}

/// A table with what it says of itself.
struct Table {
    scan: Scan,
    note: Note,
}

/// Tables that are to become one.
struct Job<'a> {
    tables: Vec<Table>,
    rule: Rule,
    note: Note,
    out: &'a Path,
    means: Means,
}

impl Several {
    fn run(&self, operation: Operation) -> anyhow::Result<()> {
        let usual = match operation {
            Operation::Union | Operation::Filter => Counts::Sum,
            Operation::Intersect => Counts::Min,
            Operation::Subtract => Counts::First,
        };
        let counts = self.counts.unwrap_or(usual);
        let of_first = matches!(counts, Counts::First | Counts::Difference);
        if (operation == Operation::Subtract && !of_first)
            || (operation != Operation::Subtract && counts == Counts::Difference)
        {
            let (counts, name) = (counts.name(), operation.name());
            return Err(Usage(format!(
                "--counts {counts} is no choice of {name}: see `genuma table {name} --help`"
            ))
            .into());
        }
        if operation != Operation::Union && self.tables.len() < 2 {
            return Err(Usage(format!("{}: give two tables or more", operation.name())).into());
        }
        let most = self.most.unwrap_or(u32::MAX);
        if most < self.least {
            return Err(Usage(format!("--most {most} is below --least {}", self.least)).into());
        }
        let tables = open(&self.tables, self.means)?;
        let plain = counts == Counts::First && operation != Operation::Union;
        if counts.by_sample() && !plain {
            same_samples(&tables)?;
        }
        let mut starts = vec![0];
        starts.extend(tables.iter().scan(0, |end, table| {
            *end += table.note.samples.len();
            Some(*end)
        }));
        let samples = self.names_of(&tables, counts, plain)?;
        let rule = Rule {
            operation,
            counts,
            given: self.least..=most,
            wanted: self.limits.range()?,
            of: Vec::new(),
            samples: samples.len(),
            starts,
        };
        let all_given = rule.given == (1..=u32::MAX);
        let kept = tables
            .iter()
            .map(|table| table.note.min_count)
            .min()
            .filter(|_| all_given && counts != Counts::Difference);
        let fewest = if counts == Counts::Samples { None } else { kept };
        let min_count = fewest.unwrap_or(1).max(u32::try_from(self.limits.min).unwrap_or(u32::MAX)).max(1);
        let first = &tables[0].note;
        let mut note = Note::new(first.k, min_count, first.min_base_quality, samples);
        note.made = Some(made(&tables, operation, counts));
        tell_differences(&tables);
        Job { tables, rule, note, out: &self.out, means: self.means }.run()
    }

    /// Names of the result's samples.
    fn names_of(&self, tables: &[Table], counts: Counts, plain: bool) -> anyhow::Result<Vec<String>> {
        let names = match counts {
            Counts::Columns => columns(tables),
            Counts::Samples => vec![Made::SAMPLES.to_owned()],
            _ => {
                let first = &tables[0].note.samples;
                let same = plain || tables.iter().all(|table| table.note.samples == *first);
                if same || first.len() > 1 { first.clone() } else { vec![counts.name()] }
            }
        };
        if names.len() > MAX_SAMPLES {
            let (n, most) = (names.len(), MAX_SAMPLES);
            return Err(Usage(format!(
                "{n} samples: a table has {most} at most; --counts samples, sum, max or min need no more"
            ))
            .into());
        }
        if !self.names.is_empty() {
            if self.names.len() != names.len() {
                let (given, wanted) = (self.names.len(), names.len());
                return Err(Usage(format!("--names: {given} names for {wanted} samples")).into());
            }
            unique(&self.names, "give each sample another name")?;
            return Ok(self.names.clone());
        }
        unique(&names, "name the samples with --names")?;
        Ok(names)
    }
}

impl One {
    fn run(&self) -> anyhow::Result<()> {
        let tables = open(std::slice::from_ref(&self.table), self.means)?;
        let samples = &tables[0].note.samples;
        let place = |name: &String| {
            let place = samples.iter().position(|sample| sample == name);
            place.ok_or_else(|| {
                let (table, there) = (self.table.display(), samples.join(", "));
                Usage(format!("{table}: has no sample {name}, but {there}"))
            })
        };
        let of = self.sample.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let rule = Rule {
            operation: Operation::Filter,
            counts: Counts::Columns,
            given: 1..=u32::MAX,
            wanted: self.limits.range()?,
            of,
            samples: samples.len(),
            starts: vec![0, samples.len()],
        };
        let mut note = tables[0].note.clone();
        if self.sample.is_empty() {
            note.min_count = note.min_count.max(u32::try_from(self.limits.min).unwrap_or(u32::MAX));
        }
        Job { tables, rule, note, out: &self.out, means: self.means }.run()
    }
}

impl Limits {
    fn range(self) -> Result<std::ops::RangeInclusive<u64>, Usage> {
        match self.max {
            Some(max) if max < self.min => Err(Usage(format!("--max {max} is below --min {}", self.min))),
            max => Ok(self.min..=max.unwrap_or(u64::MAX)),
        }
    }
}

/// Stretches for which there is room at a time.
fn slots(threads: usize) -> usize {
    threads + READERS + 1
}

/// How often the bytes of a stretch are held: as they were read, and by each thread unpacked, half merged and merged.
fn copies(threads: usize) -> u64 {
    (slots(threads) + 3 * threads) as u64
}

/// Most pages of each table in a stretch, where there are so many bytes for all: by the tables' sizes, so that they go on together.
fn steps(scans: &[Scan], threads: usize, memory: u64) -> Vec<u64> {
    let all: u64 = scans.iter().map(Scan::pages).sum();
    let room = (memory / 2 / (copies(threads) * PAGE)).min(PAGES);
    let step = |scan: &Scan| u128::from(room) * u128::from(scan.pages()) / u128::from(all.max(1));
    scans.iter().map(|scan| (step(scan) as u64).max(1)).collect()
}

impl Means {
    /// Bytes for reading and writing.
    fn room(self, tables: usize) -> Result<u64, Usage> {
        let threads = command::all_or(self.threads);
        let memory = self.memory.map_or_else(budget::usual, budget::at_most_all);
        let reserve = BASE + PER_THREAD * threads as u64;
        let least = reserve + (16 << 20) + 2 * tables as u64 * copies(threads) * PAGE;
        if memory < least {
            let (have, need) = (sizes::show(memory), sizes::show(least));
            return Err(Usage(format!(
                "{have} of memory are too little: {tables} tables need {need} or more: raise --memory"
            )));
        }
        Ok(memory - reserve)
    }
}

/// Opens tables, all of one k.
fn open(paths: &[PathBuf], means: Means) -> anyhow::Result<Vec<Table>> {
    means.room(paths.len())?;
    let mut tables = Vec::<Table>::with_capacity(paths.len());
    for path in paths {
        let scan = Scan::open(path)?;
        let note = note_of(&scan)?;
        if let Some(first) = tables.first()
            && first.note.k != note.k
        {
            let (path, k, other, first) = (path.display(), note.k, paths[0].display(), first.note.k);
            return Err(Usage(format!(
                "{path}: has {k}-mers, {other} has {first}-mers: count the reads with one -k"
            ))
            .into());
        }
        tables.push(Table { scan, note });
    }
    Ok(tables)
}

/// Fails when tables have different samples, which cannot be combined sample by sample.
fn same_samples(tables: &[Table]) -> Result<(), Usage> {
    let first = &tables[0];
    let other = tables.iter().find(|table| {
        let samples = &table.note.samples;
        samples.len() != first.note.samples.len() || (samples.len() > 1 && *samples != first.note.samples)
    });
    other.map_or(Ok(()), |other| {
        let [a, b] = [other, first]
            .map(|table| (table.scan.path().display().to_string(), table.note.samples.join(", ")));
        Err(Usage(format!(
            "{} has samples {}, {} has {}: samples are combined one by one; use --counts samples or columns",
            a.0, a.1, b.0, b.1
        )))
    })
}

/// All samples of all tables, by names of their own: where tables share one, that of the table's file is put before it.
fn columns(tables: &[Table]) -> Vec<String> {
    let all: Vec<&String> = tables.iter().flat_map(|table| &table.note.samples).collect();
    let shared = |name: &String| all.iter().filter(|other| **other == name).count() > 1;
    let named = |table: &Table| {
        let file = table.scan.path().file_stem().unwrap_or_default().to_string_lossy();
        let file = file.replace(char::is_whitespace, "_");
        let alone = table.note.samples.len() == 1;
        let name = |name: &String| match (shared(name), alone) {
            (false, _) => name.clone(),
            (true, true) => file.clone(),
            (true, false) => format!("{file}.{name}"),
        };
        table.note.samples.iter().map(name).collect::<Vec<_>>()
    };
    tables.iter().flat_map(named).collect()
}

fn unique(names: &[String], what: &str) -> Result<(), Usage> {
    let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    let odd = names.iter().find(|name| name.is_empty() || name.contains(char::is_whitespace));
    match (twice, odd) {
        (Some((_, name)), _) => Err(Usage(format!("two samples would be named {name}: {what}"))),
        (_, Some(name)) => Err(Usage(format!("'{name}' is no name of a sample: {what}"))),
        _ => Ok(()),
    }
}

/// How the result came of the tables. Panels stay one when their counts are added up.
fn made(tables: &[Table], operation: Operation, counts: Counts) -> Made {
    let panels: Option<u64> = tables.iter().map(|table| table.note.panel_of()).sum();
    let of: usize = tables.iter().map(|table| table.note.samples.len()).sum();
    let added = panels.filter(|_| operation == Operation::Union && counts == Counts::Sum);
    let counts = if added.is_some() { Made::SAMPLES.to_owned() } else { counts.name() };
    let samples = added.unwrap_or(of as u64);
    Made { operation: operation.name().to_owned(), counts, tables: tables.len() as u64, samples }
}

/// Warns of tables that were made in different ways.
fn tell_differences(tables: &[Table]) {
    let first = &tables[0];
    type Setting = (&'static str, fn(&Note) -> u64);
    let each: [Setting; 3] = [
        ("least counts (--min-count)", |note| note.min_count.into()),
        ("least base qualities (--min-base-quality)", |note| note.min_base_quality.into()),
        ("kinds of counts (panel 0, other 1)", |note| u64::from(note.panel_of().is_none())),
    ];
    for (what, of) in each {
        if let Some(other) = tables.iter().find(|table| of(&table.note) != of(&first.note)) {
            let (a, b) = (first.scan.path().display(), other.scan.path().display());
            let (of_a, of_b) = (of(&first.note), of(&other.note));
            warn!(
                "{a} and {b} have different {what}: {of_a} and {of_b}; k-mers may be missing in one for that alone"
            );
        }
    }
}

impl Job<'_> {
    /// Makes the result.
    fn run(self) -> anyhow::Result<()> {
        let start = Instant::now();
        let Job { tables, rule, note, out, means } = self;
        let target = Target::of(out)?;
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        must_be_folder(folder, &folder.display().to_string())?;
        for table in &tables {
            apart(table.scan.path(), out)?;
        }
        heed_interruption(None);
        let n = tables.len();
        let room = means.room(n)?;
        let scans: Vec<Scan> = tables.into_iter().map(|table| table.scan).collect();
        let all: u64 = scans.iter().map(Scan::len).sum();
        let threads = command::all_or(means.threads);
        let steps = steps(&scans, threads, room);
        let held = copies(threads) * steps.iter().sum::<u64>() * PAGE;
        let spec = genuma_flash::Spec { memory: room.saturating_sub(held), ..spec(&note, all)? };
        let feed = Feed::new(&scans, &steps, slots(threads))?;
        let ((), done) = write::all(&target, &note, spec, |out| {
            std::thread::scope(|scope| {
                for _ in 0..READERS {
                    std::thread::Builder::new()
                        .name("read".to_owned())
                        .spawn_scoped(scope, || feed.read())?;
                }
                let work = || combine(&rule, &scans, &feed, &out);
                let begun = (0..threads).map(|_| {
                    std::thread::Builder::new().name("combine".to_owned()).spawn_scoped(scope, work)
                });
                let begun: Vec<_> = begun.collect();
                let ended = begun.into_iter().map(|thread| {
                    thread.map_err(anyhow::Error::from).and_then(|thread| {
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })
                });
                let ended: Vec<anyhow::Result<()>> = ended.collect();
                feed.stop();
                ended.into_iter().collect()
            })
        })?;
        let mut set = Set::default();
        set.add(done.file);
        set.publish()?;
        genuma_work::signals::on_interruption(None);
        info!(
            "{} of {all} {}-mers of {n} {} written; {:.1} s, {} of memory at most; see {}",
            done.entries,
            note.k,
            if n == 1 { "table" } else { "tables" },
            start.elapsed().as_secs_f64(),
            sizes::show(process_cost().peak_bytes),
            out.display()
        );
        Ok(())
    }
}

/// Combines stretches as they come, in one of several threads.
fn combine(rule: &Rule, scans: &[Scan], feed: &Feed<'_>, out: &Out<'_, '_>) -> anyhow::Result<()> {
    let mut writer = out.writer()?;
    let mut merger = Merger::default();
    let mut pieces: Vec<Entries> = vec![Entries::default(); scans.len()];
    let mut ranges = vec![0..0; scans.len()];
    while let Some((number, slot)) = feed.next() {
        let unpacked = slot.and_then(|slot| {
            let Stretch { low, high, ref shares } = slot.stretch;
            for (table, scan) in scans.iter().enumerate() {
                let piece = &mut pieces[table];
                piece.clear();
                scan.unpack(&slot.raw[table], &shares[table].firsts, piece)?;
                ranges[table] = merge::range_of(piece, low, high);
            }
            feed.give_back(slot);
            Ok(())
        });
        if let Err(error) = unpacked {
            // Of several faults the first is told, whichever was found first.
            let first = writer.stop(number);
            feed.stop();
            return if first { Err(error.into()) } else { Ok(()) };
        }
        merger.merge(rule, &mut pieces, &ranges);
        if !writer.add(number, &merger.runs(), rule.samples) {
            feed.stop();
            return Ok(());
        }
    }
    writer.finish();
    Ok(())
}

/// Fails when the output is a table that is read.
fn apart(table: &Path, out: &Path) -> Result<(), Usage> {
    let place = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    match place(out) {
        Some(same) if place(table) == Some(same) => {
            Err(Usage(format!("-o {}: is read as well: give the result another name", out.display())))
        }
        _ => Ok(()),
    }
}
