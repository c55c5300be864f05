//! Calls scored against the truth. Modules in the order data flows through them.
//!
//! Small variants count by exact allele (SNV) or by the same change of length within 25 bp after left-alignment
//! (indels of less than 50 bp). Some bases for some others count as the substitutions and indels that they come down to,
//! whichever side joins them; and near variants that spell the same sequence together are found, however they are
//! written. Structural variants, in whatever notation, become adjacencies: pairs of breakends;
//! an event is found when one of its adjacencies is called with both ends within 50 bp.

mod adjacency;
mod decompose;
mod haplotype;
mod kinds;
mod normalise;
mod report;
mod score;
pub mod vcf;

pub use kinds::Kinds;
pub use report::render;
pub use score::{Class, False, Miss, Outcome, Part, Scores};

use std::cell::RefCell;
use std::path::Path;

use crate::error::Result;
use crate::genome::Genome;
use crate::repeats::RepeatMap;
use crate::variant::Span;

/// What to compare.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// VCF of the truth, as `genuma simulate` writes it.
    pub truth: &'a Path,
    /// VCF of the calls, of any caller, plain or gzip'd.
    pub calls: &'a Path,
    /// Genome, FASTA: alleles are left-aligned with it, and false calls in repeats are told from others.
    pub reference: Option<&'a Path>,
    /// VCF of the germline: false calls that are in it are said to be.
    pub germline: Option<&'a Path>,
    /// Which calls count.
    pub filters: Filters,
}

/// Which calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filters {
    /// Those that passed (FILTER is PASS or missing).
    Pass,
    /// All.
    All,
}

/// Scores the calls.
pub fn evaluate(inputs: &Inputs) -> Result<Outcome> {
    let genome = inputs.reference.map(Genome::read).transpose()?;
    let load =
        |path: &Path| -> Result<score::Side> { Ok(score::Side::new(vcf::read(path)?, genome.as_ref())) };
    let truth = load(inputs.truth)?;
    let calls = load(inputs.calls)?;
    let germline = inputs.germline.map(load).transpose()?;
    let score = |in_repeat: &score::InRepeat| {
        score::score(&truth, &calls, germline.as_ref(), genome.as_ref(), inputs.filters, in_repeat)
    };
    let Some(genome) = &genome else { return Ok(score(&|_, _, _| false)) };
    let place = |chrom: &str, start: usize, end: usize| {
        let contig = genome.names.iter().position(|n| n == chrom)?;
        Some(Span { contig, start, end })
    };
    // Scored once only to know which places are asked for: a genome has far more.
    let asked = RefCell::new(vec![]);
    score(&|chrom, start, end| {
        asked.borrow_mut().extend(place(chrom, start, end));
        false
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let repeats = RepeatMap::new(genome, asked.into_inner(), threads);
    Ok(score(&|chrom, start, end| {
        place(chrom, start, end).is_some_and(|at| repeats.touches(at.contig, at.start, at.end))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        GenomeSource, GermlineParams, Params, SampleParams, SequencingParams, SomaticParams, simulate,
    };

    #[test]
    fn a_simulated_truth_is_found_in_itself_and_germline_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let params = Params {
            genome: GenomeSource::Made { length: 600_000, contigs: 3, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams { snvs: 60, indels: 90, svs: 24, ..Default::default() },
            samples: SampleParams { depth_tumor: 0.1, depth_normal: 0.1, ..Default::default() },
            sequencing: SequencingParams::default(),
            seed: 9,
            ..Default::default()
        };
        simulate(&params, folder.path(), 1).unwrap();
        let file = |name: &str| folder.path().join(name);
        let (truth, germline, reference) = (file("truth.vcf"), file("germline.vcf"), file("genome.fa"));
        let inputs = Inputs {
            truth: &truth,
            calls: &truth,
            reference: Some(&reference),
            germline: Some(&germline),
            filters: Filters::Pass,
        };
        let outcome = evaluate(&inputs).unwrap();
        let mut all = 0;
        for class in [Class::Snv, Class::Indel, Class::Sv] {
            let scores = outcome.of(class, None);
            assert_eq!((scores.recall(), scores.precision()), (Some(1.0), Some(1.0)), "{class:?}");
            all += scores.true_positives;
        }
        assert_eq!(all, 60 + 90 + 24);
        assert_eq!(outcome.structural_matches[1..], [0, 0]);

        let outcome = evaluate(&Inputs { calls: &germline, ..inputs }).unwrap();
        assert_eq!(outcome.of(Class::Snv, None).true_positives, 0);
        assert!(outcome.false_calls.len() > 500);
        assert!(outcome.false_calls.iter().all(|f| f.note == "germline"));
        assert!(render(&outcome, 3).contains("more"));
        assert!(outcome.to_json()["classes"]["SV"]["all"]["recall"].is_number());
    }
}
