//! A panel of normals: a table of k-mers with how many people have each. What the tumour has, its normal lacks, and other people's normals have all the
//! same is no change of this tumour: it recurs because libraries make it, or it is a germline variant that the normal's reads have missed.
//!
//! All that was picked is looked up at once, after counting. Nothing is dropped then, as groups and contigs are better with all of their reads: a change is
//! judged when its contig has told which k-mers it made.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_flash::{Answers, Error, Options, Piece, Scan, Table};
use genuma_kmers::encode::kmers;
use genuma_reads::fasta::Reference;
use genuma_work::parallel;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::compare::{Compared, Finding};
use crate::genotype::{Filter, Kind};
use crate::ledger::Ledger;
use crate::locus::{Call, Locus};
use crate::select::Pick;

/// K-mers looked up at once.
const AT_ONCE: usize = 1 << 20;
/// Reads of the table under way in each thread.
const DEPTH: usize = 64;
/// Pages read at once where the table is gone through.
const PAGES: usize = 256;
/// Copies of a place in the reference from which a panel says nothing of it: of so many copies together errors alone are in some normals.
const COPIES: u32 = 4;
/// Slots, 2 to this, that tell most k-mers of the reference from those that are looked for.
const SLOTS: u32 = 20;

/// A panel that is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panel {
    /// Its table: canonical k-mers of the call's length, and of each in how many normals it is, in four bytes.
    pub table: PathBuf,
    /// In how many normals what recurs is, at least.
    pub least: u32,
}

/// What a panel says of the k-mers that were picked.
#[derive(Debug, Default)]
pub struct InNormals {
    /// What was picked, in order.
    kmers: Vec<u64>,
    /// In how many normals each is; the largest number stands for all above.
    normals: Vec<u16>,
    /// Those where the samples part in a repeat, in order.
    repeated: Vec<u64>,
    /// In how many normals what recurs is, at least.
    least: u32,
}

impl Panel {
    /// Looks up what was picked, which is in order, of a tumour that has k-mers so often usually. The table's filter comes into memory if it takes `memory` bytes at most; else the table is gone
    /// through.
    ///
    /// # Errors
    /// The table cannot be read, or is damaged.
    pub fn look_up(
        &self,
        picks: &[Pick],
        usual: f64,
        threads: usize,
        memory: u64,
    ) -> Result<InNormals, Error> {
        let kmers: Vec<u64> = picks.iter().map(|pick| pick.kmer).collect();
        let scan = Scan::open(&self.table)?;
        let beside_pages = scan.file_bytes().saturating_sub((1 + scan.pages()) * 4096);
        let normals = if beside_pages <= memory {
            let table = Table::open(&self.table, &Options::default())?;
            by_key(&table, &kmers, threads)?
        } else {
            in_order(&scan, &kmers)?
        };
        let repeated = picks.iter().filter(|pick| usual > 0.0 && pick.in_repeat(usual)).map(|pick| pick.kmer);
        Ok(InNormals { kmers, normals, repeated: repeated.collect(), least: self.least })
    }

    /// The table.
    pub fn path(&self) -> &Path {
        &self.table
    }
}

/// The number in a value.
fn number(value: &[u8]) -> u16 {
    let bytes = value.first_chunk().copied().unwrap_or_default();
    u16::try_from(u32::from_le_bytes(bytes)).unwrap_or(u16::MAX)
}

fn by_key(table: &Table, kmers: &[u64], threads: usize) -> Result<Vec<u16>, Error> {
    let (mut normals, mut answers) = (Vec::with_capacity(kmers.len()), Answers::new());
    for some in kmers.chunks(AT_ONCE) {
        table.get_many(some, threads, DEPTH, &mut answers)?;
        normals.extend(answers.iter().map(|found| found.map_or(0, number)));
    }
    Ok(normals)
}

fn in_order(scan: &Scan, kmers: &[u64]) -> Result<Vec<u16>, Error> {
    let (mut normals, mut piece) = (vec![0; kmers.len()], Piece::<u32>::default());
    let mut walk = scan.walk(PAGES)?;
    let mut next = 0;
    while next < kmers.len() {
        walk.next(&mut piece)?;
        let Some(&last) = piece.keys.last() else { break };
        let mut at = 0;
        while let Some(&kmer) = kmers.get(next).filter(|&&kmer| kmer <= last) {
            at += piece.keys[at..].partition_point(|&key| key < kmer);
            if piece.keys[at] == kmer {
                normals[next] = u16::try_from(piece.values[at]).unwrap_or(u16::MAX);
            }
            next += 1;
        }
    }
    Ok(normals)
}

