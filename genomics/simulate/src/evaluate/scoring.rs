//! Matches calls with the truth and computes the scores.

use std::collections::{BTreeMap, HashMap};

use super::FilterMode;
use super::adjacency::{self, AlleleChange, BreakendsOrInsertion, StructuralMatchLevel};
use super::haplotype_match::{HaplotypeMatches, match_records_by_haplotype_sequence};
use super::scores::{
    EvaluationResult, FalseCall, MissedVariant, UniqueOrRepeat, VariantClass, VariantPositionAndAlleles,
};
use super::vcf::VcfRecord;
use crate::genome::Genome;
use crate::variant;

/// Maximum distance between two left-aligned indels that count as the same, bp.
const INDEL_TOLERANCE_BP: usize = 25;
/// Maximum distance at which the nearest record is reported for a missed variant or false call, bp.
const NEARBY_BP: usize = 100;

/// A small variant and the index of its record.
struct SmallVariant {
    record: usize,
    change: AlleleChange,
}

/// A structural variant: the indices of its linked records, and their effects on the sequence.
struct StructuralEvent {
    records: Vec<usize>,
    shapes: Vec<BreakendsOrInsertion>,
}

/// All variants of a VCF file. Records of the same structural variant are grouped.
pub(super) struct ParsedVcf {
    records: Vec<VcfRecord>,
    small: Vec<SmallVariant>,
    events: Vec<StructuralEvent>,
    /// For each contig: position and index of its records, sorted.
    by_place: BTreeMap<String, Vec<(usize, usize)>>,
}

impl ParsedVcf {
    /// Converts all records to variants, and groups the records of structural variants that are linked by MATEID, PARID
    /// or EVENT.
    pub(super) fn from_records(records: Vec<VcfRecord>, genome: Option<&Genome>) -> Self {
        let mut small = vec![];
        let mut shapes: BTreeMap<usize, Vec<BreakendsOrInsertion>> = BTreeMap::new();
        let mut by_place: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for (i, record) in records.iter().enumerate() {
            by_place.entry(record.chrom.clone()).or_default().push((record.pos, i));
            for change in adjacency::parse_allele_changes(record, genome) {
                match change {
                    AlleleChange::Structural(shape) => shapes.entry(i).or_default().push(shape),
                    change => small.push(SmallVariant { record: i, change }),
                }
            }
        }
        by_place.values_mut().for_each(|places| places.sort_unstable());
        let events = group_linked_records(&records, shapes.keys().copied().collect());
        let shapes_of = |members: &[usize]| members.iter().flat_map(|i| shapes[i].clone()).collect();
        let events =
            events.into_iter().map(|records| StructuralEvent { shapes: shapes_of(&records), records }).collect();
        ParsedVcf { records, small, events, by_place }
    }

    /// Returns the record that is nearest to `record` on the same contig; `None` if none is within [`NEARBY_BP`].
    fn nearest_record(&self, record: &VcfRecord) -> Option<&VcfRecord> {
        let places = self.by_place.get(&record.chrom)?;
        let from = places.partition_point(|&(pos, _)| pos + NEARBY_BP < record.pos);
        let near = places[from..].iter().take_while(|&&(pos, _)| pos <= record.pos + NEARBY_BP);
        near.min_by_key(|&&(pos, _)| pos.abs_diff(record.pos)).map(|&(_, i)| &self.records[i])
    }

    fn passes_filters(&self, records: &[usize], filters: FilterMode) -> bool {
        filters == FilterMode::All || records.iter().any(|&i| self.records[i].has_passed())
    }
}

/// Groups the records with the indices `members` that are linked by MATEID, PARID or EVENT. Returns the indices in each
/// group.
fn group_linked_records(records: &[VcfRecord], members: Vec<usize>) -> Vec<Vec<usize>> {
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
        let mates = ["MATEID", "PARID"].iter().filter_map(|key| info.get(*key)).flat_map(|ids| ids.split(','));
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

/// Function that returns whether the bases `start..end` (0-based) of the named contig are in a repeat.
pub(crate) type RepeatPredicate<'a> = dyn Fn(&str, usize, usize) -> bool + 'a;

/// Matches the calls with the truth and computes the result of the evaluation.
pub(super) fn score_calls(
    truth: &ParsedVcf,
    calls: &ParsedVcf,
    germline: Option<&ParsedVcf>,
    genome: Option<&Genome>,
    filters: FilterMode,
    in_repeat: &RepeatPredicate,
) -> EvaluationResult {
    let counts = |call: &VcfRecord| filters == FilterMode::All || call.has_passed();
    let same = genome
        .map(|g| match_records_by_haplotype_sequence(&truth.records, &calls.records, counts, g))
        .unwrap_or_default();
    let mut judge = CallScorer { truth, calls, germline, in_repeat, same, outcome: EvaluationResult::default() };
    judge.score_small_variants(VariantClass::Snv, filters, match_snvs);
    judge.score_small_variants(VariantClass::Indel, filters, match_indels);
    judge.score_structural_events(filters);
    judge.outcome
}

struct CallScorer<'a> {
    truth: &'a ParsedVcf,
    calls: &'a ParsedVcf,
    germline: Option<&'a ParsedVcf>,
    in_repeat: &'a RepeatPredicate<'a>,
    same: HaplotypeMatches,
    outcome: EvaluationResult,
}

