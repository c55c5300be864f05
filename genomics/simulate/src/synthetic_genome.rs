//! Generates synthetic genomes with repeats like those that make real genomes difficult to analyse.

use crate::genome::Genome;
use crate::rng::Rng;

/// Families of interspersed repeats: length of the full element (bp), share of the genome, divergence of the oldest
/// copies from the consensus. Chosen to resemble Alu, L1 and other human families.
const REPEAT_FAMILIES: [(usize, f64, f64); 6] = [
    (300, 0.08, 0.20),
    (310, 0.02, 0.06),
    (6000, 0.10, 0.22),
    (1200, 0.05, 0.25),
    (150, 0.02, 0.30),
    (2500, 0.03, 0.15),
];
/// Segmental duplications: share of the genome, minimum and maximum length (bp), maximum divergence from the source
/// (chosen).
const SEGMENTAL_DUPLICATIONS: (f64, usize, usize, f64) = (0.03, 2_000, 40_000, 0.03);
/// Number of bases of the genome per tandem repeat (chosen).
const BASES_PER_TANDEM_REPEAT: usize = 1500;

/// Generates a genome of `length` bp in `contigs` contigs of unequal length, with varying GC content, interspersed
/// repeats of several families and ages, segmental duplications and tandem repeats.
///
/// `repeats` is the number of bases that are written as copies of repeats and duplications, as share of the genome;
/// `None` uses the shares of [`REPEAT_FAMILIES`] and [`SEGMENTAL_DUPLICATIONS`]. Later copies overwrite some of the
/// earlier ones, so that the final share is lower.
pub(crate) fn generate_synthetic_genome(length: usize, contigs: usize, repeats: Option<f64>, rng: &mut Rng) -> Genome {
    let usual = SEGMENTAL_DUPLICATIONS.0 + REPEAT_FAMILIES.iter().map(|f| f.1).sum::<f64>();
    let scale = repeats.map_or(1.0, |share| share / usual);
    let contigs = contigs.max(1);
    let parts = contigs * (contigs + 1) / 2;
    let mut sizes: Vec<usize> = (0..contigs).map(|i| length * (contigs - i) / parts).collect();
    sizes[0] += length - sizes.iter().sum::<usize>();
    let mut seqs: Vec<Vec<u8>> = sizes.iter().map(|&n| generate_backbone(n, rng)).collect();
    let families: Vec<Vec<u8>> = REPEAT_FAMILIES.iter().map(|f| generate_backbone(f.0, rng)).collect();
    for (family, &(full, share, oldest)) in families.iter().zip(&REPEAT_FAMILIES) {
        let mut left = (length as f64 * share * scale) as usize;
        while left > 0 {
            // Most copies lack their 5' end, as retrotransposons do.
            let kept = if rng.draw_bernoulli(0.3) { full } else { rng.draw_log_uniform(full.min(100), full) };
            let divergence = oldest * rng.draw_unit_interval();
            let copy = diverged_copy(&family[full - kept..], divergence, rng);
            overwrite_at_random(&mut seqs, &copy, rng);
            left = left.saturating_sub(kept);
        }
    }
    let (share, shortest, longest, most) = SEGMENTAL_DUPLICATIONS;
    let mut left = (length as f64 * share * scale) as usize;
    while left >= shortest {
        let source = rng.draw_below(seqs.len());
        let size = rng.draw_log_uniform(shortest, longest.min(left)).min(seqs[source].len());
        let start = rng.draw_below(seqs[source].len() - size + 1);
        let divergence = most * rng.draw_unit_interval();
        let copy = diverged_copy(&seqs[source][start..start + size], divergence, rng);
        overwrite_at_random(&mut seqs, &copy, rng);
        left -= size.min(left);
    }
    for _ in 0..length / BASES_PER_TANDEM_REPEAT {
        let unit: Vec<u8> =
            (0..if rng.draw_bernoulli(0.5) { 1 } else { 2 + rng.draw_below(5) }).map(|_| rng.draw_base(0.35)).collect();
        let size = rng.draw_log_uniform(8, if unit.len() == 1 { 30 } else { 120 });
        let tract: Vec<u8> = unit.into_iter().cycle().take(size).collect();
        let divergence = if rng.draw_bernoulli(0.7) { 0.0 } else { 0.05 };
        let tract = diverged_copy(&tract, divergence, rng);
        overwrite_at_random(&mut seqs, &tract, rng);
    }
    Genome::from_sequences((1..=contigs).map(|i| format!("chr{i}")).collect(), seqs)
}

