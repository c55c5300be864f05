//! Helpers to simulate for a test and to read the output.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use genuma_simulate::{
    GenomeSource, GermlineParams, SamplePairParams, SequencingParams, SimulationParams, SomaticParams,
    simulate_to_folder,
};
use serde_json::Value;
use tempfile::TempDir;

/// True origin of a mate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadOrigin {
    pub contig: String,
    /// First base, 0-based.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    pub reverse: bool,
}

#[derive(Debug, Clone)]
pub struct Mate {
    pub bases: Vec<u8>,
    /// Phred qualities.
    pub quals: Vec<u8>,
    pub place: Option<ReadOrigin>,
}

/// A record of a VCF file.
#[derive(Debug, Clone)]
pub struct Variant {
    pub contig: String,
    /// Position, 1-based.
    pub pos: usize,
    pub reference: String,
    pub alternate: String,
    pub info: BTreeMap<String, String>,
}

impl Variant {
    pub fn number(&self, key: &str) -> f64 {
        self.info[key].parse().unwrap()
    }

    pub fn class(&self) -> &str {
        &self.info["CLASS"]
    }
}

/// A simulated pair of samples.
pub struct Made {
    pub folder: TempDir,
    pub genome: BTreeMap<String, Vec<u8>>,
    pub report: Value,
}

/// Parameters without variants, with few errors, and with the true origin in read names.
pub fn clean(length: usize, contigs: usize, depth: f64) -> SimulationParams {
    SimulationParams {
        genome: GenomeSource::Made { length, contigs, repeats: None },
        germline: GermlineParams { snv_rate: 0.0, indel_rate: 0.0, svs: 0, ..Default::default() },
        somatic: SomaticParams { snvs: 0, indels: 0, svs: 0, ..Default::default() },
        samples: SamplePairParams { depth_tumor: depth, depth_normal: 1.0, ..Default::default() },
        sequencing: SequencingParams { error_rate: 1e-3, true_positions: true, ..Default::default() },
        seed: 5,
        ..Default::default()
    }
}

/// Parameters of a simulation without variants in the genome at `path`.
pub fn of_genome(path: &Path, depth: f64) -> SimulationParams {
    SimulationParams { genome: GenomeSource::File(path.to_owned()), ..clean(0, 0, depth) }
}

pub fn write_fasta(folder: &Path, contigs: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = folder.join("own.fa");
    let text: Vec<String> =
        contigs.iter().map(|(name, seq)| format!(">{name}\n{}\n", String::from_utf8_lossy(seq))).collect();
    fs::write(&path, text.concat()).unwrap();
    path
}

pub fn made(params: &SimulationParams) -> Made {
    let folder = tempfile::tempdir().unwrap();
    simulate_to_folder(params, folder.path(), 2).unwrap();
    let text = fs::read_to_string(folder.path().join("genome.fa")).unwrap();
    let contig = |block: &str| {
        let (name, bases) = block.split_once('\n').unwrap();
        (name.to_owned(), bases.bytes().filter(|b| *b != b'\n').collect())
    };
    let genome = text.split('>').skip(1).map(contig).collect();
    let report = fs::read(folder.path().join("simulate.json")).unwrap();
    Made { genome, report: serde_json::from_slice(&report).unwrap(), folder }
}

impl Made {
    pub fn pairs(&self, sample: &str) -> Vec<[Mate; 2]> {
        let [first, second] = [1, 2].map(|mate| {
            let file = fs::File::open(self.folder.path().join(format!("{sample}_{mate}.fq.gz"))).unwrap();
            let mut text = String::new();
            flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            lines.chunks(4).map(|lines| read(lines, mate - 1)).collect::<Vec<Mate>>()
        });
        assert_eq!(first.len(), second.len());
        first.into_iter().zip(second).map(|(a, b)| [a, b]).collect()
    }

    /// Returns a count of a sample from simulate.json.
    pub fn count(&self, sample: &str, what: &str) -> f64 {
        self.report["made"][format!("{sample}_reads")][what].as_f64().unwrap()
    }

