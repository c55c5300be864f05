//! Every notation of a variant as what it does to the sequence: SNVs, indels, adjacencies, insertions.

use super::decompose::parts;
use super::normalise::Allele;
use super::vcf::Record;
use crate::genome::Genome;
use crate::somatic::SHORTEST_SV;
use crate::variant::Side;

/// How far apart two notations of a breakend may be, bp.
pub(crate) const BREAKEND_TOLERANCE: usize = 50;
/// How much two lengths of an insertion may differ, relative to the longer.
const LENGTH_TOLERANCE: f64 = 0.2;

/// One end of an adjacency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Contig.
    pub chrom: String,
    /// The last base that is kept, from 1.
    pub pos: usize,
    /// Where the kept sequence lies.
    pub side: Side,
}

impl End {
    fn near(&self, other: &End) -> bool {
        self.chrom == other.chrom && self.pos.abs_diff(other.pos) <= BREAKEND_TOLERANCE
    }
}

/// What a structural variant does at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Two places become neighbours.
    Pair([End; 2]),
    /// Bases go in right of `pos`.
    Insertion {
        /// Contig.
        chrom: String,
        /// The base left of the insertion, from 1.
        pos: usize,
        /// How many, bp.
        length: Option<usize>,
    },
    /// The sequence breaks off here, and what follows is not said.
    Single(End),
}

/// What one allele of a record does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// One base for another.
    Snv {
        /// From 1.
        pos: usize,
        /// The new base.
        to: u8,
    },
    /// Fewer than 50 bp lost or gained.
    Indel {
        /// The first base changed, from 0, left-aligned.
        start: usize,
        /// Bases gained, negative when lost.
        net: i64,
        /// The bases lost or gained, when they are told.
        bases: Vec<u8>,
    },
    /// 50 bp or more.
    Structural(Shape),
}

/// Everything an allele does; nothing when its notation is not understood.
pub fn changes(record: &Record, genome: Option<&Genome>) -> Vec<Change> {
    let alternate = record.alternate.as_str();
    if let Some(kind) = alternate.strip_prefix('<') {
        let kind = kind.trim_end_matches('>').split(':').next().unwrap_or_default();
        return symbolic(record, kind);
    }
    if alternate.contains(['[', ']']) {
        return breakend(record).into_iter().flat_map(|(ends, inserted)| joined(ends, inserted)).collect();
    }
    if let Some(side) = single(alternate) {
        let end = End { chrom: record.chrom.clone(), pos: record.pos, side };
        return vec![Change::Structural(Shape::Single(end))];
    }
    if !alternate.bytes().all(|b| b.is_ascii_alphabetic()) {
        return vec![];
    }
    sequence(record, genome)
}

/// `t.` and `.t`: single breakends.
fn single(alternate: &str) -> Option<Side> {
    match (alternate.starts_with('.'), alternate.ends_with('.')) {
        (false, true) => Some(Side::Left),
        (true, false) => Some(Side::Right),
        _ => None,
    }
}

fn sequence(record: &Record, genome: Option<&Genome>) -> Vec<Change> {
    let alternate = record.alternate.to_ascii_uppercase();
    let mut allele = Allele::new(record.pos, record.reference.as_bytes(), alternate.as_bytes());
    let contig = genome.and_then(|g| g.names.iter().position(|n| *n == record.chrom).map(|i| &g.seqs[i]));
    if let Some(seq) = contig {
        allele = allele.left_align(seq);
    }
    let aligned = |part: Allele| contig.map_or_else(|| part.clone(), |seq| part.clone().left_align(seq));
    match parts(&allele) {
        Some(parts) => parts.into_iter().flat_map(|part| simple(&record.chrom, aligned(part))).collect(),
        None => replaced(&record.chrom, &allele),
    }
}

