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
use crate::sequencing::{self, Chromosome, Output, Pool, SequencingParams};
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
        /// Share put in as copies of families and as recent duplications; without it what is usual, a third.
        #[serde(skip_serializing_if = "Option::is_none")]
        repeats: Option<f64>,
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
    if let GenomeSource::Made { repeats: Some(repeats), .. } = params.genome
        && !share(repeats)
    {
        return wrong("the share of repeats must lie between 0 and 1");
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
        GenomeSource::Made { length, contigs, repeats } => {
            made::make(*length, *contigs, *repeats, &mut stream(Stream::Genome))
        }
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
        let contigs = params.sequencing.true_positions.then_some(genome.names.as_slice());
        let output = Output { paths, sample, contigs, pairs, seed: stream(label).bits(), threads };
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

/// Chromosomes of every kind of cell.
struct Cells {
    normal: Vec<Chromosome>,
    /// One for each population of tumour cells.
    tumour: Vec<Vec<Chromosome>>,
}

impl Cells {
    fn new(genome: &Genome, tumour: &Tumour, germline: &[Germline]) -> Self {
        let spell = |population: Option<usize>| -> Vec<Chromosome> {
            let healthy = Karyotype::new(genome);
            let haplotype = |h: usize| {
                let edits = edits_of(genome, tumour, germline, population, h);
                let karyotype = population.map_or(&healthy, |p| &tumour.karyotypes[p][h]);
                let spelled = karyotype.spell(genome, &edits).into_iter();
                spelled.zip(karyotype.origins(&edits)).map(|(bases, origins)| Chromosome { bases, origins })
            };
            haplotype(0).chain(haplotype(1)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::vcf;
    use crate::variant::{Side, Structural};
    use genuma_reads::dna;
    use std::io::Read as _;

    fn params(length: usize, contigs: usize, seed: u64) -> Params {
        Params {
            genome: GenomeSource::Made { length, contigs, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams { snvs: 20, indels: 20, svs: 12, largest_sv: 900, ..Default::default() },
            samples: SampleParams { depth_tumor: 3.0, depth_normal: 2.0, purity: 0.7, contamination: 0.05 },
            sequencing: SequencingParams { duplicates: 0.1, ..Default::default() },
            seed,
        }
    }

    fn files(params: &Params, threads: usize) -> Vec<(String, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        simulate(params, folder.path(), threads).unwrap();
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
        let other = files(&Params { seed: 5, ..wanted }, 1);
        assert!(one.iter().zip(&other).filter(|(a, _)| !a.0.ends_with("fai")).all(|(a, b)| a.1 != b.1));
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
        let genome = made::make(400_000, 2, None, &mut Rng::stream(9, &[0]));
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
                    source = dna::revcomp(&source);
                }
                // From either end, as an indel moves what is behind it.
                let like =
                    |a: &mut dyn Iterator<Item = (&u8, &u8)>| a.take(30).filter(|(a, b)| a == b).count() > 24;
                close += usize::from(
                    like(&mut bases.iter().zip(&source))
                        || like(&mut bases.iter().rev().zip(source.iter().rev())),
                );
            }
        }
        assert!(all > 10_000 && placed > all * 98 / 100 && placed < all, "{placed} of {all}");
        assert!(close > placed * 998 / 1000, "{close} of {placed}");
    }

    /// A tumour without germline variants, with its genome and the chromosomes of each haplotype.
    fn tumour(contigs: usize, seed: u64) -> (Genome, Tumour, [Vec<Vec<u8>>; 2]) {
        let params = params(300_000, contigs, seed);
        let genome = made::make(300_000, contigs, None, &mut Rng::stream(seed, &[0]));
        let mut ground = Ground::new(&genome);
        let tumour =
            somatic::place(&genome, &params.somatic, &mut ground, &mut Rng::stream(seed, &[1])).unwrap();
        let spell =
            |h: usize| tumour.karyotypes[0][h].spell(&genome, &edits_of(&genome, &tumour, &[], Some(0), h));
        let haplotypes = [spell(0), spell(1)];
        (genome, tumour, haplotypes)
    }

    fn truth(genome: &Genome, tumour: &Tumour) -> Vec<vcf::Record> {
        let repeats = RepeatMap::new(genome);
        let tracts: Vec<TractIndex> = genome.seqs.iter().map(|s| TractIndex::new(s)).collect();
        let text = truth::somatic_vcf(&Annotator { genome, repeats: &repeats, tracts: &tracts }, tumour, 1.0);
        vcf::parse(&text, Path::new("truth.vcf")).unwrap()
    }

    #[test]
    fn truth_applied_to_the_genome_spells_the_tumour() {
        for seed in 0..5 {
            let (genome, tumour, haplotypes) = tumour(1, seed);
            let mut changes: Vec<(usize, usize, usize, Vec<u8>)> = vec![];
            let seq = &genome.seqs[0];
            let haplotype_of = |pos: usize| {
                let small =
                    tumour.small.iter().find(|p| p.variant.at.pos + 1 == pos || p.variant.at.pos == pos);
                let large = || tumour.structural.iter().find(|p| p.variant.cuts()[0].pos == pos);
                small.map(|p| p.haplotype).or_else(|| large().map(|p| p.haplotype)).unwrap()
            };
            for record in truth(&genome, &tumour) {
                let (pos, end) = (record.pos, record.length("END"));
                let (start, end, bases) = match (record.alternate.as_str(), end) {
                    ("<DEL>", Some(end)) => (pos, end, vec![]),
                    ("<DUP>", Some(end)) => (pos, pos, seq[pos..end].to_vec()),
                    ("<INV>", Some(end)) => (pos, end, dna::revcomp(&seq[pos..end])),
                    (bnd, _) if bnd.contains(['[', ']']) => continue,
                    (bases, _) => (pos - 1, pos - 1 + record.reference.len(), bases.as_bytes().to_vec()),
                };
                assert_eq!(&seq[pos - 1..pos - 1 + record.reference.len()], record.reference.as_bytes());
                changes.push((haplotype_of(pos), start, end, bases));
            }
            for placed in &tumour.structural {
                if let Structural::Copy { from, to, inverted } = &placed.variant {
                    let copied = &seq[from.start..from.end];
                    let copied = if *inverted { dna::revcomp(copied) } else { copied.to_vec() };
                    changes.push((placed.haplotype, to.pos, to.pos, copied));
                }
            }
            assert_eq!(changes.len(), 52);
            changes.sort();
            for (h, spelled) in haplotypes.iter().enumerate() {
                let mut expected = seq.clone();
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
                classes.insert(placed.variant.class());
                if matches!(placed.variant, Structural::Insertion(..)) {
                    continue;
                }
                for [a, b] in placed.variant.adjacencies() {
                    // Read towards the junction at one end and away from it at the other.
                    let towards = |e: &crate::variant::Breakend| {
                        let seq = &genome.seqs[e.contig];
                        match e.side {
                            Side::Left => seq[e.base + 1 - FLANK..=e.base].to_vec(),
                            Side::Right => dna::revcomp(&seq[e.base..e.base + FLANK]),
                        }
                    };
                    let junction = [towards(&a), dna::revcomp(&towards(&b))].concat();
                    let other_strand = dna::revcomp(&junction);
                    let occurs = |chromosomes: &[Vec<u8>]| {
                        let mut windows = chromosomes.iter().flat_map(|c| c.windows(2 * FLANK));
                        windows.any(|w| w == junction || w == other_strand)
                    };
                    assert!(occurs(&haplotypes[placed.haplotype]), "{:?}", placed.variant);
                    assert!(!occurs(&genome.seqs), "{:?}", placed.variant);
                }
            }
            assert_eq!(classes.len(), 6);
        }
    }

    #[test]
    fn purity_clones_and_copies_decide_the_allele_fraction() {
        let (_, mut tumour, _) = tumour(1, 1);
        let at = tumour.small[0].variant.at;
        tumour.structural.clear();
        tumour.shares = vec![0.6, 0.4];
        assert_eq!(tumour.allele_fraction(at, 0, 1.0), 0.5);
        assert_eq!(tumour.allele_fraction(at, 0, 0.5), 0.25);
        assert_eq!(tumour.allele_fraction(at, 1, 0.5), 0.1);
        let body = crate::variant::Span { contig: at.contig, start: at.pos - 100, end: at.pos + 100 };
        let lost = somatic::Placed { variant: Structural::Deletion(body), haplotype: 0, clone: 0 };
        tumour.structural.push(lost);
        assert_eq!(tumour.allele_fraction(at, 0, 1.0), 1.0);
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |change: fn(&mut Params)| {
            let mut wanted = params(50_000, 1, 1);
            change(&mut wanted);
            simulate(&wanted, folder.path(), 1).unwrap_err().to_string()
        };
        assert!(refused(|p| p.somatic.snvs = 1000).contains("no room"));
        assert!(refused(|p| p.samples.purity = 1.5).contains("between 0 and 1"));
        assert!(refused(|p| p.somatic.subclones = vec![0.7, 0.7]).contains("at most 1"));
        assert!(refused(|p| p.genome = GenomeSource::File("/no/such.fa".into())).contains("/no/such.fa"));
        assert!(refused(|p| p.sequencing.read_length = 5).contains("read length"));
        let made =
            |p: &mut Params| p.genome = GenomeSource::Made { length: 50_000, contigs: 1, repeats: Some(1.1) };
        assert!(refused(made).contains("share of repeats"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
