//! What marks say: copies of each contig, sex, organelles, gains and losses, and what is there that was screened for.

use serde::{Deserialize, Serialize};

use super::{Kind, Marked, MarksTally};
use crate::interval::Estimate;

/// What both samples hold of known sequences, normal then tumour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Contigs of the reference; nothing where there is none.
    pub karyotype: Option<Karyotype>,
    /// What was screened for; nothing where there was nothing.
    pub screen: Option<Screen>,
}

/// How often there is what contig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Karyotype {
    /// How often a k-mer of the genome usually is in each sample; by half of the bases of all contigs but X, Y and organelles.
    pub usual: [f64; 2],
    /// Sex of the person by each sample, in plain words.
    pub sex: [String; 2],
    /// Share of the tumour sample's cells that have lost Y, where the normal has one.
    pub y_lost: Option<Estimate>,
    /// Copies of the mitochondrion in a diploid cell, or what there is for two copies of the usual contig.
    pub mitochondria: [Option<Estimate>; 2],
    /// Contigs that the tumour has more or less often than the normal, as in `contigs`.
    pub changed: Vec<String>,
    /// Contigs with too few marks to be told of.
    pub not_judged: u64,
    /// The others, in the order of the reference.
    pub contigs: Vec<ContigFacts>,
}

/// How often there is a contig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContigFacts {
    /// Its name.
    pub name: String,
    /// Its bases.
    pub bases: u64,
    /// k-mers of it that were looked for.
    pub marks: u64,
    /// How often it is there for one copy of the usual contig, in each sample.
    pub relative: [Option<Estimate>; 2],
    /// The tumour's over the normal's.
    pub ratio: Option<Estimate>,
    /// `gained`, `lost` or `as usual`, by the ratio; organelles are neither.
    pub word: String,
}

/// What is there of what was screened for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Screen {
    /// Sequences that were screened for.
    pub sequences: u64,
    /// Share of their k-mers that was looked for.
    pub sought: f64,
    /// Sequences without enough k-mers of their own, as the reference or others before them have these.
    pub not_told_apart: u64,
    /// Those of which anything was seen more than once, most first.
    pub found: Vec<Found>,
    /// How many others there are.
    pub others: u64,
}

/// What there is of a sequence that was screened for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its bases.
    pub bases: u64,
    /// k-mers of it that were looked for, and those that the reference or a sequence before it has too and were not.
    pub marks: [u64; 2],
    /// The sequence before it that it is most like, if there is one.
    pub like: Option<String>,
    /// In each sample.
    pub samples: [FoundIn; 2],
}

/// What there is of it in one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundIn {
    /// Share of its marks that were seen.
    pub breadth: f64,
    /// How often a mark was seen, on average.
    pub depth: f64,
    /// About how many reads these are, and how many in a million.
    pub reads: f64,
    /// Of a million reads.
    pub per_million: f64,
    /// In plain words.
    pub word: String,
}

/// What reads a sample has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reads {
    /// How many.
    pub number: f64,
    /// k-mers of one, on average.
    pub kmers: f64,
}

/// Bases in which about one fragment of a usual depth lies: marks that are nearer say the same.
const FRAGMENT: u64 = 300;
/// Fewest marks of a contig that is told of.
const FEWEST_MARKS: u64 = 20;
/// Fewest reads over all autosomes' marks from which anything is said.
const FEWEST_SEEN: u64 = 500;

/// How often marks were seen in a sample: of most of them, as repeats and what is amplified are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Depth {
    mean: f64,
    /// Standard error.
    error: f64,
    /// Times that any of them was seen.
    seen: u64,
}

