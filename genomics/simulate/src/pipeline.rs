//! The whole simulation, in order: genome, variants, haplotypes, reads, truth.

use std::io::Write;
use std::path::Path;

use genuma_work::publish::{AtomicFile, Set};
use serde::Serialize;

use crate::cells::Cells;
use crate::content::Content;
use crate::copies::{self, Aneuploid};
use crate::error::{Error, Result};
use crate::foreign::{self, Kin};
use crate::genome::{Genome, write_file};
use crate::germline::{self, Germline};
use crate::ground::Ground;
use crate::human::{self, Laid};
use crate::integrated;
use crate::linked;
use crate::made;
use crate::mitochondrion::{self, Mitochondrion};
use crate::params::{GenomeSource, Params};
use crate::ploidy::Ploidy;
use crate::recurrent;
use crate::repeats::RepeatMap;
use crate::rng::Stream;
use crate::samples::{Bench, Prepared, Sample};
use crate::sequencing::{self, Counts, Output, Sink};
use crate::site::Site;
use crate::somatic;
use crate::targets::Targets;
use crate::truth::{self, Annotator};
use crate::tumour::Tumour;
use crate::unstable;

/// What was made.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Bases of the reference.
    pub genome_length: usize,
    /// Germline variants placed.
    pub germline_variants: usize,
    /// Somatic SNVs, indels and substitutions of several bases that cells of the sample have.
    pub somatic_small: usize,
    /// Somatic structural variants that they have.
    pub somatic_structural: usize,
    /// Read pairs of the tumour sample.
    pub tumor_pairs: usize,
    /// Read pairs of the normal sample.
    pub normal_pairs: usize,
    /// Contigs of which tumour cells do not have two copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aneuploid: Vec<Aneuploid>,
    /// Copies of the genome in tumour cells, where contigs were lost or gained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tumor_content: Option<Content>,
    /// Tandem repeats that were given another length, and those that could have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unstable_tracts: Option<[usize; 2]>,
    /// Bases of the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target_bases: Option<usize>,
    /// What became of molecules and reads, if anything that is off by default was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tumor_reads: Option<Counts>,
    /// The same of the normal sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) normal_reads: Option<Counts>,
}

/// All variants.
struct Variants {
    tumour: Tumour,
    germline: Vec<Germline>,
    /// Another person's.
    foreign: Option<Vec<Germline>>,
    /// The patient's and another person's.
    mitochondria: Option<[Mitochondrion; 2]>,
    /// Tandem repeats given another length, and those that could have been.
    unstable: [usize; 2],
}

/// Simulates into the folder `out`, which is made if need be: `genome.fa` and its index, `tumor_{1,2}.fq.gz`,
/// `normal_{1,2}.fq.gz`, `truth.vcf`, `germline.vcf`, `truth.bedpe` and `simulate.json`; of a human-like genome
/// `repeats.bed`; with capture `targets.bed`, with another person's reads `foreign.vcf`, with wrong bases that recur `recurrent.vcf`. All appear when all are complete.
pub fn simulate(params: &Params, out: &Path, threads: usize) -> Result<Summary> {
    make(params, To::Folder(out), threads)
}

/// A sample of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The tumour.
    Tumor,
    /// The normal.
    Normal,
}

/// Writes the reads of one sample to `out`: those that [`simulate`] writes with the same parameters, as plain FASTQ in which mates alternate. Nothing else is written.
///
/// # Errors
/// Those of [`simulate`]; `out` takes no more.
pub fn stream(params: &Params, sample: Which, out: &mut dyn Write, threads: usize) -> Result<Summary> {
    make(params, To::Stream(sample, out), threads)
}