impl InNormals {
    /// Notes what was found.
    pub fn tell(&self, ledger: &mut Ledger) {
        let recurs = self.normals.iter().filter(|&&n| u32::from(n) >= self.least).count() as u64;
        let what =
            format!("of the k-mers picked, those that {} normals of the panel have or more", self.least);
        ledger.made("panel", &what, recurs);
    }

    /// In how many normals a k-mer is that was picked; `None` of others.
    fn normals_of(&self, kmer: u64) -> Option<u32> {
        let place = self.kmers.binary_search(&kmer).ok()?;
        Some(self.normals[place].into())
    }

    /// Whether the samples part at a finding in a repeat, as far as depths tell.
    fn is_repeated(&self, contig: &Compared, finding: usize, k: u32) -> bool {
        let own = around(&contig.findings[finding], contig.seq.len(), k as usize);
        let stretch = &contig.seq[own.start..(own.end + k as usize - 1).min(contig.seq.len())];
        kmers(stretch, k).any(|(_, kmer)| self.repeated.binary_search(&kmer.canonical()).is_ok())
    }

    /// In how many normals a finding is: half of the k-mers that it made, or more, are in so many or more. Of these only those count that no other finding
    /// of the contig is in, if there are such: beside an artefact a change is still one. `None` where no k-mer of it was
    /// picked.
    pub fn normals(&self, contig: &Compared, finding: usize, k: u32) -> Option<u32> {
        let k = k as usize;
        let own = around(&contig.findings[finding], contig.seq.len(), k);
        let others = contig.findings.iter().enumerate().filter(|(other, _)| *other != finding);
        let others: Vec<_> = others.map(|(_, other)| around(other, contig.seq.len(), k)).collect();
        let stretch = contig.seq.get(own.start..(own.end + k - 1).min(contig.seq.len()))?;
        let (mut clear, mut beside) = (Vec::new(), Vec::new());
        for (start, kmer) in kmers(stretch, k as u32) {
            let Some(normals) = self.normals_of(kmer.canonical()) else { continue };
            let shared = others.iter().any(|other| other.contains(&(own.start + start)));
            if shared { &mut beside } else { &mut clear }.push(normals);
        }
        let mut all = if clear.is_empty() { beside } else { clear };
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// Says of each call in how many normals it is, and gives those a filter that are in enough: of a length of a tandem repeat twice as many, as these differ
    /// from person to person. Where the reference, if there is one, has the place without the change many times, nothing is said.
    pub fn mark(
        &self,
        loci: &[Locus],
        genome: Option<&Reference>,
        k: u32,
        threads: usize,
        calls: &mut [Call],
    ) {
        let mut recurring = Vec::new();
        for (number, call) in calls.iter_mut().enumerate() {
            let contig = &loci[call.locus].contig;
            call.panel = match (genome, self.is_repeated(contig, call.finding, k)) {
                (None, true) => None,
                _ => self.normals(contig, call.finding, k),
            };
            let length = call.kind == Kind::Common && !is_substitution(&call.change);
            let least = if length { 2 * self.least } else { self.least };
            if call.panel.is_some_and(|normals| normals >= least) {
                recurring.push((number, unchanged(&contig.findings[call.finding], k)));
            }
        }
        let mut wanted: Vec<u64> = recurring.iter().filter_map(|(_, kmer)| *kmer).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let copies = genome.map_or_else(Vec::new, |genome| copies(genome, k, &wanted, threads));
        for (number, kmer) in recurring {
            let place = kmer.and_then(|kmer| wanted.binary_search(&kmer).ok());
            if place.and_then(|place| copies.get(place)).is_some_and(|&copies| copies >= COPIES) {
                calls[number].panel = None;
            } else {
                calls[number].genotype.filters.insert(Filter::Panel);
            }
        }
    }
}

/// Whether a change puts bases in the place of as many others.
fn is_substitution(change: &Change) -> bool {
    matches!(change, Change::Allele { reference, alternative, .. } if reference.len() == alternative.len())
}

/// The canonical k-mer of the sequence without a change that has the place of the change in its middle.
fn unchanged(finding: &Finding, k: u32) -> Option<u64> {
    let start = finding.at.start.checked_sub(k as usize / 2)?;
    let middle = finding.left_normal.get(start..start + k as usize)?;
    kmers(middle, k).next().map(|(_, kmer)| kmer.canonical())
}

/// How often each of these k-mers, in order, stands in the reference.
fn copies(genome: &Reference, k: u32, wanted: &[u64], threads: usize) -> Vec<u32> {
    let slot = |kmer: u64| (kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS)) as usize;
    let mut may = vec![false; 1 << SLOTS];
    wanted.iter().for_each(|&kmer| may[slot(kmer)] = true);
    let found: Vec<AtomicU32> = wanted.iter().map(|_| AtomicU32::new(0)).collect();
    let look = |(): &mut (), contig: usize| {
        for (_, kmer) in kmers(&genome.contigs[contig].seq, k) {
            let kmer = kmer.canonical();
            if may[slot(kmer)]
                && let Ok(place) = wanted.binary_search(&kmer)
            {
                found[place].fetch_add(1, Relaxed);
            }
        }
    };
    if !wanted.is_empty() {
        parallel::in_order(genome.contigs.len(), threads, || (), look);
    }
    found.into_iter().map(AtomicU32::into_inner).collect()
}

