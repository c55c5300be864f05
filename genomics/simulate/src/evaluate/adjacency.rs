//! Converts a VCF record in any notation to its effects on the sequence: SNVs, indels, adjacencies, insertions.

use super::decompose::decompose_allele;
use super::normalise::SequenceReplacement;
use super::vcf::VcfRecord;
use crate::genome::Genome;
use crate::somatic::MIN_SV_BP;
use crate::variant::BreakendSide;

/// Maximum distance between the positions of two breakends or insertions that count as the same, bp.
pub(crate) const MAX_MATCHING_BREAKEND_DISTANCE_BP: usize = 50;
/// Maximum difference between the lengths of two insertions that count as the same, relative to the longer one.
const INSERTION_LENGTH_TOLERANCE: f64 = 0.2;

/// One breakend of an adjacency: the position, and the side on which the sequence is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdjacencyEnd {
    /// Name of the contig.
    pub chrom: String,
    /// Position of the outermost base that is kept, 1-based.
    pub pos: usize,
    /// Side of the breakend on which the reference sequence is kept.
    pub side: BreakendSide,
}

impl AdjacencyEnd {
    fn is_near(&self, other: &AdjacencyEnd) -> bool {
        self.chrom == other.chrom && self.pos.abs_diff(other.pos) <= MAX_MATCHING_BREAKEND_DISTANCE_BP
    }
}

/// Effect of a structural variant on the sequence: joined breakends, a single breakend or an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BreakendsOrInsertion {
    /// Two breakends are joined: bases that are apart in the reference become neighbours.
    Adjacency([AdjacencyEnd; 2]),
    /// Bases are inserted to the right of `pos`.
    Insertion {
        /// Name of the contig.
        chrom: String,
        /// Position of the base to the left of the insertion, 1-based.
        pos: usize,
        /// Number of inserted bases; `None` if unknown.
        length: Option<usize>,
    },
    /// Single breakend: the reference sequence ends here, and its continuation is unknown.
    SingleBreakend(AdjacencyEnd),
}

/// One of the effects of an ALT allele of a VCF record on the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AlleleChange {
    /// A single-nucleotide variant.
    Snv {
        /// Position, 1-based.
        pos: usize,
        /// The base of the ALT allele.
        to: u8,
    },
    /// A length change of less than 50 bp.
    Indel {
        /// First changed base, 0-based; left-aligned if the record gives the bases and the reference is known.
        start: usize,
        /// Number of bases gained (negative: lost).
        net: i64,
        /// Bases that are lost or gained; empty if the record does not give them.
        bases: Vec<u8>,
    },
    /// A structural variant of 50 bp or more.
    Structural(BreakendsOrInsertion),
}

/// Converts the ALT allele of a record to its effects; empty if the notation is not supported. `genome` is used to
/// left-align indels.
pub(super) fn parse_allele_changes(record: &VcfRecord, genome: Option<&Genome>) -> Vec<AlleleChange> {
    let alternate = record.alternate.as_str();
    if let Some(kind) = alternate.strip_prefix('<') {
        let kind = kind.trim_end_matches('>').split(':').next().unwrap_or_default();
        return symbolic_changes(record, kind);
    }
    if alternate.contains(['[', ']']) {
        return parse_breakend(record)
            .into_iter()
            .flat_map(|(ends, inserted)| adjacency_changes(ends, inserted))
            .collect();
    }
    if let Some(side) = single_breakend_side(alternate) {
        let end = AdjacencyEnd { chrom: record.chrom.clone(), pos: record.pos, side };
        return vec![AlleleChange::Structural(BreakendsOrInsertion::SingleBreakend(end))];
    }
    if !alternate.bytes().all(|b| b.is_ascii_alphabetic()) {
        return vec![];
    }
    sequence_changes(record, genome)
}

/// Returns the side that is kept at a single breakend: left for `t.`, right for `.t`; `None` for other notations.
fn single_breakend_side(alternate: &str) -> Option<BreakendSide> {
    match (alternate.starts_with('.'), alternate.ends_with('.')) {
        (false, true) => Some(BreakendSide::Left),
        (true, false) => Some(BreakendSide::Right),
        _ => None,
    }
}

