//! Partitions of the k-mer space: a share of all minimizers, which is counted by itself, in a reading of its own of all reads.
//!
//! Partition `n` of `p` has the minimizers whose hash leaves `n` when it is divided by `p`. It is made of two halves, `n` and
//! `n + p` of `2p`, so that one that turns out too large is split, and whatever was counted of the others stays good.

use std::collections::VecDeque;
use std::fmt;

use crate::minimizer::bin_of;

/// Most partitions that the space is split into.
pub const MAX_PARTS: u32 = 1 << 12;

/// One partition of the k-mer space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// Which of them, from 0 on.
    number: u32,
    /// How many there are.
    of: u32,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of {}", self.number + 1, self.of)
    }
}

impl Part {
    /// The whole space.
    pub const WHOLE: Part = Part { number: 0, of: 1 };

    /// Partition `number`, from 0 on, of `of`; `None` when there is none such.
    pub fn new(number: u32, of: u32) -> Option<Part> {
        (number < of && of <= MAX_PARTS).then_some(Part { number, of })
    }

    /// Which of them it is, from 0 on.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many partitions of its size there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Short and fit for a file's name: `2-of-4`.
    pub fn label(self) -> String {
        format!("{}-of-{}", self.number + 1, self.of)
    }

    /// The partition of a [`Part::label`].
    pub fn from_label(label: &str) -> Option<Part> {
        let (number, of) = label.split_once("-of-")?;
        let part = Part::new(number.parse::<u32>().ok()?.checked_sub(1)?, of.parse().ok()?)?;
        (part.label() == label).then_some(part)
    }

    /// Whether the roots with this minimizer belong to it.
    #[inline]
    pub(crate) fn has(self, minimizer: u32) -> bool {
        self.of == 1 || mixed(minimizer) % self.of == self.number
    }

    /// Its two halves; `None` when they would be too many.
    fn halves(self) -> Option<[Part; 2]> {
        let half = |number| Part::new(number, 2 * self.of);
        Some([half(self.number)?, half(self.number + self.of)?])
    }

    /// Whether `other` is a half of it, or a half of that, and so on.
    fn contains(self, other: Part) -> bool {
        other.of.is_multiple_of(self.of)
            && (other.of / self.of).is_power_of_two()
            && other.number % self.of == self.number
    }

    /// It, or its halves, or theirs: at least one of `least`, if there are so many.
    fn split(self, least: u32) -> Vec<Part> {
        match self.halves() {
            Some(halves) if self.of < least => {
                halves.into_iter().flat_map(|half| half.split(least)).collect()
            }
            _ => vec![self],
        }
    }

    /// What is left of it without those `done`, in partitions of at least one of `least`.
    fn without(self, done: &[Part], least: u32) -> Vec<Part> {
        if done.contains(&self) {
            return Vec::new();
        }
        match self.halves() {
            Some(halves) if done.iter().any(|&part| self.contains(part)) => {
                halves.into_iter().flat_map(|half| half.without(done, least)).collect()
            }
            _ => self.split(least),
        }
    }
}

/// How the k-mer space is cut where all partitions are scattered in one reading: partitions, and bins of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Grid {
    /// Partitions.
    pub parts: u32,
    /// Bins of a partition.
    pub bins: u32,
}

impl Grid {
    /// All bins.
    pub fn all(self) -> usize {
        self.parts as usize * self.bins as usize
    }

    /// The bin of the roots with this minimizer; those of a partition lie side by side.
    #[inline]
    pub(crate) fn bin(self, minimizer: u32) -> usize {
        let within = bin_of(minimizer, self.bins as usize);
        if self.parts == 1 { within } else { self.first(mixed(minimizer) % self.parts) + within }
    }

    /// The first bin of a partition.
    pub(crate) fn first(self, part: u32) -> usize {
        part as usize * self.bins as usize
    }
}

/// What became of a partition.
#[derive(Debug)]
pub enum Fit<T> {
    /// It is counted.
    Counted(T),
    /// It did not fit when this share of the input was read, more than 0 and at most 1.
    TooLarge(f64),
}

/// Splits the space as those `done` by an earlier run do, at the least into `wanted`, and has `one` count the partitions that are missing, one after the
/// other. One that is too large is split and begun again, others with it if they look as large. Returns which of those done are
/// part of the whole, and what `one` made of the others.
///
/// # Errors
/// What `one` says, and what `too_large` says of a partition that cannot be split any further.
pub fn in_parts<T, E>(
    wanted: u32,
    done: &[Part],
    mut one: impl FnMut(Part) -> Result<Fit<T>, E>,
    too_large: impl FnOnce(Part) -> E,
) -> Result<(Vec<Part>, Vec<T>), E> {
    let first = done.iter().map(|part| part.of).min().unwrap_or(wanted.clamp(1, MAX_PARTS));
    let all = || (0..first).map(|number| Part { number, of: first });
    // One that lies within another is of no use.
    let within = |part: Part| done.iter().any(|&other| other != part && other.contains(part));
    let usable = |&part: &Part| all().any(|whole| whole.contains(part)) && !within(part);
    let done: Vec<Part> = done.iter().copied().filter(usable).collect();
    let mut queue: VecDeque<Part> = all().flat_map(|part| part.without(&done, wanted)).collect();
    let parts = queue.len() + done.len();
    if parts > 1 {
        let counted =
            if done.is_empty() { String::new() } else { format!(", of which {} are done", done.len()) };
        tracing::info!("the k-mers are counted in {parts} partitions{counted}: all reads are read for each");
    }
    let mut made = Vec::new();
    while let Some(part) = queue.pop_front() {
        match one(part)? {
            Fit::Counted(result) => made.push(result),
            Fit::TooLarge(read) => {
                // As many as would have held it, by what was read of it.
                let would = f64::from(part.of) / read.max(1.0 / f64::from(MAX_PARTS));
                let least = (would.ceil() as u32).max(part.of + 1);
                if part.halves().is_none() {
                    return Err(too_large(part));
                }
                tracing::info!("{part} of the k-mers does not fit: split, and begun again");
                let others = std::mem::take(&mut queue);
                queue.extend(part.split(least));
                queue.extend(others.into_iter().flat_map(|other| other.split(would.round() as u32)));
            }
        }
    }
    Ok((done, made))
}