/// Where what is made goes.
enum To<'a> {
    /// All of it.
    Folder(&'a Path),
    /// The reads of a sample.
    Stream(Which, &'a mut dyn Write),
}

fn make(params: &Params, mut to: To<'_>, threads: usize) -> Result<Summary> {
    params.check()?;
    let mut laid = Vec::new();
    let nuclear = match &params.genome {
        GenomeSource::File(path) => Genome::read(path)?,
        GenomeSource::Made { length, contigs, repeats } => {
            made::make(*length, *contigs, *repeats, &mut params.stream(Stream::Genome))
        }
        GenomeSource::Human { length } => {
            let genome;
            (genome, laid) = human::make(*length, &mut params.stream(Stream::Genome), threads);
            genome
        }
    };
    let shortest = params.sequencing.longest_read();
    if nuclear.longest_contig() < shortest {
        return Err(Error::Parameters(format!(
            "no contig of the genome is as long as a read ({shortest} bp)"
        )));
    }
    let species = params.foreign.genome.as_deref().map(|path| foreign_species(path, shortest)).transpose()?;
    let whole = if params.samples.mitochondrion > 0.0 {
        Some(mitochondrion::with_contig(&nuclear, &mut params.stream(Stream::Mitochondrion))?)
    } else {
        None
    };
    let genome = whole.as_ref().unwrap_or(&nuclear);
    let capture = params.capture.as_ref();
    let targets = capture
        .map(|c| Targets::new(&c.targets, &nuclear, &mut params.stream(Stream::Targets)))
        .transpose()?;
    let variants = place(&nuclear, genome, params, targets.as_ref())?;
    let Variants { tumour, germline, foreign, mitochondria, unstable } = &variants;

    let recurrent = recurrent::place(&nuclear, &params.recurrent);
    let mut set = Set::default();
    if let To::Folder(out) = to {
        std::fs::create_dir_all(out).map_err(Error::io(out))?;
        genome.write(&out.join("genome.fa"), &mut set)?;
        let repeats = out.join("repeats.bed");
        if laid.is_empty() {
            // That of an earlier genome would be taken for this one's.
            set.forget(repeats);
        } else {
            write_laid(&nuclear, &laid, &repeats, &mut set)?;
        }
        write_truth(genome, params, &variants, threads, out, &mut set)?;
        let at_places = out.join("recurrent.vcf");
        if recurrent.is_empty() {
            set.forget(at_places);
        } else {
            write_file(&at_places, truth::recurrent_vcf(genome, &recurrent).as_bytes(), &mut set)?;
        }
        if let Some(targets) = &targets {
            write_file(&out.join("targets.bed"), targets.bed(genome).as_bytes(), &mut set)?;
        }
    }
    drop(laid);

    let mut cells = Cells::new(&nuclear, tumour, germline);
    if let Some(foreign) = foreign {
        cells.add_person(&nuclear, &tumour.healthy, foreign);
    }
    if let Some(species) = &species {
        cells.add_species(species);
    }
    if let Some([patient, other]) = mitochondria {
        cells.add_mitochondria(genome, patient, foreign.is_some().then_some(other));
    }
    let bench = Bench {
        genome: &nuclear,
        cells: &cells,
        ploidy: &tumour.ploidy,
        targets: targets.as_ref(),
        recurrent: &recurrent,
        params,
    };
    let [tumor_sample, normal_sample] = samples(params);
    let (tumor, normal) = (bench.prepare(&tumor_sample)?, bench.prepare(&normal_sample)?);
    let mut sequence = |sample: Which, prepared: &Prepared| {
        let name = if sample == Which::Tumor { "tumor" } else { "normal" };
        let sink = match &mut to {
            To::Folder(out) => {
                Sink::Files([1, 2].map(|mate| out.join(format!("{name}_{mate}.fq.gz"))), &mut set)
            }
            To::Stream(wanted, out) if *wanted == sample => Sink::Stream(&mut **out),
            To::Stream(..) => return Ok(Counts::default()),
        };
        let output = Output {
            interleaved: matches!(sink, Sink::Stream(_)),
            sample: name,
            contigs: params.sequencing.true_positions.then_some(genome.names.as_slice()),
            pairs: prepared.pairs,
            duplicates: params.sequencing.duplicates,
            seed: prepared.seed,
            threads,
        };
        sequencing::sequence(&prepared.library, &prepared.machine, &output, sink)
    };
    let tumor_reads = sequence(Which::Tumor, &tumor)?;
    let normal_reads = sequence(Which::Normal, &normal)?;

    let of_mitochondria = |of: fn(&Mitochondrion) -> usize| mitochondria.as_ref().map_or(0, |m| of(&m[0]));
    let aneuploid = copies::aneuploid(&nuclear, tumour);
    let summary = Summary {
        genome_length: genome.length(),
        germline_variants: germline.len() + of_mitochondria(|m| m.germline.len()),
        somatic_small: tumour.small.iter().filter(|p| tumour.is_here(p)).count()
            + of_mitochondria(|m| m.somatic.len()),
        somatic_structural: tumour.events(params.samples.purity).len(),
        tumor_pairs: tumor.pairs,
        normal_pairs: normal.pairs,
        tumor_content: (!aneuploid.is_empty()).then(|| Content::of(&nuclear, tumour)),
        aneuploid,
        unstable_tracts: (params.unstable.share > 0.0).then_some(*unstable),
        target_bases: targets.as_ref().map(Targets::bases),
        tumor_reads: params.is_dirty().then_some(tumor_reads),
        normal_reads: params.is_dirty().then_some(normal_reads),
    };
    let report =
        serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "parameters": params, "made": summary });
    if let To::Folder(out) = to {
        write_file(&out.join("simulate.json"), format!("{report:#}\n").as_bytes(), &mut set)?;
    }
    set.publish()?;
    Ok(summary)
}