/// What one substitution, insertion or deletion does.
fn simple(chrom: &str, allele: Allele) -> Vec<Change> {
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    if !allele.is_gap() {
        return vec![Change::Snv { pos: allele.start + 1, to: allele.added[0] }];
    }
    if lost.max(gained) >= SHORTEST_SV {
        return replaced(chrom, &allele);
    }
    let net = allele.net();
    let bases = if net < 0 { allele.removed } else { allele.added };
    if net == 0 { vec![] } else { vec![Change::Indel { start: allele.start, net, bases }] }
}

/// Bases for others that have nothing in common: what counts are the ends of many that are lost, and the length.
fn replaced(chrom: &str, allele: &Allele) -> Vec<Change> {
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    let end = |pos, side| End { chrom: chrom.to_owned(), pos, side };
    let mut found = vec![];
    if lost >= SHORTEST_SV {
        let ends = [end(allele.start, Side::Left), end(allele.start + lost + 1, Side::Right)];
        found.push(Change::Structural(Shape::Pair(ends)));
    }
    if gained >= lost + SHORTEST_SV {
        let length = Some(gained - lost);
        found.push(Change::Structural(Shape::Insertion {
            chrom: chrom.to_owned(),
            pos: allele.start,
            length,
        }));
    }
    if found.is_empty() {
        found.push(Change::Indel { start: allele.start, net: allele.net(), bases: vec![] });
    }
    found
}

fn symbolic(record: &Record, kind: &str) -> Vec<Change> {
    let chrom = || record.chrom.clone();
    let end = |pos, side| End { chrom: chrom(), pos, side };
    let length = record.length("SVLEN").filter(|&n| n > 0);
    let last = record.length("END").filter(|&e| e > record.pos).or(length.map(|n| record.pos + n));
    let indel =
        |n: usize, sign: i64| Change::Indel { start: record.pos, net: sign * n as i64, bases: vec![] };
    let pair = |a, b| Change::Structural(Shape::Pair([a, b]));
    match (kind, last) {
        ("DEL", Some(last)) if last - record.pos < SHORTEST_SV => vec![indel(last - record.pos, -1)],
        ("DEL", Some(last)) => vec![pair(end(record.pos, Side::Left), end(last + 1, Side::Right))],
        ("DUP", Some(last)) if last - record.pos < SHORTEST_SV => vec![indel(last - record.pos, 1)],
        ("DUP", Some(last)) => vec![pair(end(last, Side::Left), end(record.pos + 1, Side::Right))],
        ("INV", Some(last)) => vec![
            pair(end(record.pos, Side::Left), end(last, Side::Left)),
            pair(end(record.pos + 1, Side::Right), end(last + 1, Side::Right)),
        ],
        ("INS", _) => match length {
            Some(n) if n < SHORTEST_SV => vec![indel(n, 1)],
            _ => vec![Change::Structural(Shape::Insertion { chrom: chrom(), pos: record.pos, length })],
        },
        ("BND" | "TRA", _) => {
            elsewhere(record).map(|ends| pair(ends[0].clone(), ends[1].clone())).into_iter().collect()
        }
        _ => vec![],
    }
}

/// `<BND>` with CHR2, and POS2 or END, and CT (`3to5` …) when there is one.
fn elsewhere(record: &Record) -> Option<[End; 2]> {
    let chrom = record.info.get("CHR2")?.clone();
    let pos = record.length("POS2").or_else(|| record.length("END"))?;
    let sides = record.info.get("CT").and_then(|ct| ct.split_once("to")).unwrap_or(("3", "5"));
    let side = |s: &str| if s == "3" { Side::Left } else { Side::Right };
    let here = End { chrom: record.chrom.clone(), pos: record.pos, side: side(sides.0) };
    Some([here, End { chrom, pos, side: side(sides.1) }])
}

