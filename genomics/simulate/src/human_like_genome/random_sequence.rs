//! Generates random bases, and mutated copies of sequences.

use genuma_reads::dna;

use crate::rng::Rng;

/// Share of the CpG dinucleotides that are replaced by TpG or CpA, in eighths. The human genome has about a quarter of
/// the CpG that its GC content predicts.
const CPG_LOST_EIGHTHS: u64 = 6;
/// Share of substitutions among the differences between a mutated copy and its source. Half of the others are
/// insertions, half deletions (chosen).
const SUBSTITUTION_SHARE: f64 = 0.85;
/// Longest indel in a mutated copy, bp. Indel lengths have a geometric distribution.
const MAX_INDEL_BP: usize = 8;

/// Appends `length` random bases to `seq`. `gc` (0 to 0.8) is their GC content after most CpG have mutated. If `seq`
/// ends with C, this base may become T.
pub(crate) fn append_random_bases(seq: &mut Vec<u8>, length: usize, gc: f64, rng: &mut Rng) {
    // With GC content g before mutation, g²/4 of the bases are CpG, and each mutated CpG removes one G or C.
    let lost = CPG_LOST_EIGHTHS as f64 / 8.0 / 4.0;
    let before = (1.0 - (1.0 - 4.0 * lost * gc).sqrt()) / (2.0 * lost);
    let threshold = (before * 4096.0) as u64;
    let mut last = seq.last().copied().unwrap_or(b'A');
    let end = seq.len() + length;
    while seq.len() < end {
        let mut bits = rng.next_u64();
        for _ in 0..4.min(end - seq.len()) {
            let pair = if bits & 0xfff < threshold { b"CG" } else { b"AT" };
            let mut base = pair[(bits >> 12 & 1) as usize];
            if last == b'C' && base == b'G' && (bits >> 13 & 7) < CPG_LOST_EIGHTHS {
                // Choose the strand whose C mutated.
                if bits >> 13 & 1 == 0 {
                    base = b'A';
                } else if let Some(before) = seq.last_mut() {
                    *before = b'T';
                }
            }
            seq.push(base);
            last = base;
            bits >>= 16;
        }
    }
}

/// Returns `length` random bases with a GC content of `gc` (0 to 0.8).
pub(super) fn draw_bases(length: usize, gc: f64, rng: &mut Rng) -> Vec<u8> {
    let mut seq = Vec::with_capacity(length);
    append_random_bases(&mut seq, length, gc, rng);
    seq
}

/// Appends a copy of `source` to `copy`, in which a substitution, insertion or deletion begins at each base with
/// probability `divergence`.
pub(crate) fn append_mutated_copy(copy: &mut Vec<u8>, source: &[u8], divergence: f64, rng: &mut Rng) {
    let mut at = 0;
    loop {
        let next = at + rng.draw_geometric(divergence).min(source.len() - at);
        copy.extend_from_slice(&source[at..next]);
        if next == source.len() {
            return;
        }
        at = next + 1;
        if rng.draw_bernoulli(SUBSTITUTION_SHARE) {
            copy.push(random_substitute(source[next], rng));
        } else {
            let length = 1 + rng.draw_geometric(0.5).min(MAX_INDEL_BP - 1);
            if rng.draw_bernoulli(0.5) {
                copy.push(source[next]);
                append_random_bases(copy, length, 0.4, rng);
            } else {
                at = (next + length).min(source.len());
            }
        }
    }
}

/// Returns a copy of `source` in which a substitution, insertion or deletion begins at each base with probability
/// `divergence`.
pub(crate) fn create_mutated_copy(source: &[u8], divergence: f64, rng: &mut Rng) -> Vec<u8> {
    let mut copy = Vec::with_capacity(source.len() + source.len() / 16 + 16);
    append_mutated_copy(&mut copy, source, divergence, rng);
    copy
}

/// Draws a base other than `base`; two of three substitutions are transitions.
fn random_substitute(base: u8, rng: &mut Rng) -> u8 {
    let code = dna::encode_base(base);
    let bits = rng.next_u64();
    // The codes of A and G, and of C and T, differ by two.
    let step = match bits >> 32 {
        part if part < 0xaaaa_aaaa => 2,
        _ if bits & 1 == 0 => 1,
        _ => 3,
    };
    dna::decode_base((code + step) & 3)
}

/// Draws an integer length from the exponential distribution with this mean.
pub(crate) fn draw_exponential_length(mean: f64, rng: &mut Rng) -> usize {
    (-mean * (1.0 - rng.draw_unit_interval()).ln()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bases_have_their_gc_content_and_few_cpg() {
        let mut rng = Rng::from_seed_and_labels(1, &[]);
        for gc in [0.35, 0.45, 0.55] {
            let seq = draw_bases(400_001, gc, &mut rng);
            assert_eq!(seq.len(), 400_001);
            let count = |base| seq.iter().filter(|&&b| b == base).count() as f64 / seq.len() as f64;
            let (c, g) = (count(b'C'), count(b'G'));
            assert!((c + g - gc).abs() < 0.01 && (c - g).abs() < 0.01, "{c} {g}");
            let cpg = seq.windows(2).filter(|w| w == b"CG").count() as f64 / seq.len() as f64;
            assert!((0.15..0.4).contains(&(cpg / (c * g))), "{cpg}");
        }
    }

    #[test]
    fn copies_differ_as_asked() {
        let mut rng = Rng::from_seed_and_labels(2, &[]);
        let source = draw_bases(200_000, 0.4, &mut rng);
        assert_eq!(create_mutated_copy(&source, 0.0, &mut rng), source);
        let copy = create_mutated_copy(&source, 0.05, &mut rng);
        assert!(copy.len().abs_diff(source.len()) < 1000);
        // A 20-mer stays unchanged with probability 0.95^20.
        let words = |seq: &[u8]| seq.windows(20).map(<[u8]>::to_vec).collect::<std::collections::HashSet<_>>();
        let (before, after) = (words(&source), words(&copy));
        let kept = before.intersection(&after).count() as f64 / before.len() as f64;
        assert!((kept - 0.95f64.powi(20)).abs() < 0.03, "{kept}");
        assert!((0..1000).all(|_| b"CGT".contains(&random_substitute(b'A', &mut rng))));
        let mean = (0..20_000).map(|_| draw_exponential_length(500.0, &mut rng)).sum::<usize>() / 20_000;
        assert!((485..515).contains(&mean), "{mean}");
    }
}
