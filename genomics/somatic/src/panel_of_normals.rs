//! Panel of normals: a k-mer table or dictionary with the number of normals that have each k-mer. A tumour k-mer that
//! the matched normal lacks but other normals have does not come from a somatic change. It comes from a library
//! artefact, or from a germline variant that the reads of the matched normal miss.
//!
//! All candidate k-mers are looked up at once after counting. None is removed then, because groups and contigs are
//! better with all of their reads. A change is filtered after assembly, when its contig shows which k-mers belong to
//! it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::encode::kmers;
use genuma_reads::fasta::Reference;
use genuma_work::parallel;
use serde::{Deserialize, Serialize};

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::candidate_kmer::CandidateKmer;
use crate::change::is_substitution;
use crate::genotype::{ErrorFrequency, Filter};
use crate::ledger::Ledger;
use crate::locus::{Locus, VariantCall};
use crate::panel_lookup::{self, Error};

/// Minimum number of copies of a locus in the reference from which the panel is ignored. With this number of copies,
/// errors alone give some normals the k-mers of a change.
const MIN_REPEAT_COPIES: u32 = 4;
/// Base-2 logarithm of the number of slots of a filter by which most reference k-mers are skipped.
const FILTER_SLOTS_LOG2: u32 = 20;

/// The panel of normals (`--panel`): its k-mer table or dictionary, and the number of normals from which a k-mer is
/// recurrent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelOfNormals {
    /// Path of the k-mer table or dictionary: canonical k-mers of the length that the call uses, each with the number of
    /// normals that have it.
    pub table: PathBuf,
    /// Minimum number of normals that have a k-mer for the k-mer to be recurrent.
    #[serde(alias = "least")]
    pub min_normals: u32,
}

/// Number of normals in the panel that have each candidate k-mer of a call.
#[derive(Debug, Default)]
pub struct PanelHitCounts {
    /// Candidate k-mers, sorted.
    kmers: Vec<u64>,
    /// Number of normals that have each k-mer of `kmers`; 65,535 also stands for larger numbers.
    normals: Vec<u16>,
    /// Branching candidate k-mers in repeats, sorted.
    repeat_kmers: Vec<u64>,
    /// Minimum number of normals that have a k-mer for the k-mer to be recurrent.
    min_normals: u32,
}

impl PanelOfNormals {
    /// Looks up the candidate k-mers, which must be sorted, in the panel. `median_depth` is the median k-mer depth of the
    /// tumour, `memory` the number of bytes that may be allocated. If the index, filters and hot k-mers of a table fit
    /// in half of it, they are loaded and the k-mers are looked up one by one; otherwise the whole table is read. A
    /// dictionary is loaded as a whole.
    ///
    /// # Errors
    /// The panel cannot be read, or is damaged; or there is too little memory for a dictionary.
    pub fn count_normals_with_candidates(
        &self,
        candidates: &[CandidateKmer],
        median_depth: f64,
        threads: usize,
        memory: u64,
    ) -> Result<PanelHitCounts, Error> {
        let kmers: Vec<u64> = candidates.iter().map(|candidate| candidate.kmer).collect();
        let normals = panel_lookup::look_up_kmers(&self.table, &kmers, threads, memory)?;
        let repeated = candidates
            .iter()
            .filter(|candidate| median_depth > 0.0 && candidate.is_in_repeat(median_depth))
            .map(|candidate| candidate.kmer);
        Ok(PanelHitCounts { kmers, normals, repeat_kmers: repeated.collect(), min_normals: self.min_normals })
    }

    /// Path of the k-mer table or dictionary.
    pub fn table_path(&self) -> &Path {
        &self.table
    }
}

impl PanelHitCounts {
    /// Adds a ledger line: number of candidate k-mers that at least `min_normals` normals of the panel have.
    pub fn add_to_ledger(&self, ledger: &mut Ledger) {
        let recurrent = self.normals.iter().filter(|&&n| u32::from(n) >= self.min_normals).count() as u64;
        let what = format!("candidate k-mers that at least {} normals of the panel have", self.min_normals);
        ledger.append_produced_line("panel", &what, recurrent);
    }

