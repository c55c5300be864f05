//! Tests that the same parameters give the same output bytes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use genuma_simulate::{
    CopyNumberParams, ForeignReadParams, GenomeSource, GermlineParams, LibraryPreset, LinkedVariantParams,
    SamplePairParams, SequencingParams, SimulationParams, SomaticParams, UmiParams, simulate_to_folder,
};

/// Returns the output files by name, decompressed.
fn files(params: &SimulationParams, threads: usize) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    simulate_to_folder(params, folder.path(), threads).unwrap();
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    let content = |path: &Path| {
        let packed = std::fs::read(path).unwrap();
        if path.extension().is_none_or(|e| e != "gz") {
            return packed;
        }
        let mut text = vec![];
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
        text
    };
    let entries = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
    entries.map(|p| (name(&p), content(&p))).collect()
}

/// Computes the 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// Names of output files and hashes of their content.
type FileHashes = [(&'static str, u64); 10];

// Hashes of the output of commit 438dcd6, before library presets existed; for the VCF files with the present descriptions
// in the header above the same records.
const HASHES_OF_PLAIN: FileHashes = [
    ("genome.fa", 0x5b3c_f3a0_e681_8b83),
    ("genome.fa.fai", 0xf9c7_3a1e_1088_0482),
    ("germline.vcf", 0x4b39_1bc4_ecc5_5011),
    ("normal_1.fq.gz", 0xff6e_81d1_814f_ab85),
    ("normal_2.fq.gz", 0xf807_a47f_97c7_df58),
    ("simulate.json", 0x9856_14f7_dd1c_52fd),
    ("truth.bedpe", 0xbabc_846c_7e66_678a),
    ("truth.vcf", 0xb627_42bc_f4f7_3ce7),
    ("tumor_1.fq.gz", 0x159b_f1f5_7e8d_1fed),
    ("tumor_2.fq.gz", 0x55a1_3291_11db_3489),
];
const HASHES_OF_MIXED: FileHashes = [
    ("genome.fa", 0x8a33_753b_9cb3_e81b),
    ("genome.fa.fai", 0xc074_b1a9_9d1a_c3ee),
    ("germline.vcf", 0xf9f8_a179_deb1_1987),
    ("normal_1.fq.gz", 0xec61_e841_39b1_98a4),
    ("normal_2.fq.gz", 0x3886_2962_cfa4_44e5),
    ("simulate.json", 0xe9ed_e329_9aa6_a42e),
    ("truth.bedpe", 0x1ba4_326c_335f_5459),
    ("truth.vcf", 0x4936_7383_4230_be9a),
    ("tumor_1.fq.gz", 0x917185062deada7f),
    ("tumor_2.fq.gz", 0x5c50_600f_e97b_1259),
];

#[test]
fn without_new_options_bytes_are_those_of_the_first_version() {
    let plain = SimulationParams {
        genome: GenomeSource::Made { length: 60_000, contigs: 2, repeats: None },
        germline: GermlineParams { svs: 2, ..Default::default() },
        somatic: SomaticParams { snvs: 20, indels: 10, svs: 6, spacing: 100, ..Default::default() },
        samples: SamplePairParams { depth_tumor: 5.0, depth_normal: 3.0, ..Default::default() },
        seed: 21,
        ..Default::default()
    };
    let mixed = SimulationParams {
        genome: GenomeSource::Made { length: 80_000, contigs: 1, repeats: Some(0.5) },
        somatic: SomaticParams {
            snvs: 20,
            indels: 10,
            svs: 5,
            spacing: 100,
            subclones: vec![0.3, 0.2],
            ..Default::default()
        },
        samples: SamplePairParams {
            depth_tumor: 6.0,
            depth_normal: 4.0,
            purity: 0.7,
            contamination: 0.05,
            ..Default::default()
        },
        sequencing: SequencingParams {
            read_length: 100,
            insert_mean: 150.0,
            insert_sd: 50.0,
            duplicates: 0.3,
            error_rate: 0.008,
            true_positions: true,
            ..Default::default()
        },
        seed: 22,
        ..plain.clone()
    };
    for (params, pinned) in [(plain, HASHES_OF_PLAIN), (mixed, HASHES_OF_MIXED)] {
        let found: Vec<(String, u64)> = files(&params, 2)
            .into_iter()
            .map(|(name, mut bytes)| {
                if name == "simulate.json" {
                    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
                    let text = String::from_utf8(bytes).unwrap();
                    // That version wrote no schema number.
                    let text = text.replace("  \"schema\": 1,\n", "");
                    bytes = text.replace(&version, "\"version\": \"0.1.0\"").into_bytes();
                }
                if name.ends_with(".vcf") {
                    // The header said that records have one AF, whatever the number of alleles, and the command was
                    // `genuma simulate`.
                    let text = String::from_utf8(bytes).unwrap();
                    let text = text.replace("<ID=AF,Number=A,", "<ID=AF,Number=1,");
                    bytes = text.replace("=genuma bench simulate\n", "=genuma simulate\n").into_bytes();
                }
                (name, hash(&bytes))
            })
            .collect();
        assert_eq!(found, pinned.map(|(name, hash)| (name.to_owned(), hash)));
    }
}

fn dirty(preset: LibraryPreset, depth: f64) -> SimulationParams {
    let mut params = SimulationParams {
        genome: GenomeSource::Made { length: 300_000, contigs: 2, repeats: None },
        somatic: SomaticParams { snvs: 10, indels: 6, svs: 3, spacing: 150, ..Default::default() },
        linked: LinkedVariantParams { clusters: 2, mnvs: 2 },
        copies: CopyNumberParams { aneuploidy: 0.3, amplifications: 1, losses: 1, ..Default::default() },
        samples: SamplePairParams {
            depth_tumor: depth,
            depth_normal: 4.0,
            purity: 0.8,
            mitochondrion: 50.0,
            ..Default::default()
        },
        foreign: ForeignReadParams { tumor: 0.02, normal: 0.05, ..Default::default() },
        seed: 11,
        ..Default::default()
    };
    params.apply_library_preset(preset);
    if params.sequencing.library.amplicons.is_some() {
        params.samples.mitochondrion = 0.0;
    }
    params
}

#[test]
fn umi_libraries_give_the_same_bytes_whatever_the_threads() {
    for consensus in [false, true] {
        let mut params = dirty(LibraryPreset::Panel, 200.0);
        params.sequencing.duplicates = 0.0;
        let structures = "3M1S+T".parse().unwrap();
        params.sequencing.library.umi = Some(UmiParams { structures, duplex: true, mean_family_size: 2.0, consensus });
        let one = files(&params, 1);
        assert!(one == files(&params, 3));
        assert!(one.contains_key("tumor_molecules.tsv.gz") && one.contains_key("normal_molecules.tsv.gz"));
    }
}

#[test]
fn every_preset_gives_the_same_bytes_whatever_the_threads() {
    for preset in LibraryPreset::ALL_PRESETS {
        let params = dirty(preset, 8.0);
        let one = files(&params, 1);
        assert!(one == files(&params, 3), "{preset:?}");
        assert!(one.contains_key("foreign.vcf"));
        assert_eq!(one.contains_key("targets.bed"), params.capture.is_some());
        assert_eq!(one.contains_key("primers.bed"), params.sequencing.library.amplicons.is_some());
        let other = files(&SimulationParams { seed: 12, ..params }, 1);
        assert!(one["tumor_1.fq.gz"] != other["tumor_1.fq.gz"] && one["truth.vcf"] != other["truth.vcf"]);
    }
}

#[test]
fn a_lower_depth_is_the_front_of_a_higher_one() {
    for preset in LibraryPreset::ALL_PRESETS {
        let at = |depth: f64| {
            let mut params = dirty(preset, depth);
            params.sequencing.duplicates = 0.0;
            // At another depth the sample has another part of the reads.
            params.samples.mitochondrion = 0.0;
            files(&params, 2)
        };
        let (low, high) = (at(5.0), at(8.0));
        for name in ["tumor_1.fq.gz", "tumor_2.fq.gz"] {
            assert!(low[name].len() < high[name].len() && high[name].starts_with(&low[name]), "{preset:?}");
        }
    }
}

#[test]
fn reports_tell_parameters_and_what_was_made() {
    for preset in LibraryPreset::ALL_PRESETS {
        let params = dirty(preset, 10.0);
        let report: serde_json::Value = serde_json::from_slice(&files(&params, 2)["simulate.json"]).unwrap();
        let (wanted, made) = (&report["parameters"], &report["made"]);
        assert_eq!(wanted["library"], format!("{preset:?}").to_lowercase());
        let library = &wanted["sequencing"]["library"];
        let machine = &wanted["sequencing"]["machine"];
        assert!(library["pcr_slippage"].is_number() && machine["two_colour"].is_boolean());
        let counts = &made["tumor_reads"];
        let share = |what: &str| counts[what].as_f64().unwrap() / counts["molecules"].as_f64().unwrap();
        for (what, parameter) in
            [("fold_backs", "fold_backs"), ("chimeras", "chimeras"), ("short_inserts", "short_inserts")]
        {
            let asked = library[parameter].as_f64().unwrap();
            assert!((share(what) - asked).abs() < 0.01 + 0.3 * asked, "{preset:?} {what}: {}", share(what));
        }
        let pairs = made["tumor_pairs"].as_f64().unwrap();
        let duplicates = counts["duplicate_pairs"].as_f64().unwrap() / pairs;
        assert!((duplicates - wanted["sequencing"]["duplicates"].as_f64().unwrap()).abs() < 0.03);
        assert_eq!(counts["mitochondrial_pairs"] == 0, params.sequencing.library.amplicons.is_some());
        for what in ["foreign_pairs", "pcr_slips", "oxidised_bases"] {
            assert!(counts[what].as_f64().unwrap() > 0.0, "{preset:?} {what}");
        }
    }
}
