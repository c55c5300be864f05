//! The whole simulation, in order: genome, variants, haplotypes, reads, truth.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::{Genome, write_file};
use crate::germline::{self, Germline, GermlineParams};
use crate::ground::Ground;
use crate::karyotype::Karyotype;
use crate::made;
use crate::repeats::RepeatMap;
use crate::rng::Rng;
use crate::sequencing::{self, Output, Pool, SequencingParams};
use crate::somatic::{self, SomaticParams, Tumour};
use crate::tandem::TractIndex;
use crate::truth::{self, Annotator};
use crate::variant::Edit;

/// Where the reference comes from.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GenomeSource {
    /// A FASTA file.
    File(PathBuf),
    /// Made for the purpose.
    Made {
        /// Bases of all contigs.
        length: usize,
        /// Contigs.
        contigs: usize,
    },
}

/// The two samples.
#[derive(Debug, Clone, Serialize)]
pub struct SampleParams {
    /// Mean coverage of the tumour sample.
    pub depth_tumor: f64,
    /// Mean coverage of the normal sample.
    pub depth_normal: f64,
    /// Share of tumour cells in the tumour sample.
    pub purity: f64,
    /// Share of tumour cells in the normal sample.
    pub contamination: f64,
}

impl Default for SampleParams {
    fn default() -> Self {
        SampleParams { depth_tumor: 30.0, depth_normal: 30.0, purity: 1.0, contamination: 0.0 }
    }
}

/// Everything that decides what is simulated. Threads and folders do not, so they are not in here.
#[derive(Debug, Clone, Serialize)]
pub struct Params {
    /// The reference.
    pub genome: GenomeSource,
    /// The patient's own variants.
    pub germline: GermlineParams,
    /// The tumour's variants.
    pub somatic: SomaticParams,
    /// Depth and mixture of the samples.
    pub samples: SampleParams,
    /// Reads.
    pub sequencing: SequencingParams,
    /// Same seed, same bytes.
    pub seed: u64,
}

/// What was made.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Bases of the reference.
    pub genome_length: usize,
    /// Germline variants placed.
    pub germline_variants: usize,
    /// Somatic SNVs and indels placed.
    pub somatic_small: usize,
    /// Somatic structural variants placed.
    pub somatic_structural: usize,
    /// Read pairs of the tumour sample.
    pub tumor_pairs: usize,
    /// Read pairs of the normal sample.
    pub normal_pairs: usize,
}

/// Labels of the random streams.
#[derive(Clone, Copy)]
enum Stream {
    Genome,
    Somatic,
    Germline,
    Tumour,
    Normal,
}

fn check(params: &Params) -> Result<()> {
    let wrong = |what: &str| Err(Error::Parameters(what.into()));
    let share = |x: f64| (0.0..=1.0).contains(&x);
    let (samples, reads) = (&params.samples, &params.sequencing);
    let shares = [
        samples.purity,
        samples.contamination,
        params.somatic.tandem_share,
        params.germline.homozygous_share,
    ];
    if !shares.into_iter().all(share) || !(0.0..0.95).contains(&reads.duplicates) {
        return wrong(
            "purity, contamination and other shares must lie between 0 and 1 (duplicates below 0.95)",
        );
    }
    if samples.depth_tumor <= 0.0 || samples.depth_normal <= 0.0 {
        return wrong("depths must be above 0");
    }
    if !(20..=10_000).contains(&reads.read_length) {
        return wrong("the read length must lie between 20 and 10000");
    }
    if reads.insert_mean < reads.read_length as f64 || reads.insert_sd < 0.0 {
        return wrong("the mean insert must be at least the read length, and its deviation not negative");
    }
    if !(0.0..0.2).contains(&reads.error_rate) {
        return wrong("the error rate must lie between 0 and 0.2");
    }
    Ok(())
}

