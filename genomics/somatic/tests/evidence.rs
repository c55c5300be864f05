//! Planted reads of both alleles are recruited, placed, compared and genotyped.

use std::collections::HashSet;

use crate::common::{K, READ, Rng, Sequencer, canonical, contig, edit, lend, pair, replaced};
use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{self, Reference};
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use genuma_somatic::adjacent_substitutions::{count_change_pair_support, merge_adjacent_substitutions};
use genuma_somatic::aligned_contig::{AlignedContig, align_contig};
use genuma_somatic::change::Change;
use genuma_somatic::genotype::{
    Admixture, ErrorFrequency, Filter, GenotypingParams, GenotypingResult, MIN_CALL_MOLECULES_COMMON_ERROR,
    MIN_CALL_MOLECULES_RARE_ERROR, genotype_change,
};
use genuma_somatic::kmer_lookup::KmerLookupBuffers;
use genuma_somatic::known_variants::KnownVariantFrequencies;
use genuma_somatic::labelled_pair::LabelledPair;
use genuma_somatic::locus::{Locus, VariantCall};
use genuma_somatic::molecule_vote::MoleculeVote;
use genuma_somatic::packed::{OwnedRead, PackedRead};
use genuma_somatic::read_placement::place_reads;
use genuma_somatic::recruit::{RecruitedPair, RecruitingKmerCounts, RecruitingKmerIndex, RecruitingKmers};
use genuma_somatic::sequencing_errors::{BaseErrorCounts, ErrorModel, ReadOnContig};
use genuma_somatic::slippage::SlippageModel;

/// A locus of 2,000 bases with one change in the middle.
struct Place {
    normal: Vec<u8>,
    tumour: Vec<u8>,
    /// Number of replaced bases, and number of bases in the tumour.
    at: usize,
    removed: usize,
    added: usize,
}

impl Place {
    fn new(normal: Vec<u8>, at: usize, removed: usize, added: &[u8]) -> Place {
        let tumour = replaced(&normal, at, removed, added);
        Place { normal, tumour, at, removed, added: added.len() }
    }

