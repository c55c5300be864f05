//! Reads of both alleles of a change, planted, recruited and compared.

use std::collections::HashSet;

use super::{K, READ, Rng, canonical, contig, lend, pair, replaced};
use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{self, Reference};
use genuma_somatic::aligned_contig::{AlignedContig, align_contig};
use genuma_somatic::genotype::{ErrorFrequency, GenotypingParams, GenotypingResult, genotype_change};
use genuma_somatic::kmer_lookup::KmerLookupBuffers;
use genuma_somatic::labelled_pair::LabelledPair;
use genuma_somatic::locus::Locus;
use genuma_somatic::molecule_vote::MoleculeVote;
use genuma_somatic::packed::PackedRead;
use genuma_somatic::read_placement::place_reads;
use genuma_somatic::recruit::{PairCountsByRecruitingKmer, RecruitedPair, RecruitingKmerIndex, RecruitingKmers};
use genuma_somatic::sequencing_errors::{BaseErrorCounts, ErrorModel};
use genuma_somatic::slippage::SlippageModel;

/// A locus of 2,000 bases with one change in the middle.
pub struct PlantedChange {
    pub normal: Vec<u8>,
    pub tumour: Vec<u8>,
    /// Number of replaced bases, and number of bases in the tumour.
    pub at: usize,
    pub removed: usize,
    pub added: usize,
}

impl PlantedChange {
    pub fn new(normal: Vec<u8>, at: usize, removed: usize, added: &[u8]) -> PlantedChange {
        let tumour = replaced(&normal, at, removed, added);
        PlantedChange { normal, tumour, at, removed, added: added.len() }
    }

    pub fn genome(&self) -> Reference {
        Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: self.normal.clone() }])
    }

    /// The assembled contig, aligned with the normal sequence. The hit is that of the left flank.
    pub fn compared(&self) -> AlignedContig {
        let genome = self.genome();
        let (from, to) = (self.at - 200, self.at + self.added + 200);
        let seq = self.tumour[from..to].to_vec();
        let contig = contig(seq, &canonical(&[&self.normal]));
        let flank = |query: usize, start: usize, primary: bool| hit(query, start, primary);
        let hits = [flank(0, from, true), flank(200 + self.added, self.at + self.removed, false)];
        let compared = align_contig(&contig, &hits, &genome);
        assert_eq!(compared.changes.len(), 1, "{:?}", compared.changes);
        compared
    }
}

/// A hit of 200 matching bases.
pub fn hit(query: usize, start: usize, primary: bool) -> Hit {
    Hit {
        tid: 0,
        ref_start: start,
        ref_end: start + 200,
        query_start: query,
        query_end: query + 200,
        strand: Strand::Forward,
        mapq: 60,
        score: 200,
        alignment_columns: 200,
        matching_bases: 200,
        proper_pair: false,
        is_primary: primary,
        is_secondary: false,
        cigar: vec![CigarOp { kind: CigarKind::Match, len: 200 }],
    }
}

/// Pairs with exactly one mate across `haplotype[core]`, with at least `margin` bases on both sides.
pub struct Planter {
    pub rng: Rng,
    pub made: usize,
}

impl Planter {
    pub fn plant(
        &mut self,
        n: usize,
        sample: u8,
        haplotype: &[u8],
        core: std::ops::Range<usize>,
        margin: usize,
    ) -> Vec<LabelledPair> {
        assert!(core.len() + 2 * margin < READ);
        let mut starts: Vec<usize> = (core.end + margin - READ..=core.start - margin).collect();
        self.rng.shuffle(&mut starts);
        assert!(starts.len() >= n, "no two pairs may start at one place");
        starts[..n]
            .iter()
            .map(|&from| {
                let forward = self.rng.chance(0.5);
                let covering = haplotype[from..from + READ].to_vec();
                // The other mate is wholly outside the change, on the other strand.
                let insert = self.rng.within(450..550);
                let mates = if forward {
                    [covering, reverse_complement(&haplotype[from + insert - READ..from + insert])]
                } else {
                    [reverse_complement(&covering), haplotype[from + READ - insert..from + 2 * READ - insert].to_vec()]
                };
                self.made += 1;
                let mut made = pair(&format!("p{}", self.made), sample, mates);
                if self.rng.chance(0.5) {
                    made.mates.reverse();
                }
                made
            })
            .collect()
    }
}

