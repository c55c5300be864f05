//! The 96 mutation contexts: substitutions of C or T with the bases on both sides.

use genuma_reads::dna::encode_base;

/// Names of the 96 mutation contexts, such as `A[C>A]A`, sorted by substitution (C>A, C>G, C>T, T>A, T>C, T>G), then by
/// the base before, then by the base after.
pub fn mutation_context_names() -> Vec<String> {
    let mut all = Vec::with_capacity(96);
    for (from, tos) in [('C', "AGT"), ('T', "ACG")] {
        for to in tos.chars() {
            for before in "ACGT".chars() {
                all.extend("ACGT".chars().map(|behind| format!("{before}[{from}>{to}]{behind}")));
            }
        }
    }
    all
}

/// Index, in the order of [`mutation_context_names`], of a substitution of the middle base of `three` by `to`. `None`
/// if a letter is not a base or `to` is the same base.
pub(crate) fn mutation_context_index(three: [u8; 3], to: u8) -> Option<usize> {
    let [before, from, behind, to] = on_pyrimidine_strand([three[0], three[1], three[2], to])?;
    let tos: Vec<usize> = (0..4).filter(|&b| b != from).collect();
    let kind = if from == 1 { 0 } else { 3 } + tos.iter().position(|&b| b == to)?;
    Some(kind * 16 + before * 4 + behind)
}

/// Index of a trinucleotide on the strand with C or T in the middle: by the middle base, then the base before, then the
/// base after. `None` if a letter is not a base.
pub(crate) fn pyrimidine_trinucleotide_index(three: [u8; 3]) -> Option<usize> {
    let [before, middle, behind, _] = on_pyrimidine_strand([three[0], three[1], three[2], three[1]])?;
    Some(middle / 2 * 16 + before * 4 + behind)
}

/// Base codes of a trinucleotide and of a base that replaces its middle base, on the strand with C or T in the middle.
/// `None` if a letter is not a base.
fn on_pyrimidine_strand(letters: [u8; 4]) -> Option<[usize; 4]> {
    let codes = letters.map(|letter| usize::from(encode_base(letter)));
    if codes.iter().any(|&code| code > 3) {
        return None;
    }
    let [before, middle, behind, to] = codes;
    Some(if middle % 2 == 0 { [3 - behind, 3 - middle, 3 - before, 3 - to] } else { codes })
}

#[cfg(test)]
mod tests {
    use genuma_reads::dna::decode_base;

    use super::*;

    fn letter(code: usize) -> u8 {
        decode_base(code as u8)
    }

    #[test]
    fn contexts_are_the_same_on_both_strands() {
        let names = mutation_context_names();
        assert_eq!((names.len(), names[0].as_str(), names[95].as_str()), (96, "A[C>A]A", "T[T>G]T"));
        let mut seen = [0; 96];
        for i in 0..256 {
            let [before, from, behind, to] = [i >> 6, i >> 4 & 3, i >> 2 & 3, i & 3];
            let Some(at) = mutation_context_index([before, from, behind].map(letter), letter(to)) else {
                assert_eq!(from, to);
                continue;
            };
            seen[at] += 1;
            let turned = mutation_context_index([3 - behind, 3 - from, 3 - before].map(letter), letter(3 - to));
            assert_eq!(turned, Some(at));
            if from == 1 || from == 3 {
                let name = format!(
                    "{}[{}>{}]{}",
                    letter(before) as char,
                    letter(from) as char,
                    letter(to) as char,
                    letter(behind) as char
                );
                assert_eq!(names[at], name);
            }
        }
        assert!(seen.iter().all(|n| *n == 2));
        assert_eq!(mutation_context_index(*b"ANA", b'C'), None);
    }
}