/// A small variant with the name of its contig.
type LocatedVariant<'a> = (&'a str, &'a SmallVariant);

fn variants_of_class<'a>(
    side: &'a ParsedVcf,
    class: VariantClass,
    wanted: impl Fn(&VcfRecord) -> bool,
) -> Vec<LocatedVariant<'a>> {
    let is_class = |s: &&SmallVariant| matches!(s.change, AlleleChange::Snv { .. }) == (class == VariantClass::Snv);
    let small = side.small.iter().filter(is_class).filter(|s| wanted(&side.records[s.record]));
    small.map(|s| (side.records[s.record].chrom.as_str(), s)).collect()
}

/// Function that returns for each variant of its first list (such as the truth) the index of the matching variant in
/// its second list (such as the calls), if there is one.
type MatchFunction = fn(&[LocatedVariant], &[LocatedVariant]) -> Vec<Option<usize>>;

fn match_snvs(truth: &[LocatedVariant], calls: &[LocatedVariant]) -> Vec<Option<usize>> {
    let key = |&(chrom, s): &LocatedVariant| match s.change {
        AlleleChange::Snv { pos, to } => Some((chrom.to_owned(), pos, to)),
        _ => None,
    };
    let called: HashMap<_, usize> = calls.iter().enumerate().rev().map(|(i, c)| (key(c), i)).collect();
    truth.iter().map(|t| called.get(&key(t)).copied()).collect()
}

