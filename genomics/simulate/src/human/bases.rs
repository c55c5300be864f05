//! Sequence that is not there yet: random bases, and copies that have aged.

use genuma_reads::dna;

use crate::rng::Rng;

/// Part of the CpG that have become TpG or CpA, in eighths: the human genome has about a quarter of what its GC
/// content lets one expect.
const CPG_LOST: u64 = 6;
/// Share of substitutions among the differences of an aged copy; the others are insertions and deletions, each as many.
const SUBSTITUTIONS: f64 = 0.85;
/// Lengths of these indels, bp: 1 up to this, short ones mostly.
const LONGEST_INDEL: usize = 8;

/// Adds `length` random bases to `seq`, whose GC content is `gc` (0 to 0.8) after most of the CpG have been lost.
pub(crate) fn extend_random(seq: &mut Vec<u8>, length: usize, gc: f64, rng: &mut Rng) {
    // With g for the GC content before, a quarter of g² is CpG, and each lost one takes a G or a C away.
    let lost = CPG_LOST as f64 / 8.0 / 4.0;
    let before = (1.0 - (1.0 - 4.0 * lost * gc).sqrt()) / (2.0 * lost);
    let threshold = (before * 4096.0) as u64;
    let mut last = seq.last().copied().unwrap_or(b'A');
    let end = seq.len() + length;
    while seq.len() < end {
        let mut bits = rng.bits();
        for _ in 0..4.min(end - seq.len()) {
            let pair = if bits & 0xfff < threshold { b"CG" } else { b"AT" };
            let mut base = pair[(bits >> 12 & 1) as usize];
            if last == b'C' && base == b'G' && (bits >> 13 & 7) < CPG_LOST {
                // Which strand's C it was that changed.
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

/// `length` random bases.
pub fn random(length: usize, gc: f64, rng: &mut Rng) -> Vec<u8> {
    let mut seq = Vec::with_capacity(length);
    extend_random(&mut seq, length, gc, rng);
    seq
}

/// Adds a copy of `source` to `copy` in which each base has changed with probability `divergence`.
pub(crate) fn extend_aged(copy: &mut Vec<u8>, source: &[u8], divergence: f64, rng: &mut Rng) {
    let mut at = 0;
    loop {
        let next = at + rng.skip(divergence).min(source.len() - at);
        copy.extend_from_slice(&source[at..next]);
        if next == source.len() {
            return;
        }
        at = next + 1;
        if rng.chance(SUBSTITUTIONS) {
            copy.push(other(source[next], rng));
        } else {
            let length = 1 + rng.skip(0.5).min(LONGEST_INDEL - 1);
            if rng.chance(0.5) {
                copy.push(source[next]);
                extend_random(copy, length, 0.4, rng);
            } else {
                at = (next + length).min(source.len());
            }
        }
    }
}

/// A copy in which each base has changed with probability `divergence`.
pub(crate) fn aged(source: &[u8], divergence: f64, rng: &mut Rng) -> Vec<u8> {
    let mut copy = Vec::with_capacity(source.len() + source.len() / 16 + 16);
    extend_aged(&mut copy, source, divergence, rng);
    copy
}

/// Another base: a transition two times out of three.
fn other(base: u8, rng: &mut Rng) -> u8 {
    let code = dna::code(base);
    let bits = rng.bits();
    // A and G, C and T are two apart.
    let step = match bits >> 32 {
        part if part < 0xaaaa_aaaa => 2,
        _ if bits & 1 == 0 => 1,
        _ => 3,
    };
    dna::base((code + step) & 3)
}

/// A length that is `mean` on average and falls off exponentially.
pub(crate) fn exponential(mean: f64, rng: &mut Rng) -> usize {
    (-mean * (1.0 - rng.unit()).ln()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bases_have_their_gc_content_and_few_cpg() {
        let mut rng = Rng::stream(1, &[]);
        for gc in [0.35, 0.45, 0.55] {
            let seq = random(400_001, gc, &mut rng);
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
        let mut rng = Rng::stream(2, &[]);
        let source = random(200_000, 0.4, &mut rng);
        assert_eq!(aged(&source, 0.0, &mut rng), source);
        let copy = aged(&source, 0.05, &mut rng);
        assert!(copy.len().abs_diff(source.len()) < 1000);
        // A word of 20 bases stays as it is with 0.95^20.
        let words =
            |seq: &[u8]| seq.windows(20).map(<[u8]>::to_vec).collect::<std::collections::HashSet<_>>();
        let (before, after) = (words(&source), words(&copy));
        let kept = before.intersection(&after).count() as f64 / before.len() as f64;
        assert!((kept - 0.95f64.powi(20)).abs() < 0.03, "{kept}");
        assert!((0..1000).all(|_| b"CGT".contains(&other(b'A', &mut rng))));
        let mean = (0..20_000).map(|_| exponential(500.0, &mut rng)).sum::<usize>() / 20_000;
        assert!((485..515).contains(&mean), "{mean}");
    }
}
