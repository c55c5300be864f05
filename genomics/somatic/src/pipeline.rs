//! The threads and the order of the stages; the stages themselves are single-threaded and pure.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use genuma_align::Placer;
use genuma_kmers::CountParams;
use genuma_reads::fasta::Reference;
use genuma_reads::{Lane, Meter, TUMOUR};

use crate::assemble::{self, Contig};
use crate::change::Change;
use crate::compare::{self, Compared};
use crate::duplicates;
use crate::evidence::{self, Qualities, Vote};
use crate::genotype::{self, Genotype};
use crate::group;
use crate::kmer_map::KmerMap;
use crate::label::{self, Labelled};
use crate::recruit::{self, Recruit};
use crate::select::{self, Depths, Pick};

/// What can stop a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads could not be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// Counting failed.
    #[error(transparent)]
    Kmers(#[from] genuma_kmers::Error),
    /// Placing failed.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
}

/// Everything a call depends on.
#[derive(Debug, Clone)]
pub struct Params {
    /// k-mer length, 24..=32.
    pub k: u32,
    /// Bases under this quality are not counted.
    pub min_base_quality: u8,
    /// Worker threads.
    pub threads: usize,
    /// Memory budget in bytes.
    pub memory: u64,
    /// Work folder.
    pub work: PathBuf,
    /// Fewest tumour occurrences of an interesting k-mer.
    pub least: u32,
    /// Lowest quality that passes.
    pub least_quality: f64,
}

/// A judged change.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What changed.
    pub change: Change,
    /// The verdict.
    pub genotype: Genotype,
    /// Index of the contig that shows it.
    pub contig: usize,
}

/// Runs `work` on `0..n` from several threads and returns the results in order.
fn in_order<T: Send>(n: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(n));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Vec::new();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    mine.push((i, work(i)));
                }
                results.lock().unwrap_or_else(|e| e.into_inner()).extend(mine);
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|r| r.0);
    results.into_iter().map(|r| r.1).collect()
}

/// Second pass: labelled pairs of the tumour, sorted by name.
fn label_tumour(lanes: &[Lane], picks: &[Pick], params: &Params) -> Result<Vec<Labelled>, Error> {
    let map = KmerMap::new(picks.iter().map(|p| p.kmer));
    let tumour: Vec<Lane> = lanes.iter().filter(|l| l.sample == TUMOUR).cloned().collect();
    let meter = Meter::default();
    let states = genuma_reads::for_each_batch(
        &tumour,
        params.threads,
        &meter,
        || (Vec::new(), [Vec::new(), Vec::new()]),
        |(kept, scratch), batch| {
            kept.extend(
                batch.iter().filter_map(|pair| label::label(pair, batch.sample, params.k, &map, scratch)),
            );
            Ok::<(), Error>(())
        },
    )?;
    Ok(sorted(states.into_iter().map(|s| s.0)))
}

fn sorted(parts: impl Iterator<Item = Vec<Labelled>>) -> Vec<Labelled> {
    let mut all: Vec<Labelled> = parts.flatten().collect();
    all.sort_by(|a, b| (a.sample, &a.name).cmp(&(b.sample, &b.name)));
    all
}

fn recruit_pairs(lanes: &[Lane], index: &recruit::Index, params: &Params) -> Result<Vec<Labelled>, Error> {
    let meter = Meter::default();
    let states = genuma_reads::for_each_batch(
        lanes,
        params.threads,
        &meter,
        || (Vec::new(), [Vec::new(), Vec::new()]),
        |(kept, scratch), batch| {
            kept.extend(batch.iter().filter_map(|pair| index.recruit(pair, batch.sample, scratch)));
            Ok::<(), Error>(())
        },
    )?;
    Ok(sorted(states.into_iter().map(|s| s.0)))
}

