//! Bases as two bits: A = 0, C = 1, G = 2, T = 3, so the complement of `b` is `3 - b`.

/// Code of anything that is not A, C, G or T (either case).
pub const NOT_A_BASE: u8 = 4;

const CODES: [u8; 256] = {
    let mut t = [NOT_A_BASE; 256];
    let (upper, lower) = (b"ACGT", b"acgt");
    let mut i = 0;
    while i < 4 {
        t[upper[i] as usize] = i as u8;
        t[lower[i] as usize] = i as u8;
        i += 1;
    }
    t
};

/// The two-bit code of an ASCII base, or [`NOT_A_BASE`].
#[inline]
pub fn code(base: u8) -> u8 {
    CODES[base as usize]
}

/// The upper-case ASCII base of a two-bit code; `N` for anything else.
#[inline]
pub fn base(code: u8) -> u8 {
    b"ACGTN"[(code as usize).min(4)]
}

/// The complement of an ASCII base, upper case; `N` for anything that is not a base.
#[inline]
pub fn complement(base: u8) -> u8 {
    b"TGCAN"[code(base) as usize]
}

/// The reverse complement of an ASCII sequence, upper case.
pub fn revcomp(seq: &[u8]) -> Vec<u8> {
    seq.iter().rev().map(|&b| complement(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complements_and_codes_agree() {
        for (i, &b) in b"ACGT".iter().enumerate() {
            assert_eq!(code(b) as usize, i);
            assert_eq!(code(b.to_ascii_lowercase()) as usize, i);
            assert_eq!(base(code(b)), b);
            assert_eq!(code(complement(b)), 3 - code(b));
        }
        assert_eq!(code(b'N'), NOT_A_BASE);
        assert_eq!(revcomp(b"AACGTN"), b"NACGTT");
    }
}
