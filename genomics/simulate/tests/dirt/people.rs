//! Tests mitochondrial genomes and reads of other people.

use genuma_simulate::{
    ForeignReadParams, GenomeSource, GermlineParams, Relationship, SomaticParams, simulate_to_folder,
};

use crate::common::{Mate, Variant, clean, close, made, write_fasta};

#[test]
fn a_mitochondrion_is_circular_and_heteroplasmic() {
    let mut params = clean(200_000, 1, 10.0);
    (params.samples.depth_normal, params.samples.mitochondrion, params.samples.purity) = (5.0, 1000.0, 0.8);
    let made = made(&params);
    for sample in ["tumor", "normal"] {
        let depth = made.depth(sample);
        let circle = &depth["chrM"];
        assert_eq!(circle.len(), 16_569);
        // Mates across the origin of the circle have no single origin, so that the depth has a dip.
        close(circle[1000..15_000].iter().sum::<f64>() / 14_000.0, 1000.0, 0.02);
        let pairs = made.pairs(sample);
        let across = pairs.iter().filter(|[a, b]| match (&a.place, &b.place) {
            (Some(a), Some(b)) => a.contig == "chrM" && a.start.abs_diff(b.start) > 10_000,
            _ => false,
        });
        assert!(across.count() > 100, "pairs lie across the origin");
    }
    close(made.depth("tumor")["chr1"].iter().sum::<f64>() / 200_000.0, 10.0, 0.03);
    let of = |sample: &str| made.pairs(sample).into_iter().flatten().collect::<Vec<Mate>>();
    let (tumour, normal) = (of("tumor"), of("normal"));
    let somatic: Vec<_> = made.vcf("truth.vcf").into_iter().filter(|v| v.contig == "chrM").collect();
    assert_eq!(somatic.len(), 6);
    for v in &somatic {
        let share = |mates: &[Mate]| {
            let seen = made.alleles(mates, "chrM", v.pos);
            seen.get(&v.alternate.as_bytes()[0]).copied().unwrap_or(0) as f64 / seen.values().sum::<usize>() as f64
        };
        assert!((0.024 - 1e-9..0.48).contains(&v.number("AF")));
        assert!((share(&tumour) - v.number("AF")).abs() < 0.05, "{v:?} {}", share(&tumour));
        assert!(share(&normal) < 0.02);
    }
    let germline: Vec<_> = made.vcf("germline.vcf").into_iter().filter(|v| v.contig == "chrM").collect();
    assert_eq!(germline.len(), 12);
    for v in &germline {
        let seen = made.alleles(&normal, "chrM", v.pos);
        assert!(seen[&v.alternate.as_bytes()[0]] * 20 > seen.values().sum::<usize>() * 19);
    }
}

#[test]
fn other_people_have_variants_of_their_own() {
    let mut params = clean(300_000, 1, 10.0);
    params.samples.depth_normal = 30.0;
    params.germline = GermlineParams { indel_rate: 0.0, svs: 0, ..Default::default() };
    params.foreign = ForeignReadParams { tumor: 0.0, normal: 0.3, ..Default::default() };
    let made = made(&params);
    assert_eq!(made.count("tumor", "foreign_pairs"), 0.0);
    let pairs = made.pairs("normal");
    close(made.count("normal", "foreign_pairs") / pairs.len() as f64, 0.3, 0.04);
    let mates: Vec<Mate> = pairs.into_iter().flatten().collect();
    let own: Vec<_> = made.vcf("germline.vcf").into_iter().map(|v| (v.pos, v.alternate)).collect();
    let (mut only, mut shown, mut shared) = (0, 0.0, 0);
    for v in made.vcf("foreign.vcf") {
        if own.contains(&(v.pos, v.alternate.clone())) {
            shared += 1;
            continue;
        }
        let seen = made.alleles(&mates, "chr1", v.pos);
        only += 1;
        shown += seen.get(&v.alternate.as_bytes()[0]).copied().unwrap_or(0) as f64
            / seen.values().sum::<usize>().max(1) as f64;
    }
    assert!((100..200).contains(&only) && (100..200).contains(&shared), "{only} {shared}");
    // Variants that only one of two people has are rare: a sixth of them is homozygous, not a third.
    close(shown / f64::from(only), 0.3 * (0.164 + 0.836 / 2.0), 0.1);
}

