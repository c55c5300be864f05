//! Read ends of templates: unclipped positions, strands and summed qualities, which duplicate marking compares.

use super::super::loser_tree::{SortItem, TEMPLATE_ORDINAL_BYTES};
use super::super::record::{Record, flag};

/// Unclipped ends, strand and quality sum of a mapped read, from its primary record. The ends are computed as if the
/// clipped bases were aligned; they may be beyond the ends of the reference sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnclippedReadEnds {
    sequence: u32,
    /// Leftmost base of the read on the reference as if clipped bases were aligned, 0-based; may be negative.
    leftmost_base: i64,
    /// Rightmost base of the read on the reference as if clipped bases were aligned, 0-based.
    rightmost_base: i64,
    reverse: bool,
    /// Whether the read is read 2 of its pair.
    is_read2: bool,
    /// Sum of the base qualities of at least [`MIN_SCORED_QUALITY`].
    score: u32,
    /// Position (POS) of the record.
    position: i32,
}

/// Minimum base quality that counts for the score; the same as in samtools markdup and Picard.
const MIN_SCORED_QUALITY: u8 = 15;

impl UnclippedReadEnds {
    /// Computes the ends of the read of a mapped record.
    pub(super) fn from_record(record: Record<'_>) -> UnclippedReadEnds {
        let clips = |ops: &mut dyn Iterator<Item = crate::sort::record::BamCigarOp>| -> i64 {
            ops.take_while(|op| op.is_clip()).map(|op| i64::from(op.len)).sum()
        };
        let position = record.position();
        let span = record.cigar().filter(|op| op.consumes_reference()).map(|op| i64::from(op.len)).sum::<i64>().max(1);
        let good = record.qualities().iter().filter(|&&q| q >= MIN_SCORED_QUALITY).map(|&q| u64::from(q)).sum::<u64>();
        UnclippedReadEnds {
            sequence: record.sequence_index().unwrap_or(0),
            leftmost_base: i64::from(position) - clips(&mut record.cigar()),
            rightmost_base: i64::from(position) + span - 1 + clips(&mut record.cigar().rev()),
            reverse: record.has_any_flag(flag::REVERSE),
            is_read2: record.has_any_flag(flag::READ2),
            score: good.try_into().unwrap_or(u32::MAX),
            position,
        }
    }

    /// Unclipped position of the first sequenced base (5' end).
    fn five_prime(&self) -> u32 {
        position_bits(if self.reverse { self.rightmost_base } else { self.leftmost_base })
    }

    /// Whether this read is the left read of its template. Both reads are left if they begin at the same base.
    fn is_left_of(&self, mate: &UnclippedReadEnds) -> bool {
        if self.sequence != mate.sequence {
            return self.sequence < mate.sequence;
        }
        match (self.reverse, mate.reverse) {
            (false, false) => self.leftmost_base <= mate.leftmost_base,
            (true, true) => self.rightmost_base <= mate.rightmost_base,
            (false, true) => self.leftmost_base <= mate.rightmost_base,
            (true, false) => self.rightmost_base <= mate.leftmost_base,
        }
    }

    /// Appends the item of a read without a mapped mate.
    pub(super) fn push_item_of_single_read(&self, library: u16, ordinal: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&ordinal.to_le_bytes());
        push_single_key(out, self.sequence, self.five_prime(), library, self.reverse, true);
        out.extend_from_slice(&self.score.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.push(u8::from(self.is_read2));
    }
}

/// A position, which may be negative, as 32 bits. Differences are preserved, because a position and its clips are
/// within 2³² bases of each other.
fn position_bits(position: i64) -> u32 {
    position as u32
}

fn push_single_key(out: &mut Vec<u8>, sequence: u32, five_prime: u32, library: u16, reverse: bool, alone: bool) {
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&five_prime.to_le_bytes());
    out.extend_from_slice(&library.to_le_bytes());
    out.push(u8::from(reverse));
    out.push(u8::from(alone));
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// Strands of the reads of a pair. If both reads are on the same strand, sequencing the other strand of the template
/// reverses both strands and exchanges read 1 and read 2, so that two orientations suffice for such pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orientation {
    ForwardReverse,
    ReverseForward,
    /// Both reads forward with read 1 on the left, or both reverse with read 2 on the left.
    FirstForward,
    /// Both reads forward with read 2 on the left, or both reverse with read 1 on the left.
    FirstReverse,
}

/// Sort item of a pair of mapped reads, of which one may be excluded from the comparison. Bytes after the ordinal:
/// left and right end, each with sequence and position (4 × 4), library (2), orientation, roles, score (4), 5' ends of
/// the left and the right read (2 × 4), length of the name, name.
#[derive(Debug)]
pub(super) struct PairEndsSortItem;

