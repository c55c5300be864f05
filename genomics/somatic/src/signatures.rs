//! Exposures of mutational signatures: how many of the SNVs each signature of a given matrix explains. The formulas are
//! those of `docs/model/signatures.md`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use genuma_pair::confidence_interval::Estimate;
use genuma_reads::fasta::Reference;
use genuma_reads::targets::{Target, Targets};
use genuma_work::hash::mix_bits;
use genuma_work::parallel::map_in_order;
use serde::{Deserialize, Serialize};

use crate::mutation_context::{mutation_context_names, pyrimidine_trinucleotide_index};

/// Number of mutation contexts.
const NUM_CONTEXTS: usize = 96;
/// Number of trinucleotides with C or T in the middle.
const NUM_TRINUCLEOTIDES: usize = 32;
/// Maximum size of a matrix file in bytes. Chosen: a hundred times that of COSMIC v3.4, to refuse wrong files early.
const MAX_MATRIX_BYTES: u64 = 16 << 20;
/// Maximum number of signatures of a matrix. Chosen: ten times that of COSMIC v3.4, to limit the time of a fit.
const MAX_SIGNATURES: usize = 1_000;
/// Maximum number of rounds of the least-squares fit per column (Lawson and Hanson 1974, chapter 23).
const MAX_ROUNDS_PER_COLUMN: usize = 3;
/// Accepted names of the first column: `Type` in files of COSMIC, `MutationType` in files of SigProfiler.
const CONTEXT_COLUMN_NAMES: [&str; 2] = ["Type", "MutationType"];

/// Parameters of the fit of mutational signatures.
#[derive(Debug)]
pub(crate) struct SignatureModelParams {
    /// Minimum number of SNVs for a fit. Unit: SNVs. Source: fitted on simulated mixtures of signatures (with 500 SNVs
    /// and 80 signatures about 54 of 60 intervals contain the true share). If higher: fewer samples get exposures.
    pub(crate) min_snvs: u64,
    /// Maximum difference between 1 and the sum of a signature's probabilities. Unit: probability. Source: derived (96
    /// numbers rounded to four digits). If higher: matrices in other units may be accepted.
    pub(crate) max_sum_error: f64,
    /// Number of resampled spectra for the intervals. Unit: spectra. Source: chosen (25 spectra beyond each end of an
    /// interval). If higher: more stable intervals, more time.
    pub(crate) num_resamples: usize,
    /// Number of resampled spectra for each round of the selection of signatures. Unit: spectra. Source: chosen (five
    /// spectra beyond the lower end of an interval). If higher: a more stable selection, more time.
    pub(crate) num_selection_resamples: usize,
    /// Cosine similarity of the spectrum and the explained spectrum below which the report says that the fit is poor.
    /// Unit: none. Source: chosen, below the similarity of all simulated mixtures with `min_snvs` SNVs. If higher: fits
    /// are also called poor because of chance alone.
    pub(crate) min_cosine_similarity: f64,
    /// Mean above which a Poisson random number is approximated by the normal distribution. Unit: SNVs. Source: chosen
    /// (skewness below 0.15). If higher: more random numbers are drawn.
    pub(crate) max_exact_poisson_rate: f64,
    /// Minimum improvement (gradient) at which a signature is added to the fit, as a share of the largest projection.
    /// Unit: none. Source: derived (rounding errors of 96 products). If higher: tiny exposures become 0.
    pub(crate) min_relative_gradient: f64,
}

/// Values of the parameters of the fit of signatures.
pub(crate) const SIGNATURE_MODEL_PARAMS: SignatureModelParams = SignatureModelParams {
    min_snvs: 500,
    max_sum_error: 0.005,
    num_resamples: 1_000,
    num_selection_resamples: 200,
    min_cosine_similarity: 0.9,
    max_exact_poisson_rate: 50.0,
    min_relative_gradient: 1e-10,
};

/// Why a file cannot be used as a matrix of signatures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: cannot read", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The content of the file is not a matrix of signatures.
    #[error("{}: {fault}; expected is the text format of COSMIC: tab-separated, first column Type as A[C>A]A, one column per signature", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with the content, and where.
        fault: String,
    },
}