    fn genome(&self) -> Reference {
        Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: self.normal.clone() }])
    }

    /// The assembled contig, aligned with the normal sequence. The hit is that of the left flank.
    fn compared(&self) -> AlignedContig {
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
fn hit(query: usize, start: usize, primary: bool) -> Hit {
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
struct Planter {
    rng: Rng,
    made: usize,
}

impl Planter {
    fn plant(
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
struct Weighed {
    votes: Vec<Vec<MoleculeVote>>,
    kind: ErrorFrequency,
    molecules: [u32; 2],
}

impl Weighed {
    fn counts(&self, sample: u8) -> (usize, usize) {
        let votes = &self.votes[sample as usize];
        (
            votes.iter().filter(|v| v.supports_normal_allele()).count(),
            votes.iter().filter(|v| v.supports_tumour_allele()).count(),
        )
    }

    /// Number of pairs beyond the first of their molecule.
    fn copies(&self) -> [u32; 2] {
        [0, 1].map(|sample: usize| self.votes[sample].iter().map(|v| u32::from(v.duplicates)).sum())
    }

    fn judged(&self) -> GenotypingResult {
        let params =
            GenotypingParams { num_molecules: self.molecules, ..GenotypingParams::for_error_frequency(self.kind) };
        genotype_change(&self.votes[0], &self.votes[1..], params)
    }
}

/// The pairs recruited for a contig, and the contig with its reads.
fn recruit(compared: &AlignedContig, genome: &Reference, pairs: &[LabelledPair]) -> (Vec<RecruitedPair>, Locus) {
    let index = RecruitingKmerIndex::from_recruiting_kmers(RecruitingKmers::select_recruiting_kmers(
        &mut vec![compared.clone()],
        K,
        Some(genome),
        1,
    ));
    let (seen, mut looking, mut found) =
        (RecruitingKmerCounts::zero(&index, 2), KmerLookupBuffers::for_kmer_length(K), Vec::new());
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
    kept.iter_mut().for_each(|pair| index.remove_downsampled_contigs(pair, &deep, &mut looking, &mut found));
    kept.retain(|pair| !pair.contigs.is_empty());
    kept.sort_unstable();
    let members: Vec<u32> = (0..kept.len() as u32).collect();
    let mut locus = Locus::from_contig_without_reads(compared.clone(), deep.downsampling_factors()[0]);
    locus.set_placed_reads(place_reads(compared, &members, &kept), &kept);
    (kept, locus)
}

fn weigh_all(compared: &AlignedContig, genome: &Reference, pairs: &[LabelledPair]) -> Vec<Weighed> {
    let (pairs, locus) = recruit(compared, genome, pairs);
    let errors = ErrorModel::from_counts(&BaseErrorCounts::default(), SlippageModel::default());
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

fn weigh(place: &Place, pairs: &[LabelledPair]) -> Weighed {
    weigh_all(&place.compared(), &place.genome(), pairs).remove(0)
}

/// Plants 11 and 17 pairs of the tumour's two alleles and 21 of the normal, and finds exactly these.
fn counts_what_was_planted(
    locus: &Place,
    margin: usize,
    normal: std::ops::Range<usize>,
    tumour: std::ops::Range<usize>,
) {
    for seed in 0..10 {
        let mut planter = Planter { rng: Rng(seed), made: 0 };
        let pairs = [
            planter.plant(11, TUMOUR_SAMPLE, &locus.tumour, tumour.clone(), margin),
            planter.plant(17, TUMOUR_SAMPLE, &locus.normal, normal.clone(), margin),
            planter.plant(21, NORMAL_SAMPLE, &locus.normal, normal.clone(), margin),
        ]
        .concat();
        let weighed = weigh(locus, &pairs);
        assert_eq!(weighed.counts(TUMOUR_SAMPLE), (17, 11), "seed {seed}");
        assert_eq!(weighed.counts(NORMAL_SAMPLE), (21, 0), "seed {seed}");
        assert_eq!(weighed.copies(), [0, 0]);
        let judged = weighed.judged();
        assert!(judged.filters.is_empty(), "{:?}", judged.filters);
        assert!(judged.quality > 30.0);
    }
}

#[test]
fn both_alleles_of_a_substitution_are_counted() {
    let mut rng = Rng(51);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    counts_what_was_planted(&Place::new(normal, 1000, 1, &[base]), 30, 1000..1001, 1000..1001);
}

#[test]
fn both_alleles_of_an_indel_in_a_tandem_repeat_are_counted() {
    for (repeats, unit, shorter) in [(10, &b"CA"[..], true), (10, b"CA", false), (12, b"A", true), (12, b"A", false)] {
        let mut rng = Rng(52);
        let mut normal = rng.sequence(2000);
        let repeat = unit.repeat(repeats);
        let end = 1000 + repeat.len();
        normal[1000..end].copy_from_slice(&repeat);
        (normal[999], normal[end]) = (b'G', b'T');
        let locus = if shorter { Place::new(normal, 1000, unit.len(), b"") } else { Place::new(normal, 1000, 0, unit) };
        let tumour = 1000..end + locus.added - locus.removed;
        counts_what_was_planted(&locus, 30, 1000..end, tumour);
    }
}

#[test]
fn both_alleles_of_a_tandem_duplication_are_counted() {
    let normal = Rng(53).sequence(2000);
    let copied = normal[1000..1090].to_vec();
    let locus = Place::new(normal, 1000, 0, &copied);
    // Only a read across the border of the copies, or across the whole single copy, supports an allele.
    counts_what_was_planted(&locus, 20, 1000..1090, 1070..1110);
    // Reads from the flanks into a copy, and from inside a copy, support no allele.
    let mut planter = Planter { rng: Rng(9), made: 0 };
    let silent = [
        planter.plant(10, NORMAL_SAMPLE, &locus.normal, 920..1010, 25),
        planter.plant(10, TUMOUR_SAMPLE, &locus.normal, 1080..1160, 25),
    ]
    .concat();
    let weighed = weigh(&locus, &silent);
    assert_eq!((weighed.counts(NORMAL_SAMPLE).1, weighed.counts(TUMOUR_SAMPLE).1), (0, 0));
}

/// The contig across the junction of two copies of `normal[1500..1500 + len]`, with `flank` bases on each side.
fn duplication_contig(normal: &[u8], tumour: &[u8], len: usize, flank: usize) -> (AlignedContig, Reference) {
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.to_vec() }]);
    let junction = 1500 + len;
    let contig = contig(tumour[junction - flank..junction + flank].to_vec(), &canonical(&[normal]));
    let half = |query: usize, start: usize, primary: bool| Hit {
        ref_end: start + flank,
        query_end: query + flank,
        score: flank as i32,
        alignment_columns: flank,
        matching_bases: flank,
        cigar: vec![CigarOp { kind: CigarKind::Match, len: flank as u32 }],
        ..hit(query, start, primary)
    };
    let hits = [half(0, junction - flank, true), half(flank, 1500, false)];
    let compared = align_contig(&contig, &hits, &genome);
    assert_eq!(compared.changes.len(), 1, "{:?}", compared.changes);
    (compared, genome)
}

#[test]
fn the_fraction_of_a_duplication_is_that_of_its_molecules_whatever_its_length() {
    for (len, flank) in [(30, 140), (70, 140), (110, 140), (150, 140), (180, 140), (260, 140), (400, 140), (900, 140)] {
        for share in [0.1, 0.3] {
            let mut rng = Rng(len as u64);
            let normal = rng.sequence(4000);
            let copied = normal[1500..1500 + len].to_vec();
            let tumour = replaced(&normal, 1500, 0, &copied);
            let (compared, genome) = duplication_contig(&normal, &tumour, len, flank);
            let mut pairs = Vec::new();
            let depths =
                [(NORMAL_SAMPLE, &normal, 0.5), (TUMOUR_SAMPLE, &normal, 1.0 - share), (TUMOUR_SAMPLE, &tumour, share)];
            for (sample, haplotype, part) in depths {
                let depth = (800.0 * part) as usize;
                let rng = Rng(rng.word());
                pairs.extend(Sequencer { rng, sample, depth, error: 0.001 }.pairs(haplotype));
            }
            let weighed = weigh_all(&compared, &genome, &pairs).remove(0);
            let (reference, alternative) = weighed.counts(TUMOUR_SAMPLE);
            let fraction = alternative as f64 / (reference + alternative) as f64;
            assert!((fraction - share).abs() < 0.05, "{len} bp at {share}: {fraction}");
            // About 430 molecules cross an end: no fragment begins in the last bases of the haplotype, so that its middle is deeper.
            let (reference, alternative) = weighed.counts(NORMAL_SAMPLE);
            assert!((300..510).contains(&reference) && alternative == 0, "{len} bp: {reference}, {alternative}");
            let judged = weighed.judged();
            assert!(judged.filters.is_empty(), "{len} bp at {share}: {:?}", judged.filters);
        }
    }
}

#[test]
fn pcr_copies_are_counted_once() {
    let mut rng = Rng(54);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let locus = Place::new(normal, 1000, 1, &[base]);
    let mut planter = Planter { rng: Rng(55), made: 0 };
    let mut pairs = planter.plant(5, TUMOUR_SAMPLE, &locus.tumour, 1000..1001, 40);
    pairs.extend(planter.plant(8, NORMAL_SAMPLE, &locus.normal, 1000..1001, 40));
    // Two duplicates of each of the tumour's pairs: one read from the other strand, one with errors at its start.
    let copies: Vec<LabelledPair> = pairs[..5]
        .iter()
        .flat_map(|p| {
            let (mut turned, mut worn) = (p.clone(), p.clone());
            turned.mates.reverse();
            turned.name = [&p.name, &b"turned"[..]].concat().into();
            edit(&mut worn.mates[0], |read| (read.seq[3], read.qual[3]) = (rng.another(read.seq[3]), 8));
            worn.name = [&p.name, &b"worn"[..]].concat().into();
            [turned, worn]
        })
        .collect();
    pairs.extend(copies);
    let weighed = weigh(&locus, &pairs);
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 5));
    assert_eq!(weighed.counts(NORMAL_SAMPLE), (8, 0));
    assert_eq!(weighed.copies(), [0, 10]);
    assert_eq!(weighed.judged().tumour.copies, 10);
}

