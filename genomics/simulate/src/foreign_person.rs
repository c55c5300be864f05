//! Simulates the germline variants of another person whose reads contaminate the samples.

use std::path::PathBuf;

use serde::Serialize;

use crate::genome::Genome;
use crate::germline::{self, GermlineParams, GermlineVariant};
use crate::healthy_ploidy::HealthyPloidy;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::sequencing::is_default;
use crate::variant::ContigSpan;

/// Shares of the reads that come from another person or species, and who or what that is.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ForeignReadParams {
    /// Share of the tumour sample's reads that are foreign, 0 to 1.
    pub tumor: f64,
    /// Share of the normal sample's reads that are foreign, 0 to 1.
    pub normal: f64,
    /// FASTA file of the genome from which the foreign reads come. `None` simulates another person.
    pub genome: Option<PathBuf>,
    /// Relationship of the simulated person to the patient.
    #[serde(skip_serializing_if = "is_default")]
    pub kin: Relationship,
}

/// Relationship of another person to the patient. It determines which haplotypes they share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relationship {
    /// Unrelated: has half or more of the patient's variants, because both people share common polymorphisms.
    #[default]
    Unrelated,
    /// Father or son: has the patient's second haplotype, and one of an unrelated person.
    Parent,
    /// Brother or sister: has each of the patient's two haplotypes over about half of its length, and all of chrY.
    Sibling,
    /// Half-sibling with the same mother: has the patient's first haplotype over about half of its length.
    HalfSibling,
}

impl Relationship {
    /// Returns whether the other person has the patient's mitochondrial genome, because both have the same mother.
    pub(crate) fn shares_mitochondria(self) -> bool {
        matches!(self, Relationship::Sibling | Relationship::HalfSibling)
    }

    /// Returns for each of the patient's haplotypes how much of it the other person has too.
    fn shared_haplotypes(self) -> [HaplotypeSharing; 2] {
        match self {
            Relationship::Unrelated => [HaplotypeSharing::Nothing; 2],
            Relationship::Parent => [HaplotypeSharing::Nothing, HaplotypeSharing::All],
            Relationship::Sibling => [HaplotypeSharing::Half; 2],
            Relationship::HalfSibling => [HaplotypeSharing::Half, HaplotypeSharing::Nothing],
        }
    }
}

/// How much of one haplotype of the patient the other person has too (identical by descent).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HaplotypeSharing {
    Nothing,
    Half,
    All,
}

/// Population from which the patient and the other person come. It gives the distribution of the frequency of an
/// allele, conditional on the patient's genotype.
///
/// Allele frequencies follow the neutral model (Ewens 1972): as many variants have a frequency of 2–4 % as of 4–8 %,
/// whichever allele the reference has. In such a population a third of a person's variants are homozygous, two
/// unrelated people are homozygous for different alleles at a third as many sites as one of them is heterozygous, and
/// their KING kinship coefficient is 0. A higher share of homozygous variants means inbreeding.
#[derive(Debug, Clone, Copy)]
struct PopulationModel {
    /// Inbreeding coefficient: probability that a person's two haplotypes are identical by descent, 0 to 1.
    inbreeding: f64,
}

impl PopulationModel {
    /// Creates the population in which a share `homozygous` of a person's variants is homozygous. A share below a third
    /// counts as a third: no inbreeding.
    fn from_homozygous_share(homozygous: f64) -> PopulationModel {
        PopulationModel { inbreeding: ((3.0 * homozygous - 1.0) / (1.0 + homozygous)).clamp(0.0, 1.0) }
    }

    /// Draws the population frequency of an allele that a person has on both haplotypes (`both`), or on one of `copies`
    /// haplotypes.
    fn draw_allele_frequency(self, both: bool, copies: usize, rng: &mut Rng) -> f64 {
        let any = rng.draw_unit_interval();
        match (both, copies) {
            (_, 1) => any,
            (false, _) => 1.0 - any.sqrt(),
            (true, _) if rng.draw_bernoulli(2.0 * self.inbreeding / (1.0 + self.inbreeding)) => any,
            (true, _) => any.sqrt(),
        }
    }