/// Bits of the roles field of a [`PairEndsSortItem`] item.
mod role {
    /// The left read is compared with other reads, because it did not fail quality control.
    pub(super) const LEFT_IS_COMPARED_FLAG: u8 = 1;
    /// The right read is compared with other reads, because it did not fail quality control.
    pub(super) const RIGHT_IS_COMPARED_FLAG: u8 = 2;
    /// The left read is read 2 of the template.
    pub(super) const READ2_IS_LEFT_FLAG: u8 = 4;
    /// The left read is on the reverse strand.
    pub(super) const LEFT_IS_REVERSE_FLAG: u8 = 8;
    /// The right read is on the reverse strand.
    pub(super) const RIGHT_IS_REVERSE_FLAG: u8 = 16;
}

fn role_bit(set: bool, role: u8) -> u8 {
    if set { role } else { 0 }
}

const PAIR_ENDS_BYTES: usize = TEMPLATE_ORDINAL_BYTES + 33;

impl SortItem for PairEndsSortItem {
    type Key = (u64, u64, u32);
    const MAX_KEY: Self::Key = (u64::MAX, u64::MAX, u32::MAX);

    fn encoded_len(bytes: &[u8]) -> usize {
        PAIR_ENDS_BYTES + usize::from(bytes[PAIR_ENDS_BYTES - 1])
    }

    fn key(item: &[u8]) -> Self::Key {
        let kind = u32_at(item, TEMPLATE_ORDINAL_BYTES + 16) & 0x00ff_ffff;
        (u64_at(item, TEMPLATE_ORDINAL_BYTES), u64_at(item, TEMPLATE_ORDINAL_BYTES + 8), kind)
    }
}

/// A mapped read of a pair, and whether it is compared with other reads. Reads that failed quality control are not
/// compared.
pub(super) type MateAndIsCompared = (UnclippedReadEnds, bool);

impl PairEndsSortItem {
    /// Appends the sort items of a pair of mapped reads: one item, or two if both reads begin at the same base. An item
    /// without a compared read is left out.
    pub(super) fn push_pair_sort_items(
        reads: [MateAndIsCompared; 2],
        name: &[u8],
        library: u16,
        ordinal: u64,
        out: &mut Vec<u8>,
    ) {
        let [(a, a_counts), (b, b_counts)] = reads;
        match (a.is_left_of(&b), b.is_left_of(&a)) {
            (true, true) => {
                // Each read is the left one in its own item, and may have other duplicates than its mate.
                for (left, right, counts) in [(a, b, a_counts), (b, a, b_counts)] {
                    let roles = role_bit(counts, role::LEFT_IS_COMPARED_FLAG);
                    OrientedPair { left, right, roles }.push(name, library, ordinal, out);
                }
            }
            (a_is_left, _) => {
                let [(left, l_counts), (right, r_counts)] = if a_is_left { reads } else { [reads[1], reads[0]] };
                let roles =
                    role_bit(l_counts, role::LEFT_IS_COMPARED_FLAG) | role_bit(r_counts, role::RIGHT_IS_COMPARED_FLAG);
                OrientedPair { left, right, roles }.push(name, library, ordinal, out);
            }
        }
    }

    /// Sum of the base qualities of at least [`MIN_SCORED_QUALITY`] of both reads. The pair of a duplicate set with the
    /// highest sum is not marked.
    pub(super) fn pair_quality_sum(item: &[u8]) -> u32 {
        u32_at(item, TEMPLATE_ORDINAL_BYTES + 20)
    }

    /// Read name of the pair. It decides between pairs with equal quality sums.
    pub(super) fn read_name(item: &[u8]) -> &[u8] {
        &item[PAIR_ENDS_BYTES..]
    }

    fn has_role(item: &[u8], role: u8) -> bool {
        item[TEMPLATE_ORDINAL_BYTES + 19] & role != 0
    }

    /// For the left and for the right read of the pair: whether the read is compared with other reads, and whether it
    /// is read 2.
    pub(super) fn compared_and_read2_flags(item: &[u8]) -> [(bool, bool); 2] {
        let last_left = Self::has_role(item, role::READ2_IS_LEFT_FLAG);
        [
            (Self::has_role(item, role::LEFT_IS_COMPARED_FLAG), last_left),
            (Self::has_role(item, role::RIGHT_IS_COMPARED_FLAG), !last_left),
        ]
    }

