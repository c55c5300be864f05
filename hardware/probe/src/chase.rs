//! A ring of pointers through memory, one in each cache line, in random order: each load waits for the one before it
//! (lenis2018, eq. 3.2, in random order so that no prefetcher can guess the next).
// Unsafe because the loop follows raw addresses, as the C loop that it is compared with does: an index would add an addition to
// each load, which shows where a load takes four cycles.
#![allow(unsafe_code)]

/// What one node of the ring takes: a cache line.
pub type Line = [u64; 8];

/// Loads in a row before the loop's counter is looked at.
const UNROLL: u64 = 64;

/// A closed ring over the lines of a buffer.
#[derive(Debug)]
pub struct Ring<'a> {
    /// Held for as long as addresses into it are followed.
    lines: &'a mut [Line],
    /// Address of the line that is loaded next.
    at: *const u64,
}

impl<'a> Ring<'a> {
    /// Links all lines into one ring in an order that `seed` decides; `None` without lines.
    pub fn new(lines: &'a mut [Line], seed: u64) -> Option<Ring<'a>> {
        let order = cycle(lines.len(), seed)?;
        let first = lines.as_ptr().addr();
        for (line, next) in lines.iter_mut().zip(order) {
            line[0] = (first + next as usize * size_of::<Line>()) as u64;
        }
        let at = lines.as_mut_ptr().cast::<u64>();
        at.expose_provenance();
        Some(Ring { lines, at: at.cast_const() })
    }

    /// How many lines the ring has.
    pub fn lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Follows at least `loads` pointers from where the last walk ended; how many it followed.
    #[inline(never)]
    pub fn walk(&mut self, loads: u64) -> u64 {
        let rounds = loads.div_ceil(UNROLL);
        let mut at = self.at;
        for _ in 0..rounds {
            for _ in 0..UNROLL {
                // SAFETY: `at` is the first word of a line of `self.lines`: it is so at first, and each such word holds the
                // address of the first word of another, whose provenance `new` exposed. Nobody else can write to the
                // lines while `self` borrows them.
                let next = unsafe { at.read() };
                at = std::ptr::with_exposed_provenance(next as usize);
            }
        }
        // Nothing may be left out of the walk because its end is not used.
        self.at = std::hint::black_box(at);
        rounds * UNROLL
    }
}

/// A random permutation of `0..length` that is one cycle (Sattolo 1986); `None` for 0.
fn cycle(length: usize, seed: u64) -> Option<Vec<u32>> {
    let mut next: Vec<u32> = (0..u32::try_from(length).ok()?).collect();
    if next.is_empty() {
        return None;
    }
    let mut random = seed;
    for i in (1..next.len()).rev() {
        let j = (u128::from(splitmix(&mut random)) * i as u128) >> 64;
        next.swap(i, j as usize);
    }
    Some(next)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_one_cycle() {
        for length in [1, 2, 3, 64, 1000] {
            let next = cycle(length, 11).expect("lines");
            let mut at = 0;
            let mut seen = vec![false; length];
            for _ in 0..length {
                assert!(!std::mem::replace(&mut seen[at], true), "{length} lines: line {at} again");
                at = next[at] as usize;
            }
            assert_eq!(at, 0, "{length} lines");
        }
        assert_eq!(cycle(0, 11), None);
        assert_ne!(cycle(1000, 1), cycle(1000, 2));
    }

    #[test]
    fn walks_go_round_the_ring() {
        let mut lines: Vec<Line> = vec![[0; 8]; 192];
        let start = lines.as_ptr().cast::<u64>();
        let mut ring = Ring::new(&mut lines, 5).expect("a ring");
        assert_eq!((ring.lines(), ring.walk(128)), (192, 128));
        assert_ne!(ring.at, start);
        assert_eq!(ring.walk(1), 64);
        assert_eq!(ring.at, start);
    }

    #[test]
    fn steps_of_a_ring_have_no_pattern() {
        let next = cycle(1 << 14, 3).expect("lines");
        let near = next.iter().enumerate().filter(|(i, n)| i.abs_diff(**n as usize) < 64).count();
        assert!(near < 1 << 8, "{near} of 16384 steps stay near");
    }
}
