//! What a tally says of a library, each fact with its interval.

use genuma_reads::Trimmed;
use serde::{Deserialize, Serialize};

use super::copies::{Counts, START};
use super::cycles::{CHANCE, Cycle};
use super::telomere::MOTIFS;
use super::{Detail, LENGTHS, LibraryTally, overlap};
use crate::interval::Estimate;

/// What the reads of one sample say of their library.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// Pairs read.
    pub pairs: u64,
    /// Bases of them, as they came.
    pub bases: u64,
    /// Pairs looked at base by base, drawn by their names: what mates, inserts and errors rest on.
    pub looked_at: u64,
    /// Of each mate.
    pub mates: [MateFacts; 2],
    /// Share of G and C among the known bases.
    pub gc: Option<f64>,
    /// Share of pairs whose fragment is shorter than a read, so that adapters were read.
    pub adapters: Option<Estimate>,
    /// How long fragments are.
    pub insert: Insert,
    /// How often the sequencer was wrong.
    pub errors: ErrorRate,
    /// Copies of other pairs.
    pub duplicates: Duplicates,
    /// Pairs from telomeres.
    pub telomeres: Telomeres,
}

/// What one mate is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MateFacts {
    /// Bases of the shortest read, of most reads, and of the longest; those beyond 1,024 count as 1,024.
    pub lengths: [u64; 3],
    /// Mean quality.
    pub quality: Option<f64>,
    /// Share of bases of quality 30 and more.
    pub q30: Option<f64>,
    /// Share of bases that are not known.
    pub n: Option<f64>,
    /// First cycles whose bases are others than those of the rest: how the ends of fragments were made shows there.
    pub(crate) biased_start: usize,
    /// From the first cycle on.
    pub cycles: Vec<CycleFacts>,
}

/// What one cycle is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CycleFacts {
    /// Mean quality.
    pub quality: f64,
    /// Share of bases of quality 30 and more.
    pub q30: f64,
    /// Share of bases that are not known.
    pub n: f64,
    /// Shares of A, C, G and T among those that are known.
    pub bases: [f64; 4],
    /// Share of wrong bases; nothing where few faced another mate.
    pub errors: Option<f64>,
}

/// How long fragments are, by mates that overlap. Longer ones are not seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Insert {
    /// Share of pairs whose mates overlap by 24 bases and more.
    pub overlapping: Option<Estimate>,
    /// Bases of the longest fragment that can be seen with reads of the usual length.
    pub longest_seen: u64,
    /// Bases that a twentieth, a quarter, half and three quarters of all fragments have at most; nothing where that is more than can be seen.
    pub quantiles: [Option<u64>; 4],
    /// Mean of those that are seen.
    pub mean_of_seen: Option<f64>,
    /// Pairs by length: 0 to 9 bases, 10 to 19, and so on.
    pub histogram: Vec<u64>,
}

/// How often the sequencer was wrong, by where overlapping mates disagree: the poorer base is taken for the wrong one, of equals each half.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorRate {
    /// Bases that were compared.
    pub compared: u64,
    /// Share of wrong bases among those compared.
    pub compared_rate: Option<Estimate>,
    /// Share of wrong bases of all reads but for those of quality 2 and less: by cycle, where cycles were compared too seldom by their qualities.
    pub rate: Option<Estimate>,
    /// What the qualities of the bases compared promise.
    pub promised: Option<f64>,
    /// Share of the bases of a kind that were read as another, each orientation as read; A>C, A>G, ... T>G.
    pub substitutions: Vec<Substitution>,
    /// By quality.
    pub(crate) by_quality: Vec<QualityFacts>,
}

/// One kind of wrong base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Substitution {
    /// What there is and what was read, as `A>C`.
    pub change: String,
    /// Share of all wrong bases.
    pub share: Estimate,
}

/// How good bases of one quality are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct QualityFacts {
    /// Phred.
    pub quality: usize,
    /// Bases compared.
    pub compared: u64,
    /// Share of wrong ones.
    pub errors: Estimate,
}

