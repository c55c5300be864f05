//! Calls on contigs of their own, as those made without a reference are, brought to the reference by sequence.
//!
//! A contig lies where most of its 31-mers do that the reference has once, on the strand that they say. A record goes by the
//! nearest of them, left or right, that leaves its REF where the reference reads the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use genuma_reads::dna::{code, revcomp};

use super::vcf::Record;
use crate::genome::Genome;

/// Length of the words that contigs are found by, bases.
const WORD: usize = 31;

/// A word of a contig that the reference has once.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    /// Where it begins in the contig, from 0.
    at: usize,
    /// Index of the reference's sequence, and where it begins there.
    place: (usize, usize),
    /// Whether the other strand has it.
    reverse: bool,
}

/// How often the reference has a word.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Nowhere,
    /// Index of the sequence, where it begins there, and whether the other strand has the lesser form.
    Once(usize, usize, bool),
    Often,
}

/// Where contigs lie in a reference.
pub struct Places<'a> {
    genome: &'a Genome,
    /// By name: words on the sequence and strand that most of them are on, by where they are in the contig.
    anchors: BTreeMap<&'a str, Vec<Anchor>>,
}

/// Every word without N: where it begins, as two bits a base, the lesser of both strands, and whether that is the other one.
fn words(seq: &[u8]) -> impl Iterator<Item = (usize, u64, bool)> + '_ {
    let (mut forward, mut backward, mut known) = (0u64, 0u64, 0);
    const MASK: u64 = (1 << (2 * WORD)) - 1;
    seq.iter().enumerate().filter_map(move |(i, &base)| {
        let two = u64::from(code(base));
        known = if two < 4 { known + 1 } else { 0 };
        forward = (forward << 2 | two & 3) & MASK;
        backward = backward >> 2 | (3 - (two & 3)) << (2 * (WORD - 1));
        (known >= WORD).then(|| (i + 1 - WORD, forward.min(backward), backward < forward))
    })
}

impl<'a> Places<'a> {
    /// Finds those contigs in `genome` that are `named`.
    pub fn find(contigs: &'a Genome, named: &BTreeSet<&str>, genome: &'a Genome) -> Places<'a> {
        let wanted = || contigs.names.iter().zip(&contigs.seqs).filter(|(name, _)| named.contains(&***name));
        // The words of the contigs.
        let mut seen: HashMap<u64, Seen> = HashMap::new();
        for (_, word, _) in wanted().flat_map(|(_, seq)| words(seq)) {
            seen.insert(word, Seen::Nowhere);
        }
        for (chrom, seq) in genome.seqs.iter().enumerate() {
            for (at, word, turned) in words(seq) {
                if let Some(place) = seen.get_mut(&word) {
                    *place = match place {
                        Seen::Nowhere => Seen::Once(chrom, at, turned),
                        Seen::Once(..) | Seen::Often => Seen::Often,
                    };
                }
            }
        }
        let anchors_of = |seq: &[u8]| {
            let anchor = |(at, word, turned): (usize, u64, bool)| {
                let Seen::Once(chrom, pos, other) = seen[&word] else { return None };
                Some(Anchor { at, place: (chrom, pos), reverse: turned != other })
            };
            let mut anchors: Vec<Anchor> = words(seq).filter_map(anchor).collect();
            let mut counts: BTreeMap<(usize, bool), usize> = BTreeMap::new();
            anchors.iter().for_each(|a| *counts.entry((a.place.0, a.reverse)).or_default() += 1);
            let most = counts.into_iter().max_by_key(|&(_, n)| n).map(|(of, _)| of);
            anchors.retain(|a| Some((a.place.0, a.reverse)) == most);
            anchors
        };
        Places { genome, anchors: wanted().map(|(name, seq)| (name.as_str(), anchors_of(seq))).collect() }
    }

    /// The words beside a position of a contig: the last that begins at it or before, and the next.
    fn beside(&self, contig: &str, at: usize) -> Vec<Anchor> {
        let Some(anchors) = self.anchors.get(contig) else { return Vec::new() };
        let next = anchors.partition_point(|a| a.at + WORD <= at + 1);
        let mut both: Vec<Anchor> =
            next.checked_sub(1).into_iter().chain([next]).filter_map(|i| anchors.get(i).copied()).collect();
        both.sort_by_key(|a| at.abs_diff(a.at + WORD / 2));
        both
    }

    /// Where a base of a contig, from 0, lies by an anchor: from 0.
    fn of(&self, anchor: &Anchor, at: usize) -> Option<usize> {
        let pos = anchor.place.1 as i64;
        let along = at as i64 - anchor.at as i64;
        let pos = if anchor.reverse { pos + WORD as i64 - 1 - along } else { pos + along };
        usize::try_from(pos).ok().filter(|&pos| pos < self.genome.seqs[anchor.place.0].len())
    }

    fn name(&self, anchor: &Anchor) -> String {
        self.genome.names[anchor.place.0].clone()
    }

    /// The record as it reads in the reference; `None` where its contig is not found there, or the reference reads otherwise.
    pub fn place(&self, record: &Record) -> Option<Record> {
        if record.alternate.starts_with('<') {
            return self.symbolic(record);
        }
        if record.alternate.contains(['[', ']']) {
            return self.breakend(record);
        }
        let (at, bases) = (record.pos.checked_sub(1)?, record.reference.len());
        self.beside(&record.chrom, at).iter().find_map(|anchor| {
            let start = self.of(anchor, if anchor.reverse { at + bases - 1 } else { at })?;
            let turned = |bases: &str| strand(bases, anchor.reverse);
            let (reference, alternate) = (turned(&record.reference), turned(&record.alternate));
            let there = self.genome.seqs[anchor.place.0].get(start..start + bases)?;
            (there == reference.as_bytes()).then(|| Record {
                chrom: self.name(anchor),
                pos: start + 1,
                reference,
                alternate,
                ..record.clone()
            })
        })
    }

    fn symbolic(&self, record: &Record) -> Option<Record> {
        let anchor = *self.beside(&record.chrom, record.pos.checked_sub(1)?).first()?;
        let end = record.info.get("END").and_then(|end| end.parse::<usize>().ok()).unwrap_or(record.pos);
        // POS is the base before what is changed, END its last.
        let (pos, end) = if end > record.pos {
            let last = *self.beside(&record.chrom, end - 1).first()?;
            let (a, b) = (self.of(&anchor, record.pos)?, self.of(&last, end - 1)?);
            (a.min(b), a.max(b) + 1)
        } else {
            let before = self.of(&anchor, record.pos - 1)? + usize::from(!anchor.reverse);
            (before, before)
        };
        let mut placed = Record { chrom: self.name(&anchor), pos, ..record.clone() };
        placed.reference = strand(&record.reference, anchor.reverse);
        placed.info.insert("END".to_owned(), end.to_string());
        Some(placed)
    }

    fn breakend(&self, record: &Record) -> Option<Record> {
        let mut parts = record.alternate.split(['[', ']']);
        let (before, place, after) = (parts.next()?, parts.next()?, parts.next()?);
        let (chrom, pos) = place.rsplit_once(':')?;
        let lies = |chrom: &str, pos: usize| {
            let anchor = *self.beside(chrom, pos.checked_sub(1)?).first()?;
            Some((anchor, self.of(&anchor, pos - 1)? + 1))
        };
        let (here, pos_here) = lies(&record.chrom, record.pos)?;
        let (there, pos_there) = lies(chrom, pos.parse().ok()?)?;
        let bracket = if record.alternate.contains('[') != there.reverse { '[' } else { ']' };
        let [before, after] = match here.reverse {
            false => [before.to_owned(), after.to_owned()],
            true => [after, before].map(|bases| strand(bases, true)),
        };
        let alternate = format!("{before}{bracket}{}:{pos_there}{bracket}{after}", self.name(&there));
        let reference = strand(&record.reference, here.reverse);
        Some(Record { chrom: self.name(&here), pos: pos_here, reference, alternate, ..record.clone() })
    }
}