fn sequence_changes(record: &VcfRecord, genome: Option<&Genome>) -> Vec<AlleleChange> {
    let alternate = record.alternate.to_ascii_uppercase();
    let mut allele =
        SequenceReplacement::from_vcf_alleles(record.pos, record.reference.as_bytes(), alternate.as_bytes());
    let contig = genome.and_then(|g| g.names.iter().position(|n| *n == record.chrom).map(|i| &g.seqs[i]));
    if let Some(seq) = contig {
        allele = allele.left_align(seq);
    }
    let aligned = |part: SequenceReplacement| contig.map_or_else(|| part.clone(), |seq| part.clone().left_align(seq));
    match decompose_allele(&allele) {
        Some(parts) => parts.into_iter().flat_map(|part| simple_changes(&record.chrom, aligned(part))).collect(),
        None => replacement_changes(&record.chrom, &allele),
    }
}

/// Returns the effect of one substitution, insertion or deletion; empty if it changes nothing.
fn simple_changes(chrom: &str, allele: SequenceReplacement) -> Vec<AlleleChange> {
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    if !allele.is_pure_indel() {
        return vec![AlleleChange::Snv { pos: allele.start + 1, to: allele.added[0] }];
    }
    if lost.max(gained) >= MIN_SV_BP {
        return replacement_changes(chrom, &allele);
    }
    let net = allele.length_change_bp();
    let bases = if net < 0 { allele.removed } else { allele.added };
    if net == 0 { vec![] } else { vec![AlleleChange::Indel { start: allele.start, net, bases }] }
}

/// Returns the effects of replacing bases by unrelated ones: an adjacency if 50 bp or more are removed, an insertion if
/// the sequence becomes 50 bp or more longer; an indel if neither applies.
fn replacement_changes(chrom: &str, allele: &SequenceReplacement) -> Vec<AlleleChange> {
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    let end = |pos, side| AdjacencyEnd { chrom: chrom.to_owned(), pos, side };
    let mut found = vec![];
    if lost >= MIN_SV_BP {
        let ends = [end(allele.start, BreakendSide::Left), end(allele.start + lost + 1, BreakendSide::Right)];
        found.push(AlleleChange::Structural(BreakendsOrInsertion::Adjacency(ends)));
    }
    if gained >= lost + MIN_SV_BP {
        let length = Some(gained - lost);
        found.push(AlleleChange::Structural(BreakendsOrInsertion::Insertion {
            chrom: chrom.to_owned(),
            pos: allele.start,
            length,
        }));
    }
    if found.is_empty() {
        found.push(AlleleChange::Indel { start: allele.start, net: allele.length_change_bp(), bases: vec![] });
    }
    found
}

fn symbolic_changes(record: &VcfRecord, kind: &str) -> Vec<AlleleChange> {
    let chrom = || record.chrom.clone();
    let end = |pos, side| AdjacencyEnd { chrom: chrom(), pos, side };
    let length = record.absolute_info_value("SVLEN").filter(|&n| n > 0);
    let last = record.absolute_info_value("END").filter(|&e| e > record.pos).or(length.map(|n| record.pos + n));
    let indel = |n: usize, sign: i64| AlleleChange::Indel { start: record.pos, net: sign * n as i64, bases: vec![] };
    let pair = |a, b| AlleleChange::Structural(BreakendsOrInsertion::Adjacency([a, b]));
    match (kind, last) {
        ("DEL", Some(last)) if last - record.pos < MIN_SV_BP => vec![indel(last - record.pos, -1)],
        ("DEL", Some(last)) => vec![pair(end(record.pos, BreakendSide::Left), end(last + 1, BreakendSide::Right))],
        ("DUP", Some(last)) if last - record.pos < MIN_SV_BP => vec![indel(last - record.pos, 1)],
        ("DUP", Some(last)) => vec![pair(end(last, BreakendSide::Left), end(record.pos + 1, BreakendSide::Right))],
        ("INV", Some(last)) => vec![
            pair(end(record.pos, BreakendSide::Left), end(last, BreakendSide::Left)),
            pair(end(record.pos + 1, BreakendSide::Right), end(last + 1, BreakendSide::Right)),
        ],
        ("INS", _) => match length {
            Some(n) if n < MIN_SV_BP => vec![indel(n, 1)],
            _ => {
                vec![AlleleChange::Structural(BreakendsOrInsertion::Insertion {
                    chrom: chrom(),
                    pos: record.pos,
                    length,
                })]
            }
        },
        ("BND" | "TRA", _) => {
            parse_symbolic_breakend(record).map(|ends| pair(ends[0].clone(), ends[1].clone())).into_iter().collect()
        }
        _ => vec![],
    }
}