    /// Appends the [`SingleReadEndSortItem`] of the left (`side` 0) or the right (`side` 1) read of a pair, so that
    /// single reads are compared with it.
    pub(super) fn push_item_of_pair_read(item: &[u8], side: usize, out: &mut Vec<u8>) {
        let sequence = u32_at(item, TEMPLATE_ORDINAL_BYTES + 8 * side);
        let five_prime = u32_at(item, TEMPLATE_ORDINAL_BYTES + 24 + 4 * side);
        let library = u16::from_le_bytes([item[TEMPLATE_ORDINAL_BYTES + 16], item[TEMPLATE_ORDINAL_BYTES + 17]]);
        let reverse = Self::has_role(item, [role::LEFT_IS_REVERSE_FLAG, role::RIGHT_IS_REVERSE_FLAG][side]);
        out.extend_from_slice(&[0; TEMPLATE_ORDINAL_BYTES]);
        push_single_key(out, sequence, five_prime, library, reverse, false);
        out.extend_from_slice(&[0; SINGLE_END_BYTES - TEMPLATE_ORDINAL_BYTES - 12]);
    }
}

/// A pair of mapped reads, ordered as left and right read.
struct OrientedPair {
    left: UnclippedReadEnds,
    right: UnclippedReadEnds,
    roles: u8,
}

impl OrientedPair {
    /// Start and end of the template and its orientation, which are equal for duplicates. In a pair with both reads on
    /// one strand, one of the reads does not begin at an end of the template.
    fn outer_ends(&self) -> (i64, i64, Orientation) {
        let (l, r) = (&self.left, &self.right);
        match (l.reverse, r.reverse) {
            (false, true) => (l.leftmost_base, r.rightmost_base, Orientation::ForwardReverse),
            (true, false) => (l.rightmost_base, r.leftmost_base, Orientation::ReverseForward),
            _ if l.reverse == l.is_read2 => (l.leftmost_base, r.rightmost_base, Orientation::FirstForward),
            _ => (l.leftmost_base, r.rightmost_base, Orientation::FirstReverse),
        }
    }

    fn push(&self, name: &[u8], library: u16, ordinal: u64, out: &mut Vec<u8>) {
        if self.roles == 0 {
            return;
        }
        let (l, r) = (&self.left, &self.right);
        let (begin, end, orientation) = self.outer_ends();
        let roles = self.roles
            | role_bit(l.is_read2, role::READ2_IS_LEFT_FLAG)
            | role_bit(l.reverse, role::LEFT_IS_REVERSE_FLAG)
            | role_bit(r.reverse, role::RIGHT_IS_REVERSE_FLAG);
        out.extend_from_slice(&ordinal.to_le_bytes());
        for value in [l.sequence, position_bits(begin), r.sequence, position_bits(end)] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&library.to_le_bytes());
        out.extend_from_slice(&[orientation as u8, roles]);
        for value in [l.score.saturating_add(r.score), l.five_prime(), r.five_prime()] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        // A BAM read name has at most 254 letters.
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }
}

/// Sort item of a single read (a mapped read without a mapped mate), or of a read of a pair with which single reads
/// are compared. Bytes after the ordinal: sequence (4), 5' end (4), library (2), strand, whether it has no mapped
/// mate, score (4), position (4), whether it is read 2.
#[derive(Debug)]
pub(super) struct SingleReadEndSortItem;

const SINGLE_END_BYTES: usize = TEMPLATE_ORDINAL_BYTES + 21;

impl SortItem for SingleReadEndSortItem {
    type Key = (u64, u32);
    const MAX_KEY: Self::Key = (u64::MAX, u32::MAX);

    fn encoded_len(_: &[u8]) -> usize {
        SINGLE_END_BYTES
    }

    /// Sort key: 5' end, library and strand; reads of pairs come first.
    fn key(item: &[u8]) -> Self::Key {
        (u64_at(item, TEMPLATE_ORDINAL_BYTES), u32_at(item, TEMPLATE_ORDINAL_BYTES + 8).swap_bytes())
    }
}

impl SingleReadEndSortItem {
    /// Key that is equal for duplicates: 5' position, and library with strand. Reads of pairs and single reads at the
    /// same position have equal keys.
    pub(super) fn duplicate_key(item: &[u8]) -> (u64, u32) {
        let (position, kind) = SingleReadEndSortItem::key(item);
        (position, kind >> 8)
    }

    /// Whether the item is a read of a pair with two mapped reads; false for a single read.
    pub(super) fn is_from_pair(item: &[u8]) -> bool {
        item[TEMPLATE_ORDINAL_BYTES + 11] == 0
    }

    /// Rank of a single read among its duplicates; the lowest rank stays unmarked: highest score, then lowest
    /// position.
    pub(super) fn rank_among_duplicates(item: &[u8]) -> (std::cmp::Reverse<u32>, u32) {
        (std::cmp::Reverse(u32_at(item, TEMPLATE_ORDINAL_BYTES + 12)), u32_at(item, TEMPLATE_ORDINAL_BYTES + 16))
    }

    /// Whether the item is read 2 of its template.
    pub(super) fn is_read2(item: &[u8]) -> bool {
        item[TEMPLATE_ORDINAL_BYTES + 20] != 0
    }
}