fn samples(params: &Params) -> [Sample; 2] {
    let of = &params.samples;
    let tumor = Sample {
        depth: of.depth_tumor,
        tumour_share: of.purity,
        foreign: params.foreign.tumor,
        stream: Stream::Tumour,
    };
    let normal = Sample {
        depth: of.depth_normal,
        tumour_share: of.contamination,
        foreign: params.foreign.normal,
        stream: Stream::Normal,
    };
    [tumor, normal]
}

fn foreign_species(path: &Path, shortest: usize) -> Result<Genome> {
    let genome = Genome::read(path)?;
    if genome.longest_contig() < shortest {
        let message = format!("{}: no contig is as long as a read ({shortest} bp)", path.display());
        return Err(Error::Parameters(message));
    }
    Ok(genome)
}

/// Places all variants: those of the nucleus where `nuclear` has room, those of the mitochondrion at the end of `genome`.
fn place(nuclear: &Genome, genome: &Genome, params: &Params, targets: Option<&Targets>) -> Result<Variants> {
    let mut ground = Ground::new(nuclear);
    let ploidy = match params.genome {
        GenomeSource::Human { .. } => Ploidy::male(nuclear),
        _ => Ploidy::diploid(),
    };
    let mut tumour = Tumour::new(nuclear, &params.somatic.subclones, ploidy)?;
    let mut wanted = params.somatic.clone();
    if let (Some(targets), Some(capture)) = (targets, &params.capture) {
        ground.want(Some(&targets.spans));
        if capture.fewer_variants {
            wanted = wanted.fitted(targets.bases());
        }
    }
    let mut placing = |stream: Stream, place: &mut dyn FnMut(&mut Site) -> Result<()>| {
        let mut rng = params.stream(stream);
        let spacing = params.somatic.spacing;
        place(&mut Site { genome: nuclear, ground: &mut ground, tumour: &mut tumour, rng: &mut rng, spacing })
    };
    placing(Stream::Copies, &mut |site| copies::place(site, &params.copies))?;
    placing(Stream::Somatic, &mut |site| somatic::place(site, &wanted))?;
    placing(Stream::Linked, &mut |site| linked::place(site, &params.linked))?;
    placing(Stream::Integrated, &mut |site| integrated::place(site, &params.integrated))?;
    let mut unstable = [0; 2];
    placing(Stream::Unstable, &mut |site| {
        unstable = unstable::place(site, &params.unstable)?;
        Ok(())
    })?;
    ground.want(None);
    let germline = germline::place(
        nuclear,
        &tumour.ploidy,
        &params.germline,
        &mut ground,
        &mut params.stream(Stream::Germline),
    );
    let others = params.foreign.tumor + params.foreign.normal > 0.0 && params.foreign.genome.is_none();
    let kin = params.foreign.kin;
    let foreign = others.then(|| {
        let (ploidy, rng) = (&tumour.ploidy, &mut params.stream(Stream::Foreign));
        match kin {
            Kin::Unrelated => foreign::person(nuclear, ploidy, &params.germline, &germline, rng),
            _ => foreign::relative(nuclear, ploidy, &params.germline, kin, &germline, &mut ground, rng),
        }
    });
    let other =
        if kin.has_the_mitochondria() { Stream::MitochondrialVariants } else { Stream::ForeignMitochondrion };
    let mitochondria = (params.samples.mitochondrion > 0.0).then(|| {
        [Stream::MitochondrialVariants, other]
            .map(|stream| Mitochondrion::new(genome, &mut params.stream(stream)))
    });
    Ok(Variants { tumour, germline, foreign, mitochondria, unstable })
}

fn write_laid(genome: &Genome, laid: &[Laid], path: &Path, set: &mut Set) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    for ((name, seq), laid) in genome.names.iter().zip(&genome.seqs).zip(laid) {
        laid.bed(name, seq.len(), &mut file)?;
    }
    set.add(file.complete()?);
    Ok(())
}

