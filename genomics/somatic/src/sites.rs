//! Where roots stand in the genome.

use genuma_kmers::encode::revcomp;
use genuma_pair::sampled::Shape;
use genuma_reads::dna;
use genuma_reads::fasta::Reference;
use genuma_reads::packed::{Codes, WORD};
use genuma_work::parallel::in_order;

use crate::kmer_map::{Asked, KmerMap};

/// Bases that a thread looks at together.
const CHUNK: usize = 1 << 20;
/// Roots looked up together: their cache lines come while others are asked for.
const TOGETHER: usize = 128;

/// What a thread needs to look; keeps its memory between stretches.
#[derive(Default)]
struct Looking {
    codes: Codes,
    memory: [Vec<u64>; 2],
    fit: Vec<u64>,
    asked: Vec<(u32, Asked)>,
}

impl Looking {
    /// Appends the rank and the place in a sequence of each root of `known` that it has.
    fn find(&mut self, known: &KmerMap, shape: Shape, seq: &[u8], hits: &mut Vec<(u32, u32)>) {
        let Looking { codes, memory, fit, asked } = self;
        let bases = shape.bases as usize;
        let Some(last) = seq.len().checked_sub(bases) else { return };
        // Bases have no qualities: any will do.
        codes.load(seq, seq, 0);
        let packed = codes.packed();
        shape.find(packed, memory, fit);
        let mut look = |asked: &mut Vec<(u32, Asked)>| {
            asked.retain(|(_, root)| known.may_have(root));
            hits.extend(asked.drain(..).filter_map(|(at, root)| Some((known.answer(&root)?, at))));
        };
        for (from, &fit) in (0..=last).step_by(64).zip(&*fit) {
            let mut fit = fit & (u64::MAX << (63 - (last - from).min(63)));
            while fit != 0 {
                let one = fit.leading_zeros();
                fit ^= 1 << (63 - one);
                let at = from + one as usize;
                if packed.foreign && seq[at..at + bases].iter().any(|&base| dna::code(base) > 3) {
                    continue;
                }
                let root = packed.word(at) >> (2 * (WORD - bases));
                if asked.len() == TOGETHER {
                    look(asked);
                }
                asked.push((at as u32, known.ask(root.min(revcomp(root, shape.bases)))));
            }
        }
        look(asked);
    }
}

/// For each root of such a shape the sequence and base (from 0) where it stands, if that is one place; a root may be asked for twice.
pub fn places(genome: &Reference, roots: &[u64], shape: Shape, threads: usize) -> Vec<Option<(u32, u32)>> {
    let bases = shape.bases;
    let canonical = |root: u64| root.min(revcomp(root, bases));
    let mut distinct: Vec<u64> = roots.iter().map(|&root| canonical(root)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let known = KmerMap::new(distinct.iter().copied());
    let chunks: Vec<(u32, usize)> = (0u32..)
        .zip(&genome.contigs)
        .flat_map(|(contig, c)| (0..c.seq.len()).step_by(CHUNK).map(move |from| (contig, from)))
        .collect();
    let look = |(looking, hits): &mut (Looking, Vec<_>), i: usize| {
        let (contig, from) = chunks[i];
        let seq = &genome.contigs[contig as usize].seq;
        hits.clear();
        looking.find(&known, shape, &seq[from..(from + CHUNK + bases as usize - 1).min(seq.len())], hits);
        hits.iter().map(|&(rank, at)| (rank, contig, from as u32 + at)).collect::<Vec<_>>()
    };
    let found = in_order(chunks.len(), threads, Default::default, look);
    let mut places: Vec<Option<(u32, u32)>> = vec![None; distinct.len()];
    let mut times = vec![0u8; distinct.len()];
    for (rank, contig, at) in found.into_iter().flatten() {
        places[rank as usize] = Some((contig, at));
        times[rank as usize] = times[rank as usize].saturating_add(1);
    }
    roots
        .iter()
        .map(|&root| {
            let rank = known.get(canonical(root))? as usize;
            places[rank].filter(|_| times[rank] == 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use genuma_kmers::encode::pack;
    use genuma_reads::dna::revcomp;

    use super::*;

    #[test]
    fn a_root_has_a_place_if_it_has_one_only() {
        let mut x = 5u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let mut seqs: Vec<Vec<u8>> =
            [CHUNK + 5_000, 900].map(|n| (0..n).map(|_| base()).collect::<Vec<u8>>()).to_vec();
        let copied = seqs[0][100..200].to_vec();
        seqs[1][300..400].copy_from_slice(&copied);
        let root = |seq: &[u8]| pack(seq).unwrap();
        let roots = [
            root(&seqs[0][CHUNK - 10..][..29]),
            root(&revcomp(&seqs[1][700..729])),
            root(&seqs[0][120..149]),
            root(&[b'A'; 29]),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        std::fs::write(&path, [b">0\n", &seqs[0][..], b"\n>1\n", &seqs[1], b"\n"].concat()).unwrap();
        let genome = Reference::read(&path).unwrap();
        let expected = vec![Some((0, CHUNK as u32 - 10)), Some((1, 700)), None, None];
        for threads in [1, 3] {
            assert_eq!(places(&genome, &roots, Shape::of_all(29), threads), expected);
        }
    }
}
