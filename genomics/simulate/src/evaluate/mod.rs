//! Calls scored against the truth. Modules in the order data flows through them.
//!
//! Small variants count by exact allele (SNV) or by the same change of length within 25 bp after left-alignment
//! (indels of less than 50 bp). Some bases for some others count as the substitutions and indels that they come down to,
//! whichever side joins them; and near variants that spell the same sequence together are found, however they are
//! written. Structural variants, in whatever notation, become adjacencies: pairs of breakends;
//! an event is found when one of its adjacencies is called with both ends within 50 bp. Calls made without a reference are
//! brought to it first, by the sequence of the contigs they lie on.

mod adjacency;
mod decompose;
mod haplotype;
mod kinds;
mod normalise;
mod place;
mod report;
mod score;
pub mod vcf;

pub use kinds::Kinds;
pub use report::render;
pub use score::{Class, False, Miss, Outcome, Part, Scores};

use std::cell::RefCell;
use std::collections::BTreeSet;
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
    /// Sequences that calls made without a reference lie on, FASTA; else `contigs.fa` beside the calls, if it is there.
    pub contigs: Option<&'a Path>,
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
    let truth = vcf::read(inputs.truth)?;
    let (calls, notes) = placed(inputs, &truth, vcf::read(inputs.calls)?, genome.as_ref())?;
    let [truth, calls] = [truth, calls].map(|records| score::Side::new(records, genome.as_ref()));
    let germline = inputs.germline.map(load).transpose()?;
    let score = |in_repeat: &score::InRepeat| {
        let outcome =
            score::score(&truth, &calls, germline.as_ref(), genome.as_ref(), inputs.filters, in_repeat);
        Outcome { notes: notes.clone(), ..outcome }
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

/// Calls on sequences that nobody knows, on the reference instead; and what there is to say of that.
fn placed(
    inputs: &Inputs,
    truth: &[vcf::Record],
    calls: Vec<vcf::Record>,
    genome: Option<&Genome>,
) -> Result<(Vec<vcf::Record>, Vec<String>)> {
    let mut known: BTreeSet<&str> = truth.iter().map(|record| record.chrom.as_str()).collect();
    known.extend(genome.into_iter().flat_map(|genome| &genome.names).map(String::as_str));
    let strange = |record: &&vcf::Record| !known.contains(&*record.chrom);
    let Some(first) = calls.iter().find(strange) else { return Ok((calls, Vec::new())) };
    let all = calls.iter().filter(strange).count();
    // Truth says nothing of a sequence without variants.
    if genome.is_none() && all < calls.len() {
        return Ok((calls, Vec::new()));
    }
    let on = format!(
        "{all} of {} calls lie on sequences that are not those of the truth, such as {}",
        calls.len(),
        first.chrom
    );
    let beside = inputs.calls.with_file_name("contigs.fa");
    let contigs = inputs.contigs.or_else(|| beside.exists().then_some(&beside));
    let (genome, contigs) = match (genome, contigs) {
        (Some(genome), Some(contigs)) => (genome, Genome::read(contigs)?),
        (genome, contigs) => {
            let missing = match (genome, contigs) {
                (None, Some(_)) => "--reference",
                (None, None) => "--reference and --contigs",
                _ => "--contigs",
            };
            let why = "calls made without a reference are scored where their contigs lie, which nobody can say without";
            return Ok((calls, vec![format!("{on}: they are not found in it; {why} {missing}")]));
        }
    };
    let named = calls.iter().filter(strange).map(|record| record.chrom.as_str());
    let mates = calls.iter().filter_map(|record| record.alternate.split(['[', ']']).nth(1)?.rsplit_once(':'));
    let named = named.chain(mates.map(|(chrom, _)| chrom)).collect();
    let places = place::Places::find(&contigs, &named, genome);
    let mut lost = 0;
    let of = |record: &vcf::Record| {
        let placed = if strange(&record) { places.place(record) } else { Some(record.clone()) };
        placed.unwrap_or_else(|| {
            lost += 1;
            record.clone()
        })
    };
    let placed: Vec<vcf::Record> = calls.iter().map(of).collect();
    let mut note = format!("{on}: {} of them are placed by the sequence of their contigs", all - lost);
    if lost > 0 {
        note += &format!(", {lost} are not, and count as false if they passed");
    }
    Ok((placed, vec![note]))
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
            contigs: None,
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
