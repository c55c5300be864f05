//! Matching of calls with the truth, and what comes of it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::Filters;
use super::adjacency::{self, Change, Match, Shape};
use super::haplotype::{SameSequence, same_sequence};
use super::vcf::Record;
use crate::genome::Genome;
use crate::variant;

/// How far apart two notations of an indel may be, bp.
const INDEL_TOLERANCE: usize = 25;
/// How far a miss or a false call looks for something that explains it, bp.
const NEAR: usize = 100;

/// Class of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// One base for another.
    Snv,
    /// Fewer than 50 bp lost or gained.
    Indel,
    /// An event of 50 bp or more.
    Sv,
}

/// Part of the genome that a variant lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Every 31-mer is there once.
    Unique,
    /// A 31-mer occurs more than once.
    Repeat,
}

/// What was found of a class in a part of the genome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Scores {
    /// Variants of the truth that were called.
    pub true_positives: usize,
    /// Variants of the truth that were not.
    pub(crate) false_negatives: usize,
    /// Calls without a counterpart in the truth.
    pub(crate) false_positives: usize,
}

fn ratio(part: usize, rest: usize) -> Option<f64> {
    (part + rest > 0).then(|| part as f64 / (part + rest) as f64)
}

impl Scores {
    /// Share of the truth that was called; none without truth.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.true_positives, self.false_negatives)
    }

    /// Share of the calls that are true; none without calls.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.true_positives, self.false_positives)
    }

    /// Harmonic mean of recall and precision.
    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.true_positives, self.false_negatives + self.false_positives)
    }
}

impl std::ops::Add for Scores {
    type Output = Scores;

    fn add(self, other: Scores) -> Scores {
        Scores {
            true_positives: self.true_positives + other.true_positives,
            false_negatives: self.false_negatives + other.false_negatives,
            false_positives: self.false_positives + other.false_positives,
        }
    }
}

/// A variant of the truth that was not called.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    /// Its class.
    pub class: Class,
    /// Where it lies.
    pub part: Part,
    /// CHROM, POS, REF and ALT of its first record.
    pub place: Place,
    /// CLASS, AF and STR of the truth.
    pub about: String,
    /// FILTER of the call that would have matched, or what is near.
    pub why: String,
}

/// A call without a counterpart in the truth.
#[derive(Debug, Clone, Serialize)]
pub struct False {
    /// Its class.
    pub class: Class,
    /// Where it lies; unique when no reference was given.
    pub part: Part,
    /// CHROM, POS, REF and ALT of its first record.
    pub place: Place,
    /// QUAL.
    pub quality: String,
    /// FILTER.
    pub filter: String,
    /// Whether it is a germline variant, or a variant of the truth is near.
    pub note: String,
}

/// The columns of VCF that tell one call from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// CHROM.
    pub chrom: String,
    /// POS.
    pub pos: usize,
    /// REF, long ones cut.
    pub reference: String,
    /// ALT, long ones cut.
    pub alternate: String,
}

impl Place {
    fn new(record: &Record) -> Self {
        let cut = |bases: &str| {
            if bases.len() <= 60 {
                bases.to_owned()
            } else {
                format!("{}...({} bp)", &bases[..20], bases.len())
            }
        };
        Place {
            chrom: record.chrom.clone(),
            pos: record.pos,
            reference: cut(&record.reference),
            alternate: cut(&record.alternate),
        }
    }
}

/// Everything that scoring says.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What has to be known before the scores are believed.
    pub notes: Vec<String>,
    /// By class and part.
    pub scores: BTreeMap<(Class, Part), Scores>,
    /// Found and all events of the truth by their CLASS.
    pub structural: BTreeMap<String, [usize; 2]>,
    /// Events found in the right orientation, in another one, and as an insertion instead of a duplication or copy.
    pub(crate) structural_matches: [usize; 3],
    /// By class and position.
    pub misses: Vec<Miss>,
    /// By class and position.
    pub false_calls: Vec<False>,
}