/// Matches each indel of the truth with at most one call, the nearest pairs first. Of two calls at equal distance, the
/// one with the same bases is preferred.
fn match_indels(truth: &[LocatedVariant], calls: &[LocatedVariant]) -> Vec<Option<usize>> {
    let parts = |s: &SmallVariant| match &s.change {
        AlleleChange::Indel { start, net, bases } => (*start, *net, bases.clone()),
        _ => unreachable!("only indels are matched here"),
    };
    let mut by_place: Vec<(&str, usize, usize)> =
        calls.iter().enumerate().map(|(i, (chrom, s))| (*chrom, parts(s).0, i)).collect();
    by_place.sort_unstable();
    let mut pairs = vec![];
    for (t, (chrom, small)) in truth.iter().enumerate() {
        let (start, net, bases) = parts(small);
        let from = by_place.partition_point(|&(c, s, _)| (c, s + INDEL_TOLERANCE_BP) < (*chrom, start));
        let near = by_place[from..].iter().take_while(|&&(c, s, _)| c == *chrom && s <= start + INDEL_TOLERANCE_BP);
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

impl CallScorer<'_> {
    fn score_small_variants(&mut self, class: VariantClass, filters: FilterMode, matcher: MatchFunction) {
        let (truth, calls) = (self.truth, self.calls);
        let wanted = variants_of_class(truth, class, |_| true);
        let passed = variants_of_class(calls, class, |r| filters == FilterMode::All || r.has_passed());
        let filtered = variants_of_class(calls, class, |r| filters == FilterMode::PassOnly && !r.has_passed());
        let found = matcher(&wanted, &passed);
        let nearly = matcher(&wanted, &filtered);
        for (i, &(_, small)) in wanted.iter().enumerate() {
            let filter = nearly[i].map(|c| &calls.records[filtered[c].1.record]);
            let found = found[i].is_some() || self.same.truth.contains(&small.record);
            self.record_truth_variant(class, small.record, found, filter);
        }
        let mut is_true = vec![false; passed.len()];
        found.iter().flatten().for_each(|&c| is_true[c] = true);
        let known = self.germline.map(|g| matcher(&passed, &variants_of_class(g, class, |_| true)));
        let mut seen = std::collections::HashSet::new();
        for (i, &(chrom, small)) in passed.iter().enumerate() {
            let (start, end) = match small.change {
                AlleleChange::Snv { pos, .. } => (pos - 1, pos),
                AlleleChange::Indel { start, net, .. } => (start, start + net.min(0).unsigned_abs() as usize),
                AlleleChange::Structural(_) => continue,
            };
            // The same SNV in two records counts as one call.
            let again = class == VariantClass::Snv && !seen.insert((chrom, format!("{:?}", small.change)));
            if !is_true[i] && !again && !self.same.calls.contains(&small.record) {
                let germline = known.as_ref().is_some_and(|k| k[i].is_some());
                self.record_false_call(class, small.record, (self.in_repeat)(chrom, start, end), germline);
            }
        }
    }

    fn score_structural_events(&mut self, filters: FilterMode) {
        let (truth, calls) = (self.truth, self.calls);
        let (passed, filtered): (Vec<&StructuralEvent>, Vec<&StructuralEvent>) =
            calls.events.iter().partition(|e| calls.passes_filters(&e.records, filters));
        let mut is_true = vec![false; passed.len()];
        for event in &truth.events {
            let mut best: Option<StructuralMatchLevel> = None;
            for (call, is_true) in passed.iter().zip(&mut is_true) {
                if let Some(found) = adjacency::compute_structural_match_level(&event.shapes, &call.shapes) {
                    *is_true = true;
                    best = Some(best.map_or(found, |b| b.min(found)));
                }
            }
            let nearly = || {
                filtered.iter().find(|c| adjacency::compute_structural_match_level(&event.shapes, &c.shapes).is_some())
            };
            let filter = if best.is_none() { nearly() } else { None };
            self.record_truth_variant(
                VariantClass::Sv,
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
            let in_germline = |g: &ParsedVcf| {
                g.events.iter().any(|e| adjacency::compute_structural_match_level(&e.shapes, &event.shapes).is_some())
            };
            let repeat = event.shapes.iter().any(|s| self.is_shape_in_repeat(s));
            self.record_false_call(VariantClass::Sv, event.records[0], repeat, self.germline.is_some_and(in_germline));
        }
    }

    fn is_shape_in_repeat(&self, shape: &BreakendsOrInsertion) -> bool {
        let at = |chrom: &str, cut: usize| (self.in_repeat)(chrom, cut, cut);
        let end = |e: &adjacency::AdjacencyEnd| {
            at(&e.chrom, if e.side == variant::BreakendSide::Left { e.pos } else { e.pos.saturating_sub(1) })
        };
        match shape {
            BreakendsOrInsertion::Adjacency(ends) => ends.iter().any(end),
            BreakendsOrInsertion::Insertion { chrom, pos, .. } => at(chrom, *pos),
            BreakendsOrInsertion::SingleBreakend(e) => end(e),
        }
    }

    fn record_truth_variant(&mut self, class: VariantClass, record: usize, found: bool, filtered: Option<&VcfRecord>) {
        let record = &self.truth.records[record];
        let part = if record.info.contains_key("REPEAT") { UniqueOrRepeat::Repeat } else { UniqueOrRepeat::Unique };
        let scores = self.outcome.scores.entry((class, part)).or_default();
        if found {
            scores.true_positives += 1;
            return;
        }
        scores.false_negatives += 1;
        let why = match filtered {
            Some(call) => format!("filtered: {}", call.filter),
            None => self.calls.nearest_record(record).map_or("no call".into(), |call| {
                let place = VariantPositionAndAlleles::from_record_with_shortened_alleles(call);
                let VariantPositionAndAlleles { chrom, pos, reference, alternate } = place;
                format!("not called; nearest call: {chrom}:{pos} {reference}>{alternate} {}", call.filter)
            }),
        };
        let about = ["CLASS", "AF", "STR"].into_iter().filter_map(|key| {
            let value = record.info.get(key)?;
            Some(if value.is_empty() { key.to_owned() } else { format!("{key}={value}") })
        });
        let about = about.collect::<Vec<_>>().join(";");
        self.outcome.misses.push(MissedVariant {
            class,
            part,
            place: VariantPositionAndAlleles::from_record_with_shortened_alleles(record),
            about,
            why,
        });
    }

    fn record_false_call(&mut self, class: VariantClass, record: usize, repeat: bool, germline: bool) {
        let record = &self.calls.records[record];
        let part = if repeat { UniqueOrRepeat::Repeat } else { UniqueOrRepeat::Unique };
        self.outcome.scores.entry((class, part)).or_default().false_positives += 1;
        let near = |side: &ParsedVcf, what: &str| {
            let VariantPositionAndAlleles { chrom, pos, reference, alternate } =
                VariantPositionAndAlleles::from_record_with_shortened_alleles(side.nearest_record(record)?);
            Some(format!("near {what} {chrom}:{pos} {reference}>{alternate}"))
        };
        let note = if germline {
            "germline".to_owned()
        } else {
            near(self.truth, "truth").or_else(|| near(self.germline?, "germline")).unwrap_or_default()
        };
        let (quality, filter) = (record.quality.clone(), record.filter.clone());
        self.outcome.false_calls.push(FalseCall {
            class,
            part,
            place: VariantPositionAndAlleles::from_record_with_shortened_alleles(record),
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

    fn side(lines: &str) -> ParsedVcf {
        ParsedVcf::from_records(vcf::parse_test_records(lines), None)
    }

    fn scored(calls: &str, filters: FilterMode) -> EvaluationResult {
        score_calls(&side(TRUTH), &side(calls), Some(&side("a 150 . A T . . .")), None, filters, &|chrom, _, _| {
            chrom == "b"
        })
    }

    fn counts(outcome: &EvaluationResult, class: VariantClass) -> (usize, usize, usize) {
        let s = outcome.scores_of_class(class, None);
        (s.true_positives, s.false_negatives, s.false_positives)
    }

    #[test]
    fn truth_against_itself_is_perfect() {
        let outcome = scored(TRUTH, FilterMode::PassOnly);
        for class in [VariantClass::Snv, VariantClass::Indel, VariantClass::Sv] {
            assert_eq!(counts(&outcome, class), (2, 0, 0));
            assert_eq!(outcome.scores_of_class(class, None).f1(), Some(1.0));
        }
        assert_eq!(outcome.scores_of_class(VariantClass::Snv, Some(UniqueOrRepeat::Repeat)).true_positives, 1);
        assert_eq!(outcome.structural["COPY"], [1, 1]);
        assert!(outcome.misses.is_empty() && outcome.false_calls.is_empty());
        let nothing = scored("a 1 . A . . . .", FilterMode::PassOnly);
        assert_eq!(counts(&nothing, VariantClass::Sv), (0, 2, 0));
        assert_eq!(nothing.scores_of_class(VariantClass::Sv, None).precision(), None);
    }

    #[test]
    fn misses_say_why_and_false_calls_where() {
        let calls = "\
a 100 . AC GT 40 PASS .
a 150 . A T 30 PASS .
a 900 . C T 9 weak;strand .
b 50 . C T 20 . .";
        let outcome = scored(calls, FilterMode::PassOnly);
        assert_eq!(counts(&outcome, VariantClass::Snv), (1, 1, 3));
        assert_eq!(outcome.scores_of_class(VariantClass::Snv, Some(UniqueOrRepeat::Repeat)).false_positives, 1);
        let miss = &outcome.misses[0];
        assert_eq!((miss.place.pos, miss.why.as_str()), (900, "filtered: weak;strand"));
        let notes: Vec<_> = outcome.false_calls.iter().map(|f| (f.place.pos, f.note.as_str())).collect();
        assert_eq!(notes, [(100, "near truth a:100 A>G"), (150, "germline"), (50, "")]);
        assert_eq!(counts(&scored(calls, FilterMode::All), VariantClass::Snv), (2, 0, 3));
    }

    #[test]
    fn indels_match_once_by_length_and_place() {
        let calls = "\
a 2020 . GCC G . PASS .
a 2010 . GCC G . PASS .
a 3030 . G GTT . PASS .
a 3001 . G GTTT . PASS .";
        let outcome = scored(calls, FilterMode::PassOnly);
        // The nearer deletion is true, the other false; the insertions are too far away or too long.
        assert_eq!(counts(&outcome, VariantClass::Indel), (1, 1, 3));
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
        let outcome = scored(calls, FilterMode::PassOnly);
        assert_eq!(counts(&outcome, VariantClass::Sv), (1, 1, 1));
        assert_eq!(outcome.structural["DEL"], [0, 1]);
        assert!(outcome.misses.iter().any(|m| m.place.pos == 5000 && m.why == "filtered: low"));
        let false_call = outcome.false_calls.iter().find(|f| f.class == VariantClass::Sv).unwrap();
        assert_eq!((false_call.place.pos, false_call.part), (700, UniqueOrRepeat::Repeat));
    }

    #[test]
    fn neighbours_count_alike_joined_or_apart() {
        let genome = Genome::from_sequences(vec!["a".into()], vec![b"ACGTTGCAACTTGGCATCGA".repeat(10)]);
        let scored = |truth: &str, calls: &str| {
            let of = |lines: &str| ParsedVcf::from_records(vcf::parse_test_records(lines), Some(&genome));
            let outcome =
                score_calls(&of(truth), &of(calls), None, Some(&genome), FilterMode::PassOnly, &|_, _, _| false);
            [counts(&outcome, VariantClass::Snv), counts(&outcome, VariantClass::Indel)]
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
        // The same haplotype in another notation that shares no part.
        let shifted = "a 41 . AC A . PASS .\na 43 . G GA . PASS .";
        let substituted = "a 42 . C G . PASS .\na 43 . G A . PASS .";
        assert_eq!(scored(shifted, substituted), [(0, 0, 0), (2, 0, 0)]);
        assert_eq!(scored(substituted, shifted), [(2, 0, 0), (0, 0, 0)]);
    }
}
