//! Groups the filtered calls of contigs that come from another locus by the sequence family to which they belong: the
//! copies of a repeat, a paralog, or a copy of a sequence that the reference lacks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use genuma_reads::fasta::Reference;
use serde::Serialize;

use crate::genotype::Filter;
use crate::group::DisjointSets;
use crate::locus::Locus;
use crate::vcf_record::{AltAllele, VcfRecord};

/// Maximum distance in bases between two loci of one sequence family that count as one. Chosen: the length of two to
/// three fragments.
const MAX_LOCUS_DISTANCE_BP: usize = 1000;
/// Maximum number of other loci that are listed for a family.
const MAX_LISTED_FAMILY_LOCI: usize = 3;

/// A range of a reference sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FamilyLocus {
    /// Name of the reference sequence.
    pub chrom: String,
    /// Position of the first base (1-based).
    pub start: u64,
    /// Position of the last base (1-based).
    pub end: u64,
}

/// Filtered calls whose contigs or reads come from copies of one sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SequenceFamily {
    /// Range of the calls at the first of the family's places.
    pub first_place: FamilyLocus,
    /// Number of places with calls. Calls within 1 kb are at one place.
    pub num_places: u64,
    /// Other loci of the reference that the contigs resemble, at most three: those that most calls list. The first place
    /// is not among them.
    pub other_loci: Vec<FamilyLocus>,
    /// Largest number of other loci that were found for one contig.
    pub max_other_loci_of_contig: u64,
    /// Number of filtered calls.
    pub num_calls: u64,
    /// Number of contigs that show these calls.
    pub num_contigs: u64,
    /// Largest identity of a contig and one of its other loci, from 0 to 1; `None` if no other locus is known.
    pub max_identity: Option<f64>,
}

/// Whether a filter says that the contig or its reads may come from another locus.
fn is_other_locus_filter(filter: Filter) -> bool {
    matches!(filter, Filter::Divergent | Filter::Repeat | Filter::DiscordantMates)
}

/// Adds the other loci of their contigs to the records whose filters say that the contig or its reads may come from
/// another locus. `loci` are those of the call.
pub fn add_other_loci_to_records(records: &mut [VcfRecord], loci: &[Locus]) {
    for record in records {
        if record.genotype.filters.iter().any(|&filter| is_other_locus_filter(filter)) {
            record.other_loci = loci[record.locus].contig.other_loci.clone();
        }
    }
}

/// Whether a record belongs to a sequence family: its filters include `divergent` or `discordant_mates`, or `repeat` if
/// other loci are listed.
fn is_of_family(record: &VcfRecord) -> bool {
    let has = |filter| record.genotype.filters.contains(&filter);
    has(Filter::Divergent) || has(Filter::DiscordantMates) || has(Filter::Repeat) && !record.other_loci.best.is_empty()
}

/// A locus of a filtered call.
#[derive(Debug, Clone, PartialEq)]
struct CallLocus {
    /// Index of the reference sequence.
    chrom: usize,
    /// Range of the reference bases (0-based).
    range: Range<usize>,
    /// Index of the call among the filtered calls.
    call: u32,
    /// Identity of the contig and this locus if it is another locus; `None` at the call's own position.
    identity: Option<f64>,
}

/// The loci of all filtered calls: own positions and listed other loci, sorted by position. `calls` has the records of
/// each call.
fn list_call_loci(calls: &[Vec<&VcfRecord>]) -> Vec<CallLocus> {
    let mut loci = Vec::new();
    for (call, records) in (0..).zip(calls) {
        for record in records {
            let mut add = |range| loci.push(CallLocus { chrom: record.chrom, range, call, identity: None });
            match record.alternative {
                AltAllele::Bases(_) => add(record.pos - 1..record.end),
                // Of a long event the contig covers both ends only.
                AltAllele::Symbolic(_) | AltAllele::Breakend { .. } => {
                    add(record.pos - 1..record.pos);
                    if record.end != record.pos {
                        add(record.end - 1..record.end);
                    }
                }
            }
        }
        loci.extend(records[0].other_loci.best.iter().map(|other| CallLocus {
            chrom: other.chrom,
            range: other.range.clone(),
            call,
            identity: Some(other.identity()),
        }));
    }
    loci.sort_by(|a, b| {
        (a.chrom, a.range.start, a.range.end, a.call).cmp(&(b.chrom, b.range.start, b.range.end, b.call))
    });
    loci
}

/// Splits loci that are sorted by position where the distance between neighbours is greater than
/// [`MAX_LOCUS_DISTANCE_BP`]. Returns each cluster with its range.
fn cluster_loci<'a>(loci: impl IntoIterator<Item = &'a CallLocus>) -> Vec<(Range<usize>, Vec<&'a CallLocus>)> {
    let mut clusters: Vec<(Range<usize>, Vec<&CallLocus>)> = Vec::new();
    for locus in loci {
        match clusters.last_mut() {
            Some((range, members))
                if members[0].chrom == locus.chrom && locus.range.start <= range.end + MAX_LOCUS_DISTANCE_BP =>
            {
                range.end = range.end.max(locus.range.end);
                members.push(locus);
            }
            _ => clusters.push((locus.range.clone(), vec![locus])),
        }
    }
    clusters
}