/// The ends of `t[p[`, `t]p]`, `]p]t` and `[p[t` (VCF 4.2, § 5.4), and how many bases are put in between.
fn breakend(record: &Record) -> Option<([End; 2], usize)> {
    let alternate = record.alternate.as_str();
    let open = alternate.find(['[', ']'])?;
    let close = open + 1 + alternate[open + 1..].find(['[', ']'])?;
    let (chrom, pos) = alternate[open + 1..close].rsplit_once(':')?;
    let there = if alternate.as_bytes()[open] == b']' { Side::Left } else { Side::Right };
    let here = if open > 0 { Side::Left } else { Side::Right };
    let bases = alternate.len() - (close + 1 - open);
    let here = End { chrom: record.chrom.clone(), pos: record.pos, side: here };
    // "<ctg1>" is the notation for contigs of an assembly file.
    let chrom = chrom.trim_matches(['<', '>']).to_owned();
    Some(([here, End { chrom, pos: pos.parse().ok()?, side: there }], bases.saturating_sub(1)))
}

/// An adjacency may be no more than an indel, or an insertion.
fn joined(ends: [End; 2], inserted: usize) -> Vec<Change> {
    if ends[0].chrom == ends[1].chrom {
        let (low, high) =
            if ends[0].pos <= ends[1].pos { (&ends[0], &ends[1]) } else { (&ends[1], &ends[0]) };
        let chrom = low.chrom.clone();
        let span = high.pos - low.pos;
        if (low.side, high.side) == (Side::Left, Side::Right) && span > 0 && span <= SHORTEST_SV {
            let net = inserted as i64 - (span as i64 - 1);
            if net >= SHORTEST_SV as i64 {
                let length = Some(net as usize);
                return vec![Change::Structural(Shape::Insertion { chrom, pos: low.pos, length })];
            }
            return vec![Change::Indel { start: low.pos, net, bases: vec![] }];
        }
        if (low.side, high.side) == (Side::Right, Side::Left) && span + 1 + inserted < SHORTEST_SV {
            let net = (span + 1 + inserted) as i64;
            return vec![Change::Indel { start: low.pos.saturating_sub(1), net, bases: vec![] }];
        }
    }
    vec![Change::Structural(Shape::Pair(ends))]
}

/// How a call shows a variant of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// Both breakends, or position and length of an insertion.
    Same,
    /// Both breakends, but the other way round.
    OtherOrientation,
    /// One says duplication or copy, the other insertion; place and length agree.
    AsInsertion,
}

/// Whether two structural variants are the same, by the best of their shapes.
pub fn compare(truth: &[Shape], call: &[Shape]) -> Option<Match> {
    let direct = truth.iter().flat_map(|t| call.iter().filter_map(move |c| same(t, c))).min();
    direct.or_else(|| {
        let with_insertions = |shapes: &[Shape]| [shapes, insertions(shapes).as_slice()].concat();
        let (truth, call) = (with_insertions(truth), with_insertions(call));
        let only_insertions = |s: &&Shape| !matches!(s, Shape::Pair(_));
        let any = truth
            .iter()
            .filter(only_insertions)
            .any(|t| call.iter().filter(only_insertions).any(|c| same(t, c).is_some()));
        any.then_some(Match::AsInsertion)
    })
}

fn same(truth: &Shape, call: &Shape) -> Option<Match> {
    match (truth, call) {
        (Shape::Pair([a, b]), Shape::Pair([c, d])) => {
            let straight = a.near(c) && b.near(d);
            let crossed = a.near(d) && b.near(c);
            let alike = (straight && a.side == c.side && b.side == d.side)
                || (crossed && a.side == d.side && b.side == c.side);
            (straight || crossed).then_some(if alike { Match::Same } else { Match::OtherOrientation })
        }
        (
            Shape::Insertion { chrom, pos, length },
            Shape::Insertion { chrom: other_chrom, pos: other_pos, length: other_length },
        ) => {
            let lengths_agree = match (length, other_length) {
                (Some(n), Some(m)) => n.abs_diff(*m) as f64 <= LENGTH_TOLERANCE * *n.max(m) as f64,
                _ => true,
            };
            let near = chrom == other_chrom && pos.abs_diff(*other_pos) <= BREAKEND_TOLERANCE;
            (near && lengths_agree).then_some(Match::Same)
        }
        (Shape::Insertion { chrom, pos, .. }, Shape::Single(end))
        | (Shape::Single(end), Shape::Insertion { chrom, pos, .. }) => {
            let near = *chrom == end.chrom && pos.abs_diff(end.pos) <= BREAKEND_TOLERANCE;
            near.then_some(Match::Same)
        }
        _ => None,
    }
}

