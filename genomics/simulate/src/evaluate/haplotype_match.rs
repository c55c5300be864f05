//! Matches groups of close small variants by the haplotype sequence that they result in together, because callers can
//! write the same sequence as different variants.

use std::collections::{HashMap, HashSet};

use super::normalise::SequenceReplacement;
use super::vcf::VcfRecord;
use crate::genome::Genome;
use crate::somatic::MIN_SV_BP;

/// Maximum length of an allele that is compared by haplotype, bp.
const MAX_ALLELE_BP: usize = 500;
/// Maximum distance between neighbouring variants of one group, bp.
const MAX_GROUP_GAP_BP: usize = 30;
/// Maximum number of variants of the truth, or of the calls, in a group of which all subsets are compared. More
/// variants of one side are compared only all together.
const MAX_SUBSET_VARIANTS: usize = 6;

/// Records of the truth and calls that result in the same haplotype sequence together.
#[derive(Debug, Default)]
pub(crate) struct HaplotypeMatches {
    /// Indices of the matched truth records.
    pub truth: HashSet<usize>,
    /// Indices of the matched calls.
    pub calls: HashSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordSet {
    Truth,
    Calls,
}

/// A small variant of the truth or of the calls, as part of a group of close variants.
struct GroupMember {
    side: RecordSet,
    record: usize,
    allele: SequenceReplacement,
}

impl GroupMember {
    fn reference_end(&self) -> usize {
        self.allele.start + self.allele.removed.len()
    }
}

/// Finds groups of close variants that result in the same haplotype sequence in truth and calls. `counts` selects the
/// calls that are compared. Records whose REF differs from the genome are left out.
pub(crate) fn match_records_by_haplotype_sequence(
    truth: &[VcfRecord],
    calls: &[VcfRecord],
    counts: impl Fn(&VcfRecord) -> bool,
    genome: &Genome,
) -> HaplotypeMatches {
    let mut by_contig: HashMap<&str, Vec<GroupMember>> = HashMap::new();
    let truth = truth.iter().enumerate().map(|(i, r)| (RecordSet::Truth, i, r));
    let calls = calls.iter().enumerate().filter(|(_, r)| counts(r)).map(|(i, r)| (RecordSet::Calls, i, r));
    for (side, record, r) in truth.chain(calls) {
        if let Some(allele) = small_allele(r) {
            by_contig.entry(r.chrom.as_str()).or_default().push(GroupMember { side, record, allele });
        }
    }
    let mut same = HaplotypeMatches::default();
    for (name, seq) in genome.names.iter().zip(&genome.seqs) {
        let Some(members) = by_contig.get_mut(name.as_str()) else { continue };
        members.retain(|m| seq.get(m.allele.start..m.reference_end()) == Some(&m.allele.removed));
        members.sort_by_key(|m| m.allele.start);
        let mut end = 0;
        let mut first = 0;
        for i in 0..=members.len() {
            if i == members.len() || (i > first && members[i].allele.start > end + MAX_GROUP_GAP_BP) {
                compare_group(&members[first..i], seq, &mut same);
                (first, end) = (i, 0);
            }
            if i < members.len() {
                end = end.max(members[i].reference_end());
            }
        }
    }
    same
}

/// Returns the allele of a record; `None` if its bases are not given, if it is longer than [`MAX_ALLELE_BP`], or if its
/// length change is that of a structural variant.
fn small_allele(record: &VcfRecord) -> Option<SequenceReplacement> {
    let is_sequence = |text: &str| text.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_sequence(&record.reference) || !is_sequence(&record.alternate) {
        return None;
    }
    let alternate = record.alternate.to_ascii_uppercase();
    let allele = SequenceReplacement::from_vcf_alleles(record.pos, record.reference.as_bytes(), alternate.as_bytes());
    let longest = allele.removed.len().max(allele.added.len());
    (longest <= MAX_ALLELE_BP && allele.length_change_bp().unsigned_abs() < MIN_SV_BP as u64).then_some(allele)
}

/// Finds the largest subsets of the truth and of the calls in a group that result in the same haplotype sequence, and
/// adds them to `same`.
fn compare_group(group: &[GroupMember], seq: &[u8], same: &mut HaplotypeMatches) {
    let of = |side: RecordSet| group.iter().filter(|m| m.side == side).collect::<Vec<&GroupMember>>();
    let (truth, calls) = (of(RecordSet::Truth), of(RecordSet::Calls));
    // The other rules handle one variant per side.
    if truth.is_empty() || calls.is_empty() || truth.len() + calls.len() < 3 {
        return;
    }
    let window = group[0].allele.start..group.iter().map(GroupMember::reference_end).max().unwrap_or(0);
    let spellings = |members: &[&GroupMember]| -> Vec<(u32, Vec<u8>)> {
        let all = u32::MAX >> (32 - members.len().min(32));
        let choices = if members.len() <= MAX_SUBSET_VARIANTS { 1..=all } else { all..=all };
        choices.filter_map(|choice| Some((choice, haplotype_sequence(members, choice, seq, window.clone())?))).collect()
    };
    let by_sequence: HashMap<Vec<u8>, u32> = spellings(&truth).into_iter().map(|(c, s)| (s, c)).collect();
    let shared = spellings(&calls).into_iter().filter_map(|(c, s)| Some((*by_sequence.get(&s)?, c)));
    let Some((of_truth, of_calls)) = shared.max_by_key(|(t, c)| t.count_ones() + c.count_ones()) else {
        return;
    };
    let chosen = |members: &[&GroupMember], choice: u32| -> Vec<usize> {
        let is_chosen = |&(i, _): &(usize, &&GroupMember)| choice >> i.min(31) & 1 == 1;
        members.iter().enumerate().filter(is_chosen).map(|(_, m)| m.record).collect()
    };
    same.truth.extend(chosen(&truth, of_truth));
    same.calls.extend(chosen(&calls, of_calls));
}

/// Returns the bases of the window after applying the variants whose bits are set in `choice`; `None` if two of them
/// overlap or insert at one position.
fn haplotype_sequence(
    members: &[&GroupMember],
    choice: u32,
    seq: &[u8],
    window: std::ops::Range<usize>,
) -> Option<Vec<u8>> {
    let mut spelled = vec![];
    let mut at = window.start;
    let mut last_insertion = None;
    for (i, member) in members.iter().enumerate() {
        if choice >> i.min(31) & 1 == 0 {
            continue;
        }
        let is_insertion = member.allele.removed.is_empty();
        if member.allele.start < at || (is_insertion && last_insertion == Some(member.allele.start)) {
            return None;
        }
        last_insertion = is_insertion.then_some(member.allele.start);
        spelled.extend_from_slice(&seq[at..member.allele.start]);
        spelled.extend_from_slice(&member.allele.added);
        at = member.reference_end();
    }
    spelled.extend_from_slice(&seq[at..window.end.max(at)]);
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;

    fn same(truth: &str, calls: &str) -> (Vec<usize>, Vec<usize>) {
        let genome = Genome::from_sequences(vec!["a".into()], vec![b"ACGTTGCAACTTGGCATCGA".repeat(10)]);
        let (truth, calls) = (vcf::parse_test_records(truth), vcf::parse_test_records(calls));
        let found = match_records_by_haplotype_sequence(&truth, &calls, VcfRecord::has_passed, &genome);
        let sorted = |set: HashSet<usize>| {
            let mut list: Vec<usize> = set.into_iter().collect();
            list.sort_unstable();
            list
        };
        (sorted(found.truth), sorted(found.calls))
    }

    #[test]
    fn one_record_or_several_are_the_same() {
        // Bases 41-48 are ACGTTGCA.
        let apart = "a 41 . A T . PASS .\na 45 . TGC T . PASS .";
        let joined = "a 41 . ACGTTGCA TCGTTA . PASS .";
        assert_eq!(same(apart, joined), (vec![0, 1], vec![0]));
        assert_eq!(same(joined, apart), (vec![0], vec![0, 1]));
        assert_eq!(same(apart, "a 41 . ACGTTGCA TCGTTA . low ."), (vec![], vec![]));
        assert_eq!(same(apart, "a 41 . ACGTTGCA TCGTTC . PASS ."), (vec![], vec![]));
        // The same two variants at another position do not match.
        assert_eq!(same(apart, "a 61 . ACGTTGCA TCGTTA . PASS ."), (vec![], vec![]));
        // Neither an additional false call nor an overlapping one prevents the match.
        let more = format!("{joined}\na 50 . C G . PASS .\na 42 . C G . PASS .");
        assert_eq!(same(apart, &more), (vec![0, 1], vec![0]));
    }

    #[test]
    fn several_of_each_side_are_compared_together() {
        // A deletion and an insertion shift the bases between them; another caller reports substitutions.
        let shifted = "a 41 . AC A . PASS .\na 43 . G GA . PASS .";
        let substituted = "a 42 . C G . PASS .\na 43 . G A . PASS .";
        assert_eq!(same(shifted, substituted), (vec![0, 1], vec![0, 1]));
        // REF must equal the reference.
        assert_eq!(same(shifted, "a 42 . G C . PASS .\na 43 . G A . PASS ."), (vec![], vec![]));
    }
}