/// A matrix of mutational signatures: for each signature the probabilities of the 96 mutation contexts.
#[derive(Debug, Clone, PartialEq)]
pub struct SignatureMatrix {
    path: PathBuf,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone, PartialEq)]
struct Signature {
    name: String,
    /// Probability of each mutation context, in the order of [`mutation_context_names`]; their sum is 1.
    probabilities: Vec<f64>,
}

/// Exposures of a tumour to the signatures of a matrix, or why they were not estimated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SignatureExposures {
    /// Path of the matrix file.
    pub matrix: String,
    /// Number of signatures in the matrix.
    pub num_signatures: u64,
    /// Number of SNVs that were fitted: those that passed and have a mutation context.
    pub num_snvs: u64,
    /// Whether the signatures were adjusted to the frequencies of trinucleotides in the targets.
    pub is_normalised_to_targets: bool,
    /// Cosine similarity between the spectrum of the tumour and the spectrum that the exposures explain; `None` without
    /// a fit.
    pub cosine_similarity: Option<f64>,
    /// Exposures to the signatures that the SNVs support, sorted by descending share.
    pub exposures: Vec<SignatureExposure>,
    /// Why the exposures were not estimated; `None` if they were.
    pub why_no_exposures: Option<String>,
}

/// Exposure of a tumour to one signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignatureExposure {
    /// Name of the signature.
    pub signature: String,
    /// Share of the fitted SNVs that the signature explains. The shares of all signatures sum to at most 1.
    pub share: Estimate,
}

/// For each of the 96 mutation contexts, the frequency of its trinucleotide in the targets divided by that in the whole
/// genome.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetToGenomeContextRatios(Vec<f64>);

impl SignatureMatrix {
    /// Reads a matrix of signatures in the text format of COSMIC.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a matrix.
    pub fn read(path: &Path) -> Result<SignatureMatrix, Error> {
        let mut content = Vec::new();
        let limit = MAX_MATRIX_BYTES + 1;
        File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut content))
            .map_err(|source| Error::Read { path: path.into(), source })?;
        let is_too_long = content.len() as u64 == limit;
        let parsed = match String::from_utf8(content) {
            _ if is_too_long => Err(format!("has more than {MAX_MATRIX_BYTES} bytes")),
            Ok(text) => parse_signatures(&text),
            Err(_) => Err("is not plain text; decompress it first".to_owned()),
        };
        match parsed {
            Ok(signatures) => Ok(SignatureMatrix { path: path.into(), signatures }),
            Err(fault) => Err(Error::Malformed { path: path.into(), fault }),
        }
    }

    /// Path of the matrix file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of signatures.
    pub fn num_signatures(&self) -> usize {
        self.signatures.len()
    }

    /// Estimates the exposures of a tumour from its numbers of SNVs by mutation context (`spectrum`). With `ratios` the
    /// signatures are first adjusted to the targets (formula 2).
    pub fn fit_exposures(&self, spectrum: &[u64], ratios: Option<&TargetToGenomeContextRatios>) -> SignatureExposures {
        let num_snvs = spectrum.iter().sum();
        let exposures_without_fit =
            SignatureExposures { is_normalised_to_targets: ratios.is_some(), ..self.no_exposures(num_snvs) };
        let min_snvs = SIGNATURE_MODEL_PARAMS.min_snvs;
        if num_snvs < min_snvs {
            let noun = if num_snvs == 1 { "SNV" } else { "SNVs" };
            let why = format!("{num_snvs} {noun} with a mutation context passed, and a fit needs at least {min_snvs}");
            return SignatureExposures { why_no_exposures: Some(why), ..exposures_without_fit };
        }
        let columns: Vec<Vec<f64>> = self.signatures.iter().map(|signature| signature.normalised(ratios)).collect();
        let counts: Vec<f64> = spectrum.iter().map(|&n| n as f64).collect();
        let selected = select_signatures(&columns, &counts);
        let columns: Vec<Vec<f64>> = selected.iter().map(|&at| columns[at].clone()).collect();
        let problem = LeastSquares::new(&columns);
        let exposures = problem.solve(&counts);
        if exposures.iter().sum::<f64>() <= 0.0 {
            let why = Some("no signature explains the SNVs".to_owned());
            return SignatureExposures { why_no_exposures: why, ..exposures_without_fit };
        }
        let explained: Vec<f64> = (0..NUM_CONTEXTS)
            .map(|context| columns.iter().zip(&exposures).map(|(column, exposure)| column[context] * exposure).sum())
            .collect();
        let resampled = resample_shares(&problem, &counts, SIGNATURE_MODEL_PARAMS.num_resamples);
        let mut fitted: Vec<SignatureExposure> = (selected.iter().zip(shares_of_snvs(exposures, &counts)))
            .zip(resampled)
            .map(|((&at, value), ResampledShare { low, high, .. })| {
                let share = Estimate { value, low: low.min(value), high: high.max(value) };
                SignatureExposure { signature: self.signatures[at].name.clone(), share }
            })
            .collect();
        fitted.sort_by(|a, b| b.share.value.total_cmp(&a.share.value));
        SignatureExposures {
            cosine_similarity: Some(cosine_similarity(&counts, &explained)),
            exposures: fitted,
            ..exposures_without_fit
        }
    }

    /// The result if no fit is made, with the reason `why`.
    pub fn exposures_without_fit(&self, num_snvs: u64, why: String) -> SignatureExposures {
        SignatureExposures { why_no_exposures: Some(why), ..self.no_exposures(num_snvs) }
    }

    /// The result without exposures: only the matrix and the number of SNVs.
    fn no_exposures(&self, num_snvs: u64) -> SignatureExposures {
        SignatureExposures {
            matrix: self.path.display().to_string(),
            num_signatures: self.signatures.len() as u64,
            num_snvs,
            ..SignatureExposures::default()
        }
    }
}