    /// Draws which haplotypes of a person have an allele with this population frequency. `there` are the haplotypes
    /// that the person has of the contig.
    fn draw_carriers(self, frequency: f64, there: [bool; 2], rng: &mut Rng) -> [bool; 2] {
        let first = rng.draw_bernoulli(frequency);
        let second = if rng.draw_bernoulli(self.inbreeding) { first } else { rng.draw_bernoulli(frequency) };
        [first && there[0], second && there[1]]
    }

    /// Returns the numbers of heterozygous and of homozygous variants that one person has and another person lacks,
    /// relative to the number of all variants of one person.
    fn private_variant_ratios(self) -> [f64; 2] {
        let (f, g) = (self.inbreeding, 1.0 - self.inbreeding);
        let all = 1.5 - 0.5 * f;
        let one = 2.0 * g * (g / 4.0 + f / 3.0);
        let both = g * g / 12.0 + g * f / 2.0 + f * f / 2.0;
        [one / all, both / all]
    }
}

/// Number of segments per genome of siblings, counting both the segments that are identical by descent and those
/// between them: 40 Mbp each in 3.1 Gbp, after four meioses with one crossover per 100 Mbp.
const IBD_SEGMENTS_PER_GENOME: usize = 75;

/// Draws the germline variants of an unrelated person: some of the patient's variants, the frequent ones more often,
/// and new variants that the patient lacks.
pub(crate) fn draw_variants_of_unrelated_person(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    params: &GermlineParams,
    patient: &[GermlineVariant],
    rng: &mut Rng,
) -> Vec<GermlineVariant> {
    draw_unrelated_person_in(genome, ploidy, params, patient, &mut OccupiedRegions::empty(genome), rng)
}

/// Like [`draw_variants_of_unrelated_person`], but places new variants at the free positions of `occupied`.
fn draw_unrelated_person_in(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    params: &GermlineParams,
    patient: &[GermlineVariant],
    occupied: &mut OccupiedRegions,
    rng: &mut Rng,
) -> Vec<GermlineVariant> {
    let people = PopulationModel::from_homozygous_share(params.homozygous_share);
    let mut variants: Vec<GermlineVariant> = vec![];
    for g in patient {
        let at = g.edit.position.pos;
        let span = ContigSpan {
            start: at.saturating_sub(1),
            end: g.edit.reference_end().max(at + 1) + 1,
            ..g.edit.reference_span()
        };
        if !occupied.has_occupied_bases_near(span, 0) {
            occupied.occupy_span(span);
        }
        let there = ploidy.has_each_haplotype(g.edit.position.contig);
        let copies = there.iter().filter(|there| **there).count();
        let frequency = people.draw_allele_frequency(g.haplotypes == [true; 2], copies, rng);
        let haplotypes = people.draw_carriers(frequency, there, rng);
        if haplotypes != [false; 2] {
            variants.push(GermlineVariant { edit: g.edit.clone(), haplotypes });
        }
    }
    let [one, both] = people.private_variant_ratios();
    let own = GermlineParams {
        snv_rate: params.snv_rate * (one + both),
        indel_rate: params.indel_rate * (one + both),
        svs: (params.svs as f64 * (one + both)).round() as usize,
        homozygous_share: if one + both > 0.0 { both / (one + both) } else { 0.0 },
        ..params.clone()
    };
    variants.extend(germline::place_germline_variants(genome, ploidy, &own, occupied, rng));
    variants.sort_by_key(|g| g.edit.position);
    variants
}