impl Outcome {
    /// The scores of a class in one part, or in both.
    pub fn of(&self, class: Class, part: Option<Part>) -> Scores {
        let chosen =
            self.scores.iter().filter(|((c, p), _)| *c == class && part.is_none_or(|wanted| *p == wanted));
        chosen.fold(Scores::default(), |sum, (_, s)| sum + *s)
    }
}

/// A small variant of one record.
struct Small {
    record: usize,
    change: Change,
}

/// A structural variant: records that belong together.
struct Event {
    records: Vec<usize>,
    shapes: Vec<Shape>,
}

/// A VCF file understood.
pub struct Side {
    records: Vec<Record>,
    small: Vec<Small>,
    events: Vec<Event>,
    /// Records by contig and position.
    by_place: BTreeMap<String, Vec<(usize, usize)>>,
}

impl Side {
    /// Understands every record; groups those linked by MATEID, PARID or EVENT into events.
    pub fn new(records: Vec<Record>, genome: Option<&Genome>) -> Self {
        let mut small = vec![];
        let mut shapes: BTreeMap<usize, Vec<Shape>> = BTreeMap::new();
        let mut by_place: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for (i, record) in records.iter().enumerate() {
            by_place.entry(record.chrom.clone()).or_default().push((record.pos, i));
            for change in adjacency::changes(record, genome) {
                match change {
                    Change::Structural(shape) => shapes.entry(i).or_default().push(shape),
                    change => small.push(Small { record: i, change }),
                }
            }
        }
        by_place.values_mut().for_each(|places| places.sort_unstable());
        let events = linked(&records, shapes.keys().copied().collect());
        let shapes_of = |members: &[usize]| members.iter().flat_map(|i| shapes[i].clone()).collect();
        let events =
            events.into_iter().map(|records| Event { shapes: shapes_of(&records), records }).collect();
        Side { records, small, events, by_place }
    }

    /// The record nearest to a place, if it is near.
    fn nearest(&self, record: &Record) -> Option<&Record> {
        let places = self.by_place.get(&record.chrom)?;
        let from = places.partition_point(|&(pos, _)| pos + NEAR < record.pos);
        let near = places[from..].iter().take_while(|&&(pos, _)| pos <= record.pos + NEAR);
        near.min_by_key(|&&(pos, _)| pos.abs_diff(record.pos)).map(|&(_, i)| &self.records[i])
    }

    fn counts(&self, records: &[usize], filters: Filters) -> bool {
        filters == Filters::All || records.iter().any(|&i| self.records[i].passed())
    }
}

/// Groups of records that name each other.
fn linked(records: &[Record], members: Vec<usize>) -> Vec<Vec<usize>> {
    let by_id: HashMap<&str, usize> =
        members.iter().filter(|&&i| records[i].id != ".").map(|&i| (records[i].id.as_str(), i)).collect();
    let mut by_event: HashMap<&str, usize> = HashMap::new();
    let mut leader: HashMap<usize, usize> = members.iter().map(|&i| (i, i)).collect();
    fn find(leader: &HashMap<usize, usize>, mut i: usize) -> usize {
        while leader[&i] != i {
            i = leader[&i];
        }
        i
    }
    for &i in &members {
        let info = &records[i].info;
        let mates =
            ["MATEID", "PARID"].iter().filter_map(|key| info.get(*key)).flat_map(|ids| ids.split(','));
        let mut others: Vec<usize> = mates.filter_map(|id| by_id.get(id).copied()).collect();
        if let Some(event) = info.get("EVENT") {
            others.push(*by_event.entry(event).or_insert(i));
        }
        for other in others {
            let (a, b) = (find(&leader, i), find(&leader, other));
            leader.insert(a.max(b), a.min(b));
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &i in &members {
        groups.entry(find(&leader, i)).or_default().push(i);
    }
    groups.into_values().collect()
}

/// Whether the bases `start..end` (0-based) of a contig lie in a repeat.
pub(crate) type InRepeat<'a> = dyn Fn(&str, usize, usize) -> bool + 'a;

/// Compares calls with the truth.
pub fn score(
    truth: &Side,
    calls: &Side,
    germline: Option<&Side>,
    genome: Option<&Genome>,
    filters: Filters,
    in_repeat: &InRepeat,
) -> Outcome {
    let counts = |call: &Record| filters == Filters::All || call.passed();
    let same = genome.map(|g| same_sequence(&truth.records, &calls.records, counts, g)).unwrap_or_default();
    let mut judge = Judge { truth, calls, germline, in_repeat, same, outcome: Outcome::default() };
    judge.small(Class::Snv, filters, match_snvs);
    judge.small(Class::Indel, filters, match_indels);
    judge.events(filters);
    judge.outcome
}

struct Judge<'a> {
    truth: &'a Side,
    calls: &'a Side,
    germline: Option<&'a Side>,
    in_repeat: &'a InRepeat<'a>,
    same: SameSequence,
    outcome: Outcome,
}

/// A small variant with its contig.
type Located<'a> = (&'a str, &'a Small);

fn located<'a>(side: &'a Side, class: Class, wanted: impl Fn(&Record) -> bool) -> Vec<Located<'a>> {
    let is_class = |s: &&Small| matches!(s.change, Change::Snv { .. }) == (class == Class::Snv);
    let small = side.small.iter().filter(is_class).filter(|s| wanted(&side.records[s.record]));
    small.map(|s| (side.records[s.record].chrom.as_str(), s)).collect()
}

