//! Bases as two-bit codes: A = 0, C = 1, G = 2, T = 3. The complement of code `b` is `3 - b`.

/// Code of a byte that is not A, C, G or T in upper or lower case.
pub const NOT_A_BASE_CODE: u8 = 4;

/// The two-bit base code of each byte value, or [`NOT_A_BASE_CODE`].
const CODES: [u8; 256] = {
    let mut codes = [NOT_A_BASE_CODE; 256];
    let (upper, lower) = (b"ACGT", b"acgt");
    let mut i = 0;
    while i < 4 {
        codes[upper[i] as usize] = i as u8;
        codes[lower[i] as usize] = i as u8;
        i += 1;
    }
    codes
};

/// The two-bit code of an ASCII base in upper or lower case; [`NOT_A_BASE_CODE`] for other bytes.
#[inline]
pub fn encode_base(base: u8) -> u8 {
    CODES[base as usize]
}

/// The upper-case ASCII base of a two-bit code; `N` for any other value.
#[inline]
pub fn decode_base(code: u8) -> u8 {
    b"ACGTN"[(code as usize).min(4)]
}

/// Complement of each byte value that is an IUPAC letter; the byte itself for others.
const IUPAC_COMPLEMENTS: [u8; 256] = {
    let (here, there) = (b"ACMGRSVTWYHKDBNU", b"TGKCYSBAWRDMHVNA");
    let mut complements = [0; 256];
    let mut i = 0;
    while i < 256 {
        complements[i] = i as u8;
        i += 1;
    }
    i = 0;
    while i < here.len() {
        complements[here[i] as usize] = there[i];
        complements[here[i].to_ascii_lowercase() as usize] = there[i].to_ascii_lowercase();
        i += 1;
    }
    complements
};

/// The complement of an IUPAC letter, in the same case; other bytes are returned unchanged.
#[inline]
pub(crate) fn complement_iupac(base: u8) -> u8 {
    IUPAC_COMPLEMENTS[usize::from(base)]
}

/// The upper-case complement of an ASCII base in either case; `N` for any byte that is not A, C, G or T.
#[inline]
pub fn complement(base: u8) -> u8 {
    b"TGCAN"[encode_base(base) as usize]
}

/// The reverse complement of an ASCII sequence, in upper case; `N` for each byte that is not A, C, G or T.
pub fn reverse_complement(seq: &[u8]) -> Vec<u8> {
    seq.iter().rev().map(|&b| complement(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complements_and_codes_agree() {
        for (i, &b) in b"ACGT".iter().enumerate() {
            assert_eq!(encode_base(b) as usize, i);
            assert_eq!(encode_base(b.to_ascii_lowercase()) as usize, i);
            assert_eq!(decode_base(encode_base(b)), b);
            assert_eq!(encode_base(complement(b)), 3 - encode_base(b));
        }
        assert_eq!(encode_base(b'N'), NOT_A_BASE_CODE);
        assert_eq!(reverse_complement(b"AACGTN"), b"NACGTT");
    }

    #[test]
    fn iupac_letters_keep_their_case() {
        let complements = |bases: &[u8]| bases.iter().map(|&base| complement_iupac(base)).collect::<Vec<_>>();
        assert_eq!(complements(b"ACGTUN=.-\xff"), b"TGCAAN=.-\xff");
        assert_eq!(complements(b"acgtumrwsykvhdbn"), b"tgcaakywsrmbdhvn");
        let letters = b"ACMGRSVTWYHKDBNacmgrsvtwyhkdbn";
        assert_eq!(complements(&complements(letters)), letters);
    }
}