#[test]
fn all_of_a_normal_may_be_foreign_and_truth_counts_foreign_reads() {
    let mut params = clean(200_000, 1, 20.0);
    params.germline = GermlineParams { indel_rate: 0.0, svs: 0, homozygous_share: 1.0, ..Default::default() };
    (params.somatic.snvs, params.somatic.spacing) = (50, 200);
    params.samples.depth_normal = 20.0;
    params.foreign = ForeignReadParams { tumor: 0.2, normal: 1.0, ..Default::default() };
    let made = made(&params);
    assert_eq!(made.count("normal", "foreign_pairs"), made.pairs("normal").len() as f64);
    let normal: Vec<Mate> = made.pairs("normal").into_iter().flatten().collect();
    let foreign: Vec<usize> = made.vcf("foreign.vcf").iter().map(|v| v.pos).collect();
    for v in made.vcf("germline.vcf").iter().filter(|v| !foreign.contains(&v.pos)) {
        let seen = made.alleles(&normal, "chr1", v.pos);
        assert!(seen.get(&v.alternate.as_bytes()[0]).copied().unwrap_or(0) <= 1, "{v:?}");
    }
    assert!(made.vcf("truth.vcf").iter().all(|v| (v.number("AF") - 0.4).abs() < 1e-3));
}

#[test]
fn foreign_reads_may_be_of_another_species() {
    let folder = tempfile::tempdir().unwrap();
    let seq: Vec<u8> = b"GATTACAGGCATTA".repeat(3000);
    let mut params = clean(200_000, 1, 10.0);
    params.foreign = ForeignReadParams {
        tumor: 0.1,
        normal: 0.0,
        genome: Some(write_fasta(folder.path(), &[("phage", seq)])),
        ..Default::default()
    };
    let made = made(&params);
    let pairs = made.pairs("tumor");
    let foreign = pairs.iter().filter(|p| p[0].place.is_none());
    close(foreign.clone().count() as f64 / pairs.len() as f64, 0.1, 0.1);
    let alike = |bases: &[u8], word: &[u8]| bases.windows(word.len()).any(|w| w == word);
    assert!(
        foreign.into_iter().all(|p| {
            alike(&p[0].bases, b"GATTACAGGC") || alike(&crate::common::revcomp(&p[0].bases), b"GATTACAGGC")
        })
    );
    assert!(!made.folder.path().join("foreign.vcf").exists());
}