fn write_truth(
    genome: &Genome,
    params: &Params,
    variants: &Variants,
    threads: usize,
    out: &Path,
    set: &mut Set,
) -> Result<()> {
    let Variants { tumour, germline, foreign, mitochondria, .. } = variants;
    let own = if foreign.is_some() { 1.0 - params.foreign.tumor } else { 1.0 };
    let sample = truth::SampleOf { purity: params.samples.purity, own };
    let [patient, other] = match mitochondria {
        Some(both) => both.each_ref().map(Some),
        None => [None; 2],
    };
    let repeats = RepeatMap::new(genome, truth::places(tumour, patient), threads);
    let annotator = Annotator { genome, repeats: &repeats, ploidy: &tumour.ploidy };
    let mut write = |name: &str, text: String| write_file(&out.join(name), text.as_bytes(), set);
    write("truth.vcf", truth::somatic_vcf(&annotator, tumour, patient, sample))?;
    write("germline.vcf", truth::germline_vcf(genome, &tumour.ploidy, germline, patient))?;
    if let Some(foreign) = foreign {
        write("foreign.vcf", truth::germline_vcf(genome, &tumour.ploidy, foreign, other))?;
    }
    write("truth.bedpe", truth::bedpe(genome, &tumour.events(params.samples.purity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::edits_of;
    use crate::evaluate::vcf;
    use crate::germline::GermlineParams;
    use crate::params::SampleParams;
    use crate::rng::Rng;
    use crate::sequencing::SequencingParams;
    use crate::somatic::SomaticParams;
    use crate::tumour::Placed;
    use crate::variant::{Side, Structural};
    use genuma_reads::dna;
    use std::io::Read as _;

    fn params(length: usize, contigs: usize, seed: u64) -> Params {
        Params {
            genome: GenomeSource::Made { length, contigs, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams { snvs: 20, indels: 20, svs: 12, largest_sv: 900, ..Default::default() },
            samples: SampleParams {
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

    #[test]
    fn repeats_of_an_earlier_genome_do_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let made = params(100_000, 1, 3);
        let human = Params { genome: GenomeSource::Human { length: 1_000_000 }, ..made.clone() };
        for (params, there) in [(&human, true), (&made, false)] {
            simulate(params, folder.path(), 2).unwrap();
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
        let tumour = place(&genome, &genome, &params, None).unwrap().tumour;
        let haplotypes = [0, 1].map(|h| {
            let edits = edits_of(&genome, &tumour, &[], Some(0), h);
            let spelled = tumour.karyotypes[0][h].spell(&genome, &edits);
            spelled.iter().map(|sequence| sequence.bases(0..sequence.len())).collect()
        });
        (genome, tumour, haplotypes)
    }

    fn truth(genome: &Genome, tumour: &Tumour) -> Vec<vcf::Record> {
        let repeats = RepeatMap::new(genome, truth::places(tumour, None), 1);
        let annotator = Annotator { genome, repeats: &repeats, ploidy: &tumour.ploidy };
        let sample = truth::SampleOf { purity: 1.0, own: 1.0 };
        let text = truth::somatic_vcf(&annotator, tumour, None, sample);
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
                    let occurs = |chromosome: &[u8]| {
                        chromosome.windows(2 * FLANK).any(|w| w == junction || w == other_strand)
                    };
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
        let at = small.variant.at;
        tumour.structural.clear();
        tumour.shares = vec![0.6, 0.4];
        tumour.karyotypes.push(tumour.karyotypes[0].clone());
        let of_clone = |clone| Placed { clone, ..small.clone() };
        assert_eq!(tumour.allele_fraction(&of_clone(0), 1.0), 0.5);
        assert_eq!(tumour.allele_fraction(&of_clone(0), 0.5), 0.25);
        assert_eq!(tumour.allele_fraction(&of_clone(1), 0.5), 0.1);
        let body = crate::variant::Span { contig: at.contig, start: at.pos - 100, end: at.pos + 100 };
        tumour.structural.push(Placed::new(Structural::Deletion(body), 0, 0));
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
            for record in vcf::parse(&text, Path::new("truth.vcf")).unwrap() {
                clones.entry(record.length("CLONE").unwrap()).or_default().push(record.pos);
            }
            clones
        };
        let (one, other) = (truth(&one), truth(&other));
        assert_eq!([one.keys().collect::<Vec<_>>(), other.keys().collect()], [[&0, &1], [&0, &2]]);
        assert!(
            one[&0] == other[&0] && one.values().chain(other.values()).all(|positions| positions.len() > 5)
        );
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
        assert!(refused(|p| p.somatic.subclones = vec![-0.1]).contains("negative"));
        assert!(refused(|p| p.genome = GenomeSource::File("/no/such.fa".into())).contains("/no/such.fa"));
        assert!(refused(|p| p.sequencing.read_length = 5).contains("read length"));
        let made =
            |p: &mut Params| p.genome = GenomeSource::Made { length: 50_000, contigs: 1, repeats: Some(1.1) };
        assert!(refused(made).contains("share of repeats"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
