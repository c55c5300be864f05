//! What of a template is compared: where its reads begin and end without clips, their strands, and their qualities.

use super::super::merge::{Item, ORDINAL};
use super::super::record::{Record, flag};

/// A primary, mapped read, as if its clipped bases were aligned too. Positions may lie beyond the sequence's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    sequence: u32,
    /// First and last base, 0-based.
    first_base: i64,
    last_base: i64,
    reverse: bool,
    /// Read 2 of its pair.
    last_read: bool,
    /// Sum of the base qualities that count.
    score: u32,
    /// Position as the record says.
    position: i32,
}

/// Base qualities below this do not count for the score.
const GOOD: u8 = 15;

impl End {
    pub(super) fn new(record: Record<'_>) -> End {
        let clips = |ops: &mut dyn Iterator<Item = crate::sort::record::Op>| -> i64 {
            ops.take_while(|op| op.clips()).map(|op| i64::from(op.len)).sum()
        };
        let position = record.position();
        let span = record.cigar().filter(|op| op.spans()).map(|op| i64::from(op.len)).sum::<i64>().max(1);
        let good = record.qualities().iter().filter(|&&q| q >= GOOD).map(|&q| u64::from(q)).sum::<u64>();
        End {
            sequence: record.sequence().unwrap_or(0),
            first_base: i64::from(position) - clips(&mut record.cigar()),
            last_base: i64::from(position) + span - 1 + clips(&mut record.cigar().rev()),
            reverse: record.is(flag::REVERSE),
            last_read: record.is(flag::LAST),
            score: good.try_into().unwrap_or(u32::MAX),
            position,
        }
    }

    /// Where its first base as sequenced lies.
    fn five_prime(&self) -> u32 {
        place(if self.reverse { self.last_base } else { self.first_base })
    }

    /// Whether it is the left one of its template; both are when they begin at the same base.
    fn is_left_of(&self, mate: &End) -> bool {
        if self.sequence != mate.sequence {
            return self.sequence < mate.sequence;
        }
        match (self.reverse, mate.reverse) {
            (false, false) => self.first_base <= mate.first_base,
            (true, true) => self.last_base <= mate.last_base,
            (false, true) => self.first_base <= mate.last_base,
            (true, false) => self.last_base <= mate.first_base,
        }
    }

    /// Adds what is compared of a read whose mate is unmapped, or that has none.
    pub(super) fn push_single(&self, library: u16, ordinal: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&ordinal.to_le_bytes());
        push_single_key(out, self.sequence, self.five_prime(), library, self.reverse, true);
        out.extend_from_slice(&self.score.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.push(u8::from(self.last_read));
    }
}

/// A position as 32 bits. Differences are kept: a position and its clips stay well within 2³² bases of each other.
fn place(position: i64) -> u32 {
    position as u32
}

fn push_single_key(
    out: &mut Vec<u8>,
    sequence: u32,
    five_prime: u32,
    library: u16,
    reverse: bool,
    alone: bool,
) {
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

/// Which strands the reads of a pair are on, seen from its left end. A same-strand template read from its other side
/// has both strands turned and its reads exchanged, so that two names are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orientation {
    ForwardReverse,
    ReverseForward,
    /// Both forward with read 1 on the left, or both reverse with read 2 on the left.
    FirstForward,
    /// The other two.
    FirstReverse,
}

/// A pair of mapped reads, one of which may not count. As bytes after the ordinal: left and right end, each as sequence
/// and position (4 × 4), library (2), orientation, roles, score (4), where the left and the right read begin (2 × 4),
/// length of the name, name.
#[derive(Debug)]
pub(super) struct Pair;

/// Bits of a pair's roles.
mod role {
    /// The left read is looked at.
    pub(super) const LEFT: u8 = 1;
    /// The right read is looked at.
    pub(super) const RIGHT: u8 = 2;
    /// Read 2 is on the left.
    pub(super) const LAST_LEFT: u8 = 4;
    pub(super) const LEFT_REVERSE: u8 = 8;
    pub(super) const RIGHT_REVERSE: u8 = 16;
}

fn bit(set: bool, role: u8) -> u8 {
    if set { role } else { 0 }
}

const PAIR: usize = ORDINAL + 33;

impl Item for Pair {
    type Key = (u64, u64, u32);
    const LAST: Self::Key = (u64::MAX, u64::MAX, u32::MAX);

    fn length(bytes: &[u8]) -> usize {
        PAIR + usize::from(bytes[PAIR - 1])
    }

    fn key(item: &[u8]) -> Self::Key {
        let kind = u32_at(item, ORDINAL + 16) & 0x00ff_ffff;
        (u64_at(item, ORDINAL), u64_at(item, ORDINAL + 8), kind)
    }
}

/// A mapped read of a pair, and whether it is looked at (it is not when it failed quality control).
pub(super) type Looked = (End, bool);