/// Parses a `<BND>` record with INFO fields CHR2, POS2 or END, and optionally CT (such as `3to5`, the default); `None`
/// if CHR2 or the position is missing.
fn parse_symbolic_breakend(record: &VcfRecord) -> Option<[AdjacencyEnd; 2]> {
    let chrom = record.info.get("CHR2")?.clone();
    let pos = record.absolute_info_value("POS2").or_else(|| record.absolute_info_value("END"))?;
    let sides = record.info.get("CT").and_then(|ct| ct.split_once("to")).unwrap_or(("3", "5"));
    let side = |s: &str| if s == "3" { BreakendSide::Left } else { BreakendSide::Right };
    let here = AdjacencyEnd { chrom: record.chrom.clone(), pos: record.pos, side: side(sides.0) };
    Some([here, AdjacencyEnd { chrom, pos, side: side(sides.1) }])
}

/// Parses a breakend in the notations `t[p[`, `t]p]`, `]p]t` and `[p[t` (VCF 4.2, section 5.4). Returns both ends and
/// the number of inserted bases; `None` for other notations.
fn parse_breakend(record: &VcfRecord) -> Option<([AdjacencyEnd; 2], usize)> {
    let alternate = record.alternate.as_str();
    let open = alternate.find(['[', ']'])?;
    let close = open + 1 + alternate[open + 1..].find(['[', ']'])?;
    let (chrom, pos) = alternate[open + 1..close].rsplit_once(':')?;
    let there = if alternate.as_bytes()[open] == b']' { BreakendSide::Left } else { BreakendSide::Right };
    let here = if open > 0 { BreakendSide::Left } else { BreakendSide::Right };
    let bases = alternate.len() - (close + 1 - open);
    let here = AdjacencyEnd { chrom: record.chrom.clone(), pos: record.pos, side: here };
    // "<ctg1>" is the notation for contigs of an assembly file.
    let chrom = chrom.trim_matches(['<', '>']).to_owned();
    Some(([here, AdjacencyEnd { chrom, pos: pos.parse().ok()?, side: there }], bases.saturating_sub(1)))
}

/// Returns the effect of an adjacency. A deletion of less than 50 bp is an indel, or an insertion if 50 bp or more are
/// gained; a tandem duplication of less than 50 bp is an indel.
fn adjacency_changes(ends: [AdjacencyEnd; 2], inserted: usize) -> Vec<AlleleChange> {
    if ends[0].chrom == ends[1].chrom {
        let (low, high) = if ends[0].pos <= ends[1].pos { (&ends[0], &ends[1]) } else { (&ends[1], &ends[0]) };
        let chrom = low.chrom.clone();
        let span = high.pos - low.pos;
        if (low.side, high.side) == (BreakendSide::Left, BreakendSide::Right) && span > 0 && span <= MIN_SV_BP {
            let net = inserted as i64 - (span as i64 - 1);
            if net >= MIN_SV_BP as i64 {
                let length = Some(net as usize);
                return vec![AlleleChange::Structural(BreakendsOrInsertion::Insertion { chrom, pos: low.pos, length })];
            }
            return vec![AlleleChange::Indel { start: low.pos, net, bases: vec![] }];
        }
        if (low.side, high.side) == (BreakendSide::Right, BreakendSide::Left) && span + 1 + inserted < MIN_SV_BP {
            let net = (span + 1 + inserted) as i64;
            return vec![AlleleChange::Indel { start: low.pos.saturating_sub(1), net, bases: vec![] }];
        }
    }
    vec![AlleleChange::Structural(BreakendsOrInsertion::Adjacency(ends))]
}