#[test]
fn strangers_and_reads_of_another_change_do_not_vote_for_it() {
    let mut rng = Rng(56);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let other = b"ACGT".iter().copied().find(|&b| b != base && b != normal[1000]).unwrap();
    let locus = Place::new(normal, 1000, 1, &[base]);
    let third = replaced(&locus.normal, 1000, 1, &[other]);
    let mut planter = Planter { rng: Rng(57), made: 0 };
    let pairs = planter.plant(10, TUMOUR_SAMPLE, &third, 1000..1001, 40);
    let weighed = weigh(&locus, &pairs);
    // A third base supports neither allele.
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 0));
    // Paralogous sequence: except for the nearest bases, one in six differs.
    let mut strange = locus.tumour.clone();
    for i in (0..strange.len()).step_by(6).filter(|i| !(975..1025).contains(i)) {
        strange[i] = rng.another(strange[i]);
    }
    let weighed = weigh(&locus, &planter.plant(10, TUMOUR_SAMPLE, &strange, 1000..1001, 40));
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 0));
}

#[test]
fn linked_changes_are_each_judged_by_all_reads_across_them() {
    let mut rng = Rng(58);
    let normal = rng.sequence(2000);
    let places = [970, 985, 1000, 1020];
    let tumour = places.iter().fold(normal.clone(), |seq, &at| replaced(&seq, at, 1, &[rng.another(seq[at])]));
    // A subclone without the last of the changes.
    let subclone = replaced(&tumour, 1020, 1, &normal[1020..1021]);
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.clone() }]);
    let contig = contig(tumour[800..1200].to_vec(), &canonical(&[&normal]));
    let compared = align_contig(&contig, &[hit(0, 800, true), hit(200, 1000, false)], &genome);
    assert_eq!(compared.changes.len(), 4);
    let mut planter = Planter { rng: Rng(59), made: 0 };
    let pairs = [
        planter.plant(20, NORMAL_SAMPLE, &normal, 965..1025, 20),
        planter.plant(9, TUMOUR_SAMPLE, &normal, 965..1025, 20),
        planter.plant(12, TUMOUR_SAMPLE, &tumour, 965..1025, 20),
        planter.plant(7, TUMOUR_SAMPLE, &subclone, 965..1025, 20),
    ]
    .concat();
    for (f, weighed) in weigh_all(&compared, &genome, &pairs).iter().enumerate() {
        let (without, with) = if f == 3 { (16, 12) } else { (9, 19) };
        assert_eq!(
            (weighed.counts(NORMAL_SAMPLE), weighed.counts(TUMOUR_SAMPLE)),
            ((20, 0), (without, with)),
            "change {f}"
        );
        assert_eq!(weighed.judged().filters.len(), 0, "change {f}");
    }
}

/// Planted pairs: number, sample and haplotype.
type Planted<'a> = (usize, u8, &'a [u8]);

/// The calls of a contig of `tumour` after adjacent substitutions are merged.
fn called(normal: &[u8], tumour: &[u8], planted: &[Planted<'_>]) -> Vec<VariantCall> {
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.to_vec() }]);
    let contig = contig(tumour[800..1200].to_vec(), &canonical(&[normal]));
    let compared = align_contig(&contig, &[hit(0, 800, true), hit(200, 1000, false)], &genome);
    let mut planter = Planter { rng: Rng(62), made: 0 };
    let pairs: Vec<LabelledPair> =
        planted.iter().flat_map(|&(n, sample, haplotype)| planter.plant(n, sample, haplotype, 965..1025, 20)).collect();
    let (pairs, locus) = recruit(&compared, &genome, &pairs);
    let mut loci = [locus];
    let errors = ErrorModel::from_counts(&BaseErrorCounts::default(), SlippageModel::default());
    let neighbours = count_change_pair_support(0, &loci, &pairs, &errors);
    merge_adjacent_substitutions(&mut loci, neighbours);
    loci[0].genotype_changes(
        0,
        &loci[0].compute_locus_evidence(&loci, &pairs, &errors),
        8.0,
        Admixture::default(),
        &KnownVariantFrequencies::default(),
        true,
    )
}

/// Position, length and filters of each call, and the number of calls in phase with it.
fn summarize_calls(calls: &[VariantCall]) -> Vec<(usize, usize, Vec<Filter>, usize)> {
    let tell = |call: &VariantCall| match &call.change {
        Change::Allele { pos, reference, alternative, .. } if reference.len() == alternative.len() => {
            let filters = call.genotype.filters.iter().copied().collect();
            (*pos, reference.len(), filters, call.phased_changes.len())
        }
        other => panic!("{other:?}"),
    };
    calls.iter().map(tell).collect()
}

/// `normal` with other bases at some positions: the same bases for the same positions.
fn changed(normal: &[u8], places: &[usize]) -> Vec<u8> {
    places.iter().fold(normal.to_vec(), |seq, &at| replaced(&seq, at, 1, &[other(normal[at])]))
}

#[test]
fn neighbouring_substitutions_of_the_same_molecules_are_one_change() {
    let normal = Rng(63).sequence(2000);
    for places in [&[1000, 1001][..], &[998, 999, 1000], &[999, 1000, 1001, 1002]] {
        let tumour = changed(&normal, places);
        // One molecule has an error that looks like the first change.
        let misread = changed(&normal, &places[..1]);
        let planted = [
            (20, NORMAL_SAMPLE, &normal[..]),
            (9, TUMOUR_SAMPLE, &normal),
            (12, TUMOUR_SAMPLE, &tumour),
            (1, TUMOUR_SAMPLE, &misread),
        ];
        let calls = called(&normal, &tumour, &planted);
        assert_eq!(summarize_calls(&calls), [(places[0], places.len(), vec![], 0)]);
        let support = calls[0].genotype.tumour;
        assert!(matches!((support.reference, support.alternative), (9 | 10, 12)), "{support:?}");
        let (at, end) = (places[0], places[places.len() - 1] + 1);
        let (reference, alternative) = (normal[at..end].to_vec(), tumour[at..end].to_vec());
        assert_eq!(calls[0].change, Change::Allele { chrom: 0, pos: at, reference, alternative });
    }
}

