//! The units of a call, their threads and their order; the stages themselves are single-threaded and pure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use genuma_align::{Mapper, Placer};
use genuma_kmers::CountParams;
use genuma_reads::fasta::Reference;
use genuma_reads::{Lane, Meter, NORMAL, PairBatch, TUMOUR};
use serde::{Deserialize, Serialize};

use crate::assemble::{self, Contig};
use crate::change::Change;
use crate::compare::{self, Compared};
use crate::duplicates::Copies;
use crate::event::{self, Event};
use crate::evidence::{self, Qualities, Tally, Vote};
use crate::genotype::{self, Genotype};
use crate::group;
use crate::kmer_map::KmerMap;
use crate::label::{self, KmerHit, Labelled, Read};
use crate::normal;
use crate::outcome::UnitCost;
use crate::recruit::{self, Recruit};
use crate::select::{self, Depths, Pick};
use crate::source;
use crate::unit::{self, Store};

/// What can stop a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or the reference could not be read, or a file not be written.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// Counting failed.
    #[error(transparent)]
    Kmers(#[from] genuma_kmers::Error),
    /// Placing failed.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
    /// A unit's file is not usable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// The input cannot give an answer.
    #[error("{0}")]
    Input(String),
}

/// Everything the result of a call depends on, beside the reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// k-mer length, 24..=32.
    pub k: u32,
    /// k-mers with a base under this Phred quality are not counted.
    pub min_base_quality: u8,
    /// Fewest tumour occurrences of an interesting k-mer.
    pub least_tumour: u32,
    /// Lowest quality that passes.
    pub least_quality: f64,
}

/// The means: they change how long a call takes, never its result.
#[derive(Debug, Clone)]
pub struct Means {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory budget of the process in bytes.
    pub memory: u64,
}

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Job {
    /// Reads of both samples.
    pub lanes: Vec<Lane>,
    /// Where calls are placed; without it on the assembled normal contigs.
    pub reference: Option<PathBuf>,
    /// What the result depends on.
    pub params: Params,
    /// What it may use.
    pub means: Means,
    /// Where units leave their results.
    pub store: Store,
}

/// Told what is going on.
pub trait Watch: Sync {
    /// A unit begins; `meter` counts the bytes it has read, when it reads.
    fn begins(&self, unit: &'static str, meter: Option<Arc<Meter>>);
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
    /// Index of the finding on its contig.
    pub finding: usize,
    /// Pairs with the tumour allele, PCR copies too: indices into [`Finished::pairs`].
    pub supporting: Vec<u32>,
}

/// A finished call.
pub struct Finished {
    /// The sequences calls are placed on.
    pub genome: Reference,
    /// Tumour contigs as compared; `Call::contig` counts them.
    pub contigs: Vec<Compared>,
    /// Pairs recruited, by sample and name.
    pub pairs: Vec<Labelled>,
    /// The reads of `pairs` on each contig.
    pub laid: Vec<Vec<Recruit>>,
    /// What was found, by position.
    pub events: Vec<Event>,
    /// k-mer spectra of both samples.
    pub spectra: [Vec<u64>; 2],
    /// What the spectra say.
    pub depths: Depths,
    /// Bases read of both samples.
    pub bases: [u64; 2],
    /// Cost of each unit.
    pub costs: Vec<UnitCost>,
    /// What the bases' qualities are worth.
    pub qualities: Qualities,
    /// The index, when there is a reference.
    pub placer: Option<Placer>,
}

/// Bytes kept free for what is not the counter's: batches, tables, the picks.
const RESERVE: u64 = 256 << 20;

/// What the counting unit leaves.
#[derive(Serialize, Deserialize)]
struct Counts {
    picks: Vec<Pick>,
    spectra: [Vec<u64>; 2],
    bases: [u64; 2],
}

/// Runs `work` on `0..n` from several threads, each with a state of its own, and returns the results in order.
fn in_order<S, T: Send>(
    n: usize,
    threads: usize,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(n));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut state, mut mine) = (init(), Vec::new());
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    mine.push((i, work(&mut state, i)));
                }
                results.lock().unwrap_or_else(|e| e.into_inner()).extend(mine);
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|r| r.0);
    results.into_iter().map(|r| r.1).collect()
}

