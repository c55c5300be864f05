//! UMIs in the bases of the reads: the UMI is moved to the read name, and only the template stays.
//!
//! If a fragment is shorter than its reads, a read continues after the fragment with the reverse complement of the
//! other read's UMI and skipped bases, before the adapter. These are removed too. The adapter stays for
//! [`crate::Trimmer`].

use serde::{Deserialize, Serialize};

use crate::dna::complement;
use crate::pair_batch::{Mate, PairBatch};
use crate::read_structure::ReadStructures;
use crate::record_counts::{RecordCounts, SharedRecordCounts};

/// Number of bases at the start of a template by which the end of the fragment is searched for in the mate.
const SEED_BASES: usize = 16;
/// Maximum number of mismatches in these bases.
const MAX_SEED_MISMATCHES: usize = 2;

/// Read structures of a lane whose reads contain UMIs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineUmiStructures {
    /// Structures of read 1 and read 2.
    pub structures: ReadStructures,
    /// Record counts of FASTQ files; those of other files are in [`crate::AlignedInput`].
    #[serde(skip)]
    pub(crate) counts: SharedRecordCounts,
}

impl InlineUmiStructures {
    /// Describes a lane whose reads contain UMIs in the bases that `structures` mark as UMI.
    pub(crate) fn from_read_structures(structures: ReadStructures) -> InlineUmiStructures {
        InlineUmiStructures { structures, counts: SharedRecordCounts::default() }
    }
}

/// Moves the UMIs of read pairs from the bases to the names, and appends the pairs to a batch.
pub(crate) struct UmiExtractor<'a> {
    structures: &'a ReadStructures,
    /// Counts of reads with UMIs, and of reads shorter than their structure.
    pub(crate) counts: RecordCounts,
    umis: Vec<u8>,
}

