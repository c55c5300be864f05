use genuma_reads::fasta::Contig;

use super::*;
use crate::aligned_contig::ContigChange;
use crate::change::Change;
use crate::kmer_lookup::KmerLookupBuffers;

fn bases(n: usize, dice: &mut u64) -> Vec<u8> {
    let mut next = || {
        *dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        b"ACGT"[(*dice >> 62) as usize]
    };
    (0..n).map(|_| next()).collect()
}

/// A contig of 300 bases of the genome from `from` on with a changed base in the middle.
fn contig(genome: &[u8], from: usize) -> AlignedContig {
    let normal = genome[from..from + 300].to_vec();
    let mut seq = normal.clone();
    seq[150] = if seq[150] == b'A' { b'C' } else { b'A' };
    let (reference, alternative) = (vec![normal[150]], vec![seq[150]]);
    AlignedContig {
        novel: (0..300).map(|at| (120..181).contains(&at)).collect(),
        quality_sums: vec![74; 300],
        assembled: 0..300,
        num_reads: 4,
        changes: vec![ContigChange {
            change: Change::Allele { chrom: 0, pos: from + 150, reference, alternative },
            contig_range: 150..151,
            left_normal: normal.clone(),
            right_normal: normal,
            right_shift: 0,
            mapq: 0,
        }],
        diagonals: [None; 2],
        family_alleles: Vec::new(),
        other_loci: Default::default(),
        explanations: Vec::new(),
        seq,
    }
}

#[test]
fn no_reads_are_looked_for_where_too_many_copies_are_alike() {
    let mut dice = 5;
    let [few, many] = [0; 2].map(|_| bases(1_200, &mut dice));
    let mut genome = bases(2_000, &mut dice);
    let mut add = |copy: &[u8], times: u8| {
        let at = genome.len();
        (0..times).for_each(|_| genome.extend(copy.iter().copied().chain(bases(50, &mut dice))));
        at
    };
    let (few, many) = (add(&few, MAX_KMER_COPIES), add(&many, MAX_KMER_COPIES + 1));
    let all = [500, many + 450, few + 450].map(|from| contig(&genome, from));
    let reference = Reference::from_contigs(vec![Contig { name: "one".into(), seq: genome.clone() }]);
    let mut contigs = all.to_vec();
    let wanted = RecruitingKmers::select_recruiting_kmers(&mut contigs, 31, Some(&reference), 2);
    assert_eq!((wanted.omitted_repeat_contigs.as_slice(), wanted.contigs_without_unique_kmer), (&[1][..], 2));
    let index = RecruitingKmerIndex::from_recruiting_kmers(wanted);
    assert_eq!(contigs, [all[0].clone(), all[2].clone()]);
    let mut hits = Vec::new();
    let mut contigs_of = |from: usize| {
        let seq = &genome[from..from + 150];
        let pair = ReadPair { name: b"p", mates: [genuma_reads::Mate { seq, qual: seq }; 2] };
        let (mut looking, seen) = (KmerLookupBuffers::default(), PairCountsByRecruitingKmer::zero_counts(&index, 2));
        index.recruit_pair(pair, 0, &seen, &mut looking, &mut hits).map(|kept| kept.contigs)
    };
    assert_eq!([550, many + 520, few + 520].map(&mut contigs_of), [Some(vec![0]), None, Some(vec![1])]);
    // Another copy of the same repeat.
    assert_eq!(contigs_of(few + 1_250 + 520), Some(vec![1]));
    let mut without = all.to_vec();
    let index = RecruitingKmers::select_recruiting_kmers(&mut without, 31, None, 2);
    assert_eq!((without.len(), index.omitted_repeat_contigs.len()), (3, 0));
}