#[test]
fn substitutions_that_part_company_stay_apart() {
    let normal = Rng(64).sequence(2000);
    let both = changed(&normal, &[1000, 1001]);
    let [first, second] = [1000, 1001].map(|at| changed(&normal, &[at]));
    // The second change is germline.
    let germline = [
        (10, NORMAL_SAMPLE, &normal[..]),
        (10, NORMAL_SAMPLE, &second),
        (9, TUMOUR_SAMPLE, &normal),
        (9, TUMOUR_SAMPLE, &second),
        (12, TUMOUR_SAMPLE, &both),
    ];
    let calls = called(&normal, &both, &germline);
    let told_of = summarize_calls(&calls);
    assert_eq!(told_of[0], (1000, 1, vec![], 0));
    assert!(told_of[1].0 == 1001 && told_of[1].2.contains(&Filter::Germline), "{told_of:?}");
    assert_eq!((calls[0].genotype.tumour.reference, calls[0].genotype.tumour.alternative), (18, 12));
    // A subclone has the second change only.
    let later = [
        (20, NORMAL_SAMPLE, &normal[..]),
        (9, TUMOUR_SAMPLE, &normal),
        (14, TUMOUR_SAMPLE, &first),
        (12, TUMOUR_SAMPLE, &both),
    ];
    assert_eq!(summarize_calls(&called(&normal, &both, &later)), [(1000, 1, vec![], 1), (1001, 1, vec![], 0)]);
    // An unchanged base is between them.
    let split = changed(&normal, &[1000, 1002]);
    let planted = [(20, NORMAL_SAMPLE, &normal[..]), (9, TUMOUR_SAMPLE, &normal), (12, TUMOUR_SAMPLE, &split)];
    assert_eq!(summarize_calls(&called(&normal, &split, &planted)), [(1000, 1, vec![], 1), (1002, 1, vec![], 0)]);
    // Three adjacent substitutions; the first arose before the others.
    let three = changed(&normal, &[999, 1000, 1001]);
    let older = changed(&normal, &[999]);
    let planted = [
        (20, NORMAL_SAMPLE, &normal[..]),
        (9, TUMOUR_SAMPLE, &normal),
        (9, TUMOUR_SAMPLE, &older),
        (12, TUMOUR_SAMPLE, &three),
    ];
    assert_eq!(summarize_calls(&called(&normal, &three, &planted)), [(999, 1, vec![], 1), (1000, 2, vec![], 0)]);
}

#[test]
fn changes_are_in_phase_when_molecules_have_both() {
    let normal = Rng(65).sequence(2000);
    let both = changed(&normal, &[975, 1015]);
    let [first, second] = [975, 1015].map(|at| changed(&normal, &[at]));
    let noted = |tumour: &[Planted<'_>]| {
        let planted = [&[(20, NORMAL_SAMPLE, &normal[..]), (9, TUMOUR_SAMPLE, &normal)], tumour].concat();
        let calls = called(&normal, &both, &planted);
        let told = summarize_calls(&calls);
        assert!(told.len() == 2 && told.iter().all(|t| t.2.is_empty()), "{told:?}");
        assert!(calls[0].phased_changes.iter().all(|c| *c == calls[1].change) && calls[1].phased_changes.is_empty());
        calls[0].phased_changes.len()
    };
    assert_eq!(noted(&[(12, TUMOUR_SAMPLE, &both)]), 1);
    // One of the changes is in a subclone, or missed in some molecules.
    assert_eq!(noted(&[(8, TUMOUR_SAMPLE, &both), (14, TUMOUR_SAMPLE, &second)]), 1);
    assert_eq!(noted(&[(8, TUMOUR_SAMPLE, &both), (3, TUMOUR_SAMPLE, &first), (4, TUMOUR_SAMPLE, &second)]), 1);
    // Few molecules have both: chimeras of two haplotypes.
    assert_eq!(noted(&[(2, TUMOUR_SAMPLE, &both), (12, TUMOUR_SAMPLE, &first), (14, TUMOUR_SAMPLE, &second)]), 0);
    assert_eq!(noted(&[(1, TUMOUR_SAMPLE, &both), (12, TUMOUR_SAMPLE, &first), (14, TUMOUR_SAMPLE, &second)]), 0);
}

#[test]
fn what_sequencers_hardly_make_needs_fewer_molecules() {
    let kind = |removed: usize, added: &[u8]| {
        let place = Place::new(Rng(60).sequence(2000), 1000, removed, added);
        let mut planter = Planter { rng: Rng(61), made: 0 };
        weigh(&place, &planter.plant(5, NORMAL_SAMPLE, &place.normal, 1000..1010, 40)).kind
    };
    let normal = Rng(60).sequence(2000);
    assert_eq!(kind(1, &[Rng(62).another(normal[1000])]), ErrorFrequency::Common);
    assert_eq!(kind(8, b""), ErrorFrequency::Rare);
    assert_eq!(kind(0, &Rng(63).sequence(12)), ErrorFrequency::Rare);
    let mut run = Rng(64).sequence(2000);
    run[1000..1010].fill(b'A');
    let place = Place::new(run, 1000, 1, b"");
    assert_eq!(weigh(&place, &[]).kind, ErrorFrequency::Common);

    let reasons = |kind, molecules| {
        let mut tumour = ballot(10, molecules);
        tumour.iter_mut().for_each(|v| v.log_odds = v.log_odds.signum() * 13.0);
        genotype_change(&ballot(30, 0), &[tumour], GenotypingParams::for_error_frequency(kind)).filters
    };
    assert!(reasons(ErrorFrequency::Common, MIN_CALL_MOLECULES_COMMON_ERROR - 1).contains(&Filter::FewReads));
    assert!(!reasons(ErrorFrequency::Common, MIN_CALL_MOLECULES_COMMON_ERROR).contains(&Filter::FewReads));
    assert!(reasons(ErrorFrequency::Rare, MIN_CALL_MOLECULES_RARE_ERROR - 1).contains(&Filter::FewReads));
    assert!(reasons(ErrorFrequency::Rare, MIN_CALL_MOLECULES_RARE_ERROR).is_empty());
}

