//! Builds the summary of a finished call, which summary.json and the report show.

use std::time::{SystemTime, UNIX_EPOCH};

use genuma_kmers::MAX_SAMPLES;
use genuma_pair::library::LibraryMetrics;
use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_reads::Lane;
use genuma_reads::fasta::Reference;
use genuma_somatic::call_summary::{AdditionalTumourSummary, CallSummary, EventPileup, ReportedEvent};
use genuma_somatic::evidence::LocusEvidence;
use genuma_somatic::gene_annotation::AnnotationSummary;
use genuma_somatic::genotype::GenotypingResult;
use genuma_somatic::haplotype::Haplotype;
use genuma_somatic::locus::{Locus, VariantCall};
use genuma_somatic::pipeline::{CallJob, FinishedCall};
use genuma_somatic::provenance::ReferenceIdentity;
use genuma_somatic::read_pileup::{PileupInput, build_pileup};
use genuma_somatic::read_placement::PlacedRead;
use genuma_somatic::recruit::RecruitedPair;
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::screen_hits::ScreenHit;
use genuma_somatic::sequence_families::group_calls_by_sequence_family;
use genuma_somatic::sequencing_errors::ErrorModel;
use genuma_somatic::target_gaps::TargetGap;
use genuma_somatic::vcf_record::{self, VcfRecord};
use genuma_work::parallel::map_in_order;
use genuma_work::quantity::format_date_and_time;
use genuma_work::spill;
use genuma_work::timeline::Timeline;

use genuma_report::call::choose_calls_with_pileups;

/// Annotations that are computed after the VCF records: screened sequences, known variants, genes and consequences.
pub(crate) struct ScreenHitsAndAnnotationSummary {
    /// Calls whose new sequence is that of a screened sequence.
    pub(crate) screened_calls: Vec<ScreenHit>,
    /// Summary of the annotation with genes, if there is one.
    pub(crate) annotation: Option<AnnotationSummary>,
    /// Targets with nearly no coverage, with their genes.
    pub(crate) target_gaps: Vec<TargetGap>,
    /// IDs of the INFO fields of known variants that the records have.
    pub(crate) known_info_fields: Vec<String>,
}

/// Builds the summary of a finished call, without the identity of the reference, the warnings and the counters, which
/// the caller adds. `records` are the records of the VCF.
///
/// # Errors
/// Data that was spilled to disk cannot be read back.
pub(crate) fn build_call_summary(
    job: &CallJob,
    finished: &mut FinishedCall,
    records: &[VcfRecord],
    findings: ScreenHitsAndAnnotationSummary,
    timeline: Timeline,
) -> Result<CallSummary, spill::Error> {
    let firsts = first_records(records, finished.events.len());
    let mut calls: Vec<ReportedEvent> =
        firsts.into_iter().map(|record| reported_call(record, &finished.genome)).collect();
    let drawn = choose_calls_with_pileups(&calls);
    let pictures = build_read_pileups(finished, &drawn, job.resources.threads)?;
    drawn.into_iter().zip(pictures).for_each(|(call, picture)| calls[call].picture = picture);
    Ok(CallSummary {
        command: job.provenance.command_line.clone(),
        date: format_date_and_time(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())),
        reference_identity: ReferenceIdentity::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        samples: job.samples.names().to_vec(),
        has_normal: job.samples.has_normal(),
        inputs: (0..).take(job.samples.num_samples()).map(|sample| input_paths(&job.lanes, sample)).collect(),
        reference: job.reference.as_ref().map(|path| path.display().to_string()),
        panel: job.panel.as_ref().map(|panel| panel.table.display().to_string()),
        known: job.known.as_ref().map(|known| known.path.display().to_string()),
        target_gaps: findings.target_gaps,
        known_info_fields: findings.known_info_fields,
        annotation: findings.annotation,
        targets: finished.targets.as_ref().map(|targets| targets.summary.clone()),
        k: job.params.k,
        resources: job.resources.clone(),
        units: finished.costs.clone(),
        timeline,
        counters: None,
        bases: finished.bases.clone(),
        spectra: finished.spectra.clone(),
        depths: finished.depths.clone(),
        libraries: reported_libraries(finished.libraries.first().cloned().unwrap_or_default(), &job.samples),
        known_sequences: finished.known_sequences.clone(),
        sample_summary: finished.sample_summaries.first().cloned().unwrap_or_default(),
        other_tumours: other_tumours(finished),
        screened_calls: findings.screened_calls,
        sequence_families: group_calls_by_sequence_family(records, &finished.genome),
        ledger: finished.ledger.clone(),
        errors: finished.errors.estimated_rates.clone(),
        genotype_mismatch_rate: finished.genotype_mismatch_share,
        warnings: Vec::new(),
        admixture: finished.admixture,
        sequences: finished.genome.contigs.iter().map(|c| (c.name.clone(), c.seq.len() as u64)).collect(),
        calls,
    })
}

/// Returns the library metrics of a pair. In a tumour-only call, the metrics of the normal and the telomeres are
/// removed, because the normal's reads were cut from the reference.
fn reported_libraries(libraries: SamplePairLibraryMetrics, samples: &SampleNames) -> SamplePairLibraryMetrics {
    match samples.has_normal() {
        true => libraries,
        false => SamplePairLibraryMetrics { normal: LibraryMetrics::default(), telomeres: None, ..libraries },
    }
}