fn depth(sequence: &Marked, sample: usize) -> Depth {
    let seen = &sequence.seen[sample];
    let there: u64 = seen.iter().map(|&(_, n)| u64::from(n)).sum();
    let none = sequence.marks.saturating_sub(there);
    let all = || std::iter::once((0, none)).chain(seen.iter().map(|&(count, n)| (count, u64::from(n))));
    let mut left = sequence.marks / 2;
    let median = all().find(|&(_, n)| {
        let here = n > left;
        left = left.saturating_sub(n);
        here
    });
    let median = f64::from(median.map_or(0, |(count, _)| count));
    let most = (median + 3.0 * median.sqrt() + 1.0).max(3.0);
    let (mut marks, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (count, n) in all().filter(|&(count, _)| f64::from(count) <= most) {
        let (count, n) = (f64::from(count), n as f64);
        (marks, sum, squares) = (marks + n, sum + count * n, squares + count * count * n);
    }
    let mean = if marks > 0.0 { sum / marks } else { 0.0 };
    let variance = if marks > 0.0 { (squares / marks - mean * mean).max(mean) } else { 0.0 };
    let independent = marks.min((sequence.bases / FRAGMENT) as f64).max(1.0);
    // Even where none was seen there may be some.
    let error = (variance / independent).sqrt().max(1.0 / independent);
    Depth { mean, error, seen: sum as u64 }
}

/// Standard errors to either side that hold 95 %.
const SIDES: f64 = 1.96;

impl Depth {
    /// Over another.
    fn over(self, other: Depth) -> Option<Estimate> {
        if other.mean <= 0.0 {
            return None;
        }
        let value = self.mean / other.mean;
        let error = SIDES * (self.error.powi(2) + (value * other.error).powi(2)).sqrt() / other.mean;
        Some(Estimate { value, low: (value - error).max(0.0), high: value + error })
    }
}

/// X or Y, by the name.
fn is_sex(name: &str, sex: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CHR").unwrap_or(&name) == sex
}

/// By how much a whole contig must differ, beside chance, to be gained or lost.
const CHANGED: f64 = 0.1;

impl Known {
    /// What a tally says of samples with such reads.
    pub fn of(tally: &MarksTally, reads: [Reads; 2]) -> Known {
        let kinds = |screened: bool| {
            tally.sequences.iter().filter(move |s| (s.kind == Kind::Screened) == screened).collect::<Vec<_>>()
        };
        let [contigs, screened] = [false, true].map(kinds);
        Known {
            karyotype: (!contigs.is_empty()).then(|| karyotype(&contigs)),
            screen: (!screened.is_empty()).then(|| screen(&screened, reads)),
        }
    }
}

fn karyotype(contigs: &[&Marked]) -> Karyotype {
    let told: Vec<(&Marked, [Depth; 2])> = contigs
        .iter()
        .filter(|contig| contig.marks >= FEWEST_MARKS)
        .map(|&contig| (contig, [0, 1].map(|sample| depth(contig, sample))))
        .collect();
    let is_usual = |contig: &Marked| {
        contig.kind == Kind::Contig && !["X", "Y"].into_iter().any(|sex| is_sex(&contig.name, sex))
    };
    let usual = [0, 1].map(|sample| usual(&told, sample, is_usual));
    let enough = usual.map(|usual| usual.seen >= FEWEST_SEEN && usual.mean > 0.0);
    let relative = |depths: &[Depth; 2], sample: usize| {
        if enough[sample] { depths[sample].over(usual[sample]) } else { None }
    };
    let facts: Vec<ContigFacts> = told
        .iter()
        .map(|(contig, depths)| {
            let relative = [0, 1].map(|sample| relative(depths, sample));
            let ratio = relative[0].zip(relative[1]).and_then(|(normal, tumour)| over(tumour, normal));
            let word = match ratio {
                _ if contig.kind == Kind::Organelle => "of an organelle",
                None => "not known",
                Some(ratio) if ratio.low > 1.0 && ratio.value > 1.0 + CHANGED => "gained",
                Some(ratio) if ratio.high < 1.0 && ratio.value < 1.0 - CHANGED => "lost",
                Some(_) => "as usual",
            };
            let Marked { name, bases, marks, .. } = contig;
            ContigFacts {
                name: name.clone(),
                bases: *bases,
                marks: *marks,
                relative,
                ratio,
                word: word.to_owned(),
            }
        })
        .collect();
    let of_sex = |sex| facts.iter().find(|fact| is_sex(&fact.name, sex));
    let (x, y) = (of_sex("X"), of_sex("Y"));
    let sex = [0, 1].map(|sample| {
        let relative = |fact: Option<&ContigFacts>| fact.and_then(|fact| fact.relative[sample]);
        self::sex(relative(x), relative(y), x.is_some(), enough[sample]).to_owned()
    });
    let had = y.filter(|y| y.relative[0].is_some_and(|normal| normal.low > 0.25));
    let y_lost = had.and_then(|y| y.ratio).filter(|ratio| ratio.high < 1.0).map(|ratio| {
        let lost = |left: f64| (1.0 - left).clamp(0.0, 1.0);
        Estimate { value: lost(ratio.value), low: lost(ratio.high), high: lost(ratio.low) }
    });
    let mitochondrion = |(contig, _): &&(&Marked, [Depth; 2])| {
        contig.kind == Kind::Organelle && contig.name.to_ascii_lowercase().contains('m')
    };
    let mitochondria = [0, 1].map(|sample| {
        let relative = told.iter().find(mitochondrion).and_then(|(_, depths)| relative(depths, sample));
        relative.map(|relative| relative.times(2.0))
    });
    let changed = facts.iter().filter(|fact| ["gained", "lost"].contains(&&fact.word[..]));
    Karyotype {
        usual: usual.map(|usual| usual.mean),
        sex,
        y_lost,
        mitochondria,
        changed: changed.map(|fact| fact.name.clone()).collect(),
        not_judged: (contigs.len() - told.len()) as u64,
        contigs: facts,
    }
}

/// The depth that half of the bases of the usual contigs have at most, or of all contigs if there are none.
fn usual(told: &[(&Marked, [Depth; 2])], sample: usize, is_usual: impl Fn(&Marked) -> bool) -> Depth {
    let any = told.iter().any(|(contig, _)| is_usual(contig));
    let those = told.iter().filter(|(contig, _)| !any || is_usual(contig));
    let mut depths: Vec<(u64, Depth)> =
        those.map(|(contig, depths)| (contig.bases, depths[sample])).collect();
    depths.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let seen = depths.iter().map(|(_, depth)| depth.seen).sum();
    let mut left = depths.iter().map(|(bases, _)| bases).sum::<u64>() / 2;
    let middle = depths.iter().find(|(bases, _)| {
        let here = *bases > left;
        left = left.saturating_sub(*bases);
        here
    });
    middle.map_or(Depth { mean: 0.0, error: 0.0, seen: 0 }, |&(_, depth)| Depth { seen, ..depth })
}

/// One estimate over another, which are independent.
fn over(a: Estimate, b: Estimate) -> Option<Estimate> {
    if b.value <= 0.0 || b.low <= 0.0 {
        return None;
    }
    let value = a.value / b.value;
    let side = |of: Estimate| (of.high - of.low) / 2.0;
    let error = (side(a).powi(2) + (value * side(b)).powi(2)).sqrt() / b.value;
    Some(Estimate { value, low: (value - error).max(0.0), high: value + error })
}

fn sex(x: Option<Estimate>, y: Option<Estimate>, has_x: bool, enough: bool) -> &'static str {
    if !has_x {
        return "not known: no sequence called X or chrX";
    }
    let Some(x) = x.filter(|_| enough) else { return "not known: too few reads" };
    let (one, two) = (0.35..0.7, 0.8..1.3);
    match (x.value, y.map(|y| y.value)) {
        (x, None) if two.contains(&x) => "female, by X alone: no sequence called Y",
        (x, None) if one.contains(&x) => "male, by X alone: no sequence called Y",
        (x, Some(0.0..0.1)) if two.contains(&x) => "female",
        (x, Some(y)) if one.contains(&x) && one.contains(&y) => "male",
        (x, Some(0.0..0.1)) if one.contains(&x) => "one X and no Y",
        (x, Some(y)) if one.contains(&x) && y < 0.35 => "male, Y only in a part of the cells",
        (x, Some(y)) if two.contains(&x) && one.contains(&y) => "two X and one Y",
        (x, Some(y)) if two.contains(&x) && y < 0.35 => "female, with some Y: is another person's DNA in it?",
        (x, Some(0.0..0.1)) if x > 0.7 && x < 0.8 => "X only once in a part of the cells, no Y",
        _ => "not clear: X and Y are neither once nor twice there",
    }
}

