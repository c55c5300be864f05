//! Small variants that lie near each other, compared by the sequence that they spell together: a cluster can be written
//! in many ways.

use std::collections::{HashMap, HashSet};

use super::normalise::Allele;
use super::vcf::Record;
use crate::genome::Genome;
use crate::somatic::SHORTEST_SV;

/// The longest allele that is compared, bp.
const LONGEST: usize = 500;
/// Bases between two variants that are compared together, at most.
const NEAR: usize = 30;
/// Variants on one side of which every choice is tried; more are taken all together only.
const MOST: usize = 6;

/// Records of the truth and of the calls that spell the same sequence with others of their side.
#[derive(Debug, Default)]
pub(crate) struct SameSequence {
    /// Records of the truth.
    pub truth: HashSet<usize>,
    /// Calls.
    pub calls: HashSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Truth,
    Calls,
}

/// A small variant of one record.
struct Member {
    side: Side,
    record: usize,
    allele: Allele,
}

impl Member {
    fn end(&self) -> usize {
        self.allele.start + self.allele.removed.len()
    }
}

/// Finds groups of near variants that spell the same sequence on both sides; `counts` says which calls do.
pub(crate) fn same_sequence(
    truth: &[Record],
    calls: &[Record],
    counts: impl Fn(&Record) -> bool,
    genome: &Genome,
) -> SameSequence {
    let mut by_contig: HashMap<&str, Vec<Member>> = HashMap::new();
    let truth = truth.iter().enumerate().map(|(i, r)| (Side::Truth, i, r));
    let calls = calls.iter().enumerate().filter(|(_, r)| counts(r)).map(|(i, r)| (Side::Calls, i, r));
    for (side, record, r) in truth.chain(calls) {
        if let Some(allele) = small_allele(r) {
            by_contig.entry(r.chrom.as_str()).or_default().push(Member { side, record, allele });
        }
    }
    let mut same = SameSequence::default();
    for (name, seq) in genome.names.iter().zip(&genome.seqs) {
        let Some(members) = by_contig.get_mut(name.as_str()) else { continue };
        members.retain(|m| seq.get(m.allele.start..m.end()) == Some(&m.allele.removed));
        members.sort_by_key(|m| m.allele.start);
        let mut end = 0;
        let mut first = 0;
        for i in 0..=members.len() {
            if i == members.len() || (i > first && members[i].allele.start > end + NEAR) {
                compare(&members[first..i], seq, &mut same);
                (first, end) = (i, 0);
            }
            if i < members.len() {
                end = end.max(members[i].end());
            }
        }
    }
    same
}

/// The allele of a record that tells its bases and does not change the length as a structural variant does.
fn small_allele(record: &Record) -> Option<Allele> {
    let is_sequence = |text: &str| text.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_sequence(&record.reference) || !is_sequence(&record.alternate) {
        return None;
    }
    let alternate = record.alternate.to_ascii_uppercase();
    let allele = Allele::new(record.pos, record.reference.as_bytes(), alternate.as_bytes());
    let longest = allele.removed.len().max(allele.added.len());
    (longest <= LONGEST && allele.net().unsigned_abs() < SHORTEST_SV as u64).then_some(allele)
}

/// Of a group, the largest choices of both sides that spell the same.
fn compare(group: &[Member], seq: &[u8], same: &mut SameSequence) {
    let of = |side: Side| group.iter().filter(|m| m.side == side).collect::<Vec<&Member>>();
    let (truth, calls) = (of(Side::Truth), of(Side::Calls));
    // One of each side is what the other rules are for.
    if truth.is_empty() || calls.is_empty() || truth.len() + calls.len() < 3 {
        return;
    }
    let window = group[0].allele.start..group.iter().map(Member::end).max().unwrap_or(0);
    let spellings = |members: &[&Member]| -> Vec<(u32, Vec<u8>)> {
        let all = u32::MAX >> (32 - members.len().min(32));
        let choices = if members.len() <= MOST { 1..=all } else { all..=all };
        choices.filter_map(|choice| Some((choice, spell(members, choice, seq, window.clone())?))).collect()
    };
    let by_sequence: HashMap<Vec<u8>, u32> = spellings(&truth).into_iter().map(|(c, s)| (s, c)).collect();
    let shared = spellings(&calls).into_iter().filter_map(|(c, s)| Some((*by_sequence.get(&s)?, c)));
    let Some((of_truth, of_calls)) = shared.max_by_key(|(t, c)| t.count_ones() + c.count_ones()) else {
        return;
    };
    let chosen = |members: &[&Member], choice: u32| -> Vec<usize> {
        let is_chosen = |&(i, _): &(usize, &&Member)| choice >> i.min(31) & 1 == 1;
        members.iter().enumerate().filter(is_chosen).map(|(_, m)| m.record).collect()
    };
    same.truth.extend(chosen(&truth, of_truth));
    same.calls.extend(chosen(&calls, of_calls));
}

/// The bases of the window with the chosen variants; `None` when some exclude each other.
fn spell(members: &[&Member], choice: u32, seq: &[u8], window: std::ops::Range<usize>) -> Option<Vec<u8>> {
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
        at = member.end();
    }
    spelled.extend_from_slice(&seq[at..window.end.max(at)]);
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;

    fn same(truth: &str, calls: &str) -> (Vec<usize>, Vec<usize>) {
        let genome = Genome::new(vec!["a".into()], vec![b"ACGTTGCAACTTGGCATCGA".repeat(10)]);
        let (truth, calls) = (vcf::records(truth), vcf::records(calls));
        let found = same_sequence(&truth, &calls, Record::passed, &genome);
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
        // The same two variants in another place are others.
        assert_eq!(same(apart, "a 61 . ACGTTGCA TCGTTA . PASS ."), (vec![], vec![]));
        // A false call beside them does not spoil it, nor does one that excludes them.
        let more = format!("{joined}\na 50 . C G . PASS .\na 42 . C G . PASS .");
        assert_eq!(same(apart, &more), (vec![0, 1], vec![0]));
    }

    #[test]
    fn several_of_each_side_are_compared_together() {
        // A deletion and an insertion move the bases between them; another caller has substitutions.
        let shifted = "a 41 . AC A . PASS .\na 43 . G GA . PASS .";
        let substituted = "a 42 . C G . PASS .\na 43 . G A . PASS .";
        assert_eq!(same(shifted, substituted), (vec![0, 1], vec![0, 1]));
        // REF must be the reference's.
        assert_eq!(same(shifted, "a 42 . G C . PASS .\na 43 . G A . PASS ."), (vec![], vec![]));
    }
}
