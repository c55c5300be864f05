//! Scores variant calls against the truth. The modules are listed in the order in which data flows through them.
//!
//! SNVs match if position and alleles are equal. Indels of less than 50 bp match if they have the same length change
//! within 25 bp, after left-alignment. Complex replacements are first split into substitutions and indels. Groups of
//! close variants that result in the same haplotype sequence match, however they are written.
//!
//! Structural variants in any notation are converted to adjacencies: pairs of breakends. An event of the truth is found
//! if one of its adjacencies is called with both ends within 50 bp. Calls of an assembly without reference are first
//! mapped to the reference by the sequence of their contigs.

mod adjacency;
mod decompose;
mod haplotype_match;
mod region_errors;
mod normalise;
mod contig_to_reference;
mod report;
mod scores;
mod scoring;
pub mod vcf;

pub use region_errors::ErrorsByRegion;
pub use report::format_evaluation_tables;
pub use scores::{EvaluationResult, FalseCall, MissedVariant, UniqueOrRepeat, VariantClass, VariantScores};

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::Result;
use crate::genome::Genome;
use crate::repeated_kmers::RepeatedKmersOfSpans;
use crate::variant::ContigSpan;

/// Input files and options of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationInputs<'a> {
    /// VCF file of the truth, as `genuma bench simulate` writes it.
    pub truth: &'a Path,
    /// VCF file of the calls of any caller, plain or gzipped.
    pub calls: &'a Path,
    /// FASTA file of the contigs on which reference-free calls are made. `None` uses `contigs.fa` in the folder of the
    /// calls, if it exists.
    pub contigs: Option<&'a Path>,
    /// FASTA file of the reference genome, used to left-align alleles, to compare haplotype sequences, to find repeats
    /// and to map reference-free calls; `None` scores without these steps.
    pub reference: Option<&'a Path>,
    /// VCF file of the germline variants, used to label false calls that are germline variants; `None` labels none.
    pub germline: Option<&'a Path>,
    /// Whether only calls that passed the filters are scored.
    pub filters: FilterMode,
}

/// Selection of the calls that are scored, by FILTER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterMode {
    /// Only calls that passed all filters are scored (FILTER is PASS or missing).
    PassOnly,
    /// All calls are scored, whatever their FILTER.
    All,
}

