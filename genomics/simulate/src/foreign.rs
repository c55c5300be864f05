//! Another person whose reads are in the samples.

use std::path::PathBuf;

use serde::Serialize;

use crate::genome::Genome;
use crate::germline::{self, Germline, GermlineParams};
use crate::ground::Ground;
use crate::ploidy::Ploidy;
use crate::rng::Rng;
use crate::sequencing::is_default;
use crate::variant::Span;

/// How many reads are not the patient's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ForeignParams {
    /// Share of the tumour sample's reads.
    pub tumor: f64,
    /// Share of the normal sample's reads.
    pub normal: f64,
    /// The genome that they come from, FASTA; without it that of another person.
    pub genome: Option<PathBuf>,
    /// What that person is to the patient.
    #[serde(skip_serializing_if = "is_default")]
    pub kin: Kin,
}

/// What another person is to the patient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kin {
    /// Nothing.
    #[default]
    Unrelated,
    /// The father, or a son: has the patient's second haplotype.
    Parent,
    /// A brother or sister: has each of the patient's haplotypes over half of its length.
    Sibling,
    /// One of the same mother: has the patient's first haplotype over half of its length.
    HalfSibling,
}

impl Kin {
    /// Whether the other person's mitochondria are of the patient's mother.
    pub(crate) fn has_the_mitochondria(self) -> bool {
        matches!(self, Kin::Sibling | Kin::HalfSibling)
    }

    /// How much of each of the patient's haplotypes the other person has.
    fn shares(self) -> [Share; 2] {
        match self {
            Kin::Unrelated => [Share::Nothing; 2],
            Kin::Parent => [Share::Nothing, Share::All],
            Kin::Sibling => [Share::Half; 2],
            Kin::HalfSibling => [Share::Half, Share::Nothing],
        }
    }
}

/// How much of a haplotype two people share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Nothing,
    Half,
    All,
}

/// The people of whom two are drawn: how frequent their alleles are, by what one of them is known to have.
///
/// Frequencies are those of changes that neither help nor harm in as many people at all times (Ewens 1972): as many changes have a frequency of 2 to 4 % as
/// of 4 to 8 %, the same for whatever allele the reference has. Then a third of what one person has is on both haplotypes, where the other has two different alleles the one does
/// in a third of all places, and KING's kinship of two strangers is 0. Where more is on both haplotypes people's parents are relatives.
#[derive(Debug, Clone, Copy)]
struct People {
    /// How often a person's two haplotypes are one by descent.
    inbred: f64,
}

impl People {
    /// Of whom a share of what one has is on both haplotypes.
    fn with(homozygous: f64) -> People {
        People { inbred: ((3.0 * homozygous - 1.0) / (1.0 + homozygous)).clamp(0.0, 1.0) }
    }

    /// How frequent an allele is that somebody has on both haplotypes, or on one of `copies`.
    fn frequency(self, both: bool, copies: usize, rng: &mut Rng) -> f64 {
        let any = rng.unit();
        match (both, copies) {
            (_, 1) => any,
            (false, _) => 1.0 - any.sqrt(),
            (true, _) if rng.chance(2.0 * self.inbred / (1.0 + self.inbred)) => any,
            (true, _) => any.sqrt(),
        }
    }

    /// Which of the haplotypes that are there have an allele of some frequency.
    fn carriers(self, frequency: f64, there: [bool; 2], rng: &mut Rng) -> [bool; 2] {
        let first = rng.chance(frequency);
        let second = if rng.chance(self.inbred) { first } else { rng.chance(frequency) };
        [first && there[0], second && there[1]]
    }

    /// What a person has that another one lacks, over all that one has, on one haplotype and on both.
    fn own(self) -> [f64; 2] {
        let (f, g) = (self.inbred, 1.0 - self.inbred);
        let all = 1.5 - 0.5 * f;
        let one = 2.0 * g * (g / 4.0 + f / 3.0);
        let both = g * g / 12.0 + g * f / 2.0 + f * f / 2.0;
        [one / all, both / all]
    }
}