/// Draws the germline variants of a relative. Where a haplotype is identical by descent, the relative has the patient's
/// variants, elsewhere those of an unrelated person. `occupied` contains the patient's variants; new variants are
/// placed at its free positions.
pub(crate) fn draw_variants_of_relative(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    params: &GermlineParams,
    kin: Relationship,
    patient: &[GermlineVariant],
    occupied: &mut OccupiedRegions,
    rng: &mut Rng,
) -> Vec<GermlineVariant> {
    let shares = kin.shared_haplotypes();
    let same = draw_ibd_segments(genome, ploidy, shares, rng);
    // The patient's variant comes first of those in both lists.
    let mut both: Vec<(GermlineVariant, bool)> = patient.iter().map(|g| (g.clone(), true)).collect();
    both.extend(
        draw_unrelated_person_in(genome, ploidy, params, patient, occupied, rng).into_iter().map(|g| (g, false)),
    );
    both.sort_by_key(|(g, _)| g.edit.position);
    let mut variants: Vec<GermlineVariant> = vec![];
    for (g, own) in both {
        let at = g.edit.position;
        let haplotypes = [0, 1].map(|h| g.haplotypes[h] && same[h][at.contig].contains(at.pos) == own);
        match variants.last_mut().filter(|v| v.edit == g.edit) {
            Some(v) => v.haplotypes = [0, 1].map(|h| v.haplotypes[h] || haplotypes[h]),
            None => variants.push(GermlineVariant { edit: g.edit, haplotypes }),
        }
    }
    variants.retain(|v| v.haplotypes != [false; 2]);
    variants
}

/// Segments of one contig of one haplotype that are identical by descent in both people, as a list of boundaries: a
/// segment extends from each even-numbered boundary to the next boundary.
#[derive(Debug, Default)]
struct IbdSegments(Vec<usize>);

impl IbdSegments {
    fn contains(&self, pos: usize) -> bool {
        self.0.partition_point(|&boundary| boundary <= pos) % 2 == 1
    }
}