/// The normal's reads on a contig, oriented with it, each with where it begins there.
fn normal_reads(laid: &[Recruit], pairs: &[Labelled]) -> Vec<(i32, Read)> {
    laid.iter()
        .filter(|r| pairs[r.pair as usize].sample == NORMAL)
        .map(|r| (r.at[0], r.oriented(pairs)))
        .collect()
}

impl Job {
    /// From reads to judged events.
    pub fn run(&self, watch: &dyn Watch) -> Result<Finished, Error> {
        let mut costs = Vec::new();
        let counts = self.store.unit("count", &mut costs, || self.count(watch))?;
        let depths = Depths::of(&counts.spectra);
        let assembled =
            self.store.unit("assemble", &mut costs, || self.assemble(&counts.picks, depths, watch))?;
        let clock = unit::Clock::start();
        let placed = match &self.reference {
            Some(path) => Some(self.placer(path, watch)?),
            None => None,
        };
        let contigs = match &placed {
            // What differs in nothing from the reference needs no reads.
            Some((genome, placer)) => {
                let mut contigs = self.compare(&assembled, genome, placer)?;
                contigs.retain(|c| !c.findings.is_empty());
                contigs
            }
            None => assembled.iter().map(Compared::unplaced).collect(),
        };
        costs.push(clock.cost("index"));
        let most = (4.0 * (depths.kmer[0] + depths.kmer[1])) as u32;
        let index = recruit::Index::new(&contigs, self.params.k, most);
        let (pairs, seen) = self.store.unit("recruit", &mut costs, || self.recruit(&index, watch))?;
        let mut laid = index.lay(&pairs, &seen, contigs.len());
        watch.begins("judge", None);
        let clock = unit::Clock::start();
        let (genome, placer, contigs) = match placed {
            Some((genome, placer)) => (genome, Some(placer), contigs),
            None => {
                let (genome, contigs) = self.on_normals(&contigs, &assembled, &mut laid, &pairs);
                (genome, None, contigs)
            }
        };
        let tallies = in_order(
            contigs.len(),
            self.means.threads,
            || (),
            |(), c| Tally::of(&contigs[c], &normal_reads(&laid[c], &pairs)),
        );
        let mut tally = Tally::default();
        tallies.iter().for_each(|t| tally.add(t));
        let qualities = Qualities::of(&tally);
        let calls = in_order(
            contigs.len(),
            self.means.threads,
            || (),
            |(), c| self.judge(c, &contigs[c], &laid[c], &pairs, &qualities),
        );
        let events = event::events(calls.into_iter().flatten().collect());
        costs.push(clock.cost("judge"));
        Ok(Finished {
            genome,
            contigs,
            pairs,
            laid,
            events,
            spectra: counts.spectra,
            depths,
            bases: counts.bases,
            costs,
            qualities,
            placer,
        })
    }

