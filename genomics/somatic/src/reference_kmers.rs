//! Finds which of a set of k-mers the reference contains, and how often.
//!
//! If the normal has few reads, it lacks k-mers by chance: at a depth of 8 one tumour k-mer in thirty looks novel. The
//! reference contains four in five of these, so they are not novel. The reference is read in chunks and never held in
//! memory as a whole.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use genuma_reads::Error;
use genuma_reads::fasta::{FastaEvent, read_fasta_events};
use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_work::ProgressCounters;
use genuma_work::parallel::map_in_order;

use crate::kmer_lookup::{KmerLookup, KmerLookupBuffers};
use crate::tandem_repeat::{for_each_repeat, for_each_repeat_kmer};

/// Number of reference bases that are buffered before all threads search them.
const BUFFER_BASES: usize = 32 << 20;
/// Number of buffered bases that one thread searches at a time.
const CHUNK_BASES: usize = 256 << 10;
/// Length in bp of the windows in which artificial k-mers of tandem repeats are searched, as in reads. Windows begin
/// every half of it, so that one of them holds each repeat of a read.
const REPEAT_WINDOW_BASES: usize = 512;

/// For each searched k-mer, by k-mer rank, whether the reference contains it on either strand, also as an artificial
/// k-mer of a tandem repeat. `meter` shows the number of bases read.
///
/// # Errors
/// The reference cannot be read.
pub fn find_kmers_in_reference(
    reference: &Path,
    lookup: &KmerLookup,
    threads: usize,
    meter: &ProgressCounters,
) -> Result<Vec<bool>, Error> {
    let copies = count_copies(reference, lookup, threads, meter, true)?;
    Ok(copies.into_iter().map(|copies| copies > 0).collect())
}

/// Returns for each searched k-mer, by k-mer rank, the number of its occurrences in the reference on either strand: 0,
/// 1, or 2 for two or more. `meter` counts the bases read.
///
/// # Errors
/// The reference cannot be read.
pub fn count_reference_copies_up_to_two(
    reference: &Path,
    lookup: &KmerLookup,
    threads: usize,
    meter: &ProgressCounters,
) -> Result<Vec<u8>, Error> {
    count_copies(reference, lookup, threads, meter, false)
}