#[test]
fn a_place_of_extreme_depth_is_thinned_alike_whatever_the_order_of_reads() {
    let mut rng = Rng(65);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let place = Place::new(normal, 1000, 1, &[base]);
    let compared = place.compared();
    let planted = |n: usize, prefix: &str| -> Vec<LabelledPair> {
        (0..n)
            .map(|i| {
                let haplotype = if i % 4 == 0 { &place.tumour } else { &place.normal };
                // Fragments of many lengths and all starts: each pair is a separate molecule.
                let (from, insert) = (880 + i % 100, 300 + i / 100 % 200);
                let fragment = &haplotype[from..from + insert];
                let mates = [fragment[..READ].to_vec(), reverse_complement(&fragment[insert - READ..])];
                pair(&format!("{prefix}{i}"), TUMOUR_SAMPLE, mates)
            })
            .collect()
    };
    // At a usual depth all pairs are kept.
    let few = planted(1000, "a");
    let (kept, locus) = recruit(&compared, &place.genome(), &few);
    assert_eq!((kept.len(), locus.downsampling_factors), (1000, [1, 1]));

    let mut many = planted(20_000, "b");
    let (kept, locus) = recruit(&compared, &place.genome(), &many);
    let one_in = locus.downsampling_factors;
    assert!(one_in[0] == 1 && one_in[1] > 1, "{one_in:?}");
    let expected = 20_000 / one_in[1] as usize;
    assert!(kept.len().abs_diff(expected) < expected / 10, "{}", kept.len());
    let with = kept.iter().filter(|p| {
        let i: usize = std::str::from_utf8(&p.name[1..]).unwrap().parse().unwrap();
        i.is_multiple_of(4)
    });
    assert!(with.count().abs_diff(expected / 4) < expected / 20, "both alleles are thinned alike");
    for seed in 0..3 {
        Rng(seed).shuffle(&mut many);
        let again = recruit(&compared, &place.genome(), &many);
        assert!(again == (kept.clone(), locus.clone()), "order {seed}");
    }
}

#[test]
fn slips_are_learned_from_the_normals_repeats() {
    let mut rng = Rng(70);
    let mut normal = rng.sequence(2000);
    normal[1030..1042].fill(b'A');
    (normal[1029], normal[1042]) = (b'G', b'C');
    let slipped = replaced(&normal, 1030, 1, b"");
    let base = rng.another(normal[1000]);
    let place = Place::new(normal, 1000, 1, &[base]);
    let learned = |slips: usize| {
        let mut planter = Planter { rng: Rng(71), made: 0 };
        let pairs = [
            planter.plant(40, NORMAL_SAMPLE, &place.normal, 1000..1042, 20),
            planter.plant(slips, NORMAL_SAMPLE, &slipped, 1000..1041, 20),
            planter.plant(20, TUMOUR_SAMPLE, &slipped, 1000..1041, 20),
        ]
        .concat();
        let (pairs, locus) = recruit(&place.compared(), &place.genome(), &pairs);
        SlippageModel::estimate_rates(&locus.count_errors(&pairs, None, true).1).length_probability(1, 12, 11)
    };
    // The tumour's length may be a change; a length in too many of the normal's reads is an allele.
    assert!(learned(0) < 0.01, "{}", learned(0));
    assert!(learned(2) > learned(0) + 0.005, "{}", learned(2));
    assert!(learned(12) < 0.01, "{}", learned(12));
}

#[test]
fn kmers_of_other_places_recruit_nothing() {
    // Next to the change is sequence that the genome has twice, as in a repeat.
    let mut rng = Rng(66);
    let copy = rng.sequence(400);
    let normal = [rng.sequence(800), copy.clone(), rng.sequence(800), copy, rng.sequence(600)].concat();
    let base = rng.another(normal[1210]);
    let place = Place::new(normal, 1210, 1, &[base]);
    let mut planter = Planter { rng: Rng(67), made: 0 };
    let own = planter.plant(20, NORMAL_SAMPLE, &place.normal, 1200..1220, 10);
    let others = planter.plant(20, NORMAL_SAMPLE, &place.normal, 2340..2390, 5);
    let (kept, _) = recruit(&place.compared(), &place.genome(), &[own.clone(), others].concat());
    let names = |mut names: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        names.sort();
        names
    };
    let kept = kept.iter().map(|p| p.name.clone()).collect();
    assert_eq!(names(kept), names(own.iter().map(|p| p.name.to_vec()).collect()));
}

/// Votes of good reads: `reference` and `alternative` of them, half on each strand and of each orientation, far from
/// the reads' ends.
fn ballot(reference: usize, alternative: usize) -> Vec<MoleculeVote> {
    (0..reference + alternative)
        .map(|i| MoleculeVote {
            pair: i as u32,
            log_odds: if i < reference { -9.0 } else { 9.0 },
            forward: i % 2 == 0,
            is_f1r2: i % 4 < 2,
            distance_from_end: 40,
            quality: 37,
            duplicates: 0,
            counts_in_fraction: true,
        })
        .collect()
}

fn reasons(normal: &[MoleculeVote], tumour: &[MoleculeVote]) -> Vec<Filter> {
    genotype_change(normal, &[tumour.to_vec()], GenotypingParams::default()).filters.into_iter().collect()
}

#[test]
fn clear_somatic_changes_pass() {
    for (reference, alternative) in [(15, 15), (22, 8), (24, 6), (0, 30), (40, 10)] {
        let (mut normal, mut tumour) = (ballot(30, 0), ballot(reference, alternative));
        (normal[3].duplicates, tumour[1].duplicates, tumour[2].duplicates) = (1, 1, 1);
        let judged = genotype_change(&normal, &[tumour], GenotypingParams::default());
        assert!(judged.filters.is_empty(), "{reference} {alternative}: {judged:?}");
        assert_eq!((judged.normal.reference, judged.normal.alternative, judged.normal.copies), (30, 0, 1));
        assert_eq!((judged.tumour.reference, judged.tumour.alternative), (reference as u32, alternative as u32));
        assert_eq!((judged.tumour.copies, judged.tumour.forward), (2, (alternative / 2) as u32));
    }
    // More support gives a higher quality, if the normal is deep enough to exclude a germline variant.
    let quality =
        |n: usize| genotype_change(&ballot(300, 0), &[ballot(30 - n, n)], GenotypingParams::default()).quality;
    assert!((3..15).all(|n| quality(n) <= quality(n + 1)));
}