impl Pair {
    /// Adds what is compared of a pair.
    pub(super) fn push(reads: [Looked; 2], name: &[u8], library: u16, ordinal: u64, out: &mut Vec<u8>) {
        let [(a, a_counts), (b, b_counts)] = reads;
        match (a.is_left_of(&b), b.is_left_of(&a)) {
            (true, true) => {
                // Each read finds itself on the left, and may have other copies than its mate.
                for (left, right, counts) in [(a, b, a_counts), (b, a, b_counts)] {
                    let roles = bit(counts, role::LEFT);
                    Template { left, right, roles }.push(name, library, ordinal, out);
                }
            }
            (a_is_left, _) => {
                let [(left, l_counts), (right, r_counts)] =
                    if a_is_left { reads } else { [reads[1], reads[0]] };
                let roles = bit(l_counts, role::LEFT) | bit(r_counts, role::RIGHT);
                Template { left, right, roles }.push(name, library, ordinal, out);
            }
        }
    }

    pub(super) fn score(item: &[u8]) -> u32 {
        u32_at(item, ORDINAL + 20)
    }

    pub(super) fn name(item: &[u8]) -> &[u8] {
        &item[PAIR..]
    }

    fn has(item: &[u8], role: u8) -> bool {
        item[ORDINAL + 19] & role != 0
    }

    /// For the left and the right read: whether it is looked at, and whether it is read 2.
    pub(super) fn sides(item: &[u8]) -> [(bool, bool); 2] {
        let last_left = Self::has(item, role::LAST_LEFT);
        [(Self::has(item, role::LEFT), last_left), (Self::has(item, role::RIGHT), !last_left)]
    }

    /// Adds, for the left or the right read, what a single read is compared with.
    pub(super) fn push_end(item: &[u8], side: usize, out: &mut Vec<u8>) {
        let sequence = u32_at(item, ORDINAL + 8 * side);
        let five_prime = u32_at(item, ORDINAL + 24 + 4 * side);
        let library = u16::from_le_bytes([item[ORDINAL + 16], item[ORDINAL + 17]]);
        let reverse = Self::has(item, [role::LEFT_REVERSE, role::RIGHT_REVERSE][side]);
        out.extend_from_slice(&[0; ORDINAL]);
        push_single_key(out, sequence, five_prime, library, reverse, false);
        out.extend_from_slice(&[0; SINGLE - ORDINAL - 12]);
    }
}

/// A pair, seen from its left end.
struct Template {
    left: End,
    right: End,
    roles: u8,
}

impl Template {
    /// Where the template begins and ends, and how its reads lie: what copies have in common. In a same-strand pair one
    /// of the reads does not begin at an end of the template.
    fn view(&self) -> (i64, i64, Orientation) {
        let (l, r) = (&self.left, &self.right);
        match (l.reverse, r.reverse) {
            (false, true) => (l.first_base, r.last_base, Orientation::ForwardReverse),
            (true, false) => (l.last_base, r.first_base, Orientation::ReverseForward),
            _ if l.reverse == l.last_read => (l.first_base, r.last_base, Orientation::FirstForward),
            _ => (l.first_base, r.last_base, Orientation::FirstReverse),
        }
    }

    fn push(&self, name: &[u8], library: u16, ordinal: u64, out: &mut Vec<u8>) {
        if self.roles == 0 {
            return;
        }
        let (l, r) = (&self.left, &self.right);
        let (begin, end, orientation) = self.view();
        let roles = self.roles
            | bit(l.last_read, role::LAST_LEFT)
            | bit(l.reverse, role::LEFT_REVERSE)
            | bit(r.reverse, role::RIGHT_REVERSE);
        out.extend_from_slice(&ordinal.to_le_bytes());
        for word in [l.sequence, place(begin), r.sequence, place(end)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&library.to_le_bytes());
        out.extend_from_slice(&[orientation as u8, roles]);
        for word in [l.score.saturating_add(r.score), l.five_prime(), r.five_prime()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        // BAM has at most 254 letters.
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }
}

/// A read without a mapped mate, or the place of a read that has one. As bytes after the ordinal: sequence (4), where
/// it begins (4), library (2), strand, whether it is without, score (4), position (4), whether it is read 2.
#[derive(Debug)]
pub(super) struct Single;

const SINGLE: usize = ORDINAL + 21;

impl Item for Single {
    type Key = (u64, u32);
    const LAST: Self::Key = (u64::MAX, u32::MAX);

    fn length(_: &[u8]) -> usize {
        SINGLE
    }

    /// By place, library and strand; reads of pairs come first.
    fn key(item: &[u8]) -> Self::Key {
        (u64_at(item, ORDINAL), u32_at(item, ORDINAL + 8).swap_bytes())
    }
}

impl Single {
    /// The key without what tells singles from reads of pairs.
    pub(super) fn place(item: &[u8]) -> (u64, u32) {
        let (place, kind) = Single::key(item);
        (place, kind >> 8)
    }

    pub(super) fn is_of_pair(item: &[u8]) -> bool {
        item[ORDINAL + 11] == 0
    }

    /// Better ones first: the higher score, then the lower position.
    pub(super) fn rank(item: &[u8]) -> (std::cmp::Reverse<u32>, u32) {
        (std::cmp::Reverse(u32_at(item, ORDINAL + 12)), u32_at(item, ORDINAL + 16))
    }

    pub(super) fn is_last(item: &[u8]) -> bool {
        item[ORDINAL + 20] != 0
    }
}