/// How well a called structural variant matches one of the truth; the best match first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StructuralMatchLevel {
    /// Both breakends match with their orientations, or position and length of an insertion match. Only the position
    /// counts if a length is unknown or one of both is a single breakend.
    SameNotation,
    /// Both breakends match, but not their orientations.
    OtherOrientation,
    /// The truth has a duplication or dispersed copy and the call an insertion, or the reverse; position and length
    /// match.
    AsInsertion,
}

/// Returns the best match between any effect of a structural variant of the truth and any effect of a call; `None`
/// without a match.
pub(super) fn compute_structural_match_level(
    truth: &[BreakendsOrInsertion],
    call: &[BreakendsOrInsertion],
) -> Option<StructuralMatchLevel> {
    let direct = truth.iter().flat_map(|t| call.iter().filter_map(move |c| match_shapes(t, c))).min();
    direct.or_else(|| {
        let with_insertions =
            |shapes: &[BreakendsOrInsertion]| [shapes, equivalent_insertions(shapes).as_slice()].concat();
        let (truth, call) = (with_insertions(truth), with_insertions(call));
        let only_insertions = |s: &&BreakendsOrInsertion| !matches!(s, BreakendsOrInsertion::Adjacency(_));
        let any = truth
            .iter()
            .filter(only_insertions)
            .any(|t| call.iter().filter(only_insertions).any(|c| match_shapes(t, c).is_some()));
        any.then_some(StructuralMatchLevel::AsInsertion)
    })
}

fn match_shapes(truth: &BreakendsOrInsertion, call: &BreakendsOrInsertion) -> Option<StructuralMatchLevel> {
    match (truth, call) {
        (BreakendsOrInsertion::Adjacency([a, b]), BreakendsOrInsertion::Adjacency([c, d])) => {
            let straight = a.is_near(c) && b.is_near(d);
            let crossed = a.is_near(d) && b.is_near(c);
            let alike =
                (straight && a.side == c.side && b.side == d.side) || (crossed && a.side == d.side && b.side == c.side);
            (straight || crossed).then_some(if alike {
                StructuralMatchLevel::SameNotation
            } else {
                StructuralMatchLevel::OtherOrientation
            })
        }
        (
            BreakendsOrInsertion::Insertion { chrom, pos, length },
            BreakendsOrInsertion::Insertion { chrom: other_chrom, pos: other_pos, length: other_length },
        ) => {
            let lengths_agree = match (length, other_length) {
                (Some(n), Some(m)) => n.abs_diff(*m) as f64 <= INSERTION_LENGTH_TOLERANCE * *n.max(m) as f64,
                _ => true,
            };
            let near = chrom == other_chrom && pos.abs_diff(*other_pos) <= MAX_MATCHING_BREAKEND_DISTANCE_BP;
            (near && lengths_agree).then_some(StructuralMatchLevel::SameNotation)
        }
        (BreakendsOrInsertion::Insertion { chrom, pos, .. }, BreakendsOrInsertion::SingleBreakend(end))
        | (BreakendsOrInsertion::SingleBreakend(end), BreakendsOrInsertion::Insertion { chrom, pos, .. }) => {
            let near = *chrom == end.chrom && pos.abs_diff(end.pos) <= MAX_MATCHING_BREAKEND_DISTANCE_BP;
            near.then_some(StructuralMatchLevel::SameNotation)
        }
        _ => None,
    }
}