/// How many pairs are copies of others: they begin alike in both mates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Pairs that were compared: those whose key lies in a share of the space of keys.
    pub compared: u64,
    /// Pairs with a mate too short to be compared.
    pub short: u64,
    /// Share of pairs that begin as an earlier one.
    pub seen: Option<Estimate>,
    /// The same if no base of the beginnings had been read wrong.
    pub share: Option<Estimate>,
    /// Share of pairs that begin as an earlier one by chance, as depth has it; it is within `share`. Where the depth is known.
    pub(crate) by_chance: Option<f64>,
    /// Share of pairs that are copies beyond chance.
    pub copied: Option<Estimate>,
    /// Molecules in the library, if all are copied alike; nothing where too few copies were seen to tell.
    pub molecules: Option<Estimate>,
    /// In a word.
    pub word: String,
}

/// Pairs from telomeres: a mate holds their motif six times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Telomeres {
    /// The motif that most of them hold; nothing where hardly any pair has one.
    pub motif: Option<String>,
    /// Who has it.
    pub of: Option<String>,
    /// Pairs with it.
    pub pairs: u64,
    /// Pairs with it in a million.
    pub per_million: Option<Estimate>,
    /// Pairs with each motif that is looked for.
    pub(crate) motifs: Vec<(String, u64)>,
}

/// Both samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Libraries {
    /// Of the normal.
    pub normal: Library,
    /// Of the tumour.
    pub tumor: Library,
    /// Telomeres of the tumour over those of the normal, each by their share of the pairs.
    pub telomeres: Option<Estimate>,
}

impl Libraries {
    /// What the tallies of both samples say, with what was cut off them and the usual depth of their bases, if it is known.
    pub fn of(tallies: [&LibraryTally; 2], trimmed: [&Trimmed; 2], depths: [Option<f64>; 2]) -> Libraries {
        let [normal, tumor] = [0, 1].map(|i| Library::of(tallies[i], trimmed[i], depths[i]));
        let (over, under) = (&tumor.telomeres, &normal.telomeres);
        let same = over.motif.is_some() && over.motif == under.motif;
        let ratio = || Estimate::ratio((over.pairs, tumor.pairs as f64), (under.pairs, normal.pairs as f64));
        let telomeres = if same { ratio() } else { None };
        Libraries { normal, tumor, telomeres }
    }
}

impl Library {
    /// What a tally says, with what was cut off and the usual depth of bases, if it is known.
    pub fn of(tally: &LibraryTally, trimmed: &Trimmed, depth: Option<f64>) -> Library {
        let detail = tally.details.together();
        let mates = [0, 1].map(|i| mate(&detail.cycles.of_mates[i], &tally.lengths[i]));
        let mut known = [0; 4];
        for cycle in detail.cycles.of_mates.iter().flatten() {
            known.iter_mut().zip(cycle.bases).for_each(|(sum, n)| *sum += n);
        }
        let insert = insert(&detail, mates[0].lengths[1] + mates[1].lengths[1]);
        let errors = error_rate(&detail);
        let density = depth.map(|depth| depth * tally.pairs as f64 / tally.bases.max(1) as f64);
        let met = density.map(|pairs| pairs * alike(&detail));
        Library {
            pairs: tally.pairs,
            bases: tally.bases,
            looked_at: detail.pairs,
            gc: part(known[1] + known[2], known.iter().sum()).map(rounded),
            adapters: Estimate::share(trimmed.adapters, trimmed.pairs),
            duplicates: duplicates(tally, unspoilt(&detail), met),
            telomeres: telomeres(tally),
            mates,
            insert,
            errors,
        }
    }
}

/// To four digits behind the point: more would be noise, and thousands of numbers are written.
fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

/// How far the share of a base may be from that of the later cycles before a cycle is biased, beside chance.
const BIAS: f64 = 0.03;
/// First cycles that are looked at for bias.
const START_CYCLES: usize = 25;
/// Fewest bases of a cycle that say how often it is wrong.
const FEWEST_FACED: u64 = 1000;

