//! Where roots stand in the genome.

use genuma_kmers::encode::revcomp;
use genuma_reads::fasta::Reference;
use genuma_work::parallel::in_order;

use crate::sought::Sought;

/// Bases that a thread looks at together.
const CHUNK: usize = 1 << 20;

/// For each root of `bases` bases the sequence and base (from 0) where it stands, if that is one place; a root may be asked for twice.
pub fn places(genome: &Reference, roots: &[u64], bases: u32, threads: usize) -> Vec<Option<(u32, u32)>> {
    let canonical = |root: u64| root.min(revcomp(root, bases));
    let mut distinct: Vec<u64> = roots.iter().map(|&root| canonical(root)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let sought = Sought::new(bases, distinct.iter().copied());
    let chunks: Vec<(u32, usize)> = (0u32..)
        .zip(&genome.contigs)
        .flat_map(|(contig, c)| (0..c.seq.len()).step_by(CHUNK).map(move |from| (contig, from)))
        .collect();
    let look = |(looking, hits): &mut (_, Vec<_>), i: usize| {
        let (contig, from) = chunks[i];
        let seq = &genome.contigs[contig as usize].seq;
        hits.clear();
        sought.find(&seq[from..(from + CHUNK + bases as usize - 1).min(seq.len())], looking, hits);
        hits.iter().map(|hit| (hit.rank, contig, from as u32 + hit.at)).collect::<Vec<_>>()
    };
    let found = in_order(chunks.len(), threads, || (sought.looking(), Vec::new()), look);
    let mut places: Vec<Option<(u32, u32)>> = vec![None; distinct.len()];
    let mut times = vec![0u8; distinct.len()];
    for (rank, contig, at) in found.into_iter().flatten() {
        places[rank as usize] = Some((contig, at));
        times[rank as usize] = times[rank as usize].saturating_add(1);
    }
    roots
        .iter()
        .map(|&root| {
            let rank = sought.rank(canonical(root))? as usize;
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
            assert_eq!(places(&genome, &roots, 29, threads), expected);
        }
    }
}