#[test]
fn a_man_has_one_x_and_one_y_and_gaps_have_no_reads() {
    let mut params = clean(2_000_000, 1, 12.0);
    params.genome = GenomeSource::Human { length: 2_000_000 };
    (params.samples.depth_normal, params.samples.purity) = (6.0, 0.6);
    params.somatic = SomaticParams { snvs: 300, indels: 0, svs: 6, spacing: 200, ..Default::default() };
    let made = made(&params);
    let genome = &made.genome;
    for (sample, whole) in [("tumor", 12.0), ("normal", 6.0)] {
        let depth = made.depth(sample);
        let mean = |contigs: &[&str]| {
            let known = |c: &&str| {
                let there = depth[*c].iter().zip(&genome[*c]).filter(|(_, b)| **b != b'N').map(|(d, _)| *d);
                there.collect::<Vec<f64>>()
            };
            let all: Vec<f64> = contigs.iter().flat_map(known).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        close(mean(&["chr1", "chr2", "chr3", "chr4"]), whole, 0.05);
        close(mean(&["chrX", "chrY"]), whole / 2.0, 0.08);
        // As many N as the qualities explain; gaps are 4 % of the genome.
        let mates: Vec<Mate> = made.pairs(sample).into_iter().flatten().collect();
        let unknown = mates.iter().flat_map(|m| &m.bases).filter(|b| **b == b'N').count();
        assert!(unknown * 1000 < mates.len() * 150, "{unknown} in {} mates", mates.len());
    }
    // All tumour reads show a variant of all tumour cells on the only copy.
    let alone = |v: &Variant| ["chrX", "chrY"].contains(&v.contig.as_str()) && v.class() == "SNV";
    let truth = made.vcf("truth.vcf");
    let snvs: Vec<&Variant> = truth.iter().filter(|v| alone(v)).collect();
    let usual: Vec<&Variant> = snvs.iter().copied().filter(|v| v.number("AF") == 0.6).collect();
    assert!(usual.len() > 10 && usual.len() * 10 > snvs.len() * 8);
    let mates: Vec<Mate> = made.pairs("tumor").into_iter().flatten().collect();
    let (mut shown, mut all) = (0, 0);
    for v in usual {
        let seen = made.alleles(&mates, &v.contig, v.pos);
        shown += seen.get(&v.alternate.as_bytes()[0]).copied().unwrap_or(0);
        all += seen.values().sum::<usize>();
    }
    close(shown as f64 / all as f64, 0.6, 0.15);
}

#[test]
fn relatives_are_told_in_the_truth_and_share_mitochondria_by_their_mother() {
    let mut params = clean(600_000, 1, 1.0);
    params.germline = GermlineParams::default();
    params.samples.mitochondrion = 20.0;
    let shares = [
        (Relationship::Unrelated, 0),
        (Relationship::Parent, 0),
        (Relationship::Sibling, 12),
        (Relationship::HalfSibling, 12),
    ]
    .map(|(kin, of_mitochondrion)| {
        params.foreign = ForeignReadParams { tumor: 0.0, normal: 1.0, kin, ..Default::default() };
        let made = made(&params);
        let places = |name: &str| -> Vec<(String, usize, String)> {
            made.vcf(name).into_iter().map(|v| (v.contig, v.pos, v.alternate)).collect()
        };
        let (patient, other) = (places("germline.vcf"), places("foreign.vcf"));
        let shared: Vec<_> = other.iter().filter(|v| patient.contains(v)).collect();
        let of_chrm = shared.iter().filter(|v| v.0 == "chrM").count();
        assert_eq!(of_chrm, of_mitochondrion, "{kin:?}");
        (shared.len() - of_chrm) as f64 / (patient.len() - 12) as f64
    });
    let [stranger, parent, sibling, half] = shares;
    // A stranger shares half of the heterozygous and five sixths of the homozygous variants; a parent shares two
    // thirds of all for certain.
    assert!((0.54..0.69).contains(&stranger) && (0.7..0.9).contains(&parent), "{shares:?}");
    assert!((0.6..0.95).contains(&sibling) && half > stranger + 0.05 && half < parent, "{shares:?}");
}

#[test]
fn relatives_need_foreign_reads() {
    let mut params = clean(100_000, 1, 1.0);
    params.foreign = ForeignReadParams { kin: Relationship::Sibling, ..Default::default() };
    let folder = tempfile::tempdir().unwrap();
    let said = simulate_to_folder(&params, folder.path(), 1).unwrap_err().to_string();
    assert!(said.contains("--foreign-kin needs --foreign-tumor"), "{said}");
}

#[test]
fn other_reads_of_the_same_patient_and_tumour() {
    let mut params = clean(100_000, 1, 2.0);
    params.germline = GermlineParams::default();
    params.somatic = SomaticParams { snvs: 20, indels: 5, svs: 0, ..Default::default() };
    let first = made(&params);
    params.reads_seed = Some(77);
    let second = made(&params);
    let read = |of: &crate::common::Made, name: &str| std::fs::read(of.folder.path().join(name)).unwrap();
    for same in ["genome.fa", "germline.vcf", "truth.vcf"] {
        assert_eq!(read(&first, same), read(&second, same), "{same}");
    }
    for other in ["tumor_1.fq.gz", "normal_2.fq.gz"] {
        assert_ne!(read(&first, other), read(&second, other), "{other}");
    }
    params.reads_seed = Some(params.seed);
    assert_eq!(read(&first, "tumor_1.fq.gz"), read(&made(&params), "tumor_1.fq.gz"));
}