impl SignatureExposures {
    /// Whether there is a fit, but the signatures explain the spectrum poorly.
    pub fn is_poor_fit(&self) -> bool {
        self.cosine_similarity.is_some_and(|similarity| similarity < SIGNATURE_MODEL_PARAMS.min_cosine_similarity)
    }
}

/// Parses the text of a matrix. The error describes what is wrong and where.
fn parse_signatures(text: &str) -> Result<Vec<Signature>, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("is empty")?;
    let mut names = header.split('\t').map(str::trim);
    let first = names.next().unwrap_or_default();
    if !CONTEXT_COLUMN_NAMES.contains(&first) {
        return Err(format!("the first column is {first:?} and not Type"));
    }
    let num_names = names.clone().count();
    if num_names > MAX_SIGNATURES {
        return Err(format!("has {num_names} signatures, and at most {MAX_SIGNATURES} are allowed"));
    }
    let mut signatures: Vec<Signature> = Vec::new();
    for name in names {
        if name.is_empty() || signatures.iter().any(|signature| signature.name == name) {
            return Err(format!("the name {name:?} of a signature is empty or given twice"));
        }
        signatures.push(Signature { name: name.to_owned(), probabilities: vec![0.0; NUM_CONTEXTS] });
    }
    if signatures.is_empty() {
        return Err("has no signature".to_owned());
    }
    let contexts = mutation_context_names();
    let index_of: HashMap<&str, usize> = contexts.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut is_given = [false; NUM_CONTEXTS];
    for (number, line) in lines {
        let mut fields = line.split('\t').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let &context =
            index_of.get(name).ok_or_else(|| format!("line {number}: {name:?} is not a context such as A[C>A]A"))?;
        if std::mem::replace(&mut is_given[context], true) {
            return Err(format!("line {number}: the context {name} is given twice"));
        }
        let numbers: Vec<&str> = fields.collect();
        if numbers.len() != signatures.len() {
            let (has, wanted) = (numbers.len(), signatures.len());
            return Err(format!("line {number}: has {has} numbers for {wanted} signatures"));
        }
        for (signature, number_text) in signatures.iter_mut().zip(numbers) {
            let column = &signature.name;
            let value: f64 =
                number_text.parse().map_err(|_| format!("line {number}, {column}: {number_text:?} is not a number"))?;
            if !(0.0..=1.0).contains(&value) {
                return Err(format!("line {number}, {column}: {number_text} is not a probability"));
            }
            signature.probabilities[context] = value;
        }
    }
    if let Some(missing) = is_given.iter().position(|given| !given) {
        let num_missing = is_given.iter().filter(|given| !**given).count();
        return Err(format!("the context {} is missing ({num_missing} of 96 are)", contexts[missing]));
    }
    for signature in &mut signatures {
        let sum: f64 = signature.probabilities.iter().sum();
        if (sum - 1.0).abs() > SIGNATURE_MODEL_PARAMS.max_sum_error {
            return Err(format!("the probabilities of {} sum to {sum:.4} and not to 1", signature.name));
        }
        signature.probabilities.iter_mut().for_each(|probability| *probability /= sum);
    }
    Ok(signatures)
}