#[test]
fn germline_variants_are_named() {
    for (normal, tumour) in [((15, 15), (14, 16)), ((0, 30), (0, 30)), ((20, 9), (10, 20))] {
        let found = reasons(&ballot(normal.0, normal.1), &ballot(tumour.0, tumour.1));
        assert!(found.contains(&Filter::Germline), "{found:?}");
        assert!(!found.contains(&Filter::TumourInNormal), "{found:?}");
    }
}

#[test]
fn slight_contamination_passes() {
    assert_eq!(reasons(&ballot(59, 1), &ballot(30, 30)), []);
    assert_eq!(reasons(&ballot(29, 1), &ballot(15, 15)), []);
}

#[test]
fn the_same_small_share_in_both_is_named() {
    for n in [1, 2] {
        let found = reasons(&ballot(30, n), &ballot(30, 4));
        assert!(found.contains(&Filter::TumourInNormal), "{found:?}");
        assert!(!found.contains(&Filter::Germline), "{found:?}");
    }
}

#[test]
fn one_molecule_of_the_normal_is_forgiven_where_all_else_is_clear() {
    // Errors give one read in thirty, a tumour fraction of a quarter gives many.
    assert_eq!(reasons(&ballot(32, 1), &ballot(60, 20)), []);
    // The same share in both samples, and two molecules of the normal, are not an error.
    assert!(reasons(&ballot(33, 1), &ballot(207, 7)).contains(&Filter::TumourInNormal));
    assert!(reasons(&ballot(31, 2), &ballot(107, 12)).contains(&Filter::TumourInNormal));
}

#[test]
fn a_fraction_that_both_samples_may_share_needs_a_deep_normal() {
    let quality = |normal: usize, [others, own]: [usize; 2], params: GenotypingParams| {
        genotype_change(&ballot(normal, 0), &[ballot(others, own)], params).quality
    };
    let default = GenotypingParams::default();
    // A fraction of a twelfth: a normal of 16 molecules does not show its absence, one of 60 does.
    assert!(quality(16, [35, 3], default) < default.min_quality);
    assert!(quality(60, [35, 3], default) >= default.min_quality);
    // One half shows in few molecules.
    assert!(quality(16, [15, 15], default) >= default.min_quality);
    // Molecules with two changes are rather of another copy of the sequence.
    let linked = GenotypingParams { is_linked: true, ..default };
    assert!(quality(60, [35, 3], linked) < linked.min_quality);
    assert!(quality(60, [15, 15], linked) >= linked.min_quality);
    // Without a normal nothing is compared.
    let alone = GenotypingParams { has_normal: false, ..linked };
    assert!(quality(0, [35, 3], alone) > quality(60, [35, 3], linked));
}

