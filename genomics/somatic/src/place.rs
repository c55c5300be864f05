//! Contigs → where they lie on a reference → what differs there → those whose reads are worth looking for.
//!
//! As many contigs go together as memory has room for; of each only what can become a call stays behind. The reference goes past twice for all
//! that go together, however few, so there are few turns.

use std::collections::BTreeSet;

use genuma_align::scan::{Found, Scan};
use genuma_reads::fasta::Reference;
use genuma_work::Meter;

use crate::assemble::Contig;
use crate::compare::{self, Compared};
use crate::ledger::Ledger;
use crate::source;
use crate::worth::Unworthy;

/// What placing works with.
pub struct Placing<'a> {
    /// Where contigs are looked for.
    pub genome: &'a Reference,
    /// Threads, at least 1.
    pub threads: usize,
    /// Bytes for looking, and what is found.
    pub memory: u64,
    /// Whether molecules of the library fold back on themselves.
    pub folds: bool,
    /// Contigs that stay whatever they are like, by number.
    pub asked: &'a BTreeSet<usize>,
    /// Told of the bases of the reference that have gone past.
    pub meter: &'a Meter,
}

/// A contig that was placed.
#[derive(Debug)]
pub struct Placed {
    /// Which of the contigs it was.
    pub number: usize,
    /// Pairs that it was assembled from.
    pub pairs: usize,
    /// What differs.
    pub compared: Compared,
    /// Why its reads are not looked for.
    pub(crate) unworthy: Option<Unworthy>,
}

/// Places all of them; those are given back that are worth it, and those that are `asked` for.
pub fn place(contigs: Vec<Contig>, placing: &Placing<'_>, ledger: &mut Ledger) -> Vec<Placed> {
    let &Placing { genome, threads, memory, folds, asked, meter } = placing;
    let scan = Scan { genome, parts: None, threads, memory, meter };
    let lengths: Vec<usize> = contigs.iter().map(|contig| contig.seq.len()).collect();
    meter.expect_bytes(scan.expected(&lengths));
    let (mut placed, mut left_out) = (Vec::new(), [0; Unworthy::ALL.len()]);
    let (mut nowhere, mut crowded, mut unkept) = (0, 0, 0);
    let mut contigs = contigs.into_iter();
    let mut first = 0;
    while first < lengths.len() {
        let n = scan.together(lengths[first..].iter().copied());
        let some: Vec<Contig> = contigs.by_ref().take(n).collect();
        let seqs: Vec<&[u8]> = some.iter().map(|contig| &contig.seq[..]).collect();
        let found: Found<Looked> = scan.find_each(&seqs, |c, hits| {
            let compared = compare::compare(&some[c], &hits, genome);
            let (number, pairs) = (first + c, some[c].pairs());
            let unworthy = Unworthy::of(&compared, pairs, folds).filter(|_| !asked.contains(&number));
            let placed = Placed { number, pairs, compared, unworthy: None };
            Looked { nowhere: hits.is_empty(), stays: unworthy.map_or(Ok(placed), Err) }
        });
        crowded += found.crowded;
        unkept += found.unkept;
        for looked in found.hits {
            nowhere += u64::from(looked.nowhere);
            match looked.stays {
                Ok(one) => placed.push(one),
                Err(why) => left_out[why as usize] += 1,
            }
        }
        first += n;
    }
    resolve(&mut placed, &scan);
    for one in &mut placed {
        one.unworthy = Unworthy::of(&one.compared, one.pairs, folds);
        one.unworthy.into_iter().for_each(|why| left_out[why as usize] += 1);
    }
    ledger.made("place", "contigs that lie nowhere on the reference", nowhere);
    ledger.left_out(
        "place",
        "contigs with a part that stands in so many places that these were not looked at",
        crowded,
    );
    ledger.left_out("place", "contigs with a part of whose places only the best were kept", unkept);
    Unworthy::ALL.iter().zip(left_out).for_each(|(why, n)| ledger.left_out("place", why.of_many(), n));
    placed
}

/// What became of a contig.
struct Looked {
    /// It has no place.
    nowhere: bool,
    /// Whether it stays, or why not.
    stays: Result<Placed, Unworthy>,
}

