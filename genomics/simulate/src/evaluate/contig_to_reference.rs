//! Converts calls on assembled contigs (reference-free calls) to positions on the reference, by sequence.
//!
//! A contig is mapped by its 31-mers that occur once in the reference (anchors): to the reference sequence and strand
//! that most of its anchors have. A record is mapped by the nearest anchor on its left or right at which its REF equals
//! the reference; REF of symbolic alleles and breakends is not compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use genuma_reads::dna::{encode_base, reverse_complement};

use super::vcf::VcfRecord;
use crate::genome::Genome;

/// Length of an anchor k-mer, bp.
const ANCHOR_BP: usize = 31;

/// A k-mer of a contig that occurs once in the reference, with both positions.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    /// Start of the k-mer in the contig, 0-based.
    contig_start: usize,
    /// Index of the reference sequence, and start of the k-mer in it, 0-based.
    reference_start: (usize, usize),
    /// Whether contig and reference are on opposite strands.
    reverse: bool,
}

/// Whether a k-mer occurs not at all, once or more often in the reference.
#[derive(Debug, Clone, Copy)]
enum KmerOccurrence {
    Absent,
    /// Once: index of the reference sequence, start in it, and whether the canonical form of the k-mer is on the
    /// reverse strand.
    Unique(usize, usize, bool),
    Repeated,
}

/// Converts contig positions to reference positions, by k-mers that occur once in the reference.
pub(super) struct ContigToReferenceMapper<'a> {
    genome: &'a Genome,
    /// For each contig: its anchors, sorted by position in the contig. Only anchors on the reference sequence and
    /// strand that most anchors have are kept.
    anchors: BTreeMap<&'a str, Vec<Anchor>>,
}

/// Iterates over all k-mers of a sequence without N: start, canonical k-mer at 2 bits a base, and whether the canonical
/// form is the reverse complement.
fn anchor_kmers(seq: &[u8]) -> impl Iterator<Item = (usize, u64, bool)> + '_ {
    let (mut forward, mut backward, mut known) = (0u64, 0u64, 0);
    const MASK: u64 = (1 << (2 * ANCHOR_BP)) - 1;
    seq.iter().enumerate().filter_map(move |(i, &base)| {
        let two = u64::from(encode_base(base));
        known = if two < 4 { known + 1 } else { 0 };
        forward = (forward << 2 | two & 3) & MASK;
        backward = backward >> 2 | (3 - (two & 3)) << (2 * (ANCHOR_BP - 1));
        (known >= ANCHOR_BP).then(|| (i + 1 - ANCHOR_BP, forward.min(backward), backward < forward))
    })
}