/// Reads the files and scores the calls against the truth.
///
/// # Errors
/// Returns an error if a file cannot be read or has a malformed line.
pub fn evaluate_calls(inputs: &EvaluationInputs) -> Result<EvaluationResult> {
    let genome = inputs.reference.map(Genome::read_fasta).transpose()?;
    let load = |path: &Path| -> Result<scoring::ParsedVcf> {
        Ok(scoring::ParsedVcf::from_records(vcf::read_vcf(path)?, genome.as_ref()))
    };
    let truth = vcf::read_vcf(inputs.truth)?;
    let (calls, notes) = map_calls_to_reference(inputs, &truth, vcf::read_vcf(inputs.calls)?, genome.as_ref())?;
    let [truth, calls] = [truth, calls].map(|records| scoring::ParsedVcf::from_records(records, genome.as_ref()));
    let germline = inputs.germline.map(load).transpose()?;
    let score = |in_repeat: &scoring::RepeatPredicate| {
        let outcome =
            scoring::score_calls(&truth, &calls, germline.as_ref(), genome.as_ref(), inputs.filters, in_repeat);
        EvaluationResult { notes: notes.clone(), ..outcome }
    };
    let Some(genome) = &genome else { return Ok(score(&|_, _, _| false)) };
    let place = |chrom: &str, start: usize, end: usize| {
        let contig = genome.names.iter().position(|n| n == chrom)?;
        Some(ContigSpan { contig, start, end })
    };
    // The first scoring pass only collects the sites for which repeats are needed, because a genome has far more.
    let asked = RefCell::new(vec![]);
    score(&|chrom, start, end| {
        asked.borrow_mut().extend(place(chrom, start, end));
        false
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let repeats = RepeatedKmersOfSpans::count_kmers_of_spans(genome, asked.into_inner(), threads);
    Ok(score(&|chrom, start, end| {
        place(chrom, start, end).is_some_and(|at| repeats.touches_repeat(at.contig, at.start, at.end))
    }))
}

/// Maps calls on contigs that truth and reference lack to the reference. Calls that cannot be mapped stay as they are.
/// Returns the calls, and notes for the user.
fn map_calls_to_reference(
    inputs: &EvaluationInputs,
    truth: &[vcf::VcfRecord],
    calls: Vec<vcf::VcfRecord>,
    genome: Option<&Genome>,
) -> Result<(Vec<vcf::VcfRecord>, Vec<String>)> {
    let mut known: BTreeSet<&str> = truth.iter().map(|record| record.chrom.as_str()).collect();
    known.extend(genome.into_iter().flat_map(|genome| &genome.names).map(String::as_str));
    let strange = |record: &&vcf::VcfRecord| !known.contains(&*record.chrom);
    let Some(first) = calls.iter().find(strange) else { return Ok((calls, Vec::new())) };
    let all = calls.iter().filter(strange).count();
    // A contig that the truth does not mention may be a reference contig without variants.
    if genome.is_none() && all < calls.len() {
        return Ok((calls, Vec::new()));
    }
    let on = format!(
        "{all} of {} calls are on sequences that the truth does not have, such as {}",
        calls.len(),
        first.chrom
    );
    let beside = inputs.calls.with_file_name("contigs.fa");
    let is_missing = || fs::metadata(&beside).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    let contigs = inputs.contigs.or_else(|| (!is_missing()).then_some(&beside));
    let (genome, contigs) = match (genome, contigs) {
        (Some(genome), Some(contigs)) => (genome, Genome::read_fasta(contigs)?),
        (genome, contigs) => {
            let missing = match (genome, contigs) {
                (None, Some(_)) => "--reference",
                (None, None) => "--reference and --contigs",
                _ => "--contigs",
            };
            let why = "to map calls of a reference-free assembly to the reference, give";
            return Ok((calls, vec![format!("{on}, and match none of its variants; {why} {missing}")]));
        }
    };
    let named = calls.iter().filter(strange).map(|record| record.chrom.as_str());
    let mates = calls.iter().filter_map(|record| record.alternate.split(['[', ']']).nth(1)?.rsplit_once(':'));
    let named = named.chain(mates.map(|(chrom, _)| chrom)).collect();
    let places = contig_to_reference::ContigToReferenceMapper::find_anchors_of_contigs(&contigs, &named, genome);
    let mut lost = 0;
    let of = |record: &vcf::VcfRecord| {
        let placed = if strange(&record) { places.map_record_to_reference(record) } else { Some(record.clone()) };
        placed.unwrap_or_else(|| {
            lost += 1;
            record.clone()
        })
    };
    let placed: Vec<vcf::VcfRecord> = calls.iter().map(of).collect();
    let mut note =
        format!("{on}: {} of them were mapped to the reference by the sequence of their contigs", all - lost);
    if lost > 0 {
        note += &format!(", {lost} were not, and count as false if they passed");
    }
    Ok((placed, vec![note]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        GenomeSource, GermlineParams, SamplePairParams, SequencingParams, SimulationParams, SomaticParams,
        simulate_to_folder,
    };

    #[test]
    fn a_simulated_truth_is_found_in_itself_and_germline_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let params = SimulationParams {
            genome: GenomeSource::Made { length: 600_000, contigs: 3, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams { snvs: 60, indels: 90, svs: 24, ..Default::default() },
            samples: SamplePairParams { depth_tumor: 0.1, depth_normal: 0.1, ..Default::default() },
            sequencing: SequencingParams::default(),
            seed: 9,
            ..Default::default()
        };
        simulate_to_folder(&params, folder.path(), 1).unwrap();
        let file = |name: &str| folder.path().join(name);
        let (truth, germline, reference) = (file("truth.vcf"), file("germline.vcf"), file("genome.fa"));
        let inputs = EvaluationInputs {
            truth: &truth,
            calls: &truth,
            contigs: None,
            reference: Some(&reference),
            germline: Some(&germline),
            filters: FilterMode::PassOnly,
        };
        let outcome = evaluate_calls(&inputs).unwrap();
        let mut all = 0;
        for class in [VariantClass::Snv, VariantClass::Indel, VariantClass::Sv] {
            let scores = outcome.scores_of_class(class, None);
            assert_eq!((scores.recall(), scores.precision()), (Some(1.0), Some(1.0)), "{class:?}");
            all += scores.true_positives;
        }
        assert_eq!(all, 60 + 90 + 24);
        assert_eq!(outcome.structural_matches[1..], [0, 0]);

        let outcome = evaluate_calls(&EvaluationInputs { calls: &germline, ..inputs }).unwrap();
        assert_eq!(outcome.scores_of_class(VariantClass::Snv, None).true_positives, 0);
        assert!(outcome.false_calls.len() > 500);
        assert!(outcome.false_calls.iter().all(|f| f.note == "germline"));
        assert!(format_evaluation_tables(&outcome, 3).contains("more"));
        assert!(outcome.to_json()["classes"]["SV"]["all"]["recall"].is_number());
    }
}