impl Signature {
    /// Probabilities of the contexts in a genome in which they are `ratios` times as frequent (formula 2).
    fn normalised(&self, ratios: Option<&TargetToGenomeContextRatios>) -> Vec<f64> {
        let Some(TargetToGenomeContextRatios(ratios)) = ratios else { return self.probabilities.clone() };
        let weighted: Vec<f64> = self.probabilities.iter().zip(ratios).map(|(p, ratio)| p * ratio).collect();
        let sum: f64 = weighted.iter().sum();
        // A signature whose contexts the targets lack explains nothing.
        if sum > 0.0 { weighted.iter().map(|w| w / sum).collect() } else { weighted }
    }
}

impl TargetToGenomeContextRatios {
    /// Compares the frequencies of trinucleotides in the targets, extended by `padding_bp` on both sides, with those in
    /// the whole genome.
    pub fn compare_targets_with_genome(
        genome: &Reference,
        targets: &Targets,
        padding_bp: usize,
        threads: usize,
    ) -> TargetToGenomeContextRatios {
        let padded = targets.intervals.iter().map(|target| {
            let end = genome.contigs[target.contig].seq.len().min(target.end + padding_bp);
            Target { contig: target.contig, start: target.start.saturating_sub(padding_bp), end, ..target.clone() }
        });
        let padded = Targets::merge_overlapping_intervals(padded.collect());
        let count = |(): &mut (), contig: usize| count_trinucleotides(&genome.contigs[contig].seq);
        let whole = sum_counts(map_in_order(genome.contigs.len(), threads, || (), count));
        let own = sum_counts(padded.intervals.iter().map(|target| {
            let seq = &genome.contigs[target.contig].seq;
            // The neighbours of the first and the last base belong to their contexts.
            count_trinucleotides(&seq[target.start.saturating_sub(1)..(target.end + 1).min(seq.len())])
        }));
        let share = |counts: &[u64], at: usize| counts[at] as f64 / counts.iter().sum::<u64>().max(1) as f64;
        let ratio = |at: usize| if whole[at] == 0 { 0.0 } else { share(&own, at) / share(&whole, at) };
        TargetToGenomeContextRatios((0..NUM_CONTEXTS).map(|context| ratio(trinucleotide_of_context(context))).collect())
    }
}

/// Index of the trinucleotide of a mutation context.
fn trinucleotide_of_context(context: usize) -> usize {
    context / 48 * 16 + context % 16
}

/// Counts the trinucleotides of a sequence, each on the strand with C or T in the middle.
fn count_trinucleotides(seq: &[u8]) -> [u64; NUM_TRINUCLEOTIDES] {
    let mut counts = [0; NUM_TRINUCLEOTIDES];
    let indices = seq.windows(3).filter_map(|three| pyrimidine_trinucleotide_index([three[0], three[1], three[2]]));
    indices.for_each(|index| counts[index] += 1);
    counts
}

fn sum_counts(all: impl IntoIterator<Item = [u64; NUM_TRINUCLEOTIDES]>) -> [u64; NUM_TRINUCLEOTIDES] {
    all.into_iter().fold([0; NUM_TRINUCLEOTIDES], |sum, counts| std::array::from_fn(|at| sum[at] + counts[at]))
}