/// Returns names, library metrics and summaries of the second and later tumours.
fn other_tumours(finished: &FinishedCall) -> Vec<AdditionalTumourSummary> {
    let further =
        finished.samples.tumour_names().iter().zip(&finished.libraries).zip(&finished.sample_summaries).skip(1);
    further
        .map(|((sample, libraries), portrait)| AdditionalTumourSummary {
            sample: sample.clone(),
            libraries: reported_libraries(libraries.clone(), &finished.samples),
            sample_summary: portrait.clone(),
        })
        .collect()
}

fn input_paths(lanes: &[Lane], sample: u8) -> Vec<String> {
    let sample_lanes = lanes.iter().filter(|lane| lane.sample == sample);
    sample_lanes.flat_map(Lane::paths).map(|path| path.display().to_string()).collect()
}

/// Returns the first VCF record of each event, sorted by event number. Each event must have a record.
fn first_records(records: &[VcfRecord], events: usize) -> Vec<&VcfRecord> {
    let mut firsts: Vec<&VcfRecord> = records.iter().collect();
    // The sort is stable, so the records of an event stay in the order of the VCF.
    firsts.sort_by_key(|record| record.event);
    firsts.dedup_by_key(|record| record.event);
    assert_eq!(firsts.len(), events, "each event has a record");
    firsts
}

fn reported_call(record: &VcfRecord, genome: &Reference) -> ReportedEvent {
    let GenotypingResult { normal, tumour, tumours, quality, limits: _, odds: _, filters } = &record.genotype;
    let name = |chrom: usize| genome.contigs[chrom].name.clone();
    ReportedEvent {
        id: vcf_record::format_event_id(record.event),
        chrom: name(record.chrom),
        pos: record.pos as u64,
        other: record.position_of_other_end().map(|(chrom, pos)| (name(chrom), pos as u64)),
        alleles: [record.reference.clone(), record.format_alt(genome)],
        class: record.class,
        quality: *quality,
        filters: filters.iter().map(|f| f.filter_id().to_owned()).collect(),
        normal: *normal,
        tumour: *tumour,
        tumours: tumours.clone(),
        contig: format!("t{}", record.locus + 1),
        gene: record.annotation.as_ref().and_then(|annotation| annotation.gene.clone()),
        known_info: record.known_info.clone(),
        picture: EventPileup::default(),
    }
}

/// Maximum number of read pairs of one sample among which the rows of a read pileup are chosen. It applies to the pairs
/// with the change and to those without it separately.
const MAX_CANDIDATE_PAIRS: usize = 200;

/// Builds the read pileups of the events with the indices `wanted`, in this order: for each event that of its first
/// call.
fn build_read_pileups(
    finished: &mut FinishedCall,
    wanted: &[usize],
    threads: usize,
) -> Result<Vec<EventPileup>, spill::Error> {
    let FinishedCall { ranges, events, errors, .. } = finished;
    let call = |i: usize| &events[wanted[i]].calls[0];
    let mut by_locus: Vec<Vec<usize>> = vec![Vec::new(); ranges.loci().len()];
    (0..wanted.len()).for_each(|i| by_locus[call(i).locus].push(i));
    let mut pictures = vec![EventPileup::default(); wanted.len()];
    ranges.for_each_locus_range(|loci, contigs, pairs| {
        let here: Vec<usize> = contigs.iter().map(|&c| c as usize).filter(|&c| !by_locus[c].is_empty()).collect();
        let draw = |(): &mut (), i: usize| -> Vec<EventPileup> {
            let haplotypes = loci[here[i]].haplotypes_of_contig_and_rivals(loci);
            let of_call = |&event: &usize| build_read_pileup(call(event), &loci[here[i]], &haplotypes, pairs, errors);
            by_locus[here[i]].iter().map(of_call).collect()
        };
        let drawn = map_in_order(here.len(), threads, || (), draw);
        let events = here.iter().flat_map(|&c| &by_locus[c]);
        events.zip(drawn.into_iter().flatten()).for_each(|(&i, picture)| pictures[i] = picture);
        Ok::<(), spill::Error>(())
    })?;
    Ok(pictures)
}

/// Builds the read pileup of a call from the reads that reach its change, and from their mates. `haplotypes` are those
/// of its locus.
fn build_read_pileup(
    call: &VariantCall,
    locus: &Locus,
    haplotypes: &[Haplotype],
    pairs: &[RecruitedPair],
    errors: &ErrorModel,
) -> EventPileup {
    let Some(finding) = locus.contig.changes.get(call.change_index) else { return EventPileup::default() };
    let mut left = [[MAX_CANDIDATE_PAIRS; 2]; MAX_SAMPLES];
    let recruits: Vec<PlacedRead> = locus
        .reads
        .chunk_by(|a, b| a.pair == b.pair)
        .filter(|mates| mates.iter().any(|read| read.reaches_contig_range(&finding.contig_range, pairs)))
        .filter(|mates| {
            let pair = mates[0].pair;
            let supports = call.supporting_pairs.binary_search(&pair).is_ok();
            let left = &mut left[usize::from(pairs[pair as usize].sample)][usize::from(supports)];
            let taken = *left > 0;
            *left -= usize::from(taken);
            taken
        })
        .flatten()
        .copied()
        .collect();
    let evidence = LocusEvidence::from_placed_reads(&locus.contig, haplotypes.into(), &recruits, pairs, errors);
    let votes = evidence.molecule_votes(call.change_index).concat();
    let scene = PileupInput { contig: &locus.contig, change: finding, reads: &recruits, pairs, votes: &votes };
    build_pileup(&scene, |pair| evidence.molecule_assignment().is_duplicate(pair))
}