    /// Number of normals that have a candidate k-mer; `None` if the k-mer is no candidate.
    fn normals_with_kmer(&self, kmer: u64) -> Option<u32> {
        let place = self.kmers.binary_search(&kmer).ok()?;
        Some(self.normals[place].into())
    }

    /// Whether change number `change_index` of a contig has a branching k-mer that is in a repeat, according to k-mer
    /// depths.
    fn is_in_repeat(&self, contig: &AlignedContig, change_index: usize, k: u32) -> bool {
        let own = kmer_starts_at_change(&contig.changes[change_index], contig.seq.len(), k as usize);
        let stretch = &contig.seq[own.start..(own.end + k as usize - 1).min(contig.seq.len())];
        kmers(stretch, k).any(|(_, kmer)| self.repeat_kmers.binary_search(&kmer.canonical()).is_ok())
    }

    /// Number of normals of the panel that have change number `change_index` of a contig: the median over the candidate
    /// k-mers of the change. If some of these cover no other change of the contig, only those count, because a change
    /// next to an artefact may be real. `None` if the change has no candidate k-mers.
    pub fn count_normals_with_change(&self, contig: &AlignedContig, change_index: usize, k: u32) -> Option<u32> {
        let k = k as usize;
        let own = kmer_starts_at_change(&contig.changes[change_index], contig.seq.len(), k);
        let others = contig.changes.iter().enumerate().filter(|(other, _)| *other != change_index);
        let others: Vec<_> = others.map(|(_, other)| kmer_starts_at_change(other, contig.seq.len(), k)).collect();
        let stretch = contig.seq.get(own.start..(own.end + k - 1).min(contig.seq.len()))?;
        let (mut unshared, mut shared_with_others) = (Vec::new(), Vec::new());
        for (start, kmer) in kmers(stretch, k as u32) {
            let Some(normals) = self.normals_with_kmer(kmer.canonical()) else { continue };
            let shared = others.iter().any(|other| other.contains(&(own.start + start)));
            if shared { &mut shared_with_others } else { &mut unshared }.push(normals);
        }
        let mut all = if unshared.is_empty() { shared_with_others } else { unshared };
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// Sets [`VariantCall::panel_normals`] of each call, and adds a filter if enough normals have the change. For a
    /// length change of a tandem repeat twice as many normals are required, because these lengths differ between
    /// people. Calls whose unchanged sequence has many copies in the reference `genome` are not filtered; without a
    /// reference, calls that k-mer depths show to be in a repeat. Their number of normals becomes `None`.
    pub fn annotate_and_filter_calls(
        &self,
        loci: &[Locus],
        genome: Option<&Reference>,
        k: u32,
        threads: usize,
        calls: &mut [VariantCall],
    ) {
        let mut recurring = Vec::new();
        for (number, call) in calls.iter_mut().enumerate() {
            let contig = &loci[call.locus].contig;
            call.panel_normals = match (genome, self.is_in_repeat(contig, call.change_index, k)) {
                (None, true) => None,
                _ => self.count_normals_with_change(contig, call.change_index, k),
            };
            let length = call.error_frequency == ErrorFrequency::Common && !is_substitution(&call.change);
            let min_normals = if length { 2 * self.min_normals } else { self.min_normals };
            if call.panel_normals.is_some_and(|normals| normals >= min_normals) {
                recurring.push((number, unchanged_kmer(&contig.changes[call.change_index], k)));
            }
        }
        let mut searched: Vec<u64> = recurring.iter().filter_map(|(_, kmer)| *kmer).collect();
        searched.sort_unstable();
        searched.dedup();
        let copies = genome.map_or_else(Vec::new, |genome| count_copies(genome, k, &searched, threads));
        for (number, kmer) in recurring {
            let place = kmer.and_then(|kmer| searched.binary_search(&kmer).ok());
            if place.and_then(|place| copies.get(place)).is_some_and(|&copies| copies >= MIN_REPEAT_COPIES) {
                calls[number].panel_normals = None;
            } else {
                calls[number].genotype.filters.insert(Filter::Panel);
            }
        }
    }
}

/// The canonical k-mer of the normal's sequence with the position of the change in its middle; `None` at the end of the
/// sequence.
fn unchanged_kmer(change: &ContigChange, k: u32) -> Option<u64> {
    let start = change.contig_range.start.checked_sub(k as usize / 2)?;
    let middle = change.left_normal.get(start..start + k as usize)?;
    kmers(middle, k).next().map(|(_, kmer)| kmer.canonical())
}

/// Number of occurrences in the reference of each k-mer of the sorted list `searched`, on either strand.
fn count_copies(genome: &Reference, k: u32, searched: &[u64], threads: usize) -> Vec<u32> {
    let slot = |kmer: u64| (kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - FILTER_SLOTS_LOG2)) as usize;
    let mut slot_used = vec![false; 1 << FILTER_SLOTS_LOG2];
    searched.iter().for_each(|&kmer| slot_used[slot(kmer)] = true);
    let found: Vec<AtomicU32> = searched.iter().map(|_| AtomicU32::new(0)).collect();
    let look = |(): &mut (), contig: usize| {
        for (_, kmer) in kmers(&genome.contigs[contig].seq, k) {
            let kmer = kmer.canonical();
            if slot_used[slot(kmer)]
                && let Ok(place) = searched.binary_search(&kmer)
            {
                found[place].fetch_add(1, Relaxed);
            }
        }
    };
    if !searched.is_empty() {
        parallel::map_in_order(genome.contigs.len(), threads, || (), look);
    }
    found.into_iter().map(AtomicU32::into_inner).collect()
}