impl<'a> ContigToReferenceMapper<'a> {
    /// Creates a mapper for those contigs whose names are in `named`: finds their anchors in the reference `genome`.
    pub(super) fn find_anchors_of_contigs(
        contigs: &'a Genome,
        named: &BTreeSet<&str>,
        genome: &'a Genome,
    ) -> ContigToReferenceMapper<'a> {
        let wanted = || contigs.names.iter().zip(&contigs.seqs).filter(|(name, _)| named.contains(&***name));
        // All k-mers of the contigs.
        let mut seen: HashMap<u64, KmerOccurrence> = HashMap::new();
        for (_, word, _) in wanted().flat_map(|(_, seq)| anchor_kmers(seq)) {
            seen.insert(word, KmerOccurrence::Absent);
        }
        for (chrom, seq) in genome.seqs.iter().enumerate() {
            for (at, word, turned) in anchor_kmers(seq) {
                if let Some(place) = seen.get_mut(&word) {
                    *place = match place {
                        KmerOccurrence::Absent => KmerOccurrence::Unique(chrom, at, turned),
                        KmerOccurrence::Unique(..) | KmerOccurrence::Repeated => KmerOccurrence::Repeated,
                    };
                }
            }
        }
        let anchors_of = |seq: &[u8]| {
            let anchor = |(at, word, turned): (usize, u64, bool)| {
                let KmerOccurrence::Unique(chrom, pos, other) = seen[&word] else { return None };
                Some(Anchor { contig_start: at, reference_start: (chrom, pos), reverse: turned != other })
            };
            let mut anchors: Vec<Anchor> = anchor_kmers(seq).filter_map(anchor).collect();
            let mut counts: BTreeMap<(usize, bool), usize> = BTreeMap::new();
            anchors.iter().for_each(|a| *counts.entry((a.reference_start.0, a.reverse)).or_default() += 1);
            let most = counts.into_iter().max_by_key(|&(_, n)| n).map(|(of, _)| of);
            anchors.retain(|a| Some((a.reference_start.0, a.reverse)) == most);
            anchors
        };
        ContigToReferenceMapper {
            genome,
            anchors: wanted().map(|(name, seq)| (name.as_str(), anchors_of(seq))).collect(),
        }
    }

    /// Returns the last anchor that ends at or before a contig position and the anchor after it, the nearer one first.
    fn adjacent_anchors(&self, contig: &str, at: usize) -> Vec<Anchor> {
        let Some(anchors) = self.anchors.get(contig) else { return Vec::new() };
        let next = anchors.partition_point(|a| a.contig_start + ANCHOR_BP <= at + 1);
        let mut both: Vec<Anchor> =
            next.checked_sub(1).into_iter().chain([next]).filter_map(|i| anchors.get(i).copied()).collect();
        both.sort_by_key(|a| at.abs_diff(a.contig_start + ANCHOR_BP / 2));
        both
    }

    /// Returns the reference position that corresponds to a contig position (both 0-based), assuming that no indel is
    /// between it and the anchor; `None` beyond the ends of the reference sequence.
    fn reference_position(&self, anchor: &Anchor, at: usize) -> Option<usize> {
        let pos = anchor.reference_start.1 as i64;
        let along = at as i64 - anchor.contig_start as i64;
        let pos = if anchor.reverse { pos + ANCHOR_BP as i64 - 1 - along } else { pos + along };
        usize::try_from(pos).ok().filter(|&pos| pos < self.genome.seqs[anchor.reference_start.0].len())
    }

    fn reference_name(&self, anchor: &Anchor) -> String {
        self.genome.names[anchor.reference_start.0].clone()
    }

    /// Converts a record to reference coordinates. Returns `None` if its contig has no anchors, or if the reference
    /// differs from REF of a record whose ALT has bases.
    pub(super) fn map_record_to_reference(&self, record: &VcfRecord) -> Option<VcfRecord> {
        if record.alternate.starts_with('<') {
            return self.map_symbolic(record);
        }
        if record.alternate.contains(['[', ']']) {
            return self.map_breakend(record);
        }
        let (at, bases) = (record.pos.checked_sub(1)?, record.reference.len());
        self.adjacent_anchors(&record.chrom, at).iter().find_map(|anchor| {
            let start = self.reference_position(anchor, if anchor.reverse { at + bases - 1 } else { at })?;
            let turned = |bases: &str| orient_bases(bases, anchor.reverse);
            let (reference, alternate) = (turned(&record.reference), turned(&record.alternate));
            let there = self.genome.seqs[anchor.reference_start.0].get(start..start + bases)?;
            (there == reference.as_bytes()).then(|| VcfRecord {
                chrom: self.reference_name(anchor),
                pos: start + 1,
                reference,
                alternate,
                ..record.clone()
            })
        })
    }

    fn map_symbolic(&self, record: &VcfRecord) -> Option<VcfRecord> {
        let anchor = *self.adjacent_anchors(&record.chrom, record.pos.checked_sub(1)?).first()?;
        let end = record.info.get("END").and_then(|end| end.parse::<usize>().ok()).unwrap_or(record.pos);
        // POS is the base before the change, END the last changed base.
        let (pos, end) = if end > record.pos {
            let last = *self.adjacent_anchors(&record.chrom, end - 1).first()?;
            let (a, b) = (self.reference_position(&anchor, record.pos)?, self.reference_position(&last, end - 1)?);
            (a.min(b), a.max(b) + 1)
        } else {
            let before = self.reference_position(&anchor, record.pos - 1)? + usize::from(!anchor.reverse);
            (before, before)
        };
        let mut placed = VcfRecord { chrom: self.reference_name(&anchor), pos, ..record.clone() };
        placed.reference = orient_bases(&record.reference, anchor.reverse);
        placed.info.insert("END".to_owned(), end.to_string());
        Some(placed)
    }

    fn map_breakend(&self, record: &VcfRecord) -> Option<VcfRecord> {
        let mut parts = record.alternate.split(['[', ']']);
        let (before, place, after) = (parts.next()?, parts.next()?, parts.next()?);
        let (chrom, pos) = place.rsplit_once(':')?;
        let lies = |chrom: &str, pos: usize| {
            let anchor = *self.adjacent_anchors(chrom, pos.checked_sub(1)?).first()?;
            Some((anchor, self.reference_position(&anchor, pos - 1)? + 1))
        };
        let (here, pos_here) = lies(&record.chrom, record.pos)?;
        let (there, pos_there) = lies(chrom, pos.parse().ok()?)?;
        let bracket = if record.alternate.contains('[') != there.reverse { '[' } else { ']' };
        let [before, after] = match here.reverse {
            false => [before.to_owned(), after.to_owned()],
            true => [after, before].map(|bases| orient_bases(bases, true)),
        };
        let alternate = format!("{before}{bracket}{}:{pos_there}{bracket}{after}", self.reference_name(&there));
        let reference = orient_bases(&record.reference, here.reverse);
        Some(VcfRecord { chrom: self.reference_name(&here), pos: pos_here, reference, alternate, ..record.clone() })
    }
}