/// The insertions that duplications and dispersed copies amount to.
fn insertions(shapes: &[Shape]) -> Vec<Shape> {
    let pairs: Vec<&[End; 2]> =
        shapes.iter().filter_map(|s| if let Shape::Pair(ends) = s { Some(ends) } else { None }).collect();
    let mut found = vec![];
    let mut insertion = |at: &End, length: usize| {
        let pos = if at.side == Side::Left { at.pos } else { at.pos.saturating_sub(1) };
        found.push(Shape::Insertion { chrom: at.chrom.clone(), pos, length: Some(length) });
    };
    for [a, b] in &pairs {
        for (low, high) in [(a, b), (b, a)] {
            if encloses(low, high) {
                let length = high.pos + 1 - low.pos;
                insertion(low, length);
                insertion(high, length);
            }
        }
    }
    // A copy put in elsewhere: two adjacencies that leave one place and come back to it.
    for (i, first) in pairs.iter().enumerate() {
        for second in &pairs[i + 1..] {
            for (x, far) in [(0, 1), (1, 0)] {
                for (y, far_too) in [(0, 1), (1, 0)] {
                    let (here, back) = (&first[x], &second[y]);
                    let (there, from) = (&first[far], &second[far_too]);
                    if !here.near(back) || here.side == back.side {
                        continue;
                    }
                    for (low, high) in [(there, from), (from, there)] {
                        if encloses(low, high) {
                            insertion(here, high.pos + 1 - low.pos);
                        }
                    }
                }
            }
        }
    }
    found
}

