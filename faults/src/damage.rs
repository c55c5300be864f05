//! Damage of a file, region by region.

use fastrand::Rng;

/// Bytes that disks and file systems lose together.
const SECTOR: usize = 512;

/// How a region is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harm {
    /// One bit is another.
    Flip,
    /// A sector is all zero.
    Zero,
    /// The file ends here.
    Truncate,
    /// A sector stands twice, the rest follows later.
    Repeat,
    /// A sector is missing.
    Drop,
    /// A sector has random bytes.
    Scramble,
}

impl Harm {
    /// All of them.
    pub const ALL: [Harm; 6] =
        [Harm::Flip, Harm::Zero, Harm::Truncate, Harm::Repeat, Harm::Drop, Harm::Scramble];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Harm::Flip => "flip",
            Harm::Zero => "zero",
            Harm::Truncate => "truncate",
            Harm::Repeat => "repeat",
            Harm::Drop => "drop",
            Harm::Scramble => "scramble",
        }
    }

    /// The file with this done to it at byte `at`; `None` if that changes nothing.
    pub fn done(self, whole: &[u8], at: usize) -> Option<Vec<u8>> {
        if at >= whole.len() {
            return None;
        }
        // What is random comes from the place.
        let mut rng = Rng::with_seed(at as u64);
        let end = (at + SECTOR).min(whole.len());
        let (head, sector, tail) = (&whole[..at], &whole[at..end], &whole[end..]);
        let damaged = match self {
            Harm::Flip => {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << rng.u8(..8);
                bytes
            }
            Harm::Zero => [head, &vec![0; sector.len()], tail].concat(),
            Harm::Truncate => head.to_vec(),
            Harm::Repeat => [head, sector, sector, tail].concat(),
            Harm::Drop => [head, tail].concat(),
            Harm::Scramble => {
                let random: Vec<u8> = sector.iter().map(|_| rng.u8(..)).collect();
                [head, &random, tail].concat()
            }
        };
        (damaged != whole).then_some(damaged)
    }
}

/// Places to damage: the first 64 bytes, the last 16, and each region between, `regions` in all at least.
pub fn places(length: usize, regions: usize) -> Vec<usize> {
    let step = (length / regions.max(1)).max(1);
    let mut places: Vec<usize> = (0..length.min(64))
        .chain((0..length).step_by(step))
        .chain(length.saturating_sub(16)..length)
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_harm_changes_the_file_where_it_should() {
        let whole: Vec<u8> = (0..2000_u32).map(|i| (i % 251) as u8 + 1).collect();
        for harm in Harm::ALL {
            for at in places(whole.len(), 10) {
                let damaged = harm.done(&whole, at).expect("other bytes");
                assert_eq!(damaged[..at], whole[..at], "{harm:?} at {at}");
                assert_ne!(damaged, whole);
            }
        }
        assert_eq!(Harm::Zero.done(&[0; 9], 3), None);
        assert_eq!(Harm::Flip.done(&[0; 9], 9), None);
    }
}