/// Returns the insertions that have the same effect as the tandem duplications and dispersed copies among `shapes`.
fn equivalent_insertions(shapes: &[BreakendsOrInsertion]) -> Vec<BreakendsOrInsertion> {
    let pairs: Vec<&[AdjacencyEnd; 2]> = shapes
        .iter()
        .filter_map(|s| if let BreakendsOrInsertion::Adjacency(ends) = s { Some(ends) } else { None })
        .collect();
    let mut found = vec![];
    let mut insertion = |at: &AdjacencyEnd, length: usize| {
        let pos = if at.side == BreakendSide::Left { at.pos } else { at.pos.saturating_sub(1) };
        found.push(BreakendsOrInsertion::Insertion { chrom: at.chrom.clone(), pos, length: Some(length) });
    };
    for [a, b] in &pairs {
        for (low, high) in [(a, b), (b, a)] {
            if keeps_sequence_between(low, high) {
                let length = high.pos + 1 - low.pos;
                insertion(low, length);
                insertion(high, length);
            }
        }
    }
    // A dispersed copy: two adjacencies that leave one position and return to it.
    for (i, first) in pairs.iter().enumerate() {
        for second in &pairs[i + 1..] {
            for (x, far) in [(0, 1), (1, 0)] {
                for (y, far_too) in [(0, 1), (1, 0)] {
                    let (here, back) = (&first[x], &second[y]);
                    let (there, from) = (&first[far], &second[far_too]);
                    if !here.is_near(back) || here.side == back.side {
                        continue;
                    }
                    for (low, high) in [(there, from), (from, there)] {
                        if keeps_sequence_between(low, high) {
                            insertion(here, high.pos + 1 - low.pos);
                        }
                    }
                }
            }
        }
    }
    found
}