/// For each variant of the truth the call that shows it.
type Matcher = fn(&[Located], &[Located]) -> Vec<Option<usize>>;

fn match_snvs(truth: &[Located], calls: &[Located]) -> Vec<Option<usize>> {
    let key = |&(chrom, s): &Located| match s.change {
        Change::Snv { pos, to } => Some((chrom.to_owned(), pos, to)),
        _ => None,
    };
    let called: HashMap<_, usize> = calls.iter().enumerate().rev().map(|(i, c)| (key(c), i)).collect();
    truth.iter().map(|t| called.get(&key(t)).copied()).collect()
}

/// One to one, the nearest first; of two that are equally near, the one with the same bases.
fn match_indels(truth: &[Located], calls: &[Located]) -> Vec<Option<usize>> {
    let parts = |s: &Small| match &s.change {
        Change::Indel { start, net, bases } => (*start, *net, bases.clone()),
        _ => unreachable!("only indels are matched here"),
    };
    let mut by_place: Vec<(&str, usize, usize)> =
        calls.iter().enumerate().map(|(i, (chrom, s))| (*chrom, parts(s).0, i)).collect();
    by_place.sort_unstable();
    let mut pairs = vec![];
    for (t, (chrom, small)) in truth.iter().enumerate() {
        let (start, net, bases) = parts(small);
        let from = by_place.partition_point(|&(c, s, _)| (c, s + INDEL_TOLERANCE) < (*chrom, start));
        let near =
            by_place[from..].iter().take_while(|&&(c, s, _)| c == *chrom && s <= start + INDEL_TOLERANCE);
        for &(_, at, call) in near {
            let (_, called_net, called_bases) = parts(calls[call].1);
            if net == called_net {
                pairs.push((at.abs_diff(start), called_bases != bases, t, call));
            }
        }
    }
    pairs.sort_unstable();
    let mut matched = vec![None; truth.len()];
    let mut used = vec![false; calls.len()];
    for (_, _, t, call) in pairs {
        if matched[t].is_none() && !used[call] {
            matched[t] = Some(call);
            used[call] = true;
        }
    }
    matched
}