/// Non-negative least squares (formula 3) for several right-hand sides with the same columns.
struct LeastSquares<'a> {
    columns: &'a [Vec<f64>],
    /// Scalar products of all pairs of columns.
    products: Vec<Vec<f64>>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

impl<'a> LeastSquares<'a> {
    fn new(columns: &'a [Vec<f64>]) -> Self {
        let products = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
        LeastSquares { columns, products }
    }

    /// Fits the columns to `counts` and returns their coefficients, which are not negative: the method of Lawson and
    /// Hanson (1974, chapter 23) on the products of the columns (Bro and de Jong 1997). A column is added while the fit
    /// improves; a column whose coefficient would become negative is removed. The number of rounds is limited, as in
    /// Lawson and Hanson.
    fn solve(&self, counts: &[f64]) -> Vec<f64> {
        let projections: Vec<f64> = self.columns.iter().map(|column| dot(column, counts)).collect();
        let min_gradient =
            SIGNATURE_MODEL_PARAMS.min_relative_gradient * projections.iter().copied().fold(0.0, f64::max);
        let mut solution = vec![0.0; self.columns.len()];
        let mut active: Vec<usize> = Vec::new();
        // Columns that, because of rounding, cannot be added to the present ones.
        let mut refused: Vec<usize> = Vec::new();
        for _ in 0..MAX_ROUNDS_PER_COLUMN * self.columns.len() {
            let gradient = |&column: &usize| projections[column] - dot(&self.products[column], &solution);
            let candidates =
                (0..self.columns.len()).filter(|column| !active.contains(column) && !refused.contains(column));
            let best = candidates.map(|column| (column, gradient(&column))).max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((added, _)) = best.filter(|(_, gradient)| *gradient > min_gradient) else { return solution };
            active.push(added);
            let improved = self.solve_active(&active, &projections).filter(|values| values.last() > Some(&0.0));
            let Some(mut values) = improved else {
                active.pop();
                refused.push(added);
                continue;
            };
            refused.clear();
            while values.iter().any(|value| *value <= 0.0) {
                // Go towards the new values until the first coefficient is 0, and remove its column.
                let steps = active.iter().zip(&values).filter(|(_, value)| **value <= 0.0);
                let step = steps.map(|(&at, value)| solution[at] / (solution[at] - value)).fold(1.0, f64::min);
                for (&at, value) in active.iter().zip(&values) {
                    let moved = solution[at] + step * (value - solution[at]);
                    solution[at] = if *value <= 0.0 && solution[at] / (solution[at] - value) <= step {
                        0.0
                    } else {
                        moved.max(0.0)
                    };
                }
                active.retain(|&at| solution[at] > 0.0);
                match self.solve_active(&active, &projections) {
                    Some(fewer) => values = fewer,
                    None => return solution,
                }
            }
            active.iter().zip(&values).for_each(|(&at, value)| solution[at] = *value);
        }
        solution
    }

    /// Coefficients of the `active` columns without the restriction to non-negative values, by Cholesky decomposition;
    /// `None` if the columns are linearly dependent.
    fn solve_active(&self, active: &[usize], projections: &[f64]) -> Option<Vec<f64>> {
        let n = active.len();
        let mut lower = vec![vec![0.0; n]; n];
        for row in 0..n {
            for column in 0..=row {
                let rest =
                    self.products[active[row]][active[column]] - dot(&lower[row][..column], &lower[column][..column]);
                if row > column {
                    lower[row][column] = rest / lower[column][column];
                } else if rest > SIGNATURE_MODEL_PARAMS.min_relative_gradient * self.products[active[row]][active[row]]
                {
                    lower[row][row] = rest.sqrt();
                } else {
                    return None;
                }
            }
        }
        let mut values: Vec<f64> = active.iter().map(|&at| projections[at]).collect();
        for row in 0..n {
            values[row] = (values[row] - dot(&lower[row][..row], &values[..row])) / lower[row][row];
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|below| lower[below][row] * values[below]).sum();
            values[row] = (values[row] - known) / lower[row][row];
        }
        Some(values)
    }
}