/// Simulates into the folder `out`, which is made if need be: `genome.fa` and its index, `tumor_{1,2}.fq.gz`,
/// `normal_{1,2}.fq.gz`, `truth.vcf`, `germline.vcf`, `truth.bedpe` and `simulate.json`.
pub fn simulate(params: &Params, out: &Path, threads: usize) -> Result<Summary> {
    check(params)?;
    let stream = |s: Stream| Rng::stream(params.seed, &[s as u64]);
    let genome = match &params.genome {
        GenomeSource::File(path) => Genome::read(path)?,
        GenomeSource::Made { length, contigs } => made::make(*length, *contigs, &mut stream(Stream::Genome)),
    };
    let shortest = params.sequencing.read_length;
    if genome.seqs.iter().all(|s| s.len() < shortest) {
        return Err(Error::Parameters(format!(
            "no contig of the genome is as long as a read ({shortest} bp)"
        )));
    }
    let mut ground = Ground::new(&genome);
    let tumour = somatic::place(&genome, &params.somatic, &mut ground, &mut stream(Stream::Somatic))?;
    let germline = germline::place(&genome, &params.germline, &mut ground, &mut stream(Stream::Germline));

    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    genome.write(&out.join("genome.fa"))?;
    write_truth(&genome, params, &tumour, &germline, out)?;

    let pairs = |depth: f64| (depth * genome.known_bases() as f64 / (2 * shortest) as f64).round() as usize;
    let summary = Summary {
        genome_length: genome.length(),
        germline_variants: germline.len(),
        somatic_small: tumour.small.len(),
        somatic_structural: tumour.structural.len(),
        tumor_pairs: pairs(params.samples.depth_tumor),
        normal_pairs: pairs(params.samples.depth_normal),
    };
    let cells = Cells::new(&genome, &tumour, &germline);
    let sequence = |sample: &str, tumour_share: f64, pairs: usize, label: Stream| {
        let pool = cells.pool(&tumour, tumour_share, shortest);
        let paths = [1, 2].map(|mate| out.join(format!("{sample}_{mate}.fq.gz")));
        let output = Output { paths, sample, pairs, seed: stream(label).bits(), threads };
        sequencing::sequence(&pool, &params.sequencing, &output)
    };
    sequence("tumor", params.samples.purity, summary.tumor_pairs, Stream::Tumour)?;
    sequence("normal", params.samples.contamination, summary.normal_pairs, Stream::Normal)?;

    let report =
        serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "parameters": params, "made": summary });
    write_file(&out.join("simulate.json"), format!("{report:#}\n").as_bytes())?;
    Ok(summary)
}

fn write_truth(
    genome: &Genome,
    params: &Params,
    tumour: &Tumour,
    germline: &[Germline],
    out: &Path,
) -> Result<()> {
    let repeats = RepeatMap::new(genome);
    let tracts: Vec<TractIndex> = genome.seqs.iter().map(|s| TractIndex::new(s)).collect();
    let annotator = Annotator { genome, repeats: &repeats, tracts: &tracts };
    let write = |name: &str, text: String| write_file(&out.join(name), text.as_bytes());
    write("truth.vcf", truth::somatic_vcf(&annotator, tumour, params.samples.purity))?;
    write("germline.vcf", truth::germline_vcf(genome, germline))?;
    write("truth.bedpe", truth::bedpe(genome, &tumour.structural))
}

/// Spelled chromosomes of every kind of cell.
struct Cells {
    normal: Vec<Vec<u8>>,
    /// One for each population of tumour cells.
    tumour: Vec<Vec<Vec<u8>>>,
}

impl Cells {
    fn new(genome: &Genome, tumour: &Tumour, germline: &[Germline]) -> Self {
        let spell = |population: Option<usize>| -> Vec<Vec<u8>> {
            let healthy = Karyotype::new(genome);
            let haplotype = |h: usize| {
                let edits = edits_of(genome, tumour, germline, population, h);
                population.map_or(&healthy, |p| &tumour.karyotypes[p][h]).spell(genome, &edits)
            };
            [haplotype(0), haplotype(1)].concat()
        };
        // A population without cells is never sequenced.
        let cells = |p: usize| if tumour.shares[p] > 0.0 { spell(Some(p)) } else { vec![] };
        Cells { normal: spell(None), tumour: (0..tumour.shares.len()).map(cells).collect() }
    }

    fn pool(&self, tumour: &Tumour, tumour_share: f64, shortest: usize) -> Pool<'_> {
        let mut genomes = vec![(1.0 - tumour_share, self.normal.as_slice())];
        for (chromosomes, share) in self.tumour.iter().zip(&tumour.shares) {
            genomes.push((tumour_share * share, chromosomes));
        }
        Pool::new(&genomes, shortest)
    }
}

/// Small variants of one haplotype by contig, sorted. Without a population: of the normal cells.
fn edits_of<'a>(
    genome: &Genome,
    tumour: &'a Tumour,
    germline: &'a [Germline],
    population: Option<usize>,
    haplotype: usize,
) -> Vec<Vec<&'a Edit>> {
    let mut edits: Vec<Vec<&Edit>> = vec![vec![]; genome.seqs.len()];
    for g in germline.iter().filter(|g| g.haplotypes[haplotype]) {
        edits[g.edit.at.contig].push(&g.edit);
    }
    if let Some(population) = population {
        for p in &tumour.small {
            if p.haplotype == haplotype && (p.clone == 0 || p.clone == population) {
                edits[p.variant.at.contig].push(&p.variant);
            }
        }
    }
    edits.iter_mut().for_each(|contig| contig.sort_by_key(|e| e.at));
    edits
}