/// Votes of the reads on the first change of a contig.
pub struct Weighed {
    pub votes: Vec<Vec<MoleculeVote>>,
    pub kind: ErrorFrequency,
    pub molecules: [u32; 2],
}

impl Weighed {
    pub fn counts(&self, sample: u8) -> (usize, usize) {
        let votes = &self.votes[sample as usize];
        (
            votes.iter().filter(|v| v.supports_normal_allele()).count(),
            votes.iter().filter(|v| v.supports_tumour_allele()).count(),
        )
    }

    /// Number of pairs beyond the first of their molecule.
    pub fn copies(&self) -> [u32; 2] {
        [0, 1].map(|sample: usize| self.votes[sample].iter().map(|v| u32::from(v.duplicates)).sum())
    }

    pub fn judged(&self) -> GenotypingResult {
        let params = GenotypingParams {
            num_molecules: self.molecules,
            ..GenotypingParams::defaults_for_error_frequency(self.kind)
        };
        genotype_change(&self.votes[0], &self.votes[1..], params)
    }
}

/// The pairs recruited for a contig, and the contig with its reads.
pub fn recruit(compared: &AlignedContig, genome: &Reference, pairs: &[LabelledPair]) -> (Vec<RecruitedPair>, Locus) {
    let index = RecruitingKmerIndex::from_recruiting_kmers(RecruitingKmers::select_recruiting_kmers(
        &mut vec![compared.clone()],
        K,
        Some(genome),
        1,
    ));
    let (seen, mut looking, mut found) =
        (PairCountsByRecruitingKmer::zero_counts(&index, 2), KmerLookupBuffers::default(), Vec::new());
    let mut kept: Vec<RecruitedPair> = pairs
        .iter()
        .filter_map(|p| lend(p, |lent| index.recruit_pair(lent, p.sample, &seen, &mut looking, &mut found)))
        .collect();
    for pair in &kept {
        let original = pairs.iter().find(|p| *p.name == *pair.name).unwrap();
        let mates = original.mates.each_ref().map(PackedRead::unpack);
        assert_eq!((&pair.mates, pair.sample), (&mates, original.sample));
    }
    let deep = index.compute_locus_depths(&seen, 1);
    kept.iter_mut().for_each(|pair| index.drop_pair_at_downsampled_contigs(pair, &deep, &mut looking, &mut found));
    kept.retain(|pair| !pair.contigs.is_empty());
    kept.sort_unstable();
    let members: Vec<u32> = (0..kept.len() as u32).collect();
    let mut locus = Locus::from_contig_without_reads(compared.clone(), deep.downsampling_factors()[0]);
    locus.set_placed_reads(place_reads(compared, &members, &kept), &kept);
    (kept, locus)
}

pub fn weigh_all(compared: &AlignedContig, genome: &Reference, pairs: &[LabelledPair]) -> Vec<Weighed> {
    let (pairs, locus) = recruit(compared, genome, pairs);
    let errors = ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::default(), SlippageModel::default());
    let evidence = locus.compute_locus_evidence(&[], &pairs, &errors);
    let weigh = |f: usize| {
        let votes = evidence.molecule_votes(f);
        let mut voters = HashSet::new();
        for vote in votes.iter().flatten() {
            assert!(voters.insert(vote.pair), "a molecule votes once");
            assert_eq!(evidence.molecule_assignment().representative_of_pair(vote.pair), vote.pair);
        }
        Weighed { votes, kind: evidence.error_frequency_of_change(f), molecules: evidence.count_covering_molecules(f) }
    };
    (0..compared.changes.len()).map(weigh).collect()
}

pub fn weigh(place: &PlantedChange, pairs: &[LabelledPair]) -> Weighed {
    weigh_all(&place.compared(), &place.genome(), pairs).remove(0)
}