/// As [`count_reference_copies_up_to_two`]; with `counts_repeats` copies of the artificial k-mers of tandem repeats
/// count too, some of them twice.
fn count_copies(
    reference: &Path,
    lookup: &KmerLookup,
    threads: usize,
    meter: &ProgressCounters,
    counts_repeats: bool,
) -> Result<Vec<u8>, Error> {
    let copies: Vec<AtomicU8> = (0..lookup.len()).map(|_| AtomicU8::new(0)).collect();
    let count_copy = |copies: &AtomicU8| {
        // K-mers of repeats are found often; the count stops at 2.
        if copies.load(Relaxed) < 2 {
            let _ = copies.fetch_update(Relaxed, Relaxed, |n| (n < 2).then_some(n + 1));
        }
    };
    let overlap = lookup.k() as usize - 1;
    let count_repeats = |chunk: &[u8], packed: &mut CodesAndPackedBases| {
        for from in (0..chunk.len()).step_by(REPEAT_WINDOW_BASES / 2) {
            let window = &chunk[from..(from + REPEAT_WINDOW_BASES).min(chunk.len())];
            packed.encode_bases(window, window, 0);
            for_each_repeat(window, packed.packed_bases(), |repeat| {
                for_each_repeat_kmer(window, repeat, lookup.k(), |encoded| {
                    lookup.rank_of_kmer(encoded.kmer).iter().for_each(|&rank| count_copy(&copies[rank as usize]));
                });
            });
        }
    };
    let search = |bases: &[u8]| {
        let starts = bases.len().saturating_sub(overlap);
        let chunk = |(scratch, hits, packed): &mut (_, Vec<_>, CodesAndPackedBases), i: usize| {
            let from = i * CHUNK_BASES;
            let chunk = &bases[from..(from + CHUNK_BASES).min(starts) + overlap];
            hits.clear();
            lookup.find_kmers(chunk, scratch, hits);
            hits.iter().for_each(|hit| count_copy(&copies[hit.rank as usize]));
            if counts_repeats {
                count_repeats(chunk, packed);
            }
        };
        let scratch = || (KmerLookupBuffers::default(), Vec::new(), CodesAndPackedBases::default());
        map_in_order(starts.div_ceil(CHUNK_BASES), threads, scratch, chunk);
        meter.add_bytes(starts as u64);
    };
    let mut buffer = Vec::with_capacity(BUFFER_BASES + (1 << 20));
    read_fasta_events(reference, |part| match part {
        FastaEvent::Header { .. } => buffer.push(b'N'),
        FastaEvent::Bases(bases) => {
            buffer.extend(bases.iter().map(u8::to_ascii_uppercase));
            if buffer.len() >= BUFFER_BASES {
                search(&buffer);
                buffer.drain(..buffer.len() - overlap);
            }
        }
    })?;
    search(&buffer);
    Ok(copies.into_iter().map(AtomicU8::into_inner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_kmers::encode::kmers;
    use genuma_reads::dna::reverse_complement;

    #[test]
    fn what_the_reference_has_on_either_strand_is_known_across_chunks_and_not_across_sequences() {
        let mut x = 11u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let long: Vec<u8> = (0..BUFFER_BASES + CHUNK_BASES + 999).map(|_| base()).collect();
        let (short, strange): (Vec<u8>, Vec<u8>) =
            ((0..500).map(|_| base()).collect(), (0..500).map(|_| base()).collect());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        let text = [b">one\n", &long.to_ascii_lowercase()[..], b"\n>two\n", &short, b"\n"].concat();
        std::fs::write(&path, text).unwrap();
        // Around the ends of a chunk and of the buffer, at the end of a sequence, on the other strand, and sequence
        // that the reference lacks.
        let here: Vec<Vec<u8>> = [CHUNK_BASES, BUFFER_BASES, long.len() - 50, 50]
            .map(|at| long[at - 50..at + 50].to_vec())
            .into_iter()
            .chain([reverse_complement(&short), short.clone()])
            .collect();
        let across = [&long[long.len() - 30..], &short[..30]].concat();
        let all = |seqs: &[Vec<u8>]| {
            let mut all: Vec<u64> =
                seqs.iter().flat_map(|seq| kmers(seq, 31).map(|(_, k)| k.canonical()).collect::<Vec<_>>()).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (there, not) = (all(&here), all(&[across, strange]));
        let wanted: Vec<u64> = there.iter().chain(&not).copied().collect();
        let (lookup, meter) =
            (KmerLookup::from_kmer_iter(31, wanted.into_iter()), ProgressCounters::new("the reference"));
        for threads in [1, 3] {
            let copies = find_kmers_in_reference(&path, &lookup, threads, &meter).unwrap();
            assert!(copies[..there.len()].iter().all(|copies| *copies), "{threads}");
            assert!(copies[there.len()..].iter().all(|copies| !copies), "{threads}");
        }
    }

    #[test]
    fn what_stands_twice_is_told_from_what_stands_once_whatever_the_strand() {
        let (once, twice) = (b"ACGGATTACAGGCATTAGCCATTGACCGTATC", b"TTGACGGCATACGATCCATGGACCATAGGCTA");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        let text =
            [b">one\n", &once[..], b"N", twice, b"\n>two\n", &reverse_complement(twice), b"N", twice, b"\n"].concat();
        std::fs::write(&path, text).unwrap();
        let of = |seq: &[u8]| kmers(seq, 31).map(|(_, k)| k.canonical()).collect::<Vec<u64>>();
        let wanted = [of(once), of(twice), of(&reverse_complement(b"TACGATTACAGGCATTAGCCATTGACCGTATT"))].concat();
        let lookup = KmerLookup::from_kmer_iter(31, wanted.iter().copied());
        let found = count_reference_copies_up_to_two(&path, &lookup, 2, &ProgressCounters::default()).unwrap();
        assert_eq!(found, [1, 1, 2, 2, 0, 0]);
    }
}