impl Judge<'_> {
    fn small(&mut self, class: Class, filters: Filters, matcher: Matcher) {
        let (truth, calls) = (self.truth, self.calls);
        let wanted = located(truth, class, |_| true);
        let passed = located(calls, class, |r| filters == Filters::All || r.passed());
        let filtered = located(calls, class, |r| filters == Filters::Pass && !r.passed());
        let found = matcher(&wanted, &passed);
        let nearly = matcher(&wanted, &filtered);
        for (i, &(_, small)) in wanted.iter().enumerate() {
            let filter = nearly[i].map(|c| &calls.records[filtered[c].1.record]);
            let found = found[i].is_some() || self.same.truth.contains(&small.record);
            self.judge_truth(class, small.record, found, filter);
        }
        let mut is_true = vec![false; passed.len()];
        found.iter().flatten().for_each(|&c| is_true[c] = true);
        let known = self.germline.map(|g| matcher(&passed, &located(g, class, |_| true)));
        let mut seen = std::collections::HashSet::new();
        for (i, &(chrom, small)) in passed.iter().enumerate() {
            let (start, end) = match small.change {
                Change::Snv { pos, .. } => (pos - 1, pos),
                Change::Indel { start, net, .. } => (start, start + net.min(0).unsigned_abs() as usize),
                Change::Structural(_) => continue,
            };
            // The same SNV in two records is one call.
            let again = class == Class::Snv && !seen.insert((chrom, format!("{:?}", small.change)));
            if !is_true[i] && !again && !self.same.calls.contains(&small.record) {
                let germline = known.as_ref().is_some_and(|k| k[i].is_some());
                self.judge_false(class, small.record, (self.in_repeat)(chrom, start, end), germline);
            }
        }
    }

    fn events(&mut self, filters: Filters) {
        let (truth, calls) = (self.truth, self.calls);
        let (passed, filtered): (Vec<&Event>, Vec<&Event>) =
            calls.events.iter().partition(|e| calls.counts(&e.records, filters));
        let mut is_true = vec![false; passed.len()];
        for event in &truth.events {
            let mut best: Option<Match> = None;
            for (call, is_true) in passed.iter().zip(&mut is_true) {
                if let Some(found) = adjacency::compare(&event.shapes, &call.shapes) {
                    *is_true = true;
                    best = Some(best.map_or(found, |b| b.min(found)));
                }
            }
            let nearly = || filtered.iter().find(|c| adjacency::compare(&event.shapes, &c.shapes).is_some());
            let filter = if best.is_none() { nearly() } else { None };
            self.judge_truth(
                Class::Sv,
                event.records[0],
                best.is_some(),
                filter.map(|c| &calls.records[c.records[0]]),
            );
            let class = truth.records[event.records[0]].info.get("CLASS").map_or("SV", String::as_str);
            let counts = self.outcome.structural.entry(class.to_owned()).or_default();
            counts[1] += 1;
            if let Some(found) = best {
                counts[0] += 1;
                self.outcome.structural_matches[found as usize] += 1;
            }
        }
        for (event, _) in passed.iter().zip(is_true).filter(|(_, is_true)| !is_true) {
            let in_germline =
                |g: &Side| g.events.iter().any(|e| adjacency::compare(&e.shapes, &event.shapes).is_some());
            let repeat = event.shapes.iter().any(|s| self.shape_in_repeat(s));
            self.judge_false(Class::Sv, event.records[0], repeat, self.germline.is_some_and(in_germline));
        }
    }

    fn shape_in_repeat(&self, shape: &Shape) -> bool {
        let at = |chrom: &str, cut: usize| (self.in_repeat)(chrom, cut, cut);
        let end = |e: &adjacency::End| {
            at(&e.chrom, if e.side == variant::Side::Left { e.pos } else { e.pos.saturating_sub(1) })
        };
        match shape {
            Shape::Pair(ends) => ends.iter().any(end),
            Shape::Insertion { chrom, pos, .. } => at(chrom, *pos),
            Shape::Single(e) => end(e),
        }
    }

    fn judge_truth(&mut self, class: Class, record: usize, found: bool, filtered: Option<&Record>) {
        let record = &self.truth.records[record];
        let part = if record.info.contains_key("REPEAT") { Part::Repeat } else { Part::Unique };
        let scores = self.outcome.scores.entry((class, part)).or_default();
        if found {
            scores.true_positives += 1;
            return;
        }
        scores.false_negatives += 1;
        let why = match filtered {
            Some(call) => format!("filtered: {}", call.filter),
            None => self.calls.nearest(record).map_or("no call".into(), |call| {
                let place = Place::new(call);
                let Place { chrom, pos, reference, alternate } = place;
                format!("no such call; near: {chrom}:{pos} {reference}>{alternate} {}", call.filter)
            }),
        };
        let about = ["CLASS", "AF", "STR"].into_iter().filter_map(|key| {
            let value = record.info.get(key)?;
            Some(if value.is_empty() { key.to_owned() } else { format!("{key}={value}") })
        });
        let about = about.collect::<Vec<_>>().join(";");
        self.outcome.misses.push(Miss { class, part, place: Place::new(record), about, why });
    }

    fn judge_false(&mut self, class: Class, record: usize, repeat: bool, germline: bool) {
        let record = &self.calls.records[record];
        let part = if repeat { Part::Repeat } else { Part::Unique };
        self.outcome.scores.entry((class, part)).or_default().false_positives += 1;
        let near = |side: &Side, what: &str| {
            let Place { chrom, pos, reference, alternate } = Place::new(side.nearest(record)?);
            Some(format!("near {what} {chrom}:{pos} {reference}>{alternate}"))
        };
        let note = if germline {
            "germline".to_owned()
        } else {
            near(self.truth, "truth").or_else(|| near(self.germline?, "germline")).unwrap_or_default()
        };
        let (quality, filter) = (record.quality.clone(), record.filter.clone());
        self.outcome.false_calls.push(False {
            class,
            part,
            place: Place::new(record),
            quality,
            filter,
            note,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;

    const TRUTH: &str = "\
a 100 . A G . PASS CLASS=SNV;AF=0.5
a 900 . C T . PASS CLASS=SNV;REPEAT
a 2000 . GAA G . PASS CLASS=INDEL;STR
a 3000 . G GTT . PASS CLASS=INDEL;REPEAT
a 5000 sv1 A <DEL> . PASS CLASS=DEL;END=6000
a 9000 sv2_1a A A[b:501[ . PASS CLASS=COPY;EVENT=sv2;MATEID=sv2_1b
b 501 sv2_1b A ]a:9000]A . PASS CLASS=COPY;EVENT=sv2;MATEID=sv2_1a
b 900 sv2_2a A A[a:9001[ . PASS CLASS=COPY;EVENT=sv2;MATEID=sv2_2b
a 9001 sv2_2b A ]b:900]A . PASS CLASS=COPY;EVENT=sv2;MATEID=sv2_2a";

    fn side(lines: &str) -> Side {
        Side::new(vcf::records(lines), None)
    }

    fn scored(calls: &str, filters: Filters) -> Outcome {
        score(&side(TRUTH), &side(calls), Some(&side("a 150 . A T . . .")), None, filters, &|chrom, _, _| {
            chrom == "b"
        })
    }

    fn counts(outcome: &Outcome, class: Class) -> (usize, usize, usize) {
        let s = outcome.of(class, None);
        (s.true_positives, s.false_negatives, s.false_positives)
    }

    #[test]
    fn truth_against_itself_is_perfect() {
        let outcome = scored(TRUTH, Filters::Pass);
        for class in [Class::Snv, Class::Indel, Class::Sv] {
            assert_eq!(counts(&outcome, class), (2, 0, 0));
            assert_eq!(outcome.of(class, None).f1(), Some(1.0));
        }
        assert_eq!(outcome.of(Class::Snv, Some(Part::Repeat)).true_positives, 1);
        assert_eq!(outcome.structural["COPY"], [1, 1]);
        assert!(outcome.misses.is_empty() && outcome.false_calls.is_empty());
        let nothing = scored("a 1 . A . . . .", Filters::Pass);
        assert_eq!(counts(&nothing, Class::Sv), (0, 2, 0));
        assert_eq!(nothing.of(Class::Sv, None).precision(), None);
    }

    #[test]
    fn misses_say_why_and_false_calls_where() {
        let calls = "\
a 100 . AC GT 40 PASS .
a 150 . A T 30 PASS .
a 900 . C T 9 weak;strand .
b 50 . C T 20 . .";
        let outcome = scored(calls, Filters::Pass);
        assert_eq!(counts(&outcome, Class::Snv), (1, 1, 3));
        assert_eq!(outcome.of(Class::Snv, Some(Part::Repeat)).false_positives, 1);
        let miss = &outcome.misses[0];
        assert_eq!((miss.place.pos, miss.why.as_str()), (900, "filtered: weak;strand"));
        let notes: Vec<_> = outcome.false_calls.iter().map(|f| (f.place.pos, f.note.as_str())).collect();
        assert_eq!(notes, [(100, "near truth a:100 A>G"), (150, "germline"), (50, "")]);
        assert_eq!(counts(&scored(calls, Filters::All), Class::Snv), (2, 0, 3));
    }

    #[test]
    fn indels_match_once_by_length_and_place() {
        let calls = "\
a 2020 . GCC G . PASS .
a 2010 . GCC G . PASS .
a 3030 . G GTT . PASS .
a 3001 . G GTTT . PASS .";
        let outcome = scored(calls, Filters::Pass);
        // The nearer of the two deletions is true, the other false; the insertions are too far away or too long.
        assert_eq!(counts(&outcome, Class::Indel), (1, 1, 3));
        let false_calls: Vec<_> = outcome.false_calls.iter().map(|f| f.place.pos).collect();
        assert_eq!(false_calls, [2020, 3030, 3001]);
        assert!(outcome.misses.iter().any(|m| m.place.pos == 3000 && m.why.contains("a:3001 G>GTTT")));
    }

    #[test]
    fn an_event_needs_one_adjacency() {
        let calls = "\
b 880 x A A[a:9020[ . PASS MATEID=y
a 9020 y A ]b:880]A . PASS MATEID=x
a 700 z A A[b:100[ . PASS EVENT=e1
a 9000 w A A[b:501[ . PASS EVENT=e1
a 5000 . A <DEL> . low END=6000
b 700 . A <INV> . PASS END=1700";
        let outcome = scored(calls, Filters::Pass);
        assert_eq!(counts(&outcome, Class::Sv), (1, 1, 1));
        assert_eq!(outcome.structural["DEL"], [0, 1]);
        assert!(outcome.misses.iter().any(|m| m.place.pos == 5000 && m.why == "filtered: low"));
        let false_call = outcome.false_calls.iter().find(|f| f.class == Class::Sv).unwrap();
        assert_eq!((false_call.place.pos, false_call.part), (700, Part::Repeat));
    }

    #[test]
    fn neighbours_count_alike_joined_or_apart() {
        let genome = Genome::new(vec!["a".into()], vec![b"ACGTTGCAACTTGGCATCGA".repeat(10)]);
        let scored = |truth: &str, calls: &str| {
            let of = |lines: &str| Side::new(vcf::records(lines), Some(&genome));
            let outcome = score(&of(truth), &of(calls), None, Some(&genome), Filters::Pass, &|_, _, _| false);
            [counts(&outcome, Class::Snv), counts(&outcome, Class::Indel)]
        };
        let mnv = "a 41 . ACG TTA . PASS CLASS=MNV";
        let snvs = "a 41 . A T . PASS .\na 42 . C T . PASS .\na 43 . G A . PASS .";
        let halves = "a 41 . AC TT . PASS .\na 43 . G A . PASS .";
        let all = [mnv, snvs, halves];
        for (truth, calls) in all.into_iter().flat_map(|t| all.into_iter().map(move |c| (t, c))) {
            assert_eq!(scored(truth, calls), [(3, 0, 0), (0, 0, 0)], "{truth} {calls}");
        }
        assert_eq!(scored(mnv, "a 41 . AC TT . PASS ."), [(2, 1, 0), (0, 0, 0)]);
        let cluster = "a 41 . A T . PASS .\na 45 . TGC T . PASS .";
        let joined = "a 41 . ACGTTGCA TCGTTA . PASS .";
        assert_eq!(scored(cluster, joined), [(1, 0, 0), (1, 0, 0)]);
        assert_eq!(scored(joined, cluster), [(1, 0, 0), (1, 0, 0)]);
        // Another way to write it that shares no part.
        let shifted = "a 41 . AC A . PASS .\na 43 . G GA . PASS .";
        let substituted = "a 42 . C G . PASS .\na 43 . G A . PASS .";
        assert_eq!(scored(shifted, substituted), [(0, 0, 0), (2, 0, 0)]);
        assert_eq!(scored(substituted, shifted), [(2, 0, 0), (0, 0, 0)]);
    }
}
