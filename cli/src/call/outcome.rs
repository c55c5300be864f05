//! A finished call → what the summary and the report show of it.

use genuma_kmers::MAX_SAMPLES;
use genuma_reads::Lane;
use genuma_reads::fasta::Reference;
use genuma_somatic::errors::Errors;
use genuma_somatic::genotype::Genotype;
use genuma_somatic::lay::Recruit;
use genuma_somatic::locus::{Call, Locus};
use genuma_somatic::outcome::{Other, Outcome, Picture, Reported};
use genuma_somatic::picture::{Scene, picture};
use genuma_somatic::pipeline::{Finished, Job};
use genuma_somatic::record::{self, Record};
use genuma_somatic::recruit::Kept;
use genuma_somatic::screened::Screened;
use genuma_work::parallel::in_order;
use genuma_work::spill;
use genuma_work::timeline::Timeline;

use crate::command;
use crate::report::call::with_pictures;

/// Gathers all that is shown; `records` are those of the VCF.
///
/// # Errors
/// What memory had no room for cannot be read.
pub(crate) fn of(
    job: &Job,
    finished: &mut Finished,
    records: &[Record],
    screened: Vec<Screened>,
    timeline: Timeline,
) -> Result<Outcome, spill::Error> {
    let firsts = first_records(records, finished.events.len());
    let mut calls: Vec<Reported> =
        firsts.into_iter().map(|record| report(record, &finished.genome)).collect();
    let drawn = with_pictures(&calls);
    let pictures = pictures(finished, &drawn, job.means.threads)?;
    drawn.into_iter().zip(pictures).for_each(|(call, picture)| calls[call].picture = picture);
    Ok(Outcome {
        command: command::line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        samples: job.samples.names().to_vec(),
        inputs: (0..).take(job.samples.len()).map(|sample| inputs(&job.lanes, sample)).collect(),
        reference: job.reference.as_ref().map(|path| path.display().to_string()),
        panel: job.panel.as_ref().map(|panel| panel.table.display().to_string()),
        k: job.params.k,
        means: job.means.clone(),
        units: finished.costs.clone(),
        timeline,
        bases: finished.bases.clone(),
        spectra: finished.spectra.clone(),
        depths: finished.depths.clone(),
        libraries: finished.libraries.first().cloned().unwrap_or_default(),
        known: finished.known.clone(),
        portrait: finished.portraits.first().cloned().unwrap_or_default(),
        others: others(finished),
        screened,
        ledger: finished.ledger.clone(),
        errors: finished.errors.learned.clone(),
        strangers: finished.strangers,
        sequences: finished.genome.contigs.iter().map(|c| (c.name.clone(), c.seq.len() as u64)).collect(),
        calls,
    })
}

/// Tumours beyond the first.
fn others(finished: &Finished) -> Vec<Other> {
    let of = finished.samples.tumours().iter().zip(&finished.libraries).zip(&finished.portraits).skip(1);
    of.map(|((sample, libraries), portrait)| Other {
        sample: sample.clone(),
        libraries: libraries.clone(),
        portrait: portrait.clone(),
    })
    .collect()
}

fn inputs(lanes: &[Lane], sample: u8) -> Vec<String> {
    let own = lanes.iter().filter(|lane| lane.sample == sample);
    own.flat_map(Lane::paths).map(|path| path.display().to_string()).collect()
}

/// The first record of each event, by event. Each has one.
fn first_records(records: &[Record], events: usize) -> Vec<&Record> {
    let mut firsts: Vec<&Record> = records.iter().collect();
    // Stable: those of an event stay in the order of the VCF.
    firsts.sort_by_key(|record| record.event);
    firsts.dedup_by_key(|record| record.event);
    assert_eq!(firsts.len(), events, "each event has a record");
    firsts
}

fn report(record: &Record, genome: &Reference) -> Reported {
    let Genotype { normal, tumour, tumours, quality, odds: _, filters } = &record.genotype;
    let name = |chrom: usize| genome.contigs[chrom].name.clone();
    Reported {
        id: record::id(record.event),
        chrom: name(record.chrom),
        pos: record.pos as u64,
        other: record.other().map(|(chrom, pos)| (name(chrom), pos as u64)),
        alleles: [record.reference.clone(), record.alternative(genome)],
        class: record.class,
        quality: *quality,
        filters: filters.iter().map(|f| f.name().to_owned()).collect(),
        normal: *normal,
        tumour: *tumour,
        tumours: tumours.clone(),
        contig: format!("t{}", record.locus + 1),
        picture: Picture::default(),
    }
}

/// Pairs of a sample that have the change, and others, among which those are chosen that a picture shows: many times as many as it does.
const CANDIDATES: usize = 200;

/// The reads of some events, side by side.
fn pictures(finished: &mut Finished, wanted: &[usize], threads: usize) -> Result<Vec<Picture>, spill::Error> {
    let Finished { ranges, events, errors, .. } = finished;
    let call = |i: usize| &events[wanted[i]].calls[0];
    let mut by_locus: Vec<Vec<usize>> = vec![Vec::new(); ranges.loci().len()];
    (0..wanted.len()).for_each(|i| by_locus[call(i).locus].push(i));
    let mut pictures = vec![Picture::default(); wanted.len()];
    ranges.for_each(|loci, contigs, pairs| {
        let here: Vec<usize> = contigs.iter().flat_map(|&c| by_locus[c as usize].iter().copied()).collect();
        let draw = |(): &mut (), i: usize| draw(call(here[i]), loci, pairs, errors);
        let drawn = in_order(here.len(), threads, || (), draw);
        here.iter().zip(drawn).for_each(|(&i, picture)| pictures[i] = picture);
        Ok::<(), spill::Error>(())
    })?;
    Ok(pictures)
}

fn draw(call: &Call, loci: &[Locus], pairs: &[Kept], errors: &Errors) -> Picture {
    let locus = &loci[call.locus];
    let Some(finding) = locus.contig.findings.get(call.finding) else { return Picture::default() };
    let mut left = [[CANDIDATES; 2]; MAX_SAMPLES];
    let recruits: Vec<Recruit> = locus
        .recruits
        .chunk_by(|a, b| a.pair == b.pair)
        .filter(|mates| {
            let pair = mates[0].pair;
            let supports = call.supporting.binary_search(&pair).is_ok();
            let left = &mut left[usize::from(pairs[pair as usize].sample)][usize::from(supports)];
            let taken = *left > 0;
            *left -= usize::from(taken);
            taken
        })
        .flatten()
        .copied()
        .collect();
    let evidence = locus.evidence_of(&recruits, loci, pairs, errors);
    let votes = evidence.votes(call.finding).concat();
    let scene = Scene { contig: &locus.contig, finding, recruits: &recruits, pairs, votes: &votes };
    picture(&scene, |pair| evidence.molecules().is_copy(pair))
}