fn mate(cycles: &[Cycle], lengths: &[u64]) -> MateFacts {
    let seen = |&(_, &n): &(usize, &u64)| n > 0;
    let all = || lengths.iter().enumerate().filter(seen).map(|(length, _)| length as u64);
    let usual =
        lengths.iter().enumerate().max_by_key(|&(length, n)| (*n, length)).map_or(0, |(length, _)| length);
    let lengths = [all().min().unwrap_or(0), usual as u64, all().max().unwrap_or(0)];
    let sum = |of: fn(&Cycle) -> u64| cycles.iter().map(of).sum::<u64>();
    let bases = sum(Cycle::all);
    MateFacts {
        lengths,
        quality: part(sum(|c| c.quality), bases).map(rounded),
        q30: part(sum(|c| c.good), bases).map(rounded),
        n: part(sum(|c| c.bases[4]), bases).map(rounded),
        biased_start: biased_start(cycles),
        cycles: cycles.iter().map(cycle).collect(),
    }
}

fn shares(cycle: &Cycle) -> [f64; 4] {
    let known: u64 = cycle.bases[..4].iter().sum();
    [0, 1, 2, 3].map(|base| cycle.bases[base] as f64 / known.max(1) as f64)
}

fn cycle(cycle: &Cycle) -> CycleFacts {
    let of = |n: u64| rounded(part(n, cycle.all()).unwrap_or(0.0));
    CycleFacts {
        quality: of(cycle.quality),
        q30: of(cycle.good),
        n: of(cycle.bases[4]),
        bases: shares(cycle).map(rounded),
        errors: (cycle.faced >= FEWEST_FACED)
            .then(|| rounded_rate(cycle.wrong as f64 / 2.0 / cycle.faced as f64)),
    }
}