/// Stretches of a haplotype that siblings have, and that they have not, in a genome: 40 Mbp each in one of 3.1 Gbp, as
/// four meioses at a crossover per 100 Mbp leave them.
const STRETCHES: usize = 75;

/// The variants of another person of the same people: of what the patient has, the frequent alleles, and others that the patient lacks.
pub fn person(
    genome: &Genome,
    ploidy: &Ploidy,
    params: &GermlineParams,
    patient: &[Germline],
    rng: &mut Rng,
) -> Vec<Germline> {
    stranger(genome, ploidy, params, patient, &mut Ground::new(genome), rng)
}

/// The same, with new variants where `ground` is free.
fn stranger(
    genome: &Genome,
    ploidy: &Ploidy,
    params: &GermlineParams,
    patient: &[Germline],
    ground: &mut Ground,
    rng: &mut Rng,
) -> Vec<Germline> {
    let people = People::with(params.homozygous_share);
    let mut variants: Vec<Germline> = vec![];
    for g in patient {
        let at = g.edit.at.pos;
        let span = Span { start: at.saturating_sub(1), end: g.edit.end().max(at + 1) + 1, ..g.edit.span() };
        if !ground.holds_taken(span, 0) {
            ground.take(span);
        }
        let there = ploidy.haplotypes(g.edit.at.contig);
        let copies = there.iter().filter(|there| **there).count();
        let frequency = people.frequency(g.haplotypes == [true; 2], copies, rng);
        let haplotypes = people.carriers(frequency, there, rng);
        if haplotypes != [false; 2] {
            variants.push(Germline { edit: g.edit.clone(), haplotypes });
        }
    }
    let [one, both] = people.own();
    let own = GermlineParams {
        snv_rate: params.snv_rate * (one + both),
        indel_rate: params.indel_rate * (one + both),
        svs: (params.svs as f64 * (one + both)).round() as usize,
        homozygous_share: if one + both > 0.0 { both / (one + both) } else { 0.0 },
        ..params.clone()
    };
    variants.extend(germline::place(genome, ploidy, &own, ground, rng));
    variants.sort_by_key(|g| g.edit.at);
    variants
}

/// The variants of a relative: the patient's where a haplotype is identical by descent, and elsewhere those of a person
/// unrelated to the patient. New variants lie where `ground`, which has all of the patient's, is free.
pub fn relative(
    genome: &Genome,
    ploidy: &Ploidy,
    params: &GermlineParams,
    kin: Kin,
    patient: &[Germline],
    ground: &mut Ground,
    rng: &mut Rng,
) -> Vec<Germline> {
    let shares = kin.shares();
    let same = descent(genome, ploidy, shares, rng);
    // Of those that are in both lists the patient's comes first.
    let mut both: Vec<(Germline, bool)> = patient.iter().map(|g| (g.clone(), true)).collect();
    both.extend(stranger(genome, ploidy, params, patient, ground, rng).into_iter().map(|g| (g, false)));
    both.sort_by_key(|(g, _)| g.edit.at);
    let mut variants: Vec<Germline> = vec![];
    for (g, own) in both {
        let at = g.edit.at;
        let haplotypes = [0, 1].map(|h| g.haplotypes[h] && same[h][at.contig].holds(at.pos) == own);
        match variants.last_mut().filter(|v| v.edit == g.edit) {
            Some(v) => v.haplotypes = [0, 1].map(|h| v.haplotypes[h] || haplotypes[h]),
            None => variants.push(Germline { edit: g.edit, haplotypes }),
        }
    }
    variants.retain(|v| v.haplotypes != [false; 2]);
    variants
}

/// Where two people have one haplotype of a contig: from an even boundary up to the next, or up to the end.
#[derive(Debug, Default)]
struct Descent(Vec<usize>);

impl Descent {
    fn holds(&self, pos: usize) -> bool {
        self.0.partition_point(|&boundary| boundary <= pos) % 2 == 1
    }
}