/// Fewest marks of a sequence that can be told.
const FEWEST_OWN: u64 = 5;
/// Reads from which a sequence is there, and from which there are traces.
const THERE: f64 = 10.0;
const TRACES: f64 = 1.5;
/// Least part of it that must be seen, of what so many reads would show.
const SPREAD: f64 = 0.2;

fn screen(screened: &[&Marked], reads: [Reads; 2]) -> Screen {
    let kmers: u64 = screened.iter().map(|s| s.kmers).sum();
    let marks: u64 = screened.iter().map(|s| s.marks + s.not_own).sum();
    let told = screened.iter().filter(|s| s.marks >= FEWEST_OWN);
    let of = |&&sequence: &&&Marked| {
        let samples = [0, 1].map(|sample| found_in(sequence, sample, reads[sample]));
        let Marked { name, bases, marks, not_own, like, .. } = sequence.clone();
        samples.iter().any(|sample| sample.reads >= TRACES).then_some(Found {
            name,
            bases,
            marks: [marks, not_own],
            like,
            samples,
        })
    };
    let mut found: Vec<Found> = told.clone().filter_map(|s| of(&s)).collect();
    let most = |found: &Found| found.samples.iter().map(|sample| sample.reads).fold(0.0, f64::max);
    found.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let told = told.count();
    Screen {
        sequences: screened.len() as u64,
        sought: marks as f64 / kmers.max(1) as f64,
        not_told_apart: (screened.len() - told) as u64,
        others: (told - found.len()) as u64,
        found,
    }
}

fn found_in(sequence: &Marked, sample: usize, reads: Reads) -> FoundIn {
    let seen = &sequence.seen[sample];
    let (marks, kmers) = (sequence.marks.max(1) as f64, sequence.kmers.max(1) as f64);
    let there = seen.iter().fold(0.0, |sum, &(_, n)| sum + f64::from(n));
    let times = seen.iter().fold(0.0, |sum, &(count, n)| sum + f64::from(count) * f64::from(n));
    // So many marks a read shows; one at least, or it is not seen.
    let each = (reads.kmers * marks / kmers).max(1.0);
    let (breadth, depth, number) = (there / marks, times / marks, times / each);
    // If its reads lay anywhere on it, each for itself.
    let expected = 1.0 - (-depth).exp();
    let per_million = if reads.number > 0.0 { number / reads.number * 1e6 } else { 0.0 };
    let word = if number < TRACES {
        "not there"
    } else if breadth < SPREAD * expected.max(f64::min(0.5, number * each / marks)) {
        "a piece of it only: integrated, or like something else?"
    } else if number < THERE {
        "traces, may be carry-over"
    } else {
        "there"
    };
    let word = word.to_owned();
    FoundIn { breadth, depth, reads: number, per_million, word }
}