/// A hash of a minimizer that goes with neither its order nor its bin: every bit of it depends on every bit of the minimizer.
#[inline]
fn mixed(minimizer: u32) -> u32 {
    let x = (minimizer ^ (minimizer >> 16)).wrapping_mul(0x9e37_79b1);
    let x = (x ^ (x >> 15)).wrapping_mul(0x85eb_ca77);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, of: u32) -> Part {
        Part::new(number - 1, of).expect("a partition")
    }

    /// Counts nothing but which partitions come, of which those are too large of which `too_large` says so.
    fn order(wanted: u32, done: &[Part], too_large: impl Fn(Part) -> Option<f64>) -> Vec<Part> {
        let one = |part| Ok(too_large(part).map_or(Fit::Counted(part), Fit::TooLarge));
        let (used, made) = in_parts(wanted, done, one, |part| part.to_string()).expect("small enough");
        // All hashes, once each.
        for hash in 0..MAX_PARTS * 15 {
            let of = |p: &&Part| hash % p.of == p.number;
            assert_eq!(used.iter().chain(&made).filter(of).count(), 1, "{used:?} {made:?}");
        }
        made
    }

    #[test]
    fn the_space_is_covered_once_whatever_is_done_and_whatever_is_too_large() {
        assert_eq!(order(1, &[], |_| None), [Part::WHOLE]);
        assert_eq!(order(0, &[], |_| None), [Part::WHOLE]);
        assert_eq!(order(3, &[], |_| None), [part(1, 3), part(2, 3), part(3, 3)]);
        assert_eq!(order(3, &[part(2, 3)], |_| None), [part(1, 3), part(3, 3)]);
        // What is done decides, but those to come are no larger than wanted.
        assert_eq!(order(1, &[part(2, 2)], |_| None), [part(1, 2)]);
        assert_eq!(order(4, &[part(2, 2)], |_| None), [part(1, 4), part(3, 4)]);
        assert_eq!(order(3, &[part(2, 2)], |_| None), [part(1, 4), part(3, 4)]);
        assert_eq!(order(1, &[part(1, 2), part(4, 8)], |_| None), [part(2, 4), part(8, 8)]);
        // Of another splitting, or within another.
        assert_eq!(order(1, &[part(2, 2), part(3, 3)], |_| None), [part(1, 2)]);
        assert_eq!(order(1, &[part(2, 2), part(4, 8)], |_| None), [part(1, 2)]);

        let whole = |p: Part| (p.of < 2).then_some(0.9);
        assert_eq!(order(1, &[], whole), [part(1, 2), part(2, 2)]);
        let early = |p: Part| (p.of < 2).then_some(0.3);
        assert_eq!(order(1, &[], early), [part(1, 4), part(3, 4), part(2, 4), part(4, 4)]);
        // Others are split with it when they look as large, and not when they do not.
        let second = |p: Part| (p == part(2, 3)).then_some(0.95);
        assert_eq!(order(3, &[], second), [part(1, 3), part(2, 6), part(5, 6), part(3, 3)]);
        let second = |p: Part| (p == part(2, 3)).then_some(0.6);
        assert_eq!(order(3, &[], second), [1, 2, 5, 3, 6].map(|n| part(n, if n == 1 { 3 } else { 6 })));
    }

    #[test]
    fn what_cannot_be_split_any_further_is_an_error() {
        let never = |_| Ok::<Fit<()>, String>(Fit::TooLarge(0.01));
        let said = in_parts(1, &[], never, |part| part.to_string()).expect_err("too large");
        assert_eq!(said, "partition 1 of 4096");
        let said = in_parts(3, &[], never, |part| part.to_string()).expect_err("too large");
        assert_eq!(said, "partition 1 of 3072");
    }

    #[test]
    fn labels_are_read_as_they_are_written() {
        for part in [Part::WHOLE, part(2, 4), part(4096, 4096)] {
            assert_eq!(Part::from_label(&part.label()), Some(part));
        }
        for label in ["", "1", "0-of-4", "5-of-4", "1-of-0", "01-of-4", "1-of-8192", "+1-of-4", "1-of-4-of-5"]
        {
            assert_eq!(Part::from_label(label), None, "{label}");
        }
    }

    #[test]
    fn partitions_are_of_a_size() {
        for of in [2, 3, 4, 7, 64] {
            let mut sizes = vec![0u32; of as usize];
            let part = |number| Part { number, of };
            // Minimizers are small, and made of few letters more often than not.
            (0..64_000u32).for_each(|m| {
                let n = (0..of).find(|&n| part(n).has(m.wrapping_mul(m) >> 3)).expect("one has it");
                sizes[n as usize] += 1;
            });
            let even = 64_000 / of;
            assert!(sizes.iter().all(|&n| n > even * 9 / 10 && n < even * 11 / 10), "{of}: {sizes:?}");
        }
    }
}