/// Where k-mers begin that have something of a finding: one of its bases, or the bases on both sides of where bases are gone.
fn around(finding: &Finding, bases: usize, k: usize) -> std::ops::Range<usize> {
    let at = &finding.at;
    let end = if at.is_empty() { at.start } else { at.end };
    let last = bases.saturating_sub(k - 1);
    (at.start + 1).saturating_sub(k).min(last)..end.min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_flash::{Spec, TableWriter};
    use genuma_kmers::encode;

    const K: u32 = 31;

    fn random(n: usize) -> Vec<u8> {
        let mut state = 5u64;
        let mut base = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"ACGT"[(state >> 62) as usize]
        };
        (0..n).map(|_| base()).collect()
    }

    fn finding(at: std::ops::Range<usize>) -> Finding {
        let change =
            Change::Allele { chrom: 0, pos: at.start, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        Finding { change, at, left_normal: vec![], right_normal: vec![], right_shift: 0, mapq: 60 }
    }

    fn contig(seq: &[u8], findings: Vec<Finding>) -> Compared {
        Compared {
            seq: seq.to_vec(),
            novel: vec![],
            weight: vec![],
            assembled: 0..seq.len(),
            depth: 9,
            findings,
            diagonals: [None; 2],
        }
    }

    /// The k-mers that begin at these places are picked, and are in so many normals.
    fn known(seq: &[u8], places: impl Iterator<Item = (usize, u16)>) -> InNormals {
        let kmer = |at: usize| kmers(&seq[at..at + K as usize], K).next().expect("a k-mer").1.canonical();
        let mut all: Vec<(u64, u16)> = places.map(|(at, normals)| (kmer(at), normals)).collect();
        all.sort_unstable();
        let (kmers, normals) = all.into_iter().unzip();
        InNormals { kmers, normals, repeated: vec![], least: 2 }
    }

    #[test]
    fn what_most_kmers_of_a_finding_say_counts() {
        let seq = random(200);
        let of = |places: std::ops::Range<usize>, normals: u16, at: std::ops::Range<usize>| {
            let picked = known(&seq, (70..=100).map(|i| (i, if places.contains(&i) { normals } else { 0 })));
            picked.normals(&contig(&seq, vec![finding(at)]), 0, K)
        };
        assert_eq!(of(70..101, 7, 100..101), Some(7));
        assert_eq!(of(70..86, 7, 100..101), Some(7));
        assert_eq!(of(70..85, 7, 100..101), Some(0));
        assert_eq!(of(70..70, 7, 100..101), Some(0));
        // Bases that are gone: k-mers that begin up to the base before.
        assert_eq!(of(71..101, 3, 101..101), Some(3));
        // Not picked is not said.
        assert_eq!(of(70..101, 7, 150..151), None);
        // Ends of contigs.
        assert_eq!(of(70..101, 7, 0..1), None);
        assert_eq!(of(70..101, 7, 199..200), None);
        assert_eq!(
            known(&seq, (169..170).map(|i| (i, 4))).normals(&contig(&seq, vec![finding(199..200)]), 0, K),
            Some(4)
        );
        assert_eq!(
            known(&seq, std::iter::empty()).normals(&contig(b"ACGT", vec![finding(1..2)]), 0, K),
            None
        );
    }

    #[test]
    fn a_change_beside_an_artefact_is_one() {
        let seq = random(200);
        // A change at 100, an artefact at 110, of which k-mers without the change are in the panel.
        let changed = contig(&seq, vec![finding(100..101), finding(110..111)]);
        let normals = |at: usize| if (101..=110).contains(&at) { 9 } else { 0 };
        let picked = known(&seq, (70..=110).map(|at| (at, normals(at))));
        assert_eq!(picked.normals(&changed, 0, K), Some(0));
        assert_eq!(picked.normals(&changed, 1, K), Some(9));
        // In a repeat of many copies errors say as much.
        let repeated = vec![picked.kmers[3]];
        let in_repeat = InNormals { repeated, ..known(&seq, (70..=110).map(|at| (at, normals(at)))) };
        assert!([0, 1].iter().any(|&f| in_repeat.is_repeated(&changed, f, K)));
        assert!([0, 1].iter().all(|&f| !picked.is_repeated(&changed, f, K)));
        // Where every k-mer has both, both are what these say.
        let close = contig(&seq, vec![finding(100..101), finding(100..101)]);
        let both = known(&seq, (70..=100).map(|at| (at, 5)));
        assert_eq!([0, 1].map(|f| both.normals(&close, f, K)), [Some(5); 2]);
    }

    #[test]
    fn copies_in_the_reference_are_counted() {
        let seq = random(300);
        let of = |at: usize| kmers(&seq[at..at + K as usize], K).next().expect("a k-mer").1.canonical();
        let mut wanted = vec![of(0), of(100), of(269)];
        wanted.sort_unstable();
        let contig = |seq: Vec<u8>| genuma_reads::fasta::Contig { name: "c".into(), seq };
        let twice = [&seq[90..140], &genuma_reads::dna::revcomp(&seq[100..131])].concat();
        let genome = Reference::from_contigs(vec![contig(seq.clone()), contig(vec![]), contig(twice)]);
        for threads in [1, 3] {
            let found = copies(&genome, K, &wanted, threads);
            let times = |at: usize| found[wanted.binary_search(&of(at)).expect("wanted")];
            assert_eq!([0, 100, 269].map(times), [1, 3, 1]);
        }
        assert!(copies(&genome, K, &[], 1).is_empty());
        let mut finding = finding(115..116);
        finding.left_normal = seq.clone();
        assert_eq!(unchanged(&finding, K), Some(of(100)));
        finding.at = 3..4;
        assert_eq!(unchanged(&finding, K), None);
    }

    #[test]
    fn looked_up_and_gone_through_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("panel.gkt");
        let keys: Vec<u64> = (0..5000u64).map(|i| i * 977 + i % 13).collect();
        let mut writer = TableWriter::create(&path, Spec::new(4, 5000)).expect("a table");
        for &key in &keys {
            writer.push(key, &((key % 70_000) as u32 + 1).to_le_bytes(), 0).expect("pushed");
        }
        writer.finish().expect("a table");
        let pick = |kmer: u64| Pick { kmer, tumour: 5, normal: 0, depth: 0, rule: genuma_reads::TUMOUR };
        let picks: Vec<Pick> = (0..9000u64).map(|i| pick(i * 613)).chain([pick(977)]).collect();
        let picks = {
            let mut sorted = picks;
            sorted.sort_unstable();
            sorted
        };
        let panel = Panel { table: path, least: 2 };
        let [fast, small] =
            [u64::MAX, 0].map(|memory| panel.look_up(&picks, 30.0, 2, memory).expect("a table"));
        assert_eq!(fast.normals, small.normals);
        for (pick, &normals) in picks.iter().zip(&fast.normals) {
            let there = keys.binary_search(&pick.kmer).is_ok();
            let expected = if there { (pick.kmer % 70_000 + 1).min(65_535) } else { 0 };
            assert_eq!(u64::from(normals), expected, "{}", pick.kmer);
        }
        assert!(fast.normals.iter().filter(|&&n| n > 0).count() > 5 && fast.repeated.is_empty());
        let deep = [Pick { depth: 91, ..pick(7) }, Pick { depth: 90, ..pick(8) }];
        assert_eq!(panel.look_up(&deep, 30.0, 1, 0).expect("a table").repeated, [7]);
        assert!(panel.look_up(&deep, 0.0, 1, 0).expect("a table").repeated.is_empty());
        let mut ledger = Ledger::default();
        fast.tell(&mut ledger);
        assert!(ledger.lines[0].count > 5 && ledger.lines[0].what.contains("2 normals"));
        let none = panel.look_up(&[], 30.0, 1, 0).expect("a table");
        assert_eq!(none.normals_of(encode::mask(12)), None);
    }
}
