//! Finds the positions of roots in the genome.

use genuma_kmers::encode::reverse_complement_kmer;
use genuma_pair::sketch::SketchRootSampling;
use genuma_reads::dna;
use genuma_reads::fasta::Reference;
use genuma_reads::packed_bases::{CodesAndPackedBases, WORD_BASES};
use genuma_work::parallel::map_in_order;

use crate::kmer_map::{KmerMap, StartedKmerLookup};

/// Number of bases in one unit of parallel work.
const CHUNK_BASES: usize = 1 << 20;
/// Number of roots looked up together, so that their cache lines are loaded in parallel.
const LOOKUP_BATCH: usize = 128;

/// Reusable buffers of one thread.
#[derive(Default)]
struct RootScratch {
    codes: CodesAndPackedBases,
    memory: [Vec<u64>; 2],
    fit: Vec<u64>,
    pending: Vec<(u32, StartedKmerLookup)>,
}

impl RootScratch {
    /// Appends to `hits` the rank and the position in `seq` of each root of `known` that the sequence contains.
    fn find_roots(&mut self, known: &KmerMap, shape: SketchRootSampling, seq: &[u8], hits: &mut Vec<(u32, u32)>) {
        let RootScratch { codes, memory, fit, pending } = self;
        let bases = shape.root_bases as usize;
        let Some(last) = seq.len().checked_sub(bases) else { return };
        // Reference bases have no qualities; any value will do.
        codes.encode_bases(seq, seq, 0);
        let packed = codes.packed_bases();
        shape.find_pattern_matches(packed, memory, fit);
        let mut look = |pending: &mut Vec<(u32, StartedKmerLookup)>| {
            pending.retain(|(_, root)| known.check_filter_and_prefetch_slot(root));
            hits.extend(pending.drain(..).filter_map(|(at, root)| Some((known.finish_lookup(&root)?, at))));
        };
        for (from, &fit) in (0..=last).step_by(64).zip(&*fit) {
            let mut fit = fit & (u64::MAX << (63 - (last - from).min(63)));
            while fit != 0 {
                let one = fit.leading_zeros();
                fit ^= 1 << (63 - one);
                let at = from + one as usize;
                if packed.has_non_acgt && seq[at..at + bases].iter().any(|&base| dna::encode_base(base) > 3) {
                    continue;
                }
                let root = packed.word_from_base(at) >> (2 * (WORD_BASES - bases));
                if pending.len() == LOOKUP_BATCH {
                    look(pending);
                }
                pending
                    .push((at as u32, known.start_lookup(root.min(reverse_complement_kmer(root, shape.root_bases)))));
            }
        }
        look(pending);
    }
}

/// Finds each of `roots` in the genome: returns for each root the index of its sequence and its 0-based position, or
/// `None` if the root does not occur exactly once. `roots` may have duplicates. `shape` is the length of the roots and
/// the rule by which they were sampled.
pub fn locate_unique_roots(
    genome: &Reference,
    roots: &[u64],
    shape: SketchRootSampling,
    threads: usize,
) -> Vec<Option<(u32, u32)>> {
    let bases = shape.root_bases;
    let canonical = |root: u64| root.min(reverse_complement_kmer(root, bases));
    let mut distinct: Vec<u64> = roots.iter().map(|&root| canonical(root)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let known = KmerMap::from_kmers(distinct.clone());
    let chunks: Vec<(u32, usize)> = (0u32..)
        .zip(&genome.contigs)
        .flat_map(|(contig, c)| (0..c.seq.len()).step_by(CHUNK_BASES).map(move |from| (contig, from)))
        .collect();
    let look = |(scratch, hits): &mut (RootScratch, Vec<_>), i: usize| {
        let (contig, from) = chunks[i];
        let seq = &genome.contigs[contig as usize].seq;
        hits.clear();
        scratch.find_roots(&known, shape, &seq[from..(from + CHUNK_BASES + bases as usize - 1).min(seq.len())], hits);
        hits.iter().map(|&(rank, at)| (rank, contig, from as u32 + at)).collect::<Vec<_>>()
    };
    let found = map_in_order(chunks.len(), threads, Default::default, look);
    let mut positions: Vec<Option<(u32, u32)>> = vec![None; distinct.len()];
    let mut times = vec![0u8; distinct.len()];
    for (rank, contig, at) in found.into_iter().flatten() {
        positions[rank as usize] = Some((contig, at));
        times[rank as usize] = times[rank as usize].saturating_add(1);
    }
    roots
        .iter()
        .map(|&root| {
            let rank = known.rank_of_kmer(canonical(root))? as usize;
            positions[rank].filter(|_| times[rank] == 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use genuma_kmers::encode::pack;
    use genuma_reads::dna::reverse_complement;

    use super::*;

    #[test]
    fn a_root_has_a_place_if_it_has_one_only() {
        let mut x = 5u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let mut seqs: Vec<Vec<u8>> =
            [CHUNK_BASES + 5_000, 900].map(|n| (0..n).map(|_| base()).collect::<Vec<u8>>()).to_vec();
        let copied = seqs[0][100..200].to_vec();
        seqs[1][300..400].copy_from_slice(&copied);
        let root = |seq: &[u8]| pack(seq).unwrap();
        let roots = [
            root(&seqs[0][CHUNK_BASES - 10..][..29]),
            root(&reverse_complement(&seqs[1][700..729])),
            root(&seqs[0][120..149]),
            root(&[b'A'; 29]),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        std::fs::write(&path, [b">0\n", &seqs[0][..], b"\n>1\n", &seqs[1], b"\n"].concat()).unwrap();
        let genome = Reference::read_fasta_file(&path).unwrap();
        let expected = vec![Some((0, CHUNK_BASES as u32 - 10)), Some((1, 700)), None, None];
        for threads in [1, 3] {
            assert_eq!(
                locate_unique_roots(&genome, &roots, SketchRootSampling::without_sampling(29), threads),
                expected
            );
        }
    }
}