    /// First pass: joint counts, and the k-mers that only the tumour has.
    fn count(&self, watch: &dyn Watch) -> Result<Counts, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("count", Some(meter.clone()));
        let params = CountParams {
            k: self.params.k,
            min_base_quality: self.params.min_base_quality,
            threads: self.means.threads,
            memory: self.means.memory.saturating_sub(RESERVE).max(self.means.memory / 2),
            work: self.store.work.clone(),
        };
        let (k, least) = (self.params.k, self.params.least_tumour);
        let counted = genuma_kmers::count(&self.lanes, &params, &meter, |root, picks: &mut Vec<Pick>| {
            select::select(k, least, root, picks);
        })?;
        for (sample, name) in [(0, "normal"), (1, "tumour")] {
            if counted.stats.kmers[sample] == 0 {
                return Err(Error::Input(format!("the {name} has no read of {k} known bases in a row")));
            }
        }
        Ok(Counts { picks: counted.picks, spectra: counted.spectra, bases: counted.stats.bases })
    }

    /// A pass over some lanes that keeps pairs; they come back by sample and name, whatever the order of files.
    fn keep(
        &self,
        lanes: &[Lane],
        meter: &Meter,
        keep: impl Fn(&PairBatch, &mut [Vec<KmerHit>; 2], &mut Vec<Labelled>) + Sync,
    ) -> Result<Vec<Labelled>, Error> {
        let states = genuma_reads::for_each_batch(
            lanes,
            self.means.threads,
            meter,
            || (Vec::new(), [Vec::new(), Vec::new()]),
            |(kept, scratch), batch| {
                keep(batch, scratch, kept);
                Ok::<(), Error>(())
            },
        )?;
        let mut all: Vec<Labelled> = states.into_iter().flat_map(|s| s.0).collect();
        all.sort_unstable_by(|a, b| (a.sample, &a.name, &a.mates).cmp(&(b.sample, &b.name, &b.mates)));
        Ok(all)
    }

    /// Second pass: the tumour's reads with such k-mers, grouped and assembled.
    fn assemble(&self, picks: &[Pick], depths: Depths, watch: &dyn Watch) -> Result<Vec<Contig>, Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("assemble", Some(meter.clone()));
        let k = self.params.k;
        let map = KmerMap::new(picks.iter().map(|p| p.kmer));
        let tumour: Vec<Lane> = self.lanes.iter().filter(|l| l.sample == TUMOUR).cloned().collect();
        let labelled = self.keep(&tumour, &meter, |batch, scratch, kept| {
            for pair in batch.iter() {
                if label::search(pair, k, &map, scratch) {
                    kept.push(Labelled::keep(pair, batch.sample, scratch));
                }
            }
        })?;
        let limits = group::Limits {
            most_carriers: (depths.kmer[TUMOUR as usize] * 20.0) as u32,
            fewest_pairs: genotype::FEWEST_PAIRS,
        };
        let parting: Vec<bool> = picks.iter().map(|p| p.parting).collect();
        let groups = group::group(&labelled, &parting, limits);
        let params = assemble::Params { k, fewest_pairs: genotype::FEWEST_PAIRS, most_contigs: 20 };
        let contigs = in_order(
            groups.len(),
            self.means.threads,
            || (),
            |(), g| assemble::assemble(&groups[g], &labelled, params),
        );
        Ok(contigs.into_iter().flatten().collect())
    }

    /// The reference and its index: the one beside it, the one of an earlier run, or a new one.
    fn placer(&self, path: &Path, watch: &dyn Watch) -> Result<(Reference, Placer), Error> {
        watch.begins("index", None);
        let genome = Reference::read(path)?;
        if Placer::index_exists(path) {
            let placer = Placer::load(path, &genome)?;
            return Ok((genome, placer));
        }
        let prefix = self.store.work.join("reference");
        if !(self.store.resume && Placer::index_exists(&prefix)) {
            let needed = genuma_align::INDEX_BYTES_PER_BASE
                * genome.contigs.iter().map(|c| c.seq.len() as u64).sum::<u64>();
            if needed > self.means.memory {
                return Err(Error::Input(format!(
                    "indexing {} takes {:.1} GB, more than --memory allows; make the index once with `minibwa index` \
                     beside the reference, or give more memory",
                    path.display(),
                    needed as f64 / 1e9
                )));
            }
            let fasta = self.store.work.join("reference.fa");
            genome.write(&fasta)?;
            Placer::build(&fasta, &prefix, self.means.threads)?;
            // The index holds the sequence; the copy was only its input.
            let _ = std::fs::remove_file(&fasta);
        }
        let placer = Placer::load(&prefix, &genome)?;
        Ok((genome, placer))
    }

    /// Each contig against the genome.
    fn compare(
        &self,
        contigs: &[Contig],
        genome: &Reference,
        placer: &Placer,
    ) -> Result<Vec<Compared>, Error> {
        let compared = in_order(
            contigs.len(),
            self.means.threads,
            || placer.mapper(),
            |mapper: &mut Mapper, c| {
                let hits = mapper.map(b"contig", &contigs[c].seq)?;
                let mut compared = compare::compare(&contigs[c], &hits, genome);
                compared.findings = source::resolve(compared.findings, genome, mapper)?;
                Ok(compared)
            },
        );
        compared.into_iter().collect::<Result<_, genuma_align::Error>>().map_err(Error::from)
    }

    /// Without a reference: the normal side of each contig, assembled from the recruited reads, and the contigs as
    /// compared with that.
    fn on_normals(
        &self,
        contigs: &[Compared],
        assembled: &[Contig],
        laid: &mut [Vec<Recruit>],
        pairs: &[Labelled],
    ) -> (Reference, Vec<Compared>) {
        let (n, threads) = (contigs.len(), self.means.threads);
        let reads = &*laid;
        let normals = in_order(n, threads, || (), |(), c| normal::assemble(&contigs[c], &reads[c], pairs));
        let (genome, hits) = normal::genome(&normals);
        let compared =
            in_order(n, threads, || (), |(), c| compare::compare(&assembled[c], &hits[c], &genome));
        // The contigs have gained surroundings since the reads were laid on them.
        for (contig, reads) in compared.iter().zip(laid) {
            reads.iter_mut().flat_map(|r| &mut r.at).for_each(|at| *at += contig.assembled.start as i32);
        }
        (genome, compared)
    }

    /// Third pass: the pairs of both samples that overlap a change, and how often each recruiting k-mer was seen.
    fn recruit(&self, index: &recruit::Index, watch: &dyn Watch) -> Result<(Vec<Labelled>, Vec<u32>), Error> {
        let meter = Arc::new(Meter::default());
        watch.begins("recruit", Some(meter.clone()));
        let seen = recruit::Seen::new(index);
        let pairs = self.keep(&self.lanes, &meter, |batch, scratch, kept| {
            kept.extend(batch.iter().filter_map(|pair| index.recruit(pair, batch.sample, &seen, scratch)));
        })?;
        Ok((pairs, seen.into_counts()))
    }

    /// Weighs the findings of one contig.
    fn judge(
        &self,
        c: usize,
        contig: &Compared,
        recruits: &[Recruit],
        pairs: &[Labelled],
        qualities: &Qualities,
    ) -> Vec<Call> {
        let copies = Copies::among(recruits, pairs);
        let judge_one = |(f, finding): (usize, &compare::Finding)| {
            let votes = evidence::votes(finding, &contig.seq, recruits, |r| r.oriented(pairs), qualities);
            let supporting = votes.iter().filter(|v| v.alternative()).map(|v| v.pair).collect();
            let mut by_sample: [Vec<Vote>; 2] = [Vec::new(), Vec::new()];
            let mut left_out = [0u32; 2];
            for vote in votes {
                let sample = pairs[vote.pair as usize].sample as usize;
                if copies.contains(vote.pair) {
                    left_out[sample] += 1;
                } else {
                    by_sample[sample].push(vote);
                }
            }
            let params = genotype::Params {
                least_quality: self.params.least_quality,
                mapq: finding.mapq,
                ..genotype::Params::default()
            };
            let genotype = genotype::judge(&by_sample[0], &by_sample[1], left_out, params);
            Call { change: finding.change.clone(), genotype, contig: c, finding: f, supporting }
        };
        contig.findings.iter().enumerate().map(judge_one).collect()
    }
}