/// Groups the filtered calls by sequence family. Two calls are in one family if a locus of one, its own position or a
/// listed other locus, overlaps a locus of the other or is within 1 kb of it. A family needs a listed other locus or a
/// call with the filter `divergent`. The families with most calls are first, then those at lower positions.
pub fn group_calls_by_sequence_family(records: &[VcfRecord], genome: &Reference) -> Vec<SequenceFamily> {
    let mut records_of_event: BTreeMap<usize, Vec<&VcfRecord>> = BTreeMap::new();
    for record in records.iter().filter(|record| is_of_family(record)) {
        records_of_event.entry(record.event).or_default().push(record);
    }
    let calls: Vec<Vec<&VcfRecord>> = records_of_event.into_values().collect();
    let loci = list_call_loci(&calls);
    let sets = DisjointSets::create_singleton_sets(calls.len());
    for (_, members) in cluster_loci(&loci) {
        members.iter().for_each(|locus| sets.join_sets(members[0].call, locus.call));
    }
    let mut loci_of_family: BTreeMap<u32, Vec<&CallLocus>> = BTreeMap::new();
    for locus in &loci {
        loci_of_family.entry(sets.find_smallest_member(locus.call)).or_default().push(locus);
    }
    let mut families: Vec<((usize, usize), SequenceFamily)> =
        loci_of_family.into_values().filter_map(|loci| build_family(&loci, &calls, genome)).collect();
    families.sort_by_key(|(position, family)| (Reverse(family.num_calls), *position));
    families.into_iter().map(|(_, family)| family).collect()
}

/// Builds a family from its loci, which are sorted by position, with the position of its first place. `None` without a
/// listed other locus and without a call with the filter `divergent`.
fn build_family(
    loci: &[&CallLocus],
    calls: &[Vec<&VcfRecord>],
    genome: &Reference,
) -> Option<((usize, usize), SequenceFamily)> {
    let members: BTreeSet<u32> = loci.iter().map(|locus| locus.call).collect();
    let first_records = || members.iter().map(|&call| calls[call as usize][0]);
    let is_family =
        |record: &VcfRecord| !record.other_loci.best.is_empty() || record.genotype.filters.contains(&Filter::Divergent);
    if !first_records().any(is_family) {
        return None;
    }
    let [own, other] =
        [false, true].map(|is_other| cluster_loci(loci.iter().copied().filter(|l| l.identity.is_some() == is_other)));
    let (first_range, first_members) = own.first()?;
    let chrom = first_members[0].chrom;
    let to_locus = |chrom: usize, range: &Range<usize>| FamilyLocus {
        chrom: genome.contigs[chrom].name.clone(),
        start: range.start as u64 + 1,
        end: range.end as u64,
    };
    let is_first_place = |(range, members): &(Range<usize>, Vec<&CallLocus>)| {
        members[0].chrom == chrom && range.start < first_range.end && first_range.start < range.end
    };
    let mut listed: Vec<_> = other.iter().filter(|cluster| !is_first_place(cluster)).collect();
    // The sort is stable, so clusters with as many calls stay in the order of their positions.
    listed.sort_by_key(|(_, members)| Reverse(members.len()));
    let family = SequenceFamily {
        first_place: to_locus(chrom, first_range),
        num_places: own.len() as u64,
        other_loci: listed
            .iter()
            .take(MAX_LISTED_FAMILY_LOCI)
            .map(|(range, members)| to_locus(members[0].chrom, range))
            .collect(),
        max_other_loci_of_contig: first_records().map(|r| u64::from(r.other_loci.num_found)).max().unwrap_or(0),
        num_calls: members.len() as u64,
        num_contigs: first_records().map(|record| record.locus).collect::<BTreeSet<usize>>().len() as u64,
        max_identity: loci.iter().filter_map(|locus| locus.identity).max_by(f64::total_cmp),
    };
    Some(((chrom, first_range.start), family))
}

#[cfg(test)]
mod tests {
    use genuma_reads::fasta::Contig;

    use super::*;
    use crate::event::EventClass;
    use crate::genotype::GenotypingResult;
    use crate::other_loci::{OtherLoci, OtherLocus};

    fn genome() -> Reference {
        let contig = |name: &str| Contig { name: name.into(), seq: vec![b'A'; 100_000] };
        Reference::from_contigs(vec![contig("chr1"), contig("chr2")])
    }