fn rounded_rate(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// Up to the last of the first cycles with other bases than later ones.
fn biased_start(cycles: &[Cycle]) -> usize {
    let mut later = Cycle::default();
    for cycle in cycles.iter().skip(START_CYCLES).take(2 * START_CYCLES) {
        later.bases.iter_mut().zip(cycle.bases).for_each(|(sum, n)| *sum += n);
    }
    if later.all() == 0 {
        return 0;
    }
    let usual = shares(&later);
    let biased = |cycle: &Cycle| {
        let chance = 4.0 * (0.25 / cycle.all().max(1) as f64).sqrt();
        shares(cycle).iter().zip(usual).any(|(here, usual)| (here - usual).abs() > BIAS + chance)
    };
    cycles.iter().take(START_CYCLES).rposition(biased).map_or(0, |last| last + 1)
}

/// Shares of the fragments of which the length is told.
const QUANTILES: [f64; 4] = [0.05, 0.25, 0.5, 0.75];
/// Fewest pairs of which it is told.
const FEWEST_PAIRS: u64 = 100;
/// Bases of a step of the histogram.
const STEP: usize = 10;

fn insert(detail: &Detail, bases: u64) -> Insert {
    let fragments = &detail.fragments;
    let overlapping: u64 = fragments.iter().sum();
    let quantile = |share: f64| {
        let wanted = share * detail.pairs as f64;
        let mut sum = 0;
        let mut lengths = fragments.iter().map(|n| {
            sum += n;
            sum
        });
        lengths.position(|sum| sum as f64 >= wanted).map(|length| length as u64)
    };
    let enough = detail.pairs >= FEWEST_PAIRS;
    let sum: u64 = fragments.iter().enumerate().map(|(length, n)| length as u64 * n).sum();
    Insert {
        overlapping: Estimate::share(overlapping, detail.pairs),
        longest_seen: bases.min(2 * LENGTHS as u64).saturating_sub(overlap::LEAST as u64),
        quantiles: QUANTILES.map(|share| quantile(share).filter(|_| enough)),
        mean_of_seen: part(sum, overlapping).map(rounded),
        histogram: fragments.chunks(STEP).map(|step| step.iter().sum()).collect(),
    }
}

/// Deviation in bases that fragments have whose lengths are not seen, and how often two of such a kind are of one length.
const DEVIATION: f64 = 80.0;

/// Chance that two fragments are of one length.
fn alike(detail: &Detail) -> f64 {
    let pairs = detail.pairs.max(1) as f64;
    let seen: u64 = detail.fragments.iter().sum();
    let of_seen: f64 = detail.fragments.iter().map(|&n| (n as f64 / pairs).powi(2)).sum();
    // What is counted of few pairs is alike by its own count.
    let of_seen = (of_seen - seen as f64 / pairs.powi(2)).max(0.0);
    let unseen = 1.0 - seen as f64 / pairs;
    of_seen + unseen * unseen / (2.0 * DEVIATION * std::f64::consts::PI.sqrt())
}

/// By how much more or less bases are wrong than their qualities promise, where enough disagree.
fn calibration(detail: &Detail) -> f64 {
    let told = &detail.cycles.disagreements;
    let promised = told.chance as f64 / CHANCE;
    if told.wrong < 40 || promised <= 0.0 { 1.0 } else { told.wrong as f64 / 2.0 / promised }
}

/// How often a base of a cycle is wrong.
fn wrong(cycle: &Cycle, calibration: f64) -> f64 {
    match cycle.faced {
        FEWEST_FACED.. => cycle.wrong as f64 / 2.0 / cycle.faced as f64,
        _ => (cycle.chance as f64 / CHANCE / cycle.worth.max(1) as f64 * calibration).min(0.75),
    }
}

/// Chance that no base of the key of a pair is wrong.
fn unspoilt(detail: &Detail) -> f64 {
    let calibration = calibration(detail);
    let first = detail.cycles.of_mates.iter().flat_map(|cycles| &cycles[..cycles.len().min(START)]);
    first.map(|cycle| 1.0 - wrong(cycle, calibration)).product()
}

fn error_rate(detail: &Detail) -> ErrorRate {
    let told = &detail.cycles.disagreements;
    let (errors, compared) = (told.wrong as f64 / 2.0, told.faced as f64);
    let compared_rate = Estimate::clustered(errors, told.squares as f64, compared);
    let calibration = calibration(detail);
    let all = detail.cycles.of_mates.iter().flatten();
    let (mut bases, mut expected) = (0.0, 0.0);
    for cycle in all {
        bases += cycle.worth as f64;
        expected += cycle.worth as f64 * wrong(cycle, calibration);
    }
    let of_all = |compared: Estimate| compared.times(expected / bases / compared.value);
    let rate = compared_rate.filter(|rate| rate.value > 0.0 && expected > 0.0).map(of_all);
    let letters = ["A", "C", "G", "T"];
    let changes = (0..16).filter(|i| i / 4 != i % 4).filter_map(|i| {
        let share = Estimate::share(told.substitutions[i / 4][i % 4] / 2, told.wrong / 2)?;
        Some(Substitution { change: format!("{}>{}", letters[i / 4], letters[i % 4]), share })
    });
    let qualities = told.by_quality.iter().enumerate().filter_map(|(quality, &[compared, halves])| {
        let errors = Estimate::rate(halves / 2, compared as f64)?;
        Some(QualityFacts { quality, compared, errors })
    });
    ErrorRate {
        compared: told.faced,
        compared_rate,
        rate,
        promised: (told.faced > 0).then(|| told.chance as f64 / CHANCE / compared),
        substitutions: changes.collect(),
        by_quality: qualities.collect(),
    }
}

/// Fewest copies from which molecules are reckoned.
const FEWEST_COPIES: f64 = 10.0;
/// Pairs of a key, on average, and share of pairs that are not alone with theirs, from which they look like amplicons.
const AMPLICONS: (f64, f64) = (20.0, 0.9);

/// Different molecules that so many pairs of a library of `molecules` show (Lander and Waterman 1988).
fn shown(molecules: f64, pairs: f64) -> f64 {
    -molecules * (-pairs / molecules).exp_m1()
}

/// Of how many molecules so many pairs show so many.
fn library_size(pairs: f64, shows: f64) -> f64 {
    let (mut low, mut high) = (shows.max(1.0), pairs * 1e9);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if shown(middle, pairs) < shows { low = middle } else { high = middle }
    }
    high
}

