//! Which of some k-mers the reference has, and how often.
//!
//! Where the normal was hardly read, all that the tumour has looks new: at 8x one k-mer of thirty. Four of five of these stand in the reference, so
//! nothing is new there. The reference is read past the k-mers, some chunks at a time, and never held.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use genuma_reads::Error;
use genuma_reads::fasta::{Part, read_parts};
use genuma_work::Meter;
use genuma_work::parallel::in_order;

use crate::sought::Sought;

/// Bases that are gathered before all threads look through them, and those that a thread takes at once.
const GATHERED: usize = 32 << 20;
const CHUNK: usize = 256 << 10;

/// For each k-mer that is sought, by rank, whether it stands in the reference, on either strand. `meter` is told of the bases.
///
/// # Errors
/// A reference that cannot be read.
pub fn known(reference: &Path, sought: &Sought, threads: usize, meter: &Meter) -> Result<Vec<bool>, Error> {
    Ok(copies(reference, sought, threads, meter)?.into_iter().map(|copies| copies > 0).collect())
}

/// The same, but how often: 2 stands for twice and oftener.
///
/// # Errors
/// A reference that cannot be read.
pub fn copies(reference: &Path, sought: &Sought, threads: usize, meter: &Meter) -> Result<Vec<u8>, Error> {
    let known: Vec<AtomicU8> = (0..sought.len()).map(|_| AtomicU8::new(0)).collect();
    let met = |known: &AtomicU8| {
        // Those of a repeat are met often; who finds two there leaves it.
        if known.load(Relaxed) < 2 {
            let _ = known.fetch_update(Relaxed, Relaxed, |n| (n < 2).then_some(n + 1));
        }
    };
    let overlap = sought.k() as usize - 1;
    let look = |bases: &[u8]| {
        let starts = bases.len().saturating_sub(overlap);
        let chunk = |(looking, hits): &mut (_, Vec<_>), i: usize| {
            let from = i * CHUNK;
            hits.clear();
            sought.find(&bases[from..(from + CHUNK).min(starts) + overlap], looking, hits);
            hits.iter().for_each(|hit| met(&known[hit.rank as usize]));
        };
        in_order(starts.div_ceil(CHUNK), threads, || (sought.looking(), Vec::new()), chunk);
        meter.add_bytes(starts as u64);
    };
    let mut gathered = Vec::with_capacity(GATHERED + (1 << 20));
    read_parts(reference, |part| match part {
        Part::Header { .. } => gathered.push(b'N'),
        Part::Bases(bases) => {
            gathered.extend(bases.iter().map(u8::to_ascii_uppercase));
            if gathered.len() >= GATHERED {
                look(&gathered);
                gathered.drain(..gathered.len() - overlap);
            }
        }
    })?;
    look(&gathered);
    Ok(known.into_iter().map(AtomicU8::into_inner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_kmers::encode::kmers;
    use genuma_reads::dna::revcomp;

    #[test]
    fn what_the_reference_has_on_either_strand_is_known_across_chunks_and_not_across_sequences() {
        let mut x = 11u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let long: Vec<u8> = (0..GATHERED + CHUNK + 999).map(|_| base()).collect();
        let (short, strange): (Vec<u8>, Vec<u8>) =
            ((0..500).map(|_| base()).collect(), (0..500).map(|_| base()).collect());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        let text = [b">one\n", &long.to_ascii_lowercase()[..], b"\n>two\n", &short, b"\n"].concat();
        std::fs::write(&path, text).unwrap();
        // Around the ends of a chunk and of what is gathered, the last ones, the other strand, and what is nowhere.
        let here: Vec<Vec<u8>> = [CHUNK, GATHERED, long.len() - 50, 50]
            .map(|at| long[at - 50..at + 50].to_vec())
            .into_iter()
            .chain([revcomp(&short), short.clone()])
            .collect();
        let across = [&long[long.len() - 30..], &short[..30]].concat();
        let all = |seqs: &[Vec<u8>]| {
            let mut all: Vec<u64> = seqs
                .iter()
                .flat_map(|seq| kmers(seq, 31).map(|(_, k)| k.canonical()).collect::<Vec<_>>())
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (there, not) = (all(&here), all(&[across, strange]));
        let wanted: Vec<u64> = there.iter().chain(&not).copied().collect();
        let (sought, meter) = (Sought::new(31, wanted.into_iter()), Meter::of("the reference"));
        for threads in [1, 3] {
            let known = known(&path, &sought, threads, &meter).unwrap();
            assert!(known[..there.len()].iter().all(|known| *known), "{threads}");
            assert!(known[there.len()..].iter().all(|known| !known), "{threads}");
        }
    }

    #[test]
    fn what_stands_twice_is_told_from_what_stands_once_whatever_the_strand() {
        let (once, twice) = (b"ACGGATTACAGGCATTAGCCATTGACCGTATC", b"TTGACGGCATACGATCCATGGACCATAGGCTA");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        let text =
            [b">one\n", &once[..], b"N", twice, b"\n>two\n", &revcomp(twice), b"N", twice, b"\n"].concat();
        std::fs::write(&path, text).unwrap();
        let of = |seq: &[u8]| kmers(seq, 31).map(|(_, k)| k.canonical()).collect::<Vec<u64>>();
        let wanted = [of(once), of(twice), of(&revcomp(b"TACGATTACAGGCATTAGCCATTGACCGTATT"))].concat();
        let sought = Sought::new(31, wanted.iter().copied());
        let found = copies(&path, &sought, 2, &Meter::default()).unwrap();
        assert_eq!(found, [1, 1, 2, 2, 0, 0]);
    }
}