    pub fn vcf(&self, name: &str) -> Vec<Variant> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap();
        let records = text.lines().filter(|l| !l.starts_with('#'));
        records
            .map(|line| {
                let f: Vec<&str> = line.split('\t').collect();
                let field = |field: &str| {
                    let (key, value) = field.split_once('=').unwrap_or((field, ""));
                    (key.to_owned(), value.to_owned())
                };
                Variant {
                    contig: f[0].into(),
                    pos: f[1].parse().unwrap(),
                    reference: f[3].into(),
                    alternate: f[4].into(),
                    info: f[7].split(';').map(field).collect(),
                }
            })
            .collect()
    }

    /// Returns the spans of a BED file.
    pub fn bed(&self, name: &str) -> Vec<(String, usize, usize)> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap();
        let span = |line: &str| {
            let f: Vec<&str> = line.split('\t').collect();
            (f[0].to_owned(), f[1].parse().unwrap(), f[2].parse().unwrap())
        };
        text.lines().map(span).collect()
    }

    /// Returns the bases that a mate would have without errors.
    pub fn expected(&self, place: &ReadOrigin) -> Vec<u8> {
        let bases = &self.genome[&place.contig][place.start..place.end];
        if place.reverse { revcomp(bases) } else { bases.to_vec() }
    }

    /// Returns the depth of each base.
    pub fn depth(&self, sample: &str) -> BTreeMap<String, Vec<f64>> {
        let mut depth: BTreeMap<String, Vec<f64>> =
            self.genome.iter().map(|(name, seq)| (name.clone(), vec![0.0; seq.len()])).collect();
        for place in self.pairs(sample).into_iter().flatten().filter_map(|m| m.place) {
            depth.get_mut(&place.contig).unwrap()[place.start..place.end].iter_mut().for_each(|d| *d += 1.0);
        }
        depth
    }

    /// Counts the mates at a reference base (1-based) by the base that they show. Only mates without gaps to the
    /// reference count.
    pub fn alleles(&self, mates: &[Mate], contig: &str, pos: usize) -> BTreeMap<u8, usize> {
        let mut seen = BTreeMap::new();
        for mate in mates {
            let Some(place) = &mate.place else { continue };
            if place.contig == contig && (place.start..place.end).contains(&(pos - 1)) {
                let bases = if place.reverse { revcomp(&mate.bases) } else { mate.bases.clone() };
                // Behind an indel bases are shifted.
                let near = 3.min(pos - 1 - place.start).min(place.end - pos);
                let at = pos - 1 - place.start;
                let flanks = |k: usize| bases[k] == self.genome[contig][place.start + k];
                if bases.len() == place.end - place.start && (at - near..at).chain(at + 1..=at + near).all(flanks) {
                    *seen.entry(bases[at]).or_default() += 1;
                }
            }
        }
        seen
    }
}

fn read(lines: &[&str], mate: usize) -> Mate {
    let name = lines[0].rsplit_once('/').unwrap().0;
    let fields: Vec<&str> = name.split(',').collect();
    let place = fields.get(1 + 4 * mate..5 + 4 * mate).filter(|f| f[0] != "*").map(|f| ReadOrigin {
        contig: f[0].to_owned(),
        start: f[1].parse::<usize>().unwrap() - 1,
        end: f[2].parse().unwrap(),
        reverse: f[3] == "-",
    });
    Mate { bases: lines[1].into(), quals: lines[3].bytes().map(|q| q - 33).collect(), place }
}

pub fn revcomp(bases: &[u8]) -> Vec<u8> {
    genuma_reads::dna::reverse_complement(bases)
}

/// Returns whether `found` equals `wanted` within a relative `tolerance`.
#[track_caller]
pub fn close(found: f64, wanted: f64, tolerance: f64) {
    assert!((found / wanted - 1.0).abs() <= tolerance, "{found} instead of {wanted}");
}
