//! A finished call → what the summary and the report show of it.

use std::collections::HashMap;

use genuma_kmers::MAX_SAMPLES;
use genuma_reads::Lane;
use genuma_somatic::errors::Errors;
use genuma_somatic::event::Event;
use genuma_somatic::lay::Recruit;
use genuma_somatic::locus::{Call, Locus};
use genuma_somatic::outcome::{Other, Outcome, Picture, Reported};
use genuma_somatic::picture::{Scene, picture};
use genuma_somatic::pipeline::{Finished, Job};
use genuma_somatic::recruit::Kept;
use genuma_somatic::screened::Screened;
use genuma_somatic::vcf::Line;
use genuma_work::parallel::in_order;
use genuma_work::spill;
use genuma_work::timeline::Timeline;

use crate::command;
use crate::report::call::with_pictures;

/// Gathers all that is shown; `lines` are those of the VCF.
///
/// # Errors
/// What memory had no room for cannot be read.
pub fn of(
    job: &Job,
    finished: &mut Finished,
    lines: &[Line],
    screened: Vec<Screened>,
    timeline: Timeline,
) -> Result<Outcome, spill::Error> {
    let records = first_records(lines);
    let reported = |(i, event): (usize, &Event)| {
        let id = format!("g{}", i + 1);
        records.get(id.as_str()).map(|record| (i, report(id.clone(), record, event)))
    };
    let (events, mut calls): (Vec<usize>, Vec<Reported>) =
        finished.events.iter().enumerate().filter_map(reported).unzip();
    let drawn = with_pictures(&calls);
    let of_events: Vec<usize> = drawn.iter().map(|&call| events[call]).collect();
    let pictures = pictures(finished, &of_events, job.means.threads)?;
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

/// The columns of a VCF record, from CHROM on.
type Record<'a> = Vec<&'a str>;

/// The first record of each event by the event's ID: `g7` itself, or `g7_1a` where an event has several records.
fn first_records(lines: &[Line]) -> HashMap<&str, Record<'_>> {
    let mut records = HashMap::new();
    for line in lines {
        let record: Record<'_> = line.text.split('\t').collect();
        let event = record[2].split('_').next().unwrap_or_default();
        records.entry(event).or_insert(record);
    }
    records
}

fn report(id: String, record: &Record<'_>, event: &Event) -> Reported {
    let call = &event.calls[0];
    Reported {
        id,
        chrom: record[0].to_owned(),
        pos: record[1].parse().unwrap_or_default(),
        other: other_end(record),
        alleles: [record[3].to_owned(), record[4].to_owned()],
        class: event.class,
        quality: call.genotype.quality,
        filters: call.genotype.filters.iter().map(|f| f.name().to_owned()).collect(),
        normal: call.genotype.normal,
        tumour: call.genotype.tumour,
        tumours: call.genotype.tumours.clone(),
        contig: format!("t{}", call.locus + 1),
        picture: Picture::default(),
    }
}

/// Where a structural event ends: the place in a breakend's brackets, or END.
fn other_end(record: &Record<'_>) -> Option<(String, u64)> {
    if let Some(place) = record[4].split(['[', ']']).nth(1) {
        let (chrom, pos) = place.rsplit_once(':')?;
        return Some((chrom.to_owned(), pos.parse().ok()?));
    }
    let end: u64 = record[7].split(';').find_map(|field| field.strip_prefix("END="))?.parse().ok()?;
    (record[1] != end.to_string()).then(|| (record[0].to_owned(), end))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_in_the_record() {
        let end = |alt: &str, info: &str| {
            let record = vec!["chr1", "100", "g1", "A", alt, "50", "PASS", info];
            other_end(&record)
        };
        assert_eq!(end("<DEL>", "SOMATIC;SVLEN=-50;END=150"), Some(("chr1".into(), 150)));
        assert_eq!(end("<INS>", "SOMATIC;END=100"), None);
        assert_eq!(end("G", "SOMATIC"), None);
        assert_eq!(end("A]HLA:2:77]", "SOMATIC"), Some(("HLA:2".into(), 77)));
    }
}