/// Where a relative has each of the patient's haplotypes, by haplotype and contig.
fn descent(genome: &Genome, ploidy: &Ploidy, shares: [Share; 2], rng: &mut Rng) -> [Vec<Descent>; 2] {
    let switch = STRETCHES as f64 / genome.length().max(STRETCHES) as f64;
    let mut stretches = |length: usize| {
        let mut boundaries = if rng.chance(0.5) { vec![0] } else { vec![] };
        let mut pos = 0;
        loop {
            pos += rng.skip(switch) + 1;
            if pos >= length {
                return Descent(boundaries);
            }
            boundaries.push(pos);
        }
    };
    [0, 1].map(|h| {
        let of = |(contig, seq): (usize, &std::sync::Arc<Vec<u8>>)| {
            // A father has one chromosome Y to give.
            let only = h == 1 && ploidy.haplotypes(contig) == [false, true];
            match shares[h] {
                Share::Half if !only => stretches(seq.len()),
                Share::Nothing => Descent::default(),
                Share::Half | Share::All => Descent(vec![0]),
            }
        };
        genome.seqs.iter().enumerate().map(of).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::made;
    use crate::variant::Edit;

    /// How two people's genotypes compare, over how many places the patient has of one haplotype only: where both have one, where the other has none, one and two
    /// of what the patient has or lacks twice; and what the other has of both over all of his.
    fn compared(params: &GermlineParams, seed: u64) -> [f64; 4] {
        let genome = made::make(4_000_000, 2, None, &mut Rng::stream(seed, &[]));
        let ploidy = Ploidy::diploid();
        let mut rng = Rng::stream(seed, &[1]);
        let one = germline::place(&genome, &ploidy, params, &mut Ground::new(&genome), &mut rng);
        let other = person(&genome, &ploidy, params, &one, &mut rng);
        let copies = |g: &[Germline]| -> BTreeMap<String, usize> {
            let own = |g: &Germline| (format!("{:?}", g.edit), g.haplotypes.iter().filter(|h| **h).count());
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
        // Relatives' children: what is on one haplotype is so of another person less often, too.
        let [both, one, opposite, homozygous] =
            compared(&GermlineParams { homozygous_share: 0.7, ..params }, 2);
        assert!(
            (homozygous - 0.7).abs() < 0.05 && both < 0.25 && (one + both - 1.0).abs() < 0.1,
            "{both} {one}"
        );
        assert!(opposite > 0.6, "{opposite}");
        // And of no variety at all.
        let [.., homozygous] = compared(&GermlineParams { homozygous_share: 1.0, ..params }, 3);
        assert_eq!(homozygous, 1.0);
    }

    /// A patient and a relative with variants of all kinds, dense enough to tell haplotypes of 5 kb by.
    fn family(kin: Kin, seed: u64) -> [Vec<Germline>; 2] {
        let genome = made::make(1_500_000, 2, None, &mut Rng::stream(seed, &[]));
        let params = GermlineParams { snv_rate: 5e-3, indel_rate: 5e-4, ..Default::default() };
        let (ploidy, mut ground) = (Ploidy::diploid(), Ground::new(&genome));
        let mut rng = Rng::stream(seed, &[1]);
        let patient = germline::place(&genome, &ploidy, &params, &mut ground, &mut rng);
        let other = relative(&genome, &ploidy, &params, kin, &patient, &mut ground, &mut rng);
        [patient, other]
    }

    fn on(variants: &[Germline], haplotype: usize) -> Vec<&Edit> {
        variants.iter().filter(|g| g.haplotypes[haplotype]).map(|g| &g.edit).collect()
    }

    #[test]
    fn a_parent_has_one_haplotype_whole_and_one_of_its_own() {
        let [patient, other] = family(Kin::Parent, 3);
        assert_eq!(on(&patient, 1), on(&other, 1));
        assert!(
            on(&other, 1).iter().any(|e| e.removed.len().max(e.added.len()) >= 50),
            "structural ones, too"
        );
        assert!(on(&other, 1).iter().any(|e| (2..50).contains(&e.removed.len().max(e.added.len()))));
        let (one, two) = (on(&patient, 0), on(&other, 0));
        let shared = two.iter().filter(|e| one.contains(e)).count() as f64 / two.len() as f64;
        // Any two haplotypes have half of what each has.
        assert!((0.4..0.6).contains(&shared), "{shared}");
        let ordered = |g: &[Germline]| {
            g.windows(2).all(|w| {
                w[0].edit.end().max(w[0].edit.at.pos + 1) <= w[1].edit.at.pos
                    || w[0].edit.at.contig < w[1].edit.at.contig
            })
        };
        assert!(ordered(&other), "no two variants overlap");
    }

    /// Shares of the windows of 5 kb in which none, one and both haplotypes of two people are alike.
    fn alike([patient, other]: &[Vec<Germline>; 2]) -> [f64; 3] {
        const WINDOW: usize = 5000;
        // Contigs are not of one length: where the patient has nothing there is none, or next to it.
        let windows: BTreeSet<(usize, usize)> =
            patient.iter().map(|g| (g.edit.at.contig, g.edit.at.pos / WINDOW)).collect();
        let mut counts = [0.0; 3];
        for &window in &windows {
            let in_it = |variants: &[Germline], h: usize| -> Vec<Edit> {
                let there = |e: &&Edit| (e.at.contig, e.at.pos / WINDOW) == window;
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
        let mean = |kin: Kin| {
            let all = (1..=3).map(|seed| alike(&family(kin, seed)));
            all.fold([0.0; 3], |sum, one| [0, 1, 2].map(|i| sum[i] + one[i] / 3.0))
        };
        // A stretch is 20 kb: a window lies in one of those that are the same with this probability.
        let whole = 0.5 * (-5.0f64 / 20.0).exp();
        near(mean(Kin::Sibling), [(1.0 - whole).powi(2), 2.0 * whole * (1.0 - whole), whole * whole]);
        near(mean(Kin::HalfSibling), [1.0 - whole, whole, 0.0]);
    }

    #[test]
    fn haplotypes_by_descent_change_as_often_as_in_people() {
        let genome = made::make(3_000_000, 3, None, &mut Rng::stream(1, &[]));
        let (mut switches, mut same) = (0, 0);
        for seed in 0..20 {
            for haplotype in
                descent(&genome, &Ploidy::diploid(), [Share::Half; 2], &mut Rng::stream(seed, &[]))
            {
                switches += haplotype.iter().map(|d| d.0.iter().filter(|&&at| at > 0).count()).sum::<usize>();
                let held = |d: &Descent| (0..1_000_000).step_by(1000).filter(|&pos| d.holds(pos)).count();
                same += haplotype.iter().map(held).sum::<usize>();
            }
        }
        assert!((70..80).contains(&(switches / 40)), "{}", switches / 40);
        assert!((0.47..0.53).contains(&(same as f64 / 120_000.0)), "{same}");
    }

    #[test]
    fn brothers_have_their_fathers_y() {
        let names = ["chr1", "chrX", "chrY"].map(str::to_owned).to_vec();
        let genome = Genome::new(names, vec![vec![b'A'; 70_000], vec![b'C'; 20_000], vec![b'G'; 10_000]]);
        let [mothers, fathers] =
            descent(&genome, &Ploidy::male(&genome), Kin::Sibling.shares(), &mut Rng::stream(1, &[]));
        assert_eq!(fathers[2].0, [0]);
        assert!(mothers[1].0.len() > 3 && fathers[0].0.len() > 10);
        let [mothers, fathers] =
            descent(&genome, &Ploidy::male(&genome), Kin::HalfSibling.shares(), &mut Rng::stream(1, &[]));
        assert!(fathers.iter().all(|d| d.0.is_empty()) && mothers[0].0.len() > 10);
    }
}
