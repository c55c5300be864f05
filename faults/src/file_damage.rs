//! Damages files at given positions, as failing disks and crashes do.

use fastrand::Rng;

/// Number of bytes that disks and file systems lose together.
const SECTOR_BYTES: usize = 512;

/// How a file is damaged. A sector is the 512 bytes from the position on, or fewer at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DamageKind {
    /// One bit of the byte at the position is inverted.
    Flip,
    /// All bytes of the sector are 0. The length is unchanged.
    Zero,
    /// The file ends before the position.
    Truncate,
    /// The sector occurs twice: the bytes after it are shifted, and the file is longer.
    Repeat,
    /// The sector is missing: the bytes after it are shifted, and the file is shorter.
    Drop,
    /// The sector has random bytes. The length is unchanged.
    Scramble,
}

impl DamageKind {
    /// All kinds of damage.
    pub(crate) const ALL_DAMAGE_KINDS: [DamageKind; 6] = [
        DamageKind::Flip,
        DamageKind::Zero,
        DamageKind::Truncate,
        DamageKind::Repeat,
        DamageKind::Drop,
        DamageKind::Scramble,
    ];

    /// Returns the name of the kind in a trial, such as `truncate`.
    pub(crate) fn damage_name(self) -> &'static str {
        match self {
            DamageKind::Flip => "flip",
            DamageKind::Zero => "zero",
            DamageKind::Truncate => "truncate",
            DamageKind::Repeat => "repeat",
            DamageKind::Drop => "drop",
            DamageKind::Scramble => "scramble",
        }
    }

    /// Returns the content `whole` of a file with this damage at byte `at`; `None` if the damage would change nothing.
    pub(crate) fn apply_damage_to_content(self, whole: &[u8], at: usize) -> Option<Vec<u8>> {
        if at >= whole.len() {
            return None;
        }
        // The position is the random seed.
        let mut rng = Rng::with_seed(at as u64);
        let end = (at + SECTOR_BYTES).min(whole.len());
        let (head, sector, tail) = (&whole[..at], &whole[at..end], &whole[end..]);
        let damaged = match self {
            DamageKind::Flip => {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << rng.u8(..8);
                bytes
            }
            DamageKind::Zero => [head, &vec![0; sector.len()], tail].concat(),
            DamageKind::Truncate => head.to_vec(),
            DamageKind::Repeat => [head, sector, sector, tail].concat(),
            DamageKind::Drop => [head, tail].concat(),
            DamageKind::Scramble => {
                let random: Vec<u8> = sector.iter().map(|_| rng.u8(..)).collect();
                [head, &random, tail].concat()
            }
        };
        (damaged != whole).then_some(damaged)
    }
}

/// Returns the positions at which a file of `length` bytes is damaged: its first 64 bytes, its last 16, and at least
/// `regions` evenly spaced ones (all bytes of a file with fewer).
pub(crate) fn choose_damage_positions(length: usize, regions: usize) -> Vec<usize> {
    let step = (length / regions.max(1)).max(1);
    let mut places: Vec<usize> =
        (0..length.min(64)).chain((0..length).step_by(step)).chain(length.saturating_sub(16)..length).collect();
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
        for damage_kind in DamageKind::ALL_DAMAGE_KINDS {
            for at in choose_damage_positions(whole.len(), 10) {
                let damaged = damage_kind.apply_damage_to_content(&whole, at).expect("other bytes");
                assert_eq!(damaged[..at], whole[..at], "{damage_kind:?} at {at}");
                assert_ne!(damaged, whole);
            }
        }
        assert_eq!(DamageKind::Zero.apply_damage_to_content(&[0; 9], 3), None);
        assert_eq!(DamageKind::Flip.apply_damage_to_content(&[0; 9], 9), None);
    }
}