    /// A substitution of one base of contig `locus`, at a 1-based position, with the given filters and other loci. These
    /// are given as index of the sequence, start (0-based) and matching bases of 200.
    fn record(
        event: usize,
        locus: usize,
        (chrom, pos): (usize, usize),
        filters: &[Filter],
        others: &[(usize, usize, u32)],
    ) -> VcfRecord {
        let other = |&(chrom, start, matching_bases): &(usize, usize, u32)| OtherLocus {
            chrom,
            range: start..start + 200,
            forward: true,
            matching_bases,
            alignment_columns: 200,
        };
        VcfRecord {
            event,
            id: format!("g{}", event + 1),
            chrom,
            pos,
            end: pos,
            reference: "A".into(),
            alternative: AltAllele::Bases("C".into()),
            class: EventClass::Snv,
            structural: None,
            locus,
            genotype: GenotypingResult { filters: filters.iter().copied().collect(), ..Default::default() },
            population_frequency: None,
            panel: None,
            phase_set: None,
            screen: None,
            other_loci: OtherLoci { best: others.iter().map(other).collect(), num_found: 2 * others.len() as u32 },
            known_info: Vec::new(),
            annotation: None,
        }
    }

    fn locus(chrom: &str, start: u64, end: u64) -> FamilyLocus {
        FamilyLocus { chrom: chrom.into(), start, end }
    }

    #[test]
    fn calls_with_a_common_locus_are_a_family() {
        use Filter::{DiscordantMates, Divergent, Germline, LowQuality, Repeat};
        let records = [
            // Two contigs at one place, a call on chr2 that lists this place, and one that lists the same other locus.
            record(0, 0, (0, 1_001), &[Divergent], &[(1, 5_000, 190), (1, 60_000, 180)]),
            record(1, 0, (0, 1_050), &[Divergent, LowQuality], &[(1, 5_000, 190), (1, 60_000, 180)]),
            record(2, 1, (0, 1_900), &[Repeat], &[(1, 5_100, 196)]),
            record(3, 2, (1, 30_000), &[DiscordantMates], &[(0, 2_500, 170)]),
            record(4, 3, (1, 80_000), &[Repeat], &[(1, 60_900, 150)]),
            // A copy that the reference lacks, and a call there with another filter.
            record(5, 4, (0, 50_000), &[Divergent], &[]),
            record(6, 5, (0, 51_000), &[DiscordantMates], &[]),
            // No family: passed, another filter, and filters that do not suffice without another locus.
            record(7, 6, (0, 1_100), &[], &[(1, 5_000, 200)]),
            record(8, 6, (0, 1_101), &[Germline], &[(1, 5_000, 200)]),
            record(9, 7, (0, 70_000), &[Repeat], &[]),
            record(10, 8, (0, 90_000), &[DiscordantMates], &[]),
        ];
        let expected = [
            SequenceFamily {
                first_place: locus("chr1", 1_001, 1_900),
                num_places: 3,
                other_loci: vec![
                    locus("chr2", 5_001, 5_300),
                    locus("chr2", 60_001, 61_100),
                    locus("chr1", 2_501, 2_700),
                ],
                max_other_loci_of_contig: 4,
                num_calls: 5,
                num_contigs: 4,
                max_identity: Some(0.98),
            },
            SequenceFamily {
                first_place: locus("chr1", 50_000, 51_000),
                num_places: 1,
                other_loci: Vec::new(),
                max_other_loci_of_contig: 0,
                num_calls: 2,
                num_contigs: 2,
                max_identity: None,
            },
        ];
        assert_eq!(group_calls_by_sequence_family(&records, &genome()), expected);
        assert_eq!(group_calls_by_sequence_family(&records[7..], &genome()), []);
    }

    #[test]
    fn loci_more_than_1_kb_apart_are_of_two_families() {
        let two = |second: usize| {
            let records = [
                record(0, 0, (0, 1_000), &[Filter::Divergent], &[]),
                record(1, 1, (0, second), &[Filter::Divergent], &[]),
            ];
            let found = group_calls_by_sequence_family(&records, &genome());
            found.iter().map(|family| (family.first_place.start, family.num_calls)).collect::<Vec<_>>()
        };
        assert_eq!(two(2_001), [(1_000, 2)]);
        assert_eq!(two(2_002), [(1_000, 1), (2_002, 1)]);
    }

    #[test]
    fn both_ends_of_a_long_event_are_places() {
        let deletion = VcfRecord {
            end: 40_000,
            alternative: AltAllele::Symbolic(EventClass::Del),
            ..record(0, 0, (0, 1_000), &[Filter::Divergent], &[])
        };
        let inside = record(1, 1, (0, 20_000), &[Filter::Divergent], &[]);
        let at_end = record(2, 2, (0, 40_500), &[Filter::Divergent], &[]);
        let found = group_calls_by_sequence_family(&[deletion, inside, at_end], &genome());
        let places: Vec<_> = found.iter().map(|f| (&f.first_place, f.num_places, f.num_calls)).collect();
        assert_eq!(places, [(&locus("chr1", 1_000, 1_000), 2, 2), (&locus("chr1", 20_000, 20_000), 1, 1)]);
    }
}