/// Finds out where inserted sequence comes from.
fn resolve(placed: &mut [Placed], scan: &Scan<'_>) {
    let findings = placed.iter().flat_map(|one| &one.compared.findings);
    let inserted: Vec<Vec<u8>> =
        findings.filter_map(|f| source::inserted(&f.change)).map(<[u8]>::to_vec).collect();
    let inserted: Vec<&[u8]> = inserted.iter().map(Vec::as_slice).collect();
    let lengths: Vec<usize> = inserted.iter().map(|bases| bases.len()).collect();
    scan.meter.expect_bytes(scan.expected(&lengths));
    let mut hits = scan.find(&inserted).hits.into_iter();
    for one in placed {
        let findings = std::mem::take(&mut one.compared.findings);
        one.compared.findings = source::resolve(findings, scan.genome, &mut hits);
    }
}

#[cfg(test)]
mod tests {
    use genuma_reads::fasta;

    use super::*;
    use crate::assemble;

    /// Random bases, the same for the same `dice`.
    fn bases(dice: &mut u64, n: usize) -> Vec<u8> {
        let mut base = || {
            *dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(*dice >> 62) as usize]
        };
        (0..n).map(|_| base()).collect()
    }

    /// Stretches of a genome of which every second has a base changed, by three pairs or two, and one some bases from elsewhere.
    fn world() -> (Reference, Vec<Contig>) {
        let mut dice = 4;
        let seq = bases(&mut dice, 40_000);
        let contig = |i: usize| {
            let mut own = seq[i * 10..i * 10 + 320].to_vec();
            match i % 4 {
                0 => own[160] = if own[160] == b'A' { b'C' } else { b'A' },
                1 if i == 1 => drop(own.splice(160..160, seq[30_000..30_090].iter().copied())),
                2 => own[150] = if own[150] == b'G' { b'T' } else { b'G' },
                _ => {}
            }
            let placed = |pair| assemble::Placed { pair, mate: 0, forward: true, at: 0 };
            let reads = (0..if i % 4 == 2 { 2 } else { 3 }).map(placed).collect();
            let (novel, weight) = (vec![true; own.len()], vec![100; own.len()]);
            Contig { seq: own, novel, weight, reads, beyond: Default::default() }
        };
        let contigs = (0..3_600).map(contig).collect();
        let genome = vec![fasta::Contig { name: "one".into(), seq: seq.clone() }];
        (Reference::from_contigs(genome), contigs)
    }

    fn placed(memory: u64, asked: &[usize]) -> (Vec<Placed>, Ledger, u64, u64) {
        let (genome, contigs) = world();
        let (asked, meter) = (asked.iter().copied().collect(), Meter::of("the reference"));
        let placing =
            Placing { genome: &genome, threads: 2, memory, folds: false, asked: &asked, meter: &meter };
        let mut ledger = Ledger::default();
        let placed = place(contigs, &placing, &mut ledger);
        (placed, ledger, meter.bytes_done(), meter.bytes_total())
    }

    #[test]
    fn only_what_is_worth_it_or_asked_for_stays_whatever_memory_there_is() {
        let (placed_at_once, ledger, done, total) = placed(1 << 30, &[2, 3]);
        // Once for all contigs, and once for what was inserted.
        assert_eq!((done, total), (4 * 40_000, 4 * 40_000));
        let worth = placed_at_once.iter().filter(|one| one.unworthy.is_none());
        assert_eq!(worth.map(|one| one.number).filter(|&n| n % 4 == 0).count(), 900);
        let why = |n: usize| placed_at_once.iter().find(|one| one.number == n).map(|one| one.unworthy);
        assert_eq!([why(2), why(3)], [Some(Some(Unworthy::Few)), Some(Some(Unworthy::Unchanged))]);
        assert_eq!([why(6), why(7)], [None, None]);
        let inserted = placed_at_once.iter().find(|one| one.number == 1).unwrap();
        assert_eq!(inserted.compared.findings.len(), 2, "{:?}", inserted.compared.findings);
        let (by_turns, same, done, _) = placed(0, &[2, 3]);
        assert!(done >= 6 * 40_000, "one turn");
        let of = |placed: &[Placed]| -> Vec<_> {
            placed.iter().map(|one| (one.number, one.unworthy, one.compared.clone())).collect()
        };
        assert_eq!(of(&by_turns), of(&placed_at_once));
        assert_eq!(format!("{same:?}"), format!("{ledger:?}"));
    }
}