/// Indices of the signatures that the SNVs support (formula 5). Starts with those that have a positive exposure. In
/// each round one signature is removed whose share resampling does not show to be positive. At most 96 columns have a
/// positive exposure, because they are linearly independent, so there are at most 96 rounds.
fn select_signatures(columns: &[Vec<f64>], counts: &[f64]) -> Vec<usize> {
    let exposures = LeastSquares::new(columns).solve(counts);
    let mut selected: Vec<usize> = (0..columns.len()).filter(|&at| exposures[at] > 0.0).collect();
    loop {
        let own: Vec<Vec<f64>> = selected.iter().map(|&at| columns[at].clone()).collect();
        let shares = resample_shares(&LeastSquares::new(&own), counts, SIGNATURE_MODEL_PARAMS.num_selection_resamples);
        let unsupported = shares.iter().enumerate().filter(|(_, share)| share.low <= 0.0);
        let Some((weakest, _)) = unsupported.min_by(|a, b| a.1.mean.total_cmp(&b.1.mean)) else { return selected };
        selected.remove(weakest);
    }
}

/// Converts exposures (in SNVs) into shares of all SNVs (formula 3).
fn shares_of_snvs(exposures: Vec<f64>, counts: &[f64]) -> Vec<f64> {
    let total = counts.iter().sum::<f64>().max(exposures.iter().sum());
    exposures.into_iter().map(|exposure| if total > 0.0 { exposure / total } else { 0.0 }).collect()
}

/// Distribution of the share of one signature in fits of resampled spectra.
struct ResampledShare {
    mean: f64,
    /// 2.5 % quantile of the share over the resampled spectra.
    low: f64,
    /// 97.5 % quantile of the share over the resampled spectra.
    high: f64,
}

/// Fits resampled spectra and returns the distribution of the share of each signature (formula 4).
fn resample_shares(problem: &LeastSquares<'_>, counts: &[f64], num_resamples: usize) -> Vec<ResampledShare> {
    let mut random = Random(0);
    let mut shares: Vec<Vec<f64>> = vec![Vec::with_capacity(num_resamples); problem.columns.len()];
    for _ in 0..num_resamples {
        let resampled: Vec<f64> = counts.iter().map(|&rate| random.poisson_number(rate)).collect();
        let solution = shares_of_snvs(problem.solve(&resampled), &resampled);
        shares.iter_mut().zip(solution).for_each(|(own, share)| own.push(share));
    }
    let beyond = num_resamples / 40;
    shares
        .into_iter()
        .map(|mut own| {
            own.sort_by(f64::total_cmp);
            let mean = own.iter().sum::<f64>() / num_resamples as f64;
            ResampledShare { mean, low: own[beyond], high: own[num_resamples - 1 - beyond] }
        })
        .collect()
}

/// Deterministic random number generator: the same numbers in each run.
struct Random(u64);

impl Random {
    /// A uniformly distributed random number, above 0 and at most 1.
    fn uniform_number(&mut self) -> f64 {
        self.0 += 1;
        ((mix_bits(self.0 ^ mix_bits(self.0 << 32 | 1)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A Poisson-distributed random number with mean `rate`: exact for low means (Knuth 1969), approximated by the
    /// normal distribution for high means (Box and Muller 1958).
    fn poisson_number(&mut self, rate: f64) -> f64 {
        if rate > SIGNATURE_MODEL_PARAMS.max_exact_poisson_rate {
            let radius = (-2.0 * self.uniform_number().ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * self.uniform_number()).cos();
            return (rate + normal * rate.sqrt()).round().max(0.0);
        }
        let (end, mut product, mut number) = ((-rate).exp(), self.uniform_number(), 0.0);
        while product > end {
            product *= self.uniform_number();
            number += 1.0;
        }
        number
    }
}

fn cosine_similarity(a: &[f64], b: &[f64]) -> f64 {
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { dot(a, b) / norms } else { 0.0 }
}

#[cfg(test)]
mod tests;
