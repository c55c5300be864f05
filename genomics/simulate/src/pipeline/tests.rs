use std::io::Read as _;

use genuma_reads::dna;

use super::*;
use crate::cell_genomes::collect_haplotype_small_variants;
use crate::evaluate::vcf;
use crate::germline::GermlineParams;
use crate::params::SamplePairParams;
use crate::rng::Rng;
use crate::sequencing::SequencingParams;
use crate::somatic::SomaticParams;
use crate::tumour::PlacedVariant;
use crate::variant::{BreakendSide, StructuralVariant};

fn params(length: usize, contigs: usize, seed: u64) -> SimulationParams {
    SimulationParams {
        genome: GenomeSource::Made { length, contigs, repeats: None },
        germline: GermlineParams::default(),
        somatic: SomaticParams { snvs: 20, indels: 20, svs: 12, largest_sv: 900, ..Default::default() },
        samples: SamplePairParams {
            depth_tumor: 3.0,
            depth_normal: 2.0,
            purity: 0.7,
            contamination: 0.05,
            ..Default::default()
        },
        sequencing: SequencingParams { duplicates: 0.1, ..Default::default() },
        seed,
        ..Default::default()
    }
}

fn files(params: &SimulationParams, threads: usize) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    simulate_to_folder(params, folder.path(), threads).unwrap();
    let entries = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<_> = entries.map(|p| (name(&p), std::fs::read(p).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn same_seed_same_bytes_whatever_the_threads() {
    let mut wanted = params(1_000_000, 2, 4);
    wanted.somatic.subclones = vec![0.4, 0.2];
    let one = files(&wanted, 1);
    let names: Vec<&str> = one.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(
        names,
        [
            "genome.fa",
            "genome.fa.fai",
            "germline.vcf",
            "normal_1.fq.gz",
            "normal_2.fq.gz",
            "simulate.json",
            "truth.bedpe",
            "truth.vcf",
            "tumor_1.fq.gz",
            "tumor_2.fq.gz"
        ]
    );
    assert!(one == files(&wanted, 3));
    let other = files(&SimulationParams { seed: 5, ..wanted }, 1);
    assert!(one.iter().zip(&other).filter(|(a, _)| !a.0.ends_with("fai")).all(|(a, b)| a.1 != b.1));
}

#[test]
fn repeats_of_an_earlier_genome_do_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    let made = params(100_000, 1, 3);
    let human = SimulationParams { genome: GenomeSource::Human { length: 1_000_000 }, ..made.clone() };
    for (params, there) in [(&human, true), (&made, false)] {
        simulate_to_folder(params, folder.path(), 2).unwrap();
        assert_eq!(folder.path().join("repeats.bed").exists(), there);
    }
}

/// Names and bases of a FASTQ file.
fn reads(gzipped: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(gzipped).read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(4).map(|read| (read[0].to_owned(), read[1].as_bytes().to_vec())).collect()
}

#[test]
fn names_tell_where_reads_come_from() {
    let mut wanted = params(400_000, 2, 9);
    let plain = files(&wanted, 1);
    wanted.sequencing.true_positions = true;
    let told = files(&wanted, 2);
    let genome = synthetic_genome::generate_synthetic_genome(400_000, 2, None, &mut Rng::from_seed_and_labels(9, &[0]));
    let (mut placed, mut all, mut close) = (0, 0, 0);
    for (before, after) in plain.iter().zip(&told).filter(|(file, _)| file.0.ends_with("fq.gz")) {
        let mate = usize::from(after.0.ends_with("_2.fq.gz"));
        for (plain, (name, bases)) in reads(&before.1).iter().zip(reads(&after.1)) {
            let (name, number) = name.rsplit_once('/').unwrap();
            let fields: Vec<&str> = name.split(',').collect();
            assert_eq!((&plain.0, &plain.1), (&format!("{}/{number}", fields[0]), &bases));
            assert_eq!(fields.len(), 9);
            all += 1;
            let [contig, first, last, strand] = fields[1 + 4 * mate..][..4] else { unreachable!() };
            let Some(contig) = genome.names.iter().position(|n| n == contig) else { continue };
            placed += 1;
            let [first, last] = [first, last].map(|at| at.parse::<usize>().unwrap());
            let mut source = genome.seqs[contig][first - 1..last].to_vec();
            if strand == "-" {
                source = dna::reverse_complement(&source);
            }
            // Compare from either end, because an indel shifts all bases behind it.
            let like = |a: &mut dyn Iterator<Item = (&u8, &u8)>| a.take(30).filter(|(a, b)| a == b).count() > 24;
            close += usize::from(
                like(&mut bases.iter().zip(&source)) || like(&mut bases.iter().rev().zip(source.iter().rev())),
            );
        }
    }
    assert!(all > 10_000 && placed > all * 98 / 100 && placed < all, "{placed} of {all}");
    assert!(close > placed * 998 / 1000, "{close} of {placed}");
}

/// A tumour without germline variants, with its genome and the chromosomes of each haplotype.
fn tumour(contigs: usize, seed: u64) -> (Genome, Tumour, [Vec<Vec<u8>>; 2]) {
    let params = params(300_000, contigs, seed);
    let genome =
        synthetic_genome::generate_synthetic_genome(300_000, contigs, None, &mut Rng::from_seed_and_labels(seed, &[0]));
    let tumour = place_all_variants(&genome, &genome, &params, None).unwrap().tumour;
    let haplotypes = [0, 1].map(|h| {
        let edits = collect_haplotype_small_variants(&genome, &tumour, &[], Some(0), h);
        let spelled = tumour.karyotypes[0][h].build_chromosome_sequences(&genome, &edits);
        spelled.iter().map(|sequence| sequence.bases_in_range(0..sequence.len())).collect()
    });
    (genome, tumour, haplotypes)
}

fn truth(genome: &Genome, tumour: &Tumour) -> Vec<vcf::VcfRecord> {
    let repeats =
        RepeatedKmersOfSpans::count_kmers_of_spans(genome, truth::list_spans_to_check_for_repeats(tumour, None), 1);
    let annotator = TruthRecordBuilder { genome, repeats: &repeats, ploidy: &tumour.ploidy };
    let sample = truth::TumourSampleComposition { purity: 1.0, patient_share: 1.0 };
    let text = truth::format_somatic_vcf(&annotator, tumour, None, sample);
    vcf::parse_vcf(&text, Path::new("truth.vcf")).unwrap()
}

#[test]
fn truth_applied_to_the_genome_spells_the_tumour() {
    for seed in 0..5 {
        let (genome, tumour, haplotypes) = tumour(1, seed);
        let mut changes: Vec<(usize, usize, usize, Vec<u8>)> = vec![];
        let seq = &genome.seqs[0];
        let haplotype_of = |pos: usize| {
            let small =
                tumour.small.iter().find(|p| p.variant.position.pos + 1 == pos || p.variant.position.pos == pos);
            let large = || tumour.structural.iter().find(|p| p.variant.breakpoints()[0].pos == pos);
            small.map(|p| p.haplotype).or_else(|| large().map(|p| p.haplotype)).unwrap()
        };
        for record in truth(&genome, &tumour) {
            let (pos, end) = (record.pos, record.absolute_info_value("END"));
            let (start, end, bases) = match (record.alternate.as_str(), end) {
                ("<DEL>", Some(end)) => (pos, end, vec![]),
                ("<DUP>", Some(end)) => (pos, pos, seq[pos..end].to_vec()),
                ("<INV>", Some(end)) => (pos, end, dna::reverse_complement(&seq[pos..end])),
                (bnd, _) if bnd.contains(['[', ']']) => continue,
                (bases, _) => (pos - 1, pos - 1 + record.reference.len(), bases.as_bytes().to_vec()),
            };
            assert_eq!(&seq[pos - 1..pos - 1 + record.reference.len()], record.reference.as_bytes());
            changes.push((haplotype_of(pos), start, end, bases));
        }
        for placed in &tumour.structural {
            if let StructuralVariant::Copy { from, to, inverted } = &placed.variant {
                let copied = &seq[from.start..from.end];
                let copied = if *inverted { dna::reverse_complement(copied) } else { copied.to_vec() };
                changes.push((placed.haplotype, to.pos, to.pos, copied));
            }
        }
        assert_eq!(changes.len(), 52);
        changes.sort();
        for (h, spelled) in haplotypes.iter().enumerate() {
            let mut expected = seq.to_vec();
            for (_, start, end, bases) in changes.iter().rev().filter(|c| c.0 == h) {
                expected.splice(start..end, bases.iter().copied());
            }
            assert!(spelled[0] == expected, "seed {seed}, haplotype {h}");
        }
    }
}

#[test]
fn every_adjacency_is_in_its_haplotype() {
    const FLANK: usize = 40;
    for seed in 10..14 {
        let (genome, tumour, haplotypes) = tumour(3, seed);
        let mut classes = std::collections::BTreeSet::new();
        for placed in &tumour.structural {
            classes.insert(placed.variant.class_name());
            if matches!(placed.variant, StructuralVariant::Insertion(..)) {
                continue;
            }
            for [a, b] in placed.variant.adjacencies() {
                // Read towards the junction at one end and away from it at the other.
                let towards = |e: &crate::variant::Breakend| {
                    let seq = &genome.seqs[e.contig];
                    match e.side {
                        BreakendSide::Left => seq[e.base + 1 - FLANK..=e.base].to_vec(),
                        BreakendSide::Right => dna::reverse_complement(&seq[e.base..e.base + FLANK]),
                    }
                };
                let junction = [towards(&a), dna::reverse_complement(&towards(&b))].concat();
                let other_strand = dna::reverse_complement(&junction);
                let occurs =
                    |chromosome: &[u8]| chromosome.windows(2 * FLANK).any(|w| w == junction || w == other_strand);
                let in_tumour = haplotypes[placed.haplotype].iter().any(|c| occurs(c));
                assert!(in_tumour, "{:?}", placed.variant);
                assert!(!genome.seqs.iter().any(|c| occurs(c)), "{:?}", placed.variant);
            }
        }
        assert_eq!(classes.len(), 6);
    }
}

#[test]
fn purity_clones_and_copies_decide_the_allele_fraction() {
    let (_, mut tumour, _) = tumour(1, 1);
    let small = tumour.small[0].clone();
    let at = small.variant.position;
    tumour.structural.clear();
    tumour.population_shares = vec![0.6, 0.4];
    tumour.karyotypes.push(tumour.karyotypes[0].clone());
    let of_clone = |clone| PlacedVariant { clone, ..small.clone() };
    assert_eq!(tumour.allele_fraction(&of_clone(0), 1.0), 0.5);
    assert_eq!(tumour.allele_fraction(&of_clone(0), 0.5), 0.25);
    assert_eq!(tumour.allele_fraction(&of_clone(1), 0.5), 0.1);
    let body = crate::variant::ContigSpan { contig: at.contig, start: at.pos - 100, end: at.pos + 100 };
    tumour.structural.push(PlacedVariant::on_all_copies(StructuralVariant::Deletion(body), 0, 0));
    assert_eq!(tumour.allele_fraction(&of_clone(0), 1.0), 1.0);
}

#[test]
fn other_shares_and_other_reads_are_another_tumour_of_the_same_person() {
    let tumour = |subclones: [f64; 2], reads_seed| {
        let mut wanted = params(400_000, 1, 6);
        wanted.somatic.subclones = subclones.to_vec();
        wanted.reads_seed = Some(reads_seed);
        let files: std::collections::BTreeMap<String, Vec<u8>> = files(&wanted, 2).into_iter().collect();
        files
    };
    let (one, other) = (tumour([0.4, 0.0], 8), tumour([0.0, 0.5], 9));
    for name in ["genome.fa", "germline.vcf"] {
        assert!(one[name] == other[name], "{name}");
    }
    for name in ["tumor_1.fq.gz", "normal_2.fq.gz"] {
        assert!(one[name] != other[name], "{name}");
    }
    // Positions by clone.
    let truth = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        let text = String::from_utf8(files["truth.vcf"].clone()).unwrap();
        let mut clones = std::collections::BTreeMap::<usize, Vec<usize>>::new();
        for record in vcf::parse_vcf(&text, Path::new("truth.vcf")).unwrap() {
            clones.entry(record.absolute_info_value("CLONE").unwrap()).or_default().push(record.pos);
        }
        clones
    };
    let (one, other) = (truth(&one), truth(&other));
    assert_eq!([one.keys().collect::<Vec<_>>(), other.keys().collect()], [[&0, &1], [&0, &2]]);
    assert!(one[&0] == other[&0] && one.values().chain(other.values()).all(|positions| positions.len() > 5));
}

#[test]
fn impossible_wishes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: fn(&mut SimulationParams)| {
        let mut wanted = params(50_000, 1, 1);
        change(&mut wanted);
        simulate_to_folder(&wanted, folder.path(), 1).unwrap_err().to_string()
    };
    assert!(refused(|p| p.somatic.snvs = 1000).contains("no space"));
    assert!(refused(|p| p.samples.purity = 1.5).contains("between 0 and 1"));
    assert!(refused(|p| p.somatic.subclones = vec![0.7, 0.7]).contains("at most 1"));
    assert!(refused(|p| p.somatic.subclones = vec![-0.1]).contains("negative"));
    assert!(refused(|p| p.genome = GenomeSource::File("/no/such.fa".into())).contains("/no/such.fa"));
    assert!(refused(|p| p.sequencing.read_length = 5).contains("--read-length"));
    let made =
        |p: &mut SimulationParams| p.genome = GenomeSource::Made { length: 50_000, contigs: 1, repeats: Some(1.1) };
    assert!(refused(made).contains("--repeats must"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