/// Share of copies that would be seen if no key was spoilt, from the share that is seen with a chance of `unspoilt`; and molecules.
fn corrected(seen: f64, pairs: f64, unspoilt: f64) -> (f64, f64) {
    let whole = unspoilt * pairs;
    // Each spoilt key is one of its own.
    let shows = (whole - seen * pairs).max(1.0);
    let molecules = library_size(whole, shows);
    (1.0 - shown(molecules, pairs) / pairs, molecules)
}

fn duplicates(tally: &LibraryTally, unspoilt: f64, met: Option<f64>) -> Duplicates {
    let counts @ Counts { pairs, keys, repeated } = tally.copies.counts();
    let copies = (pairs - keys) as f64;
    // Keys are drawn, not pairs.
    let seen = part(pairs - keys, pairs).and_then(|share| {
        Estimate::share((share * keys as f64).round() as u64, keys).map(|e| Estimate { value: share, ..e })
    });
    let share = seen.map(|seen| seen.map(|seen| corrected(seen, pairs as f64, unspoilt).0.max(seen)));
    let by_chance = met.zip(share).map(|(met, share)| chance(met, share.value));
    let copied = share.map(|share| share.map(|share| beyond(share, by_chance.unwrap_or(0.0))));
    // Many keys are alike where all molecules begin at a few places.
    let (each, alike) = AMPLICONS;
    let amplicons = pairs as f64 > each * keys as f64 && repeated as f64 > alike * pairs as f64;
    let molecules = seen.filter(|_| copies >= FEWEST_COPIES && !amplicons).map(|seen| {
        let of = |seen| corrected(seen, pairs as f64, unspoilt).1 * tally.copies.drawn();
        Estimate { value: of(seen.value), low: of(seen.high), high: of(seen.low) }
    });
    Duplicates {
        compared: pairs,
        short: tally.short,
        seen,
        by_chance: by_chance.map(rounded),
        molecules,
        word: word(&counts, amplicons, copied).to_owned(),
        share,
        copied,
    }
}

/// Share of copies beyond those by chance.
fn beyond(share: f64, by_chance: f64) -> f64 {
    (1.0 - (1.0 - share) / (1.0 - by_chance)).max(0.0)
}

/// Share of molecules that begin as another does, where each pair would meet so many others if all were of different molecules, and of which
/// pairs so many are copies, both kinds together.
fn chance(met: f64, share: f64) -> f64 {
    let alone = |met: f64| if met < 1e-9 { 1.0 } else { -(-met).exp_m1() / met };
    let mut by_chance = 0.0;
    for _ in 0..50 {
        // The more are copies, the fewer molecules there are to meet.
        by_chance = (by_chance + 1.0 - alone(met * (1.0 - beyond(share, by_chance)))) / 2.0;
        by_chance = f64::min(by_chance, share);
    }
    by_chance
}

fn word(counts: &Counts, amplicons: bool, copied: Option<Estimate>) -> &'static str {
    let Some(copied) = copied.filter(|_| counts.pairs >= FEWEST_PAIRS) else {
        return "not known: too few pairs";
    };
    match copied.value {
        _ if amplicons => "amplicons? nearly all pairs begin at a few places, where copies cannot be told",
        0.0..0.02 => "hardly any copies",
        0.02..0.2 => "some copies",
        0.2..0.5 => "many copies",
        _ => "more copies than molecules",
    }
}

/// Fewest pairs that show whose telomeres they are.
const FEWEST_TELOMERES: u64 = 3;

fn telomeres(tally: &LibraryTally) -> Telomeres {
    let most = (0..MOTIFS.len()).rev().max_by_key(|&i| tally.telomeres[i]);
    let motif = most.filter(|&i| tally.telomeres[i] >= FEWEST_TELOMERES).map(|i| MOTIFS[i]);
    let name = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
    let pairs = most.map_or(0, |i| tally.telomeres[i]);
    Telomeres {
        motif: motif.map(|motif| name(motif.bases)),
        of: motif.map(|motif| motif.of.to_owned()),
        pairs,
        per_million: Estimate::rate(pairs, tally.pairs as f64 / 1e6),
        motifs: MOTIFS.iter().zip(tally.telomeres).map(|(motif, n)| (name(motif.bases), n)).collect(),
    }
}