impl<'a> UmiExtractor<'a> {
    /// Creates an extractor for reads with these structures.
    pub(crate) fn for_read_structures(structures: &'a ReadStructures) -> UmiExtractor<'a> {
        UmiExtractor { structures, counts: RecordCounts::default(), umis: Vec::new() }
    }

    /// Appends a pair, or a read without a mate, to `batch`, with its UMIs moved to the name. A read with fewer bases
    /// than its structure has before the template is counted; then both reads lose all their bases, and the name gets
    /// no UMI.
    pub(crate) fn extract_umi_and_push_pair(
        &mut self,
        name: &[u8],
        mates: [Option<Mate<'_>>; 2],
        batch: &mut PairBatch,
    ) {
        let ReadStructures(structures) = self.structures;
        let reads = || structures.iter().zip(mates);
        let num_short = reads()
            .filter(|(own, mate)| mate.is_some_and(|mate| mate.seq.len() < own.num_bases_before_template()))
            .count();
        if num_short > 0 {
            (0..num_short).for_each(|_| self.counts.shorter_than_structure.add_read(name));
            batch.push(name, [Mate::WITHOUT_BASES; 2]);
            return;
        }
        self.counts.with_umi += mates.iter().flatten().count() as u64;
        self.umis.clear();
        for (own, mate) in reads() {
            if let Some(mate) = mate.filter(|_| own.umi_bp() > 0) {
                self.umis.push(if self.umis.is_empty() { b':' } else { b'-' });
                own.append_umi(mate.seq, &mut self.umis);
            }
        }
        let templates =
            [0, 1].map(|i| mates[i].map_or(Mate::WITHOUT_BASES, |mate| structures[i].template_of_read(mate)));
        let prefixes =
            [0, 1].map(|i| mates[i].map_or(&[][..], |mate| &mate.seq[..structures[i].num_bases_before_template()]));
        let pieces = match find_fragment_length(templates, prefixes) {
            Some(fragment) => [0, 1].map(|i| split_around(templates[i], fragment, prefixes[1 - i].len())),
            None => templates.map(|template| [template, Mate::WITHOUT_BASES]),
        };
        batch.push_concatenated_parts([name, &self.umis, &[]], pieces);
    }
}

/// Splits a read into the parts before and after the `num_removed` bases that start at base `at`.
fn split_around(read: Mate<'_>, at: usize, num_removed: usize) -> [Mate<'_>; 2] {
    let (end, next) = (at.min(read.seq.len()), (at + num_removed).min(read.seq.len()));
    [Mate { seq: &read.seq[..end], qual: &read.qual[..end] }, Mate { seq: &read.seq[next..], qual: &read.qual[next..] }]
}

/// Length of a fragment that is shorter than its reads, so that the bases of the other read's UMI follow it; `None` if
/// there is no such end. Both reads must show this end, unless they are too short for it: the reads of a chimeric pair
/// may overlap in the same way, but continue with genomic sequence.
fn find_fragment_length(templates: [Mate<'_>; 2], prefixes: [&[u8]; 2]) -> Option<usize> {
    let [one, two] = templates.map(|template| template.seq);
    let in_one = find_fragment_end(one, two, prefixes[1]).filter(|&end| continues_with_umi(two, end, prefixes[0]));
    in_one.or_else(|| find_fragment_end(two, one, prefixes[0]).filter(|&end| continues_with_umi(one, end, prefixes[1])))
}

/// Whether a read continues at `end` with the reverse complement of the bases of its mate's UMI, of which a third may
/// differ, or ends before.
fn continues_with_umi(read: &[u8], end: usize, mate_prefix: &[u8]) -> bool {
    let tail = &read[end.min(read.len())..read.len().min(end + mate_prefix.len())];
    count_mismatches(tail, &mate_prefix[mate_prefix.len() - tail.len()..]) * 3 <= tail.len()
}

/// Position in `read` at which the fragment ends and the reverse complement of `mate_prefix` begins.
fn find_fragment_end(read: &[u8], mate: &[u8], mate_prefix: &[u8]) -> Option<usize> {
    let mut seed: [u8; SEED_BASES] = mate.first_chunk().copied()?.map(complement);
    seed.reverse();
    if mate_prefix.is_empty() {
        return None;
    }
    (SEED_BASES..read.len()).find(|&end| {
        let seed_mismatches = read[end - SEED_BASES..end].iter().zip(&seed).filter(|(a, b)| a != b).count();
        seed_mismatches <= MAX_SEED_MISMATCHES
            && count_mismatches(&read[end.saturating_sub(mate.len())..end], mate) * 6 <= end.min(mate.len())
            // A tandem repeat may give the same overlap, but it does not continue with the UMI.
            && continues_with_umi(read, end, mate_prefix)
    })
}

/// Number of bases of `read` that differ from the reverse complement of the first bases of `mate`.
fn count_mismatches(read: &[u8], mate: &[u8]) -> usize {
    read.iter().rev().zip(mate).filter(|(a, b)| **a != complement(**b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dna::reverse_complement;

    /// The pair of `extract` from a fragment with UMIs and adapters, as name and bases.
    fn extracted(structures: &str, reads: [Option<&[u8]>; 2]) -> (String, [String; 2], RecordCounts) {
        let structures: ReadStructures = structures.parse().unwrap();
        let (mut extractor, mut batch) = (UmiExtractor::for_read_structures(&structures), PairBatch::default());
        let quals = reads.map(|read| vec![b'I'; read.map_or(0, <[u8]>::len)]);
        let mates = [0, 1].map(|i| reads[i].map(|seq| Mate { seq, qual: &quals[i] }));
        extractor.extract_umi_and_push_pair(b"r", mates, &mut batch);
        let pair = batch.pair(0);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert!(pair.mates.iter().all(|mate| mate.seq.len() == mate.qual.len()));
        (text(pair.name), pair.mates.map(|mate| text(mate.seq)), extractor.counts)
    }

    #[test]
    fn umis_move_to_the_name() {
        let (name, mates, counts) = extracted("3M1S+T", [Some(b"ACGTGGGGA"), Some(b"TTATCCCCC")]);
        assert_eq!((&name[..], mates), ("r:ACG-TTA", ["GGGGA".to_owned(), "CCCCC".to_owned()]));
        assert_eq!((counts.with_umi, counts.shorter_than_structure.num_reads), (2, 0));
        let (name, mates, _) = extracted("4M+T,+T", [Some(b"ACGTGGGGA"), Some(b"TTATCCCCC")]);
        assert_eq!((&name[..], &mates[1][..]), ("r:ACGT", "TTATCCCCC"));
        // Without a mate.
        let (name, mates, counts) = extracted("4M+T", [Some(b"ACGTGGGGA"), None]);
        assert_eq!((&name[..], mates, counts.with_umi), ("r:ACGT", ["GGGGA".to_owned(), String::new()], 1));
        // Read 2 is too short.
        let (name, mates, counts) = extracted("3M1S+T", [Some(b"ACGTGGGGA"), Some(b"TTA")]);
        assert_eq!((&name[..], mates), ("r", [String::new(), String::new()]));
        assert_eq!(counts.shorter_than_structure.num_reads, 1);
    }

    #[test]
    fn the_umi_of_the_other_end_is_removed_behind_short_fragments() {
        let mut x = 5u64;
        let mut base = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"ACGT"[(x >> 62) as usize]
        };
        let adapters: [&[u8]; 2] = [b"AGATCGGAAGAGCACACGTCTGAACTCCAGTCA", b"AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT"];
        let mut num_removed = 0;
        for length in 20..80usize {
            let fragment: Vec<u8> = (0..length).map(|_| base()).collect();
            let prefixes = [0, 1].map(|_| [base(), base(), base(), b'T']);
            let strands = [fragment.clone(), reverse_complement(&fragment)];
            let reads = [0, 1].map(|i| {
                let other = reverse_complement(&prefixes[1 - i]);
                let mut read = [&prefixes[i], &strands[i][..], &other, adapters[i]].concat();
                // A wrong base in the fragment.
                read[4 + length / 2] = if read[4 + length / 2] == b'A' { b'C' } else { b'A' };
                read.truncate(60);
                read
            });
            let (name, mates, _) = extracted("3M1S+T", [Some(&reads[0]), Some(&reads[1])]);
            let umis = prefixes.map(|prefix| String::from_utf8(prefix[..3].to_vec()).unwrap());
            assert_eq!(name, format!("r:{}-{}", umis[0], umis[1]));
            for i in 0..2 {
                let template = &reads[i][4..];
                let kept = [&template[..length.min(56)], template.get(length + 4..).unwrap_or_default()].concat();
                assert_eq!(mates[i].as_bytes(), kept, "{length}");
                num_removed += usize::from(kept.len() < template.len());
            }
        }
        assert_eq!(num_removed, 2 * (20..56).len());
    }

    #[test]
    fn reads_of_a_chimera_keep_their_bases() {
        // Read 2 has no UMI, and begins inside read 1, whose template goes on behind it.
        let template = b"CGTGGCTATTGTGAAGGAGGGTTGGCTGCACAAACGAGGTTAGTACCCGCTGCCAGGGCTGGG";
        let read_two = reverse_complement(&[b"GATTACAGATTA", &template[..40]].concat());
        let read_one = [b"ACCT", &template[..]].concat();
        let pair = [&read_one[..], &read_two];
        let (_, mates, _) = extracted("3M1S+T", pair.map(Some));
        assert_eq!(mates.map(|mate| mate.len()), [63, 48]);
        assert!(find_fragment_end(&read_one[4..], &read_two[4..], &read_two[..4]).is_some());
    }

    #[test]
    fn tandem_repeats_keep_their_bases() {
        // The reverse complement of an AT repeat is the repeat itself, and both reads go on with it.
        let repeat = b"AT".repeat(30);
        let reads = [[b"ACGT", &repeat[..]].concat(), [b"CCGT", &repeat[..]].concat()];
        let (_, mates, _) = extracted("3M1S+T", [Some(&reads[0]), Some(&reads[1])]);
        assert_eq!(mates.map(|mate| mate.len()), [60, 60]);
    }
}