/// Returns whether two ends face each other, so that both keep the sequence between them.
fn keeps_sequence_between(low: &AdjacencyEnd, high: &AdjacencyEnd) -> bool {
    low.chrom == high.chrom && low.side == BreakendSide::Right && high.side == BreakendSide::Left && low.pos <= high.pos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;

    fn shapes(lines: &str) -> Vec<BreakendsOrInsertion> {
        let structural = |change| if let AlleleChange::Structural(shape) = change { Some(shape) } else { None };
        vcf::parse_test_records(lines)
            .iter()
            .flat_map(|r| parse_allele_changes(r, None))
            .filter_map(structural)
            .collect()
    }

    fn pair(a: (&str, usize, BreakendSide), b: (&str, usize, BreakendSide)) -> BreakendsOrInsertion {
        BreakendsOrInsertion::Adjacency([a, b].map(|(chrom, pos, side)| AdjacencyEnd {
            chrom: chrom.into(),
            pos,
            side,
        }))
    }

    #[test]
    fn every_notation_becomes_the_same_adjacency() {
        use BreakendSide::{Left, Right};
        let bases = "ACGTTGCATT".repeat(6);
        let deletion = pair(("a", 100, Left), ("a", 161, Right));
        for line in [
            "a 100 . A <DEL> . PASS END=160;SVLEN=-60",
            "a 100 . A <DEL:ME> . PASS SVLEN=-60",
            "a 100 . A A[a:161[ . PASS SVTYPE=BND",
            "a 100 . A <BND> . PASS CHR2=a;POS2=161;CT=3to5",
            &format!("a 100 . G{bases} G . PASS ."),
        ] {
            assert_eq!(shapes(line), std::slice::from_ref(&deletion), "{line}");
        }
        let duplication = pair(("a", 160, Left), ("a", 101, Right));
        assert_eq!(shapes("a 100 . A <DUP:TANDEM> . PASS END=160"), std::slice::from_ref(&duplication));
        assert_eq!(shapes("a 160 . A A[a:101[ . PASS ."), [duplication]);
        let inversion = [pair(("a", 100, Left), ("a", 160, Left)), pair(("a", 101, Right), ("a", 161, Right))];
        assert_eq!(shapes("a 100 . A <INV> . PASS END=160"), inversion);
        assert_eq!(shapes("a 100 . A A]a:160] . PASS .\na 101 . A [a:161[A . PASS ."), inversion);
        assert_eq!(shapes("a 9 . A ]b:7]A . PASS ."), [pair(("a", 9, Right), ("b", 7, Left))]);
        let insertion = |length| BreakendsOrInsertion::Insertion { chrom: "a".into(), pos: 100, length };
        assert_eq!(shapes(&format!("a 100 . G G{bases} . PASS .")), [insertion(Some(60))]);
        assert_eq!(shapes("a 100 . G <INS> . PASS END=100;SVLEN=60"), [insertion(Some(60))]);
        assert_eq!(shapes("a 100 . G <INS> . PASS END=100"), [insertion(None)]);
        assert_eq!(shapes(&format!("a 100 . G G{bases}[a:101[ . PASS .")), [insertion(Some(60))]);
        assert_eq!(
            shapes("a 100 . G GATTA. . PASS ."),
            [BreakendsOrInsertion::SingleBreakend(AdjacencyEnd { chrom: "a".into(), pos: 100, side: Left })]
        );
    }

    #[test]
    fn small_ones_are_not_structural() {
        let small = |line: &str| parse_allele_changes(&vcf::parse_test_records(line)[0], None);
        let indel = |net, bases: &str| vec![AlleleChange::Indel { start: 100, net, bases: bases.into() }];
        assert_eq!(small("a 100 . GAC G . PASS ."), indel(-2, "AC"));
        assert_eq!(small("a 100 . G <DEL> . PASS END=110"), indel(-10, ""));
        assert_eq!(small("a 100 . G G[a:111[ . PASS ."), indel(-10, ""));
        assert_eq!(small("a 100 . G <INS> . PASS SVLEN=8"), indel(8, ""));
        assert_eq!(small("a 108 . G G[a:101[ . PASS ."), indel(8, ""));
        let snvs = [AlleleChange::Snv { pos: 100, to: b'T' }, AlleleChange::Snv { pos: 102, to: b'A' }];
        assert_eq!(small("a 100 . GCG TCA . PASS ."), snvs);
        assert_eq!(small("a 100 . G <CNV> . PASS END=900"), []);
        // A complex replacement counts the same joined or split: one substitution and one deletion.
        let joined = small("a 100 . TACGG CACG . PASS .");
        let apart = [small("a 100 . T C . PASS ."), small("a 103 . GG G . PASS .")].concat();
        assert_eq!(joined[0], AlleleChange::Snv { pos: 100, to: b'C' });
        assert!(
            matches!((&joined[1], &apart[1]), (AlleleChange::Indel { net: -1, bases, .. }, AlleleChange::Indel { net: -1, bases: other, .. }) if bases == other)
        );
    }

    #[test]
    fn duplications_and_copies_may_be_called_as_insertions() {
        let call = |pos: usize, length: usize| shapes(&format!("a {pos} . G <INS> . PASS SVLEN={length}"));
        let duplication = shapes("a 1000 . A <DUP> . PASS END=1300");
        assert_eq!(
            compute_structural_match_level(&duplication, &call(1010, 290)),
            Some(StructuralMatchLevel::AsInsertion)
        );
        assert_eq!(
            compute_structural_match_level(&duplication, &call(1310, 290)),
            Some(StructuralMatchLevel::AsInsertion)
        );
        assert_eq!(
            compute_structural_match_level(&call(1310, 290), &duplication),
            Some(StructuralMatchLevel::AsInsertion)
        );
        assert_eq!(compute_structural_match_level(&duplication, &call(1150, 300)), None);
        assert_eq!(compute_structural_match_level(&duplication, &call(1000, 200)), None);
        let copy = shapes("a 5000 . A A[b:701[ . PASS .\na 5001 . A ]b:1000]A . PASS .");
        assert_eq!(compute_structural_match_level(&copy, &call(5000, 300)), Some(StructuralMatchLevel::AsInsertion));
        assert_eq!(compute_structural_match_level(&copy, &call(5000, 500)), None);
        let translocation = shapes("a 5000 . A A[b:701[ . PASS .\na 5001 . A ]b:700]A . PASS .");
        assert_eq!(compute_structural_match_level(&translocation, &call(5000, 60)), None);
    }

    #[test]
    fn both_ends_must_be_near() {
        let truth = shapes("a 1000 . A <DEL> . PASS END=3000");
        let call = |line: &str| compute_structural_match_level(&truth, &shapes(line));
        assert_eq!(call("a 1050 . A <DEL> . PASS END=2950"), Some(StructuralMatchLevel::SameNotation));
        assert_eq!(call("a 1051 . A <DEL> . PASS END=3000"), None);
        assert_eq!(call("a 1000 . A <DEL> . PASS END=3060"), None);
        assert_eq!(call("b 1000 . A <DEL> . PASS END=3000"), None);
        assert_eq!(call("a 3001 . A ]a:1000]A . PASS ."), Some(StructuralMatchLevel::SameNotation));
        assert_eq!(call("a 1000 . A A]a:3000] . PASS ."), Some(StructuralMatchLevel::OtherOrientation));
    }
}