#[test]
fn thin_support_is_named() {
    let clean = ballot(30, 0);
    assert!(reasons(&clean, &ballot(20, MIN_CALL_MOLECULES_COMMON_ERROR - 1)).contains(&Filter::FewReads));
    assert!(!reasons(&clean, &ballot(20, MIN_CALL_MOLECULES_COMMON_ERROR)).contains(&Filter::FewReads));
    assert!(reasons(&ballot(3, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    assert!(!reasons(&ballot(12, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    // Votes with weak evidence count for neither allele.
    let unsure: Vec<MoleculeVote> =
        ballot(15, 15).into_iter().map(|v| MoleculeVote { log_odds: v.log_odds / 9.0, ..v }).collect();
    let judged = genotype_change(&clean, &[unsure], GenotypingParams::default());
    assert_eq!(judged.tumour.depth(), 0);
    assert!(judged.filters.contains(&Filter::FewReads) && judged.filters.contains(&Filter::LowQuality));
}

#[test]
fn a_normal_that_cannot_tell_at_a_tandem_copy_speaks_by_its_depth() {
    // No molecule of the normal supports an allele, but there are forty, none with the tumour's.
    let with = |kind, molecules| {
        genotype_change(
            &[],
            &[ballot(0, 12)],
            GenotypingParams { num_molecules: molecules, ..GenotypingParams::for_error_frequency(kind) },
        )
        .filters
    };
    assert!(with(ErrorFrequency::Rare, [0, 40]).contains(&Filter::NormalDepth));
    assert!(!with(ErrorFrequency::Rare, [40, 40]).contains(&Filter::NormalDepth));
    // In a repeat reads may end and show no length: that they do not show the tumour's length is not evidence.
    assert!(with(ErrorFrequency::Common, [40, 40]).contains(&Filter::NormalDepth));
}

type Trait = fn(&mut MoleculeVote);

/// Filters of a tumour allele whose reads have a property, if the other allele's reads have it or not.
fn traits(of_tumour_allele: Trait, of_normal_allele: Trait) -> Vec<Filter> {
    let (mut normal, mut tumour) = (ballot(60, 0), ballot(40, 40));
    for vote in normal.iter_mut().chain(&mut tumour) {
        if vote.supports_tumour_allele() { of_tumour_allele(vote) } else { of_normal_allele(vote) }
    }
    reasons(&normal, &tumour)
}

#[test]
fn support_unlike_that_of_the_other_allele_is_named() {
    let none: Trait = |_| ();
    let cases: [(Trait, Filter); 6] = [
        (|v| v.distance_from_end = 5, Filter::ReadEnds),
        (|v| v.quality = 12, Filter::BaseQuality),
        (|v| v.forward = true, Filter::StrandBias),
        (|v| v.forward = false, Filter::StrandBias),
        (|v| v.is_f1r2 = true, Filter::Orientation),
        (|v| v.is_f1r2 = false, Filter::Orientation),
    ];
    for (trait_of, filter) in cases {
        assert_eq!(traits(trait_of, none), [filter]);
    }
    // If all reads of the locus have the property, as at the end of a target or in poor cycles, it is not evidence.
    assert_eq!(traits(|v| v.forward = true, |v| v.forward = true), []);
    assert_eq!(traits(|v| v.is_f1r2 = false, |v| v.is_f1r2 = false), []);
    assert_eq!(traits(|v| v.quality = 12, |v| v.quality = 12), []);
    // Nor is a property of few reads.
    assert_eq!(traits(|v| v.forward |= v.pair % 8 == 1, none), []);
    // Three reads on one strand are chance.
    let mut few = ballot(20, 4);
    few.iter_mut().skip(20).for_each(|v| (v.forward, v.is_f1r2) = (true, true));
    assert_eq!(reasons(&ballot(30, 0), &few), []);
}

#[test]
fn no_reads_at_all_are_no_call() {
    let judged = genotype_change(&[], &[], GenotypingParams::default());
    assert_eq!((judged.quality, judged.tumour.allele_fraction()), (0.0, 0.0));
    assert!(judged.filters.contains(&Filter::LowQuality) && judged.filters.contains(&Filter::NormalDepth));
    let repeat = GenotypingParams { mapq: 0, ..GenotypingParams::default() };
    assert!(genotype_change(&ballot(30, 0), &[ballot(15, 15)], repeat).filters.contains(&Filter::Repeat));
}

/// Reads of a sequence with some errors, all of one quality.
fn misread(
    seq: &[u8],
    n: usize,
    quality: u8,
    mut wrong: impl FnMut(usize, usize, u8) -> Option<u8>,
) -> Vec<(i32, OwnedRead)> {
    (0..n)
        .map(|i| {
            let at = i * 37 % (seq.len() - 110);
            let mut bases = seq[at..at + 110].to_vec();
            for (j, base) in bases.iter_mut().enumerate() {
                *base = wrong(i, at + j, *base).unwrap_or(*base);
            }
            (at as i32, OwnedRead { qual: vec![quality; bases.len()], seq: bases })
        })
        .collect()
}

fn other(base: u8) -> u8 {
    if base == b'A' { b'C' } else { b'A' }
}

fn tally(seq: &[u8], reads: &[(i32, OwnedRead)], first_forward: bool) -> BaseErrorCounts {
    let on: Vec<ReadOnContig<'_>> = reads
        .iter()
        .map(|(at, read)| ReadOnContig { sample: TUMOUR_SAMPLE, is_f1r2: first_forward, start: *at, read })
        .collect();
    BaseErrorCounts::count_errors(seq, &vec![false; seq.len()], &on, None)
}

#[test]
fn damage_is_that_of_good_bases_where_errors_are_measured() {
    let seq = Rng(97).sequence(4000);
    let reads = misread(&seq, 4000, 26, |_, _, _| None);
    let on: Vec<ReadOnContig<'_>> = reads
        .iter()
        .map(|(at, read)| ReadOnContig { sample: TUMOUR_SAMPLE, is_f1r2: true, start: *at, read })
        .collect();
    let rate = |error_rate| {
        let counts = BaseErrorCounts::count_errors(&seq, &vec![false; seq.len()], &on, error_rate);
        counts.substitution_rate(TUMOUR_SAMPLE, true, 0, 1)
    };
    assert_eq!([rate(None), rate(Some(1e-4))], [Some(0.0), None]);
}

#[test]
fn qualities_that_promise_too_much_are_lowered_to_what_the_reads_show() {
    let mut rng = Rng(97);
    let seq = rng.sequence(4000);
    // One base in 250 is wrong, all have quality 40; and there is a germline variant at 2000 in every second read.
    let mut draw = Rng(98);
    let reads =
        misread(&seq, 2000, 40, |i, at, base| (draw.chance(0.004) || i % 2 == 0 && at == 2000).then(|| other(base)));
    let found = tally(&seq, &reads, true);
    let rate = found.error_rate(40).unwrap();
    assert!((0.0035..0.0045).contains(&rate), "{rate}");
    assert_eq!(found.error_rate(30), None);
}

#[test]
fn damage_of_one_orientation_is_told_from_errors() {
    let mut rng = Rng(99);
    let seq = rng.sequence(4000);
    // Oxidised guanine: one G in a hundred is read as T if read 1 has the sequence's orientation.
    let mut draw = Rng(100);
    let oxidised = misread(&seq, 4000, 37, |_, _, base| (base == b'G' && draw.chance(0.01)).then_some(b'T'));
    let mut found = tally(&seq, &oxidised, true);
    found.merge_counts(&tally(&seq, &misread(&seq, 4000, 37, |_, _, _| None), false));
    let (g, t) = (2, 3);
    let rate = found.substitution_rate(TUMOUR_SAMPLE, true, g, t).unwrap();
    assert!((0.008..0.012).contains(&rate), "{rate}");
    assert_eq!(found.substitution_rate(TUMOUR_SAMPLE, false, g, t), Some(0.0));
    assert_eq!(found.substitution_rate(TUMOUR_SAMPLE, true, t, g), Some(0.0));
    assert_eq!(found.substitution_rate(NORMAL_SAMPLE, true, g, t), None);
}

#[test]
fn reads_of_another_place_say_nothing_of_errors() {
    let mut rng = Rng(101);
    let seq = rng.sequence(4000);
    let strange = misread(&seq, 500, 37, |i, at, base| ((i + at) % 8 == 0).then(|| other(base)));
    assert_eq!(tally(&seq, &strange, true), BaseErrorCounts::default());
}

/// Genotype of a change in several tumours, and the tumours that have the change.
fn together(normal: &[MoleculeVote], tumours: &[Vec<MoleculeVote>]) -> (GenotypingResult, Vec<bool>) {
    let judged = genotype_change(normal, tumours, GenotypingParams::default());
    let has = judged.tumours.iter().map(|own| own.has).collect();
    (judged, has)
}

#[test]
fn a_change_that_is_seldom_in_one_tumour_counts_beside_another_where_it_is_frequent() {
    let (normal, seldom, frequent) = (ballot(30, 0), ballot(38, 2), ballot(28, 12));
    assert!(reasons(&normal, &seldom).contains(&Filter::FewReads));
    let (both, has) = together(&normal, &[seldom.clone(), frequent.clone()]);
    assert!(both.filters.is_empty(), "{both:?}");
    assert_eq!(has, [true, true]);
    assert_eq!((both.tumours[0].support.alternative, both.tumours[1].support.alternative), (2, 12));
    assert_eq!((both.tumour.reference, both.tumour.alternative), (66, 14));
    // Two molecules in each of two tumours are four.
    let (few, has) = together(&normal, &[ballot(28, 2), ballot(28, 2)]);
    assert!(few.filters.is_empty(), "{few:?}");
    assert_eq!(has, [true, true]);
    // Three of sixty molecules in two tumours are no more evidence than in one tumour of as many reads.
    let all = genotype_change(&normal, &[ballot(57, 3)], GenotypingParams::default());
    let (spread, _) = together(&normal, &[ballot(28, 2), ballot(29, 1)]);
    assert!(spread.quality <= all.quality, "{} for {}", spread.quality, all.quality);
    let (two, _) = together(&normal, &[ballot(29, 1), ballot(29, 1)]);
    assert!(two.filters.contains(&Filter::FewReads));
}

#[test]
fn a_tumour_without_a_change_does_not_take_it_from_another() {
    let (normal, frequent) = (ballot(30, 0), ballot(28, 12));
    let alone = genotype_change(&normal, std::slice::from_ref(&frequent), GenotypingParams::default());
    assert!(alone.tumours.is_empty());
    let (both, has) = together(&normal, &[ballot(40, 0), frequent.clone(), ballot(60, 0)]);
    assert!(both.filters.is_empty(), "{both:?}");
    assert_eq!(has, [false, true, false]);
    // A germline variant would be in all tumours.
    assert!(both.quality > alone.quality, "{} for {}", both.quality, alone.quality);
    // A tumour without reads gives no evidence.
    let (none, has) = together(&normal, &[frequent.clone(), Vec::new()]);
    assert_eq!((none.filters.is_empty(), has), (true, vec![true, false]));
    // One molecule of few is a share of the change, one of many an error.
    assert_eq!(together(&normal, &[ballot(29, 1), frequent.clone()]).1, [true, true]);
    assert_eq!(together(&normal, &[ballot(399, 1), frequent]).1, [false, true]);
}

#[test]
fn a_germline_variant_is_one_in_all_tumours() {
    let (judged, _) = together(&ballot(15, 15), &[ballot(15, 15), ballot(20, 10)]);
    assert!(judged.filters.contains(&Filter::Germline) && judged.quality < 8.0);
    // A normal with one molecule resembles the tumour with two molecules, but not the other tumour.
    let normal = ballot(29, 1);
    assert!(reasons(&normal, &ballot(38, 2)).contains(&Filter::TumourInNormal));
    assert!(!together(&normal, &[ballot(38, 2), ballot(20, 20)]).0.filters.contains(&Filter::TumourInNormal));
    // A tumour with clearly less than the normal does not make the normal cleaner.
    let less = together(&ballot(28, 2), &[ballot(38, 2), ballot(400, 0)]).0;
    assert!(less.filters.contains(&Filter::TumourInNormal), "{less:?}");
}

/// A clonal change of the tumours' founder is in half of the molecules of both: that does not make it a germline
/// variant.
#[test]
fn a_change_of_the_founder_is_no_more_a_germline_variant_than_in_one_tumour() {
    let (normal, tumour) = (ballot(10, 0), ballot(15, 15));
    let alone = genotype_change(&normal, std::slice::from_ref(&tumour), GenotypingParams::default());
    assert!(alone.filters.is_empty(), "{alone:?}");
    for tumours in 2..=4 {
        let (both, has) = together(&normal, &vec![tumour.clone(); tumours]);
        assert!(both.filters.is_empty() && has.iter().all(|has| *has), "{both:?}");
        assert!(both.quality > alone.quality - 4.0, "{} for {}", both.quality, alone.quality);
    }
    // A germline variant is not excluded by it: the few molecules of a normal that has the variant show it.
    let (germline, _) = together(&ballot(6, 3), &[tumour.clone(), tumour]);
    assert!(germline.filters.contains(&Filter::Germline));
}

#[test]
fn the_order_of_tumours_decides_nothing() {
    let mut rng = Rng(77);
    for _ in 0..50 {
        let mut tumour = || {
            let (reference, alternative) = (rng.within(0..40), rng.within(0..12));
            let mut votes = ballot(reference, alternative);
            votes.iter_mut().for_each(|vote| vote.log_odds *= 0.5 + rng.within(0..100) as f64 / 100.0);
            votes
        };
        let (normal, [a, b, c]) = (ballot(30, 0), [0; 3].map(|_| tumour()));
        let (one, has) = together(&normal, &[a.clone(), b.clone(), c.clone()]);
        let (other, turned) = together(&normal, &[c, a, b]);
        assert_eq!(one.quality.to_bits(), other.quality.to_bits());
        assert_eq!((one.tumour, one.filters), (other.tumour, other.filters));
        assert_eq!(has, [turned[1], turned[2], turned[0]]);
    }
}

#[test]
fn which_tumour_comes_first_does_not_show_in_the_order_of_pairs() {
    let kept = |sample: u8, name: &str, id: u64| RecruitedPair {
        sample,
        name: name.into(),
        mates: [0; 2].map(|_| genuma_somatic::packed::OwnedRead { seq: b"ACGT".to_vec(), qual: vec![30; 4] }),
        id,
        contigs: vec![0],
    };
    let names = |first: u8, second: u8| {
        let mut pairs = vec![kept(first, "b", 1), kept(second, "a", 2), kept(0, "z", 3), kept(second, "c", 4)];
        pairs.sort_unstable();
        pairs.into_iter().map(|pair| pair.id).collect::<Vec<u64>>()
    };
    assert_eq!(names(1, 2), [3, 2, 1, 4]);
    assert_eq!(names(2, 1), names(1, 2));
}