fn orient_bases(bases: &str, reverse: bool) -> String {
    if !reverse {
        return bases.to_owned();
    }
    String::from_utf8_lossy(&reverse_complement(bases.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;
    use crate::rng::Rng;

    fn genome() -> Genome {
        let mut rng = Rng::from_seed_and_labels(5, &[]);
        let mut random = |n: usize| (0..n).map(|_| b"ACGT"[rng.draw_below(4)]).collect::<Vec<u8>>();
        Genome::from_sequences(vec!["a".into(), "b".into()], vec![random(5000), random(5000)])
    }

    /// Contigs: a forward from 1000, b reverse from 2000 to 2999, and one that is not in the reference.
    fn contigs(genome: &Genome) -> Genome {
        let cut = |i: usize| genome.seqs[i][[1000, 2000][i]..][..1000].to_vec();
        let strange = b"ACGTTGCAACTTGGCATCGATTTACGAC".repeat(4);
        Genome::from_sequences(
            vec!["n1".into(), "n2".into(), "n3".into()],
            vec![cut(0), reverse_complement(&cut(1)), strange],
        )
    }

    #[test]
    fn records_come_to_where_their_contigs_lie() {
        let genome = genome();
        let contigs = contigs(&genome);
        let places =
            ContigToReferenceMapper::find_anchors_of_contigs(&contigs, &BTreeSet::from(["n1", "n2", "n3"]), &genome);
        let place = |line: &str| {
            let record = vcf::parse_test_records(line).remove(0);
            places.map_record_to_reference(&record).map(|r| {
                let end = r.info.get("END").map_or(String::new(), |end| format!(" {end}"));
                format!("{} {} {} {}{end}", r.chrom, r.pos, r.reference, r.alternate)
            })
        };
        let base = |i: usize, at: usize| char::from(genome.seqs[i][at - 1]);
        let turn = |base: char| char::from(reverse_complement(&[base as u8])[0]);
        let x = base(0, 1500);
        // Base 500 of n1 is base 1500 of a; base 400 of n2 is base 2601 of b.
        let to = if x == 'A' { 'C' } else { 'A' };
        assert_eq!(place(&format!("n1 500 . {x} {to} . PASS .")), Some(format!("a 1500 {x} {to}")));
        let (y, z) = (base(1, 2601), base(1, 2600));
        let deletion = format!("n2 400 . {}{} {} . PASS .", turn(y), turn(z), turn(y));
        assert_eq!(place(&deletion), Some(format!("b 2600 {z}{y} {y}")));
        assert_eq!(place(&format!("n1 100 x {x} <DEL> . PASS END=300")), Some(format!("a 1100 {x} <DEL> 1300")));
        // Bases 101 to 300 of n2 are 2701 to 2900 of b; an insertion behind base 100 is behind base 2900.
        assert_eq!(place("n2 100 x A <DEL> . PASS END=300"), Some("b 2700 T <DEL> 2900".into()));
        assert_eq!(place("n2 100 x A <INS> . PASS END=100"), Some("b 2900 T <INS> 2900".into()));
        assert_eq!(place("n1 100 x A A[n2:100[ . PASS ."), Some("a 1100 A A]b:2901]".into()));
        assert_eq!(place("n2 100 x A ]n1:100]GA . PASS ."), Some("b 2901 T TC]a:1100]".into()));
        // A contig that is not in the reference, and a record whose REF differs from the reference.
        assert_eq!(place("n3 50 . A C . PASS ."), None);
        assert_eq!(place(&format!("n1 500 . {to} {x} . PASS .")), None);
    }
}