/// Generates random sequence whose GC content changes every 1–100 kb, like that of isochores.
fn generate_backbone(length: usize, rng: &mut Rng) -> Vec<u8> {
    let mut seq = Vec::with_capacity(length);
    while seq.len() < length {
        let gc = 0.35 + 0.2 * rng.draw_unit_interval();
        let stretch = rng.draw_log_uniform(1_000, 100_000).min(length - seq.len());
        seq.extend((0..stretch).map(|_| rng.draw_base(gc)));
    }
    seq
}

/// Returns a copy of `seq` on a random strand, with substitutions (90 % of the differences) and single-base indels.
fn diverged_copy(seq: &[u8], divergence: f64, rng: &mut Rng) -> Vec<u8> {
    let mut copy = Vec::with_capacity(seq.len() + 16);
    for &b in seq {
        if !rng.draw_bernoulli(divergence) {
            copy.push(b);
        } else if rng.draw_bernoulli(0.9) {
            copy.push(rng.draw_other_base(b));
        } else if rng.draw_bernoulli(0.5) {
            copy.extend([b, rng.draw_base(0.4)]);
        }
    }
    if rng.draw_bernoulli(0.5) { genuma_reads::dna::reverse_complement(&copy) } else { copy }
}

/// Overwrites the contigs with `copy` from a random position on; what extends beyond the end of a contig is cut off.
fn overwrite_at_random(seqs: &mut [Vec<u8>], copy: &[u8], rng: &mut Rng) {
    let total: usize = seqs.iter().map(Vec::len).sum();
    let mut at = rng.draw_below(total);
    for seq in seqs {
        if at < seq.len() {
            let room = copy.len().min(seq.len() - at);
            seq[at..at + room].copy_from_slice(&copy[..room]);
            return;
        }
        at -= seq.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repeated_kmers::RepeatedKmersOfSpans;
    use crate::variant::ContigSpan;

    #[test]
    fn made_genomes_have_their_length_and_repeats() {
        let genome = generate_synthetic_genome(300_001, 3, None, &mut Rng::from_seed_and_labels(1, &[]));
        assert_eq!(genome.length_bp(), 300_001);
        assert_eq!(genome.names, ["chr1", "chr2", "chr3"]);
        assert!(genome.seqs.iter().all(|seq| seq.iter().all(|b| b"ACGT".contains(b))));
        let share = repeated_share(&genome);
        assert!((0.02..0.5).contains(&share), "{share}");
    }

    /// Share of the first contig's bases that touch a repeated 31-mer.
    fn repeated_share(genome: &Genome) -> f64 {
        let length = genome.seqs[0].len();
        let map =
            RepeatedKmersOfSpans::count_kmers_of_spans(genome, [ContigSpan { contig: 0, start: 0, end: length }], 1);
        let repeated = (0..genome.seqs[0].len() - 1).filter(|&i| map.touches_repeat(0, i, i + 1)).count();
        repeated as f64 / genome.seqs[0].len() as f64
    }

    #[test]
    fn repeats_are_as_frequent_as_asked() {
        let share = |repeats| {
            repeated_share(&generate_synthetic_genome(1_000_000, 1, repeats, &mut Rng::from_seed_and_labels(2, &[])))
        };
        let [none, usual, rich] = [Some(0.0), None, Some(0.66)].map(share);
        assert!(none < 0.02, "{none}");
        assert!(usual > none + 0.05 && rich > 1.5 * usual, "{none} {usual} {rich}");
        // Twice the share gives at most twice as many repeats.
        assert!(rich < 2.0 * usual + 0.02, "{usual} {rich}");
    }
}