fn strand(bases: &str, reverse: bool) -> String {
    if !reverse {
        return bases.to_owned();
    }
    String::from_utf8_lossy(&revcomp(bases.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;
    use crate::rng::Rng;

    fn genome() -> Genome {
        let mut rng = Rng::stream(5, &[]);
        let mut random = |n: usize| (0..n).map(|_| b"ACGT"[rng.below(4)]).collect::<Vec<u8>>();
        Genome::new(vec!["a".into(), "b".into()], vec![random(5000), random(5000)])
    }

    /// Contigs: a forwards from 1000, b backwards from 2000 to 2999, and one from elsewhere.
    fn contigs(genome: &Genome) -> Genome {
        let cut = |i: usize| genome.seqs[i][[1000, 2000][i]..][..1000].to_vec();
        let strange = b"ACGTTGCAACTTGGCATCGATTTACGAC".repeat(4);
        Genome::new(vec!["n1".into(), "n2".into(), "n3".into()], vec![cut(0), revcomp(&cut(1)), strange])
    }

    #[test]
    fn records_come_to_where_their_contigs_lie() {
        let genome = genome();
        let contigs = contigs(&genome);
        let places = Places::find(&contigs, &BTreeSet::from(["n1", "n2", "n3"]), &genome);
        let place = |line: &str| {
            let record = vcf::records(line).remove(0);
            places.place(&record).map(|r| {
                let end = r.info.get("END").map_or(String::new(), |end| format!(" {end}"));
                format!("{} {} {} {}{end}", r.chrom, r.pos, r.reference, r.alternate)
            })
        };
        let base = |i: usize, at: usize| char::from(genome.seqs[i][at - 1]);
        let turn = |base: char| char::from(revcomp(&[base as u8])[0]);
        let x = base(0, 1500);
        // Base 500 of n1 is base 1500 of a; base 400 of n2 is base 2601 of b.
        let to = if x == 'A' { 'C' } else { 'A' };
        assert_eq!(place(&format!("n1 500 . {x} {to} . PASS .")), Some(format!("a 1500 {x} {to}")));
        let (y, z) = (base(1, 2601), base(1, 2600));
        let deletion = format!("n2 400 . {}{} {} . PASS .", turn(y), turn(z), turn(y));
        assert_eq!(place(&deletion), Some(format!("b 2600 {z}{y} {y}")));
        assert_eq!(
            place(&format!("n1 100 x {x} <DEL> . PASS END=300")),
            Some(format!("a 1100 {x} <DEL> 1300"))
        );
        // Bases 101 to 300 of n2 are 2701 to 2900 of b; what goes in behind base 100 does so behind base 2900.
        assert_eq!(place("n2 100 x A <DEL> . PASS END=300"), Some("b 2700 T <DEL> 2900".into()));
        assert_eq!(place("n2 100 x A <INS> . PASS END=100"), Some("b 2900 T <INS> 2900".into()));
        assert_eq!(place("n1 100 x A A[n2:100[ . PASS ."), Some("a 1100 A A]b:2901]".into()));
        assert_eq!(place("n2 100 x A ]n1:100]GA . PASS ."), Some("b 2901 T TC]a:1100]".into()));
        // Nowhere, and where the reference reads otherwise.
        assert_eq!(place("n3 50 . A C . PASS ."), None);
        assert_eq!(place(&format!("n1 500 . {to} {x} . PASS .")), None);
    }
}