/// Whether the sequence kept at both ends is that between them.
fn encloses(low: &End, high: &End) -> bool {
    low.chrom == high.chrom && low.side == Side::Right && high.side == Side::Left && low.pos <= high.pos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;

    fn shapes(lines: &str) -> Vec<Shape> {
        let structural = |change| if let Change::Structural(shape) = change { Some(shape) } else { None };
        vcf::records(lines).iter().flat_map(|r| changes(r, None)).filter_map(structural).collect()
    }

    fn pair(a: (&str, usize, Side), b: (&str, usize, Side)) -> Shape {
        Shape::Pair([a, b].map(|(chrom, pos, side)| End { chrom: chrom.into(), pos, side }))
    }

    #[test]
    fn every_notation_becomes_the_same_adjacency() {
        use Side::{Left, Right};
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
        let inversion =
            [pair(("a", 100, Left), ("a", 160, Left)), pair(("a", 101, Right), ("a", 161, Right))];
        assert_eq!(shapes("a 100 . A <INV> . PASS END=160"), inversion);
        assert_eq!(shapes("a 100 . A A]a:160] . PASS .\na 101 . A [a:161[A . PASS ."), inversion);
        assert_eq!(shapes("a 9 . A ]b:7]A . PASS ."), [pair(("a", 9, Right), ("b", 7, Left))]);
        let insertion = |length| Shape::Insertion { chrom: "a".into(), pos: 100, length };
        assert_eq!(shapes(&format!("a 100 . G G{bases} . PASS .")), [insertion(Some(60))]);
        assert_eq!(shapes("a 100 . G <INS> . PASS END=100;SVLEN=60"), [insertion(Some(60))]);
        assert_eq!(shapes("a 100 . G <INS> . PASS END=100"), [insertion(None)]);
        assert_eq!(shapes(&format!("a 100 . G G{bases}[a:101[ . PASS .")), [insertion(Some(60))]);
        assert_eq!(
            shapes("a 100 . G GATTA. . PASS ."),
            [Shape::Single(End { chrom: "a".into(), pos: 100, side: Left })]
        );
    }

    #[test]
    fn small_ones_are_not_structural() {
        let small = |line: &str| changes(&vcf::records(line)[0], None);
        let indel = |net, bases: &str| vec![Change::Indel { start: 100, net, bases: bases.into() }];
        assert_eq!(small("a 100 . GAC G . PASS ."), indel(-2, "AC"));
        assert_eq!(small("a 100 . G <DEL> . PASS END=110"), indel(-10, ""));
        assert_eq!(small("a 100 . G G[a:111[ . PASS ."), indel(-10, ""));
        assert_eq!(small("a 100 . G <INS> . PASS SVLEN=8"), indel(8, ""));
        assert_eq!(small("a 108 . G G[a:101[ . PASS ."), indel(8, ""));
        let snvs = [Change::Snv { pos: 100, to: b'T' }, Change::Snv { pos: 102, to: b'A' }];
        assert_eq!(small("a 100 . GCG TCA . PASS ."), snvs);
        assert_eq!(small("a 100 . G <CNV> . PASS END=900"), []);
        // Some bases for fewer others: a substitution and a deletion, however they are joined.
        let joined = small("a 100 . TACGG CACG . PASS .");
        let apart = [small("a 100 . T C . PASS ."), small("a 103 . GG G . PASS .")].concat();
        assert_eq!(joined[0], Change::Snv { pos: 100, to: b'C' });
        assert!(
            matches!((&joined[1], &apart[1]), (Change::Indel { net: -1, bases, .. }, Change::Indel { net: -1, bases: other, .. }) if bases == other)
        );
    }

    #[test]
    fn duplications_and_copies_may_be_called_as_insertions() {
        let call = |pos: usize, length: usize| shapes(&format!("a {pos} . G <INS> . PASS SVLEN={length}"));
        let duplication = shapes("a 1000 . A <DUP> . PASS END=1300");
        assert_eq!(compare(&duplication, &call(1010, 290)), Some(Match::AsInsertion));
        assert_eq!(compare(&duplication, &call(1310, 290)), Some(Match::AsInsertion));
        assert_eq!(compare(&call(1310, 290), &duplication), Some(Match::AsInsertion));
        assert_eq!(compare(&duplication, &call(1150, 300)), None);
        assert_eq!(compare(&duplication, &call(1000, 200)), None);
        let copy = shapes("a 5000 . A A[b:701[ . PASS .\na 5001 . A ]b:1000]A . PASS .");
        assert_eq!(compare(&copy, &call(5000, 300)), Some(Match::AsInsertion));
        assert_eq!(compare(&copy, &call(5000, 500)), None);
        let translocation = shapes("a 5000 . A A[b:701[ . PASS .\na 5001 . A ]b:700]A . PASS .");
        assert_eq!(compare(&translocation, &call(5000, 60)), None);
    }

    #[test]
    fn both_ends_must_be_near() {
        let truth = shapes("a 1000 . A <DEL> . PASS END=3000");
        let call = |line: &str| compare(&truth, &shapes(line));
        assert_eq!(call("a 1050 . A <DEL> . PASS END=2950"), Some(Match::Same));
        assert_eq!(call("a 1051 . A <DEL> . PASS END=3000"), None);
        assert_eq!(call("a 1000 . A <DEL> . PASS END=3060"), None);
        assert_eq!(call("b 1000 . A <DEL> . PASS END=3000"), None);
        assert_eq!(call("a 3001 . A ]a:1000]A . PASS ."), Some(Match::Same));
        assert_eq!(call("a 1000 . A A]a:3000] . PASS ."), Some(Match::OtherOrientation));
    }
}