/// Draws the segments that a relative shares with the patient, for each haplotype and contig. `shares` is how much of
/// each haplotype is shared; instead of half, a sibling shares all of a contig that only the father passes on.
fn draw_ibd_segments(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    shares: [HaplotypeSharing; 2],
    rng: &mut Rng,
) -> [Vec<IbdSegments>; 2] {
    let switch = IBD_SEGMENTS_PER_GENOME as f64 / genome.length_bp().max(IBD_SEGMENTS_PER_GENOME) as f64;
    let mut stretches = |length: usize| {
        let mut boundaries = if rng.draw_bernoulli(0.5) { vec![0] } else { vec![] };
        let mut pos = 0;
        loop {
            pos += rng.draw_geometric(switch) + 1;
            if pos >= length {
                return IbdSegments(boundaries);
            }
            boundaries.push(pos);
        }
    };
    [0, 1].map(|h| {
        let of = |(contig, seq): (usize, &std::sync::Arc<Vec<u8>>)| {
            // A father passes on his only chromosome Y as a whole.
            let only = h == 1 && ploidy.has_each_haplotype(contig) == [false, true];
            match shares[h] {
                HaplotypeSharing::Half if !only => stretches(seq.len()),
                HaplotypeSharing::Nothing => IbdSegments::default(),
                HaplotypeSharing::Half | HaplotypeSharing::All => IbdSegments(vec![0]),
            }
        };
        genome.seqs.iter().enumerate().map(of).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::synthetic_genome;
    use crate::variant::SequenceEdit;

    /// Compares the genotypes of two people relative to the number of heterozygous variants of the first: both
    /// heterozygous; the second heterozygous and the first homozygous for either allele; opposite homozygotes. The
    /// last value is the homozygous share of the second person's variants.
    fn compared(params: &GermlineParams, seed: u64) -> [f64; 4] {
        let genome =
            synthetic_genome::generate_synthetic_genome(4_000_000, 2, None, &mut Rng::from_seed_and_labels(seed, &[]));
        let ploidy = HealthyPloidy::all_diploid();
        let mut rng = Rng::from_seed_and_labels(seed, &[1]);
        let one =
            germline::place_germline_variants(&genome, &ploidy, params, &mut OccupiedRegions::empty(&genome), &mut rng);
        let other = draw_variants_of_unrelated_person(&genome, &ploidy, params, &one, &mut rng);
        let copies = |g: &[GermlineVariant]| -> BTreeMap<String, usize> {
            let own = |g: &GermlineVariant| (format!("{:?}", g.edit), g.haplotypes.iter().filter(|h| **h).count());
            g.iter().filter(|g| g.edit.is_snv()).map(own).collect()
        };
        let (one, other) = (copies(&one), copies(&other));
        let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        let mut counts = [[0.0; 3]; 3];
        for edit in all {
            counts[one.get(edit).copied().unwrap_or(0)][other.get(edit).copied().unwrap_or(0)] += 1.0;
        }
        let het: f64 = counts[1].iter().sum();
        let others = |copies: usize| counts.iter().map(|row| row[copies]).sum::<f64>();
        [counts[1][1], counts[0][1] + counts[2][1], counts[0][2] + counts[2][0]]
            .map(|n| n / het)
            .into_iter()
            .chain([others(2) / (others(1) + others(2))])
            .collect::<Vec<f64>>()
            .try_into()
            .expect("four")
    }

    #[test]
    fn two_people_are_as_alike_as_people_are() {
        let near = |found: [f64; 4], wanted: [f64; 4]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.05), "{found:?} {wanted:?}");
        };
        let (third, sixth) = (1.0 / 3.0, 1.0 / 6.0);
        let params = GermlineParams { homozygous_share: third, ..Default::default() };
        near(compared(&params, 1), [third, 2.0 * third, sixth, third]);
        // With inbreeding, both people are heterozygous at fewer sites.
        let [both, one, opposite, homozygous] = compared(&GermlineParams { homozygous_share: 0.7, ..params }, 2);
        assert!((homozygous - 0.7).abs() < 0.05 && both < 0.25 && (one + both - 1.0).abs() < 0.1, "{both} {one}");
        assert!(opposite > 0.6, "{opposite}");
        // With complete inbreeding all variants are homozygous.
        let [.., homozygous] = compared(&GermlineParams { homozygous_share: 1.0, ..params }, 3);
        assert_eq!(homozygous, 1.0);
    }

    /// A patient and a relative with variants of all kinds, dense enough to distinguish haplotypes within 5 kb.
    fn family(kin: Relationship, seed: u64) -> [Vec<GermlineVariant>; 2] {
        let genome =
            synthetic_genome::generate_synthetic_genome(1_500_000, 2, None, &mut Rng::from_seed_and_labels(seed, &[]));
        let params = GermlineParams { snv_rate: 5e-3, indel_rate: 5e-4, ..Default::default() };
        let (ploidy, mut occupied) = (HealthyPloidy::all_diploid(), OccupiedRegions::empty(&genome));
        let mut rng = Rng::from_seed_and_labels(seed, &[1]);
        let patient = germline::place_germline_variants(&genome, &ploidy, &params, &mut occupied, &mut rng);
        let other = draw_variants_of_relative(&genome, &ploidy, &params, kin, &patient, &mut occupied, &mut rng);
        [patient, other]
    }

    fn on(variants: &[GermlineVariant], haplotype: usize) -> Vec<&SequenceEdit> {
        variants.iter().filter(|g| g.haplotypes[haplotype]).map(|g| &g.edit).collect()
    }

    #[test]
    fn a_parent_has_one_haplotype_whole_and_one_of_its_own() {
        let [patient, other] = family(Relationship::Parent, 3);
        assert_eq!(on(&patient, 1), on(&other, 1));
        assert!(on(&other, 1).iter().any(|e| e.removed.len().max(e.added.len()) >= 50), "structural ones, too");
        assert!(on(&other, 1).iter().any(|e| (2..50).contains(&e.removed.len().max(e.added.len()))));
        let (one, two) = (on(&patient, 0), on(&other, 0));
        let shared = two.iter().filter(|e| one.contains(e)).count() as f64 / two.len() as f64;
        // Any two haplotypes share half of their variants.
        assert!((0.4..0.6).contains(&shared), "{shared}");
        let ordered = |g: &[GermlineVariant]| {
            g.windows(2).all(|w| {
                w[0].edit.reference_end().max(w[0].edit.position.pos + 1) <= w[1].edit.position.pos
                    || w[0].edit.position.contig < w[1].edit.position.contig
            })
        };
        assert!(ordered(&other), "no two variants overlap");
    }

    /// Shares of the 5 kb windows in which none, one and both haplotypes of two people are equal.
    fn alike([patient, other]: &[Vec<GermlineVariant>; 2]) -> [f64; 3] {
        const WINDOW: usize = 5000;
        // Only windows in which the patient has variants count.
        let windows: BTreeSet<(usize, usize)> =
            patient.iter().map(|g| (g.edit.position.contig, g.edit.position.pos / WINDOW)).collect();
        let mut counts = [0.0; 3];
        for &window in &windows {
            let in_it = |variants: &[GermlineVariant], h: usize| -> Vec<SequenceEdit> {
                let there = |e: &&SequenceEdit| (e.position.contig, e.position.pos / WINDOW) == window;
                on(variants, h).into_iter().filter(there).cloned().collect()
            };
            let alike = (0..2).filter(|&h| in_it(patient, h) == in_it(other, h)).count();
            counts[alike] += 1.0 / windows.len() as f64;
        }
        counts
    }

    #[test]
    fn siblings_have_a_quarter_a_half_and_a_quarter() {
        let near = |found: [f64; 3], wanted: [f64; 3]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.07), "{found:?} {wanted:?}");
        };
        let mean = |kin: Relationship| {
            let all = (1..=3).map(|seed| alike(&family(kin, seed)));
            all.fold([0.0; 3], |sum, one| [0, 1, 2].map(|i| sum[i] + one[i] / 3.0))
        };
        // IBD segments have a mean length of 20 kb: a window is within a shared segment with this probability.
        let whole = 0.5 * (-5.0f64 / 20.0).exp();
        near(mean(Relationship::Sibling), [(1.0 - whole).powi(2), 2.0 * whole * (1.0 - whole), whole * whole]);
        near(mean(Relationship::HalfSibling), [1.0 - whole, whole, 0.0]);
    }

    #[test]
    fn haplotypes_by_descent_change_as_often_as_in_people() {
        let genome =
            synthetic_genome::generate_synthetic_genome(3_000_000, 3, None, &mut Rng::from_seed_and_labels(1, &[]));
        let (mut switches, mut same) = (0, 0);
        for seed in 0..20 {
            for haplotype in draw_ibd_segments(
                &genome,
                &HealthyPloidy::all_diploid(),
                [HaplotypeSharing::Half; 2],
                &mut Rng::from_seed_and_labels(seed, &[]),
            ) {
                switches += haplotype.iter().map(|d| d.0.iter().filter(|&&at| at > 0).count()).sum::<usize>();
                let held = |d: &IbdSegments| (0..1_000_000).step_by(1000).filter(|&pos| d.contains(pos)).count();
                same += haplotype.iter().map(held).sum::<usize>();
            }
        }
        assert!((70..80).contains(&(switches / 40)), "{}", switches / 40);
        assert!((0.47..0.53).contains(&(same as f64 / 120_000.0)), "{same}");
    }

    #[test]
    fn brothers_have_their_fathers_y() {
        let names = ["chr1", "chrX", "chrY"].map(str::to_owned).to_vec();
        let genome = Genome::from_sequences(names, vec![vec![b'A'; 70_000], vec![b'C'; 20_000], vec![b'G'; 10_000]]);
        let [mothers, fathers] = draw_ibd_segments(
            &genome,
            &HealthyPloidy::for_male(&genome),
            Relationship::Sibling.shared_haplotypes(),
            &mut Rng::from_seed_and_labels(1, &[]),
        );
        assert_eq!(fathers[2].0, [0]);
        assert!(mothers[1].0.len() > 3 && fathers[0].0.len() > 10);
        let [mothers, fathers] = draw_ibd_segments(
            &genome,
            &HealthyPloidy::for_male(&genome),
            Relationship::HalfSibling.shared_haplotypes(),
            &mut Rng::from_seed_and_labels(1, &[]),
        );
        assert!(fathers.iter().all(|d| d.0.is_empty()) && mothers[0].0.len() > 10);
    }
}