/// Range of the start positions of the k-mers that cover a change: at least one of its bases, or, for a deletion, the
/// bases on both sides.
fn kmer_starts_at_change(change: &ContigChange, bases: usize, k: usize) -> std::ops::Range<usize> {
    let at = &change.contig_range;
    let end = if at.is_empty() { at.start } else { at.end };
    let last = bases.saturating_sub(k - 1);
    (at.start + 1).saturating_sub(k).min(last)..end.min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use genuma_dictionary::{DictionaryBuilder, DictionarySpec};
    use genuma_flash::{TableSpec, TableWriter};
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

    fn finding(at: std::ops::Range<usize>) -> ContigChange {
        let change = Change::Allele { chrom: 0, pos: at.start, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        ContigChange { change, contig_range: at, left_normal: vec![], right_normal: vec![], right_shift: 0, mapq: 60 }
    }

    fn contig(seq: &[u8], findings: Vec<ContigChange>) -> AlignedContig {
        AlignedContig {
            seq: seq.to_vec(),
            novel: vec![],
            quality_sums: vec![],
            assembled: 0..seq.len(),
            num_reads: 9,
            changes: findings,
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: Default::default(),
            explanations: Vec::new(),
        }
    }

    /// Counts in which the k-mers at the given positions are candidates with the given numbers of normals.
    fn counts_in_normals(seq: &[u8], places: impl Iterator<Item = (usize, u16)>) -> PanelHitCounts {
        let kmer = |at: usize| kmers(&seq[at..at + K as usize], K).next().expect("a k-mer").1.canonical();
        let mut all: Vec<(u64, u16)> = places.map(|(at, normals)| (kmer(at), normals)).collect();
        all.sort_unstable();
        let (kmers, normals) = all.into_iter().unzip();
        PanelHitCounts { kmers, normals, repeat_kmers: vec![], min_normals: 2 }
    }

    #[test]
    fn what_most_kmers_of_a_finding_say_counts() {
        let seq = random(200);
        let of = |places: std::ops::Range<usize>, normals: u16, at: std::ops::Range<usize>| {
            let picked =
                counts_in_normals(&seq, (70..=100).map(|i| (i, if places.contains(&i) { normals } else { 0 })));
            picked.count_normals_with_change(&contig(&seq, vec![finding(at)]), 0, K)
        };
        assert_eq!(of(70..101, 7, 100..101), Some(7));
        assert_eq!(of(70..86, 7, 100..101), Some(7));
        assert_eq!(of(70..85, 7, 100..101), Some(0));
        assert_eq!(of(70..70, 7, 100..101), Some(0));
        // A deletion: k-mers that begin up to the base before it.
        assert_eq!(of(71..101, 3, 101..101), Some(3));
        // Without candidates there is no number.
        assert_eq!(of(70..101, 7, 150..151), None);
        // Ends of contigs.
        assert_eq!(of(70..101, 7, 0..1), None);
        assert_eq!(of(70..101, 7, 199..200), None);
        assert_eq!(
            counts_in_normals(&seq, (169..170).map(|i| (i, 4))).count_normals_with_change(
                &contig(&seq, vec![finding(199..200)]),
                0,
                K
            ),
            Some(4)
        );
        assert_eq!(
            counts_in_normals(&seq, std::iter::empty()).count_normals_with_change(
                &contig(b"ACGT", vec![finding(1..2)]),
                0,
                K
            ),
            None
        );
    }

    #[test]
    fn a_change_beside_an_artefact_is_one() {
        let seq = random(200);
        // A change at 100 and an artefact at 110. The k-mers without the change are in the panel.
        let changed = contig(&seq, vec![finding(100..101), finding(110..111)]);
        let normals = |at: usize| if (101..=110).contains(&at) { 9 } else { 0 };
        let picked = counts_in_normals(&seq, (70..=110).map(|at| (at, normals(at))));
        assert_eq!(picked.count_normals_with_change(&changed, 0, K), Some(0));
        assert_eq!(picked.count_normals_with_change(&changed, 1, K), Some(9));
        // In a repeat with many copies errors make the same k-mers.
        let repeated = vec![picked.kmers[3]];
        let in_repeat = PanelHitCounts {
            repeat_kmers: repeated,
            ..counts_in_normals(&seq, (70..=110).map(|at| (at, normals(at))))
        };
        assert!([0, 1].iter().any(|&f| in_repeat.is_in_repeat(&changed, f, K)));
        assert!([0, 1].iter().all(|&f| !picked.is_in_repeat(&changed, f, K)));
        // If every k-mer covers both findings, all k-mers count for both.
        let close = contig(&seq, vec![finding(100..101), finding(100..101)]);
        let both = counts_in_normals(&seq, (70..=100).map(|at| (at, 5)));
        assert_eq!([0, 1].map(|f| both.count_normals_with_change(&close, f, K)), [Some(5); 2]);
    }

    #[test]
    fn copies_in_the_reference_are_counted() {
        let seq = random(300);
        let of = |at: usize| kmers(&seq[at..at + K as usize], K).next().expect("a k-mer").1.canonical();
        let mut searched = vec![of(0), of(100), of(269)];
        searched.sort_unstable();
        let contig = |seq: Vec<u8>| genuma_reads::fasta::Contig { name: "c".into(), seq };
        let twice = [&seq[90..140], &genuma_reads::dna::reverse_complement(&seq[100..131])].concat();
        let genome = Reference::from_contigs(vec![contig(seq.clone()), contig(vec![]), contig(twice)]);
        for threads in [1, 3] {
            let found = count_copies(&genome, K, &searched, threads);
            let times = |at: usize| found[searched.binary_search(&of(at)).expect("wanted")];
            assert_eq!([0, 100, 269].map(times), [1, 3, 1]);
        }
        assert!(count_copies(&genome, K, &[], 1).is_empty());
        let mut finding = finding(115..116);
        finding.left_normal = seq.clone();
        assert_eq!(unchanged_kmer(&finding, K), Some(of(100)));
        finding.contig_range = 3..4;
        assert_eq!(unchanged_kmer(&finding, K), None);
    }

    #[test]
    fn all_ways_of_lookup_give_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, dictionary] = ["panel.gkt", "panel.gkd"].map(|name| folder.path().join(name));
        let keys: Vec<u64> = (0..5000u64).map(|i| i * 977 + i % 13).collect();
        let mut writer = TableWriter::create(&path, TableSpec::new(4, 5000)).expect("a table");
        for &key in &keys {
            writer.push_entry(key, &((key % 70_000) as u32 + 1).to_le_bytes(), 0).expect("pushed");
        }
        writer.finish_and_publish().expect("a table");
        let spec = DictionarySpec { k: K, num_kmers: 5000, num_samples: 1, note: Vec::new(), memory_bytes: 64 << 20 };
        let mut builder = DictionaryBuilder::with_spec(spec).expect("a builder");
        for &key in &keys {
            builder.push_kmer(key, &[(key % 70_000) as u32 + 1]).expect("a k-mer");
        }
        let (file, num_bytes) =
            builder.build().and_then(|built| built.write_unpublished(&dictionary)).expect("a dictionary");
        file.publish().expect("a dictionary");
        let candidate = |kmer: u64| CandidateKmer {
            kmer,
            tumour_count: 5,
            selector: genuma_reads::TUMOUR_SAMPLE,
            ..CandidateKmer::default()
        };
        // The last three are constructed k-mers: one with bits beyond k bases, and others that are not canonical.
        let constructed = [1 << 62 | 977, encode::kmer_mask(K), encode::reverse_complement_kmer(977 * 13, K)];
        let candidates: Vec<CandidateKmer> =
            (0..9000u64).map(|i| i * 613).chain([977]).chain(constructed).map(candidate).collect();
        let candidates = {
            let mut sorted = candidates;
            sorted.sort_unstable();
            sorted
        };
        let panel = PanelOfNormals { table: path, min_normals: 2 };
        let [fast, small] = [u64::MAX, 0]
            .map(|memory| panel.count_normals_with_candidates(&candidates, 30.0, 2, memory).expect("a table"));
        assert_eq!(fast.normals, small.normals);
        let panel_in_memory = PanelOfNormals { table: dictionary, min_normals: 2 };
        for threads in [1, 3] {
            let found = panel_in_memory.count_normals_with_candidates(&candidates, 30.0, threads, num_bytes);
            assert_eq!(found.expect("a dictionary").normals, fast.normals);
        }
        let error = panel_in_memory.count_normals_with_candidates(&candidates, 30.0, 1, num_bytes - 1);
        assert!(matches!(error, Err(Error::MemoryLimit { needed_bytes, .. }) if needed_bytes == num_bytes));
        for (candidate, &normals) in candidates.iter().zip(&fast.normals) {
            let there = keys.binary_search(&candidate.kmer).is_ok();
            let expected = if there { (candidate.kmer % 70_000 + 1).min(65_535) } else { 0 };
            assert_eq!(u64::from(normals), expected, "{}", candidate.kmer);
        }
        assert!(fast.normals.iter().filter(|&&n| n > 0).count() > 5 && fast.repeat_kmers.is_empty());
        let deep = [CandidateKmer { root_depth: 91, ..candidate(7) }, CandidateKmer { root_depth: 90, ..candidate(8) }];
        assert_eq!(panel.count_normals_with_candidates(&deep, 30.0, 1, 0).expect("a table").repeat_kmers, [7]);
        assert!(panel.count_normals_with_candidates(&deep, 0.0, 1, 0).expect("a table").repeat_kmers.is_empty());
        let mut ledger = Ledger::default();
        fast.add_to_ledger(&mut ledger);
        assert!(ledger.lines[0].count > 5 && ledger.lines[0].description.contains("2 normals"));
        let none = panel.count_normals_with_candidates(&[], 30.0, 1, 0).expect("a table");
        assert_eq!(none.normals_with_kmer(encode::kmer_mask(12)), None);
    }
}
