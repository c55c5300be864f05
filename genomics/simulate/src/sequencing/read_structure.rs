//! Bases that a read structure puts before the template of a read: UMIs and skipped bases.

use genuma_reads::ReadStructure;

use crate::rng::Rng;

/// Base at skipped positions: the T that ligation to A-tailed fragments leaves after the UMI.
const SKIPPED_BASE: u8 = b'T';

/// Draws a random UMI of the length that the read structure gives.
pub(crate) fn draw_umi(structure: &ReadStructure, rng: &mut Rng) -> Vec<u8> {
    (0..structure.umi_bp()).map(|_| rng.draw_base(0.5)).collect()
}

/// Returns the bases of a read before the template. `umi` must have the length that the read structure gives.
pub(crate) fn build_bases_before_template(structure: &ReadStructure, umi: &[u8]) -> Vec<u8> {
    let mut umi = umi.iter();
    let base = |is_umi: bool| if is_umi { umi.next().copied().unwrap_or(b'N') } else { SKIPPED_BASE };
    let is_umi =
        structure.segments_before_template().iter().flat_map(|&(length, is_umi)| std::iter::repeat_n(is_umi, length));
    is_umi.map(base).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_spelled() {
        assert_eq!(build_bases_before_template(&"3M1S+T".parse().unwrap(), b"ACG"), b"ACGT");
        assert_eq!(build_bases_before_template(&"2S4M1S+T".parse().unwrap(), b"AAAA"), b"TTAAAAT");
    }
}