/// From reads to judged changes, with a reference.
pub fn call(lanes: &[Lane], reference: &Reference, placer: &Placer, params: &Params) -> Result<(Vec<Call>, Vec<Compared>), Error> {
    let clock = std::time::Instant::now();
    let count = CountParams {
        k: params.k,
        min_base_quality: params.min_base_quality,
        threads: params.threads,
        memory: params.memory / 2,
        work: params.work.clone(),
    };
    let counted = genuma_kmers::count(lanes, &count, &Meter::default(), |root, picks: &mut Vec<Pick>| {
        select::select(params.k, params.least, root, picks);
    })?;
    let depths = Depths::of(&counted.spectra);
    eprintln!("{:?} count {} picks {depths:?}", clock.elapsed(), counted.picks.len());
    let labelled = label_tumour(lanes, &counted.picks, params)?;
    eprintln!("{:?} labelled {}", clock.elapsed(), labelled.len());
    let limits = group::Limits { most_carriers: (depths.kmer[1] * 20.0) as u32, fewest_pairs: 3 };
    let groups = group::group(&labelled, counted.picks.len(), limits);
    let how = assemble::Params { k: params.k, fewest_pairs: 3, most_contigs: 20 };
    let contigs: Vec<Contig> = in_order(groups.len(), params.threads, |g| assemble::assemble(&groups[g], &labelled, how))
        .into_iter()
        .flatten()
        .collect();
    eprintln!("{:?} groups {} contigs {}", clock.elapsed(), groups.len(), contigs.len());
    drop(labelled);
    let most = (6.0 * (depths.kmer[0] + depths.kmer[1])) as u32;
    // Contigs are turned to run with the genome before reads are laid on them.
    let compared = in_order(contigs.len(), params.threads, |c| {
        let mut mapper = placer.mapper();
        let hits = mapper.map(format!("c{c}").as_bytes(), &contigs[c].seq)?;
        Ok::<_, genuma_align::Error>(compare::compare(&contigs[c], &hits, reference))
    });
    let contigs = compared.into_iter().collect::<Result<Vec<Compared>, _>>()?;
    eprintln!("{:?} placed, findings {}", clock.elapsed(), contigs.iter().map(|c| c.findings.len()).sum::<usize>());
    let index = recruit::Index::new(&contigs, params.k, most);
    let pairs = recruit_pairs(lanes, &index, params)?;
    eprintln!("{:?} recruited {}", clock.elapsed(), pairs.len());
    let laid = index.lay(&pairs, contigs.len());
    let qualities = Qualities::reported();
    let calls = in_order(contigs.len(), params.threads, |c| {
        judge_contig(c, &contigs[c], &laid[c], &pairs, &qualities, params)
    });
    eprintln!("{:?} judged", clock.elapsed());
    Ok((calls.into_iter().flatten().collect(), contigs))
}

fn judge_contig(
    c: usize,
    contig: &Compared,
    recruits: &[Recruit],
    pairs: &[Labelled],
    qualities: &Qualities,
    params: &Params,
) -> Vec<Call> {
    let mut members: Vec<u32> = recruits.iter().map(|r| r.pair).collect();
    members.dedup();
    let kept: Vec<&Labelled> = members.iter().map(|&p| &pairs[p as usize]).collect();
    let copies = duplicates::mark(&kept);
    let is_copy = |pair: u32| members.binary_search(&pair).is_ok_and(|i| copies[i]);
    contig
        .findings
        .iter()
        .map(|finding| {
            let votes = evidence::votes(
                finding,
                &contig.seq,
                recruits,
                |r| {
                    let read = &pairs[r.pair as usize].mates[r.mate as usize];
                    if r.forward { read.clone() } else { read.reversed() }
                },
                qualities,
            );
            let mut by_sample: [Vec<Vote>; 2] = [Vec::new(), Vec::new()];
            let mut left_out = [0u32; 2];
            for vote in votes {
                let sample = pairs[vote.pair as usize].sample as usize;
                if is_copy(vote.pair) {
                    left_out[sample] += 1;
                } else {
                    by_sample[sample].push(vote);
                }
            }
            let judged = genotype::Params {
                least_quality: params.least_quality,
                prior: 11.0,
                slippage: 1e-4,
                mapq: finding.mapq,
            };
            let genotype = genotype::judge(&by_sample[0], &by_sample[1], left_out, judged);
            Call { change: finding.change.clone(), genotype, contig: c }
        })
        .collect()
}
